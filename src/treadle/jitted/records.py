"""Arrays of records: NumPy's structured arrays while a jitted function is traced.

The graph has no elements of several fields. An array of records is an array for each field, of the
same length: of an argument these are the fields' views of the caller's memory, which the program
reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import (
    Array,
    Grouped,
    Scalar,
    index_items,
    is_index_array,
)
from treadle.jitted.views import joined


class Records(Grouped):
    """An array of records.

    Attributes:
        dtype: with the names of the fields.
        fields: for each name its elements: ndarrays outside of a trace, `Array` inside, `Records`
            for a field of records.
    """

    __slots__ = ("dtype", "fields")

    def __init__(self, dtype: np.dtype[Any], fields: Sequence[Any]) -> None:
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "fields", list(fields))

    @classmethod
    def made(cls, dtype: np.dtype[Any], shape: Any, maker: Callable[..., Any]) -> Records:
        """Fields that `maker(shape, dtype)` makes."""
        sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        return cls(
            dtype, [cls._field(dtype[i], sizes, maker) for i in range(len(dtype.names or ()))]
        )

    @classmethod
    def _field(cls, dtype: np.dtype[Any], sizes: Any, maker: Callable[..., Any]) -> Any:
        base, inner = dtype.subdtype or (dtype, ())
        if base.names:
            return cls.made(base, (*sizes, *inner), maker)
        return maker((*sizes, *inner), base)

    @property
    def names(self) -> tuple[str, ...]:
        return self.dtype.names or ()

    @property
    def dims(self) -> tuple[Any, ...]:
        """The dims of the array: those of a field without what each element has."""
        first, inner = self.fields[0], self.dtype[0].shape
        dims = first.dims if isinstance(first, Array | Records) else first.shape
        return tuple(dims[: len(dims) - len(inner)])

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.fields[0].shape[: self.ndim])

    @property
    def size(self) -> Any:
        found: Any = 1
        for size in self.shape:
            found = size * found
        return found

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def __len__(self) -> int:
        return len(self.fields[0])

    def __repr__(self) -> str:
        return f"<traced ndarray of records ({', '.join(self.names)})>"

    # -- fields ------------------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """The elements of a field."""
        if name not in self.names:
            raise ValueError(f"no field of name {name}{at(user_origin())}")
        return self.fields[self.names.index(name)]

    def __getattr__(self, name: str) -> Any:
        if name in self.names:
            return self[name]
        if hasattr(np.recarray, name):
            raise AttributeError(
                f"ndarray.{name} of an array of records is not supported in jitted functions: use "
                f"its fields{at(user_origin())}"
            )
        raise AttributeError(f"'numpy.recarray' object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.names:
            raise AttributeError(f"records have no field {name!r}{at(user_origin())}")
        self[name] = value

    # -- items -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.field(key)
        if isinstance(key, list) and key and all(isinstance(k, str) for k in key):
            return Records(self.dtype[key], [self.field(k) for k in key])
        items = index_items(key)
        positions = [
            i for i in items if not isinstance(i, slice) and i is not None and i is not Ellipsis
        ]
        if any(is_index_array(i) for i in items):
            return Records(self.dtype, [f[key] for f in self.fields])
        kind = Record if len(positions) == len(items) == self.ndim else Records
        return kind(self.dtype, [_part(f, key, items) for f in self.fields])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self._assign(self.field(key), ..., value)
            return
        for field, part in zip(self.fields, self._parts(value), strict=True):
            self._assign(field, key, part)

    def _assign(self, field: Any, key: Any, value: Any) -> None:
        field[key] = value

    def _parts(self, value: Any) -> Sequence[Any]:
        """What each field is assigned."""
        if isinstance(value, Records):
            return list(value.fields)
        if isinstance(value, np.ndarray | np.void) and value.dtype.names:
            return [value[name] for name in value.dtype.names]
        if isinstance(value, tuple):
            if len(value) != len(self.fields):
                raise ValueError(
                    f"could not assign tuple of length {len(value)} to structure with "
                    f"{len(self.fields)} fields.{at(user_origin())}"
                )
            return value
        return [value] * len(self.fields)

    def copy(self, order: str = "C") -> Records:
        return type(self)(self.dtype, [f.copy() for f in self.fields])

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "NumPy's functions take no arrays of records in jitted functions: use the fields, "
            f"records['{self.names[0]}']{at(user_origin())}"
        )


class Record(Records):
    """One record of an array, which shows its fields: reading one gives a NumPy scalar."""

    __slots__ = ()

    def field(self, name: str) -> Any:
        found = super().field(name)
        is_scalar = isinstance(found, Array) and not found.ndim
        return Scalar(found.tensor) if is_scalar else found

    def __getitem__(self, key: Any) -> Any:
        if type(key) is int:
            return self.field(self.names[key])
        if isinstance(key, str):
            return self.field(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        number = self.names.index(key) if isinstance(key, str) and key in self.names else key
        if type(number) is not int:
            raise ValueError(f"no field of name {key}{at(user_origin())}")
        self._assign(self.fields[number], ..., value)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Any:
        return (self.field(name) for name in self.names)

    def item(self) -> tuple[Any, ...]:
        """The fields as Python numbers."""
        return tuple(self.field(name).item() for name in self.names)

    tolist = item

    def __repr__(self) -> str:
        return f"<traced record ({', '.join(self.names)})>"


def _part(field: Any, key: Any, items: tuple[Any, ...]) -> Any:
    """A view of a field."""
    if isinstance(field, Array):
        return Array(field.storage, joined(field.views, items))
    return field[key]


# -- between records and NumPy's arrays ----------------------------------------------------------


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has fields that the graph can hold."""
    if not dtype.names:
        return False
    bases = [(dtype[i].subdtype or (dtype[i], ()))[0] for i in range(len(dtype.names or ()))]
    return all(is_supported(b) if b.names else _is_plain(b) for b in bases)


def _is_plain(dtype: np.dtype[Any]) -> bool:
    try:
        return dtypes.as_dtype(dtype) is not dtypes.string
    except TypeError:
        return False


def are_records(value: Any) -> bool:
    """Whether a value is an ndarray of records, or a record, that the graph can hold."""
    return isinstance(value, np.ndarray | np.void) and is_supported(value.dtype)


def split(value: Any) -> Any:
    """An ndarray of records with its fields apart; other values as they are."""
    if not are_records(value):
        return value
    kind = Record if isinstance(value, np.void) else Records
    array = np.asarray(value) if isinstance(value, np.void) else value.view(np.ndarray)
    fields = [array[name] for name in value.dtype.names]
    return kind(value.dtype, [split(f) for f in fields])


def together(value: Any) -> Any:
    """A structure in which ndarrays of records stand in the place of their fields."""
    if type(value) in (list, tuple):
        return type(value)(together(v) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(together(v) for v in value))
    if type(value) is dict:
        return {k: together(v) for k, v in value.items()}
    return _ndarray_of(value) if isinstance(value, Records) else value


def _ndarray_of(records: Records) -> Any:
    """The ndarray that the fields are of, where they all are of one; else a new one."""
    fields = [_ndarray_of(f) if isinstance(f, Records) else f for f in records.fields]
    owner = getattr(fields[0], "base", None)
    if not isinstance(records, Record) and _is_whole(owner, records, fields):
        return owner
    inner = records.dtype[0].shape
    shape = np.shape(fields[0])
    made = np.empty(shape[: len(shape) - len(inner)], records.dtype)
    for name, field in zip(records.names, fields, strict=True):
        made[name] = field
    return made[()] if isinstance(records, Record) else made


def _is_whole(owner: Any, records: Records, fields: Sequence[Any]) -> bool:
    """Whether `fields` are the fields of an array."""
    if not isinstance(owner, np.ndarray) or owner.dtype != records.dtype:
        return False
    return all(_is_same(owner[n], f) for n, f in zip(records.names, fields, strict=True))


def _is_same(a: Any, b: Any) -> bool:
    first, second = a.__array_interface__, b.__array_interface__
    return all(first[k] == second[k] for k in ("data", "shape", "strides", "typestr"))


def has_records(structure: Any) -> bool:
    """Whether there are records in a structure of lists, tuples and dicts."""
    if isinstance(structure, Records):
        return True
    if isinstance(structure, list | tuple):
        return any(map(has_records, structure))
    return isinstance(structure, dict) and any(map(has_records, structure.values()))


for _kind in (Records, Record):
    nest.register_node(
        _kind,
        lambda value: list(value.fields),
        lambda like, fields: type(like)(like.dtype, fields),
        lambda value: value.dtype,
        composite=False,
    )
