"""The arms of tests for versions, and what runs only where such a test allows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.guards.objects import called
from pallas_fix.facts.guards.probes import Probes
from pallas_fix.facts.guards.tries import Tries, is_suppressed
from pallas_fix.facts.names import Names

TESTS = (
    *(ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Subscript, ast.Match, ast.Try, ast.With),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Call, ast.Expr, ast.Assign),
    *(ast.FunctionDef, ast.ClassDef),
)
_EXPECTS = frozenset(
    "raises assertRaises assertRaisesRegex warns assertWarns deprecated_call".split()
)
_SKIPS = frozenset("skipif skipIf skipUnless xfail".split())
_STOPS = frozenset("skip skipTest fail exit importorskip".split())
_OUT = (ast.Return, ast.Raise)
_LEAVES = (*_OUT, ast.Continue, ast.Break)
_OLDER = (ast.Lt, ast.LtE)


class Arms:
    """The nodes of one module that run only under a test of a version, a name or a keyword."""

    def __init__(self, names: Names, probes: Probes, tries: Tries) -> None:
        self._names = names
        self._probes = probes
        self._tries = tries

    def of(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node makes to be left alone, all of it or parts of it."""
        asks = self._probes.asks
        match node:
            case ast.If(test=test) | ast.While(test=test):
                if asks(test):
                    yield from (*node.body, *node.orelse)
                    yield from self._after(node) if isinstance(node, ast.If) else ()
                elif isinstance(node, ast.If):
                    yield from _imported_in_both(node)
            case ast.IfExp(test=test) if asks(test):
                yield node
            case ast.BoolOp(values=values) if any(map(asks, values[:-1])):
                yield node
            case ast.Subscript(value=ast.Dict() | ast.Tuple() | ast.List(), slice=index):
                if asks(index):
                    yield node
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if any(asks(test) for part in node.generators for test in part.ifs):
                    yield node
            case ast.Match(subject=subject) if asks(subject):
                yield node
            case ast.Try():
                yield from self._tries.arms(node)
            case ast.With():
                if any(_is_call_of(item.context_expr, _EXPECTS) for item in node.items):
                    yield next(self._names.enclosing(node), node)
                elif is_suppressed(node):
                    yield node
            case ast.Expr(value=ast.Call() as call):
                yield from self._called(node, call)
            case ast.Call(keywords=keywords):
                if any(self._is_skip(k.value) for k in keywords if k.arg == "marks"):
                    yield node
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                if any(map(self._is_skip, marks)):
                    yield node
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                if any(isinstance(n, ast.Call) and self._is_skip(n) for n in ast.walk(value)):
                    yield from self._names.block(node)

    def _called(self, statement: ast.Expr, call: ast.Call) -> Iterator[ast.AST]:
        """`pytest.raises(AttributeError, function)`, `pytest.importorskip("jax", "0.7")`."""
        if _is_call_of(call, _EXPECTS) and len(call.args) > 1:
            yield next(self._names.enclosing(call), statement)
        elif _is_call_of(call, frozenset({"importorskip"})):
            minimum = call.args[1:] or any(k.arg == "minversion" for k in call.keywords)
            named = call.args[0] if call.args else None
            if minimum and isinstance(named, ast.Constant) and named.value in ("jax", "jaxlib"):
                block = self._names.block(statement)
                yield from block[block.index(statement) + 1 :]

    def _is_skip(self, mark: ast.expr) -> bool:
        if isinstance(mark, ast.Name):
            binding = self._names.binding(mark, self._names.scope(mark))
            mark = binding.value if binding is not None and binding.value is not None else mark
        if not isinstance(mark, ast.Call) or not _is_call_of(mark, _SKIPS):
            return False
        parts = [*mark.args, *(keyword.value for keyword in mark.keywords)]
        return any(map(self._probes.asks, parts)) or any(k.arg == "raises" for k in mark.keywords)

    def _after(self, node: ast.If) -> Iterator[ast.stmt]:
        """What runs after an `if` only where its test was false; after `return`, also further out.

        A test that raises where jax is too old is a requirement: the code after it is for every
        jax that is supported at all.
        """
        last = node.body[-1]
        stops = isinstance(last, ast.Expr) and _is_call_of(last.value, _STOPS)
        if not (stops or isinstance(last, _LEAVES)):
            return
        if isinstance(last, ast.Raise) and _is_older(node.test):
            return
        statement: ast.AST = node
        while isinstance(statement, ast.stmt):
            block = self._names.block(statement)
            yield from block[block.index(statement) + 1 :] if statement in block else ()
            statement = self._names.parent[statement]
            defines = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if defines or not (stops or isinstance(last, _OUT)):
                return


def _is_older(test: ast.expr) -> bool:
    """True for `version < (0, 7)` and `not version >= (0, 7)`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        return isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Gt | ast.GtE)
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], _OLDER)


def _imported_in_both(node: ast.If) -> Iterator[ast.stmt]:
    """The imports in the arms of an `if` that give one name to different things."""
    arms = [dict(_imports(body)) for body in (node.body, node.orelse)]
    for name in arms[0].keys() & arms[1].keys():
        yield from (arm[name] for arm in arms)


def _imports(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)


def _is_call_of(expr: ast.expr, words: frozenset[str]) -> bool:
    return isinstance(expr, ast.Call) and called(expr.func) in words
