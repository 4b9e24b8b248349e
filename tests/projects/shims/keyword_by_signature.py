import jax
from jax.experimental.pallas import mosaic_gpu as plgpu
import inspect
_OUT = "out_type" if "out_type" in inspect.signature(plgpu.kernel).parameters else "out_shape"
def run(body, s): return plgpu.kernel(body, **{_OUT: s})
