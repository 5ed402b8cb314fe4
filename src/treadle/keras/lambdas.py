"""Lambdas in configurations: their code as data, as Keras has it, and back.

A file tells nobody what its code does, so it is run only where a program asks for it: by
``safe_mode=False`` of what loads it, or by `keras.config.enable_unsafe_deserialization`.
"""

from __future__ import annotations

import binascii
import builtins
import importlib.util
import inspect
import marshal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.modes import during, generation, is_mode

_PYTHON = importlib.util.MAGIC_NUMBER.hex()  # of the code that this Python reads


class _Scope(threading.local):
    """Whether code is run: what the innermost `running` says, None outside of all. And the lambdas
    that configurations have as they are, within `copying`."""

    runs: bool | None = None
    kept: list[Any] | None = None


_scope = is_mode(_Scope())
_always = False


def always_run(yes: bool = True) -> None:
    """Run the code of what is loaded from now on; or only where that is asked for."""
    global _always
    _always = yes


def running(yes: bool = True) -> during:
    """``with running():`` code of configurations is run within the block.

    Args:
        yes: False leaves it as it is around the block.
    """
    return during(_scope, "runs", yes or _scope.runs)


def guarded() -> during:
    """``with guarded():`` no code is run within the block, unless what is around it, or the
    program, says so."""
    return during(_scope, "runs", bool(_scope.runs))


def copying() -> during:
    """``with copying():`` configurations that are made and read within the block have lambdas
    themselves, not their code: for copies of objects in one program."""
    return during(_scope, "kept", [] if _scope.kept is None else _scope.kept)


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
        stacklevel=5,
    )


def parts_of(function: Any) -> tuple[str, Any, Any]:
    """The code of a function as text, its defaults and what it closes over."""
    code = binascii.b2a_base64(marshal.dumps(function.__code__)).decode("ascii")
    closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return code, function.__defaults__, closure or None


def described(function: Any, data: Callable[[Any], Any], of_layer: bool) -> dict[str, Any]:
    """What configurations have in place of a lambda.

    Args:
        data: makes plain data of its defaults and of what it closes over.
        of_layer: whether it is that of a Lambda layer; Keras warns of others.
    """
    inner: dict[str, Any]
    if _scope.kept is not None:
        _scope.kept.append(function)
        inner = {"kept": len(_scope.kept) - 1}
    elif of_layer:
        code, defaults, closure = map(data, parts_of(function))
        inner = {"code": code, "defaults": defaults, "closure": closure, "python": _PYTHON}
    else:
        warn_of(function)
        inner = {"value": data(parts_of(function))}
    return {"class_name": "__lambda__", "config": inner}


def check_runs(config: Mapping[str, Any]) -> None:
    """Refuse the code of a configuration where nobody asked for it.

    Raises:
        ValueError: it is not to be run.
    """
    is_kept = _scope.kept is not None and "kept" in config
    # In configurations of Keras 2 all functions are code, which is run.
    runs = generation.is_2 if _scope.runs is None else _scope.runs
    if not (is_kept or _always or runs):
        raise ValueError(
            "Requested the deserialization of a Python lambda, as of a `Lambda` layer. This "
            "carries a potential risk of arbitrary code execution and thus it is disallowed by "
            "default. If you trust the source of the artifact, you can override this error by "
            "passing `safe_mode=False` to the loading function, or calling "
            "`keras.config.enable_unsafe_deserialization()`."
        )


def function_of(config: dict[str, Any]) -> Any:
    """The lambda of a configuration, whose defaults and closure are objects by now. Of names that
    are global where it was written it knows ``tf``, ``td``, ``keras``, ``ops`` and ``np``, and
    those of its module, where the configuration names one that is imported.

    Raises:
        ValueError: code of another version of Python, or none.
    """
    if "kept" in config and _scope.kept is not None:
        return _scope.kept[config["kept"]]
    value = config.get("value")
    if value is None:
        code, defaults = str(config.get("code")), config.get("defaults")
        closure = config.get("closure")
    else:
        parts = value if isinstance(value, list | tuple) else (value,)
        code, defaults, closure = (*parts, None, None)[:3]
    python = config.get("python", _PYTHON)
    found: Any = None
    if python == _PYTHON:
        try:
            found = marshal.loads(binascii.a2b_base64(code))
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
    known |= vars(sys.modules.get(str(config.get("module")), types.ModuleType("")))
    return types.FunctionType(found, known, "<lambda>", tuple(defaults or ()) or None, cells)
