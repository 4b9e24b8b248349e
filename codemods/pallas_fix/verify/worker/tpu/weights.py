"""Which MXU multiplies, where the accumulator does not say: the one whose weights are meant."""

from __future__ import annotations

from typing import Any

from .machine import Machine

Load = int | bool | None


class Unclear(Exception):
    """Two MXUs or registers could be meant."""


def staging_register(load: Any) -> Load:
    """What a `load_staged_rhs` means: a register, or a bool as it is. Raises TypeError."""
    if load is None or isinstance(load, bool):
        return load
    try:
        register = int(load)
        if isinstance(load, str) or register == load:
            return register
    except (TypeError, ValueError):
        pass
    raise TypeError("load_staged_rhs must be an integer or None.")


def which(
    machine: Machine, load: Load, said: int | None, last: int | None
) -> tuple[int, int | None]:
    """The MXU, and the register that it loads, of `matmul_acc_lhs(..., load_staged_rhs=load)`.

    `said` is the MXU that the accumulator names, if it names one, `last` that of its last sum.
    Without a name it is the MXU whose register holds weights now, or, where nothing is loaded,
    that of the last sum, or the one that holds weights. `True` means whatever register holds
    weights, `False` means none where an MXU holds weights. Raises Unclear.
    """
    units = range(machine.chip.mxus) if said is None else (said,)
    likely = next(mxu for mxu in (said, last, 0) if mxu is not None)
    holding = [mxu for mxu in machine.holding() if mxu in units]
    if load is None or (load is False and holding):
        if last in holding:
            holding = [last]
        if len(holding) > 1:
            raise Unclear("several MXUs hold weights")
        return (holding or [likely])[0], None
    registers = range(machine.chip.registers) if isinstance(load, bool) else (load,)
    staged = [(mxu, one) for one in registers for mxu in machine.staged(one) if mxu in units]
    if len(staged) > 1:
        raise Unclear("several staging registers hold weights")
    return (staged or [(likely, registers[0])])[0]
