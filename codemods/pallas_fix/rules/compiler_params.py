"""API020: compiler parameters of `pl.pallas_call` as dicts, words and keywords of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from packaging.version import Version

from pallas_fix.edits import Code, Edit, RemoveArgument, RenameKeyword, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.access.kept import comments_of_argument
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.parameters.dicts import entries, unpacked
from pallas_fix.rules.parameters.objects import CLASSES, Made, Objects, class_name
from pallas_fix.rules.parameters.sources import Source, Sources
from pallas_fix.versions import Change, changed

_DICT = changed("0.6.2", fails="0.6.1")
_OLD_CLASS = changed("0.4.35", fails="0.6.1")
_LATE = changed("0.6.2", fails="0.9.1")
_BACKEND = changed("0.6.2", fails="0.9.1")
_DROPPED = changed(fails="0.9.1")
_KEYWORDS = changed("0.6.2", fails="0.4.30")
_OLD_KEYWORDS = changed("0.4.35", fails="0.4.30")
_NEW_CLASS, _GONE_CLASS = Version("0.6.2"), Version("0.7.2")
_GPU = ("triton", "mosaic_gpu")


class CompilerParams(Rule):
    """`pl.pallas_call` is given its compiler parameters as a dict, or the backend as a word.

    ## What it does
    - `compiler_params=dict(mosaic=dict(...))`, in any mixture of literals and calls, becomes
      `pltpu.CompilerParams(...)`, that of `triton` `plt.CompilerParams(...)`, also where it comes
      by variables, conditions, defaults, functions or `**options`;
    - a dict that is made elsewhere is unpacked: `pltpu.CompilerParams(**params)`;
    - a key that jax never read (`num_wraps` in a dict for Triton) goes, and the finding says so;
    - a cost estimate in the dict becomes the argument `cost_estimate=` of the call;
    - `{"mosaic_tpu": pltpu.CompilerParams(...)}` becomes what it holds, an empty dict `None`;
    - `backend="mosaic_tpu"` goes, `backend="triton"` becomes
      `compiler_params=plt.CompilerParams()`;
    - `num_warps=`, `num_stages=` and `mosaic_params=` of the call itself become compiler
      parameters.

    ## Why it fails
    `TypeError: unhashable type: 'dict'` while the call is lowered, since jax 0.6.1 (an empty dict
    and one of objects, 0.9.1);
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
    The dict is used for something else too; it has parameters that no class takes, or a cost
    estimate that several launches may take; it speaks of two backends and the kernel of none; the
    backend is no literal.

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
        sources = Sources(module, "compiler_params")
        for call in module.names.calls:
            name = module.names.public(call.func)
            if name == "functools.partial" and call.args:
                name = module.names.public(call.args[0])
            if name != "pl.pallas_call" or module.is_guarded(module.span(call)):
                continue
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            params = given.get("compiler_params")
            if "backend" in given:
                yield self._backend(module, call, given["backend"], params)
            loose = [word for word in ("num_warps", "num_stages") if word in given]
            if loose:
                yield self._loose(module, call, loose, params)
            if "mosaic_params" in given:
                yield self._mosaic(module, call, given["mosaic_params"])
            values = [params] if params is not None else []
            values += unpacked(module, call, "compiler_params")
            yield from self._params(module, call, [s for v in values for s in sources.of(v)])

    def _params(self, module: Facts, call: ast.Call, found: list[Source]) -> Iterator[Finding]:
        dicts = [source for source in found if entries(module, source.node) is not None]
        if not dicts or any(module.is_guarded(module.span(source.node)) for source in found):
            return
        if not all(source.alone for source in dicts):
            yield self._dict(module, call, _SHARED)
            return
        done: list[Made] = []
        for source in dicts:
            movable = source.direct or (len(found) == 1 and _handed_on(module, call, source))
            made = Objects(module, call, old=self._old).of(source, movable=movable)
            if isinstance(made, Reason):
                yield self._dict(module, call, made)
                return
            done.append(made)
        edits = [edit for made in done for edit in made.edits]
        ignored = tuple(name for made in done for name in made.ignored)
        both = Made(edits, all(m.certain for m in done), all(m.late for m in done), ignored)
        yield self._dict(module, call, both)

    def _dict(
        self, module: Facts, call: ast.Call, made: Made | Reason, word: str = "compiler_params"
    ) -> Finding:
        change = _LATE if isinstance(made, Made) and made.late else self._change
        message = f"`{word}=` as a dict is {change}: now an object of the backend"
        if isinstance(made, Reason):
            return self.reported(module, call, message, change, made)
        if made.ignored:
            names = " and ".join(f"`{name}`" for name in made.ignored)
            message += f"; jax has never read {names}, which goes"
        return self.reported(module, call, message, change, made.edits, certain=made.certain)

    def _mosaic(self, module: Facts, call: ast.Call, value: ast.expr) -> Finding:
        objects = Objects(module, call, old=self._old)
        made = objects.inner(value, "mosaic_params", value, movable=True)
        if isinstance(made, Made):
            rename = RenameKeyword(module.span(call), "mosaic_params", "compiler_params")
            made = Made([*made.edits, rename], made.certain)
        return self._dict(module, call, made, "mosaic_params")

    @property
    def _old(self) -> bool:
        """True where the class must have its old name: the oldest jax lacks the new one."""
        return self.options.oldest < _NEW_CLASS and max(self.options.versions) < _GONE_CLASS

    @property
    def _change(self) -> Change:
        return _OLD_CLASS if self._old else _DICT

    def _backend(
        self, module: Facts, call: ast.Call, value: ast.expr, params: ast.expr | None
    ) -> Finding:
        drop = RemoveArgument(module.span(call), module.span(value))
        word = module.constants.fold(value)
        message = f"`backend=` of `pallas_call` is {_DROPPED}: the parameters say it"
        if word in ("mosaic_tpu", None) or (not is_none(params) and word in _GPU):
            return self.reported(module, call, message, _DROPPED, [drop])
        if word != "triton":
            return self.reported(module, call, message, _BACKEND, _WORD)
        spelled = module.names.spell("triton.CompilerParams", call)
        code = Code(f"{spelled.text}()")
        put = SetKeyword(module.span(call), "compiler_params", code)
        return self.reported(module, call, message, _BACKEND, [put, *spelled.imports, drop])

    def _loose(
        self, module: Facts, call: ast.Call, words: Sequence[str], params: ast.expr | None
    ) -> Finding:
        change = _OLD_KEYWORDS if self._old else _KEYWORDS
        message = f"{' and '.join(f'`{word}=`' for word in words)} of `pallas_call` is {change}"
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        parts = {word: module.span(given[word]) for word in words}
        gone: list[Edit] = []
        for word, part in parts.items():
            gone.append(RemoveArgument(module.span(call), part))
            gone += comments_of_argument(module, call, given[word], [part])
        if params is not None and not is_none(params):
            if not _takes_more(module, params, words):
                return self.reported(module, call, message, change, _BOTH)
            inner = module.span(params)
            more = [SetKeyword(inner, w, Code("$value", {"value": parts[w]})) for w in words]
            return self.reported(module, call, message, change, [*more, *gone])
        spelled = module.names.spell(class_name("triton", old=self._old), call)
        code = Code(f"{spelled.text}({', '.join(f'{word}=${word}' for word in words)})", parts)
        put = SetKeyword(module.span(call), "compiler_params", code)
        return self.reported(module, call, message, change, [put, *spelled.imports, *gone])


_SHARED = Reason(
    "dict-is-shared",
    "the dict is used for something else too",
    "make pltpu.CompilerParams or plt.CompilerParams from it for the launch",
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


def _handed_on(module: Facts, call: ast.Call, source: Source) -> bool:
    """True if a dict goes by one variable of the same function to this launch alone."""
    value = next((k.value for k in call.keywords if k.arg == "compiler_params"), None)
    if not isinstance(value, ast.Name):
        return False
    home = module.names.scope(value)
    binding = module.names.binding(value, home)
    if binding is None or binding.value is not source.node or value.id not in home.bindings:
        return False
    uses = (
        node
        for node in ast.walk(home.node)
        if isinstance(node, ast.Name) and node.id == value.id and isinstance(node.ctx, ast.Load)
    )
    return list(uses) == [value]


def _takes_more(module: Facts, params: ast.expr, words: Sequence[str]) -> bool:
    """True for an object of Triton's parameters that is made there, without these."""
    if (
        not isinstance(params, ast.Call)
        or CLASSES.get(module.names.public(params.func) or "") != "triton"
    ):
        return False
    return not params.args and not {None, *words} & {keyword.arg for keyword in params.keywords}
