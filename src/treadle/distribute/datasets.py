"""Datasets whose batches the replicas share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.data.stages.devices import CopiedToDevices
from treadle.data.stages.replicas import InTurn, Shares
from treadle.distribute.values import PerReplica, PerReplicaSpec
from treadle.iteration import GraphElements, GraphIterable, context

if TYPE_CHECKING:
    from treadle.distribute.strategy import Strategy

_AHEAD = 2  # elements: one is used while the next one is copied


def shared_out(
    strategy: Strategy, dataset: td.data.Dataset
) -> DistributedDataset | td.data.Dataset:
    """The batches of a dataset in parts, one for each replica of this process."""
    off = td.data.experimental.AutoShardPolicy.OFF
    own = dataset.options().experimental_distribute.auto_shard_policy is off
    count = strategy._local_replicas
    workers, first = (1, 0) if own else (strategy._workers, strategy._first_replica)
    if count * workers == 1:
        return dataset
    shared = dataset._then(Shares(dataset._stage, count * workers, first, count))
    return shared if count == 1 else DistributedDataset(_on_devices(strategy, shared))


def taken_in_turn(
    strategy: Strategy, dataset: td.data.Dataset
) -> DistributedDataset | td.data.Dataset:
    """The replicas of this process take the elements of a dataset in turn."""
    count = strategy._local_replicas
    if count == 1:
        return dataset
    taken = dataset._then(InTurn(dataset._stage, count))
    return DistributedDataset(_on_devices(strategy, taken))


def _on_devices(strategy: Strategy, dataset: td.data.Dataset) -> td.data.Dataset:
    """The elements of replicas with a device each, copied there ahead of their use."""
    devices = strategy._replica_devices
    if not devices:
        return dataset
    return dataset._then(CopiedToDevices(dataset._stage, devices)).prefetch(_AHEAD)


class DistributedDataset(GraphIterable):
    """A dataset whose elements are `PerReplica`: a batch for each replica of this process.

    It is iterated over as a dataset is, in functions too.
    """

    def __init__(self, dataset: td.data.Dataset) -> None:
        self._dataset = dataset

    @property
    def element_spec(self) -> Any:
        """The structure of the elements: of a tuple or dict of tensors one of `PerReplicaSpec`."""
        return _regrouped_specs(self._dataset.element_spec)

    def __iter__(self) -> Any:
        if context.recorder is not None:
            return _InGraph(self._dataset.in_graph())
        return DistributedIterator(iter(self._dataset))

    def in_graph(self) -> GraphElements:
        return _InGraph(self._dataset.in_graph())

    def graph_length(self) -> Any:
        return self._dataset.graph_length()

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def cardinality(self) -> Any:
        """The number of elements."""
        return self._dataset.cardinality()

    def __repr__(self) -> str:
        return f"<DistributedDataset element_spec={self.element_spec!r}>"


class DistributedIterator(GraphIterable):
    """Iterates over a `DistributedDataset` once."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    @property
    def element_spec(self) -> Any:
        return _regrouped_specs(self._iterator.element_spec)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return _regrouped(next(self._iterator))

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there are no more.
        """
        return _regrouped(self._iterator.get_next())

    def get_next_as_optional(self) -> Any:
        """The next element as an `Optional`, which is empty at the end."""
        found = self._iterator.get_next_as_optional()
        return _Optional(found)

    def in_graph(self) -> GraphElements:
        return _InGraph(self._iterator.in_graph())


class _Optional:
    """An optional element of each replica."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def has_value(self) -> Any:
        return self._found.has_value()

    def get_value(self) -> Any:
        return _regrouped(self._found.get_value())


class _InGraph(GraphElements, GraphIterable):
    """The elements inside a function that is traced."""

    def __init__(self, elements: Any) -> None:
        self._elements = elements

    def in_graph(self) -> GraphElements:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return _regrouped(self._elements.traced_next())

    def has_next(self) -> Any:
        return self._elements.has_next()

    def get_next(self) -> Any:
        return _regrouped(self._elements.get_next())

    def get_next_as_optional(self) -> Any:
        return _Optional(self._elements.get_next_as_optional())

    def close(self) -> None:
        self._elements.close()


def _regrouped(parts: tuple[Any, ...]) -> Any:
    """From a batch for each replica to the structure of a batch, of `PerReplica`."""
    first = parts[0]
    if isinstance(first, dict):
        return {k: _regrouped(tuple(p[k] for p in parts)) for k in first}
    if isinstance(first, tuple):
        columns = [_regrouped(column) for column in zip(*parts, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    return PerReplica(parts)


def _regrouped_specs(parts: tuple[Any, ...]) -> Any:
    first = parts[0]
    if isinstance(first, dict):
        return {k: _regrouped_specs(tuple(p[k] for p in parts)) for k in first}
    if isinstance(first, tuple):
        columns = [_regrouped_specs(column) for column in zip(*parts, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    return PerReplicaSpec(*parts)
