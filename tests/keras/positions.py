"""The arguments that a constructor takes by position."""

from __future__ import annotations

import inspect


def positions_of(kind: type) -> list[str]:
    """Their names in order. Those that a constructor passes on by position are the ones of the next
    class that it has not named itself."""
    found: list[str] = []
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
        found += [
            p.name for p in parameters
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in found
        ]  # fmt: skip
        if all(p.kind is not p.VAR_POSITIONAL for p in parameters):
            break
    return found
