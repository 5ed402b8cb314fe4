"""``td.lookup.experimental``: tables that change."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.ops.collections.changing_tables import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
