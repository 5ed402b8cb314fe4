"""Values that are assigned to parts of tensors: in the tensor's dtype and the part's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import is_symbolic_number
from treadle.ops.shaping.reshaping import reshape_to


def as_element(value: Any, dtype: DType) -> Tensor:
    """The assigned value in the tensor's dtype; like NumPy, floats are truncated to ints."""
    if is_symbolic_number(value):
        value = value.tensor()
    given = value if has_dtype(value) else np.asarray(value)
    tensor = convert_to_tensor(given)
    if tensor.dtype.is_complex and not dtype.is_complex:
        raise TypeError(
            f"a {tensor.dtype.name} value cannot be assigned into a {dtype.name} tensor; take "
            f"td.math.real of it{at(user_origin())}"
        )
    return cast(tensor, dtype)


def fit(value: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`value` broadcast to the part's dims; axes of size 1 in front may be left over."""
    extra = value.ndim - len(dims)
    fits = extra <= 0 or all(d == 1 for d in value.dims[:extra])
    if fits and extra > 0:
        value = reshape_to(value, value.dims[extra:])
    pairs = zip(reversed(value.dims), reversed(dims), strict=False)
    if not fits or any(_unequal(v, d) for v, d in pairs):
        part = TensorSpec(dims, value.dtype).shape
        raise errors.InvalidArgumentError(
            None, None,
            f"a value of shape {value.shape} cannot be assigned to a part of shape {part}"
            f"{at(user_origin())}",
        )  # fmt: skip
    return broadcast_dims(value, dims)


def _unequal(given: Dim, wanted: Dim) -> bool:
    known = isinstance(given, int) and isinstance(wanted, int)
    return known and given not in (1, wanted)
