"""Code with holes: what rules write, with the code of the file put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import libcst as cst

from pallas_fix.edits import Code, Span
from pallas_fix.rewrite.locate import IndexList, NotFound
from pallas_fix.rewrite.parens import code_of, fit, is_bracketed, own_code

Resolve = Callable[[Span], cst.CSTNode | IndexList]
"""What a hole stands for: an expression, a slice or index list, an argument, a statement."""

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement

_HOLE = re.compile(r"\$([A-Za-z_]\w*)")
_PREFIX = "_pallas_fix_hole_"
_PLACEHOLDER = re.compile(_PREFIX + r"(\w+?)_end\b")
_INDENT = " " * 4
_N = TypeVar("_N", bound=cst.CSTNode)


@dataclass(frozen=True, slots=True)
class Template:
    """Writes code into one file: with its indentation, and the parts that `resolve` finds."""

    indent: str
    resolve: Resolve

    def expression(self, code: Code) -> cst.BaseExpression:
        """One expression. Raises NotFound where the code is none."""
        text = self._text(code)
        try:
            return self._parsed(code, text)
        except cst.ParserSyntaxError:
            try:
                return self._parsed(code, f"({text})")
            except cst.ParserSyntaxError:
                raise NotFound(f"`{code.text}` is no expression") from None

    def indexes(self, code: Code) -> Sequence[cst.SubscriptElement]:
        """What stands between the brackets of a subscript: `i, :`. Raises as `expression`."""
        try:
            found = self._parsed(code, f"_[{self._text(code)}]")
        except cst.ParserSyntaxError:
            raise NotFound(f"`{code.text}` is no index") from None
        return cst.ensure_type(found, cst.Subscript).slice

    def statements(self, code: Code) -> list[Line]:
        """Statements, with the comments and blank lines between them."""
        try:
            module = cst.parse_module(self._text(code).strip("\n") + "\n")
        except cst.ParserSyntaxError as error:
            raise NotFound(f"`{code.text}` does not parse: {error.message}") from None
        if not module.body or module.footer:
            raise NotFound(f"`{code.text}` does not end with a statement")
        first = module.body[0].with_changes(leading_lines=module.header)
        body = [first, *module.body[1:]]
        filled: list[Line] = []
        for statement in body:
            found = statement.visit(_Filling(code, self.resolve))
            if isinstance(found, Line):
                filled.append(_filled(code, found))
        return filled

    def _parsed(self, code: Code, text: str) -> cst.BaseExpression:
        root = cst.Expr(cst.parse_expression(text))
        statement = root.visit(_Filling(code, self.resolve, root))
        return _filled(code, cst.ensure_type(statement, cst.Expr)).value

    def _text(self, code: Code) -> str:
        """The code with names in the place of holes, indented as the file is."""
        text = _HOLE.sub(
            lambda found: f"{_PREFIX}{found[1]}_end" if found[1] in code.parts else found[0],
            code.text,
        )
        if self.indent == _INDENT or '"""' in text or "'''" in text:
            return text
        return re.sub(
            rf"^(?:{_INDENT})+",
            lambda found: self.indent * (len(found[0]) // len(_INDENT)),
            text,
            flags=re.MULTILINE,
        )


def _filled(code: Code, node: _N) -> _N:
    if _PREFIX in code_of(node):
        raise NotFound(f"a hole of `{code.text}` does not take what lies at its part")
    return node


class _Filling(cst.CSTTransformer):
    """Puts the parts into the holes of one template."""

    def __init__(self, code: Code, resolve: Resolve, root: cst.CSTNode | None = None) -> None:
        """`root` is what holds code that its place is still to give parentheses to."""
        super().__init__()
        self._root = root
        self._code = code
        self._resolve = resolve
        self._ancestors: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._ancestors.append(node)
        return super().on_visit(node)

    def on_leave(  # the base class declares what each kind of node may become
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        self._ancestors.pop()
        return super().on_leave(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        part = self._part(original_node)
        if isinstance(part, IndexList) and not isinstance(self._ancestors[-1], cst.Index):
            part = _as_tuple(part)
        if not isinstance(part, cst.BaseExpression) or isinstance(part, cst.StarredElement):
            return updated_node
        if self._ancestors[-1] is self._root:
            return own_code(part)
        bracketed = is_bracketed(reversed(self._ancestors))
        return fit(own_code(part), self._ancestors[-1], original_node, bracketed=bracketed)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        part = self._part(original_node.value)
        if isinstance(part, cst.StarredElement):
            return updated_node.with_changes(star="*", value=part.value)
        if isinstance(part, cst.Arg):
            space = updated_node.whitespace_after_arg
            return part.with_changes(comma=updated_node.comma, whitespace_after_arg=space)
        return updated_node

    def leave_Element(
        self, original_node: cst.Element, updated_node: cst.Element
    ) -> cst.BaseElement:
        part = self._part(original_node.value)
        if isinstance(part, cst.Arg) and part.star == "*":
            return cst.StarredElement(part.value, updated_node.comma)
        if isinstance(part, cst.StarredElement):
            return part.with_changes(comma=updated_node.comma)
        return updated_node

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.Subscript:
        index = original_node.slice[0].slice
        part = self._part(index.value) if isinstance(index, cst.Index) else None
        if isinstance(part, IndexList) and len(original_node.slice) == 1:
            return updated_node.with_changes(slice=part.subscript.slice)
        return updated_node

    def leave_SubscriptElement(
        self, original_node: cst.SubscriptElement, updated_node: cst.SubscriptElement
    ) -> cst.SubscriptElement:
        index = original_node.slice
        part = self._part(index.value) if isinstance(index, cst.Index) else None
        return (
            updated_node.with_changes(slice=part) if isinstance(part, cst.Slice) else updated_node
        )

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement:
        only = original_node.body[0]
        part = self._part(only.value) if isinstance(only, cst.Expr) else None
        if isinstance(part, cst.BaseCompoundStatement):
            return part.with_changes(leading_lines=updated_node.leading_lines)
        if isinstance(part, cst.BaseSmallStatement):
            small = part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(body=[small])
        return updated_node

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        return updated_node.with_changes(value=_PLACEHOLDER.sub(r"$\1", updated_node.value))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=_PLACEHOLDER.sub(r"$\1", updated_node.value))

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        return requoted(updated_node)

    def _part(self, node: cst.CSTNode) -> cst.CSTNode | IndexList | None:
        match = _PLACEHOLDER.fullmatch(node.value) if isinstance(node, cst.Name) else None
        return self._resolve(self._code.parts[match[1]]) if match else None


def _as_tuple(part: IndexList) -> cst.Tuple | None:
    """An index list as an expression, if there is no slice in it."""
    elements = [
        cst.Element(element.slice.value, element.comma)
        for element in part.subscript.slice
        if isinstance(element.slice, cst.Index) and element.slice.star is None
    ]
    return cst.Tuple(elements) if len(elements) == len(part.subscript.slice) else None


def requoted(string: cst.FormattedString) -> cst.FormattedString:
    """An f-string in quotes, and with spaces, that Python 3.11 takes around the code inside it.

    Raises NotFound where there are none.
    """
    string = string.with_changes(parts=[_apart(part) for part in string.parts])
    code = "".join(
        code_of(part) for part in string.parts if isinstance(part, cst.FormattedStringExpression)
    )
    text = "".join(part.value for part in string.parts if isinstance(part, cst.FormattedStringText))
    if not _closes(string.end, code):
        return string
    for quote in ('"', "'", '"""', "'''"):
        if not _closes(quote, code) and quote not in text and not text.endswith(quote[0]):
            prefix = string.start.removesuffix(string.end)
            return string.with_changes(start=prefix + quote, end=quote)
    raise NotFound("the code does not fit into an f-string")


def _apart(part: cst.BaseFormattedStringContent) -> cst.BaseFormattedStringContent:
    """A brace that begins an expression needs a space, or two braces are one of the text."""
    if isinstance(part, cst.FormattedStringExpression) and code_of(part)[1] == "{":
        return part.with_changes(whitespace_before_expression=cst.SimpleWhitespace(" "))
    return part


def _closes(quote: str, code: str) -> bool:
    return quote in code or (len(quote) == 1 and ("\n" in code or "\r" in code))
