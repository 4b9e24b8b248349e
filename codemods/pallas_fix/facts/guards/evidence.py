"""What single expressions and paths say of versions, by themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import IntEnum

from pallas_fix.facts.guards.words import (
    is_of_shims,
    is_ordinary,
    is_predicate,
    is_version_of_jax,
    speaks,
    speaks_where_imported,
)
from pallas_fix.facts.names import Names

PYTHON = ("sys.version_info", "sys.hexversion", "platform.python_version")
_ENVIRONMENT = ("os.environ", "os.getenv")
_NUMBERED = re.compile(r"\W*(?:jax(?:lib)?\W+)?0\.\d+(?:\.\d+)*\w*")


class Kind(IntEnum):
    """What an expression has to do with the version of jax.

    A `CHOICE` is an object that some test has picked, as `getattr(pltpu, "CompilerParams", None)`:
    it only tells of versions where it is compared or taken for true. An `ANSWER` always does.
    """

    NOTHING = 0
    CHOICE = 1
    ANSWER = 2


def imported(path: str) -> Kind:
    """What the path of something from another module says."""
    module, _, name = path.rpartition(".")
    root = path.lstrip(".").partition(".")[0]
    if path.startswith(PYTHON):
        return Kind.ANSWER
    if root in ("jax", "jaxlib"):
        return Kind.ANSWER if is_version_of_jax(path) or ".__" in path else Kind.NOTHING
    if root in ("packaging", "importlib", "pkg_resources", "inspect", "sys", "os"):
        return Kind.NOTHING
    if speaks_where_imported(name):
        return Kind.ANSWER
    asking = (name.isupper() or is_predicate(name)) and not is_ordinary(name)
    return Kind.ANSWER if asking and is_of_shims(module) else Kind.NOTHING


def is_unknown(names: Names, test: ast.expr) -> bool:
    """True for a flag in capitals of another module whose name says nothing."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    module, _, name = (names.path(test) or "").rpartition(".")
    outside = bool(module) and module.partition(".")[0] not in ("jax", "jaxlib")
    return outside and name.isupper() and not is_ordinary(name)


def is_in_environment(names: Names, value: ast.expr, key: ast.expr) -> bool:
    """True for `os.environ.get("OLD_JAX")`, or what stands for it."""
    word = key.value if isinstance(key, ast.Constant) else None
    path = names.path(value) or ""
    return path.startswith(_ENVIRONMENT) and isinstance(word, str) and speaks(word)


def passed(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def names_jax(node: ast.Call) -> bool:
    """True for `version("jax")`."""
    return any(isinstance(a, ast.Constant) and a.value in ("jax", "jaxlib") for a in node.args)


def is_ref(expr: ast.expr) -> bool:
    """True for what is called a ref: which methods it has, jax decides."""
    return isinstance(expr, ast.Name) and (expr.id == "ref" or expr.id.endswith("_ref"))


def is_number(expr: ast.expr) -> bool:
    """True for what looks like a version of jax: `"0.7"`, `(0, 7, 0)`, `Version("0.7")`."""
    match expr:
        case ast.Constant(value=str(text)):
            return _NUMBERED.fullmatch(text) is not None
        case ast.Tuple(elts=[ast.Constant(value=0), ast.Constant(value=int()), *_]):
            return True
        case ast.Call(func=ast.Name(id="Version" | "parse"), args=[only]):
            return is_number(only)
        case ast.Call(func=ast.Attribute(attr="Version" | "parse"), args=[only]):
            return is_number(only)
    return False


def has_version(expr: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("__version__", "__version_info__")
        for n in ast.walk(expr)
    )


def inner(expr: ast.expr) -> Iterator[ast.expr]:
    """The expressions that one is made of; of a comprehension also what it runs over."""
    for child in ast.iter_child_nodes(expr):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.comprehension):
            yield from (child.iter, *child.ifs)
