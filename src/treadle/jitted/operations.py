"""NumPy's operators, ufuncs and functions on traced arrays and scalars.

The staged functions of `treadle.ops` compute with tensors under NumPy's dtype rules; here arrays
become tensors on the way in and arrays or scalars on the way out, and ``out=`` and operators such
as ``+=`` write into the array that they name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    Indirect,
    Traced,
    TracedSequence,
    broadcast_to_dims,
    unwrapped,
    wrapped,
)
from treadle.jitted.scatter import combined_at
from treadle.numpy_staging import ufuncs
from treadle.numpy_staging.dtypes import as_array
from treadle.numpy_staging.functions import FUNCTIONS, named
from treadle.numpy_staging.staging import reduction_of, unsupported
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where as select

# Keywords that choose how NumPy stores a result, which is always in row order here.
_STORAGE = frozenset({"order", "subok", "like", "device", "kind"})
_OPERANDS = (
    bool, int, float, complex, list, tuple, np.ndarray, np.generic, Traced, TracedSequence,
    Indirect,
)  # fmt: skip


def call_ufunc(
    ufunc: Any, *inputs: Any, out: Any = None, where: Any = True, dtype: Any = None,
    casting: str = "same_kind", **options: Any,
) -> Any:  # fmt: skip
    """``ufunc(*inputs, out=out, where=where)``."""
    _refuse(ufunc.__name__, options)
    if len(inputs) > ufunc.nin:
        inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin :]
    if ufunc not in ufuncs.UFUNCS:
        raise unsupported(ufunc.__name__)
    result = ufuncs.call(ufunc, tuple(unwrapped(v) for v in inputs), dtype)
    if out is None and where is True:
        return wrapped(result)
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    written = [_written(ufunc, r, t, where) for r, t in zip(results, targets, strict=False)]
    return written[0] if len(written) == 1 else tuple(written)


def _written(ufunc: Any, result: Tensor, target: Any, where: Any) -> Any:
    """`result` stored into the array `target`, at the true positions of `where`."""
    if target is None:
        if where is True:
            return wrapped(result)
        raise TypeError(
            f"np.{ufunc.__name__}: where= without out= leaves elements without a value"
            f"{at(user_origin())}"
        )
    if not isinstance(target, Array):
        raise TypeError(f"return arrays must be of ArrayType{at(user_origin())}")
    store(target, result, f"Cannot cast ufunc {ufunc.__name__!r} output", where)
    return target


def store(target: Array, result: Tensor, refusal: str, where: Any = True) -> None:
    """Write a result into an array, cast as NumPy's "same kind" rule allows.

    Raises:
        TypeError: the result's dtype does not fit the array's.
        ValueError: its shape does not broadcast to the array's.
    """
    target.check_writable()
    old = target.tensor
    if not np.can_cast(result.dtype.np_dtype, old.dtype.np_dtype, "same_kind"):
        raise TypeError(
            f"{refusal} from {result.dtype.name} to {old.dtype.name} with casting rule "
            f"'same_kind'{at(user_origin())}"
        )
    if result.ndim > old.ndim:
        raise ValueError(
            f"non-broadcastable output operand with shape {old.shape} doesn't match the broadcast "
            f"shape {result.shape}{at(user_origin())}"
        )
    new = broadcast_to_dims(cast(result, old.dtype), old.dims)
    if where is not True:
        new = select(as_array(unwrapped(where)), new, old)
    target.write(new)


def reduce_ufunc(ufunc: Any, method: str, array: Any, *args: Any, **options: Any) -> Any:
    """``ufunc.reduce`` and ``ufunc.accumulate``."""
    function = reduction_of(ufunc, method)
    if function is None:
        raise unsupported(f"{ufunc.__name__}.{method}")
    axis = args[0] if args else options.pop("axis", 0)
    return _called(f"{ufunc.__name__}.{method}", function, (array, axis), options)


def ufunc_at(ufunc: Any, target: Any, indices: Any, values: Any = None) -> None:
    """``ufunc.at(target, indices, values)``: repeated positions count each time."""
    combined_at(ufunc, target, indices, values)


def call_function(func: Any, args: Any, options: dict[str, Any]) -> Any:
    """One of NumPy's functions on arguments, some of them traced."""
    name = f"{func.__module__.removeprefix('numpy').lstrip('.')}.{func.__name__}".lstrip(".")
    function = FUNCTIONS.get(func)
    if function is None:
        raise unsupported(name)
    return _called(name, function, *_named_from_out(func, args, options))


def _named_from_out(
    func: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with ``out`` and those behind it by name: our functions have no ``out``."""
    names = _positional(func) if len(args) > 1 else ()
    if "out" not in names[: len(args)]:
        return args, options
    place = names.index("out")
    named_ones = dict(zip(names[place:], args[place:], strict=False))
    return args[:place], {**named_ones, **options}


@functools.cache
def _positional(func: Any) -> tuple[str, ...]:
    """The names of the parameters that a function of NumPy's takes by position."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError:  # NumPy gives no signature
        return ()
    behind_any_number = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
    return tuple(p.name for p in parameters if p.kind not in behind_any_number)


def _called(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    where = options.pop("where", True)
    initial = options.pop("initial", np._NoValue)
    kept = {
        k: unwrapped(v)
        for k, v in options.items()
        if k not in _STORAGE and v is not np._NoValue and not (k == "dtype" and v is None)
    }
    if where is np._NoValue:
        where = True
    while args and (args[-1] is np._NoValue):
        args = args[:-1]
    given = [unwrapped(a) for a in args]
    if where is True and initial is np._NoValue:
        result = function(*given, **kept)
    else:
        result = _masked(name, function, given, kept, where, initial)
    if out is None:
        return wrapped(result)
    target = out[0] if isinstance(out, tuple) else out
    store(target, result, f"Cannot cast the output of np.{name}")
    return target


# The value of elements that a reduction leaves out, and how `initial` is joined to the result.
_LEFT_OUT = {"sum": 0, "prod": 1, "any": False, "all": True}
_JOINED = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_JOINED |= {"amax": np.maximum, "amin": np.minimum}


def _masked(
    name: str, function: Callable[..., Any], args: list[Any], kept: dict[str, Any], where: Any,
    initial: Any,
) -> Any:  # fmt: skip
    """A reduction with ``where=`` or ``initial=``."""
    joined, left_out = _JOINED.get(name), _LEFT_OUT.get(name, initial)
    refused = initial is not np._NoValue and joined is None
    if refused or (where is not True and left_out is np._NoValue):
        raise TypeError(
            f"np.{name}: where= and initial= are not supported like this; use np.where on the "
            f"argument{at(user_origin())}"
        )
    if where is not True:
        x, mask = as_array(args[0]), as_array(unwrapped(where))
        blank = cast(as_array(unwrapped(left_out)), x.dtype)
        dims = broadcast(x.dims, mask.dims)
        args = [select(mask, broadcast_to_dims(x, dims), blank), *args[1:]]
    result = function(*args, **kept)
    if initial is np._NoValue or joined is None:
        return result
    return ufuncs.call(joined, (result, unwrapped(initial)))


def _refuse(name: str, options: dict[str, Any]) -> None:
    unknown = [k for k in options if k not in _STORAGE]
    if unknown:
        raise TypeError(f"np.{name}: {unknown[0]}= is not supported{at(user_origin())}")


# -- operators -----------------------------------------------------------------------------------


def _is_operand(value: Any) -> bool:
    return isinstance(value, _OPERANDS)


def _forward(ufunc: Any) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return call_ufunc(ufunc, self, other) if _is_operand(other) else NotImplemented

    return operator


def _reflected(ufunc: Any) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return call_ufunc(ufunc, other, self) if _is_operand(other) else NotImplemented

    return operator


def _in_place(ufunc: Any, symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Array, other: Any) -> Array:
        result = ufuncs.call(ufunc, (self.tensor, unwrapped(other)))
        store(self, result, f"Cannot cast ufunc {ufunc.__name__!r} output")
        return self

    return operator


def _equality(ufunc: Any, otherwise: bool) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return otherwise
        return call_ufunc(ufunc, self, other) if _is_operand(other) else NotImplemented

    return operator


_BINARY = {
    "add": ("+", np.add), "sub": ("-", np.subtract), "mul": ("*", np.multiply),
    "truediv": ("/", np.true_divide), "floordiv": ("//", np.floor_divide),
    "mod": ("%", np.remainder), "pow": ("**", np.power), "matmul": ("@", np.matmul),
    "and": ("&", np.bitwise_and), "or": ("|", np.bitwise_or), "xor": ("^", np.bitwise_xor),
    "lshift": ("<<", np.left_shift), "rshift": (">>", np.right_shift),
}  # fmt: skip
_ORDER = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNARY = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip
_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "clip", "conj", "conjugate",
    "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp",
    "repeat", "round", "searchsorted", "std", "sum", "take", "trace", "var",
)  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Traced, *args: Any, **options: Any) -> Any:
        if isinstance(function, np.ufunc):
            return call_ufunc(function, self, *args, **options)
        args, options = _named_from_out(function, (self, *args), options)
        return _called(name, named(name), args, options)

    method.__name__ = name
    method.__doc__ = f"As ``numpy.ndarray.{name}``."
    return method


def _divmod(a: Any, b: Any) -> Any:
    return call_ufunc(np.floor_divide, a, b), call_ufunc(np.remainder, a, b)


def _compress(self: Traced, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return call_function(np.compress, (condition, self), {"axis": axis, "out": out})


def _set_part(is_real: bool) -> Callable[[Array, Any], None]:
    def setter(self: Array, value: Any) -> None:
        part = self.real if is_real else self.imag
        part[...] = value

    return setter


def install() -> None:
    """Put operators and methods on `Traced`, `Array` and `Scalar`."""
    for name, (symbol, ufunc) in _BINARY.items():
        setattr(Traced, f"__{name}__", _forward(ufunc))
        setattr(Traced, f"__r{name}__", _reflected(ufunc))
        setattr(Array, f"__i{name}__", _in_place(ufunc, symbol))
    for name, ufunc in _ORDER.items():
        setattr(Traced, f"__{name}__", _forward(ufunc))
    for name, ufunc in _UNARY.items():
        setattr(Traced, f"__{name}__", lambda self, ufunc=ufunc: call_ufunc(ufunc, self))
    for name in _METHODS:
        setattr(Traced, name, _method(name))
    made: dict[str, Any] = {
        "__eq__": _equality(np.equal, False),
        "__ne__": _equality(np.not_equal, True),
        "__divmod__": _divmod,
        "compress": _compress,
        "__rdivmod__": lambda self, other: _divmod(other, self),
        "__round__": lambda self, digits=0: call_function(np.round, (self, digits or 0), {}),
        "__array_ufunc__": _array_ufunc,
    }
    for name, method in made.items():
        setattr(Traced, name, method)
    setattr(Array, "shape", Traced.shape.setter(Array.set_shape))  # type: ignore[attr-defined]  # noqa: B010
    setattr(Array, "real", Array.real.setter(_set_part(True)))  # type: ignore[attr-defined]  # noqa: B010
    setattr(Array, "imag", Array.imag.setter(_set_part(False)))  # type: ignore[attr-defined]  # noqa: B010


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's protocol: a ufunc that was reached by another way than the proxied module."""
    if method == "__call__":
        return call_ufunc(ufunc, *inputs, **options)
    if method == "outer":
        return wrapped(ufuncs.outer(ufunc, *(unwrapped(v) for v in inputs)))
    if method == "at":
        return ufunc_at(ufunc, *inputs)
    return reduce_ufunc(ufunc, method, *inputs, **options)


install()
