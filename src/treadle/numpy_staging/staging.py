"""NumPy code inside functions: what NumPy is asked to do with symbolic tensors goes into the graph.

Functions applied to eager tensors alone still give arrays, but where a tape watches one. An
operator between an array and a symbolic tensor (``array + x``) stays the tensor's, under the
tensor's dtype rules.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any

import numpy as np

from treadle.core.context import context
from treadle.core.dtypes import array_dtype
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.tensor import Tensor
from treadle.numpy_staging import reductions, scans, ufuncs
from treadle.numpy_staging.functions import FUNCTIONS
from treadle.ops.state import Variable

# The function that a ufunc's method is.
REDUCTIONS: dict[Any, Callable[..., Any]] = {
    (np.add, "reduce"): reductions.sum, (np.multiply, "reduce"): reductions.prod,
    (np.maximum, "reduce"): reductions.max, (np.minimum, "reduce"): reductions.min,
    (np.logical_and, "reduce"): reductions.all, (np.logical_or, "reduce"): reductions.any,
    (np.add, "accumulate"): reductions.cumsum, (np.multiply, "accumulate"): reductions.cumprod,
    (np.maximum, "accumulate"): reductions.cummax, (np.minimum, "accumulate"): reductions.cummin,
    (np.logical_or, "accumulate"): reductions.cumulative_any,
    (np.logical_and, "accumulate"): reductions.cumulative_all,
    (np.logaddexp, "accumulate"): reductions.cumulative_logsumexp,
}  # fmt: skip

# Keywords that only choose how NumPy stores or checks a result, and those that are refused.
_IGNORED = frozenset({"order", "subok", "like", "device", "copy", "casting", "kind", "stable"})
_REFUSED = frozenset({"out", "where", "initial"})
_OPERATORS = frozenset(dis.opmap[name] for name in ("BINARY_OP", "COMPARE_OP") if name in dis.opmap)
# What applies operators from within Python.
_APPLYING = frozenset(
    ("sum", "reduce", "accumulate", "operator", "mul", "sub", "truediv", "pow", "matmul", "iadd")
)
_REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__", np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__",
    np.power: "__rpow__", np.matmul: "__rmatmul__", np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__", np.bitwise_xor: "__rxor__", np.less: "__gt__",
    np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
    np.equal: "__eq__", np.not_equal: "__ne__",
}  # fmt: skip


def array_ufunc(
    ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], operator: bool
) -> Any:
    """``SymbolicTensor.__array_ufunc__``; `operator`: it stands for ``array + tensor``."""
    try:
        return _staged_ufunc(ufunc, method, inputs, kwargs, operator)
    except NotYetKnown as error:
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        return error.take(call, inputs, kwargs)


def _staged_ufunc(
    ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], operator: bool
) -> Any:
    name = reflected(ufunc)
    if operator and method == "__call__" and name and isinstance(inputs[1], Tensor | Variable):
        return getattr(inputs[1], name)(inputs[0])
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    options = _options(name, kwargs)
    if method == "__call__" and ufunc in ufuncs.UFUNCS:
        return ufuncs.call(ufunc, inputs, **options)
    if method == "outer" and ufunc in ufuncs.UFUNCS:
        return ufuncs.outer(ufunc, *inputs, **options)
    function = reduction_of(ufunc, method)
    if function is None:
        raise unsupported(name)
    axis = inputs[1] if len(inputs) > 1 else options.pop("axis", 0)
    return function(inputs[0], axis, **options)


def reduction_of(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """What ``ufunc.reduce`` or ``ufunc.accumulate`` is on tensors."""
    known = REDUCTIONS.get((ufunc, method))
    if known is not None or ufunc not in scans.ASSOCIATIVE:
        return known
    scan = {"reduce": scans.reduce, "accumulate": scans.accumulate}.get(method)
    return None if scan is None else partial(scan, ufunc)


def reflected(ufunc: Any) -> str | None:
    """The method that stands for ``array <operator> tensor``."""
    return _REFLECTED.get(ufunc)


def applies_operator(frame: FrameType, ufunc: Any) -> bool:
    """Whether the frame is about to apply an operator to an array, rather than to call NumPy.

    `sum`, `reduce` and the functions of the module `operator` apply operators, too, and have no
    frames of their own: who calls one of them, and never names the function of NumPy, does that.
    """
    code = frame.f_code
    return code.co_code[frame.f_lasti] in _OPERATORS or _applies(code, ufunc.__name__)


@functools.lru_cache(maxsize=1024)
def _applies(code: CodeType, name: str) -> bool:
    """Whether code may have Python apply operators, and does not name a function of NumPy."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars}
    return not names.isdisjoint(_APPLYING) and name not in names


def array_function(func: Any, args: Any, kwargs: Any) -> Any:
    """``Tensor.__array_function__``: staged where a symbolic tensor is among the arguments."""
    watched = any_watched((args, kwargs))
    if not watched and not _any_symbolic((args, kwargs)):
        return func(*_as_arrays(args), **_as_arrays(kwargs))
    name = f"{func.__module__.removeprefix('numpy').lstrip('.')}.{func.__name__}".lstrip(".")
    function = FUNCTIONS.get(func)
    if function is None and watched and not _any_symbolic((args, kwargs)):
        return without_gradient(name, func(*_as_arrays(args), **_as_arrays(kwargs)))
    if function is None:
        raise unsupported(name)
    while args and (args[-1] is None or args[-1] is np._NoValue):
        args = args[:-1]  # defaults
    try:
        return function(*args, **_options(name, kwargs))
    except NotYetKnown as error:
        return error.take(func, args, kwargs)
    except TypeError as error:
        if "positional argument" in str(error) or "unexpected keyword" in str(error):
            raise TypeError(
                f"np.{name}: {str(error).partition(') ')[2] or error}: not supported on symbolic "
                f"tensors{at(user_origin())}"
            ) from None
        raise


def any_watched(value: Any) -> bool:
    """Whether an active tape watches a tensor or variable in a structure."""
    if not context.tapes:
        return False
    if isinstance(value, list | tuple):
        return any(map(any_watched, value))
    if isinstance(value, dict):
        return any(map(any_watched, value.values()))
    return isinstance(value, Tensor | Variable) and any(t.watches(value) for t in context.tapes)


def without_gradient(name: str, result: Any) -> Any:
    """What a function without a counterpart gave; TypeError where a gradient would be lost."""
    if np.asarray(result).dtype.kind in "fc":
        raise TypeError(
            f"np.{name} has no gradient here, and a tape watches its argument: use td operations, "
            f"or np.asarray(x) to leave the tape{at(user_origin())}"
        )
    return result


def _any_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_any_symbolic(v) for v in value)
    if isinstance(value, dict):
        return any(_any_symbolic(v) for v in value.values())
    if isinstance(value, Variable):
        return context.recorder is not None
    return isinstance(value, Tensor) and value.is_symbolic


def _as_arrays(value: Any) -> Any:
    """The same structure with ndarrays for eager tensors."""
    if isinstance(value, Tensor | Variable):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(_as_arrays(v) for v in value)
    if type(value) is dict:
        return {k: _as_arrays(v) for k, v in value.items()}
    return value


def _options(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords without those at their defaults; TypeError for what cannot be staged."""
    options = {}
    for key, value in kwargs.items():
        default = value is None or value is np._NoValue or (key == "where" and value is True)
        if key in _REFUSED and not default:
            raise TypeError(
                f"np.{name}: {key}= is not supported on symbolic tensors: {_INSTEAD[key]}"
                f"{at(user_origin())}"
            )
        ignored = key in _IGNORED and not (key == "order" and name in ("reshape", "ravel"))
        if key not in _REFUSED and not ignored and value is not np._NoValue:
            options[key] = array_dtype(value) if key == "dtype" and value is not None else value
    return options


_INSTEAD = {
    "out": "a tensor never changes; use the result, or td.jit, which has NumPy's meaning",
    "where": "use td.where or np.where on the arguments or the result",
    "initial": "combine it with the result, or use np.concatenate",
}


def unsupported(name: str) -> TypeError:
    """The error for a NumPy function that has no counterpart here."""
    import difflib

    known = sorted(f.__name__ for f in (*FUNCTIONS, *ufuncs.UFUNCS))
    near = difflib.get_close_matches(name.rpartition(".")[2], known, 3)
    hint = f" Near it are np.{', np.'.join(near)}." if near else ""
    return TypeError(
        f"np.{name} cannot be staged: it was called with a symbolic tensor while a function is "
        f"traced. Use td operations, or td.numpy_function(np.{name}, [x], td.TensorSpec(shape, "
        f"dtype)) to call NumPy when the function runs.{hint}{at(user_origin())}"
    )
