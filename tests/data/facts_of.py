"""What a program gives, as data that can be written down and compared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from tests.data import file_programs, function_programs, programs


def programs_of(module: Any) -> dict[str, Callable[[Any], Any]]:
    own = {n: f for n, f in vars(module).items() if isinstance(f, FunctionType)}
    here = {n: f for n, f in own.items() if f.__module__ == module.__name__ and n != "listed"}
    return {n: f for n, f in here.items() if list(inspect.signature(f).parameters) == ["tf"]}


PROGRAMS = (
    programs_of(programs) | programs_of(function_programs) | programs_of(file_programs)
)


def fact(program: Callable[[Any], Any], tf: Any) -> Any:
    """The program's result, or the names of the types of what it raises, its own first."""
    try:
        return plain(program(tf), tf)
    except Exception as error:
        kinds = type(error).__mro__
        return {"raises": [kind.__name__ for kind in kinds[: kinds.index(Exception)]]}


def plain(value: Any, tf: Any) -> Any:
    """Numbers, strings, lists and dicts; arrays with their dtype."""
    if isinstance(value, Mapping):
        return {"dict": {str(k): plain(value[k], tf) for k in sorted(value)}}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [plain(v, tf) for v in value]}
    if isinstance(value, tf.TensorSpec):
        return {"spec": [value.dtype.name, [None if d is None else int(d) for d in value.shape]]}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, tf.Tensor | np.ndarray | np.generic):
        array = np.asarray(value)
        rounded = np.round(array.astype(float), 5) if array.dtype.kind == "f" else array
        return {"array": [array.dtype.name, rounded.tolist()]}
    raise TypeError(f"{type(value).__name__} cannot be written down")
