"""Where a decoder's next inputs come from: given sequences, or what was decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.rnn import by_time
from treadle.compat.v1.values import element, the_tensor
from treadle.core.origin import at, user_origin

shape_of, logical_not, concat, gather, size, maximum, minimum, equal = map(
    graph_function,
    (td.shape, td.logical_not, td.concat, td.gather, td.size, td.maximum, td.minimum, td.equal),
)


class Helper:
    """Chooses the ids that are decoded, and the next inputs.

    Attributes:
        batch_size: how many sequences there are.
        sample_ids_shape, sample_ids_dtype: what `sample` gives for each sequence.
    """

    batch_size: Any
    sample_ids_shape: Any = td.TensorShape([])
    sample_ids_dtype: Any = td.int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences have ended before they begin, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The ids for the outputs of a step."""
        raise NotImplementedError

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        """Which sequences end with this step, the next inputs and the next state."""
        raise NotImplementedError


def _best(outputs: Any) -> Any:
    return functions.cast(functions.argmax(outputs, -1), td.int32)


class CustomHelper(Helper):
    """A helper of three functions; see `Helper` for what they take and give."""

    def __init__(
        self, initialize_fn: Callable[..., Any], sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any], sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:  # fmt: skip
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self._size: Any = None
        self.sample_ids_shape = td.TensorShape(sample_ids_shape or [])
        self.sample_ids_dtype = sample_ids_dtype or td.int32

    @property
    def batch_size(self) -> Any:
        if self._size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished, inputs = self._initialize()
        if self._size is None:
            self._size = size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        found = self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)
        return found  # type: ignore[no-any-return]


class TrainingHelper(Helper):
    """Reads given sequences; the ids are the best ones.

    Args:
        inputs: [batch, time, ...], or [time, batch, ...] where `time_major`.
        sequence_length: how long each sequence is.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False,
                 name: str | None = None) -> None:  # fmt: skip
        given = td.nest.map_structure(functions.convert_to_tensor, inputs)
        if not time_major:
            given = td.nest.map_structure(by_time, given)
        # A step of zeros behind the end: what is read where all sequences have ended.
        self._steps = td.nest.map_structure(_with_end, given)
        self._lengths = functions.cast(functions.convert_to_tensor(sequence_length), td.int32)
        if the_tensor(self._lengths).shape.rank not in (None, 1):
            raise ValueError(
                "Expected sequence_length to be a vector, but received shape: "
                f"{self._lengths.shape}{at(user_origin())}"
            )
        self.batch_size = size(self._lengths)

    def _read(self, time: Any) -> Any:
        return td.nest.map_structure(lambda x: _step_of(x, time), self._steps)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return equal(self._lengths, 0), self._read(functions.convert_to_tensor(0))

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return _best(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        return time + 1 >= self._lengths, self._read(time + 1), state


def _with_end(x: Any) -> Any:
    return concat([x, functions.zeros_like(x[:1])], 0)


def _step_of(x: Any, time: Any) -> Any:
    return gather(x, minimum(time, shape_of(x)[0] - 1))


def embedded_by(embedding: Any) -> Callable[[Any], Any]:
    """A function of ids: `embedding` itself, or the rows of a table."""
    if callable(embedding) and element(embedding) is None:
        return embedding  # type: ignore[no-any-return]
    return lambda ids: graph_function(td.nn.embedding_lookup)(embedding, ids)


def _probability(value: Any) -> Any:
    found = functions.convert_to_tensor(value, td.float32)
    if the_tensor(found).shape.rank not in (0, 1, None):
        raise ValueError(
            "sampling_probability must be either a scalar or a vector. saw shape: "
            f"{found.shape}{at(user_origin())}"
        )
    return found


def _drawn(logits: Any, seed: int | None) -> Any:
    """Ids by their probabilities."""
    found = functions.multinomial(logits, 1, seed=seed, output_dtype=td.int32)
    return functions.squeeze(found, [1])


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads given sequences, or with some probability what was decoded; the ids are -1 where the
    former.

    Args:
        embedding: a function of ids, or a table of their vectors.
    """

    def __init__(self, inputs: Any, sequence_length: Any, embedding: Any,
                 sampling_probability: Any, time_major: bool = False, seed: int | None = None,
                 scheduling_seed: int | None = None, name: str | None = None) -> None:
        self._embed, self._probability = embedded_by(embedding), _probability(sampling_probability)
        self._seeds = seed, scheduling_seed
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        noise = functions.random_uniform([self.batch_size], seed=self._seeds[1])
        drawn = _drawn(outputs, self._seeds[0])
        return functions.where(self._probability > noise, drawn, -functions.ones_like(drawn))

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        finished, given, state = super().next_inputs(time, outputs, state)
        drawn = self._embed(maximum(sample_ids, 0))
        return finished, functions.where(sample_ids > -1, drawn, given), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Reads given sequences, or with some probability the outputs; the ids are True where the
    latter.

    Args:
        next_input_layer: makes inputs of outputs.
        auxiliary_inputs: further inputs of each step, behind either.
    """

    sample_ids_dtype = td.bool

    def __init__(self, inputs: Any, sequence_length: Any, sampling_probability: Any,
                 time_major: bool = False, seed: int | None = None, next_input_layer: Any = None,
                 auxiliary_inputs: Any = None, name: str | None = None) -> None:  # fmt: skip
        self._probability, self._seed = _probability(sampling_probability), seed
        self._layer, self._more = next_input_layer, None
        if auxiliary_inputs is not None:
            more = functions.convert_to_tensor(auxiliary_inputs)
            inputs = concat([functions.convert_to_tensor(inputs), more], -1)
            self._more = _with_end(more if time_major else by_time(more))
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        noise = functions.random_uniform([self.batch_size], seed=self._seed)
        return self._probability > noise

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        finished, given, state = super().next_inputs(time, outputs, state)
        made = outputs if self._layer is None else self._layer(outputs)
        if self._more is not None:
            made = concat([made, _step_of(self._more, time + 1)], -1)
        return finished, functions.where(sample_ids, made, given), state


class GreedyEmbeddingHelper(Helper):
    """Decodes the best ids, whose vectors are the next inputs.

    Args:
        embedding: a function of ids, or a table of their vectors.
        start_tokens: the first ids, one for each sequence.
        end_token: the id that ends a sequence.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedded_by(embedding)
        self._start = functions.cast(functions.convert_to_tensor(start_tokens), td.int32)
        self._end = functions.cast(functions.convert_to_tensor(end_token), td.int32)
        if the_tensor(self._start).shape.rank not in (None, 1):
            raise ValueError(f"start_tokens must be a vector{at(user_origin())}")
        if the_tensor(self._end).shape.rank not in (None, 0):
            raise ValueError(f"end_token must be a scalar{at(user_origin())}")
        self.batch_size = size(self._start)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished = graph_function(td.zeros_like)(self._start, td.bool)
        return finished, self._embed(self._start)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return _best(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        return equal(sample_ids, self._end), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As `GreedyEmbeddingHelper`, but ids are drawn by their probabilities.

    Args:
        softmax_temperature: what the logits are divided by.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any,
                 softmax_temperature: Any = None, seed: int | None = None) -> None:  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        logits = outputs if self._temperature is None else outputs / self._temperature
        return _drawn(logits, self._seed)


class InferenceHelper(Helper):
    """Decodes with functions of the user.

    Args:
        sample_fn: gives what is decoded of outputs.
        sample_shape, sample_dtype: of it, for one sequence.
        start_inputs: the first inputs.
        end_fn: says of what is decoded which sequences end.
        next_inputs_fn: gives the next inputs of it; it itself where omitted.
    """

    def __init__(self, sample_fn: Callable[..., Any], sample_shape: Any, sample_dtype: Any,
                 start_inputs: Any, end_fn: Callable[..., Any],
                 next_inputs_fn: Callable[..., Any] | None = None) -> None:  # fmt: skip
        self._sample, self._ends, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape = td.TensorShape(sample_shape)
        self.sample_ids_dtype = td.as_dtype(sample_dtype)
        self._start = functions.convert_to_tensor(start_inputs)
        self.batch_size = shape_of(self._start)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return graph_function(td.zeros)([self.batch_size], td.bool), self._start

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return self._sample(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple[Any, Any, Any]:  # fmt: skip
        inputs = sample_ids if self._next is None else self._next(sample_ids)
        return self._ends(sample_ids), inputs, state
