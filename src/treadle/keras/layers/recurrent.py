"""Recurrent layers: RNN walks a cell along the time axis."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras import naming
from treadle.keras.layers.base import Layer
from treadle.keras.layers.cells import (
    GatedCell,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedRNNCells,
    first_state,
    sizes_of,
)
from treadle.keras.variables import owned


class RNN(Layer):
    """A cell along the time axis of (batch, time, ...).

    Steps that the mask leaves out keep the states, and repeat the result of the step before.

    Args:
        cell: a layer called as ``cell(inputs, states)``, which gives the output and the new
            states, and has `state_size`; or a list of such cells, one above the other.
        return_sequences: give the outputs of all steps, not the last.
        return_state: give the last states too.
        go_backwards: start at the last step.
        stateful: start each call from the states that the call before left.
        unroll: write the steps out instead of looping.
        zero_output_for_mask: with `return_sequences`, results of steps left out are 0.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = (
        "return_sequences", "return_state", "go_backwards", "stateful", "unroll",
        "zero_output_for_mask", "cell",
    )  # fmt: skip
    _takes_objects: ClassVar[tuple[str, ...]] = ("cell",)
    _TF_MODULE_IGNORED_PROPERTIES = Layer._TF_MODULE_IGNORED_PROPERTIES | {"states"}

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        *,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if time_major:
            raise ValueError(f"{type(self).__name__}: the batch comes first; transpose the inputs")
        cell = StackedRNNCells(cell) if isinstance(cell, list | tuple) else cell
        if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
            raise ValueError(
                f"{type(self).__name__}: a cell has call and state_size, got {cell!r}"
            )
        self.cell = cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.stateful, self.unroll = go_backwards, stateful, unroll
        self.zero_output_for_mask = zero_output_for_mask
        self.states: list[td.Variable] | None = None  # of a stateful layer

    @property
    def state_size(self) -> Any:
        """The cell's."""
        return self.cell.state_size

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        several = isinstance(sequences_shape, list) and isinstance(sequences_shape[0], list | tuple)
        shape = sequences_shape[0] if several else sequences_shape
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((shape[0], *shape[2:]))
        if self.stateful:
            if shape[0] is None:
                raise ValueError(
                    f'Layer "{self.name}": a stateful layer needs a known batch size; give it in '
                    "keras.Input(batch_shape=...)"
                )
            with td.init_scope():
                first = td.nest.flatten(first_state(self.cell, shape[0], self.dtype))
                path = naming.path_of(naming.opened(self))
                self.states = [
                    owned(f"{path}/{naming.unique_name('rnn_state')}", state, trainable=False)
                    for state in first
                ]

    def reset_state(self, states: Any = None) -> None:
        """Let the next call of a stateful layer start from zeros, or from arrays for the states.

        Raises:
            ValueError: another number of states.
        """
        known = self.states or []
        values = [td.zeros_like(v) for v in known] if states is None else td.nest.flatten(states)
        if len(values) != len(known):
            raise ValueError(f'Layer "{self.name}" has {len(known)} states, got {len(values)}')
        for variable, value in zip(known, values, strict=True):
            variable.assign(value)

    reset_states = reset_state

    @property
    def _state_dtype(self) -> str:
        """What the cell computes in."""
        return getattr(self.cell, "compute_dtype", self.compute_dtype)

    def get_initial_state(self, batch_size: Any) -> list[Any]:
        """The states before the first step, as a list."""
        made = first_state(self.cell, batch_size, self._state_dtype)
        return list(made) if isinstance(made, list | tuple) else [made]

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = False
    ) -> Any:
        if isinstance(sequences, list | tuple):
            sequences, *initial_state = sequences
            mask = mask[0] if isinstance(mask, list | tuple) else mask
        if sequences.dtype.is_integer:
            sequences = td.cast(sequences, self.compute_dtype)
        states = self._first_states(sequences, initial_state)
        start, end = (getattr(self.cell, f"{n}_sequence", None) for n in ("start", "end"))
        try:
            if start is not None:
                start()
            outputs, last = self._walk(_Steps(self, sequences, mask, training), states)
        finally:
            if end is not None:
                end()
        if self.states is not None:
            for variable, state in zip(self.states, td.nest.flatten(last), strict=True):
                variable.assign(state)
        return (outputs, *last) if self.return_state else outputs

    def _first_states(self, sequences: td.Tensor, given: Any) -> list[Any]:
        structure = sizes_of(self.cell)
        if given is None and self.states is not None:
            size = self.states[0].shape[0]
            if sequences.shape[0] not in (None, size):
                raise ValueError(
                    f'Layer "{self.name}" keeps states of {size} sequences, got '
                    f"{sequences.shape[0]}"
                )
            given = [variable.read_value() for variable in self.states]
        if given is None:
            return self.get_initial_state(td.shape(sequences)[0])
        kind = self._state_dtype
        flat = [td.cast(td.convert_to_tensor(s), kind) for s in td.nest.flatten(given)]
        packed: list[Any] = td.nest.pack_sequence_as(structure, flat)
        return packed

    def _walk(self, steps: _Steps, states: list[Any]) -> tuple[td.Tensor, list[Any]]:
        if self.unroll:
            return self._unrolled(steps, states)
        return self._loop(steps, states)

    def _unrolled(self, steps: _Steps, states: list[Any]) -> tuple[td.Tensor, list[Any]]:
        if not isinstance(steps.count, int):
            raise ValueError(f'Layer "{self.name}": unroll needs a known number of steps')
        outputs: list[td.Tensor] = []
        for t in range(steps.count):
            before = outputs[-1] if outputs else None
            output, states = steps.run(t, before, states)
            outputs.append(output)
        return td.stack(outputs, 1) if self.return_sequences else outputs[-1], states

    def _loop(self, steps: _Steps, states: list[Any]) -> tuple[td.Tensor, list[Any]]:
        gated = isinstance(self.cell, GatedCell) and self.cell.gives_state
        done, output = 0, td.nest.flatten(states)[0]
        if not gated or self.cell.drops(steps.training):
            # The first step is made before the loop: it tells the output's shape, or what to drop.
            done, (output, states) = 1, steps.run(0, None, states)
        elif steps.masked:
            output = td.zeros_like(output)
        # Steps that are left out may repeat an output that is not the state.
        apart = (output,) if steps.masked or not gated else ()
        outputs = td.TensorArray(output.dtype, size=steps.count, element_shape=output.shape)
        if self.return_sequences and done:
            outputs = outputs.write(0, output)

        def body(t: Any, apart: Any, flat: Any, outputs: Any) -> Any:
            before = apart[0] if apart else None
            output, after = steps.run(t, before, td.nest.pack_sequence_as(states, list(flat)))
            if self.return_sequences:
                outputs = outputs.write(t, output)
            return t + 1, (output,) if apart else (), tuple(td.nest.flatten(after)), outputs

        start = (td.constant(done), apart, tuple(td.nest.flatten(states)), outputs)
        _, apart, flat, outputs = td.while_loop(lambda t, *_: t < steps.count, body, start)
        last = td.nest.pack_sequence_as(states, list(flat))
        if not self.return_sequences:
            return apart[0] if apart else flat[0], last
        stacked = outputs.stack()
        swapped = td.transpose(stacked, [1, 0, *range(2, len(stacked.shape))])
        return td.ensure_shape(swapped, (*steps.sequences.shape[:2], *swapped.shape[2:])), last

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the steps, where the results have them."""
        own = td.nest.flatten(mask)[0] if self.return_sequences else None
        return [own, *(None for _ in sizes_of(self.cell))] if self.return_state else own

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        batch, steps, *_ = sequences_shape
        states = [
            (batch, s) if isinstance(s, int) else [(batch, n) for n in s]
            for s in sizes_of(self.cell)
        ]
        size = getattr(self.cell, "output_size", None)
        size = td.nest.flatten(states[0])[-1] if size is None else size
        output = (batch, steps, size) if self.return_sequences else (batch, size)
        return (output, *states) if self.return_state else output


class _Steps:
    """The steps of sequences, in the order in which a layer walks them.

    Args:
        sequences: [batch, time, ...].
        mask: [batch, time]: False for the steps to leave out; None leaves out none.
    """

    def __init__(self, layer: RNN, sequences: td.Tensor, mask: Any, training: Any) -> None:
        self.layer, self.sequences, self.training = layer, sequences, training
        self.masked = mask is not None
        self.given = {"training": training} if _takes_training(layer.cell) else {}
        count = sequences.shape[1]
        self.count: Any = td.shape(sequences)[1] if count is None else count
        self._by_time = self._in_order(sequences)
        self._kept = None if mask is None else self._in_order(td.cast(mask, td.bool))

    def _in_order(self, x: td.Tensor) -> td.Tensor:
        """x with the steps first, as the layer walks them."""
        by_time = td.transpose(x, [1, 0, *range(2, len(x.shape))])
        return td.reverse(by_time, [0]) if self.layer.go_backwards else by_time

    def run(self, t: Any, before: Any, states: list[Any]) -> tuple[td.Tensor, list[Any]]:
        """The output and the states of step t, from the output (None for none) and the states
        before it."""
        output, after = self.layer.cell(self._by_time[t], states, **self.given)
        after = list(after) if isinstance(after, list | tuple) else [after]
        if self._kept is None:
            return output, after
        kept = self._kept[t]
        if before is None or self.layer.zero_output_for_mask:
            before = td.zeros_like(output)
        flat = zip(td.nest.flatten(after), td.nest.flatten(states), strict=True)
        chosen = [_where(kept, new, old) for new, old in flat]
        return _where(kept, output, before), td.nest.pack_sequence_as(after, chosen)


def _where(kept: td.Tensor, new: td.Tensor, old: td.Tensor) -> td.Tensor:
    """The rows of `new` that are kept, the others of `old`."""
    return td.where(td.reshape(kept, [-1, *(1,) * (len(new.shape) - 1)]), new, old)


def _takes_training(cell: Any) -> bool:
    return isinstance(cell, Layer) and cell._call_takes("training")


class OwnCell(RNN):
    """An RNN of a cell that it makes from its arguments."""

    _passes_on_to: ClassVar[type[Any]]  # the class that gets the arguments of the cell
    _of_walk: ClassVar[tuple[str, ...]] = (
        "return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major",
        "zero_output_for_mask", "name", "trainable", "dtype", "input_shape",
        "activity_regularizer", "batch_input_shape", "batch_size", "autocast",
    )  # fmt: skip
    _config_names: ClassVar[tuple[str, ...]] = ("activity_regularizer",)
    _no_settings: ClassVar[tuple[str, ...]] = ("cell",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "input_dim" in kwargs:  # Keras 2
            kwargs["input_shape"] = (kwargs.pop("input_length", None), kwargs.pop("input_dim"))
        kwargs.pop("implementation", None)  # one of several equal ways to compute it
        cudnn = kwargs.pop("use_cudnn", "auto")
        walk = {name: kwargs.pop(name) for name in self._of_walk if name in kwargs}
        own = {name: walk[name] for name in ("dtype", "trainable") if name in walk}
        name = naming.snake_case(self._passes_on_to.__name__)
        super().__init__(self._passes_on_to(*args, **kwargs, **own, name=name), **walk)
        if self._passes_on_to is not SimpleRNNCell:
            self.use_cudnn = cudnn  # which changes nothing

    def __getattr__(self, name: str) -> Any:
        """The settings of the cell are those of the layer, too."""
        cell = self.__dict__.get("cell")
        if cell is None or name.startswith("_") or name not in cell.get_config():
            return super().__getattr__(name)  # type: ignore[misc]
        return getattr(cell, name)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.cell.get_config() | super().get_config()
        return config


class SimpleRNN(OwnCell):
    """The cell of `SimpleRNNCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = SimpleRNNCell

    def __init__(
        self, units: int, activation: Any = "tanh", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, return_sequences: bool = False, return_state: bool = False,
        go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            units=units, activation=activation, use_bias=use_bias,
            kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint, bias_constraint=bias_constraint,
            dropout=dropout, recurrent_dropout=recurrent_dropout,
            return_sequences=return_sequences, return_state=return_state,
            go_backwards=go_backwards, stateful=stateful, unroll=unroll, seed=seed, **kwargs,
        )  # fmt: skip


class GRU(OwnCell):
    """The cell of `GRUCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = GRUCell

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None,
        kernel_constraint: Any = None, recurrent_constraint: Any = None,
        bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | None = None, return_sequences: bool = False, return_state: bool = False,
        go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
        reset_after: bool = True, use_cudnn: Any = "auto", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            units=units, activation=activation, recurrent_activation=recurrent_activation,
            use_bias=use_bias, kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer, activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            seed=seed, return_sequences=return_sequences, return_state=return_state,
            go_backwards=go_backwards, stateful=stateful, unroll=unroll, reset_after=reset_after,
            use_cudnn=use_cudnn, **kwargs,
        )  # fmt: skip


class LSTM(OwnCell):
    """The cell of `LSTMCell` along the time axis. Arguments as for it and for `RNN`."""

    _passes_on_to = LSTMCell

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True, kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, use_cudnn: Any = "auto", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            units=units, activation=activation, recurrent_activation=recurrent_activation,
            use_bias=use_bias, kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint, bias_constraint=bias_constraint,
            dropout=dropout, recurrent_dropout=recurrent_dropout, seed=seed,
            return_sequences=return_sequences, return_state=return_state,
            go_backwards=go_backwards, stateful=stateful, unroll=unroll, use_cudnn=use_cudnn,
            **kwargs,
        )  # fmt: skip
