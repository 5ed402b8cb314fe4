"""Fingerprints: eight bytes that stand for a row of numbers or strings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings import hashing
from treadle.ops.strings.texts import STRINGS, invalid

_BYTES = 8


def _infer(x: Spec) -> TensorSpec:
    if not x.rank:
        raise invalid("data needs one dimension at least")
    return TensorSpec((x.dims[0], _BYTES), dtypes.uint8)


def _of(data: bytes) -> bytes:
    return hashing.fingerprint(data).to_bytes(_BYTES, "little")


def _row(row: Any) -> bytes:
    if row.dtype.kind != "O":
        return _of(row.tobytes())
    parts = [_of(s) for s in row.reshape(-1).tolist()]
    return parts[0] if len(parts) == 1 else _of(b"".join(parts))


def _eager(x: NDArray) -> NDArray:
    if not x.ndim:
        raise ValueError("a scalar")  # the shape rule says it
    rows = [list(_row(row)) for row in x.reshape(len(x), math.prod(x.shape[1:]))]
    return np.array(rows, np.uint8).reshape(len(x), _BYTES)


FINGERPRINT = register(Op("fingerprint", _infer, _eager, tags=STRINGS))


def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """Eight bytes for each row of `data` that are the same in every process, uint8 [n, 8].

    Args:
        data: numbers or strings [n, ...].
        method: "farmhash64".

    Raises:
        InvalidArgumentError: a scalar, or another method.
    """
    if method not in ("farmhash64", b"farmhash64"):
        raise invalid(f"Unsupported fingerprint method: {method}{at(user_origin())}")
    return run(FINGERPRINT, convert_to_tensor(data))  # type: ignore[no-any-return]
