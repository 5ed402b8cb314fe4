"""``td.compat.v1.strings``: functions of strings, with TensorFlow 1's arguments."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1.functions import reduce_join as reduce_join
from treadle.compat.v1.functions import renamed
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.origin import at, user_origin

__all__ = ["length", "reduce_join", "split", "substr"]


def length(input: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """`td.strings.length`, whose second argument is the unit."""
    return graph_function(td.strings.length)(input, unit, name=name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """`td.strings.substr`, whose fourth argument is the unit."""
    return graph_function(td.strings.substr)(input, pos, len, unit, name=name)


def split(
    input: Any = None, sep: Any = None, maxsplit: int = -1, result_type: str = "SparseTensor",
    source: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The words of strings as a sparse tensor, or as a ragged one where `result_type` says so."""
    input = renamed(input, "input", source, "source")
    if result_type == "RaggedTensor":
        return td.strings.split(input, sep, maxsplit)
    if result_type != "SparseTensor":
        raise ValueError(f"result_type must be 'RaggedTensor' or 'SparseTensor', got "
                         f"{result_type!r}{at(user_origin())}")  # fmt: skip
    return _words(input, sep, maxsplit, name=name)


def _as_sparse(strings: Any, sep: Any, maxsplit: int) -> Any:
    found = td.strings.split(td.convert_to_tensor(strings), sep, maxsplit)
    return found.to_sparse() if hasattr(found, "to_sparse") else td.sparse.from_dense(found)


_words = recorded(_as_sparse, "StringsSplit", "StringSplitV2")
in_graphs(_as_sparse)

__getattr__ = fallback(__name__, "treadle.strings")
