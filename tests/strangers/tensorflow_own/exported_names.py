"""Says, in an interpreter that has TensorFlow, which public names its private ones have.

    PYTHON exported_names.py TESTS RESULT

TESTS is a folder of TensorFlow's own tests: all private modules that files there import are looked
at. RESULT becomes a table as JSON: by module (without ``tensorflow.python.``) and name, the public
names of TensorFlow 2 and 1 and, for functions that are generated from the definition of an
operation, its name in ``raw_ops`` with the names of the parameters in order.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

PRIVATE = "tensorflow.python."
IMPORT = re.compile(
    r"^(?:from (tensorflow\.python\S*) import (\w+)|import (tensorflow\.python\S*))", re.M
)


def import_what_tests_import(tests: Path) -> None:
    asked = {
        name
        for file in tests.rglob("*.py")
        for package, last, whole in IMPORT.findall(file.read_text(errors="replace"))
        for name in ((f"{package}.{last}", package) if package else (whole,))
    }
    for name in sorted(asked):
        try:
            importlib.import_module(name)
        except Exception:
            continue  # a name within a module, or one that this TensorFlow does not have


def _key(name: str) -> str:
    return name.replace("_", "").lower()


def table() -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    generated = _generated()
    for full, module in list(sys.modules.items()):
        if module is None or not full.startswith(PRIVATE):
            continue
        inside = full.removeprefix(PRIVATE)
        names = {name: _exported(value) for name, value in list(vars(module).items())}
        for versions, attribute in (("v2", "_tf_api_constants"), ("v1", "_tf_api_constants_v1")):
            for public, name in vars(module).get(attribute, ()):
                names.setdefault(name, {})[versions] = list(public)
        for name, value in list(vars(module).items()):
            if id(value) in generated:
                names[name] = names[name] | generated[id(value)]
        kept = {name: has for name, has in names.items() if has}
        if kept:
            found[inside] = kept
    return found


def _generated() -> dict[int, dict[str, Any]]:
    """By identity, the functions that modules ``gen_..._ops`` have for operations."""
    found = {}
    for full, module in list(sys.modules.items()):
        if module is None or not re.search(r"\.gen_\w+$", full):
            continue
        public = {name for name, has in vars(module).items() if _is_raw(_exported(has))}
        raw = {_key(name): name for name in public}
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and name not in public and _key(name) in raw:
                parameters = list(inspect.signature(value).parameters)
                found[id(value)] = {"raw": raw[_key(name)], "parameters": parameters}
    return found


def _is_raw(has: dict[str, Any]) -> bool:
    return any(name.startswith("raw_ops.") for name in has.get("v2", ()))


def _exported(value: Any) -> dict[str, Any]:
    """The public names of a function or class, of which derived classes have none."""
    from tensorflow.python.util import tf_decorator

    try:
        own = vars(tf_decorator.unwrap(value)[1] if inspect.isroutine(value) else value)
    except TypeError:
        return {}
    found = {"v2": own.get("_tf_api_names"), "v1": own.get("_tf_api_names_v1")}
    return {version: list(names) for version, names in found.items() if names}


if __name__ == "__main__":
    folder, result = Path(sys.argv[1]), Path(sys.argv[2])
    import_what_tests_import(folder)
    result.write_text(json.dumps(table()))
