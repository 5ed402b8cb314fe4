"""Names that Keras gives objects: the class in snake case, numbered from the second on."""

from __future__ import annotations

import re
import threading

_counts: dict[str, int] = {}
_lock = threading.Lock()


def snake_case(name: str) -> str:
    """``MyDense2D`` as ``my_dense2d``, which is Keras's way."""
    split = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()


def next_number(prefix: str) -> int:
    """How often a name with the prefix was asked for, now included."""
    with _lock:
        _counts[prefix] = count = _counts.get(prefix, 0) + 1
    return count


def unique_name(class_name: str) -> str:
    """``dense``, then ``dense_1``, ``dense_2`` ..."""
    base = snake_case(class_name)
    count = next_number(base) - 1
    return f"{base}_{count}" if count else base


def clear() -> None:
    """Start numbering anew."""
    with _lock:
        _counts.clear()
