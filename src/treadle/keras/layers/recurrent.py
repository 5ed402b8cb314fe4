"""Recurrent layers: a cell computes one step, RNN walks a cell along the time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import treadle as td
from treadle.keras import activations, constraints, initializers
from treadle.keras.layers.base import Layer


class _Cell(Layer):
    """What the cells share: kernels of the input and of the state, a bias, dropout.

    Args:
        units: the size of the state.
        activation, recurrent_activation: of the candidate, of the gates.
        dropout, recurrent_dropout: fractions of the inputs and of the state to drop in training;
            one sequence drops the same ones at every step.
    """

    kernel: Any
    recurrent_kernel: Any
    bias: Any
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    _settings: ClassVar[tuple[str, ...]] = ("dropout", "recurrent_dropout", "use_bias", "units")

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"{type(self).__name__}: units must be a positive int, got {units!r}")
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self._initializers = tuple(
            initializers.get(i)
            for i in (kernel_initializer, recurrent_initializer, bias_initializer)
        )
        self._regularizers = (kernel_regularizer, recurrent_regularizer, bias_regularizer)
        self._constraints = tuple(
            constraints.get(c) for c in (kernel_constraint, recurrent_constraint, bias_constraint)
        )
        self._recurrent_mask: Any = None

    @property
    def state_size(self) -> Any:
        """The size of the state, or the sizes of the states."""
        return self.units if self.states == 1 else [self.units] * self.states

    @property
    def output_size(self) -> int:
        return self.units

    def build(self, input_shape: Any) -> None:
        if input_shape[-1] is None:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) needs a known last axis, got '
                f"{input_shape}"
            )
        width = self.units * self.gates
        shapes = {
            "kernel": (int(input_shape[-1]), width),
            "recurrent_kernel": (self.units, width),
            "bias": self._bias_shape,
        }
        self.bias = None
        for number, (name, shape) in enumerate(shapes.items()):
            if name != "bias" or self.use_bias:
                weight = self.add_weight(
                    shape, self._initializer(name, number), name=name,
                    regularizer=self._regularizers[number], constraint=self._constraints[number],
                )  # fmt: skip
                setattr(self, name, weight)
        self.built = True

    @property
    def _bias_shape(self) -> tuple[int, ...]:
        return (self.units * self.gates,)

    def _initializer(self, name: str, number: int) -> Any:
        return self._initializers[number]

    def get_initial_state(self, batch_size: Any = None, dtype: Any = None) -> list[td.Tensor]:
        """Zeros, one tensor a state."""
        kind = dtype or self.dtype
        return [td.zeros(td.stack([batch_size, self.units]), kind) for _ in range(self.states)]

    def _before(self, states: Any) -> list[td.Tensor]:
        """The states as a list, the first with what a training sequence drops of it."""
        given = list(states) if isinstance(states, list | tuple) else [states]
        if self._recurrent_mask is not None:
            given[0] = given[0] * self._recurrent_mask
        return given

    def get_config(self) -> dict[str, Any]:
        names = ("kernel_initializer", "recurrent_initializer", "bias_initializer")
        initial = zip(names, map(initializers.serialize, self._initializers), strict=True)
        return (
            super().get_config()
            | {name: getattr(self, name) for name in self._settings}
            | {"activation": activations.serialize(self.activation), **dict(initial)}
        )


class SimpleRNNCell(_Cell):
    """``activation(x @ kernel + h @ recurrent_kernel + bias)``."""

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        (before,) = self._before(states)
        outputs = td.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        outputs = self.activation(outputs + td.matmul(before, self.recurrent_kernel))
        return outputs, [outputs] if isinstance(states, list | tuple) else outputs


class GRUCell(_Cell):
    """A gated recurrent unit.

    Args:
        reset_after: apply the reset gate after the product with the state, which has a bias of
            its own.
    """

    gates = 3
    _settings = (*_Cell._settings, "reset_after")

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True, reset_after: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.reset_after = reset_after

    @property
    def _bias_shape(self) -> tuple[int, ...]:
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        given = list(states) if isinstance(states, list | tuple) else [states]
        (before,) = self._before(states)
        x = td.matmul(inputs, self.kernel)
        bias = None
        if self.bias is not None:
            bias = self.bias.value()
            x = x + (bias[0] if self.reset_after else bias)
        update, reset, candidate = td.split(x, 3, axis=-1)
        recurrent = self.recurrent_kernel.value()
        if self.reset_after:
            inner = td.matmul(before, recurrent)
            if bias is not None:
                inner = inner + bias[1]
            of_update, of_reset, of_candidate = td.split(inner, 3, axis=-1)
            reset = self.recurrent_activation(reset + of_reset)
            candidate = candidate + reset * of_candidate
        else:
            of_gates = td.matmul(before, recurrent[:, : 2 * self.units])
            of_update, of_reset = td.split(of_gates, 2, axis=-1)
            reset = self.recurrent_activation(reset + of_reset)
            candidate = candidate + td.matmul(reset * before, recurrent[:, 2 * self.units :])
        update = self.recurrent_activation(update + of_update)
        state = update * given[0] + (1.0 - update) * self.activation(candidate)
        return state, [state] if isinstance(states, list | tuple) else state

    def get_config(self) -> dict[str, Any]:
        name = activations.serialize(self.recurrent_activation)
        return super().get_config() | {"recurrent_activation": name}


class LSTMCell(_Cell):
    """A long short-term memory: the states are the output and the carry.

    Args:
        unit_forget_bias: start the forget gate's bias at 1.
    """

    gates = 4
    states = 2
    _settings = (*_Cell._settings, "unit_forget_bias")

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True, unit_forget_bias: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    def _initializer(self, name: str, number: int) -> Any:
        given = super()._initializer(name, number)
        if name != "bias" or not self.unit_forget_bias:
            return given
        units = self.units
        return lambda shape, dtype: td.concat(
            [given((units,), dtype), td.ones((units,), dtype), given((2 * units,), dtype)], 0
        )

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        before, carry = self._before(states)
        z = td.matmul(inputs, self.kernel) + td.matmul(before, self.recurrent_kernel)
        if self.bias is not None:
            z = z + self.bias
        enter, forget, candidate, leave = td.split(z, 4, axis=-1)
        gate = self.recurrent_activation
        carry = gate(forget) * carry + gate(enter) * self.activation(candidate)
        outputs = gate(leave) * self.activation(carry)
        return outputs, [outputs, carry]

    def get_config(self) -> dict[str, Any]:
        name = activations.serialize(self.recurrent_activation)
        return super().get_config() | {"recurrent_activation": name}


class RNN(Layer):
    """A cell along the time axis of (batch, time, features).

    Args:
        cell: a layer called as ``cell(inputs, states)``, which gives the output and the new
            states, and has `state_size`.
        return_sequences: give the outputs of all steps, not the last.
        return_state: give the last states too.
        go_backwards: start at the last step.
        stateful: start each call from the states that the call before left.
        unroll: write the steps out instead of looping.
    """

    has_shape_rule: ClassVar[bool] = False

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if time_major:
            raise ValueError(f"{type(self).__name__}: the batch comes first; transpose the inputs")
        self.cell = cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.stateful, self.unroll = go_backwards, stateful, unroll
        self._kept: list[td.Variable] | None = None

    def build(self, input_shape: Any) -> None:
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((shape[0], *shape[2:]))
            self.cell.built = True
        if self.stateful:
            if shape[0] is None:
                raise ValueError(
                    f'Layer "{self.name}": a stateful layer needs a known batch size; give it in '
                    "keras.Input(batch_shape=...)"
                )
            self._kept = [
                td.Variable(td.zeros([shape[0], size], self.dtype), trainable=False)
                for size in _sizes(self.cell)
            ]
        self.built = True

    def reset_states(self) -> None:
        """Let the next call start from zeros."""
        for variable in self._kept or ():
            variable.assign(td.zeros_like(variable))

    reset_state = reset_states

    def call(self, sequences: Any, initial_state: Any = None, training: Any = False) -> Any:
        if isinstance(sequences, list | tuple):
            sequences, *initial_state = sequences
        states = self._first_states(sequences, initial_state)
        cell_call = self._step(sequences, states, training)
        try:
            outputs, last = self._walk(sequences, states, cell_call)
        finally:
            if isinstance(self.cell, _Cell):
                self.cell._recurrent_mask = None
        if self._kept is not None:
            for variable, state in zip(self._kept, last, strict=True):
                variable.assign(state)
        return (outputs, *last) if self.return_state else outputs

    def _first_states(self, sequences: td.Tensor, given: Any) -> list[td.Tensor]:
        if given is not None:
            states = list(given) if isinstance(given, list | tuple) else [given]
            return [td.cast(td.convert_to_tensor(s), self.dtype) for s in states]
        if self._kept is not None:
            return [variable.value() for variable in self._kept]
        batch = td.shape(sequences)[0]
        own = getattr(self.cell, "get_initial_state", None)
        if own is not None:
            made = own(batch_size=batch, dtype=self.dtype)
            return list(made) if isinstance(made, list | tuple) else [made]
        return [td.zeros(td.stack([batch, size]), self.dtype) for size in _sizes(self.cell)]

    def _step(self, sequences: td.Tensor, states: list[td.Tensor], training: Any) -> Any:
        """One step of the cell; what a training sequence drops is chosen once for all steps."""
        cell, mask = self.cell, None
        if isinstance(cell, _Cell) and training:
            if cell.dropout:
                mask = td.nn.dropout(td.ones_like(sequences[:, 0]), cell.dropout)
            if cell.recurrent_dropout:
                cell._recurrent_mask = td.nn.dropout(
                    td.ones_like(states[0]), cell.recurrent_dropout
                )

        def step(inputs: td.Tensor, before: list[td.Tensor]) -> tuple[td.Tensor, list[td.Tensor]]:
            output, after = cell(inputs if mask is None else inputs * mask, before)
            return output, list(after) if isinstance(after, list | tuple) else [after]

        return step

    def _walk(
        self, sequences: td.Tensor, states: list[td.Tensor], step: Any
    ) -> tuple[td.Tensor, list[td.Tensor]]:
        steps = sequences.shape[1]
        if self.unroll:
            if steps is None:
                raise ValueError(f'Layer "{self.name}": unroll needs a known number of steps')
            order = range(steps - 1, -1, -1) if self.go_backwards else range(steps)
            outputs = []
            for t in order:
                output, states = step(sequences[:, t], states)
                outputs.append(output)
            return td.stack(outputs, 1) if self.return_sequences else outputs[-1], states
        return self._loop(sequences, states, step)

    def _loop(
        self, sequences: td.Tensor, states: list[td.Tensor], step: Any
    ) -> tuple[td.Tensor, list[td.Tensor]]:
        count = sequences.shape[1]
        if count is None:
            count = td.shape(sequences)[1]
        by_time = td.transpose(sequences, [1, 0, *range(2, len(sequences.shape))])
        # The first step is made before the loop: it tells the output's shape.
        first = by_time[count - 1 if self.go_backwards else 0]
        output, states = step(first, states)
        outputs = td.TensorArray(output.dtype, size=count, element_shape=output.shape)
        if self.return_sequences:
            outputs = outputs.write(0, output)

        def body(t: Any, output: Any, states: Any, outputs: Any) -> Any:
            inputs = by_time[count - 1 - t if self.go_backwards else t]
            output, states = step(inputs, list(states))
            if self.return_sequences:
                outputs = outputs.write(t, output)
            return t + 1, output, tuple(states), outputs

        start = (td.constant(1), output, tuple(states), outputs)
        _, output, last, outputs = td.while_loop(lambda t, *_: t < count, body, start)
        if not self.return_sequences:
            return output, list(last)
        stacked = outputs.stack()
        swapped = td.transpose(stacked, [1, 0, *range(2, len(stacked.shape))])
        shape = (sequences.shape[0], sequences.shape[1], *swapped.shape[2:])
        return td.ensure_shape(swapped, shape), list(last)

    def get_config(self) -> dict[str, Any]:
        found = super().get_config()
        found.pop("time_major", None)  # an argument of Keras 2
        return found | {
            "return_sequences": self.return_sequences,
            "return_state": self.return_state,
            "go_backwards": self.go_backwards,
            "stateful": self.stateful,
            "unroll": self.unroll,
        }


def _sizes(cell: Any) -> Sequence[int]:
    size = cell.state_size
    return list(size) if isinstance(size, list | tuple) else [size]


class _OwnCell(RNN):
    """An RNN of a cell that it makes from its arguments."""

    _passes_on_to: ClassVar[type[_Cell]]  # the class that gets the arguments of the cell
    _of_walk: ClassVar[tuple[str, ...]] = (
        "return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major",
        "name", "trainable", "dtype", "input_shape",
    )  # fmt: skip

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        if "input_dim" in kwargs:  # Keras 2
            kwargs["input_shape"] = (kwargs.pop("input_length", None), kwargs.pop("input_dim"))
        kwargs.pop("implementation", None)  # which of several equal ways to compute it
        walk = {name: kwargs.pop(name) for name in self._of_walk if name in kwargs}
        own = {name: walk[name] for name in ("dtype", "trainable") if name in walk}
        cell: Any = self._passes_on_to
        super().__init__(cell(units, *args, **kwargs, **own), **walk)
        self.units = self.cell.units

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.cell.get_config() | super().get_config()
        return config


class SimpleRNN(_OwnCell):
    """The cell of `SimpleRNNCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = SimpleRNNCell


class GRU(_OwnCell):
    """The cell of `GRUCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = GRUCell


class LSTM(_OwnCell):
    """The cell of `LSTMCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = LSTMCell
