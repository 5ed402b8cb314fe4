"""Operations that all processes of a program take part in (`treadle.distribute`).

Processes meet in these operations, so all of them must run the same ones in the same order: they
have an effect, and keep the order of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from treadle.core import dtypes, errors
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.ops.lowering import Library
from treadle.ops.registry import Op, OpCall, register, run

# How elements are combined, and the dtypes that programs combine natively. The number of a pair is
# part of programs on disk.
WAYS = ("sum", "min", "max")
NATIVE = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
)  # fmt: skip


class Communicator(Protocol):
    """The processes that work together."""

    rank: int
    size: int

    def all_reduce(self, array: NDArray, how: str) -> NDArray:
        """The arrays of all processes combined, which each of them gets."""

    def all_gather(self, array: NDArray) -> NDArray:
        """The arrays of all processes, one after the other along a new first axis."""


class Alone:
    """This process without others."""

    rank, size = 0, 1

    def all_reduce(self, array: NDArray, how: str) -> NDArray:
        return array.copy()

    def all_gather(self, array: NDArray) -> NDArray:
        return array[None].copy()


_communicator: list[Communicator] = [Alone()]


def set_communicator(found: Communicator) -> None:
    """Say which processes work together."""
    _communicator[:] = [found]


def communicator(workers: int) -> Communicator:
    """The processes that work together.

    Raises:
        FailedPreconditionError: there are others than a function was traced for.
    """
    found = _communicator[0]
    if found.size != workers:
        raise errors.FailedPreconditionError(
            None, None,
            f"the operation is one of {workers} workers, and this process is one of {found.size}: "
            "make a td.distribute.MultiWorkerMirroredStrategy before the function is called",
        )  # fmt: skip
    return found


def _reduced(array: NDArray, *, how: str, workers: int, by: str = "mpi") -> NDArray:
    return communicator(workers).all_reduce(array, how)


def _reduce_gradient(call: OpCall, grad: Any) -> Sequence[Any]:
    """Each process adds its share of what the sum changes; the largest element has no gradient."""
    if call.attrs["how"] != "sum":
        return [None]
    return [run(ALL_REDUCE, grad, **call.attrs)]


ALL_REDUCE = register(
    Op(
        "all_reduce",
        lambda x, *, how, workers, by="mpi": x,  # "nccl": between GPUs, in programs for them
        _reduced,
        _reduce_gradient,
        lower=Library("all_reduce"),
        effect="io",
        tags=frozenset({"quiet"}),
        callback="it is no dtype that the library of the workers combines by itself",
    )
)


def _infer_gather(x: TensorSpec, *, workers: int) -> TensorSpec:
    return TensorSpec((workers, *x.dims), x.dtype)


def _gathered(array: NDArray, *, workers: int) -> NDArray:
    return communicator(workers).all_gather(array)


def _gather_gradient(call: OpCall, grad: Any) -> Sequence[Any]:
    workers = call.attrs["workers"]
    from_all = run(ALL_REDUCE, grad, how="sum", workers=workers)
    return [from_all[communicator(workers).rank]]


ALL_GATHER = register(
    Op(
        "all_gather", _infer_gather, _gathered, _gather_gradient, effect="io",
        tags=frozenset({"quiet"}), callback="arrays of all workers are gathered by Python",
    )
)  # fmt: skip


def number_of_way(how: str, dtype: dtypes.DType) -> int | None:
    """The number of a way to combine elements of a dtype; None where programs ask Python."""
    if dtype not in NATIVE:
        return None
    return WAYS.index(how) * len(NATIVE) + NATIVE.index(dtype)
