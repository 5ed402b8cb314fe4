"""Measuring the processor: sound numbers, kept once, in nobody's way; no value depends on them."""

import dataclasses
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import MACHINES, RUNNABLE
from treadle.cli import main
from treadle.core.object_cache import ObjectCache
from treadle.machine import MEASURED
from treadle.runtime.cpu import learning, measured, measuring
from treadle.runtime.cpu.learning import Budget, Learner
from treadle.runtime.cpu.measured import is_measured, keep_measurement, kept_measurement
from treadle.runtime.cpu.measuring import Measurement
from treadle.runtime.cpu.target import this_machine, using
from treadle.runtime.tuning import Cache, Measured

ODD = Measured(1, 1, 9, 5, 8, 99, 7, 25, 90, 900, 300, 0.5)
FAST = Measured(4, 4, 2, 1, 200, 9, 3, 9, 30, 90, 5, 0.2)


def small_steps(monkeypatch):
    """Probes that take no time: what they tell is wrong then, how they tell it is not."""
    for name in ("STEPS", "MOST_FOLLOWED", "MOST_MEMORY"):
        monkeypatch.setattr(measuring, name, getattr(measuring, name) // 16)


# -- the numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["host", *RUNNABLE])
def test_all_numbers_are_measured(name, monkeypatch):
    small_steps(monkeypatch)
    measurement = Measurement(RUNNABLE.get(name, this_machine()))
    assert sum(1 for _ in measurement.steps()) > 30  # others run in between
    found = dataclasses.asdict(measurement.found)
    assert found.keys() == MEASURED.keys()
    assert all(np.isfinite(v) for v in found.values())
    assert all(v > 0 for k, v in found.items() if k != "forward")


@pytest.mark.parametrize("name", MACHINES)
def test_probes_can_be_written_for_every_machine(name):
    text = measuring.probes_text(MACHINES[name])
    assert all(f"@{probe}(" in text for probe in measuring._PROBES)
    assert ("llvm.fma" in text) == MACHINES[name].has_fma


def test_chains_go_through_all_lines():
    chain = measuring._chain(1 << 14, 64)
    base, place, seen = chain.ctypes.data, chain.ctypes.data, set()
    while place not in seen:
        seen.add(place)
        place = int(chain[(place - base) // 8])
    assert len(seen) == (1 << 14) // 64 and place == base


# -- the record ------------------------------------------------------------------------------------


def test_what_is_alike_stays_as_it_was_stated():
    stated = MACHINES["avx512"].tuning
    alike = Measured(
        stated.fma * 0.9, stated.loads * 1.1, stated.latency * 1.2, 3, stated.copy * 0.8, 12, 4, 14,
        stated.far * 0.4, stated.far * 1.8, 2_000_000 / stated.spins, 0.3,
    )  # fmt: skip
    assert stated.refined(alike) == stated


def test_what_differs_is_taken():
    stated = MACHINES["avx512"].tuning
    odd = stated.refined(ODD)
    assert (odd.fma, odd.loads, odd.latency, odd.copy, odd.far) == (1, 1, 8, 8, 512)
    assert odd.spins == 6144
    assert odd.moving == stated.moving and odd.l2 == stated.l2
    busy = dataclasses.replace(ODD, l3=890.0)
    assert stated.refined(busy).far == stated.far  # others used the last cache
    assert stated.refined(dataclasses.replace(ODD, fma=0.0)).fma == stated.fma


# -- on disk ---------------------------------------------------------------------------------------


def test_kept_for_one_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.setenv("TREADLE_TUNE", "1")
    assert kept_measurement("a") is None
    keep_measurement("a", ODD)
    assert kept_measurement("a") == ODD
    assert kept_measurement("b") is None and kept_measurement(None) is None
    monkeypatch.setattr(measured, "VERSION", measured.VERSION + 1)
    assert kept_measurement("a") is None
    monkeypatch.undo()
    monkeypatch.setattr(measured, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.setenv("TREADLE_TUNE", "0")
    assert kept_measurement("a") is None


def test_the_best_of_several_measurements_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.setenv("TREADLE_TUNE", "1")
    busy = dataclasses.replace(ODD, fma=ODD.fma / 2, copy=ODD.copy / 3, l3=2 * ODD.l3)
    assert not is_measured("a")
    for times, found in enumerate([busy, ODD, busy], 1):
        keep_measurement("a", found)
        assert kept_measurement("a") == (busy if times == 1 else ODD)
        assert is_measured("a") == (times == 3)
    assert not is_measured("b") and not is_measured(None)


@pytest.mark.skipif(sys.platform != "linux", reason="the key is made of /proc/cpuinfo")
def test_a_later_process_has_the_record(tmp_path):
    def record(**variables):
        code = (
            "from treadle.runtime.cpu import target\n"
            f"from treadle.runtime.tuning import Measured\n"
            "print(target.host().measured, target.host().tuning.latency)\n"
            f"target.keep({ODD!r})"
        )
        env = {**os.environ, "TREADLE_CACHE_DIR": str(tmp_path), "TREADLE_TUNE": "1", **variables}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    stated = this_machine().tuning.latency
    assert record() == f"None {stated}\n"
    assert record() == f"{ODD} 8\n"
    assert record(TREADLE_TUNE="0") == f"None {stated}\n"
    assert record(TREADLE_TARGET="sse2").startswith("None ")


def test_env_measures_on_demand(tmp_path, monkeypatch, capsys):
    small_steps(monkeypatch)
    monkeypatch.setattr(measured, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.setenv("TREADLE_TUNE", "1")
    assert main(["env", "--json"]) == 0
    assert "measured" in json.loads(capsys.readouterr().out)
    assert main(["env", "--json", "--measure"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {f"measured {name}" for name in MEASURED} <= shown.keys()
    assert list(tmp_path.glob("*.o"))


# -- in the background -----------------------------------------------------------------------------


class Clocks:
    """Time that goes on where the test says so."""

    def __init__(self):
        self.process = self.thread = 0.0

    def budget(self, share):
        return Budget(share, lambda: self.process, lambda: self.thread)


def test_steps_take_their_share_of_the_process_only():
    clocks = Clocks()
    budget = clocks.budget(0.02)

    def steps():
        while True:
            clocks.thread += 0.003
            clocks.process += 0.003
            yield True

    work, done = steps(), 0
    assert not budget.allows_more()
    for _ in range(10_000):
        clocks.process += 0.001  # the program goes on
        if budget.allows_more():
            assert budget.run(work)
            done += 1
    assert done == pytest.approx((0.02 * 10 - learning._LONG) / 0.003, abs=2)
    assert budget.spent <= 0.02 * clocks.process


def test_time_before_the_first_program_does_not_count():
    clocks = Clocks()
    clocks.process = 1000.0  # libraries were loaded, data was made
    budget = clocks.budget(0.02)
    assert not budget.allows_more()
    clocks.process += learning._LONG / 0.02
    assert budget.allows_more()


def test_a_failure_ends_the_work_alone():
    def work():
        yield True
        raise MemoryError

    learner = Learner(work, Budget(1e9))
    learner.begin()
    learner._thread.join(60)
    assert not learner._thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="the system has no priorities")
def test_the_thread_has_the_priority_of_the_others():
    """Where other processes keep all processors busy, a thread of low priority that holds the GIL
    is put off for seconds, and with it every thread that waits for the GIL."""
    found = []

    def work():
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        yield True

    learner = Learner(work, Budget(1e9))
    learner.begin()
    learner._thread.join(60)
    assert found == [os.getpriority(os.PRIO_PROCESS, threading.get_native_id())]


def test_work_is_done_once_and_ends_with_the_process():
    begun, there = [], threading.Event()

    def work():
        begun.append(1)
        while True:
            there.set()
            yield True

    learner = Learner(work, Budget(1e9))
    learner.begin()
    thread = learner._thread
    learner.begin()
    assert learner._thread is thread and there.wait(60)
    learner.end()
    assert not thread.is_alive() and begun == [1]


def test_one_switch_turns_it_off(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(learning.learner, "begin", lambda: calls.append(1))
    monkeypatch.setattr(learning, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.delenv("TREADLE_TARGET", raising=False)
    monkeypatch.setenv("TREADLE_TUNE", "0")
    learning.begin()
    assert not calls
    monkeypatch.setenv("TREADLE_TUNE", "1")
    learning.begin()
    assert calls == [1]
    monkeypatch.setattr(learning, "default_cache", lambda: ObjectCache(None))
    learning.begin()  # nothing can be kept
    monkeypatch.setenv("TREADLE_TARGET", "native")
    learning.begin()
    assert calls == [1]


def test_a_process_measures_in_the_background(tmp_path):
    code = (
        "import time, numpy as np, treadle as td\n"
        "from treadle.runtime.cpu import learning\n"
        "learning.learner.budget.share = 1e9\n"
        "from treadle.runtime.cpu import measuring, target\n"
        "measuring.STEPS //= 16; measuring.MOST_MEMORY //= 16\n"
        "td.function(lambda x: x + 1)(np.float32([1]))\n"
        "end = time.monotonic() + 60\n"
        "while target.kept_measurement(target.processor()) is None and time.monotonic() < end:\n"
        "    time.sleep(0.05)\n"
    )
    env = {**os.environ, "TREADLE_CACHE_DIR": str(tmp_path), "TREADLE_TUNE": "1"}
    env.pop("TREADLE_TARGET", None)
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    check = "from treadle.runtime.cpu.target import host; print(host().measured is None)"
    command = [sys.executable, "-c", check]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# -- values ----------------------------------------------------------------------------------------

_TINY = Cache(8 << 10, 4), Cache(32 << 10, 4), Cache(128 << 10, 8)
_HUGE = Cache(256 << 10, 16), Cache(16 << 20, 16), Cache(512 << 20, 16)
RECORDS = {
    "odd": {"measured": ODD},
    "fast": {"measured": FAST},
    "tiny caches": {"caches": _TINY},
    "huge caches, odd": {"caches": _HUGE, "measured": ODD},
}


def numbers(*shape):
    return np.random.default_rng(len(shape) + shape[0]).standard_normal(shape).astype(np.float32)


def products():
    pairs = [((70, 2100), (2100, 130)), ((3, 2300), (2300, 90)), ((130, 640), (640, 64))]
    turned = [((2, 3000), (70, 3000)), ((150, 1500), (90, 1500))]
    first = [td.matmul(numbers(*a), numbers(*b)) for a, b in pairs]
    other = [td.matmul(numbers(*a), numbers(*b), transpose_b=True) for a, b in turned]
    return [*first, *other, td.matmul(numbers(1700, 40), numbers(1700, 33), transpose_a=True)]


def convolutions():
    found = []
    for x, w in (((3, 17, 19, 12), (3, 3, 12, 20)), ((4, 30, 30, 1), (5, 5, 1, 32))):
        images, filters = td.constant(numbers(*x)), td.constant(numbers(*w))
        with td.GradientTape() as tape:
            tape.watch([images, filters])
            y = td.nn.conv2d(images, filters, 1, "SAME")
            loss = td.reduce_sum(y * y)
        found += [y, *tape.gradient(loss, [images, filters])]
    x, w = td.constant(numbers(2, 21, 20, 24)), td.constant(numbers(3, 3, 24, 2))
    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = td.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
        loss = td.reduce_sum(y * y)
    return [*found, y, *tape.gradient(loss, [x, w])]


def long_kernels():
    x = td.constant(numbers(300, 5000))
    rows = td.nn.softmax(x), td.reduce_sum(x, 1), td.math.reduce_variance(x, 1)
    others = td.reduce_sum(x, 0), td.reduce_mean(x), td.cumsum(x, 1), td.cumsum(x, 0)
    moved = td.tanh(x) * td.exp(-x * x) / (1.0 + td.reduce_max(x, 1, keepdims=True))
    return [*rows, *others, moved, td.reduce_sum(moved, 1), td.math.reduce_std(x, 0)]


@pytest.mark.parametrize("program", [products, convolutions, long_kernels])
def test_no_value_depends_on_the_record(program):
    wanted = [y.numpy() for y in td.function(program)()]
    for name, changes in RECORDS.items():
        with using(dataclasses.replace(this_machine(), **changes)):
            found = [y.numpy() for y in td.function(program)()]
        for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
            assert a.tobytes() == b.tobytes(), (name, number)
