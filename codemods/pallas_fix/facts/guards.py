"""Code that is left alone: both arms of a test of versions, and tests that expect an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.names import Names
from pallas_fix.facts.optional import optional
from pallas_fix.facts.probes import Probes

_ERRORS = frozenset({"AttributeError", "TypeError"})
_SUPPRESSED = _ERRORS | {"ImportError", "ModuleNotFoundError"}
_ANY = frozenset({"Exception", "BaseException"})
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_SKIPS = frozenset({"skipif", "skipIf", "skipUnless"})
_OUT = (ast.Return, ast.Raise)
_LEAVES = (*_OUT, ast.Continue, ast.Break)


def guarded(names: Names) -> Iterator[ast.AST]:
    """The nodes that run only under a test of a version, a name or a keyword.

    Tests of `__version__`, `hasattr`, `getattr`, `inspect.signature`, flags made of these or
    imported from elsewhere (`facts.probes`), whether by `if`, `while`, `match`, `and`, an index or
    a decorator that skips; both arms of `try/except AttributeError` and `TypeError`, and what
    `contextlib.suppress` covers; what follows an `if` of that kind that leaves the block; imports
    of names under `try/except ImportError`, but not those of a module of Pallas
    (`facts.optional`). What is put onto a module of jax counts (`pltpu.CompilerParams = Params`),
    with the function or class that is put there, and a function with `pytest.raises` or
    `assertRaises` in it as a whole: what it runs there is to fail.
    """
    probes = Probes(names)
    yield from (statement for statement, _ in optional(names.tree))
    for node in ast.walk(names.tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) if probes.asks(test):
                yield from (*node.body, *node.orelse)
                if isinstance(node, ast.If) and isinstance(node.body[-1], _LEAVES):
                    yield from _following(node, names)
            case ast.IfExp(test=test) if probes.asks(test):
                yield node
            case ast.BoolOp(values=values) if any(map(probes.asks, values[:-1])):
                yield node
            case ast.Subscript(value=ast.Dict() | ast.Tuple() | ast.List(), slice=index):
                if probes.asks(index):
                    yield node
            case ast.Match(subject=subject) if probes.asks(subject):
                yield node
            case ast.Try():
                yield from _tried(node)
            case ast.With(items=items):
                if any(_is_call_of(i.context_expr, _RAISES) for i in items):
                    yield next(names.enclosing(node), node)
                elif any(_suppresses(i.context_expr) for i in items):
                    yield node
            case ast.Assign() | ast.AnnAssign() | ast.Call():
                yield from _put_onto_jax(node, names)
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                if any(_is_call_of(mark, _SKIPS) and probes.asks(mark) for mark in marks):
                    yield node


def _following(node: ast.If, names: Names) -> Iterator[ast.stmt]:
    """What runs after an `if` only where its test was false; after `return`, also further out."""
    statement: ast.AST = node
    while isinstance(statement, ast.stmt):
        block = names.block(statement)
        yield from block[block.index(statement) + 1 :] if statement in block else ()
        statement = names.parent[statement]
        out = isinstance(node.body[-1], _OUT)
        if not out or isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return


def _tried(node: ast.Try) -> Iterator[ast.AST]:
    caught = {name for handler in node.handlers for name in _caught(handler)}
    if caught & _ERRORS:
        yield from (*node.body, *node.orelse, *node.handlers)
    elif caught & _ANY:
        # Too wide to be about jax, unless both give the same name a value.
        here = set(_assigned(node.body))
        there = {name for handler in node.handlers for name in _assigned(handler.body)}
        if here & there:
            yield from (*node.body, *node.handlers)


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    if handler.type is None:
        yield "BaseException"
        return
    yield from (n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name))


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))
        elif isinstance(statement, ast.FunctionDef):
            yield statement.name


def _suppresses(context: ast.expr) -> bool:
    return _is_call_of(context, {"suppress"}) and any(
        isinstance(node, ast.Name) and node.id in _SUPPRESSED for node in ast.walk(context)
    )


def _is_call_of(expr: ast.expr, words: frozenset[str] | set[str]) -> bool:
    func = expr.func if isinstance(expr, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)
    return name in words


def _put_onto_jax(node: ast.Assign | ast.AnnAssign | ast.Call, names: Names) -> Iterator[ast.AST]:
    value: ast.expr | None
    if isinstance(node, ast.Call):
        func = node.func
        if not (isinstance(func, ast.Name) and func.id == "setattr" and len(node.args) == 3):
            return
        targets, value = [node.args[0]], node.args[2]
    else:
        assigned = node.targets if isinstance(node, ast.Assign) else [node.target]
        targets = [target.value for target in assigned if isinstance(target, ast.Attribute)]
        value = node.value
    if not any((names.path(target) or "").partition(".")[0] == "jax" for target in targets):
        return
    yield node
    if value is not None:
        yield from _defined(value, names)


def _defined(value: ast.expr, names: Names) -> Iterator[ast.AST]:
    definition = names.definition(value)
    if definition is not None:
        yield definition
    elif isinstance(value, ast.Name):
        binding = names.binding(value, names.scope(value))
        if binding is not None and isinstance(binding.node, ast.ClassDef):
            yield binding.node
