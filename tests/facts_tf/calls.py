"""Calls of public functions as data: tables of argument sets, and what a library gives for them.

A line of a file of `calls/` names functions and lists argument sets, separated by semicolons::

    reduce_sum reduce_max: f(2,3), axis=-1, keepdims=True; i(0,2), 0

A set is the text between a call's parentheses. It is evaluated with the names of `namespace`:
``f(2, 3)`` is a float32 tensor of shape [2, 3] whose elements follow a formula, ``t([1, 2])`` a
tensor of given elements, ``r([[1], []])`` a ragged one, ``s([[0, 1]], [5], [2, 3])`` a sparse one,
``large("i8", 25, 2)`` one of elements times 25, which may wrap, ``special("f", 2)`` one with NaN,
infinities and zeros, ``float64`` the dtype, and ``tf`` the library. An indented line goes on
with the sets of the line before. Where a name has a ``~`` before it, only dtypes and shapes are
compared: draws, and factors whose signs are a matter of taste.

A set is called eagerly and inside a function whose arguments are the tensors of the set.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.facts_tf.registry import HERE, describe, error_types, outcome

TABLES = tuple(sorted(path.stem for path in (HERE / "calls").glob("*.txt")))
IN_A_FUNCTION = " in a function"

_LETTERS = {
    "h": "float16", "f": "float32", "d": "float64", "bf": "bfloat16", "c": "complex64",
    "z": "complex128", "b": "bool", "i": "int32", "l": "int64", "i8": "int8", "i16": "int16",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
_DTYPES = (*_LETTERS.values(), "string")


@dataclass(frozen=True)
class Call:
    """One argument set: the public name, the text of the arguments, and what is compared."""

    name: str
    text: str
    shapes_only: bool

    def of(self, library: Any, give: Callable[[Any], Any]) -> Any:
        """The call's result; ``give`` may exchange each tensor of the arguments."""
        function = functools.reduce(getattr, self.name.split("."), library)
        args, kwargs = self.arguments(library, give)
        return function(*args, **kwargs)

    def arguments(self, library: Any, give: Callable[[Any], Any]) -> Any:
        """The positional and keyword arguments."""
        return eval(f"_({self.text})", namespace(library, give))

    def described(self, result: Any) -> Any:
        """The result as JSON."""
        # What TensorFlow's assertions give in a function.
        described = None if type(result).__name__ == "Operation" else describe(result)
        return _without_elements(described) if self.shapes_only else described


@functools.cache
def calls(table: str) -> list[Call]:
    """The argument sets of a table, in its order."""
    text = (HERE / "calls" / f"{table}.txt").read_text()
    lines = re.sub(r"\n[ \t]+", " ", text).splitlines()
    found = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        names, _, sets = line.partition(":")
        for name in names.split():
            for arguments in re.split(r"\s*;\s*", sets.strip()):
                found.append(Call(name.removeprefix("~"), arguments, name.startswith("~")))
    return found


def namespace(library: Any, give: Callable[[Any], Any]) -> dict[str, Any]:
    """The names that the text of an argument set may use."""

    def tensor(value: Any, dtype: Any = None) -> Any:
        return give(library.constant(value, dtype))

    def elements(dtype: str, *shape: int) -> Any:
        value = library.cast(library.constant(pattern(dtype, shape)), getattr(library, dtype))
        return give(value)

    def large(letter: str, factor: float, *shape: int) -> Any:
        dtype = _LETTERS[letter]
        value = pattern("float32" if dtype == "bfloat16" else dtype, shape)
        with np.errstate(over="ignore"):
            value = value * np.asarray(factor).astype(value.dtype)
        return give(library.cast(library.constant(value), getattr(library, dtype)))

    def special(letter: str, *shape: int) -> Any:
        value = pattern(_LETTERS[letter], shape).reshape(-1)
        others = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], (len(value) + 1) // 2)
        value[::2] = others
        return give(library.constant(value.reshape(shape)))

    def between(low: float, high: float, dtype: str, *shape: int) -> Any:
        steps = (pattern("int32", shape) + 5.5) / 11
        return give(library.constant(low + (high - low) * steps.astype(dtype), dtype))

    def ragged(value: Any, dtype: Any = None, **options: Any) -> Any:
        return give(library.ragged.constant(value, dtype, **options))

    def sparse(indices: Any, values: Any, shape: Any) -> Any:
        if not indices:
            indices = np.zeros((0, len(shape)), np.int64)
        return give(library.sparse.SparseTensor(indices, library.constant(values), shape))

    return {
        "r": ragged, "s": sparse, "large": large, "special": special,
        "_": lambda *args, **kwargs: (args, kwargs),
        "tf": library, "np": np, "inf": math.inf, "nan": math.nan, "t": tensor,
        **{letter: functools.partial(elements, dtype) for letter, dtype in _LETTERS.items()},
        "p": functools.partial(between, 0.0, 1.0, "float32"),
        "pd": functools.partial(between, 0.0, 1.0, "float64"),
        "g": functools.partial(between, 1.0, 4.0, "float32"),
        "gd": functools.partial(between, 1.0, 4.0, "float64"),
        "n": lambda *shape: pattern("float32", shape),
        "sp": lambda n, dtype="float32": tensor(_positive_definite(n).astype(dtype)),
        **{name: getattr(library, name) for name in _DTYPES},
    }  # fmt: skip


def pattern(dtype: str, shape: Iterable[int]) -> np.ndarray:
    """An array whose elements are distinct for the most part and of both signs."""
    count = math.prod(shape)
    steps = np.arange(count) * 7 % 11
    if dtype == "bool":
        values = steps % 3 > 0
    elif dtype.startswith("uint"):
        values = steps
    elif dtype.startswith("int"):
        values = steps - 5
    else:
        values = (steps - 5) / 2 + 0.25
        if dtype.startswith("complex"):
            values = values + 1j * values[::-1]
        else:
            dtype = "float32" if dtype == "bfloat16" else dtype
    return np.asarray(values, dtype).reshape(tuple(shape))


def _positive_definite(n: int) -> np.ndarray:
    root = pattern("float64", (n, n))
    return root @ root.T + n * np.eye(n)


def eagerly(library: Any, call: Call) -> Any:
    """What a call gives, as JSON."""
    return call.described(outcome(call.of, library, lambda tensor: tensor))


def in_a_function(library: Any, calls: list[Call]) -> list[Any]:
    """What calls give inside of one function that gets their tensors, as JSON.

    An error while tracing is the outcome of its call; one that comes later is raised.
    """
    tensors: list[Any] = []

    def keep(tensor: Any) -> Any:
        tensors.append(tensor)
        return tensor

    outcomes: list[Any] = []

    def body(*given: Any) -> list[Any]:
        outcomes.clear()
        rest, results = iter(given), []
        for call in calls:
            result = outcome(call.of, library, lambda tensor: next(rest))
            outcomes.append(result)
            results.extend(leaf for leaf in library.nest.flatten(result) if _is(library, leaf))
        return results

    for call in calls:
        call.arguments(library, keep)
    values = iter(library.function(body, autograph=False)(*tensors))
    kept = [
        library.nest.map_structure(lambda v: next(values) if _is(library, v) else v, result)
        for result in outcomes
    ]
    return [call.described(value) for call, value in zip(calls, kept, strict=True)]


def alone_in_a_function(library: Any, call: Call) -> Any:
    """What one call gives inside of a function, errors included, as JSON."""
    try:
        (result,) = in_a_function(library, [call])
    except Exception as error:
        return error_types(error)
    return result


def facts_of(library: Any, table: str) -> dict[str, dict[str, Any]]:
    """What each call gives eagerly and, if it differs, in a function; by function and set."""
    facts: dict[str, dict[str, Any]] = {}
    for call in calls(table):
        eager, staged = eagerly(library, call), alone_in_a_function(library, call)
        facts.setdefault(call.name, {})[call.text] = eager
        if staged != eager:
            facts[call.name][call.text + IN_A_FUNCTION] = staged
    return facts


@functools.cache
def recorded_calls(table: str) -> dict[str, dict[str, Any]]:
    """TensorFlow's facts of a table, by function and argument set."""
    facts: dict[str, dict[str, Any]] = json.loads((HERE / "calls" / f"{table}.json").read_text())
    del facts["tensorflow"]
    return facts


def _is(library: Any, value: Any) -> bool:
    return bool(library.is_tensor(value)) and not hasattr(value, "assign")


def _without_elements(described: Any) -> Any:
    if isinstance(described, list):
        return [_without_elements(value) for value in described]
    if isinstance(described, dict):
        if len(described) == 1 and next(iter(described)).endswith("]"):
            return next(iter(described))
        return {key: _without_elements(value) for key, value in described.items()}
    return described
