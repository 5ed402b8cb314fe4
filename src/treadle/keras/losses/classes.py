"""The classes of the loss functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras.losses import functions
from treadle.keras.losses.base import LossFunctionWrapper


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy against class numbers."""

    def __init__(
        self, from_logits: bool = False, ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size", axis: int = -1,
        name: str = "sparse_categorical_crossentropy", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.sparse_categorical_crossentropy, reduction, name, dtype,
            from_logits=from_logits, ignore_class=ignore_class, axis=axis,
        )  # fmt: skip


class CategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy against distributions."""

    def __init__(
        self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size", name: str = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.categorical_crossentropy, reduction, name, dtype,
            from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


class BinaryCrossentropy(LossFunctionWrapper):
    """Cross-entropy of independent binary labels."""

    def __init__(
        self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size", name: str = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.binary_crossentropy, reduction, name, dtype,
            from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


def _class_of(fn: Callable[..., td.Tensor], name: str, doc: str) -> Any:
    """The class of a loss function without settings."""

    def init(
        self: Any, reduction: str | None = "sum_over_batch_size", name: str = fn.__name__,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        LossFunctionWrapper.__init__(self, fn, reduction, name, dtype)

    return type(
        name, (LossFunctionWrapper,), {"__init__": init, "__doc__": doc, "__module__": __name__}
    )


MeanSquaredError = _class_of(
    functions.mean_squared_error, "MeanSquaredError", "Mean of squared differences."
)
MeanAbsoluteError = _class_of(
    functions.mean_absolute_error, "MeanAbsoluteError", "Mean of absolute differences."
)
MeanAbsolutePercentageError = _class_of(
    functions.mean_absolute_percentage_error, "MeanAbsolutePercentageError",
    "Mean of percentages of error.",
)  # fmt: skip
MeanSquaredLogarithmicError = _class_of(
    functions.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
    "Mean of squared differences of logarithms.",
)  # fmt: skip
LogCosh = _class_of(functions.log_cosh, "LogCosh", "Mean of log(cosh(difference)).")
KLDivergence = _class_of(functions.kl_divergence, "KLDivergence", "Kullback-Leibler divergence.")
Hinge = _class_of(functions.hinge, "Hinge", "Hinge loss of labels -1 and 1.")
SquaredHinge = _class_of(
    functions.squared_hinge, "SquaredHinge", "Squared hinge loss of labels -1 and 1."
)
CategoricalHinge = _class_of(
    functions.categorical_hinge, "CategoricalHinge", "Hinge loss of one-hot classes."
)
Poisson = _class_of(functions.poisson, "Poisson", "Poisson loss.")


class CosineSimilarity(LossFunctionWrapper):
    """The negative of the cosine of the angle between labels and predictions."""

    def __init__(
        self, axis: int = -1, reduction: str | None = "sum_over_batch_size",
        name: str = "cosine_similarity", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(functions.cosine_similarity, reduction, name, dtype, axis=axis)


class Huber(LossFunctionWrapper):
    """Squared error up to `delta`, linear beyond."""

    def __init__(
        self, delta: float = 1.0, reduction: str | None = "sum_over_batch_size",
        name: str = "huber_loss", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(functions.huber, reduction, name, dtype, delta=delta)


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of binary labels that weighs what is predicted well less."""

    def __init__(
        self, apply_class_balancing: bool = False, alpha: float = 0.25, gamma: float = 2.0,
        from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size", name: str = "binary_focal_crossentropy",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.binary_focal_crossentropy, reduction, name, dtype,
            apply_class_balancing=apply_class_balancing, alpha=alpha, gamma=gamma,
            from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Cross-entropy against distributions that weighs what is predicted well less."""

    def __init__(
        self, alpha: float = 0.25, gamma: float = 2.0, from_logits: bool = False,
        label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "categorical_focal_crossentropy", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.categorical_focal_crossentropy, reduction, name, dtype, alpha=alpha,
            gamma=gamma, from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


class Dice(LossFunctionWrapper):
    """1 minus the overlap of labels and predictions, relative to their sizes."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "dice", axis: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(functions.dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """1 minus the overlap, where what is missed and what is too much have weights of their own."""

    def __init__(
        self, alpha: float = 0.5, beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size", name: str = "tversky", axis: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis
        )


class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """``(1 - p ** q) / q`` for the probability p of the labelled class: stands wrong labels."""

    def __init__(
        self, q: float = 0.5, reduction: str | None = "sum_over_batch_size",
        name: str = "categorical_generalized_cross_entropy", dtype: Any = None,
    ) -> None:  # fmt: skip
        if not 0 < q < 1:
            raise ValueError(f"CategoricalGeneralizedCrossEntropy: q must be in (0, 1), got {q}")
        super().__init__(
            functions.categorical_generalized_cross_entropy, reduction, name, dtype, q=q
        )


class Circle(LossFunctionWrapper):
    """Draws embeddings of one class together and those of others apart: `circle`."""

    def __init__(
        self, gamma: float = 80.0, margin: float = 0.4, remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size", name: str = "circle", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            functions.circle, reduction, name, dtype, gamma=gamma, margin=margin,
            remove_diagonal=remove_diagonal,
        )  # fmt: skip


class CTC(LossFunctionWrapper):
    """The loss of connectionist temporal classification: labels whose times are not known."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "ctc", dtype: Any = None
    ) -> None:
        super().__init__(functions.ctc, reduction, name, dtype)


class Reduction:
    """The names of the ways to reduce losses."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"
