"""The compiler and programs on disk ask a backend; callbacks use its memory."""

import contextlib

import numpy as np
import pytest

import treadle as td
from treadle import runtime
from treadle.core import object_cache
from treadle.runtime import stored
from treadle.runtime.cpu import build_program
from treadle.runtime.cpu.backend import cpu
from treadle.runtime.cpu.host_memory import host_memory
from treadle.runtime.devices import using
from treadle.runtime.options import Options

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def graph_of(function, *arguments):
    return td.function(function).get_concrete_function(*arguments).graph


class Asked:
    """The processor, with a list of what it was asked for."""

    def __init__(self, **others):
        self.names, self.others = [], others

    def __getattr__(self, name):
        self.names.append(name)
        return self.others.get(name) or getattr(cpu, name)

    @property
    def compiled(self):
        """What it was asked for beside what begins early."""
        return [n for n in self.names if not n.endswith("_compilation")]


@pytest.fixture
def asked(monkeypatch, tmp_path):
    cache = object_cache.ObjectCache(tmp_path / "cache")
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    monkeypatch.setattr(stored, "default_cache", lambda: cache)

    with contextlib.ExitStack() as stack:
        yield lambda **others: stack.enter_context(using(Asked(**others)))


def test_a_graph_is_compiled_by_the_backend_and_found_by_it(asked):
    device = asked()
    graph = graph_of(lambda x: td.tanh(x) * 1.75 + 1.0, X)
    made = runtime.compile(graph)
    assert device.compiled == ["key", "key", "facts", "build", "record"]
    device.names.clear()
    found = runtime.compile(graph)
    assert device.compiled == ["key", "load"]
    np.testing.assert_array_equal(made.run([X])[0], found.run([X])[0])


def test_a_program_that_the_backend_does_not_keep(asked):
    asked(record=lambda *arguments: None)
    graph = graph_of(lambda x: td.tanh(x) * 1.875 + 1.0, X)
    for _ in range(2):
        assert "stored" not in runtime.compile(graph).counters


def test_programs_of_another_device_have_other_keys(asked):
    graph = graph_of(lambda x: x + 1.0, X)
    here = stored.program_key(graph, Options())
    asked(key=lambda: "another device")
    assert stored.program_key(graph, Options()) not in (None, here)
    asked(key=lambda: None)
    assert stored.program_key(graph, Options()) is None


class Apart:
    """Memory that Python sees copies of only, as that of a device is."""

    def __init__(self):
        self.views = self.writes = 0

    def view(self, address, dtype, shape):
        self.views += 1
        return host_memory.view(address, dtype, shape).copy()

    def write(self, address, array):
        self.writes += 1
        host_memory.write(address, array)


def twice(a):
    return (a * 2).astype(a.dtype)


def pairs(x):
    """A result whose size only the callback knows."""
    return td.reduce_sum(td.numpy_function(lambda a: a[a > 0], [x], td.TensorSpec([None])) * 2.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: td.numpy_function(twice, [x * 3.0], td.TensorSpec([3, 4])) + 1.0,
        lambda x: td.numpy_function(twice, [td.reduce_sum(x)], td.TensorSpec([])) + 1.0,
        lambda x: td.boolean_mask(x, x > 0.0) * 2.0,
        pairs,
    ],
    ids=["array", "number", "delivered result", "size found out"],
)
def test_callbacks_into_python_need_no_memory_of_the_host(function, monkeypatch):
    graph = graph_of(function, X)
    expected = runtime.compile(graph).run([X])
    memory = Apart()
    monkeypatch.setattr(build_program, "host_memory", memory)
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "0")
    executable = runtime.compile(graph)
    assert executable.mode == "native"
    for a, b in zip(executable.run([X]), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert memory.views > 0
