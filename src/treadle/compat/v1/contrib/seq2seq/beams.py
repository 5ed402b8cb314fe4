"""The search for the best sequences, with several of them at each step."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.contrib.seq2seq.decoding import Decoder, is_array
from treadle.compat.v1.contrib.seq2seq.helpers import embedded_by, shape_of, size
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.values import element, the_tensor
from treadle.core.origin import at, user_origin


class BeamSearchDecoderState(
    namedtuple("BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths"))
):
    """The state of a `BeamSearchDecoder`."""

    __slots__ = ()


class BeamSearchDecoderOutput(
    namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
):
    """What a step gives for each beam: its score, its id, and the beam that it goes on from."""

    __slots__ = ()


class FinalBeamSearchDecoderOutput(
    namedtuple(
        "FinalBeamSearchDecoderOutput", ("predicted_ids", "beam_search_decoder_output")
    )
):
    """The sequences, the best first, and what the steps gave."""

    __slots__ = ()


def _repeated(x: Any, count: Any) -> Any:
    return td.repeat(x, count, axis=0)


_repeat = recorded(_repeated, "tile_batch", "Reshape")


def tile_batch(t: Any, multiplier: Any, name: str | None = None) -> Any:
    """Tensors with each example several times behind one another, as beams are."""
    return td.nest.map_structure(lambda x: _repeat(x, multiplier), t)


def _tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any) -> Any:
    ids, parents = td.cast(step_ids, td.int32), td.cast(parent_ids, td.int32)
    time, batch, width = td.unstack(td.shape(ids))
    end = td.cast(end_token, td.int32)
    lengths = td.cast(max_sequence_lengths, td.int32)[:, None]
    own = td.tile(td.range(width)[None], [batch, 1])

    def back(t: Any, beam: Any, found: Any) -> Any:
        is_in = t < lengths
        chosen = td.gather(td.gather(ids, t), beam, batch_dims=1)
        before = td.gather(td.gather(parents, t), beam, batch_dims=1)
        chosen = td.where(is_in, chosen, end)
        return t - 1, td.where(is_in, before, beam), found.write(t, chosen)

    found = td.TensorArray(td.int32, time, element_shape=own.shape)
    _, _, found = td.while_loop(lambda t, *_: t >= 0, back, (time - 1, own, found))
    whole = found.stack()
    ended = td.cumsum(td.cast(whole == end, td.int32), 0, exclusive=True) > 0
    return td.where(ended, end, whole)


# The sequences of beams, of the ids and the parents [time, batch, beam] of all steps.
gather_tree = recorded(_tree, "GatherTree", "GatherTree")


def _of_beams(x: Any, beams: Any) -> Any:
    """The parts of other beams: of [batch, beam, ...]."""
    return td.gather(x, beams, batch_dims=1)


_gather = recorded(_of_beams, "gather", "GatherV2")


def _sorted_history(history: Any, parents: Any, lengths: Any, width: int) -> Any:
    """The steps [time, batch * beam, ...] of the sequences that beams have in the end."""
    shape = td.shape(history)
    time, batch = shape[0], shape[1] // width
    split = td.reshape(history, td.concat([[time, batch, width], shape[2:]], 0))
    own = td.tile(td.range(width)[None, None], [time, batch, 1])
    chosen = _tree(own, parents, lengths, width + 1)
    # Behind the ends stands the number width + 1: there each beam keeps its own step.
    chosen = td.where(chosen > width - 1, own, chosen)
    return td.reshape(td.gather(split, chosen, batch_dims=2), shape)


_sort = recorded(_sorted_history, "sorted_array", "Reshape")


def _searched(
    logits: Any, log_probs: Any, finished: Any, lengths: Any, end: Any, penalty: Any
) -> tuple[Any, ...]:
    """A step: the scores, ids and parents of the new beams, and their sums, ends and lengths."""
    end, width = td.cast(end, td.int32), int(log_probs.shape[1])
    shares = td.nn.log_softmax(logits)
    words = int(shares.shape[2])
    only_end = td.where(td.range(words) == end, td.cast(0.0, shares.dtype), shares.dtype.min)
    shares = td.where(finished[:, :, None], only_end, shares)
    totals = log_probs[:, :, None] + shares
    grows = ~finished[:, :, None] & (td.range(words) != end)
    longer = lengths[:, :, None] + td.cast(grows, td.int64)
    scores = totals
    if penalty is not None:
        scores = totals / (((5.0 + td.cast(longer, td.float32)) / 6.0) ** penalty)
    best, places = td.math.top_k(td.reshape(scores, [-1, width * words]), width)
    ids, parents = places % words, places // words
    sums = td.gather(td.reshape(totals, [-1, width * words]), places, batch_dims=1)
    had_ended = td.gather(finished, parents, batch_dims=1)
    found = td.gather(lengths, parents, batch_dims=1) + td.cast(~had_ended, td.int64)
    return best, ids, parents, sums, had_ended | (ids == end), found


_search = recorded(_searched, "beam_search_step", "TopKV2")


class BeamSearchDecoder(Decoder):
    """Keeps the best `beam_width` beginnings of sequences at each step.

    Args:
        cell: an `RNNCell`, whose state is `initial_state`, with each example `beam_width` times
            (`tile_batch`).
        embedding: a function of ids, or a table of their vectors.
        start_tokens: the first ids, one for each example.
        end_token: the id that ends a sequence.
        output_layer: a layer that makes logits of the cell's outputs.
        length_penalty_weight: scores are divided by ``((5 + length) / 6) ** weight``.
        reorder_tensor_arrays: whether arrays of tensors in the state, as an alignment history, are
            put in the order of the sequences in the end; they are tensors then.

    Raises:
        NotImplementedError: `coverage_penalty_weight` is not 0.
    """

    tracks_own_finished = True

    def __init__(self, cell: Any, embedding: Any, start_tokens: Any, end_token: Any,
                 initial_state: Any, beam_width: int, output_layer: Any = None,
                 length_penalty_weight: float = 0.0, coverage_penalty_weight: float = 0.0,
                 reorder_tensor_arrays: bool = True) -> None:  # fmt: skip
        if coverage_penalty_weight:
            raise NotImplementedError(
                "coverage_penalty_weight is not provided: use length_penalty_weight"
                f"{at(user_origin())}"
            )
        if not isinstance(beam_width, int):
            raise TypeError(f"beam_width is a number of Python{at(user_origin())}")
        self._cell, self._layer, self.beam_width = cell, output_layer, beam_width
        self._embed, self._reorders = embedded_by(embedding), reorder_tensor_arrays
        start = functions.cast(functions.convert_to_tensor(start_tokens), td.int32)
        if the_tensor(start).shape.rank not in (None, 1):
            raise ValueError(f"start_tokens must be a vector{at(user_origin())}")
        self._end = functions.cast(functions.convert_to_tensor(end_token), td.int32)
        if the_tensor(self._end).shape.rank not in (None, 0):
            raise ValueError(f"end_token must be a scalar{at(user_origin())}")
        self._count = size(start)
        tiled = graph_function(td.tile)(functions.expand_dims(start, 1), [1, beam_width])
        self._start = self._embed(tiled)
        self._penalty = length_penalty_weight if _may_count(length_penalty_weight) else None
        self._initial = td.nest.map_structure(self._split, initial_state)

    @property
    def batch_size(self) -> Any:
        return self._count

    @property
    def output_size(self) -> Any:
        size = td.TensorShape([self.beam_width])
        return BeamSearchDecoderOutput(size, size, size)

    @property
    def output_dtype(self) -> Any:
        return BeamSearchDecoderOutput(td.float32, td.int32, td.int32)

    def _split(self, x: Any) -> Any:
        """A part of a state as [batch, beam, ...]."""
        if is_array(x) or the_tensor(x).shape.rank == 0:
            return x
        rest = the_tensor(x).shape.as_list()[1:]
        return graph_function(td.reshape)(x, [self._count, self.beam_width, *_sizes(x, rest, 1)])

    def _merged(self, x: Any) -> Any:
        """A part of a state as [batch * beam, ...]."""
        if is_array(x) or the_tensor(x).shape.rank == 0:
            return x
        rest = the_tensor(x).shape.as_list()[2:]
        return graph_function(td.reshape)(x, [self._count * self.beam_width, *_sizes(x, rest, 2)])

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        sizes = [self._count, self.beam_width]
        finished = graph_function(td.zeros)(sizes, td.bool)
        # All beams are the same at first: only the first one counts.
        first = graph_function(td.one_hot)(
            graph_function(td.zeros)([self._count], td.int32), self.beam_width, 0.0, float("-inf")
        )
        lengths = graph_function(td.zeros)(sizes, td.int64)
        state = BeamSearchDecoderState(self._initial, first, finished, lengths)
        return finished, self._start, state

    def step(self, time: Any, inputs: Any, state: Any,
             name: str | None = None) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        given = td.nest.map_structure(self._merged, inputs)
        before = td.nest.map_structure(self._merged, state.cell_state)
        outputs, following = self._cell(given, before)
        if self._layer is not None:
            outputs = self._layer(outputs)
        best, ids, parents, sums, finished, lengths = _search(
            self._split(outputs), state.log_probs, state.finished, state.lengths, self._end,
            self._penalty,
        )  # fmt: skip
        following = td.nest.map_structure(
            lambda x: self._followed(self._split(x), parents), following
        )
        new = BeamSearchDecoderState(following, sums, finished, lengths)
        return BeamSearchDecoderOutput(best, ids, parents), new, self._embed(ids), finished

    def _followed(self, x: Any, parents: Any) -> Any:
        """A part of a state, as it is for the beams that new ones go on from."""
        if is_array(x) or the_tensor(x).shape.rank == 0:
            return x
        return _gather(x, parents)

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        most = functions.cast(functions.reduce_max(final_state.lengths, 1), td.int32)
        found = gather_tree(outputs.predicted_ids, outputs.parent_ids, most, self._end)
        if self._reorders:
            final_state = final_state._replace(cell_state=td.nest.map_structure(
                lambda x: _sort(x.stack(), outputs.parent_ids, most, self.beam_width)
                if is_array(x) else x,
                final_state.cell_state,
            ))  # fmt: skip
        return FinalBeamSearchDecoderOutput(found, outputs), final_state


def _sizes(x: Any, known: list[int | None], first: int) -> list[Any]:
    """The sizes of the last axes, which a run tells where they are not known."""
    if None not in known:
        return list(known)
    return [shape_of(x)[first + i] if n is None else n for i, n in enumerate(known)]


def _may_count(weight: Any) -> bool:
    """Whether a weight is not known to be 0."""
    return element(weight) is not None or weight != 0


in_graphs(
    _of_beams,
    _repeated,
    _searched,
    _sorted_history,
    _tree,
)
