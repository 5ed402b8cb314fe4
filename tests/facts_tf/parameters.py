"""The parameters of public functions: those of TensorFlow as data, and how they are written down.

A signature is a list of texts in the order of the parameters: ``x``, ``axis=None``, ``*args``,
``**kwargs``; those behind ``*`` are given by name only. Names of classes stand for constructors.
Keras is left out: its objects are a library of their own.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.facts_tf.registry import HERE

FILE = HERE / "parameters.json"
_MAKE_API = HERE.parents[1] / "docs" / "make_api.py"


def public_names() -> list[str]:
    """Functions, classes and their methods: ``reduce_sum``, ``linalg.qr``, ``Variable.assign``."""
    spec = importlib.util.spec_from_file_location("make_api", _MAKE_API)
    assert spec is not None and spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    names = set()
    for title, module in api.public_modules():
        for name in api.public_names(module):
            value, full = getattr(module, name), f"{title}.{name}".removeprefix("td.")
            if inspect.ismodule(value) or not callable(value) or full.startswith("keras."):
                continue
            names.add(full)
            for method in dir(value) if inspect.isclass(value) else ():
                if not method.startswith("_") and _is_own(getattr(value, method, None)):
                    names.add(f"{full}.{method}")
    return sorted(names)


def _is_own(method: Any) -> bool:
    """Whether this is a method of treadle's; Python's have other parameters with each version."""
    return callable(method) and str(getattr(method, "__module__", "")).startswith("treadle")


def parameters_of(library: Any, names: list[str]) -> dict[str, list[str]]:
    """The signatures of those names that a library has."""
    found = {}
    for name in names:
        try:
            value = functools.reduce(getattr, name.split("."), library)
            found[name] = list(_texts(value))
        except (AttributeError, TypeError, ValueError):  # not there, or without a signature
            continue
    return found


def _texts(value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        value = value.__init__ if value.__init__ is not object.__init__ else value.__new__
    by_name = False
    for position, parameter in enumerate(inspect.signature(value).parameters.values()):
        kind = parameter.kind
        if position == 0 and parameter.name in ("self", "cls", "_cls"):
            continue
        if kind is parameter.KEYWORD_ONLY and not by_name:
            by_name = True
            yield "*"
        by_name |= kind is parameter.VAR_POSITIONAL
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        if parameter.default is parameter.empty:
            yield stars + parameter.name
        elif parameter.name == "name":  # TensorFlow's are labels of its operations
            yield "name=..."
        else:
            yield f"{parameter.name}={_default(parameter.default)}"


def _default(value: Any) -> str:
    """The text of a default: what it means, not how a library writes it."""
    if type(value) is object:  # stands for: not given
        return "None"
    if type(value).__name__ == "DType":
        return str(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return value.__name__
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return repr(int(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(_default(v) for v in value)}]"
    if hasattr(value, "name") and hasattr(value, "value"):  # of an enumeration
        return repr(value.value)
    return f"<{value.__name__}>" if hasattr(value, "__name__") else repr(value)


@functools.cache
def recorded_parameters() -> dict[str, list[str]]:
    """TensorFlow's signatures, by name."""
    facts: dict[str, Any] = json.loads(FILE.read_text())
    del facts["tensorflow"]
    return facts
