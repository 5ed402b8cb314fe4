"""Traps of the compile cache: compiled code is found by what it computes, not by files or names."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.thorough

MAIN = """
import warnings
import numpy as np, treadle as td
from helpers import helper
from treadle.runtime.cpu.jit import jit

@td.function
def f(x):
    return helper(x) + 1.0

@td.function
def g(x):
    return td.tanh(x) * {factor}

x = td.constant(np.ones(9, np.float32))
counters = jit().counters
found = [float(f(x)[0])]
of_f = counters.compiled
found.append(float(g(x)[0]))
print(*found, of_f, counters.compiled - of_f)
"""
HELPER = "def helper(x):\n    y = x * {factor}\n    return y if y.shape[0] > 3 else x\n"


@pytest.fixture
def process(tmp_path):
    """Runs a program in a process of its own; gives f's and g's value and what each compiled."""

    def run(helper=2.0, g=3.0, cache=None):
        (tmp_path / "helpers.py").write_text(HELPER.format(factor=helper))
        (tmp_path / "main.py").write_text(MAIN.format(factor=g))
        paths = [os.path.abspath("src"), str(tmp_path)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TREADLE_CACHE_DIR": str(cache or tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, str(tmp_path / "main.py")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        f, g_value, of_f, of_g = done.stdout.split()
        return float(f), round(float(g_value), 3), int(of_f), int(of_g), done.stderr

    return run


@pytest.mark.thorough
def test_18_19_20_what_an_edit_recompiles(process):
    assert process()[:2] == (3.0, 2.285)
    assert process()[:4] == (3.0, 2.285, 0, 0)  # 18: a second process compiles nothing
    f, _, of_f, of_g, _ = process(helper=5.0)  # 19: an edited helper changes the result
    assert (f, of_g) == (6.0, 0) and of_f > 0
    f, g, of_f, of_g, _ = process(helper=5.0, g=4.0)  # 20: an edit of g keeps f's entry
    assert (f, g, of_f) == (6.0, 3.046, 0) and of_g > 0
    assert process()[:4] == (3.0, 2.285, 0, 0)  # and the old entries are still there


def test_21_a_folder_that_cannot_be_written(process, tmp_path):
    (tmp_path / "file").write_text(textwrap.dedent("not a folder"))
    f, _, of_f, _, errors = process(cache=tmp_path / "file" / "cache")
    assert f == 3.0 and of_f > 0
    assert errors.count("The compile cache cannot be used") == 1
