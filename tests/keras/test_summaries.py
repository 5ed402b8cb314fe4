"""What ``model.summary()`` prints is what Keras 3.15 prints (``summaries.txt``), and which names of
Keras 2 models and layers say what takes their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import layers, ops

EXPECTED = (Path(__file__).parent / "summaries.txt").read_text()


def summaries() -> Iterator[Callable[[], None]]:
    """The models that Keras was asked about, in this order."""
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    h = layers.Dense(5, name="h")(a)
    x = ops.relu(h) + 1.0
    y = ops.concatenate([x, b], -1)
    functional = keras.Model([a, b], layers.Dense(2, name="out")(y) * 2.0, name="fun")
    yield functional.summary
    yield lambda: functional.summary(line_length=60)
    sequential = keras.Sequential(
        [keras.Input((4,)), layers.Dense(3, name="d1"), layers.Dropout(0.5, name="dr")], name="seq"
    )
    yield sequential.summary
    yield keras.Sequential([layers.Dense(3, name="d1")], name="unb").summary
    i = keras.Input((4,), name="i")
    nested = keras.Model(i, layers.Dense(1, name="z")(sequential(i)), name="nest")
    yield nested.summary
    yield lambda: nested.summary(expand_nested=True, show_trainable=True)
    nested.compile("adam", "mse")
    nested.fit(np.ones((8, 4)), np.ones((8, 1)), verbose=0)
    yield nested.summary


def test_as_keras_prints_them(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    keras.utils.clear_session()
    for show in summaries():
        show()
    assert capsys.readouterr().out == EXPECTED


def test_a_part_of_the_layers() -> None:
    first, *_ = summaries()
    texts: list[str] = []
    first.__self__.summary(print_fn=texts.append, layer_range=("h", "add.*"))  # type: ignore[attr-defined]
    shown = [name for name in ("a (", "h (", "relu", "out (") if f"│ {name}" in texts[0]]
    assert shown == ["h (", "relu"]
    with pytest.raises(ValueError, match="do not match"):
        first.__self__.summary(layer_range=("h", "nothing"))  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="width"):
        first.__self__.summary(line_length=12)  # type: ignore[attr-defined]


def test_names_of_keras_2_say_what_to_use() -> None:
    model, layer = keras.Sequential([layers.Dense(1)]), layers.Dense(1)
    for owner, name, hint in [
        (model, "fit_generator", "use fit|fit takes generators"),
        (model, "predict_classes", "argmax"),
        (model, "state_updates", "assign to variables"),
        (layer, "add_metric", "compile"),
        (layer, "inbound_nodes", "steps of keras.Model"),
        (layers.LSTM(1), "add_update", "assign to variables"),
    ]:
        with pytest.raises(AttributeError, match=hint):
            getattr(owner, name)
        assert not hasattr(owner, name)
    with pytest.raises(AttributeError, match="'Dense' object has no attribute 'nothing'"):
        layer.nothing
    with pytest.raises(AttributeError, match="use LSTM"):
        td.keras.layers.CuDNNLSTM
    with pytest.raises(AttributeError, match="MirroredStrategy"):
        td.keras.utils.multi_gpu_model


def test_a_property_says_itself_why_it_has_no_value() -> None:
    class Own(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(AttributeError, match="defines its own call"):
        _ = Own().inputs
