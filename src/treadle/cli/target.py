"""MODULE:FUNCTION and its arguments, as `treadle inspect` takes them."""

import ast
import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import treadle as td

from .errors import UsageError

SPEC = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[^\]]*)\]")

OPEN = re.compile(r"None|\?|[a-z]+\d+")  # dims that are not known; graphs print them as d0

# The dtypes as graphs print them: f32, i64.
SHORT = {
    d.short: d.name
    for d in (
        td.float16, td.bfloat16, td.float32, td.float64, td.int8, td.int16, td.int32, td.int64,
        td.uint8, td.uint16, td.uint32, td.uint64, td.bool, td.complex64, td.complex128,
    )
}  # fmt: skip


def find_function(target: str) -> Any:
    """The function named by `package.module:name` or `path/to/file.py:name`.

    The name may be dotted (`Class.method`). Modules are looked up from the current folder too.
    """
    module_name, colon, name = target.rpartition(":")
    if not colon or not name or not module_name:
        raise UsageError(f"{target!r} is not of the form MODULE:FUNCTION")
    module = load_module(module_name)
    try:
        function = reduce(getattr, name.split("."), module)
    except AttributeError:
        raise UsageError(f"{module_name} has no {name!r}{suggestion(name, module)}") from None
    if not callable(function):
        raise UsageError(f"{target} is {type(function).__name__}, not a function")
    return function


def load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        if name.endswith(".py"):
            return load_file(Path(name))
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"cannot import {name}: {error}") from None


def load_file(path: Path) -> ModuleType:
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def suggestion(name: str, module: ModuleType) -> str:
    functions = [key for key, value in vars(module).items() if callable(value)]
    close = difflib.get_close_matches(name, functions, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def parse_arguments(texts: Sequence[str]) -> list[Any]:
    return [parse_argument(text) for text in texts]


def parse_argument(text: str) -> Any:
    """`float32[3,None]` is a TensorSpec, as is `f32[3,?]`; anything else a Python literal."""
    if match := SPEC.fullmatch(text):
        return td.TensorSpec(parse_shape(match["shape"], text), parse_dtype(match["dtype"], text))
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(
            f"argument {text!r} is neither a tensor such as float32[3,4] nor a Python literal"
        ) from None


def parse_dtype(name: str, text: str) -> Any:
    try:
        return td.as_dtype(SHORT.get(name, name))
    except (TypeError, ValueError):
        raise UsageError(f"argument {text!r}: there is no dtype {name!r}") from None


def parse_shape(dims: str, text: str) -> list[int | None]:
    try:
        return [
            None if OPEN.fullmatch(dim.strip()) else int(dim)
            for dim in dims.split(",")
            if dim.strip()
        ]
    except ValueError:
        raise UsageError(f"argument {text!r}: the dims must be numbers or None") from None
