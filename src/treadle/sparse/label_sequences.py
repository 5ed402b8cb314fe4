"""Sequences of labels that networks give frame by frame: their losses, decoders and distances.

Decoded sequences differ in length: they are sparse tensors [batch, greatest length].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import greater_equal, not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import unsorted_segment_sum
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.nn.ctc import blank_of, path_loss
from treadle.ops.op_makers import require_kinds
from treadle.ops.reductions.reduction import argmax, reduce_max, reduce_prod, reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import integer
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.statistics.sequences import sequence_mask
from treadle.sparse.places import as_sparse, numbered, rank_of, sizes_of
from treadle.sparse.tensor import SparseTensor
from treadle.sparse.values import to_dense

# -- losses ----------------------------------------------------------------------------------------


def ctc_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True,
    unique: Any = None, blank_index: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The loss of connectionist temporal classification, [batch].

    It is the negative logarithm of the probability of all ways to spread the labels over the
    frames, with blanks between labels and labels that last; infinity where there is none.

    Args:
        labels: integers [batch, labels]; or a sparse matrix, whose rows are the labels.
        logits: floats [time, batch, classes], of which a softmax over the classes is taken.
        label_length: [batch], how many labels of each row count; None for sparse labels.
        logit_length: [batch], how many frames of each row count.
        logits_time_major: False for logits [batch, time, classes].
        unique: accepted for TensorFlow programs.
        blank_index: the class of the blank; 0 if omitted, negative numbers count from the end.

    Raises:
        InvalidArgumentError: other shapes, or no such class.
        ValueError: sparse labels without a blank_index.
    """
    scores = convert_to_tensor(logits)
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError(
                "Argument `blank_index` must be provided when `labels` is a `SparseTensor`."
                f"{at(user_origin())}"
            )
        label_length = _row_lengths(labels)
        labels = to_dense(labels)
    blank = blank_of(0 if blank_index is None else blank_index, scores.dims[-1])
    return path_loss(labels, scores, label_length, logit_length, blank, logits_time_major)


def _row_lengths(x: SparseTensor) -> Tensor:
    rows = x.indices[:, 0]
    count = cast(sizes_of(x)[0], dtypes.int64)
    return unsorted_segment_sum(cast(ones_like(rows), dtypes.int32), rows, count)


# -- decoders --------------------------------------------------------------------------------------


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: Any = None
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable class of each frame, without blanks.

    Args:
        inputs: floats [time, batch, classes].
        sequence_length: [batch], how many frames of each row count.
        merge_repeated: whether a class that lasts is one label.
        blank_index: the class of the blank; the last one if omitted.

    Returns:
        A list of one sparse int64 matrix of the labels, and [batch, 1] the negative sums of the
        greatest inputs.
    """
    x, lengths = _frames("ctc_greedy_decoder", inputs, sequence_length)
    blank = blank_of(-1 if blank_index is None else blank_index, x.dims[2])
    best = argmax(x, 2)
    counted = sequence_mask(lengths, dims_tensor(x.dims[1], dtypes.int32))
    kept = counted & not_equal(best, cast(blank, best.dtype))
    if merge_repeated:
        first = ones_like(best[:, :1], dtypes.bool)
        kept = kept & concat([first, not_equal(best[:, 1:], best[:, :-1])], 1)
    greatest = where(counted, reduce_max(x, 2), cast(0, x.dtype))
    return [_sparse_rows(best, kept)], -reduce_sum(greatest, 1, keepdims=True)


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable label sequences that a beam search finds; the last class is the blank.

    Args:
        inputs: floats [time, batch, classes], of which a softmax over the classes is taken.
        sequence_length: [batch], how many frames of each row count.
        beam_width: how many sequences are kept after each frame.
        top_paths: how many are given.

    Returns:
        A sparse int64 matrix of labels for each of the `top_paths`, and the logarithms of their
        probabilities, [batch, top_paths].

    Raises:
        InvalidArgumentError: more paths than the width of the beam.
    """
    return beam_search(inputs, sequence_length, beam_width, top_paths, False)


def beam_search(
    inputs: Any, sequence_length: Any, beam_width: Any, top_paths: Any, merge_repeated: bool
) -> tuple[list[SparseTensor], Tensor]:
    """See `ctc_beam_search_decoder`; sequences that are found may be merged afterwards."""
    x, lengths = _frames("ctc_beam_search_decoder", inputs, sequence_length)
    width = integer("ctc_beam_search_decoder: beam_width", beam_width)
    paths = integer("ctc_beam_search_decoder: top_paths", top_paths)
    if not 1 <= paths <= width:
        text = f"ctc_beam_search_decoder: top_paths {paths} is not from 1 to beam_width {width}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    found, score = run(BEAM_SEARCH, x, lengths, width=width, paths=paths, merge=merge_repeated)
    decoded = [_sparse_rows(found[k], greater_equal(found[k], 0)) for k in range(paths)]
    return decoded, score


def _frames(name: str, inputs: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    """The inputs as [batch, time, classes], and the lengths."""
    x, lengths = convert_to_tensor(inputs), convert_to_tensor(sequence_length)
    if x.ndim != 3 or lengths.ndim != 1:
        text = (
            f"{name}: inputs are [time, batch, classes] and sequence_length is [batch], not "
            f"{x.shape} and {lengths.shape}{at(user_origin())}"
        )
        raise errors.InvalidArgumentError(None, None, text)
    if not x.dtype.is_floating:
        text = f"{name} takes floats, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return permute(x, [1, 0, 2]), cast(lengths, dtypes.int32)


def _sparse_rows(labels: Tensor, kept: Tensor) -> SparseTensor:
    """The labels of each row that are kept, without gaps."""
    place = cumsum(cast(kept, dtypes.int64), 1) - 1
    rows = where(kept)[:, 0]
    indices = stack([rows, boolean_mask(place, kept)], 1)
    batch = dims_tensor(labels.dims[0], dtypes.int64)
    longest = reduce_max(concat([reshape(place + 1, [-1]), cast([0], dtypes.int64)], 0))
    return SparseTensor(indices, boolean_mask(labels, kept), stack([batch, longest]))


def _infer_beams(
    x: TensorSpec, lengths: TensorSpec, *, width: int, paths: int, merge: bool
) -> tuple[Spec, Spec]:
    require_kinds("f", x)
    batch, time, _ = x.dims
    return (
        TensorSpec((paths, batch, time), dtypes.int64), TensorSpec((batch, paths), x.dtype),
    )  # fmt: skip


def _beams(
    x: NDArray, lengths: NDArray, *, width: int, paths: int, merge: bool
) -> tuple[NDArray, NDArray]:
    """The labels, with -1 behind them, and the logarithms of their probabilities."""
    batch, time, _ = x.shape
    labels = np.full((paths, batch, time), -1, np.int64)
    scores = np.full((batch, paths), -np.inf, x.dtype)
    for row in range(batch):
        count = int(lengths[row])
        if not 0 <= count <= time:
            raise errors.InvalidArgumentError(
                None, None, f"ctc_beam_search_decoder: sequence_length {count} of {time} frames"
            )
        for k, (path, score) in enumerate(_search(x[row, :count].astype(np.float64), width, paths)):
            if merge:
                path = tuple(c for i, c in enumerate(path) if not i or path[i - 1] != c)
            labels[k, row, : len(path)] = path
            scores[row, k] = score
    return labels, scores


def _search(frames: NDArray, width: int, paths: int) -> list[tuple[tuple[int, ...], float]]:
    """The best sequences of one row with their scores, the best first.

    Of each sequence two probabilities are kept: that of its paths that end in a blank, and that of
    those that end in its last label. A label that follows itself needs a blank between the two.
    """
    blank = frames.shape[1] - 1
    beams: list[tuple[int, ...]] = [()]
    in_blank, in_label = np.zeros(1), np.full(1, -np.inf)
    for frame in frames:
        shifted = frame - frame.max()
        score = shifted - np.log(np.exp(shifted).sum())
        total = np.logaddexp(in_blank, in_label)
        last = np.array([beam[-1] if beam else -1 for beam in beams])
        extended = total[:, None] + score[None, :blank]
        repeats = np.flatnonzero(last >= 0)
        extended[repeats, last[repeats]] = in_blank[repeats] + score[last[repeats]]
        after_blank = total + score[blank]
        after_label = np.where(last >= 0, in_label + score[last], -np.inf)
        places = {beam: k for k, beam in enumerate(beams)}
        for k, beam in enumerate(beams):
            before = places.get(beam[:-1]) if beam else None
            if before is not None:  # the same sequence, reached by a longer way
                after_label[k] = np.logaddexp(after_label[k], extended[before, beam[-1]])
                extended[before, beam[-1]] = -np.inf
        own = np.logaddexp(after_blank, after_label)
        everything = np.concatenate([own, extended.reshape(-1)])
        best = np.argsort(-everything, kind="stable")[:width]
        best = best[everything[best] > -np.inf]
        old, new = best[best < len(beams)], best[best >= len(beams)] - len(beams)
        beams = [beams[k] for k in old] + [
            (*beams[k // blank], int(k % blank)) for k in new.tolist()
        ]
        in_blank = np.concatenate([after_blank[old], np.full(len(new), -np.inf)])
        in_label = np.concatenate([after_label[old], extended.reshape(-1)[new]])
    total = np.logaddexp(in_blank, in_label)
    order = np.argsort(-total, kind="stable")[:paths].tolist()
    return [(beams[k], float(total[k])) for k in order]


BEAM_SEARCH = register(
    Op(
        "ctc_beam_search", _infer_beams, _beams,
        callback="which sequences are kept depends on all frames before",
        no_gradient="the best sequences do not change with small changes of the scores",
    )
)  # fmt: skip


# -- distances -------------------------------------------------------------------------------------


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = None
) -> Tensor:
    """How many elements are put in, left out or replaced to make one sequence of another, float32.

    Args:
        hypothesis: a sparse tensor, whose last axis has the sequences.
        truth: one of the same rank.
        normalize: whether the distance is divided by the length of the true sequence: infinity
            where that is empty and the other is not.

    Raises:
        InvalidArgumentError: other ranks.
        TypeError: an argument is not sparse, or the elements differ in dtype.
    """
    a, b = as_sparse(hypothesis), as_sparse(truth)
    rank = rank_of(a)
    if rank != rank_of(b) or rank < 2:
        text = f"edit_distance takes two sparse tensors of one rank, not {a.shape} and {b.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    if a.dtype is not b.dtype:
        text = f"edit_distance compares {a.dtype.name} with {b.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    pairs = zip(sizes_of(a)[:-1], sizes_of(b)[:-1], strict=True)
    sizes = [maximum(x, y) for x, y in pairs]
    count = size_of(reduce_prod(stack(sizes)), "edit_distance: the number of sequences")
    groups = [numbered(x.indices[:, :-1], sizes) for x in (a, b)]
    flat = run(
        EDIT_DISTANCE, groups[0], a.values, groups[1], b.values,
        count=count, normalize=bool(normalize),
    )  # fmt: skip
    return reshape(flat, stack(sizes))


def _infer_distance(
    a_groups: Spec, a: Spec, b_groups: Spec, b: Spec, *, count: Dim, normalize: bool
) -> TensorSpec:
    return TensorSpec((count,), dtypes.float32)


def _distances(
    a_groups: NDArray, a: NDArray, b_groups: NDArray, b: NDArray, *, count: int, normalize: bool
) -> NDArray:
    found = np.zeros(count, np.float32)
    for group in np.union1d(a_groups, b_groups).tolist():
        one, other = a[a_groups == group].tolist(), b[b_groups == group].tolist()
        distance = _steps_between(one, other)
        if normalize and distance:
            distance = distance / len(other) if other else np.inf
        found[group] = distance
    return found


def _steps_between(one: list[Any], other: list[Any]) -> float:
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return float(row[-1])


EDIT_DISTANCE = register(
    Op(
        "edit_distance", _infer_distance, _distances, tags=frozenset({"strings"}),
        callback="the lengths of the sequences are those of groups of elements",
        no_gradient="the number of steps is a count",
    )
)  # fmt: skip
