"""API001: names and modules of jax that have moved, or are gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Fix, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.renames.choices import chosen
from pallas_fix.rules.renames.imports import Imported, edits, movable, unused, without
from pallas_fix.rules.renames.modules import Moved, moved
from pallas_fix.rules.renames.quoted import paths
from pallas_fix.rules.renames.spelled import spelled
from pallas_fix.rules.renames.table import Row, last_words, may_use, newest, rows, triggers


class Renamed(Rule):
    """A name of jax is used that has another name now, has moved, or is gone.

    ## What it does
    Puts the new name in the place of the old one, however the file reaches it: through a module
    under any alias, through `from ... import`, as a dotted path, in annotations and decorators.
    An import that brings the old name brings the new one; it keeps the old name as its alias where
    others may import it from this file (`__init__.py`, `__all__`). An import is dropped of which
    another rule has repaired all uses. The new form is the newest one that works on every jax that
    the code must run on (`--jax`). Which names these are, and since when, stands in
    [the tables](../names.md).

    ## Why it fails
    `AttributeError: module 'jax.experimental.pallas.tpu' has no attribute 'TPUCompilerParams'`,
    `ImportError: cannot import name 'gpu' from 'jax.experimental.pallas'`, or, for a few releases
    before, a DeprecationWarning.

    ## Example
    ```python
    pl.pallas_call(kernel, compiler_params=pltpu.TPUCompilerParams(collective_id=0), **others)
    ```
    becomes
    ```python
    pl.pallas_call(kernel, compiler_params=pltpu.CompilerParams(collective_id=0), **others)
    ```

    ## When it is not fixed
    The name has no successor; it stands in a string (`getattr(pltpu, "ANY")`); the file tests for
    versions or names of jax around it, or assigns it onto the module (a shim: it is not even
    reported); an import binds a name that the file also binds otherwise.

    ## What to do by hand
    The finding names the way out. Code that must run on jax from both sides of a change keeps
    working if the range is given: `--jax '>=0.4.35,<0.8'`.

    ## How it is verified
    A case that runs the code compares before and after, where the installed jax has both. The
    tables themselves are checked against the installed jax by the tests.
    """

    code = "API001"
    name = "renamed"
    triggers = triggers()
    messages = (
        r"module 'jax\.experimental\.pallas(?:\.\w+)?' has no attribute",
        r"cannot import name '\w+' from 'jax(?:\.experimental\.pallas)?(?:\.\w+)*'",
        r"module 'jax(?:\.\w+)*' has no attribute",
        r"pl(?:tpu)?\.\w+ was deprecated in JAX v",
        r"type object '(?:MemorySpace|Layout)' has no attribute",
    )

    def concerns(self, text: str) -> bool:
        """False for a text that lacks some word of each old name."""
        return may_use(text)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of an old name, or for each import of one."""
        for change in moved(module):
            if not module.is_guarded(module.span(change.node)):
                yield self._moved(module, change)
        for imported, named in _imported(module):
            if not _guarded(module, imported):
                finding = self._imported(module, imported, newest(named, self.options.oldest))
                if finding is not None:
                    yield finding
        for node, named in _used(module):
            row = newest(named, self.options.oldest)
            if not (module.is_guarded(module.span(node)) or self._follows(module, node, row)):
                yield self._used(module, node, row)
        yield from self._quoted(module)
        yield from self._in_strings(module)

    def _follows(self, module: Facts, node: ast.expr, row: Row) -> bool:
        """True for `Space.VMEM` where `Space` is a name of its own that gets the new form."""
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return False
        named = rows().get(module.names.public(node.value) or "")
        if named is None:
            return False
        return row.new == f"{newest(named, self.options.oldest).new}.{node.attr}"

    def _used(self, module: Facts, node: ast.expr, row: Row) -> Finding:
        if not row.new:
            return self._finding(module, node, row, reason=_no_successor(row))
        if "#" in module.source(node):
            return self._finding(module, node, row, reason=_COMMENT)
        if chosen(module, node, row):
            return self._finding(module, node, row, reason=_CHOSEN)
        spelling = spelled(module, row, node)
        edits: tuple[Edit, ...] = (
            Replace(module.span(node), Code(spelling.text)),
            *spelling.imports,
        )
        return self._finding(module, node, row, edits)

    def _quoted(self, module: Facts) -> Iterator[Finding]:
        for node, written, name in paths(module):
            named = rows().get(name)
            if named is None or named[0].rule or module.is_guarded(module.span(node)):
                continue
            row = newest(named, self.options.oldest)
            spelling = spelled(module, row, node) if row.new else None
            source = module.source(node)
            if spelling is None or source.count(written) != 1:
                yield self._finding(module, node, row, reason=_in_a_string())
                continue
            code = Code(source.replace(written, spelling.text))
            edits: tuple[Edit, ...] = (Replace(module.span(node), code), *spelling.imports)
            yield self._finding(module, node, row, edits)

    def _imported(self, module: Facts, imported: Imported, row: Row) -> Finding | None:
        if row.rule:
            if not unused(module, imported):
                return None
            return self._finding(module, imported.alias, row, tuple(without(module, imported)))
        if not row.new:
            return self._finding(module, imported.alias, row, reason=_no_successor(row))
        if not movable(module, imported, row):
            return self._finding(module, imported.alias, row, reason=_taken(imported))
        return self._finding(module, imported.alias, row, edits(module, imported, row))

    def _moved(self, module: Facts, change: Moved) -> Finding:
        reason = None if change.edits else _no_successor(change.row)
        return self._finding(module, change.node, change.row, change.edits, reason)

    def _in_strings(self, module: Facts) -> Iterator[Finding]:
        for call in module.names.calls:
            if not (isinstance(call.func, ast.Name) and call.func.id == "getattr"):
                continue
            if len(call.args) != 2 or not isinstance(call.args[1], ast.Constant):
                continue
            path = module.names.public(call.args[0])
            word = call.args[1].value
            named = rows().get(f"{path}.{word}") if isinstance(word, str) else None
            if named is None or module.is_guarded(module.span(call)):
                continue
            row = newest(named, self.options.oldest)
            yield self._finding(module, call, row, reason=_in_a_string())

    def _finding(
        self,
        module: Facts,
        node: ast.AST,
        row: Row,
        edits: tuple[Edit, ...] = (),
        reason: Reason | None = None,
    ) -> Finding:
        now = f": now `{row.new}`" if row.new else ", and nothing needs it here" * bool(row.rule)
        return Finding(
            self.code,
            module.span(node),
            f"`{row.old}` is {row.change}{now}",
            None if reason else Fix(edits, certain=True, functions=_functions(module, node)),
            reason,
            module.names.qualname(node),
            change=row.change,
        )


def _used(module: Facts) -> Iterator[tuple[ast.expr, list[Row]]]:
    """The attributes, and calls, that stand for an old name; the longest path counts."""
    words = last_words()
    table = rows()
    attributes = module.index.attributes
    for node in (node for word in sorted(words & attributes.keys()) for node in attributes[word]):
        path = module.names.public(node)
        named = table.get(path) if path else None
        if named is None or named[0].rule:
            continue
        parent = module.names.parent[node]
        if isinstance(parent, ast.Attribute) and module.names.public(parent) in table:
            continue
        if named[0].called:
            if isinstance(parent, ast.Call) and not (parent.args or parent.keywords):
                yield parent, list(named)
            continue
        yield node, list(named)


def _imported(module: Facts) -> Iterator[tuple[Imported, list[Row]]]:
    """The names that `from ... import` brings and that have another name now."""
    table = rows()
    words = last_words()
    for statement in module.index.all(ast.ImportFrom):
        if statement.level:
            continue
        for alias in statement.names:
            if alias.name not in words:
                continue
            imported = Imported(statement, alias)
            named = table.get(imported.public)
            if named and not named[0].called:
                yield imported, list(named)


def _guarded(module: Facts, imported: Imported) -> bool:
    return module.is_guarded(module.span(imported.statement)) or any(
        module.is_guarded(module.span(use)) for use in imported.occurrences(module)
    )


def _functions(module: Facts, node: ast.AST) -> tuple[str, ...]:
    function = next(module.names.enclosing(node), None) if not isinstance(node, ast.alias) else None
    if function is None:
        return ()
    return (module.names.scopes[function].qualname,)


_CHOSEN = Reason(
    "chosen-beside-new-name",
    "the other arm of the choice has the new name: it looks like care for several versions of jax",
    "if it is not, write the new name here too",
)
_COMMENT = Reason(
    "comment-inside",
    "a comment stands inside the name",
    "write the new name by hand, and put the comment beside it",
)


def _no_successor(row: Row) -> Reason:
    return Reason("no-successor", row.reason, row.way_out)


def _in_a_string() -> Reason:
    return Reason(
        "name-in-string",
        "the name stands in a string, and what else it is for cannot be seen",
        "write the new name there, or test for both names with hasattr",
    )


def _taken(imported: Imported) -> Reason:
    return Reason(
        "name-is-bound-twice",
        f"the file binds `{imported.local}` in more than one way, or hands it on to others",
        f"import the new name as `{imported.local}` by hand where that is meant",
    )
