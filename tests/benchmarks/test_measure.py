import time

import pytest

from benchmarks.measure import call, measure, measure_once


def test_measures_what_the_job_takes():
    start = time.perf_counter()
    timing = measure((time.sleep, 0.002), seconds=0.4)
    whole = time.perf_counter() - start
    assert 0.002 <= timing.best <= timing.median and timing.best * timing.calls <= whole
    assert timing.calls >= 2
    assert 0.0 <= timing.foreign <= 1.0


def test_short_jobs_are_timed_in_blocks():
    timing = measure(int, seconds=0.01)
    assert timing.calls > 1000
    assert timing.median < 1e-5


def test_job_with_arguments():
    assert call((max, 1, 3)) == 3
    timing, result = measure_once((sum, [1, 2, 3]))
    asleep, _ = measure_once(lambda: time.sleep(0.05), clock="processor")
    assert asleep.best < 0.05  # the processor had nothing to do
    assert result == 6
    assert timing.calls == 1


def test_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        measure((divmod, 1, 0), seconds=0.01)
