"""Loss functions as metrics: their means over all examples."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import losses
from treadle.keras.metrics.reductions import mean_of


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> td.Tensor:
    """The cosine of the angle between labels and predictions; the loss is its negative."""
    return -losses.cosine_similarity(y_true, y_pred, axis)


MeanSquaredError = mean_of(
    losses.mean_squared_error, "MeanSquaredError", "mean_squared_error", "Mean squared error."
)
MeanAbsoluteError = mean_of(
    losses.mean_absolute_error, "MeanAbsoluteError", "mean_absolute_error", "Mean absolute error."
)
SparseCategoricalCrossentropy = mean_of(
    losses.sparse_categorical_crossentropy, "SparseCategoricalCrossentropy",
    "sparse_categorical_crossentropy", "Mean cross-entropy against class numbers.",
)  # fmt: skip
CategoricalCrossentropy = mean_of(
    losses.categorical_crossentropy, "CategoricalCrossentropy", "categorical_crossentropy",
    "Mean cross-entropy against distributions.",
)  # fmt: skip
BinaryCrossentropy = mean_of(
    losses.binary_crossentropy, "BinaryCrossentropy", "binary_crossentropy",
    "Mean cross-entropy of binary labels.", own=("axis",),
)  # fmt: skip


MeanAbsolutePercentageError = mean_of(
    losses.mean_absolute_percentage_error, "MeanAbsolutePercentageError",
    "mean_absolute_percentage_error", "Mean of percentages of error.",
)  # fmt: skip
MeanSquaredLogarithmicError = mean_of(
    losses.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
    "mean_squared_logarithmic_error", "Mean of squared differences of logarithms.",
)  # fmt: skip
KLDivergence = mean_of(
    losses.kl_divergence, "KLDivergence", "kl_divergence", "Mean Kullback-Leibler divergence."
)
CosineSimilarity = mean_of(
    cosine_similarity, "CosineSimilarity", "cosine_similarity",
    "Mean cosine of the angle between labels and predictions.", "up",
)  # fmt: skip
LogCoshError = mean_of(losses.log_cosh, "LogCoshError", "logcosh", "Mean of log(cosh(difference)).")
Poisson = mean_of(losses.poisson, "Poisson", "poisson", "Mean Poisson loss.")
Hinge = mean_of(losses.hinge, "Hinge", "hinge", "Mean hinge loss.")
SquaredHinge = mean_of(
    losses.squared_hinge, "SquaredHinge", "squared_hinge", "Mean squared hinge loss."
)
CategoricalHinge = mean_of(
    losses.categorical_hinge, "CategoricalHinge", "categorical_hinge",
    "Mean hinge loss of one-hot classes.",
)  # fmt: skip
