"""Switches of tracing."""

import os

run_eagerly = False
filter_tracebacks = os.environ.get("TREADLE_FULL_TRACEBACK", "") in ("", "0")
# Traces that differ only in dims share one compiled program.
share_programs = os.environ.get("TREADLE_SHARE_PROGRAMS", "1") not in ("", "0")
