"""API023: `device_id_type=`, which says nothing any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.arguments.options import Option, options
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_POSITIONS = {
    "pl.semaphore_signal": None,
    "pltpu.semaphore_signal": None,
    "pltpu.make_async_remote_copy": 5,
    "pltpu.async_remote_copy": 5,
    "plgpu.remote_ref": 2,
}
"""The functions that take it, and where it stands among their positional arguments."""
_SIGNALS = frozenset({"pl.semaphore_signal", "pltpu.semaphore_signal"})
_MESH = frozenset({"pl.DeviceIdType.MESH", "pltpu.DeviceIdType.MESH"})
_NAMED = frozenset({"pl.DeviceIdType.LOGICAL", "pltpu.DeviceIdType.LOGICAL"})
_ARGUMENT = changed(warns="0.12.0.1")
_OLD_NAME = changed(warns="0.10.0", fails="0.11.0")
_NEW_NAME = changed("0.6.0", warns="0.10.0", fails="0.11.0")


class DeviceIdTypeArgument(Rule):
    """A remote copy or a signal is told `device_id_type=`, which is about to go.

    ## What it does
    Drops `device_id_type=pl.DeviceIdType.MESH`, which has been the default of every jax: by
    keyword, by position, and out of a dict that is unpacked into the call. A signal without a
    device loses any type. `pltpu.DeviceIdType.MESH` elsewhere becomes `pl.DeviceIdType.MESH`.

    ## Why it fails
    Since jax 0.12.0.1 a DeprecationWarning: "device_id_type is deprecated and will be removed in a
    future release." (jax/_src/pallas/primitives.py, jax/_src/pallas/mosaic/primitives.py).
    `pltpu.DeviceIdType` is gone since jax 0.11.0.

    ## Example
    ```python
    pl.semaphore_signal(sem, 1, device_id=(0,), device_id_type=pl.DeviceIdType.MESH)
    ```
    becomes
    ```python
    pl.semaphore_signal(sem, 1, device_id=(0,))
    ```

    ## When it is not fixed
    The type is `LOGICAL`: then the id is the number of a device, and what its coordinates in the
    mesh are stands nowhere in the code. Or the value of the argument is not known.

    ## What to do by hand
    Give the coordinates in the mesh: `device_id={"x": index}`, and drop the argument.

    ## How it is verified
    A case that reaches the call is traced and compiled. Several devices are not emulated.
    """

    code = "API023"
    name = "device-id-type"
    triggers = ("device_id_type", "DeviceIdType")
    messages = (r"device_id_type is deprecated and will be removed",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each argument, and for each other use of the old name."""
        dropped: set[ast.expr] = set()
        for call in module.names.calls:
            if _called(module, call) not in _POSITIONS or module.is_guarded(module.span(call)):
                continue
            for option in _given(module, call):
                if not is_none(option.value):
                    dropped.update(n for n in ast.walk(option.value) if isinstance(n, ast.expr))
                    yield self._argument(module, call, option)
        for node in module.index.attributes.get("MESH", ()):
            if node in dropped:
                continue
            if module.names.public(node) == "pltpu.DeviceIdType.MESH":
                if isinstance(node.value, ast.Name) or module.is_guarded(module.span(node)):
                    continue  # an imported name: API001 repairs the import
                spelled = module.names.spell("pl.DeviceIdType.MESH", node)
                edits: tuple[Edit, ...] = (
                    Replace(module.span(node), Code(spelled.text)),
                    *spelled.imports,
                )
                message = f"`pltpu.DeviceIdType` is {_NEW_NAME}: now `pl.DeviceIdType`"
                yield self.reported(module, node, message, _NEW_NAME, edits)

    def _argument(self, module: Facts, call: ast.Call, option: Option) -> Finding:
        name = module.names.public(option.value)
        change = _OLD_NAME if name is not None and name.startswith("pltpu.") else _ARGUMENT
        message = f"`device_id_type=` is {change}: it has no successor"
        if not option.alone:
            return self.reported(module, call, message, change, _UNKNOWN)
        # Without a device the type says nothing.
        known = all(keyword.arg is not None for keyword in call.keywords)
        signals = module.names.public(call.func) in _SIGNALS
        alone = signals and known and is_none(argument(call, None, "device_id"))
        if name in _MESH or (name in _NAMED and alone):
            return self.reported(module, call, message, change, [option.removed(module)])
        reason = _LOGICAL if name in _NAMED else _UNKNOWN
        return self.reported(module, call, message, change, reason)


_LOGICAL = Reason(
    "logical-device-id",
    "the id is the number of a device, and its coordinates in the mesh stand nowhere in the code",
    "give device_id={axis: index} for the axes of the mesh, and drop the argument",
)
_UNKNOWN = Reason(
    "value-not-known",
    "whether the value is MESH, which may be dropped, cannot be seen",
    "drop the argument where it is MESH; give the coordinates in the mesh where it is LOGICAL",
)


def _called(module: Facts, call: ast.Call) -> str | None:
    name = module.names.public(call.func)
    if name == "functools.partial" and call.args:
        return module.names.public(call.args[0])
    return name


def _given(module: Facts, call: ast.Call) -> list[Option]:
    """Where the call is given the argument: by keyword, by position, or out of a dict."""
    name = _called(module, call) or ""
    for keyword in call.keywords:
        if keyword.arg == "device_id_type":
            return [Option("device_id_type", keyword.value, call)]
    arguments = call.args[module.names.public(call.func) != name :]
    position = _POSITIONS[name]
    if position is not None and len(arguments) > position:
        if any(isinstance(value, ast.Starred) for value in arguments):
            return []
        return [Option("device_id_type", arguments[position], call)]
    unpacked = options(module, call, lambda other: _called(module, other))
    return [option for option in unpacked if option.name == "device_id_type"]
