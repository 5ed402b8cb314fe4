"""Programs whose results are recorded from TensorFlow and then expected of treadle.

Every case takes the module under test (`tensorflow` or `treadle`) and gives nested lists of
numbers. Inputs are made by formula, so only the results are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Case = Any


def wave(*shape: int, phase: float = 0.0, dtype: str = "float32") -> Any:
    """Smooth numbers in [-1, 1] without ties."""
    return np.sin(1.7 * np.arange(np.prod(shape)) + phase).reshape(shape).astype(dtype)


# -- optimizers: three steps on two weights --------------------------------------------------------

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "sgd momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"learning_rate": 0.01}),
    "adam settings": ("Adam", {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 0.1}),
    "adam amsgrad": ("Adam", {"learning_rate": 0.1, "amsgrad": True}),
    "adam decay": ("Adam", {"learning_rate": 0.1, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.05}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.1}),
    "rmsprop momentum": ("RMSprop", {"learning_rate": 0.1, "momentum": 0.5}),
    "rmsprop centered": ("RMSprop", {"learning_rate": 0.1, "centered": True, "momentum": 0.5}),
    "adagrad": ("Adagrad", {"learning_rate": 0.1}),
    "clipnorm": ("SGD", {"learning_rate": 0.1, "clipnorm": 0.5}),
    "clipvalue": ("SGD", {"learning_rate": 0.1, "clipvalue": 0.25}),
    "global_clipnorm": ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
}
SCHEDULES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "exponential": ("ExponentialDecay", [0.1, 10, 0.5], {}),
    "staircase": ("ExponentialDecay", [0.1, 10, 0.5], {"staircase": True}),
    "piecewise": ("PiecewiseConstantDecay", [[5, 15], [1.0, 0.5, 0.1]], {}),
    "cosine": ("CosineDecay", [0.1, 20], {"alpha": 0.1}),
}


def optimizer(tf: Any, name: str) -> Any:
    kind, settings = OPTIMIZERS[name]
    opt = getattr(tf.keras.optimizers, kind)(**settings)
    weights = [tf.Variable(wave(3)), tf.Variable(wave(2, 2, phase=1.0))]
    steps = []
    for step in range(3):
        grads = [wave(3, phase=2.0 + step), wave(2, 2, phase=3.0 * step)]
        opt.apply_gradients([(tf.constant(g), w) for g, w in zip(grads, weights, strict=True)])
        steps.append([w.numpy().tolist() for w in weights])
    return steps


def schedule(tf: Any, name: str) -> Any:
    kind, args, settings = SCHEDULES[name]
    rate = getattr(tf.keras.optimizers.schedules, kind)(*args, **settings)
    return [float(rate(tf.constant(step))) for step in (0, 1, 5, 6, 15, 16, 30)]


# -- losses and metrics ----------------------------------------------------------------------------

CLASSES = np.array([2, 0, 1])
ONE_HOT = np.eye(3, dtype="float32")[CLASSES]


def probabilities() -> Any:
    e = np.exp(wave(3, 3))
    return (e / e.sum(-1, keepdims=True)).astype("float32")


def loss_inputs(name: str) -> tuple[Any, Any]:
    if name.startswith("Sparse"):
        return CLASSES, wave(3, 3)
    if name.startswith("Categorical"):
        return ONE_HOT, wave(3, 3)
    if name.startswith("Binary"):
        return (wave(3, 2) > 0).astype("float32"), wave(3, 2, phase=1.0)
    if name.startswith("KL"):
        return np.roll(probabilities(), 1, axis=0), probabilities()
    return wave(3, 2), 2 * wave(3, 2, phase=1.0)


LOSSES: dict[str, dict[str, Any]] = {
    "SparseCategoricalCrossentropy": {"from_logits": True},
    "SparseCategoricalCrossentropy ignore": {"from_logits": True, "ignore_class": 0},
    "CategoricalCrossentropy": {"from_logits": True},
    "CategoricalCrossentropy smooth": {"from_logits": True, "label_smoothing": 0.1},
    "BinaryCrossentropy": {"from_logits": True},
    "BinaryCrossentropy smooth": {"from_logits": True, "label_smoothing": 0.2},
    "MeanSquaredError": {},
    "MeanAbsoluteError": {},
    "Huber": {},
    "Huber delta": {"delta": 0.5},
    "LogCosh": {},
    "KLDivergence": {},
    "Hinge": {},
}
PROBABILITY_LOSSES = (
    "SparseCategoricalCrossentropy", "CategoricalCrossentropy", "BinaryCrossentropy",
)  # fmt: skip


def loss(tf: Any, name: str) -> Any:
    kind, settings = name.split()[0], LOSSES[name]
    true, pred = loss_inputs(name)
    result = []
    for reduction in ("sum_over_batch_size", "sum", "none"):
        fn = getattr(tf.keras.losses, kind)(reduction=reduction, **settings)
        result.append(np.asarray(fn(true, tf.constant(pred))).tolist())
    fn = getattr(tf.keras.losses, kind)(**settings)
    weights = np.array([0.5, 2.0, 1.0], "float32")
    result.append(float(fn(true, tf.constant(pred), sample_weight=weights)))
    x = tf.constant(pred)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = fn(true, x)
    result.append(np.asarray(tape.gradient(value, x)).tolist())
    return result


def probability_loss(tf: Any, name: str) -> Any:
    true, _ = loss_inputs(name)
    pred = probabilities() if not name.startswith("Binary") else np.abs(wave(3, 2))
    pred = pred.copy()
    pred[0, 0] = 0.0  # its logarithm is kept finite
    return float(getattr(tf.keras.losses, name)()(true, tf.constant(pred)))


METRICS = (
    "Mean", "Sum", "Accuracy", "SparseCategoricalAccuracy", "CategoricalAccuracy",
    "BinaryAccuracy", "RootMeanSquaredError", "SparseCategoricalCrossentropy",
)  # fmt: skip


def metric(tf: Any, name: str) -> Any:
    m = getattr(tf.keras.metrics, name)()
    values = []
    for phase in (0.0, 1.0):
        pred = np.exp(wave(3, 3, phase=phase))
        pred /= pred.sum(-1, keepdims=True)
        for weight in (None, np.array([0.5, 0.0, 2.0], "float32")):
            if name in ("Mean", "Sum"):
                m.update_state(wave(3, phase=phase), sample_weight=weight)
            elif name.startswith("Sparse"):
                m.update_state(CLASSES, pred, sample_weight=weight)
            elif name.startswith("Categorical"):
                m.update_state(ONE_HOT, pred, sample_weight=weight)
            elif name == "Accuracy":
                m.update_state(CLASSES, np.array([2, 1, 1]), sample_weight=weight)
            else:
                m.update_state(ONE_HOT, pred, sample_weight=weight)
            values.append(float(m.result()))
    m.reset_state()
    return [*values, float(m.result())]


# -- layers: outputs with weights by formula -------------------------------------------------------

LAYERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "dense": ("Dense", {"units": 4, "activation": "relu"}, (3, 5)),
    "dense 3d": ("Dense", {"units": 2, "activation": "tanh"}, (2, 3, 4)),
    "dense no bias": ("Dense", {"units": 2, "use_bias": False}, (3, 4)),
    "conv valid": ("Conv2D", {"filters": 3, "kernel_size": 3}, (2, 5, 6, 2)),
    "conv same stride": (
        "Conv2D", {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"}, (2, 5, 6, 2),
    ),
    "conv dilated": ("Conv2D", {"filters": 2, "kernel_size": 2, "dilation_rate": 2}, (1, 5, 5, 2)),
    "conv groups": ("Conv2D", {"filters": 4, "kernel_size": 2, "groups": 2}, (1, 4, 4, 4)),
    "depthwise": (
        "DepthwiseConv2D", {"kernel_size": 2, "depth_multiplier": 2, "padding": "same"},
        (1, 4, 4, 3),
    ),
    "max pool": ("MaxPooling2D", {}, (2, 5, 6, 2)),
    "max pool same": (
        "MaxPooling2D", {"pool_size": 3, "strides": 2, "padding": "same"}, (2, 5, 6, 2),
    ),
    "avg pool same": (
        "AveragePooling2D", {"pool_size": 3, "strides": 2, "padding": "same"}, (2, 5, 6, 2),
    ),
    "global avg": ("GlobalAveragePooling2D", {}, (2, 3, 4, 2)),
    "global max keep": ("GlobalMaxPooling2D", {"keepdims": True}, (2, 3, 4, 2)),
    "batch norm": ("BatchNormalization", {}, (4, 3)),
    "batch norm axis 1": ("BatchNormalization", {"axis": 1, "momentum": 0.5}, (2, 3, 2, 2)),
    "layer norm": ("LayerNormalization", {}, (2, 3, 4)),
    "layer norm axes": ("LayerNormalization", {"axis": [1, 2], "epsilon": 0.1}, (2, 3, 4)),
    "flatten": ("Flatten", {}, (2, 3, 4)),
    "reshape": ("Reshape", {"target_shape": (2, -1)}, (2, 3, 4)),
    "permute": ("Permute", {"dims": (2, 1)}, (2, 3, 4)),
    "softmax": ("Softmax", {"axis": 1}, (2, 3)),
    "relu": ("ReLU", {"max_value": 0.5, "negative_slope": 0.1, "threshold": 0.2}, (3, 3)),
    "leaky": ("LeakyReLU", {}, (3, 3)),
}  # fmt: skip


def layer(tf: Any, name: str) -> Any:
    """Weight names and shapes, output, gradients of a weighted sum, output at inference."""
    kind, settings, shape = LAYERS[name]
    made = getattr(tf.keras.layers, kind)(**settings)
    x = tf.constant(wave(*shape))
    made(x)
    for n, weight in enumerate(made.weights):
        weight.assign(np.abs(wave(*weight.shape, phase=float(n))) + 0.1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = made(x, training=True)
        total = tf.reduce_sum(y * wave(*y.shape, phase=4.0))
    grads = tape.gradient(total, [x, *made.trainable_weights])
    statistics = [np.asarray(w).tolist() for w in made.non_trainable_weights]
    return [
        [list(w.shape) for w in made.weights],
        np.asarray(y).tolist(),
        [np.asarray(g).tolist() for g in grads],
        statistics,
        np.asarray(made(x)).tolist(),
    ]


def cases() -> dict[str, tuple[Any, str]]:
    """Fact name -> (function, case name)."""
    groups = {
        "optimizer": (optimizer, OPTIMIZERS),
        "schedule": (schedule, SCHEDULES),
        "loss": (loss, LOSSES),
        "probability_loss": (probability_loss, PROBABILITY_LOSSES),
        "metric": (metric, METRICS),
        "layer": (layer, LAYERS),
    }
    return {
        f"{group}: {name}": (fn, name) for group, (fn, names) in groups.items() for name in names
    }
