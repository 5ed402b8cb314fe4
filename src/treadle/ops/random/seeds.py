"""Seeds and states: states of generators, seeds made from seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.errors import DtypeError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.random.algorithms import check_algorithm
from treadle.ops.random.distributions import seeded, uniform_from
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat, stack

STATE_SIZE = 3  # of a Philox generator: two words of the counter and the key
_WORD = 1 << 64


def create_rng_state(seed: Any, alg: Any = None) -> Tensor:
    """The state of a generator, int64 [3], that a seed stands for.

    Args:
        seed: an int, whose words of 64 bits fill the state, or a vector of ints, which are its last
            numbers.
        alg: "philox", "auto_select", or the `Algorithm`.

    Raises:
        ValueError: for another algorithm.
        TypeError: the seed is no integer.
    """
    check_algorithm(alg)
    if isinstance(seed, int | np.integer):
        words = [int(seed) >> 64 * k for k in range(STATE_SIZE)]
        return convert_to_tensor(np.array([_word(w) for w in words]))
    if isinstance(seed, list | tuple):
        seed = np.array([_word(w) for w in seed])
    given = convert_to_tensor(seed)
    if not given.dtype.is_integer or given.ndim != 1:
        raise TypeError(f"a seed is an int or a vector of ints, not {seed!r}{at(user_origin())}")
    numbers = cast(given, dtypes.int64)[:STATE_SIZE]
    return concat([zeros([STATE_SIZE - numbers.dims[0]], dtypes.int64), numbers], 0)


def _word(value: Any) -> np.int64:
    return np.uint64(int(value) % _WORD).astype(np.int64)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new stateless seed, made from another one and a number, such as that of a step.

    Args:
        seed: two ints.
        data: an int32 or int64 scalar.

    Returns:
        Two numbers of data's dtype.

    Raises:
        TypeError: data of another dtype.
    """
    check_algorithm(alg)
    number = convert_to_tensor(data)
    if number.dtype not in (dtypes.int32, dtypes.int64):
        text = f"fold_in: data must be int32 or int64, not {number.dtype.name}{at(user_origin())}"
        raise DtypeError(None, None, text)
    return stack([uniform_from(seeded(seed), (), None, None, number.dtype), number])


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """`num` new stateless seeds, shape [num, 2], made from one."""
    check_algorithm(alg)
    tensor = convert_to_tensor(seed)
    return uniform_from(seeded(tensor), (size_of(num, "split: num"), 2), None, None, tensor.dtype)
