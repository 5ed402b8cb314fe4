"""Names that Keras gives objects: the class in snake case, numbered from the second on."""

from __future__ import annotations

import threading

from treadle.module import snake_case

_counts: dict[str, int] = {}
_lock = threading.Lock()


def unique_name(class_name: str) -> str:
    """``dense``, then ``dense_1``, ``dense_2`` ..."""
    base = snake_case(class_name)
    with _lock:
        count = _counts.get(base, 0)
        _counts[base] = count + 1
    return f"{base}_{count}" if count else base


def clear() -> None:
    """Start numbering anew."""
    with _lock:
        _counts.clear()
