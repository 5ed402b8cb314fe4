"""``td.distribute``: training on several devices and workers."""

from __future__ import annotations

from treadle.core.refusals import explain_errors
from treadle.distribute import cluster_resolver, experimental
from treadle.distribute.contexts import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from treadle.distribute.datasets import DistributedDataset, DistributedIterator
from treadle.distribute.extended import StrategyExtended
from treadle.distribute.options import (
    InputContext,
    InputOptions,
    InputReplicationMode,
    RunOptions,
)
from treadle.distribute.replicas import ReplicaContext
from treadle.distribute.strategy import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    NcclAllReduce,
    OneDeviceStrategy,
    ParameterServerStrategy,
    ReductionToOneDevice,
    Strategy,
    TPUStrategy,
)
from treadle.distribute.values import DistributedValues, ReduceOp
from treadle.distribute.workers import MultiWorkerMirroredStrategy
from treadle.names import missing_in

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
