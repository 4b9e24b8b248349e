"""The command line, run in the process of the tests."""

from __future__ import annotations

import io
import sys

import pytest

from pallas_fix.cli import main


class Console:
    """Runs the command line in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        self._patch = patch

    def call(self, *words: str, given: bytes = b"") -> tuple[int, bytes, str]:
        """Exit status, stdout, stderr."""
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        self._capture.readouterr()
        with pytest.raises(SystemExit) as end:
            main(words)
        out, error = self._capture.readouterr()
        assert b"Traceback" not in error
        assert isinstance(end.value.code, int)
        return end.value.code, out, error.decode()

    def apply(self, *words: str, given: bytes = b"") -> tuple[int, bytes, str]:
        return self.call("apply", "--no-verify", *words, given=given)

    def fixed(self, data: bytes) -> bytes:
        """What `apply` makes of a file with these bytes."""
        status, out, error = self.apply("-", given=data)
        assert status == 0, error
        assert out != data
        return out
