"""The arms of tests for versions, and what runs only where such a test allows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.guards.differences import stand_for
from pallas_fix.facts.guards.evidence import is_unknown
from pallas_fix.facts.guards.expected import is_call_of
from pallas_fix.facts.guards.probes import Probes
from pallas_fix.facts.guards.tries import Tries, is_suppressed
from pallas_fix.facts.names import Names

_SKIPS = frozenset({"skip", "skipTest"})
_STOPS = _SKIPS | {"fail", "exit", "_exit"}
_OUT = (ast.Return, ast.Raise)
_LEAVES = (*_OUT, ast.Continue, ast.Break)


class Arms:
    """The statements of one module that run only under a test of a version, name or keyword."""

    def __init__(self, names: Names, probes: Probes, tries: Tries) -> None:
        self._names = names
        self._probes = probes
        self._tries = tries

    def of(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a statement makes to be left alone, all of it or parts of it."""
        match node:
            case ast.If(test=test) | ast.While(test=test):
                if self._probes.asks(test):
                    yield from (*node.body, *node.orelse)
                    yield from self._after(node) if isinstance(node, ast.If) else ()
                elif isinstance(node, ast.If):
                    yield from _imported_in_both(node)
                    if is_unknown(self._names, test):
                        yield from self._unknown(node)
            case ast.Match(subject=subject) if self._probes.asks(subject):
                yield node
            case ast.Try():
                yield from self._tries.arms(node)
            case ast.With() if is_suppressed(node):
                yield node
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                if any(map(self._is_test, marks)):
                    yield node

    def _unknown(self, node: ast.If) -> Iterator[ast.stmt]:
        """The arms of a test that is for versions only if they look like it."""
        other = node.orelse
        if not other and isinstance(node.body[-1], _OUT):
            block = self._names.block(node)
            other = block[block.index(node) + 1 :]
        if stand_for(self._names, node.body, other):
            yield from (*node.body, *other)

    def _is_test(self, mark: ast.expr) -> bool:
        """True for a decorator like `@pl.when(IS_NEW)` or `@requires_jax("0.7")`."""
        if isinstance(mark, ast.Call) and self._names.qualified(mark.func) == "pl.when":
            return any(map(self._probes.asks, mark.args))
        lists = isinstance(mark, ast.Call) and any(isinstance(a, ast.List) for a in mark.args)
        return not lists and self._probes.answers(mark)

    def _after(self, node: ast.If) -> Iterator[ast.stmt]:
        """What runs after an `if` only where its test was false; after `return`, also further out.

        A test that gives up where jax is too old is a requirement: the code after it is for every
        jax that is supported at all. Tests that are skipped there are for the newer ones.
        """
        last = node.body[-1]
        stops = isinstance(last, ast.Expr) and is_call_of(last.value, _STOPS)
        if not (stops or isinstance(last, _LEAVES)):
            return
        fails = isinstance(last, ast.Raise) or (stops and not _is_skip(last))
        if fails and _is_older(node.test):
            return
        statement: ast.AST = node
        while isinstance(statement, ast.stmt):
            block = self._names.block(statement)
            yield from block[block.index(statement) + 1 :] if statement in block else ()
            statement = self._names.parent[statement]
            defines = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if defines or not (stops or isinstance(last, _OUT)):
                return


def _is_skip(last: ast.stmt) -> bool:
    return isinstance(last, ast.Expr) and is_call_of(last.value, _SKIPS)


def _is_older(test: ast.expr) -> bool:
    """True for `version < (0, 7)` and `not version >= (0, 7)`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        return isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Gt | ast.GtE)
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE)


def _imported_in_both(node: ast.If) -> Iterator[ast.stmt]:
    """The imports in the arms of an `if` that give one name to different things."""
    arms = [dict(_imports(body)) for body in (node.body, node.orelse)]
    for name in arms[0].keys() & arms[1].keys():
        yield from (arm[name] for arm in arms)


def _imports(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)
