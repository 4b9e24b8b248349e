"""API030: pipelines of Mosaic GPU whose body takes no indices, or that delay the release."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import AddParameter, Code, Edit, RemoveArgument, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.names import Function
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_PIPELINES = frozenset({"plgpu.emit_pipeline", "plgpu.emit_pipeline_warp_specialized"})
_PARAMS = frozenset({"plgpu.CompilerParams", "plgpu.GPUCompilerParams"})
_BLOCKS = frozenset({"pl.BlockSpec", "plgpu.BlockSpec", "plgpu.GPUBlockSpec"})
_BODY = changed("0.6.0", fails="0.6.0")
_DELAY = changed("0.7.2", fails="0.7.2")
_COROUTINE = changed("0.6.1", fails="0.6.1")


class GpuPipeline(Rule):
    """A pipeline of Mosaic GPU has a body without indices, or delays the release as a whole.

    ## What it does
    The body of `plgpu.emit_pipeline` and `plgpu.emit_pipeline_warp_specialized` gets one more
    parameter in front, for the indices, where it takes just as many as there are block specs.
    `delay_release=n` of a pipeline moves to each of its `in_specs`, as
    `plgpu.BlockSpec(..., delay_release=n)`; `delay_release=0` goes, also from
    `plgpu.CompilerParams`.

    ## Why it fails
    `TypeError: body() takes 2 positional arguments but 3 were given` since jax 0.6.0;
    `emit_pipeline() got an unexpected keyword argument 'delay_release'` since 0.7.2; `... got an
    unexpected keyword argument 'carry_coroutine'` since 0.6.1
    (jax/_src/pallas/mosaic_gpu/pipeline.py).

    ## Example
    ```python
    def body(x_smem, o_smem):
        o_smem[...] = x_smem[...] + 1

    plgpu.emit_pipeline(body, grid=(2,), in_specs=[spec], out_specs=[spec])(x_gmem, o_gmem)
    ```
    becomes
    ```python
    def body(_, x_smem, o_smem):
        o_smem[...] = x_smem[...] + 1
    ```

    ## When it is not fixed
    The block specs or the body are not written out in the file, the body is called elsewhere too,
    the pipeline has `carry_coroutine=`, which is `compute_context=` with another protocol now, or
    `plgpu.CompilerParams` a delay other than 0.

    ## What to do by hand
    Let the body take the indices first, and give `delay_release=` to the block specs of the inputs.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API030"
    name = "emit-pipeline-body"
    triggers = ("mosaic_gpu",)
    messages = (
        r"emit_pipeline(?:_warp_specialized)?\(\) got an unexpected keyword argument "
        r"'(?:delay_release|carry_coroutine)'",
        r"CompilerParams\.__init__\(\) got an unexpected keyword argument 'delay_release'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield the findings about each pipeline, and about each delay."""
        for call in module.names.calls:
            name = module.names.public(call.func)
            if module.names.public(call.func) == "functools.partial" and call.args:
                name = module.names.public(call.args[0])
            if name not in _PIPELINES | _PARAMS or module.is_guarded(module.span(call)):
                continue
            delay = argument(call, None, "delay_release")
            if delay is not None:
                yield self._delay(module, call, delay, pipeline=name in _PIPELINES)
            if name in _PIPELINES and argument(call, None, "carry_coroutine") is not None:
                message = f"`carry_coroutine=` is {_COROUTINE}: now `compute_context=`"
                yield self.reported(module, call, message, _COROUTINE, _PROTOCOL)
            elif name == module.names.public(call.func) and name in _PIPELINES:
                yield from self._body(module, call)

    def _delay(self, module: Facts, call: ast.Call, delay: ast.expr, pipeline: bool) -> Finding:
        message = f"`delay_release=` is {_DELAY}: now of `plgpu.BlockSpec`"
        drop = RemoveArgument(module.span(call), module.span(delay))
        if module.constants.fold(delay) == 0:
            return self.reported(module, call, message, _DELAY, (drop,))
        specs = _specs(module, argument(call, None, "in_specs")) if pipeline else None
        if specs is None or not all(_is_own_block(module, spec) for spec in specs):
            return self.reported(module, call, message, _DELAY, _SPECS)
        edits = [edit for spec in specs for edit in _delayed(module, spec, delay)]
        return self.reported(module, call, message, _DELAY, (*edits, drop))

    def _body(self, module: Facts, call: ast.Call) -> Iterator[Finding]:
        body = module.names.definition(call.args[0]) if call.args else None
        given = [_specs(module, argument(call, None, word)) for word in ("in_specs", "out_specs")]
        words = {keyword.arg for keyword in call.keywords}
        if body is None or None in given or None in words or "manual_consumed_barriers" in words:
            return
        arguments = body.args
        plain = not (arguments.vararg or arguments.posonlyargs or arguments.defaults)
        carries = int(bool(words & {"init_carry", "compute_context"}))
        count = sum(len(specs or ()) for specs in given) + carries
        if not plain or len(arguments.args) != count:
            return
        message = f"a pipeline body without indices is {_BODY}: they come first now"
        alone = _used_once(module, call.args[0], body)
        edits = (AddParameter(module.span(body), _fresh(body), first=True),)
        yield self.reported(module, call, message, _BODY, edits if alone else _SHARED)


_PROTOCOL = Reason(
    "other-protocol",
    "a coroutine has become a function that takes the pipeline",
    "write compute_context=: a function of the pipeline, which calls it with the first carry",
)
_SPECS = Reason(
    "specs-not-known",
    "the block specs of the inputs, which have the delay now, are not written out for it alone",
    "give delay_release= to plgpu.BlockSpec of each input",
)
_SHARED = Reason(
    "body-is-shared",
    "the body is used elsewhere too, where it may not get indices",
    "give the pipeline a body of its own that takes the indices first",
)


def _specs(module: Facts, expr: ast.expr | None) -> list[ast.expr] | None:
    """The block specs of a list that is written out; None where they cannot be counted."""
    if expr is None:
        return []
    node = module.constants.origin(expr)
    if isinstance(node, ast.Call) and module.names.public(node.func) in _BLOCKS:
        return [node]
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    return None if any(isinstance(e, ast.Starred) for e in node.elts) else list(node.elts)


def _is_own_block(module: Facts, spec: ast.expr) -> bool:
    """True for a call that makes a block spec, written in the list itself."""
    return (
        isinstance(spec, ast.Call)
        and module.names.public(spec.func) in _BLOCKS
        and all(keyword.arg not in (None, "delay_release") for keyword in spec.keywords)
    )


def _delayed(module: Facts, spec: ast.expr, delay: ast.expr) -> Iterator[Edit]:
    assert isinstance(spec, ast.Call)
    if module.names.public(spec.func) != "plgpu.BlockSpec":
        spelled = module.names.spell("plgpu.BlockSpec", spec)
        yield Replace(module.span(spec.func), Code(spelled.text))
        yield from spelled.imports
    code = Code("$delay", {"delay": module.span(delay)})
    yield SetKeyword(module.span(spec), "delay_release", code)


def _used_once(module: Facts, expr: ast.expr, body: Function) -> bool:
    if expr is body:
        return True
    uses = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name) and module.names.definition(node) is body
    ]
    return uses == [expr]


def _fresh(body: Function) -> str:
    """`_`, unless the body has another use for it."""
    used = {n.id for n in ast.walk(body) if isinstance(n, ast.Name)}
    used |= {n.arg for n in ast.walk(body) if isinstance(n, ast.arg)}
    return next(name for name in ("_", "indices", "_indices", "__indices") if name not in used)
