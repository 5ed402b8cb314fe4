"""Cells: one step of a recurrent layer."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import treadle as td
from treadle.keras import activations, random
from treadle.keras.layers.base import Layer


def sizes_of(cell: Any) -> list[Any]:
    """The sizes of a cell's states, as a list."""
    size = cell.state_size
    return list(size) if isinstance(size, list | tuple) else [size]


class GatedCell(Layer):
    """What the cells of this package share: kernels of the input and of the state, a bias,
    activations and dropout.

    Args:
        activation: of the candidate.
        use_bias: whether to add a bias.
        kernel_initializer, recurrent_initializer, bias_initializer, and the same for regularizer
            and constraint: of the input's kernel, the state's kernel and the bias.
        dropout, recurrent_dropout: fractions of the inputs and of the state to drop in training;
            one sequence drops the same ones at every step.
        seed: makes the dropout repeat.
    """

    kernel: Any
    recurrent_kernel: Any
    bias: Any
    bias_initializer: Any
    # Whether the seed of dropout is drawn before those of the initializers, as Keras does it.
    _seeds_first: ClassVar[bool] = False
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    _config_names: ClassVar[tuple[str, ...]] = (
        "activation", "use_bias", "dropout", "recurrent_dropout", "seed",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {
        "kernel": "glorot_uniform", "recurrent": "orthogonal", "bias": "zeros",
    }  # fmt: skip

    def __init__(
        self, activation: Any = "tanh", use_bias: bool = True, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        first = random.SeedGenerator(seed) if self._seeds_first else None
        super().__init__(**kwargs)
        self.activation, self.use_bias = activations.get(activation), use_bias
        self.dropout = min(1.0, max(0.0, dropout))
        self.recurrent_dropout, self.seed = min(1.0, max(0.0, recurrent_dropout)), seed
        self.seed_generator = first or random.SeedGenerator(seed)
        self._kept: dict[str, td.Tensor] | None = None  # what a sequence drops, by kind

    def start_sequence(self) -> None:
        """From here on the steps drop the same elements, until `end_sequence`."""
        self._kept = {}

    def end_sequence(self) -> None:
        """Forget what the sequence dropped."""
        self._kept = None

    @property
    def gives_state(self) -> bool:
        """Whether the output is the first state; a program's subclass may give another one."""
        return type(self).call.__module__.startswith("treadle.")

    def drops(self, training: Any) -> bool:
        """Whether a sequence drops elements."""
        return bool(training) and bool(self.dropout or self.recurrent_dropout)

    def _dropped(self, x: td.Tensor, kind: str, training: Any, part: int = 0) -> td.Tensor:
        """x without what the sequence drops of it, by the fraction named `kind`."""
        rate = getattr(self, kind)
        if not training or not rate:
            return x
        kept = {} if self._kept is None else self._kept
        key = f"{kind} {part}"
        if key not in kept:  # in the first step, which is made before a loop
            kept[key] = random.dropout(td.ones_like(x), rate, seed=self.seed_generator)
        return x * kept[key]

    def _product(self, x: td.Tensor, kernel: Any, kind: str, training: Any) -> td.Tensor:
        """x without what is dropped of it, times the kernel of all gates. Where the state is
        dropped, each gate drops other elements of both."""
        if not training or not getattr(self, kind) or not self.recurrent_dropout:
            return td.matmul(self._dropped(x, kind, training), kernel)
        pairs = self._gate_products(x, kernel, kind, training)
        return td.concat([td.matmul(*pair) for pair in pairs], -1)

    def _gate_products(
        self, x: td.Tensor, kernel: Any, kind: str, training: Any
    ) -> list[tuple[td.Tensor, td.Tensor]]:
        """For each gate what is not dropped of x, and the kernel."""
        kernels = td.split(td.convert_to_tensor(kernel), self.gates, axis=-1)
        kept = [self._dropped(x, kind, training, part) for part in range(self.gates)]
        return list(zip(kept, kernels, strict=True))

    def _forget_first(self, units: int) -> Any:
        """The initializer of the bias of an LSTM's gates that starts the forget gate's at 1."""
        given = self.bias_initializer
        return lambda shape, dtype: td.concat(
            [given((units,), dtype), td.ones((units,), dtype), given((2 * units,), dtype)], 0
        )


class _Cell(GatedCell):
    """A cell of vectors.

    Args:
        units: the size of the state.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("units",)

    def __init__(
        self, units: int, activation: Any = "tanh", use_bias: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(activation, use_bias, **kwargs)
        if units < 1:
            raise ValueError(f"{type(self).__name__}: units must be a positive int, got {units!r}")
        self.units = int(units)

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
        self.kernel = self._own_weight("kernel", (int(input_shape[-1]), width))
        self.recurrent_kernel = self._own_weight(
            "recurrent", (self.units, width), name="recurrent_kernel"
        )
        self.bias = self._build_bias() if self.use_bias else None

    def _build_bias(self) -> td.Variable:
        return self._own_weight("bias", (self.units * self.gates,))

    def get_initial_state(self, batch_size: Any = None, dtype: Any = None) -> list[td.Tensor]:
        """Zeros, one tensor a state."""
        kind = dtype or self.dtype
        return [td.zeros(td.stack([batch_size, self.units]), kind) for _ in range(self.states)]


class SimpleRNNCell(_Cell):
    """``activation(x @ kernel + h @ recurrent_kernel + bias)``."""

    _seeds_first = True

    def __init__(
        self, units: int, activation: Any = "tanh", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None, bias_regularizer: Any = None,
        kernel_constraint: Any = None, recurrent_constraint: Any = None,
        bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            units, activation, use_bias,
            kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            seed=seed, **kwargs,
        )  # fmt: skip

    def call(self, sequence: Any, states: Any, training: Any = False) -> Any:
        before = states[0] if isinstance(states, list | tuple) else states
        outputs = td.matmul(self._dropped(sequence, "dropout", training), self.kernel)
        before = self._dropped(before, "recurrent_dropout", training)
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
    _config_names: ClassVar[tuple[str, ...]] = ("recurrent_activation", "reset_after")

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None, bias_regularizer: Any = None,
        kernel_constraint: Any = None, recurrent_constraint: Any = None,
        bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0,
        reset_after: bool = True, seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.pop("implementation", None)  # one of several equal ways to compute it
        super().__init__(
            units, activation, use_bias,
            kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            seed=seed, **kwargs,
        )  # fmt: skip
        self.recurrent_activation = activations.get(recurrent_activation)
        self.reset_after = reset_after

    def _build_bias(self) -> td.Variable:
        size = 3 * self.units
        return self._own_weight("bias", (2, size) if self.reset_after else (size,))

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        given = states[0] if isinstance(states, list | tuple) else states
        x = self._product(inputs, self.kernel, "dropout", training)
        bias = None
        if self.bias is not None:
            bias = self.bias.read_value()
            x = x + (bias[0] if self.reset_after else bias)
        update, reset, candidate = td.split(x, 3, axis=-1)
        recurrent = self.recurrent_kernel.read_value()
        if self.reset_after:
            inner = self._product(given, recurrent, "recurrent_dropout", training)
            if bias is not None:
                inner = inner + bias[1]
            of_update, of_reset, of_candidate = td.split(inner, 3, axis=-1)
            reset = self.recurrent_activation(reset + of_reset)
            candidate = candidate + reset * of_candidate
        else:
            of_states = self._gate_products(given, recurrent, "recurrent_dropout", training)
            of_update, of_reset = (td.matmul(*pair) for pair in of_states[:2])
            reset = self.recurrent_activation(reset + of_reset)
            before, kernel = of_states[2]
            candidate = candidate + td.matmul(reset * before, kernel)
        update = self.recurrent_activation(update + of_update)
        state = update * given + (1.0 - update) * self.activation(candidate)
        return state, [state] if isinstance(states, list | tuple) else state


class LSTMCell(_Cell):
    """A long short-term memory: the states are the output and the carry.

    Args:
        unit_forget_bias: start the forget gate's bias at 1.
    """

    gates = 4
    states = 2
    _config_names: ClassVar[tuple[str, ...]] = ("recurrent_activation", "unit_forget_bias")

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.pop("implementation", None)  # one of several equal ways to compute it
        super().__init__(
            units, activation, use_bias,
            kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            seed=seed, **kwargs,
        )  # fmt: skip
        self.recurrent_activation = activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    def _build_bias(self) -> td.Variable:
        initial = self._forget_first(self.units) if self.unit_forget_bias else self.bias_initializer
        return self._own_weight("bias", (4 * self.units,), initializer=initial)

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        before, carry = states
        z = self._product(inputs, self.kernel, "dropout", training)
        z = z + self._product(before, self.recurrent_kernel, "recurrent_dropout", training)
        if self.bias is not None:
            z = z + self.bias
        enter, forget, candidate, leave = td.split(z, 4, axis=-1)
        gate = self.recurrent_activation
        carry = gate(forget) * carry + gate(enter) * self.activation(candidate)
        outputs = gate(leave) * self.activation(carry)
        return outputs, [outputs, carry]


class StackedRNNCells(Layer):
    """Cells one above the other: each takes what the one before gives.

    Args:
        cells: a list of cells; the states are a list of those of each.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("cells",)
    _takes_objects: ClassVar[tuple[str, ...]] = ("cells",)

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
                raise ValueError(f"StackedRNNCells: a cell has call and state_size, got {cell!r}")
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the cells' states."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """The size of what the last cell gives."""
        return _output_size(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], _output_size(cell))

    def get_initial_state(self, batch_size: Any = None, dtype: Any = None) -> list[Any]:
        """The first states of the cells."""
        return [first_state(cell, batch_size, dtype or self.dtype) for cell in self.cells]

    def start_sequence(self) -> None:
        """See the cells."""
        for cell in self.cells:
            getattr(cell, "start_sequence", _nothing)()

    def end_sequence(self) -> None:
        """See the cells."""
        for cell in self.cells:
            getattr(cell, "end_sequence", _nothing)()

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        after = []
        for cell, state in zip(self.cells, states, strict=True):
            several = isinstance(state, list | tuple)
            given = {"training": training} if isinstance(cell, Layer) else {}
            inputs, new = cell(inputs, list(state) if several else [state], **given)
            new = list(new) if isinstance(new, list | tuple) else [new]
            after.append(new if several else new[0])
        return inputs, after


def _nothing() -> None:
    pass


def _output_size(cell: Any) -> Any:
    size = getattr(cell, "output_size", None)
    return sizes_of(cell)[0] if size is None else size


def first_state(cell: Any, batch_size: Any, dtype: Any) -> Any:
    """What a cell's `get_initial_state` gives, or else zeros: in the structure of `state_size`."""
    own = getattr(cell, "get_initial_state", None)
    if own is None:
        return td.nest.map_structure(
            lambda size: td.zeros(td.stack([batch_size, size]), dtype), cell.state_size
        )
    takes_dtype = "dtype" in inspect.signature(own).parameters
    made = own(batch_size=batch_size, **({"dtype": dtype} if takes_dtype else {}))
    alone = isinstance(made, list | tuple) and not isinstance(cell.state_size, list | tuple)
    return made[0] if alone else made
