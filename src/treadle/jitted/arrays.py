"""What stands for NumPy's arrays and scalars while a jitted function is traced.

An `Array` is a storage and the view of it that the array shows: assignments to its items change the
storage, which every other view of it sees. A `Scalar` stands for a NumPy scalar, which NumPy gives
for one element: a value with a dtype that does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.jitted.errors import NotStaged
from treadle.jitted.left import current
from treadle.jitted.storage import Storage, captured_storage
from treadle.jitted.views import (
    Bits,
    ComplexPart,
    Key,
    Permuted,
    Reshaped,
    View,
    joined,
    same_views,
    shows_all,
)  # fmt: skip
from treadle.numpy_staging.dtypes import as_array
from treadle.numpy_staging.functions import named
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.control_flow import cond
from treadle.ops.control.marks import mark
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import complex_numbers
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.logic import logical_and, logical_or
from treadle.ops.elementwise.selection import where as select
from treadle.ops.elementwise.unary import identity
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.indexing.updates import set_item
from treadle.ops.numbers.python_numbers import SymbolicNumber, symbolic_number
from treadle.ops.shaping import reshaping


class Traced:
    """An array or scalar of NumPy's whose elements are only known when the program runs."""

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000.0

    @property
    def tensor(self) -> Tensor:
        """The elements at this point of the trace."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.tensor.dtype.np_dtype

    @property
    def dims(self) -> tuple[Dim, ...]:
        return self.tensor.dims

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(number_of(d) for d in self.dims)

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> Any:
        return number_of(product(self.dims))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self.no_value("read as an ndarray by a function that td.jit does not know")

    def __bool__(self) -> bool:
        raise self.no_value("used as a Python bool outside of converted code")

    def __int__(self) -> int:
        raise self.no_value("converted to a Python int")

    __index__ = __int__

    def __float__(self) -> float:
        raise self.no_value("converted to a Python float")

    def __complex__(self) -> complex:
        raise self.no_value("converted to a Python complex")

    def __format__(self, spec: str) -> str:
        told = mark(self, spec)
        if told is None:
            raise self.no_value("written as text")
        return told

    def __str__(self) -> str:
        return format(self)

    def no_value(self, use: str) -> TypeError:
        """The error for a use that needs the elements during the trace."""
        return ConcreteValueError(f"{self!r} has no value while it is traced: it is {use}"
                                  f"{at(user_origin())}")  # fmt: skip

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: 'numpy.{type(self).__name__.lower()}'")


class TracedSequence:
    """A list whose elements are only known when the program runs."""

    __slots__ = ()
    __array_priority__ = 1000.0

    @property
    def length(self) -> Any:
        """The number of elements, a Python int or a symbolic one."""
        raise NotImplementedError

    def at(self, index: Any) -> Any:
        """The element at a position."""
        raise NotImplementedError

    def array(self) -> Array:
        """``np.array`` of it."""
        raise NotImplementedError

    def copy(self) -> Any:
        """A list with the same elements."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        """The elements are values, but for lists (`pools`)."""
        holder = getattr(self, "values_", self)
        if getattr(getattr(holder, "template", None), "pool", None) is not None:
            raise NotStaged(
                f"copy.deepcopy of a list or dict that has lists in it: copy them one by one, "
                f"[row[:] for row in rows]{at(user_origin())}"
            )
        return self.copy()

    def own_copy(self) -> Any:
        """What a branch changes in place of it."""
        return self

    def listed(self) -> Any:
        """The list of its elements."""
        return self

    def readable(self) -> Any:
        """A part of a result."""
        return self


class Indirect:
    """Stands for a value that is asked for, which may add something to the program."""

    __slots__ = ()
    __array_ufunc__ = None

    def get(self) -> Any:
        """The value."""
        raise NotImplementedError


class Grouped:
    """Several arrays that are one value to the user."""

    __slots__ = ()
    __array_ufunc__ = None


def direct(value: Any) -> Any:
    """The value that one of a variable stands for."""
    return value.get() if isinstance(value, Indirect) else current(value)


class ConcreteValueError(TypeError):
    """Python needs a value that is only known when the program runs."""


class Scalar(Traced):
    """A NumPy scalar: one element with a dtype."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def tensor(self) -> Tensor:
        return self._tensor

    def __repr__(self) -> str:
        return f"<traced np.{self.dtype.name}>"

    def __getitem__(self, key: Any) -> Any:
        if key == () or key is Ellipsis:
            return self
        raise IndexError(f"invalid index to scalar variable.{at(user_origin())}")

    @property
    def real(self) -> Any:
        return Scalar(complex_numbers.real(self.tensor)) if self.tensor.dtype.is_complex else self

    @property
    def imag(self) -> Any:
        return Scalar(complex_numbers.imag(self.tensor))

    def item(self, *args: Any) -> Any:
        return as_number(self)

    tolist = item

    @property
    def T(self) -> Scalar:
        return self

    def copy(self, order: str = "C") -> Scalar:
        return self

    def transpose(self, *axes: Any) -> Scalar:
        return self

    def squeeze(self, axis: Any = None) -> Scalar:
        return self

    def astype(self, dtype: Any, **options: Any) -> Scalar:
        return Scalar(cast(self.tensor, dtypes.as_dtype(np.dtype(dtype))))

    def view(self, dtype: Any) -> Scalar:
        return Scalar(Bits(self.tensor.dtype, dtype).read(self.tensor))

    def is_integer(self) -> Any:
        return as_number(self).is_integer()

    def reshape(self, *shape: Any, **named: Any) -> Array:
        return Array(Storage(self.tensor)).reshape(*shape, **named)

    def ravel(self, order: str = "C") -> Array:
        return self.reshape(1)

    flatten = ravel


class Array(Traced):
    """An ndarray: a storage and the steps from its tensor to the elements that the array shows."""

    __slots__ = ("_read", "storage", "views")

    def __init__(self, storage: Storage, views: tuple[View, ...] = ()) -> None:
        self.storage = storage
        self.views = views
        self._read: tuple[Tensor, Tensor] | None = None  # the storage's, the view's

    @property
    def tensor(self) -> Tensor:
        whole = self.storage.tensor
        if not self.views:
            return whole
        known = self._read
        if known is not None and known[0] is whole and known[1].recorder is context.recorder:  # type: ignore[attr-defined]
            return known[1]
        part = whole
        for view in self.views:
            part = view.read(part)
        self._read = (whole, part)
        return part

    def write(self, tensor: Tensor) -> None:
        """Replace all elements that the array shows by a tensor of its shape and dtype."""
        if not self.views:
            self.storage.write(tensor)
            return
        parts = [self.storage.tensor]
        for view in self.views[:-1]:
            parts.append(view.read(parts[-1]))
        for view, part in zip(reversed(self.views), reversed(parts), strict=True):
            tensor = view.put_back(part, tensor)
        self.storage.write(tensor)

    def viewed(self, *views: View) -> Array:
        """A view of this array."""
        return Array(self.storage, (*self.views, *views))

    @property
    def is_contiguous(self) -> bool:
        """Whether NumPy would have the elements in row order, without gaps."""
        return all(view.keeps_rows() for view in self.views)

    def __repr__(self) -> str:
        shape = ", ".join(str(d) if isinstance(d, int) else "?" for d in self.dims)
        return f"<traced ndarray ({shape}) of {self.dtype.name}>"

    def __len__(self) -> int:
        if not self.dims:
            raise TypeError(f"len() of unsized object{at(user_origin())}")
        size = self.dims[0]
        if not isinstance(size, int):
            raise self.no_value("asked for its len() outside of converted code")
        return size

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # -- items -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        items = index_items(key)
        if any(is_index_array(i) for i in items):
            return wrapped(getitem(self.tensor, items))
        if shows_all(items, self.ndim):
            return Array(self.storage, self.views)
        part = Array(self.storage, joined(self.views, items))
        selects_one = len([i for i in items if i is not None]) == self.ndim and all(
            not isinstance(i, slice) and i is not None and i is not Ellipsis for i in items
        )
        return Scalar(part.tensor) if selects_one else part

    def __setitem__(self, key: Any, value: Any) -> None:
        items = index_items(key)
        self.check_writable()
        element = element_of(value, self.tensor.dtype)
        positions_only = not any(is_index_array(i) for i in items)
        if len(self.views) == 1 and isinstance(self.views[0], Key) and positions_only:
            chain = joined(self.views, items)
            if len(chain) == 1:
                assert isinstance(chain[0], Key)
                whole = self.storage.tensor
                self.storage.write(set_item(whole, chain[0].key, element))
                return
        self.write(set_item(self.tensor, tuple(items), element))

    def check_writable(self) -> None:
        """Raise ValueError for an argument that is read-only."""

    # -- views -------------------------------------------------------------------------------

    @property
    def T(self) -> Array:
        return self.permuted(range(self.ndim)[::-1]) if self.ndim > 1 else self

    def permuted(self, perm: Sequence[int]) -> Array:
        """A view with the axes in another order."""
        last = self.views[-1] if self.views else None
        if isinstance(last, Permuted):
            both = [last.perm[i] for i in perm]
            kept = Array(self.storage, self.views[:-1])
            return kept if both == sorted(both) else kept.viewed(Permuted(both))
        return self.viewed(Permuted(perm))

    def transpose(self, *axes: Any, **named: Any) -> Array:
        axes = tuple(named.values()) or axes  # np.transpose(a, axes=...)
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
            axes = tuple(axes[0] or ())
        perm = [normalize_axis(int(a), self.ndim) for a in axes] or range(self.ndim)[::-1]
        return self.permuted(list(perm))

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        perm = list(range(self.ndim))
        a, b = (normalize_axis(x, self.ndim) for x in (axis1, axis2))
        perm[a], perm[b] = perm[b], perm[a]
        return self.permuted(perm)

    def reshape(self, *shape: Any, order: str = "C", **named: Any) -> Array:
        shape = tuple(named.values()) if named else shape  # np.reshape(a, shape=...)
        wanted: Any = shape[0] if len(shape) == 1 else shape
        wanted = wanted if isinstance(wanted, tuple | list) else (wanted,)
        if order == "F":  # the axes, and so the elements, the other way round
            return self.T.reshape(tuple(wanted)[::-1]).T
        if order != "C" and not self.is_contiguous:
            raise TypeError(
                f"order={order!r} of an array that is not contiguous: use 'C' or 'F'"
                f"{at(user_origin())}"
            )
        made = reshaping.reshape(self.tensor, [unwrapped(d) for d in wanted])
        if made.dims == self.dims:
            return Array(self.storage, self.views)
        if self.is_contiguous:
            return self.viewed(Reshaped(made.dims))
        return Array(Storage(made))

    def ravel(self, order: str = "C") -> Array:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Array:
        return self.reshape(-1, order=order).copy()

    def squeeze(self, axis: Any = None) -> Array:
        return self.viewed(Reshaped(reshaping.squeeze(self.tensor, axis).dims))

    def view(self, dtype: Any = None) -> Array:
        """The same memory, read as another dtype where one is given: of the same size."""
        return self.viewed() if dtype is None else self.viewed(Bits(self.tensor.dtype, dtype))

    @property
    def real(self) -> Array:
        return self.viewed(ComplexPart(True)) if self.tensor.dtype.is_complex else self

    @property
    def imag(self) -> Array:
        if self.tensor.dtype.is_complex:
            return self.viewed(ComplexPart(False))
        return Array(Storage(complex_numbers.imag(self.tensor)))

    @property
    def flat(self) -> Array:
        return self.reshape(-1)

    # -- copies and changes of the whole -----------------------------------------------------

    def copy(self, order: str = "C") -> Array:
        return Array(Storage(identity(self.tensor)))

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def astype(self, dtype: Any, copy: bool = True, **options: Any) -> Array:
        wanted = dtypes.as_dtype(np.dtype(dtype))
        if not copy and wanted is self.tensor.dtype:
            return self
        return Array(Storage(cast(self.tensor, wanted)))

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        self.write(named("sort")(self.tensor, axis))

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Sorted, which is one of the orders that NumPy may leave."""
        self.sort(axis)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        self.reshape(-1)[indices] = values

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Any:
        return wrapped(named("choose")(self.tensor, unwrapped(choices)))

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis, where they are in row order."""
        sizes = [d for d in self.dims if isinstance(d, int)]
        if len(sizes) < self.ndim or not self.is_contiguous:
            raise self.no_value("asked for its strides, which are the compiler's affair")
        steps = [self.itemsize]
        for size in sizes[:0:-1]:
            steps.append(steps[-1] * size)
        return tuple(steps[::-1][len(steps) - self.ndim :])

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.ndarray, name):
            raise AttributeError(
                f"ndarray.{name} is not supported in jitted functions{at(user_origin())}"
            )
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def item(self, *args: Any) -> Any:
        if not args:
            return as_number(Scalar(self.reshape(()).tensor))
        flat = self.reshape(-1) if len(args) == 1 and isinstance(args[0], int) else self
        key = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        return as_number(flat[key])

    def set_shape(self, shape: Any) -> None:
        """``a.shape = shape``: this array, and not other views of its storage, has the shape."""
        self.views = self.reshape(shape).views if self.is_contiguous else self._no_shape(shape)

    def _no_shape(self, shape: Any) -> NoReturn:
        raise AttributeError(
            "Incompatible shape for in-place modification: the array's elements are not "
            f"contiguous. Use .reshape() to make a copy{at(user_origin())}"
        )

    def itemset(self, *args: Any) -> None:
        raise AttributeError(f"itemset was removed from ndarray in NumPy 2.0{at(user_origin())}")

    def tolist(self) -> Any:
        if not self.ndim:
            return self.item()
        return [row.tolist() if self.ndim > 1 else as_number(row) for row in self]


class Flags:
    """``x.flags`` of an array of the program, whose elements lie in row order where it is no view:
    of an argument too, which the program gets so."""

    def __init__(self, array: Array) -> None:
        self.c_contiguous = self.contiguous = array.is_contiguous or array.ndim == 0
        turned = array.T
        self.f_contiguous = turned.is_contiguous if array.ndim > 1 else self.c_contiguous
        self.forc = self.c_contiguous or self.f_contiguous
        self.fnc = self.f_contiguous and not self.c_contiguous
        self.writeable = self.aligned = True
        self.owndata = not array.views

    def __getitem__(self, name: str) -> bool:
        found: bool = getattr(self, name.lower())
        return found


class ChosenStorage(Storage):
    """The elements of one of several arrays, or elements of its own: which, only the run knows.

    A variable has such a storage after a branch or loop that gave it one of several arrays. A write
    to it goes to the array that it turns out to be.

    Args:
        tensor: the elements that were chosen.
        options: the arrays, each with a bool scalar that tells whether it is the chosen one.
        complete: whether it is one of `options` in any case.

    Attributes:
        options: the arrays, none of them one that itself is chosen from several.
        own: the elements where it is none of them.
    """

    __slots__ = ("_merged", "_read", "complete", "options", "own")

    def __init__(
        self, tensor: Tensor, options: Sequence[tuple[Tensor, Array]], complete: bool = False
    ) -> None:
        super().__init__(tensor)
        self.own = Storage(tensor)
        self.complete = complete
        self.options: list[tuple[Tensor, Array]] = []
        for chosen, array in options:
            self._add(chosen, array)
        self._merged = self.marks()
        self._read: tuple[Any, list[Tensor], Tensor] | None = None

    def _add(self, chosen: Tensor, array: Array) -> None:
        inner = array.storage
        if isinstance(inner, ChosenStorage):
            if not inner.complete:
                self._add(chosen, Array(inner.own, array.views))
            for test, option in inner.options:
                self._add(logical_and(chosen, test), option.viewed(*array.views))
            return
        for i, (test, known) in enumerate(self.options):
            if known.storage is inner and same_views(known.views, array.views):
                self.options[i] = logical_or(test, chosen), known
                return
        self.options.append((chosen, array))

    @property
    def held(self) -> Tensor:
        return self.own.held

    def roots(self) -> list[Storage]:
        return [self.own, *(array.storage for _, array in self.options)]

    @property
    def tensor(self) -> Tensor:
        found, now = self.own.tensor, self.marks()
        if unchanged(self._merged, now):
            return found
        if self._read is not None:
            recorder, marks, tensor = self._read
            if recorder is context.recorder and unchanged(marks, now):
                return tensor
        for chosen, array in self.options:
            found = picked(chosen, array.tensor, found, self.held)
        self._read = context.recorder, now, found
        return found

    def write(self, tensor: Tensor) -> None:
        for chosen, array in self.options:
            array.write(picked(chosen, tensor, array.tensor, array.tensor))
        self.own.write(tensor)
        self._merged = self.marks()


def picked(chosen: Tensor, a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """`a` or `b`. The chosen one has the shape of `like`; the other one need not."""
    if a.dims == b.dims:
        return select(chosen, a, b)
    picked: Tensor = cond(
        chosen,
        lambda: reshaping.ensure_shape(a, like.dims),
        lambda: reshaping.ensure_shape(b, like.dims),
    )
    return picked


class CopiedStorage(Storage):
    """The storage of a variable after a branch or loop that gave it a part of another array, where
    only the run knows which part: a copy of the elements, right until the part or the variable is
    changed."""

    __slots__ = ("_seen", "sources")

    def __init__(self, tensor: Tensor, sources: Sequence[Storage]) -> None:
        super().__init__(tensor)
        self.sources = [root for source in sources for root in source.roots()]
        self._seen = self._source_marks()

    def _source_marks(self) -> list[Tensor]:
        return [m for source in self.sources for m in source.marks()]

    @property
    def tensor(self) -> Tensor:
        if not unchanged(self._seen, self._source_marks()):
            raise self._refusal()
        return super().tensor

    def write(self, tensor: Tensor) -> None:
        raise self._refusal()

    def _refusal(self) -> TypeError:
        return TypeError(
            "A variable that a branch or loop made a part of an array is used after one of both "
            f"changed: take the part again, or make it a copy with .copy(){at(user_origin())}"
        )


class ListedStorage(CopiedStorage):
    """The elements of one of the arrays in a list that a loop of the graph goes through: to read,
    in an iteration. A body that does more with it needs the array itself."""

    __slots__ = ()

    def _refusal(self) -> TypeError:
        return NotStaged(
            "A loop changes, or keeps beyond an iteration, arrays of a list that it goes through"
            f"{at(user_origin())}"
        )


def check_kept(values: Sequence[Any]) -> None:
    """Called where arrays outlive an iteration, or become elements of a list.

    Raises:
        NotStaged: one is an item of the list that a loop goes through.
    """
    for array in values:
        if isinstance(array, Array):
            for source in (*array.storage.roots(), *getattr(array.storage, "sources", ())):
                if isinstance(source, ListedStorage):
                    source.write(source.held)


def unchanged(before: Sequence[Tensor], now: Sequence[Tensor]) -> bool:
    """Whether two lists of `Storage.marks` are of the same elements."""
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))


# -- between values of NumPy's and tensors -------------------------------------------------------


def wrapped(value: Any) -> Any:
    """A result as NumPy gives it: scalars for rank 0, arrays otherwise, in structures too."""
    if isinstance(value, Tensor):
        return Array(Storage(value)) if value.ndim else Scalar(value)
    if isinstance(value, list | tuple):
        parts = [wrapped(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def unwrapped(value: Any) -> Any:
    """The tensors behind arrays and scalars, in structures too; other values as they are."""
    value = direct(value)
    if isinstance(value, Traced):
        return value.tensor
    if isinstance(value, TracedSequence):
        return value.array().tensor
    if isinstance(value, np.ndarray):  # an attribute of an object, for instance
        return captured_storage(value).tensor
    if type(value) in (list, tuple):
        return type(value)(unwrapped(v) for v in value)
    if isinstance(value, slice):
        return slice(*(unwrapped_bound(b) for b in (value.start, value.stop, value.step)))
    return value


def unwrapped_bound(value: Any) -> Any:
    """A position or bound: an int, None or a scalar tensor."""
    value = direct(value)
    if type(value) is SymbolicNumber:
        return value.tensor()
    if isinstance(value, Traced):
        return value.tensor
    return int(value) if isinstance(value, np.integer) else value


def is_traced(value: Any) -> bool:
    """Whether a value, or one inside a list or tuple, is only known when the program runs."""
    if isinstance(value, list | tuple):
        return any(is_traced(v) for v in value)
    if isinstance(value, slice):
        return any(is_traced(v) for v in (value.start, value.stop, value.step))
    return type(value) is SymbolicNumber or isinstance(value, _OF_THE_RUN)


_OF_THE_RUN = Traced | TracedSequence | Indirect | Grouped


def number_of(dim: Dim) -> Any:
    """A dim as a Python int, symbolic where only the run knows it."""
    if isinstance(dim, int):
        return dim
    return symbolic_number(dims_tensor(dim, dtypes.int64), (0, 2**62))


def as_number(scalar: Any) -> Any:
    """``scalar.item()``: a Python number."""
    scalar = direct(scalar)
    if not isinstance(scalar, Traced):
        return scalar.item() if isinstance(scalar, np.generic) else scalar
    tensor = scalar.tensor
    if tensor.ndim:
        if any(d != 1 for d in tensor.dims):
            raise TypeError(
                f"only arrays of one element convert to Python numbers, not {scalar!r}"
                f"{at(user_origin())}"
            )
        tensor = reshaping.reshape_to(tensor, ())
    wide = {"f": dtypes.float64, "c": dtypes.complex128, "b": dtypes.bool}
    number = cast(tensor, wide.get(tensor.dtype.kind, dtypes.int64))
    is_narrow = tensor.dtype.kind in "iu" and tensor.dtype.size < 8
    return symbolic_number(number, (tensor.dtype.min, tensor.dtype.max) if is_narrow else None)


def element_of(value: Any, dtype: Any) -> Tensor:
    """An assigned value in the array's dtype, as NumPy's ``x[...] = value`` converts it."""
    given = as_array(unwrapped(value))
    if given.dtype.is_complex and not dtype.is_complex:
        raise TypeError(
            f"a {given.dtype.name} value cannot be assigned into an array of {dtype.name}; take "
            f"np.real of it{at(user_origin())}"
        )
    return cast(given, dtype)


def index_items(key: Any) -> tuple[Any, ...]:
    """The entries of an index, with tensors for entries that only the running program knows."""
    items = key if isinstance(key, tuple) else (key,)
    return tuple(_item(i) for i in items)


def _item(item: Any) -> Any:
    if isinstance(item, slice):
        return slice(*(unwrapped_bound(b) for b in (item.start, item.stop, item.step)))
    if isinstance(item, list | TracedSequence) and is_traced(item):
        return as_array(unwrapped(item))
    return unwrapped_bound(item)


def is_index_array(item: Any) -> bool:
    """Whether an entry of an index holds several positions or a mask."""
    if isinstance(item, list | np.ndarray):
        return True
    return isinstance(item, Tensor) and (item.ndim > 0 or item.dtype.is_bool)


def broadcast_to_dims(tensor: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    return tensor if tensor.dims == dims else broadcast_dims(tensor, dims)
