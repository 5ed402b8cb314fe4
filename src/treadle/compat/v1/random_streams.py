"""Random numbers of sessions: each operation has streams of its own in each session.

Where a graph or an operation has a seed, a session draws the numbers that another one draws, from
TensorFlow's generator: the seeds of both are its key and where it begins to count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.values import Operation
from treadle.core.context import recording, taping

_DEFAULT_GRAPH_SEED = 87654321  # TensorFlow's, where only an operation has a seed
_WORD = 1 << 64


class OperationStreams(Mapping[int | None, td.Variable]):
    """The streams of an operation in a session, by the seeds that it draws with. Without a seed of
    the graph there is none for the seed None."""

    def __init__(self, session: Any, op: Operation) -> None:
        self._session, self._op = session, op

    def __contains__(self, seed: object) -> bool:
        return seed is not None or self._op.graph_seed is not None

    def __getitem__(self, seed: int | None) -> td.Variable:
        if seed not in self:
            raise KeyError(seed)
        found: td.Variable = self._session.resource(
            (self._op, seed), lambda: _stream(*self._seeds(seed))
        )
        return found

    def _seeds(self, seed: int | None) -> tuple[int, int]:
        """The seeds of the graph and of the operation, as TensorFlow combines them."""
        first, second = self._op.graph_seed, seed
        if first is None:
            first = _DEFAULT_GRAPH_SEED
        if second is None:
            second = self._op.number
        return (first, second) if first or second else (0, 2**31 - 1)

    def __iter__(self) -> Iterator[int | None]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _stream(graph_seed: int, op_seed: int) -> td.Variable:
    """A state that begins at the operation's seed, with the graph's as the key."""
    words = [np.uint64(word % _WORD).astype(np.int64) for word in (0, op_seed, graph_seed)]
    with recording(None), taping(()):
        return td.Variable(np.array(words, np.int64), trainable=False, name="random_state")
