"""Batches are copied to a device ahead of their use."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, program_of
from treadle.core.devices import Device
from treadle.data.elements import Ahead

to_device = td.data.experimental.prefetch_to_device
X = np.arange(60, dtype=np.float32).reshape(20, 3)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with recorded_gpu() as device:
        yield device


def batches(**more: Any) -> Any:
    labels = np.arange(20)
    return td.data.Dataset.from_tensor_slices((X, labels, [f"{n}" for n in labels])).batch(4)


def test_elements_are_on_the_device(gpu: Device) -> None:
    dataset = batches().apply(to_device("GPU:0", 2))
    assert dataset.element_spec == batches().element_spec and int(dataset.cardinality()) == 5
    for _ in range(2):
        found = list(dataset)
        for n, (x, label, name) in enumerate(found):
            assert x.device == label.device == gpu.name and name.device.endswith("CPU:0")
            np.testing.assert_array_equal(x.numpy(), X[4 * n : 4 * n + 4])
            assert label.numpy().tolist() == list(range(4 * n, 4 * n + 4))
            assert name.numpy()[0] == str(4 * n).encode()
        assert len(found) == 5


def test_copies_are_made_beside_other_work_in_memory_used_in_turn(gpu: Device) -> None:
    dataset = td.data.Dataset.from_tensor_slices(X).repeat(20).batch(4).apply(to_device("GPU:0", 2))
    step = td.function(lambda x: td.reduce_sum(x * 2.0))
    counts = driver_of(gpu).counts
    total = sum(float(step(x)) for x in dataset)
    assert total == 2.0 * 20 * X.sum()
    assert counts["ahead"] == 100 and counts["uploads"] == 0
    assert counts["pinned"] <= 8  # two wait, one is used, one is read, one is filled
    gc.collect()
    first = counts["pinned"]
    sum(float(step(x)) for x in dataset)
    assert counts["pinned"] <= max(first, 8) + 2


def test_copies_that_are_garbage_in_a_cycle_leave_their_memory(gpu: Device) -> None:
    step = td.function(lambda x: td.reduce_sum(x * 2.0))
    for _ in range(3):
        cycle: list[Any] = [Ahead(X[:4], gpu) for _ in range(4)]
        assert float(step(cycle[0].tensor())) == 2.0 * X[:4].sum()
        cycle.append(cycle)
        del cycle
        gc.collect()


def test_work_is_recorded_for_the_few_places_of_batches(gpu: Device) -> None:
    dataset = td.data.Dataset.from_tensor_slices(X).repeat(20).batch(4).apply(to_device("GPU:0", 2))
    with td.device("GPU:0"):
        total = td.Variable(0.0)

    @td.function
    def step(x: Any) -> None:
        total.assign_add(td.reduce_sum(x))

    for x in dataset:
        step(x)
    assert total.numpy() == 20 * X.sum()
    assert driver_of(gpu).counts["submissions"] >= 50
    assert program_of(step, x).is_recorded


def test_batches_that_are_kept_stay(gpu: Device) -> None:
    dataset = td.data.Dataset.from_tensor_slices(X).batch(2).apply(to_device("GPU:0"))
    kept = list(dataset)
    again = list(dataset)
    for n, (a, b) in enumerate(zip(kept, again, strict=True)):
        np.testing.assert_array_equal(a.numpy(), X[2 * n : 2 * n + 2])
        np.testing.assert_array_equal(b.numpy(), a.numpy())


def test_a_variable_that_takes_a_batch(gpu: Device) -> None:
    with td.device("GPU:0"):
        v = td.Variable(X[:2])
    for x in td.data.Dataset.from_tensor_slices(X).batch(2).apply(to_device("GPU:0", 1)):
        v.assign(x)
        v.assign_add(v)
        del x
    np.testing.assert_array_equal(v.numpy(), 2 * X[-2:])


def test_in_a_function(gpu: Device) -> None:
    @td.function
    def total(dataset: Any) -> Any:
        found = 0.0
        for x in dataset:
            found += td.reduce_sum(x)
        return found

    dataset = td.data.Dataset.from_tensor_slices(X).batch(4).apply(to_device("GPU:0", 2))
    assert float(total(dataset)) == X.sum()
    with td.device("GPU:0"):  # the device is at work while it waits for the thread
        assert float(total(dataset)) == X.sum()
    assert float(dataset.reduce(0.0, lambda a, x: a + td.reduce_sum(x))) == X.sum()
    assert sum(x.sum() for x in dataset.as_numpy_iterator()) == X.sum()


def test_an_iterator_in_a_function_on_the_device(gpu: Device) -> None:
    @td.function
    def two(iterator: Any) -> Any:
        return td.reduce_sum(next(iterator)) + td.reduce_sum(next(iterator))

    iterator = iter(td.data.Dataset.from_tensor_slices(X).batch(2).apply(to_device("GPU:0", 1)))
    with td.device("GPU:0"):
        found = [float(two(iterator)) for _ in range(5)]
    assert found == [X[4 * n : 4 * n + 4].sum() for n in range(5)]


def test_no_memory_for_a_batch() -> None:
    with recorded_gpu(limit=100):
        dataset = td.data.Dataset.from_tensor_slices(X).batch(4).apply(to_device("GPU:0", 1))
        text = "no memory for an array of 48 bytes that is copied ahead"
        with pytest.raises(td.errors.ResourceExhaustedError, match=text):
            kept = list(dataset)
            assert kept


def test_training(gpu: Device) -> None:
    with td.device("GPU:0"):
        model = td.keras.Sequential([td.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        data = td.data.Dataset.from_tensor_slices((X / 60, X[:, :1] / 60)).batch(5)
        history = model.fit(data.apply(to_device("GPU:0", 2)), epochs=3, verbose=0)
    losses = history.history["loss"]
    assert losses == sorted(losses, reverse=True)
    assert driver_of(gpu).counts["ahead"] == 3 * 4 * 2


def test_empty_batches(gpu: Device) -> None:
    dataset = td.data.Dataset.from_tensors(X[:0]).apply(to_device("GPU:0", 1))
    (x,) = dataset
    assert x.device == gpu.name and x.shape == [0, 3]


def test_copy_to_device(gpu: Device) -> None:
    dataset = td.data.Dataset.range(3).apply(td.data.experimental.copy_to_device("/gpu:0"))
    assert [(int(x), x.device) for x in dataset] == [(n, gpu.name) for n in range(3)]
    assert [x.device for x in dataset.prefetch(1)] == [gpu.name] * 3


@pytest.mark.parametrize("place", ["CPU:0", "GPU:7"])
def test_the_host(place: str) -> None:
    dataset = td.data.Dataset.from_tensor_slices(X).batch(4).apply(to_device(place, 2))
    assert all(x.device.endswith("CPU:0") for x in dataset)
    assert [x.numpy().sum() for x in dataset.map(lambda x: x * 2)]  # nothing to refuse


def test_it_must_be_the_last_transformation(gpu: Device, tmp_path: Path) -> None:
    dataset = td.data.Dataset.from_tensor_slices(X).apply(to_device("GPU:0", 2))
    other = td.data.Dataset.from_tensor_slices(X)
    for follow in (
        lambda: dataset.map(lambda x: x * 2), lambda: dataset.batch(2), lambda: dataset.repeat(),
        lambda: td.data.Dataset.zip((other, dataset)), lambda: other.concatenate(dataset),
        lambda: dataset.apply(to_device("GPU:0", 2)), lambda: dataset.save(str(tmp_path)),
        lambda: dataset.apply(td.data.experimental.ignore_errors()),
    ):  # fmt: skip
        with pytest.raises(td.errors.InvalidArgumentError, match="must be the last transformation"):
            follow()
    assert len(list(dataset.prefetch(2).with_options(td.data.Options()))) == 20


def test_names_that_are_none() -> None:
    for name in ("a wrong name", None):
        with pytest.raises((ValueError, td.errors.InvalidArgumentError)):
            td.data.Dataset.range(3).apply(to_device(name, 2))
