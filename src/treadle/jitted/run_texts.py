"""Texts whose characters only the run knows: ``str(n)`` of an int.

A `RunText` has the numbers of its characters in an array, a `RunChar` the number of one character.
They are what Python's texts are for the functions and methods that programs use on digits; lists,
dicts and sets of the graph hold characters. In a result they are texts of Python's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted import text_functions
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    TracedSequence,
    as_number,
    direct,
    is_traced,
    number_of,
)
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.forms import NUMBER, Form
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.storage import Storage
from treadle.jitted.written import traced
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import SymbolicNumber, symbolic_number
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape_to


class RunText(TracedSequence):
    """A text.

    Attributes:
        codes: the numbers of its characters, an array of int64.
    """

    __slots__ = ("_codes",)

    def __init__(self, codes: Any) -> None:
        self._codes = codes

    @property
    def codes(self) -> Array:
        found: Array = self._codes
        return found

    @property
    def length(self) -> Any:
        return number_of(self.codes.dims[0])

    def at(self, index: Any) -> RunChar:
        return RunChar(as_number(self.codes[index]))

    def array(self) -> Array:
        raise self._refusal("made an array")

    def copy(self) -> Any:
        """``list(text)``."""
        return StackedList(RunChar(None), [Form(NUMBER, dtypes.int64)], [self.codes.copy()])

    def readable(self) -> Any:
        return self

    def __copy__(self) -> RunText:
        return self

    def __deepcopy__(self, memo: Any) -> RunText:
        return self

    def _refusal(self, use: str) -> ConcreteValueError:
        return ConcreteValueError(
            f"A text with numbers that are only known when the program runs is {use}"
            f"{at(user_origin())}"
        )

    def __repr__(self) -> str:
        return "<traced text>"

    def __str__(self) -> str:
        raise self._refusal("written into another text: join them with +")

    def __format__(self, spec: str) -> str:
        raise self._refusal("written into another text: join them with +")

    def __hash__(self) -> int:
        raise self._refusal("used as a key of Python's")

    def __len__(self) -> int:
        size = self.length
        if type(size) is not int:
            raise self._refusal("asked for its length outside of converted code")
        return size

    def __iter__(self) -> Any:
        return (self.at(i) for i in range(len(self)))

    # -- operators -------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        other = _as_text(other)
        if other is None:
            return False
        return traced(text_functions.same, self.codes, other.codes)

    def __ne__(self, other: object) -> Any:
        found = self == other
        return not found if type(found) is bool else found == False  # noqa: E712

    def __lt__(self, other: Any) -> Any:
        return self._less(other, text_functions.less, False)

    def __gt__(self, other: Any) -> Any:
        return self._less(other, text_functions.less, True)

    def __le__(self, other: Any) -> Any:
        return (self > other) == False  # noqa: E712

    def __ge__(self, other: Any) -> Any:
        return (self < other) == False  # noqa: E712

    def _less(self, other: Any, function: Callable[..., Any], turned: bool) -> Any:
        pair = [self.codes, _text(other).codes]
        return traced(function, *(pair[::-1] if turned else pair))

    def __add__(self, other: Any) -> Any:
        other = _as_text(other)
        return NotImplemented if other is None else joined_codes([self, other])

    def __radd__(self, other: Any) -> Any:
        other = _as_text(other)
        return NotImplemented if other is None else joined_codes([other, self])

    def __mul__(self, times: Any) -> Any:
        if type(times) is not int:
            raise self._refusal("repeated a number of times that only the run knows")
        return joined_codes([self] * times) if times > 0 else run_text("")

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return RunText(Array(Storage(self.codes[key].tensor)))
        return self.at(key)

    def __contains__(self, part: Any) -> bool:
        raise self._refusal("searched outside of converted code")

    # -- methods ---------------------------------------------------------------------------------

    def holds(self, part: Any) -> Any:
        """``part in text``."""
        return self.find(part) >= 0

    def find(self, part: Any, start: Any = 0) -> Any:
        return traced(text_functions.position, self.codes, _text(part).codes, start)

    def count(self, part: Any) -> Any:
        part = _text(part)
        if part.length == 0 and type(part.length) is int:
            return self.length + 1
        return traced(text_functions.number_of, self.codes, part.codes)

    def startswith(self, part: Any) -> Any:
        part = _text(part)
        return self[: part.length] == part

    def endswith(self, part: Any) -> Any:
        part = _text(part)
        return self[::-1][: part.length] == part[::-1]

    def isdigit(self) -> Any:
        return traced(text_functions.are_digits, self.codes)

    isdecimal = isnumeric = isdigit

    def zfill(self, width: Any) -> RunText:
        return RunText(traced(text_functions.padded, self.codes, width))

    def strip(self, given: Any = "") -> RunText:
        return self._stripped(given, True, True)

    def lstrip(self, given: Any = "") -> RunText:
        return self._stripped(given, True, False)

    def rstrip(self, given: Any = "") -> RunText:
        return self._stripped(given, False, True)

    def _stripped(self, given: Any, *ends: bool) -> RunText:
        begin, end = traced(text_functions.ends, self.codes, _text(given).codes, *ends)
        made: RunText = self[begin:end]
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        raise self._refusal(f"given to {name}()")


class RunChar(RunText):
    """A text of one character.

    Attributes:
        code: its number, which may be symbolic.
    """

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        self.code = code

    @property
    def codes(self) -> Array:
        return Array(Storage(reshape_to(convert_to_tensor(self.code, dtypes.int64), (1,))))

    @property
    def length(self) -> Any:
        return 1

    def at(self, index: Any) -> RunChar:
        return self

    def __eq__(self, other: object) -> Any:
        if isinstance(other, RunChar):
            return self.code == other.code
        if type(other) is str:
            return self.code == ord(other) if len(other) == 1 else False
        return super().__eq__(other)

    __hash__ = RunText.__hash__

    def _less(self, other: Any, function: Callable[..., Any], turned: bool) -> Any:
        other = _text(other)
        if not isinstance(other, RunChar):
            return super()._less(other, function, turned)
        return other.code < self.code if turned else self.code < other.code

    def isdigit(self) -> Any:
        return (self.code >= 48) & (self.code <= 57)

    isdecimal = isnumeric = isdigit


def _numbers(found: Any) -> bool:
    return isinstance(found, int | np.integer | np.ndarray)


nest.register_node(
    RunText, lambda text: [text.codes],
    lambda like, parts: (
        "".join(map(chr, parts[0].tolist())) if isinstance(parts[0], np.ndarray)
        else RunText(parts[0])
    ),
    lambda text: (), composite=False,
)  # fmt: skip
nest.register_node(
    RunChar, lambda char: [char.code],
    lambda like, parts: (
        chr(int(parts[0])) if type(parts[0]) is not SymbolicNumber and _numbers(parts[0])
        else RunChar(parts[0])
    ),
    lambda char: (), composite=False,
)  # fmt: skip


def is_any_text(value: Any) -> bool:
    return isinstance(value, str | ChosenText | RunText)


def like(value: Any, other: Any) -> Any:
    """A text as one of the run, where `other` is one: a character only where both are."""
    if not isinstance(other, RunText) or not is_any_text(value):
        return value
    made = run_text(value)
    is_char = type(other) is RunChar
    return RunText(made.codes) if type(made) is RunChar and not is_char else made


# -- making and taking -----------------------------------------------------------------------------


def run_text(value: Any) -> RunText:
    """A text as one of the run."""
    if isinstance(value, RunText):
        return value
    if type(value) is str:
        if len(value) == 1:
            return RunChar(ord(value))
        codes = np.array([ord(c) for c in value], np.int64)
        return RunText(Array(Storage(convert_to_tensor(codes))))
    sizes = [len(option) for option in value.options]
    table = np.zeros((len(sizes), max(sizes)), np.int64)
    for row, option in zip(table, value.options, strict=True):
        row[: len(option)] = [ord(c) for c in option]
    row = Array(Storage(convert_to_tensor(table)))[value.number]
    return RunText(Array(Storage(row[: value.of_each(len)].tensor)))


def run_char(value: ChosenText) -> RunChar:
    """One of several characters."""
    return RunChar(value.of_each(ord))


def _as_text(value: Any) -> RunText | None:
    """A text of any kind; None for anything else."""
    value = direct(value)
    return run_text(value) if isinstance(value, str | ChosenText | RunText) else None


def _text(value: Any) -> RunText:
    """
    Raises:
        TypeError: it is no text.
    """
    found = _as_text(value)
    if found is None:
        raise TypeError(f"a text is needed, not {value!r}{at(user_origin())}")
    return found


def joined_codes(texts: list[RunText]) -> RunText:
    parts = [t.codes.tensor for t in texts]
    return RunText(Array(Storage(concat(parts, 0))))


def to_text(value: Any) -> Any:
    """``str(value)``."""
    value = direct(value)
    if isinstance(value, RunText | ChosenText):
        return value
    if type(value) is SymbolicNumber and value.kind is bool:
        return ChosenText(_as_int(value), ("False", "True"))
    whole = type(value) is SymbolicNumber and value.kind is int
    if whole or (is_traced(value) and _is_int_scalar(value)):
        return RunText(traced(text_functions.of_int, as_number(value)))
    return str(value)


def _is_int_scalar(value: Any) -> bool:
    tensor = getattr(value, "tensor", None)
    return isinstance(tensor, Tensor) and not tensor.ndim and tensor.dtype.is_integer


def _as_int(value: Any) -> Any:
    return symbolic_number(cast(value.tensor(), dtypes.int64))


def to_int(text: RunText, base: Any = 10) -> Any:
    """``int(text)``."""
    if base != 10:
        raise ConcreteValueError(f"int() of a text of the run with a base{at(user_origin())}")
    return traced(text_functions.to_int, text.codes)


def to_code(char: Any) -> Any:
    """``ord(char)``."""
    char = direct(char)
    if isinstance(char, ChosenText):
        return char.of_each(ord)
    if isinstance(char, RunChar):
        return char.code
    if isinstance(char, RunText):
        if char.length != 1:
            raise TypeError(f"ord() expected a character{at(user_origin())}")
        return char.at(0).code
    return ord(char)


def to_char(code: Any) -> Any:
    """``chr(code)``."""
    return RunChar(as_number(code)) if is_traced(code) else chr(code)


def among(char: RunChar, options: list[str]) -> ChosenText:
    """A character as one of some, which it must be.

    Raises:
        KeyError: it is none of them, when the program runs.
    """
    codes = convert_to_tensor(np.array([ord(o) for o in options], np.int64))
    return ChosenText(traced(_place_of, Array(Storage(codes)), char.code), options)


def _place_of(table: Any, code: Any) -> Any:
    place = 0
    while place < len(table) and table[place] != code:
        place += 1
    if place == len(table):
        raise KeyError(code)
    return place


def text_method(owner: str, name: str, python: Any) -> Callable[..., Any]:
    """A method of a text of Python's, which may be given texts of the run."""

    def call(*args: Any, **options: Any) -> Any:
        if name == "join" and len(args) == 1:
            return _joined(owner, args[0])
        if any(isinstance(direct(a), RunText) for a in args):
            return getattr(run_text(owner), name)(*args, **options)
        return python(*args, **options)

    return call


def _joined(between: str, source: Any) -> Any:
    """``between.join(source)``."""
    if isinstance(source, str):
        return between.join(source)
    source = direct(source)
    if isinstance(source, RunText):
        source = source.copy()
    is_stacked = isinstance(source, StackedList) and source.items is None
    if is_stacked and isinstance(source.element, RunChar) and not between:
        return RunText(source.columns[0].copy())
    values = list(source)
    if not any(isinstance(v, RunText | ChosenText) for v in values):
        return between.join(values)
    parts: list[Any] = []
    for value in values:
        parts += [between, value] if parts and between else [value]
    return functools.reduce(lambda a, b: a + b, parts)
