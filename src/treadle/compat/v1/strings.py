"""``td.compat.v1.strings``: functions of strings, with TensorFlow 1's arguments."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1.functions import reduce_join as reduce_join
from treadle.compat.v1.mirrored import fallback, graph_function

__all__ = ["length", "reduce_join", "substr"]


def length(input: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """`td.strings.length`, whose second argument is the unit."""
    return graph_function(td.strings.length)(input, unit, name=name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """`td.strings.substr`, whose fourth argument is the unit."""
    return graph_function(td.strings.substr)(input, pos, len, unit, name=name)


__getattr__ = fallback(__name__, "treadle.strings")
