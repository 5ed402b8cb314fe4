"""Eager operations, models and training steps on a GPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, on, same
from treadle.core.devices import Device

RNG = np.random.default_rng(2)
X = RNG.standard_normal((6, 20)).astype(np.float32)
LABELS = np.array([0, 3, 1, 4, 4, 2])
layers = td.keras.layers


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    td.random.set_seed(1)
    with recorded_gpu() as device:
        yield device


def test_operations_run_where_their_operands_are(gpu: Device) -> None:
    counts = driver_of(gpu).counts
    x, y = on(gpu, X), on(gpu, X * 2.0)
    counts.clear()
    z = td.nn.softmax(x + y * 2.0) @ td.transpose(x)
    z = z[1:, ::2] + 1.0
    assert z.device.endswith("GPU:0") and not counts["downloads"]
    a = td.constant(X)
    same(z, (td.nn.softmax(a + a * 4.0) @ td.transpose(a))[1:, ::2] + 1.0)


def test_programs_of_operations_are_shared_among_sizes(gpu: Device) -> None:
    for size in (3, 5, 4, 7, 9):
        x = on(gpu, X[:, :size].copy())
        same(td.tanh(x) * x, np.tanh(X[:, :size]) * X[:, :size])
    modules = driver_of(gpu).counts["modules"]
    x = on(gpu, X[:, :11].copy())
    same(td.tanh(x) * x, np.tanh(X[:, :11]) * X[:, :11])
    assert driver_of(gpu).counts["modules"] == modules


def test_errors_come_at_once(gpu: Device) -> None:
    x, i = on(gpu, X), on(gpu, np.array([1, 99]))
    with pytest.raises(td.errors.InvalidArgumentError, match="99"):
        td.gather(x, i)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"f32\[6, 20\]"):
        td.matmul(x, x)
    same(td.gather(x, on(gpu, np.array([1, 2]))), X[1:3])


def test_a_scope_runs_operations_of_tensors_of_the_host(gpu: Device) -> None:
    with td.device("GPU:0"):
        x = td.constant(X)
        y = td.reduce_sum(x * td.constant(X), 1)
        n = td.random.normal([50])
    assert x.device == y.device == n.device == gpu.name
    same(y, (X * X).sum(1))
    td.random.set_seed(1)
    same(n, td.random.normal([50]))


def test_gradients(gpu: Device) -> None:
    x = on(gpu, X)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(td.sin(x) * td.exp(x))
    gradient = tape.gradient(y, x)
    assert gradient.device == gpu.name
    same(gradient, np.cos(X) * np.exp(X) + np.sin(X) * np.exp(X))


MODELS: dict[str, Any] = {
    "dense": (lambda: [layers.Dense(9, "relu"), layers.Dense(5)], X, 12),
    "convolutional": (
        lambda: [
            layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
            layers.Dense(5),
        ],
        RNG.standard_normal((6, 8, 8, 3)).astype(np.float32), 30,
    ),
    "deep": (
        lambda: [
            layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(),
            layers.Conv2D(5, 2, activation="relu"), layers.Flatten(),
            layers.Dense(6, "relu"), layers.Dense(5),
        ],
        RNG.standard_normal((6, 8, 8, 3)).astype(np.float32), 30,
    ),
    "dropout": (lambda: [layers.Dense(9), layers.Dropout(0.5), layers.Dense(5)], X, 30),
    "normalised": (
        lambda: [layers.Dense(12), layers.LayerNormalization(), layers.Dense(5)], X, 30,
    ),
    "table": (
        lambda: [layers.Embedding(11, 6), layers.Flatten(), layers.Dense(5)],
        RNG.integers(0, 11, (6, 4)), 30,
    ),
    "recurrent": (
        lambda: [layers.SimpleRNN(7), layers.Dense(5)],
        RNG.standard_normal((6, 4, 3)).astype(np.float32), 100,
    ),
}  # fmt: skip


def losses(place: str, name: str, steps: int = 4) -> tuple[list[float], Any, Any]:
    """The losses of some training steps, the compiled step, and the model."""
    make, x, _ = MODELS[name]
    td.random.set_seed(3)
    entropy = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with td.device(place):
        model = td.keras.Sequential(make())
        x, labels = td.constant(x), td.constant(LABELS)
        model(x)
        optimizer = td.keras.optimizers.SGD(0.1, momentum=0.9)

        @td.function
        def step(x: Any, labels: Any) -> Any:
            with td.GradientTape() as tape:
                loss = entropy(labels, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        found = [float(step(x, labels)) for _ in range(steps)]
    return found, step.get_concrete_function(x, labels)._executable, model


@pytest.mark.parametrize("name", MODELS)
def test_training_steps(gpu: Device, name: str) -> None:
    counts = driver_of(gpu).counts
    found, program, model = losses("GPU:0", name)
    assert all(v.device == gpu.name for v in model.variables)
    counts.clear()
    again, program, _ = losses("GPU:0", name, 1)
    assert again[0] == found[0]
    np.testing.assert_allclose(found, losses("CPU:0", name)[0], 1e-4)
    assert program.submitted <= MODELS[name][2]


def test_variables_of_the_host_are_copied(gpu: Device) -> None:
    count, w = td.Variable(0), td.Variable(on(gpu, X))

    @td.function
    def step() -> Any:
        count.assign_add(1)
        w.assign(w * 2.0)
        return td.reduce_sum(w) * td.cast(count, td.float32)

    for n in range(1, 4):
        np.testing.assert_allclose(float(step()), n * (X * 2.0**n).sum(), 1e-3)
    assert int(count) == 3 and count.device.endswith("CPU:0")
