"""f-strings with values that only the run knows.

Those of ints are texts of the run (`run_texts`). The characters of a float are known when the
program has ended: a `WrittenText` keeps the value with its format for a result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import ConcreteValueError, Grouped, Scalar, direct, is_traced
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.grown_lists import readable
from treadle.jitted.run_texts import RunText, is_any_text, to_text
from treadle.ops.control.marks import mark
from treadle.ops.numbers.python_numbers import SymbolicNumber


class WrittenText(Grouped):
    """A text with numbers that are written when the run knows them, for results and other texts.

    Attributes:
        parts: texts, and values with their formats.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def __add__(self, other: Any) -> Any:
        return WrittenText([*self.parts, *_parts_of(other)])

    def __radd__(self, other: Any) -> Any:
        return WrittenText([*_parts_of(other), *self.parts])

    def _refused(self, *args: Any) -> Any:
        raise ConcreteValueError(
            "A text with a number in it that is only known when the program runs can be returned, "
            f"printed and joined with others, and nothing else{at(user_origin())}"
        )

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _refused
    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refused
    __hash__ = __str__ = __format__ = _refused

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return self._refused()

    def __repr__(self) -> str:
        return "<traced text>"


def _parts_of(value: Any) -> list[Any]:
    value = direct(value)
    if isinstance(value, WrittenText):
        return value.parts
    if isinstance(value, str):
        return [value]
    if not isinstance(value, RunText | ChosenText):
        raise TypeError(f"can only join texts, not {value!r}{at(user_origin())}")
    return [(value, "")]


def _formatted(like: WrittenText, values: Sequence[Any]) -> Any:
    given = iter(values)
    parts = [p if isinstance(p, str) else (next(given), p[1]) for p in like.parts]
    if any(is_traced(p[0]) or isinstance(p[0], Tensor) for p in parts if not isinstance(p, str)):
        return WrittenText(parts)
    if any(p[0] is None for p in parts if not isinstance(p, str)):
        return WrittenText(parts)
    return "".join(p if isinstance(p, str) else format(*p) for p in parts)


nest.register_node(
    WrittenText, lambda text: [p[0] for p in text.parts if not isinstance(p, str)], _formatted,
    lambda text: tuple(p if isinstance(p, str) else (p[1],) for p in text.parts), composite=False,
)  # fmt: skip


def is_text_or_written(value: Any) -> bool:
    return is_any_text(value) or isinstance(value, WrittenText)


_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


def text(*parts: Any) -> Any:
    """An f-string: texts, and values with their conversions and formats."""
    made: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            made.append(part)
            continue
        value, kind, spec = part
        value = direct(value)
        value = readable(value)
        if not is_traced(value):
            value = _CONVERSIONS[kind](value) if kind else value
            made.append(format(value, spec))
            continue
        for own in _converted(value, kind, spec):
            of_number = type(own) is SymbolicNumber or isinstance(own, Scalar)
            told = mark(own, spec) if of_number else None
            made += [told] if told is not None else _written(own, spec)
    if all(isinstance(m, str) for m in made):
        return "".join(made)
    if any(isinstance(m, tuple | WrittenText) for m in made):
        return WrittenText([p for m in made for p in ([m] if type(m) is tuple else _parts_of(m))])
    return functools.reduce(lambda a, b: a + b, made)


def _converted(value: Any, kind: str, spec: str) -> list[Any]:
    """The parts of ``repr(value)`` where it is asked for and is not ``str(value)``."""
    if kind not in ("r", "a"):
        return [value]
    if isinstance(value, ChosenText):
        return [value.of_each(repr)]
    if isinstance(value, Scalar) and not spec and not value.tensor.dtype.is_bool:
        return [f"np.{value.dtype.name}(", value, ")"]
    if type(value) is SymbolicNumber or isinstance(value, list | tuple | dict):
        return [value]
    raise ConcreteValueError(
        f"{value!r}, which is only known when the program runs, is written as repr() writes it"
        f"{at(user_origin())}"
    )


def _written(value: Any, spec: str) -> list[Any]:
    """A value of the run in a text: characters of the run where these are an int's or a text's."""
    if isinstance(value, str) or (
        isinstance(value, WrittenText | RunText | ChosenText) and not spec
    ):
        return [value]
    whole = type(value) is SymbolicNumber and value.kind is int
    return [to_text(value)] if whole and spec in ("", "d") else [(value, spec)]
