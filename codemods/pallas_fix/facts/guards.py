"""Code that is left alone: both arms of a test of versions, and tests that expect an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.names import Names
from pallas_fix.facts.optional import optional

_PROBES = frozenset({"hasattr", "getattr"})
_VERSION = ("version", "Version")
_SIGNATURES = frozenset({"inspect.signature", "inspect.getfullargspec"})
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def guarded(names: Names) -> Iterator[ast.AST]:
    """The nodes that run only under a test of a version, a name or a keyword.

    Tests of `__version__`, `hasattr`, `getattr`, `inspect.signature`, flags made of these or
    imported from elsewhere; both arms of `try/except AttributeError` and `TypeError`; what
    follows an `if` of that kind that leaves the block; imports of names under `try/except
    ImportError`, but not those of a module of Pallas (`facts.optional`). What is put onto a module
    of jax counts (`pltpu.CompilerParams = pltpu.TPUCompilerParams`), with the function or class
    that is put there, and a function with `pytest.raises` or `assertRaises` in it as a whole: what
    it runs there is to fail.
    """
    yield from (statement for statement, _ in optional(names.tree))
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Call):
            yield from _put_onto_jax(node, names)
            continue
        if isinstance(node, ast.If) and _is_probe(node.test, names):
            yield from (*node.body, *node.orelse)
            if isinstance(node.body[-1], _LEAVES):
                yield from _following(node, names)
        elif isinstance(node, ast.IfExp) and _is_probe(node.test, names):
            yield node
        elif isinstance(node, ast.Try) and any(_catches(h) for h in node.handlers):
            yield from (*node.body, *node.orelse, *node.handlers)
        elif isinstance(node, ast.With) and any(_raises(i.context_expr) for i in node.items):
            yield next(names.enclosing(node), node)


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


def _raises(context: ast.expr) -> bool:
    func = context.func if isinstance(context, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)
    return name in _RAISES


def _following(node: ast.If, names: Names) -> Iterator[ast.stmt]:
    block = names.block(node)
    yield from block[block.index(node) + 1 :]


def _catches(handler: ast.ExceptHandler) -> bool:
    named = ast.walk(handler.type) if handler.type is not None else ()
    return any(isinstance(n, ast.Name) and n.id in ("AttributeError", "TypeError") for n in named)


def _is_probe(test: ast.expr, names: Names, depth: int = 0) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Name) and func.id in _PROBES:
                return True
            if names.qualified(func) in _SIGNATURES:
                return True
            definition = names.definition(func)
            if depth < 3 and isinstance(definition, ast.FunctionDef):
                returns = (n.value for n in ast.walk(definition) if isinstance(n, ast.Return))
                if any(_is_probe(r, names, depth + 1) for r in returns if r is not None):
                    return True
        elif isinstance(node, ast.Attribute):
            if node.attr.strip("_").startswith(_VERSION):
                return True
        elif isinstance(node, ast.Name) and _is_flag(node, names, depth):
            return True
    return False


def _is_flag(node: ast.Name, names: Names, depth: int) -> bool:
    if node.id.strip("_").startswith(_VERSION):
        return True
    binding = names.binding(node, names.scope(node))
    if binding is None or depth > 3:
        found = names.lookup(node.id, names.scope(node))
        bindings = found[1] if found else []
        # A flag set under a test, in both arms: the test is what counts.
        constants = [b for b in bindings if isinstance(b.value, ast.Constant)]
        return bool(bindings) and len(constants) == len(bindings) and node.id.isupper()
    if binding.kind == "import":
        return node.id.isupper() and not binding.target.startswith("jax.")
    value = binding.value
    return binding.kind == "assign" and value is not None and _is_probe(value, names, depth + 1)
