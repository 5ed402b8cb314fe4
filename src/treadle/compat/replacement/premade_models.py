"""Keras 2's `keras.experimental.LinearModel` and `WideDeepModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import treadle as td
from treadle.keras import activations, initializers, regularizers
from treadle.keras.models import Model


class LinearModel(Model):
    """``activation(sum of x @ kernel + bias)``, with a kernel for each input.

    Args:
        units: how many numbers there are of each example.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer: as for Dense; weights start with zeros.
    """

    bias: Any

    def __init__(
        self, units: int = 1, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = "zeros", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, bias_regularizer: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)

    def build(self, input_shape: Any) -> None:
        if isinstance(input_shape, Mapping):
            shapes = {name: input_shape[name] for name in sorted(input_shape)}
        else:
            several = isinstance(input_shape, list | tuple) and not all(
                size is None or isinstance(size, int) for size in input_shape
            )
            shapes = dict(enumerate(input_shape if several else [input_shape]))
        self.dense_layers = [self._dense(name, shape) for name, shape in shapes.items()]
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
        ) if self.use_bias else None  # fmt: skip

    def _dense(self, name: Any, shape: Any) -> Any:
        layer = td.keras.layers.Dense(
            self.units, use_bias=False, kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            name=name if isinstance(name, str) else None,
        )  # fmt: skip
        layer.build(shape)
        return layer

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The sum.

        Raises:
            ValueError: a dict lacks an input.
        """
        if isinstance(inputs, Mapping):
            names = [layer.name for layer in self.dense_layers]
            missing = set(names) - set(inputs)
            if missing:
                raise ValueError(
                    "The `inputs` dictionary does not match the structure expected by the model: "
                    f"it lacks {', '.join(sorted(missing))}"
                )
            given = [inputs[name] for name in names]
        else:
            given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        parts = [layer(x) for layer, x in zip(self.dense_layers, given, strict=True)]
        total = sum(parts[1:], parts[0])
        if self.bias is not None:
            total = td.nn.bias_add(total, self.bias)
        return self.activation(total)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes the model of."""
        return super(Model, self).get_config() | {
            "units": self.units, "use_bias": self.use_bias,
            "activation": activations.serialize(self.activation),
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
            "kernel_regularizer": regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": regularizers.serialize(self.bias_regularizer),
        }  # fmt: skip


class WideDeepModel(Model):
    """The sum of a linear and a deep model, trained together (Cheng et al., 2016).

    Args:
        linear_model, dnn_model: models whose results have the same structure.
        activation: of the sum.
    """

    def __init__(
        self, linear_model: Any, dnn_model: Any, activation: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.linear_model, self.dnn_model = linear_model, dnn_model
        self.activation = activations.get(activation)
        self._dnn_optimizer: Any = None

    def compile(self, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any) -> None:
        """As of other models; of two optimizers the second one is that of the deep model."""
        self._dnn_optimizer = None
        if isinstance(optimizer, list | tuple):
            optimizer, deep = optimizer
            self._dnn_optimizer = td.keras.optimizers.get(deep)
        super().compile(optimizer, *args, **kwargs)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        wide, deep = (
            inputs if isinstance(inputs, list | tuple) and len(inputs) == 2 else (inputs, inputs)
        )
        both = self.linear_model(wide), self.dnn_model(deep, training=training)
        return td.nest.map_structure(lambda a, b: self.activation(a + b), *both)

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update, of each model by its optimizer where there are two."""
        if self._dnn_optimizer is None:
            return super().train_step(data)
        x, y, sample_weight = td.keras.utils.unpack_x_y_sample_weight(data)
        with td.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self._loss_of(x, y, predicted, sample_weight, True)
        sides = (self.linear_model.trainable_variables, self.dnn_model.trainable_variables)
        for gradients, weights, optimizer in zip(
            tape.gradient(loss, sides), sides, (self.optimizer, self._dnn_optimizer), strict=True
        ):
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return self.compute_metrics(x, y, predicted, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes the model of."""
        return super(Model, self).get_config() | {
            "linear_model": td.keras.saving.serialize_keras_object(self.linear_model),
            "dnn_model": td.keras.saving.serialize_keras_object(self.dnn_model),
            "activation": activations.serialize(self.activation),
        }  # fmt: skip
