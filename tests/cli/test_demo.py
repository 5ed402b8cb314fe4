import re

import numpy as np
import pytest

import treadle as td
from treadle.cli import main
from treadle.examples.collatz import collatz


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        lines = []
        patch.setattr("sys.stdout", Recorder(lines))
        patch.setenv("COLUMNS", "100")
        assert main(["demo"]) == 0
    return "".join(lines)


class Recorder:
    """A standard output that is no terminal."""

    encoding = "utf-8"

    def __init__(self, lines):
        self.write = lines.append

    def flush(self):
        pass

    def isatty(self):
        return False


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_accuracy(shown, mode):
    (row,) = (line for line in shown.splitlines() if line.startswith(f"│ {mode}"))
    accuracy = float(re.search(r"([\d.]+) %", row)[1])
    assert accuracy >= 97.0


def test_the_graph_is_faster(shown):
    assert float(re.search(r"is ([\d.]+) x as fast", shown)[1]) > 1.0


def test_shows_the_generated_code_and_what_it_computes(shown):
    assert "ag__.while_stmt" in shown and "ag__.if_stmt" in shown
    assert "collatz(27) = 111 steps" in shown


def test_no_control_characters_where_there_is_no_terminal(shown):
    assert "\x1b" not in shown and "\r" not in shown


@pytest.mark.parametrize("n", [1, 2, 7, 27, 97])
def test_collatz(n):
    expected = collatz(n)
    assert int(td.function(collatz)(td.constant(n))) == expected
    assert np.asarray(td.function(collatz)(td.constant(n))).dtype == np.int32


def test_eager_and_graph_lose_the_same(shown):
    assert float(re.search(r"differ by at most ([\d.e-]+) over 50 steps", shown)[1]) < 1e-4
