"""Random orders as pure functions of a seed: of all elements, and of single positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gathered
from treadle.ops.lowering import RowCall, Rows
from treadle.ops.random.algorithms import check_algorithm
from treadle.ops.random.distributions import seeded
from treadle.ops.random.orders import random_order
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import integer
from treadle.ops.shaping.creation import fill
from treadle.ops.shaping.joining import concat

_POSITIONS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)

# -- all elements ----------------------------------------------------------------------------------


def stateless_shuffle(
    value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """`value` with its first axis in an order that `seed`, two ints, decides: TensorFlow's.

    Raises:
        InvalidArgumentError: the value is a scalar.
    """
    check_algorithm(alg)
    x = convert_to_tensor(value)
    if x.ndim == 0:
        raise _wrong("stateless_shuffle: a scalar cannot be shuffled")
    return gathered(x, random_order(seeded(seed), x.dims[0]))


# -- single positions ------------------------------------------------------------------------------

# The block cipher Simon with few rounds, whose blocks have as many bits as the positions; what lies
# beyond the last position is enciphered again (J. Black, P. Rogaway: Ciphers with Arbitrary Finite
# Domains, 2002; R. Beaulieu et al.: The Simon and Speck Families of Lightweight Block Ciphers).
LEAST_BITS = 16
CONSTANT = 0xFFFFFFFC
SEQUENCE = 0x7369F885192C0EF5
_ROUND_WORK = 16  # element operations of a round
_FIRST_WORD = 498247692  # of the cipher's three words of seed, where two are given (TensorFlow's)


def _infer_shuffled(
    index: TensorSpec, seed: TensorSpec, last: TensorSpec, *, rounds: int
) -> TensorSpec:
    if not all(x.dtype.is_integer for x in (index, seed, last)):
        raise TypeError("positions and seeds are integers")
    if index.dims != last.dims or seed.dims != (*index.dims, 3):
        raise errors.InvalidArgumentError(
            None, None, f"a seed of shape {seed.shape} does not fit positions of {index.shape}"
        )
    return index


def _eager_shuffled(index: NDArray, seed: NDArray, last: NDArray, *, rounds: int) -> NDArray:
    given, most = index.reshape(-1), last.reshape(-1)
    if np.any(given > most) or np.any(given < 0):
        raise errors.InvalidArgumentError(None, None, "a position must be from 0 to max_index")
    result = given.astype(np.uint64)
    words = seed.reshape(-1, 3).astype(np.int64) & 0xFFFFFFFF
    for place, (position, key) in enumerate(zip(given.tolist(), words.tolist(), strict=True)):
        result[place] = _shuffled(position, key, int(most[place]), rounds)
    return result.astype(index.dtype).reshape(index.shape)


def _shuffled(position: int, seed: list[int], last: int, rounds: int) -> int:
    if last == 0:
        return 0
    bits = max((last - 1).bit_length(), 1)
    half = max(bits + bits % 2, LEAST_BITS) // 2
    if last >> 2 * half:  # a power of two needs one bit more
        half += 1
    mask = (1 << half) - 1
    keys = _round_keys(seed, half, rounds)
    while True:
        left, right = position >> half, position & mask
        for first, second in zip(keys[::2], keys[1::2], strict=True):
            left ^= _mixed(right, half) ^ first
            right ^= _mixed(left, half) ^ second
        position = left << half | right
        if position <= last:
            return position


def _round_keys(seed: list[int], half: int, rounds: int) -> list[int]:
    mask = (1 << half) - 1
    keys = [word & mask for word in seed]
    sequence = SEQUENCE & mask
    for k in range(3, rounds):
        turned = _turned(keys[k - 1], half - 3, half) ^ _turned(keys[k - 1], half - 4, half)
        keys.append((CONSTANT & mask) ^ (sequence & 1) ^ keys[k - 3] ^ turned)
        sequence >>= 1
    return keys


def _mixed(word: int, half: int) -> int:
    return _turned(word, 1, half) & _turned(word, 8, half) ^ _turned(word, 2, half)


def _turned(word: int, count: int, half: int) -> int:
    """The bits of a word moved to the left around its end."""
    return (word << count | word >> (half - count)) & ((1 << half) - 1)


def _shuffled_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall:
    index, seed, _ = inputs
    signed = not index.dtype.is_unsigned
    names: dict[str, DType | int] = {"T": index.dtype, "I": seed.dtype, "SIGNED": signed}
    count, rounds = product(index.dims), attrs["rounds"]
    return RowCall(count, _ROUND_WORK * rounds * count, {"rounds": rounds}, names)


SHUFFLED = register(
    Op(
        "random_index_shuffle", _infer_shuffled, _eager_shuffled,
        lower=Rows("drawing.shuffled", _shuffled_call, fails=True, eagerly=True),
    )
)  # fmt: skip


def random_index_shuffle(
    index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None
) -> Tensor:
    """Where the positions from 0 to `max_index` are in an order that a seed of three words decides.

    Args:
        index: a scalar or a vector of int32, int64, uint32 or uint64 from 0 to max_index.
        seed: three ints, or [n, 3].
        max_index: the last position, a scalar or a vector of index's dtype.
        rounds: of the cipher, an even number from 4 on.

    Returns:
        Positions of index's dtype: a scalar where there are scalars only, else [n].

    Raises:
        InvalidArgumentError: other shapes or dtypes, or an index that is not from 0 to max_index.
    """
    if not isinstance(index, Tensor) and isinstance(max_index, Tensor):
        last, place = max_index, convert_to_tensor(index, max_index.dtype)
    else:
        place, last = common_dtype("random_index_shuffle", index, max_index)
    words, rounds = convert_to_tensor(seed), integer("random_index_shuffle: rounds", rounds)
    if place.dtype not in _POSITIONS or not words.dtype.is_integer or rounds < 4 or rounds % 2:
        raise _wrong(
            f"random_index_shuffle: positions of dtype {place.dtype.name}, a seed of dtype "
            f"{words.dtype.name} and {rounds} rounds; positions are integers of 32 or 64 bits, "
            "seeds integers, and rounds an even number from 4 on"
        )
    if place.ndim > 1 or last.ndim > 1 or words.ndim not in (1, 2):
        raise _wrong(
            f"random_index_shuffle: index, seed and max_index of shapes {place.shape}, "
            f"{words.shape} and {last.shape}; scalars or vectors, and [3] or [n, 3], are expected"
        )
    try:
        dims = broadcast(broadcast(place.dims, last.dims), words.dims[:-1])
    except ValueError:
        text = f"shapes {place.shape}, {words.shape} and {last.shape} do not fit together"
        raise _wrong(f"random_index_shuffle: {text}") from None
    whole = broadcast_dims(words, (*dims, words.dims[-1]))
    places = broadcast_dims(place, dims), whole, broadcast_dims(last, dims)
    return run(SHUFFLED, *places, rounds=rounds)  # type: ignore[no-any-return]


def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """`random_index_shuffle` with a seed of two ints, or of [n, 2]; the positions are
    TensorFlow's."""
    words = convert_to_tensor(seed)
    first = fill((*words.dims[:-1], 1), cast(_FIRST_WORD, words.dtype))
    return random_index_shuffle(index, concat([first, words], -1), max_index)


def _wrong(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
