"""When what ran: ``td.profiler``."""

from treadle.names import missing_in
from treadle.profiler import experimental

__all__ = ["experimental"]

__getattr__ = missing_in(__name__)
