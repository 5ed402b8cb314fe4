"""Lambdas in configurations: their code as data, as Keras has it, and back.

A file tells nobody what its code does, so it is run only where a program asks for it: by
``safe_mode=False`` of what loads it, or by `keras.config.enable_unsafe_deserialization`.
"""

from __future__ import annotations

import binascii
import builtins
import codecs
import importlib.util
import inspect
import marshal
import threading
import types
import warnings
from typing import Any

import numpy as np

import treadle as td

_PYTHON = importlib.util.MAGIC_NUMBER.hex()  # of the code that this Python reads


class _Scope(threading.local):
    """Whether code is run: what the innermost `running` says, None outside of all."""

    runs: bool | None = None


_scope = _Scope()
_always = False


def always_run(yes: bool = True) -> None:
    """Run the code of what is loaded from now on; or only where that is asked for."""
    global _always
    _always = yes


class running:
    """``with running():`` code of configurations is run within the block.

    Args:
        yes: False leaves it as it is around the block.
    """

    def __init__(self, yes: bool = True) -> None:
        self._yes = yes
        self._around: bool | None = None

    def __enter__(self) -> None:
        self._around = _scope.runs
        _scope.runs = self._yes or self._around

    def __exit__(self, *error: object) -> None:
        _scope.runs = self._around


def is_lambda(value: Any) -> bool:
    """Whether it is a function without a name."""
    return isinstance(value, types.FunctionType) and value.__name__ == "<lambda>"


def warn_of(function: Any) -> None:
    """Warn that a lambda is saved, which can be loaded in one way only."""
    try:
        text = inspect.getsource(function).strip()
    except (OSError, TypeError):  # typed in, or made by code
        text = repr(function)
    warnings.warn(
        "The object being serialized includes a `lambda`. This is unsafe. In order to reload the "
        "object, you will have to pass `safe_mode=False` to the loading function. Please avoid "
        "using `lambda` in the future, and use named Python functions instead. This is the "
        f"`lambda` being serialized: {text}",
        stacklevel=4,
    )


def parts_of(function: Any) -> tuple[str, Any, Any]:
    """The code of a function as text, its defaults and what it closes over."""
    code = codecs.encode(marshal.dumps(function.__code__), "base64").decode("ascii")
    closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return code, function.__defaults__, closure or None


def as_config(code: str, defaults: Any, closure: Any) -> dict[str, Any]:
    """What configurations of Lambda layers have in place of a function."""
    inner = {"code": code, "defaults": defaults, "closure": closure, "python": _PYTHON}
    return {"class_name": "__lambda__", "config": inner}


def check_runs() -> None:
    """Refuse code where nobody asked for it.

    Raises:
        ValueError: it is not to be run.
    """
    if not (_always or _scope.runs):
        raise ValueError(
            "Requested the deserialization of a Python lambda, as of a `Lambda` layer. This "
            "carries a potential risk of arbitrary code execution and thus it is disallowed by "
            "default. If you trust the source of the artifact, you can override this error by "
            "passing `safe_mode=False` to the loading function, or calling "
            "`keras.config.enable_unsafe_deserialization()`."
        )


def function_of(config: dict[str, Any]) -> Any:
    """The lambda of a configuration, whose defaults and closure are objects by now. Of names that
    are global where it was written it knows ``tf``, ``td``, ``keras``, ``ops`` and ``np``.

    Raises:
        ValueError: code of another version of Python, or none.
    """
    value = config.get("value")
    if value is None:
        code, defaults, closure = config["code"], config["defaults"], config["closure"]
    else:
        parts = value if isinstance(value, list | tuple) else (value,)
        code, defaults, closure = (*parts, None, None)[:3]
    python = config.get("python", _PYTHON)
    found: Any = None
    if python == _PYTHON:
        try:
            found = marshal.loads(codecs.decode(code.encode("ascii"), "base64"))
        except (ValueError, EOFError, TypeError, AttributeError, binascii.Error):
            found = None
    if not isinstance(found, types.CodeType):
        raise ValueError(
            "The code of a lambda cannot be read: it is of another version of Python, or damaged. "
            "Load it with the Python that wrote it and save a named function in its place"
        )
    cells = tuple(types.CellType(content) for content in closure or ())
    known = {
        "__builtins__": builtins, "tf": td, "td": td, "keras": td.keras, "ops": td.keras.ops,
        "np": np,
    }  # fmt: skip
    return types.FunctionType(found, known, "<lambda>", tuple(defaults or ()) or None, cells)
