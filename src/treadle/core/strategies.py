"""Which strategy of `treadle.distribute` is at work in this thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from treadle.core.devices import Device
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin


class Frame(NamedTuple):
    """A strategy at work.

    Attributes:
        replica: the replica that runs; None: what all replicas have in common is done.
        number: which of the devices of this process works, where the replicas have one each; None
            where what is done is for all of them.
    """

    strategy: Any
    replica: Any
    number: int | None = None


class Among(NamedTuple):
    """Which of several devices the operations are for that are traced.

    Attributes:
        number: of the device among `devices`.
    """

    number: int
    devices: tuple[Device, ...]


class _Where(threading.local):
    frame: Frame | None = None  # None: the default strategy and its only replica
    among: Among | None = None  # None: those that are traced are for no device in particular
    read: Mapping[int, Any] = MappingProxyType({})  # what variables are read as, by their ids


where = is_mode(_Where())


def number_here() -> int | None:
    """Which of several devices of a strategy works in this thread; None where that is not said."""
    frame = where.frame
    return None if frame is None else frame.number


def tracing_for(number: int | None, devices: tuple[Device, ...]) -> during:
    """Operations that are traced in the block are for one of several devices; None: for those that
    they are for outside of it."""
    return during(where, "among", where.among if number is None else Among(number, devices))


def tracing_for_none() -> during:
    """Operations that are traced in the block are for no device in particular."""
    return during(where, "among", None)


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
