"""Profiles: which operations, programs and kernels they show, and what a profile costs."""

import gzip
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.runtime.step_times import step_times

profiler = td.profiler.experimental


def profile(folder, run, options=None):
    """The events of a profile of a call, by kind, with their threads' names."""
    with profiler.Profile(str(folder), options):
        run()
    (path,) = Path(folder).glob("plugins/profile/*/*.trace.json")
    text = path.read_text()
    with gzip.open(f"{path}.gz", "rt") as file:
        assert file.read() == text
    events = json.loads(text)["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = {"trace": [], "python": [], "program": [], "operation": [], "kernel": []}
    for event in events:
        if event["ph"] == "X":
            found[event["cat"]].append(event | {"thread": threads[event["tid"]]})
    return found


def is_within(inner, outer):
    """Whether an event is in the time of another one; times are in thousandths of microseconds."""
    end = outer["ts"] + outer["dur"]
    return outer["ts"] - 0.002 <= inner["ts"] and inner["ts"] + inner["dur"] <= end + 0.002


def make_step():
    weights = td.Variable(np.ones([64, 32], np.float32))

    @td.function
    def step(x):
        y = td.nn.softmax(td.matmul(x, weights))
        weights.assign_sub(y[:1] * td.ones([64, 1]))
        return td.reduce_sum(y)

    return step


@pytest.fixture
def step():
    return make_step()


@pytest.mark.parametrize("calls_before", [0, 1, 4])
def test_each_kernel_of_a_step(tmp_path, step, calls_before):
    """Also where plans of native code take the calls outside of profiles."""
    x = td.ones([16, 64])
    for _ in range(calls_before):
        step(x)
    found = profile(tmp_path, lambda: [step(x) for _ in range(3)])
    assert [e["name"] for e in found["program"]] == ["step"] * 3
    kernels = [e for e in found["kernel"] if e["name"] != "compile for the profile"]
    names = [e["name"] for e in kernels]
    assert names[: len(names) // 3] * 3 == names
    assert names.count("matmul") == 3 and names.count("softmax") == 3
    assert any("assign_variable" in name for name in names)
    product = next(e for e in kernels if e["name"] == "matmul")
    assert product["args"]["shapes"] == "f32[16, 32]" and product["args"]["program"] == "step"
    assert "test_profiles.py:" in product["args"]["line"]
    assert "max" in next(e for e in kernels if e["name"] == "softmax")["args"]["kernel"]
    for event in kernels:
        assert any(is_within(event, program) for program in found["program"])
        assert event["thread"] == "MainThread" and event["dur"] >= 0
    for before, after in zip(kernels, kernels[1:], strict=False):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.002


def test_results_are_the_same(tmp_path):
    x = td.constant(np.random.default_rng(0).normal(size=[16, 64]).astype("f4"))
    plain, profiled = make_step(), make_step()
    wanted = [plain(x).numpy() for _ in range(4)]
    found = [profiled(x).numpy()]
    profile(tmp_path, lambda: found.extend(profiled(x).numpy() for _ in range(2)))
    found.append(profiled(x).numpy())
    np.testing.assert_array_equal(found, wanted)


def test_times_are_those_of_the_work(tmp_path):
    """A product of large matrices takes most of the program, and its time is that of the product
    alone."""
    x = td.ones([700, 700])

    @td.function
    def f(x):
        return td.matmul(x, x) + 1.0

    f(x)
    found = profile(tmp_path, lambda: [f(x) for _ in range(4)])
    products = [e for e in found["kernel"] if "matmul" in e["args"].get("step", "")]
    assert len(products) == 4 and found["kernel"][-1] is products[-1]
    shares = [a["dur"] / b["dur"] for a, b in zip(products, found["program"], strict=True)]
    assert max(shares) > 0.5  # the thread may have waited for a processor beside the product
    fastest = min(_seconds(lambda: f(x)) for _ in range(10))
    assert min(e["dur"] for e in found["kernel"] if e["name"] != found["kernel"][0]["name"]) > (
        0.2e6 * fastest
    )


def _seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def test_eager_operations(tmp_path):
    x = td.ones([2, 3])

    def run():
        y = x * 2.0
        return td.matmul(y, x, transpose_b=True)

    found = profile(tmp_path, run)
    by_name = {e["name"]: e for e in found["operation"]}
    assert {"multiply", "matmul"} <= set(by_name)
    assert by_name["matmul"]["args"]["inputs"] == "f32[2, 3], f32[2, 3]"
    assert by_name["matmul"]["args"]["outputs"] == "f32[2, 2]"
    assert by_name["matmul"]["args"]["device"].endswith("CPU:0")


def test_loops_and_callbacks(tmp_path):
    @td.function
    def f(x):
        for _ in td.range(td.constant(5) + td.cast(x[0, 0], td.int32)):
            x = td.matmul(x, x) / td.reduce_sum(x)
        td.py_function(lambda: None, [], [])
        return x

    found = profile(tmp_path, lambda: f(td.ones([8, 8])))
    kernels = [e for e in found["kernel"] if e["name"] != "compile for the profile"]
    (loop,) = [e for e in kernels if e["name"] == "loop"]
    inside = [e for e in kernels if e["name"] != "loop" and is_within(e, loop)]
    assert sum("matmul" in e["args"]["step"] for e in inside) == 6
    assert any(e["name"] == "py_function" for e in kernels)


def test_gradients_datasets_and_jitted_functions(tmp_path):
    @td.function
    def f(x):
        return td.reduce_sum(td.exp(x) * x)

    @td.jit
    def g(a):
        return (a * a).sum()

    data = td.data.Dataset.range(3).map(lambda i: td.cast(i, td.float32) * td.ones([40, 40]))

    def run():
        x = td.ones([30])
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
        g(np.ones(50))
        list(data)

    found = profile(tmp_path, run)
    programs = [e["name"] for e in found["program"]]
    assert any("f" in name for name in programs) and "g" in programs
    kernels = [e["args"]["program"] for e in found["kernel"]]
    assert any("backward" in name or "gradient" in name for name in kernels), kernels
    of_data = [name for name in kernels if name != "g" and not name.startswith("f_")]
    assert len(of_data) >= 3, kernels


def test_threads(tmp_path, step):
    x = td.ones([16, 64])
    step(x)
    meet = threading.Barrier(3)

    def work():
        meet.wait()  # a thread that begins after another's end may get its number
        for _ in range(20):
            step(x)
        meet.wait()

    def run():
        threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = profile(tmp_path, run)
    names = [e["thread"] for e in found["kernel"] if e["name"] == "softmax"]
    assert {name: names.count(name) for name in set(names)} == {
        f"worker {n}": 20 for n in range(3)
    }


def test_names_of_the_user(tmp_path, step):
    def run():
        for number in range(2):
            with profiler.Trace("train", step_num=number, _r=1) as trace:
                step(td.ones([16, 64]))
                trace.set_metadata(more="text")

    with profiler.Trace("nobody sees it") as trace:
        trace.set_metadata(a=1)
    found = profile(tmp_path, run)
    assert [e["name"] for e in found["trace"]] == ["train", "train"]
    assert found["trace"][1]["args"] == {"step_num": "1", "_r": "1", "more": "text"}
    for outer, inner in zip(found["trace"], found["program"], strict=True):
        assert is_within(inner, outer)


def test_options(tmp_path, step):
    x = td.ones([16, 64])

    def run():
        with profiler.Trace("named"):
            step(x)
            return x + 1.0

    def kinds(level, **options):
        given = profiler.ProfilerOptions(host_tracer_level=level, **options)
        found = profile(tmp_path / f"{level}{options}", run, given)
        return {kind for kind, events in found.items() if events}

    assert kinds(0) == {"trace"}
    assert kinds(1) == {"trace", "program"}
    assert kinds(2) == kinds(3) == {"trace", "program", "operation", "kernel"}
    assert kinds(1, python_tracer_level=1) == {"trace", "program", "python"}
    assert kinds(2, delay_ms=100_000) == set()
    options = profiler.ProfilerOptions()
    assert options == (2, 0, 1, None) and options._fields[0] == "host_tracer_level"


def test_one_profile_at_a_time(tmp_path):
    with pytest.raises(td.errors.UnavailableError, match="No profiler is running"):
        profiler.stop()
    profiler.start(str(tmp_path))
    with pytest.raises(td.errors.AlreadyExistsError, match="Another profiler is running"):
        profiler.start(str(tmp_path))
    profiler.stop(save=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(td.errors.UnavailableError):
        profiler.stop()


def test_servers_are_refused():
    for name in ("client", "server"):
        with pytest.raises(AttributeError, match="start and stop"):
            getattr(profiler, name)


def test_a_profile_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    profiler.start(tmp_path / "file")
    with pytest.raises(td.errors.FailedPreconditionError, match="file"):
        profiler.stop()
    with pytest.raises(td.errors.UnavailableError):
        profiler.stop()


def test_what_has_no_room_is_counted(tmp_path, step, monkeypatch, caplog):
    from treadle.runtime import step_times as module

    x = td.ones([16, 64])
    profile(tmp_path / "a", lambda: step(x))
    table = module._table()
    most = int(table[1])
    try:
        table[1] = 4
        monkeypatch.setattr(module, "MOST_ENTRIES", 4)
        found = profile(tmp_path / "b", lambda: [step(x) for _ in range(3)])
    finally:
        table[1] = most
    assert len(found["kernel"]) == 4
    assert "no room" in caplog.text


def test_outside_of_profiles_nothing_is_timed(tmp_path, step):
    """Programs are the same ones before and after, and calls take the native path again."""
    x = td.ones([16, 64])
    for _ in range(4):
        step(x)
    (concrete,) = step.concrete_functions
    assert "note_time" not in concrete.executable.stages["llvm"]
    profile(tmp_path, lambda: step(x))
    from treadle.core.context import context, modes

    assert modes.value == 0 and "counted" not in vars(context)
    assert not step_times.on
    before = int(_entries())
    for _ in range(4):
        step(x)
    assert int(_entries()) == before
    assert "note_time" not in concrete.executable.stages["llvm"]


def _entries():
    from treadle.runtime.step_times import _table

    return _table()[0]


def test_stored_programs(tmp_path, monkeypatch):
    """A program that is found on disk is compiled for the profile."""
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    x = td.ones([16, 64])
    make_step()(x)
    step = make_step()
    step(x)
    found = profile(tmp_path, lambda: step(x))
    assert any(e["name"] == "softmax" for e in found["kernel"])
