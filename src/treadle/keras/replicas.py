"""What training does where several replicas compute a step together (`td.distribute`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import treadle as td


def count() -> int:
    """How many replicas compute a step."""
    if not td.distribute.has_strategy():
        return 1
    return int(td.distribute.get_strategy().num_replicas_in_sync)


def number() -> int:
    """Which replica works here; 0 outside of replicas."""
    if not td.distribute.has_strategy():
        return 0
    replica = td.distribute.get_replica_context()
    return 0 if replica is None else int(replica.replica_id_in_sync_group)


def scaled(loss: Any) -> Any:
    """The mean over a replica's examples as its share of the mean over all: the gradients of the
    replicas are added up."""
    replicas = count()
    return loss if replicas == 1 else loss * (1.0 / replicas)


def unscaled(loss: Any) -> Any:
    """The mean over a replica's examples, from its share."""
    replicas = count()
    return loss if replicas == 1 else loss * float(replicas)


def update_once(grads: Sequence[Any], update: Callable[[list[Any]], Any]) -> Any:
    """Call ``update(grads)`` once for all replicas, with the sums of their gradients.

    Args:
        grads: tensors, `td.IndexedSlices`, or None.
    """
    replica = td.distribute.get_replica_context() if td.distribute.has_strategy() else None
    if replica is None or replica.num_replicas_in_sync == 1:
        return update(list(grads))
    places = [i for i, g in enumerate(grads) if g is not None]

    def merged(strategy: Any, given: list[Any]) -> Any:
        sums = strategy.extended.batch_reduce_to("SUM", [(g, None) for g in given])
        found: list[Any] = [None] * len(grads)
        for i, total in zip(places, sums, strict=True):
            found[i] = total
        return strategy.extended.update_where_variables_are(update, found)

    # One tensor may be the gradient of several replicas, of each of which it is a share.
    return replica.merge_call(merged, ([replica.own(grads[i]) for i in places],))


def results_of(metrics: Sequence[Any], results: Callable[[], Any]) -> Any:
    """``results()`` of metrics over what all replicas have seen, whose states are read together."""
    if not td.distribute.has_strategy():
        return results()
    replica = td.distribute.get_replica_context()
    several = replica.num_replicas_in_sync > 1 if replica is not None else count() > 1
    if not several:
        return results()

    def merged(strategy: Any) -> Any:
        with strategy.extended.read_together([v for m in metrics for v in m.variables]):
            return results()

    if replica is None:
        return merged(td.distribute.get_strategy())
    return replica.merge_call(merged)


def step_of(strategy: Any, step: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    """A step over the parts of a batch that the replicas have, from one of a replica.

    Args:
        kind: "predict" for outputs of all replicas, one after the other; else they all give the
            same values.
    """

    def replicas(data: Any) -> Any:
        found = strategy.run(step, (data,))
        if kind == "predict":
            return _gathered(strategy, found)
        return _first(strategy, found)

    return replicas


def _first(strategy: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _first(strategy, v) for k, v in value.items()}
    return strategy.experimental_local_results(value)[0]


def _gathered(strategy: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _gathered(strategy, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_gathered(strategy, v) for v in value)
    return strategy.gather(value, axis=0)


def is_chief() -> bool:
    """Whether this process is the worker that writes checkpoints and logs: the first one."""
    return bool(td.distribute.get_strategy().extended.should_checkpoint)


@contextmanager
def place_of(path: str) -> Iterator[str]:
    """Where this worker writes a file: the chief where it is to be. The others take part, since
    variables that are one when read are exchanged then, and write what is thrown away."""
    if is_chief():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="treadle-worker-") as folder:
        yield os.path.join(folder, os.path.basename(path))
