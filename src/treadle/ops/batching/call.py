"""A call of an op on a batch of examples, as batching rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.list_value import ListValue
from treadle.core.shapes import UNKNOWN_RANK, UNKNOWN_SHAPE, Dim
from treadle.core.spec import ListSpec
from treadle.core.tensor import SymbolicTensor, Tensor, buffer_of, from_buffer
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.collections.lists import LIST_NEW, list_stack, list_unstack
from treadle.ops.registry import Op, run
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to


class NoRule(Exception):
    """An op cannot be computed for a whole batch at once in this call; the text says why."""


class Same:
    """A result that is the same for every example."""

    def __init__(self, value: Any) -> None:
        self.value = value


class BatchedCall:
    """One call of an op in which some inputs have a value for each example.

    These have the examples along one more axis, the first one; a list has it in its elements.

    Attributes:
        op, inputs, attrs: as in a call of the op.
        batched: which inputs have a value for each example; one at least.
        count: the number of examples.
        replay: ``replay(region, inputs, batched)`` computes a region of the graph for all examples;
            all results have them along a first axis.
    """

    def __init__(
        self,
        op: Op,
        inputs: Sequence[Any],
        batched: Sequence[bool],
        attrs: Mapping[str, Any],
        count: Dim,
        replay: Callable[..., list[Tensor]] | None = None,
    ) -> None:
        self.op, self.inputs, self.batched = op, list(inputs), list(batched)
        self.attrs, self.count, self.replay = attrs, count, replay

    def dims(self, k: int) -> tuple[Dim, ...]:
        """The dims of input `k` for one example."""
        dims: tuple[Dim, ...] = self.inputs[k].dims
        return dims[1:] if self.batched[k] else dims

    def rank(self, k: int) -> int:
        """The rank of input `k` for one example."""
        return len(self.dims(k))

    def whole(self, k: int) -> Tensor:
        """Input `k` for all examples, repeated where it is the same for each."""
        if self.batched[k]:
            return self.inputs[k]  # type: ignore[no-any-return]
        return repeated(self.inputs[k], self.count)

    def aligned(self, k: int, rank: int) -> Tensor:
        """Input `k` such that it broadcasts with inputs whose examples have `rank` axes."""
        x: Tensor = self.inputs[k]
        missing = rank - self.rank(k)
        if not self.batched[k] or not missing:
            return x
        return reshape_to(x, (x.dims[0], *(1,) * missing, *x.dims[1:]))

    def run(self, *inputs: Any, **changed: Any) -> Any:
        """The op on other inputs and with some attributes changed."""
        return run(self.op, *inputs, **{**self.attrs, **changed})


def repeated(x: Tensor, count: Dim) -> Tensor:
    """`x` for each of `count` examples, along a new first axis."""
    if isinstance(x.spec, ListSpec):
        return _repeated_list(x, count)
    return broadcast_dims(reshape_to(x, (1, *x.dims)), (count, *x.dims))


def element_dims(dims: tuple[Dim, ...], count: Dim) -> tuple[Dim, ...]:
    """The dims of a list's elements for all examples, of those for one."""
    return dims if dims in (UNKNOWN_SHAPE, UNKNOWN_RANK) else (count, *dims)


def _repeated_list(items: Tensor, count: Dim) -> Tensor:
    spec = items.spec
    dims = element_dims(spec.dims, count)
    if isinstance(items, SymbolicTensor):
        node = items.value.node
        if node is not None and node.op is LIST_NEW:
            sizes = [items.recorder.tensor_of(v) for v in node.inputs]
            return run(LIST_NEW, *sizes, **{**node.attrs, "dims": dims})  # type: ignore[no-any-return]
    elif all(item is None for item in buffer_of(items).items()):
        return from_buffer(ListValue([None] * len(buffer_of(items)), ListSpec(dims, spec.dtype)))
    stacked = list_stack(items)
    size, *rest = stacked.dims
    inner = reshape_to(stacked, (size, 1, *rest))
    return list_unstack(broadcast_dims(inner, (size, count, *rest)))


def swapped(x: Tensor) -> Tensor:
    """`x` with its first two axes exchanged."""
    return permute(x, [1, 0, *range(2, x.ndim)])


def moved_to_front(x: Tensor, axis: int) -> Tensor:
    """`x` with an axis as the first one."""
    rest = [k for k in range(x.ndim) if k != axis]
    return x if axis == 0 else permute(x, [axis, *rest])


def numbers_of(count: Dim, dtype: Any = dtypes.int32) -> Tensor:
    """0, 1, 2 ... for each example."""
    return run(RANGE, start=0, delta=1, size=count, dtype=dtype)  # type: ignore[no-any-return]


def with_numbers(indices: Tensor) -> Tensor:
    """Positions ``[examples, ..., depth]`` with the number of the example as their first part."""
    shape = (*indices.dims[:-1], 1)
    numbers = numbers_of(indices.dims[0], indices.dtype)
    numbers = reshape_to(numbers, (indices.dims[0], *(1,) * (len(shape) - 1)))
    return concat([broadcast_dims(numbers, shape), indices], -1)
