"""Profiles of eager operations, compiled programs and their kernels
(``td.profiler.experimental``)."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.profiler.session import Profile, ProfilerOptions, Trace, start, stop

__all__ = ["Profile", "ProfilerOptions", "Trace", "start", "stop"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
