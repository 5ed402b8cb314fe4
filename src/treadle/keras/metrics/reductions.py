"""Sums and means of values, and means of functions of labels and predictions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.keras.losses.base import Loss, aligned, masked_weight, same_rank
from treadle.keras.masks import mask_of
from treadle.keras.metrics.base import Metric, numbers


def _by_example(
    values: Any, sample_weight: Any, reduce: Callable[..., td.Tensor], dtype: Any
) -> tuple[td.Tensor, Any]:
    """One (weighted) value per example, and the weights.

    A mask of the values counts where there are weights, as in Keras.
    """
    mask, values = mask_of(values), numbers(values, dtype)
    if sample_weight is not None:
        sample_weight = masked_weight(sample_weight, mask, dtype, "sum")
        values, weight = same_rank(values, sample_weight)
        rank = len(weight.shape)
        if len(values.shape) > rank:
            values = reduce(values, list(range(rank, len(values.shape))))
        sample_weight = td.broadcast_to(weight, td.shape(values))
        values = values * sample_weight
        if rank > 1:
            sample_weight = reduce(sample_weight, list(range(1, rank)))
    if len(values.shape) > 1:
        values = reduce(values, list(range(1, len(values.shape))))
    return values, sample_weight


class Sum(Metric):
    """The (weighted) sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total", dtype=self.dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        found, _ = _by_example(values, sample_weight, td.reduce_sum, self.dtype)
        self.total.assign_add(td.reduce_sum(found))

    def result(self) -> td.Tensor:
        return self.total.read_value()


class Mean(Metric):
    """The (weighted) mean of all values."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total", dtype=self.dtype)
        self.count = self.add_variable(name="count", dtype=self.dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        found, weight = _by_example(values, sample_weight, td.reduce_mean, self.dtype)
        self.total.assign_add(td.reduce_sum(found))
        count = td.size(found) if weight is None else td.reduce_sum(weight)
        self.count.assign_add(td.cast(count, self.dtype))

    def result(self) -> td.Tensor:
        return td.math.divide_no_nan(self.total.read_value(), self.count.read_value())


def is_loss(fn: Any) -> bool:
    """Whether a function is one of Keras's losses, of which lower values are better."""
    of_losses = str(getattr(fn, "__module__", "")).startswith("treadle.keras.losses.")
    return isinstance(fn, Loss) or of_losses


class MeanMetricWrapper(Mean):
    """The mean of a function of (y_true, y_pred); further arguments are the function's."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self._fn, self._settings = fn, kwargs
        if is_loss(fn):
            self._direction = "down"

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        weight = masked_weight(sample_weight, mask_of(y_pred), self.dtype, "sum")
        super().update_state(self._fn(y_true, y_pred, **self._settings), weight)

    def get_config(self) -> dict[str, Any]:
        fn = {"fn": self._fn} if type(self) is MeanMetricWrapper else {}
        return super().get_config() | fn | self._settings


def mean_of(
    fn: Callable[..., Any], class_name: str, label: str, doc: str, direction: str = "down",
    own: Sequence[str] = (),
) -> Any:  # fmt: skip
    """The class whose metrics are means of a function, with its settings as arguments.

    Args:
        own: arguments that Keras's class does not take: configs have them only where they are
            not the default, so that Keras reads the others.
    """
    settings_of = {p.name: p for p in list(inspect.signature(fn).parameters.values())[2:]}

    def init(
        self: Any, name: str | None = label, dtype: Any = None, *values: Any, **settings: Any
    ) -> None:
        if len(values) > len(settings_of):
            raise TypeError(f"{class_name} got more than {len(settings_of) + 2} arguments")
        by_place = dict(zip(settings_of, values, strict=False))
        if by_place.keys() & settings.keys():
            twice = ", ".join(sorted(by_place.keys() & settings.keys()))
            raise TypeError(f"{class_name} got several values for: {twice}")
        settings |= by_place
        unknown = [key for key in settings if key not in settings_of]
        if unknown:
            raise TypeError(f"{class_name} got unsupported arguments: {', '.join(unknown)}")
        MeanMetricWrapper.__init__(self, fn, name, dtype, **settings)

    def get_config(self: Any) -> dict[str, Any]:
        found = MeanMetricWrapper.get_config(self)
        return {k: v for k, v in found.items() if k not in own or v != settings_of[k].default}

    first = list(inspect.signature(init).parameters.values())[:3]
    init.__signature__ = inspect.Signature([*first, *settings_of.values()])  # type: ignore[attr-defined]
    # The module where the class gets its name, where pickle looks for it.
    module = sys._getframe(1).f_globals["__name__"]
    members = {
        "__init__": init, "__doc__": doc, "__module__": module, "_direction": direction,
        "get_config": get_config,
    }  # fmt: skip
    return type(class_name, (MeanMetricWrapper,), members)


class MeanTensor(Metric):
    """The (weighted) mean of tensors of one shape, element by element.

    Args:
        shape: of the tensors; that of the first one when omitted.
    """

    def __init__(
        self, name: str | None = "mean_tensor", dtype: Any = None, shape: Any = None
    ) -> None:
        super().__init__(dtype, name)
        self.shape = None if shape is None else tuple(shape)
        self._total: td.Variable | None = None
        self._count: td.Variable | None = None
        if self.shape is not None:
            self._make(self.shape)

    def _make(self, shape: Any) -> None:
        self._total = self.add_variable(shape, name="total", dtype=self.dtype)
        self._count = self.add_variable(shape, name="count", dtype=self.dtype)

    @property
    def total(self) -> td.Variable | None:
        """The sum so far."""
        return self._total

    @property
    def count(self) -> td.Variable | None:
        """The sum of the weights so far."""
        return self._count

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        found = numbers(values, self.dtype)
        if self._total is None:
            self._make(found.shape)
        assert self._total is not None and self._count is not None
        if tuple(found.shape) != tuple(self._total.shape):
            raise ValueError(
                f"MeanTensor: the values have shape {found.shape}, the ones before had "
                f"{self._total.shape}"
            )
        weight = td.ones_like(found)
        if sample_weight is not None:
            found, given = same_rank(found, numbers(sample_weight, self.dtype))
            weight = td.broadcast_to(aligned(given, found), td.shape(found))
            found = found * weight
        self._total.assign_add(found)
        self._count.assign_add(weight)

    def result(self) -> td.Tensor:
        if self._total is None or self._count is None:
            raise ValueError("MeanTensor: no values so far, and no shape was given")
        return td.math.divide_no_nan(self._total.read_value(), self._count.read_value())

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"shape": self.shape}


class MeanRelativeError(Mean):
    """The mean of ``abs(y_true - y_pred) / normalizer``."""

    def __init__(
        self, normalizer: Any, name: str | None = "mean_relative_error", dtype: Any = None
    ) -> None:
        super().__init__(name, dtype)
        self.normalizer = numbers(normalizer, self.dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        true, pred = same_rank(numbers(y_true, self.dtype), numbers(y_pred, self.dtype))
        error = td.math.divide_no_nan(td.abs(true - pred), self.normalizer)
        super().update_state(error, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"normalizer": self.normalizer.numpy().tolist()}


class RootMeanSquaredError(Mean):
    """The root of the mean squared difference."""

    _direction = "down"

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        weight = masked_weight(sample_weight, mask_of(y_pred), self.dtype, "sum")
        true, pred = same_rank(numbers(y_true, self.dtype), numbers(y_pred, self.dtype))
        super().update_state(td.squared_difference(pred, true), weight)

    def result(self) -> td.Tensor:
        return td.sqrt(super().result())
