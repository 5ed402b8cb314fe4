"""When eager operations get their programs: threads, forks, the end of a process, the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.ops.registry import OPS
from treadle.passes import disabled
from treadle.runtime import compile_native
from treadle.runtime.cpu import compiled_ahead
from treadle.tracing import large_operations, settings
from treadle.tracing.large_operations import _entries

X = td.constant(np.random.default_rng(0).random((20, 30)).astype(np.float32))


def entry() -> Any:
    """The only operation that was met."""
    (found,) = _entries.values()
    return found


def finished() -> None:
    """Wait for what is compiled now."""
    deadline = time.monotonic() + 60
    while compiled_ahead._graphs.is_working and time.monotonic() < deadline:
        time.sleep(0.005)


def test_numpy_answers_until_the_program_is_there(monkeypatch):
    may_compile = threading.Event()

    def compile_when_told(graph: Any) -> Any:
        assert may_compile.wait(60)
        return compile_native(graph)

    monkeypatch.setattr(large_operations._programs, "_compile", compile_when_told)
    first = td.exp(X)._buffer
    assert entry().executable is None and entry().met == 1  # nothing was asked for yet
    second = td.exp(X)._buffer
    assert first.tobytes() == second.tobytes()
    may_compile.set()
    finished()
    assert entry().failure is None and entry().executable is not None
    np.testing.assert_allclose(td.exp(X)._buffer, first, rtol=1e-6)


def test_operations_that_wait_have_programs_at_once(waiting):
    first = td.exp(X)._buffer
    assert entry().executable is not None
    assert td.exp(X)._buffer.tobytes() == first.tobytes()
    assert td.function(td.exp)(X)._buffer.tobytes() == first.tobytes()


def test_determinism_waits(monkeypatch):
    from treadle.ops.random.state import streams

    monkeypatch.setattr(streams, "need_seeds", False)
    monkeypatch.setattr(settings, "wait_for_eager_programs", False)
    td.config.experimental.enable_op_determinism()
    td.exp(X)
    assert entry().executable is not None


def test_switched_off_nothing_is_asked_for(waiting):
    with disabled("eager_programs"):
        td.exp(X)
    assert not _entries
    td.exp(X)
    assert entry().executable is not None
    with disabled("eager_programs"):
        assert td.exp(X)._buffer.tobytes() == np.exp(X._buffer).tobytes()


def test_what_the_compiler_refuses_remains_numpys(monkeypatch):
    def refuse(graph: Any) -> Any:
        raise ValueError("no")

    monkeypatch.setattr(large_operations._programs, "_compile", refuse)
    for _ in range(3):
        td.math.erf(X)
        finished()
    assert entry().graph is None and str(entry().failure) == "no" and entry().executable is None


def test_a_program_that_fails_leaves_the_error_to_numpy(monkeypatch, waiting):
    td.math.cos(X)

    def run(arrays: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(entry().executable, "run", run)
    assert td.math.cos(X)._buffer.tobytes() == np.cos(X._buffer).tobytes()


def test_operations_with_effects_and_those_that_only_rename_have_no_programs():
    from treadle.ops.registry import _AS_PROGRAM

    assert OPS["matmul"] in _AS_PROGRAM and OPS["add"] in _AS_PROGRAM
    for name in ("reshape", "identity", "read_variable", "assign_variable", "shape"):
        assert OPS[name] not in _AS_PROGRAM


def test_what_is_forgotten_shares_no_program_with_what_is_met_again(waiting, monkeypatch):
    td.exp(td.ones([5, 3])), td.exp(td.ones([8, 4]))
    held = list(_entries.values())  # as cycles hold them that are not collected yet
    assert all(e.executable is not None for e in held)
    monkeypatch.setattr(settings, "wait_for_eager_programs", False)
    td.exp(X)
    assert len(_entries) == 3 and all(e.executable is not None for e in _entries.values())
    large_operations._forget()
    td.exp(X)
    assert entry().executable is None


def test_clear_caches_forgets_programs(waiting):
    td.exp(X)
    td.clear_caches()
    assert not _entries
    td.exp(X)
    assert entry().executable is not None


def test_entries_are_bounded(monkeypatch):
    monkeypatch.setattr(large_operations, "MOST_ENTRIES", 8)
    for n in range(1, 30):
        td.exp(td.ones([n]))
    assert len(_entries) <= 8


def test_threads_get_the_results_of_their_own_operands():
    arrays = [np.full((50, 40), float(n), np.float32) for n in range(8)]
    wrong: list[Any] = []

    def work(array: Any) -> None:
        x = td.constant(array)
        for _ in range(60):
            if not (td.sqrt(x)._buffer == np.sqrt(array)).all():
                wrong.append(array[0, 0])

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    finished()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_made_by_fork_asks_again():
    td.tanh(X), td.tanh(X)  # it is being compiled, or waits to be
    child = os.fork()
    if not child:
        for _ in range(20):
            td.tanh(X)
        finished()
        close = np.allclose(td.tanh(X)._buffer, np.tanh(X._buffer), rtol=1e-5)
        os._exit(0 if close and entry().executable is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for _ in range(20):
        td.tanh(X)
    finished()
    assert entry().executable is not None


PROGRAM = """
import sys, time
import numpy as np
import treadle as td
from treadle.runtime.cpu.jit import process_jit
from treadle.tracing.large_operations import _entries
x = td.constant(np.linspace(-3, 3, 40000, dtype=np.float32).reshape(200, 200))
since = time.monotonic()
while time.monotonic() - since < 120:
    y = td.nn.softmax(x @ x)
    if sys.argv[1] == "leave" or all(e.executable for e in _entries.values()):
        break
print(len(_entries), sum(e.met for e in _entries.values()), process_jit().counters.compiled)
"""


def in_a_process(folder: Any, how: str) -> list[int]:
    environment = dict(os.environ, TREADLE_CACHE_DIR=str(folder), TREADLE_STORE_PROGRAMS="1")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, text=True,
        timeout=200, check=True,
    )  # fmt: skip
    assert not done.stderr
    return [int(word) for word in done.stdout.split()]


def test_the_next_process_has_the_programs_at_once(tmp_path):
    entries, met, compiled = in_a_process(tmp_path, "wait")
    assert entries == 2 and met > 2 and compiled > 0
    entries, met, compiled = in_a_process(tmp_path, "wait")
    assert (entries, met, compiled) == (2, 2, 0)


def test_a_process_ends_while_programs_wait_to_be_compiled(tmp_path):
    entries, met, _ = in_a_process(tmp_path, "leave")
    assert (entries, met) == (2, 2)
