"""Switches of tracing."""

import os

run_eagerly = False
filter_tracebacks = os.environ.get("TREADLE_FULL_TRACEBACK", "") in ("", "0")
