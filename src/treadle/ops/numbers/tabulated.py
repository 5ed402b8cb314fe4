"""Python values of which there is one for each position of a domain, such as the items of a list
in the iterations of a loop over it.

    value_at([0.1, 0.7, 0.2], iterations)        # a symbolic float
    value_at([(1, a), (2, b)], iterations)       # a tuple of a symbolic int and an array of a table

Numbers that compiled code would round otherwise, as ``math.sin(i)``, are such tables, too: a loop
of the graph then has the bits of the loop that Python runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor, register_weak, to_array
from treadle.ops.numbers.number_tables import Operation
from treadle.ops.numbers.python_numbers import (
    Domain,
    Source,
    ValueNeededError,
    computed,
    is_symbolic_number,
    number_from,
)

_WIDE = {"b": dtypes.bool, "i": dtypes.int64, "u": dtypes.int64, "f": dtypes.float64}
_NUMBERS = (bool, int, float, complex)


def value_at(values: Sequence[Any], domain: Domain) -> Any:
    """What stands for the value at the domain's position.

    Args:
        values: at least one, as many as the domain has positions.

    Raises:
        ValueNeededError: they differ in type, shape or structure, or are objects that differ.
    """
    first = values[0]
    if all(v is first for v in values):
        return first
    kind = type(first)
    if any(type(v) is not kind for v in values):
        raise _refusal("they are of different types")
    if kind in _NUMBERS or issubclass(kind, np.generic):
        return listed(values, domain)
    if kind is np.ndarray:
        return _array_at(values, domain)
    if nest.is_nested(first):
        return _structure_at(values, domain)
    if kind in (str, bytes, type(None)) and all(v == first for v in values):
        return first
    raise _refusal(f"they are different objects of the type {kind.__name__}")


def _refusal(why: str) -> ValueNeededError:
    return ValueNeededError(f"no value stands for all items: {why}{at(user_origin())}")


def _structure_at(values: Sequence[Any], domain: Domain) -> Any:
    try:
        for value in values[1:]:
            nest.assert_same_structure(values[0], value)
    except (TypeError, ValueError):
        raise _refusal("they differ in their structure") from None
    columns = zip(*map(nest.flatten, values), strict=True)
    return nest.pack(values[0], [value_at(column, domain) for column in columns])


# -- numbers -------------------------------------------------------------------------------------


class Listed(Source):
    """A number whose value at each position is known."""

    exact = True

    def __init__(self, values: Sequence[Any], domain: Domain) -> None:
        self.values, self.domain = values, domain

    def tensor(self) -> Tensor:
        assert self.values is not None and self.domain is not None
        table = convert_to_tensor(list(self.values), _wide(type(self.values[0])))
        return _read(table, self.domain)


def _read(table: Tensor, domain: Domain) -> Tensor:
    return table[domain.position()]


def listed(values: Sequence[Any], domain: Domain) -> Any:
    """The number that has these values, all of one type, in its simplest form."""
    first = values[0]
    if all(same_bits(v, first) for v in values):
        return first
    if type(first) is int:
        step = values[1] - first
        if all(v == first + k * step for k, v in enumerate(values)):
            return first + domain.number() * step
    ends = (min(values), max(values)) if isinstance(first, int) else None
    return number_from(Listed(values, domain), type(first), ends)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two numbers are one: 0.0 is not -0.0, NaN is NaN, 1 is not 1.0."""
    return type(a) is type(b) and (a is b or repr(a) == repr(b))


# -- arrays --------------------------------------------------------------------------------------


def _array_at(values: Sequence[NDArray], domain: Domain) -> Any:
    first = values[0]
    if any(v.shape != first.shape or v.dtype != first.dtype for v in values):
        raise _refusal("they are arrays of different shapes or dtypes")
    if first.dtype.kind not in "biufc":
        raise _refusal(f"they are arrays of dtype {first.dtype}")
    return TabulatedArray(np.stack(values), domain)


class TabulatedArray:
    """A NumPy array of which there is one for each position of a domain.

    It has what tells the same at every position (shape, dtype), its elements and parts, and is
    computed with as NumPy does. Between tensors it takes their dtype, as arrays do. Anything else
    raises a `ValueNeededError`.

    Attributes:
        table: the arrays, stacked.
    """

    __slots__ = ("domain", "table")

    def __init__(self, table: NDArray, domain: Domain) -> None:
        self.table, self.domain = table, domain

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance` takes it for an array."""
        return np.ndarray

    def __repr__(self) -> str:
        return f"<symbolic array of shape {self.shape} and dtype {self.dtype}>"

    shape = property(lambda self: self.table.shape[1:])
    ndim = property(lambda self: self.table.ndim - 1)
    dtype = property(lambda self: self.table.dtype)
    size = property(lambda self: self.table[0].size)

    def __len__(self) -> int:
        return len(self.table[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return value_at([part[key] for part in self.table], self.domain)

    def at(self, position: int) -> NDArray:
        """The array at a position."""
        return self.table[position]  # type: ignore[no-any-return]

    def tensor(self, dtype: DType | None) -> Tensor:
        """The array when the program runs."""
        return _read(convert_to_tensor(to_array(self.table, dtype)), self.domain)

    def needed(self, use: str) -> ValueNeededError:
        return ValueNeededError(
            f"An array that is only known when the program runs cannot be {use}{at(user_origin())}"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise self.needed(f"given to np.{ufunc.__name__}")
        return tabulated_ufunc(ufunc, inputs)

    def __getattr__(self, name: str) -> NoReturn:
        raise self.needed(f"asked for .{name}")

    def __bool__(self) -> bool:
        raise self.needed("used as a Python condition")

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise self.needed("read")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise self.needed(f"given to np.{function.__name__}")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise self.needed("changed")

    def __contains__(self, item: Any) -> bool:
        raise self.needed("searched")

    def __reduce__(self) -> Any:
        raise self.needed("copied or pickled")

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.ndarray'")


def tabulated_ufunc(ufunc: Any, inputs: Sequence[Any]) -> Any:
    """``ufunc(*inputs)`` of numbers and arrays, some of them with a value for each position.

    Raises:
        ValueNeededError: others are among them, or the values are not known.
    """
    first = next(x for x in inputs if type(x) is TabulatedArray or is_symbolic_number(x))
    domains = [first.domain] if type(first) is TabulatedArray else first.domains()
    parts = [_everywhere(x, domains[0]) if len(domains) == 1 else None for x in inputs]
    if any(p is None for p in parts) or ufunc.nout != 1:
        raise first.needed(f"combined with an array by np.{ufunc.__name__}")
    made = [ufunc(*together) for together in zip(*parts, strict=True)]
    return value_at(made, domains[0])


def _everywhere(value: Any, domain: Domain) -> Sequence[Any] | None:
    """The value at each position; None where it is not known."""
    if type(value) is TabulatedArray:
        return list(value.table) if value.domain is domain else None
    if is_symbolic_number(value):
        return value.values() if value.domains() == [domain] else None
    plain = type(value) in _NUMBERS or isinstance(value, np.ndarray | np.generic | slice)
    return [value] * domain.size if plain else None


register_weak(TabulatedArray, TabulatedArray.tensor)


def _installed(name: str, ufunc: Any, unary: bool = False) -> None:
    def plain(self: TabulatedArray, other: Any) -> Any:
        return ufunc(self, other) if _is_numpys(other) else NotImplemented

    def reflected(self: TabulatedArray, other: Any) -> Any:
        return ufunc(other, self) if _is_numpys(other) else NotImplemented

    if unary:
        setattr(TabulatedArray, f"__{name}__", lambda self: ufunc(self))
        return
    setattr(TabulatedArray, f"__{name}__", plain)
    if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(TabulatedArray, f"__r{name}__", reflected)


def _is_numpys(value: Any) -> bool:
    """Whether NumPy computes with it; tensors do so by their own operators."""
    return isinstance(value, (*_NUMBERS, np.ndarray, np.generic))


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}.items():  # fmt: skip
    _installed(_name, _ufunc)
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute,
                      "invert": np.invert}.items():  # fmt: skip
    _installed(_name, _ufunc, unary=True)


# -- elements of Python's sequences --------------------------------------------------------------


def element_at(sequence: Any, key: Any) -> Any:
    """``sequence[key]`` of an array, list or tuple at symbolic Python ints.

    Raises:
        IndexError: it may lie outside.
        ValueNeededError: the elements are not alike.
    """
    keys = key if isinstance(key, tuple) else (key,)
    kind = _kind_of_elements(sequence, keys)
    if kind is not None:
        return computed(_reading(sequence, kind), keys, kind)
    symbolic = [k for k in keys if is_symbolic_number(k)]
    domains = {id(d): d for k in symbolic for d in k.domains()}
    if len(domains) != 1 or any(k.values() is None for k in symbolic):
        raise symbolic[0].needed("used as a Python index or size")
    (domain,) = domains.values()
    columns = [_everywhere(k, domain) for k in keys]
    places = zip(*columns, strict=True)
    return value_at([sequence[p if isinstance(key, tuple) else p[0]] for p in places], domain)


def _kind_of_elements(sequence: Any, keys: Sequence[Any]) -> type | None:
    """The type of what is read, where it is always a number of one type."""
    if isinstance(sequence, np.ndarray):
        whole = len(keys) == sequence.ndim and all(isinstance(k, int) for k in keys)
        return sequence.dtype.type if whole and sequence.dtype.kind in "biufc" else None
    kind = type(sequence[0]) if len(sequence) and len(keys) == 1 else None
    alike = kind in _NUMBERS and all(type(v) is kind for v in sequence)
    return kind if alike else None


def _reading(sequence: Any, kind: type) -> Operation:
    held = sequence.copy() if isinstance(sequence, np.ndarray) else tuple(sequence)

    def python(*places: int) -> Any:
        return held[places] if isinstance(held, np.ndarray) else held[places[0]]

    def build(*places: Any) -> Tensor:
        table = convert_to_tensor(to_array(np.asarray(held), _wide(kind)))
        return table[places]

    return Operation(f"element of {id(held)}", python, build)


def _wide(kind: type) -> DType:
    return _WIDE.get(np.dtype(kind).kind, dtypes.complex128)
