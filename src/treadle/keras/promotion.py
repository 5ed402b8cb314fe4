"""Keras's names of dtypes, and the dtype of what is computed from several.

Python's numbers are *weak*: an int beside a float16 tensor is a float16. Dtypes are the nodes of a
graph with arrows to the next greater ones; the common dtype is the least that all reach.
"""

from __future__ import annotations

import functools
from typing import Any

import treadle as td
from treadle.keras import config

_INTS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_FLOATS = ("bfloat16", "float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_NAMES = frozenset({"bool", "string", *_INTS, *_FLOATS, *_COMPLEX})
_OF_PYTHON: dict[Any, str] = {
    bool: "bool", int: "int64", float: "float32", complex: "complex128", str: "string",
    "int": "int64",
}  # fmt: skip
# The next greater dtypes; "int" and "float" are those of Python's numbers.
_GREATER = {
    "bool": "int", "int": "uint8 int8 complex64", "float": "bfloat16 float16",
    "uint8": "int16 uint16", "uint16": "int32 uint32", "uint32": "int64 uint64", "uint64": "float",
    "int8": "int16", "int16": "int32", "int32": "int64", "int64": "float",
    "bfloat16": "float32", "float16": "float32", "float32": "float64 complex64",
    "float64": "complex128", "complex64": "complex128", "complex128": "",
}  # fmt: skip
_NARROWED = {"uint64": "uint32", "complex128": "complex64"}  # Keras's programs compute in these


def standardize_dtype(dtype: Any) -> str:
    """The name of a dtype: of its name, of a dtype of NumPy or treadle, or of a Python type; of
    None that of `floatx`.

    Raises:
        ValueError: it is none of these.
    """
    if dtype is None:
        return config.floatx()
    known = _OF_PYTHON.get(dtype) if isinstance(dtype, type | str) else None
    name = known or getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
    if name not in _NAMES:
        raise ValueError(f"Invalid dtype: {dtype!r}. Dtypes are {', '.join(sorted(_NAMES))}")
    return str(name)


def is_float_dtype(dtype: Any) -> bool:
    """Whether it is a floating dtype."""
    return standardize_dtype(dtype) in _FLOATS


def is_int_dtype(dtype: Any) -> bool:
    """Whether it is a dtype of integers."""
    return standardize_dtype(dtype) in _INTS


@functools.cache
def _reached(dtype: str) -> frozenset[str]:
    """The dtype and all greater ones."""
    above = [_reached(greater) for greater in _GREATER[dtype].split()]
    return frozenset({dtype}).union(*above)


@functools.cache
def _common(dtypes: frozenset[str]) -> str:
    """The least dtype that all reach."""
    unknown = sorted(dtypes - _GREATER.keys())
    if unknown:
        raise ValueError(f"dtype={unknown[0]!r} has no common dtype with others")
    shared = frozenset.intersection(*map(_reached, dtypes))
    return max(shared, key=lambda dtype: len(_reached(dtype) & shared))


@functools.cache
def _result_type(dtypes: tuple[Any, ...], floatx: str) -> str:
    weak = [dtype is int or dtype is float for dtype in dtypes]
    names = [standardize_dtype(dtype) for dtype in dtypes]
    if len({*names}) == 1 and not all(weak):
        found = names[0]
    elif all(weak):
        found = "float" if "float32" in names else "int"
    else:
        own = [kind.__name__ if w else name
               for kind, w, name in zip(dtypes, weak, names, strict=True)]  # fmt: skip
        found = _common(frozenset(own))
    if found in ("int", "float"):
        bits = floatx[-2:]
        found = "float" + bits if found == "float" else "int" + bits
    return _NARROWED.get(found, found)


def result_type(*dtypes: Any) -> str:
    """The dtype of what is computed from values of these dtypes.

    Args:
        dtypes: names or dtypes; `int` and `float` are those of Python's numbers. None is `floatx`.

    Raises:
        ValueError: they have none in common.
    """
    floatx = config.floatx()
    given = tuple(d if d is int or d is float else standardize_dtype(d) for d in dtypes)
    return _result_type(given, floatx) if given else floatx


def dtype_of(x: Any) -> Any:
    """What `result_type` takes for a value: Python's numbers are weak."""
    if type(x) in (int, float):
        return type(x)
    return standardize_dtype(x.dtype) if hasattr(x, "dtype") else td.convert_to_tensor(x).dtype.name
