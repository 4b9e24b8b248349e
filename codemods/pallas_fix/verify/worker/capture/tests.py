"""A pytest plugin: tells which tests have run, and leaves out those that ran before a crash.

A compiler that aborts takes the process of pytest with it. The command is run again then, without
the tests that are done and the one that did not come back.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .begin import PLUGIN, Capture

if TYPE_CHECKING:
    import pytest


def pytest_configure(config: pytest.Config) -> None:
    given = os.environ.get("PYTEST_ADDOPTS", "")
    os.environ["PYTEST_ADDOPTS"] = given.replace(PLUGIN, "").strip()  # not for what it starts
    if not hasattr(config, "workerinput"):
        _tell("tests", run=os.getpid())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    assert Capture.current is not None
    done = frozenset(Capture.current.settings["done"])
    left_out = [item for item in items if item.nodeid in done]
    if left_out:
        items[:] = [item for item in items if item.nodeid not in done]
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell("test", id=nodeid)
    assert Capture.current is not None
    if Capture.current.simulation is not None:
        Capture.current.simulation.start()


def pytest_runtest_logfinish(nodeid: str) -> None:
    assert Capture.current is not None
    if Capture.current.simulation is not None:
        Capture.current.simulation.tell()
    _tell("tested", id=nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        _tell("no more tests", run=os.getpid())


def _tell(event: str, **content: object) -> None:
    assert Capture.current is not None
    Capture.current.journal.tell(event, **content)
