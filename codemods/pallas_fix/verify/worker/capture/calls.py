"""The call that leads to a launch: a function on the stack that a case can name, with arguments."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from keyword import iskeyword
from types import CodeType, FrameType, FunctionType
from typing import Any

from .functions import Arguments, Functions, Refused
from .writing import Refusal

MODULE = "<module>"

_UNCALLABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Calls:
    """Finds the functions of the project on the stack."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def project(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of project files, from the innermost one on."""
        frames = []
        while frame is not None:
            if self._functions.file(frame.f_code):
                frames.append(frame)
            frame = frame.f_back
        return frames

    def case(self, frames: list[FrameType]) -> str:
        """A case that runs what was called in one of these frames.

        The innermost one that can be written is taken, but one of a test only if there is no
        other. Raises Refusal, with the reason of the innermost one.
        """
        refusal = Refusal("no function of the project launches it")
        test = ""
        for number, frame in enumerate(frames):
            try:
                case = self._written(frame)
            except Refusal as reason:
                if number == 0:
                    refusal = reason
                continue
            if not _is_test(self._functions.file(frame.f_code)):
                return case
            test = test or case
        if not test:
            raise refusal
        return test

    def _written(self, frame: FrameType) -> str:
        code = frame.f_code
        file = self._functions.file(code)
        if code.co_name == MODULE:
            _check_module(frame)
            return f"{file}:{MODULE}()"
        function, bound = _function(frame)
        try:
            arguments = self._functions.arguments(frame)
        except LookupError:
            raise Refusal(f"the first arguments of {code.co_qualname} are not known") from None
        words = _Words(code, arguments, _defaults(function), self._functions.write)
        return f"{file}:{code.co_qualname}({', '.join(words.all(skip=int(bound)))})"


@dataclass(frozen=True)
class _Words:
    """The arguments of a call as a case has them; those that are the defaults are left out."""

    code: CodeType
    arguments: Arguments
    defaults: dict[str, Any]
    write: Callable[[Any], str | Refused]

    def all(self, skip: int) -> Iterator[str]:
        """Yield them, without the first `skip`. Raises Refusal."""
        code, named = self.code, self.arguments.named
        positional = code.co_varnames[skip : code.co_argcount]
        for number, name in enumerate(positional, start=skip):
            at_place = bool(self.arguments.rest) or any(
                not self._is_default(other)
                for other in code.co_varnames[number : code.co_posonlyargcount]
            )
            if at_place or not self._is_default(name):
                text = self._text(name, named[name])
                yield text if at_place or name not in self.defaults else f"{name}={text}"
        for value in self.arguments.rest:
            yield self._text("an argument", value)
        for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
            if not self._is_default(name):
                yield f"{name}={self._text(name, named[name])}"
        for name, value in self.arguments.options.items():
            if not name.isidentifier() or iskeyword(name):
                raise Refusal(f"an argument of {code.co_qualname} is called {name!r}")
            yield f"{name}={self._text(name, value)}"

    def _is_default(self, name: str) -> bool:
        value = self.arguments.named[name]
        if name not in self.defaults:
            return False
        default = self.defaults[name]
        return (
            value.value is default if isinstance(value, Refused) else value == self.write(default)
        )

    def _text(self, name: str, value: str | Refused) -> str:
        if isinstance(value, Refused):
            raise Refusal(f"{name} of {self.code.co_qualname} is {value.reason}")
        return value


def _defaults(function: FunctionType) -> dict[str, Any]:
    code = function.__code__
    given = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    return dict(zip(last, given, strict=True)) | (function.__kwdefaults__ or {})


def _is_test(file: str) -> bool:
    """True for the files that pytest and unittest take for tests."""
    name = os.path.basename(file)
    return name.startswith(("test_", "conftest.")) or name.endswith(("_test.py", "_tests.py"))


def _check_module(frame: FrameType) -> None:
    """Raises Refusal for a script whose top-level code asks whether it is one."""
    if frame.f_globals.get("__name__") == "__main__" and "__name__" in frame.f_code.co_names:
        raise Refusal("top-level code that only runs in a script launches it")


def _function(frame: FrameType) -> tuple[FunctionType, bool]:
    """The function of a frame; True if it gets its class without being given it.

    Raises Refusal for a function that cannot be called by its qualified name.
    """
    code = frame.f_code
    name = code.co_qualname
    if "<" in name:
        raise Refusal(f"{name} is defined inside of another function")
    if code.co_flags & _UNCALLABLE:
        raise Refusal(f"{name} is a generator or a coroutine")
    value: Any = sys.modules.get(frame.f_globals.get("__name__", ""))
    plain, bound = True, False
    for part in name.split("."):
        owner, value = value, getattr(value, part, None)
        if isinstance(owner, type):
            bound = inspect.ismethod(value)
            plain = bound or isinstance(inspect.getattr_static(owner, part, None), staticmethod)
    for function in _wrapped(value):
        if getattr(function, "__code__", None) is code and isinstance(function, FunctionType):
            if not plain:
                raise Refusal(f"{name} is a method")
            return function, bound
    raise Refusal(f"{name} is no function that its module has by that name")


def _wrapped(value: Any) -> Iterator[Any]:
    """A callable, and those that it wraps; none of what pytest lets only itself call."""
    for _ in range(32):
        fixture = hasattr(value, "_pytestfixturefunction")
        if value is None or fixture or type(value).__module__.startswith("_pytest."):
            return
        yield value
        if inspect.ismethod(value):
            value = value.__func__
        elif isinstance(value, functools.partial):
            value = value.func
        else:
            value = getattr(value, "__wrapped__", None)
