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
    print, `file` the largest file that it may write, `processes` how many it may have at once.
    """

    wall: int = 180
    cpu: int = 720
    memory: int = 12 << 30
    output: int = 32 << 20
    file: int = 1 << 30
    processes: int = 128


@dataclass(frozen=True, slots=True)
class End:
    """The end of a worker's child.

    `code` is its return code, negative for a signal. `reason` is empty where it ended by itself,
    else a word for why it was ended: a key of `_REASONS`, or `wall`, `output`, `processes`.
    `output` is the end of what it printed.
    """

    code: int
    reason: str
    output: str


def finish(
    stages: list[StageResult], begun: str | None, end: End, limits: Limits, root: str
) -> None:
    """Complete the stages of a job with what its end says.

    `begun` is the stage that was begun and not ended; `root` the folder of the user's code.
    """
    well = not end.reason and not end.code
    if begun is not None or (not well and all(stage.ok for stage in stages)):
        stage = begun or (stages.pop().stage if stages else Stage.IMPORT)
        error, message = explain(end, limits)
        message = f"{message} (during {stage})"
        ok: bool | None = False
        if excuse := _excuse(end):
            ok, error, message = None, "", f"stage not available: {excuse}"
        result = StageResult(Stage(stage), ok, error=error, message=message)
        stages.append(replace(result, where=_where(end.output, root)))
    elif stages and stages[-1].ok is False and _PTXAS_FAILED in stages[-1].message:
        said = dict.fromkeys(_PTXAS.findall(end.output))
        message = "; ".join([stages[-1].message, *list(said)[:3]])
        stages[-1] = replace(stages[-1], message=message)


def _where(output: str, root: str) -> str:
    """The innermost line below `root` in the stacks that Python's `faulthandler` prints."""
    if not root:
        return ""
    place = re.search(rf'^  File "{re.escape(root)}/([^"\n]+)", line (\d+) in ', output, re.M)
    return f"{place[1]}:{place[2]}" if place else ""


def _excuse(end: End) -> str:
    """Why an end says nothing of the kernel; empty where it does."""
    if end.reason == "broken":
        lines = [line.strip() for line in end.output.split("\n") if line.strip()]
        return f"the worker itself failed: {lines[-1] if lines else 'it said nothing'}"
    flags = _FLAGS.search(end.output) if end.code else None
    if flags is None:
        return ""
    return f"correct XLA_FLAGS or LIBTPU_INIT_ARGS: {(flags[1] or flags[2]).strip()}"


_FLAGS = re.compile(
    r"parse_flags_from_env\.cc:\d+\] ([^\n]*)|ERROR: (Unknown command line flag[^\n]*)"
)
"""What XLA and libtpu say of a flag before they end the process (xla/parse_flags_from_env.cc)."""

_PTXAS_FAILED = "Pass pipeline failed"
"""All that jax up to 0.11.2 says where ptxas refuses; its words are only printed."""

_PTXAS = re.compile(r"(?:error|fatal)\s*: [^\n]*")

_LAST_WORDS = re.compile(
    r"Check failed: [^\n]*|LLVM ERROR[^\n]*"
    r"|Fatal Python error: (?!Segmentation|Aborted|Bus|Floating|Illegal)[^\n]*"
)
"""What compilers print before they abort the process; Python has its own names for signals."""

_NO_MEMORY = re.compile(r"std::bad_alloc|MemoryError|[Oo]ut of memory|Cannot allocate memory")

_REASONS = {
    "stopped": ("Interrupted", "the run was interrupted"),
    "stuck": ("Deadlock", "nothing moves any more: its threads wait for each other"),
    "paused": ("Stopped", "the code stopped its own process, which then waits for ever"),
    "memory": ("MemoryError", "the system has no memory left and killed the process"),
    "disk": ("DiskLimit", "it fills the disk, so it was stopped"),
    "protocol": ("Protocol", "the code wrote to a file of the worker, which it did not open"),
    "cut": ("Protocol", "the code closed a file of the worker, which cannot report any more"),
}

_SIGNALS = {
    signal.SIGKILL: "the process was killed (SIGKILL), by its own code or from outside",
    signal.SIGSYS: "the process asked the system for what a worker may not do (SIGSYS)",
}


def explain(end: End, limits: Limits) -> tuple[str, str]:
    """The name of the error of a job that did not end well, and one sentence."""
    match end.reason:
        case "wall":
            return "Timeout", f"no end after {limits.wall} s, so the process was stopped"
        case "output":
            most = limits.output >> 20
            return "OutputLimit", f"it printed more than {most} MB, so it was stopped"
        case "processes":
            most = limits.processes
            return "ProcessLimit", f"it had more than {most} processes, so it was stopped"
    if end.reason in _REASONS:
        return _REASONS[end.reason]
    if end.code >= 0:
        return "Exit", f"the code ended the process with status {end.code}"
    try:
        name = signal.Signals(-end.code).name
    except ValueError:
        name = f"signal {-end.code}"
    if name == "SIGXCPU":
        return "CpuLimit", f"it used {limits.cpu} s of processor time, so it was stopped"
    if name == "SIGXFSZ":
        return "FileLimit", f"it wrote a file of more than {limits.file >> 20} MB"
    if -end.code in _SIGNALS:
        return name, _SIGNALS[signal.Signals(-end.code)]
    if _NO_MEMORY.search(end.output):
        return name, f"the process needs more memory than its limit of {limits.memory >> 30} GB"
    words = _LAST_WORDS.search(end.output)
    said = f": {words[0].strip()}" if words else ""
    return name, f"the process crashed with {name}{said}"
