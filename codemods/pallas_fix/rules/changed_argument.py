"""API002: arguments of functions of jax that have another name, place, or are gone."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.edits import Edit
from pallas_fix.facts import Facts
from pallas_fix.rules.arguments.edits import Place, repaired, repaired_option
from pallas_fix.rules.arguments.options import Option, options
from pallas_fix.rules.arguments.table import Argument, arguments, may_call, triggers
from pallas_fix.rules.base import Finding, Reason, Rule


class ChangedArgument(Rule):
    """A call gives an argument that has another name now, must be named, or is gone.

    ## What it does
    Renames keywords (`out_shape=` of `plgpu.kernel` is `out_type=`), gives keywords to what was
    once given by position, and drops arguments that say what is the default now. It sees calls,
    calls through `functools.partial`, and dicts of the file that are unpacked into calls. Which
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
            if not rows:
                continue
            unpacked = list(options(module, call, lambda other: _called(module, other)[0]))
            given = {keyword.arg for keyword in call.keywords} | {o.name for o in unpacked}
            for row in rows:
                answers = [repaired(module, place, row)]
                same = [option for option in unpacked if option.name == row.old]
                answers.append(_repaired(module, same, row, given))
                for made in answers:
                    if made is not None and not module.is_guarded(module.span(call)):
                        what = row.what.format(f"is {row.change}")
                        yield self.reported(module, call, what, row.change, made)


def _repaired(
    module: Facts, found: list[Option], row: Argument, given: Collection[str | None]
) -> list[Edit] | Reason | None:
    """What a row makes of an argument that several places may put into the dict of a call."""
    edits: list[Edit] = []
    for option in found:
        made = repaired_option(module, option, row, given)
        if isinstance(made, Reason):
            return made
        edits += made
    return edits or None


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
            inner, partial = _applied(module, origin)
            if partial:
                given = (*origin.args[1:], *call.args)
                return inner, Place(call, given, call.func, bound=True)
            return (f"{inner}()" if inner else None), place
    return name, place


def _applied(module: Facts, call: ast.Call) -> tuple[str | None, bool]:
    """What a call calls or applies partially, and whether that is so."""
    name = module.names.public(call.func)
    if name == "functools.partial" and call.args:
        return module.names.public(call.args[0]), True
    origin = module.constants.origin(call.func)
    if name is None and isinstance(origin, ast.Call):
        inner, partial = _applied(module, origin)
        return (inner, False) if partial else (None, False)
    return name, False
