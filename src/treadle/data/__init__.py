"""``td.data``: input pipelines."""

from treadle.data import experimental
from treadle.data.dataset import Dataset
from treadle.data.elements import DatasetSpec
from treadle.data.iterator import IteratorSpec, NumpyIterator
from treadle.data.iterator import OwnedIterator as Iterator
from treadle.data.options import Options
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.stage import INFINITE as INFINITE_CARDINALITY
from treadle.data.stages.stage import UNKNOWN as UNKNOWN_CARDINALITY
from treadle.data.text import TextLineDataset
from treadle.iteration import Optional
from treadle.names import missing_name

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Optional",
    "Options",
    "TextLineDataset",
    "experimental",
]

_MISSING = {
    "TFRecordDataset": "read the records with Python and use Dataset.from_generator",
    "FixedLengthRecordDataset": "read the file with NumPy and use Dataset.from_tensor_slices",
}


def __getattr__(name: str) -> object:
    instead = f"It is not supported: {_MISSING[name]}" if name in _MISSING else ""
    raise missing_name(__name__, name, instead)
