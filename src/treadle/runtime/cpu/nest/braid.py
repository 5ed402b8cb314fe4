"""Rows side by side: the code of several rows as one, whose loops advance all of them.

A row that is reduced and then spread again waits for the result of each of its passes. The waits
of independent rows overlap when their instructions stand next to each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from treadle.runtime.cpu.llvm_text import Function

_LABEL = re.compile(r"%(\w+)")


def braid(function: Function, emitters: Sequence[Callable[[], None]]) -> None:
    """Emit copies of the same code line by line in turn, with the loops of the first of them.

    The copies must go through the same loops equally often. Where a copy branches on data they
    follow one another.
    """
    parts: list[list[str]] = []
    for emitter in emitters:
        start = len(function.lines)
        emitter()
        parts.append(function.lines[start:])
        del function.lines[start:]
    merged = _merged(parts)
    if merged is None:
        merged = [line for part in parts for line in part]
    else:
        function.block = next((x[:-1] for x in reversed(parts[0]) if _is_label(x)), function.block)
    function.lines += merged


def _merged(parts: Sequence[list[str]]) -> list[str] | None:
    """The parts as one; None where their control flow may differ."""
    first = parts[0]
    if any(len(p) != len(first) for p in parts) or any(_branches_on_data(x) for x in first):
        return None
    names = [{b[:-1]: a[:-1] for a, b in zip(first, p, strict=True) if _is_label(b)} for p in parts]
    merged: list[str] = []
    position = 0
    while position < len(first):
        line = first[position]
        if _is_label(line) or line.startswith("  br "):
            merged.append(line)
            position += 1
            continue
        end = position + 1
        if " = phi " in line:  # those of a block stand together
            while end < len(first) and " = phi " in first[end]:
                end += 1
        for p, known in zip(parts, names, strict=True):
            merged += [_with_labels(x, known) for x in p[position:end]]
        position = end
    return merged


def _is_label(line: str) -> bool:
    return not line.startswith(" ")


def _branches_on_data(line: str) -> bool:
    return line.startswith("  br i1 ") and not line.startswith("  br i1 %more")


def _with_labels(line: str, known: dict[str, str]) -> str:
    """A phi's line with the blocks of the first copy."""
    if " = phi " not in line:
        return line
    return _LABEL.sub(lambda m: "%" + known.get(m[1], m[1]), line)
