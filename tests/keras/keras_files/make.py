"""Writes the files of this folder with Keras 3.15.

    TF_CPP_MIN_LOG_LEVEL=3 PYTHONPATH=. python tests/keras/keras_files/make.py

For each model of `saved_models` an archive, and a file of NumPy with inputs and outputs.
"""

import os
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np

from tests.keras.saved_models import LEGACY, models, subclassed

HERE = Path(__file__).parent
random = np.random.default_rng(0)


def inputs(model):
    found = []
    for tensor in model.inputs:
        shape = (2, *tensor.shape[1:])
        whole = tensor.dtype == "int32"
        found.append(random.integers(0, 10, shape) if whole else random.normal(size=shape))
    return [x.astype(t.dtype) for x, t in zip(found, model.inputs)]


def trained(model, x, y):
    model.fit(x, y, epochs=2, verbose=0)
    return [np.asarray(v) for v in model.optimizer.variables]


def keras2():
    """A model that is written as Keras 2 did."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((3,)), layers.Dense(4), layers.Dropout(0.1), layers.BatchNormalization(),
        keras.Sequential([layers.Dense(2)]),
    ])  # fmt: skip
    model(np.zeros((1, 3)))
    model.set_weights([random.uniform(0.1, 1.0, w.shape) for w in model.get_weights()])
    return model


TABLE = {
    "f": [0.0, 0.1, 0.2, 0.3], "n": [1.0, 2.0, 3.0, 4.0], "s": ["a", "b", "c", "a"],
    "i": [0, 1, 2, 3], "d": [1.0, 2.0, 3.0, 4.0],
}  # fmt: skip


def feature_space():
    """What prepares the columns of a table."""
    kinds = {
        "f": "float", "n": "float_normalized", "s": "string_categorical",
        "i": keras.utils.FeatureSpace.integer_hashed(8), "d": "float_discretized",
    }  # fmt: skip
    space = keras.utils.FeatureSpace(kinds, crosses=[("s", "i")])
    space.adapt(TABLE)
    return space


def legacy():
    """Whole models in files as Keras 2 had them, of the archives."""
    for name in LEGACY:
        keras.models.load_model(HERE / f"{name}.keras").save(HERE / f"{name}.h5")


if __name__ == "__main__":
    keras.utils.set_random_seed(7)
    for name, model in models(keras):
        x = inputs(model)
        x = x[0] if len(x) == 1 else x
        targets = keras.tree.map_structure(lambda t: random.normal(size=t.shape), model.predict(x))
        state = trained(model, x, targets)
        model.save(HERE / f"{name}.keras")
        given = {f"x{i}": v for i, v in enumerate(x if isinstance(x, list) else [x])}
        found = keras.tree.flatten(model.predict(x, verbose=0))
        outputs = {f"y{i}": v for i, v in enumerate(found)}
        kept = {f"state{i}": v for i, v in enumerate(state)}
        np.savez_compressed(HERE / f"{name}.npz", **given, **outputs, **kept)
    legacy()
    space = feature_space()
    space.save(HERE / "feature_space.keras")
    np.save(HERE / "feature_space.npy", np.asarray(space(TABLE)))
    model, x = keras2(), random.normal(size=(2, 3))
    model.save(HERE / "keras2.h5")
    np.savez_compressed(HERE / "keras2.npz", x0=x, y0=model.predict(x, verbose=0))
    model, x = subclassed(keras), random.normal(size=(3, 2)).astype("float32")
    model(x)
    model.save_weights(HERE / "subclassed.weights.h5")
    np.savez_compressed(HERE / "subclassed.npz", x0=x, y0=model.predict(x, verbose=0))
