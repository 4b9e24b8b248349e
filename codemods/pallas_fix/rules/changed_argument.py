"""API002: arguments of functions of jax that have another name, place, or are gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.rules.arguments.edits import Place, repaired
from pallas_fix.rules.arguments.table import arguments, may_call, triggers
from pallas_fix.rules.base import Finding, Rule


class ChangedArgument(Rule):
    """A call gives an argument that has another name now, must be named, or is gone.

    ## What it does
    Renames keywords (`out_shape=` of `plgpu.kernel` is `out_type=`), gives keywords to what was
    once given by position, and drops arguments that say what is the default now. It sees calls,
    calls through `functools.partial`, and a `dict(...)` that is unpacked into one call. Which
    arguments these are, and since when, stands in [the tables](../arguments.md).

    ## Why it fails
    `TypeError: ... got an unexpected keyword argument ...`, often of a function that the code
    does not name: `Mesh.__init__() got an unexpected keyword argument 'out_shape'` is about
    `plgpu.kernel`.

    ## Example
    ```python
    plgpu.kernel(body, out_shape=shape, scratch_shapes=[...])
    ```
    becomes
    ```python
    plgpu.kernel(body, out_type=shape, scratch_types=[...])
    ```

    ## When it is not fixed
    The value of an argument that would be dropped says something that has no place in the new form;
    arguments are unpacked from somewhere that cannot be seen.

    ## What to do by hand
    The finding names the way out.

    ## How it is verified
    A case that reaches the call compares before and after, where the installed jax has both. The
    table itself is checked against the installed jax by the tests.
    """

    code = "API002"
    name = "changed-argument"
    triggers = triggers()
    messages = (
        r"Mesh\.__init__\(\) got an unexpected keyword argument",
        r"(?:emit_pipeline|semaphore_wait|kernel|clip|inline_mgpu|print_layout|copy_gmem_to_smem"
        r"|CompilerParams\.__init__|InterpretParams\.__init__|pallas_call|empty|when)\(\) got "
        r"(?:an unexpected keyword argument|some positional-only arguments)",
        r"pipeline\(\) got an unexpected keyword argument",
    )

    def concerns(self, text: str) -> bool:
        """False for a text that lacks some word of each row."""
        return may_call(text)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each argument."""
        table = arguments()
        for call in module.names.calls:
            name, place = _called(module, call)
            rows = table.get(name or "")
            if not rows or module.is_guarded(module.span(call)):
                continue
            for row in rows:
                for where in (place, *_unpacked(module, place)):
                    made = repaired(module, where, row)
                    if made is None:
                        continue
                    yield self.reported(
                        module, where.call, row.what.format(f"is {row.change}"), row.change, made
                    )


def _called(module: Facts, call: ast.Call) -> tuple[str | None, Place]:
    """What a call calls, by its public name; `f()` for what a call of `f` has returned."""
    place = Place(call, tuple(call.args), call.func)
    name = module.names.public(call.func)
    if name == "functools.partial" and call.args:
        place = Place(call, tuple(call.args[1:]), call.args[0])
        return module.names.public(call.args[0]), place
    if name is None:
        origin = module.constants.origin(call.func)
        if isinstance(origin, ast.Call):
            inner = module.names.public(origin.func)
            return (f"{inner}()" if inner else None), place
    return name, place


def _unpacked(module: Facts, place: Place) -> Iterator[Place]:
    """The `dict(...)` that a call unpacks, if it is bound once and used for nothing else."""
    for keyword in place.call.keywords:
        if keyword.arg is not None or not isinstance(keyword.value, ast.Name):
            continue
        origin = module.constants.origin(keyword.value)
        if not isinstance(origin, ast.Call) or not isinstance(origin.func, ast.Name):
            continue
        uses = [
            node
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Name)
            and node.id == keyword.value.id
            and isinstance(node.ctx, ast.Load)
        ]
        is_dict = origin.func.id == "dict" and not origin.args
        if is_dict and uses == [keyword.value] and not module.is_guarded(module.span(origin)):
            yield Place(origin, (), place.func)
