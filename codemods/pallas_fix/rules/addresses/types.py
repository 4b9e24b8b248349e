"""The shape and the dtype of an accumulator, as they can be written where its scope begins."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_fix.facts import Facts
from pallas_fix.facts.constants import DType
from pallas_fix.facts.names import Function
from pallas_fix.facts.scopes import FUNCTIONS
from pallas_fix.rules.addresses.bodies import Body
from pallas_fix.rules.addresses.limits import merged
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.passing import run_of
from pallas_fix.rules.addresses.sites import Key, Use
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES


@dataclass(frozen=True, slots=True)
class Part:
    """A shape or a dtype: an expression of the file, or text; a `public` name still to be spelled.

    `reads` are the expressions of the file in it.
    """

    text: str
    node: ast.expr | None = None
    reads: tuple[ast.expr, ...] = ()
    public: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    """The MXU, the shape and the dtype of an accumulator."""

    mxu: Part
    shape: Part
    dtype: Part

    @property
    def reads(self) -> tuple[ast.expr, ...]:
        """The expressions of the file that are read where the scope begins."""
        return (*self.mxu.reads, *self.shape.reads, *self.dtype.reads)


def types_of(module: Facts, room: Room, body: Body) -> dict[Key, Type] | Reason:
    """The type of each accumulator of a room."""
    found: dict[Key, Type] = {}
    for key in room.keys:
        pops = [use for use in room.of(key) if use.pops]
        shape, dtype = _shape(module, body, pops), _dtype(module, body, pops)
        if isinstance(shape, Reason):
            return shape
        if isinstance(dtype, Reason):
            return dtype
        found[key] = Type(_mxu(module, body, key, room.of(key)), shape, dtype)
    return found


def _mxu(module: Facts, body: Body, key: Key, own: Sequence[Use]) -> Part:
    """The MXU as the calls have it, where callers from other files may pass another one."""
    written = [use.mxu for use in own if use.mxu is not None]
    first = written[0] if written else None
    alike = len(written) == len(own) and len({module.source(expr) for expr in written}) == 1
    constant = isinstance(first, ast.Constant) or (first is not None and body.own(first))
    if not alike or first is None or constant or not all(map(body.sees, written)):
        return Part(str(key[0]))
    return Part(module.source(first), first, (first,))


def _shape(module: Facts, body: Body, pops: Sequence[Use]) -> Part | Reason:
    values = merged([use.where.shape for use in pops])
    known = len(values) == 2 and None not in values
    parts = [_part(module, body, use, use.shape) for use in pops]
    seen = [part for part in parts if part is not None]
    if known:
        exact = (part for part in seen if part.node is not None)
        return next(exact, Part(str(values)))
    if len({part.text if part else None for part in parts}) > 1:
        return _unknown("what is popped has several shapes as far as pallas-fix can see")
    if seen:
        return seen[0]
    return _unknown("the shape uses names that the scope around the accumulator does not see")


def _dtype(module: Facts, body: Body, pops: Sequence[Use]) -> Part | Reason:
    values = {module.constants.fold(use.dtype) for use in pops}
    value = values.pop() if len(values) == 1 else None
    parts = [_part(module, body, use, use.dtype) for use in pops]
    seen = [part for part in parts if part is not None]
    if isinstance(value, str) and value in ACC_DTYPES:
        return Part(f"jnp.{value}", public=True)  # pltpu.ACC takes no strings
    if isinstance(value, DType):
        exact = (part for part in seen if part.node is not None)
        return next(exact, Part(f"jnp.{value.name}", public=True))
    if len({part.text if part else None for part in parts}) > 1:
        return _unknown("what is popped has several dtypes as far as pallas-fix can see")
    if seen:
        return seen[0]
    return _unknown("the dtype uses names that the scope around the accumulator does not see")


def _part(module: Facts, body: Body, use: Use, expr: ast.expr | None) -> Part | None:
    """An expression for the scope: as it is, or with what callers passed for parameters in it."""
    if expr is None:
        return None
    if body.sees(expr):
        return Part(module.source(expr), expr, (expr,))
    passed = _Passed(module, body, use)
    text = ast.unparse(passed.visit(copy.deepcopy(expr, _keeping_names(expr))))
    return Part(text, None, tuple(passed.reads)) if passed.known else None


def _keeping_names(expr: ast.expr) -> dict[int, object]:
    """A memo with which `deepcopy` leaves names as they are, so that their scope is known."""
    return {id(node): node for node in ast.walk(expr) if isinstance(node, ast.Name)}


class _Passed(ast.NodeTransformer):
    """Puts arguments in the place of parameters, until the scope sees all names."""

    def __init__(self, module: Facts, body: Body, use: Use) -> None:
        self._module = module
        self._body = body
        self._chain = use.chain
        self.known = True
        self.reads: list[ast.expr] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self._body.sees(node):
            self.reads.append(node)
            return node
        given = self._given(node)
        if given is None:
            self.known = False
            return node
        inner: ast.expr = self.visit(copy.deepcopy(given, _keeping_names(given)))
        return inner

    def _given(self, name: ast.Name) -> ast.expr | None:
        """What the run of a function was given for a parameter."""
        names = self._module.names
        found = names.lookup(name.id, names.scope(name))
        if found is None or [b.kind for b in found[1]] != ["param"]:
            return None
        function = found[0].node
        region = run_of(function, self._chain) if isinstance(function, FUNCTIONS) else None
        call = region.at if region is not None else None
        if not isinstance(call, ast.Call) or names.definition(call.func) is not function:
            return None
        return _argument(call, function, name.id) if isinstance(function, FUNCTIONS) else None


def _argument(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    named = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    position = named.index(name) if name in named else len(call.args)
    given = call.args[: position + 1]
    if len(given) <= position or any(isinstance(part, ast.Starred) for part in given):
        return None
    return given[position]


def _unknown(why: str) -> Reason:
    return Reason(
        "shape-not-visible",
        f"the accumulator cannot be allocated where it begins: {why}",
        "pass the shape to the kernel (functools.partial), or define it at module level",
    )
