"""Distiller: trains a student model on labels and on what its teacher says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras import metrics, serialization, tree
from treadle.keras.distillation.losses import inputs_of, loss_of
from treadle.keras.models import Model

_FINAL = "final_output"


class Distiller(Model):
    """Trains a student on labels and on a teacher, which stays as it is.

    Args:
        teacher, student: models of the same inputs and outputs.
        distillation_losses: a `DistillationLoss` or a list of them.
        distillation_loss_weights: a factor for each of them; 1 when omitted.
        student_loss_weight: from 0 to 1: how much the labels count; the teacher counts the rest.

    Raises:
        ValueError: the models or the losses do not go together, or a weight is none.
    """

    def __init__(
        self, teacher: Any, student: Any, distillation_losses: Any,
        distillation_loss_weights: Sequence[float] | None = None,
        student_loss_weight: float = 0.5, name: str = "distiller", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        _check_models(teacher, student)
        self.teacher, self.student = teacher, student
        if not isinstance(student_loss_weight, int | float):
            raise ValueError(
                f"student_loss_weight must be a number, got {type(student_loss_weight)}"
            )
        if not 0.0 <= student_loss_weight <= 1.0:
            raise ValueError(
                f"student_loss_weight must be between 0.0 and 1.0, got {student_loss_weight}"
            )
        self.student_loss_weight = student_loss_weight
        if distillation_losses is None:
            raise ValueError("'distillation_losses' cannot be `None`: give a loss or a list")
        several = isinstance(distillation_losses, list | tuple)
        self.distillation_losses = list(distillation_losses if several else [distillation_losses])
        count = len(self.distillation_losses)
        weights = distillation_loss_weights if several else None
        self.distillation_loss_weights = [1.0] * count if weights is None else list(weights)
        if len(self.distillation_loss_weights) != count:
            raise ValueError(
                f"Number of distillation_loss_weights ({len(self.distillation_loss_weights)}) must "
                f"match number of distillation_losses ({count})"
            )
        for loss in self.distillation_losses:
            loss.validate_model_compatibility(teacher, student)
        self._teacher_feature_extractor = self._extractor(teacher, "teacher_layer_name")
        self._student_feature_extractor = self._extractor(student, "student_layer_name")
        self.teacher.trainable = False
        self.student_loss_tracker = metrics.Mean(name="student_loss")
        self.distillation_loss_tracker = metrics.Mean(name="distillation_loss")
        self.total_loss_tracker = metrics.Mean(name="total_loss")
        self._student_loss: Any = None

    def _extractor(self, model: Any, kind: str) -> Any:
        """A model of the results of the layers that losses name, and of the outputs."""
        named = [getattr(loss, kind, None) for loss in self.distillation_losses]
        names = [name for name in named if name]
        if not names:
            return None
        outputs = {_FINAL: model.output}
        outputs |= {name: model.get_layer(name=name).output for name in names}
        return Model(model.inputs, outputs, name=f"{model.name}_multi_feature_extractor")

    def compile(  # type: ignore[override]
        self, optimizer: Any = "adam", loss: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Set how the student is trained.

        Args:
            loss: of the student's outputs and the labels: a loss or its name, or a structure.

        Raises:
            ValueError: there is no loss, or the metrics are no list.
        """
        if loss is None:
            raise ValueError("'loss' cannot be `None`.")
        if metrics is not None and not isinstance(metrics, list | tuple):
            raise ValueError(f"metrics must be a list or tuple, got {type(metrics)}")
        self._student_loss = loss_of(loss)
        super().compile(optimizer=optimizer, loss=None, metrics=metrics, **kwargs)
        assert self._compiled_setup is not None
        self._compiled_setup.arguments["loss"] = loss

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """What the student gives."""
        masked = {} if mask is None else {"mask": mask}
        return self.student(inputs, training=training, **masked)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
        training: bool = True,
    ) -> Any:  # fmt: skip
        """The student's loss and those of distillation, each with its part."""
        if y_pred is None:
            y_pred = self(x, training=training)
        zero = td.constant(0.0)
        has_labels = self.student_loss_weight > 0.0 and y is not None
        of_labels = self._loss_of_labels(y, y_pred) if has_labels else zero
        of_teacher = self._loss_of_teacher(x, y_pred) if self.student_loss_weight < 1.0 else zero
        part = self.student_loss_weight
        total = part * of_labels + (1.0 - part) * of_teacher
        self.student_loss_tracker.update_state(of_labels)
        self.distillation_loss_tracker.update_state(of_teacher)
        self.total_loss_tracker.update_state(total)
        return total

    def _loss_of_labels(self, y: Any, y_pred: Any) -> Any:
        structures = (self._student_loss, y, y_pred)
        flat = [tree.flatten(structure) for structure in structures]
        parts = [td.reduce_mean(loss(own, pred)) for loss, own, pred in zip(*flat, strict=True)]
        return td.add_n(parts)

    def _loss_of_teacher(self, x: Any, y_pred: Any) -> Any:
        of_teacher, of_student = self._teacher_feature_extractor, self._student_feature_extractor
        teacher = (of_teacher or self.teacher)(x, training=False)
        student = y_pred if of_student is None else of_student(x, training=True)
        found = {_FINAL: teacher} if of_teacher is None else teacher
        own = {_FINAL: y_pred} | ({} if of_student is None else student)
        total = td.constant(0.0)
        pairs = zip(self.distillation_losses, self.distillation_loss_weights, strict=True)
        for loss, weight in pairs:
            given = found[getattr(loss, "teacher_layer_name", None) or _FINAL]
            learned = own[getattr(loss, "student_layer_name", None) or _FINAL]
            if own[_FINAL] is learned:
                learned = y_pred
            loss.validate_outputs(given, learned)
            value = td.convert_to_tensor(loss.compute_loss(given, learned))
            if len(value.shape):
                raise ValueError(
                    f"Distillation loss {type(loss).__name__} returned a non-scalar loss with "
                    f"shape {value.shape}. The compute_loss method must return a scalar tensor."
                )
            total = total + weight * td.cast(value, total.dtype)
        return total

    def get_config(self) -> dict[str, Any]:
        """The models and the losses, as plain data."""
        described = serialization.serialize_keras_object
        return {
            "name": self.name, "teacher": described(self.teacher),
            "student": described(self.student),
            "distillation_losses": [described(loss) for loss in self.distillation_losses],
            "distillation_loss_weights": self.distillation_loss_weights,
            "student_loss_weight": self.student_loss_weight,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A distiller from what `get_config` gave."""
        made = {
            key: serialization.deserialize_keras_object(config[key], custom_objects)
            for key in ("teacher", "student", "distillation_losses")
        }
        return cls(**(config | made))


def _check_models(teacher: Any, student: Any) -> None:
    """Raise ValueError where a teacher and a student are no models of equal inputs and outputs."""
    for kind, model in (("Teacher", teacher), ("Student", student)):
        if not isinstance(model, Model):
            raise ValueError(f"{kind} must be a keras.Model, got {type(model)}")
    if inputs_of(teacher) is None or inputs_of(student) is None:
        return
    for what in ("inputs", "outputs"):
        pairs = zip(getattr(teacher, what), getattr(student, what), strict=False)
        for of_teacher, of_student in pairs:
            context = f"Teacher and student {what[:-1]}"
            if len(of_teacher.shape) != len(of_student.shape):
                raise ValueError(
                    f"{context} shapes have different dimensions. Teacher: {of_teacher.shape}, "
                    f"Student: {of_student.shape}."
                )
            sizes = zip(of_teacher.shape, of_student.shape, strict=True)
            if any(None not in (a, b) and a != b for a, b in sizes):
                raise ValueError(
                    f"{context} shapes are incompatible. Teacher: {of_teacher.shape}, Student: "
                    f"{of_student.shape}. All dimensions must match."
                )
            if of_teacher.dtype != of_student.dtype:
                raise ValueError(
                    f"{context} dtypes must match. Teacher: {of_teacher.dtype}, Student: "
                    f"{of_student.dtype}."
                )
