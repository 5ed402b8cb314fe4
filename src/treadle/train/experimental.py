"""``td.train.experimental``: objects of Python that keep themselves in checkpoints."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.train.python_state import PythonState

__all__ = ["PythonState"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
