"""Arguments of layers by position: Keras takes all of them in an order of its own, where the
constructors here name some and take the others by keyword."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_KERNEL, _RECURRENT = "kernel bias", "kernel recurrent bias"
_WALK = "return_sequences return_state go_backwards stateful"
_DROPPED = "dropout recurrent_dropout"
_CONV = "filters kernel_size strides padding data_format dilation_rate"
_TRANSPOSE = "data_format dilation_rate activation use_bias"
_NORM = "axis epsilon center scale"


def _of(weights: str, kinds: str) -> str:
    """``w_initializer`` of all weights, and so on: kinds are named by their first letters, A stands
    for the activity_regularizer."""
    names = {"I": "initializer", "R": "regularizer", "C": "constraint"}
    return " ".join(
        "activity_regularizer" if kind == "A" else f"{weight}_{names[kind]}"
        for kind in kinds for weight in (weights.split() if kind != "A" else "A")
    )  # fmt: skip


def _recurrent(first: str, middle: str, last: str) -> tuple[str, str]:
    """The orders of a cell and of its layer."""
    first = f"{first} use_bias {_of(_RECURRENT, 'I')} {middle}"
    cell = f"{first} {_of(_RECURRENT, 'RC')} {_DROPPED} {last} seed"
    kinds = f"{_of(_RECURRENT, 'R')} {_of('', 'A')} {_of(_RECURRENT, 'C')}"
    return cell, f"{first} {kinds} {_DROPPED} seed {_WALK} unroll {last} use_cudnn"


_GATED = "units activation recurrent_activation"
_LSTM, _GRU = _recurrent(_GATED, "unit_forget_bias", ""), _recurrent(_GATED, "", "reset_after")
_SIMPLE = _recurrent("units activation", "", "")[0]
_CONV_LSTM = (
    f"{_CONV} activation {_LSTM[1].partition('activation ')[2].partition(' unroll')[0]}"
)  # fmt: skip
_CONVOLUTION = f"{_CONV} groups activation use_bias {_of(_KERNEL, 'IRAC')}"
_SEPARABLE = (
    f"{_CONV} depth_multiplier activation use_bias {_of('depthwise pointwise bias', 'IRAC')}"
)
_DEPTHWISE = (
    "kernel_size strides padding depth_multiplier data_format dilation_rate activation use_bias "
    + _of("depthwise bias", "IRAC")
)
_TRANSPOSED = (
    f"filters kernel_size strides padding output_padding {_TRANSPOSE} {_of(_KERNEL, 'IRAC')}"
)
_ATTENTION = f"dropout use_bias %s flash_attention {_of(_KERNEL, 'IRAC')} use_gate seed"
_BETA = _of("beta gamma", "I")

# Classes whose order is not that of their constructor, by name.
_ORDERS = {
    "Dense": f"units activation use_bias {_of(_KERNEL, 'IRAC')} lora_rank lora_alpha",
    "EinsumDense": "equation output_shape activation bias_axes "
    f"{_of(_KERNEL, 'IRC')} lora_rank lora_alpha",
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), _CONVOLUTION),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose"), _TRANSPOSED),
    "Conv3DTranspose": _TRANSPOSED.replace(
        "output_padding data_format", "data_format output_padding"
    ),
    **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), _SEPARABLE),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _DEPTHWISE),
    **dict.fromkeys(("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"), _CONV_LSTM),
    "LSTMCell": _LSTM[0], "LSTM": _LSTM[1], "GRUCell": _GRU[0], "GRU": _GRU[1],
    "SimpleRNNCell": _SIMPLE,
    "SimpleRNN": f"{_SIMPLE.replace(' kernel_con', ' activity_regularizer kernel_con')}".replace(
        " seed", f" {_WALK} unroll seed"
    ),
    "RNN": f"cell {_WALK} unroll zero_output_for_mask",
    "BatchNormalization": f"axis momentum epsilon center scale {_BETA} "
    f"{_of('moving_mean moving_variance', 'I')} {_of('beta gamma', 'RC')} "
    "renorm renorm_clipping renorm_momentum synchronized",
    "LayerNormalization": f"{_NORM} {_of('beta gamma', 'IRC')}",
    "GroupNormalization": f"groups {_NORM} {_of('beta gamma', 'IRC')}",
    "MultiHeadAttention": "num_heads key_dim value_dim "
    + _ATTENTION % "output_shape attention_axes sliding_window",
    "GroupQueryAttention": "head_dim num_query_heads num_key_value_heads "
    + _ATTENTION % "sliding_window",
}  # fmt: skip


def order_of(kind: type) -> tuple[str, ...] | None:
    """The names of a class's arguments in Keras's order; None where the constructor has it."""
    order = _ORDERS.get(kind.__name__) if kind.__module__.startswith("treadle.") else None
    return None if order is None else tuple(order.split())


def in_order(init: Callable[..., None], names: tuple[str, ...]) -> Callable[..., None]:
    """A constructor that takes arguments by position in the order of the names."""

    @functools.wraps(init)
    def ordered(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & kwargs.keys():
            init(self, *args, **kwargs)  # it refuses them as Python does
        else:
            init(self, **given, **kwargs)

    return ordered
