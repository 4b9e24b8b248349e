"""Functions of jax that were removed for other ones with other arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, NameArgument, RenameKeyword, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.changed_calls.place import HANDED_ON, OTHER_ARGUMENTS, UNPACKED, Place
from pallas_fix.versions import Change, changed

Answer = tuple[Edit, ...] | Reason


@dataclass(frozen=True, slots=True)
class Given:
    """The call that gives a function its arguments, itself or as a partial of it."""

    facts: Facts
    name: ast.expr
    call: ast.Call
    skipped: int = 0

    @property
    def positional(self) -> list[ast.expr]:
        return self.call.args[self.skipped :]

    @property
    def keywords(self) -> Mapping[str | None, ast.expr]:
        return {keyword.arg: keyword.value for keyword in self.call.keywords}

    @property
    def unpacked(self) -> bool:
        return None in self.keywords or any(isinstance(a, ast.Starred) for a in self.positional)

    def only(self, word: str) -> ast.expr | None:
        """The one argument of the call, by position or by that keyword."""
        values = [*self.positional, *self.keywords.values()]
        if self.unpacked or len(values) != 1 or not set(self.keywords) <= {word}:
            return None
        return values[0]

    def renamed(self, new: str) -> tuple[Edit, ...]:
        """What writes the name of another function."""
        spelling = self.facts.names.spell(new, self.name)
        return (Replace(self.facts.span(self.name), Code(spelling.text)), *spelling.imports)


@dataclass(frozen=True, slots=True)
class Form:
    """What becomes of one function.

    `called` answers for a call of it, `partial` for a `functools.partial`, `value` for any other
    place where it stands; what is None cannot be repaired.
    """

    new: str
    change: Change
    called: Callable[[Given], Answer]
    partial: Callable[[Given], Answer] | None = None
    value: Callable[[Facts, ast.expr], Answer] | None = None
    certain: bool = True


def found(facts: Facts) -> Iterator[Place]:
    """The places where one of the functions stands, but for those in imports."""
    local = _locals(facts)
    read = facts.index
    attributes = (node for word in WORDS for node in read.attributes.get(word, ()))
    names = (node for word in local for node in read.names.get(word, ()))
    for node in (*attributes, *names):
        name = facts.names.public(node)
        form = FORMS.get(name) if name else None
        if form is not None and name is not None:
            yield _place(facts, node, name, form)


def _locals(facts: Facts) -> set[str]:
    """The names of the file that may stand for one of the functions."""
    found: set[str] = set()
    for statement in facts.index.all(ast.ImportFrom):
        found.update(alias.asname or alias.name for alias in statement.names if alias.name in WORDS)
    for assign in facts.index.all(ast.Assign):
        word = getattr(assign.value, "attr", None) or getattr(assign.value, "id", None)
        if word in WORDS or word in found:
            found.update(target.id for target in assign.targets if isinstance(target, ast.Name))
    return found


def _place(facts: Facts, node: ast.expr, name: str, form: Form) -> Place:
    parent = facts.names.parent[node]
    answer: Answer = HANDED_ON
    at: ast.AST = node
    if isinstance(parent, ast.Call) and parent.func is node:
        at = parent
        answer = form.called(Given(facts, node, parent))
    elif (
        form.partial is not None
        and isinstance(parent, ast.Call)
        and facts.names.path(parent.func) == "functools.partial"
        and parent.args[:1] == [node]
    ):
        at = parent
        answer = form.partial(Given(facts, node, parent, skipped=1))
    elif form.value is not None:
        answer = form.value(facts, node)
    return Place(at, name, form.new, form.change, answer, form.certain)


def _pvary(given: Given) -> Answer:
    if given.unpacked:
        return UNPACKED
    to = SetKeyword(given.facts.span(given.call), "to", Code('"varying"'))
    return (*given.renamed("lax.pcast"), to)


def _shuffle(given: Given) -> Answer:
    if given.unpacked:
        return UNPACKED
    independent = SetKeyword(given.facts.span(given.call), "independent", Code("True"))
    return (*given.renamed("jax.random.permutation"), independent)


def _never(given: Given) -> Answer:
    return OTHER_ARGUMENTS


def _none(facts: Facts, node: ast.expr) -> Answer:
    return (Replace(facts.span(node), Code("None")),)


def _argument_itself(given: Given) -> Answer:
    value = given.only("aval")
    if value is None:
        return UNPACKED if given.unpacked else OTHER_ARGUMENTS
    return (
        Replace(given.facts.span(given.call), Code("$value", {"value": given.facts.span(value)})),
    )


def _identity(facts: Facts, node: ast.expr) -> Answer:
    return (Replace(facts.span(node), Code("lambda aval: aval")),)


def _axis_size(given: Given) -> Answer:
    facts = given.facts
    value = given.only("axis_name")
    if value is None:
        return UNPACKED if given.unpacked else OTHER_ARGUMENTS
    spelling = facts.names.spell("lax.axis_size", given.name)
    parent = facts.names.parent[given.call]
    whole: ast.AST = given.call
    uses: list[ast.Attribute] = []
    if isinstance(parent, ast.Attribute):
        if parent.attr != "size":
            return _FRAME
        whole = parent
    elif isinstance(parent, ast.Assign):
        frames = _frames(facts, parent, given.call)
        if frames is None:
            return _FRAME
        uses = frames
    code = Code(f"{spelling.text}($name)", {"name": facts.span(value)})
    sizes = [Replace(facts.span(use), Code(facts.source(use.value))) for use in uses]
    return (Replace(facts.span(whole), code), *spelling.imports, *sizes)


def _frames(facts: Facts, assign: ast.Assign, call: ast.Call) -> list[ast.Attribute] | None:
    """Where `frame.size` is asked of a frame that was given a name; None for other uses of it."""
    target = assign.targets[0]
    if len(assign.targets) != 1 or not isinstance(target, ast.Name):
        return None
    uses: list[ast.Attribute] = []
    for node in facts.index.all(ast.Name):
        if node.id != target.id or node is target:
            continue
        if facts.constants.origin(node) is not call:
            continue
        parent = facts.names.parent[node]
        if not isinstance(parent, ast.Attribute) or parent.attr != "size":
            return None
        uses.append(parent)
    return uses or None


def _is_int(given: Given) -> Answer:
    value = given.only("d")
    names = given.facts.names
    scope = names.scope(given.call)
    if value is None:
        return UNPACKED if given.unpacked else OTHER_ARGUMENTS
    if names.lookup("isinstance", scope) or names.lookup("int", scope):
        return OTHER_ARGUMENTS
    code = Code("isinstance($value, int)", {"value": given.facts.span(value)})
    return (Replace(given.facts.span(given.call), code),)


def _x64(default: str) -> Callable[[Given], Answer]:
    def answer(given: Given) -> Answer:
        spelling = given.facts.names.spell("jax.enable_x64", given.name)
        parts = {}
        text = f"{spelling.text}({default})"
        if given.positional or given.keywords:
            value = given.only("new_val")
            if value is None or default == "False":
                return UNPACKED if given.unpacked else OTHER_ARGUMENTS
            parts = {"value": given.facts.span(value)}
            text = f"{spelling.text}($value)"
        return (Replace(given.facts.span(given.call), Code(text, parts)), *spelling.imports)

    return answer


def _jit(given: Given) -> Answer:
    span = given.facts.span(given.call)
    if any(isinstance(argument, ast.Starred) for argument in given.positional):
        return UNPACKED
    if "fun" in given.keywords:
        return OTHER_ARGUMENTS
    named = list(zip(_PJIT[1:], given.positional[1:], strict=False))
    return (
        *given.renamed("jax.jit"),
        *(NameArgument(span, given.facts.span(value), word) for word, value in reversed(named)),
        *(
            RenameKeyword(span, old, new)
            for old, new in _PJIT_BEFORE.items()
            if old in given.keywords
        ),
    )


def _named(new: str, anywhere: bool) -> Callable[[Facts, ast.expr], Answer]:
    """Writes another name for the function itself: anywhere, or where it is given a name only."""

    def answer(facts: Facts, node: ast.expr) -> Answer:
        if not (anywhere or isinstance(facts.names.parent[node], ast.Assign)):
            return HANDED_ON
        spelling = facts.names.spell(new, node)
        return (Replace(facts.span(node), Code(spelling.text)), *spelling.imports)

    return answer


_FRAME = Reason(
    "frame-kept",
    "more is asked of the frame than its size, and jax keeps the rest to itself",
    "use jax.lax.axis_size(name) and jax.lax.axis_index(name)",
)
# The parameters of pjit in their order (jax/_src/pjit.py of 0.4.30), and what they were before.
_PJIT = (
    "fun",
    "in_shardings",
    "out_shardings",
    "static_argnums",
    "static_argnames",
    "donate_argnums",
    "donate_argnames",
    "keep_unused",
    "device",
    "backend",
    "inline",
)
_PJIT_BEFORE = {"in_axis_resources": "in_shardings", "out_axis_resources": "out_shardings"}
_NO_OP = changed("0.4.36", warns="0.4.38", fails="0.6.0")
_X64 = changed("0.8.0", warns="0.8.0", fails="0.9.0")
_ITSELF = Form("the argument itself", _NO_OP, _argument_itself, value=_identity)
_TRUE = Form("jax.enable_x64(True)", _X64, _x64("True"))
_FALSE = Form("jax.enable_x64(False)", _X64, _x64("False"))
FORMS = {
    "lax.pvary": Form(
        'jax.lax.pcast(..., to="varying")',
        changed("0.8.2", warns="0.8.2", fails="0.10.0"),
        _pvary,
        partial=_pvary,
    ),
    "jax.core.axis_frame": Form(
        "jax.lax.axis_size",
        changed("0.6.1", warns="0.4.38", fails="0.7.0"),
        _axis_size,
        value=_named("lax.axis_size", anywhere=False),
    ),
    "jax.core.raise_to_shaped": _ITSELF,
    "jax.core.full_lower": _ITSELF,
    "jax.core.is_constant_dim": Form(
        "isinstance(d, int)",
        changed("0.4.30", warns="0.10.0", fails="0.11.0"),
        _is_int,
        certain=False,
    ),
    "jax.interpreters.batching.not_mapped": Form(
        "None", changed("0.4.30", fails="0.10.2"), _never, value=_none
    ),
    "jax.random.shuffle": Form(
        "jax.random.permutation(..., independent=True)", changed("0.4.30", fails="0.4.31"), _shuffle
    ),
    "jax.experimental.enable_x64": _TRUE,
    "jax.experimental.disable_x64": _FALSE,
    "jax.experimental.x64_context.enable_x64": _TRUE,
    "jax.experimental.x64_context.disable_x64": _FALSE,
    "jax.experimental.pjit.pjit": Form(
        "jax.jit",
        changed("0.4.30", warns="0.8.0"),
        _jit,
        partial=_jit,
        value=_named("jax.jit", anywhere=True),
    ),
}
WORDS = frozenset(name.rpartition(".")[2] for name in FORMS)
