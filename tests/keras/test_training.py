"""fit, evaluate and predict: progress, callbacks, steps and metrics of programs' own."""

from __future__ import annotations

import csv
import http.server
import json
import re
import sys
import threading
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import callbacks, layers
from treadle.keras.models.batches import Arrays, as_arguments, as_tensors

X = np.sin(np.arange(40, dtype="f")).reshape(10, 4)
Y = np.cos(np.arange(10, dtype="f")).reshape(10, 1)


def linear(**compiled: Any) -> Any:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compiled})
    return model


# -- progress --------------------------------------------------------------------------------------


class Terminal:
    """A standard output that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def shown(text: str) -> list[str]:
    """What lines of a terminal show, without colours."""
    plain = re.sub(r"\x1b\[\d+m", "", text)
    return [line.rpartition("\r")[2].rstrip() for line in plain.split("\n")]


def test_a_bar_on_terminals(monkeypatch: Any) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    linear(metrics=["mae"]).fit(X, Y, batch_size=2, epochs=2, validation_split=0.2)
    lines = shown(screen.text)
    values = r"loss: [\d.]+ - mae: [\d.]+ - val_loss: [\d.]+ - val_mae: [\d.]+"
    assert lines[::2] == ["Epoch 1/2", "Epoch 2/2", ""]
    assert re.fullmatch(rf"4/4 ━{{20}} \d+s \d+[mu]?s/step - {values}", lines[1])
    assert "\x1b[1m4/4\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m" in screen.text
    assert "\b" in screen.text and "1/4" in screen.text


def test_lines_elsewhere(capsys: Any) -> None:
    model = linear()
    model.fit(X, Y, batch_size=4, verbose=1)
    bar = capsys.readouterr().out
    assert re.fullmatch(r"3/3 ━{20} \d+s \d+[mu]?s/step - loss: [\d.]+\n", bar)
    model.evaluate(X, Y)
    assert re.fullmatch(r"1/1 - \d+s - \d+[mu]?s/step - loss: [\d.]+\n", capsys.readouterr().out)
    model.predict(X, batch_size=5)
    assert re.fullmatch(r"2/2 - \d+s - \d+[mu]?s/step\n", capsys.readouterr().out)
    model.fit(X, Y, verbose=0)
    assert capsys.readouterr().out == ""


def test_a_number_of_steps_that_is_not_known(monkeypatch: Any) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    linear().fit(((X[:2], Y[:2]) for _ in range(3)), epochs=1)
    assert "      1/Unknown" in screen.text
    assert re.match(r"3/3 ━{20} \d+s", shown(screen.text)[0])


def test_a_bar_of_ones_own(capsys: Any) -> None:
    bar = keras.utils.Progbar(4, stateful_metrics=["rate"], unit_name="sample")
    bar.update(2, [("loss", 3.0), ("rate", 0.5)])
    bar.add(1, [("loss", 6.0), ("rate", 0.0001)])
    assert capsys.readouterr().out == ""  # one line, at the end
    bar.add(1, [("loss", 5.0)])
    assert re.match(
        r"4/4 ━{20} \d+s \d+[mu]?s/sample - loss: 5.0000 - rate: 1.0000e-04\n",
        capsys.readouterr().out,
    )
    with pytest.raises(ValueError, match="not both"):
        keras.utils.Progbar(1, stateful_metrics=[], stateless_metrics=[])


# -- callbacks -------------------------------------------------------------------------------------


class Noting(callbacks.Callback):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_") and name not in ("on_batch_begin", "on_batch_end"):
            return lambda *args, logs=None: self.seen.append(
                name.removeprefix("on_") + (str(args[0]) if isinstance(args[0], int) else "")
            )
        return super().__getattribute__(name)


def test_the_order_of_hooks() -> None:
    noting, model = Noting(), linear()
    data = td.data.Dataset.from_tensor_slices((X, Y)).batch(5)
    model.fit(data, epochs=1, validation_data=(X, Y), callbacks=[[noting]], verbose=0)
    batches = [f"train_batch_{w}{n}" for n in (0, 1) for w in ("begin", "end")]
    test = ["test_begin", "test_batch_begin0", "test_batch_end0", "test_end"]
    assert noting.seen == [
        "train_begin", "epoch_begin0", *batches, *test, "epoch_end0", "train_end",
    ]  # fmt: skip
    noting.seen.clear()
    model.predict(X, callbacks=noting, verbose=0)
    assert noting.seen == [
        "predict_begin", "predict_batch_begin0", "predict_batch_end0", "predict_end",
    ]  # fmt: skip
    assert noting.params["steps"] == 1 and noting.model is model


def test_logs_of_batches_are_floats() -> None:
    kinds = []
    hook = callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: kinds.append(type(logs["loss"]))
    )
    model = linear()
    history = model.fit(X, Y, callbacks=[hook], verbose=0)
    assert kinds == [float] and model.history is history


def test_training_stops_within_an_epoch() -> None:
    class Stop(callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = batch == 1

    model, counted = linear(), []
    count = callbacks.LambdaCallback(on_train_batch_begin=lambda b, logs: counted.append(b))
    model.fit(X, Y, batch_size=1, epochs=3, callbacks=[Stop(), count], verbose=0)
    assert counted == [0, 1]


def test_nan_stops(capsys: Any) -> None:
    model = linear()
    model.fit(X * np.nan, Y, epochs=5, callbacks=[callbacks.TerminateOnNaN()], verbose=0)
    assert capsys.readouterr().out == "Batch 0: Invalid loss, terminating training\n"
    assert len(model.history.epoch) == 1


def test_csv_files(tmp_path: Any) -> None:
    path = tmp_path / "log.csv"
    linear().fit(X, Y, epochs=2, callbacks=[callbacks.CSVLogger(path)], verbose=0)
    again = callbacks.CSVLogger(path, append=True)
    linear().fit(X, Y, initial_epoch=2, epochs=3, callbacks=[again], verbose=0)
    rows = list(csv.DictReader(path.open()))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["loss"]) > 0 and rows[0]["val_loss"] == "NA"
    many = callbacks.CSVLogger(path, separator=";")
    linear(metrics=["r2_score"]).fit(X, Y, validation_data=(X, Y), callbacks=many, verbose=0)
    assert path.read_text().startswith("epoch;loss;r2_score;val_loss;val_r2_score\n0;")


def test_a_server_gets_the_values() -> None:
    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        monitor = callbacks.RemoteMonitor(root, send_as_json=True)
        linear().fit(X, Y, epochs=2, callbacks=[monitor], verbose=0)
        server.shutdown()
    assert [path for path, _ in received] == ["/publish/epoch/end/"] * 2
    assert received[1][1]["epoch"] == 1 and received[1][1]["loss"] > 0
    with pytest.warns(UserWarning, match="Could not reach"):
        linear().fit(X, Y, callbacks=[callbacks.RemoteMonitor(root)], verbose=0)
    with pytest.raises(ValueError, match="http address"):
        callbacks.RemoteMonitor("file:///etc")


def test_early_stopping_goes_back_to_the_best_weights(capsys: Any) -> None:
    model = linear(optimizer=keras.optimizers.SGD(0.0))
    values = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0])

    class Losing(callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["val_loss"] = next(values)
            self.model.layers[0].bias.assign([float(epoch)])

    stop = callbacks.EarlyStopping(patience=2, restore_best_weights=True, verbose=1)
    history = model.fit(X, Y, epochs=6, callbacks=[Losing(), stop], verbose=0)
    assert len(history.epoch) == 4 and stop.stopped_epoch == 3 and stop.best_epoch == 1
    assert float(model.layers[0].bias[0]) == 1.0
    assert capsys.readouterr().out == (
        "Epoch 4: early stopping\n"
        "Restoring model weights from the end of the best epoch: 2.\n"
    )  # fmt: skip


def test_averages_are_evaluated_and_stay() -> None:
    def trained(swap: Any) -> Any:
        keras.utils.set_random_seed(0)
        model = linear(optimizer=keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9))
        model.set_weights([np.ones((4, 1)), np.zeros(1)])
        model.fit(X, Y, epochs=3, shuffle=False, batch_size=2, callbacks=swap, verbose=0)
        return model

    plain, swapped = trained([]), trained([callbacks.SwapEMAWeights(swap_on_epoch=True)])
    for a, b in zip(plain.get_weights(), swapped.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    model = linear(optimizer=keras.optimizers.SGD(0.1, use_ema=True))
    for _ in range(3):
        model.train_on_batch(X, Y)
    before = model.get_weights()
    averages = [average.numpy() for _, average in model.optimizer.averages()]
    swap = callbacks.SwapEMAWeights()
    found = model.predict(X, callbacks=[swap], verbose=0)
    np.testing.assert_allclose(found, X @ averages[0] + averages[1], rtol=1e-5, atol=1e-6)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="use_ema=True"):
        linear().evaluate(X, Y, callbacks=[swap], verbose=0)


# -- data ------------------------------------------------------------------------------------------


class Squares(keras.utils.PyDataset):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[int] = []
        self.ends = 0

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        self.taken.append(index)
        return X[2 * index : 2 * index + 2], Y[2 * index : 2 * index + 2]

    def on_epoch_end(self) -> None:
        self.ends += 1


def test_batches_that_python_computes() -> None:
    model, data = linear(), Squares()
    model.fit(data, epochs=2, shuffle=False, verbose=0)
    assert data.taken == [*range(5), *range(5)] and data.ends == 2
    data.taken.clear()
    model.fit(data, verbose=0)
    assert sorted(data.taken) == [*range(5)]
    assert model.evaluate(data, verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0))
    assert keras.utils.Sequence is keras.utils.PyDataset


# -- steps and metrics of ones own -----------------------------------------------------------------


class TwoStyles(keras.Model):
    """`train_step` as programs of TF 2 write it."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with td.GradientTape() as tape:
            pred = self(x, training=True)
            loss = self.compiled_loss(y, pred, regularization_losses=self.losses)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        self.compiled_metrics.update_state(y, pred)
        return {m.name: m.result() for m in self.metrics}


def test_steps_of_tf_2() -> None:
    model = TwoStyles()
    model.compile("sgd", "mse", metrics=["mae"])
    found = model.fit(X, Y, batch_size=5, shuffle=False, verbose=0).history
    again = linear(metrics=["mae"])
    assert set(found) == {"loss", "mae"} and found["loss"][0] > 0
    assert again.compiled and not again.run_eagerly


class Tracking(keras.Model):
    """Metrics in attributes, and steps as programs of Keras 3 write them."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1, kernel_initializer="ones")
        self.followed = keras.metrics.Mean(name="followed")

    def call(self, x: Any) -> Any:
        y = self.dense(x)
        self.add_metric(td.reduce_sum(y), name="total")
        self.add_loss(td.reduce_mean(y) * 0.0)
        return y

    def test_step(self, data: Any) -> Any:
        x, y = data
        pred = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=pred)
        self.followed.update_state(loss)
        return self.compute_metrics(x=x, y=y, y_pred=pred)


def test_metrics_in_attributes() -> None:
    model = Tracking()
    model.compile("sgd", "mse")
    found = model.evaluate(X, Y, batch_size=5, return_dict=True, verbose=0)
    assert list(found) == sorted(found)  # as Keras has them
    sums = X.sum(-1, keepdims=True)
    np.testing.assert_allclose(found["followed"], ((sums - Y) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["total"], sums.sum() / 2, rtol=1e-4, atol=1e-5)
    assert [m.name for m in model.metrics] == ["loss", "followed", "total"]
    model.reset_metrics()
    assert float(model.followed.result()) == 0.0


def test_functions_of_batches() -> None:
    model = linear()
    step = model.make_train_function()
    assert step is model.make_train_function() and step is not model.make_train_function(True)
    logs = model.make_test_function()((td.constant(X), td.constant(Y)))
    assert float(logs["loss"]) == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)
    assert model.make_predict_function()(td.constant(X)).shape == (10, 1)
    # Each of these functions of one batch lets the metrics start anew.
    assert model.train_on_batch(X, Y, class_weight={0: 0.0, 1: 0.0, -1: 0.0}) == 0.0
    alone = model.test_on_batch(X, Y)
    assert alone == model.test_on_batch(X, Y) == pytest.approx(float(logs["loss"]), rel=1e-5)


def test_several_outputs_are_named_in_errors() -> None:
    a = keras.Input((4,))
    model = keras.Model(a, [layers.Dense(1, name="p")(a), layers.Dense(1, name="q")(a)])
    model.compile("sgd", {"p": "mse", "r": "mse"})
    with pytest.raises(ValueError, match=r"No output is called \['r'\].*\['p', 'q'\]"):
        model.fit(X, [Y, Y], verbose=0)
    model.compile("sgd", "mse", metrics=["mae", "mse", "mape"])
    with pytest.raises(ValueError, match="3 entries of metrics for 2 outputs"):
        model.fit(X, [Y, Y], verbose=0)
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"2 outputs \(p, q\)"):
        model.fit(X, Y, verbose=0)
    assert set(model.fit(X, [Y, Y], verbose=0).history) == {"loss", "p_loss", "q_loss"}


def test_batches_of_arrays() -> None:
    inputs = {"a": np.arange(10.0), "b": [np.arange(20).reshape(10, 2)]}
    labels = np.arange(10, dtype=np.int16)

    def passes(seed: int, **options: Any) -> list[Any]:
        td.random.set_seed(seed)
        found = Arrays((inputs, labels), 4, **options)
        return [list(found), list(found)]

    first, second = passes(1, shuffle=True)
    for batches in (first, second):
        assert [len(y) for _, y in batches] == [4, 4, 2] and {y.dtype for _, y in batches} == {
            labels.dtype
        }
        for x, y in batches:
            np.testing.assert_array_equal(x["a"], y)
            np.testing.assert_array_equal(x["b"][0], np.stack([2 * y, 2 * y + 1], 1))
        assert sorted(np.concatenate([y for _, y in batches])) == list(range(10))
    orders = [[y.tolist() for _, y in batches] for batches in (first, second)]
    assert orders[0] != orders[1]
    again = [[y.tolist() for _, y in batches] for batches in passes(1, shuffle=True)]
    assert again == orders
    (x, y), *_ = passes(1, shuffle=False)[0]
    assert np.shares_memory(y, labels) and y.tolist() == [0, 1, 2, 3]
    (alone, _) = Arrays((labels,), 5, False)
    assert alone.tolist() == [0, 1, 2, 3, 4]


def test_compiled_steps_read_arrays_where_they_lie() -> None:
    one, double = np.ones((2, 3), np.float32), np.ones((2, 1))
    assert as_arguments((one, one))[0] is one
    x, (y, z) = as_arguments((one, [double, 2]))
    assert x is one and y.dtype == np.float32 and isinstance(z, td.Tensor)
    assert isinstance(as_arguments(td.constant(X)), td.Tensor)
    assert all(isinstance(leaf, td.Tensor) for leaf in as_tensors((one, double)))
    model = linear()
    expected = model.evaluate(X, Y, verbose=0)
    assert model.evaluate(X.astype(np.float64), Y.astype(np.float64), verbose=0) == expected
    assert model.evaluate(np.asfortranarray(X), Y, verbose=0) == expected


def test_lines_have_the_rate_last(capsys: Any) -> None:
    model = linear(metrics=["mae"])
    plateau = callbacks.ReduceLROnPlateau()
    history = model.fit(X, Y, validation_data=(X, Y), verbose=2, callbacks=[plateau])
    names = [part.split(":")[0] for part in capsys.readouterr().out.strip().split(" - ")[3:]]
    assert names == ["loss", "mae", "val_loss", "val_mae", "learning_rate"]
    assert list(history.history) == names
