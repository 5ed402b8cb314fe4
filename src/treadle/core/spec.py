"""Types of values: dtype and dims of a tensor, a list of tensors or a variable.

Specs are interned: equal specs are the same object, so a signature check is an ``is``. A tensor of
another device has another spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from treadle.core import dtypes
from treadle.core.caches import clears
from treadle.core.devices import HOST, Device
from treadle.core.shapes import (
    ANY,
    UNKNOWN_RANK,
    UNKNOWN_SHAPE,
    Dim,
    SymbolicDim,
    TensorShape,
    fresh_symbol,
)
from treadle.core.trace_types import TypeSpec


class Spec(TypeSpec):
    """The type of a tensor, a list or a variable, and of a graph's value.

    Values of a graph have the host's specs, wherever the graph runs: `Graph.device` tells, and
    `on` gives the specs of its arguments and results.
    """

    __slots__ = ("__weakref__", "device", "dims", "dtype", "name")

    dtype: dtypes.DType
    dims: tuple[Dim, ...]
    name: str | None
    device: Device
    _table: ClassVar[WeakValueDictionary[Any, Spec]] = WeakValueDictionary()

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.dims)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def has_rank(self) -> bool:
        """Whether the number of dims is known."""
        return self.dims != UNKNOWN_RANK

    @property
    def may_vary(self) -> bool:
        """Whether the rank or a dim was left open by the user: values of several shapes have it."""
        return ANY in self.dims or not self.has_rank

    def symbols(self) -> frozenset[str]:
        """The names of the symbols in the dims."""
        found: frozenset[str] = frozenset()
        for dim in self.dims:
            if isinstance(dim, SymbolicDim):
                found = found | dim.symbols() if found else dim.symbols()
        return found

    def with_dims(self, dims: Iterable[Dim]) -> Any:
        """The same kind of spec with other dims."""
        return intern_spec(type(self), TensorShape(dims).exact, self.dtype, None, self.device)

    def on(self, device: Device) -> Any:
        """The same spec on a device."""
        if self.device is device:
            return self
        return intern_spec(type(self), self.dims, self.dtype, self.name, device)

    def __reduce__(self) -> tuple[Any, ...]:
        return intern_spec, (type(self), self.dims, self.dtype, self.name, self.device)

    def __str__(self) -> str:
        return spec_text(self)


class TensorSpec(Spec):
    """The dtype and shape of a tensor. ``None`` in the shape is a dim that may vary.

    Args:
        shape: a sequence of ints and Nones, a TensorShape, or None for an unknown rank.
        dtype: anything `as_dtype` takes; float32 when omitted.
        name: the argument's name in a concrete function's signature.
    """

    __slots__ = ()

    value_type: ClassVar[type]  # Tensor; `core.tensor` says so

    def __new__(
        cls, shape: Any, dtype: Any = dtypes.float32, name: str | None = None
    ) -> TensorSpec:
        dims, dtype = TensorShape(shape).exact, dtypes.as_dtype(dtype)
        spec: TensorSpec = intern_spec(cls, dims, dtype, name)
        return spec

    @property
    def rank(self) -> int:
        """The number of dims; ValueError where it is not known."""
        if self.dims == UNKNOWN_RANK:
            raise ValueError(f"the rank of {self!r} is not known")
        return len(self.dims)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The spec of tensors with a spec's shape and dtype."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """True where a value of that dtype and shape may be passed for this spec, whatever its
        device."""
        other = spec_or_tensor
        return self.dtype is other.dtype and self.shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this spec is one of the other."""
        return (
            isinstance(other, TensorSpec)
            and self.dtype is other.dtype
            and self.shape.is_subtype_of(other.shape)
        )

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorSpec | None:
        """The narrowest spec for the tensors of this one and all others; None for other dtypes."""
        if not all(isinstance(o, TensorSpec) and o.dtype is self.dtype for o in others):
            return None
        shape = self.shape.most_specific_common_supertype([o.shape for o in others])
        same = all(o.name == self.name for o in others)
        return TensorSpec(shape, self.dtype, self.name if same else None)

    def with_fresh_symbols(self, hint: str = "d") -> TensorSpec:
        """Every ``None`` dim replaced by a symbol of its own."""
        spec: TensorSpec = self.with_dims(fresh_symbol(hint) if d == ANY else d for d in self.dims)
        return spec

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        place = "" if self.device is HOST else f", device={str(self.device)!r}"
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}{name}{place})"


class ListSpec(Spec):
    """A growing list of tensors of one dtype and element shape (TensorArray, loop stacks)."""

    __slots__ = ()

    def __new__(cls, shape: Any, dtype: Any, name: str | None = None) -> ListSpec:
        spec: ListSpec = intern_spec(cls, TensorShape(shape).exact, dtypes.as_dtype(dtype), name)
        return spec

    @property
    def element(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """True where a list of the other spec may be passed for this one."""
        if not isinstance(other, ListSpec) or self.dtype is not other.dtype:
            return False
        told = has_element_shape(self) and has_element_shape(other)
        return not told or self.shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every list of this spec is one of the other."""
        if not isinstance(other, ListSpec) or self.dtype is not other.dtype:
            return False
        if not (has_element_shape(self) and has_element_shape(other)):
            return self is other or not has_element_shape(other)
        return self.shape.is_subtype_of(other.shape)

    def on(self, device: Device) -> Any:
        """Itself: lists are on the host."""
        return self

    def __repr__(self) -> str:
        return f"ListSpec(shape={self.shape}, dtype={self.dtype!r})"


def has_element_shape(spec: Spec) -> bool:
    """False for a list in which nothing was stored and that got no element shape."""
    return spec.dims not in (UNKNOWN_SHAPE, UNKNOWN_RANK)


class ResourceSpec(Spec):
    """The handle of a variable that holds a tensor of this dtype and shape."""

    __slots__ = ()

    def __new__(cls, shape: Any, dtype: Any, name: str | None = None) -> ResourceSpec:
        dims = TensorShape(shape).exact
        spec: ResourceSpec = intern_spec(cls, dims, dtypes.as_dtype(dtype), name)
        return spec

    @property
    def element(self) -> TensorSpec:
        return intern_spec(TensorSpec, self.dims, self.dtype, None, self.device)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype!r})"


class BufferSpec(ResourceSpec):
    """The handle of an array of the caller's that a function changes in place. Where the function
    is interrupted the array keeps the changes made so far, while a variable has whole values."""

    __slots__ = ()


def intern_spec(
    cls: Any,
    dims: tuple[Dim, ...],
    dtype: dtypes.DType,
    name: str | None = None,
    device: Device = HOST,
) -> Any:
    key = (cls, dims, dtype.name, name, device)
    found = Spec._table.get(key)
    if found is None:
        spec = object.__new__(cls)
        spec.dims, spec.dtype, spec.name, spec.device = dims, dtype, name, device
        found = Spec._table.setdefault(key, spec)
    return found


# The specs of NumPy arrays by (dtype, shape): one dict lookup for an eager result.
_of_arrays: dict[tuple[Any, tuple[int, ...]], TensorSpec] = {}
_MOST_ARRAY_SPECS = 4096  # 2 MB
clears(_of_arrays.clear)


def array_spec(array: np.ndarray[Any, Any]) -> TensorSpec:
    """The spec of a NumPy array or ListValue; TypeError where a dtype has no equivalent."""
    try:
        key = (array.dtype, array.shape)
    except AttributeError:
        return array.spec  # type: ignore[attr-defined,no-any-return]
    spec = _of_arrays.get(key)
    if spec is None:
        if len(_of_arrays) >= _MOST_ARRAY_SPECS:
            _of_arrays.clear()  # specs in use stay interned in the weak table
        spec = _of_arrays[key] = TensorSpec(array.shape, dtypes.from_numpy(array.dtype))
    return spec


def buffer_spec(buffer: Any, device: Device) -> TensorSpec:
    """The spec of a tensor whose elements are in a buffer of a device."""
    if device is HOST:
        return array_spec(buffer)
    dtype, shape = device.storage.type_of(buffer)
    return intern_spec(TensorSpec, shape, dtypes.from_numpy(dtype), None, device)  # type: ignore[no-any-return]


def spec_text(spec: Spec) -> str:
    """``f32[2, B]``: the form the graph printer uses; ``f32[2, B]@GPU:0`` on another device."""
    dims = ", ".join(str(d) if isinstance(d, int) else repr(d) for d in spec.dims)
    if type(spec) is TensorSpec and not spec.has_rank:
        return f"{spec.dtype.short}{spec.shape}"
    prefix = {ListSpec: "list ", ResourceSpec: "ref ", BufferSpec: "buffer "}.get(type(spec), "")
    place = "" if spec.device is HOST else f"@{spec.device}"
    return f"{prefix}{spec.dtype.short}[{dims}]{place}"


def is_static(spec: Spec) -> bool:
    return not any(isinstance(d, SymbolicDim) for d in spec.dims)
