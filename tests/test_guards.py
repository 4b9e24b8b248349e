"""Which code is left alone, and which is not: `⟦...⟧` marks the one, `«...»` the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pallas_fix.edits import Span
from pallas_fix.facts import Facts

_MARK = re.compile(r"[⟦⟧«»]")
_IMPORTS = (
    "import jax\n"
    "from jax.experimental import pallas as pl\n"
    "from jax.experimental.pallas import tpu as pltpu\n"
    "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
)

SHIMS = {
    "a version as a string": """
if jax.__version__ < "0.7":
    P = ⟦pltpu.TPUCompilerParams⟧
else:
    P = ⟦pltpu.CompilerParams⟧
""",
    "the info, far away": """
_INFO = jax.__version_info__
_IS_OLD = _INFO < (0, 7)


def params():
    return ⟦pltpu.TPUCompilerParams()⟧ if _IS_OLD else ⟦pltpu.CompilerParams()⟧
""",
    "a tuple of ints": """
vers = tuple(int(part) for part in jax.__version__.split(".")[:2])
if vers >= (0, 9):
    x = ⟦pl.load⟧
""",
    "two names of one version": """
major, minor = map(int, jax.__version__.split(".")[:2])
if minor < 7:
    x = ⟦pl.load⟧
""",
    "packaging": """
from packaging.version import Version
fresh = Version(jax.__version__) >= Version("0.7.0")
while fresh:
    x = ⟦pl.load⟧
""",
    "packaging.version.parse": """
from packaging import version
x = ⟦pl.load⟧ if version.parse(jax.__version__) < version.parse("0.9") else None
""",
    "jax.version": """
from jax import version
if version.__version_info__ < (0, 7):
    x = ⟦pl.load⟧
""",
    "a name imported from jax.version": """
from jax.version import __version_info__ as info
if info < (0, 7):
    x = ⟦pl.load⟧
""",
    "the distribution": """
import importlib.metadata
found = importlib.metadata.version("jax").split(".")
if found[1] == "4":
    x = ⟦pl.load⟧
""",
    "the version of jaxlib": """
import jaxlib
if jaxlib.version.__version__.startswith("0.4"):
    x = ⟦pl.load⟧
""",
    "pkg_resources": """
import pkg_resources
if pkg_resources.get_distribution("jax").version < "0.7":
    x = ⟦pl.load⟧
""",
    "a helper that parses": """
def _parsed(text):
    return tuple(int(part) for part in text.split("."))


if _parsed(jax.__version__) < (0, 7):
    x = ⟦pl.load⟧
""",
    "a helper that answers by its returns": """
def fresh_enough():
    if jax.__version_info__ >= (0, 7):
        return True
    return False


if fresh_enough():
    x = ⟦pl.load⟧
""",
    "a lambda that answers": """
fresh = lambda: hasattr(pltpu, "CompilerParams")
if fresh():
    x = ⟦pl.load⟧
""",
    "a helper of names": """
def has(module, name):
    return hasattr(module, name)


if has(pltpu, "CompilerParams"):
    x = ⟦pl.load⟧
""",
    "a cached answer": """
_answer = None


def fresh():
    global _answer
    if _answer is None:
        _answer = hasattr(pl, "load")
    return _answer


x = ⟦pl.load⟧ if fresh() else None
""",
    "an attribute of a class": """
class Compat:
    FRESH = hasattr(pltpu, "CompilerParams")


if Compat.FRESH:
    x = ⟦pl.load⟧
""",
    "a property": """
class Kernel:
    @property
    def fresh(self):
        return jax.__version_info__ >= (0, 7)

    def run(self):
        if self.fresh:
            return ⟦pl.load⟧
        return ⟦pl.store⟧
""",
    "an attribute of an object": """
class Kernel:
    def __init__(self):
        self.fresh = hasattr(pl, "load")

    def run(self, ref):
        return ⟦pl.load(ref, 0)⟧ if self.fresh else ref[0]
""",
    "a dict of flags": """
HAVE = {"params": hasattr(pltpu, "CompilerParams")}
x = ⟦pltpu.CompilerParams⟧ if HAVE["params"] else ⟦pltpu.TPUCompilerParams⟧
""",
    "a namespace of flags": """
from types import SimpleNamespace
flags = SimpleNamespace(fresh=hasattr(pl, "load"))
if flags.fresh:
    x = ⟦pl.load⟧
""",
    "a parameter": """
def params(fresh):
    if fresh:
        return ⟦pltpu.CompilerParams()⟧
    return ⟦pltpu.TPUCompilerParams()⟧


made = params(jax.__version_info__ >= (0, 7))
""",
    "a default": """
def params(fresh=hasattr(pltpu, "CompilerParams")):
    if fresh:
        return ⟦pltpu.CompilerParams()⟧
    return ⟦pltpu.TPUCompilerParams()⟧
""",
    "a flag of another module": """
from .compat import NEW_PALLAS
if NEW_PALLAS:
    x = ⟦pl.load⟧
""",
    "a flag that says what is there": """
from mine.flags import HAS_COMPILER_PARAMS
x = ⟦pltpu.CompilerParams⟧ if HAS_COMPILER_PARAMS else ⟦pltpu.TPUCompilerParams⟧
""",
    "a version of another module": """
from .env import JV
if JV >= (0, 7):
    x = ⟦pl.load⟧
""",
    "a function of another module": """
from mine.util import is_jax_at_least
if is_jax_at_least("0.7"):
    x = ⟦pl.load⟧
""",
    "a function with a version": """
from mine.util import at_least
if not at_least("0.7.1"):
    x = ⟦pl.load⟧
""",
    "a function of a module of shims": """
from mine import compat
if compat.jax_version() >= (0, 7) or compat.has_loads():
    x = ⟦pl.load⟧
""",
    "a flag by star": """
from mine.compat import *
if OLD_JAX:
    x = ⟦pl.load⟧
""",
    "the environment": """
import os
if os.environ.get("MINE_OLD_JAX"):
    x = ⟦pl.load⟧
""",
    "Python's version": """
import sys
if sys.version_info < (3, 10):
    x = ⟦pl.load⟧
""",
    "hasattr": """
if hasattr(pltpu, "TPUCompilerParams"):
    x = ⟦pltpu.TPUCompilerParams⟧
elif hasattr(pltpu, "CompilerParams"):
    x = ⟦pltpu.CompilerParams⟧
""",
    "getattr, then or": """
P = ⟦getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams⟧
made = ⟦P(dimension_semantics=("parallel",))⟧
""",
    "getattr that is None": """
P = getattr(pltpu, "CompilerParams", None)
if P is None:
    P = ⟦pltpu.TPUCompilerParams⟧
""",
    "a chain": """
x = hasattr(pl, "load") and ⟦pl.load⟧ or getattr(pl, "read", None) or ⟦pl.ref_get⟧
""",
    "a module by its string": """
import importlib
gpu = importlib.import_module("jax.experimental.pallas.mosaic_gpu")
if hasattr(gpu, "load"):
    x = ⟦plgpu.load⟧
""",
    "a loop over modules": """
for module in (pl, pltpu):
    if hasattr(module, "repeat"):
        x = ⟦pltpu.repeat⟧
""",
    "hasattr of a ref": """
def turned(x_ref):
    if hasattr(x_ref, "transpose"):
        return ⟦x_ref.T⟧
    return ⟦plgpu.transpose_ref(x_ref, (1, 0))⟧
""",
    "a comprehension": """
found = ⟦[getattr(pltpu, name) for name in ("A", "B") if hasattr(pltpu, name)]⟧
""",
    "the names of an enum": """
if "HBM" in pltpu.MemorySpace.__members__:
    x = ⟦pltpu.HBM⟧
else:
    x = ⟦pltpu.ANY⟧
""",
    "try and AttributeError": """
try:
    x = ⟦pl.load⟧
except AttributeError:
    x = ⟦pl.read⟧
""",
    "try and errors in a name": """
_ERRORS = (AttributeError, ImportError)
try:
    x = ⟦pl.load⟧
except _ERRORS:
    x = ⟦pl.read⟧
""",
    "try and any exception around names": """
try:
    x = ⟦pl.load⟧
except Exception:
    x = None
""",
    "try and bare except": """
def params(**kw):
    try:
        return ⟦pltpu.CompilerParams(**kw)⟧
    except:
        return ⟦pltpu.TPUCompilerParams(**kw)⟧
""",
    "try and TypeError": """
def kernel(body, s):
    try:
        return ⟦plgpu.kernel(body, out_type=s)⟧
    except TypeError:
        return ⟦plgpu.kernel(body, out_shape=s)⟧
""",
    "a flag set in a try": """
try:
    pltpu.CompilerParams
    fresh = True
except AttributeError:
    fresh = False
if fresh:
    x = ⟦pltpu.CompilerParams⟧
""",
    "a function with a try": """
def fresh():
    try:
        from jax.experimental.pallas.tpu import CompilerParams
        return True
    except ImportError:
        return False


if fresh():
    x = ⟦pltpu.CompilerParams⟧
""",
    "a name that may be missing": """
try:
    from jax.experimental.pallas.tpu import ⟦CompilerParams⟧
except ImportError:
    from jax.experimental.pallas.tpu import ⟦TPUCompilerParams as CompilerParams⟧
made = ⟦CompilerParams()⟧
""",
    "a name that may be missing, and an attribute": """
try:
    from jax.experimental.pallas.tpu import CompilerParams
except ImportError:
    CompilerParams = ⟦pltpu.TPUCompilerParams⟧
made = ⟦CompilerParams(vmem_limit_bytes=1)⟧
""",
    "a name of another package that may be missing": """
try:
    from mine.compat import Params
except ImportError:
    Params = ⟦pltpu.TPUCompilerParams⟧
""",
    "a missing name that is None": """
try:
    from jax.experimental.pallas.tpu import TPUCompilerParams
except ImportError:
    TPUCompilerParams = None
if TPUCompilerParams is not None:
    x = ⟦pltpu.TPUCompilerParams⟧
""",
    "suppress": """
import contextlib
with contextlib.suppress(AttributeError):
    x = ⟦pl.load⟧
""",
    "modules in an if": """
if LATER:
    ⟦from jax.experimental.pallas import triton as plt⟧
else:
    ⟦from jax.experimental.pallas import gpu as plt⟧
""",
    "a keyword by its signature": """
import inspect
names = inspect.signature(pl.kernel).parameters
if "out_type" in names:
    run = ⟦pl.kernel(body, out_type=s)⟧
else:
    run = ⟦pl.kernel(body, out_shape=s)⟧
""",
    "a helper of signatures": """
from inspect import signature


def accepts(function, word):
    return word in signature(function).parameters


run = ⟦pl.kernel(body, out_shape=s)⟧ if accepts(pl.kernel, "out_shape") else None
""",
    "the fields of a dataclass": """
import dataclasses
fields = {field.name for field in dataclasses.fields(pltpu.CompilerParams)}
if "has_side_effects" in fields:
    x = ⟦pltpu.CompilerParams(has_side_effects=True)⟧
""",
    "the code of a function": """
if pl.BlockSpec.__init__.__code__.co_varnames[1] == "index_map":
    spec = ⟦pl.BlockSpec(lambda i: (i, 0), (8, 128))⟧
""",
    "a dict of keywords by version": """
OLD = jax.__version_info__ < (0, 9)
kw = {⟦"out_shape"⟧: s} if OLD else {⟦"out_type"⟧: s}
run = pl.kernel(body, **kw)
""",
    "a dict of keywords filled in arms": """
kw = ⟦dict(out_shape=s)⟧
if jax.__version_info__ >= (0, 9):
    kw["out_type"] = kw.pop("out_shape")
run = pl.kernel(body, **kw)
""",
    "a keyword renamed by hand": """
def kernel(body, **rest):
    kw = ⟦{"scratch_types": 1, **rest}⟧
    kw["scratch_shapes"] = kw.pop("scratch_types")
    return pl.kernel(body, **kw)
""",
    "a decorator": """
if jax.__version_info__ < (0, 7):

    @⟦pl.with_scoped(pltpu.VMEM((8, 128), "float32"))⟧
    def kernel(x_ref, o_ref, scratch):
        o_ref[...] = x_ref[...]
""",
    "match": """
match jax.__version_info__[:2]:
    case (0, 4):
        x = ⟦pl.load⟧
    case _:
        x = ⟦pl.read⟧
""",
    "what follows a return": """
def params():
    if hasattr(pltpu, "CompilerParams"):
        return ⟦pltpu.CompilerParams()⟧
    return ⟦pltpu.TPUCompilerParams()⟧
""",
    "what follows a refusal of what is new": """
if jax.__version_info__ >= (0, 9):
    raise ImportError("there is no load")
x = ⟦pl.load⟧
""",
    "what follows a skip": """
import pytest


def test():
    if not hasattr(pl, "load"):
        pytest.skip("no load")
    assert ⟦pl.load⟧
""",
    "a table of both": """
x = ⟦{True: pltpu.CompilerParams, False: pltpu.TPUCompilerParams}[hasattr(pltpu, "X")]⟧
""",
    "a polyfill": """
def load(ref, index):
    return ref[⟦index⟧]


if not hasattr(pl, "load"):
    pl.load = load


def kernel(x_ref, o_ref):
    o_ref[...] = ⟦pl.load(x_ref, ...)⟧
    o_ref[...] = pl.load(«pltpu.repeat(x_ref, 2)», ...)
    «pl.store(o_ref, ..., 0)»
""",
    "a polyfill in a function": """
def install():
    pltpu.CompilerParams = ⟦pltpu.TPUCompilerParams⟧


install()
made = ⟦pltpu.CompilerParams()⟧
""",
    "a polyfill by setattr": """
setattr(pl, "load", lambda ref, index: ref[index])
x = ⟦pl.load⟧
""",
    "polyfills in a loop": """
NAMES = ("load", "store")
for name in NAMES:
    if not hasattr(pl, name):
        setattr(pl, name, globals()[name])
x = ⟦pl.load⟧, ⟦pl.store⟧, «pl.dot»
""",
    "a polyfill whose name cannot be seen": """
def install(name, value):
    setattr(pl, name, value)


x = ⟦pl.load⟧, «pltpu.repeat»
""",
    "a polyfill of a dict": """
vars(pl).setdefault("load", 1)
pltpu.__dict__["repeat"] = 2
x = ⟦pl.load⟧, ⟦pltpu.repeat⟧
""",
    "a polyfill of an enum": """
pltpu.TPUMemorySpace = pltpu.MemorySpace
x = ⟦pltpu.TPUMemorySpace.ANY⟧
""",
    "a method that is put there": """
pl.BlockSpec.__init__ = old_order
spec = ⟦pl.BlockSpec(lambda i: (i, 0), (8, 128))⟧
""",
    "a module that is put there": """
import sys
sys.modules["jax.experimental.pallas.gpu"] = sys.modules["jax.experimental.pallas.triton"]
⟦from jax.experimental.pallas.gpu import load⟧
""",
    "monkeypatch": """
def test(monkeypatch):
    monkeypatch.setattr(pltpu, "TPUCompilerParams", dict, raising=False)
    assert ⟦pltpu.TPUCompilerParams()⟧
""",
    "monkeypatch of a string": """
def test(monkeypatch):
    monkeypatch.setattr("jax.experimental.pallas.load", dict)
    assert ⟦pl.load⟧
""",
    "mock.patch": """
from unittest import mock


@mock.patch("jax.experimental.pallas.tpu.TPUCompilerParams")
def test(fake):
    assert ⟦pltpu.TPUCompilerParams⟧ is fake
""",
    "patch.object": """
from unittest.mock import patch
with patch.object(pl, "load"):
    x = ⟦pl.load⟧
""",
    "pytest.raises": """
import pytest


@pytest.mark.parametrize("space", [⟦pltpu.TPUMemorySpace.ANY⟧])
def test(space):
    def kernel(x_ref):
        return ⟦jax.tree_map(len, x_ref)⟧

    spec = pl.BlockSpec(memory_space=⟦pltpu.ANY⟧)
    x = «jax.tree_map»(len, [1])
    with pytest.raises(AttributeError):
        ⟦pl.store⟧(kernel, spec, x)
""",
    "pytest.raises of a function": """
import pytest


def test():
    pytest.raises(TypeError, ⟦pl.load⟧, 1)
""",
    "pytest.warns": """
import pytest


def test():
    with pytest.warns(DeprecationWarning):
        ⟦pltpu.TPUCompilerParams⟧
""",
    "importorskip of a version": """
import pytest
pytest.importorskip("jax", minversion="0.9")
x = ⟦pl.load⟧
""",
    "a mark": """
import pytest
old = pytest.mark.skipif(jax.__version_info__ >= (0, 9), reason="no load")


@old
def test():
    ⟦pl.load⟧
""",
    "a mark of a module": """
import pytest
pytestmark = [pytest.mark.skipif(not hasattr(pl, "load"), reason="no load")]
x = ⟦pl.load⟧
""",
    "a mark of a parameter": """
import pytest


@pytest.mark.parametrize("load", [
    ⟦pytest.param(pl.load, marks=pytest.mark.skipif(jax.__version__ > "0.9", reason=""))⟧,
])
def test(load):
    «pl.store»
""",
    "getattr with the old name for a default": """
P = ⟦getattr(pltpu, "CompilerParams", pltpu.TPUCompilerParams)⟧
Q = ⟦vars(pltpu).get("CompilerParams", pltpu.TPUCompilerParams)⟧
R = ⟦next((getattr(pltpu, n) for n in ("A", "B") if hasattr(pltpu, n)), pltpu.ANY)⟧
""",
    "a table that has a name": """
PARAMS = {
    True: lambda: ⟦pltpu.CompilerParams()⟧,
    False: lambda: ⟦pltpu.TPUCompilerParams()⟧,
}
made = PARAMS[hasattr(pltpu, "CompilerParams")]()
LOADS = {"old": lambda: ⟦pl.load⟧}
load = LOADS.get("old" if jax.__version_info__ < (0, 9) else "new")
""",
    "a function that is run under a test": """
IS_NEW = jax.__version_info__ >= (0, 7)


def kernel(x_ref, o_ref):
    @pl.when(IS_NEW)
    def _():
        o_ref[...] = ⟦pl.load(x_ref, ...)⟧

    <>


made = jax.lax.cond(IS_NEW, lambda: ⟦pltpu.CompilerParams⟧, lambda: ⟦pltpu.TPUCompilerParams⟧)
""".replace("<>", "pass"),
    "functions for either version": """
def _made(**kw):
    return ⟦pltpu.CompilerParams(**kw)⟧


def _made_before(**kw):
    return ⟦pltpu.TPUCompilerParams(**kw)⟧


made = _made if hasattr(pltpu, "CompilerParams") else _made_before
""",
    "a long function for old versions": """
def kernel_old(x_ref, o_ref):
    a = ⟦pl.load(x_ref, 0)⟧
    b = ⟦pl.load(x_ref, 1)⟧
    c = a + b
    d = c * c
    o_ref[...] = d


if jax.__version_info__ < (0, 9):
    run = kernel_old
""",
    "a decorator of versions": """
from mine import requires_jax


@requires_jax("<0.7")
def params():
    return ⟦pltpu.TPUCompilerParams()⟧
""",
    "a flag of another module that says nothing": """
from mine.settings import TYPED
P = ⟦pltpu.CompilerParams if TYPED else pltpu.TPUCompilerParams⟧


def run(body, s):
    if not TYPED:
        return ⟦plgpu.kernel(body, out_shape=s)⟧
    else:
        return ⟦plgpu.kernel(body, out_type=s)⟧
""",
    "a flag that says nothing, and a return": """
from mine.settings import TYPED


def params():
    if TYPED:
        return ⟦pltpu.CompilerParams()⟧
    return ⟦pltpu.TPUCompilerParams()⟧


if TYPED:

    def run(body, s):
        return ⟦plgpu.kernel(body, out_type=s)⟧

else:

    def run(body, s):
        return ⟦plgpu.kernel(body, out_shape=s)⟧
""",
    "try and any exception around one function": """
def read(ref):
    try:
        return ⟦pl.load(ref, 0)⟧
    except Exception:
        return ref[0]
""",
    "annotations beside a shim": """
def params(kind: ⟦"pltpu.TPUMemorySpace"⟧) -> ⟦"pltpu.TPUCompilerParams"⟧:
    if jax.__version_info__ >= (0, 7):
        return pltpu.CompilerParams()
    return pltpu.TPUCompilerParams()
""",
    "polyfills by other means": """
pltpu.__dict__.update(CompilerParams=⟦pltpu.TPUCompilerParams⟧)
type.__setattr__(pl, "load", 1)
x = ⟦pltpu.CompilerParams⟧, ⟦pl.load⟧
""",
    "a module of features": """
from .jax_versions import WITH_LOADS
from ._version_checks import TYPED
if WITH_LOADS and x:
    y = ⟦pl.load⟧
elif TYPED and x:
    y = ⟦pl.store⟧
""",
}

OTHERS = {
    "a missing module, or a broken one": """
try:
    «from jax.experimental.pallas import gpu as plt»
except (ImportError, AttributeError):
    plt = None
""",
    "jax that is too old, and the end": """
import sys
if jax.__version_info__ < (0, 4, 30):
    sys.exit("too old")
x = «pl.load»
""",
    "what both arms run": """
def kernel(x_ref, o_ref):
    o_ref[...] = «pl.load(x_ref, ...)»


if jax.__version_info__ >= (0, 7):
    out = pl.pallas_call(kernel, out_shape=s, compiler_params=pltpu.CompilerParams())
else:
    out = pl.pallas_call(kernel, out_shape=s, compiler_params=pltpu.TPUCompilerParams())
""",
    "everything that a file has": """
def kernel(x_ref, o_ref):
    a = «pl.load(x_ref, 0)»
    b = «pl.load(x_ref, 1)»
    c = a + b
    d = c * c
    o_ref[...] = d


if hasattr(jax, "shard_map"):
    run = kernel
""",
    "a flag of another module that says something else": """
from mine.settings import CAUSAL


def kernel(x_ref, o_ref):
    if CAUSAL:
        o_ref[...] = «pl.load(x_ref, ...)» * 2
    else:
        o_ref[...] = «pl.load(x_ref, ...)»
""",
    "what may fail anyhow": """
def moved(x):
    a = «pl.load»
    return a


try:
    y = moved(x)
except AttributeError:
    y = x
""",
    "a value that may not be known": """
def known(x):
    try:
        return «jax.core.concrete_or_error(int, x)»
    except Exception:
        return None
""",
    "a decorator of another kind": """
from typing_extensions import deprecated


@deprecated("use the other one")
@jax.jit
def kernel(x):
    return «pl.load»
""",
    "a module that may be missing": """
try:
    from jax.experimental.pallas import triton as plt
except ImportError:
    plt = None
if plt is not None:
    x = «plt.load»
""",
    "jax that may be missing": """
try:
    import jax.numpy as jnp
    from jax import lax
    HAVE = True
except ImportError:
    HAVE = False
if HAVE:
    x = «pl.load», «lax.pvary»
""",
    "TYPE_CHECKING": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    x: «pltpu.TPUCompilerParams»
""",
    "interpret": """
def run(x, interpret=False):
    if interpret:
        return «pl.load»
    return «pl.store»
""",
    "the backend": """
backend = jax.default_backend()
if backend == "tpu":
    x = «pl.load»
elif jax.devices()[0].platform == "gpu":
    x = «pl.store»
""",
    "the version of a chip": """
def tpu_version():
    return int(jax.devices()[0].device_kind[5])


chip_version = tpu_version()
if chip_version >= 5 and tpu_version() < 7:
    x = «pl.load»
""",
    "the version of a kernel": """
def attention(x, version=2, config=None):
    if version == 2 or config.version == 1:
        return «pl.load»
    return «pl.store»
""",
    "ordinary flags": """
from mine import DEBUG, USE_BF16
from mine.config import USE_PALLAS, HAS_TPU, HAS_PALLAS
from mine.compat import INTERPRET
if DEBUG or USE_BF16 or USE_PALLAS or HAS_TPU or HAS_PALLAS or INTERPRET:
    x = «pl.load»
""",
    "an ordinary flag of the file": """
FUSED = False
if BATCH > 1:
    FUSED = True
if FUSED:
    x = «pl.load»
""",
    "an ordinary attribute": """
class Kernel:
    def __init__(self, config):
        self.dtype = getattr(config, "dtype", None)

    def run(self):
        if self.dtype is not None:
            return «pl.load»
        return getattr(self, "scale", None) or «pl.store»
""",
    "hasattr of something else": """
def read(ref, x):
    if hasattr(x, "dtype") and not isinstance(ref, tuple):
        return «pl.load(ref, 0)»
    return ref
""",
    "the signature of something else": """
import inspect


def call(function):
    if "interpret" in inspect.signature(function).parameters:
        return «pl.load»
""",
    "what a shim makes is no answer": """
P = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
out = pl.pallas_call(kernel, compiler_params=P(allow_input_fusion=None))(x)
if out.ndim == 2:
    y = «pl.load»
""",
    "the arguments of what a shim binds": """
P = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
made = P(space=«pltpu.TPUMemorySpace.ANY»)
""",
    "a function of a module of shims": """
from mine.compat import shard_map
out = shard_map(f)(x)
if out.ndim:
    y = «pl.load»
""",
    "an error that is raised in passing": """
try:
    y = run(x)
except ValueError:
    y = «pl.load»
""",
    "a kernel with a slow way out": """
def run(x):
    try:
        out = «pl.pallas_call(kernel, out_shape=x)»(x)
    except Exception:
        out = slow(x)
    return out
""",
    "jax that is too old": """
if jax.__version_info__ < (0, 4, 30):
    raise ImportError("too old")
x = «pl.load»
""",
    "importorskip of jax": """
import pytest
pytest.importorskip("jax")
x = «pl.load»
""",
    "an assertion": """
assert jax.__version_info__ >= (0, 4, 30)
x = «pl.load»
""",
    "a test of a shape": """
def kernel(x_ref, o_ref):
    if x_ref.shape[0] >= 8 and o_ref.shape == (0, 8):
        o_ref[...] = «pl.load(x_ref, ...)»
""",
    "an alias": """
load = «pl.load»
x = load(ref, «pl.ds(0, 8)»)
""",
    "a setting of jax": """
jax.config.update("jax_enable_x64", True)
if jax.config.jax_enable_x64:
    x = «pl.load»
""",
    "own attributes": """
class Kernel:
    def __init__(self):
        self.load = «pl.load»
        self.pl = pl
""",
    "a dict that is read": """
kw = «dict(out_shape=s)»
name = kw["name"] = kw.get("name", "kernel")
""".replace('name = kw["name"] = kw.get("name", "kernel")', 'n = kw.get("name", "kernel")'),
    "an import in one arm": """
if interpret:
    «from jax.experimental.pallas import gpu as plt»
""",
}


def places(text: str) -> tuple[str, list[tuple[str, Span]]]:
    """The text without its marks, and the places with the mark that opened each."""
    plain, begun, found, end = "", [], [], 0
    for mark in _MARK.finditer(text):
        plain += text[end : mark.start()]
        end = mark.end()
        here = (plain.count("\n") + 1, len(plain) - plain.rfind("\n") - 1)
        if mark[0] in ("⟦", "«"):
            begun.append((mark[0], here))
        else:
            kind, start = begun.pop()
            found.append((kind, Span(*start, *here)))
    return plain + text[end:], found


def facts_of(text: str) -> Iterator[tuple[str, str, bool]]:
    plain, found = places(_IMPORTS + text)
    facts = Facts.parse(plain, "kernel.py")
    for kind, span in found:
        yield kind, facts._positions.source(span), facts.is_guarded(span)


@pytest.mark.parametrize("text", SHIMS.values(), ids=SHIMS)
def test_a_shim_is_guarded(text: str) -> None:
    found = list(facts_of(text))
    assert any(kind == "⟦" for kind, _, _ in found)
    assert [place for kind, place, guarded in found if guarded != (kind == "⟦")] == []


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_code_is_not_guarded(text: str) -> None:
    found = list(facts_of(text))
    assert found
    assert [place for _, place, guarded in found if guarded] == []


def test_what_a_file_puts_onto_modules_is_known() -> None:
    text = (
        "pl.load = 1\nsetattr(pltpu, 'CompilerParams', 2)\nvars(plgpu)['kernel'] = 3\n"
        "jax.config.x = 4\nother.load = 5\n"
    )
    polyfilled = Facts.parse(_IMPORTS + text, "kernel.py").polyfilled
    assert polyfilled == {"pl.load", "pltpu.CompilerParams", "plgpu.kernel", "jax.config.x"}


def test_a_long_way_to_a_flag_is_not_gone() -> None:
    chain = "".join(f"x{n} = x{n - 1} + 1\n" for n in range(1, 400))
    sums = "y = " + " + ".join(["x0"] * 250) + "\n"
    text = f"{_IMPORTS}x0 = 1\n{chain}{sums}if x399 or y:\n    z = pl.load\n"
    facts = Facts.parse(text, "kernel.py")
    assert not facts.is_guarded(facts.span(facts.tree.body[-1]))
