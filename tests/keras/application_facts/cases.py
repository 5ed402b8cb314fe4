"""Applications whose layers, weights and descriptions are recorded from Keras and then expected.

`fingerprint` is what is compared of all; of `SMALL` the results, a gradient and a few losses of
training. Weights and images are made by formula.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

STEPS = 3
_FAMILIES = {
    "VGG": "16 19", "ResNet": "50 101 152 50V2 101V2 152V2", "DenseNet": "121 169 201",
    "Xception": "", "InceptionV3": "", "InceptionResNetV2": "", "MobileNet": "",
    "MobileNetV2": "", "MobileNetV3": "Small Large", "EfficientNet": "B0 B1 B2 B3 B4 B5 B6 B7",
    "EfficientNetV2": "B0 B1 B2 B3 S M L", "NASNet": "Mobile Large",
    "ConvNeXt": "Tiny Small Base Large XLarge",
}  # fmt: skip
NAMES = [
    f"{family}{kind}" for family, kinds in _FAMILIES.items() for kind in kinds.split() or [""]
]
_EACH = [
    "VGG16", "ResNet50", "ResNet50V2", "DenseNet121", "Xception", "InceptionV3",
    "InceptionResNetV2", "MobileNet", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0",
    "EfficientNetV2B0", "EfficientNetV2S", "NASNetMobile", "ConvNeXtTiny",
]  # fmt: skip
_OPEN = {"include_top": False}

# Calls of applications: the name and the arguments besides ``weights=None``.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in NAMES},
    **{f"{name}/open": (name, {**_OPEN, "pooling": "avg"}) for name in _EACH},
    "VGG16/seven": ("VGG16", {"classes": 7, "input_shape": (40, 33, 1)}),
    "VGG19/max": ("VGG19", {**_OPEN, "pooling": "max", "name": "own"}),
    "ResNet50/logits": ("ResNet50", {"classifier_activation": None, "classes": 2}),
    "DenseNet121/max": ("DenseNet121", {**_OPEN, "pooling": "max", "input_shape": (64, 64, 3)}),
    "Xception/max": ("Xception", {**_OPEN, "pooling": "max", "input_shape": (75, 80, 3)}),
    "InceptionV3/any": ("InceptionV3", {**_OPEN, "input_shape": (None, None, 3)}),
    "MobileNet/quarter": ("MobileNet", {"alpha": 0.25, "depth_multiplier": 2, "dropout": 0.5}),
    "MobileNetV2/wide": ("MobileNetV2", {"alpha": 1.4, "input_shape": (96, 96, 3)}),
    "MobileNetV2/narrow": ("MobileNetV2", {"alpha": 0.35, "input_shape": (65, 33, 3)}),
    "MobileNetV3Small/plain": (
        "MobileNetV3Small", {"minimalistic": True, "alpha": 0.75, "input_shape": (32, 64, 3)},
    ),
    "MobileNetV3Large/plain": (
        "MobileNetV3Large", {"minimalistic": True, "alpha": 1.5, "include_preprocessing": False},
    ),
    "EfficientNetB0/gray": ("EfficientNetB0", {**_OPEN, "input_shape": (33, 40, 1)}),
    "EfficientNetV2B0/raw": ("EfficientNetV2B0", {**_OPEN, "include_preprocessing": False}),
    "EfficientNetV2B1/gray": ("EfficientNetV2B1", {**_OPEN, "input_shape": (33, 40, 1)}),
    "NASNetMobile/small": ("NASNetMobile", {"classes": 3, "input_shape": (65, 47, 3)}),
    "ConvNeXtTiny/raw": (
        "ConvNeXtTiny", {**_OPEN, "include_preprocessing": False, "pooling": "max"},
    ),
}  # fmt: skip

# Those that are run: the arguments, and the shape of the images.
_FEW = {"include_top": False, "pooling": "avg"}
SMALL: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "VGG16": ("VGG16", _FEW, (2, 32, 32, 3)),
    "ResNet50": ("ResNet50", _FEW, (1, 32, 32, 3)),
    "ResNet50V2": ("ResNet50V2", {"classes": 5, "input_shape": (32, 32, 3)}, (1, 32, 32, 3)),
    "MobileNet": (
        "MobileNet", {"alpha": 0.25, "classes": 5, "input_shape": (64, 64, 3), "dropout": 0.0},
        (4, 64, 64, 3),
    ),
    "MobileNetV2": ("MobileNetV2", {**_FEW, "alpha": 0.35}, (2, 33, 32, 3)),
    "MobileNetV3Small": (
        "MobileNetV3Small", {"alpha": 0.75, "classes": 5, "dropout_rate": 0.0}, (4, 64, 64, 3),
    ),
    "EfficientNetB0": ("EfficientNetB0", _FEW, (1, 32, 32, 3)),
    "EfficientNetV2B0": ("EfficientNetV2B0", _FEW, (1, 32, 32, 3)),
}  # fmt: skip
TRAINED = ("MobileNetV3Small",)

# What Keras's configurations have for mechanisms that are not supported here, and dtypes, which are
# those of the configured policy.
_UNKNOWN = {
    "quantization_config", "renorm", "renorm_clipping", "renorm_momentum", "synchronized",
    "rms_scaling", "activity_regularizer", "dtype", "optional", "sparse", "ragged", "trainable",
    "training", "build_config", "compile_config", "build_input_shape", "registered_name", "module",
}  # fmt: skip


def plain(config: Any) -> Any:
    """A configuration without what differs in form only."""
    if isinstance(config, dict):
        if set(config) >= {"class_name", "config"} and "Policy" in str(config["class_name"]):
            return None
        known = {key: v for key, v in config.items() if key not in _UNKNOWN and v is not None}
        if isinstance(known.get("axis"), list) and len(known["axis"]) == 1:
            known["axis"] = known["axis"][0]  # as layer normalization has it when it is built
        return {key: plain(v) for key, v in known.items()}
    if isinstance(config, list | tuple):
        return [plain(v) for v in config]
    return config


def parts(model: Any) -> Iterator[tuple[str, Any]]:
    """What is compared of a model, each with a name."""
    yield "name", model.name
    yield "layers", [[layer.name, type(layer).__name__] for layer in model.layers]
    yield "weights", [[list(w.shape), w.trainable] for w in model.weights]
    yield "shapes", [list(model.input_shape), list(model.output_shape)]
    yield "config", plain(json.loads(model.to_json())["config"])


def fingerprint(model: Any) -> dict[str, Any]:
    """The number of weights, and short hashes of the parts."""
    found = {"count": model.count_params()}
    for name, value in parts(model):
        text = json.dumps(value, sort_keys=True)
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
    return found


def fill(model: Any) -> None:
    """Give the weights values by formula, of about the size that keeps results in bounds."""
    arrays, before = [], model.get_weights()
    for number, weight in enumerate(model.weights):
        shape = tuple(weight.shape)
        wave = np.sin(1.7 * np.arange(int(np.prod(shape))) + number).reshape(shape)
        if len(shape) > 1:
            arrays.append(wave * np.sqrt(4.0 / np.prod(shape[:-1])))
        elif not shape:
            arrays.append(np.zeros(shape))
        else:
            arrays.append(0.1 * wave + (1.0 if _positive(weight) else 0.0))
    model.set_weights([a.astype(b.dtype) for a, b in zip(arrays, before, strict=True)])


def _positive(weight: Any) -> bool:
    name = weight.name.split("/")[-1].split(":")[0]
    return name in ("gamma", "moving_variance", "variance")


def images(shape: tuple[int, ...]) -> Any:
    """Pixels in 0 ... 255."""
    wave = np.sin(0.37 * np.arange(np.prod(shape)) ** 1.3)
    return np.round(127.5 * (wave + 1)).reshape(shape).astype("float32")


def losses_of(tf: Any, model: Any, shape: tuple[int, ...]) -> tuple[list[float], Any]:
    """Losses of a few steps of training, and the gradient of the first weights."""
    x = tf.constant(images(shape) / 128 - 1)
    y = np.arange(shape[0]) % model.output_shape[-1]
    compute = tf.keras.losses.SparseCategoricalCrossentropy()
    optimizer = tf.keras.optimizers.SGD(0.001)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = compute(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients[0]

    found = [step() for _ in range(STEPS)]
    return [float(loss) for loss, _ in found], np.ravel(found[0][1])[:20]
