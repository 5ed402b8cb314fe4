"""The runner with NumPy as the only library: real processes, real timings."""

import sys

import pytest

from benchmarks.process import Process, WorkerError, environment
from benchmarks.runner import Runner, Settings
from benchmarks.workload import all_workloads, load


def test_every_workload_is_found_once_and_is_named():
    places = all_workloads()
    assert len(places) > 20
    assert all(load(place).name == name for name, place in places.items())


def test_numpy_side_by_side_with_a_missing_library():
    settings = Settings(["numpy", "numba"], sys.executable, rounds=2, seconds=0.01)
    lines = []
    runner = Runner(settings, lines.append)
    try:
        found = runner.run([all_workloads()["gelu 10^3"]])
        versions = runner.versions()
    finally:
        runner.close()
    entries = found["gelu 10^3"]
    assert len(entries["numpy"].timings) == 2
    assert all(t.median > 0 for t in entries["numpy"].timings)
    assert "numba" in runner.missing or len(entries["numba"].timings) == 2
    assert versions["numpy"][0].isdigit()
    assert lines[0] == "gelu 10^3"


def test_fresh_workloads_get_a_new_process_each_round():
    settings = Settings(["numpy"], sys.executable, rounds=2, seconds=0.01)
    runner = Runner(settings, lambda line: None)
    try:
        timings = runner.run([all_workloads()["import"]])["import"]["numpy"].timings
    finally:
        runner.close()
    assert len(timings) == 2
    # An import that took no time would mean that the worker had loaded NumPy already.
    assert all(t.median > 0.005 for t in timings)


def test_an_error_in_the_worker_reaches_the_runner(tmp_path):
    with Process("numpy", sys.executable, str(tmp_path)) as process:
        with pytest.raises(WorkerError, match="IndexError"):
            process.ask("prepare", ("elementwise", 99))
        assert process.ask("prepare", ("elementwise", 0))


def test_a_worker_that_dies_is_reported(tmp_path):
    with Process("numpy", sys.executable, str(tmp_path)) as process:
        process._child.kill()
        with pytest.raises(WorkerError, match="the worker ended"):
            process.ask("version")
        assert not process.alive


def test_workers_keep_compiled_python(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    found = environment("/cache", warm=False)
    assert "PYTHONDONTWRITEBYTECODE" not in found and found["SOMETHING_ELSE"] == "1"
