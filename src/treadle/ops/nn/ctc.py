"""Connectionist temporal classification: the loss of label sequences whose times are not known.

A network gives a distribution over labels and a blank for each frame of a sequence. Every way to
spread the labels over the frames, with blanks between them and labels that last, is a path; the
loss is the negative logarithm of the probability of all paths together.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.control.control_flow import while_loop
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal, less, not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import exp, log, stop_gradient
from treadle.ops.indexing.gather import gather, gathered
from treadle.ops.nn.softmax import log_softmax
from treadle.ops.shaping.creation import fill, zeros_like
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import reshape_to, with_dims
from treadle.ops.statistics.sequences import sequence_mask

# The logarithm of a probability of zero. It stays a number when others are added to it, and exp of
# its difference to any other is zero, so that no gradient is NaN.
_NEVER = -1e30


def blank_of(blank_index: Any, classes: Dim) -> Tensor:
    """The number of the blank among `classes`, of which negative numbers count from the end.

    Raises:
        InvalidArgumentError: there is no such class.
    """
    blank = int(blank_index)
    found = blank + classes if blank < 0 else blank
    if isinstance(found, int) and (found < 0 or (isinstance(classes, int) and found >= classes)):
        text = f"blank_index {blank} is none of {classes} classes{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return dims_tensor(found, dtypes.int32)


def path_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, blank: Tensor, by_time: bool
) -> Tensor:
    """The loss of each row of labels, [batch]: infinity where its frames are too few.

    Args:
        labels: integers [batch, labels].
        logits: floats [time, batch, classes], or [batch, time, classes].
        label_length: [batch], how many labels of each row count.
        logit_length: [batch], how many frames of each row count.
        blank: the class of the blank.
        by_time: whether the first axis of the logits is the time.
    """
    scores = _of_rank("logits", convert_to_tensor(logits), 3)
    wanted = scores.dtype
    if wanted in (dtypes.float16, dtypes.bfloat16):
        scores = cast(scores, dtypes.float32)
    if by_time:
        scores = permute(scores, [1, 0, 2])
    names = _of_rank("labels", convert_to_tensor(labels), 2)
    if not names.dtype.is_integer:
        text = f"ctc_loss: labels must be integers, not {names.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    names = cast(names, dtypes.int32)
    names = with_dims(names, (scores.dims[0], names.dims[1]))
    counts = cast(_of_rank("label_length", convert_to_tensor(label_length), 1), dtypes.int32)
    frames = cast(_of_rank("logit_length", convert_to_tensor(logit_length), 1), dtypes.int32)
    states = _with_blanks(names, counts, blank)
    steps = gathered(log_softmax(scores), states, axis=2, batch_dims=1)
    reached = _forward(permute(steps, [1, 0, 2]), states, frames)
    ends = _ends(reached, counts)
    loss = where(less(ends, _NEVER / 2), cast(math.inf, ends.dtype), -ends)
    return cast(loss, wanted)


def _of_rank(name: str, x: Tensor, rank: int) -> Tensor:
    if x.ndim != rank:
        text = f"ctc_loss: {name} must have {rank} axes, not the shape {x.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return x


def _with_blanks(labels: Tensor, counts: Tensor, blank: Tensor) -> Tensor:
    """[batch, 2 labels + 1]: a blank before each label and at the end; blanks behind the last."""
    batch, size = labels.dims
    valid = sequence_mask(counts, dims_tensor(size, dtypes.int32))
    labels = where(valid, labels, blank)
    pairs = reshape_to(stack([zeros_like(labels) + blank, labels], 2), (batch, size * 2))
    last = fill([dims_tensor(batch, dtypes.int32), 1], blank)
    return concat([pairs, last], 1)


def _forward(steps: Tensor, states: Tensor, frames: Tensor) -> Tensor:
    """The logarithms of the probabilities of all paths that end in each state.

    A path stays in its state, goes on by one, or from one label to the next if they differ.

    Args:
        steps: [time, batch, states], the logarithm of each state's class in each frame.
        states: the class of each state.
        frames: how many frames of each row count.
    """
    dtype = steps.dtype
    never = cast(_NEVER, dtype)
    batch, size = states.dims
    rows = dims_tensor(batch, dtypes.int32)
    missing = fill([rows, 1], never)
    place = number_range(dims_tensor(size, dtypes.int32))
    # Without labels there is one state, and nothing to skip to. A label among them that is the
    # blank is a state of its own, as in TensorFlow.
    two_before = with_dims(concat([states[:, :1], states[:, :1], states], 1)[:, :-2], states.dims)
    may_skip = equal(place % 2, 1) & not_equal(states, two_before)

    def body(t: Tensor, paths: Tensor) -> tuple[Tensor, Tensor]:
        one = with_dims(concat([missing, paths], 1)[:, :-1], paths.dims)
        two = with_dims(concat([missing, missing, paths], 1)[:, :-2], paths.dims)
        two = where(may_skip, two, never)
        greatest = stop_gradient(maximum(maximum(paths, one), two))
        total = exp(paths - greatest) + exp(one - greatest) + exp(two - greatest)
        after = greatest + log(total) + gathered(steps, t, axis=0)
        return t + 1, where(less(t, frames)[:, None], after, paths)

    # Before the first frame every path is in the first state, which gives it the first two states.
    start = where(equal(place, 0), cast(0, dtype), never)[None, :] + fill([rows, 1], cast(0, dtype))
    start = with_dims(start, states.dims)
    count = dims_tensor(steps.dims[0], dtypes.int32)
    zero = cast(0, dtypes.int32)
    _, reached = while_loop(lambda t, _: less(t, count), body, [zero, start])
    found: Tensor = reached
    return found


def _ends(reached: Tensor, counts: Tensor) -> Tensor:
    """The logarithm of the probability of all paths that end with the last label or its blank."""
    last = counts * 2
    blank = gather(reached, last[:, None], axis=1, batch_dims=1)[:, 0]
    label = gather(reached, maximum(last - 1, 0)[:, None], axis=1, batch_dims=1)[:, 0]
    label = where(equal(counts, 0), cast(_NEVER, reached.dtype), label)
    greatest = stop_gradient(maximum(blank, label))
    return greatest + log(exp(blank - greatest) + exp(label - greatest))
