"""Public functions for classes of the user: what is called instead of them for some arguments."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from treadle.core.refusals import Target, targets_of
from treadle.core.tensor import Tensor
from treadle.ops.control.ordering import name_scope
from treadle.ops.elementwise.function_names import BINARY, UNARY
from treadle.ops.state import Variable

F = TypeVar("F", bound=Callable[..., Any])

_PYTHON = (bool, int, float, complex, str, bytes, types.NoneType)

_ASSERTS = (
    "assert_equal assert_none_equal assert_near assert_less assert_less_equal assert_greater"
    " assert_greater_equal"
)
_MODULES = ("math", "nn", "bitwise", "strings", "debugging", "image")

# The function of the user -> what it was registered as, so that it can be taken back.
_registered: dict[Any, list[tuple[list[Target], Target]]] = {}
_handlers: dict[tuple[Any, ...], Any] = {}  # the kind of functions and the types -> their handler


def dispatch_for_api(api: Any, *signatures: Mapping[str, Any]) -> Callable[[F], F]:
    """Decorator: calls of `api` with values of some types are calls of the decorated function.

    Args:
        api: a public function, such as ``td.concat``.
        signatures: the types of parameters, by their names: classes, ``Union`` and ``List`` of
            them. A call that fits one of them is handed over. Without any, the function's own
            annotations are one.

    Raises:
        ValueError: `api` is no public function, the function has other parameters, or neither
            signatures nor annotations. In a call: functions of two registrations take the
            arguments.

    The function may leave out the parameter `name`: it then runs in a scope of that name.
    """
    targets = targets_of(api)
    if targets is None:
        raise ValueError(f"{api!r} does not support dispatch.")

    def decorate(function: F) -> F:
        form = inspect.signature(api)
        own = [*inspect.signature(function).parameters]
        if own not in ([*form.parameters], [p for p in form.parameters if p != "name"]):
            raise ValueError(
                f"Dispatch function's signature {inspect.signature(function)} does not match "
                f"API's signature {form}."
            )
        wanted = signatures or _annotated(function)
        called = function if "name" in own or len(own) == len(form.parameters) else _named(function)

        def target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
            try:
                given = form.bind(*args, **kwargs).arguments
            except TypeError:
                return None
            for types_ in wanted:
                fits = all(name in given and _fits(given[name], t) for name, t in types_.items())
                # Calls with tensors alone are the public function's, whatever was registered.
                if fits and any(_has_others(given[name]) for name in types_):
                    return functools.partial(called, *args, **kwargs)
            return None

        _register(function, targets, target)
        return function

    return decorate


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a last parameter `name`."""
    count = len(inspect.signature(function).parameters)

    def named(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if len(args) > count:
            *args, name = args  # type: ignore[assignment]
        if name is None:
            return function(*args, **kwargs)
        with name_scope(name):
            return function(*args, **kwargs)

    return named


def _annotated(function: Any) -> tuple[Mapping[str, Any], ...]:
    hints = {k: v for k, v in typing.get_type_hints(function).items() if k != "return"}
    if not hints:
        raise ValueError(
            "The dispatch_for_api decorator must be called with at least one signature, or applied "
            "to a function that has type annotations on its parameters."
        )
    return (hints,)


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is of a type that annotations write."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if wanted is None:
        return value is None
    if origin is not None and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(_fits(v, parts[0]) for v in value)
    return isinstance(value, wanted)


def _has_others(value: Any) -> bool:
    """Whether a value, or one in a list, is more than tensors and numbers."""
    if isinstance(value, list | tuple):
        return any(map(_has_others, value))
    return not isinstance(value, (Tensor, Variable, np.ndarray, np.generic, *_PYTHON))


def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable[[F], F]:
    """Decorator: ``handler(api, x)`` is called for all functions of one tensor that work on its
    elements (``td.abs``, ``td.cast`` ...), where that is of a type. Their further arguments are
    `api`'s already.

    Raises:
        ValueError: there is a handler for the type.
    """
    return _elementwise("unary elementwise", UNARY, x_type)


def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable[[F], F]:
    """Decorator: ``handler(api, x, y)`` is called for all functions of two tensors that work on
    their elements (``td.add``, ``td.less`` ...), where these are of two types.

    Raises:
        ValueError: there is a handler for the types.
    """
    return _elementwise("binary elementwise", BINARY, x_type, y_type)


def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable[[F], F]:
    """Decorator: ``handler(api, x, y)`` is called for assertions that compare two tensors, where
    these are of two types.

    Raises:
        ValueError: there is a handler for the types.
    """
    return _elementwise("binary elementwise assert", _ASSERTS, x_type, y_type)


def _elementwise(kind: str, names: str, *wanted: Any) -> Callable[[F], F]:
    def decorate(handler: F) -> F:
        if (kind, *wanted) in _handlers:
            shown = ", ".join(map(repr, wanted))
            raise ValueError(
                f"A {kind} dispatch handler ({_handlers[kind, *wanted]!r}) has already been "
                f"registered for {shown}."
            )
        _handlers[kind, *wanted] = handler
        for api in _functions(names):
            targets = targets_of(api)
            if targets is not None:
                _register(handler, targets, _handing(handler, api, wanted))
        return handler

    return decorate


def _functions(names: str) -> Iterator[Any]:
    """The public functions of these names, each once."""
    package = sys.modules[__package__]
    found = {}
    for name in names.split():
        for module in (package, *(getattr(package, m) for m in _MODULES)):
            function = getattr(module, name, None)
            if targets_of(function) is not None:
                found[id(function)] = function
    yield from found.values()


def _handing(handler: Any, api: Any, wanted: tuple[Any, ...]) -> Target:
    """The target that gives calls of a function to the handler of its first arguments' types."""
    names = list(inspect.signature(api).parameters)[: len(wanted)]

    def target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        rest = dict(kwargs)
        named = [n for n in names[len(args):] if n in rest]
        values = [*args[: len(wanted)], *(rest.pop(n) for n in named)]
        if len(values) < len(wanted) or not all(map(_fits, values, wanted)):
            return None
        more = args[len(wanted) :]
        bound = (lambda *v: api(*v, *more, **rest)) if more or rest else api
        return functools.partial(handler, bound, *values)

    return target


def _register(function: Any, targets: list[Target], target: Target) -> None:
    targets.append(target)
    _registered.setdefault(function, []).append((targets, target))


def unregister_dispatch_for(dispatch_target: Any) -> None:
    """Take back what a decorator of this module registered a function for.

    Raises:
        ValueError: it is registered for nothing.
    """
    if dispatch_target not in _registered:
        raise ValueError(
            f"Function {dispatch_target} was not registered using a `@dispatch_for_*` decorator."
        )
    for targets, target in _registered.pop(dispatch_target):
        targets.remove(target)
    for key in [k for k, handler in _handlers.items() if handler is dispatch_target]:
        del _handlers[key]
