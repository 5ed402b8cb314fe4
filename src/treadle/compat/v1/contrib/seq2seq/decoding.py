"""Decoders: a step that gives outputs and the next inputs, and the loop over steps."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, scopes
from treadle.compat.v1.contrib.seq2seq.helpers import Helper, logical_not
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.rnn import by_time
from treadle.compat.v1.tensor_array import TensorArray as _TensorArray
from treadle.compat.v1.values import the_tensor
from treadle.core.origin import at, user_origin

TensorArray: Any = _TensorArray


class Decoder:
    """What `dynamic_decode` calls.

    Attributes:
        batch_size: how many sequences there are.
        output_size, output_dtype: of the outputs of a step for one sequence, as structures.
        tracks_own_finished: whether `step` says of all sequences whether they have ended, as where
            it changes their order.
    """

    batch_size: Any
    output_size: Any
    output_dtype: Any
    tracks_own_finished = False

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences have ended before they begin, the first inputs and the first state."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any,
             name: str | None = None) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        """The outputs, the next state, the next inputs, and which sequences end."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The outputs of all steps and the last state as they are given."""
        return outputs, final_state


def _map(function: Any, *structures: Any) -> Any:
    return td.nest.map_structure(function, *structures)


def is_array(value: Any) -> bool:
    """Whether a part of a state is an array of tensors."""
    return isinstance(value, _TensorArray | td.TensorArray)


def _kept(finished: Any, new: Any, old: Any) -> Any:
    """A part of a state, as it was for sequences that have ended."""
    if is_array(new) or the_tensor(new).shape.rank == 0:
        return new
    return functions.where(finished, old, new)


def dynamic_decode(
    decoder: Decoder, output_time_major: bool = False, impute_finished: bool = False,
    maximum_iterations: Any = None, parallel_iterations: int = 32, swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Call the steps of a decoder until all sequences have ended.

    Args:
        output_time_major: whether outputs are [time, batch, ...], and not [batch, time, ...].
        impute_finished: whether outputs of sequences that have ended are zeros, and their states
            stay as they are.
        maximum_iterations: how many steps there are at most.

    Returns:
        The outputs of all steps, the last state, and the lengths of the sequences.

    Raises:
        TypeError: it is no decoder. ValueError: `maximum_iterations` is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(
            f"Expected decoder to be type Decoder, but saw: {type(decoder)}{at(user_origin())}"
        )
    with scopes.variable_scope(scope, "decoder"):
        limit: Any = None
        if maximum_iterations is not None:
            limit = functions.cast(functions.convert_to_tensor(maximum_iterations), td.int32)
            if the_tensor(limit).shape.rank not in (None, 0):
                raise ValueError(f"maximum_iterations must be a scalar{at(user_origin())}")
        finished, inputs, state = decoder.initialize()
        if limit is not None:
            finished = graph_function(td.logical_or)(finished, limit <= 0)
        lengths = graph_function(td.zeros_like)(finished, td.int32)
        arrays = _map(
            lambda dtype: TensorArray(dtype, 0, dynamic_size=True), decoder.output_dtype
        )

        def goes_on(t: Any, arrays: Any, state: Any, inputs: Any, finished: Any, _: Any) -> Any:
            some = logical_not(functions.reduce_all(finished))
            return some if limit is None else graph_function(td.logical_and)(some, t < limit)

        def body(
            t: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
        ) -> Any:
            outputs, new, following, ended = decoder.step(t, inputs, state)
            if not decoder.tracks_own_finished:
                ended = graph_function(td.logical_or)(ended, finished)
            lengths = functions.where(finished, lengths, functions.zeros_like(lengths) + t + 1)
            if impute_finished:
                outputs = _map(
                    lambda x: functions.where(finished, functions.zeros_like(x), x), outputs
                )
                new = _map(lambda a, b: _kept(finished, a, b), new, state)
            arrays = _map(lambda a, x: a.write(t, x), arrays, outputs)
            return t + 1, arrays, new, following, ended, lengths

        first = (functions.convert_to_tensor(0), arrays, state, inputs, finished, lengths)
        _, arrays, state, _, _, lengths = functions.while_loop(goes_on, body, first)
        outputs = _map(lambda a: a.stack(), arrays)
        outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = _map(by_time, outputs)
        return outputs, state, lengths


class BasicDecoderOutput(namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """What a `BasicDecoder` gives: the outputs of the cell, or of its layer, and the ids."""

    __slots__ = ()


class BasicDecoder(Decoder):
    """A cell whose outputs a helper makes ids and the next inputs of.

    Args:
        cell: an `RNNCell`.
        helper: a `Helper`.
        initial_state: the first state of the cell.
        output_layer: a layer that is called with the cell's outputs.
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}{at(user_origin())}")
        self._cell, self._helper, self._initial = cell, helper, initial_state
        self._layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        units = self._cell.output_size if self._layer is None else self._layer.units
        return BasicDecoderOutput(units, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        dtype = next(
            the_tensor(x).dtype
            for x in td.nest.flatten(self._initial)
            if not is_array(x) and the_tensor(x).dtype.is_floating
        )
        whole = _map(lambda _: dtype, self._cell.output_size)
        return BasicDecoderOutput(whole, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        return (*self._helper.initialize(), self._initial)

    def step(self, time: Any, inputs: Any, state: Any,
             name: str | None = None) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        outputs, state = self._cell(inputs, state)
        if self._layer is not None:
            outputs = self._layer(outputs)
        ids = self._helper.sample(time=time, outputs=outputs, state=state)
        finished, following, state = self._helper.next_inputs(
            time=time, outputs=outputs, state=state, sample_ids=ids
        )
        return BasicDecoderOutput(outputs, ids), state, following, finished
