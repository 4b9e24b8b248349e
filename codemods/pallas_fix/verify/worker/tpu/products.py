"""The products that the author of a broken kernel meant, on the host."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from .arithmetic import Array, undefined
from .contents import Beside, Contents, wide
from .machine import Machine
from .weights import Load, Unclear, which


def product_for(
    held: Contents | Beside,
    machine: Machine,
    lhs: Array,
    load: Load,
    said: int | None,
    site: Hashable,
) -> Array:
    """`lhs @ weights` for an accumulator that holds `held`; `said` is the MXU that it names.

    A hazard, and numbers that are not defined, where two MXUs could be meant.
    """
    try:
        mxu, register = which(machine, load, said, held.mxu)
    except Unclear as why:
        machine.report("mxu-unknown", site, f"{why}: nobody can tell which ones are meant")
        return undefined((lhs.shape[0], machine.chip.size), wide(lhs.dtype))
    held.mxu = mxu
    return machine.product(mxu, lhs, register, site)


def total(old: Array, product: Array, machine: Machine, site: Hashable) -> Array:
    """The sum of what an accumulator holds and a product of the same size."""
    if old.dtype != product.dtype:
        message = f"{product.dtype.name} is accumulated into {old.dtype.name}"
        machine.report("pop-dtype", site, message)
        return undefined(old.shape, old.dtype)
    with np.errstate(all="ignore"):
        return old + product.reshape(old.shape)


def same_but_ones(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    """True for shapes that differ in dimensions of one alone."""
    return [n for n in one if n != 1] == [n for n in two if n != 1]
