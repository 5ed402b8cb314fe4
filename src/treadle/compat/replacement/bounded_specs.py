"""TensorFlow's private `BoundedTensorSpec`: types of tensors whose elements lie between bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.devices import HOST, Device
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape
from treadle.core.spec import TensorSpec, intern_spec


class BoundedTensorSpec(TensorSpec):
    """The dtype and shape of a tensor, and the least and greatest elements that it may have.

    To functions it is the `TensorSpec` of its dtype and shape: nothing checks the bounds.

    Args:
        shape, dtype, name: as those of `TensorSpec`.
        minimum, maximum: numbers, or arrays that broadcast to the shape.

    Attributes:
        minimum, maximum: arrays of the dtype.

    Raises:
        ValueError: bounds are missing or do not broadcast.
    """

    __slots__ = ("maximum", "minimum")

    minimum: np.ndarray[Any, Any]
    maximum: np.ndarray[Any, Any]

    def __new__(
        cls, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None
    ) -> BoundedTensorSpec:
        spec = object.__new__(cls)
        spec.dims, spec.dtype = TensorShape(shape).exact, dtypes.as_dtype(dtype)
        spec.name, spec.device = name, HOST
        spec.minimum = _bound("minimum", minimum, spec)
        spec.maximum = _bound("maximum", maximum, spec)
        return spec

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """The spec of tensors with another's shape, dtype and bounds; the bounds of the dtype where
        that has none."""
        dtype = dtypes.as_dtype(spec.dtype)  # a library's spec of arrays may have NumPy's
        low, high = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, low, high, name or spec.name)

    def with_dims(self, dims: Iterable[Dim]) -> Any:
        """The `TensorSpec` with other dims: bounds may not fit them."""
        return intern_spec(TensorSpec, TensorShape(dims).exact, self.dtype)

    def on(self, device: Device) -> Any:
        """The `TensorSpec` on a device."""
        return intern_spec(TensorSpec, self.dims, self.dtype, self.name, device)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and (self.dims, self.dtype, self.name) == (other.dims, other.dtype, other.name)
            and np.array_equal(self.minimum, other.minimum)
            and np.array_equal(self.maximum, other.maximum)
        )

    def __hash__(self) -> int:
        return hash((self.dims, self.dtype))

    def __reduce__(self) -> Any:
        return BoundedTensorSpec, (self.shape, self.dtype, self.minimum, self.maximum, self.name)

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}, "
            f"minimum={self.minimum!r}, maximum={self.maximum!r})"
        )


def _bound(which: str, value: Any, spec: BoundedTensorSpec) -> Any:
    if value is None:
        raise ValueError(f"`{which}` can not be None.{at(user_origin())}")
    array = np.array(value, spec.dtype.np_dtype)
    sizes = zip(array.shape[::-1], spec.dims[::-1], strict=False)
    if any(isinstance(b, int) and a != b and 1 not in (a, b) for a, b in sizes):
        raise ValueError(
            f"`{which}` {value} is not compatible with shape {spec.shape}.{at(user_origin())}"
        )
    array.setflags(write=False)
    return array
