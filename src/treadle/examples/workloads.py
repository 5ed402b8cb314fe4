"""The programs that `treadle bench` times: plain Python functions with their arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td

Job = tuple[Callable[..., Any], Sequence[Any]]


def scalar_loop() -> Job:
    def recurrence(a: Any, n: Any) -> Any:
        i = 0
        while i < n:
            a = a * 0.999 + 1.0
            i += 1
        return a

    return recurrence, (td.constant(1.0), td.constant(10_000))


def elementwise_chain() -> Job:
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + td.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    return gelu, (td.constant(random(1_000_000)),)


def mlp_step() -> Job:
    layers = td.keras.layers
    model = td.keras.Sequential([layers.Dense(100, activation="relu"), layers.Dense(10)])
    return training_step(model, random(50, 784))


def cnn_step() -> Job:
    layers = td.keras.layers
    model = td.keras.Sequential(
        [
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    return training_step(model, random(50, 28, 28, 1))


def rnn() -> Job:
    def last_state(x: Any, w: Any, u: Any) -> Any:
        h = td.zeros((32, 64))
        for t in td.range(100):
            h = td.tanh(h @ w + x[t] @ u)
        return h

    weights = (random(64, 64) / 8, random(64, 64) / 8)
    return last_state, tuple(map(td.constant, (random(100, 32, 64), *weights)))


def training_step(model: Any, images: np.ndarray[Any, Any]) -> Job:
    """One step of Adam on one batch of random labels."""
    optimizer = td.keras.optimizers.Adam(1e-3)
    loss_of = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x = td.constant(images)
    y = td.constant(np.arange(len(images), dtype=np.int32) % 10)
    model(x)  # creates the variables

    def step(x: Any, y: Any) -> Any:
        with td.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step, (x, y)


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


WORKLOADS: dict[str, Callable[[], Job]] = {
    "scalar loop": scalar_loop,
    "elementwise chain": elementwise_chain,
    "MLP step": mlp_step,
    "CNN step": cnn_step,
    "RNN": rnn,
}
