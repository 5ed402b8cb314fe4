"""Layers whose tables are kept in fewer bits: whole numbers, and what they are multiples of.

A table of floats becomes ``round(table * scale)`` with a scale for each of its columns (rows of an
embedding), or for groups in them (`table_forms`). A call may bring its inputs into such a form,
too: it multiplies whole numbers then, and divides the results by both scales.

In the mode "float8" the table stays in floats of more bits and is trained (`keras.float8`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras import dtype_policies, float8, quantizers
from treadle.keras.layers.arguments import training_of_the_call
from treadle.keras.layers.lora import Adaptable
from treadle.keras.layers.table_forms import Form, InBytes, InHalfBytes, Sharing, matrix_of


class Quantizable(Adaptable):
    """A layer whose table may be kept in fewer bits (`quantize`).

    Args:
        quantization_config: how, for a layer of a policy such as "int8_from_float32": a
            `keras.quantizers.QuantizationConfig`; that of the policy's mode when omitted.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("quantization_config",)
    _by_rows: ClassVar[bool] = False  # whether rows have scales of their own, instead of columns
    bias: Any
    kernel_scale: Any
    embeddings_scale: Any

    def __init__(self, *, quantization_config: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if quantization_config is not None:
            mode = self.quantization_mode
            quantization_config = quantizers.resolved(mode, quantization_config)
        self.quantization_config = quantization_config

    @property
    def _in_whole_numbers(self) -> bool:
        """Whether the table is kept in another form than floats."""
        return self.quantization_mode not in (None, "float8")

    def _scale_axes(self) -> tuple[int, ...]:
        """The axes of the table that share a scale."""
        return (1,) if self._by_rows else (0,)

    def _sharing(self) -> Sharing:
        """Which elements of the table have one scale in 8 bits."""
        return Sharing(self._scale_axes())

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Keep the table in fewer bits from now on. Training does not change it any more; a product
        beside it (`enable_lora`) may be trained.

        Args:
            mode: "int8" or "int4"; or "float8", for training with products of such floats; that
                of `config` when omitted.
            type_check: whether classes that derive from the layer are refused, whose calls may not
                know of it.
            config: a `keras.quantizers.QuantizationConfig`; that of the mode when omitted.

        Raises:
            NotImplementedError: another mode of Keras, or a derived class.
            ValueError: no such mode or configuration, or the layer is not built or quantized
                already.
        """
        config = quantizers.resolved(mode, config)
        if type_check and not type(self).__module__.startswith("treadle."):
            raise NotImplementedError(
                f"Layer {type(self).__name__} does not have a `quantize()` method implemented."
            )
        if not self.built:
            raise ValueError(
                "Cannot quantize a layer that isn't yet built. "
                f"Layer '{self.name}' (of type '{type(self).__name__}') is not built yet."
            )
        if self.quantization_mode is not None:
            raise ValueError(
                f"Layer '{self.name}' is already quantized with dtype_policy='"
                f"{self._own_policy.name}'. Received: mode={config.mode}"
            )
        block = getattr(config, "block_size", None)
        policy = dtype_policies.quantized(config.mode, self._own_policy.name, block)
        self._keep_in(config, policy)

    def quantized_build(self, input_shape: Any, mode: str, config: Any = None) -> None:
        """Make what holds a table in another form: `quantize` and policies of layers do so.

        Args:
            input_shape: of the table.

        Raises:
            NotImplementedError: no such mode.
        """
        if mode not in quantizers.MODES:
            raise NotImplementedError(
                f"Invalid quantization mode. Expected one of {quantizers.MODES}. Received: {mode=}"
            )
        if mode == "float8":
            self._build_float8()
            return
        self.quantization_config = quantizers.resolved(mode, config)
        block = getattr(self.quantization_config, "block_size", None)
        self._own_policy = dtype_policies.quantized(mode, self._own_policy.name, block)
        self._build_quantized(tuple(input_shape))

    def _keep_in(self, config: Any, policy: Any) -> None:
        """Give the table the form of a configuration."""
        if config.mode == "float8":
            self._build_float8()
            self.quantization_config, self._own_policy = config, policy
            return
        table = self._adapted_table
        floats = table.read_value()
        self._forget_table(table)
        self.quantization_config, self._own_policy = config, policy
        self._build_quantized(tuple(table.shape))
        self._form().assign(floats)

    def _forget_table(self, table: td.Variable) -> None:
        self._added_weights = [v for v in self._added_weights if v is not table]
        self._held_variables = [v for v in self._held_variables if v is not table]
        self._weight_penalties = [pair for pair in self._weight_penalties if pair[1] is not table]

    def _build_quantized(self, shape: tuple[int, ...]) -> None:
        """Make what holds a table of this shape, which a file or `quantize` fills."""
        self._table_shape = shape
        self._form().build()

    def _form(self) -> Form:
        """How the table is kept."""
        name, shape = self._adapts, self._table_shape
        rounding = getattr(self.quantization_config, "weight_quantizer", None)
        if self.quantization_mode == "int8":
            return InBytes(self, name, rounding, shape, self._sharing())
        matrix = shape if self._by_rows else matrix_of(shape, self._scale_axes())
        axis = int(self._by_rows)
        return InHalfBytes(self, name, rounding, shape, matrix, axis, 1, self._codes_per_scale)  # type: ignore[arg-type]

    @property
    def _codes_per_scale(self) -> int | None:
        """How many neighbours have a scale of their own in 4 bits; None or -1: all share one."""
        config = self.quantization_config
        return getattr(self._own_policy if config is None else config, "block_size", None)

    def _with_table(self, shape: tuple[int, ...], **settings: Any) -> None:
        """Make the table, in the form that the policy says."""
        if self._in_whole_numbers:
            self._build_quantized(shape)
            return
        setattr(self, self._adapts, self._own_weight(self._adapts, shape, **settings))

    def _build_float8(self) -> None:
        """Make the scales of floats of 8 bits, and the largest numbers of the last calls. Their
        gradients are what they become (`overwrite_with_gradient`)."""
        if self._by_rows:
            raise NotImplementedError(
                f"Layer '{self.name}' (of type '{type(self).__name__}') computes no product: the "
                "mode 'float8' is for those that do"
            )
        calls = getattr(
            self._own_policy, "amax_history_length",
            dtype_policies.QuantizedFloat8DTypePolicy.default_amax_history_length,
        )  # fmt: skip
        kinds: dict[str, Any] = {
            "dtype": "float32", "autocast": False, "overwrite_with_gradient": True,
        }  # fmt: skip
        for label in self._float8_names():
            shape, start = ((calls,), "zeros") if label.endswith("history") else ((), "ones")
            setattr(self, label, self._new_weight(shape, start, name=label, **kinds))

    def _float8_names(self) -> list[str]:
        """The attributes of the scales and the largest numbers: of inputs, of the table, of the
        gradients of results."""
        parts = ("inputs", self._adapts, "outputs_grad")
        return [f"{part}_{name}" for part in parts for name in ("scale", "amax_history")]

    @property
    def _float8_state(self) -> list[Any]:
        return [getattr(self, name) for name in self._float8_names()]

    def _shown(self) -> Any:
        if self.quantization_mode != "int4":
            return super()._shown()
        whole = self._form().whole()
        if not self.lora_enabled:
            return whole
        return td.cast(td.cast(whole, td.float32) + self._product(), self.compute_dtype)

    def _table_sizes(self) -> tuple[int, ...]:
        return self._table_shape if self._in_whole_numbers else super()._table_sizes()

    def _floats(self) -> td.Tensor:
        """The table as floats."""
        if not self._in_whole_numbers:
            found: td.Tensor = self._adapted_table.read_value()
            return found
        return self._form().floats()

    def _floats_with_product(self) -> td.Tensor:
        """The table as floats, with the product of low rank."""
        table = self._floats()
        return table + td.cast(self._product(), table.dtype) if self.lora_enabled else table

    @property
    def inputs_quantizer(self) -> Any:
        """What rounds the inputs; None: they stay floats."""
        if self.quantization_config is not None:
            return self.quantization_config.activation_quantizer
        return quantizers.AbsMaxQuantizer() if self.quantization_mode == "int8" else None

    def _product_of_rounded(self, inputs: td.Tensor, quantizer: Any) -> td.Tensor:
        """What the inputs, rounded, give with the table, without the product of low rank. The
        gradient is that of floats."""
        form = self._form()

        @td.custom_gradient
        def multiplied(x: td.Tensor) -> Any:
            whole, scale = quantizer(x, axis=self._input_axes(len(x.shape)))
            if isinstance(form, InBytes):
                found = self._contract_whole(whole, form.whole())
                scales = form.scales()
            else:
                found = self._contract(td.cast(whole, x.dtype), form.floats())
                scales = td.ones(self._one_at_scales())
            both = self._scales_of_results(td.cast(scale, scales.dtype), scales)
            result = td.cast(found, x.dtype) / td.cast(both, x.dtype)

            def gradient(upstream: td.Tensor) -> td.Tensor:
                with td.GradientTape() as tape:
                    tape.watch(x)
                    exact = self._contract(x, form.floats())
                found: td.Tensor = tape.gradient(exact, x, output_gradients=upstream)
                return found

            return result, gradient

        found: td.Tensor = multiplied(inputs)
        return found

    def _one_at_scales(self) -> list[int]:
        """The table's shape with axes of 1 where elements share a scale."""
        shared = self._scale_axes()
        return [1 if axis in shared else size for axis, size in enumerate(self._table_shape)]

    def _table_products(self, inputs: td.Tensor) -> td.Tensor:
        """What the inputs give with the table, whichever form that has."""
        if self.quantization_mode is None:
            return self._contract(inputs, self._adapted())
        if self.quantization_mode == "float8":
            return self._product_in_float8(inputs)
        quantizer = self.inputs_quantizer
        if quantizer is None:
            found = self._contract(inputs, td.cast(self._floats(), inputs.dtype))
        else:
            found = self._product_of_rounded(inputs, quantizer)
        if self.lora_enabled:
            found = found + self._contract(inputs, td.cast(self._product(), inputs.dtype))
        return found

    def _enable_if_asked(self) -> None:
        if self.quantization_mode == "float8":
            self._build_float8()
        super()._enable_if_asked()

    def _bias_to_add(self) -> Any:
        """The bias; beside products in floats of 8 bits as Keras has it, with the bits of
        bfloat16."""
        if self.quantization_mode == "float8" and self.compute_dtype == "float32":
            return td.cast(td.cast(self.bias, td.bfloat16), td.float32)
        return self.bias

    def _product_in_float8(self, inputs: td.Tensor) -> td.Tensor:
        """The product of inputs and table as floats of 8 bits."""
        if self.lora_enabled:
            raise NotImplementedError(
                f"Layer '{self.name}' (of type '{type(self).__name__}'): products of low rank "
                "(`enable_lora`) and the mode 'float8' do not go together, as in Keras"
            )
        operand = float8.operand_of(self.compute_dtype, bool(training_of_the_call()))
        table = operand(self._adapted(), *self._float8_state[2:4])
        found = self._contract(operand(inputs, *self._float8_state[:2]), table)
        result: td.Tensor = float8.result_of(self.compute_dtype)(found, *self._float8_state[4:])
        return result

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
        """What results are divided by: the scales of inputs times those beside the table."""
        return scale * td.squeeze(scales, list(self._scale_axes()))

    def _kept_variables(self) -> list[td.Variable]:
        found = super()._kept_variables()
        if self.quantization_mode is None:
            return found
        # Keras has the table first and what belongs to it last.
        if self._in_whole_numbers:
            table, *further = self._form().variables()
        else:
            table, *further = self._adapted_table, *self._float8_state
        own = {id(v) for v in (table, *further)}
        return [table, *(v for v in found if id(v) not in own), *further]

    def _with_product(self) -> dict[int, Any]:
        if not self._in_whole_numbers or not self.lora_enabled:
            return super()._with_product()
        values = self._form().values(self._floats() + td.cast(self._product(), self.compute_dtype))
        return {id(vars(self)[name]): value.numpy() for name, value in values.items()}
