"""``td.compat.v1.contrib.data``: pipelines, before they were in `data`."""

from treadle.compat.v1.data import Dataset as Dataset
from treadle.compat.v1.data import FixedLengthRecordDataset as FixedLengthRecordDataset
from treadle.compat.v1.data import Iterator as Iterator
from treadle.compat.v1.data import TextLineDataset as TextLineDataset
from treadle.compat.v1.data import TFRecordDataset as TFRecordDataset
from treadle.data.experimental import map_and_batch as map_and_batch
from treadle.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from treadle.names import missing_in

__getattr__ = missing_in(__name__)
