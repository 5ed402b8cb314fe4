"""Losses, by Keras's names."""

from collections.abc import Callable, Mapping
from typing import Any

from treadle.keras.losses.base import Loss, LossFunctionWrapper
from treadle.keras.losses.classes import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    Reduction,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
from treadle.keras.losses.functions import (
    BCE,
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    bce,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    circle,
    cosine_similarity,
    ctc,
    dice,
    hinge,
    huber,
    kl_divergence,
    kld,
    kullback_leibler_divergence,
    log_cosh,
    logcosh,
    mae,
    mape,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    mse,
    msle,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
    tversky,
)
from treadle.keras.serialization import custom, deserialize_keras_object, serialize_keras_object
from treadle.names import missing_in

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    sparse_categorical_crossentropy, categorical_crossentropy, binary_crossentropy,
    binary_focal_crossentropy, categorical_focal_crossentropy,
    categorical_generalized_cross_entropy, mean_squared_error, mean_absolute_error, huber,
    log_cosh, kl_divergence, hinge, squared_hinge, categorical_hinge,
    mean_absolute_percentage_error, mean_squared_logarithmic_error, poisson, cosine_similarity,
    dice, tversky, circle, ctc,
)  # fmt: skip
_CLASSES: tuple[Any, ...] = (
    SparseCategoricalCrossentropy, CategoricalCrossentropy, BinaryCrossentropy,
    BinaryFocalCrossentropy, CategoricalFocalCrossentropy, CategoricalGeneralizedCrossEntropy,
    MeanSquaredError, MeanAbsoluteError, LogCosh, KLDivergence, Hinge, Huber, SquaredHinge,
    CategoricalHinge, MeanAbsolutePercentageError, MeanSquaredLogarithmicError, Poisson,
    CosineSimilarity, Dice, Tversky, Circle,
)  # fmt: skip
_BY_NAME: dict[str, Any] = (
    {f.__name__: f for f in _FUNCTIONS}
    | {c.__name__: c for c in _CLASSES}
    | {"mse": mse, "MSE": mse, "mae": mae, "MAE": mae, "mape": mape, "MAPE": mape}
    | {"msle": msle, "MSLE": msle, "bce": bce, "BCE": bce, "kld": kld, "KLD": kld}
    | {"kullback_leibler_divergence": kld, "logcosh": log_cosh, "huber_loss": huber, "CTC": CTC}
)


def serialize(loss: Any) -> Any:
    """A loss, or a loss function, as data."""
    return serialize_keras_object(loss)


def deserialize(name: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The loss or loss function that `serialize` described, or that has the name."""
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    return deserialize_keras_object(name, custom_objects)


def get(identifier: Any) -> Any:
    """A loss from its name, class, configuration or a function; None stays None."""
    identifier = custom(identifier)
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    if isinstance(identifier, type):
        return identifier()
    if identifier is None or callable(identifier):
        return identifier
    if identifier in _BY_NAME:
        return get(_BY_NAME[identifier])
    raise ValueError(
        f"Could not interpret loss identifier: {identifier}. There are "
        f"{', '.join(sorted(_BY_NAME))}"
    )


def _crossentropy_by_shape(y_true: Any, y_pred: Any) -> Any:
    """Binary for one column of predictions, sparse for labels that have no such axis or one of size
    1, else categorical."""
    classes = y_pred.shape[-1] if len(y_pred.shape) else 1
    if classes == 1:
        return binary_crossentropy(y_true, y_pred)
    if len(y_true.shape) < len(y_pred.shape) or y_true.shape[-1] == 1:
        return sparse_categorical_crossentropy(y_true, y_pred)
    return categorical_crossentropy(y_true, y_pred)


def as_loss(identifier: Any) -> Loss:
    """What `compile` was given, as a Loss. "crossentropy" and "ce" stand for the cross-entropy that
    the shapes of labels and predictions ask for."""
    if isinstance(identifier, str) and identifier.lower() in ("crossentropy", "ce"):
        return LossFunctionWrapper(_crossentropy_by_shape, name="crossentropy")
    found = get(identifier)
    return found if isinstance(found, Loss) else LossFunctionWrapper(found)


__all__ = [
    "BCE", "CTC", "KLD", "MAE", "MAPE", "MSE", "MSLE", "BinaryCrossentropy",
    "BinaryFocalCrossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Circle", "CosineSimilarity", "Dice",
    "Hinge", "Huber", "KLDivergence", "LogCosh", "Loss", "LossFunctionWrapper", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson",
    "Reduction", "SparseCategoricalCrossentropy", "SquaredHinge", "Tversky", "bce",
    "binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy",
    "categorical_focal_crossentropy", "categorical_generalized_cross_entropy", "categorical_hinge",
    "circle", "cosine_similarity", "ctc", "deserialize", "dice", "get", "hinge", "huber",
    "kl_divergence", "kld", "kullback_leibler_divergence", "log_cosh", "logcosh", "mae", "mape",
    "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error",
    "mean_squared_logarithmic_error", "mse", "msle", "poisson", "serialize",
    "sparse_categorical_crossentropy", "squared_hinge", "tversky",
]  # fmt: skip

__getattr__ = missing_in(__name__)
