"""Callbacks see the first and the last of as many batches as a model executes at once, and may end
each kind of pass."""

import itertools

import numpy as np
import pytest

import treadle as td

keras = td.keras

X, Y = np.ones((28, 4), "float32"), np.ones((28, 1), "float32")


class Noted(keras.callbacks.Callback):
    """Notes the numbers of batches."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(("begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(("end", batch))

    on_test_batch_begin = on_predict_batch_begin = on_train_batch_begin
    on_test_batch_end = on_train_batch_end

    def on_predict_batch_end(self, batch, logs=None):
        self.seen.append(("end", batch, logs["outputs"].shape[0]))


def compiled(**options):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse", **options)
    return model


def test_each_kind_of_pass():
    one, three = compiled(), compiled(steps_per_execution=3)
    noted = Noted()
    history = three.fit(X, Y, 4, verbose=0, shuffle=False, callbacks=[noted])
    # Seven batches: the last one is alone, and Keras counts as if it were the first of three.
    assert noted.seen == [
        ("begin", 0), ("end", 2), ("begin", 3), ("end", 5), ("begin", 6), ("end", 8),
    ]  # fmt: skip
    plain = one.fit(X, Y, 4, verbose=0, shuffle=False)
    assert history.history == plain.history
    noted = Noted()
    three.evaluate(X, Y, 4, verbose=0, callbacks=[noted])
    assert [place for place in noted.seen if place[0] == "begin"] == [
        ("begin", 0), ("begin", 3), ("begin", 6),
    ]  # fmt: skip
    noted = Noted()
    found = three.predict(X, 4, verbose=0, callbacks=[noted])
    assert [place[1:] for place in noted.seen if place[0] == "end"] == [(2, 12), (5, 12), (8, 4)]
    np.testing.assert_allclose(found, one.predict(X, 4, verbose=0), rtol=1e-6)


def test_a_number_that_is_none():
    with pytest.raises(ValueError, match="steps_per_execution is a positive int"):
        compiled(steps_per_execution=0)


class Ending(keras.callbacks.Callback):
    """Ends a pass after its third batch."""

    def on_test_batch_end(self, batch, logs=None):
        self.model.stop_evaluating = batch == 2

    def on_predict_batch_end(self, batch, logs=None):
        self.model.stop_predicting = batch == 2


def test_callbacks_end_passes_over_endless_data():
    model = compiled()
    endless = ((X[:2], Y[:2]) for _ in itertools.count())
    assert model.evaluate(endless, verbose=0, callbacks=[Ending()]) == pytest.approx(9.0)
    found = model.predict((X[:2] for _ in itertools.count()), verbose=0, callbacks=[Ending()])
    assert found.shape == (6, 1)


class Batches(keras.utils.PyDataset):
    """Batches without an end."""

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        return X[:2] * index, Y[:2] * 0


def test_a_dataset_without_an_end():
    model = compiled()
    history = model.fit(Batches(), steps_per_epoch=3, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_a_generator_that_ends():
    model = compiled()
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit(((X, Y) for _ in range(2)), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    with pytest.raises(ValueError, match="the data has no batches"):
        model.fit(iter(()), verbose=0)


def test_matrices_of_scipy():
    scipy = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(0)
    dense = (random.random((10, 4)) * (random.random((10, 4)) < 0.4)).astype("float32")
    model = compiled()
    expected = model.predict(dense, 4, verbose=0)
    for kind in (scipy.csr_matrix, scipy.coo_matrix, scipy.csr_array):
        np.testing.assert_allclose(model.predict(kind(dense), 4, verbose=0), expected, rtol=1e-6)
    loss = compiled().fit(dense, Y[:10], 4, verbose=0, shuffle=False).history["loss"]
    sparse = compiled().fit(scipy.csr_matrix(dense), Y[:10], 4, verbose=0, shuffle=False)
    assert sparse.history["loss"] == pytest.approx(loss, rel=1e-5)


def test_eagerly_before_compiling():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.run_eagerly = True
    assert model.run_eagerly
    np.testing.assert_allclose(model.predict(X, verbose=0), np.full((28, 1), 4.0))
