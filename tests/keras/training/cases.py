"""Metrics, losses and optimizers whose values are recorded from Keras and then expected of treadle.

Every case takes the module under test (`tensorflow` or `treadle`), a name, and what wraps the
functions that are run (`tf.function`, or a function that gives them back), and gives nested lists
of numbers. Inputs are made by formula, so only the results are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Wrap = Callable[[Any], Any]


def wave(*shape: int, phase: float = 0.0) -> Any:
    """Smooth numbers in [-1, 1] without ties."""
    size = int(np.prod(shape))
    return np.sin(1.7 * np.arange(size) + phase).reshape(shape).astype("float32")


def shares(*shape: int, phase: float = 0.0) -> Any:
    """Rows of probabilities."""
    e = np.exp(wave(*shape, phase=phase))
    return (e / e.sum(-1, keepdims=True)).astype("float32")


def scores(*shape: int, phase: float = 0.0) -> Any:
    """Numbers in [0, 1], some of them 0 and 1, some on thresholds."""
    return (np.round(10 * (0.5 + 0.6 * wave(*shape, phase=phase))) / 10).clip(0, 1).astype("f")


def labels(*shape: int, phase: float = 0.0) -> Any:
    return (wave(*shape, phase=phase) > 0).astype("float32")


def one_hot(count: int, classes: int, phase: float = 0.0) -> Any:
    return np.eye(classes, dtype="float32")[shares(count, classes, phase=phase).argmax(-1)]


# -- metrics ---------------------------------------------------------------------------------------

N, C = 12, 3
WEIGHT = np.abs(wave(N, phase=3.0))

# name -> (class, settings, labels of a phase, predictions of a phase, weights)
Inputs = Callable[[float], Any]


def binary(phase: float) -> Any:
    return labels(N, phase=2.0 * phase), scores(N, phase=phase)


def multi(phase: float) -> Any:
    return labels(N, C, phase=2.0 * phase), scores(N, C, phase=phase)


def classes(phase: float) -> Any:
    return one_hot(N, C, phase=phase + 1.0), shares(N, C, phase=phase)


def numbers(phase: float) -> Any:
    return shares(N, C, phase=phase + 1.0).argmax(-1), shares(N, C, phase=phase)


def segments(phase: float) -> Any:
    found = shares(N, C, phase=phase).argmax(-1)
    return found, np.where(wave(N, phase=phase) > 0.5, (found + 1) % C, found)


def regression(phase: float) -> Any:
    return wave(N, C, phase=phase), wave(N, C, phase=phase) + 0.3 * wave(N, C, phase=5 * phase)


def signs(phase: float) -> Any:
    return 2 * labels(N, C, phase=phase) - 1, 2 * wave(N, C, phase=phase + 1.0)


METRICS: dict[str, tuple[str, dict[str, Any], Inputs]] = {
    "TruePositives": ("TruePositives", {}, binary),
    "TrueNegatives at several": ("TrueNegatives", {"thresholds": [0.2, 0.5, 0.9]}, binary),
    "FalsePositives": ("FalsePositives", {"thresholds": 0.3}, multi),
    "FalseNegatives at even": ("FalseNegatives", {"thresholds": [0.0, 0.5, 1.0]}, binary),
    "Precision at several": ("Precision", {"thresholds": [0.1, 0.4, 0.8]}, binary),
    "Precision of a class": ("Precision", {"class_id": 1}, multi),
    "Precision of the highest": ("Precision", {"top_k": 2}, classes),
    "Recall at several": ("Recall", {"thresholds": [0.1, 0.4, 0.8]}, binary),
    "Recall of the highest": ("Recall", {"top_k": 1, "class_id": 2}, classes),
    "SensitivityAtSpecificity": ("SensitivityAtSpecificity", {"specificity": 0.6}, binary),
    "SpecificityAtSensitivity": ("SpecificityAtSensitivity", {"sensitivity": 0.6}, binary),
    "PrecisionAtRecall": ("PrecisionAtRecall", {"recall": 0.5, "num_thresholds": 20}, binary),
    "PrecisionAtRecall one": ("PrecisionAtRecall", {"recall": 0.1, "num_thresholds": 1}, binary),
    "RecallAtPrecision": ("RecallAtPrecision", {"precision": 0.5, "class_id": 0}, multi),
    **{
        f"AUC {curve} {way}": ("AUC", {"curve": curve, "summation_method": way}, binary)
        for curve in ("ROC", "PR", "PRGAIN") for way in ("interpolation", "minoring", "majoring")
    },
    "AUC thresholds": ("AUC", {"thresholds": [0.2, 0.35, 0.9]}, binary),
    "AUC multi label": ("AUC", {"multi_label": True, "num_thresholds": 11}, multi),
    "AUC multi label weighted": (
        "AUC", {"multi_label": True, "label_weights": [1.0, 0.5, 2.0], "curve": "PR"}, multi,
    ),
    "AUC multi label thresholds": ("AUC", {"multi_label": True, "thresholds": [0.2, 0.7]}, multi),
    "AUC label weights": ("AUC", {"label_weights": [1.0, 0.5, 2.0]}, multi),
    "AUC logits": (
        "AUC", {"from_logits": True}, lambda p: (labels(N, phase=p), 3 * wave(N, phase=2 * p)),
    ),
    "IoU": ("IoU", {"num_classes": C, "target_class_ids": [0, 2]}, segments),
    "IoU ignoring": (
        "IoU", {"num_classes": C, "target_class_ids": [0, 2], "ignore_class": 1}, segments,
    ),
    "BinaryIoU": ("BinaryIoU", {"threshold": 0.4}, binary),
    "MeanIoU": ("MeanIoU", {"num_classes": C}, segments),
    "MeanIoU of an absent class": ("MeanIoU", {"num_classes": C + 1}, segments),
    "OneHotIoU": ("OneHotIoU", {"num_classes": C, "target_class_ids": [1]}, classes),
    "OneHotMeanIoU": ("OneHotMeanIoU", {"num_classes": C}, classes),
    "F1Score": ("F1Score", {}, classes),
    "F1Score micro": ("F1Score", {"average": "micro", "threshold": 0.4}, multi),
    "FBetaScore macro": ("FBetaScore", {"average": "macro", "beta": 2.0}, classes),
    "FBetaScore weighted": (
        "FBetaScore", {"average": "weighted", "beta": 0.5, "threshold": 0.3}, multi,
    ),
    "R2Score": ("R2Score", {}, regression),
    "R2Score each": ("R2Score", {"class_aggregation": None}, regression),
    "R2Score by variance": (
        "R2Score", {"class_aggregation": "variance_weighted_average"}, regression,
    ),
    "R2Score adjusted": ("R2Score", {"num_regressors": 2}, regression),
    "LogCoshError": ("LogCoshError", {}, regression),
    "PearsonCorrelation": ("PearsonCorrelation", {}, regression),
    "ConcordanceCorrelation": ("ConcordanceCorrelation", {}, regression),
    "CosineSimilarity": ("CosineSimilarity", {}, regression),
    "MeanSquaredError": ("MeanSquaredError", {}, regression),
    "RootMeanSquaredError": ("RootMeanSquaredError", {}, regression),
    "Hinge": ("Hinge", {}, signs),
    "SquaredHinge": ("SquaredHinge", {}, signs),
    "CategoricalHinge": ("CategoricalHinge", {}, classes),
    "Poisson": ("Poisson", {}, classes),
    "KLDivergence": ("KLDivergence", {}, classes),
    "BinaryAccuracy": ("BinaryAccuracy", {"threshold": 0.3}, multi),
    "BinaryCrossentropy": ("BinaryCrossentropy", {"label_smoothing": 0.1}, multi),
    "CategoricalAccuracy": ("CategoricalAccuracy", {}, classes),
    "SparseCategoricalCrossentropy": (
        "SparseCategoricalCrossentropy", {"ignore_class": 1}, numbers,
    ),
}  # fmt: skip


def metric(tf: Any, name: str, wrap: Wrap) -> Any:
    """The results after two batches, a weighted one, and nothing again."""
    kind, settings, inputs = METRICS[name]
    made = getattr(tf.keras.metrics, kind)(**settings)
    weight: Any = WEIGHT
    if "IoU" in kind:
        weight = np.arange(N) % 3  # ints, as the counts
    update = wrap(lambda y, p: made.update_state(y, p))
    weighted = wrap(lambda y, p, w: made.update_state(y, p, sample_weight=w))
    result = wrap(made.result)
    values = []
    for phase in (0.0, 1.0):
        update(*map(tf.constant, inputs(phase)))
        values.append(np.asarray(result()).tolist())
    weighted(*map(tf.constant, (*inputs(2.0), weight)))
    values.append(np.asarray(result()).tolist())
    made.reset_state()
    update(*map(tf.constant, inputs(3.0)))
    return [*values, np.asarray(result()).tolist()]


# -- losses ----------------------------------------------------------------------------------------

LOSSES: dict[str, tuple[str, dict[str, Any], Inputs]] = {
    "BinaryFocalCrossentropy": ("BinaryFocalCrossentropy", {}, multi),
    "BinaryFocalCrossentropy balanced": (
        "BinaryFocalCrossentropy",
        {"apply_class_balancing": True, "gamma": 1.5, "label_smoothing": 0.1}, multi,
    ),
    "BinaryFocalCrossentropy logits": ("BinaryFocalCrossentropy", {"from_logits": True}, signs),
    "CategoricalFocalCrossentropy": ("CategoricalFocalCrossentropy", {}, classes),
    "CategoricalFocalCrossentropy logits": (
        "CategoricalFocalCrossentropy",
        {"from_logits": True, "alpha": 0.5, "label_smoothing": 0.1},
        lambda p: (one_hot(N, C, phase=p), wave(N, C, phase=p)),
    ),
    "CategoricalHinge": ("CategoricalHinge", {}, classes),
    "CategoricalGeneralizedCrossEntropy": (
        "CategoricalGeneralizedCrossEntropy", {"q": 0.7}, numbers,
    ),
    "Dice": ("Dice", {}, multi),
    "Dice by example": ("Dice", {"axis": -1}, multi),
    "Tversky": ("Tversky", {"alpha": 0.3, "beta": 0.8}, multi),
    "Tversky by example": ("Tversky", {"axis": 1}, multi),
    "MeanSquaredError": ("MeanSquaredError", {}, regression),
    "MeanAbsoluteError": ("MeanAbsoluteError", {}, regression),
    "MeanSquaredLogarithmicError": ("MeanSquaredLogarithmicError", {}, multi),
    "Circle": ("Circle", {}, numbers),
    "Circle settings": ("Circle", {"gamma": 20.0, "margin": 0.2}, numbers),
    "MeanAbsolutePercentageError": ("MeanAbsolutePercentageError", {}, regression),
    "Huber": ("Huber", {"delta": 0.2}, regression),
    "LogCosh": ("LogCosh", {}, regression),
    "CosineSimilarity": ("CosineSimilarity", {"axis": 0}, regression),
    "CosineSimilarity last": ("CosineSimilarity", {}, regression),
    "SparseCategoricalCrossentropy ignoring": (
        "SparseCategoricalCrossentropy", {"ignore_class": 1}, numbers,
    ),
    "CategoricalCrossentropy": ("CategoricalCrossentropy", {"label_smoothing": 0.2}, classes),
}  # fmt: skip
REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none", None)


def loss(tf: Any, name: str, wrap: Wrap) -> Any:
    """Each reduction with and without weights, and the gradient of the weighted mean."""
    kind, settings, inputs = LOSSES[name]
    true, pred = map(tf.constant, inputs(0.5))
    weight = tf.constant(WEIGHT)
    by_example = kind not in ("Dice", "Tversky") and settings.get("axis", -1) == -1
    values = []
    for reduction in REDUCTIONS:
        made = getattr(tf.keras.losses, kind)(reduction=reduction, **settings)
        values.append(np.asarray(wrap(made)(true, pred)).tolist())
        if by_example:
            values.append(np.asarray(wrap(made)(true, pred, weight)).tolist())
    made = getattr(tf.keras.losses, kind)(**settings)

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = made(true, x, weight if by_example else None)
        return tape.gradient(value, x)

    return [*values, np.asarray(wrap(slope)(pred)).tolist()]


FUNCTIONS: dict[str, Inputs] = {
    "binary_focal_crossentropy": multi, "categorical_focal_crossentropy": classes,
    "categorical_hinge": classes, "dice": multi, "tversky": multi, "mse": regression,
    "mae": regression, "mape": regression, "msle": multi, "kld": classes, "poisson": classes,
    "logcosh": regression, "huber": regression, "hinge": signs, "squared_hinge": signs,
    "cosine_similarity": regression, "binary_crossentropy": multi,
    "categorical_crossentropy": classes, "sparse_categorical_crossentropy": numbers,
}  # fmt: skip
METRIC_FUNCTIONS: dict[str, Inputs] = {
    "binary_accuracy": multi, "categorical_accuracy": classes,
    "sparse_categorical_accuracy": numbers, "pearson_correlation": regression,
    "concordance_correlation": regression,
}  # fmt: skip


def function(tf: Any, name: str, wrap: Wrap) -> Any:
    module, inputs = tf.keras.losses, FUNCTIONS.get(name)
    if inputs is None:
        module, inputs = tf.keras.metrics, METRIC_FUNCTIONS[name]
    true, pred = map(tf.constant, inputs(0.5))
    return np.asarray(wrap(getattr(module, name))(true, pred)).tolist()


# -- optimizers: 50 steps of a small network -------------------------------------------------------

STEPS = 50
RATE = {"learning_rate": 0.05}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", RATE),
    "SGD momentum": ("SGD", {**RATE, "momentum": 0.9}),
    "SGD nesterov": ("SGD", {**RATE, "momentum": 0.9, "nesterov": True}),
    "Adam": ("Adam", RATE),
    "Adam amsgrad": ("Adam", {**RATE, "amsgrad": True}),
    "AdamW": ("AdamW", {**RATE, "weight_decay": 0.1}),
    "RMSprop": ("RMSprop", RATE),
    "RMSprop centered": ("RMSprop", {**RATE, "centered": True, "momentum": 0.5}),
    "Adagrad": ("Adagrad", RATE),
    "Adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "Adamax": ("Adamax", RATE),
    "Nadam": ("Nadam", RATE),
    "Ftrl": ("Ftrl", RATE),
    "Ftrl regularized": (
        "Ftrl",
        {
            **RATE, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.01, "beta": 0.1, "learning_rate_power": -0.4,
        },
    ),
    "Lion": ("Lion", {"learning_rate": 0.01}),
    "Lamb": ("Lamb", RATE),
    "Adafactor": ("Adafactor", RATE),
    "Adafactor fixed": ("Adafactor", {**RATE, "relative_step": False, "clip_threshold": 0.5}),
    "Muon": ("Muon", {**RATE, "weight_decay": 0.01}),
    "Muon of steps": ("Muon", {**RATE, "nesterov": False, "ns_steps": 3, "adam_lr_ratio": 0.5}),
    "clipnorm": ("SGD", {**RATE, "clipnorm": 0.2}),
    "clipvalue": ("SGD", {**RATE, "clipvalue": 0.05}),
    "global_clipnorm": ("Adam", {**RATE, "global_clipnorm": 0.2}),
    "weight decay": ("SGD", {**RATE, "momentum": 0.5, "weight_decay": 0.1}),
    "weight decay of some": ("RMSprop", {**RATE, "weight_decay": 0.1}),
    "averages": ("Adam", {**RATE, "use_ema": True, "ema_momentum": 0.8}),
    "averages in place": (
        "SGD", {**RATE, "use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3},
    ),
    "accumulation": ("Adam", {**RATE, "gradient_accumulation_steps": 4}),
    "accumulation of Nadam": ("Nadam", {**RATE, "gradient_accumulation_steps": 2, "clipnorm": 0.1}),
    "accumulation and averages": (
        "SGD", {**RATE, "gradient_accumulation_steps": 2, "use_ema": True,
                "ema_overwrite_frequency": 5},
    ),
    "loss scale": ("SGD", {**RATE, "loss_scale_factor": 64.0, "clipnorm": 0.2}),
}  # fmt: skip
BATCH = 8


def optimizer(tf: Any, name: str, wrap: Wrap) -> Any:
    """The losses of all steps, and the sums of weights and of averages at the end."""
    kind, settings = OPTIMIZERS[name]
    opt = getattr(tf.keras.optimizers, kind)(**settings)
    if name == "weight decay of some":
        opt.exclude_from_weight_decay(var_names=["bias"])
    return trained(tf, opt, wrap)


SCALES = {"steady": 3, "grows": 3, "too large": 1000}


def loss_scale(tf: Any, name: str, wrap: Wrap) -> Any:
    """`LossScaleOptimizer` around Adam: the factor after every step beside the losses."""
    start = 2.0**126 if name == "too large" else 2.0**4
    growth = SCALES[name] if name != "steady" else 2000
    opt = tf.keras.optimizers.LossScaleOptimizer(
        tf.keras.optimizers.Adam(0.05), initial_scale=start, dynamic_growth_steps=growth
    )
    seen: list[float] = []
    values = trained(tf, opt, wrap, lambda: seen.append(float(np.log2(opt.dynamic_scale.numpy()))))
    return [*values, seen, int(opt.iterations)]


def trained(tf: Any, opt: Any, wrap: Wrap, after: Any = None) -> Any:
    shapes = {"kernel": (4, 6), "bias": (6,), "out_kernel": (6, 3), "out_bias": (3,)}
    weights = [
        tf.Variable(0.7 * wave(*shape, phase=float(n)), name=label)
        for n, (label, shape) in enumerate(shapes.items())
    ]
    for weight, label in zip(weights, shapes, strict=True):
        if not hasattr(weight, "path"):  # Keras's Muon asks TensorFlow's variables for one
            weight.path = label
    entropy = tf.keras.losses.CategoricalCrossentropy(from_logits=True)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.tanh(x @ weights[0] + weights[1])
            loss = entropy(y, hidden @ weights[2] + weights[3])
            scaled = opt.scale_loss(loss)
        opt.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return loss

    run = wrap(step)
    opt.build(weights)
    losses = []
    for number in range(STEPS):
        x = wave(BATCH, 4, phase=0.37 * number)
        y = one_hot(BATCH, 3, phase=0.11 * number)
        losses.append(float(run(tf.constant(x), tf.constant(y))))
        if after is not None:
            after()
    totals = [float(np.abs(w.numpy()).sum()) for w in weights]
    opt.finalize_variable_values(weights)
    return [losses, totals, [float(np.abs(w.numpy()).sum()) for w in weights]]


# -- fit: histories, and evaluations after it ------------------------------------------------------

X, X2 = wave(24, 4), wave(24, 3, phase=2.0)
NUMBER, CLASS = wave(24, 1, phase=1.0), one_hot(24, 3).argmax(-1)
EXAMPLES = np.abs(wave(24, phase=5.0))


def two_outputs(tf: Any) -> Any:
    layers = tf.keras.layers
    a, b = tf.keras.Input((4,), name="a"), tf.keras.Input((3,), name="b")
    both = layers.Dense(6, activation="tanh")(layers.concatenate([a, b]))
    number = layers.Dense(1, name="number")(both)
    classes = layers.Dense(3, activation="softmax", name="classes")(both)
    return tf.keras.Model([a, b], [number, classes])


def one_output(tf: Any, units: int = 3, activation: Any = "softmax") -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((4,)), layers.Dense(6, activation="relu", kernel_regularizer="l2"),
            layers.Dense(units, activation=activation),
        ]
    )  # fmt: skip


TWO = {"x": [X, X2], "y": [NUMBER, CLASS]}
FITS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "one loss for each output": (
        two_outputs,
        {"loss": ["mse", "sparse_categorical_crossentropy"], "metrics": [["mae"], ["accuracy"]]},
        TWO,
    ),
    "losses by names": (
        two_outputs,
        {
            "loss": {"classes": "sparse_categorical_crossentropy", "number": "mae"},
            "loss_weights": {"classes": 0.5, "number": 2.0},
            "metrics": {"classes": ["accuracy"]}, "weighted_metrics": {"number": ["mse"]},
        },
        {**TWO, "sample_weight": [EXAMPLES, EXAMPLES]},
    ),
    "weights for each output": (
        two_outputs,
        {"loss": ["mse", "sparse_categorical_crossentropy"], "loss_weights": [0.3, 0.7]},
        {**TWO, "sample_weight": [EXAMPLES, EXAMPLES[::-1]], "validation_split": 0.25},
    ),
    "validation split": (
        one_output, {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
        {"x": X, "y": CLASS, "validation_split": 0.3},
    ),
    "validation data with weights": (
        one_output,
        {"loss": "sparse_categorical_crossentropy", "weighted_metrics": ["accuracy"]},
        {"x": X, "y": CLASS, "validation_data": (X[:9], CLASS[:9], EXAMPLES[:9]),
         "validation_freq": 2, "validation_batch_size": 4},
    ),
    "class weights": (
        one_output, {"loss": "sparse_categorical_crossentropy", "weighted_metrics": ["accuracy"]},
        {"x": X, "y": CLASS, "class_weight": {0: 1.0, 1: 3.0, 2: 0.5}},
    ),
    "steps of an epoch": (
        one_output, {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
        {"x": X, "y": CLASS, "steps_per_epoch": 2, "batch_size": 3, "epochs": 4},
    ),
    "several metrics": (
        lambda tf: one_output(tf, 1, "sigmoid"),
        {"loss": "binary_crossentropy", "metrics": ["accuracy", "AUC", "Precision", "mse"]},
        {"x": X, "y": (NUMBER > 0).astype("float32"), "sample_weight": EXAMPLES},
    ),
}  # fmt: skip


def fit(tf: Any, name: str, wrap: Wrap) -> Any:
    """The history by sorted names, and what evaluate gives then."""
    make, compiled, given = FITS[name]
    model = make(tf)
    for n, weight in enumerate(model.weights):
        weight.assign(wave(*weight.shape, phase=float(n)))
    eager = wrap(fit) is fit
    model.compile(tf.keras.optimizers.SGD(0.1), run_eagerly=eager, **compiled)
    settings = {"epochs": 3, "batch_size": 10, "shuffle": False, "verbose": 0}
    history = model.fit(**{**settings, **given}).history
    found = model.evaluate(
        given["x"], given["y"], batch_size=7, sample_weight=given.get("sample_weight"), verbose=0,
        return_dict=True,
    )  # fmt: skip
    names = sorted(history)
    return [[ord(c) for c in " ".join(names)], [history[n] for n in names],
            [found[n] for n in sorted(found)]]  # fmt: skip


def cases() -> dict[str, tuple[Any, str]]:
    """Fact name -> (function, case name)."""
    groups: dict[str, tuple[Any, Any]] = {
        "metric": (metric, METRICS),
        "loss": (loss, LOSSES),
        "function": (function, FUNCTIONS | METRIC_FUNCTIONS),
        "optimizer": (optimizer, OPTIMIZERS),
        "loss scale": (loss_scale, SCALES),
        "fit": (fit, FITS),
    }
    return {
        f"{group}: {name}": (fn, name) for group, (fn, names) in groups.items() for name in names
    }
