"""Accumulators that are written wrongly: no MXU index, a name that jax does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pallas_fix.edits import Code, Edit, RemoveStatement, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import is_invented
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.stray import bound_by, stray
from pallas_fix.rules.construction.trouble import (
    Made,
    Repair,
    Trouble,
    names_accumulator,
)
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.index import MXUS, allocation_index, mxu_index
from pallas_fix.rules.mxu.scoping import Placed
from pallas_fix.rules.mxu.swap import swap


@dataclass(slots=True)
class _Site:
    """Where a file names the accumulator space to make something of it.

    `name` is the expression of the name, `space` the one that stands for one MXU's space: the
    call `pltpu.ACC(index)`, or the bare name where the index is missing. `peers` are all
    allocations that use the same `space`.
    """

    made: Made
    name: ast.expr
    space: ast.expr
    index: ast.expr | None
    wrong: str = ""
    peers: list[Made] = field(default_factory=list)


def misspelled(module: Facts, made: Sequence[Made]) -> Iterator[Trouble]:
    """Allocations whose text cannot work, each with the text that does."""
    sites = [site for one in made if (site := _site(module, one)) is not None]
    for site in sites:
        site.peers = [other.made for other in sites if other.space is site.space]
    shared = _Definitions(module, sites)
    yield from shared.troubles()
    for site in sites:
        if site.wrong and site not in shared.owned and not _is_scratch(site.made):
            yield Trouble(site.made.allocation.node, site.wrong, _repair(module, site))
    yield from stray(module, [site.name for site in sites])


def _site(module: Facts, made: Made) -> _Site | None:
    allocation = made.allocation
    node, space = allocation.node, allocation.space_node
    if not isinstance(node, ast.Call):
        return None
    if isinstance(space, ast.BinOp):
        space = space.left
    origin = module.constants.origin(space)
    if origin is not None and (space is not node.func or isinstance(origin, ast.Call)):
        space = origin
    name = space.func if isinstance(space, ast.Call) else space
    if not names_accumulator(module, name):
        return None
    site = _Site(made, name, space, allocation.index)
    site.wrong = _wrong(module, site)
    return site


def _is_scratch(made: Made) -> bool:
    """True for an entry of scratch lists: it has to leave them, and is written anew there."""
    return bool(made.refs) and all(ref.kind == "scratch" for _, ref in made.refs)


def _wrong(module: Facts, site: _Site) -> str:
    written = module.source(site.name)
    if is_invented(module.names.qualified(site.name)):
        return _no_name(written)
    if not isinstance(site.space, ast.Call):
        return f"`{written}` takes the index of an MXU before the shape: `{written}(mxu_index)`"
    if site.index is None:
        return f"`{written}()` lacks the index of the MXU"
    value = module.constants.fold(site.index)
    if isinstance(value, bool) or (isinstance(value, int) and not 0 <= value < MXUS):
        return f"there is no MXU {value}: a TPU7x core has {MXUS}, counted from 0"
    if any(keyword.arg == "mxu_index" for keyword in site.space.keywords):
        return f"the index of `{written}` is called `mxu_id`, not `mxu_index`"
    return ""


def _no_name(written: str | None) -> str:
    return f"jax has no `{written}`; accumulators are allocated with `pltpu.ACC(mxu_index)`"


def _repair(module: Facts, site: _Site) -> Repair | Reason:
    if module.names.at_import(site.made.allocation.node) or _serves_both(module, site):
        return _swapped(module, site)
    edits = _edits(module, site)
    return edits if isinstance(edits, Reason) else Repair(tuple(edits), _is_certain(site))


def _serves_both(module: Facts, site: _Site) -> bool:
    """True for `[X(shape, dtype)] * 2` with an accumulator on each MXU."""
    indices = [mxu_index(module, trace, ref) for trace, ref in site.made.refs]
    known = [index for index in indices if isinstance(index, int)]
    return site.index is None and len(known) == len(indices) and len(set(known)) > 1


def _is_certain(site: _Site) -> bool:
    """True where the code says all of it: the dtype too."""
    return site.made.allocation.dtype is not None


def _index(module: Facts, site: _Site) -> ast.expr | int | Reason:
    """The index as it is written, if it is one, else the one that the flow of weights gives."""
    value = module.constants.fold(site.index) if site.index is not None else None
    number = isinstance(value, int) and not isinstance(value, bool)
    if site.index is not None and (not isinstance(value, int) or (number and 0 <= value < MXUS)):
        return site.index
    indices = [allocation_index(module, one.allocation.node) for one in site.peers]
    reasons = [index for index in indices if isinstance(index, Reason)]
    if reasons:
        return reasons[0]
    if len(set(indices)) > 1:
        return Reason(
            "two-mxus",
            "accumulators of both MXUs are allocated through this one expression",
            "write pltpu.ACC(mxu_index)(shape, dtype) for each of them",
        )
    return indices[0]


def _edits(module: Facts, site: _Site, name: str | None = None) -> list[Edit] | Reason:
    """The edits of one allocation; `name` is how the space is written, if not as it is."""
    index = _index(module, site)
    if isinstance(index, Reason):
        return index
    allocation, node = site.made.allocation, site.made.allocation.node
    writer = Writer(module, node)
    invented = is_invented(module.names.qualified(site.name))
    if name is None:
        name = writer.name("pltpu.ACC") if invented else writer.hole(site.name)
    shown = writer.hole(index) if isinstance(index, ast.expr) else str(index)
    space = f"{name}({shown})"
    called = isinstance(node, ast.Call) and node.func is site.name
    if called and (site.index is not None or allocation.dtype is None):
        shape = writer.hole(allocation.shape) if allocation.shape is not None else ""
        given = allocation.dtype
        dtype = writer.hole(given) if given is not None else writer.name("jnp.float32")
        edit = Replace(module.span(node), writer.code(f"{space}({shape}, {dtype})"))
    else:
        edit = Replace(module.span(site.space), writer.code(space))
    return [edit, *writer.imports]


def _swapped(module: Facts, site: _Site) -> Repair | Reason:
    """Rewrite the allocation where its refs are bound.

    At module level `pltpu.ACC(...)(...)` asks for a device, so that it moves to its use; and
    one expression that serves both MXUs becomes two.
    """
    placed = []
    for trace, ref in site.made.refs:
        index = mxu_index(module, trace, ref)
        if isinstance(index, Reason):
            return index
        placed.append(Placed(trace, ref, index))
    refused = Reason(
        "module-level",
        "it is allocated while the module is imported, and pltpu.ACC(...)(...) asks for a device "
        "there",
        "allocate the accumulator inside the kernel: pl.run_scoped(body, "
        "pltpu.ACC(mxu_index)(shape, jnp.float32))",
    )
    if not placed or any(item.ref.kind not in ("scoped", "empty") for item in placed):
        return refused
    edits = swap(module, placed)
    if isinstance(edits, Reason):
        return edits
    node = site.made.allocation.node
    uses = {item.ref.slot.element for item in placed if item.ref.slot is not None} - {node}
    if uses and module.names.at_import(node):
        statement = module.names.statement(node)
        if uses != _loads(module, statement):
            return refused
        edits = [*edits, RemoveStatement(module.span(statement))]
    return Repair(tuple(edits))


def _loads(module: Facts, statement: ast.stmt) -> set[ast.expr]:
    """The places that read the name which a statement assigns."""
    return {
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and bound_by(module, node) is statement
    }


@dataclass(slots=True)
class _Definitions:
    """Invented names that are given a name of the file first, by assignment or import."""

    module: Facts
    sites: list[_Site]
    owned: list[_Site] = field(default_factory=list)

    def troubles(self) -> Iterator[Trouble]:
        """One trouble for each definition, with all that is made through it."""
        found: dict[ast.AST, list[_Site]] = {}
        for site in self.sites:
            definition = self._definition(site.name)
            if definition is not None:
                self.owned.append(site)
                found.setdefault(definition, []).append(site)
        for definition, sites in found.items():
            value = getattr(definition, "value", None)
            name = self.module.names.qualified(sites[0].name)
            written = name if value is None else self.module.source(value)
            yield Trouble(definition, _no_name(written), self._repair(definition, sites))

    def _definition(self, name: ast.expr) -> ast.AST | None:
        names = self.module.names
        if not isinstance(name, ast.Name) or not is_invented(names.qualified(name)):
            return None
        binding = names.binding(name, names.scope(name))
        return binding.node if binding is not None else None

    def _repair(self, definition: ast.AST, sites: Iterable[_Site]) -> Repair | Reason:
        module = self.module
        value = getattr(definition, "value", None)
        edits: list[Edit] = []
        name: str | None = None
        if isinstance(value, ast.Attribute):
            spelled = module.names.spell("pltpu.ACC", definition)
            edits = [Replace(module.span(value), Code(spelled.text)), *spelled.imports]
        elif isinstance(definition, ast.ImportFrom) and len(definition.names) == 1:
            edits = [RemoveStatement(module.span(definition))]
        else:
            return Reason(
                "defined-elsewhere",
                "the name comes from a statement that brings others too",
                "write pltpu.ACC(mxu_index)(shape, dtype) where the accumulator is allocated",
            )
        for site in sites:
            if isinstance(value, ast.Attribute):
                name = module.source(site.name)
                if isinstance(site.space, ast.Call) and site.index is not None:
                    continue
            if module.names.at_import(site.made.allocation.node):
                return _swapped(module, site)
            made = _edits(module, site, name)
            if isinstance(made, Reason):
                return made
            edits.extend(made)
        return Repair(tuple(edits))
