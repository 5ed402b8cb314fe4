"""``td.data``: input pipelines."""

from treadle.data import experimental
from treadle.data.dataset import Dataset
from treadle.data.elements import DatasetSpec
from treadle.data.files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from treadle.data.iterator import IteratorSpec, NumpyIterator
from treadle.data.iterator import OwnedIterator as Iterator
from treadle.data.options import Options, ThreadingOptions
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.stage import INFINITE as INFINITE_CARDINALITY
from treadle.data.stages.stage import UNKNOWN as UNKNOWN_CARDINALITY
from treadle.iteration import Optional
from treadle.names import missing_in

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Optional",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]

__getattr__ = missing_in(__name__)
