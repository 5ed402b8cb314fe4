"""Dense, Embedding, Activation, Dropout and the layers that only move elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import activations, constraints, initializers
from treadle.keras.layers.base import InputSpec, Layer


class Dense(Layer):
    """``activation(inputs @ kernel + bias)``.

    Args:
        units: the size of the output's last axis.
        activation: a name or a function; None is linear.
        use_bias: whether to add a bias.
        kernel_initializer, bias_initializer: see `keras.initializers`.
        kernel_regularizer, bias_regularizer: see `keras.regularizers`.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(units, int | np.integer) or units < 1:
            raise ValueError(f"Dense: units must be a positive int, got {units!r}")
        self.units = int(units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self._regularizers = (kernel_regularizer, bias_regularizer)
        self._constraints = (constraints.get(kernel_constraint), constraints.get(bias_constraint))
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        size = input_shape[-1]
        if size is None:
            raise ValueError(
                f'Layer "{self.name}" (Dense) needs a known last axis, got {input_shape}'
            )
        self.kernel = self.add_weight(
            (size, self.units), self.kernel_initializer, name="kernel",
            regularizer=self._regularizers[0], constraint=self._constraints[0],
        )  # fmt: skip
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                (self.units,), self.bias_initializer, name="bias",
                regularizer=self._regularizers[1], constraint=self._constraints[1],
            )  # fmt: skip
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        if not inputs.dtype.is_floating:
            inputs = td.cast(inputs, self.dtype)
        kernel = self.kernel.value()
        if len(inputs.shape) == 2:
            outputs = td.matmul(inputs, kernel)
        else:
            outputs = td.tensordot(inputs, kernel, [[len(inputs.shape) - 1], [0]])
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
        }


class Embedding(Layer):
    """Rows of a table: ints in [0, input_dim) become vectors of output_dim."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        input_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        if input_length is not None:  # Keras 2
            kwargs.setdefault("input_shape", (input_length,))
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = input_dim, output_dim
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self._regularizer = embeddings_regularizer

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim), self.embeddings_initializer, name="embeddings",
            regularizer=self._regularizer,
        )  # fmt: skip
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        if not inputs.dtype.is_integer:
            inputs = td.cast(inputs, "int32")
        return td.gather(self.embeddings, inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": initializers.serialize(self.embeddings_initializer),
        }


class Activation(Layer):
    """Applies an activation function."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return self.activation(inputs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"activation": activations.serialize(self.activation)}


class ReLU(Layer):
    """The rectifier; see `keras.activations.relu`."""

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "max_value": self.max_value,
            "negative_slope": self.negative_slope,
            "threshold": self.threshold,
        }


class ELU(Layer):
    """The exponential linear unit."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return activations.elu(inputs, self.alpha)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"alpha": self.alpha}


class PReLU(Layer):
    """The rectifier with a slope below zero that is learnt, for each element of an example.

    Args:
        shared_axes: axes (the batch is 0) along which one slope serves all.
    """

    def __init__(
        self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None,
        alpha_constraint: Any = None, shared_axes: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self._settings = (initializers.get(alpha_initializer), alpha_regularizer, alpha_constraint)
        given = shared_axes or ()
        self.shared_axes = (given,) if isinstance(given, int) else tuple(given)

    def build(self, input_shape: Any) -> None:
        shape = [1 if i in self.shared_axes else d for i, d in enumerate(input_shape)][1:]
        if None in shape:
            raise ValueError(
                f'Layer "{self.name}" (PReLU): give the open axes of {tuple(input_shape)} as '
                "shared_axes"
            )
        initializer, regularizer, constraint = self._settings
        self.alpha = self.add_weight(
            shape, initializer, name="alpha", regularizer=regularizer, constraint=constraint
        )
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.relu(inputs) - self.alpha * td.nn.relu(-inputs)


class RepeatVector(Layer):
    """(batch, features) `n` times along a new time axis."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"RepeatVector: n must be a positive int, got {n!r}")
        self.n = n
        self.input_spec = InputSpec(ndim=2)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.repeat(inputs[:, None], self.n, axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], self.n, input_shape[1])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"n": self.n}


class GaussianNoise(Layer):
    """While training, adds normally distributed noise."""

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= stddev <= 1:
            raise ValueError(f"GaussianNoise: stddev must be in [0, 1], got {stddev}")
        self.stddev, self.seed = stddev, seed
        self.built = True

    def call(self, inputs: Any, training: Any = False) -> td.Tensor:
        if not training:
            return inputs  # type: ignore[no-any-return]
        noise = td.random.normal(td.shape(inputs), 0.0, self.stddev, inputs.dtype, self.seed)
        return inputs + noise  # type: ignore[no-any-return]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"stddev": self.stddev, "seed": self.seed}


class LeakyReLU(Layer):
    """The leaky rectifier."""

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        negative_slope = kwargs.pop("alpha", negative_slope)  # Keras 2's name
        super().__init__(**kwargs)
        self.negative_slope = negative_slope
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.leaky_relu(inputs, self.negative_slope)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"negative_slope": self.negative_slope}


class Softmax(Layer):
    """Softmax along `axis`."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.softmax(inputs, axis=self.axis)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"axis": self.axis}


class Dropout(Layer):
    """While training, zeroes a fraction `rate` of the inputs and scales the rest up."""

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"Dropout: rate must be in [0, 1], got {rate}")
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed
        self.built = True

    def call(self, inputs: Any, training: Any = False) -> td.Tensor:
        if self.rate == 0:
            return inputs  # type: ignore[no-any-return]
        if isinstance(training, td.Tensor):
            chosen: td.Tensor = td.cond(
                training, lambda: self._dropped(inputs), lambda: td.identity(inputs)
            )
            return chosen
        return self._dropped(inputs) if training else inputs

    def _dropped(self, inputs: td.Tensor) -> td.Tensor:
        if self.rate == 1:
            return td.zeros_like(inputs)
        return td.nn.dropout(inputs, self.rate, self.noise_shape, self.seed)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "rate": self.rate, "noise_shape": self.noise_shape, "seed": self.seed,
        }  # fmt: skip


class Flatten(Layer):
    """All axes but the batch's become one."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        if len(inputs.shape) == 1:
            return inputs[:, None]  # type: ignore[no-any-return]
        size = inputs.shape[1:].num_elements()
        if size is None:
            return td.reshape(inputs, [td.shape(inputs)[0], -1])
        return td.reshape(inputs, [-1, size])

    def compute_output_shape(self, input_shape: Any) -> Any:
        rest = input_shape[1:]
        return input_shape[0], None if None in rest else math.prod(rest)


class Reshape(Layer):
    """Gives each example another shape; one entry may be -1."""

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        target = self.compute_output_shape(tuple(inputs.shape))[1:]
        if None in target:
            target = self.target_shape
        return td.reshape(inputs, [td.shape(inputs)[0], *target])

    def compute_output_shape(self, input_shape: Any) -> Any:
        target, rest = self.target_shape, input_shape[1:]
        if None in rest:
            return (input_shape[0], *(None if d == -1 else d for d in target))
        size = math.prod(rest)
        known = math.prod(d for d in target if d != -1)
        fits = size == known if -1 not in target else bool(known) and size % known == 0
        if not fits:
            raise ValueError(
                f'Layer "{self.name}" (Reshape) cannot give examples of shape {tuple(rest)} the '
                f"shape {target}: the numbers of elements differ"
            )
        return (input_shape[0], *(size // known if d == -1 else d for d in target))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"target_shape": self.target_shape}


class Permute(Layer):
    """Reorders the axes after the batch axis; `dims` counts from 1."""

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.transpose(inputs, [0, *self.dims])

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], *(input_shape[d] for d in self.dims))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"dims": self.dims}
