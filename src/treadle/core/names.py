"""Names that are each used once."""

from __future__ import annotations


def unused_name(name: str, taken: set[str]) -> str:
    """`name`, with a number behind it where it is taken; it is taken from now on."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found
