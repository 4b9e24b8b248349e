import jax
try:
    from jax.experimental.pallas.tpu import TPUCompilerParams
except ImportError:
    TPUCompilerParams = None
try:
    from jax.core import Primitive
except ImportError:
    from jax.extend.core import Primitive
try:
    from jax import tree_map
except ImportError:
    tree_map = jax.tree.map
try:
    from jax.core import get_aval
except (ImportError, ModuleNotFoundError):
    get_aval = None
try:
    from jax.lax import pvary
except ImportError:
    pvary = None
try:
    from jax.experimental import enable_x64
except ImportError:
    enable_x64 = None
def f(x):
    p = TPUCompilerParams and TPUCompilerParams()
    if pvary is not None:
        x = pvary(x, "i")
    if enable_x64:
        with enable_x64():
            pass
    return get_aval(x)
