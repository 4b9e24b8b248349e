"""API023: `device_id_type=`, which says nothing any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Fix, RemoveArgument, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import Change, changed

_POSITIONS = {
    "pl.semaphore_signal": None,
    "pltpu.semaphore_signal": None,
    "pltpu.make_async_remote_copy": 5,
    "pltpu.async_remote_copy": 5,
    "plgpu.remote_ref": 2,
}
"""The functions that take it, and where it stands among their positional arguments."""
_MESH = frozenset({"pl.DeviceIdType.MESH", "pltpu.DeviceIdType.MESH"})
_ARGUMENT = changed(warns="0.12.0.1")
_OLD_NAME = changed(warns="0.10.0", fails="0.11.0")
_NEW_NAME = changed("0.6.0", warns="0.10.0", fails="0.11.0")


class DeviceIdTypeArgument(Rule):
    """A remote copy or a signal is told `device_id_type=`, which is about to go.

    ## What it does
    Drops `device_id_type=pl.DeviceIdType.MESH`, which has been the default of every jax, by keyword
    and by position. `pltpu.DeviceIdType.MESH` elsewhere becomes `pl.DeviceIdType.MESH`.

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
            value = _value(module, call)
            if value is None or module.is_guarded(module.span(call)):
                continue
            dropped.update(node for node in ast.walk(value) if isinstance(node, ast.expr))
            yield self._argument(module, call, value)
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute) or node.attr != "MESH" or node in dropped:
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
                yield self._finding(module, node, message, _NEW_NAME, Fix(edits, certain=True))

    def _argument(self, module: Facts, call: ast.Call, value: ast.expr) -> Finding:
        name = module.names.public(value)
        change = _OLD_NAME if name is not None and name.startswith("pltpu.") else _ARGUMENT
        message = f"`device_id_type=` is {change}: it has no successor"
        if name in _MESH:
            edit = RemoveArgument(module.span(call), module.span(value))
            return self._finding(module, call, message, change, Fix((edit,), certain=True))
        logical = name is not None and name.endswith(".LOGICAL")
        reason = _LOGICAL if logical else _UNKNOWN
        return self._finding(module, call, message, change, reason=reason)

    def _finding(
        self,
        module: Facts,
        node: ast.expr,
        message: str,
        change: Change,
        fix: Fix | None = None,
        reason: Reason | None = None,
    ) -> Finding:
        function = module.names.qualname(node)
        span = module.span(node)
        return Finding(self.code, span, message, fix, reason, function, change=change)


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


def _value(module: Facts, call: ast.Call) -> ast.expr | None:
    """The value of the argument, if the call gives it."""
    name = module.names.public(call.func)
    arguments = call.args
    if name == "functools.partial" and call.args:
        name, arguments = module.names.public(call.args[0]), call.args[1:]
    if name not in _POSITIONS:
        return None
    for keyword in call.keywords:
        if keyword.arg == "device_id_type":
            return keyword.value
    position = _POSITIONS[name]
    if position is None or any(isinstance(argument, ast.Starred) for argument in arguments):
        return None
    return arguments[position] if len(arguments) > position else None
