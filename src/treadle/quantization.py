"""``td.quantization``: what quantized numbers would be, as floating-point numbers.

Programs that train for quantized inference round values to those that few bits can hold, and let
gradients through as if nothing were rounded (Jacob et al., 2018, "Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference"). Tensors of quantized dtypes are
not provided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.autodiff.custom import custom_gradient
from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.refusals import explain_errors
from treadle.core.tensor import Tensor
from treadle.names import missing_in
from treadle.ops.asserts import assert_less_equal
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import minimum
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import clip_by_value, floor
from treadle.ops.elementwise.unary import round as rounded_to_even
from treadle.ops.reductions.reduction import reduce_max, reduce_min, reduce_sum
from treadle.ops.shaping.creation import ones_like, zeros_like
from treadle.ops.shaping.reshaping import reshape

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize_and_dequantize",
    "quantize_and_dequantize_v2",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)


# -- a range of numbers, shifted so that zero is one of its steps ----------------------------------


class _Steps(NamedTuple):
    """The numbers that a range has: ``low + n * step`` up to `high`."""

    low: Tensor
    high: Tensor
    step: Tensor

    def rounded(self, x: Tensor) -> Tensor:
        """The nearest steps. Products with 1 / step round as TensorFlow's do where a value is in
        the middle of two steps."""
        inverse = 1.0 / self.step
        zero = floor(-self.low * inverse + 0.5)
        clipped = clip_by_value(x, self.low, self.high)
        return floor((clipped - self.low) * inverse - zero + 0.5) * self.step

    def holds(self, x: Tensor) -> Tensor:
        return (x >= self.low) & (x <= self.high)


def _steps(low: Tensor, high: Tensor, num_bits: int, narrow_range: bool) -> _Steps:
    """The steps of a range, as TensorFlow shifts it: an integer number of steps lies below zero."""
    first, last = float(bool(narrow_range)), float(2**num_bits - 1)
    step = (high - low) / (last - first)
    zero = clip_by_value(floor(first - low / step + 0.5), first, last)
    return _Steps((first - zero) * step, (last - zero) * step, step)


def _checked_bits(num_bits: Any) -> int:
    if not 2 <= int(num_bits) <= 16:
        raise errors.InvalidArgumentError(
            None, None, f"num_bits must be from 2 to 16, not {num_bits}{at(user_origin())}"
        )
    return int(num_bits)


def _floats(x: Any) -> Tensor:
    return convert_to_tensor(x, dtypes.float32)


def _constant_steps(min: Any, max: Any, num_bits: Any, narrow_range: Any) -> _Steps:
    low, high = float(min), float(max)
    if not low < high:
        raise errors.InvalidArgumentError(
            None, None, f"min has to be smaller than max: {low} >= {high}{at(user_origin())}"
        )
    return _steps(_floats(low), _floats(high), _checked_bits(num_bits), narrow_range)


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Values of [min, max], rounded to the nearest of ``2**num_bits`` steps; others become its
    ends. Gradients pass where nothing is cut off.

    Args:
        inputs: float32, of any shape.
        min, max: numbers; the range is shifted so that 0 is a step.
        num_bits: from 2 to 16.
        narrow_range: one step less, at the lower end.

    Raises:
        InvalidArgumentError: min is not below max, or num_bits is out of range.
    """
    steps = _constant_steps(min, max, num_bits, narrow_range)

    @custom_gradient
    def quantized(x: Tensor) -> Any:
        return steps.rounded(x), lambda upstream: upstream * _as_floats(steps.holds(x))

    return quantized(_floats(inputs))  # type: ignore[no-any-return]


def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8,
    narrow_range: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `fake_quant_with_min_max_args` with respect to `inputs`."""
    steps = _constant_steps(min, max, num_bits, narrow_range)
    return _floats(gradients) * _as_floats(steps.holds(_floats(inputs)))


def _as_floats(mask: Tensor) -> Tensor:
    return where(mask, 1.0, 0.0)


class _Gradients(NamedTuple):
    """The gradients of a function of values and their range."""

    backprops_wrt_input: Tensor
    backprop_wrt_min: Tensor
    backprop_wrt_max: Tensor


def _variable_steps(low: Tensor, high: Tensor, num_bits: Any, narrow: Any) -> tuple[_Steps, Tensor]:
    """The steps, and whether the range is [0, 0], for which they are not used."""
    empty = (low == 0.0) & (high == 0.0)
    steps = _steps(low, where(empty, 1.0, high), _checked_bits(num_bits), narrow)
    return steps, empty


def _rounded(x: Tensor, low: Tensor, high: Tensor, num_bits: Any, narrow: Any) -> Tensor:
    steps, empty = _variable_steps(low, high, num_bits, narrow)
    return where(empty, 0.0, steps.rounded(x))


def _gradients(
    upstream: Tensor, x: Tensor, low: Tensor, high: Tensor, num_bits: Any, narrow: Any
) -> _Gradients:
    steps, empty = _variable_steps(low, high, num_bits, narrow)
    axes = range(x.ndim - low.ndim)
    below = where(~empty & (x < steps.low), upstream, 0.0)
    above = where(~empty & (x > steps.high), upstream, 0.0)
    inside = where(empty | steps.holds(x), upstream, 0.0)
    return _Gradients(inside, reduce_sum(below, list(axes)), reduce_sum(above, list(axes)))


def _of_range(inputs: Any, min: Any, max: Any, num_bits: Any, narrow: Any, rank: int) -> Tensor:
    x, low, high = _operands(inputs, min, max, rank)
    _checked_bits(num_bits)

    @custom_gradient
    def quantized(x: Tensor, low: Tensor, high: Tensor) -> Any:
        def gradient(upstream: Tensor) -> tuple[Tensor, ...]:
            return tuple(_gradients(upstream, x, low, high, num_bits, narrow))

        return _rounded(x, low, high, num_bits, narrow), gradient

    return quantized(x, low, high)  # type: ignore[no-any-return]


def _operands(inputs: Any, min: Any, max: Any, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    x, low, high = (_floats(value) for value in (inputs, min, max))
    for value, what in ((low, "min"), (high, "max")):
        if value.ndim != rank:
            raise errors.InvalidArgumentError(
                None, None, f"{what} must be of rank {rank}, not {value.ndim}{at(user_origin())}"
            )
        if rank and (x.ndim == 0 or not value.shape.is_compatible_with(x.shape[-1:])):
            raise errors.InvalidArgumentError(
                None, None,
                f"{what} of shape {value.shape} must have one number for each channel of the last "
                f"axis of inputs of shape {x.shape}{at(user_origin())}",
            )  # fmt: skip
    return x, low, high


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """As `fake_quant_with_min_max_args`, for a range that is learned: gradients of values that are
    cut off go to the end of the range. The range [0, 0] gives zeros.

    Args:
        inputs: float32, of any shape.
        min, max: float32 scalars, usually variables.
        num_bits: from 2 to 16.
        narrow_range: one step less, at the lower end.

    Raises:
        InvalidArgumentError: min or max is no scalar, or num_bits is out of range.
    """
    return _of_range(inputs, min, max, num_bits, narrow_range, 0)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """As `fake_quant_with_min_max_vars`, with a range for each channel of the last axis.

    Args:
        inputs: float32 [..., channels].
        min, max: float32 [channels].

    Raises:
        InvalidArgumentError: min or max has another shape, or num_bits is out of range.
    """
    return _of_range(inputs, min, max, num_bits, narrow_range, 1)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8,
    narrow_range: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars` with respect to inputs, min and max."""
    x, low, high = _operands(inputs, min, max, 0)
    return _gradients(_floats(gradients), x, low, high, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8,
    narrow_range: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars_per_channel` with respect to inputs, min and
    max."""
    x, low, high = _operands(inputs, min, max, 1)
    return _gradients(_floats(gradients), x, low, high, num_bits, narrow_range)


# -- a range of numbers around zero, by a scale ----------------------------------------------------

_ROUNDING = {"HALF_TO_EVEN": rounded_to_even, "HALF_UP": lambda x: floor(x + 0.5)}


def quantize_and_dequantize_v2(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8,
    range_given: bool = False, round_mode: str = "HALF_TO_EVEN", name: str | None = None,
    narrow_range: bool = False, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """Values rounded to multiples of a scale, of which the range has ``2**num_bits``.

    Gradients pass for values in [input_min, input_max], and none goes to these.

    Args:
        input: floating-point, of any shape.
        input_min, input_max: the range where it is given: scalars, or [size of the axis].
        signed_input: the integers that stand for the values may be negative.
        num_bits: from 1 to 62, one more where it is signed.
        range_given: otherwise the range is that of the values.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: signed integers are as many on both sides of 0.
        axis: the slices along it have a range each; one range for all where it is None or -1.

    Raises:
        InvalidArgumentError: min is above max, or an argument is none of those.
    """
    return _by_scale(
        input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range,
        axis, True,
    )  # fmt: skip


def quantize_and_dequantize(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8,
    range_given: bool = False, round_mode: str = "HALF_TO_EVEN", name: str | None = None,
    narrow_range: bool = False, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """`quantize_and_dequantize_v2`, whose gradients also pass for values outside of the range."""
    return _by_scale(
        input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range,
        axis, False,
    )  # fmt: skip


def _by_scale(
    input: Any, input_min: Any, input_max: Any, signed_input: bool, num_bits: int,
    range_given: bool, round_mode: str, narrow_range: bool, axis: int | None, stops_outside: bool,
) -> Tensor:  # fmt: skip
    """The values of `quantize_and_dequantize_v2`; `stops_outside`: gradients pass in the range
    only."""
    x = convert_to_tensor(input)
    if not x.dtype.is_floating:
        raise errors.DtypeError(
            None, None, f"input must be floating-point, not {x.dtype.name}{at(user_origin())}"
        )
    _check_integers(num_bits, signed_input, round_mode)
    low, high = (convert_to_tensor(value, x.dtype) for value in (input_min, input_max))
    assert_less_equal(low, high, f"Invalid range: input_min is above input_max{at(user_origin())}")
    place = None if axis in (None, -1) else normalize_axis(axis, x.ndim)

    @custom_gradient
    def rounded(x: Tensor, low: Tensor, high: Tensor) -> Any:
        ends = [_along(value, x.ndim, place) for value in (low, high)]

        def gradient(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            if stops_outside:
                inside = (x >= ends[0]) & (x <= ends[1])
                upstream = where(inside, upstream, zeros_like(upstream))
            return upstream, zeros_like(low), zeros_like(high)

        first, last = ends
        if not range_given:
            others = None if place is None else [i for i in range(x.ndim) if i != place]
            first = reduce_min(x, others, keepdims=place is not None)
            last = reduce_max(x, others, keepdims=place is not None)
        found = _scaled(
            x, first, last, bool(signed_input), int(num_bits), bool(range_given),
            _ROUNDING[round_mode], bool(narrow_range),
        )  # fmt: skip
        return found, gradient

    return rounded(x, low, high)  # type: ignore[no-any-return]


def _check_integers(num_bits: Any, signed: Any, round_mode: Any) -> None:
    if not (1 if not signed else 2) <= int(num_bits) <= (63 if signed else 62):
        kind = "signed" if signed else "unsigned"
        raise errors.InvalidArgumentError(
            None, None,
            f"num_bits is out of range for {kind} integers: {num_bits}{at(user_origin())}",
        )  # fmt: skip
    if round_mode not in _ROUNDING:
        raise errors.InvalidArgumentError(
            None, None,
            f"round_mode must be one of {', '.join(_ROUNDING)}, not {round_mode!r}"
            f"{at(user_origin())}",
        )  # fmt: skip


def _along(value: Tensor, rank: int, axis: int | None) -> Tensor:
    """A range's end, to go with values of a rank."""
    if axis is None or value.ndim == 0:
        return value
    return reshape(value, [-1 if i == axis else 1 for i in range(rank)])


def _scaled(
    x: Tensor, low: Tensor, high: Tensor, signed: bool, num_bits: int, clips: bool, rounding: Any,
    narrow: bool,
) -> Tensor:  # fmt: skip
    first = float(-(2 ** (num_bits - 1)) + narrow) if signed else 0.0
    last = float(2 ** (num_bits - 1) - 1) if signed else float(2**num_bits - 1)
    most = ones_like(low) * x.dtype.max
    by_low = where(first * low > 0, first / where(low == 0, ones_like(low), low), most)
    by_high = where(last * high > 0, last / where(high == 0, ones_like(high), high), most)
    scale = minimum(by_low, by_high)
    # The other end of the range is as far as the integers go by this scale.
    from_low = by_low < by_high
    step = where(from_low, low / (first or 1.0), high / last)
    if clips:
        ends = where(from_low, low, first * step), where(from_low, last * step, high)
        x = clip_by_value(x, *ends)
    return rounding(x * scale) * step  # type: ignore[no-any-return]

