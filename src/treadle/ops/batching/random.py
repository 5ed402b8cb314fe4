"""Batching rules of random numbers: states of all examples, each of which has a stream of its own.

A seed of a stateless op is the same for all examples unless it depends on them. Numbers of a
generator come from different parts of its stream, as far apart as if the examples were drawn one
after the other.
"""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.spec import TensorSpec
from treadle.ops.batching.call import BatchedCall, numbers_of
from treadle.ops.batching.families import by_rows
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor
from treadle.ops.random.arrays import COUNTERS_PER_NUMBER
from treadle.ops.random.families import BINOMIAL, GAMMA, POISSON
from treadle.ops.random.ops import (
    BITS,
    NORMAL,
    SCRAMBLE,
    STATE,
    TRUNCATED_NORMAL,
    UNIFORM,
    UNIFORM_INT,
)
from treadle.ops.random.orders import ORDER
from treadle.ops.registry import set_batching
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape_to


def drawn_apart(call: BatchedCall) -> Any:
    """Numbers of a generator, input 0, for parameters that differ between examples."""
    state, *parameters = call.inputs
    specs = [TensorSpec(call.dims(k), x.dtype) for k, x in enumerate(parameters, 1)]
    one = call.op.infer(STATE, *specs, **call.attrs)
    assert isinstance(one, TensorSpec)
    step = dims_tensor(product(one.dims) * COUNTERS_PER_NUMBER, dtypes.int64)
    low = state[:1] + numbers_of(call.count, dtypes.int64) * step
    rest = broadcast_dims(reshape_to(state[1:], (1, 2)), (call.count, 2))
    states = concat([reshape_to(low, (call.count, 1)), rest], 1)
    return call.run(states, *(call.whole(k) for k in range(1, len(call.inputs))))


set_batching(by_rows, SCRAMBLE, BITS, UNIFORM, UNIFORM_INT, NORMAL, TRUNCATED_NORMAL)
set_batching(by_rows, GAMMA, POISSON, BINOMIAL, ORDER)
