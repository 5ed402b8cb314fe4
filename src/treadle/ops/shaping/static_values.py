"""What is known of a tensor's elements while a function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.conversion import convert_to_tensor, is_tensor
from treadle.ops.known_values import known_value
from treadle.ops.shaping.joining import STACK


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The elements of a tensor as an array, or None where only a run can tell them.

    In functions those are known that do not depend on arguments, variables or effects. What is no
    tensor is returned as it is.

    Args:
        partial: for scalars that `stack` puts into a vector, an array of objects with None for
            those that are not known.
    """
    if not isinstance(tensor, Tensor):
        return _of_variable(tensor) if is_tensor(tensor) else tensor
    if not isinstance(tensor, SymbolicTensor):
        return tensor.numpy()
    found = known_value(tensor.value, {})
    if found is None and partial:
        return _of_parts(tensor)
    return None if found is None else found.copy()


def _of_variable(value: Any) -> Any:
    read = convert_to_tensor(value)
    return None if isinstance(read, SymbolicTensor) else read.numpy()


def _of_parts(tensor: SymbolicTensor) -> Any:
    node = tensor.value.node
    if node is None or node.op is not STACK or tensor.ndim != 1:
        return None
    found = np.empty(len(node.inputs), object)
    found[:] = [known_value(v, {}) for v in node.inputs]
    return found if any(x is not None for x in found) else None
