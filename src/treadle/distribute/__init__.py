"""``td.distribute``: training on several devices and workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.distribute.contexts import has_strategy
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.distribute import cluster_resolver, experimental
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
        experimental_set_strategy,
        get_replica_context,
        get_strategy,
        in_cross_replica_context,
    )
    from treadle.distribute.values import DistributedValues, ReduceOp
    from treadle.distribute.workers import MultiWorkerMirroredStrategy

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
# Whether there is a strategy is asked in every training step: what one consists of, pipelines among
# it, is imported when it is first used. The default one is made with its class.
__getattr__ = provided(__name__, {
    "treadle.distribute": "cluster_resolver experimental",
    "treadle.distribute.datasets": "DistributedDataset DistributedIterator",
    "treadle.distribute.extended": "StrategyExtended",
    "treadle.distribute.options": "InputContext InputOptions InputReplicationMode RunOptions",
    "treadle.distribute.replicas": "ReplicaContext",
    "treadle.distribute.strategy":
        "CrossDeviceOps HierarchicalCopyAllReduce MirroredStrategy NcclAllReduce OneDeviceStrategy "
        "ParameterServerStrategy ReductionToOneDevice Strategy TPUStrategy "
        "experimental_set_strategy get_replica_context get_strategy in_cross_replica_context",
    "treadle.distribute.values": "DistributedValues ReduceOp",
    "treadle.distribute.workers": "MultiWorkerMirroredStrategy",
})  # fmt: skip
