"""``td.lookup``: tables from keys to values, for strings and numbers."""

from treadle.lookup import experimental
from treadle.names import missing_in
from treadle.ops.collections.table_contents import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from treadle.ops.collections.tables import StaticHashTable, StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]

__getattr__ = missing_in(__name__)
