"""Values of a graph that are computed from constants while it is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import SymbolicTensor
from treadle.ops.quiet import quiet

_MOST = 4096  # elements of a value that is computed while tracing


def known_truth(test: Any) -> bool | None:
    """The truth of a condition that is the same in all calls of a trace, such as one of ranks and
    known sizes, ``tf.rank(x) == 0``; None for others. Only one branch is traced then, whose result
    may have another rank than the other's.
    """
    if not isinstance(test, SymbolicTensor) or test.dtype is not dtypes.bool or test.ndim:
        return None
    found = known_value(test.value, {})
    return None if found is None else bool(found)


def known_value(value: Any, known: dict[Any, Any]) -> Any:
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
        inputs.append(known_value(operand, known))
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
