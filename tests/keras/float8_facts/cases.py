"""Floats of 8 bits, recorded from Keras and then expected of treadle.

A case takes ``keras`` of the module under test (`tensorflow` or `treadle`) and gives arrays by
names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = np.concatenate([
    np.array([0.0, -0.0, 1.0, 447.0, 448.0, 500.0, -6e4, 1e30, np.inf, -np.inf, np.nan], "f"),
    np.array([2.0**e * m for e in range(-19, 17) for m in (1.0, 1.0625, -1.1875, 1.96)], "f"),
]).astype("f")  # fmt: skip
STEPS = 30


def _of(function: str, *args: Any, **kwargs: Any) -> Any:
    def case(keras: Any) -> dict[str, Any]:
        return {"result": np.asarray(getattr(keras.quantizers, function)(*args, **kwargs))}

    return case


def _wave(*shape: int, phase: float = 0.0) -> Any:
    return np.sin(1.7 * np.arange(np.prod(shape)) + phase).reshape(shape).astype("float32")


def _trained(layers: Any, optimizer: Any, shape: Any = (8, 6), mode: str | None = None) -> Any:
    """The losses of steps of training, and what the states of the first layer are then."""

    def case(keras: Any) -> dict[str, Any]:
        model = keras.Sequential([keras.Input(shape[1:]), *layers(keras.layers)])
        given = [w for w in model.get_weights() if w.shape and w.shape != (1024,)]
        weights = [
            0.5 * _wave(*w.shape, phase=n) if len(w.shape) > 1 else w for n, w in enumerate(given)
        ]
        if mode is None:
            model.set_weights(weights)
            model.quantize("float8")
        else:
            for variable, value in zip(
                [w for w in model.weights if "scale" not in w.name and "amax" not in w.name],
                weights, strict=True,
            ):  # fmt: skip
                variable.assign(value)
        model.compile(optimizer(keras.optimizers), "mse", jit_compile=False)
        y = _wave(shape[0], model.output_shape[-1], phase=0.3)
        losses = [
            float(model.train_on_batch(_wave(*shape, phase=0.1 * n) * (1 + 0.2 * n), y))
            for n in range(STEPS)
        ]
        first = model.layers[0]
        states = {
            w.name: np.asarray(w)[:40] if len(w.shape) == 1 else np.asarray(w)
            for w in first.trainable_variables if "scale" in w.name or "amax" in w.name
        }  # fmt: skip
        given = _wave(*shape, phase=9.0)
        found = {"losses": np.array(losses), "predicted": model.predict(given, verbose=0), **states}
        return found | {"trained": np.array(len(model.trainable_weights))}

    return case


def _dense(k: Any) -> Any:
    return [k.Dense(7, "tanh", name="a"), k.Dense(3, name="b")]


def _einsum(k: Any) -> Any:
    return [k.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d", name="a"),
            k.GlobalAveragePooling1D()]  # fmt: skip


CASES: dict[str, Any] = {
    "e4m3": _of("quantize_and_dequantize", NUMBERS, 1.0, "float8_e4m3fn", "float32"),
    "e5m2": _of("quantize_and_dequantize", NUMBERS, 1.0, "float8_e5m2", "float32"),
    "e4m3 by a scale": _of("quantize_and_dequantize", NUMBERS, 0.37, "float8_e4m3fn", "float32"),
    **{
        f"scale {amax} {margin}": _of(
            "compute_float8_scale", np.float32(amax), np.float32(0.7), np.float32(448.0), margin
        )
        for amax in (0.0, 3.0, 1e4, np.inf, np.nan) for margin in (0, 2)
    },
    "history": _of("compute_float8_amax_history", NUMBERS[20:60], np.arange(6, dtype="f")),
    "dense by sgd": _trained(_dense, lambda o: o.SGD(0.05, momentum=0.9)),
    "dense by adam, clipped": _trained(_dense, lambda o: o.AdamW(0.01, global_clipnorm=0.5)),
    "dense by rmsprop": _trained(_dense, lambda o: o.RMSprop(0.01, clipvalue=0.1)),
    "einsum": _trained(_einsum, lambda o: o.SGD(0.1), (6, 4, 5)),
    "of a policy": _trained(
        lambda k: [k.Dense(4, dtype="float8_from_float32", name="a"), k.Dense(2, name="b")],
        lambda o: o.SGD(0.05), mode="policy",
    ),
}  # fmt: skip
