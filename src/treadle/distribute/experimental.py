"""``td.distribute.experimental``."""

from __future__ import annotations

from treadle.distribute import workers
from treadle.distribute.cluster_resolver import ClusterResolver
from treadle.distribute.options import (
    CommunicationImplementation,
    CommunicationOptions,
    ValueContext,
)
from treadle.distribute.strategy import (
    CentralStorageStrategy,
    ParameterServerStrategy,
    TPUStrategy,
)
from treadle.names import missing_in


class MultiWorkerMirroredStrategy(workers.MultiWorkerMirroredStrategy):
    """`td.distribute.MultiWorkerMirroredStrategy` with the arguments that it had in `experimental`.

    Args:
        communication: how workers talk to each other; MPI does it here.
    """

    def __init__(
        self, communication: CommunicationImplementation = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))


CollectiveCommunication = CommunicationImplementation
CollectiveHints = CommunicationOptions

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "ValueContext",
]

__getattr__ = missing_in(__name__)
