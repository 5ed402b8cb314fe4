"""Which strategy is at work in this thread, and which replica runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin

if TYPE_CHECKING:
    from treadle.distribute.replicas import ReplicaContext
    from treadle.distribute.strategy import Strategy


class Frame(NamedTuple):
    """A strategy at work.

    Attributes:
        replica: the replica that runs; None: what all replicas have in common is done.
    """

    strategy: Strategy
    replica: ReplicaContext | None


class _Where(threading.local):
    frame: Frame | None = None  # None: the default strategy and its only replica
    read: Mapping[int, Any] = MappingProxyType({})  # what variables are read as, by their ids


where = is_mode(_Where())
_default: list[Frame] = []


def set_default(strategy: Strategy, replica: ReplicaContext) -> None:
    """Say what is at work where nobody enters a strategy's scope."""
    _default[:] = [Frame(strategy, replica)]


def current() -> Frame:
    """What is at work in this thread."""
    return where.frame or _default[0]


def within(strategy: Strategy, replica: ReplicaContext | None) -> during:
    """A strategy, and a replica of it or None, are at work inside the block."""
    return during(where, "frame", Frame(strategy, replica))


def get_strategy() -> Strategy:
    """The strategy at work: that of the innermost ``scope`` or ``run``, else the default one."""
    return current().strategy


def has_strategy() -> bool:
    """Whether another strategy than the default one is at work."""
    return get_strategy() is not _default[0].strategy


def get_replica_context() -> ReplicaContext | None:
    """The replica that runs, the default strategy's one outside of all scopes; None in a
    ``scope``, and in a function that `ReplicaContext.merge_call` calls."""
    return current().replica


def in_cross_replica_context() -> bool:
    """Whether what all replicas have in common is done: `get_replica_context` gives None."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Let a strategy be at work in this thread from now on, as if all that follows were in its
    ``scope``; None: the default one.

    Raises:
        RuntimeError: it is called in a scope.
    """
    for block in reversed(_entered):
        block.__exit__()
    _entered.clear()
    if has_strategy():
        raise RuntimeError(
            "Must not be called inside a `strategy.scope()`: experimental_set_strategy"
            f"{at(user_origin())}"
        )
    if strategy is not None:
        block = strategy.scope()
        block.__enter__()
        _entered.append(block)


_entered: list[Any] = []
