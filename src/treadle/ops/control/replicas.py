"""Operations among the replicas of one process, where each has a device of its own.

A function of several replicas is traced into one graph, in which `REDUCE_REPLICAS` and
`STACK_REPLICAS` take a value of each replica and give one for all. `graph.partition` makes a graph
for each device of it: there they are `REDUCE_AMONG` and `STACK_AMONG`, which take the value of that
device, and the programs of the devices meet in them (`treadle.core.meeting`). `COMMON` is what the
others get of a value that one device has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.meeting import meet
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.ops.lowering import Library
from treadle.ops.registry import Op, OpCall, register, run

_COMBINED = {"sum": np.add, "min": np.minimum, "max": np.maximum}
_QUIET = frozenset({"quiet"})

# The dtypes that devices combine; those that they pass on as they are may be any.
COMBINED = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
)  # fmt: skip


def combined(arrays: Sequence[NDArray], how: str) -> NDArray:
    """Arrays combined in their order."""
    return np.asarray(reduce(_COMBINED[how], arrays))


def about_reduction(how: str, size: Any, dtype: Any) -> str:
    """What the parts of a program must agree on when they combine arrays."""
    return f"all_reduce ({how}) of {size} elements of {np.dtype(dtype)}"


def _reduced(*arrays: NDArray, how: str, by: str) -> NDArray:
    return combined(arrays, how)


def _reduce_gradient(call: OpCall, grad: Any) -> Sequence[Any]:
    same = call.attrs["how"] == "sum"  # the largest element has no gradient
    return [grad if same else None for _ in call.inputs]


REDUCE_REPLICAS = register(
    Op(
        "reduce_replicas", lambda *xs, how, by: xs[0], _reduced, _reduce_gradient,
        callback="programs of one device have no replicas to combine",
    )
)  # fmt: skip


def _infer_stack(*xs: TensorSpec, by: str) -> TensorSpec:
    return TensorSpec((len(xs), *xs[0].dims), xs[0].dtype)


def _stack_gradient(call: OpCall, grad: Any) -> Sequence[Any]:
    return [grad[i] for i in range(len(call.inputs))]


STACK_REPLICAS = register(
    Op(
        "stack_replicas", _infer_stack, lambda *xs, by: np.stack(xs), _stack_gradient,
        callback="programs of one device have no replicas to combine",
    )
)  # fmt: skip


# -- in the graph of one device --------------------------------------------------------------------


def _reduced_among(array: NDArray, *, how: str, devices: tuple[str, ...], by: str) -> NDArray:
    about = about_reduction(how, array.size, array.dtype)
    found: NDArray = meet(about, array, lambda arrays: combined(arrays, how))
    return found.copy()


REDUCE_AMONG = register(
    Op(
        "reduce_among", lambda x, *, how, devices, by: x, _reduced_among,
        lower=Library("reduce_among"), effect="io", tags=_QUIET,
        callback="it is no dtype that devices combine by themselves",
    )
)  # fmt: skip


def _infer_stack_among(x: TensorSpec, *, devices: tuple[str, ...], by: str) -> TensorSpec:
    return TensorSpec((len(devices), *x.dims), x.dtype)


def _stacked_among(array: NDArray, *, devices: tuple[str, ...], by: str) -> NDArray:
    found: NDArray = meet("all_gather", array, np.stack)
    return found.copy()


STACK_AMONG = register(
    Op(
        "stack_among", _infer_stack_among, _stacked_among, lower=Library("stack_among"),
        effect="io", tags=_QUIET, callback="devices exchange arrays of numbers only",
    )
)  # fmt: skip


def _infer_common(
    *given: TensorSpec, root: int, devices: tuple[str, ...], by: str, dtype: Any,
    dims: tuple[Dim, ...],
) -> TensorSpec:  # fmt: skip
    return TensorSpec(dims, dtype)


def _common(
    *given: NDArray, root: int, devices: tuple[str, ...], by: str, dtype: Any, dims: Any
) -> NDArray:
    array = given[0] if given else None
    found = meet(f"a value of {devices[root]}", array, lambda arrays: arrays[root])
    return np.array(found)


COMMON = register(
    Op(
        "common", _infer_common, _common, lower=Library("common"), effect="io", tags=_QUIET,
        callback="devices exchange arrays of numbers only",
    )
)  # fmt: skip


def reduce_replicas(values: Sequence[Any], how: str, by: str) -> Any:
    """The values of all replicas combined, each of which belongs to one."""
    return run(REDUCE_REPLICAS, *values, how=how, by=by)


def stack_replicas(values: Sequence[Any], by: str) -> Any:
    """The values of all replicas along a new first axis."""
    return run(STACK_REPLICAS, *values, by=by)
