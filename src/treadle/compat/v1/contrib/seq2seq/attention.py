"""Attention: how much each step of a memory counts for a query."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, initializers, layers, nn, scopes
from treadle.compat.v1.contrib.seq2seq.decoding import TensorArray, is_array
from treadle.compat.v1.contrib.seq2seq.helpers import concat, shape_of
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.rnn_cell import RNNCell
from treadle.compat.v1.values import the_tensor
from treadle.core.origin import at, user_origin


def _width(value: Any) -> int:
    shape: Any = the_tensor(value).shape
    return int(shape.as_list()[-1])


def _masked(memory: Any, lengths: Any) -> Any:
    """A memory with zeros behind the ends of its sequences."""
    mask = graph_function(td.sequence_mask)(lengths, shape_of(memory)[1], memory.dtype)
    return memory * functions.expand_dims(mask, -1)


class AttentionMechanism:
    """``mechanism(query, state)``: the weights of the steps of a memory, and the next state.

    Attributes:
        values, keys: the memory, and what queries are compared with.
        alignments_size: how many steps the memory has.
        state_size: of the state of one sequence.
    """

    keys: Any
    values: Any
    state_size: Any
    alignments_size: Any

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """The weights before the first query."""
        return graph_function(td.zeros)([batch_size, self.alignments_size], dtype)

    initial_state = initial_alignments

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        raise NotImplementedError


class _Scored(AttentionMechanism):
    """Weights that are probabilities of scores of keys.

    Args:
        memory: [batch, time, ...].
        memory_sequence_length: how long its sequences are; steps behind have no weight.
        probability_fn: makes weights of scores; softmax where omitted.
        score_mask_value: the score of steps behind the ends.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 probability_fn: Callable[[Any], Any] | None = None, score_mask_value: Any = None,
                 name: str = "") -> None:  # fmt: skip
        self._name, self._probability = name, probability_fn or nn.softmax
        self._scope: Any = None  # of the first query
        self._made: dict[str, Any] = {}
        self._lengths, self._low = memory_sequence_length, score_mask_value
        values = functions.convert_to_tensor(memory)
        if memory_sequence_length is not None:
            values = _masked(values, memory_sequence_length)
        self.values = values
        self.memory_layer = layers.Dense(num_units, name="memory_layer", use_bias=False)
        self.keys = self.memory_layer(values)
        known = the_tensor(values).shape[1].value
        self.alignments_size = self.state_size = shape_of(values)[1] if known is None else known
        self.batch_size = shape_of(values)[0]

    def _score(self, query: Any) -> Any:
        raise NotImplementedError

    def _variable(self, name: str, shape: list[int], start: Any = None) -> Any:
        """A variable, which the first query makes."""
        if name not in self._made:
            self._made[name] = scopes.get_variable(name, shape, initializer=start)
        return self._made[name]

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with scopes.variable_scope(self._scope, self._name) as self._scope:
            score = self._score(query)
        if self._lengths is not None:
            there = graph_function(td.sequence_mask)(self._lengths, shape_of(score)[1])
            low = float("-inf") if self._low is None else self._low
            score = functions.where(there, score, functions.zeros_like(score) + low)
        weights = self._probability(score)
        return weights, weights


class LuongAttention(_Scored):
    """The products of query and keys (Luong et al., 2015).

    Args:
        scale: whether they are multiplied by a variable.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 scale: bool = False, probability_fn: Any = None, score_mask_value: Any = None,
                 dtype: Any = None, custom_key_value_fn: Any = None,
                 name: str = "LuongAttention") -> None:  # fmt: skip
        super().__init__(
            num_units, memory, memory_sequence_length, probability_fn, score_mask_value,
            "luong_attention",
        )  # fmt: skip
        self._scale, self._units = scale, num_units
        if custom_key_value_fn is not None:
            self.keys, self.values = custom_key_value_fn(self.keys, self.values)

    def _score(self, query: Any) -> Any:
        if _width(query) != self._units:
            raise ValueError(
                f"Incompatible or unknown inner dimensions between query and keys. Query has units:"
                f" {_width(query)}. Keys have units: {self._units}. Perhaps you need to set "
                f"num_units to the keys' dimension ({_width(query)})?{at(user_origin())}"
            )
        rows = functions.matmul(functions.expand_dims(query, 1), self.keys, transpose_b=True)
        score = functions.squeeze(rows, [1])
        if self._scale:
            score = score * self._variable("attention_g", [], initializers.ones_initializer())
        return score


class BahdanauAttention(_Scored):
    """A layer of the sums of query and keys (Bahdanau et al., 2014).

    Args:
        normalize: whether the weights of the sums have the length of a variable.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 normalize: bool = False, probability_fn: Any = None, score_mask_value: Any = None,
                 dtype: Any = None, custom_key_value_fn: Any = None,
                 name: str = "BahdanauAttention") -> None:  # fmt: skip
        super().__init__(
            num_units, memory, memory_sequence_length, probability_fn, score_mask_value,
            "bahdanau_attention",
        )  # fmt: skip
        self._normalize, self._units = normalize, num_units
        self.query_layer = layers.Dense(num_units, name="query_layer", use_bias=False)
        if custom_key_value_fn is not None:
            self.keys, self.values = custom_key_value_fn(self.keys, self.values)

    def _score(self, query: Any) -> Any:
        asked = functions.expand_dims(self.query_layer(query), 1)
        v = self._variable("attention_v", [self._units])
        tanh, total = graph_function(td.tanh), functions.reduce_sum
        if not self._normalize:
            return total(v * tanh(self.keys + asked), [2])
        length = initializers.constant_initializer((1.0 / self._units) ** 0.5)
        g = self._variable("attention_g", [], length)
        b = self._variable("attention_b", [self._units], initializers.zeros_initializer())
        normed = g * v * graph_function(td.math.rsqrt)(total(graph_function(td.square)(v)))
        return total(normed * tanh(self.keys + asked + b), [2])


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One for the largest of each row, and zero for the others."""
    return graph_function(td.one_hot)(
        functions.argmax(logits, -1), _width(logits), dtype=logits.dtype
    )


class AttentionWrapperState(
    namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an `AttentionWrapper`."""

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A state with other parts, as ``cell_state=``.

        Raises:
            ValueError: a part has another static shape.
        """
        new = self._replace(**kwargs)
        pairs = zip(td.nest.flatten(self), td.nest.flatten(new), strict=True)
        for old, other in pairs:
            if not is_array(old) and not old.shape.is_compatible_with(other.shape):
                raise ValueError(
                    f"The shape of the AttentionWrapperState is expected to be {old.shape}, not "
                    f"{other.shape}{at(user_origin())}"
                )
        return new


class AttentionWrapper(RNNCell):
    """A cell that also gets, and gives, what attention takes from memories.

    Args:
        attention_mechanism: an `AttentionMechanism`, or several of them.
        attention_layer_size: the units of a layer of the cell's output and what was taken; that
            itself where omitted. One for each mechanism where there are several.
        alignment_history: whether the state has the weights of all steps.
        cell_input_fn: the cell's inputs of inputs and attention; both side by side where omitted.
        output_attention: whether the outputs are the attention, and not the cell's outputs.
        initial_cell_state: of `zero_state`.
        attention_layer: a layer, or several, instead of `attention_layer_size`.
    """

    def __init__(
        self, cell: Any, attention_mechanism: Any, attention_layer_size: Any = None,
        alignment_history: bool = False, cell_input_fn: Callable[..., Any] | None = None,
        output_attention: bool = True, initial_cell_state: Any = None, name: str | None = None,
        attention_layer: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must contain only instances of AttentionMechanism, saw "
                    f"type: {type(mechanism).__name__}{at(user_origin())}"
                )
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError(
                "Only one of attention_layer_size and attention_layer should be set"
                f"{at(user_origin())}"
            )
        self._cell, self._keeps, self._outputs = cell, alignment_history, output_attention
        self._inputs = cell_input_fn or (lambda inputs, attention: concat([inputs, attention], -1))
        self._initial = initial_cell_state
        if attention_layer is not None:
            self._layers: Any = self._each(attention_layer, "attention_layer")
        elif attention_layer_size is not None:
            sizes = self._each(attention_layer_size, "attention_layer_size")
            self._layers = [
                layers.Dense(n, name="attention_layer", use_bias=False) for n in sizes
            ]
        else:
            self._layers = None
        self._width = (
            sum(_width(m.values) for m in self._mechanisms) if self._layers is None
            else sum(layer.units for layer in self._layers)
        )  # fmt: skip

    def _each(self, given: Any, name: str) -> list[Any]:
        found = list(given) if isinstance(given, list | tuple) else [given]
        if len(found) != len(self._mechanisms):
            raise ValueError(
                f"If provided, {name} must contain exactly one for each attention_mechanism, saw: "
                f"{len(found)} vs {len(self._mechanisms)}{at(user_origin())}"
            )
        return found

    def _given(self, parts: Sequence[Any]) -> Any:
        return tuple(parts) if self._is_multi else parts[0]

    @property
    def output_size(self) -> Any:
        return self._width if self._outputs else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = self._given([m.alignments_size for m in self._mechanisms])
        return AttentionWrapperState(
            self._cell.state_size, self._width, td.TensorShape([]), sizes,
            self._given([m.alignments_size if self._keeps else () for m in self._mechanisms]),
            self._given([m.state_size for m in self._mechanisms]),
        )  # fmt: skip

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The first state."""
        state = self._initial
        if state is None:
            state = self._cell.zero_state(batch_size, dtype)
        history = [
            TensorArray(dtype, 0, dynamic_size=True) if self._keeps else ()
            for _ in self._mechanisms
        ]
        return AttentionWrapperState(
            state, graph_function(td.zeros)([batch_size, self._width], dtype),
            functions.convert_to_tensor(0),
            self._given([m.initial_alignments(batch_size, dtype) for m in self._mechanisms]),
            self._given(history),
            self._given([m.initial_state(batch_size, dtype) for m in self._mechanisms]),
        )  # fmt: skip

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. Received type "
                f"{type(state)} instead.{at(user_origin())}"
            )
        output, cell_state = self._cell(self._inputs(inputs, state.attention), state.cell_state)
        before, histories = state.attention_state, state.alignment_history
        if not self._is_multi:
            before, histories = (before,), (histories,)
        found: list[Any] = []
        for index, mechanism in enumerate(self._mechanisms):
            weights, following = mechanism(output, before[index])
            context = functions.matmul(functions.expand_dims(weights, 1), mechanism.values)
            taken = functions.squeeze(context, [1])
            if self._layers is not None:
                taken = self._layers[index](concat([output, taken], 1))
            history = histories[index]
            if self._keeps:
                history = history.write(state.time, weights)
            found.append((taken, weights, history, following))
        takens, weights_of, kept, states = (list(x) for x in zip(*found, strict=True))
        attention = takens[0] if len(takens) == 1 else concat(takens, 1)
        new = AttentionWrapperState(
            cell_state, attention, state.time + 1, self._given(weights_of), self._given(kept),
            self._given(states),
        )  # fmt: skip
        return attention if self._outputs else output, new
