"""Programs that run with TensorFlow or treadle, and how what they give is written down.

A program is a function of the library (`tensorflow` or `treadle`) in a file of `programs/`. It
gives Python values and tensors in lists, tuples and dicts; `describe` turns them into JSON.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
GROUPS = tuple(sorted(p.stem for p in (HERE / "programs").glob("[a-z]*.py")))

Program = Callable[[Any], Any]


def program(function: Program) -> Program:
    """Mark a function of a programs file as one whose result is a fact."""
    function.is_program = True  # type: ignore[attr-defined]
    return function


def programs(group: str) -> dict[str, Program]:
    """The programs of a file, by name, in the order of the file."""
    if str(HERE.parents[1]) not in sys.path:
        sys.path.insert(0, str(HERE.parents[1]))
    module = importlib.import_module(f"tests.facts_tf.programs.{group}")
    members = vars(module).items()
    return {name: value for name, value in members if getattr(value, "is_program", False)}


def raised(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The type of the exception that a call raises, or "no error"."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error_types(error)
    return "no error"


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call gives, or the type of the exception that it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error_types(error)


def error_types(error: Exception) -> str:
    """``raises InvalidArgumentError < OpError``: the type and what else an except may name."""
    return "raises " + " < ".join(t.__name__ for t in type(error).__mro__[:-3])


def run(fn: Program, library: Any) -> Any:
    """The fact: what the program gives with a library, as JSON."""
    return describe(outcome(fn, library))


def describe(value: Any) -> Any:
    """A value as JSON that tells Python values, arrays and tensors apart."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, type):
        return value.__name__
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {type(value).__name__: {f.name: describe(getattr(value, f.name)) for f in fields}}
    if hasattr(value, "_asdict"):
        return {type(value).__name__: describe(value._asdict())}
    if isinstance(value, dict):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, list):
        return [describe(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [describe(v) for v in value]}
    return _described_array(value)


def _described_array(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "DType":
        return f"dtype {value.name}"
    if kind == "TensorShape":
        return f"shape {_dims(value)}"
    if kind == "RaggedTensor":
        splits = f"rank {value.ragged_rank} {value.row_splits.dtype.name}"
        return {f"ragged {value.dtype.name}{_dims(value.shape)} {splits}": _listed(value)}
    if kind == "SparseTensor":
        places, elements = value.indices.numpy().tolist(), _elements(value.values.numpy())
        key = f"sparse {value.dtype.name}{_dims(value.dense_shape.numpy().tolist())}"
        return {key: [places, elements]}
    if not hasattr(value, "dtype") or kind == "DynamicRaggedShape":
        return f"object {kind}"
    if isinstance(value, np.ndarray | np.generic):
        return {f"array {value.dtype.name}{_dims(value.shape)}": _elements(value)}
    try:
        elements = value.numpy()
    except Exception:
        return f"symbolic {value.dtype.name}{_dims(value.shape)}"
    what = "variable " if hasattr(value, "assign") else ""
    return {f"{what}{value.dtype.name}{_dims(value.shape)}": _elements(elements)}


def _listed(ragged: Any) -> Any:
    """The rows of a ragged tensor; while it has none, what it is."""
    try:
        return _plain(ragged.to_list())
    except Exception:
        return "symbolic"


def _dims(shape: Any) -> str:
    if getattr(shape, "rank", 0) is None:
        return "(unknown)"
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"


def _elements(array: Any) -> Any:
    if getattr(array, "dtype", None) is not None and array.dtype.name == "bfloat16":
        array = array.astype("float32")
    if isinstance(array, bytes):  # a string tensor
        return _plain(array)
    return _plain(array.tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, complex):
        return {"real": _number(value.real), "imag": _number(value.imag)}
    return _number(value) if isinstance(value, float) else value


def _number(value: float) -> float | str:
    """8 significant digits, enough for float32; JSON has no word for nan and infinities."""
    return float(f"{value:.8g}") if math.isfinite(value) else str(value)
