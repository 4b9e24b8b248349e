"""Cases: how one says what a kernel is to be verified with.

    [path.py:]qualname(args) [@ target, ...]
    [path.py:]qualname = maker [@ target, ...]

An argument is `dtype[shape]` as jax prints it (`bf16[192,256]`), with values if they matter
(`i32[8]:range(0,64)`, `:zeros`, `:file(x.npy)`); a random key `key<fry>[]`; a dtype
(`jnp.bfloat16`, `np.int8`, or `dtype<bf16>` for what an array has); a Python literal; `(...)`,
`[...]` or `{'k': ...}` of these; or `name=` before any of them. A maker is a function without
arguments in the same file that returns `(args, kwargs)`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from pallas_fix.dtypes import DTYPES
from pallas_fix.targets import find_target
from pallas_fix.verify.arguments import KEYS, Array, Dtype, Group, Key, Literal, Value, Values
from pallas_fix.verify.tokens import CaseError, Tokens

__all__ = ["MODULE", "Case", "CaseError", "declared_cases", "parse_case"]

MODULE = "<module>"
"""The entry of a case that is the file's own top-level code."""


@dataclass(frozen=True, slots=True)
class Case:
    """An entry with its arguments; `str` gives the canonical text, which parses to the same.

    `path` is relative to the project's root, None for the file that is being verified.
    `derived` tells a case that pallas-fix made up from one that somebody wrote.
    """

    entry: str
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()
    maker: str | None = None
    path: str | None = None
    targets: tuple[str, ...] = ()
    derived: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        words = [str(arg) for arg in self.args]
        words += [f"{name}={value}" for name, value in self.kwargs]
        call = f" = {self.maker}" if self.maker else f"({', '.join(words)})"
        where = f"{self.path}:" if self.path else ""
        targets = f" @ {', '.join(self.targets)}" if self.targets else ""
        return f"{where}{self.entry}{call}{targets}"


def parse_case(text: str) -> Case:
    """Read one case. Raises CaseError."""
    return _Parser(text).case()


_COMMENT = re.compile(r"#\s*pallas-fix:\s*case\b\s*(.*)")


def declared_cases(text: str) -> Iterator[tuple[int, Case | CaseError]]:
    """Yield the cases declared by comments `# pallas-fix: case ...`, with their lines.

    Yields the error in the place of a case that does not parse. Reads as far as the text can be
    split into tokens.
    """
    if "pallas-fix:" not in text:
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                try:
                    yield token.start[0], parse_case(match[1].strip())
                except CaseError as error:
                    yield token.start[0], error
    except (tokenize.TokenError, SyntaxError):
        return


_PATH = re.compile(r"\s*(?P<path>[^()=@]+?\.py)\s*:(?=\s*[\w<])")


class _Parser(Tokens):
    """Reads one case from the tokens of `tokenize`."""

    def __init__(self, text: str) -> None:
        path = _PATH.match(text)
        self.path = path["path"].strip() if path else None
        super().__init__(text, path.end() if path else 0)

    def qualname(self, what: str) -> str:
        if self.accept("<"):
            if self.name("'module'") != "module":
                self.fail("only '<module>' may be written so")
            self.expect(">")
            return MODULE
        words = [self.name(what)]
        while self.accept("."):
            words.append(self.name("a name"))
        return ".".join(words)

    def case(self) -> Case:
        entry = self.qualname("the name of a function")
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        maker = None
        if self.accept("="):
            maker = self.qualname("the name of a maker")
        else:
            self.expect("(")
            while not self.accept(")"):
                self.argument(args, kwargs)
                if self.peek() != ")":
                    self.expect(",")
        targets = self.targets() if self.accept("@") else ()
        if self.tokens[self.position].type != tokenize.ENDMARKER:
            self.fail(f"expected the end, found {self.peek()!r}")
        if entry == MODULE and (args or kwargs or maker):
            self.fail("'<module>' takes no arguments", self.tokens[0])
        return Case(entry, tuple(args), tuple(kwargs.items()), maker, self.path, targets)

    def targets(self) -> tuple[str, ...]:
        found: list[str] = []
        while not found or self.accept(","):
            token = self.tokens[self.position]
            name = self.name("the name of a target")
            try:
                found.append(find_target(name).name)
            except ValueError as error:
                self.fail(str(error), token)
        return tuple(found)

    def argument(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        token, after = self.tokens[self.position : self.position + 2]
        if token.type == tokenize.NAME and after.string == "=":
            self.position += 2
            if token.string in kwargs:
                self.fail(f"{token.string!r} is given twice", token)
            kwargs[token.string] = self.value()
        elif kwargs:
            self.fail("an argument without a name follows one with a name", token)
        else:
            args.append(self.value())

    def value(self) -> Value:
        token = self.tokens[self.position]
        if token.string in ("(", "["):
            return self.sequence()
        if token.string == "{":
            return self.mapping()
        if token.type == tokenize.NAME and token.string not in ("True", "False", "None"):
            return self.named(token.string)
        return self.literal()

    def named(self, name: str) -> Value:
        if name == "key":
            return self.key()
        if name in ("jnp", "np", "dtype"):
            return self.dtype()
        return self.array()

    def dtype(self) -> Dtype:
        kind = self.take().string
        self.expect("<" if kind == "dtype" else ".")
        token = self.tokens[self.position]
        name = self.name("the name of a dtype")
        if kind == "dtype":
            self.expect(">")
            short = name if name in DTYPES else None
        else:
            short = next((short for short, full in DTYPES.items() if full == name), None)
        if short is None:
            known = DTYPES if kind == "dtype" else DTYPES.values()
            self.fail(f"{name!r} is no dtype (known: {' '.join(known)})", token)
        return Dtype(kind, short)

    def literal(self) -> Literal:
        first = self.take()
        text = first.string
        if text in ("-", "+"):
            text += self.take().string
        while first.type == tokenize.STRING and self.tokens[self.position].type == tokenize.STRING:
            text += " " + self.take().string
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            self.fail(f"expected an argument, found {text or 'the end'!r}", first)
        return Literal(value)

    def sequence(self) -> Group:
        bracket = self.take().string
        close = ")" if bracket == "(" else "]"
        items: list[Value] = []
        comma = False
        while not self.accept(close):
            items.append(self.value())
            comma = self.accept(",")
            if not comma and self.peek() != close:
                self.expect(",")
        if bracket == "(" and len(items) == 1 and not comma:
            self.fail("a tuple of one value ends in ',)'", self.tokens[self.position - 1])
        return Group(bracket, tuple(items))

    def mapping(self) -> Group:
        self.expect("{")
        keys: list[Literal] = []
        items: list[Value] = []
        while not self.accept("}"):
            keys.append(self.literal())
            self.expect(":")
            items.append(self.value())
            if self.peek() != "}":
                self.expect(",")
        return Group("{", tuple(items), tuple(keys))

    def shape(self) -> tuple[int, ...]:
        self.expect("[")
        sizes: list[int] = []
        while not self.accept("]"):
            sizes.append(self.integer("a size"))
            if self.peek() != "]":
                self.expect(",")
        return tuple(sizes)

    def array(self) -> Array:
        token = self.take()
        if token.string not in DTYPES:
            hint = "write 'bf16[8,128]' for an array, a literal, or use a maker for anything else"
            if self.peek() == "[":
                hint = f"known: {' '.join(DTYPES)}"
            self.fail(f"{token.string!r} is no dtype ({hint})", token)
        shape = self.shape()
        return Array(token.string, shape, self.values() if self.accept(":") else None)

    def values(self) -> Values:
        token = self.tokens[self.position]
        kind = self.name("'range(low,high)', 'zeros' or 'file(x.npy)'")
        if kind == "zeros":
            return Values("zeros")
        if kind == "range":
            self.expect("(")
            low = self.integer("the lowest value", signed=True)
            self.expect(",")
            high = self.integer("the bound above", signed=True)
            self.expect(")")
            if low >= high:
                self.fail("the range is empty: the first number must be below the second", token)
            return Values("range", low, high)
        if kind != "file":
            self.fail(
                f"values are 'range(low,high)', 'zeros' or 'file(x.npy)': not {kind!r}", token
            )
        return Values("file", path=self.file())

    def file(self) -> str:
        opened = self.tokens[self.position]
        self.expect("(")
        start = self.offset + opened.end[1]
        while self.peek() != ")":
            if self.take().type == tokenize.ENDMARKER:
                self.fail("')' is missing after the name of the file")
        path = self.text[start : self.offset + self.take().start[1]].strip().strip("'\"")
        if not path:
            self.fail("the name of the file is missing", opened)
        return path

    def key(self) -> Key:
        self.take()
        self.expect("<")
        token = self.tokens[self.position]
        kind = self.name("the kind of key")
        if kind not in KEYS:
            self.fail(f"unknown kind of key {kind!r} (known: {', '.join(KEYS)})", token)
        self.expect(">")
        return Key(kind, self.shape())
