"""Recurrent layers whose states are images: ConvLSTM of one, two and three spatial axes."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras import activations
from treadle.keras.layers.cells import GatedCell
from treadle.keras.layers.convolutional import Conv1D, Conv2D, Conv3D
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.recurrent import OwnCell

_CONVOLUTIONS = {1: Conv1D, 2: Conv2D, 3: Conv3D}


class ConvLSTMCell(GatedCell):
    """A long short-term memory whose products are convolutions.

    Args:
        rank: the number of spatial axes.
        filters: the channels of the state.
        kernel_size, strides, padding, data_format, dilation_rate: of the convolution of the inputs,
            as for Conv2D; that of the state has strides of 1 and "same" padding.
        unit_forget_bias: start the forget gate's bias at 1.
        activation, recurrent_activation, use_bias, dropout, recurrent_dropout, seed,
        kernel_initializer, recurrent_initializer, bias_initializer: as for LSTMCell.
    """

    _seeds_first = True
    gates = 4
    states = 2
    _config_names: ClassVar[tuple[str, ...]] = (
        "filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate",
        "recurrent_activation", "unit_forget_bias",
    )  # fmt: skip
    _TF_MODULE_IGNORED_PROPERTIES = (
        GatedCell._TF_MODULE_IGNORED_PROPERTIES | {"_windows"}
    )

    def __init__(
        self, rank: int, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid", use_bias: bool = True,
        unit_forget_bias: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(activation, use_bias, **kwargs)
        # It knows the arguments and the shapes; the weights are the cell's.
        self._windows = _CONVOLUTIONS[rank](
            filters, kernel_size, strides, padding, data_format, dilation_rate,
            kernel_initializer="zeros",
        )
        for name in self._config_names[:6]:
            setattr(self, name, getattr(self._windows, name))
        self.filters = filters
        self.recurrent_activation = activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias
        self._input_shape: tuple[int, ...] = ()

    @property
    def state_size(self) -> list[int]:
        """The channels of both states."""
        return [self.filters, self.filters]

    def build(self, input_shape: Any) -> None:
        if None in input_shape[1:]:
            raise ValueError(
                f'Layer "{self.name}" (ConvLSTMCell) needs known sizes, got inputs of shape '
                f"{tuple(input_shape)}"
            )
        self._input_shape = tuple(input_shape[1:])
        channels = input_shape[self._windows._channel_axis]
        size, width = self._windows.kernel_size, self.filters * self.gates
        self.kernel = self._own_weight("kernel", (*size, channels, width))
        self.recurrent_kernel = self._own_weight(
            "recurrent", (*size, self.filters, width), name="recurrent_kernel"
        )
        self.bias = None
        if self.use_bias:
            given = self.bias_initializer
            initial = self._forget_first(self.filters) if self.unit_forget_bias else given
            self.bias = self._own_weight("bias", (width,), initializer=initial)

    def get_initial_state(self, batch_size: Any = None, dtype: Any = None) -> list[td.Tensor]:
        """Zeros for both states."""
        shape = self._windows.compute_output_shape((batch_size, *self._input_shape))
        return [td.zeros(td.stack(list(shape)), dtype or self.dtype) for _ in range(self.states)]

    def _convolved(
        self, x: td.Tensor, kernel: td.Variable, fraction: str, training: Any, **windows: Any
    ) -> td.Tensor:
        """The convolution for all gates; in training each gate drops other elements of x."""
        def convolved(x: td.Tensor, kernel: Any) -> td.Tensor:
            return td.nn.convolution(x, kernel, data_format=self._windows._format_code, **windows)

        if not training or not getattr(self, fraction):
            return convolved(x, kernel)
        parts = enumerate(td.split(kernel.read_value(), self.gates, axis=-1))
        return td.concat(
            [convolved(self._dropped(x, fraction, training, i), part) for i, part in parts],
            self._windows._channel_axis,
        )

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        before, carry = states
        code = "N...C" if self._windows._channels_last else "NC..."
        windows = self._windows
        z = self._convolved(
            inputs, self.kernel, "dropout", training, strides=list(windows.strides),
            padding=windows.padding.upper(), dilations=list(windows.dilation_rate),
        )  # fmt: skip
        if self.bias is not None:
            z = td.nn.bias_add(z, self.bias, code)
        z = z + self._convolved(
            before, self.recurrent_kernel, "recurrent_dropout", training, strides=1, padding="SAME"
        )
        enter, forget, candidate, leave = td.split(z, self.gates, axis=windows._channel_axis)
        gate = self.recurrent_activation
        carry = gate(forget) * carry + gate(enter) * self.activation(candidate)
        outputs = gate(leave) * self.activation(carry)
        return outputs, [outputs, carry]


class _ConvLSTM(OwnCell):
    """The cell of a long short-term memory with convolutions along the time axis of (batch, time,
    spatial axes ..., channels).

    Args:
        filters: the channels of the state.
        kernel_size, strides, padding, data_format, dilation_rate: as for Conv2D.
        activation, recurrent_activation, use_bias, unit_forget_bias, dropout, recurrent_dropout,
        kernel_initializer, recurrent_initializer, bias_initializer: as for LSTM.
        return_sequences, return_state, go_backwards, stateful: as for RNN.
    """

    _passes_on_to = ConvLSTMCell
    rank: ClassVar[int]

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None,
        kernel_constraint: Any = None, recurrent_constraint: Any = None,
        bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | None = None, return_sequences: bool = False, return_state: bool = False,
        go_backwards: bool = False, stateful: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            rank=self.rank, filters=filters, kernel_size=kernel_size, strides=strides,
            padding=padding, data_format=data_format, dilation_rate=dilation_rate,
            activation=activation, recurrent_activation=recurrent_activation, use_bias=use_bias,
            kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer, unit_forget_bias=unit_forget_bias,
            kernel_regularizer=kernel_regularizer, recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer, activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            seed=seed, return_sequences=return_sequences, return_state=return_state,
            go_backwards=go_backwards, stateful=stateful, **kwargs,
        )  # fmt: skip
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        batch, steps, *rest = sequences_shape
        state = self.cell._windows.compute_output_shape((batch, *rest))
        output = (batch, steps, *state[1:]) if self.return_sequences else state
        return (output, state, state) if self.return_state else output


class ConvLSTM1D(_ConvLSTM):
    __doc__ = _ConvLSTM.__doc__
    rank = 1


class ConvLSTM2D(_ConvLSTM):
    __doc__ = _ConvLSTM.__doc__
    rank = 2


class ConvLSTM3D(_ConvLSTM):
    __doc__ = _ConvLSTM.__doc__
    rank = 3
