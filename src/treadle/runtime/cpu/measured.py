"""What was measured on processors, on disk: one object for each model of processor.

``TREADLE_TUNE=0`` switches all of it off: nothing is measured or tried out in the background, and
nothing is used that was.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os

from treadle.core.object_cache import default_cache
from treadle.core.plain_data import DamagedError, from_bytes, to_bytes
from treadle.runtime.tuning import Measured

VARIABLE = "TREADLE_TUNE"
VERSION = 2  # of the probes: others are measured anew
KIND = "measured"  # of objects on disk


def is_wanted() -> bool:
    """Whether what was measured is used, and what was not is measured."""
    return os.environ.get(VARIABLE, "1").strip() not in ("", "0")


def kept_measurement(processor: str | None) -> Measured | None:
    """What was measured on a processor, given by what names it; None where nothing was."""
    if processor is None or not is_wanted():
        return None
    data = default_cache().load(KIND, _key(processor))
    try:
        return None if data is None else Measured(**from_bytes(data))
    except (DamagedError, TypeError):
        return None


def keep_measurement(processor: str | None, found: Measured) -> None:
    """Keep what was measured on a processor."""
    if processor is not None:
        default_cache().store(KIND, _key(processor), to_bytes(dataclasses.asdict(found)))


def _key(processor: str) -> str:
    return hashlib.sha256(f"{KIND} {VERSION}\n{processor}".encode()).hexdigest()[:40]
