"""One file: its bytes, its text, and how it is written back."""

from __future__ import annotations

import codecs
import os
import re
import stat
import tokenize
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 8 * 1024 * 1024
"""Files above this size are reported and left alone: no kernel is so long, generated data is."""

_BOM = b"\xef\xbb\xbf"
_TWO_LINES = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n)?){0,2}")


class SourceError(Exception):
    """A file that cannot be read, decoded, parsed or written: `message` says what to do.

    `detail` is more than a user needs: the traceback of an internal error.
    """

    def __init__(self, path: Path, line: int | None, message: str, detail: str = "") -> None:
        super().__init__(path, line, message, detail)
        self.path = path
        self.line = line
        self.message = message
        self.detail = detail

    def __str__(self) -> str:
        place = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(frozen=True)
class Source:
    """One file as it was read.

    `text` is decoded by the byte order mark or the coding cookie (PEP 263); its newlines are
    those of the file, and the mark is not part of it. Raises SourceError where the bytes are
    no text.
    """

    path: Path
    data: bytes
    text: str = field(init=False, repr=False)
    encoding: str = field(init=False)
    bom: bool = field(init=False)

    def __post_init__(self) -> None:
        bom = self.data.startswith(_BOM)
        body = self.data[len(_BOM) :] if bom else self.data
        encoding = _encoding(self.path, body, bom)
        text = _decode(self.path, body, encoding)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "encoding", encoding)
        object.__setattr__(self, "bom", bom)

    @classmethod
    def read(cls, path: Path) -> Source:
        """The source at `path`. Raises SourceError where it cannot be read or decoded."""
        return cls(path, read_bytes(path))

    def encode(self, text: str) -> bytes:
        """The bytes of a file like this one that holds `text`. Raises SourceError."""
        try:
            body = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            raise SourceError(
                self.path,
                line,
                f"the fix needs a character that {self.encoding} cannot hold; "
                "save the file as UTF-8 and run again",
            ) from None
        return _BOM + body if self.bom else body


def read_bytes(path: Path) -> bytes:
    """The bytes of the regular file at `path`. Raises SourceError."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(path, None, f"is {_kind(status.st_mode)}, not a regular file")
        if status.st_size > MAX_BYTES:
            raise _too_large(path)
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(path, None, f"cannot be read: {_reason(error)}") from None
    except ValueError as error:
        raise SourceError(path, None, f"cannot be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise _too_large(path)
    return data


def write(source: Source, text: str) -> str:
    """Put `text` in the place of `source`, whole or not at all.

    The new file is written beside the old one and renamed over it. Mode, owner and the target
    of a symbolic link are kept. Returns a note for the user, or an empty string. Raises
    SourceError, and then the file is as it was: if it cannot be written, or if it is no longer
    what was read.
    """
    data = source.encode(text)
    target = os.path.realpath(source.path)

    def check() -> None:
        if read_bytes(Path(target)) != source.data:
            raise SourceError(
                source.path, None, "changed on disk while it was worked on: not written; run again"
            )

    try:
        status = os.stat(target)
        if not os.access(target, os.W_OK):
            raise SourceError(source.path, None, "is read-only: not written")
        put(Path(target), data, check)
    except OSError as error:
        raise SourceError(
            source.path, None, f"cannot be written: {_reason(error)}; the file is unchanged"
        ) from None
    if status.st_nlink > 1:
        return f"{status.st_nlink - 1} other hard link(s) to this file keep the old text"
    return ""


def put(path: Path, data: bytes, check: Callable[[], None] = lambda: None) -> None:
    """Have a file with `data` at `path`, whole or not at all.

    Mode and owner are those of the file that was there, if there was one, and a symbolic link
    stays. Whatever `check` raises, right before the new file takes its place, leaves all as it
    was. Raises OSError.
    """
    import tempfile

    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    handle, temporary = tempfile.mkstemp(prefix=".pallas-fix-", suffix=".tmp", dir=folder)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            status = os.stat(target)
            with suppress(OSError, AttributeError):
                os.chown(temporary, status.st_uid, status.st_gid)
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        check()
        os.replace(temporary, target)
        temporary = ""
        _sync_folder(folder)
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    """The bits of a mode that this process does not give to new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _encoding(path: Path, body: bytes, bom: bool) -> str:
    first = _TWO_LINES.match(body)
    lines = iter(first.group().splitlines(keepends=True) if first else ())
    try:
        declared, _ = tokenize.detect_encoding(lambda: next(lines, b""))
        encoding = codecs.lookup(declared).name
    except SyntaxError as error:
        if "unknown encoding" not in str(error):
            return "utf-8"
        raise SourceError(
            path, None, f"{error}; correct the coding line or save as UTF-8"
        ) from None
    if bom and encoding != "utf-8":
        raise SourceError(
            path, None, f"has a UTF-8 byte order mark and declares {encoding}; remove one of them"
        )
    return encoding


def _decode(path: Path, body: bytes, encoding: str) -> str:
    null = body.find(b"\0")
    if null >= 0:
        raise SourceError(
            path, _line(body, null), "holds a null byte: not Python source; exclude it"
        )
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise SourceError(
            path,
            _line(body, error.start),
            f"byte 0x{body[error.start]:02x} is not {encoding}; save the file as UTF-8, or "
            "declare its encoding in the first line: # -*- coding: latin-1 -*-",
        ) from None
    except (LookupError, ValueError):
        raise SourceError(path, None, f"{encoding} is no encoding of text; save as UTF-8") from None
    if encoding != "utf-8" and not _survives(text, body, encoding):
        raise SourceError(
            path, None, f"does not survive decoding and encoding as {encoding}; save it as UTF-8"
        )
    return text


def _survives(text: str, body: bytes, encoding: str) -> bool:
    try:
        return text.encode(encoding) == body
    except UnicodeEncodeError:
        return False


def _line(body: bytes, offset: int) -> int:
    before = body[:offset]
    return len(re.findall(rb"\r\n|\r|\n", before)) + 1


def _too_large(path: Path) -> SourceError:
    return SourceError(
        path, None, f"is too large (more than {MAX_BYTES // 1024 // 1024} MB): not read; exclude it"
    )


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _sync_folder(folder: str) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
