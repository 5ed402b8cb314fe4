"""``td.compat.v1.lookup``: tables that graphs look into."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.values import Literal
from treadle.compat.v1.variables import no_op


class StaticHashTable(td.lookup.StaticHashTable):
    """`td.lookup.StaticHashTable`. It is filled when it is made: `initializer` does nothing."""

    @property
    def initializer(self) -> Any:
        """An operation that programs run before they look anything up."""
        return no_op(f"{self.name}_init")

    init = initializer

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key, in the shape of `keys`."""
        return graph_function(_looked_up)(Literal(self), keys, name=name or "hash_table_Lookup")

    __getitem__ = lookup


class StaticVocabularyTable(td.lookup.StaticVocabularyTable):
    """`td.lookup.StaticVocabularyTable`. It is filled when it is made."""

    initializer = init = StaticHashTable.initializer

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The number of each token, int64, in the shape of `keys`."""
        return graph_function(_looked_up)(Literal(self), keys, name=name or "hash_table_Lookup")

    __getitem__ = lookup


def _looked_up(table: Any, keys: Any, name: str | None = None) -> Any:
    """The lookup of the class of `td.lookup` that the table's class of graphs is made of."""
    return super(type(table), table).lookup(keys)


def tables_initializer(name: str = "init_all_tables") -> Any:
    """An operation that does nothing: tables are filled when they are made."""
    return no_op(name)


__all__ = ["StaticHashTable", "StaticVocabularyTable"]
__getattr__ = fallback(__name__, "treadle.lookup")
