"""Hashes of the keys of dicts and sets: numbers from 0 to 2**32 - 1, the same for keys that are
known while a function is traced, by NumPy, as for those that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.jitted.arrays import Scalar
from treadle.jitted.operations import call_ufunc
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import symbolic_number

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio: neighbours go far apart
_FACTORS = (0.6180339887498949, 7548776.662466927)  # of floats: see `_bits_of`


def hash_of(leaves: Sequence[Any]) -> Any:
    """A number from 0 to 2**32 - 1 for a key, a symbolic int."""
    found: Any = None
    for leaf in leaves:
        tensor = _tensor(leaf)
        if tensor.dtype.is_floating:
            bits = _bits_of(Scalar(cast(tensor, dtypes.float64)))
        else:
            bits = Scalar(cast(cast(tensor, dtypes.int64), dtypes.uint64))
        mixed = bits if found is None else call_ufunc(np.bitwise_xor, found, bits)
        spread = call_ufunc(np.multiply, mixed, _SPREAD)
        found = call_ufunc(np.right_shift, spread, np.uint64(32))
    return symbolic_number(cast(found.tensor, dtypes.int64))


def hashes_of(columns: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """As `hash_of`, of keys that are known."""
    found: Any = None
    with np.errstate(all="ignore"):
        for column in columns:
            if column.dtype.kind == "f":
                wide = column.astype(np.float64)
                parts = [wide * factor - np.floor(wide * factor) for factor in _FACTORS]
                total: Any = sum(parts)
                bits = (total * 2.0**32).astype(np.int64).astype(np.uint64)
            else:
                bits = column.astype(np.int64).astype(np.uint64)
            mixed = bits if found is None else found ^ bits
            found = (mixed * _SPREAD) >> np.uint64(32)
    return found.astype(np.int64)  # type: ignore[no-any-return]


def _bits_of(number: Scalar) -> Scalar:
    """Bits for a float, which kernels cannot read as they are: of fractions of multiples, one for
    numbers that are far apart and one for those that are near."""
    total: Any = np.float64(0.0)
    for factor in _FACTORS:
        multiple = call_ufunc(np.multiply, number, np.float64(factor))
        part = call_ufunc(np.subtract, multiple, call_ufunc(np.floor, multiple))
        total = call_ufunc(np.add, total, part)
    found = call_ufunc(np.multiply, total, np.float64(2.0**32))
    return Scalar(cast(cast(found.tensor, dtypes.int64), dtypes.uint64))


def _tensor(leaf: Any) -> Any:
    return leaf.tensor if isinstance(leaf, Scalar) else leaf.tensor()
