"""Losses of many classes, of which only the true ones and some that are drawn are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import log, stop_gradient
from treadle.ops.linalg.einsum import einsum
from treadle.ops.linalg.matrices import matmul
from treadle.ops.nn.compositions import embedding_lookup
from treadle.ops.nn.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from treadle.ops.random.candidates import (
    Candidates,
    accidental,
    log_uniform_candidate_sampler,
)
from treadle.ops.reductions.reduction import reduce_any, reduce_sum
from treadle.ops.shaping.creation import ones_like, zeros_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape


def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """The noise-contrastive loss of each example: true classes are told from drawn ones
    (Gutmann and Hyvärinen 2010).

    Args:
        weights: [num_classes, dim], or a list of tables that are its parts.
        biases: [num_classes].
        labels: [batch, num_true] int64, the true classes.
        inputs: [batch, dim].
        num_sampled: how many different classes are drawn for the batch.
        num_classes: the number of classes.
        num_true: the number of true classes of an example.
        sampled_values: what a candidate sampler gave; by default classes are drawn by
            `td.random.log_uniform_candidate_sampler`.
        remove_accidental_hits: leave out drawn classes that are true ones of the example.
        name: accepted for TensorFlow programs.

    Returns:
        the losses, [batch].
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, None,
    )  # fmt: skip
    return reduce_sum(sigmoid_cross_entropy_with_logits(targets, logits), 1)


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
    seed: int | None = None, name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """The softmax loss of each example over its true classes and drawn ones (Jean et al. 2014).

    It is for training: the softmax over all classes tells what a trained model says.

    Args:
        seed: of the draws.
        others: as for `nce_loss`.

    Returns:
        the losses, [batch].
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, seed,
    )  # fmt: skip
    return softmax_cross_entropy_with_logits(stop_gradient(targets), logits)


def _sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, sampled: int, classes: int, true: int,
    candidates: Candidates | None, removes: bool, seed: int | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The logits of the true classes and behind them of the drawn ones, [batch, num_true +
    num_sampled], and their targets: the true ones share 1."""
    x = convert_to_tensor(inputs)
    classes_of = cast(convert_to_tensor(labels), dtypes.int64)
    if classes_of.ndim == 1:
        classes_of = classes_of[:, None]
    if candidates is None:
        candidates = log_uniform_candidate_sampler(
            classes_of, true, sampled, True, classes, seed=seed
        )
    drawn, true_count, drawn_count = (stop_gradient(c) for c in candidates)
    drawn = cast(drawn, dtypes.int64)
    rows = embedding_lookup(weights, concat([reshape(classes_of, [-1]), drawn], 0))
    split = -drawn.dims[0] if isinstance(drawn.dims[0], int) else -sampled
    true_rows = reshape(rows[:split], [-1, true, x.dims[-1]])
    true_logits = einsum("bd,btd->bt", x, true_rows) + embedding_lookup(biases, classes_of)
    drawn_logits = matmul(x, rows[split:], transpose_b=True) + embedding_lookup(biases, drawn)
    if removes:
        hits = reduce_any(accidental(classes_of, drawn), 1)
        lowest = convert_to_tensor(np.finfo(np.float32).min, drawn_logits.dtype)
        drawn_logits = where(hits, drawn_logits + lowest, drawn_logits)
    true_logits = true_logits - log(cast(true_count, true_logits.dtype))
    drawn_logits = drawn_logits - log(cast(drawn_count, drawn_logits.dtype))
    targets = [ones_like(true_logits) / true, zeros_like(drawn_logits)]
    return concat([true_logits, drawn_logits], 1), concat(targets, 1)
