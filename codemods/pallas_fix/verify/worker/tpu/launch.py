"""Stand-ins for the launches: their kernels are interpreted, and their MXU operations emulated."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ..chips import Unavailable
from .accumulators import Space
from .kernel import Kernels, UsesMxu
from .scopes import filled_in, is_accumulator, without_accumulators

Body = Callable[..., Any]
Wrap = Callable[[Body], Body]


@dataclass(frozen=True)
class Launch:
    """What a launch is given: the function of jax, its arguments, and where the body is in them."""

    make: Callable[..., Any]
    arguments: dict[str, Any]
    scratch: str

    @property
    def mesh(self) -> Any:
        """Where it runs; None for `pl.pallas_call`."""
        return self.arguments.get("mesh")

    @property
    def steps(self) -> int:
        """The rank of the grid that `pl.program_id` counts; cores are none of it."""
        spec = self.arguments.get("grid_spec")
        grid = self.arguments.get("grid", ()) if spec is None else spec.grid
        return 1 if isinstance(grid, int) else len(grid)

    @property
    def scratch_types(self) -> Any:
        """The types of the refs that it allocates for the body."""
        spec = self.arguments.get("grid_spec")
        return self.arguments.get(self.scratch, ()) if spec is None else spec.scratch_shapes

    def without_accumulators(self) -> Launch:
        """The same launch, whose body gets None for each accumulator, or nothing at all."""
        spec = self.arguments.get("grid_spec")
        if spec is None:
            changed = {self.scratch: without_accumulators(self.scratch_types)}
        else:
            spec = copy.copy(spec)
            spec.scratch_shapes = tuple(
                kind for kind in spec.scratch_shapes if not is_accumulator(kind)
            )
            changed = {"grid_spec": spec}
        return replace(self, arguments=self.arguments | changed)

    def completed(self, space: Space, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments of the body, with accumulators."""
        types = self.scratch_types
        if isinstance(types, Mapping):
            return args, kwargs | filled_in(types, kwargs, space)
        kinds = list(types)
        if self.arguments.get("grid_spec") is not None:
            missing = sum(map(is_accumulator, kinds))
            first = len(args) - len(kinds) + missing
            refs = iter(args[first:])
            scratch = [None if is_accumulator(kind) else next(refs) for kind in kinds]
        else:
            first = len(args) - len(kinds)
            scratch = list(args[first:])
        return (*args[:first], *filled_in(kinds, scratch, space)), kwargs


class Launches:
    """The stand-ins for `pl.pallas_call`, `pl.kernel` and `pl.core_map`."""

    def __init__(self, kernels: Kernels, params: Any, accepts_scratch: bool) -> None:
        self._kernels = kernels
        self._params = params
        self._accepts_scratch = accepts_scratch

    def stand_ins(self) -> dict[str, Callable[..., Any]]:
        """By their names in `jax.experimental.pallas`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `core_map` is deprecated since jax 0.11
            core_map = pl.core_map
        return {
            "pallas_call": self._launcher(pl.pallas_call, "kernel", "scratch_shapes"),
            "kernel": self._launcher(pl.kernel, "body", "scratch_types"),
            "core_map": self._core_map(core_map),
        }

    def _launcher(self, function: Callable[..., Any], body: str, scratch: str) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get(body)
            if isinstance(given, Sequence):  # several programs, each on cores of its own
                return function(*args, **kwargs)
            if not callable(given):
                return lambda given: stand_in(given, *args, **kwargs)
            arguments = signature.bind(*args, **kwargs).arguments
            arguments.pop(body)
            launch = Launch(function, arguments, scratch)
            return self._operator(
                launch, lambda launch, wrap: launch.make(wrap(given), **launch.arguments)
            )

        return stand_in

    def _core_map(self, function: Callable[..., Any]) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            arguments = signature.bind(*args, **kwargs).arguments
            launch = Launch(function, arguments, "scratch_shapes")
            return lambda body: self._operator(
                launch,
                lambda launch, wrap: lambda: launch.make(**launch.arguments)(wrap(body)),
            )()

        return stand_in

    def _operator(self, launch: Launch, make: Callable[[Launch, Wrap], Any]) -> Any:
        """What jax makes of the launch, interpreted; emulated where it uses the MXU explicitly."""
        cores, core = _cores(launch.mesh)
        params = replace(self._params, num_cores_or_threads=cores)
        accumulators = list(filter(is_accumulator, jax.tree.leaves(launch.scratch_types)))
        if accumulators and not self._accepts_scratch:  # as jax's mosaic/lowering.py
            raise NotImplementedError(f"Invalid memory space: {accumulators[0].memory_space!r}")
        ordinary = None if accumulators else make(launch, self._kernels.ordinary)

        def operate(*operands: Any, **kwargs: Any) -> Any:
            _refuse_many_devices()
            with pltpu.force_tpu_interpret_mode(params):
                if ordinary is not None:
                    try:
                        return ordinary(*operands, **kwargs)
                    except UsesMxu:
                        pass
                emulated = make(
                    launch.without_accumulators(),
                    lambda body: self._kernels.emulated(body, core, launch.steps, launch.completed),
                )
                return emulated(*operands, **kwargs)

        return operate if ordinary is None else functools.wraps(ordinary)(operate)


def _cores(mesh: Any) -> tuple[int, Callable[[], Any]]:
    """How many cores run a kernel, and what gives the index of the core inside of it."""
    shape = dict(mesh.shape) if mesh is not None else {}
    several = [(name, size) for name, size in shape.items() if size > 1]
    if not several:
        return 1, lambda: 0
    if len(several) > 1 or type(mesh).__name__ != "TensorCoreMesh":
        raise Unavailable(
            f"stage not available: jax interprets no kernel on a {type(mesh).__name__} of "
            f"{' x '.join(str(size) for size in shape.values())} cores"
        )
    name, size = several[0]
    return size, lambda: jax.lax.axis_index(name)


def _refuse_many_devices() -> None:
    """Raise Unavailable inside a `shard_map` over several devices, which share no MXU."""
    mesh = jax.sharding.get_abstract_mesh()
    devices = 1
    for name, size in mesh.shape.items():
        devices *= size if name in mesh.manual_axes else 1
    if devices > 1:
        raise Unavailable(
            f"stage not available: the kernel runs on {devices} devices, and only one is emulated"
        )
