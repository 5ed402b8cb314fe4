"""Random numbers of families with parameters: gamma, Poisson, binomial, truncated normal.

Each number is a function of the state and of its position, whatever the device and the threads.
Gamma, Poisson and binomial numbers are those of TensorFlow's stateless ops: each takes as many
draws as it needs until one is accepted (`runtime/routines/drawing.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, broadcast, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import erfc, exp, is_finite, log, sqrt
from treadle.ops.lowering import RowCall, RowPlan, Rows
from treadle.ops.op_makers import require_kinds
from treadle.ops.random import rejection
from treadle.ops.random.distributions import Dims, random_dims, seeded
from treadle.ops.random.ops import DRAWS, UNIFORM, streams_of
from treadle.ops.random.state import draw
from treadle.ops.reductions.reduction import reduce_all, reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.requirements import require
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.special.gamma import gamma_slope
from treadle.ops.special.inverse_errors import ndtri

_FLOATS = "fV"  # NumPy's kinds; that of bfloat16 is V
_COUNTS = ("float16", "bfloat16", "float32", "float64", "int32", "int64")
_WORK = 256  # element operations until a number is accepted


# -- records ---------------------------------------------------------------------------------------

# The routines take parameters [streams, members] and give [streams, samples, members].
_CALLED = "routines draw numbers of 32 and 64 bits"


def _drawing(members: Callable[..., Dims]) -> RowPlan:
    """The plan of a routine; `members` gives the dims of a stream's parameters."""

    def plan(
        inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
    ) -> RowCall | None:
        state, *parameters = inputs
        found = outputs[0]
        if any(spec.dtype.size < 4 for spec in (*parameters, found)):
            return None
        own = members(*(p.dims[state.rank - 1 :] for p in parameters))
        whole = found.dims[state.rank - 1 :]
        numbers = {"samples": product(whole[: len(whole) - len(own)]), "members": product(own)}
        names: dict[str, DType | int] = {
            "T": parameters[0].dtype, "R": found.dtype, "WHOLE": found.dtype.is_integer,
            "BITS": 8 * found.dtype.size,
        }  # fmt: skip
        return RowCall(product(found.dims), _WORK * product(found.dims), numbers, names)

    return plan


def _routine(name: str) -> Rows:
    return Rows(f"drawing.{name}", _drawing(lambda *dims: dims[0]), eagerly=True)


def _infer_gamma(state: Any, alpha: TensorSpec, *, shape: Dims) -> TensorSpec:
    streams = streams_of(state)
    require_kinds("f", alpha)
    return TensorSpec((*streams, *shape, *alpha.dims[len(streams) :]), alpha.dtype)


def _grad_gamma(call: OpCall, dy: Tensor) -> list[Any]:
    """The probability of smaller numbers stays as it is where alpha changes."""
    (state, alpha), (samples,) = call.inputs, call.outputs
    streams, more = state.ndim - 1, len(call.attrs["shape"])
    dims = (*alpha.dims[:streams], *(1,) * more, *alpha.dims[streams:])
    slope = dy * gamma_slope(broadcast_dims(reshape_to(alpha, dims), samples.dims), samples)
    axes = tuple(range(streams, streams + more))
    return [None, reduce_sum(slope, axes) if axes else slope]


GAMMA = register(
    Op(
        "random_gamma", _infer_gamma, rejection.gamma, _grad_gamma, _routine("gamma"),
        tags=DRAWS, callback=_CALLED,
    )
)  # fmt: skip


def _require(kinds: str, *arrays: NDArray) -> None:
    """TypeError, which the shape rules explain, for parameters of other or different dtypes."""
    if any(a.dtype.kind not in kinds or a.dtype != arrays[0].dtype for a in arrays):
        raise TypeError("the parameters have wrong dtypes")


def _check_counts(dtype: str) -> None:
    if dtype not in _COUNTS:
        text = f"counts are {', '.join(_COUNTS)}, not {dtype}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)


def _infer_poisson(state: Any, rate: TensorSpec, *, shape: Dims, dtype: str) -> TensorSpec:
    streams = streams_of(state)
    require_kinds("fi", rate)
    _check_counts(dtype)
    return TensorSpec((*streams, *shape, *rate.dims[len(streams) :]), dtype)


def _eager_poisson(
    state: NDArray, rate: NDArray, *, shape: tuple[int, ...], dtype: str
) -> NDArray:
    _require(_FLOATS + "i", rate)
    _check_counts(dtype)
    return rejection.poisson(state, rate, shape=shape).astype(dtypes.as_dtype(dtype).np_dtype)


POISSON = register(
    Op(
        "random_poisson", _infer_poisson, _eager_poisson, lower=_routine("poisson"), tags=DRAWS,
        callback=_CALLED,
    )
)  # fmt: skip


def _infer_binomial(
    state: Any, counts: TensorSpec, probs: TensorSpec, *, shape: Dims, dtype: str
) -> TensorSpec:
    streams = streams_of(state)
    require_kinds("f", counts, probs)
    if counts.dtype is not probs.dtype:
        raise TypeError(f"counts are {counts.dtype.name} and probs {probs.dtype.name}")
    _check_counts(dtype)
    return TensorSpec((*streams, *shape), dtype)


def _eager_binomial(
    state: NDArray, counts: NDArray, probs: NDArray, *, shape: tuple[int, ...], dtype: str
) -> NDArray:
    _require(_FLOATS, counts, probs)
    _check_counts(dtype)
    found = rejection.binomial(state, counts, probs, shape=shape)
    return found.astype(dtypes.as_dtype(dtype).np_dtype)


BINOMIAL = register(
    Op(
        "random_binomial", _infer_binomial, _eager_binomial, lower=_routine("binomial"),
        tags=DRAWS, callback=_CALLED,
    )
)  # fmt: skip


# -- shapes ----------------------------------------------------------------------------------------


def _together(name: str, *parameters: Sequence[Dim]) -> Dims:
    """The dims that parameters have together."""
    try:
        return broadcast(*map(tuple, parameters))
    except ValueError as error:
        text = f"{name}: the parameters do not broadcast: {error}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text) from None


def _ending(
    name: str, state: Tensor, dims: Dims, *parameters: Sequence[Dim]
) -> tuple[Tensor, Dims]:
    """The state, and the shape of the parameters together, with which `dims` must end."""
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
    text = f"{name}: the shape must end with that of the parameters together"
    return require(state, zip(last, together, strict=True), text), last


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
    kind, state = _floating("stateless_gamma", dtype), seeded(seed)
    a, b = _gamma_parameters(alpha, beta, kind)
    dims = random_dims(shape)
    state, last = _ending("stateless_gamma", state, dims, a.dims, () if b is None else b.dims)
    a = broadcast_dims(a, last)
    return _gamma(state, dims[: len(dims) - len(last)], a, b)


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
    kind = dtypes.as_dtype(dtype).name  # refused before what only a run may know
    _check_counts(kind)
    rate, dims = _rates(lam), random_dims(shape)
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
    kind, state = dtypes.as_dtype(dtype).name, seeded(seed)
    rate, dims = _rates(lam), random_dims(shape)
    state, last = _ending("stateless_poisson", state, dims, rate.dims)
    rate, samples = broadcast_dims(rate, last), dims[: len(dims) - len(last)]
    return run(POISSON, state, rate, shape=samples, dtype=kind)  # type: ignore[no-any-return]


def _rates(lam: Any) -> Tensor:
    rate = convert_to_tensor(lam, dtype_hint=dtypes.float32)
    if rate.dtype.kind == "u" or not (rate.dtype.is_floating or rate.dtype.is_integer):
        text = f"the rates must be floats, int32 or int64, not {rate.dtype.name}"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    return rate


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
    kind = dtypes.as_dtype(dtype).name
    n = convert_to_tensor(counts, dtype_hint=probs.dtype)
    state, last = _ending(name, state, dims, n.dims, probs.dims)
    whole = (broadcast_dims(part, last) for part in (n, probs))
    return run(BINOMIAL, state, *whole, shape=dims, dtype=kind)  # type: ignore[no-any-return]


def binomial_counters(dims: Dims, counts: Tensor, probs: Tensor) -> Dim:
    """By how many numbers a generator moves on for binomial ones (TensorFlow's rule)."""
    together = _together("binomial", counts.dims, probs.dims)
    samples = product(dims[: len(dims) - len(together)])
    return product(together) * 200 * (samples + 3) // 4


# -- truncated normal ------------------------------------------------------------------------------

_FAR = -37.0  # standard deviations from which on probabilities have few digits


def stateless_parameterized_truncated_normal(
    shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0,
    maxvals: Any = 2.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers between limits, a pure function of `seed`, two ints.

    TensorFlow's numbers depend on its threads; these depend on the seed and on their position. The
    gradients keep the probability of smaller numbers as it is.

    Args:
        shape: the result's whole shape, which ends with that of the parameters together.
        means, stddevs, minvals, maxvals: floats of one dtype; one of the limits may be infinite.

    Raises:
        InvalidArgumentError: the shapes do not fit together, stddevs are not positive or the limits
            leave nothing between them.
        TypeError: the parameters are no floats.
    """
    given = [
        convert_to_tensor(p, dtype_hint=dtypes.float32) for p in (means, stddevs, minvals, maxvals)
    ]
    what = "stateless_parameterized_truncated_normal"
    kinds = [_floating(what, p.dtype) for p in given]
    if any(kind is not kinds[0] for kind in kinds):
        names = ", ".join(kind.name for kind in kinds)
        text = f"{what}: the parameters have dtypes {names}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    dims = random_dims(shape)
    state, _ = _ending(what, seeded(seed), dims, *(p.dims for p in given))
    _, stddev, low, high = given
    good = (stddev > 0.0) & (low < high) & (is_finite(low) | is_finite(high))
    text = "stddevs must be positive, minvals below maxvals and one of these finite"
    Assert(reduce_all(good), [f"{what}: {text}"])
    u: Tensor = run(UNIFORM, state, shape=dims, dtype="float64")
    return cast(_between(u, *(cast(p, dtypes.float64) for p in given)), kinds[0])


def _between(u: Tensor, center: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The quantiles of uniform numbers between limits, without rejection; all are float64."""
    a, b = (
        where(is_finite(p), (_or(p, is_finite(p), 0.0) - center) / scale, p) for p in (low, high)
    )
    upper = a > -b  # there is more of the lower tail, which has the small probabilities
    first, last = where(upper, -b, a), where(upper, -a, b)
    u = maximum(u, 2.0**-53)
    below, above = (0.5 * erfc(-math.sqrt(0.5) * z) for z in (first, last))
    far = last < _FAR  # where these are denormal: the tail is nearly that of exp(-z * z / 2)
    near = ndtri(_or(below + u * (above - below), ~far, 0.5))
    limited = far & is_finite(first)
    edge, rest = _or(last, limited, -1.0), _or(first, limited, -2.0)
    left = where(far & ~limited, 0.0, exp(0.5 * (edge - rest) * (edge + rest)))
    edge = _or(last, far, -1.0)
    tail = -sqrt(edge * edge - 2.0 * log(left + u * (1.0 - left)))
    z = minimum(maximum(where(far, tail, near), first), last)
    return minimum(maximum(where(upper, -z, z) * scale + center, low), high)


def _or(x: Tensor, used: Tensor, other: float) -> Tensor:
    """`x` where it is used, else a number with which nothing becomes infinite or NaN: gradients
    are multiplied by zero there."""
    return where(used, x, other)
