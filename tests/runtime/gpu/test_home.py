"""Work that nobody places runs on the first GPU, where programs see one."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.config.test_devices import fresh, gpus  # noqa: F401
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, program_of
from treadle.core import context as contexts
from treadle.core.context import context, eager_modes, home, modes, set_home
from treadle.core.devices import HOST, Device, find_device
from treadle.runtime import device_setup
from treadle.runtime.gpu import discovery

FLOATS = np.array([1.5, 2.5], np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with recorded_gpu() as device:
        set_home(device)
        yield device
        set_home(HOST)


@pytest.fixture
def unknown() -> Iterator[None]:
    """Nobody has asked for the device yet."""
    before = home()
    find = contexts._Home.find
    set_home(None)
    yield
    contexts.find_home_by(find)
    set_home(before)


def place(x: Any) -> str:
    return x.device.rpartition("device:")[2]  # type: ignore[no-any-return]


def test_constants(gpu: Device) -> None:
    for value in (1.0, [1.5], FLOATS, td.constant(1, td.int64), td.zeros([2]), td.ones([2]),
                  td.eye(2), td.fill([2], 1.0), td.random.normal([3]), td.linspace(0.0, 1.0, 3),
                  1j):  # fmt: skip
        assert place(td.constant(value)) == "GPU:0", value
    for value in (1, True, "text", td.range(3), td.zeros([2], td.int32), ["a", "b"]):
        assert place(td.constant(value)) == "CPU:0", value


def test_operations(gpu: Device) -> None:
    x, i = td.constant(FLOATS), td.constant([1, 2])
    for result in (x + x, x[0], -x, td.cast(i, td.float32), td.argmax(x), x > 1.0,
                   td.gather(x, [1]), td.strings.to_number(td.constant("2.5"))):  # fmt: skip
        assert place(result) == "GPU:0"
    for result in (i + i, i > 1, td.shape(x), td.reduce_sum(i), td.strings.length("ab"), i[0]):
        assert place(result) == "CPU:0"
    np.testing.assert_array_equal((x * 2.0 + 1.0).numpy(), FLOATS * 2 + 1)
    assert td.cast(i, td.float32).numpy().tolist() == [1.0, 2.0]


def test_scopes_come_first(gpu: Device) -> None:
    x = td.constant(FLOATS)
    with td.device("CPU:0"):
        y = td.constant(FLOATS)
        v = td.Variable(FLOATS)
        assert place(y) == place(v) == place(y + y) == place(y + x) == "CPU:0"
        with td.device(None):
            assert place(td.constant(FLOATS)) == "GPU:0"
    assert place(y) == "CPU:0" and place(y + y) == place(td.identity(y)) == "GPU:0"
    assert place(v) == "CPU:0"
    v.assign_add(y)
    assert place(v) == "CPU:0" and v.numpy().tolist() == [3.0, 5.0]


def test_operands_of_other_devices_come_first(gpu: Device) -> None:
    with recorded_gpu(1):
        with td.device("GPU:1"):
            x = td.constant(FLOATS)
        assert place(x + 1.0) == "GPU:1"
        assert place(td.function(lambda x: x * 2.0)(x)) == "GPU:1"


def test_variables(gpu: Device) -> None:
    v, n = td.Variable(FLOATS), td.Variable(3)
    assert place(v) == "GPU:0" and place(n) == "CPU:0"
    v.assign(v * 2.0)
    n.assign_add(1)
    assert place(v.read_value()) == "GPU:0" and v.numpy().tolist() == [3.0, 5.0] and int(n) == 4


def test_functions(gpu: Device) -> None:
    @td.function
    def double(x: Any) -> Any:
        return x * 2

    for x in (FLOATS, td.constant(FLOATS), td.constant(FLOATS).cpu(), 1.5, np.float64(2.0)):
        for _ in range(4):
            result = double(x)
            assert place(result) == "GPU:0"
        np.testing.assert_array_equal(result.numpy(), np.asarray(x) * 2)
    for _ in range(4):
        assert place(double(td.constant([1, 2]))) == "CPU:0"
        with td.device("CPU:0"):
            assert place(double(FLOATS)) == "CPU:0"
        assert place(double(FLOATS)) == "GPU:0"


def test_a_function_with_integers_only_stays_on_the_host(gpu: Device) -> None:
    @td.function
    def collatz(n: Any) -> Any:
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    counts = driver_of(gpu).counts
    before = counts.copy()
    for _ in range(4):
        assert int(collatz(td.constant(27))) == 111
    assert counts == before


def test_a_function_stays_where_somebody_has_put_its_variables(gpu: Device) -> None:
    with td.device("CPU:0"):
        v = td.Variable(FLOATS)
    w, n = td.Variable(FLOATS), td.Variable(0)

    @td.function
    def there(x: Any) -> Any:
        return v.assign_add(x) + 1.0

    @td.function
    def here(x: Any) -> Any:
        n.assign_add(1)
        return w.assign_add(x) + 1.0

    assert place(there(FLOATS)) == "CPU:0" and place(here(FLOATS)) == "GPU:0"
    assert program_of(there, FLOATS).graph.device is HOST
    assert place(v) == "CPU:0" and place(w) == "GPU:0"
    assert v.numpy().tolist() == w.numpy().tolist() == [3.0, 5.0] and int(n) == 1


def test_gradients(gpu: Device) -> None:
    v = td.Variable(FLOATS)
    for loss in (lambda: td.reduce_sum(v * v), td.function(lambda: td.reduce_sum(v * v))):
        with td.GradientTape() as tape:
            y = loss()
        gradient = tape.gradient(y, v)
        assert place(gradient) == "GPU:0" and gradient.numpy().tolist() == [3.0, 5.0]


def test_training_of_a_model(gpu: Device) -> None:
    x = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    losses = []
    for where in (None, "CPU:0"):
        td.random.set_seed(1)
        with td.device(where):
            dense = td.keras.layers.Dense
            model = td.keras.Sequential([dense(4, "tanh"), dense(1)])
            model.compile("sgd", "mse")
            history = model.fit(x, x[:, :1], batch_size=4, epochs=3, shuffle=False, verbose=0)
        assert {place(v) for v in model.weights} == {where or "GPU:0"}
        losses.append(history.history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_pipelines_run_on_the_host(gpu: Device) -> None:
    counts = driver_of(gpu).counts
    before = counts.copy()
    dataset = td.data.Dataset.from_tensor_slices(FLOATS).map(lambda x: x * 2.0).batch(2)
    (batch,) = dataset
    assert place(batch) == "CPU:0" and batch.numpy().tolist() == [3.0, 5.0]
    assert counts == before
    assert place(batch + 1.0) == "GPU:0"


def test_jitted_functions_run_on_the_host(gpu: Device) -> None:
    @td.jit
    def waves(x: Any) -> Any:
        return np.sin(x) * 2.0

    counts = driver_of(gpu).counts
    before = counts.copy()
    for _ in range(4):
        np.testing.assert_allclose(waves(FLOATS), np.sin(FLOATS) * 2.0, rtol=1e-6)
    assert counts == before
    inside = td.function(waves)(td.constant(FLOATS))
    assert place(inside) == "GPU:0"


def test_random_numbers_are_those_of_the_host(gpu: Device) -> None:
    td.random.set_seed(3)
    found = [td.random.normal([4]) for _ in range(2)]
    td.random.set_seed(3)
    with td.device("CPU:0"):
        wanted = [td.random.normal([4]) for _ in range(2)]
    for a, b in zip(found, wanted, strict=True):
        assert place(a) == "GPU:0"
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_threads(gpu: Device) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(place(td.constant(FLOATS) + 1.0)))
    thread.start()
    thread.join()
    assert found == ["GPU:0"]


# -- finding the device ----------------------------------------------------------------------------


def test_it_is_looked_for_once(unknown: None) -> None:
    asked = []

    def find() -> Device:
        asked.append(1)
        return HOST

    contexts.find_home_by(find)
    assert context.counted == 1 and modes.value == 0 and eager_modes.value == 1
    with td.device("CPU:0"):
        assert context.counted == 0
    assert not asked and context.counted == 1
    x = td.constant(FLOATS)
    assert asked == [1] and context.counted == modes.value == eager_modes.value == 0
    x = td.function(lambda x: x + 1.0)(x) * 2.0
    assert asked == [1]


def test_other_threads_learn_of_it(unknown: None) -> None:
    contexts.find_home_by(lambda: HOST)
    found, go, on = [], threading.Event(), threading.Event()

    def work() -> None:
        with td.GradientTape():  # counted before the device is known
            go.set()
            on.wait()
        found.append(context.counted)

    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    td.constant(FLOATS)
    on.set()
    thread.join()
    assert found == [0]


def test_a_tape_before_the_first_operation(unknown: None) -> None:
    contexts.find_home_by(lambda: HOST)
    with td.GradientTape() as tape:
        x = td.constant(FLOATS)
        tape.watch(x)
        y = td.reduce_sum(x * x)
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 5.0]
    assert context.counted == modes.value == 0


def test_the_first_visible_gpu(
    unknown: None, gpus: Any, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    monkeypatch.setattr(discovery, "may_find", lambda: True)
    contexts.find_home_by(lambda: device_setup.setup.home())
    second = td.config.list_physical_devices("GPU")[1]
    td.config.set_visible_devices(second, "GPU")
    assert place(td.constant(FLOATS)) == "GPU:0" and home() is find_device("GPU:0")
    assert gpus == [(0, 1, None)]
    with pytest.raises(RuntimeError, match="cannot be modified"):
        td.config.set_visible_devices([], "GPU")


def test_hidden_gpus(
    unknown: None, gpus: Any, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    monkeypatch.setattr(discovery, "may_find", lambda: True)
    contexts.find_home_by(lambda: device_setup.setup.home())
    td.config.set_visible_devices([], "GPU")
    assert place(td.constant(FLOATS)) == "CPU:0" and home() is HOST and not gpus


def test_the_setup_may_change_where_there_is_no_gpu(
    unknown: None, fresh: Any, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    monkeypatch.setattr(discovery, "may_find", lambda: False)
    contexts.find_home_by(lambda: device_setup.setup.home())
    td.constant(FLOATS)
    assert home() is HOST and not fresh.is_done
    (cpu,) = td.config.list_physical_devices("CPU")
    td.config.set_logical_device_configuration(cpu, [td.config.LogicalDeviceConfiguration()] * 2)
    assert len(td.config.list_logical_devices("CPU")) == 2


@pytest.mark.parametrize(
    ("variable", "driver", "installed", "wanted"),
    [
        (None, True, True, True), ("0,1", True, True, True), ("", True, True, False),
        ("-1", True, True, False), (None, False, True, False), (None, True, False, False),
    ],
)  # fmt: skip
def test_where_it_is_worth_looking(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, driver: bool, installed: bool,
    wanted: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(discovery, "has_driver", lambda: driver)
    monkeypatch.setattr(discovery, "is_installed", lambda: installed)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert discovery.may_find() is wanted


def test_imports_and_programs_without_a_driver_do_not_import_cupy(tmp_path: Path) -> None:
    """A made-up CuPy notes that it was imported."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise SystemExit('CuPy was imported')")
    text = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import treadle as td\n"
        "from treadle.core import context\n"
        "assert context._Home.device is None\n"
        "from treadle.runtime.gpu import discovery\n"
        "assert discovery.is_installed()\n"
        "discovery.has_driver = lambda: False\n"
        "x = td.constant([1.0]); td.function(lambda x: x + x)(x)\n"
        "assert context._Home.device is not None\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
