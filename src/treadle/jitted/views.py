"""How an array that is a view reads and writes the storage behind it.

A view is a chain of steps from the storage's tensor to the elements that the view shows. Each step
reads a part of the tensor before it, and puts a new part back into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops.elementwise import complex_numbers
from treadle.ops.elementwise.bitcast import bitcast
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.indexing.transposing import transpose
from treadle.ops.indexing.updates import set_item
from treadle.ops.shaping.reshaping import reshape_to


class Key:
    """``x[key]`` with ints, slices, None and Ellipsis."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def read(self, x: Tensor) -> Tensor:
        return getitem(x, self.key)

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        return set_item(x, self.key, part)

    def same_as(self, other: View) -> bool:
        return isinstance(other, Key) and len(self.key) == len(other.key) and all(
            map(_same_item, self.key, other.key)
        )  # fmt: skip

    def keeps_rows(self) -> bool:
        """Whether the part is contiguous: positions first, then at most one step-1 slice."""
        rest = list(self.key)
        while rest and not isinstance(rest[0], slice) and rest[0] is not None:
            if rest[0] is Ellipsis:
                return len(rest) == 1
            rest.pop(0)
        if rest and isinstance(rest[0], slice) and rest[0].step in (None, 1):
            rest.pop(0)
        return all(isinstance(r, slice) and r == slice(None) for r in rest)


class Permuted:
    """The axes in another order."""

    __slots__ = ("perm",)

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = list(perm)

    def read(self, x: Tensor) -> Tensor:
        return transpose(x, self.perm)

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        return transpose(part, [self.perm.index(i) for i in range(len(self.perm))])

    def same_as(self, other: View) -> bool:
        return isinstance(other, Permuted) and self.perm == other.perm

    def keeps_rows(self) -> bool:
        return False


class Reshaped:
    """The same elements in row order under another shape."""

    __slots__ = ("dims",)

    def __init__(self, dims: Sequence[Dim]) -> None:
        self.dims = tuple(dims)

    def read(self, x: Tensor) -> Tensor:
        return reshape_to(x, self.dims)

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        return reshape_to(part, x.dims)

    def same_as(self, other: View) -> bool:
        return isinstance(other, Reshaped) and self.dims == other.dims

    def keeps_rows(self) -> bool:
        return True


class ComplexPart:
    """The real or imaginary parts of complex elements."""

    __slots__ = ("is_real",)

    def __init__(self, is_real: bool) -> None:
        self.is_real = is_real

    def read(self, x: Tensor) -> Tensor:
        return complex_numbers.real(x) if self.is_real else complex_numbers.imag(x)

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        if self.is_real:
            return complex_numbers.complex(part, complex_numbers.imag(x))
        return complex_numbers.complex(complex_numbers.real(x), part)

    def same_as(self, other: View) -> bool:
        return isinstance(other, ComplexPart) and self.is_real == other.is_real

    def keeps_rows(self) -> bool:
        return False


class Bits:
    """The bits of elements as numbers of another dtype of the same size.

    Raises:
        TypeError: the dtypes have other sizes.
    """

    __slots__ = ("before", "dtype")

    def __init__(self, before: DType, dtype: Any) -> None:
        self.before, self.dtype = before, dtypes.as_dtype(np.dtype(dtype))
        if before.size != self.dtype.size:
            raise TypeError(
                f"view() of {before.name} as {self.dtype.name}: jitted functions see elements as "
                f"others of the same size only{at(user_origin())}"
            )

    def read(self, x: Tensor) -> Tensor:
        return bitcast(x, self.dtype)

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        return bitcast(part, x.dtype)

    def same_as(self, other: View) -> bool:
        return isinstance(other, Bits) and self.dtype is other.dtype

    def keeps_rows(self) -> bool:
        return True


class Positions:
    """The elements at positions in row order, no two of them the same."""

    __slots__ = ("positions",)

    def __init__(self, positions: Tensor) -> None:
        self.positions = positions

    def read(self, x: Tensor) -> Tensor:
        return getitem(reshape_to(x, (product(x.dims),)), (self.positions,))

    def put_back(self, x: Tensor, part: Tensor) -> Tensor:
        flat = reshape_to(x, (product(x.dims),))
        return reshape_to(set_item(flat, (self.positions,), part), x.dims)

    def same_as(self, other: View) -> bool:
        return isinstance(other, Positions) and self.positions is other.positions

    def keeps_rows(self) -> bool:
        return False


View = Key | Permuted | Reshaped | ComplexPart | Bits | Positions


def joined(views: tuple[View, ...], key: tuple[Any, ...]) -> tuple[View, ...]:
    """`views` followed by ``[key]``: positions on the leading axes become part of the last key."""
    last = views[-1] if views else None
    if isinstance(last, Key) and all(_is_position(k) for k in last.key):
        return (*views[:-1], Key((*last.key, *key)))
    return (*views, Key(key))


def same_views(a: Sequence[View], b: Sequence[View]) -> bool:
    """Whether two chains of views show the same elements in the same order."""
    return len(a) == len(b) and all(x is y or x.same_as(y) for x, y in zip(a, b, strict=True))


def shows_all(key: Sequence[Any], rank: int) -> bool:
    """Whether ``x[key]`` is all of x, of a rank, in its shape."""
    slices = [k for k in key if k is not Ellipsis]
    return 0 < rank >= len(slices) and all(_same_item(k, slice(None)) for k in slices)


def _same_item(a: Any, b: Any) -> bool:
    """Whether two entries of an index are one; a tensor is only the same as itself."""
    if isinstance(a, slice) and isinstance(b, slice):
        return all(map(_same_item, _parts(a), _parts(b)))
    return a is b or (type(a) is type(b) is int and bool(a == b))


def _is_position(item: Any) -> bool:
    return not isinstance(item, slice) and item is not None and item is not Ellipsis


def is_constant(view: View) -> bool:
    """Whether a view is the same in every call and iteration, so that NumPy can show it too."""
    if isinstance(view, Key):
        return not view_tensors(view)
    if isinstance(view, Reshaped):
        return all(isinstance(d, int) for d in view.dims)
    return isinstance(view, Permuted)


def view_tensors(view: View) -> list[Any]:
    """The positions and bounds of a view that only the run knows."""
    if isinstance(view, Positions):
        return [view.positions]
    if not isinstance(view, Key):
        return []
    return [x for k in view.key for x in _parts(k) if isinstance(x, Tensor)]


def _parts(item: Any) -> list[Any]:
    return [item.start, item.stop, item.step] if isinstance(item, slice) else [item]
