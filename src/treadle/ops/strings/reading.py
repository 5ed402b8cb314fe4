"""Strings read as numbers, and their hashes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings.hashing import fingerprint, murmur, siphash
from treadle.ops.strings.texts import STRINGS, elementwise, invalid, mapped, string_tensor

_NUMBERS = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64,
)  # fmt: skip
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(
    rb"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE
)
_HEXADECIMAL = re.compile(
    rb"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?", re.IGNORECASE
)


def _to_number(x: NDArray, *, dtype: DType) -> NDArray:
    def read(s: bytes) -> Any:
        number = _read(s.strip(), dtype)
        if number is None:
            shown = s.decode(errors="backslashreplace")
            raise invalid(f"StringToNumberOp could not correctly convert string: {shown}")
        return number

    return mapped(read, x, dtype)


def _read(s: bytes, dtype: DType) -> Any:
    """The number, or None."""
    if dtype.is_integer:
        number = int(s) if _WHOLE.fullmatch(s) else None
        return number if number is not None and dtype.min <= number <= dtype.max else None
    if _FLOAT.fullmatch(s):
        return dtype.np_dtype.type(float(s))
    return float.fromhex(s.decode()) if _HEXADECIMAL.fullmatch(s) else None


TO_NUMBER = register(
    Op(
        "string_to_number", lambda x, *, dtype: TensorSpec(x.dims, dtype), _to_number, tags=STRINGS
    )
)  # fmt: skip


def to_number(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Every string as a number; blanks around it do not matter.

    Args:
        input: strings of any shape.
        out_type: float32, float64, int32, int64, uint32 or uint64.

    Raises:
        InvalidArgumentError: a string is no number, or none that an integer dtype has; another
            dtype.
    """
    dtype = dtypes.as_dtype(out_type)
    if dtype not in _NUMBERS:
        names = ", ".join(d.name for d in _NUMBERS)
        raise errors.DtypeError(
            None, TO_NUMBER,
            f"to_number: strings are read as {names}, not as {dtype.name}{at(user_origin())}",
        )  # fmt: skip
    return run(TO_NUMBER, string_tensor(input), dtype=dtype)  # type: ignore[no-any-return]


# -- hashes --------------------------------------------------------------------------------------

_FAST = elementwise(
    "string_to_hash_bucket_fast", lambda s, buckets: fingerprint(s) % buckets, dtypes.int64
)
_STEADY = elementwise("string_to_hash_bucket", lambda s, buckets: murmur(s) % buckets, dtypes.int64)
_STRONG = elementwise(
    "string_to_hash_bucket_strong", lambda s, buckets, key: siphash(s, key) % buckets, dtypes.int64
)
HASH_BUCKETS = (_FAST, _STEADY, _STRONG)


def _bucket_count(number: Any) -> int:
    count = int(number)
    if count < 1:
        raise invalid(f"num_buckets of {count} must be at least 1{at(user_origin())}")
    return count


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket for every string, by FarmHash's Fingerprint64.

    It is an int64 number below `num_buckets`, the same in TensorFlow and on every machine.

    Raises:
        InvalidArgumentError: `num_buckets` is below 1.
    """
    return run(_FAST, string_tensor(input), buckets=_bucket_count(num_buckets))  # type: ignore[no-any-return]


def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket for every string, by MurmurHash64A: see `to_hash_bucket_fast`.

    Raises:
        InvalidArgumentError: `num_buckets` is below 1.
    """
    return run(_STEADY, string_tensor(input), buckets=_bucket_count(num_buckets))  # type: ignore[no-any-return]


def to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """A bucket for every string, by SipHash under a key: see `to_hash_bucket_fast`.

    Whoever does not know the key cannot make strings for one bucket.

    Args:
        key: two integers below 2 ** 64.

    Raises:
        InvalidArgumentError: `num_buckets` is below 1, or the key has not two elements.
    """
    words = tuple(int(k) % (1 << 64) for k in np.asarray(key, object).tolist())
    if len(words) != 2:
        raise invalid(f"Key must have 2 elements, not {len(words)}{at(user_origin())}")
    buckets = _bucket_count(num_buckets)
    return run(_STRONG, string_tensor(input), buckets=buckets, key=words)  # type: ignore[no-any-return]
