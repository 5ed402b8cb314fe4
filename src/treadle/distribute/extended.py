"""More of a strategy, for libraries that train (``strategy.extended``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.core.interrupts import during
from treadle.core.strategies import where
from treadle.data.stages.stage import randomness_in
from treadle.distribute.values import DistributedValues, reduce_op, regrouped, selected
from treadle.distribute.variables import DistributedVariable, SyncOnReadVariable
from treadle.ops.state import Variable

if TYPE_CHECKING:
    from treadle.distribute.strategy import Strategy


class StrategyExtended:
    """What libraries ask a strategy for."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas of this process."""
        return self._strategy._devices

    parameter_devices = worker_devices

    def _in_multi_worker_mode(self) -> bool:
        """Whether there are several workers."""
        return self._strategy._workers > 1

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints: the first worker."""
        return self._strategy._worker == 0

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes summaries: the first worker."""
        return self._strategy._worker == 0

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: sizes may differ from step to step."""
        return False

    @property
    def is_default(self) -> bool:
        """Whether it is the strategy of programs that enter no scope."""
        return False

    def from_chief(self, value: Any) -> Any:
        """An object as the first worker has it, which every worker gets."""
        return self._strategy._from_chief(value)

    def agree_on_seeds(self, dataset: Any) -> None:
        """Give the shuffles of a dataset the seeds that they have at the first worker."""
        if self._strategy._workers > 1:
            for randomness in randomness_in(dataset._stage):
                randomness.seeds = self.from_chief(randomness.seeds)

    def share_batch(self, batch: Any) -> Any:
        """The parts of a batch that the replicas of this process get, as equal in size as can be.

        Args:
            batch: a structure of arrays and tensors with one example a row; a batch of a
                distributed dataset is left as it is.
        """
        strategy = self._strategy
        replicas, here = strategy.num_replicas_in_sync, strategy._local_replicas
        if replicas == 1 or _is_shared(batch):
            return batch
        firsts = range(strategy._first_replica, strategy._first_replica + here)
        return regrouped([_share(batch, number, replicas) for number in firsts])

    def read_together(self, variables: Sequence[Variable]) -> during:
        """A block in which variables that are one when read have the values of its beginning; they
        are exchanged together."""
        wanted = [v for v in variables if isinstance(v, SyncOnReadVariable)]
        return during(where, "read", self._strategy._values_of(wanted))

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """`Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def reduce_to(
        self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None
    ) -> Any:
        """`Strategy.reduce` without an axis."""
        return self._strategy._reduced([value], _op(reduce_op), options)[0]

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Iterable[tuple[Any, Any]],
        options: Any = None,
    ) -> list[Any]:  # fmt: skip
        """Several values reduced together."""
        values = [value for value, _ in value_destination_pairs]
        return self._strategy._reduced(values, _op(reduce_op), options)

    def update(
        self, var: Variable, fn: Callable[..., Any], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None, group: bool = True,
    ) -> Any:  # fmt: skip
        """Call ``fn(var, *args, **kwargs)`` where all replicas have met: once for each device that
        has the variable. The replicas of a process share it, but for those on several GPUs."""

        def updated(given: Any) -> Any:
            return fn(var, *given[0], **given[1])

        return self.update_where_variables_are(updated, (tuple(args), dict(kwargs or {})))

    def update_where_variables_are(self, fn: Callable[[Any], Any], value: Any) -> Any:
        """Call ``fn(value)`` where all replicas have met, once for each device that has the
        variables of the strategy, which they are there; gives the results.

        Args:
            value: a structure; of a `DistributedValues` in it a call gets its own.
        """
        strategy = self._strategy
        count = len(strategy._replica_devices) or 1
        found = []
        for number in range(count):
            with strategy._working(number):
                found.append(fn(selected(number, value)))
        return regrouped(found)

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Whether a variable was made in the scope of this strategy."""
        if isinstance(v, DistributedVariable):
            return v.strategy is self._strategy
        return False

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A block that changes nothing: variables are in the memory of the host."""
        return nullcontext()

    def value_container(self, value: Any) -> Any:
        """The value itself."""
        return value


def _is_shared(batch: Any) -> bool:
    if isinstance(batch, Mapping):
        return any(map(_is_shared, batch.values()))
    if isinstance(batch, list | tuple):
        return any(map(_is_shared, batch))
    return isinstance(batch, DistributedValues)


def _share(batch: Any, number: int, replicas: int) -> Any:
    """A replica's examples of a batch."""

    def part(leaf: Any) -> Any:
        each, rest = divmod(len(leaf), replicas)
        start = number * each + min(number, rest)
        return leaf[start : start + each + (number < rest)]

    return td.nest.map_structure(part, batch)


_op = reduce_op  # (a parameter has the same name)
