"""Steps of optimizers on rows of a table: the rows that were read, and no others."""

import re

import numpy as np
import pytest

import treadle as td

ROWS, WIDTH, BATCH = 5000, 8, 16
OPTIMIZERS = {
    "sgd": lambda: td.keras.optimizers.SGD(0.1),
    "clipped sgd": lambda: td.keras.optimizers.SGD(0.1, global_clipnorm=0.01),
    "momentum": lambda: td.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda: td.keras.optimizers.Adagrad(0.1),
    "adam": lambda: td.keras.optimizers.Adam(0.1),
    "amsgrad": lambda: td.keras.optimizers.Adam(0.1, amsgrad=True),
    "rmsprop": lambda: td.keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
    "adadelta": lambda: td.keras.optimizers.Adadelta(0.1),
    "adamax": lambda: td.keras.optimizers.Adamax(0.1),
    "nadam": lambda: td.keras.optimizers.Nadam(0.1),
}
IN_PLACE = ("sgd", "clipped sgd", "adagrad")  # their rules leave all other rows as they are


def step_of(name):
    table = td.Variable(np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32))
    optimizer = OPTIMIZERS[name]()
    optimizer.build([table])

    def step(ids, wanted):
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(td.gather(table, ids) - wanted))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    return table, step


def batches(count):
    random = np.random.default_rng(1)
    for _ in range(count):
        ids = random.integers(0, 40, BATCH).astype(np.int32)  # some of them several times
        yield ids, random.standard_normal((BATCH, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_steps_are_eager_ones(name):
    eager, eager_step = step_of(name)
    compiled, step = step_of(name)
    step = td.function(step)
    for ids, wanted in batches(4):
        first, second = eager_step(ids, wanted), step(ids, wanted)
        np.testing.assert_allclose(first, second, rtol=2e-6)
    np.testing.assert_allclose(eager, compiled, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", IN_PLACE)
def test_programs_touch_the_rows_only(name):
    """No launch goes over the table, nothing copies it, and the workspace is that of the rows."""
    _, step = step_of(name)
    specs = td.TensorSpec([BATCH], td.int32), td.TensorSpec([BATCH, WIDTH])
    schedule = td.inspect.stages(td.function(step), *specs)["schedule"]
    assert re.search(r"tensor_scatter_nd_add in v\d", schedule)
    sizes = [int(n) for n in re.findall(r" n=(\d+)", schedule)]
    assert all(n <= BATCH * WIDTH for n in sizes), schedule
    assert not re.search(r"copy %v\d+@v\d+ -> t", schedule), schedule
    (workspace,) = re.findall(r"workspace: (\d+) bytes", schedule)
    assert int(workspace) <= 8 * BATCH * WIDTH * 4


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_once_step_as_the_whole_gradient_would(name):
    """Where no row is read twice, rows and the tensor that they stand for are one gradient."""
    by_rows, step = step_of(name)
    table, _ = step_of(name)
    optimizer = OPTIMIZERS[name]()
    random = np.random.default_rng(2)
    for _ in range(3):
        ids = random.permutation(50)[:BATCH].astype(np.int32)
        wanted = random.standard_normal((BATCH, WIDTH)).astype(np.float32)
        step(ids, wanted)
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(td.gather(table, ids) - wanted))
        whole = td.convert_to_tensor(tape.gradient(loss, table))
        optimizer.apply_gradients([(whole, table)])
    np.testing.assert_allclose(by_rows, table, rtol=2e-5, atol=1e-6)


def test_constraints_decay_and_models():
    """An embedding is trained by `fit`: only its rows move."""
    model = td.keras.Sequential([td.keras.layers.Embedding(100, 4), td.keras.layers.Flatten()])
    model.compile(optimizer=td.keras.optimizers.SGD(0.5), loss="mse")
    ids = np.array([[1], [2], [2], [7]], np.int32)
    model.build([None, 1])
    before = model.layers[0].embeddings.numpy()
    model.fit(ids, np.ones((4, 4), np.float32), epochs=1, batch_size=4, verbose=0)
    moved = np.any(model.layers[0].embeddings.numpy() != before, axis=1)
    assert np.flatnonzero(moved).tolist() == [1, 2, 7]
