"""How many processors this process may use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache

_ROOT = "/"


def usable() -> int:
    """The processors of the CPU affinity, or fewer where a control group grants less time.

    A share of 2.5 processors counts as 3: threads that wait now and then cost less than
    processors that idle.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min([count, *_whole_shares(_ROOT, int(time.monotonic()))]))


@lru_cache(maxsize=1)
def _whole_shares(root: str, second: int) -> list[int]:
    """The limits of the control groups, rounded up. They are read once a second at most: a
    compilation asks several times, and reading half a dozen files takes longer than small passes.

    Args:
        root: of the file system.
        second: of the system's clock, at which they are read.
    """
    return [-int(-share // 1) for share in group_shares(root)]


def group_shares(root: str | os.PathLike[str]) -> Iterator[float]:
    """The limits of the control groups (both versions) that this process is in, in processors.

    Args:
        root: of the file system.
    """
    for controllers, path in _groups(root):
        if controllers == [""]:
            read, base = _share_v2, os.path.join(root, "sys/fs/cgroup")
        elif "cpu" in controllers:
            read, base = _share_v1, os.path.join(root, "sys/fs/cgroup/cpu")
        else:
            continue
        inner = [part for part in path.split("/") if part]
        for depth in range(len(inner) + 1):  # a group's limit holds for those inside it
            share = read(os.path.join(base, *inner[:depth]))
            if share is not None:
                yield share


def _groups(root: str | os.PathLike[str]) -> list[tuple[list[str], str]]:
    """Controllers and path of every control group of this process."""
    lines = _text(os.path.join(root, "proc/self/cgroup")).splitlines()
    fields = [line.split(":", 2) for line in lines]
    return [(f[1].split(","), f[2]) for f in fields if len(f) == 3]


def _share_v2(group: str) -> float | None:
    words = _text(os.path.join(group, "cpu.max")).split()
    return _quotient(*words) if len(words) == 2 else None


def _share_v1(group: str) -> float | None:
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    words = [word for name in names for word in _text(os.path.join(group, name)).split()]
    return _quotient(*words) if len(words) == 2 else None


def _text(file: str) -> str:
    """A small file of the system; nothing where there is no limit, or another group's view of the
    files."""
    try:
        with open(file, "rb", buffering=0) as found:
            return found.read().decode(errors="replace")
    except OSError:
        return ""


def _quotient(quota: str, period: str) -> float | None:
    """None for "max" and -1: no limit."""
    if not (quota.isdigit() and period.isdigit()) or int(quota) * int(period) == 0:
        return None
    return int(quota) / int(period)
