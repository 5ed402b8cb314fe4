"""NumPy's functions that give views of an array or change it in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.jitted.arrays import Array, element_of, unwrapped, wrapped
from treadle.jitted.operations import call_function
from treadle.jitted.scatter import positions_along
from treadle.jitted.views import Permuted, Reshaped
from treadle.numpy_staging.dtypes import as_array
from treadle.numpy_staging.functions import named
from treadle.numpy_staging.reductions import flat
from treadle.ops.axes import normalize_axis
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import mod
from treadle.ops.elementwise.selection import where as select
from treadle.ops.indexing.gather import gather
from treadle.ops.shaping import ranges
from treadle.ops.shaping.reshaping import reshape_to


def _view(name: str, func: Any) -> Callable[..., Any]:
    """A function that has a method of the same name, which gives a view."""

    def call(a: Any, *args: Any, **options: Any) -> Any:
        if isinstance(a, Array):
            return getattr(a, name)(*args, **options)
        return call_function(func, (a, *args), options)

    call.__name__ = name
    return call


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    if not isinstance(a, Array):
        return call_function(np.moveaxis, (a, source, destination), {})
    moved, places = (
        [normalize_axis(x, a.ndim) for x in (v if isinstance(v, tuple | list) else (v,))]
        for v in (source, destination)
    )
    perm = [i for i in range(a.ndim) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        perm.insert(place, axis)
    return a.viewed(Permuted(perm))


def expand_dims(a: Any, axis: Any) -> Any:
    if not isinstance(a, Array):
        return call_function(np.expand_dims, (a, axis), {})
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = a.ndim + len(axes)
    new = {normalize_axis(x, rank) for x in axes}
    rest = iter(a.dims)
    return a.viewed(Reshaped([1 if i in new else next(rest) for i in range(rank)]))


def flip(m: Any, axis: Any = None) -> Any:
    if not isinstance(m, Array):
        return call_function(np.flip, (m, axis), {})
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    turned = {normalize_axis(x, m.ndim) for x in axes}
    return m[tuple(slice(None, None, -1) if i in turned else slice(None) for i in range(m.ndim))]


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is True:
        dst[...] = src
        return
    old = dst.tensor
    new = element_of(src, old.dtype)
    dst[...] = select(as_array(unwrapped(where)), new, old)


def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    if wrap or a.ndim != 2:
        raise TypeError(
            f"np.fill_diagonal: matrices without wrap= are supported{at(user_origin())}"
        )
    rows, columns = (ranges.range(unwrapped(d), dtype=dtypes.int64) for d in a.shape)
    here = rows[:, None] == columns[None, :]
    value = element_of(val, a.tensor.dtype)
    if value.ndim == 1:
        value = gather(value, rows)[:, None]
    a[...] = select(here, value, a.tensor)


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    a.reshape(-1)[ind] = v


def place(arr: Array, mask: Any, vals: Any) -> None:
    """The values again and again where the mask is true."""
    where = as_array(unwrapped(mask))
    count = named("count_nonzero")(where)
    rows = flat(element_of(vals, arr.tensor.dtype))
    number = mod(ranges.range(count), dims_tensor(rows.dims[0], count.dtype))
    arr[wrapped(where)] = wrapped(gather(rows, number))


def putmask(a: Array, mask: Any, values: Any) -> None:
    """The values at the positions where the mask is true, again and again."""
    old = a.tensor
    rows = flat(element_of(values, old.dtype))
    size = dims_tensor(product(old.dims), dtypes.int64)
    number = mod(ranges.range(size), dims_tensor(rows.dims[0], dtypes.int64))
    new = reshape_to(gather(rows, number), old.dims)
    a[...] = wrapped(select(as_array(unwrapped(mask)), new, old))


def put_along_axis(arr: Array, indices: Any, values: Any, axis: int) -> None:
    arr[positions_along(arr, indices, axis)] = values


def shape(a: Any) -> tuple[Any, ...]:
    if isinstance(a, Array):
        return a.shape
    return tuple(getattr(as_array(unwrapped(a)), "dims", ()))


def ndim(a: Any) -> int:
    return a.ndim if hasattr(a, "ndim") else int(as_array(unwrapped(a)).ndim)


def size(a: Any, axis: Any = None) -> Any:
    dims = shape(a)
    if axis is not None:
        return dims[axis]
    total: Any = 1
    for d in dims:
        total = total * d
    return total


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.transpose: _view("transpose", np.transpose), np.reshape: _view("reshape", np.reshape),
    np.ravel: _view("ravel", np.ravel), np.swapaxes: _view("swapaxes", np.swapaxes),
    np.squeeze: _view("squeeze", np.squeeze), np.real: _view("real_part", np.real),
    np.moveaxis: moveaxis, np.expand_dims: expand_dims, np.flip: flip,
    np.flipud: lambda m: flip(m, 0), np.fliplr: lambda m: flip(m, 1), np.copyto: copyto,
    np.fill_diagonal: fill_diagonal, np.put: put, np.put_along_axis: put_along_axis,
    np.place: place, np.putmask: putmask, np.shape: shape, np.ndim: ndim, np.size: size,
}  # fmt: skip
del FUNCTIONS[np.real]
