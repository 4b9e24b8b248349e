"""Every message of the catalogue is explained: what it means, since when, and what repairs it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalogue import entries
from pallas_fix.explain import answer
from pallas_fix.meanings import Meaning, meanings, table
from pallas_fix.rules import all_rules

TESTS = Path(__file__).parent
RULES = all_rules()
ELSEWHERE = {"tpu_DeviceIdType"}
"""Cases in which another rule repairs this use of the name."""

AT_LOWERING = """\
Traceback (most recent call last):
  File "/home/me/kernels/mm.py", line 17, in run
    return pl.pallas_call(kernel, out_shape=out, compiler_params=params)(x)
  File "/env/lib/python3.13/site-packages/jax/_src/interpreters/mlir.py", line 2678, in lower
    output = type_cast(Sequence[IrValues], rule(ctx, *rule_args, **rule_kwargs))
  File "/env/lib/python3.13/site-packages/jax/_src/pallas/{file}", line 937, in {function}
    assert {test}
           ^^^^^^^^^^^^^^^^
AssertionError
"""
IN_A_PIPELINE = """\
Traceback (most recent call last):
  File "/env/lib/python3.13/site-packages/jax/_src/pallas/mosaic_gpu/pipeline.py", line 9, in body
    next_carry = body(indices, *refs)
{frame}TypeError: {words}
"""
OWN_FRAME = '  File "/home/me/kernels/mm.py", line 17, in step\n    plgpu.inline_mgpu((), None)\n'


@dataclass(frozen=True)
class Message:
    """One message of jax, and the rule that it leads to; no code where none repairs it."""

    case: str
    code: str
    since: str
    text: str


def messages() -> list[Message]:
    """The messages in `messages.toml`."""
    with (TESTS / "messages.toml").open("rb") as handle:
        return [Message(**entry) for entry in tomllib.load(handle)["message"]]


EVERY = messages()
CASES = {entry.name: entry for entry in entries()}


def explained(text: str) -> str:
    known, lines = answer(text, RULES)
    assert known, lines
    return "\n".join(lines)


@pytest.mark.parametrize("message", EVERY, ids=lambda message: f"{message.case}: {message.text}")
def test_a_message_is_explained(message: Message) -> None:
    first = next(iter(meanings(message.text)))
    assert (first.code, first.since) == (message.code, message.since)
    lines = explained(message.text)
    assert "What it means: " in lines
    assert f"Since jax {message.since}." in lines
    if message.code in RULES:
        assert lines.startswith(f"{message.code} [")
        assert f"To repair it:      pallas-fix apply --select {message.code} PATH" in lines
    else:
        assert lines.startswith("No rule repairs this.")
    if not message.code:
        assert "What to do: " in lines


def test_the_rules_that_messages_name_exist() -> None:
    named = {entry.code for entry in table() if entry.code} | {m.code for m in EVERY if m.code}
    assert named <= set(RULES)


@pytest.mark.parametrize("message", EVERY, ids=lambda message: f"{message.case}: {message.text}")
def test_the_rule_finds_what_gives_the_message(message: Message) -> None:
    entry = CASES.get(message.case)
    if entry is None or "inspect." in entry.before or message.code not in RULES:
        return
    outcome = entry.fix(entry.before)
    codes = {finding.code for finding in (*outcome.applied, *outcome.remaining)}
    assert message.code in codes or message.case in ELSEWHERE


@pytest.mark.parametrize("known", table(), ids=lambda known: f"{known.text} {known.where}")
def test_a_message_of_the_table_is_the_one_it_finds(known: Meaning) -> None:
    assert bool(known.frame) <= bool(known.where)
    assert bool(known.code) or bool(known.way_out), known.text
    if not known.frame:
        assert next(iter(meanings(known.text))).meaning == known.meaning


@pytest.mark.parametrize(
    ("file", "function", "test", "said"),
    [
        ("pallas_call.py", "gpu_lowering", "rule is not None", "`plgpu.CompilerParams` of Mosaic"),
        ("mosaic/lowering.py", "alloc_accumulator", "rows % n == 0", "accumulator made by"),
        ("mosaic/lowering.py", "elsewhere", "x", "An assertion inside of Pallas"),
    ],
)
def test_an_assertion_without_a_text_is_known_by_its_frame(
    file: str, function: str, test: str, said: str
) -> None:
    lines = explained(AT_LOWERING.format(file=file, function=function, test=test))
    assert said in " ".join(lines.split())


def test_the_frame_that_raises_it_counts() -> None:
    words = "step() takes 2 positional arguments but 3 were given"
    assert "gets the indices" in explained(IN_A_PIPELINE.format(frame="", words=words))
    words = "inline_mgpu() takes 0 positional arguments but 2 were given"
    lines = explained(IN_A_PIPELINE.format(frame=OWN_FRAME, words=words))
    assert "by keyword" in " ".join(lines.split())


def test_a_name_that_no_table_knows_is_not_called_renamed() -> None:
    known, lines = answer("module 'jax' has no attribute 'frobnicate'", RULES)
    assert not known
    assert lines[0] == "no rule owns this message"
