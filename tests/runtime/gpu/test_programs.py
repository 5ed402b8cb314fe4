"""Whole programs whose kernels are those for a GPU, run on the processor through the shim.

The rest of the device is made up (`tests/runtime/apart.py`): routines are NumPy's, and what the
host fetches is counted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.shimmed import Shimmed, ShimmedExecutable
from tests.runtime.harness import captures
from treadle import runtime
from treadle.runtime import interpreter
from treadle.runtime.devices import using
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import SegmentedLaunch

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 20)).astype(np.float32)
LABELS = np.array([0, 3, 1, 4, 4, 2])


def run(
    function: Callable[..., Any], *arguments: Any, tolerance: float = 2e-5
) -> ShimmedExecutable:
    """The program for the device, which gives what the interpreter gives."""
    with using(Shimmed()):
        graph = td.function(function).get_concrete_function(*arguments).graph
        program = runtime.compile(graph)
    assert isinstance(program, ShimmedExecutable), program.reason
    values = [*map(np.asarray, arguments), *captures(graph)]
    variables = [v for v in values if isinstance(v, td.Variable)]
    start = [v.numpy().copy() for v in variables]
    wanted = interpreter.run(graph, values)
    state = [v.numpy().copy() for v in variables]
    for variable, array in zip(variables, start, strict=True):
        variable.assign(array)
    found = program.run(values)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, tolerance, tolerance / 10)
    for variable, array in zip(variables, state, strict=True):
        np.testing.assert_allclose(variable.numpy(), array, 2e-5, 2e-6)
    return program


def trained(model: Any, optimizer: Any, x: Any, labels: Any) -> ShimmedExecutable:
    """A training step of a classifier."""
    entropy = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model(td.constant(x))
    optimizer.build(model.trainable_variables)

    def step(x: Any, labels: Any) -> Any:
        with td.GradientTape() as tape:
            loss = entropy(labels, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return run(step, x, labels)


layers = td.keras.layers


@pytest.fixture(autouse=True)
def seed() -> None:
    td.random.set_seed(1)


def test_a_dense_network() -> None:
    model = td.keras.Sequential([layers.Dense(9, "relu"), layers.Dense(7, "tanh"), layers.Dense(5)])
    program = trained(model, td.keras.optimizers.Adam(0.01), X, LABELS)
    assert not program.fetches  # the host decides nothing
    assert any(isinstance(s, SegmentedLaunch) for s in all_steps(program.block))


def test_a_convolutional_network() -> None:
    parts = [layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()]
    model = td.keras.Sequential([*parts, layers.Dense(5)])
    images = RNG.standard_normal((6, 8, 8, 3)).astype(np.float32)
    trained(model, td.keras.optimizers.SGD(0.1, momentum=0.9), images, LABELS)


def test_normalised_layers() -> None:
    parts = [layers.Dense(12), layers.LayerNormalization(), layers.BatchNormalization()]
    model = td.keras.Sequential([*parts, layers.Dense(5)])
    # No optimizer that divides by the gradients: that of a bias before a normalisation is noise.
    trained(model, td.keras.optimizers.SGD(0.1), X, LABELS)


def test_rows_of_a_table() -> None:
    model = td.keras.Sequential([layers.Embedding(11, 6), layers.Flatten(), layers.Dense(5)])
    tokens = RNG.integers(0, 11, (6, 4))
    trained(model, td.keras.optimizers.Adagrad(0.1), tokens, LABELS)


def test_a_recurrent_network() -> None:
    model = td.keras.Sequential([layers.SimpleRNN(7), layers.Dense(5)])
    steps = RNG.standard_normal((6, 4, 3)).astype(np.float32)
    trained(model, td.keras.optimizers.SGD(0.1), steps, LABELS)


def newton(x: Any) -> Any:
    for _ in td.range(5):
        x = x - (x * x - 2.0) / (2.0 * x)
    return x


PROGRAMS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x: td.nn.softmax(x, axis=0) + td.nn.softmax(x),
    "attention": lambda x: td.nn.softmax(td.matmul(x, x, transpose_b=True)) @ x,
    "running sums": lambda x: td.cumsum(x, axis=1, reverse=True) * td.math.cumprod(x),
    "selected": lambda x: td.boolean_mask(x, x > 0.3) * 2.0,
    "places": lambda x: td.where(x > 0.3),
    "segments": lambda x: td.math.segment_sum(x, td.constant([0, 0, 1, 3, 3, 3])),
    "scattered": lambda x: td.tensor_scatter_nd_add(x, [[1], [3], [1]], x[:3] * 2.0),
    "gathered": lambda x: td.gather(x, td.argsort(x[:, 0])) + td.reverse(x, [0]),
    "moments": lambda x: td.nn.moments(x, [0, 1])[1] + td.math.reduce_std(x, axis=1),
    "pads": lambda x: td.pad(td.transpose(x), [[1, 2], [0, 3]], constant_values=4.0)[::2],
    "numbers": lambda x: td.random.stateless_normal([50], [3, 4]) * td.reduce_max(x),
    "loop": newton,
    "greatest": lambda x: (td.argmax(x, axis=1), td.math.top_k(x, 3).values),
    "half": lambda x: td.cast(td.tanh(td.cast(x, td.float16)) * 3.0, td.float32),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    x = np.abs(X) + 0.1 if name == "loop" else X
    # The interpreter rounds to float16 after every op, kernels where they store.
    run(PROGRAMS[name], x, tolerance=1e-3 if name == "half" else 2e-5)


@pytest.mark.parametrize("name", ["softmax", "running sums", "selected", "moments"])
def test_open_dims(name: str) -> None:
    signature = [td.TensorSpec([None, None])]
    with using(Shimmed()):
        function = td.function(PROGRAMS[name], input_signature=signature)
        graph = function.get_concrete_function().graph
        program = runtime.compile(graph)
    assert isinstance(program, ShimmedExecutable), program.reason
    for x in (X, X[:1], np.tile(X, (9, 2))):
        wanted = interpreter.run(graph, [x, *captures(graph)])
        found = program.run([x, *captures(graph)])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, 2e-5, 2e-6)
