"""API031: bodies of `plgpu.nd_loop` that take the index, where they get a loop info now."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import (
    Code,
    Edit,
    InsertFirst,
    RemoveArgument,
    RemoveParameter,
    RenameParameter,
    Replace,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_INFO = changed("0.8.0", fails="0.8.0")
_CALLBACK = changed("0.8.0", fails="0.6.2")
_FIELDS = frozenset({"index", "local_index", "num_local_steps"})


class NdLoop(Rule):
    """The body of `plgpu.nd_loop` takes the index itself, or is given as an argument.

    ## What it does
    The body gets one `loop_info` now: the first parameter is renamed, and `idx = loop_info.index`
    becomes the first statement. With `include_wave_step=True`, `wave_step` is
    `loop_info.local_index`. `plgpu.nd_loop(grid, body, init, ...)` becomes
    `plgpu.nd_loop(grid, ..., init_carry=init)(body)`.

    ## Why it fails
    On jax 0.8.0 and later: `TypeError: 'NDLoopInfo' object is not subscriptable`, and
    `nd_loop() got an unexpected keyword argument 'include_wave_step'`; since 0.6.2 `nd_loop() takes
    1 positional argument but 3 positional arguments (...) were given`
    (jax/_src/pallas/mosaic_gpu/helpers.py).

    ## Example
    ```python
    @plgpu.nd_loop((4, 4), collective_axes="x")
    def step(idx):
        o_ref[idx] = ...
    ```
    becomes
    ```python
    @plgpu.nd_loop((4, 4), collective_axes="x")
    def step(loop_info):
        idx = loop_info.index
        o_ref[idx] = ...
    ```

    ## When it is not fixed
    The body is a lambda, a function of another file, or one that is called elsewhere too; its
    first parameter is handed on, so that nobody can tell what it takes.

    ## What to do by hand
    Take `loop_info`, and use `loop_info.index`, `loop_info.local_index` and
    `loop_info.num_local_steps`.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API031"
    name = "nd-loop"
    triggers = ("nd_loop",)
    messages = (
        r"'NDLoopInfo' object is not (?:subscriptable|iterable)",
        r"cannot unpack non-iterable NDLoopInfo object",
        r"nd_loop\(\) (?:takes 1 positional argument|got an unexpected keyword)",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each loop of an old form."""
        for call in module.names.calls:
            if module.names.public(call.func) != "plgpu.nd_loop":
                continue
            if module.is_guarded(module.span(call)):
                continue
            if len(call.args) > 1 or argument(call, None, "body") is not None:
                yield self._callback(module, call)
            else:
                yield from self._decorator(module, call)

    def _decorator(self, module: Facts, call: ast.Call) -> Iterator[Finding]:
        around = module.names.parent[call]
        body: ast.AST | None = None
        if isinstance(around, ast.FunctionDef) and call in around.decorator_list:
            body = around
        elif isinstance(around, ast.Call) and around.func is call and len(around.args) == 1:
            body = _named(module, around.args[0], around)
        wave = argument(call, None, "include_wave_step")
        if isinstance(body, ast.FunctionDef):
            form = _form(body)
            if form == "info" and wave is None:
                return
            edits = _body_edits(module, body) if form == "index" else None
        else:
            edits = None
        if edits is not None and wave is not None:
            edits = (*edits, *_wave_edits(module, call, wave, body))
        if edits is None and body is None and wave is None:
            return  # a body of which nothing is known may well be a new one
        what = "an index as the first argument of its body"
        yield self._finding(module, call, f"`plgpu.nd_loop` with {what}", edits)

    def _callback(self, module: Facts, call: ast.Call) -> Finding:
        given: dict[str, ast.expr] = {}
        if len(call.args) <= 3 and not any(isinstance(a, ast.Starred) for a in call.args):
            given = dict(zip(("grid", "body", "init_val"), call.args, strict=False))
            given |= {str(keyword.arg): keyword.value for keyword in call.keywords}
        edits: tuple[Edit, ...] | None = None
        if {"grid", "body"} <= given.keys() and "None" not in given:
            edits = _callback_edits(module, call, given)
        return self._finding(
            module, call, "`plgpu.nd_loop` with its body as an argument", edits, callback=True
        )

    def _finding(
        self,
        module: Facts,
        call: ast.Call,
        what: str,
        edits: Sequence[Edit] | None,
        callback: bool = False,
    ) -> Finding:
        change = _CALLBACK if callback else _INFO
        return self.reported(
            module,
            call,
            f"{what} is {change}: it gets a `loop_info` now",
            change,
            edits or _NOT_KNOWN,
        )


_NOT_KNOWN = Reason(
    "body-not-known",
    "what the body takes cannot be seen, or it is called elsewhere too",
    "let the body take loop_info, and use loop_info.index in it",
)


def _named(module: Facts, expr: ast.expr, user: ast.Call) -> ast.FunctionDef | None:
    """The function that an expression names, if nothing but `user` uses it."""
    function = module.names.definition(expr)
    if not isinstance(function, ast.FunctionDef) or not isinstance(expr, ast.Name):
        return None
    uses = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name)
        and node.id == expr.id
        and module.names.definition(node) is function
    ]
    return function if uses == [expr] else None


def _form(body: ast.FunctionDef) -> str:
    """Whether a body takes an `index` or a loop `info`; empty where that cannot be told."""
    arguments = body.args
    if not arguments.args or arguments.posonlyargs or arguments.vararg:
        return ""
    name = arguments.args[0].arg
    parents = {child: node for node in ast.walk(body) for child in ast.iter_child_nodes(node)}
    uses = [n for n in ast.walk(body) if isinstance(n, ast.Name) and n.id == name]
    if any(not isinstance(use.ctx, ast.Load) for use in uses):
        return ""
    attributes = [parents[use] for use in uses if isinstance(parents[use], ast.Attribute)]
    if attributes or not uses:
        known = all(isinstance(a, ast.Attribute) and a.attr in _FIELDS for a in attributes)
        return "info" if known and len(attributes) == len(uses) else ""
    return "index"


def _body_edits(module: Facts, body: ast.FunctionDef) -> tuple[Edit, ...]:
    old = body.args.args[0].arg
    new = module.names.fresh("loop_info")
    span = module.span(body)
    return (RenameParameter(span, old, new), InsertFirst(span, Code(f"{old} = {new}.index")))


def _wave_edits(
    module: Facts, call: ast.Call, wave: ast.expr, body: ast.AST | None
) -> Iterator[Edit]:
    yield RemoveArgument(module.span(call), module.span(wave))
    if isinstance(body, ast.FunctionDef):
        named = [*body.args.args[1:], *body.args.kwonlyargs]
        if any(parameter.arg == "wave_step" for parameter in named):
            span = module.span(body)
            info = module.names.fresh("loop_info")
            yield RemoveParameter(span, "wave_step")
            yield InsertFirst(span, Code(f"wave_step = {info}.local_index"))


def _callback_edits(
    module: Facts, call: ast.Call, given: dict[str, ast.expr]
) -> tuple[Edit, ...] | None:
    body = _named(module, given["body"], call)
    if body is None or _form(body) != "index" or len(body.args.args) != 2:
        return None
    init = given.get("init_val")
    carries = not (init is None or (isinstance(init, ast.Constant) and init.value is None))
    carry = body.args.args[1].arg
    edits = list(_body_edits(module, body))
    used = any(isinstance(n, ast.Name) and n.id == carry for n in ast.walk(body))
    if not carries:
        if used or any(isinstance(n, ast.Return) and n.value for n in ast.walk(body)):
            return None
        edits.append(RemoveParameter(module.span(body), carry))
    elif carry != "carry":
        if used and any(isinstance(n, ast.Name) and n.id == "carry" for n in ast.walk(body)):
            return None
        edits.append(RenameParameter(module.span(body), carry, "carry"))
        edits.append(InsertFirst(module.span(body), Code(f"{carry} = carry")))
    span = module.span(call)
    names = {"grid": given["grid"], "body": given["body"]}
    rest = ""
    for keyword in call.keywords:
        if keyword.arg not in ("grid", "body", "init_val"):
            names[str(keyword.arg)] = keyword.value
            rest += f", {keyword.arg}=${keyword.arg}"
    if carries and init is not None:
        names["init_val"] = init
        rest += ", init_carry=$init_val"
    func = module.source(call.func)
    parts = {name: module.span(value) for name, value in names.items()}
    return (*edits, Replace(span, Code(f"{func}($grid{rest})($body)", parts)))
