"""Intersection over union: how well the areas of classes are found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras import config
from treadle.keras.metrics.base import Metric, numbers


class IoU(Metric):
    """The mean over classes of the intersection of labels and predictions over their union.

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes that count; those that are neither labelled nor predicted
            are left out.
        ignore_class: a label whose elements do not count.
        sparse_y_true, sparse_y_pred: whether class numbers are given instead of scores of classes.
        axis: the axis of scores of classes.
    """

    _direction = "up"

    def __init__(
        self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
        dtype: Any = None, ignore_class: int | None = None, sparse_y_true: bool = True,
        sparse_y_pred: bool = True, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(dtype or "int64", name)
        if max(target_class_ids) >= num_classes:
            raise ValueError(
                f"{type(self).__name__}: class {max(target_class_ids)} is not among the "
                f"{num_classes} classes"
            )
        self.num_classes, self.target_class_ids = num_classes, list(target_class_ids)
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_variable(
            (num_classes, num_classes), name="confusion_matrix", dtype=self.dtype
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count how often each class was taken for which."""
        if not self.sparse_y_true:
            y_true = td.argmax(y_true, self.axis)
        if not self.sparse_y_pred:
            y_pred = td.argmax(y_pred, self.axis)
        true, pred = (td.reshape(numbers(y, td.int64), [-1]) for y in (y_true, y_pred))
        weight = td.ones_like(true, self.dtype)
        if sample_weight is not None:
            if "int" in self.dtype and "float" in str(getattr(sample_weight, "dtype", "")):
                warnings.warn(
                    "You are passing weight as `float`, but dtype is `int`. This may result in an "
                    "incorrect weight due to type casting. Consider using integer weights.",
                    stacklevel=2,
                )
            given = numbers(sample_weight, self.dtype)
            flat = td.reshape(given, [-1]) if len(given.shape) else given
            weight = td.broadcast_to(flat, td.shape(true))
        count = self.num_classes
        known = (true >= 0) & (true < count) & (pred >= 0) & (pred < count)
        if self.ignore_class is not None:
            known = known & (true != self.ignore_class)
        # Numbers below zero count nowhere.
        place = td.where(known, true * count + pred, -td.ones_like(true))
        found = td.math.unsorted_segment_sum(weight, place, count * count)
        self.total_cm.assign_add(td.reshape(found, [count, count]))

    def result(self) -> td.Tensor:
        matrix = td.cast(self.total_cm.read_value(), td.float32)
        both = td.linalg.diag_part(matrix)
        union = td.reduce_sum(matrix, 0) + td.reduce_sum(matrix, 1) - both
        both, union = (td.gather(x, self.target_class_ids) for x in (both, union))
        present = union > 1e-9
        each = td.where(present, both / (union + config.epsilon()), td.zeros_like(union))
        count = td.reduce_sum(td.cast(present, td.float32))
        return td.reduce_sum(each) / (count + config.epsilon())

    _settings: tuple[str, ...] = (
        "num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis",
    )  # fmt: skip

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {name: getattr(self, name) for name in self._settings}


class BinaryIoU(IoU):
    """`IoU` of labels 0 and 1; scores from the threshold on are 1."""

    _settings: tuple[str, ...] = ("target_class_ids", "threshold")

    def __init__(
        self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        found = numbers(y_pred, td.float32) >= self.threshold
        super().update_state(y_true, found, sample_weight)


class MeanIoU(IoU):
    """`IoU` of all classes."""

    _settings: tuple[str, ...] = (
        "num_classes", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis",
    )  # fmt: skip

    def __init__(
        self, num_classes: int, name: str | None = None, dtype: Any = None,
        ignore_class: int | None = None, sparse_y_true: bool = True, sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(
            num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true,
            sparse_y_pred, axis,
        )  # fmt: skip


class OneHotIoU(IoU):
    """`IoU` of one-hot labels."""

    _settings: tuple[str, ...] = (
        "num_classes", "target_class_ids", "ignore_class", "sparse_y_pred", "axis",
    )  # fmt: skip

    def __init__(
        self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
        dtype: Any = None, ignore_class: int | None = None, sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(
            num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis
        )


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` of one-hot labels."""

    _settings: tuple[str, ...] = ("num_classes", "ignore_class", "sparse_y_pred", "axis")

    def __init__(
        self, num_classes: int, name: str | None = None, dtype: Any = None,
        ignore_class: int | None = None, sparse_y_pred: bool = False, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)
