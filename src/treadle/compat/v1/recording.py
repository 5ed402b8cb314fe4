"""Functions whose calls graphs write down, and operators of what they give."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.keras_tensors import has_of_keras, is_called_by_keras
from treadle.compat.v1.values import (
    Literal,
    Mode,
    Tensor,
    element,
    leaves_of,
    map_leaves,
    thread,
)
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.ops.conversion import has_users_conversions, is_converted_by_user


def writes_into(*values: Any) -> Graph | None:
    """The graph that a call with these arguments is written into; None where it is called at once:
    in a function that is traced, where eager execution is enabled, and for eager tensors outside
    of ``with graph.as_default()``: a program of TensorFlow 2 uses a module that imports this one.

    Raises:
        TypeError: in a function that is traced, an argument belongs to a graph.
    """
    recorder: Any = context.recorder
    is_traced = recorder is not None and (
        thread.region is None or recorder is not thread.region.builder or thread.run is not None
    )
    leaves = list(leaves_of(values))
    given = next((t for v in leaves if (t := element(v)) is not None), None)
    if is_traced:
        if given is not None:
            raise TypeError(
                f"{given!r} belongs to a graph: a td.function that is traced cannot take it. Call "
                f"the function itself, f.python_function{at(user_origin())}"
            )
        return None
    if given is not None:
        return given.graph
    if has_of_keras(leaves):  # a step of a model
        return None
    if not thread.graphs and (Mode.eager or any(isinstance(v, td.Tensor) for v in leaves)):
        return None
    if not thread.graphs and is_called_by_keras(sys._getframe(1)):
        return None
    return get_default_graph()


@functools.cache
def _position_of_name(function: Any) -> int | None:
    """Where a function takes its name, if it may take it by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for index, parameter in enumerate(parameters):
        if parameter.name == "name" and parameter.kind in kinds:
            return index
    return None


def _takes_name(function: Any) -> bool:
    """Whether a function may be called with a name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    more = (p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return "name" in parameters or any(more)


_CALL = "PartitionedCall"  # what TensorFlow calls an operation that is a function's call
_names_of_recorded: dict[str, Any] = {}  # what exported graphs call functions


def recorded(
    function: Callable[..., Any], name: str | None = None, type_: str | None = None,
    path: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`function` as a graph has it: calls are written down.

    Args:
        name: what operations are called that are given no name.
        path: what exported graphs call the function.
    """
    where, drops_name = _position_of_name(function), not _takes_name(function)
    known = path or f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    _names_of_recorded.setdefault(known, function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = writes_into(args, kwargs)
        if graph is None:
            if drops_name:
                kwargs.pop("name", None)
            given_by = [a.value if isinstance(a, Literal) else a for a in args]
            return function(*given_by, **kwargs)
        if has_users_conversions():
            args, kwargs = map_leaves(args, _converted), map_leaves(kwargs, _converted)
        given = kwargs.pop("name", None)
        if where is not None and len(args) > where:
            given, args = args[where], args[:where]
        with graph.lock:
            return graph.record(function, args, kwargs, given, type_, name)

    return call


def _converted(value: Any) -> Any:
    """An object that a function of the user converts as what this gives for it; others as they are.
    The function belongs to the program, not to the operation: its calls are written down, too."""
    return td.convert_to_tensor(value) if is_converted_by_user(value) else value


def record_call(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call of what `td.function` gives, as one operation of a graph.

    The graph keeps the function; graphs as data cannot name it.
    """
    graph = writes_into(args, kwargs)
    if graph is None:
        return function(*args, **kwargs)
    with graph.lock:
        return graph.record(function, args, kwargs, None, _CALL, _CALL)


def in_graphs(*functions: Callable[..., Any]) -> None:
    """Let exported graphs name functions."""
    for function in functions:
        _names_of_recorded.setdefault(f"{function.__module__}.{function.__qualname__}", function)


def function_named(path: str) -> Callable[..., Any]:
    """The function that exported graphs call by a name; KeyError where there is none."""
    return _names_of_recorded[path]  # type: ignore[no-any-return]


def name_of_function(function: Any) -> str | None:
    """What exported graphs call a function."""
    return next((k for k, f in _names_of_recorded.items() if f is function), None)


# -- operators -----------------------------------------------------------------------------------

# Functions of Python, not of its module `operator`: where the first operand is NumPy's, that one
# would leave it to NumPy, which gives a float64.
_BINARY: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "add": (lambda a, b: a + b, "add", "AddV2"), "sub": (lambda a, b: a - b, "sub", "Sub"),
    "mul": (lambda a, b: a * b, "mul", "Mul"),
    "truediv": (lambda a, b: a / b, "truediv", "RealDiv"),
    "floordiv": (lambda a, b: a // b, "floordiv", "FloorDiv"),
    "mod": (lambda a, b: a % b, "mod", "FloorMod"), "pow": (lambda a, b: a**b, "pow", "Pow"),
    "matmul": (lambda a, b: a @ b, "matmul", "MatMul"),
    "and": (lambda a, b: a & b, "and", "LogicalAnd"),
    "or": (lambda a, b: a | b, "or", "LogicalOr"),
    "xor": (lambda a, b: a ^ b, "LogicalXor", "LogicalXor"),
    "lt": (lambda a, b: a < b, "Less", "Less"),
    "le": (lambda a, b: a <= b, "LessEqual", "LessEqual"),
    "gt": (lambda a, b: a > b, "Greater", "Greater"),
    "ge": (lambda a, b: a >= b, "GreaterEqual", "GreaterEqual"),
}  # fmt: skip
_UNARY = {
    "neg": (operator.neg, "Neg", "Neg"), "abs": (operator.abs, "Abs", "Abs"),
    "invert": (operator.invert, "LogicalNot", "LogicalNot"),
}  # fmt: skip


def _reflected(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: call(other, self)


def _of_one(*about: Any) -> Callable[..., Any]:
    call = recorded(*about)
    return lambda self: call(self)


def give_operators(kind: type) -> None:
    """Let objects of a class of graphs have the operators of tensors."""
    for name, (function, default, type_) in _BINARY.items():
        call = recorded(function, default, type_, f"operator.{name}")
        setattr(kind, f"__{name}__", lambda self, other, call=call: call(self, other))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(kind, f"__r{name}__", _reflected(call))
    for name, about in _UNARY.items():
        setattr(kind, f"__{name}__", _of_one(*about, f"operator.{name}"))
    item = recorded(operator.getitem, "strided_slice", "StridedSlice", "operator.getitem")
    setattr(kind, "__getitem__", lambda self, key: item(self, key))  # noqa: B010


give_operators(Tensor)
