"""Where a file uses the old shard_map, and what hangs together there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from pallas_fix.edits import Edit
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.renames.imports import Imported, is_exported
from pallas_fix.rules.sharding.arguments import Call, repaired
from pallas_fix.rules.sharding.imports import MODULE, OLD

_PARTIAL = "functools.partial"
_PROBES = frozenset({"inspect.signature", "inspect.getfullargspec"})
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Use:
    """One place where the name stands, and the calls that get its arguments.

    `arguments` are the edits of these calls, or why there are none. `direct` says that the place
    can have the new name whatever the others have.
    """

    name: ast.expr
    node: ast.AST
    calls: tuple[Call, ...]
    arguments: tuple[Edit, ...] | Reason
    direct: bool

    @property
    def edits(self) -> tuple[Edit, ...]:
        return () if isinstance(self.arguments, Reason) else self.arguments


@dataclass(frozen=True, slots=True)
class Group:
    """The uses that must change together: those of one import, or of a name given to the function.

    `exported` says that others may import the name from this file, `shim` that the file itself
    cares for several versions of jax.
    """

    node: ast.AST
    imported: Imported | None
    uses: tuple[Use, ...]
    exported: bool = False
    shim: bool = False

    @property
    def reasons(self) -> bool:
        """True if one of the uses cannot be repaired."""
        return any(isinstance(use.arguments, Reason) for use in self.uses)


def groups(facts: Facts) -> Iterator[Group]:
    """The groups of a file, those of imports first."""
    found: dict[object, list[ast.expr]] = {}
    for node in facts.index.read:
        if facts.names.path(node) == OLD:
            found.setdefault(_origin(facts, node), []).append(node)
    for imported in _imports(facts):
        names = found.pop(imported.statement, [])
        if not imported.alone(facts):
            continue
        local = imported.local
        shim = _is_tried(facts, imported.statement) or _is_shim(facts, imported.statement, names)
        uses = tuple(_use(facts, name) for name in names)
        yield Group(imported.alias, imported, uses, is_exported(facts, local), shim)
    for origin, names in found.items():
        if isinstance(origin, ast.Attribute):
            uses = tuple(_use(facts, name) for name in names)
            yield Group(uses[0].node, None, uses, shim=_is_shim(facts, origin, names))


def _origin(facts: Facts, node: ast.expr) -> object:
    """The import that brings the name, or the path that was given another name."""
    for _ in range(8):
        if not isinstance(node, ast.Name):
            break
        binding = facts.names.binding(node, facts.names.scope(node))
        if binding is None or binding.kind == "import" or binding.value is None:
            return binding.node if binding is not None else node
        node = binding.value
    return node


def _imports(facts: Facts) -> Iterator[Imported]:
    for node in facts.index.all(ast.ImportFrom):
        if not node.level and node.module == MODULE:
            yield from (Imported(node, alias) for alias in node.names if alias.name == "shard_map")


def _is_tried(facts: Facts, statement: ast.stmt) -> bool:
    """True for the import of a name that the file can do without."""
    node: ast.AST = statement
    while node in facts.names.parent:
        node = facts.names.parent[node]
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                caught = ast.walk(handler.type) if handler.type else ()
                words = {n.id for n in caught if isinstance(n, ast.Name)}
                if handler.type is None or words & _IMPORT_ERRORS:
                    return True
    return False


def _is_shim(facts: Facts, origin: ast.AST, names: list[ast.expr]) -> bool:
    if any(facts.is_guarded(facts.span(node)) for node in (origin, *names)):
        return True
    for name in names:
        parent = facts.names.parent[name]
        if isinstance(parent, ast.Call) and name in parent.args:
            func = parent.func
            if facts.names.path(func) in _PROBES:
                return True
            if isinstance(func, ast.Name) and func.id in ("hasattr", "getattr"):
                return True
    return False


def _use(facts: Facts, name: ast.expr) -> Use:
    parent = facts.names.parent[name]
    if isinstance(parent, ast.Call) and parent.func is name:
        calls: tuple[Call, ...] = (Call(parent),)
        return Use(name, parent, calls, _arguments(facts, calls), direct=True)
    if _is_partial(parent, facts) and parent.args[:1] == [name]:
        later = _later(facts, Call(parent, skipped=1))
        if later is None:
            return Use(name, parent, (), HANDED_ON, direct=True)
        return Use(name, parent, later, _arguments(facts, later), direct=True)
    if _alias(facts, parent, name) is not None:
        return Use(name, parent, (), (), direct=False)
    return Use(name, name, (), HANDED_ON, direct=False)


def _arguments(facts: Facts, calls: tuple[Call, ...]) -> tuple[Edit, ...] | Reason:
    edits: list[Edit] = []
    for call in calls:
        answer = repaired(facts, call)
        if isinstance(answer, Reason):
            return answer
        edits += answer
    return tuple(edits)


def _later(facts: Facts, partial: Call, depth: int = 0) -> tuple[Call, ...] | None:
    """A partial call and the calls of what it gives; None where these are out of sight."""
    bound = partial.bound + len(partial.given)
    mesh = partial.argument("mesh") or partial.mesh
    complete = (
        partial.argument("in_specs") is not None and partial.argument("out_specs") is not None
    )
    parent = facts.names.parent[partial.node]
    target = _alias(facts, parent, partial.node)
    places: list[ast.expr] = [partial.node]
    if target is not None:
        places = [
            node
            for node in facts.index.names.get(target, ())
            if facts.constants.origin(node) is partial.node
        ]
    found = [partial]
    for place in places:
        above = facts.names.parent[place]
        if isinstance(above, ast.Call) and above.func is place:
            found.append(Call(above, 0, bound, mesh))
        elif _is_partial(above, facts) and above.args[:1] == [place] and depth < 4:
            later = _later(facts, Call(above, 1, bound, mesh), depth + 1)
            if later is None:
                return None
            found += later
        elif not (complete or _decorates(above, place)):
            return None
    return tuple(found)


def _is_partial(node: ast.AST, facts: Facts) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and facts.names.path(node.func) == _PARTIAL


def _decorates(node: ast.AST, decorator: ast.expr) -> bool:
    return isinstance(node, ast.FunctionDef) and decorator in node.decorator_list


def _alias(facts: Facts, node: ast.AST, value: ast.expr) -> str | None:
    """The name that an assignment gives to a value, if it is the name's only meaning."""
    if isinstance(node, ast.Assign) and node.value is value and len(node.targets) == 1:
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is value:
        target = node.target
    else:
        return None
    if not isinstance(target, ast.Name):
        return None
    binding = facts.names.binding(target, facts.names.scope(node))
    return target.id if binding is not None and binding.value is value else None


HANDED_ON = Reason(
    "handed-on",
    "the function is handed on as a value, and who calls it with which arguments cannot be seen",
    "use jax.shard_map, and let the callers give mesh=, in_specs=, out_specs= and check_vma=",
)
