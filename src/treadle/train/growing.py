"""Lists and dicts of objects whose checkpoint still has values for elements that come later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class _Growing:
    """What a list and a dict do that is waited for: after each change the owner is looked through.

    Attributes:
        seen_as: what users know the object by, in nested structures.
        grown: what to call after a change.
    """

    grown: list[Callable[[], None]]

    def __reduce__(self) -> Any:
        kind = self.seen_as  # type: ignore[attr-defined]
        return kind, (kind(self),)  # copies are plain


def _told(name: str, kind: type) -> Callable[..., Any]:
    method = getattr(kind, name)

    @functools.wraps(method)
    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        for call in self.grown:
            call()
        return result

    return changed


class GrowingList(_Growing, list[Any]):
    """A list whose new elements are restored."""

    seen_as = list


class GrowingDict(_Growing, dict[Any, Any]):
    """A dict whose new values are restored."""

    seen_as = dict


for _name in ("append", "extend", "insert", "__setitem__", "__iadd__"):
    setattr(GrowingList, _name, _told(_name, list))
for _name in ("__setitem__", "setdefault", "update", "__ior__"):
    setattr(GrowingDict, _name, _told(_name, dict))


def watched(value: Any, grown: Callable[[], None]) -> Any:
    """A list or dict that calls `grown` after changes; anything else as it is."""
    kinds: dict[Any, Any] = {list: GrowingList, dict: GrowingDict}
    found = kinds[type(value)](value) if type(value) in kinds else value
    if isinstance(found, _Growing):
        found.grown = [*getattr(found, "grown", ()), grown]
    return found


__all__ = ["GrowingDict", "GrowingList", "watched"]
