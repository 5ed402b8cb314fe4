"""Texts that are one after one branch and another after the other: the program has the number of
the text, which results and comparisons take from the texts that it may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import ConcreteValueError, Grouped
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import symbolic_number


class ChosenText(Grouped):
    """One of several texts.

    Attributes:
        number: which one it is, an int that may be symbolic.
        options: the texts.
    """

    __slots__ = ("number", "options")

    def __init__(self, number: Any, options: Sequence[str]) -> None:
        self.number, self.options = number, tuple(options)

    def of_each(self, function: Callable[[str], Any]) -> Any:
        """What a function gives of the text: a text, or a number."""
        found = [function(option) for option in self.options]
        if all(type(f) is str for f in found):
            return ChosenText(self.number, found)
        if any(type(f) is not type(found[0]) for f in found) or not isinstance(found[0], int):
            raise self._refusal("given to a method whose result is no text and no int")
        table = np.array(found, np.bool_ if type(found[0]) is bool else np.int64)
        return symbolic_number(convert_to_tensor(table)[self.tensor(self.options)])

    def tensor(self, options: Sequence[str]) -> Tensor:
        """The number of the text among others."""
        own = convert_to_tensor(self.number, dtypes.int64)
        places = [options.index(option) for option in self.options]
        if places == list(range(len(places))):
            return own
        return convert_to_tensor(np.array(places, np.int64))[own]

    def _refusal(self, use: str) -> ConcreteValueError:
        return ConcreteValueError(
            f"A text that only the run knows, one of {', '.join(map(repr, self.options))}, is {use}"
            f"{at(user_origin())}"
        )

    def __repr__(self) -> str:
        return f"<one of the texts {', '.join(map(repr, self.options))}>"

    def __str__(self) -> str:
        raise self._refusal("written into another text")

    def __format__(self, spec: str) -> str:
        raise self._refusal("written into another text")

    def __bool__(self) -> bool:
        raise self._refusal("used as a condition outside of converted code")

    def __hash__(self) -> int:
        raise self._refusal("used as a key")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ChosenText):
            every = list(dict.fromkeys((*self.options, *other.options)))
            return symbolic_number(self.tensor(every) == other.tensor(every))
        return self.of_each(lambda option: option == other)

    def __ne__(self, other: object) -> Any:
        found = self == other
        return not found if type(found) is bool else found == False  # noqa: E712

    def __add__(self, other: Any) -> Any:
        if isinstance(other, ChosenText):
            number = self.number * len(other.options) + other.number
            return ChosenText(number, [a + b for a in self.options for b in other.options])
        return self.of_each(lambda option: option + other)

    def __radd__(self, other: Any) -> Any:
        return self.of_each(lambda option: other + option)

    def __getitem__(self, key: Any) -> Any:
        return self.of_each(lambda option: option[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return lambda *args: self.of_each(lambda option: getattr(option, name)(*args))


def is_text(value: Any) -> bool:
    return type(value) is str or isinstance(value, ChosenText)


def options_of(*values: Any) -> list[str]:
    """All the texts that some may be."""
    found = [v.options if isinstance(v, ChosenText) else (v,) for v in values]
    return list(dict.fromkeys(option for options in found for option in options))


def number_of(value: Any, options: Sequence[str]) -> Tensor:
    """The number of a text among others."""
    if isinstance(value, ChosenText):
        return value.tensor(options)
    return convert_to_tensor(options.index(value), dtypes.int64)


def text_of(number: Tensor, options: Sequence[str]) -> ChosenText:
    return ChosenText(symbolic_number(number, (0, len(options) - 1)), options)


def text_like(value: Any, other: Any) -> Any:
    """A text as one of several, where `other` is one of several."""
    fits = isinstance(other, ChosenText) and is_text(value)
    if fits and set(options_of(value)) <= set(other.options):
        return text_of(number_of(value, other.options), other.options)
    return value


def _built(like: ChosenText, parts: list[Any]) -> Any:
    """In a result, where the number is known, the text."""
    (number,) = parts
    if type(number) is int or isinstance(number, np.integer | np.ndarray):
        return like.options[int(number)]
    return ChosenText(number, like.options)


nest.register_node(
    ChosenText, lambda value: [value.number], _built, lambda value: value.options, composite=False
)
