"""What is interrupted: each scene makes fresh functions and gives what they must compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle import keras

Scene = Callable[[float], tuple[Callable[[], Any], Any]]

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


def plain(c: float) -> tuple[Callable[[], Any], Any]:
    """Elementwise operations, a reduction, a product."""

    @td.function
    def f(x):
        return td.reduce_sum(td.tanh(x * c) + 1.0, axis=1), td.matmul(x, x, transpose_b=True) * c

    return lambda: f(X), (np.tanh(X * np.float32(c)).sum(1) + 4.0, X @ X.T * np.float32(c))


def loops(c: float) -> tuple[Callable[[], Any], Any]:
    """A while loop, a condition, a rolled loop over a range."""

    @td.function
    def f(x, n):
        i, total = 0, x * 0.0
        while i < n:
            total = total + x * c if i % 2 == 0 else total - x
            i += 1
        for k in range(20):
            total = total * 0.5 + x * td.cast(k, td.float32)
        return total

    total = X * 0
    for i in range(5):
        total = total + X * np.float32(c) if i % 2 == 0 else total - X
    for k in range(20):
        total = total * np.float32(0.5) + X * np.float32(k)
    return lambda: f(X, td.constant(5)), total


def gradient(c: float) -> tuple[Callable[[], Any], Any]:
    """The gradient of a compiled function under an eager tape, and within a function."""

    @td.function
    def f(x):
        return td.reduce_sum(td.sin(x) * c)

    @td.function
    def g(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * x[0, 0]
        return tape.gradient(y, x)

    def both():
        x = td.constant(X)
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x), g(x)

    inner = np.cos(X) * np.float32(c)
    outer = inner * X[0, 0]
    outer[0, 0] += (np.sin(X) * np.float32(c)).sum()
    return both, (inner, outer)


def loop_gradient(c: float) -> tuple[Callable[[], Any], Any]:
    """The gradient of a loop."""

    @td.function
    def f(x, n):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in td.range(n):
                y = y * x + c
            loss = td.reduce_sum(y)
        return tape.gradient(loss, x)

    wanted = 4 * X**3 + np.float32(c) * (2 * X + 1)  # of x^4 + c (x^2 + x + 1)
    return lambda: f(td.constant(X), td.constant(3)), wanted


def jitted(c: float) -> tuple[Callable[[], Any], Any]:
    """NumPy code with loops and an update in place."""

    @td.jit
    def f(x, n):
        y = np.zeros_like(x)
        for i in range(n):
            for j in range(1, x.shape[1]):
                y[i, j] = y[i, j - 1] * 0.5 + x[i, j] * c
        return y, np.sort(x, axis=1)[:, ::-1].sum()

    y = np.zeros_like(X)
    for j in range(1, 4):
        y[:, j] = y[:, j - 1] * np.float32(0.5) + X[:, j] * np.float32(c)
    return lambda: f(X.copy(), 3), (y, X.sum())


def variables(c: float) -> tuple[Callable[[], Any], Any]:
    """A variable that the function creates, and one that it assigns."""
    v = td.Variable(np.zeros(4, np.float32))

    class Model(td.Module):
        w = None

        @td.function
        def __call__(self, x):
            if self.w is None:
                self.w = td.Variable(np.full((4, 2), c, np.float32))
            v.assign(x[0] * c)
            return td.matmul(x, self.w) + td.reduce_sum(v)

    model = Model()
    c32 = np.float32(c)
    return lambda: model(X), X @ np.full((4, 2), c32) + (X[0] * c32).sum()


def fit(c: float) -> tuple[Callable[[], Any], Any]:
    """A small network that is built and trained; wanted is a finite loss for each epoch."""
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(1e-3 * c), loss="mse")
    y = X.sum(1, keepdims=True)

    def train():
        history = model.fit(X, y, epochs=2, batch_size=2, verbose=0)
        return np.isfinite(history.history["loss"])

    return train, np.ones(2, bool)


def datasets(c: float) -> tuple[Callable[[], Any], Any]:
    """A pipeline with a mapped function, read eagerly and in a function."""
    data = td.data.Dataset.from_tensor_slices(X).map(lambda row: row * c).batch(2)

    @td.function
    def total(d):
        found = 0.0
        for rows in d:
            found += td.reduce_sum(rows)
        return found

    def both():
        return [td.reduce_sum(rows) for rows in data], total(data)

    scaled = X * np.float32(c)
    return both, ([scaled[:2].sum(), scaled[2:].sum()], scaled.sum())


def nested(c: float) -> tuple[Callable[[], Any], Any]:
    """Functions within functions, a custom gradient, a NumPy function."""

    @td.custom_gradient
    def double(x):
        return x * 2.0, lambda upstream: upstream * c

    @td.function
    def inner(x):
        return double(x) + td.numpy_function(np.cos, [x], td.TensorSpec([3, 4], td.float32))

    @td.function
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(double(x))
        return inner(x) + tape.gradient(y, x)

    return lambda: f(td.constant(X)), X * 2 + np.cos(X) + np.float32(c)


def shapes(c: float) -> tuple[Callable[[], Any], Any]:
    """Several shapes, which share a program, and calls that get plans."""

    @td.function
    def f(x):
        return td.nn.softmax(x * c) + td.reduce_max(x)

    def several():
        return [f(X[:n]) for n in (1, 2, 3, 2, 2, 2)]

    def wanted(x):
        e = np.exp(x * np.float32(c) - (x * np.float32(c)).max(1, keepdims=True))
        return e / e.sum(1, keepdims=True) + x.max()

    return several, [wanted(X[:n]) for n in (1, 2, 3, 2, 2, 2)]


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        plain, loops, gradient, loop_gradient, jitted, variables, fit, datasets, nested, shapes,
    )
}  # fmt: skip


def check(found: Any, wanted: Any) -> str:
    """How a result differs from the wanted one, or ""."""
    if isinstance(wanted, tuple | list):
        return next((e for f, w in zip(found, wanted, strict=True) if (e := check(f, w))), "")
    found = found.numpy() if hasattr(found, "numpy") else np.asarray(found)
    if np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=1e-4, atol=1e-4):
        return ""
    return f"{found!r} instead of {wanted!r}"
