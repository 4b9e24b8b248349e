"""The vocabulary in which rules say what is to change.

An edit names a node of the file by its position and says what happens to it. It holds no
syntax tree: rules find with `ast`, and `rewrite` alone performs edits with libcst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A half-open region of a file: lines count from 1, columns from 0 in characters."""

    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: Span) -> bool:
        """True if `other` lies within this span (equal spans contain each other)."""
        return (self.line, self.column) <= (other.line, other.column) and (
            other.end_line,
            other.end_column,
        ) <= (self.end_line, self.end_column)


@dataclass(frozen=True, slots=True)
class Code:
    """Python source with holes.

    `$name` in `text` stands for the code of the file at `parts[name]`, which keeps its
    comments and layout and takes part in the other edits of the same fix.
    """

    text: str
    parts: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replace:
    """Put `code` in the place of the expression at `span`."""

    span: Span
    code: Code


@dataclass(frozen=True, slots=True)
class SetKeyword:
    """Give the call at `span` the keyword argument `keyword=code`, new or in place."""

    span: Span
    keyword: str
    code: Code


@dataclass(frozen=True, slots=True)
class RenameKeyword:
    """Rename a keyword argument of the call at `span`."""

    span: Span
    keyword: str
    new: str


@dataclass(frozen=True, slots=True)
class NameArgument:
    """Give the argument whose value lies at `value` of the call at `span` another keyword.

    With an empty `keyword` it is given by position, in the place where it stands.
    """

    span: Span
    value: Span
    keyword: str


@dataclass(frozen=True, slots=True)
class RemoveArgument:
    """Take the argument whose value lies at `value` out of the call at `span`."""

    span: Span
    value: Span


@dataclass(frozen=True, slots=True)
class RemoveElement:
    """Take the element at `element` out of the list, tuple or set at `span`.

    For a dict the element is the value; its key goes with it. A tuple left with one
    element keeps its comma.
    """

    span: Span
    element: Span


@dataclass(frozen=True, slots=True)
class RemoveParameter:
    """Take a parameter out of the `def` or `lambda` at `span`."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class RenameParameter:
    """Rename a parameter of the `def` or `lambda` at `span`, but none of its uses."""

    span: Span
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class AddParameter:
    """Append a positional parameter to those of the function at `span`, or put it `first`."""

    span: Span
    name: str
    first: bool = False


@dataclass(frozen=True, slots=True)
class RemoveDecorator:
    """Take the decorator whose expression lies at `decorator` off the `def` at `span`."""

    span: Span
    decorator: Span


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """Insert statements before the statement at `span`, in its block."""

    span: Span
    code: Code


@dataclass(frozen=True, slots=True)
class InsertComment:
    """Put a comment on a line of its own above the statement at `span`.

    That is for comments inside of code that a fix replaces.
    """

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Insert statements after the statement at `span`, in its block."""

    span: Span
    code: Code


@dataclass(frozen=True, slots=True)
class InsertFirst:
    """Insert statements at the start of the body of the `def` at `span`, after its docstring."""

    span: Span
    code: Code


@dataclass(frozen=True, slots=True)
class ReplaceStatement:
    """Put one simple statement in the place of another; the comments around it stay."""

    span: Span
    code: Code


@dataclass(frozen=True, slots=True)
class RemoveStatement:
    """Delete the statement at `span`; a block left empty gets `pass`."""

    span: Span


@dataclass(frozen=True, slots=True)
class MoveIntoScope:
    """Move statements of the `def` at `span` into a new function defined in their place.

    The statements from `first` to `last` (spans of statements of its body; by default all
    after the docstring) become the body of `def name(parameters):`, and `after` follows as
    the next statement. Comments and relative indentation move along.
    """

    span: Span
    name: str
    parameters: tuple[str, ...]
    after: Code
    first: Span | None = None
    last: Span | None = None


@dataclass(frozen=True, slots=True)
class AddImport:
    """Import a module, or a name of one, unless the file already binds it so.

    With `name`: `from module import name as alias`; without: `import module as alias`.
    The alias is left out where it says nothing new.
    """

    module: str
    name: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SetImported:
    """Change one of the names that the import statement at `span` imports.

    `new` takes the place of `name` in `from m import name as alias` or `import name as alias`;
    the alias stays, unless `new` brings its own (`New as old`). An empty `new` takes the name
    out; what imports nothing else is taken away with `RemoveStatement`.
    """

    span: Span
    name: str
    new: str = ""


@dataclass(frozen=True, slots=True)
class SetModule:
    """Put `module` in the place of `m` in the `from m import ...` at `span`."""

    span: Span
    module: str


@dataclass(frozen=True, slots=True)
class SetComment:
    """Put `text` in the place of the comment, or of the part of one, at `span`.

    An empty `text` takes it away: with its line where nothing else stands there, else with the
    blanks before it.
    """

    span: Span
    text: str = ""


Located = (
    Replace
    | SetKeyword
    | RenameKeyword
    | NameArgument
    | RemoveArgument
    | RemoveElement
    | RemoveParameter
    | RenameParameter
    | AddParameter
    | RemoveDecorator
    | InsertBefore
    | InsertComment
    | InsertAfter
    | InsertFirst
    | ReplaceStatement
    | RemoveStatement
    | MoveIntoScope
    | SetImported
    | SetModule
    | SetComment
)
"""The edits with a `span`."""

Edit = Located | AddImport


@dataclass(frozen=True, slots=True)
class Bound:
    """How far a fix may move numbers that reorders a floating-point sum.

    `unit` is the rounding of one step of the sum, relative to the sum of the absolute terms;
    `text` says it in words.
    """

    unit: float
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all are made, or none.

    `certain` says that the meaning follows from the code alone. `bound` is set where the fix
    changes the order of a floating-point sum.
    `functions` are the qualified names (`__qualname__`) of the functions that must have run
    before a case may be said to reach this fix.
    """

    edits: tuple[Edit, ...]
    certain: bool
    bound: Bound | None = None
    functions: tuple[str, ...] = ()

    @property
    def only_comments(self) -> bool:
        """True if nothing but comments changes, which is nothing that could be verified."""
        return bool(self.edits) and all(isinstance(edit, SetComment) for edit in self.edits)
