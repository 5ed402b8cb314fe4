"""Random numbers: ``td.random``. The same seed gives the same numbers eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import sizes_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import log
from treadle.ops.indexing.gather import gathered
from treadle.ops.random.algorithms import check_algorithm
from treadle.ops.random.ops import (
    BITS,
    NORMAL,
    SCRAMBLE,
    TRUNCATED_NORMAL,
    UNIFORM,
    UNIFORM_INT,
)
from treadle.ops.random.orders import random_order
from treadle.ops.random.state import draw, set_seed
from treadle.ops.reductions.reduction import argmax
from treadle.ops.registry import Op, run

Dims = tuple[Dim, ...]


def random_dims(shape: Any) -> Dims:
    """A shape argument of a random op."""
    return sizes_of(shape, "random: a dim")


# -- distributions over a given state --------------------------------------------------------------


def uniform_from(state: Tensor, dims: Dims, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Uniform in [minval, maxval) from a state; integers need both limits, or neither."""
    kind = uniform_dtype(dtype)
    if kind.is_integer:
        return _uniform_integers(state, dims, minval, maxval, kind)
    numbers: Tensor = run(UNIFORM, state, shape=dims, dtype=kind.name)
    if _is_number(minval, 0) and (maxval is None or _is_number(maxval, 1)):
        return numbers
    low = convert_to_tensor(0 if minval is None else minval, kind)
    return numbers * (convert_to_tensor(1 if maxval is None else maxval, kind) - low) + low


def uniform_dtype(dtype: Any) -> DType:
    """The dtype of uniform numbers.

    Raises:
        ValueError: an integer that is not int32, int64, uint32 or uint64, as in TensorFlow.
        DtypeError: a dtype of no numbers, or of complex ones.
    """
    kind = dtypes.as_dtype(dtype)
    if not kind.is_integer:
        return floating(UNIFORM, kind)
    if kind.size < 4:
        text = f"random integers are int32, int64, uint32 or uint64, not {kind.name}"
        raise ValueError(f"{text}{at(user_origin())}")
    return kind


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and value == number


def _uniform_integers(state: Tensor, dims: Dims, low: Any, high: Any, kind: DType) -> Tensor:
    if low is None and high is None:
        unsigned = f"uint{8 * kind.size}"
        return cast(run(BITS, state, shape=dims, dtype=unsigned), kind)
    if high is None:
        raise ValueError(f"Must specify maxval for integer dtype {kind.name}{at(user_origin())}")
    limits = convert_to_tensor(0 if low is None else low, kind), convert_to_tensor(high, kind)
    return run(UNIFORM_INT, state, *limits, shape=dims)  # type: ignore[no-any-return]


def floating(op: Op, dtype: Any) -> DType:
    """The dtype of numbers of `op`; a DtypeError where it is not floating."""
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        text = f"{op.name}: dtype must be floating, not {kind.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return kind


def normal_from(op: Op, state: Tensor, dims: Dims, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """Numbers of `op` (normal or truncated normal) scaled by `stddev` and moved by `mean`."""
    kind = floating(op, dtype)
    numbers: Tensor = run(op, state, shape=dims, dtype=kind.name)
    if not _is_number(stddev, 1):
        numbers = numbers * convert_to_tensor(stddev, kind)
    return numbers if _is_number(mean, 0) else numbers + convert_to_tensor(mean, kind)


def seeded(seed: Any) -> Tensor:
    """The state that the seed of a stateless op stands for."""
    tensor = convert_to_tensor(seed)
    if not tensor.dtype.is_integer:
        text = f"a seed is two integers, not of dtype {tensor.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if tensor.ndim != 1:
        text = "a stateless seed is a tensor of two int32 or int64 numbers, not of shape"
        text = f"{text} {tensor.shape}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        tensor = cast(tensor, dtypes.int64)
    return run(SCRAMBLE, tensor)  # type: ignore[no-any-return]


# -- stateful --------------------------------------------------------------------------------------


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers uniform in [minval, maxval).

    Args:
        shape: the result's shape; dims of ``td.shape(x)`` may be symbolic.
        minval, maxval: the limits, 0 and 1 by default; integers need `maxval`.
        dtype: a floating dtype, or int32, int64, uint32, uint64.
        seed: a stream of its own, combined with the global seed.
        name: accepted for TensorFlow programs.
    """
    dims = random_dims(shape)
    kind = uniform_dtype(dtype)  # refused before the stream moves on
    return uniform_from(draw(seed, dims), dims, minval, maxval, kind)


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers."""
    kind, dims = floating(NORMAL, dtype), random_dims(shape)
    return normal_from(NORMAL, draw(seed, dims), dims, mean, stddev, kind)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers within two standard deviations of the mean."""
    kind, dims = floating(TRUNCATED_NORMAL, dtype), random_dims(shape)
    return normal_from(TRUNCATED_NORMAL, draw(seed, dims), dims, mean, stddev, kind)


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """`value` with its first axis in random order."""
    x = convert_to_tensor(value)
    if x.ndim == 0:
        raise errors.InvalidArgumentError(
            None, None, f"random.shuffle: a scalar cannot be shuffled{at(user_origin())}"
        )
    return gathered(x, random_order(draw(seed, x.dims[:1]), x.dims[0]))


def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Classes drawn with probabilities ``softmax(logits)``.

    Args:
        logits: [batch, classes] unnormalised log-probabilities.
        num_samples: how many for each row.
        dtype: int64 (default) or int32.
        seed, name: as for `uniform`.

    Returns:
        [batch, num_samples] class numbers.
    """
    x, dims = _categorical_dims(logits, num_samples)
    return _categorical(draw(seed, dims), x, dims, dtype)


def _categorical_dims(logits: Any, num_samples: Any) -> tuple[Tensor, Dims]:
    x = convert_to_tensor(logits)
    if x.ndim != 2:
        raise errors.InvalidArgumentError(
            None, None,
            f"categorical: logits must be [batch, classes], got shape {x.shape}{at(user_origin())}",
        )  # fmt: skip
    return x, (x.dims[0], *random_dims(num_samples), x.dims[1])


def _categorical(state: Tensor, logits: Tensor, dims: Dims, dtype: Any) -> Tensor:
    """The largest of logits plus Gumbel noise falls on each class with its probability."""
    u: Tensor = run(UNIFORM, state, shape=dims, dtype=logits.dtype.name)
    smallest = float(np.finfo(np.float32).tiny) if logits.dtype.size > 2 else 1e-4
    noise = -log(-log(maximum(u, smallest)))
    return argmax(logits[:, None, :] + noise, -1, dtype or dtypes.int64)


# -- stateless -------------------------------------------------------------------------------------


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """`uniform` as a pure function of `seed`, two ints; the numbers are TensorFlow's."""
    check_algorithm(alg)
    return uniform_from(seeded(seed), random_dims(shape), minval, maxval, dtype)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """`normal` as a pure function of `seed`, two ints."""
    check_algorithm(alg)
    return normal_from(NORMAL, seeded(seed), random_dims(shape), mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """`truncated_normal` as a pure function of `seed`, two ints."""
    check_algorithm(alg)
    return normal_from(TRUNCATED_NORMAL, seeded(seed), random_dims(shape), mean, stddev, dtype)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """`categorical` as a pure function of `seed`, two ints."""
    x, dims = _categorical_dims(logits, num_samples)
    return _categorical(seeded(seed), x, dims, dtype)


__all__ = [
    "categorical", "normal", "set_seed", "shuffle", "stateless_categorical", "stateless_normal",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform",
]  # fmt: skip
