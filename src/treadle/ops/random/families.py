"""Random numbers of families with parameters: gamma, Poisson, binomial, truncated normal.

Each number is a function of the state and of its position, whatever the device and the threads.
Gamma, Poisson and binomial numbers are those of TensorFlow's stateless ops. Compiled programs call
NumPy for them: how often a number is tried again is known only while it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, broadcast, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.op_makers import require_kinds
from treadle.ops.random import rejection
from treadle.ops.random.distributions import Dims, random_dims, seeded
from treadle.ops.random.ops import DRAWS, check_state
from treadle.ops.random.state import draw
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.special.gamma import gamma_slope

_FLOATS = "fV"  # NumPy's kinds; that of bfloat16 is V
_COUNTS = ("float16", "bfloat16", "float32", "float64", "int32", "int64")


# -- records ---------------------------------------------------------------------------------------


def _infer_gamma(state: Any, alpha: TensorSpec, *, shape: Dims) -> TensorSpec:
    check_state(state)
    require_kinds("f", alpha)
    return TensorSpec((*shape, *alpha.dims), alpha.dtype)


def _grad_gamma(call: OpCall, dy: Tensor) -> list[Any]:
    """The probability of smaller numbers stays as it is where alpha changes."""
    alpha, (samples,) = call.inputs[1], call.outputs
    slope = dy * gamma_slope(broadcast_dims(alpha, samples.dims), samples)
    axes = tuple(range(len(call.attrs["shape"])))
    return [None, reduce_sum(slope, axes) if axes else slope]


_CALLED = "a number takes as many draws as it needs until one is accepted"
GAMMA = register(
    Op(
        "random_gamma", _infer_gamma, rejection.gamma, _grad_gamma, tags=DRAWS, callback=_CALLED
    )
)


def _require(kinds: str, *arrays: NDArray) -> None:
    """TypeError, which the shape rules explain, for parameters of other or different dtypes."""
    if any(a.dtype.kind not in kinds or a.dtype != arrays[0].dtype for a in arrays):
        raise TypeError("the parameters have wrong dtypes")


def _check_counts(dtype: str) -> None:
    if dtype not in _COUNTS:
        raise TypeError(f"counts are {', '.join(_COUNTS)}, not {dtype}")


def _infer_poisson(state: Any, rate: TensorSpec, *, shape: Dims, dtype: str) -> TensorSpec:
    check_state(state)
    require_kinds("fi", rate)
    _check_counts(dtype)
    return TensorSpec((*shape, *rate.dims), dtype)


def _eager_poisson(
    state: NDArray, rate: NDArray, *, shape: tuple[int, ...], dtype: str
) -> NDArray:
    _require(_FLOATS + "i", rate)
    _check_counts(dtype)
    return rejection.poisson(state, rate, shape=shape).astype(dtypes.as_dtype(dtype).np_dtype)


POISSON = register(
    Op("random_poisson", _infer_poisson, _eager_poisson, tags=DRAWS, callback=_CALLED)
)


def _infer_binomial(
    state: Any, counts: TensorSpec, probs: TensorSpec, *, shape: Dims, dtype: str
) -> TensorSpec:
    check_state(state)
    require_kinds("f", counts, probs)
    if counts.dtype is not probs.dtype:
        raise TypeError(f"counts are {counts.dtype.name} and probs {probs.dtype.name}")
    _check_counts(dtype)
    return TensorSpec(shape, dtype)


def _eager_binomial(
    state: NDArray, counts: NDArray, probs: NDArray, *, shape: tuple[int, ...], dtype: str
) -> NDArray:
    _require(_FLOATS, counts, probs)
    _check_counts(dtype)
    found = rejection.binomial(state, counts, probs, shape=shape)
    return found.astype(dtypes.as_dtype(dtype).np_dtype)


BINOMIAL = register(
    Op("random_binomial", _infer_binomial, _eager_binomial, tags=DRAWS, callback=_CALLED)
)


def _infer_between(state: Any, *limits: TensorSpec, shape: Dims) -> TensorSpec:
    check_state(state)
    require_kinds("f", *limits)
    if len({spec.dtype for spec in limits}) > 1:
        names = ", ".join(spec.dtype.name for spec in limits)
        raise errors.InvalidArgumentError(None, None, f"the parameters have dtypes {names}")
    return TensorSpec(shape, limits[0].dtype)


def _eager_between(
    state: NDArray, mean: NDArray, stddev: NDArray, low: NDArray, high: NDArray, *,
    shape: tuple[int, ...],
) -> NDArray:  # fmt: skip
    _require(_FLOATS, mean, stddev, low, high)
    good = (stddev > 0) & (low < high) & (np.isfinite(low) | np.isfinite(high))
    if not np.all(good):
        text = "stddevs must be positive, minvals below maxvals and one of these finite"
        raise errors.InvalidArgumentError(None, None, text)
    return rejection.truncated_normal(state, mean, stddev, low, high, shape=shape)


BETWEEN = register(
    Op("random_normal_between", _infer_between, _eager_between, tags=DRAWS, callback=_CALLED)
)


# -- shapes ----------------------------------------------------------------------------------------


def _together(name: str, *parameters: Sequence[Dim]) -> Dims:
    """The dims that parameters have together."""
    try:
        return broadcast(*map(tuple, parameters))
    except ValueError as error:
        text = f"{name}: the parameters do not broadcast: {error}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text) from None


def _ending(name: str, dims: Dims, *parameters: Sequence[Dim]) -> Dims:
    """The shape of the parameters together, with which `dims` must end."""
    together = _together(name, *parameters)
    last = dims[len(dims) - len(together) :]
    if len(together) > len(dims) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(last, together, strict=True)
    ):
        raise errors.InvalidArgumentError(
            None, None,
            f"{name}: the shape {list(dims)} must end with that of the parameters together, "
            f"{list(together)}{at(user_origin())}",
        )  # fmt: skip
    return last


def _floating(name: str, dtype: Any) -> DType:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise TypeError(f"{name}: the numbers are floats, not {kind.name}{at(user_origin())}")
    return kind


# -- gamma -----------------------------------------------------------------------------------------


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32,
    seed: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Gamma distributed numbers.

    Args:
        shape: how many numbers for each pair of parameters.
        alpha: the distribution's shape, a float that is positive; differentiable once.
        beta: the inverse scale, 1 by default; broadcasts with alpha.
        dtype: a floating dtype, of the parameters, too.
        seed: a stream of its own, combined with the global seed.

    Returns:
        Numbers of the shape `shape` followed by that of alpha and beta together.

    Raises:
        TypeError: dtype is not floating.
        InvalidArgumentError: the shapes of alpha and beta do not broadcast.
    """
    kind = _floating("gamma", dtype)
    a, b = _gamma_parameters(alpha, beta, kind)
    dims = random_dims(shape)
    together = _together("gamma", a.dims, () if b is None else b.dims)
    return _gamma(draw(seed, (*dims, *together)), dims, broadcast_dims(a, together), b)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`gamma` as a pure function of `seed`, two ints; the numbers are TensorFlow's.

    Args:
        shape: the result's whole shape, which ends with that of alpha and beta together.

    Raises:
        TypeError: dtype is not floating.
        InvalidArgumentError: the shapes do not fit together.
    """
    kind = _floating("stateless_gamma", dtype)
    a, b = _gamma_parameters(alpha, beta, kind)
    dims = random_dims(shape)
    last = _ending("stateless_gamma", dims, a.dims, () if b is None else b.dims)
    a = broadcast_dims(a, last)
    return _gamma(seeded(seed), dims[: len(dims) - len(last)], a, b)


def _gamma_parameters(alpha: Any, beta: Any, kind: DType) -> tuple[Tensor, Tensor | None]:
    a = convert_to_tensor(alpha, kind)
    return a, None if beta is None else convert_to_tensor(beta, kind)


def _gamma(state: Tensor, dims: Dims, alpha: Tensor, beta: Tensor | None) -> Tensor:
    numbers: Tensor = run(GAMMA, state, alpha, shape=dims)
    scaled = numbers if beta is None else numbers / beta
    smallest = float(np.finfo(np.float32).tiny if alpha.dtype.name == "bfloat16"
                     else np.finfo(alpha.dtype.np_dtype).tiny)  # fmt: skip
    return maximum(smallest, scaled)


# -- Poisson ---------------------------------------------------------------------------------------


def poisson(
    shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Poisson distributed counts.

    Args:
        shape: how many for each rate.
        lam: rates, not negative: floats, int32 or int64.
        dtype: a floating dtype, int32 or int64.
        seed: a stream of its own, combined with the global seed.

    Returns:
        Counts of the shape `shape` followed by that of lam; they are not differentiable.
    """
    rate, dims = _rates(lam), random_dims(shape)
    kind = dtypes.as_dtype(dtype).name
    return run(POISSON, draw(seed, (*dims, *rate.dims)), rate, shape=dims, dtype=kind)  # type: ignore[no-any-return]


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """`poisson` as a pure function of `seed`, two ints; the counts are TensorFlow's.

    Args:
        shape: the result's whole shape, which ends with that of lam.

    Raises:
        InvalidArgumentError: it does not.
    """
    rate, dims = _rates(lam), random_dims(shape)
    last = _ending("stateless_poisson", dims, rate.dims)
    rate, samples = broadcast_dims(rate, last), dims[: len(dims) - len(last)]
    return run(POISSON, seeded(seed), rate, shape=samples, dtype=dtypes.as_dtype(dtype).name)  # type: ignore[no-any-return]


def _rates(lam: Any) -> Tensor:
    return convert_to_tensor(lam, dtype_hint=dtypes.float32)


# -- binomial --------------------------------------------------------------------------------------


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Binomially distributed numbers of successes, a pure function of `seed`, two ints; the
    numbers are TensorFlow's.

    Args:
        shape: the result's whole shape, which ends with that of counts and probs together.
        counts, probs: how many tries, and how likely a success is; floats of one dtype.
        output_dtype: a floating dtype, int32 or int64.

    Raises:
        InvalidArgumentError: the shapes do not fit together.
    """
    p = convert_to_tensor(probs, dtype_hint=dtypes.float32)
    dims = random_dims(shape)
    return binomial_from(seeded(seed), dims, counts, p, output_dtype, "stateless_binomial")


def binomial_from(
    state: Tensor, dims: Dims, counts: Any, probs: Tensor, dtype: Any, name: str
) -> Tensor:
    """Binomially distributed numbers from a state; `dims` is the whole shape."""
    n = convert_to_tensor(counts, dtype_hint=probs.dtype)
    last = _ending(name, dims, n.dims, probs.dims)
    whole = (broadcast_dims(part, last) for part in (n, probs))
    kind = dtypes.as_dtype(dtype).name
    return run(BINOMIAL, state, *whole, shape=dims, dtype=kind)  # type: ignore[no-any-return]


def binomial_counters(dims: Dims, counts: Tensor, probs: Tensor) -> Dim:
    """By how many numbers a generator moves on for binomial ones (TensorFlow's rule)."""
    together = _together("binomial", counts.dims, probs.dims)
    samples = product(dims[: len(dims) - len(together)])
    return product(together) * 200 * (samples + 3) // 4


# -- truncated normal ------------------------------------------------------------------------------


def stateless_parameterized_truncated_normal(
    shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0,
    maxvals: Any = 2.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers between limits, a pure function of `seed`, two ints.

    TensorFlow's numbers depend on its threads; these depend on the seed and on their position.

    Args:
        shape: the result's whole shape, which ends with that of the parameters together.
        means, stddevs, minvals, maxvals: floats of one dtype; one of the limits may be infinite.

    Raises:
        InvalidArgumentError: the shapes do not fit together, stddevs are not positive or the limits
            leave nothing between them.
    """
    given = [
        convert_to_tensor(p, dtype_hint=dtypes.float32) for p in (means, stddevs, minvals, maxvals)
    ]
    dims = random_dims(shape)
    last = _ending("stateless_parameterized_truncated_normal", dims, *(p.dims for p in given))
    whole = (broadcast_dims(p, last) for p in given)
    return run(BETWEEN, seeded(seed), *whole, shape=dims)  # type: ignore[no-any-return]
