"""The cross-entropy of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.values import element
from treadle.core.origin import at, user_origin

_SMALL = 1e-12  # keeps sums of weights that are all zero from being divided by


def _check(rank: int, value: Any, what: str) -> None:
    tensor = element(value)
    if tensor is not None and tensor.shape.rank not in (None, rank):
        raise ValueError(f"{what}, not of shape {tensor.shape}{at(user_origin())}")


def _default(labels: Any, logits: Any) -> Any:
    return graph_function(td.nn.sparse_softmax_cross_entropy_with_logits)(labels, logits)


def sequence_loss(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    average_across_batch: bool = True, softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None, sum_over_timesteps: bool = False, sum_over_batch: bool = False,
) -> Any:  # fmt: skip
    """The weighted cross-entropy of sequences.

    Args:
        logits: [batch, time, symbols].
        targets: the numbers of the symbols, [batch, time].
        weights: [batch, time]: zeros for what is behind the ends.
        average_across_timesteps, average_across_batch: whether the weighted losses are summed along
            an axis and divided by the sum of the weights.
        sum_over_timesteps, sum_over_batch: whether they are divided by the number of weights that
            are not zero instead.
        softmax_loss_function: ``f(labels, logits)`` instead of the cross-entropy.

    Raises:
        ValueError: the shapes are others, or an axis is both averaged and summed.
    """
    _check(3, logits, "Logits must be a [batch_size x sequence_length x logits] tensor")
    _check(2, targets, "Targets must be a [batch_size x sequence_length] tensor")
    _check(2, weights, "Weights must be a [batch_size x sequence_length] tensor")
    if (average_across_timesteps and sum_over_timesteps) or (
        average_across_batch and sum_over_batch
    ):
        raise ValueError(
            "average_across_timesteps and sum_over_timesteps, and average_across_batch and "
            f"sum_over_batch cannot both be set{at(user_origin())}"
        )
    reshape, shape = graph_function(td.reshape), graph_function(td.shape)
    with functions.name_scope(name, "sequence_loss", [logits, targets, weights]):
        sizes = shape(logits)
        flat, numbers = reshape(logits, [-1, sizes[2]]), reshape(targets, [-1])
        given = functions.convert_to_tensor(weights)
        each = (softmax_loss_function or _default)(labels=numbers, logits=flat)
        each = reshape(each * reshape(given, [-1]), [sizes[0], sizes[1]])
        averaged = [i for i, b in ((0, average_across_batch), (1, average_across_timesteps)) if b]
        summed = [i for i, b in ((0, sum_over_batch), (1, sum_over_timesteps)) if b]
        if averaged:
            each = functions.reduce_sum(each, averaged) / (
                functions.reduce_sum(given, averaged) + _SMALL
            )
        if summed:
            present = functions.cast(graph_function(td.not_equal)(given, 0.0), td.float32)
            axes = summed if not averaged else [0]
            count = functions.reduce_sum(present, None if averaged else summed)
            each = functions.reduce_sum(each, axes) / (count + _SMALL)
        return each
