"""Loops whose gradients compute iterations again: ``checkpoint=True``."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, trace_like
from treadle.runtime import interpreter

pytestmark = pytest.mark.thorough


def recurrent(x, w, steps, checkpoint):
    def body(t, h, total):
        h = td.tanh(td.matmul(h, w) + x[t])
        return t + 1, h, total + td.reduce_sum(h * h) * td.cast(t + 1, td.float64)

    start = (td.constant(0), td.zeros((3, 4), td.float64), td.constant(0.0, td.float64))
    return td.while_loop(lambda t, *_: t < steps, body, start, checkpoint=checkpoint)[2]


def arguments(steps):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((max(steps, 1), 3, 4)), rng.standard_normal((4, 4)) / 2
    return td.constant(x), td.constant(w), td.constant(steps)


def gradients(checkpoint):
    @td.function
    def f(x, w, steps):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = recurrent(x, w, steps, checkpoint)
        return y, *tape.gradient(y, [x, w])

    return f


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10, 33])
def test_values_and_gradients_are_those_of_the_plain_loop(steps):
    given = arguments(steps)
    for got, want in zip(gradients(True)(*given), gradients(False)(*given), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


def test_gradients_by_finite_differences():
    x, w, steps = arguments(7)
    _, dx, dw = gradients(True)(x, w, steps)
    for which, gradient, place in [(0, dx, (2, 1, 3)), (1, dw, (0, 2))]:
        values = []
        for sign in (1, -1):
            moved = [x.numpy().copy(), w.numpy().copy()]
            moved[which][place] += sign * 1e-6
            values.append(recurrent(*map(td.constant, moved), 7, False).numpy())
        slope = (values[0] - values[1]) / 2e-6
        assert abs(gradient.numpy()[place] - slope) < 1e-7 * max(1, abs(slope))


def test_second_derivatives():
    def f(x, checkpoint):
        def loop(x):
            return td.while_loop(
                lambda i, y: i < 5, lambda i, y: (i + 1, td.sin(y) * x), (0, x),
                checkpoint=checkpoint,
            )[1]  # fmt: skip

        with td.GradientTape() as outer:
            outer.watch(x)
            with td.GradientTape() as inner:
                inner.watch(x)
                y = loop(x)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    x = td.constant([0.3, -1.2], td.float64)
    got, want = (td.function(f)(x, checkpoint) for checkpoint in (True, False))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


def converted(x, n, w):
    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = x
        for i in td.range(n):
            td.autograph.experimental.set_loop_options(checkpoint=True)
            if td.reduce_sum(y) > 100.0:
                break
            y = y * w + td.cast(i, td.float64)
        z = td.reduce_sum(y)
    return tape.gradient(z, [x, w])


@pytest.mark.parametrize("n", [1, 9, 40])
def test_loops_of_converted_functions(n):
    x, w = td.constant([1.0, 2.0], td.float64), td.constant(1.1, td.float64)
    got = td.function(converted)(x, td.constant(n), w)
    text = td.autograph.to_code(converted)
    assert '"checkpoint": True' in text
    for a, b in zip(got, converted(x, td.constant(n), w), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_a_while_with_a_limit_and_growing_shape():
    def f(x, checkpoint):
        with td.GradientTape() as tape:
            tape.watch(x)
            (y,) = td.while_loop(
                lambda y: td.size(y) < 100, lambda y: (td.concat([y, y * 1.5], 0),), (x,),
                shape_invariants=(td.TensorShape([None]),), maximum_iterations=4,
                checkpoint=checkpoint,
            )  # fmt: skip
            z = td.reduce_sum(y * y)
        return y, tape.gradient(z, x)

    x = td.constant([1.0, 2.0], td.float64)
    for a, b in zip(td.function(f)(x, True), td.function(f)(x, False), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_arrays_that_are_written():
    def f(x, checkpoint):
        with td.GradientTape() as tape:
            tape.watch(x)
            array = td.TensorArray(td.float64, size=12, element_shape=(2,))
            _, _, array = td.while_loop(
                lambda i, *_: i < 12,
                lambda i, h, a: (i + 1, td.sin(h) * 1.5, a.write(i, h * h)),
                (0, x, array),
                checkpoint=checkpoint,
            )
            y = td.reduce_sum(array.stack() * td.reshape(td.range(24.0, dtype=td.float64), (12, 2)))
        return y, tape.gradient(y, x)

    x = td.constant([0.4, 1.3], td.float64)
    for a, b in zip(td.function(f)(x, True), td.function(f)(x, False), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_what_cannot_run_twice_is_refused():
    v = td.Variable(0.0)

    def counted(x):
        v.assign_add(1.0)
        return x * 2.0

    def read_back(array):
        return array.write(1, array.read(0) * 2.0)

    def gradient(body, x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, body(y)), (0, x), checkpoint=True
            )[1]
        return tape.gradient(y, x)

    with pytest.raises(td.errors.InvalidArgumentError, match=r"checkpoint=True.*happen twice"):
        td.function(lambda x: gradient(counted, x))(td.constant(1.0))

    @td.function
    def reads(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            array = td.TensorArray(td.float32, size=2, element_shape=()).write(0, x)
            array = td.while_loop(
                lambda i, a: i < 3, lambda i, a: (i + 1, read_back(a)), (0, array), checkpoint=True
            )[1]
            y = array.read(1)
        return tape.gradient(y, x)

    with pytest.raises(td.errors.InvalidArgumentError, match=r"list_get.*not kept"):
        reads(td.constant(1.0))


PEAK = """
    import sys
    import numpy as np
    import treadle as td

    steps, checkpoint = int(sys.argv[1]), sys.argv[2] == "True"

    @td.function(autograph=False)
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(
                lambda i, y: i < steps, lambda i, y: (i + 1, td.sin(y) * 1.01), (0, x),
                checkpoint=checkpoint,
            )[1]
        return tape.gradient(y, x)

    x = td.constant(np.ones((256, 1024), np.float32))
    f(x)  # everything but the memory of the loop

    def kilobytes(name):
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name))

    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the largest size so far is the present one
    before = kilobytes("VmRSS")
    print(f(x).numpy().sum())
    print((kilobytes("VmHWM") - before) / 1024)  # arrays of a MiB
"""


def peak(steps, checkpoint):
    """(sum of the gradient, arrays of the state's size that were in memory)."""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK), str(steps), str(checkpoint)],
        env=os.environ | {"PYTHONPATH": source, "TREADLE_KEEP_BYTES": "0"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    total, arrays = map(float, done.stdout.split())
    return total, arrays


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_grows_with_the_root_of_the_iterations():
    plain, all_states = peak(400, False)
    same, roots = peak(400, True)
    assert same == pytest.approx(plain, rel=1e-6)
    assert all_states > 300
    assert roots < 5 * 400**0.5  # checkpoints and a segment, both of sqrt(2 n), lists half full
    _, more = peak(1600, True)
    assert more < 2.6 * max(roots, 20)


def test_checkpointed_loops_with_lists_in_loops_inside():
    """The lists have no element shape of their own: copies of the loop leave it open, too."""

    def gradient(x, checkpoint):
        def inner(j, y, array):
            return j + 1, y * 0.5, array.write(j, x)

        def body(i, y):
            array = td.TensorArray(td.float32, 3)
            _, y, array = td.while_loop(lambda j, *_: j < 3, inner, (0, y, array))
            return i + 1, y + td.reduce_max(array.stack())

        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(lambda i, y: i < 4, body, (0, x), checkpoint=checkpoint)[1]
        return tape.gradient(y, x)

    x = np.array([0.5, -1.0, 2.0], np.float32)
    wanted = gradient(td.constant(x), False)
    graph = trace_like(lambda x: gradient(x, True), x)
    np.testing.assert_allclose(interpreter.run(graph, [x])[0], wanted, rtol=1e-5)
    both(graph, x)
