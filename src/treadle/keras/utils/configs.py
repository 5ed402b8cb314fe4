"""``keras.utils.Config``: settings by name, which can be frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from treadle.keras import serialization


class Config:
    """Settings as attributes and items, such as ``Config(units=4)``.

    `freeze` forbids further changes.
    """

    _frozen = False

    def __init__(self, **kwargs: Any) -> None:
        object.__setattr__(self, "_items", {})
        for key, value in kwargs.items():
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        if self._frozen:
            raise ValueError("Cannot mutate attribute(s) because this config is frozen")
        self._items[key] = value

    __setattr__ = __setitem__

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __getattr__(self, name: str) -> Any:
        items = object.__getattribute__(self, "_items")
        if name not in items:
            raise AttributeError(f"Config has no setting {name!r}: it has {sorted(items)}")
        return items[name]

    def __delitem__(self, key: str) -> None:
        if self._frozen:
            raise ValueError("Cannot mutate attribute(s) because this config is frozen")
        del self._items[key]

    __delattr__ = __delitem__

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> Any:
        """The names of the settings."""
        return self._items.keys()

    def get(self, keyname: str, value: Any = None) -> Any:
        """A setting, or `value` where there is none."""
        return self._items.get(keyname, value)

    def pop(self, key: str, *default: Any) -> Any:
        """Take a setting away."""
        if self._frozen:
            raise ValueError("Cannot mutate attribute(s) because this config is frozen")
        return self._items.pop(key, *default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several settings, of a dict or by name."""
        for key, value in {**dict(*args), **kwargs}.items():
            self[key] = value

    def freeze(self) -> None:
        """Forbid further changes."""
        object.__setattr__(self, "_frozen", True)

    def unfreeze(self) -> None:
        """Allow changes again."""
        object.__setattr__(self, "_frozen", False)

    @property
    def frozen(self) -> bool:
        """Whether changes are forbidden."""
        return bool(self._frozen)

    def as_dict(self) -> dict[str, Any]:
        """The settings as a dict."""
        return dict(self._items)

    def to_json(self) -> str:
        """The settings as a text."""
        return json.dumps(serialization.serialize_keras_object(self._items))

    def __repr__(self) -> str:
        return f"<Config {self._items}>"
