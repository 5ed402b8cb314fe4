"""The objects that a model consists of: those of checkpoints, functions, assets and tensors."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import MethodType
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.saved_model.assets import Asset
from treadle.tracing.any_rank import AnyRankFunction
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function
from treadle.train import trackable


def function_of(value: Any) -> Any:
    """The compiled function that a value is: of a method that of its object. None for others."""
    if isinstance(value, MethodType):
        value = value.__func__
    return value if isinstance(value, Function | ConcreteFunction | AnyRankFunction) else None


def concrete_functions(value: Any) -> list[ConcreteFunction]:
    """The concrete functions that an alias of `SaveOptions.function_aliases` stands for.

    Raises:
        TypeError: the value is no compiled function, no concrete one and no collection of those.
    """
    function = function_of(value)
    if isinstance(function, ConcreteFunction):
        return [function]
    if isinstance(function, AnyRankFunction):
        return list(function.traces)
    if isinstance(function, Function):
        return list(function.concrete_functions)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [concrete for one in value for concrete in concrete_functions(one)]
    raise TypeError(
        f"Unsupported type {value!r} {type(value)}. Functions in `function_aliases` should be "
        "created by td.function, or concrete functions, or collections of concrete functions"
        f"{at(user_origin())}"
    )


def is_part(value: Any) -> bool:
    """Whether a saved model holds the object."""
    if isinstance(value, Asset) or (isinstance(value, Tensor) and not value.is_symbolic):
        return True
    return trackable.is_trackable(value) or function_of(value) is not None


def children(value: Any) -> dict[str, Any]:
    """What an object refers to that is a part of the model, by name."""
    if isinstance(value, Asset | Tensor):
        return {}
    if function_of(value) is not None:
        return {}
    found = methods(value) | trackable.children(value, is_part)
    functions = [f for child in found.values() if (f := function_of(child)) is not None]
    for function in functions:
        complete(function)
    return found | trackable.children(value, is_part) if functions else found


def complete(function: Any) -> Any:
    """The concrete function for the input signature of a function; None where there is none. Its
    first trace may make variables, which are parts of objects from then on.

    Of signatures without a rank that the program asked a concrete function for, all ranks are
    traced.
    """
    if isinstance(function, Function):
        for asked in function.of_any_rank:
            asked.trace_ranks()
        if function.input_signature is None or function._signature.is_unbound:
            return None
        function = function.get_concrete_function()
    if isinstance(function, AnyRankFunction):
        function.trace_ranks()
    return function


def methods(value: Any) -> dict[str, Any]:
    """The compiled functions of an object's class, and what the object itself says that a saved
    model has for it."""
    if not hasattr(type(value), "_trackable_children"):
        return {}
    kind = type(value)
    found = {
        name: getattr(value, name)
        for name in dir(kind)
        if isinstance(inspect.getattr_static(kind, name), Function)
    }
    own = getattr(value, "_saved_children", None)
    return found if own is None else found | own()
