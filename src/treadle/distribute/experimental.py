"""``td.distribute.experimental``."""

from __future__ import annotations

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
from treadle.distribute.workers import MultiWorkerMirroredStrategy
from treadle.names import missing_in

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
