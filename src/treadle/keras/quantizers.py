"""Numbers in few bits: how they are rounded, packed and unpacked, and what layers are told of it.

`abs_max_quantize` has whole numbers that are multiples of a scale; the grouped one has numbers of 4
bits, for which each group of neighbours has a scale of its own and a whole number that stands for
zero. Two numbers of 4 bits are packed into a byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.keras import config as settings
from treadle.keras import serialization
from treadle.keras.float8 import (
    compute_float8_amax_history,
    compute_float8_scale,
    quantize_and_dequantize,
)
from treadle.keras.naming import snake_case
from treadle.names import missing_in

MODES = ("int8", "int4", "float8")
_OTHER_MODES = ("gptq", "awq")  # that Keras has, too
IN_4_BITS = (-8, 7)


class Quantized(NamedTuple):
    """Whole numbers, and what they were multiplied by."""

    values: td.Tensor
    scale: td.Tensor


class GroupedQuantized(NamedTuple):
    """Whole numbers, what they are multiples of, and which of them stands for zero."""

    values: td.Tensor
    scale: td.Tensor
    zero_point: td.Tensor


class Packed(NamedTuple):
    """Bytes of two numbers, their shape, and how many numbers there were along the packed axis."""

    values: td.Tensor
    shape: tuple[int, ...]
    length: int


def abs_max_quantize(
    inputs: Any, axis: Any, value_range: tuple[int, int] = (-127, 127), dtype: Any = "int8",
    epsilon: float | None = None, to_numpy: bool = False,
) -> Quantized:  # fmt: skip
    """Whole numbers, the largest of which is the last of the range.

    Args:
        inputs: floats, of any shape.
        axis: along which the largest number is found: an int or several.
        value_range: the least and the largest whole number.
        dtype: of the whole numbers.
        epsilon: added to the largest number; `keras.config.epsilon()` when omitted.
        to_numpy: taken for Keras's programs: it changes where the work is done there.

    Returns:
        ``(round(inputs * scale), scale)``; the scale has the rank of the inputs.
    """
    x = td.convert_to_tensor(inputs)
    least = settings.epsilon() if epsilon is None else epsilon
    largest = td.reduce_max(td.abs(x), axis, keepdims=True)
    scale = td.cast(value_range[1], x.dtype) / (largest + td.cast(least, x.dtype))
    low, high = (td.cast(value, x.dtype) for value in value_range)
    whole = td.clip_by_value(td.round(x * scale), low, high)
    return Quantized(td.cast(whole, dtype), scale)


def abs_max_quantize_grouped_with_zero_point(
    inputs: Any, block_size: int, value_range: tuple[int, int] = IN_4_BITS, dtype: Any = "int8",
    epsilon: float | None = None, to_numpy: bool = False,
) -> GroupedQuantized:  # fmt: skip
    """Whole numbers of a matrix; each group of rows has a scale and a zero for every column.

    Args:
        inputs: [rows, columns], floats.
        block_size: the rows of a group; the last one may have less.
        value_range: the least and the largest whole number.
        dtype: of the whole numbers.
        epsilon: added to the width of a group's range; `keras.config.epsilon()` when omitted.
        to_numpy: taken for Keras's programs: it changes where the work is done there.

    Returns:
        Whole numbers of the inputs' shape, and scales and zeros (int8), both [groups, columns]:
        the floats are near ``(whole - zero) * scale``.
    """
    x = td.convert_to_tensor(inputs)
    rows, columns = (int(size) for size in np.shape(x))
    groups = -(-rows // block_size)
    low, high = (float(value) for value in value_range)
    padded = td.pad(x, [[0, groups * block_size - rows], [0, 0]])
    parts = td.reshape(padded, [groups, block_size, columns])
    least, most = td.reduce_min(parts, 1, True), td.reduce_max(parts, 1, True)
    more = settings.epsilon() if epsilon is None else epsilon
    scale = (most - least + td.cast(more, x.dtype)) / (high - low)
    zero = td.clip_by_value(td.round(-least / scale) + low, low, high)
    whole = td.clip_by_value(td.round(parts / scale) + zero, low, high)
    values = td.reshape(td.cast(whole, dtype), [groups * block_size, columns])[:rows]
    return GroupedQuantized(values, td.squeeze(scale, 1), td.cast(td.squeeze(zero, 1), td.int8))


def of_groups(whole: Any, scale: Any, zero_point: Any, groups: Any, axis: int) -> td.Tensor:
    """The floats that whole numbers with scales and zeros of groups stand for.

    Args:
        groups: the number of the group of each place along `axis`.
        axis: of the scales and zeros, along which groups are.
    """
    numbers = td.cast(groups, td.int32)
    scales = td.gather(scale, numbers, axis=axis)
    zeros = td.gather(zero_point, numbers, axis=axis)
    return (td.cast(whole, scales.dtype) - td.cast(zeros, scales.dtype)) * scales


def _checked_bytes(what: str, dtype: Any) -> Any:
    if dtype not in ("int8", "uint8"):
        raise ValueError(f"Expected dtype to be 'int8' or 'uint8', but got '{dtype}'.")
    return td.as_dtype(dtype)


def pack_int4(arr: Any, axis: int = 0, dtype: str = "int8") -> Packed:
    """Two numbers of 4 bits in each byte: the first of a pair is in the lower half.

    Args:
        arr: int8 (or uint8, as `dtype`) from -8 to 7.
        axis: along which neighbours are pairs; a last number without a partner gets 0.

    Raises:
        ValueError: another `dtype`.
        TypeError: the array has another one.
    """
    kind = _checked_bytes("packing", dtype)
    x = td.convert_to_tensor(arr)
    if x.dtype != kind:
        raise TypeError(f"Expected {dtype} tensor for packing, got {x.dtype.name}.")
    found = np.moveaxis(x.numpy().view(np.uint8), axis, 0)
    length = len(found)
    if length % 2:
        found = np.concatenate([found, np.zeros_like(found[:1])])
    pairs = (found[::2] & 0x0F) | (found[1::2] << 4)
    packed = np.ascontiguousarray(np.moveaxis(pairs, 0, axis)).view(kind.as_numpy_dtype)
    return Packed(td.constant(packed), packed.shape, length)


def unpack_int4(packed: Any, orig_len: int, axis: int = 0, dtype: str = "int8") -> td.Tensor:
    """The numbers that `pack_int4` put into bytes.

    Args:
        packed: int8 or uint8.
        orig_len: how many numbers there were along `axis`.
        dtype: "int8": from -8 to 7; "uint8": from 0 to 15.

    Raises:
        ValueError: another `dtype`.
        TypeError: `packed` are no bytes.
    """
    kind = _checked_bytes("unpacking", dtype)
    x = td.convert_to_tensor(packed)
    if x.dtype not in (td.int8, td.uint8):
        raise TypeError(f"Expected int8 or uint8 tensor for unpacking, got {x.dtype.name}")
    axis %= len(x.shape)
    whole = td.cast(x, td.int32)
    halves = td.stack([whole & 0x0F, td.bitwise.right_shift(whole, 4) & 0x0F], axis + 1)
    if dtype == "int8":
        halves = td.bitwise.bitwise_xor(halves, 8) - 8
    sizes = td.shape(x)
    merged = td.concat([sizes[:axis], [2 * sizes[axis]], sizes[axis + 1 :]], 0)
    found = td.reshape(td.cast(halves, kind), merged)
    kept = found[(*[slice(None)] * axis, slice(orig_len))]
    return td.ensure_shape(kept, [*x.shape[:axis], orig_len, *x.shape[axis + 1 :]])


def fake_quant_with_min_max_vars(
    inputs: Any, min_vals: Any, max_vals: Any, num_bits: int = 8, narrow_range: bool = False,
    axis: int | None = None,
) -> td.Tensor:  # fmt: skip
    """`td.quantization.fake_quant_with_min_max_vars`, or with a range for each place on `axis`."""
    x = td.convert_to_tensor(inputs)
    low, high = (td.cast(v, td.float32) for v in (min_vals, max_vals))
    floats, bits = td.cast(x, td.float32), int(num_bits)
    if axis is None:
        found = td.quantization.fake_quant_with_min_max_vars(
            floats, td.reshape(low, []), td.reshape(high, []), bits, narrow_range
        )
        return td.cast(found, x.dtype)
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    found = td.quantization.fake_quant_with_min_max_vars_per_channel(
        td.transpose(floats, order), low, high, bits, narrow_range
    )
    return td.cast(td.transpose(found, order), x.dtype)


# -- objects that say how numbers are rounded ------------------------------------------------------


class Quantizer:
    """Base: ``quantizer(x, axis=axis)`` gives whole numbers and what they were multiplied by.

    Args:
        output_dtype: of the whole numbers.
    """

    def __init__(self, output_dtype: Any = "int8") -> None:
        self.output_dtype = output_dtype

    def __call__(self, x: Any) -> Any:
        return x

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal quantizer; those of programs give their own."""
        raise NotImplementedError(f"{self} does not implement get_config()")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Quantizer:
        """A quantizer from what `get_config` gave."""
        return cls(**config)


class AbsMaxQuantizer(Quantizer):
    """`abs_max_quantize` with these arguments.

    Args:
        axis: where a call gives none; the last one when omitted.

    Raises:
        ValueError: the range is none of `output_dtype`.
    """

    def __init__(
        self, axis: Any = None, value_range: tuple[int, int] = (-127, 127),
        epsilon: float | None = None, output_dtype: Any = "int8",
    ) -> None:  # fmt: skip
        super().__init__(output_dtype)
        self.axis = axis if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self.value_range = tuple(value_range)
        self.epsilon = settings.epsilon() if epsilon is None else epsilon
        if output_dtype == "int8" and (self.value_range[0] < -128 or self.value_range[1] > 127):
            raise ValueError(
                "Quantizer with output_dtype='int8' requires value_range to be within the interval "
                f"[-128, 127]. Received: value_range={value_range}"
            )

    def __call__(self, x: Any, axis: Any = None, to_numpy: bool = False) -> Quantized:
        along = next((a for a in (axis, self.axis) if a is not None), -1)
        return abs_max_quantize(x, along, self.value_range, self.output_dtype, self.epsilon)  # type: ignore[arg-type]

    def get_config(self) -> dict[str, Any]:
        found = {
            "value_range": self.value_range, "epsilon": self.epsilon,
            "output_dtype": self.output_dtype,
        }  # fmt: skip
        return found if self.axis is None else found | {"axis": self.axis}


class QuantizationConfig:
    """How a layer keeps its table in fewer bits, and whether its inputs are rounded, too.

    Args:
        weight_quantizer: of the table; that of the mode when omitted.
        activation_quantizer: of inputs; None: they stay floats.
    """

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = None) -> None:
        self.weight_quantizer = weight_quantizer
        self.activation_quantizer = activation_quantizer

    @property
    def mode(self) -> str:
        """The form of the table."""
        raise NotImplementedError(
            "Subclasses must implement this property. Do not instantiate QuantizationConfig "
            "directly."
        )

    def get_config(self) -> dict[str, Any]:
        return {
            name: serialization.serialize_keras_object(getattr(self, name))
            for name in ("weight_quantizer", "activation_quantizer")
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """A configuration from what `get_config` gave."""
        return cls(**{k: serialization.deserialize_keras_object(v) for k, v in config.items()})


class Int8QuantizationConfig(QuantizationConfig):
    """Tables in 8 bits.

    Args:
        activation_quantizer: "default": an `AbsMaxQuantizer` of the axes that are summed up.

    Raises:
        ValueError: the weights' quantizer gives no int8.
    """

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = "default") -> None:
        given = AbsMaxQuantizer() if activation_quantizer == "default" else activation_quantizer
        super().__init__(weight_quantizer, given)
        _check_output(self)

    @property
    def mode(self) -> str:
        return "int8"


class Int4QuantizationConfig(QuantizationConfig):
    """Tables in 4 bits, two numbers in a byte.

    Args:
        activation_quantizer: "default": inputs stay floats.
        block_size: how many neighbours along the axis that is summed up have one scale and one
            zero; None or -1: all of them have one scale, and 0 stands for zero.

    Raises:
        ValueError: the weights' quantizer gives other numbers than int8 from -8 to 7, there are
            quantizers with blocks, or no such `block_size`.
    """

    def __init__(
        self, weight_quantizer: Any = None, activation_quantizer: Any = "default",
        block_size: int | None = 128,
    ) -> None:  # fmt: skip
        given = None if activation_quantizer == "default" else activation_quantizer
        super().__init__(weight_quantizer, given)
        if block_size is not None and block_size != -1 and block_size <= 0:
            raise ValueError(
                "block_size must be None, -1, or a positive integer. Received: "
                f"block_size={block_size}"
            )
        self.block_size = block_size
        if in_blocks(block_size) and (weight_quantizer is not None or given is not None):
            raise ValueError(
                "Int4 sub-channel quantization (block_size > 0) does not support custom "
                "quantizers. Either set block_size to None or -1 for per-channel quantization, or "
                f"remove the custom quantizer arguments. Received: block_size={block_size}"
            )
        if weight_quantizer is not None and tuple(weight_quantizer.value_range) != IN_4_BITS:
            raise ValueError(
                f"Int4QuantizationConfig requires a weight_quantizer with value_range={IN_4_BITS}."
                f" Received: value_range={weight_quantizer.value_range}"
            )
        _check_output(self)

    @property
    def mode(self) -> str:
        return "int4"

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"block_size": self.block_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        # Files of before there were blocks do not speak of them.
        return super().from_config({"block_size": None} | config)


class Float8QuantizationConfig(QuantizationConfig):
    """Training whose products are of floats of 8 bits; the weights stay in more bits."""

    def __init__(self) -> None:
        super().__init__(None, None)

    @property
    def mode(self) -> str:
        return "float8"

    def get_config(self) -> dict[str, Any]:
        return {}


def in_blocks(block_size: int | None) -> bool:
    """Whether groups of so many neighbours have scales of their own."""
    return block_size is not None and block_size != -1


def _check_output(config: QuantizationConfig) -> None:
    quantizer = config.weight_quantizer
    if quantizer is not None and quantizer.output_dtype != "int8":
        raise ValueError(
            f"{type(config).__name__} requires a weight_quantizer with output_dtype='int8'. "
            f"Received: output_dtype={quantizer.output_dtype}"
        )


_CONFIGS: dict[str, Any] = {
    "int8": Int8QuantizationConfig, "int4": Int4QuantizationConfig,
    "float8": Float8QuantizationConfig,
}  # fmt: skip


def check_mode(mode: Any) -> None:
    """Refuse what numbers are not rounded to.

    Raises:
        NotImplementedError: a mode that only Keras has.
        ValueError: no such mode.
    """
    if mode in _OTHER_MODES:
        raise NotImplementedError(
            f"quantize: mode {mode!r} is not provided: use 'int8', 'int4' or 'float8', or the "
            "dtypes float16 and bfloat16"
        )
    if mode not in MODES:
        raise ValueError(f"Invalid quantization mode. Expected one of {MODES}. Received: {mode=}")


def resolved(mode: Any, config: Any) -> QuantizationConfig:
    """The configuration that a mode stands for, or the one that is given.

    Raises:
        NotImplementedError: a mode that only Keras has.
        ValueError: neither is given, they contradict each other, or there is no such mode.
    """
    if isinstance(config, str):
        mode, config = config, None
    if config is None:
        if mode is None:
            raise ValueError("You must provide either `mode` or `config` to `quantize`.")
        check_mode(mode)
        return _CONFIGS[mode]()  # type: ignore[no-any-return]
    if not isinstance(config, QuantizationConfig):
        raise ValueError(
            "Argument `config` must be an instance of `QuantizationConfig`. Received: "
            f"config={config} (of type {type(config)})"
        )
    if mode is not None and config.mode != mode:
        raise ValueError(f"Contradictory arguments: mode='{mode}' but config.mode='{config.mode}'")
    check_mode(config.mode)
    return config


_CLASSES = (
    Quantizer, AbsMaxQuantizer, QuantizationConfig, Int8QuantizationConfig, Int4QuantizationConfig,
    Float8QuantizationConfig,
)  # fmt: skip


def get(identifier: Any, **kwargs: Any) -> Any:
    """A quantizer from its name, class, configuration or itself; None stays None.

    Raises:
        ValueError: it is none.
    """
    if identifier is None:
        return None
    found = serialization.custom(identifier)
    if isinstance(found, dict):
        found = deserialize(found)
    elif isinstance(found, str):
        names = {kind.__name__: kind for kind in _CLASSES}
        found = (names | {snake_case(name): kind for name, kind in names.items()}).get(found)
    if isinstance(found, type):
        return found(**kwargs)
    if callable(found):
        return found
    raise ValueError(f"Could not interpret quantizer identifier: {identifier}")


def serialize(initializer: Any) -> Any:
    """A quantizer as data."""
    return serialization.serialize_keras_object(initializer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The quantizer that `serialize` described."""
    return serialization.deserialize_keras_object(config, custom_objects)


__all__ = [
    "AbsMaxQuantizer", "Float8QuantizationConfig", "Int4QuantizationConfig",
    "Int8QuantizationConfig", "QuantizationConfig", "Quantizer", "abs_max_quantize",
    "abs_max_quantize_grouped_with_zero_point", "compute_float8_amax_history",
    "compute_float8_scale", "deserialize", "fake_quant_with_min_max_vars", "get", "pack_int4",
    "quantize_and_dequantize", "serialize", "unpack_int4",
]  # fmt: skip

__getattr__ = missing_in(__name__)
