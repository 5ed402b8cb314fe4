"""Parts of gradients: identities of values, zeros, ones and sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.context import context
from treadle.core.devices import HOST
from treadle.core.shapes import TensorShape
from treadle.core.spec import ListSpec, ResourceSpec, Spec
from treadle.core.tensor import SymbolicTensor, Tensor, from_array, moved
from treadle.ops.collections.lists import (
    LIST_NEW,
    LIST_SET,
    list_add,
    list_get,
    list_set,
    list_zeros_like,
)  # fmt: skip
from treadle.ops.conversion import constant
from treadle.ops.elementwise.arithmetic import ADD, ADD_N
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.indexing.gather import dense
from treadle.ops.registry import run
from treadle.ops.shaping.creation import FILL
from treadle.ops.shaping.joining import concat
from treadle.ops.state import Variable


def subject(x: Any) -> Any:
    """The value whose gradient is meant: the variable for its handle, the captured value for the
    parameter of a region that stands for it, of a variable that is meant (`Variable.here`), else
    `x` itself."""
    if isinstance(x, SymbolicTensor) and x.source is not None:
        return x.source
    return x.here if isinstance(x, Variable) else x


def key(x: Any) -> int:
    """The identity under which tapes know a tensor or variable. `x` must be kept alive."""
    return id(subject(x))


def is_differentiable(x: Any) -> bool:
    """True for tensors, lists and variables of floating or complex dtype."""
    return x.spec.dtype.kind in "fc"


def gradient_spec(x: Any) -> Spec:
    """The spec of a gradient with respect to `x`: for a variable the spec of its value."""
    spec: Spec = x.spec
    return spec.element if isinstance(spec, ResourceSpec) else spec


def filled(number: float, spec: Spec) -> Tensor:
    """A tensor of `spec`'s dtype and dims with one number everywhere, on its device."""
    if not (spec.dims or context.counted) and spec.device is HOST:  # nobody else is to know of it
        return from_array(np.array(number, spec.dtype.np_dtype))
    one = constant(bool(number) if spec.dtype.is_bool else number, spec.dtype)
    tensor: Tensor = run(FILL, one, shape=spec.dims)
    return tensor if tensor.is_symbolic else moved(tensor, spec.device)


def zeros_for(x: Any) -> Tensor:
    """A zero gradient for `x`: a tensor, or a list of zeros."""
    if isinstance(x.spec, ListSpec):
        return list_zeros_like(x)
    return filled(0, exact_spec(x))


def ones_for(x: Any) -> Tensor:
    """The gradient of a target with respect to itself."""
    return filled(1, exact_spec(x))


def exact_spec(x: Any) -> Spec:
    """The gradient's spec with the dims of the value that an eager variable holds now."""
    if isinstance(x, Variable):
        return x.current_spec
    return gradient_spec(x)


Gradient = Tensor | IndexedSlices


def total(parts: Sequence[Gradient]) -> Gradient:
    """The sum of one or more gradients of one value, in the order in which they were found: of
    IndexedSlices alone IndexedSlices, with the rows that the program read first in front."""
    if len(parts) == 1:
        return parts[0]
    rows = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(rows) == len(parts):
        return _joined(rows[::-1])
    return _sum([dense(p) for p in parts])


def _joined(rows: Sequence[IndexedSlices]) -> IndexedSlices:
    """All rows, one after the other."""
    same = all(r.indices.dtype is rows[0].indices.dtype for r in rows)
    indices = [r.indices if same else cast(r.indices, dtypes.int64) for r in rows]
    return rows[0].with_rows(concat([r.values for r in rows], 0), concat(indices, 0))


def _sum(parts: Sequence[Tensor]) -> Tensor:
    if isinstance(parts[0].spec, ListSpec):
        result = list_add(parts[0], parts[1])
        for part in parts[2:]:
            result = accumulate(result, part)
        return result
    if len(parts) == 2:
        return run(ADD, parts[0], parts[1])  # type: ignore[no-any-return]
    return run(ADD_N, *parts)  # type: ignore[no-any-return]


def accumulate(before: Tensor, gradient: Tensor) -> Tensor:
    """``before + gradient``; a gradient of one element of a list changes that element only."""
    if isinstance(gradient, SymbolicTensor) and isinstance(gradient.spec, ListSpec):
        node = gradient.value.node
        if node is not None and node.op is LIST_SET and _is_new(node.inputs[0].node):
            builder: Any = gradient.recorder
            index, value = (builder.tensor_of(v) for v in node.inputs[1:])
            old = list_get(before, index, value.dims)
            return list_set(before, index, run(ADD, old, value))
    return _sum([before, gradient])


def _is_new(node: Any) -> bool:
    return node is not None and node.op is LIST_NEW


def mismatch(gradient: Any, x: Any) -> str | None:
    """Why `gradient` cannot be a gradient with respect to `x`, or None when it can."""
    if type(gradient) is Tensor and gradient.spec is x.spec:
        return None
    if isinstance(gradient, IndexedSlices):
        return None if gradient.dtype is gradient_spec(x).dtype else "is of another dtype"
    if not isinstance(gradient, Tensor):
        return f"is a {type(gradient).__name__}, not a tensor"
    have, want = gradient.spec, gradient_spec(x)
    if have is want:
        return None
    if have.dtype is not want.dtype:
        return f"has dtype {have.dtype.name}, expected {want.dtype.name}"
    if isinstance(have, ListSpec) or isinstance(want, ListSpec):
        return None if type(have) is type(want) else "is a list on one side only"
    if have.dims != want.dims and not TensorShape(have.dims).is_compatible_with(want.shape):
        return f"has shape {have.shape}, expected {want.shape}"
    return None


def leaves(
    structure: Any, of_rows: Callable[[IndexedSlices], Any] = lambda rows: rows
) -> list[Any]:
    """The leaves of a structure in order, with ``of_rows(slices)`` for IndexedSlices."""
    if isinstance(structure, IndexedSlices):
        return [of_rows(structure)]
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in leaves(part, of_rows)]
    return nest.flatten(structure)
