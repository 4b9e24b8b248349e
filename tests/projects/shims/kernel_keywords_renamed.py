import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

_OLD_NAMES = {"out_type": "out_shape", "scratch_types": "scratch_shapes"}


def kernel(body, **kwargs):
    """plgpu.kernel with today's keywords on any jax."""
    if jax.__version_info__ < (0, 10, 2):
        for new, old in _OLD_NAMES.items():
            if new in kwargs:
                kwargs[old] = kwargs.pop(new)
    return plgpu.kernel(body, **kwargs)


def run(body, x):
    keywords = {"out_shape": jax.ShapeDtypeStruct(x.shape, x.dtype), "grid": (1,), "grid_names": ("i",)}
    keywords["out_type" if jax.__version_info__ >= (0, 10, 2) else "out_shape"] = keywords.pop("out_shape")
    return plgpu.kernel(body, **keywords)(x)


def launch(body, x):
    kw = {"scratch_shapes": [plgpu.SMEM(x.shape, x.dtype)]}
    kw["scratch_types"] = kw.pop("scratch_shapes")
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    kw.update({"out_shape": shape} if jax.__version_info__ < (0, 10, 2) else {"out_type": shape})
    return plgpu.kernel(body, **kw)(x)
