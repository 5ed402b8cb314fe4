"""The objects that a `for` statement can iterate in the graph."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from treadle.autograph.operators.elements import is_pulled
from treadle.autograph.operators.values import GraphIteration, Staged
from treadle.core import dtypes
from treadle.core.composite_spec import CompositeTensor
from treadle.core.context import context
from treadle.core.errors import OperatorNotAllowedInGraphError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import SymbolicTensor, Tensor, lacks_rank
from treadle.ops.asserts import assert_greater
from treadle.ops.collections.graph_list import GraphList
from treadle.ops.conversion import CONST, convert_to_tensor, register_converter
from treadle.ops.dims import rank, shape
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import greater
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.numbers.python_numbers import extreme, is_symbolic_number, symbolic_number
from treadle.ops.shaping.ranges import RANGE, RANGE_DYNAMIC
from treadle.ops.shaping.ranges import range as tensor_range
from treadle.ops.state import Variable


class NumberRange(GraphIteration):
    """``range`` of Python ints; only the running program knows some of them."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def trips(self) -> Any:
        """How many numbers there are."""
        if self.step == 1:
            return extreme(max, self.stop - self.start, 0)
        return extreme(max, -((self.start - self.stop) // self.step), 0)

    def refuse(self, reason: str) -> None:
        """Raise a ValueNeededError where the program must have Python's bits."""
        for bound in (self.start, self.stop):
            if is_symbolic_number(bound):
                bound.leave_open(f"a bound of this range: {reason}")

    def staged(self) -> Staged:
        """The same for a loop that knows no Python numbers."""
        self.refuse("it is no loop's")
        start, step = self.start, self.step
        count = convert_to_tensor(self.trips(), dtypes.int64)
        return Staged(count, lambda i: start + symbolic_number(i) * step)


def number_range(start: Any, stop: Any, step: Any = 1) -> NumberRange:
    """``range`` of Python ints, some of them symbolic.

    Raises:
        TypeError: a bound is no int.
        ValueNeededError: the step is symbolic.
    """
    for bound in (start, stop, step):
        if not isinstance(bound, int):
            range(bound)  # raises
    return NumberRange(start, stop, operator.index(step))


def is_graph_iterable(value: Any) -> bool:
    """Whether only a loop of the graph can iterate over `value`."""
    kinds = GraphIteration | SymbolicTensor | GraphList
    return isinstance(value, kinds) or _is_read(value) or is_pulled(value) or _is_composite(value)


def _is_composite(value: Any) -> bool:
    """Whether it is a ragged tensor, or another of its kind, of a graph."""
    return isinstance(value, CompositeTensor) and bool(value.is_symbolic)


def _is_read(value: Any) -> bool:
    """Whether it is a variable whose value is symbolic when it is read."""
    return isinstance(value, Variable) and context.recorder is not None


def as_staged(iterable: Any) -> Staged | None:
    """`iterable` for a loop in the graph, or None where Python should iterate it."""
    if isinstance(iterable, Staged):
        return iterable
    if isinstance(iterable, NumberRange):
        return iterable.staged()
    if isinstance(iterable, GraphList):
        return Staged(iterable.length(), lambda i: iterable[i])
    if _is_composite(iterable):
        return Staged(iterable._count(), lambda i: iterable[i])
    if _is_read(iterable):
        iterable = iterable.read_value()
    if not isinstance(iterable, SymbolicTensor):
        return None
    tensor: Tensor = iterable
    if lacks_rank(tensor):
        assert_greater(
            rank(tensor), 0,
            "a loop and len need a tensor of rank 1 or more, this one has rank 0: give its rank "
            "where it is made, with td.ensure_shape",
        )  # fmt: skip
        # Not `shape(tensor)[0]`: sizes of slices are compared before assertions run.
        return Staged(gather(shape(tensor), 0), lambda i: tensor[i])
    if tensor.ndim == 0:
        raise OperatorNotAllowedInGraphError(
            f"A scalar tensor cannot be iterated over: {tensor!r}. Use td.range(n) to count"
            f"{at(user_origin())}"
        )
    staged = _counted(iterable) or Staged(shape(tensor)[0], lambda i: tensor[i])
    staged.size = tensor.dims[0] if isinstance(tensor.dims[0], int) else None
    return staged


def _counted(tensor: SymbolicTensor) -> Staged | None:
    """A ``td.range`` of integers as a counter, so that no array of its numbers is needed."""
    node = tensor.value.node
    if node is None or not tensor.dtype.is_integer:
        return None
    if node.op is RANGE_DYNAMIC:
        return staged_range(*(_known(tensor.recorder.tensor_of(v)) for v in node.inputs))
    if node.op is RANGE and isinstance(node.attrs["start"], int):
        start, delta, dtype = node.attrs["start"], node.attrs["delta"], tensor.dtype
        length = cast(shape(tensor)[0], dtype)
        if (start, delta) == (0, 1):
            return Staged(length, lambda i: i)
        return Staged(length, lambda i: i * delta + start)
    return None


def _known(number: SymbolicTensor) -> Any:
    """A constant's value as a Python int, else the tensor."""
    node = number.value.node
    return int(node.attrs["value"]) if node is not None and node.op is CONST else number


class StagedRange(Staged):
    """``range`` of symbolic tensors; where a tensor is wanted, one of its numbers.

    Attributes:
        start, limit, delta: tensors of one dtype.
    """

    def __init__(self, numbers: Sequence[Tensor], length: Any, item: Any) -> None:
        super().__init__(length, item)
        self.start, self.limit, self.delta = numbers

    @property
    def dtype(self) -> dtypes.DType:
        return self.start.dtype

    def numbers(self, dtype: Any) -> Tensor:
        """All numbers: none where the range counts the wrong way."""
        up, down = maximum(self.start, self.limit), minimum(self.start, self.limit)
        end = where(greater(self.delta, cast(0, self.delta.dtype)), up, down)
        return cast(tensor_range(self.start, end, self.delta), dtype or self.start.dtype)


register_converter(StagedRange, StagedRange.numbers)


def staged_range(start: Any, limit: Any, delta: Any) -> Staged:
    """``range`` of symbolic tensors, without making an array."""
    numbers = [convert_to_tensor(v) for v in (start, limit, delta) if not isinstance(v, int)]
    dtype = numbers[0].dtype
    first, last, step = (convert_to_tensor(v, dtype) for v in (start, limit, delta))
    if isinstance(delta, int) and delta == 1:
        length = last - first if not (isinstance(start, int) and start == 0) else last
    else:
        length = -((first - last) // step)  # rounded up, for steps of either sign
    simple = isinstance(start, int) and start == 0 and isinstance(delta, int) and delta == 1
    item = (lambda i: i) if simple else (lambda i: first + i * step)
    return StagedRange((first, last, step), length, item)
