"""Processes that compute beside what is timed."""

import os

import pytest

from benchmarks.busy import busy_processes


def test_they_run_inside_the_block_only():
    with pytest.raises(ZeroDivisionError), busy_processes(2) as numbers:
        for number in numbers:
            os.kill(number, 0)
        raise ZeroDivisionError
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_there_may_be_none():
    with busy_processes(0) as numbers:
        assert numbers == []
