"""Where an accumulator is allocated: in place, around the kernel, or in a scope of its body.

`pltpu.ACC(i)(shape, dtype)` is refused in scratch lists (`Invalid memory space`), and asks for
a device, so that it may not be evaluated at module level (jax/_src/pallas/mosaic/core.py). Refs
of `pl.with_scoped` are bound after all others (jax/_src/pallas/helpers.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Edit, MoveIntoScope, Replace, Span
from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Ref, Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Mxu, Writer


@dataclass(frozen=True, slots=True)
class Placed:
    """A ref that becomes an accumulator of the MXU `index`, or a list of them."""

    trace: Trace
    ref: Ref
    index: Mxu


def scope_edit(
    module: Facts,
    function: Function,
    names: Sequence[str],
    types: str,
    writer: Writer,
    first: Span | None = None,
) -> Edit:
    """The edit that runs the body of a function, from `first` on, in a scope with accumulators.

    `types` may be several lines, of which the first is empty.
    """
    run = writer.name("pl.run_scoped")
    if isinstance(function, ast.Lambda):
        body = writer.hole(function.body)
        text = f"{run}(lambda {', '.join(names)}: {body}, {types})"
        return Replace(module.span(function.body), writer.code(text))
    scope = module.names.fresh("scope")
    returns = "return " if _returns(function) else ""
    before, between = ("\n    ", ",") if types.startswith("\n") else ("", ", ")
    after = writer.code(f"{returns}{run}({before}{scope}{between}{types})")
    return MoveIntoScope(module.span(function), scope, tuple(names), after, first)


def unscopable(module: Facts, function: Function, names: Sequence[str]) -> Reason | None:
    """Why the body of a function cannot move into an inner function, if it cannot."""
    scope = module.names.scopes[function]
    rebound = [
        name
        for name, bindings in scope.bindings.items()
        if name not in names
        and any(b.kind in ("param", "star") for b in bindings)
        and any(b.kind not in ("param", "star") for b in bindings)
    ]
    if rebound:
        return Reason(
            "rebinds-parameter",
            f"the kernel assigns to its parameter {rebound[0]!r}, so its body cannot move into "
            "an inner function",
            f"give the new value of {rebound[0]!r} a name of its own",
        )
    own = (n for n in ast.walk(function) if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await))
    if next(own, None) is not None:
        return Reason("generator-kernel", "the kernel is a generator", "use pl.run_scoped by hand")
    return None


def _returns(function: Function) -> bool:
    inside = (node for child in ast.iter_child_nodes(function) for node in own(child))
    return any(isinstance(n, ast.Return) and n.value is not None for n in inside)


def own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is inside it, without the functions in it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from own(child)


def unknown_allocation() -> Reason:
    """Nothing can be allocated in the place of what pallas-fix does not see."""
    return Reason(
        "unknown-allocation",
        "the allocation is not written where pallas-fix can see it",
        "allocate it with pltpu.ACC(mxu_index)(shape, jnp.float32) inside pl.run_scoped",
    )


def unique(edits: list[Edit]) -> list[Edit]:
    """The edits without repetitions, in order."""
    found: list[Edit] = []
    for edit in edits:
        if edit not in found:
            found.append(edit)
    return found
