"""Layers whose tables are kept in 8 bits: whole numbers, and what they are multiples of.

A table of floats becomes ``round(table * scale)`` with ``scale = 127 / largest``, one for each of
its columns (rows of an embedding); a call brings its inputs into the same form, multiplies whole
numbers, and divides the results by both scales.
"""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras import config, dtype_policies
from treadle.keras.layers.lora import Adaptable

_MOST = 127.0
_OTHER_MODES = ("float8", "int4", "gptq", "awq")  # that Keras has, too


def in_8_bits(x: Any, axes: Any) -> tuple[td.Tensor, td.Tensor]:
    """Numbers from -127 to 127, and what they were multiplied by, with axes of 1.

    Args:
        axes: along which the largest number is found.
    """
    largest = td.reduce_max(td.abs(x), axes, keepdims=True)
    scale = _MOST / (largest + td.cast(config.epsilon(), x.dtype))
    whole = td.clip_by_value(td.round(x * scale), -_MOST, _MOST)
    return td.cast(whole, td.int8), scale


class Quantizable(Adaptable):
    """A layer whose table may be kept in 8 bits (`quantize`).

    Args:
        quantization_config: None: Keras's objects that say how numbers are rounded are not taken.
    """

    _settings: ClassVar[tuple[str, ...]] = ("quantization_config",)
    _by_rows: ClassVar[bool] = False  # whether rows have scales of their own, instead of columns
    kernel_scale: Any
    embeddings_scale: Any

    def __init__(self, *, quantization_config: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if quantization_config is not None:
            raise ValueError(
                f"{type(self).__name__}: quantization_config={quantization_config!r} is not "
                "supported: use quantize('int8'), which rounds to 127 parts of the largest number"
            )
        self.quantization_config = None

    @property
    def quantization_mode(self) -> str | None:
        """In which form the table is kept: "int8", or None for floats."""
        mode: str | None = self.dtype_policy.quantization_mode
        return mode

    @property
    def _scales(self) -> td.Variable:
        found: td.Variable = getattr(self, f"{self._adapts}_scale")
        return found

    def _scale_axes(self) -> list[int]:
        """The axes of the table that share a scale."""
        return [1 if self._by_rows else 0]

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Keep the table in 8 bits from now on. Training does not change it any more; a product
        beside it (`enable_lora`) may be trained.

        Args:
            mode: "int8".
            type_check: whether classes that derive from the layer are refused, whose calls may not
                know of it.
            config: None: Keras's objects that say how numbers are rounded are not taken.

        Raises:
            NotImplementedError: another mode of Keras, a `config`, or a derived class.
            ValueError: no such mode, or the layer is not built or quantized already.
        """
        if type_check and not type(self).__module__.startswith("treadle."):
            raise NotImplementedError(
                f"Layer {type(self).__name__} does not have a `quantize()` method implemented."
            )
        if not self.built:
            raise ValueError("Cannot quantize a layer that isn't yet built.")
        if self.quantization_mode is not None:
            raise ValueError(
                f"Layer '{self.name}' is already quantized with dtype_policy='"
                f"{self.dtype_policy.name}'. Received: mode={mode}"
            )
        check_mode(mode, config)
        table = self._table
        whole, scale = in_8_bits(table.read_value(), self._scale_axes())
        source = self.dtype_policy.name
        self._forget_table(table)
        self._policy = dtype_policies.QuantizedDTypePolicy("int8", source)
        self._build_quantized(tuple(table.shape))
        self._table.assign(whole)
        self._scales.assign(self._as_kept(scale))

    def _forget_table(self, table: td.Variable) -> None:
        self._added_weights = [v for v in self._added_weights if v is not table]
        self._held = [v for v in self._held if v is not table]
        self._penalties = [pair for pair in self._penalties if pair[1] is not table]

    def _build_quantized(self, shape: tuple[int, ...]) -> None:
        """A table of zeros in 8 bits and its scales, which a file or `quantize` fills."""
        kept = self._shape_of_scales(shape)
        name = self._adapts
        given = {"trainable": False, "autocast": False}
        setattr(self, name, self._new_weight(shape, "zeros", "int8", name=name, **given))
        scales = self._new_weight(kept, "ones", name=f"{name}_scale", **given)
        setattr(self, f"{name}_scale", scales)

    def _shape_of_scales(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in which scales are kept, for that of the table."""
        axes = self._scale_axes()
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def _as_kept(self, scale: td.Tensor) -> td.Tensor:
        """Scales with axes of 1 beside the table, as they are kept."""
        return td.squeeze(scale, self._scale_axes())

    def _beside_table(self, scales: td.Tensor) -> td.Tensor:
        """Scales as they are kept, with axes of 1 beside the table."""
        for axis in self._scale_axes():
            scales = td.expand_dims(scales, axis)
        return scales

    def _with_table(self, shape: tuple[int, ...], **settings: Any) -> None:
        """Make the table, of floats or in 8 bits, as the policy says."""
        if self.quantization_mode is None:
            setattr(self, self._adapts, self._add(self._adapts, shape, **settings))
        else:
            self._build_quantized(shape)

    def _floats(self) -> td.Tensor:
        """The table as floats."""
        table: td.Tensor = self._table.read_value()
        if self.quantization_mode is None:
            return table
        scales = self._beside_table(self._scales.read_value())
        return td.cast(td.cast(table, scales.dtype) / scales, self.compute_dtype)

    def _floats_with_product(self) -> td.Tensor:
        """The table as floats, with the product of low rank."""
        table = self._floats()
        return table + td.cast(self._product(), table.dtype) if self.lora_enabled else table

    def _product_in_8_bits(self, inputs: td.Tensor) -> td.Tensor:
        """What the inputs give with the table, without the product of low rank."""
        table, scales = self._table.read_value(), self._scales.read_value()

        @td.custom_gradient
        def multiplied(x: td.Tensor) -> Any:
            whole, scale = in_8_bits(x, self._input_axes(len(x.shape)))
            found = td.cast(self._contract_whole(whole, table), x.dtype)
            both = self._scales_of_results(td.cast(scale, scales.dtype), scales)
            result = found / td.cast(both, x.dtype)

            def gradient(upstream: td.Tensor) -> td.Tensor:
                with td.GradientTape() as tape:
                    tape.watch(x)
                    exact = self._contract(x, self._floats())
                found: td.Tensor = tape.gradient(exact, x, output_gradients=upstream)
                return found

            return result, gradient

        found: td.Tensor = multiplied(inputs)
        return found

    def _outputs(self, inputs: td.Tensor) -> td.Tensor:
        """What the inputs give with the table, whichever form that has."""
        if self.quantization_mode is None:
            return self._contract(inputs, self._adapted())
        found = self._product_in_8_bits(inputs)
        if self.lora_enabled:
            found = found + self._contract(inputs, td.cast(self._product(), inputs.dtype))
        return found

    def _input_axes(self, rank: int) -> list[int]:
        """The axes of inputs that share a scale: those that a product sums up."""
        return [rank - 1]

    def _contract(self, inputs: td.Tensor, table: td.Tensor) -> td.Tensor:
        """The layer's product."""
        raise NotImplementedError

    def _contract_whole(self, inputs: td.Tensor, table: td.Tensor) -> td.Tensor:
        """The layer's product of whole numbers of 8 bits, in 32 bits."""
        return self._contract(td.cast(inputs, td.int32), td.cast(table, td.int32))

    def _scales_of_results(self, scale: td.Tensor, scales: td.Tensor) -> td.Tensor:
        """What results are divided by: the scales of inputs times those of the table."""
        return scale * scales

    def _kept_variables(self) -> list[td.Variable]:
        found = super()._kept_variables()
        if self.quantization_mode is None:
            return found
        # Keras has the table first and its scales last.
        ends = self._table, self._scales
        rest = [v for v in found if all(v is not end for end in ends)]
        return [ends[0], *rest, ends[1]]

    def _with_product(self) -> dict[int, Any]:
        if self.quantization_mode is None or not self.lora_enabled:
            return super()._with_product()
        whole, scale = in_8_bits(self._floats() + self._product(), self._scale_axes())
        return {
            id(self._table): whole.numpy(),
            id(self._scales): self._as_kept(scale).numpy(),
        }


def check_mode(mode: Any, config: Any) -> None:
    """Refuse what numbers are not rounded to."""
    if config is not None:
        raise NotImplementedError(
            "quantize: configurations of quantizers are not taken: use quantize('int8'), which "
            "rounds to 127 parts of the largest number"
        )
    if mode in _OTHER_MODES:
        raise NotImplementedError(
            f"quantize: mode {mode!r} is not provided: use 'int8', or the dtypes float16 and "
            "bfloat16"
        )
    if mode != "int8":
        raise ValueError(
            f"Invalid quantization mode. Expected one of ('int8',). Received: mode={mode}"
        )
