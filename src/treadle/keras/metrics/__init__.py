"""Metrics, by Keras's names."""

from collections.abc import Mapping
from typing import Any

from treadle.keras import naming
from treadle.keras.losses import (
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
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
)
from treadle.keras.metrics.accuracies import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from treadle.keras.metrics.base import Metric
from treadle.keras.metrics.confusion import (
    AUC,
    FalseNegatives,
    FalsePositives,
    Precision,
    PrecisionAtRecall,
    Recall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)
from treadle.keras.metrics.means import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    cosine_similarity,
)
from treadle.keras.metrics.overlaps import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from treadle.keras.metrics.reductions import (
    Mean,
    MeanMetricWrapper,
    MeanRelativeError,
    MeanTensor,
    RootMeanSquaredError,
    Sum,
)
from treadle.keras.metrics.scores import (
    ConcordanceCorrelation,
    F1Score,
    FBetaScore,
    PearsonCorrelation,
    R2Score,
    concordance_correlation,
    pearson_correlation,
)
from treadle.keras.serialization import custom, deserialize_keras_object, serialize_keras_object
from treadle.names import missing_in

_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        Mean, Sum, MeanTensor, MeanRelativeError, RootMeanSquaredError, Accuracy, BinaryAccuracy,
        CategoricalAccuracy, SparseCategoricalAccuracy, TopKCategoricalAccuracy,
        SparseTopKCategoricalAccuracy, MeanSquaredError, MeanAbsoluteError,
        MeanAbsolutePercentageError, MeanSquaredLogarithmicError, BinaryCrossentropy,
        CategoricalCrossentropy, SparseCategoricalCrossentropy, KLDivergence, Poisson,
        CosineSimilarity, LogCoshError, Hinge, SquaredHinge, CategoricalHinge, Precision, Recall,
        TruePositives, TrueNegatives, FalsePositives, FalseNegatives, SensitivityAtSpecificity,
        SpecificityAtSensitivity, PrecisionAtRecall, RecallAtPrecision, AUC, IoU, BinaryIoU,
        MeanIoU, OneHotIoU, OneHotMeanIoU, FBetaScore, F1Score, R2Score, PearsonCorrelation,
        ConcordanceCorrelation,
    )
}  # fmt: skip
_BY_NAME: dict[str, Any] = (
    _CLASSES
    | {naming.snake_case(name): kind for name, kind in _CLASSES.items()}
    | dict.fromkeys(("mse", "MSE"), MeanSquaredError)
    | dict.fromkeys(("mae", "MAE"), MeanAbsoluteError)
    | dict.fromkeys(("mape", "MAPE"), MeanAbsolutePercentageError)
    | dict.fromkeys(("msle", "MSLE"), MeanSquaredLogarithmicError)
    | dict.fromkeys(("bce", "BCE"), BinaryCrossentropy)
    | dict.fromkeys(("kld", "KLD", "kl_divergence", "kullback_leibler_divergence"), KLDivergence)
    | dict.fromkeys(("logcosh", "log_cosh"), LogCoshError)
)


def serialize(metric: Any) -> Any:
    """A metric, or a function, as data."""
    return serialize_keras_object(metric)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The metric or function that `serialize` described, or the class of a name."""
    if isinstance(config, str) and config in _BY_NAME:
        return _BY_NAME[config]
    return deserialize_keras_object(config, custom_objects)


def get(identifier: Any) -> Any:
    """A metric from its name, class, configuration, a function, or itself; None stays None."""
    if identifier is None:
        return None
    identifier = custom(identifier)
    if isinstance(identifier, Mapping):
        identifier = deserialize(identifier)
    if isinstance(identifier, Metric):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return MeanMetricWrapper(identifier)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    raise ValueError(f"Unknown metric {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


_ACCURACIES = (BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy)
_CROSSENTROPIES = (BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy)
# The names that `compile` takes for one of three metrics.
BY_SHAPE = {
    "accuracy": _ACCURACIES, "acc": _ACCURACIES, "Accuracy": _ACCURACIES,
    "crossentropy": _CROSSENTROPIES, "ce": _CROSSENTROPIES,
}  # fmt: skip


def by_shape(name: str, y_true: Any, y_pred: Any) -> Metric:
    """What ``metrics=["accuracy"]`` means: binary for one column of predictions, categorical for
    labels of the predictions' shape, else sparse."""
    binary, categorical, sparse = BY_SHAPE[name]
    classes = y_pred.shape[-1] if len(y_pred.shape) else 1
    same = len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == classes
    kind = binary if classes == 1 else categorical if same else sparse
    made: Metric = kind(name=name)
    return made


__all__ = [
    "AUC", "KLD", "MAE", "MAPE", "MSE", "MSLE", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy",
    "BinaryIoU", "CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalHinge",
    "ConcordanceCorrelation", "CosineSimilarity", "F1Score", "FBetaScore", "FalseNegatives",
    "FalsePositives", "Hinge", "IoU", "KLDivergence", "LogCoshError", "Mean", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanIoU", "MeanMetricWrapper", "MeanRelativeError",
    "MeanSquaredError", "MeanSquaredLogarithmicError", "MeanTensor", "Metric", "OneHotIoU",
    "OneHotMeanIoU", "PearsonCorrelation", "Poisson", "Precision", "PrecisionAtRecall", "R2Score",
    "Recall", "RecallAtPrecision", "RootMeanSquaredError", "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity", "SquaredHinge", "Sum", "TopKCategoricalAccuracy", "TrueNegatives",
    "TruePositives", "accuracy", "binary_accuracy", "binary_crossentropy",
    "binary_focal_crossentropy", "categorical_accuracy", "categorical_crossentropy",
    "categorical_focal_crossentropy", "categorical_hinge", "concordance_correlation",
    "cosine_similarity", "deserialize", "get", "hinge", "huber", "kl_divergence", "kld",
    "kullback_leibler_divergence", "log_cosh", "logcosh", "mae", "mape", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error", "mse",
    "msle", "pearson_correlation", "poisson", "serialize", "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy", "sparse_top_k_categorical_accuracy", "squared_hinge",
    "top_k_categorical_accuracy",
]  # fmt: skip

__getattr__ = missing_in(__name__)
