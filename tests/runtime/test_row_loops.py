"""Loops whose threads each run all iterations on their own rows."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, native, trace, trace_like
from treadle.core import processors
from treadle.core.spec import TensorSpec
from treadle.core.switches import disabled
from treadle.ops.collections.lists import list_new, list_push, list_stack
from treadle.ops.control.control_flow import while_loop
from treadle.runtime.cpu.target import host, using
from treadle.runtime.cpu.threads import pool


@pytest.fixture
def workers():
    found = pool()
    before = found.threads
    yield found
    found.set_threads(before)


def array(*shape, scale=1.0, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * scale).astype(dtype)


ONE = int(max(processors.usable(), pool().threads) > 1)  # loop, if there may be a second thread


def by_rows(executable):
    """How many loops are run by rows."""
    return executable.stages["schedule"].count("loop by ")


def recurrent(x, w, u, b):
    """A state, a cell and a total over time."""

    def body(t, h, c, total):
        z = td.matmul(x[t], w) + td.matmul(h, u) + b
        c = td.sigmoid(z) * c + td.tanh(z)
        h = td.tanh(c) * td.nn.softmax(z)
        return t + 1, h, c, total + td.reduce_sum(h)

    rows, columns = x.shape[1], u.shape[0]
    state = td.zeros((rows, columns), x.dtype)
    start = (td.constant(0), state, state, td.constant(0, x.dtype))
    return while_loop(lambda t, *_: t < x.shape[0], body, start)[1:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [2, 7, 32, 50])
def test_recurrent_networks(rows, dtype):
    n = 64 if rows > 8 else 150
    arrays = [
        array(20, rows, 40, dtype=dtype), array(40, n, scale=0.1, dtype=dtype),
        array(n, n, scale=0.1, dtype=dtype), array(n, dtype=dtype),
    ]  # fmt: skip
    executable = both(trace_like(recurrent, *arrays), *arrays, rtol=1e-4, atol=1e-5)
    assert by_rows(executable) == ONE


@pytest.mark.parametrize("threads", [2, 3, 5, 8])
def test_bits_do_not_depend_on_the_threads(workers, threads):
    arrays = [array(30, 33, 40), array(40, 70, scale=0.1), array(70, 70, scale=0.1), array(70)]
    executable = native(trace_like(recurrent, *arrays))
    workers.set_threads(1)
    expected = [r.tobytes() for r in executable.run(arrays)]
    workers.set_threads(threads)
    for _ in range(20):
        assert [r.tobytes() for r in executable.run(arrays)] == expected


def gradient(x, w, u, b):
    with td.GradientTape() as tape:
        tape.watch([x, w, u, b])
        h, c, total = recurrent(x, w, u, b)
        y = total + td.reduce_sum(h * c)
    return tape.gradient(y, [x, w, u, b])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_gradients(workers, threads):
    workers.set_threads(threads)
    arrays = [
        a.astype(np.float64)
        for a in (array(12, 20, 30), array(30, 64, scale=0.1), array(64, 64, scale=0.1), array(64))
    ]
    tensors = list(map(td.constant, arrays))
    compiled = td.function(gradient)
    for got, want in zip(compiled(*tensors), gradient(*tensors), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11)
    assert by_rows(compiled.get_concrete_function(*tensors).executable) >= ONE


def test_gradients_by_finite_differences():
    x, w, u, b = (
        array(5, 16, 20, dtype=np.float64), array(20, 48, scale=0.2, dtype=np.float64),
        array(48, 48, scale=0.2, dtype=np.float64), array(48, dtype=np.float64),
    )  # fmt: skip
    compiled = td.function(gradient)
    got = compiled(*map(td.constant, (x, w, u, b)))[2].numpy()

    def value(u):
        h, c, total = recurrent(*map(td.constant, (x, w, u, b)))
        return (total + td.reduce_sum(h * c)).numpy()

    for i, j in [(0, 0), (3, 40), (47, 47)]:
        step = np.zeros_like(u)
        step[i, j] = 1e-6
        slope = (value(u + step) - value(u - step)) / 2e-6
        assert abs(got[i, j] - slope) < 1e-6 * max(1, abs(slope))


def test_products_that_copy_their_rows_when_they_are_computed_alone():
    """A product of long rows copies tiles of its first operand; a thread's share of it does not."""

    def body(i, z, u):
        h = td.tanh(td.matmul(z, u, transpose_b=True))
        return i + 1, z + td.concat([h, h, h, h], 1)

    def f(z, u):
        return while_loop(lambda i, z: i < 6, lambda i, z: body(i, z, u), (0, z))[1]

    z, u = array(64, 1024), array(256, 1024, scale=0.02)
    l1, l2, l3 = host().caches  # the second operand stays in the core's cache
    with using(replace(host(), caches=(l1, replace(l2, size=1 << 20), l3))):
        executable = both(trace_like(f, z, u), z, u, rtol=1e-4, atol=1e-5)
    assert by_rows(executable) == ONE


def test_what_mixes_rows_is_run_step_by_step():
    w = array(64, 64, scale=0.1)

    def through(mix):
        def f(h, w):
            return while_loop(
                lambda i, h: i < 50, lambda i, h: (i + 1, td.tanh(mix(td.matmul(h, w)))), (0, h)
            )[1]

        h = array(64, 64)
        return by_rows(both(trace_like(f, h, w), h, w, rtol=1e-3, atol=1e-5))

    assert through(lambda h: h - td.reduce_mean(h, 0)) == 0
    assert through(td.transpose) == 0
    assert through(lambda h: td.reverse(h, [0])) == 0
    assert through(lambda h: td.roll(h, 1, 0)) == 0
    assert through(lambda h: td.gather(h, td.range(63, -1, -1))) == 0
    assert through(lambda h: h + 1e-3 * td.matmul(h, h)) == 0
    assert through(lambda h: h + td.reduce_max(h)) == 0
    assert through(lambda h: h - td.reduce_mean(h, 1, keepdims=True)) == ONE
    assert through(lambda h: td.reverse(h, [1])) == ONE


def test_variables_that_are_written_by_rows():
    w = array(64, 64, scale=0.1)

    def loops(mix):
        v = td.Variable(array(64, 64))

        def f(n, w):
            def body(i, total):
                v.assign(td.tanh(td.matmul(mix(v.read_value()), w)))
                return i + 1, total + v

            return while_loop(lambda i, _: i < n, body, (0, td.zeros((64, 64))))[1]

        graph = trace(f, TensorSpec((), td.int32), TensorSpec(w.shape))
        return by_rows(both(graph, np.int32(40), w, rtol=1e-3, atol=1e-5))

    assert loops(lambda v: td.reverse(v, [0])) == 0
    assert loops(lambda v: v * 1.1) <= ONE


def test_small_loops_stay_on_one_thread():
    def f(h):
        return while_loop(lambda i, h: i < 9, lambda i, h: (i + 1, td.tanh(h)), (0, h))[1]

    assert by_rows(both(trace_like(f, array(4, 5)), array(4, 5))) == 0


def test_numbers_and_halves_come_out_of_the_loop():
    def f(h, w, n):
        def body(i, h, before, scale):
            return i + 1, td.tanh(td.matmul(h, w)) * scale, h, scale * 0.99

        return while_loop(
            lambda i, *_: i < n, body, (td.constant(0), h, td.zeros_like(h), td.constant(1.0))
        )

    h, w = array(24, 72), array(72, 72, scale=0.1)
    graph = trace(f, TensorSpec(h.shape), TensorSpec(w.shape), TensorSpec((), td.int32))
    for n in (0, 1, 2, 7):  # the halves of pairs take turns
        executable = both(graph, h, w, np.int32(n), rtol=1e-4, atol=1e-5)
    assert by_rows(executable) == ONE


def test_lists_are_filled_by_rows():
    def f(h, w):
        array = td.TensorArray(td.float32, size=30, element_shape=h.shape)

        def body(i, h, array):
            h = td.tanh(td.matmul(h, w))
            return i + 1, h, array.write(29 - i, h)

        return while_loop(lambda i, *_: i < 30, body, (td.constant(0), h, array))[2].stack()

    h, w = array(24, 72), array(72, 72, scale=0.1)
    assert by_rows(both(trace_like(f, h, w), h, w, rtol=1e-4, atol=1e-5)) == ONE


def test_lists_made_inside_stay_on_one_thread():
    def f(h, w):
        def body(i, h):
            array = td.TensorArray(td.float32, size=1, element_shape=h.shape)
            return i + 1, array.write(0, td.tanh(td.matmul(h, w))).stack()[0]

        return while_loop(lambda i, *_: i < 30, body, (td.constant(0), h))[1]

    h, w = array(24, 72), array(72, 72, scale=0.1)
    assert by_rows(both(trace_like(f, h, w), h, w, rtol=1e-4, atol=1e-5)) == 0


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_errors_are_raised_once(workers, threads):
    workers.set_threads(threads)

    @td.function
    def f(x, h, w, n):
        t = td.constant(0)
        while t < n:
            h = td.tanh(td.matmul(h, w) + x[t])
            t += 1
        return h

    x, h, w = (td.constant(array(*s, scale=0.1)) for s in ((10, 24, 72), (24, 72), (72, 72)))
    for _ in range(5):
        with pytest.raises(td.errors.InvalidArgumentError):
            f(x, h, w, td.constant(11))
        assert np.isfinite(f(x, h, w, td.constant(10)).numpy()).all()
    found = f.get_concrete_function(x, h, w, td.constant(10)).executable
    assert by_rows(found) == ONE


ENDLESS = """
    import signal
    import numpy as np
    import treadle as td
    from tests.runtime.harness import native, trace
    from treadle.core.spec import TensorSpec
    from treadle.ops.control.control_flow import while_loop

    def f(h, w, n):
        return while_loop(
            lambda i, h: i < n, lambda i, h: (i * 1, td.tanh(td.matmul(h, w))), (0, h)
        )[1]

    signal.signal(signal.SIGINT, signal.default_int_handler)
    specs = TensorSpec((32, 80)), TensorSpec((80, 80)), TensorSpec((), td.int32)
    executable = native(trace(f, *specs))
    assert "loop by 32 rows" in executable.stages["schedule"]
    h, w = np.zeros((32, 80), np.float32), np.zeros((80, 80), np.float32)
    executable.run([h, w, np.asarray(np.int32(0))])
    print("ready", flush=True)
    try:
        executable.run([h, w, np.asarray(np.int32(1))])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(executable.run([h + 1, w, np.asarray(np.int32(0))])[0].sum(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize("threads", [2, 5])
def test_ctrl_c_ends_all_threads(threads):
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    paths = os.pathsep.join([os.path.join(root, "src"), root])
    environment = os.environ | {"PYTHONPATH": paths, "TREADLE_NUM_THREADS": str(threads)}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ENDLESS)], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)  # the loop would take much longer
    finally:
        process.kill()
    assert out == "interrupted\n2560.0\n", err


STEPS = (
    lambda h, w, x, c: td.tanh(td.matmul(h, w)),
    lambda h, w, x, c: td.tanh(td.matmul(h, w, transpose_b=True) + x),
    lambda h, w, x, c: h * 0.5 + x,
    lambda h, w, x, c: td.nn.softmax(h),
    lambda h, w, x, c: td.nn.softmax(h, 0),
    lambda h, w, x, c: td.concat([h[:, 5:], h[:, :5]], 1),
    lambda h, w, x, c: td.concat([h[5:], h[:5]], 0),
    lambda h, w, x, c: td.reverse(h, [1]),
    lambda h, w, x, c: td.reverse(h, [0]),
    lambda h, w, x, c: td.transpose(h),
    lambda h, w, x, c: h - td.reduce_mean(h, 1, keepdims=True),
    lambda h, w, x, c: h - td.reduce_mean(h, 0),
    lambda h, w, x, c: td.reshape(td.reshape(h, (-1,)) * 0.9, h.shape),
    lambda h, w, x, c: td.reshape(td.transpose(td.reshape(h, (2, -1, 32)), (1, 0, 2)), h.shape),
    lambda h, w, x, c: td.sin(h) * c,
    lambda h, w, x, c: td.where(h > 0, h, x) + c,
    lambda h, w, x, c: td.gather(h, td.argsort(h[:, 0])),
    lambda h, w, x, c: h + 0.1 * h[:, 3:4],
    lambda h, w, x, c: h + 0.1 * h[3],
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_have_the_bits_of_one_thread(seed):
    rng = np.random.default_rng(seed)
    size = 32
    chosen = [STEPS[k] for k in rng.integers(0, len(STEPS), rng.integers(1, 5))]
    if seed % 2:  # mostly loops that leave rows apart
        apart = [s for i, s in enumerate(STEPS) if i not in (4, 6, 8, 9, 11, 13, 16, 18)]
        chosen = [apart[k] for k in rng.integers(0, len(apart), rng.integers(1, 5))]
    chosen.append(STEPS[0])

    def f(h, w, x):
        items = list_new(h.spec)

        def body(i, h, c, items):
            before = h
            for number, step in enumerate(chosen):
                h = step(h, w, x[i], c)
                if number == 1:
                    items = list_push(items, h)
            return i + 1, h, 0.5 * before + 0.25 * c, items

        _, h, c, items = while_loop(
            lambda i, *_: i < 25, body, (td.constant(0), h, td.zeros_like(h), items)
        )
        return h, c, list_stack(items)

    arrays = array(size, size), array(size, size, scale=0.1), array(25, size, size)
    graph = trace_like(f, *arrays)
    executable = native(graph)
    if seed % 2 and STEPS[12] not in chosen:  # (whose flat array has other rows)
        assert by_rows(executable) == ONE
    found = executable.run(list(arrays))
    with disabled("rows"):
        plain = native(graph)
    assert by_rows(plain) == 0
    for a, b in zip(found, plain.run(list(arrays)), strict=True):
        assert a.tobytes() == b.tobytes()
