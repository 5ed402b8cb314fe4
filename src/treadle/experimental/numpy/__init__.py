"""``td.experimental.numpy``: NumPy's functions that give tensors, with NumPy's promotion of dtypes.

Each is NumPy's own function, which takes tensors in functions and under tapes as well; here its
arrays and numbers become tensors. ``td.jit`` is for whole programs in NumPy's meaning.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor as ndarray
from treadle.experimental.numpy import random
from treadle.names import missing_name
from treadle.numpy_staging.dtypes import as_array
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.operators import promote_as_numpy
from treadle.ops.shaping.creation import zeros_like as zeros_of_tensor

_FUNCTIONS = [
    "abs", "absolute", "add", "all", "allclose", "amax", "amin", "angle", "any", "append", "arange",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "argsort", "around", "array_equal", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_arrays", "broadcast_to",
    "cbrt", "ceil", "clip", "compress", "concatenate", "conj", "conjugate", "cos", "cosh",
    "count_nonzero", "cross", "cumprod", "cumsum", "deg2rad", "diag", "diag_indices", "diagflat",
    "diagonal", "diff", "divide", "divmod", "dot", "dsplit", "dstack", "einsum",
    "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "fix", "flip",
    "fliplr", "flipud", "float_power", "floor", "floor_divide", "full", "full_like", "gcd",
    "geomspace", "greater", "greater_equal", "heaviside", "hsplit", "hstack", "hypot", "identity",
    "imag", "inner", "isclose", "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "ix_", "kron", "lcm", "less", "less_equal", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logspace", "matmul", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "moveaxis",
    "multiply", "nanmean", "nanprod", "nansum", "negative", "nextafter", "nonzero", "not_equal",
    "ones", "ones_like", "outer", "pad", "polyval", "positive", "power", "prod", "ptp", "rad2deg",
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
    "shape", "size", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip
_OLD = {"float_": "float64", "complex_": "complex128", "string_": "bytes_", "unicode_": "str_"}

__all__ = [
    "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "empty", "empty_like",
    "experimental_enable_numpy_behavior", "flatten", "ndarray", "random", "zeros",
]  # fmt: skip


def array(
    val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0
) -> ndarray:
    """A tensor of numbers, lists or tensors, in the dtype that NumPy gives them.

    Args:
        copy: accepted for NumPy programs: tensors do not change.
        ndmin: the least number of axes; new ones are in front.
    """
    found = as_array(_plain(val))
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


def _of_tensors(function: Any) -> Any:
    """NumPy's function, with tensors for the arrays and numbers that it gives."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _tensors(function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()}))

    call.__module__ = __name__
    return call


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
        value = _of_tensors(getattr(np, name))
    elif name in _NUMPYS or name in _OLD:
        value = getattr(np, _OLD.get(name, name))
    else:
        raise missing_name(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_FUNCTIONS, *_NUMPYS, *_OLD})
