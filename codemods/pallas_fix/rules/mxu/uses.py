"""The edits that turn the uses of a VMEM ref into those of an accumulator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pallas_fix.edits import Code, Edit, InsertBefore, RemoveStatement, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, Loaded, View
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.liveness import Action, Life
from pallas_fix.rules.mxu.order import deferred, plain_calls

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


@dataclass(slots=True)
class UseEdits:
    """Edits of uses, with the nodes that they change."""

    edits: list[Edit] = field(default_factory=list)
    nodes: set[ast.AST] = field(default_factory=set)

    def add(self, node: ast.AST, *edits: Edit) -> None:
        """Add edits that change what `node` does."""
        if node not in self.nodes:
            self.edits.extend(edits)
            self.nodes.add(node)


def use_edits(module: Facts, lives: Iterable[Life], narrow: str | None) -> UseEdits | Reason:
    """What the uses of some refs become, all of which become accumulators.

    `narrow` is the dtype of the refs where it is not one that accumulators have: a popped
    value is cast back to it.
    """
    found = UseEdits()
    for life in lives:
        for event in life.events:
            passed = event.how if isinstance(event.how, View | Loaded) else None
            if event.kind in ("acc", "pop") and passed is not None:
                found.add(passed.node, _bare(module, passed.node))
        reason = _values(module, life, found, narrow)
        if reason is not None:
            return reason
    return found


def _values(module: Facts, life: Life, found: UseEdits, narrow: str | None) -> Reason | None:
    bound: dict[ast.AST, str] = {}
    again = {node for node, action in life.actions.items() if action is Action.AGAIN}
    last: ast.AST | None = None
    for event in life.events:
        action = life.actions.get(event.node)
        if action is Action.DROP:
            statement = _removable(module, event.node)
            if statement is None:
                return _tangled(module, event.node)
            found.add(event.node, RemoveStatement(module.span(statement)))
        elif action is Action.FOLD:
            found.add(event.node, RemoveStatement(module.span(event.node)))
        elif action is Action.POP or event.kind == "pop":
            last = event.node
            popped = _popped(module, event, life.folds.get(event.node, []), narrow)
            if popped:
                found.add(event.node, *popped)
        elif action is Action.AGAIN and last is not None and event.node in again:
            name = bound.get(last) or _bind(module, life, last, event.node, found)
            if name is None or not _follows(module, last, event.node):
                return Reason(
                    "read-twice",
                    f"the ref is read again in line {module.span(event.node).line}, and the value "
                    "popped before is not at hand there",
                    "bind the popped value to a name and use that in both places",
                )
            bound[last] = name
            found.add(event.node, Replace(module.span(event.node), Code(name)))
    return None


def _popped(module: Facts, event: Event, folds: list[Event], narrow: str | None) -> list[Edit]:
    """`matmul_pop(ref)` in the place of a read, or of a pop that needs more around it."""
    node = event.node
    writer = Writer(module, node)
    parent = module.names.parent[node]
    already = isinstance(parent, ast.Attribute) and parent.attr == "astype"
    # The dtype that the ref had is what its author goes on with.
    cast = "" if narrow is None or already else writer.cast(parent, narrow)
    if event.kind == "pop" and not folds and not cast:
        return []
    text = f"{writer.name('pltpu.matmul_pop')}({writer.hole(_ref_expr(event))})"
    for fold in folds:
        statement = fold.node
        if isinstance(statement, ast.AugAssign):
            sign = "-" if isinstance(statement.op, ast.Sub) else "+"
            text += f" {sign} {writer.hole(statement.value)}"
    if cast:
        text = f"({text}){cast}" if folds else f"{text}{cast}"
    return [Replace(module.span(node), writer.code(text)), *writer.imports]


def _ref_expr(event: Event) -> ast.expr:
    node = event.node
    expr = node.value if isinstance(node, ast.Subscript) else None
    if expr is None and isinstance(node, ast.Call):
        expr = node.args[0] if node.args else node.keywords[0].value
    return expr if expr is not None else ast.Name("acc")


def _bare(module: Facts, node: ast.expr) -> Edit:
    """Drop a trivial `.at[...]` or `[...]` from an argument that must be the ref itself."""
    inner = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(inner, ast.Attribute) and inner.attr == "at":
        inner = inner.value
    return Replace(module.span(node), Code("$ref", {"ref": module.span(inner)}))


def _bind(
    module: Facts, life: Life, first: ast.AST, second: ast.AST, found: UseEdits
) -> str | None:
    """Give the popped value a name before the statement that reads it first."""
    statement = module.names.statement(first)
    if not isinstance(statement, _SIMPLE) or deferred(module, first):
        return None
    if not plain_calls(module, statement):
        return None
    base = re.sub(r"\W+", "_", life.ref.name or "acc").strip("_")
    name = module.names.fresh(f"{base}_value")
    span = module.span(first)
    for index, edit in enumerate(found.edits):
        if isinstance(edit, Replace) and edit.span == span:
            found.edits[index] = Replace(span, Code(name))
            code = Code(f"{name} = {edit.code.text}", edit.code.parts)
            found.edits.append(InsertBefore(module.span(statement), code))
            return name
    return None


def _follows(module: Facts, first: ast.AST, second: ast.AST) -> bool:
    """True if `second` lies in the statement of `first` or in a later one of the same block."""
    names = module.names
    statement = names.statement(first)
    block = names.block(statement)
    later = block[block.index(statement) :]
    return any(module.within(one, second) for one in later)


def _removable(module: Facts, node: ast.AST) -> ast.stmt | None:
    """The statement that goes away with a zero store: the whole `pl.when` body if it is all."""
    statement = module.names.statement(node)
    if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
        return None
    if isinstance(statement, ast.Expr):
        if statement.value is not node and not _conditional(module, statement.value, node):
            return None
    elif statement is not node:
        return None
    around = module.names.parent[statement]
    if isinstance(around, ast.FunctionDef) and around.body == [statement]:
        conditional = any(
            isinstance(d, ast.Call) and module.names.qualified(d.func) == "pl.when"
            for d in around.decorator_list
        )
        return around if conditional else statement
    return statement


def _conditional(module: Facts, call: ast.expr, node: ast.AST) -> bool:
    """True for `pl.when(test)(lambda: node)`."""
    match call:
        case ast.Call(func=ast.Call(func=func), args=[ast.Lambda(body=body)], keywords=[]):
            return body is node and module.names.qualified(func) == "pl.when"
        case _:
            return False


def _tangled(module: Facts, node: ast.AST) -> Reason:
    return Reason(
        "tangled-statement",
        f"line {module.span(node).line} zeroes the ref together with something else",
        "write the zero store as a statement of its own, or delete it: accumulators start at zero",
    )
