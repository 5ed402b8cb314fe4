"""What was measured on processors, on disk: one object for each model of processor.

Other programs may have been using the processor, the other half of a core among it, so a few
processes measure it, each once, and the best of their numbers count.

``TREADLE_TUNE=0`` switches all of it off: nothing is measured or tried out in the background, and
nothing is used that was.
"""

from __future__ import annotations

import dataclasses
import os

from treadle.core.digests import digest
from treadle.core.object_cache import default_cache
from treadle.core.plain_data import DamagedError, from_bytes, to_bytes
from treadle.runtime.tuning import Measured

VARIABLE = "TREADLE_TUNE"
VERSION = 3  # of the probes: others are measured anew
TIMES = 3  # that a processor is measured
KIND = "measured"  # of objects on disk


def is_wanted() -> bool:
    """Whether what was measured is used, and what was not is measured."""
    return os.environ.get(VARIABLE, "1").strip() not in ("", "0")


def kept_measurement(processor: str | None) -> Measured | None:
    """What was measured on a processor, given by what names it; None where nothing was."""
    if processor is None or not is_wanted():
        return None
    found = _read(processor)
    return None if found is None else found[0]


def is_measured(processor: str | None) -> bool:
    """Whether a processor was measured often enough."""
    found = None if processor is None else _read(processor)
    return found is not None and found[1] >= TIMES


def keep_measurement(processor: str | None, found: Measured) -> None:
    """Keep what was measured on a processor, with what was measured on it before."""
    if processor is None:
        return
    before = _read(processor)
    times = 1
    if before is not None:
        found, times = found.best(before[0]), before[1] + 1
    kept = {**dataclasses.asdict(found), "times": times}
    default_cache().store(KIND, _key(processor), to_bytes(kept))


def _read(processor: str) -> tuple[Measured, int] | None:
    """The numbers of a processor, and how often it was measured."""
    data = default_cache().load(KIND, _key(processor))
    if data is None:
        return None
    try:
        kept = from_bytes(data)
        times = kept.pop("times")
        return Measured(**kept), times
    except (DamagedError, TypeError, AttributeError, KeyError):
        return None


def _key(processor: str) -> str:
    return digest(f"{KIND} {VERSION}\n{processor}")
