"""What is known of a tensor's elements while a function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.conversion import convert_to_tensor, is_tensor
from treadle.ops.quiet import quiet
from treadle.ops.shaping.joining import STACK

_MOST = 4096  # elements of a value that is computed while tracing


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
    found = _value(tensor.value, {})
    if found is None and partial:
        return _of_parts(tensor)
    return None if found is None else found.copy()


def known_truth(test: Any) -> bool | None:
    """The truth of a condition that is the same in all calls of a trace, such as one of ranks and
    known sizes, ``tf.rank(x) == 0``; None for others. Only one branch is traced then, whose result
    may have another rank than the other's.
    """
    if not isinstance(test, SymbolicTensor) or test.dtype is not dtypes.bool or test.ndim:
        return None
    found = _value(test.value, {})
    return None if found is None else bool(found)


def _of_variable(value: Any) -> Any:
    read = convert_to_tensor(value)
    return None if isinstance(read, SymbolicTensor) else read.numpy()


def _value(value: Any, known: dict[Any, Any]) -> Any:
    """The elements of a value of the graph, computed from constants; None where they are not.

    Args:
        known: what was found for other values.
    """
    if value not in known:
        known[value] = _computed(value, known)
    return known[value]


def _computed(value: Any, known: dict[Any, Any]) -> Any:
    node = value.node
    if node is None or node.op.effect is not None or node.op.eager is None or node.regions:
        return None
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    if not all(type(s) is TensorSpec and _is_small(s) for s in specs) or "draws" in node.op.tags:
        return None
    if any(not isinstance(d, int) for d in node.attrs.get("shape", ()) if d is not None):
        return None
    inputs = []
    for operand in node.inputs:
        inputs.append(_value(operand, known))
        if inputs[-1] is None:
            return None
    try:
        found = quiet.call(node.op.eager, *inputs, **node.attrs)
    except Exception:  # the run will say it
        return None
    results = found if isinstance(found, tuple) else (found,)
    return np.asarray(results[value.index])


def _is_small(spec: TensorSpec) -> bool:
    size = 1
    for dim in spec.dims:
        if not isinstance(dim, int):
            return False
        size *= dim
    return size <= _MOST


def _of_parts(tensor: SymbolicTensor) -> Any:
    node = tensor.value.node
    if node is None or node.op is not STACK or tensor.ndim != 1:
        return None
    found = np.empty(len(node.inputs), object)
    found[:] = [_value(v, {}) for v in node.inputs]
    return found if any(x is not None for x in found) else None
