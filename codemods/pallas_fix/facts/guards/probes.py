"""Which expressions ask what this jax is, or has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from pallas_fix.facts.guards.attributes import Given, attributes
from pallas_fix.facts.guards.evidence import (
    PYTHON,
    Kind,
    has_version,
    imported,
    inner,
    is_in_environment,
    is_number,
    is_ref,
    names_jax,
    passed,
)
from pallas_fix.facts.guards.objects import Objects
from pallas_fix.facts.guards.tries import Tries
from pallas_fix.facts.guards.words import (
    is_of_others,
    is_version_of_jax,
    speaks,
    speaks_where_imported,
)
from pallas_fix.facts.names import Function, Names
from pallas_fix.facts.scopes import FUNCTIONS, Binding, defaults

_STEPS = 50
_NAMES = frozenset({"hasattr", "getattr"})
_OF_OBJECTS = frozenset("hasattr dir vars type callable isinstance issubclass".split())
_READS = ("inspect.", "dataclasses.fields", "typing.get_")
# Functions that make of a version or an answer another form of it.
_FORMS = frozenset(
    "bool int float str tuple list set frozenset map any all len sorted min max dict zip next iter "
    "SimpleNamespace Version parse LooseVersion StrictVersion".split()
)
_FORMING = ("re.", "operator.", "functools.reduce", "packaging.", "itertools.")
_TRUTHS = frozenset({"bool", "any", "all"})
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CHOSEN = (ast.Name, ast.Attribute, ast.Lambda)


class Probes:
    """The tests of one module that are about versions, names or keywords."""

    def __init__(self, names: Names, objects: Objects, tries: Tries) -> None:
        self._names = names
        self._objects = objects
        self._tries = tries
        self._known: dict[object, Kind] = {}
        self._depth = 0

    def asks(self, test: ast.expr) -> bool:
        """True if the truth of an expression depends on what this jax is or has."""
        return self.kind(test) > Kind.NOTHING

    def answers(self, mark: ast.expr) -> bool:
        """True for a call that asks for a version, as decorators do: `requires_jax("0.7")`."""
        return isinstance(mark, ast.Call) and self.kind(mark) is Kind.ANSWER

    def kind(self, expr: ast.expr) -> Kind:
        """What an expression has to do with the version of jax, as far as a few steps tell."""
        if self._depth > _STEPS:
            return Kind.NOTHING
        self._depth += 1
        try:
            return self._kind(expr)
        finally:
            self._depth -= 1

    def _kind(self, expr: ast.expr) -> Kind:
        match expr:
            case ast.Name():
                return self._name(expr)
            case ast.Attribute():
                return self._attribute(expr)
            case ast.Call():
                return self._call(expr)
            case ast.Compare():
                return self._compare(expr)
            case ast.BoolOp(values=values):
                return max(map(self.kind, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Kind.ANSWER if self.asks(operand) else Kind.NOTHING
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if not self.asks(test):
                    return max(self.kind(body), self.kind(orelse))
                both = isinstance(body, ast.Constant) and isinstance(orelse, ast.Constant)
                return Kind.ANSWER if both else Kind.CHOICE
            case ast.Subscript(value=value, slice=index):
                return self._subscript(value, index)
            case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
                return self.kind(value)
            case ast.Lambda() | ast.Constant():
                return Kind.NOTHING
        return Kind.ANSWER if self._any_answer(inner(expr)) else Kind.NOTHING

    def is_in_arm(self, node: ast.AST) -> bool:
        """True for what runs only in an arm of a shim, inside of its own function."""
        key = ("arm", node)
        if key in self._known:
            return self._known[key] > Kind.NOTHING
        self._known[key] = Kind.NOTHING
        found = self._find_arm(node)
        self._known[key] = Kind.ANSWER if found else Kind.NOTHING
        return found

    def _find_arm(self, node: ast.AST) -> bool:
        here = node
        while here in self._names.parent:
            above = self._names.parent[here]
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
                return False
            if isinstance(above, ast.If | ast.While) and here is not above.test:
                if self.asks(above.test):
                    return True
            elif isinstance(above, ast.Match) and here is not above.subject:
                if self.asks(above.subject):
                    return True
            elif isinstance(above, ast.Try | ast.With) and self._tries.is_shim(above):
                return True
            here = above
        return False

    def _any_answer(self, exprs: Iterable[ast.expr]) -> bool:
        return any(self.kind(expr) is Kind.ANSWER for expr in exprs)

    def _compare(self, node: ast.Compare) -> Kind:
        operands = (node.left, *node.comparators)
        kinds = [self.kind(operand) for operand in operands]
        if Kind.ANSWER in kinds:
            return Kind.ANSWER
        if Kind.CHOICE in kinds:
            return Kind.ANSWER if any(map(self._is_fixed, operands)) else Kind.NOTHING
        ordered = any(isinstance(operator, _ORDER) for operator in node.ops)
        return Kind.ANSWER if ordered and any(map(is_number, operands)) else Kind.NOTHING

    def _is_fixed(self, expr: ast.expr) -> bool:
        path = self._names.path(expr) if isinstance(expr, ast.Name | ast.Attribute) else None
        return isinstance(expr, ast.Constant) or (path or "").startswith("jax.")

    def _subscript(self, value: ast.expr, index: ast.expr) -> Kind:
        if self.kind(value) is Kind.ANSWER or is_in_environment(self._names, value, index):
            return Kind.ANSWER
        return Kind.CHOICE if self.asks(index) else Kind.NOTHING

    def _call(self, node: ast.Call) -> Kind:
        func, args = node.func, node.args
        path = self._names.path(func) or (func.id if isinstance(func, ast.Name) else "")
        about_jax = bool(args) and self._objects.is_jax(args[0])
        if path in _NAMES and args and is_ref(args[0]):
            about_jax = True
        if path == "getattr":
            if about_jax:
                return Kind.CHOICE
            return max(map(self.kind, args[1:]), default=Kind.NOTHING)
        if about_jax and (path in _OF_OBJECTS or path.startswith(_READS)):
            return Kind.ANSWER
        if names_jax(node) and is_version_of_jax(path.replace("distribution", "version")):
            return Kind.ANSWER
        if args and is_in_environment(self._names, func, args[0]):
            return Kind.ANSWER
        definition = self._names.definition(func)
        if definition is not None:
            return self._function(definition)
        if isinstance(func, ast.Attribute) and self._is_answer(func.value):
            return Kind.ANSWER
        if path.startswith(("jax.", "jaxlib.")):
            return Kind.ANSWER if is_version_of_jax(path) else Kind.NOTHING
        if self._is_called(func):
            return Kind.ANSWER
        if path.rpartition(".")[2] in _FORMS or path.startswith(_FORMING):
            if path in _TRUTHS and args:
                return Kind.ANSWER if self.asks(args[0]) else Kind.NOTHING
            return Kind.ANSWER if self._any_answer(passed(node)) else Kind.NOTHING
        if any(isinstance(a, ast.Constant) and is_number(a) for a in args) and (
            self._is_imported(func)
        ):
            return Kind.ANSWER
        return Kind.ANSWER if any(map(has_version, passed(node))) else Kind.NOTHING

    def _is_answer(self, expr: ast.expr) -> bool:
        """True for a version, and not for the module of somebody's shims."""
        path = self._names.path(expr)
        outside = path is not None and path.partition(".")[0] not in ("jax", "jaxlib", "sys")
        return not outside and self.kind(expr) is Kind.ANSWER

    def _is_called(self, func: ast.expr) -> bool:
        """True for a function that is called after versions, or a question to a module of shims."""
        if isinstance(func, ast.Name) and self._names.lookup(func.id, self._names.scope(func)):
            return self._name(func) is Kind.ANSWER
        if isinstance(func, ast.Name | ast.Attribute):
            path = self._names.path(func)
            if path is not None:
                return imported(path) is Kind.ANSWER
            return speaks(func.id if isinstance(func, ast.Name) else func.attr)
        return False

    def _is_imported(self, func: ast.expr) -> bool:
        path = self._names.path(func)
        if path is None:
            return isinstance(func, ast.Name) and self._names.star
        return not is_of_others(path)

    def _function(self, function: Function) -> Kind:
        """What a function of the file answers, as far as its returns tell."""
        if function in self._known:
            return self._known[function]
        self._known[function] = Kind.NOTHING
        if isinstance(function, ast.Lambda):
            found = self.kind(function.body)
        else:
            found = Kind.ANSWER if speaks(function.name) else Kind.NOTHING
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    found = max(found, self.kind(node.value), self._set(node, node.value))
        self._known[function] = found
        return found

    def _set(self, node: ast.AST, value: ast.expr) -> Kind:
        """What a value says that is given in one arm of a shim."""
        is_flag = isinstance(value, ast.Constant) and isinstance(value.value, bool | str | None)
        if not (is_flag or isinstance(value, _CHOSEN)) or not self.is_in_arm(node):
            return Kind.NOTHING
        return Kind.ANSWER if is_flag else Kind.CHOICE

    def _attribute(self, node: ast.Attribute) -> Kind:
        path = self._names.path(node)
        dunder = node.attr.startswith("__") and node.attr.endswith("__")
        if node.attr in ("__version__", "__version_info__") or (path or "").startswith(PYTHON):
            return Kind.ANSWER
        if path is None or dunder:
            if dunder and (self._objects.is_jax(node.value) or self.asks(node.value)):
                return Kind.ANSWER
            if speaks(node.attr) or self.kind(node.value) is Kind.ANSWER:
                return Kind.ANSWER
            return self._own(node.attr)
        return imported(path)

    def _name(self, node: ast.Name) -> Kind:
        if speaks(node.id):
            return Kind.ANSWER
        found = self._names.lookup(node.id, self._names.scope(node))
        if found is None:
            unknown = self._names.star and node.id.isupper() and speaks_where_imported(node.id)
            return Kind.ANSWER if unknown else Kind.NOTHING
        key = (id(found[0]), node.id)
        if key not in self._known:
            self._known[key] = Kind.NOTHING
            one = self._names.binding(node, self._names.scope(node))
            bindings = found[1] if one is None else [one]
            self._known[key] = max(self._binding(b, node.id) for b in bindings)
        return self._known[key]

    def _binding(self, binding: Binding, name: str) -> Kind:
        if binding.kind == "import":
            is_choice = (binding.node, name) in self._names.optional
            if is_choice and binding.target.startswith("jax."):
                return Kind.CHOICE
            return imported(binding.target)
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            return Kind.ANSWER if self._any_answer(self._given(binding, name)) else Kind.NOTHING
        if binding.kind == "unpack" and isinstance(binding.node, ast.Assign):
            return Kind.ANSWER if self._any_answer([binding.node.value]) else Kind.NOTHING
        if binding.kind != "assign" or binding.value is None:
            return Kind.NOTHING
        return max(self.kind(binding.value), self._set(binding.node, binding.value))

    def _given(self, binding: Binding, name: str) -> Iterator[ast.expr]:
        """What a parameter may be: its default, and what the file's own calls pass."""
        arguments = self._names.parent[binding.node]
        if isinstance(arguments, ast.arguments) and isinstance(binding.node, ast.arg):
            default = defaults(arguments).get(binding.node)
            if default is not None:
                yield default
        yield from self._objects.passed(binding, name)

    def _own(self, attribute: str) -> Kind:
        """What an attribute of some object of the file says: `self.old = version < (0, 7)`."""
        if attribute not in self._attributes:
            return Kind.NOTHING
        key = ("attribute", attribute)
        if key not in self._known:
            self._known[key] = Kind.NOTHING
            self._known[key] = max(
                self._function(given)
                if isinstance(given, ast.FunctionDef)
                else max(self.kind(given), self._set(self._names.parent[given], given))
                for given in self._attributes[attribute]
            )
        return self._known[key]

    @cached_property
    def _attributes(self) -> Mapping[str, Sequence[Given]]:
        return attributes(self._names)
