"""Counting references, blocks and memory around many calls."""

from __future__ import annotations

import gc
import resource
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from benchmarks.refcounts.paths import Call

_OBJECTS: tuple[Any, ...] = (
    None, True, td.Tensor, np.ndarray, float, int, list, dict, tuple, td.float32, td.int32,
    np.dtype("f4"), np.dtype("i4"), td.TensorSpec([2]), td.TensorSpec([4]), td.TensorSpec([]),
)  # fmt: skip


class Growth(NamedTuple):
    """What `calls` calls left behind.

    Attributes:
        references: change of the sum of all reference counts; None without a debug build.
        watched: change of the reference counts of objects that every call uses.
        blocks: change of the number of blocks that Python's allocator handed out.
        kilobytes: growth of the resident memory's peak.
        seconds: how long the calls took.
    """

    calls: int
    references: int | None
    watched: int
    blocks: int
    kilobytes: int
    seconds: float


def growth(call: Call, calls: int, warm: int = 300) -> Growth:
    """Repeat the call and count before and after.

    Args:
        warm: calls before the counting starts: traces, plans and caches are made there.
    """
    for _ in range(warm):
        call()
    _count()
    before = _count()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - start
    after = _count()
    references, watched, blocks, kilobytes = (
        None if a is None or b is None else a - b for a, b in zip(after, before, strict=True)
    )
    assert watched is not None and blocks is not None and kilobytes is not None
    return Growth(calls, references, watched, blocks, kilobytes, round(seconds, 2))


def _count() -> tuple[int | None, int, int, int]:
    for _ in range(3):
        gc.collect()
    total = getattr(sys, "gettotalrefcount", None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    watched = sum(sys.getrefcount(x) for x in _OBJECTS)
    return None if total is None else total(), watched, sys.getallocatedblocks(), peak


SLACK = 200  # references and blocks that a run may keep, however many calls it has


def leaks(found: Growth) -> list[str]:
    """Names of the counts that grew by more than a few objects: a leak grows with the calls."""
    slack = min(SLACK, max(20, found.calls // 3))
    counts = {"references": found.references, "watched": found.watched, "blocks": found.blocks}
    grown = [name for name, count in counts.items() if count is not None and count > slack]
    return [*grown, "kilobytes"] if found.kilobytes > 4_000 else grown
