"""Runs models in one library, and writes what they give: see the package."""

from __future__ import annotations

import argparse
import importlib
import pickle
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.keras.random_models.models import build, data_of, weights_of

NOISY = {"Dropout", "GaussianNoise", "AlphaDropout", "SpatialDropout1D", "SpatialDropout2D"}


def arrays(tf: Any, values: Any) -> list[Any]:
    return [
        None if v is None else np.asarray(tf.convert_to_tensor(v)) for v in tf.nest.flatten(values)
    ]


def ran(tf: Any, seed: int, folder: Path) -> dict[str, Any]:
    """Results, gradients and a training of a model, and its files."""
    keras = tf.keras
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model = build(keras, seed)
    model.set_weights(weights_of(model, seed))
    x = data_of(model, seed)
    found = {
        "layers": [type(layer).__name__ for layer in model.layers], "x": x,
        "called": arrays(tf, model(x)), "predicted": arrays(tf, model.predict(x, verbose=0)),
    }  # fmt: skip
    given = [tf.constant(part) for part in tf.nest.flatten(x)]
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = tf.nest.flatten(model(given if len(given) > 1 else given[0]))
        terms = [tf.reduce_mean(tf.square(y - 0.3)) for y in outputs]
        loss = tf.add_n([*terms, *model.losses])
    found["gradients"] = arrays(
        tf, [loss, *tape.gradient(loss, [*given, *model.trainable_variables])]
    )
    optimizer = ["sgd", "adam", "rmsprop", "adagrad"][seed % 4]
    model.compile(optimizer, "mse")
    if not NOISY.intersection(found["layers"]) and model.trainable_variables:
        y = [np.full(v.shape, 0.3, np.float32) for v in found["called"]]
        history = model.fit(
            x, y if len(y) > 1 else y[0], epochs=3, batch_size=2, shuffle=False, verbose=0
        )
        found["losses"] = [np.array(history.history["loss"])]
        found["trained"] = [np.asarray(w) for w in model.get_weights()]
        found["after"] = arrays(tf, model.predict(x, verbose=0))
    else:
        found["after"] = found["predicted"]
    again = keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    found["again"] = arrays(tf, again.predict(x, verbose=0))
    found["json"] = model.to_json()
    found["files"] = {}
    for ending in (".keras", ".h5", ".weights.h5"):
        path = folder / f"{seed}{ending}"
        model.save_weights(path) if "weights" in ending else model.save(path)
        found["files"][ending] = path.read_bytes()
    prefix = tf.train.Checkpoint(model=model).write(str(folder / f"{seed}.ckpt"))
    found["files"]["checkpoint"] = {
        p.name: p.read_bytes() for p in folder.glob(f"{Path(prefix).name}*")
    }
    return found


def read(tf: Any, seed: int, other: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the other library's files of a model give here."""
    keras, found = tf.keras, {}
    keras.backend.clear_session()
    for ending in (".keras", ".h5"):
        path = folder / f"{seed}{ending}"
        path.write_bytes(other["files"][ending])
        found[ending] = tried(lambda path=path: keras.models.load_model(path), tf, other)
    weights = folder / f"{seed}.weights.h5"
    weights.write_bytes(other["files"][".weights.h5"])

    def described() -> Any:
        model = keras.models.model_from_json(other["json"])
        model.load_weights(weights)
        return model

    def restored() -> Any:
        model = keras.models.model_from_json(other["json"])
        for name, content in other["files"]["checkpoint"].items():
            (folder / name).write_bytes(content)
        prefix = str(folder / f"{seed}.ckpt")
        tf.train.Checkpoint(model=model).read(prefix).assert_existing_objects_matched()
        return model

    found[".weights.h5"] = tried(described, tf, other)
    found["checkpoint"] = tried(restored, tf, other)
    return found


def tried(make: Any, tf: Any, other: dict[str, Any]) -> Any:
    try:
        return arrays(tf, make().predict(other["x"], verbose=0))
    except Exception as error:  # any is a result
        return f"{type(error).__name__}: {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", type=Path, help="what the other library wrote")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tf = importlib.import_module(given.library)
    others = pickle.loads(given.read.read_bytes()) if given.read else {}
    results: dict[int, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for seed in range(given.first, given.end):
            try:
                if given.read is None:
                    results[seed] = ran(tf, seed, Path(name))
                elif "error" not in others[seed]:
                    results[seed] = read(tf, seed, others[seed], Path(name))
            except Exception as error:  # any is a result
                message = f"{type(error).__name__}: {error}"
                results[seed] = {"error": message, "trace": traceback.format_exc()}
            if given.out is not None:
                given.out.write_bytes(pickle.dumps(results))
    if given.read is not None:
        from tests.keras.random_models.compare import difference

        for seed, files in results.items():
            for kind, outputs in files.items():
                wrong = outputs if isinstance(outputs, str) else (
                    difference(others[seed]["after"], outputs, 1e-3))  # fmt: skip
                if wrong:
                    print(seed, kind, wrong[:300])


if __name__ == "__main__":
    main()
