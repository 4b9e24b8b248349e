import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu


def kernel(body, out, scratch):
    try:
        return plgpu.kernel(body, out_type=out, scratch_types=scratch)
    except TypeError:
        return plgpu.kernel(body, out_shape=out, scratch_shapes=scratch)


def spec(shape, index_map):
    try:
        return pl.BlockSpec(shape, index_map, pipeline_mode=pl.Buffered(2))
    except TypeError:
        return pl.BlockSpec(index_map, shape)


def semaphore(sem, device):
    try:
        pl.semaphore_signal(sem, inc=1, device_id=device)
    except AttributeError:
        pltpu.semaphore_signal(sem, inc=1, device_id=device, device_id_type=pltpu.DeviceIdType.MESH)
