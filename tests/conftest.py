"""What every test has around it."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test finds what an earlier run has left."""
    os.environ["PALLAS_FIX_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
