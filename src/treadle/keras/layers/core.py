"""Dense, Embedding, Masking, activations and the layers that only move elements."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import activations, quantizers, regularizers, sparse
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.lora import Table
from treadle.keras.layers.quantized import Quantizable
from treadle.keras.layers.spatial import format_name
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.layers.table_forms import Form, InBytes, InHalfBytes, Sharing
from treadle.keras.masks import set_mask


class Dense(Quantizable):
    """``activation(inputs @ kernel + bias)``.

    Args:
        units: the size of the output's last axis.
        activation: a name or a function; None is linear.
        use_bias: whether to add a bias.
        kernel_initializer, bias_initializer: see `keras.initializers`.
        kernel_regularizer, bias_regularizer: see `keras.regularizers`.
        kernel_constraint, bias_constraint: see `keras.constraints`.
    """

    kernel = Table()
    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("units", "activation", "use_bias")
    _weight_kinds: ClassVar[dict[str, str]] = {"kernel": "glorot_uniform", "bias": "zeros"}

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint, lora_rank=lora_rank, lora_alpha=lora_alpha,
            quantization_config=quantization_config, **kwargs,
        )  # fmt: skip
        if not isinstance(units, int | np.integer) or units < 1:
            raise ValueError(f"Dense: units must be a positive int, got {units!r}")
        self.units = int(units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        size = input_shape[-1]
        if size is None:
            raise ValueError(
                f'Layer "{self.name}" (Dense) needs a known last axis, got {input_shape}'
            )
        self._with_table((size, self.units))
        self.bias = self._own_weight("bias", (self.units,)) if self.use_bias else None
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self._enable_if_asked()

    def call(self, inputs: Any, training: Any = None) -> td.Tensor:
        if not inputs.dtype.is_floating:
            inputs = td.cast(inputs, self.dtype)
        outputs = self._table_products(inputs)
        if self.bias is not None:
            outputs = outputs + self._bias_to_add()
        return outputs if self.activation is None else self.activation(outputs)

    def _contract(self, inputs: td.Tensor, table: td.Tensor) -> td.Tensor:
        if hasattr(inputs, "dense_shape"):
            return _sparse_product(inputs, table)
        if len(inputs.shape) == 2:
            return td.matmul(inputs, table)
        return td.tensordot(inputs, table, [[len(inputs.shape) - 1], [0]])

    def _contract_whole(self, inputs: td.Tensor, table: td.Tensor) -> td.Tensor:
        return td.matmul(inputs, table, output_type=td.int32)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.units)


def _sparse_product(inputs: Any, kernel: td.Tensor) -> td.Tensor:
    """A sparse tensor's last axis times a matrix."""
    if len(inputs.shape) == 2:
        return td.sparse.sparse_dense_matmul(inputs, kernel)
    rows = td.sparse.reshape(inputs, [-1, kernel.shape[0]])
    sizes = td.concat([td.shape(inputs)[:-1], [kernel.shape[1]]], 0)
    found = td.reshape(td.sparse.sparse_dense_matmul(rows, kernel), sizes)
    return td.ensure_shape(found, [*inputs.shape[:-1], kernel.shape[1]])


class Embedding(Quantizable):
    """Rows of a table: ints in [0, input_dim) become vectors of output_dim.

    Negative ones count from the end.

    Args:
        mask_zero: 0 fills sequences up: the mask of the results is where the inputs are not 0.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: of the table.
        weights: a list of the table to start from.
    """

    embeddings = Table()
    _adapts = "embeddings"
    _by_rows = True
    lora_embeddings_a: Any
    lora_embeddings_b: Any
    _config_names: ClassVar[tuple[str, ...]] = (
        "input_dim", "output_dim", "mask_zero", "activity_regularizer",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {"embeddings": "uniform"}

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: Any = None,
        *,
        input_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        if input_length is not None:  # Keras 2
            kwargs.setdefault("input_shape", (input_length,))
        super().__init__(
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            quantization_config=quantization_config,
            **kwargs,
        )
        for label, size in (("input_dim", input_dim), ("output_dim", output_dim)):
            if not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(
                    f"Embedding: {label} must be a positive int. Received: {label}={size}"
                )
        self.input_dim, self.output_dim, self.mask_zero = input_dim, output_dim, mask_zero
        self.supports_masking = mask_zero
        if weights is not None:
            self.build(None)
            self.set_weights(weights if isinstance(weights, list) else [weights])

    def build(self, input_shape: Any = None) -> None:
        self._with_table((self.input_dim, self.output_dim))
        self._enable_if_asked()

    def call(self, inputs: Any) -> td.Tensor:
        if isinstance(inputs, td.SparseTensor):  # what it leaves out is 0
            inputs = td.sparse.to_dense(inputs)
        if not inputs.dtype.is_integer:
            inputs = td.cast(inputs, "int32")
        if inputs.dtype.name.startswith("int"):  # negative numbers count from the end, as in Keras
            inputs = td.where(inputs < 0, inputs + self.input_dim, inputs)
        quantized = self.quantization_mode is not None
        rows = self._form().rows(inputs) if quantized else td.gather(self._adapted_table, inputs)
        if not self.lora_enabled:
            return rows
        product = td.tensordot(td.gather(self.lora_embeddings_a, inputs), self.lora_embeddings_b, 1)
        return rows + td.cast(product * self._lora_factor, rows.dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where the inputs are not 0, with `mask_zero`."""
        if not self.mask_zero:
            return None
        if isinstance(inputs, KerasTensor):
            return inputs._not_equal(0)  # type: ignore[attr-defined]
        return td.not_equal(inputs, td.zeros_like(inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding):
    """An `Embedding` that also takes vectors back: called with ``reverse=True`` it gives how well
    they fit each of the ints.

    Args:
        tie_weights: by the same table; else by one of its own.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: of the tables.
        mask_zero: 0 fills sequences up.
        reverse_dtype: that the way back is computed in.
        logit_soft_cap: what its results do not exceed: ``tanh(x / cap) * cap``.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("tie_weights", "reverse_dtype", "logit_soft_cap")

    def __init__(
        self, input_dim: int, output_dim: int, tie_weights: bool = True,
        embeddings_initializer: Any = "uniform", embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None, mask_zero: bool = False, reverse_dtype: Any = None,
        logit_soft_cap: float | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            input_dim, output_dim, embeddings_initializer, embeddings_regularizer,
            embeddings_constraint, mask_zero, **kwargs,
        )  # fmt: skip
        self.tie_weights, self.reverse_dtype = tie_weights, reverse_dtype
        self.logit_soft_cap = logit_soft_cap

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        if self.tie_weights:
            return
        if self.quantization_mode is not None:
            self._reverse_form().build()
            return
        shape = (self.output_dim, self.input_dim)
        self.reverse_embeddings = self._own_weight(
            "embeddings", shape, name="reverse_embeddings", regularizer=None, constraint=None
        )

    def _reverse_form(self) -> Form:
        """How the table of the way back is kept, of which columns have scales."""
        name, shape = "reverse_embeddings", (self.output_dim, self.input_dim)
        rounding = getattr(self.quantization_config, "weight_quantizer", None)
        if self.quantization_mode == "int8":
            return InBytes(self, name, rounding, shape, Sharing((0,)))
        return InHalfBytes(self, name, rounding, shape, shape, 0, 0, self._codes_per_scale, None)

    def _keep_in(self, config: Any, policy: Any) -> None:
        super()._keep_in(config, policy)
        if self.tie_weights:
            return
        table = self.reverse_embeddings
        floats = table.read_value()
        self._forget_table(table)
        form = self._reverse_form()
        form.build()
        form.assign(floats)

    def _kept_variables(self) -> list[td.Variable]:
        found = super()._kept_variables()
        if self.quantization_mode is None or self.tie_weights:
            return found
        # The table of the way back is the last one; both may share the numbers of groups.
        own = [v for v in self._reverse_form().variables() if v is not vars(self).get("g_idx")]
        return [v for v in found if all(v is not other for other in own)] + own

    def _backwards(self) -> td.Tensor:
        """The table of the way back as floats."""
        if self.tie_weights:
            return td.transpose(self._floats_with_product())
        if self.quantization_mode is not None:
            return self._reverse_form().floats()
        found: td.Tensor = self.reverse_embeddings.read_value()
        return found

    @property
    def inputs_quantizer(self) -> Any:
        """What rounds the vectors of the way back; None: they stay floats."""
        if self.quantization_config is not None or self.quantization_mode is None:
            return super().inputs_quantizer if self.quantization_mode else None
        return quantizers.AbsMaxQuantizer()

    def call(self, inputs: Any, reverse: bool = False) -> td.Tensor:
        if not reverse:
            result = super().call(inputs)
            set_mask(result, super().compute_mask(inputs))
            return result
        kernel, quantizer = self._backwards(), self.inputs_quantizer
        if quantizer is not None:
            whole, scale = quantizer(inputs, axis=-1)
            inputs = td.cast(whole, kernel.dtype) / td.cast(scale, kernel.dtype)
        elif self.quantization_mode is None and self.reverse_dtype is not None:
            inputs, kernel = (td.cast(x, self.reverse_dtype) for x in (inputs, kernel))
        logits = td.tensordot(inputs, kernel, [[-1], [0]])
        cap = self.logit_soft_cap
        return logits if cap is None else td.tanh(logits / cap) * cap

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: `call` sets the mask of vectors, and the way back has none."""
        return None


class Identity(Layer):
    """Its inputs, unchanged."""

    supports_masking = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._build_at_init()

    def call(self, inputs: Any) -> Any:
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


class Masking(Layer):
    """Leaves out steps: those of (batch, time, features) whose features all equal `mask_value`.

    Their features become 0, and the mask of the results is False there.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("mask_value",)

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value
        self._build_at_init()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where a feature differs from the value."""
        if isinstance(inputs, KerasTensor):
            return inputs._not_equal(self.mask_value)._any(axis=-1)  # type: ignore[attr-defined]
        return td.reduce_any(self._differs(inputs), -1)

    def _differs(self, inputs: Any) -> td.Tensor:
        inputs = td.convert_to_tensor(inputs)
        floating = inputs.dtype.is_floating
        return td.not_equal(inputs if floating else td.cast(inputs, td.float32), self.mask_value)

    def call(self, inputs: Any) -> td.Tensor:
        kept = td.reduce_any(self._differs(inputs), -1, keepdims=True)
        return td.where(kept, inputs, td.zeros_like(inputs))


class ActivityRegularization(Identity):
    """Its inputs, unchanged: a penalty on them is added to the loss.

    Args:
        l1, l2: factors of the sums of absolute values and of squares; the penalty is divided by
            the batch's size.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("l1", "l2")
    _no_settings: ClassVar[tuple[str, ...]] = ("activity_regularizer",)

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)
        self.l1, self.l2 = l1, l2


class Activation(Layer):
    """Applies an activation function."""

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("activation",)

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return self.activation(inputs)


class ReLU(Layer):
    """The rectifier; see `keras.activations.relu`.

    Raises:
        ValueError: a negative maximum, slope or threshold, or None as slope or threshold.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("max_value", "negative_slope", "threshold")

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if max_value is not None and max_value < 0:
            raise ValueError(
                "max_value of a ReLU layer cannot be a negative value. Received: "
                f"max_value={max_value}"
            )
        for key, value in (("negative_slope", negative_slope), ("threshold", threshold)):
            if value is None or value < 0:
                raise ValueError(
                    f"{key} of a ReLU layer cannot be None or a negative value. Received: "
                    f"{key}={value}"
                )
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class ThresholdedReLU(Layer):
    """Keras 2's rectifier that gives 0 up to `theta`, and x above it.

    Raises:
        ValueError: `theta` is None or negative.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("theta",)

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if theta is None or theta < 0:
            raise ValueError(
                f"The theta value of a Thresholded ReLU layer should be >=0. Received: {theta}"
            )
        self.theta = float(theta)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return td.multiply(inputs, td.cast(inputs > self.theta, inputs.dtype))


class ELU(Layer):
    """The exponential linear unit."""

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return activations.elu(inputs, self.alpha)


class PReLU(Layer):
    """The rectifier with a slope below zero that is learnt, for each element of an example.

    Args:
        shared_axes: axes (the batch is 0) along which one slope serves all.
        alpha_initializer, alpha_regularizer, alpha_constraint: of the slopes.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("shared_axes",)
    _weight_kinds: ClassVar[dict[str, str]] = {"alpha": "zeros"}

    def __init__(
        self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None,
        alpha_constraint: Any = None, shared_axes: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            alpha_initializer=alpha_initializer, alpha_regularizer=alpha_regularizer,
            alpha_constraint=alpha_constraint, **kwargs,
        )  # fmt: skip
        given = (shared_axes,) if isinstance(shared_axes, int) else shared_axes
        self.shared_axes = None if given is None else list(given)

    def build(self, input_shape: Any) -> None:
        shared = self.shared_axes or ()
        shape = [1 if i in shared else d for i, d in enumerate(input_shape)][1:]
        if None in shape:
            raise ValueError(
                f'Layer "{self.name}" (PReLU): give the open axes of {tuple(input_shape)} as '
                "shared_axes"
            )
        self.alpha = self._own_weight("alpha", shape)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.relu(inputs) - self.alpha * td.nn.relu(-inputs)


class RepeatVector(Layer):
    """(batch, features) `n` times along a new time axis."""

    _config_names: ClassVar[tuple[str, ...]] = ("n",)

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(n, int):
            raise TypeError(f"Expected an integer value for `n`, got {type(n)}.")
        if n < 1:
            raise ValueError(f"RepeatVector: n must be a positive int, got {n!r}")
        self.n = n
        self.input_spec = InputSpec(ndim=2)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return td.repeat(inputs[:, None], self.n, axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], self.n, input_shape[1])


class LeakyReLU(Layer):
    """The leaky rectifier."""

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        negative_slope = kwargs.pop("alpha", negative_slope)  # Keras 2's name
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0:
            raise ValueError(
                "The negative_slope value of a Leaky ReLU layer cannot be None or negative value. "
                f"Expected a float. Received: negative_slope={negative_slope}"
            )
        self.negative_slope = negative_slope
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.leaky_relu(inputs, self.negative_slope)


class Softmax(Layer):
    """Softmax along `axis`, or along several together; what the mask leaves out gets 0.

    The mask has the inputs' shape, or sizes of 1 in it.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self._build_at_init()

    def call(self, inputs: Any, mask: Any = None) -> td.Tensor:
        if mask is not None:
            mask = td.cast(mask, td.bool)
            fits = len(mask.shape) <= len(inputs.shape) and all(
                m in (1, None) or d is None or m == d
                for m, d in zip(mask.shape[::-1], inputs.shape[::-1], strict=False)
            )
            if not fits:
                raise ValueError(
                    f"Softmax: a mask of shape {mask.shape} does not fit inputs of shape "
                    f"{inputs.shape}"
                )
            low = -3e4 if inputs.dtype == td.float16 else -1e9
            inputs = td.where(mask, inputs, td.constant(low, inputs.dtype))
        if isinstance(self.axis, int):
            outputs = activations.softmax(inputs, axis=self.axis)
        else:
            axes = list(self.axis)
            outputs = td.exp(inputs - td.reduce_logsumexp(inputs, axes, keepdims=True))
        return outputs if mask is None else td.where(mask, outputs, td.zeros_like(outputs))


class Flatten(Layer):
    """All axes but the batch's become one.

    Args:
        data_format: with "channels_first" the channels are moved behind the other axes first.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("data_format",)

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = format_name(data_format)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        rank = len(inputs.shape)
        if rank == 1:
            return sparse.expand_dims(inputs, 1)  # type: ignore[no-any-return]
        if self.data_format == "channels_first" and rank > 2:
            inputs = sparse.transpose(inputs, [0, *range(2, rank), 1])
        size = inputs.shape[1:].num_elements()
        if size is None:
            return sparse.reshape(inputs, [td.shape(inputs)[0], -1])  # type: ignore[no-any-return]
        return sparse.reshape(inputs, [-1, size])  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        rest = input_shape[1:]
        return input_shape[0], None if None in rest else math.prod(rest)


class Reshape(Layer):
    """Gives each example another shape; one entry may be -1."""

    _config_names: ClassVar[tuple[str, ...]] = ("target_shape",)

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)
        if any(d is not None and d < -1 for d in self.target_shape) or (
            self.target_shape.count(-1) > 1
        ):
            raise ValueError(
                "Reshape: the entries of `target_shape` are non-negative integers, or -1 for at "
                f"most one unknown dimension. Received: target_shape={self.target_shape}"
            )
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        target = self.compute_output_shape(tuple(inputs.shape))[1:]
        if None in target:
            target = self.target_shape
        count = inputs.shape[0]
        first = td.shape(inputs)[0] if count is None else count
        return sparse.reshape(inputs, [first, *target])  # type: ignore[no-any-return]

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


class Permute(Layer):
    """Reorders the axes after the batch axis; `dims` counts from 1."""

    _config_names: ClassVar[tuple[str, ...]] = ("dims",)

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return sparse.transpose(inputs, [0, *self.dims])  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], *(input_shape[d] for d in self.dims))
