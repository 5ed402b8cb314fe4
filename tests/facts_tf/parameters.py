"""The parameters of public functions: those of TensorFlow as data, and how they are written down.

A signature is a list of texts in the order of the parameters: ``x``, ``axis=None``, ``*args``,
``**kwargs``; those behind ``*`` are given by name only. Names of classes stand for constructors.
Of Keras and of TensorFlow 1 are recorded all names of theirs: each object at its shortest path, the
methods of the class that defines them, and of TensorFlow 1 what differs from TensorFlow 2.
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
    """Functions, classes and their methods: ``reduce_sum``, ``linalg.qr``, ``Variable.assign``.
    Methods that a class has from another public class are those of that one."""
    spec = importlib.util.spec_from_file_location("make_api", _MAKE_API)
    assert spec is not None and spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    found: dict[str, Any] = {}
    for title, module in api.public_modules():
        for name in api.public_names(module):
            value, full = getattr(module, name), f"{title}.{name}".removeprefix("td.")
            left_out = full.startswith(("keras.", "compat.v1.", "compat.v2."))
            if callable(value) and not inspect.ismodule(value) and not left_out:
                found[full] = value
    public, names = set(map(id, found.values())), set(found)
    for full, value in found.items():
        for method in dir(value) if inspect.isclass(value) else ():
            if not method.startswith("_") and _is_own(getattr(value, method, None)):
                home = next(kind for kind in value.__mro__ if method in vars(kind))
                if home is value or id(home) not in public:
                    names.add(f"{full}.{method}")
    return sorted(names)


def names_of_keras(keras: Any) -> list[str]:
    """The public functions and classes of Keras, and the methods that a class defines."""
    return _names_below(keras, "keras", {"src"})


def names_of_1(tensorflow: Any) -> list[str]:
    """The same of TensorFlow 1's names, but those of Keras and of operations without a wrapper."""
    left_out = {"keras", "layers", "rnn_cell", "raw_ops", "compat", "lite", "tpu", "app", "flags"}
    return _names_below(tensorflow, "compat.v1", left_out)


def _names_below(module: Any, path: str, left_out: set[str]) -> list[str]:
    """Paths of callables, one for each object: the shortest path."""
    found: dict[int, tuple[str, Any]] = {}
    pending, seen = [(path, module)], set()
    while pending:
        path, module = pending.pop(0)  # the shorter paths first
        for name in sorted(n for n in dir(module) if not n.startswith("_") and n not in left_out):
            value = getattr(module, name, None)
            if inspect.ismodule(value):
                here = module.__name__.partition(".")[0].removeprefix("_") in value.__name__
                if here and ".src" not in value.__name__ and id(value) not in seen:
                    seen.add(id(value))
                    pending.append((f"{path}.{name}", value))
            elif callable(value) and "typing" not in str(getattr(value, "__module__", "")):
                found.setdefault(id(value), (f"{path}.{name}", value))
    names = [name for name, _ in found.values()]
    for name, value in found.values():
        for method in dir(value) if inspect.isclass(value) else ():
            if not method.startswith("_") and callable(getattr(value, method, None)):
                bases = [k for k in value.__mro__[1:] if id(k) in found and hasattr(k, method)]
                if method in vars(value) or (hasattr(type(value), method) < 1 and not bases):
                    names.append(f"{name}.{method}")
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
    if isinstance(value, list | tuple) and value and all(v == value[0] for v in value):
        return _default(value[0])  # one value for each axis
    if isinstance(value, list | tuple):
        return f"[{', '.join(_default(v) for v in value)}]"
    if hasattr(value, "name") and hasattr(value, "value"):  # of an enumeration
        return repr(value.value)
    return f"<{value.__name__}>" if hasattr(value, "__name__") else repr(value)


def names_by_signature(facts: dict[str, list[str]]) -> dict[str, str]:
    """The names behind each signature, which many methods share. Those of functions that take
    anything say nothing."""
    found: dict[str, list[str]] = {}
    for name, texts in facts.items():
        if texts != ["*args", "**kwargs"]:
            found.setdefault("; ".join(texts), []).append(name)
    return {text: " ".join(names) for text, names in sorted(found.items())}


def calls_refused(wanted: list[str], own: list[str]) -> list[str]:
    """What a signature does not take of the calls that TensorFlow's takes, or takes otherwise.
    More parameters and more defaults refuse nothing; what ``*args`` are taken for is not seen."""
    ours = {text.partition("=")[0]: text for text in own if not text.startswith("*")}
    takes_any = any(text.startswith("**") for text in own)
    positions = _positions(own)
    more = any(text.startswith("*") and text[1:2] not in ("", "*") for text in own)
    found = []
    for at, name in enumerate(_positions(wanted)):
        if positions[at : at + 1] != [name] and not (more and at >= len(positions)):
            found.append(f"position {at} is {name}")
            break
    for text in wanted:
        name, has_default, default = text.partition("=")
        if text.startswith("*"):
            continue
        if name not in ours:
            found += [] if takes_any else [f"no {name}"]
        elif has_default and ours[name].partition("=")[2] != default:
            found.append(f"{ours[name]}, not {text}")
    return found


def _positions(texts: list[str]) -> list[str]:
    """The names of the parameters that are given by position."""
    end = next((at for at, text in enumerate(texts) if text.startswith("*")), len(texts))
    return [text.partition("=")[0] for text in texts[:end]]


@functools.cache
def recorded_parameters(library: str = "") -> dict[str, list[str]]:
    """TensorFlow's signatures, by name; or those of ``keras``, or of TensorFlow ``1``."""
    if not library:
        facts: dict[str, Any] = json.loads(FILE.read_text())
        del facts["tensorflow"]
        return facts
    recorded = json.loads((HERE / f"parameters_{library}.json").read_text())
    del recorded["tensorflow"]
    return {
        name: text.split("; ") if text else []
        for text, names in recorded.items()
        for name in names.split()
    }
