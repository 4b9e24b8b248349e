"""From calls by address to findings: what belongs together, and how it is repaired."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import product

from pallas_fix.edits import (
    AddImport,
    Code,
    Edit,
    Fix,
    MoveIntoScope,
    RemoveArgument,
    RemoveStatement,
    RenameKeyword,
    Replace,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Trace
from pallas_fix.rules.addresses.limits import impossible, proven, unclear
from pallas_fix.rules.addresses.lives import Room, rooms
from pallas_fix.rules.addresses.places import Places, Ways, places
from pallas_fix.rules.addresses.scopes import scope
from pallas_fix.rules.addresses.sites import Use, by_address, handed_on, uses, written
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.scoping import unique

_PURE = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant, ast.Load)


@dataclass(frozen=True, slots=True)
class Repair:
    """What is found of some calls that belong together; `node` is where a person would look."""

    node: ast.AST
    made: Fix | Reason


@dataclass(slots=True)
class _Group:
    """Rooms that share calls, and so are repaired together or not at all."""

    rooms: list[Room]
    calls: set[ast.AST]


def repairs(module: Facts) -> Iterator[Repair]:
    """Each group of calls by address, with its fix or with the reason why there is none."""
    met: set[ast.AST] = set()
    good: list[Room] = []
    bad: list[tuple[tuple[Use, ...], ast.AST, Reason]] = []
    for trace in module.traces:
        own = uses(trace)
        met |= {use.call for use in own}
        if own:
            found = _rooms(module, trace, own)
            if isinstance(found, list):
                good.extend(found)
            else:
                bad.append((own, *found))
    refused: set[ast.AST] = set()
    for own, node, reason in bad:
        calls = {use.call for use in own}
        if not calls & refused and not _all_guarded(module, calls):
            yield Repair(node, reason)
        refused |= calls
    for group in _groups(good):
        if not group.calls & refused and not _all_guarded(module, group.calls):
            yield _repair(module, group)
    for node in [] if good or bad else list(_partly(module)):
        yield Repair(node, _indirect(module, node))
    for call in written(module):
        if call not in met and not module.is_guarded(module.span(call)):
            yield Repair(call, _not_followed())


def _partly(module: Facts) -> Iterator[ast.AST]:
    """The places that bind an address, an MXU or a shape, and leave the rest to others."""
    for node in handed_on(module):
        call = module.names.parent[node]
        if not isinstance(call, ast.Call) or module.is_guarded(module.span(call)):
            continue
        if module.names.qualified(call.func) == "functools.partial" and by_address(call):
            yield node


def _rooms(module: Facts, trace: Trace, own: Sequence[Use]) -> list[Room] | tuple[ast.AST, Reason]:
    """The rooms of a walk, or where and why there are none."""
    refused = unclear(module, own)
    if refused is not None:
        return refused[0].call, refused[1]
    whole = Room(trace, own[0].functions[0], tuple(own))
    found = rooms(trace, own)
    if isinstance(found, Reason):
        refused = impossible(module, whole)
        return (refused[0].call, refused[1]) if refused else (own[0].call, found)
    for room in found:
        refused = impossible(module, room)
        if refused is not None:
            return refused[0].call, refused[1]
    return found


def _groups(found: Sequence[Room]) -> list[_Group]:
    groups: list[_Group] = []
    for room in found:
        merged = _Group([room], {use.call for use in room.uses})
        for group in [g for g in groups if g.calls & merged.calls or _same(g, room)]:
            merged.rooms = group.rooms + merged.rooms
            merged.calls |= group.calls
            groups.remove(group)
        groups.append(merged)
    return groups


def _same(group: _Group, room: Room) -> bool:
    return any(other.function is room.function for other in group.rooms)


def _repair(module: Facts, group: _Group) -> Repair:
    node = min(group.calls, key=module.span)
    handed = next(handed_on(module), None)
    if handed is not None:
        return Repair(node, _indirect(module, handed))
    refused: Reason | None = None
    for carried, lists, each in product((True, False), repeat=3):
        edits = _edits(module, group, Ways(carried, each, lists))
        if isinstance(edits, Reason):
            refused = refused or edits
            continue
        spans = (edit.span for edit in edits if not isinstance(edit, AddImport))
        inner = (e for e in edits if not isinstance(e, MoveIntoScope | AddImport))
        if any(module.is_guarded(e.span) for e in inner) or any(map(module.is_guarded, spans)):
            return Repair(node, _guarded())
        return Repair(
            node, Fix(tuple(edits), all(map(proven, group.rooms)), None, _ran(module, group))
        )
    assert refused is not None
    return Repair(node, refused)


def _edits(module: Facts, group: _Group, ways: Ways) -> list[Edit] | Reason:
    edits: list[Edit] = []
    found: list[Places] = []
    scoped: dict[Function, list[Edit]] = {}
    for room in group.rooms:
        named = places(module, room, ways)
        if isinstance(named, Reason):
            return named
        made = scope(module, room, named)
        if isinstance(made, Reason):
            return made
        if scoped.setdefault(room.function, made) != made:
            return _differing()
        found.append(named)
        edits.extend(named.edits)
    targets = set[ast.expr]().union(*(one.targets for one in found))
    sources = set[ast.expr]().union(*(one.sources for one in found))
    if not sources <= targets:
        return _differing()
    reason = _calls(module, found)
    if reason is not None:
        return reason
    edits = unique([*edits, *(e for made in scoped.values() for e in made)])
    replaced = [edit.span for edit in edits if isinstance(edit, Replace)]
    if len(replaced) != len(set(replaced)):
        return _differing()
    edits.extend(e for use in _each_call(group) for e in _signature(module, use))
    edits.extend(_unused(module, targets))
    return edits


def _calls(module: Facts, found: Sequence[Places]) -> Reason | None:
    """Why a function cannot get a new parameter: it is also called elsewhere."""
    calls: dict[tuple[Function | None, str], set[ast.AST]] = {}
    for parameter in (parameter for one in found for parameter in one.parameters):
        key = (parameter.function, parameter.name)
        calls.setdefault(key, set()).update(parameter.calls)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        function = module.names.definition(node)
        for (other, _), own in calls.items():
            if other is function and module.names.parent[node] not in own:
                return Reason(
                    "helper-not-plain",
                    f"`{module.source(node)}` is also used in line {module.span(node).line}, "
                    "where it would get no accumulator",
                    "give the function a parameter for the accumulator ref",
                )
    return None


def _each_call(group: _Group) -> Iterator[Use]:
    seen: set[ast.AST] = set()
    for room in group.rooms:
        for use in room.uses:
            if use.call not in seen:
                seen.add(use.call)
                yield use


def _signature(module: Facts, use: Use) -> Iterator[Edit]:
    """The arguments that are no more, and the keyword that is called otherwise."""
    span = module.span(use.call)
    if use.pops and "#" not in module.source(use.call):
        parts = {"f": module.span(use.call.func), "acc": module.span(use.address)}
        yield Replace(span, Code("$f($acc)", parts))
        return
    if any(keyword.arg == "acc_addr" for keyword in use.call.keywords):
        yield RenameKeyword(span, "acc_addr", "acc")
    for part in (use.shape, use.dtype, use.mxu):
        if part is not None:
            yield RemoveArgument(span, module.span(part))


def _unused(module: Facts, targets: Set[ast.expr]) -> Iterator[Edit]:
    """Local numbers that were addresses, and that nothing reads any more."""
    read = set(targets)
    gone: set[ast.AST] = set()
    while True:
        found = {
            s for name in read if isinstance(name, ast.Name) for s in _dead(module, name, read)
        }
        if found <= gone:
            break
        gone |= found
        read |= {n for s in found for n in ast.walk(s) if isinstance(n, ast.Name)}
    for statement in sorted(gone, key=module.span):
        yield RemoveStatement(module.span(statement))


def _dead(module: Facts, name: ast.Name, read: Set[ast.expr]) -> Iterator[ast.AST]:
    """The assignment of a local number, if all that reads it is in `read`."""
    found = module.names.lookup(name.id, module.names.scope(name))
    if found is None or isinstance(found[0].node, ast.Module) or len(found[1]) != 1:
        return
    statement, value = found[1][0].node, found[1][0].value
    plain = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    if not plain or value is None or any(not isinstance(n, _PURE) for n in ast.walk(value)):
        return
    loads = (
        node
        for node in ast.walk(found[0].node)
        if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Load)
    )
    if all(load in read for load in loads):
        yield statement


def _all_guarded(module: Facts, calls: Set[ast.AST]) -> bool:
    return all(module.is_guarded(module.span(call)) for call in calls)


def _ran(module: Facts, group: _Group) -> tuple[str, ...]:
    names = (module.names.scopes[room.trace.function].qualname for room in group.rooms)
    return tuple(dict.fromkeys(names))


def _differing() -> Reason:
    return Reason(
        "shared-code",
        "the same code runs with different accumulators for several kernels, or in calls that "
        "pallas-fix does not follow",
        "pass the accumulator refs to the function that is shared",
    )


def _guarded() -> Reason:
    return Reason(
        "version-guard",
        "some of the calls stand in code for one of several versions of jax, which is left as it "
        "is",
        "repair them by hand, or drop the test of the version",
    )


def _indirect(module: Facts, node: ast.AST) -> Reason:
    return Reason(
        "indirect-call",
        f"`{module.source(node)}` is handed on in line {module.span(node).line}, so that "
        "pallas-fix does not see each of its calls",
        "call it where it is used: pltpu.matmul_acc_lhs(acc, lhs), pltpu.matmul_pop(acc)",
    )


def _not_followed() -> Reason:
    return Reason(
        "not-followed",
        "nothing in this file shows which accumulator the call works on: no walk through a "
        "kernel reaches it",
        "allocate pltpu.ACC(mxu_index)((rows, 256), dtype) with pl.run_scoped, and pass the ref",
    )
