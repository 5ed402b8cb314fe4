"""Floats of 8 bits: rounding to them, and the scales that keep numbers in their range.

Training with them keeps the weights in more bits. Before a product its operands are divided by a
scale, rounded to floats of 8 bits and multiplied by the scale again; so are the gradients of its
results, with more bits for the exponent and fewer for the mantissa. The scale is that of the
largest number in the last calls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import treadle as td


class Form(NamedTuple):
    """A form of floats of 8 bits.

    Attributes:
        mantissa: how many bits follow the leading one.
        least_exponent: that of the smallest number whose mantissa has a leading one.
        largest: the largest finite number.
    """

    mantissa: int
    least_exponent: int
    largest: float


FORMS = {"float8_e4m3fn": Form(3, -6, 448.0), "float8_e5m2": Form(2, -14, 57344.0)}
_EXPONENT = 0x7F800000  # the bits of a float32 that hold its exponent


def rounded(x: td.Tensor, form: Form) -> td.Tensor:
    """The nearest floats of 8 bits, those with even mantissas where two are as near, as float32.

    Args:
        x: of any floating dtype, in the range of the form, or NaN.
    """
    x = td.cast(x, td.float32)
    # The power of two below a number is what its exponent alone says. Neighbours are a step apart,
    # which is the same for all numbers below the least exponent.
    power = td.bitcast(td.bitwise.bitwise_and(td.bitcast(x, td.int32), _EXPONENT), td.float32)
    step = td.maximum(power, 2.0**form.least_exponent) * 2.0**-form.mantissa
    near: td.Tensor = td.round(x / step) * step
    return td.where(td.math.is_nan(x), x, near)


def quantize_and_dequantize(
    inputs: Any, scale: Any, quantized_dtype: str, compute_dtype: Any
) -> td.Tensor:
    """Numbers rounded to multiples of a scale by floats of 8 bits; larger ones become the largest.

    Args:
        inputs: floats, of any shape.
        scale: what the floats of 8 bits are multiplied by.
        quantized_dtype: "float8_e4m3fn" or "float8_e5m2".
        compute_dtype: of the division, the multiplication and the result.

    Raises:
        ValueError: another `quantized_dtype`.
    """
    form = FORMS.get(str(getattr(quantized_dtype, "name", quantized_dtype)))
    if form is None:
        raise ValueError(
            f"quantized_dtype is one of {', '.join(FORMS)}, got {quantized_dtype!r}"
        )
    kind = td.as_dtype(compute_dtype)
    factor = td.cast(scale, kind)
    x = td.cast(inputs, kind) / factor
    largest = td.cast(form.largest, kind)
    x = td.minimum(td.maximum(x, -largest), largest)
    return td.cast(rounded(x, form), kind) * factor


def compute_float8_scale(amax: Any, scale: Any, dtype_max: Any, margin: int = 0) -> td.Tensor:
    """The scale with which the largest number becomes the largest float of 8 bits.

    Args:
        amax: the largest absolute value; where it is 0 or not finite the scale stays.
        scale: the one so far.
        dtype_max: the largest float of 8 bits.
        margin: by how many powers of two numbers may grow beyond `amax`.
    """
    amax, scale = td.convert_to_tensor(amax), td.convert_to_tensor(scale)
    factor = td.cast(dtype_max, amax.dtype) / amax / td.cast(2**margin, amax.dtype)
    use = (amax > 0) & td.math.is_finite(amax)
    kept = td.math.reciprocal(td.cast(scale, amax.dtype))
    return td.math.reciprocal(td.where(use, factor, kept))


def compute_float8_amax_history(x: Any, amax_history: Any) -> td.Tensor:
    """The largest absolute values of the last calls with that of `x`, the oldest one left out.

    Args:
        x: floats, of any shape.
        amax_history: [calls]; the newest is the first, the one before that the last.
    """
    history = td.convert_to_tensor(amax_history)
    newest = td.cast(td.reduce_max(td.abs(x)), history.dtype)
    return td.concat([newest[None], td.roll(history, -1, 0)[1:]], 0)


def operand_of(compute_dtype: Any, training: bool) -> Any:
    """A function of an operand of a product, its scale and its history: the operand as floats of 8
    bits. Its gradient is that of the result; those of scale and history are what these become.

    Args:
        compute_dtype: of the result.
        training: False: scale and history have no gradients.
    """
    form = FORMS["float8_e4m3fn"]

    @td.custom_gradient
    def operand(x: td.Tensor, scale: td.Tensor, history: td.Tensor) -> Any:
        new: tuple[Any, Any] = None, None
        if training:
            largest = td.reduce_max(history, 0)
            new = (
                compute_float8_scale(largest, scale, form.largest),
                compute_float8_amax_history(x, history),
            )
        found = quantize_and_dequantize(x, scale, "float8_e4m3fn", compute_dtype)
        return found, lambda upstream: (upstream, *new)

    return lambda x, scale, history: operand(x, scale.read_value(), history.read_value())


def result_of(compute_dtype: Any) -> Any:
    """A function of the result of a product, a scale and a history: the result as it is, whose
    gradient becomes floats of 8 bits. The gradients of scale and history are what these become."""
    form = FORMS["float8_e5m2"]

    @td.custom_gradient
    def result(x: td.Tensor, scale: td.Tensor, history: td.Tensor) -> Any:
        def gradient(upstream: td.Tensor) -> Any:
            return (
                quantize_and_dequantize(upstream, scale, "float8_e5m2", compute_dtype),
                compute_float8_scale(td.reduce_max(history, 0), scale, form.largest),
                compute_float8_amax_history(upstream, history),
            )

        return td.identity(x), gradient

    return lambda x, scale, history: result(x, scale.read_value(), history.read_value())
