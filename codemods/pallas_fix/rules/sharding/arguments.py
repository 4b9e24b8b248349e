"""The arguments of a shard_map call, as `jax.shard_map` takes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import (
    Code,
    Edit,
    NameArgument,
    RemoveArgument,
    RenameKeyword,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.meshes import axes
from pallas_fix.rules.base import Reason

_PARAMETERS = ("f", "mesh", "in_specs", "out_specs", "check_rep", "auto")
_RENAMED = {"check_rep": "check_vma"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments go to shard_map: itself, a partial of it, or a call of that one.

    `skipped` arguments in front are none of shard_map's, `bound` of its parameters were given
    before. `mesh` is the mesh that a partial has bound.
    """

    node: ast.Call
    skipped: int = 0
    bound: int = 0
    mesh: ast.expr | None = None

    @property
    def given(self) -> Sequence[ast.expr]:
        """The positional arguments."""
        return self.node.args[self.skipped :]

    @property
    def positional(self) -> Iterator[tuple[str, ast.expr]]:
        """The positional arguments with the parameters that they are for."""
        yield from zip(_PARAMETERS[self.bound :], self.given, strict=False)

    def argument(self, name: str) -> ast.expr | None:
        """The argument for a parameter, if the call gives it."""
        found = dict(self.positional)
        found |= {keyword.arg: keyword.value for keyword in self.node.keywords if keyword.arg}
        return found.get(name)


def repaired(facts: Facts, call: Call) -> tuple[Edit, ...] | Reason:
    """What makes the arguments fit `jax.shard_map`, or why that cannot be said."""
    span = facts.span(call.node)
    edits: list[Edit] = []
    if any(isinstance(item, ast.Starred) for item in call.given):
        return UNPACKED
    function = call.argument("f")
    if function is not None and function not in call.given:
        return _by_position(facts, call)
    # From the last one on: what follows a keyword must have one.
    for name, value in reversed(list(call.positional)):
        if name in {keyword.arg for keyword in call.node.keywords}:
            return _TWICE
        if name != "f":
            edits.append(NameArgument(span, facts.span(value), _RENAMED.get(name, name)))
    for keyword in call.node.keywords:
        if keyword.arg is None:
            inside = _unpacked(facts, keyword.value)
            if inside is None:
                return UNPACKED
            edits += inside
        elif keyword.arg in _RENAMED:
            edits.append(RenameKeyword(span, keyword.arg, _RENAMED[keyword.arg]))
    auto = call.argument("auto")
    if auto is not None:
        names = _manual(facts, call.argument("mesh") or call.mesh, auto)
        if names is None:
            return _AXES
        edits.append(RemoveArgument(span, facts.span(auto)))
        if names.text:
            edits.append(SetKeyword(span, "axis_names", names))
    return tuple(edits)


def _by_position(facts: Facts, call: Call) -> tuple[Edit, ...] | Reason:
    """The whole call anew, for a function that it gives by keyword."""
    words = [keyword.arg for keyword in call.node.keywords]
    known = set(words) <= set(_PARAMETERS) - {"auto"}
    if call.node.args or not known or "#" in facts.source(call.node):
        return _KEYWORD
    values = {str(keyword.arg): facts.span(keyword.value) for keyword in call.node.keywords}
    named = [f"{_RENAMED.get(word, word)}=${word}" for word in values if word != "f"]
    text = f"$func({', '.join(['$f', *named])})"
    parts = values | {"func": facts.span(call.node.func)}
    return (Replace(facts.span(call.node), Code(text, parts)),)


def _manual(facts: Facts, mesh: ast.expr | None, auto: ast.expr) -> Code | None:
    """The axes of the mesh but for those of `auto`; no text for all of them."""
    without = _names(facts, auto)
    if without == ():
        return Code("")
    known = axes(facts.names, facts.constants, mesh)
    if known is not None and without is not None:
        left = [name for name in known if name not in without]
        return Code("{" + ", ".join(map(_quoted, left)) + "}") if left else None
    if mesh is None or not isinstance(mesh, ast.Name | ast.Attribute):
        return None
    parts = {"mesh": facts.span(mesh), "auto": facts.span(auto)}
    return Code("frozenset($mesh.axis_names) - $auto", parts)


def _names(facts: Facts, auto: ast.expr) -> tuple[str, ...] | None:
    """The names in `frozenset({"x"})`, `{"x"}` or `set()`; None where they are not known."""
    node = facts.constants.origin(auto)
    if isinstance(node, ast.Call) and not node.keywords and len(node.args) <= 1:
        func = node.func
        if not isinstance(func, ast.Name) or func.id not in ("frozenset", "set"):
            return None
        if facts.names.lookup(func.id, facts.names.scope(func)) is not None:
            return None
        node = facts.constants.origin(node.args[0]) if node.args else ast.Tuple([])
    if not isinstance(node, ast.Set | ast.Tuple | ast.List):
        return None
    values = [facts.constants.fold(item) for item in node.elts]
    found = tuple(value for value in values if isinstance(value, str))
    return found if len(found) == len(values) else None


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unpacked(facts: Facts, value: ast.expr) -> list[Edit] | None:
    """What renames keys in a dict that only this call uses; None where its keys are not known."""
    node = facts.constants.origin(value)
    alone = node is value or _used_once(facts, value)
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if not set(keys) <= {*_PARAMETERS, *_RENAMED.values()} - {"f", "auto"}:
            return None
        old = [key for key in node.keys if isinstance(key, ast.Constant) and key.value in _RENAMED]
        if old and not alone:
            return None
        return [Replace(facts.span(key), Code(_quoted(_RENAMED[str(key.value)]))) for key in old]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        words = {keyword.arg for keyword in node.keywords}
        if node.args or not words <= {*_PARAMETERS, *_RENAMED.values()} - {"f", "auto"}:
            return None
        renamed = [word for word in words if word in _RENAMED]
        if renamed and not alone:
            return None
        span = facts.span(node)
        return [RenameKeyword(span, word, _RENAMED[word]) for word in renamed if word]
    return None


def _used_once(facts: Facts, value: ast.expr) -> bool:
    if not isinstance(value, ast.Name):
        return False
    uses = [
        node
        for node in ast.walk(facts.tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id == value.id
        and facts.constants.origin(node) is facts.constants.origin(value)
    ]
    return uses == [value]


UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked from a value whose keys are not known or that others use too",
    "call jax.shard_map(f, mesh=..., in_specs=..., out_specs=..., check_vma=...) by hand",
)
_KEYWORD = Reason(
    "function-by-keyword",
    "jax.shard_map takes the function by position alone",
    "write the function first, without f=",
)
_TWICE = Reason(
    "given-twice",
    "an argument is given by position and by keyword: the call has never worked",
    "correct the call",
)
_AXES = Reason(
    "axes-not-known",
    "jax.shard_map takes the axes that are manual in the place of those that are not, and the "
    "axes of this mesh are not known here",
    "write axis_names=set(mesh.axis_names) - auto in the place of auto=",
)
