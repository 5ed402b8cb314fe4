"""Queues of a graph: their elements belong to the session that runs.

An operation that puts elements in or takes them out is done by Python between two compiled
programs, and waits there while a queue is full or has too few elements. Where calls are made at
once, these are the queues of `td.queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1.functions import convert_to_tensor
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.host_operations import host_operation
from treadle.compat.v1.recording import writes_into
from treadle.compat.v1.shapes import TensorShape
from treadle.compat.v1.values import Operation, element
from treadle.core.origin import at, user_origin


class QueueBase(td.queue.QueueBase):
    """A queue of a graph."""

    _kind: type[td.queue.QueueBase]  # what a session has

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.graph = writes_into()
        if self.graph is not None:
            with self.graph.lock:
                name = self.graph.unique_name(kwargs.get("name") or self._default_name())
            kwargs["name"] = name
        super().__init__(*args, **kwargs)
        kind = self._kind
        self._make: Callable[[], Any] = lambda: kind(*args, **kwargs)

    def _default_name(self) -> str:
        words = [c if c.islower() else f" {c.lower()}" for c in type(self).__name__]
        return "".join(words).strip().replace(" ", "_").replace("f_i_f_o", "fifo")

    def of_session(self, session: Any) -> td.queue.QueueBase:
        """The queue that a session has."""
        found: td.queue.QueueBase = session.resource(self, self._make)
        return found

    # -- operations --------------------------------------------------------------------------

    def _operation(
        self, kind: str, name: str | None, call: Callable[..., Any], inputs: list[Any],
        specs: list[Any],
    ) -> Operation:  # fmt: skip
        """An operation of the queue; ``call(queue, *arrays)`` gives a list of results."""
        graph = self.graph or get_default_graph()

        def of_session(session: Any, *values: Any) -> list[Any]:
            return list(call(self.of_session(session), *values))

        with graph.lock:
            return host_operation(
                graph, name or f"{self._name}_{kind}", self._types()[kind], of_session, inputs,
                specs,
            )  # fmt: skip

    @staticmethod
    def _types() -> dict[str, str]:
        """TensorFlow's names of the operations."""
        return {
            "enqueue": "QueueEnqueueV2", "EnqueueMany": "QueueEnqueueManyV2",
            "Dequeue": "QueueDequeueV2", "DequeueMany": "QueueDequeueManyV2",
            "DequeueUpTo": "QueueDequeueUpToV2", "Close": "QueueCloseV2", "Size": "QueueSizeV2",
            "is_closed": "QueueIsClosedV2",
        }  # fmt: skip

    def _inputs(self, vals: Any, many: bool) -> list[Any]:
        """The tensors that are put in.

        Raises:
            ValueError: the shape of one is known, and does not fit.
        """
        found = []
        flat = self._components.flat(vals)
        for value, dtype, shape in zip(flat, self.dtypes, self.shapes, strict=True):
            tensor = element(convert_to_tensor(value, dtype))
            assert tensor is not None
            wanted = td.TensorShape([None]).concatenate(shape) if many else shape
            if not wanted.is_compatible_with(td.TensorShape(tensor.shape)):
                raise ValueError(
                    f"Shapes {tensor.shape} and {TensorShape(wanted)} are incompatible: "
                    f"{tensor.name} is put into {self._name!r}{at(user_origin())}"
                )
            found.append(tensor)
        return found

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """An operation that adds an element, when there is room. See `td.queue.FIFOQueue`."""
        if writes_into(vals) is None:
            return super().enqueue(vals)
        packed = self._components.named
        return self._operation(
            "enqueue", name, lambda queue, *values: queue.enqueue(packed(values)) or (),
            self._inputs(vals, many=False), [],
        )  # fmt: skip

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """An operation that adds an element for each row of tensors."""
        if writes_into(vals) is None:
            return super().enqueue_many(vals)
        packed = self._components.named
        return self._operation(
            "EnqueueMany", name, lambda queue, *values: queue.enqueue_many(packed(values)) or (),
            self._inputs(vals, many=True), [],
        )  # fmt: skip

    def dequeue(self, name: str | None = None) -> Any:
        """Tensors of an element that each run takes, when there is one."""
        if writes_into() is None:
            return super().dequeue()
        specs = self._specs([])
        op = self._operation(
            "Dequeue", name, lambda queue: queue.dequeue_flat(), [], specs
        )
        return self._components.packed(op.outputs)

    def _joined(self, n: Any, fewer: bool) -> Any:
        if writes_into(n) is None:
            return super()._joined(n, fewer)
        self._components.check_joins(type(self).__name__)
        given = element(n)
        rows = None if fewer or given is not None else int(n)
        op = self._operation(
            "DequeueUpTo" if fewer else "DequeueMany", None,
            lambda queue, *count: queue.joined_flat(int(count[0]) if count else int(n), fewer),
            [] if given is None else [given], self._specs([rows]),
        )  # fmt: skip
        return self._components.packed(op.outputs)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Tensors of n elements that each run takes."""
        return self._joined(n, fewer=False)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Tensors of n elements, or of those that a closed queue still has."""
        return self._joined(n, fewer=True)

    def _specs(self, rows: list[int | None]) -> list[td.TensorSpec]:
        pairs = zip(self.shapes, self.dtypes, strict=True)
        return [td.TensorSpec(td.TensorShape(rows).concatenate(s), d) for s, d in pairs]

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """An operation that closes the queue. See `td.queue.FIFOQueue`."""
        if writes_into() is None:
            return super().close(cancel_pending_enqueues)
        return self._operation(
            "Close", name, lambda queue: queue.close(cancel_pending_enqueues) or (), [], []
        )

    def size(self, name: str | None = None) -> Any:
        """How many elements there are, an int32."""
        if writes_into() is None:
            return super().size()
        spec = td.TensorSpec([], td.int32)
        (found,) = self._operation("Size", name, lambda q: [q.size()], [], [spec]).outputs
        return found

    def is_closed(self, name: str | None = None) -> Any:
        """Whether the queue is closed, a bool."""
        if writes_into() is None:
            return super().is_closed()
        spec = td.TensorSpec([], td.bool)
        (found,) = self._operation("is_closed", name, lambda q: [q.is_closed()], [], [spec]).outputs
        return found


class FIFOQueue(QueueBase, td.queue.FIFOQueue):
    _kind = td.queue.FIFOQueue


class PaddingFIFOQueue(QueueBase, td.queue.PaddingFIFOQueue):
    _kind = td.queue.PaddingFIFOQueue


class RandomShuffleQueue(QueueBase, td.queue.RandomShuffleQueue):
    _kind = td.queue.RandomShuffleQueue


class PriorityQueue(QueueBase, td.queue.PriorityQueue):
    _kind = td.queue.PriorityQueue


for _own in (FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue, PriorityQueue):
    _own.__doc__ = _own._kind.__doc__


def take(queue: Any, session: Any) -> Any:
    """Take the only component of an element, as Python has it."""
    (found,) = queue.of_session(session).dequeue_flat()
    return found.numpy()
