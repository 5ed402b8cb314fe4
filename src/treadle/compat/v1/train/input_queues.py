"""Pipelines of queues: names of files and rows of tensors in turns, and batches of what is read.

Each of these functions makes a queue and a `QueueRunner`, whose threads fill it once
`start_queue_runners` has started them. New programs use `td.data.Dataset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.compat.v1.functions import convert_to_tensor
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.host_operations import host_operation
from treadle.compat.v1.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from treadle.compat.v1.recording import recorded
from treadle.compat.v1.shapes import TensorShape
from treadle.compat.v1.train.coordinator import QueueRunner
from treadle.compat.v1.train.monitored import add_queue_runner
from treadle.compat.v1.values import Tensor
from treadle.core.origin import at, user_origin

_gather = recorded(td.gather, "Gather", "GatherV2")
_expand = recorded(td.expand_dims, "ExpandDims", "ExpandDims")
_matching_files = recorded(td.io.matching_files, "matching_files", "MatchingFiles")


class _Epochs:
    """How often a session has gone through the elements."""

    def __init__(self) -> None:
        self.count = 0


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """A tensor that can be taken so often; then runs raise OutOfRangeError. A session counts.

    Raises:
        ValueError: `num_epochs` is not positive.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.{at(user_origin())}")
    given, owner = convert_to_tensor(tensor), object()

    def count(session: Any, value: Any) -> list[Any]:
        epochs = session.resource(owner, _Epochs)
        if epochs.count >= num_epochs:
            raise td.errors.OutOfRangeError(None, None, f"Reached limit of {num_epochs}")
        epochs.count += 1
        return [td.constant(value, given.dtype)]

    spec = td.TensorSpec(td.TensorShape(given.shape), given.dtype)
    op = host_operation(
        get_default_graph(), name or "limit_epochs", "CountUpTo", count, [given], [spec]
    )
    return op.outputs[0]


def input_producer(
    input_tensor: Any, element_shape: Any = None, num_epochs: int | None = None,
    shuffle: bool = True, seed: int | None = None, capacity: int = 32,
    shared_name: str | None = None, summary_name: str | None = None, name: str | None = None,
    cancel_op: Any = None,
) -> Any:  # fmt: skip
    """A queue that is filled with the rows of a tensor again and again.

    Args:
        element_shape: of a row, where the tensor does not say.
        num_epochs: how often; None: without end.
        shuffle: each time in another order, told by `seed`.

    Raises:
        ValueError: the shape of a row is not known.
    """
    given = convert_to_tensor(input_tensor)
    known = td.TensorShape(given.shape)
    row = known[1:] if known.rank is not None else td.TensorShape(element_shape)
    if not row.is_fully_defined():
        raise ValueError(
            "Either `input_tensor` must have a fully defined shape or `element_shape` must be "
            f"specified{at(user_origin())}"
        )
    if shuffle:
        given = _shuffle(given, seed)
    given = limit_epochs(given, num_epochs)
    queue = FIFOQueue(capacity, [given.dtype], [row], name=name or "input_producer")
    add_queue_runner(QueueRunner(queue, [queue.enqueue_many([given])], cancel_op=cancel_op))
    return queue


_shuffle = recorded(
    lambda value, seed: td.random.shuffle(value, seed=seed), "RandomShuffle", "RandomShuffle"
)


def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None, cancel_op: Any = None,
) -> Any:  # fmt: skip
    """A queue of strings, such as names of files. See `input_producer`.

    Raises:
        ValueError: there are no strings.
    """
    text = f"string_input_producer requires a non-null input tensor{at(user_origin())}"
    if isinstance(string_tensor, list | tuple) and not string_tensor:
        raise ValueError(text)
    tensor = convert_to_tensor(string_tensor, td.string)
    if td.TensorShape(tensor.shape).num_elements() == 0:
        raise ValueError(text)
    return input_producer(
        tensor, [], num_epochs, shuffle, seed, capacity, shared_name,
        name=name or "input_producer", cancel_op=cancel_op,
    )  # fmt: skip


def range_input_producer(
    limit: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """A queue of the numbers from 0 to `limit` - 1, int32. See `input_producer`."""
    numbers = recorded(td.range, "range", "Range")(limit)
    return input_producer(
        numbers, [], num_epochs, shuffle, seed, capacity, shared_name, name=name
    )


def slice_input_producer(
    tensor_list: Sequence[Any], num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """One row of each tensor, the same of all. See `input_producer`.

    Raises:
        ValueError: there are no tensors.
    """
    tensors = [convert_to_tensor(t) for t in tensor_list]
    if not tensors:
        raise ValueError(
            f"Expected at least one tensor in slice_input_producer().{at(user_origin())}"
        )
    rows = recorded(lambda t: td.shape(t)[0], "strided_slice", "StridedSlice")(tensors[0])
    queue = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name)
    index = queue.dequeue()
    return [_gather(tensor, index) for tensor in tensors]


def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """The names of the files that fit a pattern, found by the first run of a session."""
    found, owner = _matching_files(pattern), object()

    def once(session: Any, value: Any) -> list[Any]:
        return [session.resource(owner, lambda: td.constant(value, td.string))]

    op = host_operation(
        get_default_graph(), name or "matching_filenames", "VariableV2", once, [found],
        [td.TensorSpec([None], td.string)],
    )  # fmt: skip
    return op.outputs[0]


# -- batches ---------------------------------------------------------------------------------------


class _Tensors:
    """Tensors that are batched together.

    Args:
        lists: tensors, a list or a dict of them, from each of several readers.
    """

    def __init__(self, lists: Sequence[Any], enqueue_many: bool, shapes: Any, pads: bool) -> None:
        self.form = lists[0]
        self.lists = [self._flat(values) for values in lists]
        self.many = enqueue_many
        self.dtypes = [t.dtype for t in self.lists[0]]
        if any([t.dtype for t in values] != self.dtypes for values in self.lists):
            raise TypeError(f"Expected all lists to have the same types{at(user_origin())}")
        self.shapes = self._shapes(shapes, pads)

    @staticmethod
    def _flat(values: Any) -> list[Tensor]:
        if isinstance(values, dict):
            values = [values[key] for key in sorted(values)]
        elif not isinstance(values, list | tuple):
            values = [values]
        if not values:
            raise ValueError(f"There must be at least one tensor to batch{at(user_origin())}")
        return [convert_to_tensor(value) for value in values]

    def _shapes(self, given: Any, pads: bool) -> list[td.TensorShape]:
        if given is not None:
            listed = given if isinstance(given, list) else [given] * len(self.dtypes)
            return [td.TensorShape(s) for s in listed]
        found = [td.TensorShape(t.shape) for t in self.lists[0]]
        if self.many:
            found = [s[1:] if s.rank is not None else s for s in found]
        for shape in found:
            if not (shape.is_fully_defined() or (pads and shape.rank is not None)):
                raise ValueError(
                    f"All shapes must be fully defined: {[str(TensorShape(s)) for s in found]}: "
                    f"use set_shape, shapes=, or dynamic_pad=True in batch{at(user_origin())}"
                )
        return found

    def packed(self, found: Any) -> Any:
        """Batches in the form of the tensors; that of a single tensor stands in no list."""
        if not isinstance(self.form, dict):
            return found
        batches = found if isinstance(found, list) else [found]
        return dict(zip(sorted(self.form), batches, strict=True))

    def filled_by(self, queue: Any, threads: int) -> None:
        """Let threads fill the queue."""
        put = queue.enqueue_many if self.many else queue.enqueue
        operations = [put(values) for values in self.lists for _ in range(threads)]
        add_queue_runner(QueueRunner(queue, operations))


def _taken(tensors: _Tensors, queue: Any, batch_size: Any, smaller: bool) -> Any:
    take = queue.dequeue_up_to if smaller else queue.dequeue_many
    return tensors.packed(take(batch_size))


def batch(
    tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of what runs give for some tensors.

    Args:
        tensors: a tensor, or a list or dict of them.
        num_threads: threads that run them.
        capacity: elements of the queue.
        enqueue_many: the tensors have an example in each row.
        shapes: of an example, where the tensors do not say.
        dynamic_pad: examples of several sizes are filled up with zeros.
        allow_smaller_final_batch: the last batch may be smaller; else what is left is not given.

    Returns:
        A list or dict of the batches, or the batch where there is one tensor in no dict.

    Raises:
        ValueError: the shape of an example is not known.
    """
    return _batch([tensors], batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
                  allow_smaller_final_batch, name or "batch")  # fmt: skip


def batch_join(
    tensors_list: Sequence[Any], batch_size: Any, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The same with tensors of several readers, each run by a thread. See `batch`."""
    return _batch(tensors_list, batch_size, 1, capacity, enqueue_many, shapes, dynamic_pad,
                  allow_smaller_final_batch, name or "batch_join")  # fmt: skip


def _batch(
    lists: Sequence[Any], batch_size: Any, threads: int, capacity: int, many: bool, shapes: Any,
    pads: bool, smaller: bool, name: str,
) -> Any:  # fmt: skip
    tensors = _Tensors(lists, many, shapes, pads)
    kind = PaddingFIFOQueue if pads else FIFOQueue
    queue = kind(capacity, tensors.dtypes, tensors.shapes, name=f"{name}/fifo_queue")
    tensors.filled_by(queue, threads)
    return _taken(tensors, queue, batch_size, smaller)


def shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches whose examples are in random order. See `batch`.

    Args:
        min_after_dequeue: examples that remain in the queue: the more, the better they are mixed.
    """
    return _shuffle_batch(
        [tensors], batch_size, capacity, min_after_dequeue, num_threads, seed, enqueue_many, shapes,
        allow_smaller_final_batch, name or "shuffle_batch",
    )  # fmt: skip


def shuffle_batch_join(
    tensors_list: Sequence[Any], batch_size: Any, capacity: int, min_after_dequeue: int,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The same with tensors of several readers, each run by a thread. See `shuffle_batch`."""
    return _shuffle_batch(
        tensors_list, batch_size, capacity, min_after_dequeue, 1, seed, enqueue_many, shapes,
        allow_smaller_final_batch, name or "shuffle_batch_join",
    )  # fmt: skip


def _shuffle_batch(
    lists: Sequence[Any], batch_size: Any, capacity: int, keep: int, threads: int,
    seed: int | None, many: bool, shapes: Any, smaller: bool, name: str,
) -> Any:  # fmt: skip
    tensors = _Tensors(lists, many, shapes, pads=False)
    queue = RandomShuffleQueue(
        capacity, keep, tensors.dtypes, tensors.shapes, seed=seed,
        name=f"{name}/random_shuffle_queue",
    )  # fmt: skip
    tensors.filled_by(queue, threads)
    return _taken(tensors, queue, batch_size, smaller)
