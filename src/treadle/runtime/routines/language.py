"""The names that routines are written with, for the type checker and for readers.

`compiler.py` gives them their meaning; the functions here are what it is when Python runs a
routine.
"""

from __future__ import annotations

import math
from typing import Any, Generic, TypeAlias, TypeVar

_Element = TypeVar("_Element")


class Array(Generic[_Element]):
    """An address of elements of one type: ``a[i]`` is read and written, unchecked."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError


# An array none of whose elements are reached through another parameter of the function, which lets
# its loops use vectors.
Apart: TypeAlias = Array[_Element]


# What a routine is compiled for (`RowCall.names`).
T: TypeAlias = Any  # the type of its elements
R: TypeAlias = Any  # the type of results, where it differs
K: TypeAlias = Any  # the unsigned integers of their size
I: TypeAlias = Any  # of positions  # noqa: E741
BITS: int = 64  # of an element
FLOATING: bool = True  # whether elements are floats
SIGNED: bool = True  # whether they are signed integers
DESCENDING: bool = False
QUIET: int = 0  # the bits of NaN
LANES: int = 8  # rows that are worked on side by side
RIGHT: bool = False
LOWER: bool = True  # which triangle of a matrix is read
DIGITS: int = 52  # bits of its elements' fractions
WHOLE: bool = False  # whether results are integers
PAD = 16  # rows in the workspace are padded to so many elements

# Types of numbers.
i8: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u8: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
f32: TypeAlias = float
f64: TypeAlias = Any  # not float: what arrays and functions give has no type here


def lanes(count: int) -> range:
    """A range of which all iterations may be done at once, by vectors."""
    return range(count)


def singly(*bounds: int) -> range:
    """A range of which no iterations are done at once: vectors would gather and scatter."""
    return range(*bounds)


def local(element: Any, count: int) -> Any:
    """An array of a known number of elements that lives as long as the call."""
    return [element(0)] * count


def at(array: Any, index: int) -> Any:
    """The address of ``array[index]``."""
    return array[index:]


def view(array: Any, element: Any) -> Any:
    """The same address, of elements of another type."""
    return array.view(element)


def bits(value: Any, kind: Any) -> Any:
    """The number of another type of the same size that has the same bits."""
    return value.view(kind)


def select(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; both are computed, and nothing is jumped over."""
    return a if condition else b


def sqrt(x: Any) -> Any:
    """The square root, rounded once."""
    return math.sqrt(x)


def floor(x: Any) -> Any:
    """The largest whole number that is not above `x`."""
    return math.floor(x)


def ceil(x: Any) -> Any:
    """The smallest whole number that is not below `x`."""
    return math.ceil(x)


def exp(x: Any) -> Any:
    """The exponential function; this and those below are the program's own."""
    return math.exp(x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return math.log(x)


def log1p(x: Any) -> Any:
    """The natural logarithm of ``1 + x``."""
    return math.log1p(x)


def sin(x: Any) -> Any:
    """The sine."""
    return math.sin(x)


def cos(x: Any) -> Any:
    """The cosine."""
    return math.cos(x)


def copysign(x: Any, sign: Any) -> Any:
    """`x` with the sign of another number."""
    return math.copysign(x, sign)


def isnan(x: Any) -> bool:
    """Whether a float is not a number."""
    return bool(x != x)
