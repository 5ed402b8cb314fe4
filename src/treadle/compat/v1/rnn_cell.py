"""``td.compat.v1.nn.rnn_cell``: one step of recurrent networks."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, initializers, scopes
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin
from treadle.names import missing_in

LSTMStateTuple = namedtuple("LSTMStateTuple", ("c", "h"))

_concat, _split, _matmul, _add = map(
    graph_function, (td.concat, td.split, td.matmul, td.nn.bias_add)
)
_sigmoid, _tanh = graph_function(td.sigmoid), graph_function(td.tanh)
_uniform = graph_function(td.random.uniform)


class RNNCell:
    """``cell(inputs, state)``: the output and the next state.

    Its variables are made by `get_variable` in the scope of the first call, and used again later.

    Attributes:
        state_size, output_size: numbers, or nested tuples of them.
    """

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None,
                 reuse: Any = None, **kwargs: Any) -> None:  # fmt: skip
        self._name, self._dtype, self._reuse, self.trainable = name, dtype, reuse, trainable
        self._made: dict[str, Any] = {}

    state_size: Any
    output_size: Any

    def call(self, inputs: Any, state: Any) -> Any:
        """The step."""
        raise NotImplementedError

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        with scopes.variable_scope(scope or self._scope(), reuse=self._reuse):
            return self.call(inputs, state, *args, **kwargs)

    def _scope(self) -> str:
        kind = type(self).__name__.removesuffix("V1")
        words = "".join(f"_{c.lower()}" if c.isupper() and i and not kind[i - 1].isupper() else
                        c.lower() for i, c in enumerate(kind))  # fmt: skip
        return self._name or words.replace("rnncell", "rnn_cell").replace(
            "lstmcell", "lstm_cell"
        ).replace(
            "grucell", "gru_cell"
        )

    def add_variable(
        self, name: str, shape: Any, initializer: Any = None, dtype: Any = None
    ) -> Any:
        """A variable of the cell."""
        if name not in self._made:
            self._made[name] = scopes.get_variable(
                name, shape, dtype or self._dtype or td.float32, initializer,
                trainable=self.trainable,
            )  # fmt: skip
        return self._made[name]

    add_weight = add_variable

    @property
    def variables(self) -> list[Variable]:
        return list(self._made.values())

    weights = trainable_variables = trainable_weights = variables

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        return td.nest.map_structure(
            lambda size: graph_function(td.zeros)([batch_size, size], dtype), self.state_size
        )


def _size(x: Any) -> int:
    found = element(x)
    size = (x if found is None else found).shape[-1]
    return int(getattr(size, "value", size))


class BasicRNNCell(RNNCell):
    """``activation([inputs, state] @ kernel + bias)``."""

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None,
                 name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, reuse=reuse, **kwargs)
        self.state_size = self.output_size = self._units = num_units
        self._activation = activation or _tanh

    def call(self, inputs: Any, state: Any) -> Any:
        kernel = self.add_variable("kernel", [_size(inputs) + self._units, self._units])
        bias = self.add_variable("bias", [self._units], initializers.zeros_initializer())
        output = self._activation(_add(_matmul(_concat([inputs, state], 1), kernel), bias))
        return output, output


class GRUCell(RNNCell):
    """A gated recurrent unit (Cho et al., 2014)."""

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None,
                 kernel_initializer: Any = None, bias_initializer: Any = None,
                 name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, reuse=reuse, **kwargs)
        self.state_size = self.output_size = self._units = num_units
        self._activation = activation or _tanh
        self._kernel, self._bias = kernel_initializer, bias_initializer

    def call(self, inputs: Any, state: Any) -> Any:
        width, units = _size(inputs) + self._units, self._units
        ones, zeros = initializers.constant_initializer(1.0), initializers.zeros_initializer()
        gate_kernel = self.add_variable("gates/kernel", [width, 2 * units], self._kernel)
        gate_bias = self.add_variable("gates/bias", [2 * units], self._bias or ones)
        kernel = self.add_variable("candidate/kernel", [width, units], self._kernel)
        bias = self.add_variable("candidate/bias", [units], self._bias or zeros)
        gates = _sigmoid(_add(_matmul(_concat([inputs, state], 1), gate_kernel), gate_bias))
        reset, update = _split(gates, 2, 1)
        candidate = _add(_matmul(_concat([inputs, reset * state], 1), kernel), bias)
        new = update * state + (1.0 - update) * self._activation(candidate)
        return new, new


class LSTMCell(RNNCell):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997).

    Args:
        use_peepholes: whether gates see the cell, too.
        cell_clip, proj_clip: bounds of the cell and of the projected output.
        num_proj: the size that the output is projected to.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple`; else both side by side.
    """

    _default_forget = 1.0

    def __init__(self, num_units: int, use_peepholes: bool = False, cell_clip: Any = None,
                 initializer: Any = None, num_proj: int | None = None, proj_clip: Any = None,
                 num_unit_shards: Any = None, num_proj_shards: Any = None,
                 forget_bias: float = 1.0, state_is_tuple: bool = True, activation: Any = None,
                 reuse: Any = None, name: str | None = None, dtype: Any = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, reuse=reuse, **kwargs)
        self._units, self._peeps, self._clip, self._initializer = (
            num_units, use_peepholes, cell_clip, initializer,
        )  # fmt: skip
        self._proj, self._proj_clip, self._forget = num_proj, proj_clip, forget_bias
        self._is_tuple, self._activation = state_is_tuple, activation or _tanh
        self.output_size = num_proj or num_units
        both = LSTMStateTuple(num_units, self.output_size)
        self.state_size = both if state_is_tuple else num_units + self.output_size

    def call(self, inputs: Any, state: Any) -> Any:
        if self._is_tuple:
            c, h = state
        else:
            c, h = _split(state, [self._units, self.output_size], 1)
        units, zeros = self._units, initializers.zeros_initializer()
        kernel = self.add_variable(
            "kernel", [_size(inputs) + self.output_size, 4 * units], self._initializer
        )
        bias = self.add_variable("bias", [4 * units], zeros)
        i, j, f, o = _split(_add(_matmul(_concat([inputs, h], 1), kernel), bias), 4, 1)
        if self._peeps:
            w_f, w_i, w_o = (
                self.add_variable(f"w_{n}_diag", [units], self._initializer) for n in "fio"
            )
            f, i = f + w_f * c, i + w_i * c
        new_c = _sigmoid(f + self._forget) * c + _sigmoid(i) * self._activation(j)
        if self._clip is not None:
            new_c = graph_function(td.clip_by_value)(new_c, -self._clip, self._clip)
        if self._peeps:
            o = o + w_o * new_c
        new_h = _sigmoid(o) * self._activation(new_c)
        if self._proj is not None:
            projection = self.add_variable(
                "projection/kernel", [units, self._proj], self._initializer
            )
            new_h = _matmul(new_h, projection)
            if self._proj_clip is not None:
                new_h = graph_function(td.clip_by_value)(new_h, -self._proj_clip, self._proj_clip)
        both = LSTMStateTuple(new_c, new_h)
        return new_h, both if self._is_tuple else _concat(list(both), 1)


class BasicLSTMCell(LSTMCell):
    """`LSTMCell` without peepholes and projection."""

    def __init__(self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
                 activation: Any = None, reuse: Any = None, name: str | None = None,
                 dtype: Any = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(
            num_units, forget_bias=forget_bias, state_is_tuple=state_is_tuple,
            activation=activation, reuse=reuse, name=name, dtype=dtype, **kwargs,
        )  # fmt: skip


class MultiRNNCell(RNNCell):
    """Cells one behind the other.

    Args:
        state_is_tuple: whether the state is a tuple of theirs; else all side by side.

    Raises:
        ValueError: there is no cell, or one has a tuple of states where all are to be one tensor.
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError(
                f"Must specify at least one cell for MultiRNNCell.{at(user_origin())}"
            )
        self._cells, self._is_tuple = list(cells), state_is_tuple
        self._sizes = tuple(c.state_size for c in self._cells)
        if not state_is_tuple and any(td.nest.is_nested(size) for size in self._sizes):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. "
                f"State sizes are: {list(self._sizes)}{at(user_origin())}"
            )
        self.state_size = self._sizes if state_is_tuple else sum(self._sizes)
        self.output_size = self._cells[-1].output_size

    def call(self, inputs: Any, state: Any) -> Any:
        states = []
        given = state if self._is_tuple else _split(state, list(self._sizes), 1)
        for index, (cell, before) in enumerate(zip(self._cells, given, strict=True)):
            with scopes.variable_scope(f"cell_{index}"):
                inputs, new = cell(inputs, before)
            states.append(new)
        return inputs, tuple(states) if self._is_tuple else _concat(states, 1)


class _Wrapper(RNNCell):
    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        self._cell = cell
        self.state_size, self.output_size = cell.state_size, cell.output_size

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        return self.call(inputs, state, scope)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._cell(inputs, state, scope)

    @property
    def variables(self) -> list[Any]:
        return self._cell.variables

    weights = trainable_variables = trainable_weights = variables


class DropoutWrapper(_Wrapper):
    """A cell whose inputs, outputs and state are dropped at random.

    Args:
        input_keep_prob, output_keep_prob, state_keep_prob: the part that is kept.
        variational_recurrent: whether the same elements are dropped in all steps, and for all
            examples of a batch.
        input_size: of the inputs, of which some are dropped in all steps.
        dtype: of the numbers that say which elements these are.
        dropout_state_filter_visitor: says for a part of the state, with True, False or a structure
            of them, whether it is dropped. By default all is but the ``c`` of `LSTMStateTuple`.

    Raises:
        ValueError: `variational_recurrent` without `dtype`, or without the `input_size` that it
            needs.
    """

    def __init__(self, cell: RNNCell, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0,
                 state_keep_prob: Any = 1.0, variational_recurrent: bool = False,
                 input_size: Any = None, dtype: Any = None, seed: int | None = None,
                 dropout_state_filter_visitor: Any = None) -> None:  # fmt: skip
        super().__init__(cell)
        self._keep, self._seed = (input_keep_prob, output_keep_prob, state_keep_prob), seed
        self._chosen = dropout_state_filter_visitor or _all_but_c
        self._noise: tuple[Any, Any, Any] = (None, None, None)
        if variational_recurrent:
            self._noise = self._noise_of_all_steps(input_size, dtype)

    def _noise_of_all_steps(self, input_size: Any, dtype: Any) -> tuple[Any, Any, Any]:
        """Numbers from 0 to 1, which say for all steps what is kept: of inputs, outputs, state."""
        if dtype is None:
            raise ValueError(
                f"When variational_recurrent=True, dtype must be provided{at(user_origin())}"
            )

        def drawn(sizes: Any) -> Any:
            return td.nest.map_structure(
                lambda size: _uniform([1, *_axes(size)], dtype=dtype, seed=self._seed), sizes
            )

        into = None
        if not _is_one(self._keep[0]):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                    f"input_size must be provided{at(user_origin())}"
                )
            into = drawn(input_size)
        return into, drawn(self._cell.output_size), drawn(self._cell.state_size)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        (into, out, of_state), noise = self._keep, self._noise
        inputs = self._dropped(inputs, into, noise[0])
        output, new = self._cell(inputs, state, scope)
        if not _is_one(of_state):
            new = self._dropped_state(new, of_state, noise[2])
        return self._dropped(output, out, noise[1]), new

    def _dropped_state(self, state: Any, keep: Any, noise: Any, chosen: Any = None) -> Any:
        """The state, of which the parts are dropped that the filter says."""
        chosen = self._chosen(state) if chosen is None else chosen
        if chosen is False:
            return state
        if not td.nest.is_nested(state):
            return self._dropped(state, keep, noise)
        parts = [
            self._dropped_state(part, keep, one, said)
            for part, one, said in zip(
                state,
                [None] * len(state) if noise is None else noise,
                chosen if td.nest.is_nested(chosen) else [None] * len(state),
                strict=True,
            )
        ]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)

    def _dropped(self, x: Any, keep: Any, noise: Any) -> Any:
        if _is_one(keep):
            return x
        if noise is None:
            return td.nest.map_structure(lambda part: _drop(part, keep, self._seed), x)
        return td.nest.map_structure(lambda part, one: _masked(part, one, keep), x, noise)


def _all_but_c(state: Any) -> Any:
    """What of a state is dropped where nobody says it."""
    return LSTMStateTuple(c=False, h=True) if isinstance(state, LSTMStateTuple) else True


def _is_one(keep: Any) -> bool:
    return isinstance(keep, int | float) and keep >= 1.0


def _axes(size: Any) -> list[int]:
    shape = td.TensorShape(size if hasattr(size, "__iter__") else [size])
    return [int(n) for n in shape.as_list() if n is not None]


def _drop(x: Any, keep: Any, seed: Any) -> Any:
    rate = 1.0 - keep if isinstance(keep, int | float) else 1.0 - functions.cast(keep, td.float32)
    return graph_function(td.nn.dropout)(x, rate, None, seed)


def _kept(x: Any, noise: Any, keep: Any) -> Any:
    keep = td.cast(keep, x.dtype)
    return x / keep * td.floor(keep + td.cast(noise, x.dtype))


_masked = recorded(_kept, "dropout", "Mul")


class ResidualWrapper(_Wrapper):
    """A cell whose inputs are added to its outputs."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[..., Any] | None = None) -> None:
        super().__init__(cell)
        self._residual = residual_fn or (lambda i, o: i + o)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        output, new = self._cell(inputs, state, scope)
        return self._residual(inputs, output), new


class DeviceWrapper(_Wrapper):
    """A cell that runs on a device."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        with functions.device(self._device):
            return self._cell(inputs, state, scope)

in_graphs(_kept)

__getattr__ = missing_in(__name__)
