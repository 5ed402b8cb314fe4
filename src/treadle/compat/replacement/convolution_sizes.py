"""Keras 2's `conv_utils`: sizes of what convolutions give, and their arguments in one form."""

from __future__ import annotations

from typing import Any

from treadle.core.origin import at, user_origin
from treadle.keras.layers.spatial import format_name


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """How many windows fit along an axis: "same", "valid", "full" or "causal"."""
    if input_length is None:
        return None
    reach = filter_size + (filter_size - 1) * (dilation - 1)
    size = {"valid": input_length - reach + 1, "full": input_length + reach - 1}
    return (size.get(padding, input_length) + stride - 1) // stride


def conv_input_length(
    output_length: int | None, filter_size: int, padding: str, stride: int
) -> int | None:
    """The size that gives so many windows."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def deconv_output_length(
    input_length: int | None, filter_size: int, padding: str, output_padding: int | None = None,
    stride: int = 0, dilation: int = 1,
) -> int | None:  # fmt: skip
    """The size that a transposed convolution gives, to which `output_padding` is added where it is
    said."""
    if input_length is None:
        return None
    reach = filter_size + (filter_size - 1) * (dilation - 1)
    if output_padding is not None:
        pad = {"same": reach // 2, "valid": 0, "full": reach - 1}[padding]
        return (input_length - 1) * stride + reach - 2 * pad + output_padding
    more = {"valid": max(reach - stride, 0), "full": -(stride + reach - 2), "same": 0}[padding]
    return input_length * stride + more


def normalize_tuple(value: Any, n: int, name: str, allow_zero: bool = False) -> tuple[int, ...]:
    """A number for each of n axes, from one for all or from a tuple.

    Raises:
        ValueError: it is neither, or a number is too small.
    """
    found = (value,) * n if isinstance(value, int) else value
    try:
        found = tuple(found)
        good = len(found) == n and all(int(v) >= (0 if allow_zero else 1) for v in found)
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
            f"{at(user_origin())}"
        )
    return tuple(found)


def normalize_data_format(value: str | None) -> str:
    """ "channels_last" or "channels_first", Keras's setting for None."""
    return format_name(None if value is None else value.lower())


def normalize_padding(value: Any) -> Any:
    """The padding in lower case; lists and tuples as they are.

    Raises:
        ValueError: it is none that Keras knows.
    """
    if isinstance(value, list | tuple):
        return value
    if value.lower() not in ("valid", "same", "causal"):
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", '
            f"only for `Conv1D). Received: {value.lower()}{at(user_origin())}"
        )
    return value.lower()


def convert_data_format(data_format: str, ndim: int) -> str:
    """The format as operations have it: ``NHWC`` of images whose channels are last."""
    space = "DHW"[5 - ndim :] if ndim > 3 else "W"
    return f"N{space}C" if format_name(data_format) == "channels_last" else f"NC{space}"
