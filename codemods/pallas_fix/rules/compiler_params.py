"""API020: compiler parameters of `pl.pallas_call` as dicts, words and keywords of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from packaging.version import Version

from pallas_fix.edits import Code, Edit, RemoveArgument, RenameKeyword, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.parameters.dicts import Entries, entries, only_use
from pallas_fix.versions import Change, changed

_DICT = changed("0.6.2", fails="0.6.1")
_OLD_CLASS = changed("0.4.33", fails="0.6.1")
_BACKEND = changed("0.6.2", fails="0.9.1")
_DROPPED = changed(fails="0.9.1")
_KEYWORDS = changed("0.6.2", fails="0.4.30")
_NEW_CLASS = Version("0.6.2")
_MODULES = {
    "mosaic": "pltpu",
    "mosaic_tpu": "pltpu",
    "mosaic_params": "pltpu",
    "triton": "triton",
    "mosaic_gpu": "plgpu",
}
_OLD_NAMES = {"pltpu": "TPU", "triton": "Triton", "plgpu": "GPU"}
_FIELDS = {
    "pltpu": frozenset(
        "dimension_semantics allow_input_fusion vmem_limit_bytes collective_id has_side_effects "
        "flags internal_scratch_in_bytes serialization_format disable_bounds_checks".split()
    ),
    "triton": frozenset({"num_warps", "num_stages"}),
    "plgpu": frozenset({"approx_math", "dimension_semantics", "max_concurrent_steps"}),
}
"""What the classes have taken as long as there are any."""


class CompilerParams(Rule):
    """`pl.pallas_call` is given its compiler parameters as a dict, or the backend as a word.

    ## What it does
    - `compiler_params=dict(mosaic=dict(...))`, in any mixture of literals and calls, becomes
    `pltpu.CompilerParams(...)`, that of `triton` `plt.CompilerParams(...)`; a cost estimate in it
    becomes the argument `cost_estimate=` of the call; - `backend="mosaic_tpu"` goes,
    `backend="triton"` becomes `compiler_params=plt.CompilerParams()`; - `num_warps=`,
    `num_stages=` and `mosaic_params=` of the call itself become compiler parameters.

    ## Why it fails
    `TypeError: unhashable type: 'dict'` while the call is lowered, since jax 0.6.1;
    `pallas_call() got an unexpected keyword argument 'backend'` since 0.9.1
    (jax/_src/pallas/pallas_call.py).

    ## Example
    ```python
    pl.pallas_call(
        kernel, compiler_params=dict(mosaic=dict(dimension_semantics=("parallel",))), **others)
    ```
    becomes
    ```python
    pl.pallas_call(
        kernel, compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)), **others)
    ```

    ## When it is not fixed
    The dict is not written out, or used for something else too; it has parameters that no class
    takes; it speaks of two backends and the kernel of none; the backend is no literal.

    ## What to do by hand
    Make the object of the backend: `pltpu.CompilerParams`, `plt.CompilerParams`.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix; with `--before-python`, an
    interpreter whose jax still takes the dict, before it too.
    """

    code = "API020"
    name = "compiler-params-dict"
    triggers = ("pallas_call",)
    messages = (
        r"unhashable type: 'dict'",
        r"Unknown backend in compiler_params",
        r"pallas_call\(\) got an unexpected keyword argument "
        r"'(?:backend|num_warps|num_stages|mosaic_params)'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each launch."""
        for call in module.names.calls:
            name = module.names.public(call.func)
            if name == "functools.partial" and call.args:
                name = module.names.public(call.args[0])
            if name != "pl.pallas_call" or module.is_guarded(module.span(call)):
                continue
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            if "backend" in given:
                yield self._backend(module, call, given["backend"], "compiler_params" in given)
            loose = [word for word in ("num_warps", "num_stages") if word in given]
            if loose:
                yield self._loose(module, call, loose, "compiler_params" in given)
            for word in ("compiler_params", "mosaic_params"):
                if word in given:
                    yield from self._params(module, call, word, given[word])

    def _params(
        self, module: Facts, call: ast.Call, word: str, value: ast.expr
    ) -> Iterator[Finding]:
        found = entries(module, value)
        if found is None:
            return
        message = f"`{word}=` as a dict is {_DICT}: now an object of the backend"
        change = self._change
        if isinstance(value, ast.Name) and not only_use(module, value, "compiler_params"):
            yield self.reported(module, call, message, change, _SHARED)
            return
        old = word == "mosaic_params"
        choice = _chosen(module, call, Entries(value, ((word, value),)) if old else found)
        if isinstance(choice, Reason):
            yield self.reported(module, call, message, change, choice)
            return
        key, inner = choice
        made = self._made(module, call, found.node, _MODULES[key], inner)
        if isinstance(made, Reason):
            yield self.reported(module, call, message, change, made)
            return
        if old:
            made.append(RenameKeyword(module.span(call), word, "compiler_params"))
        yield self.reported(module, call, message, change, made)

    @property
    def _change(self) -> Change:
        """The class has another name before jax 0.6.2, where the code runs on nothing newer."""
        return _OLD_CLASS if max(self.options.versions) < _NEW_CLASS else _DICT

    def _class(self, module: str) -> str:
        old = max(self.options.versions) < _NEW_CLASS
        return f"{module}.{_OLD_NAMES[module] if old else ''}CompilerParams"

    def _made(
        self, module: Facts, call: ast.Call, node: ast.expr, owner: str, inner: Entries
    ) -> list[Edit] | Reason:
        """What puts the object in the place of the dict at `node`."""
        values = {str(name): value for name, value in inner.items}
        cost = values.pop("cost_estimate", None)
        dropped = [v for k, v in values.items() if k == "device_type" and is_none(v)]
        values = {k: v for k, v in values.items() if v not in dropped}
        unknown = values.keys() - _FIELDS[owner]
        if unknown:
            return _NOT_WRITTEN if "None" in unknown else _unknown(sorted(unknown))
        spelled = module.names.spell(self._class(owner), call)
        edits: list[Edit] = list(spelled.imports)
        if cost is not None and not is_none(cost):
            span = module.span(call)
            code = Code("$cost", {"cost": module.span(cost)})
            edits.append(SetKeyword(span, "cost_estimate", code))
        if isinstance(inner.node, ast.Call):
            # The call of dict() stays, with its layout and its comments: it gets the other name.
            if inner.node is not node:
                hole = {"inner": module.span(inner.node)}
                edits.append(Replace(module.span(node), Code("$inner", hole)))
            edits.append(Replace(module.span(inner.node.func), Code(spelled.text)))
            gone = [value for value in (cost, *dropped) if value is not None]
            edits += (RemoveArgument(module.span(inner.node), module.span(v)) for v in gone)
            return [*edits, *kept_comments(module, node, [module.span(inner.node)])]
        parts = {f"v_{name}": module.span(value) for name, value in values.items()}
        text = ", ".join(f"{name}=$v_{name}" for name in values)
        edits.append(Replace(module.span(node), Code(f"{spelled.text}({text})", parts)))
        kept = [*parts.values(), *([module.span(cost)] if cost is not None else [])]
        return [*edits, *kept_comments(module, node, kept)]

    def _backend(self, module: Facts, call: ast.Call, value: ast.expr, params: bool) -> Finding:
        drop = RemoveArgument(module.span(call), module.span(value))
        word = module.constants.fold(value)
        message = f"`backend=` of `pallas_call` is {_DROPPED}: the parameters say it"
        if word in ("mosaic_tpu", None) or (word == "triton" and params):
            return self.reported(module, call, message, _DROPPED, [drop])
        if word != "triton":
            return self.reported(module, call, message, _BACKEND, _WORD)
        spelled = module.names.spell("triton.CompilerParams", call)
        code = Code(f"{spelled.text}()")
        put = SetKeyword(module.span(call), "compiler_params", code)
        edits: list[Edit] = [put, *spelled.imports, drop]
        return self.reported(module, call, message, _BACKEND, edits)

    def _loose(self, module: Facts, call: ast.Call, words: Sequence[str], params: bool) -> Finding:
        message = f"{' and '.join(f'`{word}=`' for word in words)} of `pallas_call` is {_KEYWORDS}"
        if params:
            return self.reported(module, call, message, _KEYWORDS, _BOTH)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        spelled = module.names.spell("triton.CompilerParams", call)
        parts = {word: module.span(given[word]) for word in words}
        code = Code(f"{spelled.text}({', '.join(f'{word}=${word}' for word in words)})", parts)
        span = module.span(call)
        edits: list[Edit] = [SetKeyword(span, "compiler_params", code), *spelled.imports]
        edits += (RemoveArgument(span, module.span(given[word])) for word in words)
        return self.reported(module, call, message, _KEYWORDS, edits)


_SHARED = Reason(
    "dict-is-shared",
    "the dict is used for something else too",
    "make pltpu.CompilerParams or plt.CompilerParams from it for the launch",
)
_NOT_WRITTEN = Reason(
    "dict-not-written-out",
    "what the dict holds cannot be seen",
    "make pltpu.CompilerParams or plt.CompilerParams of it",
)
_TWO = Reason(
    "two-backends",
    "the dict speaks of several backends, and which one the kernel is for cannot be seen",
    "make the object of the one: pltpu.CompilerParams or plt.CompilerParams",
)
_WORD = Reason(
    "backend-not-known",
    "which backend is meant cannot be seen, or it has no parameters for pallas_call",
    "give compiler_params= of the backend, and drop the argument",
)
_BOTH = Reason(
    "parameters-twice",
    "the call has compiler parameters too",
    "put the arguments into compiler_params=",
)


def _unknown(names: Sequence[str]) -> Reason:
    return Reason(
        "parameter-not-known",
        f"no class takes {', '.join(names)}",
        "see the fields of the CompilerParams of the backend in your jax, and drop the others",
    )


def _chosen(module: Facts, call: ast.Call, outer: Entries) -> tuple[str, Entries] | Reason:
    """The backend of a dict of parameters, and its part of them."""
    if not outer.items:
        return "mosaic", outer
    keys = [str(key) for key, _ in outer.items]
    if set(keys) <= _FIELDS["triton"]:
        return "triton", outer
    if not set(keys) <= _MODULES.keys():
        return _NOT_WRITTEN if "None" in keys else _unknown([k for k in keys if k not in _MODULES])
    if len(keys) > 1:
        known = {"tpu": "mosaic", "triton": "triton", "mosaic_gpu": "mosaic_gpu"}
        kernel = call.args[0] if call.args else argument(call, None, "kernel")
        function = module.names.definition(kernel) if kernel is not None else None
        inside = function.body[0] if isinstance(function, ast.FunctionDef) else None
        backend = module.backends.by_names(inside) if inside is not None else None
        wanted = known.get(backend or "")
        outer = Entries(outer.node, tuple(item for item in outer.items if item[0] == wanted))
        if len(outer.items) != 1:
            return _TWO
    [(key, value)] = outer.items
    inner = entries(module, value)
    return _NOT_WRITTEN if inner is None or key is None else (key, inner)
