"""fit, evaluate and predict with datasets."""

from typing import Any

import numpy as np
import pytest

import treadle as td

Dataset = td.data.Dataset
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)


def model() -> Any:
    td.random.set_seed(1)
    made = td.keras.Sequential([td.keras.layers.Dense(2)])
    made(td.constant(X[:1]))  # its weights are drawn now
    loss = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(td.keras.optimizers.SGD(0.5), loss, metrics=["accuracy"])
    return made


def test_fit_on_batches_is_fit_on_arrays() -> None:
    by_arrays, by_dataset = model(), model()
    a = by_arrays.fit(X, Y, batch_size=20, epochs=3, shuffle=False, verbose=0)
    rows = Dataset.from_tensor_slices((X, Y)).batch(20)
    b = by_dataset.fit(rows, epochs=3, verbose=0)
    np.testing.assert_allclose(a.history["loss"], b.history["loss"], rtol=1e-6)
    np.testing.assert_allclose(by_arrays.get_weights()[0], by_dataset.get_weights()[0], rtol=1e-5)


def test_evaluate_and_predict() -> None:
    fitted = model()
    rows = Dataset.from_tensor_slices((X, Y)).batch(40)
    fitted.fit(rows, epochs=1, verbose=0, validation_data=rows)
    np.testing.assert_allclose(
        fitted.evaluate(rows, verbose=0), fitted.evaluate(X, Y, verbose=0), rtol=1e-5
    )
    np.testing.assert_allclose(fitted.predict(rows), fitted.predict(X), rtol=1e-5)
    only_inputs = Dataset.from_tensor_slices(X).batch(7)
    np.testing.assert_allclose(fitted.predict(only_inputs), fitted.predict(X), rtol=1e-5)


def test_steps_of_an_epoch_go_on_where_the_last_stopped() -> None:
    seen: list[int] = []

    def numbers() -> Any:
        for i in range(10):
            seen.append(i)
            yield X[9 * i : 9 * i + 9], Y[9 * i : 9 * i + 9]

    signature = (td.TensorSpec((9, 4), td.float32), td.TensorSpec((9,), td.int32))
    rows = Dataset.from_generator(numbers, output_signature=signature)
    fitted = model()
    with pytest.warns(UserWarning, match="ran out of data"):  # as in Keras, the epoch ends there
        fitted.fit(rows, steps_per_epoch=4, epochs=3, verbose=0)
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert int(fitted.optimizer.iterations.numpy()) == 10


def test_sample_weights_and_validation_batches() -> None:
    weights = np.where(Y == 1, 2.0, 0.5).astype(np.float32)
    by_arrays, by_dataset = model(), model()
    a = by_arrays.fit(X, Y, 30, sample_weight=weights, shuffle=False, verbose=0)
    rows = Dataset.from_tensor_slices((X, Y, weights)).batch(30)
    b = by_dataset.fit(rows, verbose=0)
    np.testing.assert_allclose(a.history["loss"], b.history["loss"], rtol=1e-6)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_what_datasets_have_already_is_refused(name: str) -> None:
    rows = Dataset.from_tensor_slices((X, Y)).batch(30)
    given = {"y": Y, "sample_weight": X[:, 0]}
    with pytest.raises(ValueError, match=f"{name} must not be given with a Dataset"):
        model().fit(rows, **{name: given[name]})


def test_a_size_of_batches_says_nothing_of_datasets() -> None:
    rows = Dataset.from_tensor_slices((X, Y)).batch(30)
    plain, sized = model(), model()
    expected = plain.fit(rows, verbose=0).history["loss"]
    assert sized.fit(rows, batch_size=3, verbose=0).history["loss"] == expected


def test_validation_split_is_refused() -> None:
    rows = Dataset.from_tensor_slices((X, Y)).batch(30)
    with pytest.raises(ValueError, match="validation_split needs arrays"):
        model().fit(rows, validation_split=0.5)
