"""Limits of control groups, read from files as Linux writes them."""

import os

import pytest

from treadle.core import processors


def write(root, files):
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


UNIFIED = {"proc/self/cgroup": "0::/a/b\n"}
OLD = {"proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/c1\n0::/\n"}


@pytest.mark.parametrize(
    ("files", "shares"),
    [
        ({}, []),
        (UNIFIED, []),
        (UNIFIED | {"sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, []),
        (UNIFIED | {"sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, [1.5]),
        (
            UNIFIED
            | {
                "sys/fs/cgroup/a/cpu.max": "100000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
            },
            [1.0, 4.0],
        ),
        # Inside a container its own group is the root of what it sees.
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, [0.5]),
        (
            OLD
            | {
                "sys/fs/cgroup/cpu/docker/c1/cpu.cfs_quota_us": "250000\n",
                "sys/fs/cgroup/cpu/docker/c1/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            [2.5],
        ),
        (UNIFIED | {"sys/fs/cgroup/a/b/cpu.max": "odd\n"}, []),
        ({"proc/self/cgroup": "nothing known\n"}, []),
    ],
)
def test_shares(tmp_path, files, shares):
    assert list(processors.group_shares(write(tmp_path, files))) == shares


@pytest.mark.parametrize(("quota", "count"), [(10_000, 1), (100_000, 1), (150_000, 2), (9e9, 6)])
def test_the_smallest_limit_counts(tmp_path, monkeypatch, quota, count):
    files = UNIFIED | {"sys/fs/cgroup/a/cpu.max": f"{quota:.0f} 100000\n"}
    monkeypatch.setattr(processors, "_ROOT", write(tmp_path, files))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    assert processors.usable() == count


def test_without_affinity(tmp_path, monkeypatch):
    monkeypatch.setattr(processors, "_ROOT", tmp_path)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert processors.usable() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors.usable() == 1
