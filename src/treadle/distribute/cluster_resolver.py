"""``td.distribute.cluster_resolver``: which workers there are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import treadle as td
from treadle.distribute.cluster_spec import ClusterSpec
from treadle.names import missing_in

__all__ = ["ClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver", "UnionResolver"]


class ClusterResolver:
    """What knows the workers of a program, and which of them this process is.

    Attributes:
        task_type: "worker", "chief" ...; None where it is not known.
        task_id: the number of this process among those of its type.
        rpc_layer: the protocol in `master`, accepted for TensorFlow programs.
        environment: accepted for TensorFlow programs.
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment: str = ""

    def cluster_spec(self) -> ClusterSpec:
        """The addresses of the workers."""
        raise NotImplementedError(f"{type(self).__name__} must define cluster_spec()")

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        """The address of a task; "" where none is given and none is known."""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if kind is None or number is None:
            return ""
        layer = rpc_layer or self.rpc_layer
        address = self.cluster_spec().task_address(kind, number)
        return f"{layer}://{address}" if layer else address

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None,
        config_proto: object = None,
    ) -> dict[str, int]:  # fmt: skip
        """How many GPUs this process sees."""
        return {"GPU": len(td.config.list_logical_devices("GPU"))}


class SimpleClusterResolver(ClusterResolver):
    """What a program says itself.

    Args:
        cluster_spec: a `td.train.ClusterSpec`.
        master: what `master()` gives without arguments.
        task_type, task_id, environment, num_accelerators, rpc_layer: see `ClusterResolver`.

    Raises:
        TypeError: `cluster_spec` is something else.
    """

    def __init__(
        self, cluster_spec: ClusterSpec, master: str = "", task_type: str | None = None,
        task_id: int | None = None, environment: str = "",
        num_accelerators: Mapping[str, int] | None = None, rpc_layer: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `td.train.ClusterSpec`.")
        self._spec, self._master = cluster_spec, master
        self.task_type, self.task_id, self.environment = task_type, task_id, environment
        self._accelerators, self.rpc_layer = num_accelerators, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        if task_type is None or task_id is None:
            return self._master
        return super().master(task_type, task_id, rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None,
        config_proto: object = None,
    ) -> dict[str, int]:  # fmt: skip
        if self._accelerators is None:
            return super().num_accelerators(task_type, task_id, config_proto)
        return dict(self._accelerators)


class TFConfigClusterResolver(ClusterResolver):
    """What the variable TF_CONFIG of the environment says, as JSON:
    ``{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}``.

    Args:
        task_type, task_id, rpc_layer, environment: in place of what TF_CONFIG says.
    """

    def __init__(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None, environment: str | None = None,
    ) -> None:  # fmt: skip
        found = _tf_config()
        task = found.get("task", {})
        self.task_type = task.get("type") if task_type is None else task_type
        number = task.get("index") if task_id is None else task_id
        self.task_id = None if number is None else int(number)
        self.rpc_layer = found.get("rpc_layer") if rpc_layer is None else rpc_layer
        self.environment = environment or found.get("environment", "")

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec(_tf_config().get("cluster", {}))

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        if not self.cluster_spec().jobs:
            return ""
        return super().master(task_type, task_id, rpc_layer)


class UnionResolver(ClusterResolver):
    """The workers of several resolvers; the first one says which this process is.

    Args:
        resolvers: the resolvers.
        kwargs: `task_type`, `task_id` and `rpc_layer`, in place of the first one's.

    Raises:
        ValueError: there is no resolver.
    """

    def __init__(self, *resolvers: ClusterResolver, **kwargs: Any) -> None:
        if not resolvers:
            raise ValueError("At least one ClusterResolver must be specified.")
        self._resolvers = resolvers
        first = resolvers[0]
        self.task_type = kwargs.get("task_type", first.task_type)
        self.task_id = kwargs.get("task_id", first.task_id)
        self.rpc_layer = kwargs.get("rpc_layer", first.rpc_layer)

    def cluster_spec(self) -> ClusterSpec:
        jobs: dict[str, list[str]] = {}
        for resolver in self._resolvers:
            for name, addresses in resolver.cluster_spec().as_dict().items():
                jobs.setdefault(name, []).extend(addresses)
        return ClusterSpec(jobs)


class MPIClusterResolver(ClusterResolver):
    """The processes that MPI started: all of them workers, the first one being the chief.

    Args:
        hosts: the name of each one's machine.
        rank: the number of this process.
    """

    def __init__(self, hosts: list[str], rank: int) -> None:
        self._hosts, self.task_type, self.task_id = hosts, "worker", rank

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec({"worker": [f"{h}:{i}" for i, h in enumerate(self._hosts)]})


def _tf_config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
    return found


__getattr__ = missing_in(__name__)
