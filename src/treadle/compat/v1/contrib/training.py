"""``td.compat.v1.contrib.training``: numbers that a program is set by, and evaluations."""

from __future__ import annotations

import ast
import json
from typing import Any

from treadle.compat.v1.train.evaluations import StopAfterNEvalsHook as StopAfterNEvalsHook
from treadle.compat.v1.train.evaluations import evaluate_once as evaluate_once
from treadle.compat.v1.train.evaluations import get_or_create_eval_step as get_or_create_eval_step
from treadle.names import missing_in


class HParams:
    """Settings as attributes, which `parse` reads from a text."""

    def __init__(self, **kwargs: Any) -> None:
        self._types: dict[str, Any] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a setting.

        Raises:
            ValueError: there is one of this name.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, list | tuple)
        self._types[name] = (type(value[0]) if is_list and value else type(value), is_list)
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Change a setting to a value of its type."""
        kind, is_list = self._types[name]
        found = [_of_type(kind, v, name) for v in value] if is_list else _of_type(kind, value, name)
        setattr(self, name, found)

    def del_hparam(self, name: str) -> None:
        """Remove a setting."""
        if name in self._types:
            delattr(self, name)
            del self._types[name]

    def parse(self, values: str) -> HParams:
        """Change settings by a text as ``a=1,b=0.5,c=[1,2]``.

        Raises:
            ValueError: a setting is not known, or a value is of another type.
        """
        for part in _parts(values):
            name, _, text = part.partition("=")
            name = name.strip()
            if name not in self._types:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            text = text.strip()
            if text.startswith("["):
                self.set_hparam(name, [v.strip() for v in text.strip("[]").split(",") if v.strip()])
            else:
                self.set_hparam(name, text)
        return self

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Change settings."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def values(self) -> dict[str, Any]:
        """All settings."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or `default`."""
        return getattr(self, key) if key in self._types else default

    def to_json(self, **options: Any) -> str:
        """The settings as JSON."""
        return json.dumps(self.values(), **options)

    def parse_json(self, values_json: str) -> HParams:
        """Change settings by JSON."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))


def _parts(text: str) -> list[str]:
    """The parts of a text between commas that are not in brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [p for p in found if p.strip()]


def _of_type(kind: Any, value: Any, name: str) -> Any:
    try:
        if kind is bool:
            if isinstance(value, str):
                return {"true": True, "false": False, "1": True, "0": False}[value.lower()]
            return bool(value)
        if isinstance(value, str) and kind not in (str, type(None)):
            value = ast.literal_eval(value)
        if kind is int and isinstance(value, float):
            raise ValueError("it is no integer")
        return value if kind is type(None) else kind(value)
    except (ValueError, KeyError, SyntaxError):
        raise ValueError(
            f"Could not parse hparam {name!r} of type {kind.__name__!r} with value {value!r}"
        ) from None

__getattr__ = missing_in(__name__)
