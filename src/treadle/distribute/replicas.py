"""The replicas of a program: what one of them knows, and how those of a process run in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.core.context import context
from treadle.core.interrupts import carried_over
from treadle.core.origin import at, user_origin
from treadle.core.safe_thread import SafeThread
from treadle.distribute.contexts import within
from treadle.distribute.values import ReduceOp, reduce_op, regrouped, selected

if TYPE_CHECKING:
    from treadle.distribute.strategy import Strategy

_ELSEWHERE = (
    "merge_call called while defining a new graph or a td.function, a branch or a loop: replicas "
    "meet outside of them only. Call merge_call, all_reduce and apply_gradients outside of "
    "td.cond, td.while_loop and of functions that a replica calls"
)


class ReplicaContext:
    """What a replica knows of itself and the others: `td.distribute.get_replica_context` gives it
    in a function that `Strategy.run` calls.

    Args:
        strategy: whose replica it is.
        replica_id_in_sync_group: its number among the replicas of all workers.
        number: its number among those of this process.
    """

    def __init__(
        self, strategy: Strategy, replica_id_in_sync_group: int = 0, number: int = 0
    ) -> None:
        self.strategy, self._id, self.number = strategy, replica_id_in_sync_group, number

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of the replica, from 0 on."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are, on all workers together."""
        return self.strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of the device that it runs on."""
        return (self.strategy.extended.worker_devices[self.number],)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Call a function once for all replicas, when they all have come here.

        Args:
            merge_fn: ``merge_fn(strategy, *args, **kwargs)``, in a cross-replica context. Of
                arguments that differ between replicas it gets a `DistributedValues`.

        Returns:
            What it returns; of distributed values that of this replica.

        Raises:
            RuntimeError: it is called inside of a branch, a loop or another function than `run`.
        """
        with within(self.strategy, None):
            return merge_fn(self.strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over the values of all replicas, which each of them gets.

        Args:
            reduce_op: a `ReduceOp` or its name.
            value: a tensor, `td.IndexedSlices`, or a structure of them. Small tensors of a
                structure are sent together.
            options: a `CommunicationOptions`.

        Raises:
            ValueError: there is no such operation.
        """
        return all_reduced(self, value, _op(reduce_op), options)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas, one after the other along an axis.

        Args:
            value: a tensor, or a structure of them; their sizes may differ along `axis`.
        """

        def gather(strategy: Strategy, given: Any) -> Any:
            return strategy._gathered(given, axis)

        def one(leaf: Any) -> Any:
            tensor = self.own(td.convert_to_tensor(leaf))
            return self.own(self.merge_call(gather, (tensor,)))

        return td.nest.map_structure(one, value)

    def own(self, value: Any) -> Any:
        """A value as an object that no other replica has."""
        return value

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id} of {self.num_replicas_in_sync}>"


_op = reduce_op  # (a parameter has the same name)


def all_reduced(replica: ReplicaContext, value: Any, op: ReduceOp, options: Any) -> Any:
    """The sum or mean over the values of all replicas, with its gradient."""
    leaves = _leaves(value)

    def merged(*tensors: Any) -> list[Any]:
        def reduce(strategy: Strategy, given: list[Any]) -> list[Any]:
            return strategy._reduced(given, op, options)

        found: list[Any] = replica.merge_call(reduce, ([replica.own(t) for t in tensors],))
        return [replica.own(t) for t in found]

    if not context.tapes or any(isinstance(leaf, td.IndexedSlices) for leaf in leaves):
        return _packed(value, merged(*leaves))

    @td.custom_gradient
    def differentiable(*tensors: Any) -> Any:
        return merged(*tensors), lambda *grads: all_reduced(replica, list(grads), op, options)

    return _packed(value, differentiable(*leaves))


def _leaves(value: Any) -> list[Any]:
    """The tensors of a structure, with `td.IndexedSlices` as they are."""
    if isinstance(value, td.IndexedSlices):
        return [value]
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [td.convert_to_tensor(leaf) for leaf in td.nest.flatten(value)]


def _packed(value: Any, leaves: Sequence[Any]) -> Any:
    rest = iter(leaves)

    def packed(part: Any) -> Any:
        if isinstance(part, td.IndexedSlices):
            return next(rest)
        if isinstance(part, Mapping):
            found = {key: packed(part[key]) for key in sorted(part)}
            items = {key: found[key] for key in part}
            return items if type(part) is dict else type(part)(items)  # type: ignore[call-arg]
        if isinstance(part, list | tuple):
            parts = [packed(p) for p in part]
            return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)
        return td.nest.pack_sequence_as(part, [next(rest) for _ in td.nest.flatten(part)])

    return packed(value)


# -- several replicas in a process -----------------------------------------------------------------


class _Given:
    """What a replica waits for: a result of `merge_call`, or the end."""

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value, self.error = value, error

    def take(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _Ended(BaseException):
    """Ends a replica where another one has failed."""


class _Turn(ReplicaContext):
    """A replica that runs in turn with the others of its process, in a thread of its own."""

    def __init__(self, strategy: Strategy, replica_id: int, number: int) -> None:
        super().__init__(strategy, replica_id, number)
        self.waits_for: SimpleQueue[_Given] = SimpleQueue()
        self.says: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._recorder = context.recorder
        self._thread = threading.get_ident()

    def run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """The thread's work."""
        self._thread = threading.get_ident()
        try:
            self.waits_for.get().take()
            with within(self.strategy, self), self.strategy._placed(self.number):
                self.says.put(("done", fn(*args, **kwargs)))
        except BaseException as error:
            self.says.put(("failed", error))

    def own(self, value: Any) -> Any:
        if self.number == 0 or isinstance(value, td.IndexedSlices):
            return value
        return td.identity(value)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if context.recorder is not self._recorder or threading.get_ident() != self._thread:
            raise RuntimeError(f"{_ELSEWHERE}{at(user_origin())}")
        self.says.put(("merge", (merge_fn, tuple(args), dict(kwargs or {}))))
        return self.waits_for.get().take()


def run_in_turn(
    strategy: Strategy, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
    first: int, count: int,
) -> Any:  # fmt: skip
    """Run a function for each replica of this process.

    The replicas have a thread each, of which one works at a time: each goes on until it has ended
    or meets the others in `ReplicaContext.merge_call`. So all of it is in one order, which is that
    of the graph, where a function is traced.

    Args:
        first: the number of the first replica among those of all workers.
        count: how many there are in this process.

    Returns:
        The structure of results, with `PerReplica` where there are several.
    """
    turns = [_Turn(strategy, first + i, i) for i in range(count)]
    threads = []
    for i, turn in enumerate(turns):
        given = selected(i, args), selected(i, dict(kwargs))
        body = carried_over(turn.run)
        threads.append(SafeThread(target=body, args=(fn, *given), daemon=True))
    try:
        for thread in threads:
            thread.start()
        answers: list[Any] = [None] * count
        while True:
            said = []
            for turn, answer in zip(turns, answers, strict=True):
                turn.waits_for.put(_Given(answer))
                kind, what = turn.says.get()
                if kind == "failed":
                    raise what
                said.append((kind, what))
            kinds = {kind for kind, _ in said}
            if kinds == {"done"}:
                return regrouped([what for _, what in said])
            if len(kinds) > 1:
                raise RuntimeError(
                    "Some replicas call merge_call (all_reduce, apply_gradients, assign ...) and "
                    f"others have ended: all of them must meet{at(user_origin())}"
                )
            answers = _merged(strategy, [what for _, what in said])
    finally:
        for turn in turns:
            turn.waits_for.put(_Given(error=_Ended()))
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _merged(strategy: Strategy, calls: Sequence[Any]) -> list[Any]:
    """Call the function that the replicas ask for; gives what each of them gets."""
    merge_fn = calls[0][0]
    args = regrouped([args for _, args, _ in calls])
    kwargs = regrouped([kwargs for _, _, kwargs in calls])
    with within(strategy, None):
        found = merge_fn(strategy, *args, **kwargs)
    return [selected(i, found) for i in range(len(calls))]
