"""Which passes are switched off, known without the passes themselves."""

from __future__ import annotations

import os
import threading

local = threading.local()  # `disabled`: the names switched off in this thread


def disabled_passes() -> frozenset[str]:
    """The names switched off here, by `passes.disabled` or the environment."""
    listed = os.environ.get("TREADLE_DISABLE_PASSES", "")
    names = {n.strip() for n in listed.split(",") if n.strip()}
    return frozenset(names) | getattr(local, "disabled", frozenset())
