"""``td.experimental.numpy``: NumPy's functions that give tensors, with NumPy's promotion of dtypes.

Each is NumPy's own function, which takes tensors in functions and under tapes as well; here its
arrays and numbers become tensors. ``td.jit`` is for whole programs in NumPy's meaning.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor as ndarray
from treadle.experimental.numpy import random
from treadle.names import missing_name
from treadle.numpy_staging.dtypes import as_array, holds_tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.operators import promote_as_numpy
from treadle.ops.shaping.creation import zeros_like as zeros_of_tensor
from treadle.ops.shaping.padding import pad as pad_tensor

_FUNCTIONS = [
    "abs", "absolute", "add", "all", "allclose", "amax", "amin", "angle", "any", "append", "arange",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "argsort", "around", "array_equal", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_arrays", "broadcast_to",
    "cbrt", "ceil", "clip", "compress", "concatenate", "conj", "conjugate", "cos", "cosh",
    "count_nonzero", "cross", "cumprod", "cumsum", "deg2rad", "diag", "diag_indices", "diagflat",
    "diagonal", "diff", "divide", "divmod", "dot", "dsplit", "dstack", "einsum",
    "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "fix", "flip",
    "fliplr", "flipud", "float_power", "floor", "floor_divide", "full_like", "gcd",
    "geomspace", "greater", "greater_equal", "heaviside", "hsplit", "hstack", "hypot", "identity",
    "imag", "inner", "isclose", "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "ix_", "kron", "lcm", "less", "less_equal", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logspace", "matmul", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "moveaxis",
    "multiply", "nanmean", "nanprod", "nansum", "negative", "nextafter", "nonzero", "not_equal",
    "ones", "ones_like", "outer", "polyval", "positive", "power", "prod", "ptp", "rad2deg",
    "ravel", "real", "reciprocal", "remainder", "repeat", "reshape", "roll", "rot90", "round",
    "select", "sign", "signbit", "sin", "sinc", "sinh", "sort", "split", "sqrt", "square",
    "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan",
    "tanh", "tensordot", "tile", "trace", "transpose", "tri", "tril", "triu", "true_divide",
    "vander", "var", "vdot", "vsplit", "vstack", "where", "zeros_like",
]  # fmt: skip
# What is not about elements of tensors, and is NumPy's own.
_NUMPYS = [
    "bool_", "complex128", "complex64", "e", "finfo", "float16", "float32", "float64", "iinfo",
    "inexact", "inf", "int16", "int32", "int64", "int8", "int_", "iscomplexobj", "isrealobj",
    "isscalar", "issubdtype", "ndim", "newaxis", "object_", "pi", "promote_types", "result_type",
    "shape", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip
_OLD = {"float_": "float64", "complex_": "complex128", "string_": "bytes_", "unicode_": "str_"}

__all__ = [
    "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "empty", "empty_like",
    "experimental_enable_numpy_behavior", "flatten", "full", "ndarray",
    "pad", "random", "size", "zeros",
]  # fmt: skip
__all__ += [*_FUNCTIONS, *_NUMPYS, *_OLD]  # programs import * from here


def array(
    val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0
) -> ndarray:
    """A tensor of numbers, lists or tensors, in the dtype that NumPy gives them.

    Args:
        copy: accepted for NumPy programs: tensors do not change.
        ndmin: the least number of axes; new ones are in front.
    """
    found = as_array(_plain(_array(val)))
    if dtype is not None:
        found = cast(found, dtype)
    missing = ndmin - found.ndim
    return found if missing <= 0 else found[(None,) * missing]


def asarray(a: Any, dtype: Any = None) -> ndarray:
    """`a` as a tensor: see `array`."""
    return array(a, dtype)


def copy(a: Any) -> ndarray:
    """`a` as a tensor: see `array`."""
    return array(a)


def flatten(a: Any, order: Literal["C", "F", "A", "K"] = "C") -> ndarray:
    """The elements in one axis."""
    x: Any = as_array(a)  # NumPy's functions take tensors
    flat: ndarray = _tensors(np.ravel(x, order))
    return flat


asanyarray = ascontiguousarray = asarray


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """Zeros, of strings empty ones."""
    made = _plain(dtype)
    if made is dtypes.string.np_dtype:
        return convert_to_tensor(np.full(shape, b"", made))
    return _tensors(np.zeros(shape, made))  # type: ignore[no-any-return]


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """`zeros`: a tensor always has values."""
    return zeros(shape, dtype)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> ndarray:
    """`numpy.zeros_like`: a tensor always has values."""
    if isinstance(prototype, ndarray) and prototype.dtype is dtypes.string and dtype is None:
        return zeros_of_tensor(prototype)
    x: Any = prototype  # NumPy's functions take tensors
    return _tensors(np.zeros_like(x, _plain(dtype), shape=shape))  # type: ignore[no-any-return]


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """A tensor of one value, or of an array's values broadcast to a shape."""
    value: Any = array(fill_value, dtype)  # NumPy's functions take tensors
    return _tensors(np.broadcast_to(value, shape))  # type: ignore[no-any-return]


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> ndarray:
    """`numpy.pad`, whose widths may be a tensor, also one of floats.

    Args:
        mode: with a tensor of widths "constant", "reflect" or "symmetric".
        kwargs: `numpy.pad`'s; with a tensor of widths `constant_values`, a number.
    """
    x: Any = _array(array)
    if not isinstance(pad_width, ndarray):
        return _tensors(np.pad(x, pad_width, mode, **kwargs))  # type: ignore[no-any-return,call-overload]
    return pad_tensor(as_array(x), cast(pad_width, dtypes.int32), mode, **kwargs)


def size(x: Any, axis: Any = None) -> Any:
    """How many elements there are, in all axes or one."""
    return np.size(_array(x), axis)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Let operators of tensors promote dtypes as NumPy does, for the rest of the process. Tensors
    always have methods as `reshape`, `T` and `astype`, and indices as NumPy's.

    Args:
        prefer_float32: whether Python's floats, and NumPy's scalars of float64, are float32 where
            the functions of this module take them.
        dtype_conversion_mode: "legacy".

    Raises:
        NotImplementedError: another mode.
    """
    global _prefers_float32
    if dtype_conversion_mode != "legacy":
        raise NotImplementedError(
            "dtype_conversion_mode is 'legacy': the functions of td.experimental.numpy promote as "
            f"NumPy does{at(user_origin())}"
        )
    promote_as_numpy()
    _prefers_float32 = prefer_float32


_prefers_float32 = False


# TensorFlow's names of arguments, in their order, of which NumPy's functions take some by position
# only or call them otherwise; ufuncs have `x`, or `x1` and `x2`.
_ARGUMENTS = {
    "arange": ("start", "stop", "step"),
    "concatenate": ("arys", "axis"),
    "empty_like": ("a",),
    "inner": ("a", "b"),
    "isscalar": ("num",),
    "promote_types": ("type1", "type2"),
    "reshape": ("a", "newshape"),
    "tile": ("a", "reps"),
    "vdot": ("a", "b"),
    "where": ("condition", "x", "y"),
}
# Functions whose first arguments are lists of arrays, and those of any number of arrays.
_OF_LISTS = {"concatenate": 1, "dstack": 1, "hstack": 1, "select": 2, "stack": 1, "vstack": 1}
_OF_ARRAYS = ("broadcast_arrays", "einsum", "ix_", "meshgrid")


def _names_of(name: str, function: Any) -> Sequence[str]:
    """TensorFlow's names of the arguments that NumPy's function gets by position."""
    if isinstance(function, np.ufunc):
        return ("x",) if function.nin == 1 else ("x1", "x2")
    if name in _ARGUMENTS:
        return _ARGUMENTS[name]
    first = next(iter(inspect.signature(function).parameters.values()))
    return () if first.kind is first.VAR_POSITIONAL else (first.name,)


def _of_tensors(name: str, function: Any) -> Any:
    """NumPy's function, with tensors for the arrays and numbers that it gives."""
    names = _names_of(name, function)
    lists = _OF_LISTS.get(name, 0)
    arrays = function.nin if isinstance(function, np.ufunc) else 0 if lists else 1

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for at_position, argument in enumerate(names):
            if argument not in kwargs:
                continue
            if len(args) != at_position:
                break  # given twice, or after one that is not given: NumPy says so
            args = (*args, kwargs.pop(argument))
        known = len(args) if name in _OF_ARRAYS else arrays
        given = [*map(_array, args[:known]), *args[known:]]
        given[:lists] = map(_arrays, given[:lists])
        plain = {k: _plain(v) for k, v in kwargs.items()}
        return _tensors(function(*map(_plain, given), **plain))

    call.__module__ = __name__
    return call


def _array(value: Any) -> Any:
    """A tensor for what NumPy would make an array of objects of."""
    return as_array(value) if not isinstance(value, ndarray) and holds_tensor(value) else value


def _arrays(values: Any) -> Any:
    return [_array(v) for v in values] if isinstance(values, list | tuple) else _array(values)


def _plain(value: Any) -> Any:
    if _prefers_float32 and type(value) in (float, np.float64):
        return np.float32(value)
    return value.np_dtype if isinstance(value, DType) else value


def _tensors(found: Any) -> Any:
    return nest.map_structure(
        lambda x: convert_to_tensor(np.asarray(x)) if isinstance(x, np.ndarray | np.generic) else x,
        found,
    )


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        value = _of_tensors(name, getattr(np, name))
    elif name in _NUMPYS or name in _OLD:
        value = getattr(np, _OLD.get(name, name))
    else:
        raise missing_name(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
