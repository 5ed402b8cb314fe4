"""Functions as native shared objects with a C header, which run without Python."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.shared_object.exporting import Exported, export

__all__ = ["Exported", "export"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
