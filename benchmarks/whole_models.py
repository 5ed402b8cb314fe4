"""`python -m benchmarks.whole_models`: whole Keras models, beside Keras on TensorFlow, JAX, Torch.

Every model is one text that all libraries run: treadle's `keras`, and Keras 3 with each of its
backends. A library has a new process and an empty compile cache for each model and round; it is
asked for the seconds until the first training step and the first prediction are there, which is
tracing and compiling, for the median of the steps and predictions after them, and for its greatest
memory. All start from the same weights; their first predictions must agree before figures count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import measure
from benchmarks.process import environment
from benchmarks.report import machine

CLASSES = 10
TOLERANCE = 2e-3  # of class probabilities, after up to 200 layers in float32

# What each library sets before `keras` is imported, and whether it has the model compiled by XLA.
LIBRARIES: dict[str, tuple[dict[str, str], Any]] = {
    "treadle": ({}, "auto"),
    "tensorflow": ({"KERAS_BACKEND": "tensorflow"}, False),
    "tensorflow-xla": ({"KERAS_BACKEND": "tensorflow"}, True),
    "jax": ({"KERAS_BACKEND": "jax"}, "auto"),
    "torch": ({"KERAS_BACKEND": "torch"}, "auto"),
}


# -- the models ------------------------------------------------------------------------------------


def application(name: str, size: int) -> Callable[[Any], Any]:
    """A model of `keras.applications` for pictures of size x size pixels, without weights."""

    def build(keras: Any) -> Any:
        make = getattr(keras.applications, name)
        return make(weights=None, input_shape=(size, size, 3), classes=CLASSES)

    return build


def pictures(count: int, size: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def batch() -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(1)
        x = random.uniform(0, 1, (count, size, size, 3)).astype(np.float32)
        return x, random.integers(0, CLASSES, count).astype(np.int32)

    return batch


def u_net(keras: Any) -> Any:
    """Four levels of two convolutions, with the skips of Ronneberger et al. 2015; its classes are
    those of the mean over all pixels, so that all models have the same loss."""
    layers = keras.layers

    def block(x: Any, width: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
            x = layers.BatchNormalization()(x)
            x = layers.ReLU()(x)
        return x

    inputs = keras.Input((128, 128, 3))
    x, skips = inputs, []
    for width in (16, 32, 64):
        x = block(x, width)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 128)
    for width in (64, 32, 16):
        x = layers.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([x, skips.pop()]), width)
    x = layers.Conv2D(CLASSES, 1)(x)
    x = layers.Softmax()(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, x)


WORDS, LENGTH = 5000, 128


def sentences(count: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def batch() -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(1)
        x = random.integers(0, WORDS, (count, LENGTH)).astype(np.int32)
        return x, random.integers(0, CLASSES, count).astype(np.int32)

    return batch


def encoder(keras: Any) -> Any:
    """Six encoder blocks of width 256 with 8 heads, as in Vaswani et al. 2017."""
    layers = keras.layers
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(WORDS, 256)(inputs)
    for _ in range(6):
        attended = layers.MultiHeadAttention(8, 32)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        wide = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, wide]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, layers.Dense(CLASSES, activation="softmax")(x))


def two_way_lstm(keras: Any) -> Any:
    """Two bidirectional LSTMs of 64 units over word vectors, for sentences."""
    layers = keras.layers
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(WORDS, 128)(inputs)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    x = layers.Bidirectional(layers.LSTM(64))(x)
    return keras.Model(inputs, layers.Dense(CLASSES, activation="softmax")(x))


MODELS: dict[str, tuple[Callable[[Any], Any], Callable[[], tuple[np.ndarray, np.ndarray]]]] = {
    "ResNet50, 16 of 64x64": (application("ResNet50", 64), pictures(16, 64)),
    "MobileNetV2, 16 of 96x96": (application("MobileNetV2", 96), pictures(16, 96)),
    "EfficientNetB0, 16 of 64x64": (application("EfficientNetB0", 64), pictures(16, 64)),
    "DenseNet121, 8 of 64x64": (application("DenseNet121", 64), pictures(8, 64)),
    "ConvNeXtTiny, 8 of 64x64": (application("ConvNeXtTiny", 64), pictures(8, 64)),
    "U-Net, 4 of 128x128": (u_net, pictures(4, 128)),
    "encoder of 6 blocks, 8 of 128 words": (encoder, sentences(8)),
    "two-way LSTM, 32 of 128 words": (two_way_lstm, sentences(32)),
}


# -- one process -----------------------------------------------------------------------------------


def keras_of(library: str) -> Any:
    if library == "treadle":
        from treadle import keras
    else:
        import keras
    return keras


def give_weights(model: Any) -> None:
    """The same weights in every library: normal numbers by the inputs of a unit, for the others
    (scales, moving averages, biases) those that the layers begin with."""
    random = np.random.default_rng(0)
    weights = []
    for value in model.get_weights():
        value = np.asarray(value)
        if value.ndim > 1 and value.dtype == np.float32:
            width = float(np.prod(value.shape[:-1]))
            value = random.normal(0, width**-0.5, value.shape).astype(np.float32)
        weights.append(value)
    model.set_weights(weights)


def work(library: str, name: str, seconds: float) -> dict[str, Any]:
    """Times one model in this process; times are seconds."""
    build, batch = MODELS[name]
    x, y = batch()
    keras = keras_of(library)
    started = time.perf_counter()
    model = build(keras)
    built = time.perf_counter() - started
    give_weights(model)
    model.compile(
        "adam", loss="sparse_categorical_crossentropy", jit_compile=LIBRARIES[library][1]
    )

    def step() -> Any:
        return float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0])

    def predict() -> Any:
        return np.asarray(model.predict_on_batch(x))

    started = time.perf_counter()
    prediction = predict()
    first_prediction = time.perf_counter() - started
    started = time.perf_counter()
    loss = step()
    first_step = time.perf_counter() - started
    return {
        "build": built, "first prediction": first_prediction, "first step": first_step,
        "prediction": measure(predict, seconds).median, "step": measure(step, seconds).median,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "predicted": prediction.tolist(), "loss": loss,
    }  # fmt: skip


# -- all of them -----------------------------------------------------------------------------------


def run_one(library: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a model in a new process; the error's last line where it fails."""
    python = sys.executable if library == "treadle" else options.peers_python
    command = [python, "-m", "benchmarks.whole_models", "--work", library, name]
    with tempfile.TemporaryDirectory() as cache:
        own = environment(cache, warm=False) | LIBRARIES[library][0]
        try:
            done = subprocess.run(
                [*command, str(options.seconds)], env=own, capture_output=True, text=True,
                check=False, timeout=options.limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"no result within {options.limit:g} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["?"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def agree(found: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """The greatest difference between a library's probabilities and TensorFlow's (or, without it,
    those of the first library)."""
    results = {k: np.asarray(r[0]["predicted"]) for k, r in found.items() if r}
    if not results:
        return {}
    truth = results.get("tensorflow", next(iter(results.values())))
    return {k: float(abs(r - truth).max()) for k, r in results.items()}


def row(found: dict[str, list[dict[str, Any]]], errors: dict[str, str]) -> dict[str, Any]:
    """Medians over rounds; ratios are treadle's figure over the least of the others."""
    keys = ("build", "first prediction", "first step", "prediction", "step", "MiB")
    difference = agree(found)
    libraries: dict[str, Any] = {
        library: {
            **{k: float(f"{statistics.median(r[k] for r in results):.4g}") for k in keys},
            "differs by": float(f"{difference[library]:.2g}"), "loss": results[0]["loss"],
        }
        for library, results in found.items()
    }  # fmt: skip
    right = {k: v for k, v in libraries.items() if v["differs by"] <= TOLERANCE}
    ratios = {}
    if "treadle" in right and len(right) > 1:
        for key in keys:
            best = min(v[key] for k, v in right.items() if k != "treadle")
            ratios[key] = round(right["treadle"][key] / best, 2)
    return {"libraries": libraries, "treadle / best": ratios, "errors": errors}


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        library, name, seconds = sys.argv[2:]
        print(json.dumps(work(library, name, float(seconds))))
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.whole_models", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("names", nargs="*", help="models whose name begins so (all)")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument(
        "--peers-python", default=os.environ.get("TREADLE_PEERS_PYTHON", sys.executable)
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of steps, and of predictions")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of one process")
    parser.add_argument("--out", type=Path, help="write the report to this JSON file")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for name in MODELS:
        if options.names and not name.startswith(tuple(options.names)):
            continue
        found: dict[str, list[dict[str, Any]]] = {}
        errors: dict[str, str] = {}
        for _ in range(options.rounds):
            for library in options.libraries.split(","):
                result = run_one(library, name, options)
                if "error" in result:
                    errors[library] = result["error"]
                else:
                    found.setdefault(library, []).append(result)
        rows[name] = row(found, errors)
        print(name)
        for library, figures in rows[name]["libraries"].items():
            print(f"  {library:15}", figures, flush=True)
        print("  treadle / best", rows[name]["treadle / best"], errors or "", flush=True)
        if options.out:
            report = {"what": " ".join(__doc__.split("\n\n", 1)[1].split()), "machine": machine()}
            report |= {"rounds": options.rounds, "models": rows}
            options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
