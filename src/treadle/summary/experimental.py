"""The step of a thread, name scopes of summaries, and summaries as bytes
(``td.summary.experimental``)."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.summary.values import summary_scope, write_raw_pb
from treadle.summary.writers import get_step, set_step

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
