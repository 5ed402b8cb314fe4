"""Which strategy of `treadle.distribute` is at work in this thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from treadle.core.interrupts import is_mode
from treadle.core.origin import at, user_origin


class Frame(NamedTuple):
    """A strategy at work.

    Attributes:
        replica: the replica that runs; None: what all replicas have in common is done.
    """

    strategy: Any
    replica: Any


class _Where(threading.local):
    frame: Frame | None = None  # None: the default strategy and its only replica
    read: Mapping[int, Any] = MappingProxyType({})  # what variables are read as, by their ids


where = is_mode(_Where())


def replicas_in_sync(function: str) -> int:
    """How many replicas compute a step together, for a function that a replica calls.

    Raises:
        RuntimeError: no replica runs, but what all of them have in common is done.
    """
    frame = where.frame
    if frame is None:
        return 1
    if frame.replica is None:
        raise RuntimeError(
            f"You are calling `{function}` in cross replica context, while it was expected to be "
            f"called in replica context{at(user_origin())}"
        )
    return int(frame.strategy.num_replicas_in_sync)
