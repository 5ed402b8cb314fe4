"""Layers around a layer: Wrapper, TimeDistributed, Bidirectional and SpectralNormalization."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.spatial import size_of


class Wrapper(Layer):
    """Base of layers around a layer.

    Args:
        layer: the layer inside.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("layer",)
    _takes_objects: ClassVar[tuple[str, ...]] = ("layer",)

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(layer, Layer):
            raise ValueError(f"{type(self).__name__}: a layer is expected, got {layer!r}")
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)


class TimeDistributed(Wrapper):
    """A layer applied to each step of (batch, time, ...).

    A layer that takes a mask is given that of the step. A layer with statistics, such as
    BatchNormalization, is called for one step after the other, others once for all steps.
    """

    supports_masking = True

    def build(self, input_shape: Any = None) -> None:
        if input_shape is None or len(input_shape) < 3:
            raise ValueError(
                f'Layer "{self.name}" (TimeDistributed) takes inputs of at least 3 axes, got shape '
                f"{input_shape}"
            )
        super().build((input_shape[0], *input_shape[2:]))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> td.Tensor:
        if mask is not None and not mask.shape[:2].is_compatible_with(inputs.shape[:2]):
            raise ValueError(
                "`TimeDistributed` layer was passed a mask of shape "
                f"{mask.shape}, whose batch and time axes do not fit inputs of shape {inputs.shape}"
            )
        if self.layer.non_trainable_weights and inputs.shape[1] is not None:
            masks = (None,) * inputs.shape[1] if mask is None else td.unstack(mask, axis=1)
            pairs = zip(td.unstack(inputs, axis=1), masks, strict=True)
            return td.stack([self._of_steps(x, m, training) for x, m in pairs], 1)
        first = [size_of(inputs, axis) for axis in (0, 1)]
        if mask is not None:
            mask = td.reshape(mask, [-1, *(size_of(mask, a) for a in range(2, len(mask.shape)))])
        rest = [size_of(inputs, axis) for axis in range(2, len(inputs.shape))]
        outputs = self._of_steps(td.reshape(inputs, [-1, *rest]), mask, training)
        after = [size_of(outputs, axis) for axis in range(1, len(outputs.shape))]
        return td.reshape(outputs, [*first, *after])

    def _of_steps(self, steps: td.Tensor, mask: Any, training: Any) -> td.Tensor:
        given = {"mask": mask} if mask is not None and self.layer._call_takes("mask") else {}
        outputs: td.Tensor = self.layer(steps, training=training, **given)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        inner = self.layer.compute_output_shape((input_shape[0], *input_shape[2:]))
        return (inner[0], input_shape[1], *inner[1:])

    def _has_rule(self) -> bool:
        same = self.layer.compute_dtype == self.compute_dtype
        return same and self.layer._has_rule()


class Bidirectional(Layer):
    """A recurrent layer and its mirror image, which starts at the last step.

    Args:
        layer: an RNN of this package, from whose settings the other is made.
        merge_mode: "concat", "sum", "mul", "ave", or None for both results.
        weights: arrays to start from, those of `layer` first.
        backward_layer: the layer to use for the other direction.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("layer", "backward_layer", "merge_mode")
    _takes_objects: ClassVar[tuple[str, ...]] = ("layer", "backward_layer")

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", weights: Any = None,
        backward_layer: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"Bidirectional: unknown merge_mode {merge_mode!r}")
        if getattr(layer, "_example_shape", None) is not None:
            kwargs.setdefault("input_shape", layer._example_shape)
        super().__init__(**kwargs)
        for one in (layer, backward_layer):
            if not isinstance(one, Layer | None) or one is layer is None:
                raise ValueError(
                    "Please initialize `Bidirectional` layer with a `keras.layers.Layer` instance. "
                    f"Received: {one}"
                )
        config, plain = layer.get_config(), layer.name
        if hasattr(layer, "use_cudnn"):  # which configs do not have
            config["use_cudnn"] = layer.use_cudnn
        # The layer that is given keeps its own weights and name.
        name = f"forward_{plain.removeprefix('forward_')}"
        forward_layer = type(layer).from_config(config | {"name": name})
        if backward_layer is None:
            name = f"backward_{plain.removeprefix('backward_')}"
            turned = {"go_backwards": not layer.go_backwards, "name": name}
            backward_layer = type(layer).from_config(config | turned)
        layer = forward_layer
        for name, same in (("go_backwards", False), ("return_sequences", True),
                           ("return_state", True), ("stateful", True)):  # fmt: skip
            values = getattr(layer, name), getattr(backward_layer, name)
            if (values[0] == values[1]) is not same:
                raise ValueError(
                    f"Bidirectional: {name} of both layers must {'agree' if same else 'differ'}, "
                    f"got {values[0]} and {values[1]}"
                )
        self.forward_layer, self.backward_layer = layer, backward_layer
        self.merge_mode = merge_mode
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state
        self.stateful = layer.stateful
        self._first_weights = weights
        for one in (layer, backward_layer):
            one.zero_output_for_mask = one.return_sequences

    @property
    def layer(self) -> Any:
        """The layer that walks forward."""
        return self.forward_layer

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
        if self._first_weights is not None:
            self.set_weights(self._first_weights)

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Any:
        if isinstance(sequences, list | tuple):
            sequences, *initial_state = sequences
            mask = mask[0] if isinstance(mask, list | tuple) else mask
        states: tuple[Any, Any] = (None, None)
        if initial_state is not None:
            half = len(initial_state) // 2
            states = (initial_state[:half], initial_state[half:])
        given = {"mask": mask, "training": training}
        forward = self.forward_layer(sequences, initial_state=states[0], **given)
        backward = self.backward_layer(sequences, initial_state=states[1], **given)
        after: list[Any] = []
        if self.return_state:
            forward, *first = forward
            backward, *second = backward
            after = [*first, *second]
        if self.return_sequences:
            backward = td.reverse(backward, [1])
        merged = self._merged(forward, backward)
        if not after:
            return merged
        return (*(merged if self.merge_mode is None else (merged,)), *after)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the steps, where the results have them."""
        mask = mask[0] if isinstance(mask, list | tuple) else mask
        own = mask if self.return_sequences else None
        return (own, own) if self.merge_mode is None else own

    def reset_state(self) -> None:
        """Let the next call start from zeros.

        Raises:
            AttributeError: the layers are not stateful.
        """
        if not self.stateful:
            raise AttributeError(f'Layer "{self.name}" (Bidirectional) is not stateful')
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    def _merged(self, forward: td.Tensor, backward: td.Tensor) -> Any:
        if self.merge_mode == "concat":
            return td.concat([forward, backward], -1)
        if self.merge_mode == "mul":
            return forward * backward
        if self.merge_mode is None:
            return forward, backward
        total = forward + backward
        return total / 2 if self.merge_mode == "ave" else total


class SpectralNormalization(Wrapper):
    """A layer whose kernel or table is divided by its largest singular value in each training step.

    Args:
        layer: has `kernel` or `embeddings`.
        power_iterations: steps of the power method for each call.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("power_iterations",)

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        if power_iterations < 1:
            raise ValueError(
                f"SpectralNormalization: power_iterations must be positive, got {power_iterations}"
            )
        self.power_iterations = power_iterations

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        kernel = getattr(self.layer, "kernel", None)
        self.kernel: Any = getattr(self.layer, "embeddings", None) if kernel is None else kernel
        if self.kernel is None:
            raise ValueError(
                f'Layer "{self.name}" (SpectralNormalization): {self.layer!r} has neither kernel '
                "nor embeddings"
            )
        self.vector_u = self.add_weight(
            (1, self.kernel.shape[-1]), td.keras.initializers.TruncatedNormal(stddev=0.02),
            trainable=False, name="vector_u", dtype=self.kernel.dtype,
        )  # fmt: skip

    def call(self, inputs: Any, training: Any = False) -> Any:
        if training:
            self._normalize()
        return self.layer(inputs, training=training)

    def _normalize(self) -> None:
        kernel, u = self.kernel.read_value(), self.vector_u.read_value()
        rows = td.reshape(kernel, [-1, kernel.shape[-1]])
        v = u
        for _ in range(self.power_iterations):
            v = _unit(td.matmul(u, rows, transpose_b=True))
            u = _unit(td.matmul(v, rows))
        sigma = td.matmul(td.matmul(v, rows), u, transpose_b=True)
        empty = td.reduce_all(td.equal(kernel, td.zeros_like(kernel)))
        divided = td.reshape(kernel / sigma, kernel.shape)
        self.vector_u.assign(td.where(empty, self.vector_u.read_value(), u))
        self.kernel.assign(td.where(empty, kernel, divided))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self.layer.compute_output_shape(input_shape)


def _unit(x: td.Tensor) -> td.Tensor:
    """x over its norm."""
    return x * td.minimum(td.math.rsqrt(td.reduce_sum(td.square(x))), 1e7)
