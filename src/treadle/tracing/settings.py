"""Switches of tracing."""

import os

run_eagerly = False
filter_tracebacks = os.environ.get("TREADLE_FULL_TRACEBACK", "") in ("", "0")
# A device that there is not stands for the processor.
soft_device_placement = True
log_device_placement = False
# Functions fail at the first operation that gives a NaN or an infinity.
check_numerics = False
# Traces that differ only in dims share one compiled program.
share_programs = os.environ.get("TREADLE_SHARE_PROGRAMS", "1") not in ("", "0")
# Eager operations on large arrays wait for their programs instead of asking NumPy meanwhile.
wait_for_eager_programs = os.environ.get("TREADLE_EAGER_PROGRAMS", "background") == "wait"
# How many traces a function keeps.
max_traces = int(os.environ.get("TREADLE_MAX_TRACES", "512"))


def checked_bound(bound: int) -> int:
    """A bound on traces as it was given.

    Raises:
        ValueError: it is not a positive number.
    """
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
        raise ValueError(f"max_traces must be a positive number of traces, got {bound!r}")
    return bound
