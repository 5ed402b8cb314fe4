"""How far what a student model gives is from what its teacher gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import treadle as td
from treadle.keras import losses, serialization, tree


def loss_of(given: Any) -> Any:
    """Losses for names, in a structure; None and losses as they are."""
    if isinstance(given, Mapping) and "class_name" not in given:
        return {key: loss_of(value) for key, value in given.items()}
    if isinstance(given, list | tuple):
        return type(given)(map(loss_of, given))
    return losses.get(given) if isinstance(given, str | Mapping) else given


def _check_some(loss: Any, owner: str) -> None:
    if all(part is None for part in tree.flatten(loss)):
        raise ValueError(f"The `loss` of {owner} must contain at least one non-`None` value.")


def _sum_of(compute: Callable[[Any, Any, Any], Any], loss: Any, teacher: Any, student: Any) -> Any:
    """The sum of a function of each loss and its outputs; where there is no loss, of nothing."""
    parts = [
        td.reduce_mean(compute(own, of_teacher, of_student))
        for own, of_teacher, of_student in zip(
            tree.flatten(loss), tree.flatten(teacher), tree.flatten(student), strict=True
        )
        if own is not None
    ]
    return td.add_n(parts)


class DistillationLoss:
    """Base class: subclasses define `compute_loss`."""

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Any:
        """A scalar: how far the student's outputs are from the teacher's."""
        raise NotImplementedError(f"{type(self).__name__} must define compute_loss()")

    def validate_outputs(self, teacher_outputs: Any, student_outputs: Any) -> None:
        """Check outputs before they are compared.

        Raises:
            ValueError: they have different structures.
        """
        tree.assert_same_structure(teacher_outputs, student_outputs)

    def validate_model_compatibility(self, teacher: Any, student: Any) -> None:
        """Check the models; subclasses raise ValueError where this loss is not for them."""


class FeatureDistillation(DistillationLoss):
    """Compares what a layer of the student gives with what a layer of the teacher gives.

    Args:
        loss: a loss or its name, or a structure of them as the outputs have; None: an output that
            is not compared.
        teacher_layer_name, student_layer_name: the layers; the models' outputs when omitted.

    Raises:
        ValueError: there is no loss.
    """

    def __init__(
        self, loss: Any = "mse", teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
    ) -> None:  # fmt: skip
        self.teacher_layer_name, self.student_layer_name = teacher_layer_name, student_layer_name
        self.loss = loss_of(loss)
        _check_some(self.loss, "FeatureDistillation")

    def validate_model_compatibility(self, teacher: Any, student: Any) -> None:
        """Check that the models have the layers.

        Raises:
            ValueError: a layer is missing, or a model does not say how its layers are connected.
        """
        names = {"teacher": self.teacher_layer_name, "student": self.student_layer_name}
        if all(name is None for name in names.values()):
            return
        models = {"teacher": teacher, "student": student}
        unknown = [kind for kind, model in models.items() if inputs_of(model) is None]
        if unknown:
            raise ValueError(
                "FeatureDistillation with specific layer names requires Functional or Sequential "
                f"models. The {' and '.join(unknown)} model(s) appear to be subclassed (no "
                "symbolic inputs/outputs). Leave the names out, or use LogitsDistillation."
            )
        for kind, name in names.items():
            if name is None:
                continue
            try:
                models[kind].get_layer(name=name)
            except ValueError as error:
                raise ValueError(f"In {kind} model: {error}") from error

    def validate_outputs(self, teacher_outputs: Any, student_outputs: Any) -> None:
        super().validate_outputs(teacher_outputs, student_outputs)
        try:
            tree.assert_same_structure(self.loss, teacher_outputs)
        except ValueError as error:
            raise ValueError(
                f"Loss structure mismatch. Loss structure: {self.loss}, outputs of the teacher: "
                f"{teacher_outputs}. Error: {error}"
            ) from error

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Any:
        """The sum of the means of the losses."""
        return _sum_of(lambda f, a, b: f(a, b), self.loss, teacher_outputs, student_outputs)

    def get_config(self) -> dict[str, Any]:
        """The arguments, as plain data."""
        return {
            "loss": serialization.serialize_keras_object(self.loss),
            "teacher_layer_name": self.teacher_layer_name,
            "student_layer_name": self.student_layer_name,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> FeatureDistillation:
        """A loss from what `get_config` gave."""
        return cls(**(config | {"loss": serialization.deserialize_keras_object(config["loss"])}))


class LogitsDistillation(DistillationLoss):
    """Compares the models' outputs, logits of classes, divided by a temperature.

    Args:
        temperature: the larger it is, the more the classes matter that are not the likeliest.
        loss: a loss or its name, or a structure of them as the outputs have; None: an output that
            is not compared. The Kullback-Leibler divergence is that of softmaxes, times the square
            of the temperature.

    Raises:
        ValueError: there is no loss, or the temperature is no positive number.
    """

    def __init__(self, temperature: float = 3.0, loss: Any = "kl_divergence") -> None:
        self.loss = loss_of(loss)
        _check_some(self.loss, "LogitsDistillation")
        if not isinstance(temperature, int | float):
            raise ValueError(f"temperature must be a number, got {type(temperature)}")
        if temperature <= 0.0:
            raise ValueError("temperature must be positive.")
        self.temperature = temperature

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Any:
        """The sum of the means of the losses."""

        def one(loss: Any, of_teacher: Any, of_student: Any) -> Any:
            pair = [td.convert_to_tensor(x) / self.temperature for x in (of_teacher, of_student)]
            if not _is_divergence(loss):
                return loss(*pair)
            return td.reduce_mean(loss(*map(td.nn.softmax, pair))) * self.temperature**2

        return _sum_of(one, self.loss, teacher_outputs, student_outputs)

    def get_config(self) -> dict[str, Any]:
        """The arguments, as plain data."""
        loss = serialization.serialize_keras_object(self.loss)
        return {"temperature": self.temperature, "loss": loss}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LogitsDistillation:
        """A loss from what `get_config` gave."""
        return cls(**(config | {"loss": serialization.deserialize_keras_object(config["loss"])}))


def _is_divergence(loss: Any) -> bool:
    return isinstance(loss, losses.KLDivergence) or loss is losses.kl_divergence


def inputs_of(model: Any) -> Any:
    """A model's inputs as `keras.Input` gave them; None where it does not describe itself."""
    try:
        return model.inputs
    except (AttributeError, ValueError):
        return None
