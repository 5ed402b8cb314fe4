"""The simulation of steps on more threads than there are: parts of regions, timed one by one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

CODE = """
import numpy as np
from benchmarks.thread_scaling import TimedPool
from treadle.runtime.cpu.threads import pool
import treadle as td

pool().set_threads(64)
alone = TimedPool()
x = td.constant(np.random.default_rng(0).standard_normal((700, 300)), td.float32)
f = td.function(lambda x: (td.tanh(td.matmul(x, x, transpose_a=True)), td.nn.softmax(x)))
wanted, kept = f(x), []
for parts in (1, 2, 5, 64):
    took, regions = alone.run(lambda: kept.append(f(x)), parts)
    assert len(regions) > 1
    assert all(1 <= len(r) <= parts for r in regions) and took >= sum(map(sum, regions)) > 0
    if 1 < parts < 6:
        assert max(map(len, regions)) == parts  # there is work for as many
for found in kept:
    assert all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(found, wanted))
print("done")
"""


def python(*line: str) -> str:
    environment = {**os.environ, "PYTHONPATH": "src:.", "TREADLE_NUM_THREADS": "64"}
    done = subprocess.run(
        [sys.executable, *line], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parts_are_those_of_the_pool() -> None:
    assert python("-c", CODE) == "done\n"


def test_the_record(tmp_path: Path) -> None:
    out, name = tmp_path / "found.json", "mlp step 784-100-10 b50 Adam"
    python("-m", "benchmarks.thread_scaling", "--seconds", "0.1", "--only", name, "--out", str(out))
    (row,) = json.loads(out.read_text())["rows"]
    committed = json.loads(Path("docs/results/threads_simulated.json").read_text())["rows"]
    assert row["workload"] == name and row.keys() == committed[0].keys()
    assert row["regions"] > 0
    assert list(row["step, us"]) == ["1", "2", "4", "8", "16", "32", "64"]
