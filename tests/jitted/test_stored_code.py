"""Machine code on disk is found again by programs of other processes: its text is the same whatever
a process has done before, and wherever its objects lie."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import itertools, sys
import numpy as np, treadle as td
from treadle.core import shapes
from treadle.runtime.cpu.jit import jit

# As if the process had made many sizes before: their names have one more digit.
shapes._fresh = itertools.count(int(sys.argv[1]))
kept = [object() for _ in range(int(sys.argv[1]))]

@td.jit
def eliminated(a):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a

@td.function(input_signature=[td.TensorSpec([None, None, None])] * 2)
def joined(x, y):
    shape = td.shape(x)
    rows = td.reshape(td.concat([x, y], 0), [shape[0] + td.shape(y)[0], shape[1] * shape[2]])
    return td.nn.softmax(td.concat([rows, rows * 2.0], 1))

a = np.ones((2, 3, 4), np.float32)
eliminated(np.eye(5) + 1.0)
joined(a, a)
print(jit().counters.compiled)
"""


def compiled(script: Path, cache: Path, made_before: str) -> int:
    ran = subprocess.run(
        [sys.executable, str(script), made_before],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "TREADLE_CACHE_DIR": str(cache), "PYTHONHASHSEED": made_before},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def test_other_processes_find_the_code(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    assert compiled(script, tmp_path / "cache", "0") > 0
    for made_before in ("5", "8", "97"):
        assert compiled(script, tmp_path / "cache", made_before) == 0
