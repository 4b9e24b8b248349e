import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

Params = getattr(plgpu, "CompilerParams", None) or plgpu.GPUCompilerParams
Mesh = plgpu.Mesh if hasattr(plgpu, "Mesh") else plgpu.GPUMesh
Spec = plgpu.BlockSpec if hasattr(plgpu, "BlockSpec") else plgpu.GPUBlockSpec
SMEM = plgpu.SMEM if "SMEM" in vars(plgpu) else plgpu.GPUMemorySpace.SMEM


def barrier(arrivals):
    if jax.__version_info__ >= (0, 6):
        return plgpu.Barrier(num_arrivals=arrivals, num_barriers=1)
    return plgpu.Barrier(num_arrivals=arrivals)


def load(ref, idx):
    match jax.__version_info__[1]:
        case 4 | 5 | 6:
            return plgpu.load(ref, idx)
        case _:
            return plgpu.load(ref.at[idx])


def launch(body, x):
    old = not hasattr(plgpu, "kernel") or jax.__version_info__ < (0, 10)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    kw = dict(out_shape=like) if old else dict(out_type=like)
    return plgpu.kernel(body, compiler_params=Params(), **kw)(x)
