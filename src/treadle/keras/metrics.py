"""Metrics: running values in variables, updated batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras import config, losses, naming, serialization
from treadle.keras.losses import (  # noqa: F401  (metrics too, by the same names)
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    categorical_crossentropy,
    cosine_similarity,
    hinge,
    kl_divergence,
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
)
from treadle.names import missing_in


class Metric:
    """Base of metrics: `update_state` adds a batch, `result` gives the value, `reset_state`
    starts anew. Calling the metric updates it and gives the result.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        metric: Any = super().__new__(cls)
        metric._arguments = args, kwargs  # for `get_config`
        return metric

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        self.name = name or naming.unique_name(type(self).__name__)
        self.dtype = td.as_dtype(dtype or config.floatx()).name
        self._variables: list[td.Variable] = []

    def add_variable(self, *args: Any, **kwargs: Any) -> td.Variable:
        """A new state variable, set to zeros by `reset_state`.

        Args:
            shape, initializer, dtype, name: as for a layer's weight. A string that comes first is
                the name, which Keras 2 had before the shape.
        """
        if args and isinstance(args[0], str):
            given = dict(zip(("name", "shape"), args, strict=False))
            return self._new_variable(**(given | kwargs))
        return self._new_variable(*args, **kwargs)

    def _new_variable(
        self,
        shape: Any = (),
        initializer: Any = "zeros",
        dtype: Any = None,
        name: str | None = None,
    ) -> td.Variable:
        kind = dtype or self.dtype
        dims = tuple(shape)
        variable = td.Variable(
            lambda: td.zeros(dims, kind), trainable=False, name=f"{self.name}/{name or 'state'}"
        )
        self._variables.append(variable)
        return variable

    add_weight = add_variable

    @property
    def variables(self) -> list[td.Variable]:
        return list(self._variables)

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define update_state()")

    def result(self) -> td.Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define result()")

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable in self._variables:
            variable.assign(td.zeros(variable.shape, variable.dtype))

    reset_states = reset_state

    def __call__(self, *args: Any, **kwargs: Any) -> td.Tensor:
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        args, kwargs = self._arguments
        given = serialization.arguments_of(self, args, kwargs)
        own = {"name": self.name, "dtype": self.dtype}
        kind = type(self)
        return given | {k: v for k, v in own.items() if serialization.takes(kind, k)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """A metric from what `get_config` gave."""
        return cls(**{key: serialization.deserialize_keras_object(v) for key, v in config.items()})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _weighted(values: td.Tensor, sample_weight: Any) -> tuple[td.Tensor, td.Tensor]:
    """Values times weights, and the weights, in one shape."""
    if sample_weight is None:
        return values, td.ones_like(values)
    weights = td.cast(td.convert_to_tensor(sample_weight), values.dtype)
    if len(weights.shape) > len(values.shape) and weights.shape[-1] == 1:
        weights = td.squeeze(weights, -1)
    while len(weights.shape) < len(values.shape):
        weights = td.expand_dims(weights, -1)
    return values * weights, weights + td.zeros_like(values)


class Sum(Metric):
    """The (weighted) sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.total = self.add_variable(name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        numbers = td.cast(td.convert_to_tensor(values), self.dtype)
        self.total.assign_add(td.reduce_sum(_weighted(numbers, sample_weight)[0]))

    def result(self) -> td.Tensor:
        return self.total.value()


class Mean(Metric):
    """The (weighted) mean of all values."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.total = self.add_variable(name="total")
        self.count = self.add_variable(name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        numbers = td.cast(td.convert_to_tensor(values), self.dtype)
        if sample_weight is None:
            self.total.assign_add(td.reduce_sum(numbers))
            self.count.assign_add(td.cast(td.size(numbers), self.dtype))
            return
        values, weights = _weighted(numbers, sample_weight)
        self.total.assign_add(td.reduce_sum(values))
        self.count.assign_add(td.reduce_sum(weights))

    def result(self) -> td.Tensor:
        return td.math.divide_no_nan(self.total.value(), self.count.value())


class MeanMetricWrapper(Mean):
    """The mean of a function of (y_true, y_pred)."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self._fn, self._settings = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        super().update_state(self._fn(y_true, y_pred, **self._settings), sample_weight)


# -- matches ---------------------------------------------------------------------------------------


def _matches(hits: td.Tensor) -> td.Tensor:
    return td.cast(hits, td.float32)


def _same_rank(y_true: Any, y_pred: Any) -> tuple[td.Tensor, td.Tensor]:
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if len(true.shape) == len(pred.shape) + 1 and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    elif len(pred.shape) == len(true.shape) + 1 and pred.shape[-1] == 1:
        pred = td.squeeze(pred, -1)
    return true, pred


def accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where the label equals the prediction."""
    true, pred = _same_rank(y_true, y_pred)
    return _matches(td.cast(true, pred.dtype) == pred)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where the class number is that of the highest score."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if len(true.shape) == len(pred.shape) and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    return _matches(td.cast(true, td.int64) == td.argmax(pred, -1))


def categorical_accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where label and prediction are highest in the same class."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    return _matches(td.argmax(true, -1) == td.argmax(pred, -1))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> td.Tensor:
    """The fraction of labels along the last axis on whose side of the threshold they are."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if len(true.shape) == len(pred.shape) - 1 and pred.shape[-1] == 1:
        true = td.expand_dims(true, -1)
    hits = td.cast(true, pred.dtype) == td.cast(pred > threshold, pred.dtype)
    return td.reduce_mean(_matches(hits), -1) if len(pred.shape) else _matches(hits)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> td.Tensor:
    """1 where the class number is among the k highest scores."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    classes = pred.shape[-1]
    labels = td.reshape(td.cast(true, td.int32), [-1])
    found = td.math.in_top_k(labels, td.reshape(pred, [-1, classes]), k)
    return _matches(td.reshape(found, td.shape(pred)[:-1]))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> td.Tensor:
    """1 where the one-hot class is among the k highest scores."""
    return sparse_top_k_categorical_accuracy(td.argmax(y_true, -1), y_pred, k)


def _wrapper(fn: Callable[..., Any], class_name: str, label: str, doc: str) -> Any:
    def init(self: Any, name: str | None = label, dtype: Any = None, **settings: Any) -> None:
        MeanMetricWrapper.__init__(self, fn, name, dtype, **settings)

    members = {"__init__": init, "__doc__": doc, "__module__": __name__}
    return type(class_name, (MeanMetricWrapper,), members)


Accuracy = _wrapper(accuracy, "Accuracy", "accuracy", "How often predictions equal labels.")
SparseCategoricalAccuracy = _wrapper(
    sparse_categorical_accuracy, "SparseCategoricalAccuracy", "sparse_categorical_accuracy",
    "How often the highest score is the labelled class.",
)  # fmt: skip
CategoricalAccuracy = _wrapper(
    categorical_accuracy, "CategoricalAccuracy", "categorical_accuracy",
    "How often the highest score is the one-hot class.",
)  # fmt: skip
BinaryAccuracy = _wrapper(
    binary_accuracy, "BinaryAccuracy", "binary_accuracy",
    "How often predictions are on the label's side of the threshold.",
)  # fmt: skip
MeanSquaredError = _wrapper(
    losses.mean_squared_error, "MeanSquaredError", "mean_squared_error", "Mean squared error."
)
MeanAbsoluteError = _wrapper(
    losses.mean_absolute_error, "MeanAbsoluteError", "mean_absolute_error", "Mean absolute error."
)
SparseCategoricalCrossentropy = _wrapper(
    losses.sparse_categorical_crossentropy, "SparseCategoricalCrossentropy",
    "sparse_categorical_crossentropy", "Mean cross-entropy against class numbers.",
)  # fmt: skip
CategoricalCrossentropy = _wrapper(
    losses.categorical_crossentropy, "CategoricalCrossentropy", "categorical_crossentropy",
    "Mean cross-entropy against distributions.",
)  # fmt: skip
BinaryCrossentropy = _wrapper(
    losses.binary_crossentropy, "BinaryCrossentropy", "binary_crossentropy",
    "Mean cross-entropy of binary labels.",
)  # fmt: skip


MeanAbsolutePercentageError = _wrapper(
    losses.mean_absolute_percentage_error, "MeanAbsolutePercentageError",
    "mean_absolute_percentage_error", "Mean of percentages of error.",
)  # fmt: skip
MeanSquaredLogarithmicError = _wrapper(
    losses.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
    "mean_squared_logarithmic_error", "Mean of squared differences of logarithms.",
)  # fmt: skip
KLDivergence = _wrapper(
    losses.kl_divergence, "KLDivergence", "kl_divergence", "Mean Kullback-Leibler divergence."
)
CosineSimilarity = _wrapper(
    losses.cosine_similarity, "CosineSimilarity", "cosine_similarity",
    "Mean cosine of the angle between labels and predictions.",
)  # fmt: skip


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the one-hot class is among the k highest scores."""

    def __init__(
        self, k: int = 5, name: str | None = "top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the labelled class is among the k highest scores."""

    def __init__(
        self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k)


class _Counted(Metric):
    """Precision and recall: a count of true positives over another count."""

    def __init__(
        self, thresholds: float | None = None, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(name, dtype)
        if thresholds is not None and not isinstance(thresholds, int | float):
            raise ValueError(f"{type(self).__name__}: one threshold, got {thresholds!r}")
        self.threshold = 0.5 if thresholds is None else thresholds
        self.true_positives = self.add_variable(name="true_positives")
        self.others = self.add_variable(name="others")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        true, pred = _same_rank(y_true, y_pred)
        positive, found = td.cast(true, td.bool), td.cast(pred, self.dtype) > self.threshold
        hits, _ = _weighted(td.cast(positive & found, self.dtype), sample_weight)
        others, _ = _weighted(td.cast(self._other(positive, found), self.dtype), sample_weight)
        self.true_positives.assign_add(td.reduce_sum(hits))
        self.others.assign_add(td.reduce_sum(others))

    def _other(self, positive: td.Tensor, found: td.Tensor) -> td.Tensor:
        raise NotImplementedError

    def result(self) -> td.Tensor:
        hits = self.true_positives.value()
        return td.math.divide_no_nan(hits, hits + self.others.value())


class Precision(_Counted):
    """Of the predictions above the threshold, the fraction whose label is 1."""

    def _other(self, positive: td.Tensor, found: td.Tensor) -> td.Tensor:
        return td.logical_not(positive) & found


class Recall(_Counted):
    """Of the labels that are 1, the fraction predicted above the threshold."""

    def _other(self, positive: td.Tensor, found: td.Tensor) -> td.Tensor:
        return positive & td.logical_not(found)


class RootMeanSquaredError(Mean):
    """The root of the mean squared difference."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        pred = td.convert_to_tensor(y_pred)
        error = td.squared_difference(pred, td.cast(td.convert_to_tensor(y_true), pred.dtype))
        super().update_state(error, sample_weight)

    def result(self) -> td.Tensor:
        return td.sqrt(super().result())


_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        Mean, Sum, Accuracy, SparseCategoricalAccuracy, CategoricalAccuracy, BinaryAccuracy,
        MeanSquaredError, MeanAbsoluteError, SparseCategoricalCrossentropy,
        CategoricalCrossentropy, BinaryCrossentropy, RootMeanSquaredError, Precision, Recall,
        TopKCategoricalAccuracy, SparseTopKCategoricalAccuracy, MeanAbsolutePercentageError,
        MeanSquaredLogarithmicError, KLDivergence, CosineSimilarity,
    )
}  # fmt: skip
_BY_NAME: dict[str, Any] = _CLASSES | {
    "sparse_categorical_accuracy": SparseCategoricalAccuracy,
    "categorical_accuracy": CategoricalAccuracy,
    "binary_accuracy": BinaryAccuracy,
    "mse": MeanSquaredError, "MSE": MeanSquaredError, "mean_squared_error": MeanSquaredError,
    "mae": MeanAbsoluteError, "MAE": MeanAbsoluteError, "mean_absolute_error": MeanAbsoluteError,
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy,
    "binary_crossentropy": BinaryCrossentropy,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """A metric from its name, class, a function, or itself."""
    if isinstance(identifier, Metric):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    if callable(identifier):
        return MeanMetricWrapper(identifier)
    raise ValueError(f"Unknown metric {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def for_accuracy(y_true: Any, y_pred: Any) -> Any:
    """The accuracy that fits the shapes, for ``metrics=["accuracy"]``."""
    classes = y_pred.shape[-1] if len(y_pred.shape) else 1
    if classes == 1:
        return BinaryAccuracy(name="accuracy")
    same = len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == classes
    return (CategoricalAccuracy if same else SparseCategoricalAccuracy)(name="accuracy")


__getattr__ = missing_in(__name__)
