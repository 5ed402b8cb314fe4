"""The worker pool: parts, nesting, several Python threads, forks, sleep, settings."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import run, words
from treadle.core import dtypes, processors
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, load, store
from treadle.runtime.cpu.jit import jit, process_jit
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.thread_count import MOST_THREADS, default_threads
from treadle.runtime.cpu.threads import Pool, pool

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)

# count[part] += 1 and parts are noted; nested: each part starts a region of its own.
NATIVE = f"""
declare void @llvm.donothing()
define void @count(ptr %record, i64 %part, i64 %parts) #0 {{
  %p = getelementptr i64, ptr %record, i64 %part
  %old = atomicrmw add ptr %p, i64 1 seq_cst
  %q = getelementptr i64, ptr %record, i64 300
  store atomic i64 %parts, ptr %q seq_cst, align 8
  ret void
}}
define void @nested(ptr %record, i64 %part, i64 %parts) #0 {{
  %fp = getelementptr i64, ptr %record, i64 301
  %parallel = load ptr, ptr %fp
  %mine0 = mul i64 %part, 512
  %mine1 = add i64 %mine0, 512
  %mine = getelementptr i64, ptr %record, i64 %mine1
  call void %parallel(ptr @count, ptr %mine, i64 256, ptr null)
  ret void
}}
{host().attributes}
"""


@pytest.fixture
def workers():
    found = pool()
    before = found.threads
    yield found
    found.set_threads(before)


def native(name):
    return jit().load(NATIVE).address(name)


def parallel(task, record, most=MOST_THREADS):
    PARALLEL(pool().addresses.parallel)(task, ctypes.addressof(record), most, None)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_part_runs_once(workers, threads):
    workers.set_threads(threads)
    for _ in range(200):
        record = words([0] * 512)
        parallel(native("count"), record)
        assert record[300] == threads
        assert list(record[:threads]) == [1] * threads and not any(record[threads:300])


@pytest.mark.parametrize("usable", [1, 2, 3, 16])
@pytest.mark.parametrize("threads", [2, 7, 16, 64])
def test_no_more_threads_run_than_there_are_processors(monkeypatch, usable, threads):
    """The work is divided among all of them all the same."""
    monkeypatch.setattr(processors, "usable", lambda: usable)
    alone = Pool(process_jit())
    try:
        alone.set_threads(threads)
        assert alone._started == min(threads, usable) - 1
        for _ in range(20):
            record = words([0] * 512)
            parallel(native("count"), record)
            parts = threads if usable > 1 else 1
            assert record[300] == parts
            assert list(record[:parts]) == [1] * parts and not any(record[parts:300])
        alone.leave(1)
        record = words([0] * 512)
        parallel(native("count"), record)
        assert record[300] in (1, threads - 1)
    finally:
        alone.stop()
        pool()._set_pool(pool()._base)


@pytest.mark.parametrize("threads", [1, 3, 8])
@pytest.mark.parametrize("most", [0, 1, 2, 5, 100])
def test_no_more_parts_than_are_useful(workers, threads, most):
    workers.set_threads(threads)
    record = words([0] * 512)
    parallel(native("count"), record, most)
    parts = max(1, min(threads, most))
    assert record[300] == parts
    assert list(record[:parts]) == [1] * parts and not any(record[parts:300])


def test_sleeping_workers_are_woken_or_done_without(workers):
    workers.set_threads(3)
    for _ in range(5):
        time.sleep(0.02)  # longer than the workers spin
        record = words([0] * 512)
        parallel(native("count"), record)
        assert list(record[:3]) == [1, 1, 1]


def test_nested_regions_run_on_their_caller(workers):
    workers.set_threads(3)
    for _ in range(50):
        record = words([0] * (512 * 5))
        record[301] = workers.addresses.parallel
        parallel(native("nested"), record)
        for part in range(3):
            inner = record[512 * (part + 1) : 512 * (part + 2)]
            assert inner[0] == 1 and inner[300] == 1


def chain(size=100_000):
    n = SymbolicDim.symbol("n")
    i = Axis("i", n)
    x, out = Buffer("x", dtypes.float32, (n,)), Buffer("out", dtypes.float32, (n,))
    value = apply("tanh", apply("mul", load(x, i), load(x, i)))
    kernel = Kernel((i,), (x, out), (store(out, i, value=value),))
    return kernel, x, out, np.linspace(-2, 2, size, dtype=np.float32)


def test_python_threads_at_once(workers):
    kernel, x, out, array = chain()
    wanted = run(kernel, {x: array}, {"n": len(array)}, threads=1)[out].copy()
    failures = []

    def work():
        for _ in range(20):
            found = run(kernel, {x: array}, {"n": len(array)}, threads=3, grain=1)[out]
            if found.tobytes() != wanted.tobytes():
                failures.append(found)

    several = [threading.Thread(target=work) for _ in range(4)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork_gets_workers_of_its_own():
    code = """
import os, sys
from tests.runtime.cpu.test_threads import chain, native, parallel, words
from treadle.runtime.cpu.threads import pool
pool().set_threads(3)
def once():
    record = words([0] * 512)
    parallel(native("count"), record)
    return list(record[:3]) == [1, 1, 1] and record[300] == 3
assert once()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        ok = all(once() for _ in range(50))
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if once() else 1)
        ok = ok and os.waitpid(grandchild, 0)[1] == 0
        os._exit(0 if ok else 1)
    children.append(child)
    assert once()
assert all(os.waitpid(c, 0)[1] == 0 for c in children)
print("done")
"""
    assert python(code) == "done\n"


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env={**os.environ, "PYTHONPATH": "src:.", **environment},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_process_ends_with_workers_busy_or_asleep():
    code = "from treadle.runtime.cpu.threads import pool; pool().set_threads(4); {}; print('end')"
    for last in ("pass", "import time; time.sleep(0.05)"):
        assert python(code.format(last)) == "end\n"


def test_environment_and_affinity_set_the_number_of_threads():
    code = "from treadle.runtime.cpu.threads import pool; print(pool().threads)"
    assert python(code, TREADLE_NUM_THREADS="5") == "5\n"
    if hasattr(os, "sched_setaffinity"):
        one = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); "
        assert python(one + code, TREADLE_NUM_THREADS="") == "1\n"


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1000"])
def test_bad_environment_is_an_error(monkeypatch, text):
    monkeypatch.setenv("TREADLE_NUM_THREADS", text)
    with pytest.raises(ValueError, match="TREADLE_NUM_THREADS must be a number from 1 to 256"):
        default_threads()


@pytest.mark.parametrize("count", [0, -3, MOST_THREADS + 1])
def test_bad_number_of_threads_is_an_error(workers, count):
    before = workers.threads
    with pytest.raises(ValueError, match=f"from 1 to {MOST_THREADS}, got {count}"):
        workers.set_threads(count)
    assert workers.threads == before


def test_signals_still_reach_the_main_thread():
    code = """
import os, signal, threading, time
from treadle.runtime.cpu.threads import pool
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without
pool().set_threads(4)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
ended = []
try:
    time.sleep(40)  # another thread that takes the signal does not end this
    ended.append(True)
except KeyboardInterrupt:
    print("late" if ended else "interrupted")
"""
    assert python(code) == "interrupted\n"
