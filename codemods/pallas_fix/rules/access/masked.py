"""Loads and stores with a mask, as each backend writes them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from pallas_fix.edits import Code, Edit, RemoveArgument, RenameKeyword, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.scopes import defaults
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.access.indexes import bracketed
from pallas_fix.rules.access.kept import comments_of_argument, kept_comments


def with_at(
    module: Facts,
    name: str,
    call: ast.Call,
    arguments: Mapping[str, ast.expr],
    dropped: Collection[str] = (),
) -> Iterator[Edit]:
    """The call of a backend's function, with the index in the ref, without what it ignores.

    In a Triton kernel a slice may be longer than the ref, if a mask says so: its positions may
    always.
    """
    spelled = module.names.spell(name, call)
    arange = module.names.spell("jnp.arange", call)
    masked = name.startswith("triton.") and not is_none(arguments.get("mask"))
    inside, parts = bracketed(module, arguments["idx"], arange.text if masked else "")
    if masked and f"{arange.text}(" in inside:
        yield from arange.imports
    parts["ref"] = module.span(arguments["ref"])
    span = module.span(call)
    removed = [arguments[word] for word in ("idx", *dropped) if word in arguments]
    yield Replace(module.span(call.func), Code(spelled.text))
    yield Replace(module.span(arguments["ref"]), Code(f"$ref.at[{inside}]", parts))
    yield from (RemoveArgument(span, module.span(value)) for value in removed)
    yield from comments_of_argument(module, call, arguments["idx"], parts.values())
    yield from spelled.imports
    # The functions of the backends call the ref `ref`.
    if any(keyword.arg == "x_ref_or_view" for keyword in call.keywords):
        yield RenameKeyword(span, "x_ref_or_view", "ref")


def chosen(module: Facts, call: ast.Call, arguments: Mapping[str, ast.expr]) -> Iterator[Edit]:
    """A masked load on TPU: all is loaded, and what the mask leaves out becomes `other`, or 0."""
    spelled = module.names.spell("jnp.where", call)
    inside, parts = bracketed(module, arguments["idx"])
    parts |= {name: module.span(arguments[name]) for name in ("ref", "mask")}
    other = arguments.get("other")
    text = "0"
    if other is not None and not is_none(other):
        parts["other"] = module.span(other)
        text = "$other"
    code = Code(f"{spelled.text}($mask, $ref[{inside}], {text})", parts)
    yield Replace(module.span(call), code)
    yield from spelled.imports
    yield from kept_comments(module, call, parts.values())


def may_be_none(module: Facts, mask: ast.expr, depth: int = 4) -> bool:
    """True for a mask that is None on some way: there is then none."""
    if isinstance(mask, ast.Constant):
        return mask.value is None
    if isinstance(mask, ast.IfExp):
        return any(may_be_none(module, arm, depth) for arm in (mask.body, mask.orelse))
    if isinstance(mask, ast.BoolOp):
        return any(may_be_none(module, arm, depth) for arm in mask.values)
    if not isinstance(mask, ast.Name) or not depth:
        return False
    bound = module.names.lookup(mask.id, module.names.scope(mask))
    for binding in bound[1] if bound else ():
        value = binding.value
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            around = module.names.parent[binding.node]
            known = defaults(around) if isinstance(around, ast.arguments) else {}
            value = known.get(binding.node)
        if value is not None and may_be_none(module, value, depth - 1):
            return True
    return False
