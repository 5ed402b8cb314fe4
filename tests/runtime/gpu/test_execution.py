"""Programs "on the GPU": their kernels run through the shim, and what they ask of the driver is
counted."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import products
from tests.runtime.gpu.recorder import RecordingDriver, recorded_gpu
from tests.runtime.gpu.test_programs import PROGRAMS, X
from treadle.core.devices import HOST, Device
from treadle.core.tensor import moved

RNG = np.random.default_rng(1)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")  # nothing may be interpreted
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with recorded_gpu() as device:
        yield device


def driver_of(gpu: Device) -> RecordingDriver:
    storage: Any = gpu.storage
    driver: RecordingDriver = storage.driver
    return driver


def on(gpu: Device, x: Any) -> Any:
    return moved(td.constant(x), gpu)


def program_of(function: Any, *arguments: Any) -> Any:
    return function.get_concrete_function(*arguments)._executable


def same(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    for a, b in zip(td.nest.flatten(found), td.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(_array(a), _array(b), tolerance, tolerance / 10)


def _array(x: Any) -> Any:
    return x.numpy() if hasattr(x, "numpy") else x


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(gpu: Device, name: str) -> None:
    x = np.abs(X) + 0.1 if name == "loop" else X
    wanted = td.function(PROGRAMS[name])(td.constant(x))
    found = td.function(PROGRAMS[name])(on(gpu, x))
    assert all(y.device.endswith("GPU:0") for y in td.nest.flatten(found))
    same(found, wanted, 1e-3 if name == "half" else 2e-5)


def test_sizes_of_1_where_dims_are_open(gpu: Device) -> None:
    open_vector = td.TensorSpec([None])

    def function(x: Any, y: Any) -> Any:
        return td.exp(x - y), td.maximum(y, x)

    with td.device("GPU:0"):
        traced = td.function(function, input_signature=[open_vector, open_vector])
        for sizes in ((3, 3), (1, 4), (4, 1), (1, 2)):
            x, y = (np.arange(n, dtype=np.float32) for n in sizes)
            found = traced(on(gpu, x), on(gpu, y))
            assert all(z.device.endswith("GPU:0") for z in found)
            same(found, function(td.constant(x), td.constant(y)))
        traces = traced.get_concrete_function(on(gpu, x), on(gpu, y))._stretched.values()
        assert len(traces) == 2 and all(trace is not None for trace in traces)


def growing_list(x: Any) -> Any:
    array = td.TensorArray(td.float32, size=0, dynamic_size=True)
    for i in td.range(3):
        if x[i, 0] > -10.0:
            array = array.write(array.size(), x[i] * td.cast(i, td.float32))
    return array.stack()


def gradient_of_loop(x: Any) -> Any:
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in td.range(4):
            y = td.tanh(y @ td.transpose(x)) @ x
        loss = td.reduce_sum(y)
    return tape.gradient(loss, x)


def until_small(x: Any) -> Any:
    n = 0
    while td.reduce_max(td.abs(x)) > 0.1:
        x = x * 0.5
        n += 1
    return x, n


def branches(x: Any) -> Any:
    if td.reduce_sum(x) > 0.0:
        y, k = x[:2] * 2.0, 1
    else:
        y, k = x[1:] - 1.0, 2
    return y, k


def growing(x: Any) -> Any:
    y = x[:1]
    for i in td.range(3):
        td.autograph.experimental.set_loop_options(
            shape_invariants=[(y, td.TensorShape([None, 20]))]
        )
        y = td.concat([y, x[i : i + 2]], 0)
    return y


def pieces(x: Any) -> Any:
    array = td.TensorArray(td.float32, 3, infer_shape=False).split(x, [1, 2, 3])
    return array.concat(), array.read(0) * 2.0


def from_python(x: Any) -> Any:
    y = td.numpy_function(lambda a: np.sort(a, 1), [x], td.float32)
    y.set_shape([6, 20])
    return y + x


CONTROL: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        growing_list, gradient_of_loop, until_small, branches, growing, pieces, from_python,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_control_flow(gpu: Device, name: str, sign: float) -> None:
    x = (X * sign).astype(np.float32)
    function = td.function(CONTROL[name])
    same(function(on(gpu, x)), CONTROL[name](td.constant(x)))
    same(function(on(gpu, x * 2)), CONTROL[name](td.constant(x * 2)))


def test_a_training_step_is_submitted_as_a_whole(gpu: Device) -> None:
    w, b = td.Variable(on(gpu, X[:, :5].T.copy())), td.Variable(on(gpu, np.zeros(6, np.float32)))

    @td.function
    def step(x: Any) -> Any:
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(td.nn.relu(x @ w + b) - 1.0))
        for variable, gradient in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    x, counts = on(gpu, X[:, :5]), driver_of(gpu).counts
    losses = [float(step(x)) for _ in range(2)]
    program = program_of(step, x)
    assert program.is_recorded
    counts.clear()
    losses += [float(step(x)) for _ in range(3)]
    assert counts["submissions"] == counts["downloads"] == 3 and counts["uploads"] == 0
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    v, c = td.Variable(X[:, :5].T.copy()), td.Variable(np.zeros(6, np.float32))
    for loss in losses:
        with td.GradientTape() as tape:
            wanted = td.reduce_mean(td.square(td.nn.relu(X[:, :5] @ v + c) - 1.0))
        for variable, gradient in zip((v, c), tape.gradient(wanted, [v, c]), strict=True):
            variable.assign_sub(0.1 * gradient)
        np.testing.assert_allclose(loss, wanted, 1e-5)
    same([w, b], [v, c])


def test_nothing_comes_to_the_host_in_a_loop(gpu: Device) -> None:
    @td.function
    def f(x: Any) -> Any:
        for i in td.range(100):
            x = td.sin(x) + td.cast(i, td.float32) * 0.01
        return x

    large = np.tile(X, (10, 10))
    x, counts = on(gpu, large), driver_of(gpu).counts
    f(x)
    counts.clear()
    y = f(x)
    assert not counts["downloads"] and not counts["uploads"] and counts["launches"] >= 100
    same(y, f(td.constant(large)), 1e-4)


def test_a_failed_check_is_told_at_the_next_wait(gpu: Device) -> None:
    @td.function
    def f(x: Any, i: Any) -> Any:
        return td.gather(x, i) * 2.0

    x, good, bad = (on(gpu, a) for a in (X, np.array([1, 2]), np.array([1, 77])))
    counts = driver_of(gpu).counts
    same(f(x, good), f(td.constant(X), td.constant([1, 2])))
    counts.clear()
    y = f(x, bad)
    assert not counts["downloads"]  # nobody has waited
    with pytest.raises(td.errors.InvalidArgumentError, match=r"77.*\n?.*test_execution.py"):
        y.numpy()
    same(f(x, good), f(td.constant(X), td.constant([1, 2])))


def test_variables_that_tensors_share_are_copied_before_they_are_written(gpu: Device) -> None:
    v = td.Variable(on(gpu, X))
    before = v.read_value()

    @td.function
    def f() -> Any:
        v.assign_add(v * 2.0)

    for _ in range(3):
        f()
    np.testing.assert_allclose(before.numpy(), X)
    np.testing.assert_allclose(v.numpy(), X * 27, 1e-5)


def test_open_sizes(gpu: Device) -> None:
    @td.function(input_signature=[td.TensorSpec([None, None])])
    def f(x: Any) -> Any:
        return td.nn.softmax(x) @ td.transpose(x), td.boolean_mask(x, x > 0.0)

    for x in (X, X[:2, :3].copy(), np.zeros((0, 4), np.float32), np.tile(X, (5, 2))):
        wanted = f(td.constant(x))
        given = on(gpu, x)
        same(td.function(f.python_function)(given), wanted)


def test_sizes_that_the_run_finds_out_differ(gpu: Device) -> None:
    """A run that has changed nothing yet begins anew where a size of 1 is stretched; one that has
    assigned a variable raises, and the variable keeps what was assigned before the failure."""
    v = td.Variable(on(gpu, np.zeros(2, np.float32)))

    @td.function
    def f(x: Any, y: Any) -> Any:
        return td.boolean_mask(x, x > 0.0) + td.boolean_mask(y, y > 0.0)

    @td.function
    def g(x: Any, y: Any) -> Any:
        v.assign_add([1.0, 2.0])
        return f(x, y)

    vectors = [np.array(a, np.float32) for a in ([1, 2, 3], [4, -1, -1], [-1, 5, 6], [-1, -1, -1])]
    for x in vectors:
        for y in vectors:
            a, b = x[x > 0], y[y > 0]
            fits = a.size == b.size or 1 in (a.size, b.size)
            if fits:
                same(f(on(gpu, x), on(gpu, y)), a + b)
            else:
                with pytest.raises(td.errors.InvalidArgumentError, match="ncompatible|broadcast"):
                    f(on(gpu, x), on(gpu, y))
    same(g(on(gpu, vectors[0]), on(gpu, vectors[0])), vectors[0] * 2)
    with pytest.raises(td.errors.InvalidArgumentError, match="not broadcast once"):
        g(on(gpu, vectors[0]), on(gpu, vectors[1]))
    np.testing.assert_allclose(v.numpy(), [2.0, 4.0])
    same(g(on(gpu, vectors[0]), on(gpu, vectors[0])), vectors[0] * 2)  # the program is still good


def test_numbers_are_drawn_on_the_device(gpu: Device) -> None:
    state = td.Variable(on(gpu, np.array([1, 2, 3])))

    @td.function
    def f() -> Any:
        state.assign_add([1, 1, 1])
        return td.random.stateless_normal([1000], state[:2])

    a, b = f(), f()
    assert abs(float(td.reduce_mean(moved(a, HOST)))) < 0.1 and np.any(a.numpy() != b.numpy())


def test_there_is_no_memory(gpu: Device) -> None:
    driver = driver_of(gpu)

    @td.function
    def f(x: Any) -> Any:
        return td.reduce_sum(td.sort(td.tile(x, [1000, 1]) @ td.transpose(x), 0))

    x = on(gpu, X)
    driver.limit = driver.used + 10_000
    with pytest.raises(td.errors.ResourceExhaustedError, match="memory for"):
        f(x)
    driver.limit = 1 << 32
    same(f(x), f(td.constant(X)), 1e-3)


def test_memory_is_given_back(gpu: Device) -> None:
    driver = driver_of(gpu)

    @td.function
    def f(x: Any) -> Any:
        return td.nn.softmax(x * 2.0, axis=0) + td.reduce_sum(x)

    x = on(gpu, X)
    for _ in range(20):
        f(x)
    used = driver.used
    for _ in range(200):
        f(x)
    assert driver.used == used


def test_recordings_are_made_again_for_other_products(gpu: Device, monkeypatch: Any) -> None:
    asked: list[bool] = []
    compute = products.product
    monkeypatch.setattr(
        products, "product", lambda p: (asked.append(p.tensor_float), compute(p))[1]
    )
    multiply, x = td.function(lambda x: td.matmul(x, x, transpose_b=True)), on(gpu, X)
    for _ in range(3):
        multiply(x)
    assert asked == [False] * 3
    try:
        td.config.experimental.enable_tensor_float_32_execution(True)
        for _ in range(3):
            multiply(x)
    finally:
        td.config.experimental.enable_tensor_float_32_execution(False)
    multiply(x)
    assert asked == [False] * 3 + [True] * 3 + [False]


def test_waiting_for_all_devices(gpu: Device) -> None:
    @td.function
    def f(x: Any, i: Any) -> Any:
        return td.gather(x, i) * 2.0

    x, counts = on(gpu, X), driver_of(gpu).counts
    counts.clear()
    f(x, on(gpu, np.array([1, 2])))
    td.test.experimental.sync_devices()
    assert counts["waits"] == 1
    f(x, on(gpu, np.array([1, 77])))
    with pytest.raises(td.errors.InvalidArgumentError, match="77"):
        td.test.experimental.sync_devices()
    td.test.experimental.sync_devices()
