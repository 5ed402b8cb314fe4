"""Which strategy is at work in this thread, and which replica runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.core.interrupts import during
from treadle.core.origin import at, user_origin
from treadle.core.strategies import Frame, tracing_for, where

if TYPE_CHECKING:
    from treadle.distribute.replicas import ReplicaContext
    from treadle.distribute.strategy import Strategy


_default: list[Frame] = []


def set_default(strategy: Strategy, replica: ReplicaContext) -> None:
    """Say what is at work where nobody enters a strategy's scope."""
    _default[:] = [Frame(strategy, replica)]


def current() -> Frame:
    """What is at work in this thread."""
    return where.frame or _default[0]


class within:
    """A strategy, and a replica of it or None, are at work inside the block.

    Args:
        number: of the strategy's device in this process that the work is for, where its replicas
            have one each; None: that of the replica.
    """

    __slots__ = ("_blocks",)

    def __init__(
        self, strategy: Strategy, replica: ReplicaContext | None, number: int | None = None
    ) -> None:
        devices = strategy._replica_devices
        if number is None and replica is not None:
            number = replica.number
        frame = Frame(strategy, replica, number if devices else None)
        self._blocks = during(where, "frame", frame), tracing_for(frame.number, devices)

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__()


def get_strategy() -> Strategy:
    """The strategy at work: that of the innermost ``scope`` or ``run``, else the default one."""
    strategy: Strategy = current().strategy
    return strategy


def has_strategy() -> bool:
    """Whether another strategy than the default one is at work."""
    frame = where.frame  # the default strategy need not be there yet
    return frame is not None and not (_default and frame.strategy is _default[0].strategy)


def get_replica_context() -> ReplicaContext | None:
    """The replica that runs, the default strategy's one outside of all scopes; None in a
    ``scope``, and in a function that `ReplicaContext.merge_call` calls."""
    replica: ReplicaContext | None = current().replica
    return replica


def in_cross_replica_context() -> bool:
    """Whether what all replicas have in common is done: `get_replica_context` gives None."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Let a strategy be at work in this thread from now on, as if all that follows were in its
    ``scope``; None: the default one.

    Raises:
        TypeError: it is no strategy.
        RuntimeError: it is called in a scope.
    """
    if strategy is not None and not hasattr(strategy, "scope"):
        kind = type(strategy).__name__
        raise TypeError(f"a td.distribute.Strategy is expected, not {kind}{at(user_origin())}")
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
