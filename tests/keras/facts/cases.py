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
    "adadelta": ("Adadelta", {"learning_rate": 1.0, "rho": 0.8}),
    "adamax": ("Adamax", {"learning_rate": 0.1, "beta_2": 0.9}),
    "nadam": ("Nadam", {"learning_rate": 0.1, "beta_1": 0.8}),
    "clipnorm": ("SGD", {"learning_rate": 0.1, "clipnorm": 0.5}),
    "clipvalue": ("SGD", {"learning_rate": 0.1, "clipvalue": 0.25}),
    "global_clipnorm": ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
}
SCHEDULES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "exponential": ("ExponentialDecay", [0.1, 10, 0.5], {}),
    "staircase": ("ExponentialDecay", [0.1, 10, 0.5], {"staircase": True}),
    "piecewise": ("PiecewiseConstantDecay", [[5, 15], [1.0, 0.5, 0.1]], {}),
    "inverse time": ("InverseTimeDecay", [0.1, 10, 0.5], {}),
    "inverse time staircase": ("InverseTimeDecay", [0.1, 10, 0.5], {"staircase": True}),
    "polynomial": ("PolynomialDecay", [0.1, 12, 0.01], {"power": 2.0}),
    "polynomial cycle": ("PolynomialDecay", [0.1, 12, 0.01], {"cycle": True}),
    "cosine": ("CosineDecay", [0.1, 20], {"alpha": 0.1}),
    "cosine restarts": (
        "CosineDecayRestarts", [0.1, 6], {"t_mul": 1.5, "m_mul": 0.8, "alpha": 0.1}
    ),
    "cosine restarts equal": ("CosineDecayRestarts", [0.1, 6], {"t_mul": 1.0}),
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
    if name.startswith(("KL", "Poisson", "MeanSquaredLog")):
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
    "SquaredHinge": {},
    "MeanAbsolutePercentageError": {},
    "MeanSquaredLogarithmicError": {},
    "Poisson": {},
    "CosineSimilarity": {},
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
    "BinaryAccuracy", "RootMeanSquaredError", "SparseCategoricalCrossentropy", "Precision",
    "Recall", "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy",
)  # fmt: skip


def metric(tf: Any, name: str) -> Any:
    m = getattr(tf.keras.metrics, name)(**({"k": 2} if "TopK" in name else {}))
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
            elif name in ("Precision", "Recall"):
                each = None if weight is None else weight[:, None] * np.ones(3)
                m.update_state(ONE_HOT, pred, sample_weight=each)
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
    "elu": ("ELU", {"alpha": 0.7}, (3, 3)),
    "prelu": ("PReLU", {"shared_axes": [1, 2]}, (2, 3, 3, 2)),
    "repeat": ("RepeatVector", {"n": 3}, (2, 3)),
    "conv transposed": (
        "Conv2DTranspose",
        {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"},
        (2, 3, 4, 2),
    ),
    "conv transposed valid": (
        "Conv2DTranspose", {"filters": 2, "kernel_size": (3, 2), "strides": 2, "use_bias": False},
        (2, 3, 4, 2),
    ),
    "conv transposed sparse": (
        "Conv2DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3}, (1, 3, 4, 2),
    ),
    "zero padding": ("ZeroPadding2D", {"padding": ((1, 2), (0, 3))}, (2, 3, 4, 2)),
    "cropping": ("Cropping2D", {"cropping": ((1, 0), (2, 1))}, (2, 3, 4, 2)),
    "up sampling": ("UpSampling2D", {"size": (2, 3)}, (1, 2, 3, 2)),
    "conv 1d": (
        "Conv1D", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}, (2, 6, 2),
    ),
    "conv 1d causal": (
        "Conv1D", {"filters": 2, "kernel_size": 2, "padding": "causal", "dilation_rate": 2},
        (2, 6, 2),
    ),
    "max pool 1d": ("MaxPooling1D", {}, (2, 5, 3)),
    "avg pool 1d": (
        "AveragePooling1D", {"pool_size": 3, "strides": 1, "padding": "same"}, (2, 5, 3),
    ),
    "global avg 1d": ("GlobalAveragePooling1D", {}, (2, 5, 3)),
    "global max 1d": ("GlobalMaxPooling1D", {"keepdims": True}, (2, 5, 3)),
    "simple rnn": ("SimpleRNN", {"units": 3}, (2, 4, 2)),
    "simple rnn sequences": ("SimpleRNN", {"units": 3, "return_sequences": True}, (2, 4, 2)),
    "gru": ("GRU", {"units": 3, "return_sequences": True}, (2, 4, 2)),
    "gru reset before": ("GRU", {"units": 3, "reset_after": False}, (2, 4, 2)),
    "gru backwards": ("GRU", {"units": 2, "go_backwards": True, "use_bias": False}, (2, 4, 2)),
    "lstm": ("LSTM", {"units": 3, "return_sequences": True}, (2, 4, 2)),
    "lstm unrolled": ("LSTM", {"units": 3, "unroll": True, "go_backwards": True}, (2, 4, 2)),
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


# -- layers of layers, of several inputs, and models of calls of layers ----------------------------


def bidirectional(tf: Any, mode: str) -> Any:
    layers = tf.keras.layers
    inner = layers.LSTM(2, return_sequences=True) if mode == "concat" else layers.GRU(2)
    return [layers.Bidirectional(inner, merge_mode=mode)], [wave(2, 4, 3)]


def states(tf: Any, kind: str) -> Any:
    made = getattr(tf.keras.layers, kind)(3, return_sequences=True, return_state=True)
    return [made, lambda results: tf.concat([results[0][:, -1], *results[1:]], 1)], [wave(2, 4, 2)]


def merge(tf: Any, kind: str) -> Any:
    layers = tf.keras.layers
    inputs = [wave(2, 3, 4), wave(2, 3, 4, phase=1.0)]
    if kind.startswith("Dot"):
        settings = {"axes": (2, 1)} if kind == "Dot" else {"axes": 1, "normalize": True}
        if kind == "Dot":
            inputs[1] = wave(2, 4, 5)
        return [layers.Dot(**settings)], inputs
    if kind in ("Add", "Multiply"):
        inputs[1] = wave(2, 4)
    made = layers.Concatenate(axis=1) if kind == "Concatenate" else getattr(layers, kind)()
    return [made], inputs


def steps_of_a_layer(tf: Any, name: str) -> Any:
    layers = tf.keras.layers
    if name == "TimeDistributed":
        return [layers.TimeDistributed(layers.Dense(2))], [wave(2, 3, 4)]
    return [layers.RNN(layers.LSTMCell(2), return_sequences=True)], [wave(2, 3, 4)]


WRAPPED = {
    **{f"Bidirectional {mode}": (bidirectional, mode) for mode in ("concat", "sum", "ave", "mul")},
    **{f"states of {kind}": (states, kind) for kind in ("SimpleRNN", "GRU", "LSTM")},
    **{
        kind: (merge, kind)
        for kind in (
            "Add", "Multiply", "Subtract", "Average", "Maximum", "Minimum", "Concatenate", "Dot",
            "Dot normalized",
        )
    },
    "TimeDistributed": (steps_of_a_layer, "TimeDistributed"),
    "RNN of a cell": (steps_of_a_layer, "RNN"),
}  # fmt: skip


def wrapped(tf: Any, name: str) -> Any:
    """Output and gradients, eagerly and in a function."""
    make, argument = WRAPPED[name]
    (made, *after), given = make(tf, argument)
    inputs = [tf.constant(x) for x in given]

    def run(inputs: Any) -> Any:
        results = made(inputs if len(inputs) > 1 else inputs[0])
        return after[0](results) if after else results

    run(inputs)
    for n, weight in enumerate(made.weights):
        weight.assign(wave(*weight.shape, phase=float(n)))

    def gradients(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            for x in inputs:
                tape.watch(x)
            y = run(list(inputs))
            total = tf.reduce_sum(y * wave(*y.shape, phase=4.0))
        return [y, *tape.gradient(total, [*inputs, *made.trainable_weights])]

    return [
        [np.asarray(part).tolist() for part in fn(*inputs)]
        for fn in (gradients, tf.function(gradients))
    ]


CONSTRAINTS = ("MaxNorm", "UnitNorm", "MinMaxNorm", "NonNeg")


def constraint(tf: Any, name: str) -> Any:
    return np.asarray(getattr(tf.keras.constraints, name)()(tf.constant(3 * wave(3, 4)))).tolist()


BACKEND = (
    "mean", "sum", "std", "any of bools", "dot", "binary_crossentropy", "switch", "clip",
    "convolutions", "transposed", "pools", "margins", "sizes", "batch_dot", "normalization",
    "loops", "focal", "rnn", "rnn of two",
)  # fmt: skip


def _networks(k: Any, tf: Any) -> dict[str, Any]:
    """Functions that layers were made of."""
    image, sound = tf.constant(wave(2, 6, 5, 3)), tf.constant(wave(2, 7, 3))
    volume = tf.constant(wave(1, 4, 5, 4, 2))
    deep, wide = tf.constant(wave(3, 2, 3, 2)), tf.constant(wave(1, 1, 6, 4))
    kernel = tf.constant(wave(3, 2, 3, 4))
    right = {"padding": "same", "strides": (2, 1)}
    three = tf.constant(wave(3, 2, 4)), tf.constant(wave(3, 4, 5))
    return {
        "convolutions": lambda: [
            k.conv1d(sound, tf.constant(wave(3, 3, 2)), padding="causal", dilation_rate=2),
            k.conv1d(sound, tf.constant(wave(2, 3, 2)), strides=2),
            k.conv2d(image, kernel, **right),
            k.conv2d(image, kernel, dilation_rate=(1, 2)),
            k.conv3d(volume, tf.constant(wave(2, 3, 2, 2, 3)), padding="same"),
            k.depthwise_conv2d(image, deep, padding="same"),
            k.separable_conv2d(image, deep, wide, strides=(1, 1)),
        ],
        "transposed": lambda: [
            k.conv2d_transpose(image, tf.constant(wave(3, 3, 2, 3)), (2, 12, 9, 2), (2, 2), "same"),
            k.conv2d_transpose(image, tf.constant(wave(2, 2, 4, 3)), (None, 7, 6, 4)),
        ],
        "pools": lambda: [
            k.pool2d(image, (2, 3), (2, 1), "same"), k.pool2d(image, (2, 2), pool_mode="avg"),
            k.pool3d(volume, (2, 2, 2), (1, 2, 1), "same", pool_mode="avg"),
            k.pool3d(volume, (2, 2, 2)),
        ],
        "margins": lambda: [
            k.temporal_padding(sound, (2, 1)), k.spatial_2d_padding(image, ((1, 0), (2, 1))),
            k.spatial_2d_padding(image, ((1, 0), (2, 1)), "channels_first"),
            k.spatial_3d_padding(volume),
        ],
        "sizes": lambda: [
            k.resize_images(image, 2, 3, "channels_last"),
            k.resize_images(image, 2, 1, "channels_first", "bilinear"),
            k.resize_volumes(volume, 2, 1, 3, "channels_last"),
        ],
        "batch_dot": lambda: [
            k.batch_dot(*three), k.batch_dot(three[0], three[1], (2, 1)),
            k.batch_dot(three[0][:, 0], three[1], (1, 1)), k.batch_dot(three[0], three[0], 2),
            k.batch_dot(three[0][:, 0], three[0][:, 1]),
            k.batch_dot(three[0], three[0][:, 1], (2, 1)),
            k.batch_dot(tf.constant(wave(2, 3, 4, 5)), tf.constant(wave(2, 4, 3)), (2, 1)),
        ],
        "normalization": lambda: [
            k.batch_normalization(sound, 0.1, 0.5, 0.2, 2.0),
            k.moving_average_update(k.variable([1.0, 2.0]), tf.constant([3.0, 5.0]), 0.9),
        ],
        "loops": lambda: [
            k.map_fn(lambda v: v * v, sound), k.foldl(lambda a, v: 2.0 * a + v, sound[0]),
            k.foldr(lambda a, v: 2.0 * a + v, sound[0], tf.constant([1.0, 2.0, 3.0])),
        ],
        "focal": lambda: [
            k.binary_focal_crossentropy(tf.constant([[0.0, 1.0]]), tf.constant([[0.3, 0.8]])),
            k.binary_focal_crossentropy(
                tf.constant([[0.0, 1.0]]), tf.constant([[0.3, -2.0]]), True, from_logits=True
            ),
            k.categorical_focal_crossentropy(
                tf.constant([[0.0, 1.0, 0.0]]), tf.constant([[0.2, 0.7, 0.3]])
            ),
        ],
        "rnn": lambda: _walks(k, tf, sound),
        "rnn of two": lambda: _walks(k, tf, sound, tf.constant(wave(2, 7) > -0.3)),
    }  # fmt: skip


def _walks(k: Any, tf: Any, sound: Any, mask: Any = None) -> list[Any]:
    """A step with a constant along sequences, one way and the other, in loops and written out."""

    def step(x: Any, states: Any) -> Any:
        added = tf.tanh(x + 0.5 * states[0]) * states[-1]
        return added, [added, states[1] + 1.0]

    start = [tf.constant(wave(2, 3)), tf.zeros([2, 1])]
    found = []
    for settings in (
        {}, {"go_backwards": True}, {"unroll": True, "return_all_outputs": False},
        {"zero_output_for_mask": True},
    ):  # fmt: skip
        last, outputs, states = k.rnn(
            step, sound, start, mask=mask, constants=[tf.constant(0.7)], **settings
        )
        found += [last, outputs, *states]
    return found


def backend(tf: Any, name: str) -> Any:
    k, x = tf.keras.backend, tf.constant(wave(2, 3))
    p = tf.constant(np.abs(wave(2, 3)))
    results = {
        "mean": lambda: [k.mean(x), k.mean(x, axis=1, keepdims=True)],
        "sum": lambda: [k.sum(x, axis=0)],
        "std": lambda: [k.std(x, axis=1), k.var(x)],
        "any of bools": lambda: [k.mean(x > 0)],
        "dot": lambda: [
            k.dot(x, k.transpose(x)),
            k.dot(tf.constant(wave(2, 2, 3)), k.transpose(x)),
        ],
        "binary_crossentropy": lambda: [k.binary_crossentropy(tf.cast(x > 0, "float32"), p)],
        "switch": lambda: [k.switch(tf.constant(True), x, -x), k.switch(x > 0, x, -x)],
        "clip": lambda: [k.clip(x, -0.5, 0.5), k.batch_flatten(tf.constant(wave(2, 3, 2)))],
        **_networks(k, tf),
    }
    return [np.asarray(value).tolist() for value in results[name]()]


FUNCTIONAL = ("shared layer", "two inputs", "operators", "dict of inputs", "part of a Sequential")


def functional(tf: Any, name: str) -> Any:
    """The sizes of the layers' weights in the order of the model, its shapes and its output."""
    keras, layers = tf.keras, tf.keras.layers
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    given: Any = wave(4, 3)
    if name == "shared layer":
        dense = layers.Dense(3, activation="tanh")
        model = keras.Model(a, layers.Dense(1)(dense(dense(a))))
    elif name == "two inputs":
        first, second = layers.Dense(4)(a), layers.Dense(5, activation="relu")(b)
        both = layers.Concatenate()([layers.Dense(6)(second), first])
        model = keras.Model([a, b], [layers.Dense(1)(both), first])
        given = [given, wave(4, 2)]
    elif name == "operators":
        hidden = layers.Dense(3)(a)
        model = keras.Model(inputs=a, outputs=(2.0 * hidden - a / 3.0)[:, 1:])
    elif name == "dict of inputs":
        model = keras.Model({"a": a, "b": b}, layers.Dense(1)(layers.concatenate([a, b])))
        given = {"b": wave(4, 2), "a": given}
    else:
        whole = keras.Sequential(
            [keras.Input((3,)), layers.Dense(4), layers.ReLU(), layers.Dense(1)]
        )
        model = keras.Model(whole.inputs, whole.layers[1].output)
    for n, weight in enumerate(model.weights):
        weight.assign(wave(*weight.shape, phase=float(n)))
    result = model.predict(given, verbose=0)
    results = result if isinstance(result, list | tuple) else [result]
    return [
        [list(w.shape) for w in model.weights],
        [len(layer.weights) for layer in model.layers],
        [-1 if d is None else d for d in tf.nest.flatten(model.output_shape)],
        [np.asarray(r).tolist() for r in results],
    ]


# -- cross-entropies of probabilities that round to 0 and 1 ----------------------------------------

CERTAIN = 60 * wave(3, 3)  # the logits
BITS = (wave(3, 3, phase=1.0) > 0).astype("float32")


def _custom(tf: Any, activation: str) -> Any:
    class Model(tf.keras.Model):
        def call(self, x: Any) -> Any:
            return getattr(tf.nn, activation)(x)

    return Model()


# The probabilities of logits, and the loss that is taken of them.
CERTAIN_LOSSES: dict[str, tuple[Any, Any]] = {
    "softmax, sparse": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.losses.SparseCategoricalCrossentropy()(CLASSES, p),
    ),
    "softmax, sparse, a class ignored": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.losses.SparseCategoricalCrossentropy(ignore_class=0)(CLASSES, p),
    ),
    "softmax, function": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.losses.categorical_crossentropy(ONE_HOT, p),
    ),
    "softmax, smooth": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy(label_smoothing=0.1)(ONE_HOT, p),
    ),
    "softmax along the first axis": (
        lambda tf, x: tf.keras.activations.softmax(x, axis=0),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy(axis=0)(ONE_HOT, p),
    ),
    "softmax, focal": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.losses.CategoricalFocalCrossentropy()(ONE_HOT, p),
    ),
    "sigmoid": (
        lambda tf, x: tf.keras.activations.sigmoid(x),
        lambda tf, p: tf.keras.losses.BinaryCrossentropy()(BITS, p),
    ),
    "sigmoid, smooth": (
        lambda tf, x: tf.keras.activations.sigmoid(x),
        lambda tf, p: tf.keras.losses.binary_crossentropy(BITS, p, label_smoothing=0.1),
    ),
    "sigmoid, focal": (
        lambda tf, x: tf.keras.activations.sigmoid(x),
        lambda tf, p: tf.keras.losses.BinaryFocalCrossentropy()(BITS, p),
    ),
    "sigmoid of a column, vector of labels": (
        lambda tf, x: tf.keras.activations.sigmoid(x)[:, :1],
        lambda tf, p: tf.keras.losses.BinaryCrossentropy()(BITS[:, 0], p),
    ),
    "Softmax layer": (
        lambda tf, x: tf.keras.layers.Softmax()(x),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "Softmax layer with a mask": (
        lambda tf, x: tf.keras.layers.Softmax()(x, mask=tf.constant(BITS > 2)),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "Activation layer": (
        lambda tf, x: tf.keras.layers.Activation("sigmoid")(x),
        lambda tf, p: tf.keras.losses.BinaryCrossentropy()(BITS, p),
    ),
    "reshaped": (
        lambda tf, x: tf.keras.layers.Reshape((3, 1))(tf.keras.activations.softmax(x)),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy(axis=1)(ONE_HOT[:, :, None], p),
    ),
    "in float64, loss in float32": (
        lambda tf, x: tf.keras.activations.softmax(tf.cast(x, "float64")),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "softmax of keras.ops": (
        lambda tf, x: tf.keras.ops.softmax(x),
        lambda tf, p: tf.keras.ops.categorical_crossentropy(ONE_HOT, p),
    ),
    "softmax of keras.ops, sparse": (
        lambda tf, x: tf.keras.ops.softmax(x),
        lambda tf, p: tf.keras.ops.sparse_categorical_crossentropy(CLASSES, p),
    ),
    "sigmoid of keras.ops": (
        lambda tf, x: tf.keras.ops.sigmoid(x),
        lambda tf, p: tf.keras.ops.binary_crossentropy(BITS, p),
    ),
    "softmax of the backend": (
        lambda tf, x: tf.keras.backend.softmax(x),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "softmax of nn": (
        lambda tf, x: tf.nn.softmax(x),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "softmax of nn along the first axis": (
        lambda tf, x: tf.nn.softmax(x, axis=0),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
    "sigmoid of nn": (
        lambda tf, x: tf.nn.sigmoid(x),
        lambda tf, p: tf.keras.losses.BinaryCrossentropy()(BITS, p),
    ),
    "softmax taken for binary": (
        lambda tf, x: tf.nn.softmax(x),
        lambda tf, p: tf.keras.losses.BinaryCrossentropy()(BITS, p),
    ),
    "metric": (
        lambda tf, x: tf.keras.activations.softmax(x),
        lambda tf, p: tf.keras.metrics.categorical_crossentropy(ONE_HOT, p),
    ),
    "a model's result": (
        lambda tf, x: _custom(tf, "softmax")(x),
        lambda tf, p: tf.keras.losses.CategoricalCrossentropy()(ONE_HOT, p),
    ),
}


def certain(tf: Any, name: str) -> Any:
    """The loss and its gradient by the logits, first eagerly, then in a graph."""
    activation, loss_of = CERTAIN_LOSSES[name]
    x = tf.constant(CERTAIN)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_mean(loss_of(tf, activation(tf, x)))
        return value, tape.gradient(value, x)

    results = (*step(x), *tf.function(step, autograph=False)(x))
    return [np.asarray(r).tolist() for r in results]


CERTAIN_MODELS = ("Dense", "Activation", "nested", "custom", "sigmoid", "mixed")


def certain_fit(tf: Any, name: str) -> Any:
    """Losses of three epochs of a model that is sure of wrong answers at first."""
    keras = tf.keras
    last = {
        "Dense": lambda: [keras.layers.Dense(3, "softmax", kernel_initializer="identity")],
        "Activation": lambda: [
            keras.layers.Dense(3, kernel_initializer="identity"), keras.layers.Softmax()
        ],
        "nested": lambda: [
            keras.Sequential([
                keras.Input((3,)), keras.layers.Dense(3, "softmax", kernel_initializer="identity"),
            ])
        ],
        "custom": lambda: [
            keras.layers.Dense(3, kernel_initializer="identity"), _custom(tf, "softmax")
        ],
        "sigmoid": lambda: [keras.layers.Dense(3, "sigmoid", kernel_initializer="identity")],
        "mixed": lambda: [
            keras.layers.Dense(3, kernel_initializer="identity"),
            keras.layers.Activation("softmax", dtype="float32"),
        ],
    }[name]
    model = keras.Sequential([keras.Input((3,)), *last()])
    loss = "binary_crossentropy" if name == "sigmoid" else "categorical_crossentropy"
    result = []
    for eager in (False, True):
        model.compile(keras.optimizers.SGD(0.01), loss, metrics=[loss], run_eagerly=eager)
        target = BITS if name == "sigmoid" else ONE_HOT
        found = model.fit(CERTAIN, target, epochs=3, batch_size=3, verbose=0).history
        result += [found["loss"], found[loss], model.evaluate(CERTAIN, target, verbose=0)]
    return result


def cases() -> dict[str, tuple[Any, str]]:
    """Fact name -> (function, case name)."""
    groups = {
        "optimizer": (optimizer, OPTIMIZERS),
        "schedule": (schedule, SCHEDULES),
        "loss": (loss, LOSSES),
        "probability_loss": (probability_loss, PROBABILITY_LOSSES),
        "metric": (metric, METRICS),
        "layer": (layer, LAYERS),
        "wrapped": (wrapped, WRAPPED),
        "constraint": (constraint, CONSTRAINTS),
        "backend": (backend, BACKEND),
        "functional": (functional, FUNCTIONAL),
        "certain": (certain, CERTAIN_LOSSES),
        "certain fit": (certain_fit, CERTAIN_MODELS),
    }
    return {
        f"{group}: {name}": (fn, name) for group, (fn, names) in groups.items() for name in names
    }
