"""Tensors of a trace whose rank only a run knows: made of two values and settled later."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import TensorSpec
from treadle.core.tensor import SymbolicTensor, Tensor, UnrankedTensor, lacks_rank
from treadle.ops.control.open_ranks import set_parts
from treadle.ops.dims import shape
from treadle.ops.registry import run
from treadle.ops.shaping.reshaping import ENSURE_SHAPE, RESHAPE, SETTLE_RANK, reshape

# The specs of the two values, beside the dtype of the elements.
EXTENTS = TensorSpec([None], dtypes.int64)


def specs_of_parts(dtype: Any) -> tuple[TensorSpec, TensorSpec]:
    """The specs of the elements and the shape of a tensor of unknown rank."""
    return TensorSpec([None], dtype), EXTENTS


def parts_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of a tensor in row-major order, and its shape."""
    if lacks_rank(x):
        return x.elements, x.extents
    return reshape(x, [-1]), shape(x, dtypes.int64)


set_parts(parts_of)


def of_parts(elements: Any, extents: Any) -> Any:
    """The tensor of these elements and this shape: of unknown rank while a function is traced."""
    if isinstance(elements, SymbolicTensor):
        return UnrankedTensor(elements, extents)
    dims = tuple(int(n) for n in np.asarray(extents))
    if isinstance(elements, Tensor):
        return run(RESHAPE, elements, shape=dims)
    return elements.reshape(dims)


def without_rank(x: Tensor) -> Any:
    """The same tensor, of a rank that only the run knows."""
    return of_parts(*parts_of(x))


def set_shape(self: Any, shape: Any) -> None:
    """Say what the shape is, as far as it is known. The tensor of a trace has it from then on, and
    a run checks it; an eager tensor has it already.

    Raises:
        ValueError: the shape is known to be another one.
    """
    wanted = TensorShape(shape)
    if not self.shape.is_compatible_with(wanted):
        raise ValueError(f"{self!r} cannot have shape {wanted}{at(user_origin())}")
    if not isinstance(self, SymbolicTensor) or wanted.rank is None:
        return
    recorder: Any = self.recorder
    is_here = bool(recorder is context.recorder)
    if recorder.finished:
        raise self.no_value("given a shape")
    if not lacks_rank(self):
        dims = self.shape.merge_with(wanted).exact
        if dims != self.dims and is_here:
            # A branch knows it for itself only: elsewhere the tensor may have another size.
            recorder.refine(self, ENSURE_SHAPE, [_itself(self)], shape=dims)
        return
    if not is_here:
        raise ValueError(
            f"set_shape: {self!r} was made outside this branch or loop: set its shape there"
            f"{at(user_origin())}"
        )
    assert isinstance(self, UnrankedTensor)
    inputs, attrs = [self.elements, self.extents], {"out": TensorSpec(wanted, self.dtype)}
    recorder.refine(self, SETTLE_RANK, inputs, **attrs)
    for tape in context.tapes:
        tape.record(SETTLE_RANK, inputs, attrs, (self,))


def _itself(tensor: SymbolicTensor) -> SymbolicTensor:
    """A tensor for the value that `tensor` stands for now."""
    return SymbolicTensor(tensor.value, tensor.spec, tensor.recorder, tensor.origin)
