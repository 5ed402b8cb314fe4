"""``td.train``: variables saved and restored, and averaged; examples, records of named features."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.distribute.cluster_spec import ClusterSpec
    from treadle.io.messages import (
        BytesList,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        SequenceExample,
    )
    from treadle.train import experimental
    from treadle.train.averages import ExponentialMovingAverage
    from treadle.train.checkpoint import Checkpoint, CheckpointOptions
    from treadle.train.coordinator import Coordinator
    from treadle.train.management import CheckpointManager, checkpoints_iterator
    from treadle.train.reader import (
        CheckpointReader,
        list_variables,
        load_checkpoint,
        load_variable,
    )
    from treadle.train.state_file import get_checkpoint_state, latest_checkpoint
    from treadle.train.views import CheckpointView, TrackableView

__all__ = [
    "BytesList", "Checkpoint", "CheckpointManager", "CheckpointOptions", "CheckpointReader",
    "CheckpointView", "ClusterSpec", "Coordinator",
    "Example", "ExponentialMovingAverage", "Feature", "FeatureList", "FeatureLists", "Features",
    "FloatList", "Int64List", "SequenceExample", "TrackableView", "checkpoints_iterator",
    "experimental", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_checkpoint", "load_variable",
]  # fmt: skip

explain_errors(__name__)
__getattr__ = provided(
    __name__,
    {
        "treadle.distribute.cluster_spec": "ClusterSpec",
        "treadle.io.messages": """
            BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List
            SequenceExample
            """,
        "treadle.train": "experimental",
        "treadle.train.averages": "ExponentialMovingAverage",
        "treadle.train.checkpoint": "Checkpoint CheckpointOptions",
        "treadle.train.coordinator": "Coordinator",
        "treadle.train.management": "CheckpointManager checkpoints_iterator",
        "treadle.train.reader": "CheckpointReader list_variables load_checkpoint load_variable",
        "treadle.train.state_file": "get_checkpoint_state latest_checkpoint",
        "treadle.train.views": "CheckpointView TrackableView",
    },
)
