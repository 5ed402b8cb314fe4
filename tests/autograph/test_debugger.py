"""pdb: in generated code while tracing, in the user's file when functions run eagerly."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import treadle as td

SOURCE = os.path.dirname(os.path.dirname(td.__file__))
PROGRAM = """\
import sys
import treadle as td

td.config.run_functions_eagerly("eager" in sys.argv)


def add(total, v):
    if v > 0:
        breakpoint()
        total = total + v  # only these
    return total


@td.function
def f(values):
    total = 0.0
    for v in values:
        total = add(total, v)
    return total


print("sum", f(td.constant([2.0, -1.0])).numpy())
"""


@pytest.fixture
def debug(tmp_path):
    """A function that runs the program with commands for pdb and returns what it printed."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)

    def run(mode, *commands):
        done = subprocess.run(
            [sys.executable, str(path), mode],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": SOURCE, "PYTHONBREAKPOINT": "pdb.set_trace"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def places(printed):
    """(file name, line, function) of the frames that pdb shows."""
    found = re.findall(r"[> ] (\S.*)\((\d+)\)(\S+)\(\)", printed)
    return [(os.path.basename(file), int(line), name) for file, line, name in found]


def test_eagerly_in_the_users_file(debug):
    printed = debug("eager", "p v", "p total + 1", "next", "p total", "up", "list", "continue")
    stops = places(printed)
    assert stops[0][0] == "program.py" and stops[0][2] == "add" and stops[0][1] in (9, 10)
    assert ("program.py", 18, "f") in stops  # after `up`
    assert "numpy=2.0" in printed and "total = total + v  # only these" in printed
    assert "->" in printed and "    for v in values:" in printed
    assert "sum 2.0" in printed


def test_while_tracing_in_generated_code(debug):
    printed = debug("trace", "list", "where", "p v", "p total", "next", "p total", "continue")
    assert re.search(r"autograph of add at .*program.py:7>\(\d+\)then\(\)", printed)
    assert re.search(r"->\s+(breakpoint\(\)|total = total \+ v  # only these)", printed)
    assert "total = ag__.if_stmt(v > 0, then, lambda total: total, total)" in printed  # list
    where = places(printed)
    assert any(name == "f" and "program.py" in file for file, _, name in where)
    assert "total = ag__.for_stmt(values, body, total)" in printed  # where
    assert printed.count("<tf.Tensor '") == 3  # symbolic values
    assert "sum 2.0" in printed


def test_post_mortem_shows_the_users_frames(tmp_path):
    path = tmp_path / "program.py"
    text = PROGRAM.replace("breakpoint()", "v = v[0]")
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pdb", "-c", "continue", str(path)],
        input="where\np v\nup\np values\nquit\n",
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )
    shown = places(done.stdout)
    assert ("program.py", 9, "add") in shown and ("program.py", 18, "f") in shown
    assert not any("treadle" in file for file, _, _ in shown)
    assert done.stdout.count("<tf.Tensor '") >= 2
