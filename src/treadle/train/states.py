"""States of objects as JSON and arrays: plain data only, so that reading them runs no code."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np

_ARRAY, _BYTES, _TUPLE, _DICT = "$array", "$bytes", "$tuple", "$dict"


def to_text(state: Any, keep: Callable[[Any], str], where: str) -> str:
    """A state in JSON.

    Args:
        keep: is given each array, and says under which name it will be found again.
        where: the path of the object, for errors.

    Raises:
        TypeError: there is something else in it than numbers, strings, bytes, arrays, None, and
            lists, tuples and dicts of them.
    """

    def plain(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return {_ARRAY: keep(np.asarray(value))}
        if isinstance(value, bytes):
            return {_BYTES: base64.b64encode(value).decode()}
        if isinstance(value, tuple):
            return {_TUPLE: [plain(v) for v in value]}
        if isinstance(value, list):
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {_DICT: [[plain(k), plain(v)] for k, v in value.items()]}
        raise TypeError(
            f"The state of {where!r} holds {value!r}: checkpoints hold numbers, strings, bytes, "
            "arrays, lists, tuples and dicts"
        )

    return json.dumps(plain(state))


def from_text(text: str, get: Callable[[str], Any]) -> Any:
    """The state that `to_text` was given.

    Args:
        get: gives the array of a name.

    Raises:
        ValueError: it is something else.
    """

    def value(plain: Any) -> Any:
        if isinstance(plain, list):
            return [value(v) for v in plain]
        if not isinstance(plain, dict):
            return plain
        ((kind, inner),) = plain.items()
        if kind == _ARRAY:
            return get(inner)
        if kind == _BYTES:
            return base64.b64decode(inner)
        if kind == _TUPLE:
            return tuple(value(v) for v in inner)
        if kind == _DICT:
            return {value(k): value(v) for k, v in inner}
        raise ValueError(f"unknown kind {kind!r}")

    return value(json.loads(text))
