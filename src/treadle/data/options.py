"""Options: accepted for TensorFlow programs."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class AutoShardPolicy(IntEnum):
    """Which part of the data a worker gets from `Strategy.experimental_distribute_dataset`: its
    share of each batch; OFF: all of them."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class Options:
    """What `Dataset.with_options` takes.

    Attributes:
        deterministic: whether parallel maps keep the order of their elements; None: they do.
        experimental_distribute: ``experimental_distribute.auto_shard_policy`` is an
            `AutoShardPolicy`.
        autotune, threading, experimental_optimization: accepted, with any attributes; they tell
            TensorFlow's runtime how to go about it.
    """

    def __init__(self) -> None:
        self.deterministic: bool | None = None
        self.experimental_deterministic: bool | None = None
        self.autotune = SimpleNamespace()
        self.threading = SimpleNamespace()
        self.experimental_optimization = SimpleNamespace()
        self.experimental_distribute = SimpleNamespace(auto_shard_policy=AutoShardPolicy.AUTO)
        self.experimental_slack: bool | None = None

    def merge(self, options: Options) -> Options:
        """These options with those that `options` sets."""
        merged = Options()
        for source in (self, options):
            vars(merged).update({k: v for k, v in vars(source).items() if v is not None})
        return merged

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Options) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]
