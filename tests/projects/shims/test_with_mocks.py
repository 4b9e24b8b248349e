from unittest import mock

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mylib import kernels


@mock.patch("jax.experimental.pallas.tpu.TPUCompilerParams", create=True)
def test_patched(fake):
    kernels.matmul(None, None)
    assert pltpu.TPUCompilerParams is fake
    fake.assert_called_once()


def test_object():
    with mock.patch.object(pl, "load", create=True) as load:
        kernels.copy(None)
        pl.load(None, ())
    load.assert_called()


@pytest.fixture
def old_jax(monkeypatch):
    monkeypatch.setattr(pltpu, "TPUMemorySpace", pltpu.MemorySpace, raising=False)
    monkeypatch.delattr(pltpu, "HBM", raising=False)
    monkeypatch.setattr(jax, "__version__", "0.4.35")
    monkeypatch.setattr(kernels.pltpu, "repeat", lambda x, n, axis: x)


def test_old_space(old_jax):
    assert kernels.space() == pltpu.TPUMemorySpace.ANY
    assert pltpu.repeat(1, 2, 0) == 1


def test_multiple():
    with mock.patch.multiple(pl, store=mock.DEFAULT, swap=mock.DEFAULT, create=True):
        pl.store(None, (), 1)
        pl.swap(None, (), 1)
