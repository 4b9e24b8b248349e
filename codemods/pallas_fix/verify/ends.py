"""How jobs end that do not end by themselves: in one line, with the stage they were in."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace

from pallas_fix.verify.verdict import Stage, StageResult


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use: `wall` and `cpu` in seconds, the others in bytes.

    `memory` is address space; compiling for a TPU needs 3 GB of it. `output` is what the job may
    print, `file` the largest file that it may write.
    """

    wall: int = 180
    cpu: int = 180
    memory: int = 12 << 30
    output: int = 32 << 20
    file: int = 1 << 30


@dataclass(frozen=True, slots=True)
class End:
    """The end of a worker's child.

    `code` is its return code, negative for a signal. `reason` is empty where it ended by itself,
    else `wall` or `output` for the limit that ended it, `stuck` where it waited for nothing, or
    `stopped` where nobody waits any more.
    `output` is the end of what it printed.
    """

    code: int
    reason: str
    output: str


def finish(stages: list[StageResult], begun: str | None, end: End, limits: Limits) -> None:
    """Complete the stages of a job with what its end says.

    `begun` is the stage that was begun and not ended.
    """
    if begun is not None:
        error, message = explain(end, limits)
        message = f"{message} (during {begun})"
        stages.append(StageResult(Stage(begun), False, error=error, message=message))
    elif stages and stages[-1].ok is False and _PTXAS_FAILED in stages[-1].message:
        said = dict.fromkeys(_PTXAS.findall(end.output))
        message = "; ".join([stages[-1].message, *list(said)[:3]])
        stages[-1] = replace(stages[-1], message=message)


_PTXAS_FAILED = "Pass pipeline failed"
"""All that jax up to 0.11.2 says where ptxas refuses; its words are only printed."""

_PTXAS = re.compile(r"(?:error|fatal)\s*: [^\n]*")

_LAST_WORDS = re.compile(r"Check failed: [^\n]*|LLVM ERROR[^\n]*|Fatal Python error[^\n]*")
"""What compilers print before they abort the process."""

_NO_MEMORY = re.compile(r"std::bad_alloc|MemoryError|[Oo]ut of memory|Cannot allocate memory")


def explain(end: End, limits: Limits) -> tuple[str, str]:
    """The name of the error of a job that did not end well, and one sentence."""
    if end.reason == "wall":
        return "Timeout", f"no end after {limits.wall} s, so the process was stopped"
    if end.reason == "stuck":
        return "Deadlock", "nothing moves any more: its threads wait for each other"
    if end.reason == "output":
        return "OutputLimit", f"it printed more than {limits.output >> 20} MB, so it was stopped"
    if end.reason == "stopped":
        return "Interrupted", "the run was interrupted"
    if end.code >= 0:
        return "Exit", f"the code ended the process with status {end.code}"
    try:
        name = signal.Signals(-end.code).name
    except ValueError:
        name = f"signal {-end.code}"
    if name == "SIGXCPU":
        return "CpuLimit", f"it used {limits.cpu} s of processor time, so it was stopped"
    if name == "SIGKILL":
        return name, "the system killed the process, most likely for lack of memory"
    if _NO_MEMORY.search(end.output):
        return name, f"the process needs more memory than its limit of {limits.memory >> 30} GB"
    words = _LAST_WORDS.search(end.output)
    said = f": {words[0].strip()}" if words else ""
    return name, f"the process crashed with {name}{said}"
