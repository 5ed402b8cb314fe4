"""The random ops: pure functions of a Philox state (three int64, see `treadle.ops.random.philox`).

A state ``[..., 3]`` holds a stream for each position of its first axes; these axes are then the
first ones of the result, and of all parameters.

The numbers are those of TensorFlow's ``Generator`` with the same state. Uniform numbers and
integers are the same bits in every implementation; normals agree to the accuracy of log and sin.
"""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.ops.lowering import Compute, Rule
from treadle.ops.op_makers import inferred
from treadle.ops.properties import Refusal
from treadle.ops.random.arrays import (
    MANTISSA_BITS,
    bits,
    normal,
    scramble,
    skip,
    truncated_normal,
    uniform,
    uniform_int,
)  # fmt: skip
from treadle.ops.random.lowering import (
    bits_rule,
    normal_rule,
    scramble_rule,
    skip_rule,
    truncated_normal_rule,
    uniform_int_rule,
    uniform_rule,
)  # fmt: skip
from treadle.ops.registry import Op, register

STATE = TensorSpec((3,), dtypes.int64)
DRAWS = frozenset({"draws"})


def streams_of(state: Any) -> tuple[Dim, ...]:
    """The dims of a state's streams."""
    if state.dtype is not dtypes.int64 or state.dims[-1:] != (3,):
        raise TypeError(f"the state of a generator is int64[3], got {state}")
    return state.dims[:-1]  # type: ignore[no-any-return]


def _infer_float(state: Any, *, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
    streams = streams_of(state)
    if dtype not in MANTISSA_BITS:
        raise TypeError(f"random floats are float16, bfloat16, float32 or float64, not {dtype}")
    return TensorSpec((*streams, *shape), dtype)


def _infer_bits(state: Any, *, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
    streams = streams_of(state)
    if dtype not in ("uint32", "uint64"):
        raise TypeError(f"random bits are uint32 or uint64, not {dtype}")
    return TensorSpec((*streams, *shape), dtype)


def _drawn(rule: Rule) -> Compute:
    return Compute(rule, "draw")


EXACT = DRAWS | {"exact"}

UNIFORM = register(
    Op(
        "random_uniform", _infer_float, inferred(_infer_float, uniform),
        lower=_drawn(uniform_rule), tags=EXACT,
    )
)  # fmt: skip
NORMAL = register(
    Op(
        "random_normal", _infer_float, inferred(_infer_float, normal),
        lower=_drawn(normal_rule), tags=DRAWS,
    )
)  # fmt: skip
TRUNCATED_NORMAL = register(
    Op(
        "random_truncated_normal", _infer_float, inferred(_infer_float, truncated_normal),
        lower=_drawn(truncated_normal_rule), tags=DRAWS,
    )
)  # fmt: skip
BITS = register(Op("random_bits", _infer_bits, bits, lower=_drawn(bits_rule), tags=EXACT))


def _infer_uniform_int(state: Any, low: Any, high: Any, *, shape: tuple[Dim, ...]) -> TensorSpec:
    streams = streams_of(state)
    if low.dtype is not high.dtype or low.dtype not in (
        dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64,
    ):  # fmt: skip
        raise TypeError(
            "minval and maxval must both be int32, int64, uint32 or uint64, got "
            f"{low.dtype.name} and {high.dtype.name}"
        )
    if low.dims != streams or high.dims != streams:
        raise ValueError(f"minval and maxval must be scalars, got shapes {low.shape}, {high.shape}")
    return TensorSpec((*streams, *shape), low.dtype)


UNIFORM_INT = register(
    Op(
        "random_uniform_int", _infer_uniform_int, uniform_int,
        lower=_drawn(uniform_int_rule), tags=EXACT, refuses=Refusal.INTERVAL,
    )
)  # fmt: skip


# -- states ----------------------------------------------------------------------------------------


def _infer_skip(state: Any, *, shape: tuple[Dim, ...]) -> TensorSpec:
    if streams_of(state):
        raise TypeError("one stream moves on at a time")
    return STATE


SKIP = register(Op("random_skip", _infer_skip, skip, lower=_drawn(skip_rule), tags=DRAWS))


def _infer_scramble(seed: Any) -> TensorSpec:
    known = seed.rank and (seed.dims[-1] == 2 or not isinstance(seed.dims[-1], int))
    if not known or seed.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError("a stateless seed is a tensor of two int32 or int64 numbers")
    return TensorSpec((*seed.dims[:-1], 3), dtypes.int64)


SCRAMBLE = register(
    Op(
        "random_seed_state",
        _infer_scramble,
        inferred(_infer_scramble, scramble),
        lower=_drawn(scramble_rule),
        tags=DRAWS,
        sizes=lambda specs, *_: iter([(specs[0].dims[-1], 2)]),
    )
)
