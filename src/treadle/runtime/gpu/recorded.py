"""Work that a device records, to be submitted again as a whole."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from treadle.runtime.gpu.driver import Recording, Work

if TYPE_CHECKING:
    from treadle.runtime.gpu.run import Run

_LOG = logging.getLogger("treadle")


def recorded(run: Run, work: Work) -> Recording | None:
    """What the device records of some work of a run; None where it cannot, which is said: the work
    is to be done without."""
    driver, refused = run.driver, False
    driver.begin_recording()
    run.is_recorded = True
    try:
        work()
    except driver.refusals as error:
        refused = True
        name = run.program.graph.name
        _LOG.warning("%s runs step by step: no CUDA graph has its work: %s", name, error)
    finally:
        run.is_recorded = False
        made = driver.end_recording()
    return None if refused else made
