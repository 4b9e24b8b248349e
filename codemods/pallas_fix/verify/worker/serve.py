"""The warm process: imports jax once, then forks a child for every job.

It reads jobs as JSON lines on its standard input and answers with JSON lines on what was its
standard output. When the input closes, it ends with all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import warnings
from contextlib import suppress
from functools import partial

from . import network
from .child import Child
from .lines import Lines
from .processes import adopt_orphans

PATIENCE = 300
"""Seconds after which a worker ends that cannot import jax, whoever waits for it."""


def serve(target_text: str, where: str) -> None:
    """Answer jobs until the input ends.

    `target_text` is the target as JSON. Without a network, unless `where` is `device`: there the
    runtime itself talks to its parts through sockets.
    """
    target = json.loads(target_text)
    answers = os.dup(1)
    os.dup2(2, 1)

    def send(**event: object) -> None:
        os.write(answers, json.dumps(event).encode() + b"\n")

    adopt_orphans()
    cut_off = where != "device" and network.forbid()
    signal.alarm(PATIENCE)
    try:
        from . import chips, job

        chips.preload(target)
    except BaseException as error:
        send(event="broken", message=f"{type(error).__name__}: {error}")
        return
    signal.alarm(0)
    send(event="ready", tools=chips.tools(target), network=not cut_off)
    warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
    jobs = Lines(0)
    with suppress(BrokenPipeError):  # the tool is gone
        while (line := jobs.next()) is not None:
            task = json.loads(line)
            child = Child(task, partial(job.run, task, target), answers)
            send(event="exit", **child.watch(jobs))
            if jobs.ended:
                return
