"""Code that somebody wrote to run on several versions of jax, or to see an error happen.

Guards on a name, a keyword or a version are a compatibility shim: each arm is right for its own
jax, so neither is touched. Code under `pytest.raises` is there to fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.names import Names

_ERRORS = frozenset(
    {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError"}
)
_ANY_ERROR = frozenset({"Exception", "BaseException"})
_PROBES = frozenset({"hasattr", "getattr", "signature", "getfullargspec", "version", "find_spec"})
_VERSIONS = frozenset({"__version__", "__version_info__"})
_EXPECTS = ("raises", "assertRaises", "assertRaisesRegex", "suppress")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def guarded(module: Facts, node: ast.AST) -> bool:
    """True where `node` stands in an arm of a compatibility shim, or is expected to fail."""
    child, parent = node, module.names.parent.get(node)
    while parent is not None:
        if _shields(module.names, child, parent):
            return True
        child, parent = parent, module.names.parent.get(parent)
    return False


def _shields(names: Names, child: ast.AST, parent: ast.AST) -> bool:
    match parent:
        case ast.If(test=test) | ast.IfExp(test=test) if child is not test and _probes(names, test):
            return True
        case ast.BoolOp(values=[first, *_]) if child is not first and _probes(names, first):
            return True
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            tried = isinstance(child, ast.stmt) and child in parent.body
            caught = child in handlers
            if (tried or caught) and any(_catches(h, parent) for h in handlers):
                return not _imports_module(parent)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            if any(_expects(item.context_expr) for item in items):
                return True
    return _after_probe(names, child, parent)


def _probes(names: Names, test: ast.expr, depth: int = 0) -> bool:
    """True for a test of what this jax has: `hasattr`, a version, a signature, a flag of these."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            probes = next(_names(node.func), "") in _PROBES
            if probes and any(_is_jax(names, argument) for argument in node.args[:1]):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in _VERSIONS:
            return True
        elif isinstance(node, ast.Name) and depth < 4:
            binding = names.binding(node, names.scope(node))
            value = binding.value if binding is not None and binding.kind == "assign" else None
            if value is not None and _probes(names, value, depth + 1):
                return True
    return False


def _is_jax(names: Names, expr: ast.expr) -> bool:
    if isinstance(expr, ast.Constant):
        return isinstance(expr.value, str) and expr.value.startswith("jax")
    root = (names.qualified(expr) or "").partition(".")[0]
    return root in ("jax", "pl", "pltpu", "plgpu", "plsc", "triton", "jnp", "lax")


def _catches(handler: ast.ExceptHandler, around: ast.Try | ast.TryStar) -> bool:
    caught = set(_names(handler.type))
    simple = len(around.body) == 1 and not isinstance(around.body[0], ast.With)
    return bool(caught & _ERRORS) or ((not caught or bool(caught & _ANY_ERROR)) and simple)


def _names(expr: ast.expr | None) -> Iterator[str]:
    if isinstance(expr, ast.Tuple):
        for element in expr.elts:
            yield from _names(element)
    elif isinstance(expr, ast.Name):
        yield expr.id
    elif isinstance(expr, ast.Attribute):
        yield expr.attr


def _imports_module(around: ast.Try | ast.TryStar) -> bool:
    """True where only imports are tried and the error is that of a missing module."""
    caught = {name for handler in around.handlers for name in _names(handler.type)}
    imports = all(isinstance(s, ast.Import | ast.ImportFrom) for s in around.body)
    return imports and caught <= {"ImportError", "ModuleNotFoundError"}


def _expects(expr: ast.expr) -> bool:
    func = expr.func if isinstance(expr, ast.Call) else expr
    return next(_names(func), "") in _EXPECTS


def _after_probe(names: Names, child: ast.AST, parent: ast.AST) -> bool:
    """True for a statement behind `if hasattr(...): return ...` in the same block."""
    blocks = [b for _, b in ast.iter_fields(parent) if isinstance(b, list) and child in b]
    return any(
        isinstance(earlier, ast.If)
        and isinstance(earlier.body[-1], _LEAVES)
        and _probes(names, earlier.test)
        for block in blocks
        for earlier in block[: block.index(child)]
    )
