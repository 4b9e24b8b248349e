"""What `pallas-fix explain` knows of rules and of error messages."""

from __future__ import annotations

import pytest

from pallas_fix.explain import answer, owners, table
from pallas_fix.rules import all_rules

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/run.py", line 3, in <module>
    matmul(x, y)
  File "/home/me/kernels/mm.py", line 17, in kernel
    pltpu.matmul_acc_lhs(acc_ref, x_ref[...])
  File "/env/lib/python3.13/site-packages/jax/_src/pallas/mosaic/primitives.py", line 9, in f
    raise ValueError(
ValueError: Expected an accumulator ref, got Ref<vmem>{float32[192,256]}
"""


@pytest.mark.parametrize("code", list(all_rules()))
def test_a_code_or_a_name_gives_the_page(code: str) -> None:
    rule = all_rules()[code]
    for word in (code, code.lower(), f" {rule.name}\n"):
        known, lines = answer(word, all_rules())
        assert known
        assert lines[0] == f"# {code} {rule.name}"
        assert "## Why it fails" in lines


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("ValueError: Expected an accumulator ref, got Ref<vmem>{float32[192,256]}", "TPU001"),
        ("ValueError: Expected an\n    accumulator ref,\n got Ref<smem>{float32[8,256]}", "TPU001"),
        ("Accumulator shape (64, 128) does not match value shape (128, 64)", "GPU002"),
        ("ValueError: Storing into an accumulator is not supported.", "TPU002"),
        (TRACEBACK, "TPU001"),
    ],
)
def test_a_message_gives_its_rule(message: str, code: str) -> None:
    assert owners(message, all_rules())[0].code == code
    known, lines = answer(message, all_rules())
    assert known
    assert lines[0].startswith(f"{code} [")
    assert any(line.endswith(f"pallas-fix explain {code}") for line in lines)


def test_a_traceback_names_the_file_to_repair() -> None:
    _, lines = answer(TRACEBACK, all_rules())
    assert "To repair it:      pallas-fix apply --select TPU001 /home/me/kernels/mm.py" in lines
    assert "The message: Expected an accumulator ref, got Ref<vmem>{float32[192,256]}" in lines, (
        lines
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TPU01", "no rule is called 'TPU01' (nearest: TPU001"),
        ("vmem-acumulator", "(nearest: vmem-accumulator"),
        ("TypeError: 'int' object is not callable", "no rule owns this message"),
        ("", "there is nothing to explain"),
    ],
)
def test_what_nobody_knows_is_said(text: str, said: str) -> None:
    known, lines = answer(text, all_rules())
    assert not known
    assert said in lines[0]


def test_the_table_has_a_line_for_each_rule() -> None:
    assert [line.split()[0] for line in table(all_rules())] == list(all_rules())
