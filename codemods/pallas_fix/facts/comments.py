"""The comments of a text, with their places."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from pallas_fix.edits import Span

_RETURN = re.compile(r"\r\n?")


def tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text, also where carriage returns end its lines.

    Raises SyntaxError or tokenize.TokenError where it cannot be split into tokens.
    """
    lines = io.StringIO(_RETURN.sub("\n", text.removeprefix("\ufeff")))
    return tokenize.generate_tokens(lines.readline)


@lru_cache(maxsize=4)
def comments(text: str) -> tuple[tuple[Span, str], ...]:
    """Each comment with its place; none where the text cannot be split into tokens."""
    try:
        found = [token for token in tokens(text) if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError):
        return ()
    return tuple((Span(*token.start, *token.end), token.string) for token in found)
