"""``td.compat.v1.contrib.crf``: conditional random fields over sequences of tags.

Scores are of shape [batch, time, tags]; the score of a sequence of tags is the sum of those of its
tags and of a matrix of transitions, as far as its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.scopes import get_variable
from treadle.compat.v1.values import element
from treadle.names import missing_in


def _steps(lengths: Any, time: Any) -> Any:
    """Which steps belong to sequences, bool [batch, time]."""
    return td.sequence_mask(td.cast(lengths, td.int32), time)


def _unary(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    inputs, tags = td.convert_to_tensor(inputs), td.cast(tag_indices, td.int32)
    mask = _steps(sequence_lengths, td.shape(inputs)[1])
    scores = td.gather(inputs, tags, batch_dims=2)
    return td.reduce_sum(td.where(mask, scores, td.zeros_like(scores)), 1)


def _binary(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    matrix, tags = td.convert_to_tensor(transition_params), td.cast(tag_indices, td.int32)
    mask = _steps(sequence_lengths, td.shape(tags)[1])[:, 1:]
    scores = td.gather_nd(matrix, td.stack([tags[:, :-1], tags[:, 1:]], -1))
    return td.reduce_sum(td.where(mask, scores, td.zeros_like(scores)), 1)


def _sequence(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    unary = _unary(tag_indices, sequence_lengths, inputs)
    return unary + _binary(tag_indices, sequence_lengths, transition_params)


def _log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    inputs, lengths = td.convert_to_tensor(inputs), td.cast(sequence_lengths, td.int32)
    matrix = td.cast(transition_params, inputs.dtype)

    def step(t: Any, alphas: Any) -> Any:
        new = td.reduce_logsumexp(alphas[:, :, None] + matrix, 1) + td.gather(inputs, t, axis=1)
        return t + 1, td.where((t < lengths)[:, None], new, alphas)

    time = td.shape(inputs)[1]
    _, alphas = td.while_loop(lambda t, _: t < time, step, (1, inputs[:, 0]))
    found = td.reduce_logsumexp(alphas, 1)
    return td.where(lengths > 0, found, td.zeros_like(found))


def _multitag(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    inputs = td.convert_to_tensor(inputs)
    low = td.fill(td.shape(inputs), td.cast(float("-inf"), inputs.dtype))
    allowed = td.where(td.cast(tag_bitmap, td.bool), inputs, low)
    return _log_norm(allowed, sequence_lengths, transition_params)


def _decoded(potentials: Any, transition_params: Any, sequence_length: Any) -> Any:
    scores, lengths = td.convert_to_tensor(potentials), td.cast(sequence_length, td.int32)
    matrix = td.cast(transition_params, scores.dtype)
    batch, time = td.unstack(td.shape(scores))[:2]
    same = td.tile(td.range(td.shape(scores)[2])[None], [batch, 1])

    def forward(t: Any, best: Any, before: Any) -> Any:
        each = best[:, :, None] + matrix
        goes_on = (t < lengths)[:, None]
        new = td.reduce_max(each, 1) + td.gather(scores, t, axis=1)
        from_ = td.where(goes_on, td.argmax(each, 1, td.int32), same)
        return t + 1, td.where(goes_on, new, best), before.write(t - 1, from_)

    before = td.TensorArray(td.int32, td.maximum(time - 1, 0), element_shape=same.shape)
    _, best, before = td.while_loop(
        lambda t, *_: t < time, forward, (1, scores[:, 0], before)
    )
    last = td.argmax(best, 1, td.int32)

    def backward(t: Any, tag: Any, tags: Any) -> Any:
        tag = td.gather(before.read(t), tag, batch_dims=1)
        return t - 1, tag, tags.write(t, tag)

    tags = td.TensorArray(td.int32, time, element_shape=last.shape).write(time - 1, last)
    _, _, tags = td.while_loop(lambda t, *_: t >= 0, backward, (time - 2, last, tags))
    found = td.transpose(tags.stack())
    mask = _steps(td.maximum(lengths, 1), time)
    return td.where(mask, found, td.zeros_like(found)), td.reduce_max(best, 1)


crf_unary_score = recorded(_unary, "unary_score", "Sum")
crf_binary_score = recorded(_binary, "binary_score", "Sum")
_sequence_score = recorded(_sequence, "sequence_score", "AddV2")
_norm = recorded(_log_norm, "log_norm", "While")
_multitag_score = recorded(_multitag, "multitag_score", "While")
_decode = recorded(_decoded, "crf_decode", "While")


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The scores of sequences of tags, which are numbers [batch, time]."""
    return _sequence_score(inputs, tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The logarithms of the sums of the scores of all sequences of tags that a bitmap
    [batch, time, tags] allows."""
    return _multitag_score(inputs, tag_bitmap, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithms of the sums of the scores of all sequences of tags."""
    return _norm(inputs, sequence_lengths, transition_params)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The logarithms of the probabilities of sequences of tags, and the transitions.

    Args:
        transition_params: a variable of the name ``transitions`` where omitted.
    """
    if transition_params is None:
        given: Any = element(inputs)
        count = int((inputs if given is None else given).shape.as_list()[2])
        transition_params = get_variable("transitions", [count, count])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best sequence of tags for arrays: scores [time, tags] and transitions.

    Returns:
        The tags, and the score of the sequence.
    """
    score, matrix = np.asarray(score), np.asarray(transition_params)
    best, before = np.array(score[0]), np.zeros(score.shape, np.int64)
    for t in range(1, len(score)):
        each = best[:, None] + matrix
        before[t] = each.argmax(0)
        best = score[t] + each.max(0)
    tags = [int(best.argmax())]
    for from_ in before[:0:-1]:
        tags.append(int(from_[tags[-1]]))
    return tags[::-1], best.max()


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The best sequences of tags, int32 [batch, time] with zeros behind their ends, and their
    scores."""
    tags, score = _decode(potentials, transition_params, sequence_length)
    return tags, score


__all__ = [
    "crf_binary_score", "crf_decode", "crf_log_likelihood", "crf_log_norm",
    "crf_multitag_sequence_score", "crf_sequence_score", "crf_unary_score", "viterbi_decode",
]  # fmt: skip

in_graphs(
    _binary,
    _decoded,
    _log_norm,
    _multitag,
    _sequence,
    _unary,
)
__getattr__ = missing_in(__name__)
