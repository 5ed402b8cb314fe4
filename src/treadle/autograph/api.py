"""The public functions of AutoGraph."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from treadle.autograph import operators
from treadle.autograph.errors import ConversionError, UnsupportedSyntaxError
from treadle.autograph.operators.calls import call, convert_function


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The form of `fn` to trace: its control flow may depend on tensors.

    Functions, lambdas, bound methods, partials and objects with ``__call__`` are taken. Library
    functions and functions marked `do_not_convert` come back as they are.

    Raises:
        ConversionError: there is no source, or a statement cannot be converted; the message names
            file and line.
    """
    function = plain_function(fn)
    if function is not None and function.__code__.co_flags & (0x20 | 0x80 | 0x200):
        code = function.__code__
        raise UnsupportedSyntaxError(
            f"{function.__name__} is a generator or coroutine and cannot become a graph: collect "
            f"the values in a list or td.TensorArray\n  at {code.co_filename}:{code.co_firstlineno}"
        )
    inner = getattr(fn, "__func__", None)
    if isinstance(inner, types.FunctionType) and not isinstance(fn, types.MethodType):
        return _convert_weak_method(fn, inner)
    return call(fn)  # type: ignore[no-any-return]


def _convert_weak_method(fn: Any, inner: types.FunctionType) -> Callable[..., Any]:
    """A method of a decorated class: `fn` knows its object only weakly, and so does the result."""
    made = convert_function(inner)
    if made is inner:
        return fn  # type: ignore[no-any-return]
    return lambda *args, **kwargs: made(fn.method().__self__, *args, **kwargs)


def tf_convert(fn: Callable[..., Any], ctx: Any = None, **options: Any) -> Callable[..., Any]:
    """`converted`, under the name that TensorFlow uses inside its layers."""
    return call(fn)  # type: ignore[no-any-return]


def to_graph(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> Callable[..., Any]:
    """`entity` converted: a Python function whose conditions and loops also take symbolic tensors.

    Args:
        entity: a function, method or callable object.
        recursive: whether the functions it calls are converted too.
        experimental_optional_features: accepted for TensorFlow programs; see `Feature`.

    Raises:
        ConversionError: as for `converted`.
    """
    if recursive:
        return converted(entity)
    from treadle.autograph.twins import instantiate, template_of

    function = _required(entity)
    template = template_of(function, recursive=False)
    made = function if template.code is None else instantiate(function, template.code, operators)
    owner = getattr(entity, "__self__", None)
    return made if owner is None else types.MethodType(made, owner)


def to_code(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> str:
    """The Python source that `entity` is converted to.

    It calls the operators through the name ``ag__``, which is ``treadle.autograph.operators``.

    Args:
        entity, recursive, experimental_optional_features: as for `to_graph`.

    Raises:
        ConversionError: as for `converted`.
    """
    from treadle.autograph.twins import template_of

    return template_of(_required(entity), recursive).text


def _required(fn: Callable[..., Any]) -> types.FunctionType:
    function = plain_function(fn)
    if function is None:
        raise ConversionError(f"{fn!r} is not a Python function with source code")
    return function


def plain_function(fn: Any) -> types.FunctionType | None:
    """The Python function inside a method, partial, callable object or `function`, if any."""
    while True:
        if isinstance(fn, types.FunctionType):
            return fn
        if hasattr(fn, "__func__"):
            fn = fn.__func__
        elif isinstance(fn, functools.partial):
            fn = fn.func
        elif hasattr(fn, "python_function"):
            fn = fn.python_function
        elif isinstance(getattr(type(fn), "__call__", None), types.FunctionType):  # noqa: B004
            fn = type(fn).__call__
        else:
            return None
