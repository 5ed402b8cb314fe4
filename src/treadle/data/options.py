"""Options of datasets, as TensorFlow has them. What they say of the runtime is taken and told
again, and changes nothing: only `deterministic` and the policy of shards do."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, ClassVar

from treadle.iteration import at, user_origin


class AutoShardPolicy(IntEnum):
    """Which part of the data a worker gets from `Strategy.experimental_distribute_dataset`: its
    share of each batch; OFF: all of them."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class AutotuneAlgorithm(Enum):
    """How TensorFlow's runtime looks for numbers of threads; taken, and not needed here."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(Enum):
    """What TensorFlow does about state outside of a dataset that it saves; taken."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Group:
    """Options by name, each of a class, None (or the first value of a class of options) unless set.

    Raises:
        AttributeError: there is no option of a name.
        TypeError: a value of another class.
        ValueError: an option is set of those that a dataset told: it would not be the dataset's.
    """

    _kinds: ClassVar[dict[str, type]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _told = False

    def __init__(self) -> None:
        for name, kind in self._kinds.items():
            first = kind() if issubclass(kind, _Group) else self._defaults.get(name)
            object.__setattr__(self, name, first)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds.get(name)
        if kind is None:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {value} (type: {type(value)})'
            )
        if self._told:
            raise ValueError(
                "Options that dataset.options() gave cannot be changed: a dataset with others is "
                f"dataset.with_options(options){at(user_origin())}"
            )
        object.__setattr__(self, name, value)

    def _as_told(self) -> Any:
        """Equal options that cannot be changed."""
        made = type(self)()
        for name, kind in self._kinds.items():
            value = getattr(self, name)
            own = value._as_told() if issubclass(kind, _Group) else value
            object.__setattr__(made, name, own)
        object.__setattr__(made, "_told", True)
        return made

    def _merged(self, other: Any) -> Any:
        """These options with those that `other` sets."""
        made = type(self)()
        for name, kind in self._kinds.items():
            own, theirs = getattr(self, name), getattr(other, name)
            if issubclass(kind, _Group):
                value = own._merged(theirs)
            else:
                value = own if theirs in (None, self._defaults.get(name)) else theirs
            object.__setattr__(made, name, value)
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self._kinds
        )

    __hash__ = None  # type: ignore[assignment]


class AutotuneOptions(_Group):
    """How TensorFlow's runtime looks for numbers of threads and sizes of buffers."""

    _kinds: ClassVar[dict[str, type]] = {
        "autotune_algorithm": AutotuneAlgorithm, "cpu_budget": int, "enabled": bool,
        "initial_parallelism": int, "min_parallelism": int, "ram_budget": int,
    }  # fmt: skip


class DistributeOptions(_Group):
    """Which parts of the data workers get: `auto_shard_policy`, an `AutoShardPolicy`."""

    _kinds: ClassVar[dict[str, type]] = {
        "auto_shard_policy": AutoShardPolicy, "num_devices": int,
    }  # fmt: skip
    _defaults: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_Group):
    """What TensorFlow's runtime makes of pipelines; those of this package are fused anyway."""

    _kinds: ClassVar[dict[str, type]] = dict.fromkeys(
        (
            "apply_default_optimizations", "filter_fusion", "filter_parallelization",
            "inject_prefetch", "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion",
            "map_parallelization", "noop_elimination", "parallel_batch", "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
        ),
        bool,
    )  # fmt: skip


class ServiceOptions(_Group):
    """Options of TensorFlow's data service, which there is not here."""

    _kinds: ClassVar[dict[str, type]] = {"pinned": bool}


class ThreadingOptions(_Group):
    """The threads of TensorFlow's runtime."""

    _kinds: ClassVar[dict[str, type]] = {
        "max_intra_op_parallelism": int, "private_threadpool_size": int,
    }  # fmt: skip


class Options(_Group):
    """What `Dataset.with_options` takes.

    Attributes:
        deterministic: whether parallel maps keep the order of their elements; None: they do.
        experimental_distribute: ``experimental_distribute.auto_shard_policy`` is an
            `AutoShardPolicy`.
        autotune, threading, experimental_optimization and others: taken; they tell TensorFlow's
            runtime how to go about it.
    """

    _kinds: ClassVar[dict[str, type]] = {
        "autotune": AutotuneOptions, "dataset_name": str, "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions, "experimental_service": ServiceOptions,
        "experimental_slack": bool, "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool, "framework_type": list, "threading": ThreadingOptions,
    }  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(_OLDER_NAMES.get(name, name), value)

    def __getattr__(self, name: str) -> Any:
        if name not in _OLDER_NAMES:
            raise AttributeError(f"Options has no property {name!r}")
        return getattr(self, _OLDER_NAMES[name])

    def merge(self, options: Options) -> Options:
        """These options with those that `options` sets."""
        merged: Options = self._merged(options)
        return merged


_OLDER_NAMES = {
    "experimental_deterministic": "deterministic", "experimental_threading": "threading",
}  # fmt: skip
