"""The words of a case, one after the other, and errors that point at one of them."""

from __future__ import annotations

import io
import tokenize
from typing import NoReturn


class CaseError(Exception):
    """A text that is no case: the text, the column (from 1) where it goes wrong, and why."""

    def __init__(self, text: str, column: int, message: str) -> None:
        super().__init__(f"case {text!r}, column {column}: {message}")
        self.text = text
        self.column = column
        self.message = message


class Tokens:
    """The tokens of `text` from `start` on, as Python splits them, and a position among them."""

    def __init__(self, text: str, start: int) -> None:
        """Raises CaseError for an empty text and one with an open bracket or quote."""
        self.text = text
        self.tokens: list[tokenize.TokenInfo] = []
        self.position = 0
        body = text[start:].lstrip()
        self.offset = len(text) - len(body)
        if not body:
            raise CaseError(text, 1, "it is empty (example: `matmul(bf16[64,256], bf16[256,256])`)")
        try:
            for token in tokenize.generate_tokens(io.StringIO(body).readline):
                if token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                    self.tokens.append(token)
        except (tokenize.TokenError, SyntaxError):
            raise CaseError(text, len(text) + 1, "a bracket or a quote is not closed") from None

    def fail(self, message: str, token: tokenize.TokenInfo | None = None) -> NoReturn:
        """Raise CaseError at a token, by default the next one."""
        token = token or self.tokens[self.position]
        at_end = token.type == tokenize.ENDMARKER
        column = len(self.text) if at_end else self.offset + token.start[1]
        raise CaseError(self.text, column + 1, message)

    def peek(self) -> str:
        """The next token's text, empty at the end."""
        return self.tokens[self.position].string

    def take(self) -> tokenize.TokenInfo:
        """The next token, which is passed; the end stays."""
        token = self.tokens[self.position]
        self.position += token.type != tokenize.ENDMARKER
        return token

    def accept(self, word: str) -> bool:
        """Pass the next token if it is `word`."""
        found = self.peek() == word
        self.position += found
        return found

    def expect(self, word: str) -> None:
        """Pass the next token, which must be `word`."""
        if not self.accept(word):
            self.fail(f"expected {word!r}, found {self.peek() or 'the end'!r}")

    def name(self, what: str) -> str:
        """Pass a name and return it; `what` says in the error what it should be."""
        token = self.take()
        if token.type != tokenize.NAME:
            self.fail(f"expected {what}, found {token.string or 'the end'!r}", token)
        return token.string

    def integer(self, what: str, signed: bool = False) -> int:
        """Pass a whole number and return it; `signed` allows a minus."""
        sign = -1 if signed and self.accept("-") else 1
        token = self.take()
        try:
            return sign * int(token.string, 0)
        except ValueError:
            self.fail(
                f"expected {what} (a whole number), found {token.string or 'the end'!r}", token
            )
