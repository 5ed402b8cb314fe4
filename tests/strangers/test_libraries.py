"""The runner of libraries' own tests, on a library of our own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.strangers import libraries

pytestmark = pytest.mark.thorough  # suites run in processes of their own

TESTS = """
import pytest
import tensorflow as tf


def test_that_passes():
    assert int(tf.add(1, 2)) == 3


def test_that_fails_with_both():
    assert int(tf.add(1, 2)) == 4


def test_that_fails_here():
    tf.only_there()


def test_that_fails_there():
    tf.reduce_sum([1])


@pytest.mark.skip
def test_that_is_left_out():
    pass
"""
THERE = """
def add(x, y):
    return x + y


def only_there():
    pass
"""


def test_suites_here_and_there(tmp_path: Path) -> None:
    library, packages = tmp_path / "library", tmp_path / "packages"
    (library / "tests").mkdir(parents=True)
    (library / "tests" / "sums_test.py").write_text(TESTS)
    packages.mkdir()
    (packages / "tensorflow.py").write_text(THERE)
    options = argparse.Namespace(limit=120, each=60, pytest=[], keras2=False)
    paths = ["tests/sums_test.py"]
    ours = libraries.run(library, paths, [], options)
    theirs = libraries.run(library, paths, [str(packages)], options, sys.executable)
    assert libraries.compared(ours, theirs) == {
        "passed": 2, "failed": 2, "skipped": 1,
        "with TensorFlow": {"passed": 2, "failed": 2, "skipped": 1},
        "fail here only": 1, "fail with both": 1, "fail with TensorFlow only": 1,
    }  # fmt: skip
    here = {name.rpartition("::")[2]: error for name, error in ours.errors.items()}
    assert "has no 'only_there'" in here["test_that_fails_here"]


def test_a_suite_that_is_interrupted_tells_what_it_has_run(tmp_path: Path) -> None:
    (tmp_path / "ended_test.py").write_text(
        "import os, signal\n"
        "def test_a(): pass\n"
        "def test_b(): os.kill(os.getpid(), signal.SIGINT)\n"
        "def test_c(): pass\n"
    )
    options = argparse.Namespace(limit=120, each=60, pytest=[], keras2=False)
    found = libraries.run(tmp_path, ["ended_test.py"], [], options, sys.executable)
    assert found.outcomes["ended_test::test_a"] == "passed"
    assert "ended_test::test_c" not in found.outcomes
