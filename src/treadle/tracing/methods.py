"""Functions in classes: methods that do not keep their object alive, and decorators around."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any


class WeakMethod:
    """A bound method that does not keep its instance alive."""

    def __init__(self, function: Callable[..., Any], reference: Callable[[], Any]) -> None:
        self.__func__ = function
        self.reference = reference
        functools.update_wrapper(self, function, updated=())
        del self.__wrapped__  # type: ignore[attr-defined]  # its signature has `self`
        self.__signature__ = _without_self(function)

    @property
    def __self__(self) -> Any:
        return self.reference()

    def method(self) -> types.MethodType:
        """The bound method.

        Raises:
            ReferenceError: the instance has died.
        """
        instance = self.reference()
        if instance is None:
            raise ReferenceError(f"The object of the method {self.__func__!r} no longer exists")
        return types.MethodType(self.__func__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.method()(*args, **kwargs)


def _without_self(function: Callable[..., Any]) -> Any:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


class SignatureOfPython:
    """``__signature__`` of functions that call a Python function: `inspect` asks for it.

    It is that of `python_function`; that of an instance's function has the instance before, which
    a bound method around it leaves out. The class keeps the signature of its constructor.
    """

    def __get__(self, instance: Any, owner: Any = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        function = instance.python_function
        try:
            return inspect.signature(
                function.__func__ if isinstance(function, WeakMethod) else function
            )
        except (TypeError, ValueError) as error:  # code that is not Python's may not tell its own
            raise AttributeError("__signature__") from error


def inside(wrapper: Any, decorate: Callable[[Any], Any]) -> Any:
    """`wrapper` around the decorated function, where it is a staticmethod, classmethod, property
    or cached_property; None for anything else.

    ``@td.function`` above ``@staticmethod`` thus means the same as below it.
    """
    if isinstance(wrapper, staticmethod | classmethod):
        return type(wrapper)(decorate(wrapper.__func__))
    if isinstance(wrapper, functools.cached_property):
        made = functools.cached_property(decorate(wrapper.func))
        made.__doc__ = wrapper.__doc__
        return made
    if isinstance(wrapper, property):
        getter = None if wrapper.fget is None else decorate(wrapper.fget)
        return type(wrapper)(getter, wrapper.fset, wrapper.fdel, wrapper.__doc__)
    return None
