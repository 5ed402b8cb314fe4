"""The logits that probabilities were computed from.

A softmax or sigmoid of large logits rounds to 0 or 1: a cross-entropy of such probabilities is
wrong and has no gradient, so a model that is once sure of a wrong answer could not learn
otherwise. As in Keras on TensorFlow, the results of `keras.activations.softmax` and `sigmoid`
carry their logits, and cross-entropies are computed from these; in a graph the operand of the
operation that gave the probabilities serves too.
"""

from __future__ import annotations

import warnings
from typing import Any

import treadle as td
from treadle.keras.attachments import Attachment

_logits = Attachment()


def with_logits(probabilities: td.Tensor, logits: Any) -> td.Tensor:
    """The probabilities, which carry their logits from now on."""
    _logits.attach(probabilities, logits)
    return probabilities


def as_logits(
    output: td.Tensor, from_logits: bool, activation: str, function: str
) -> tuple[td.Tensor, bool]:
    """A loss's prediction as logits, where they are known.

    Args:
        output: probabilities, or logits with `from_logits`.
        activation: the operation whose operand counts as logits: "Softmax" or "Sigmoid".
        function: the loss function's name, for the warning that `from_logits` was said of
            probabilities.

    Returns:
        Logits and True, or `output` and `from_logits` as they came.
    """
    logits = _logits.of(output)
    if logits is None:
        logits = _operand_of(output, activation)
    if logits is None:
        return output, from_logits
    if from_logits:
        warnings.warn(
            f'"`{function}` received `from_logits=True`, but the `output` argument was produced by '
            f"a {activation} activation and thus does not represent logits. Was this intended?",
            stacklevel=3,
        )
    return td.convert_to_tensor(logits, output.dtype), True


def _operand_of(output: td.Tensor, activation: str) -> Any:
    """The operand of the operation of a graph that computes `output`, if it is the activation."""
    if not getattr(output, "is_symbolic", True):  # tensors of TensorFlow 1's graphs do not say
        return None
    operation = output.op  # type: ignore[attr-defined]
    return operation.inputs[0] if operation.type == activation else None


def _attached(tensor: td.Tensor) -> Any:
    logits = _logits.of(tensor)
    if logits is None:
        raise AttributeError("the tensor carries no logits", name="_keras_logits", obj=tensor)
    return logits


# Programs of Keras read and set the logits by this name.
td.Tensor._keras_logits = property(_attached, _logits.attach)  # type: ignore[attr-defined]
