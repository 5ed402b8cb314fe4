"""``set``, ``frozenset``, ``dict``, ``str`` and `collections.Counter` of what only the run
knows."""

from __future__ import annotations

import builtins
import collections
import types
from typing import Any

from treadle.jitted import table_functions
from treadle.jitted.arrays import Array, TracedSequence, is_traced
from treadle.jitted.comprehensions import Selected, list_of, selected
from treadle.jitted.iteration import as_counted
from treadle.jitted.namespace import add_builtin, add_stand_in
from treadle.jitted.run_texts import RunText, to_char, to_code, to_text
from treadle.jitted.tables import Table, set_of
from treadle.jitted.written import traced
from treadle.jitted.written_texts import is_text_or_written


class _Named(type):
    """The type of what stands for a type of Python's of the same name, and is equal to it."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is getattr(builtins, cls.__name__)

    def __hash__(cls) -> int:
        return hash(getattr(builtins, cls.__name__))


class _SetType(_Named):
    """``set`` and ``frozenset``: called with values of the run they make one of the graph."""

    def __call__(cls, *iterable: Any) -> Any:
        source = _listed(iterable[0]) if iterable else ()
        kind: Any = frozenset if cls.__name__ == "frozenset" else set
        return set_of(source) if is_traced(source) else kind(source)

    def __instancecheck__(cls, value: Any) -> bool:
        kind: Any = frozenset if cls.__name__ == "frozenset" else set
        return isinstance(value, kind) or (isinstance(value, Table) and value.is_set)

    def __getattr__(cls, name: str) -> Any:
        return getattr(set, name)


class _DictType(_Named):
    """``dict``: called with pairs whose keys only the run knows it makes one of the graph."""

    def __call__(cls, *pairs: Any, **entries: Any) -> Any:
        if pairs and isinstance(pairs[0], Table):
            return pairs[0].copy()
        source = _listed(pairs[0]) if pairs and not isinstance(pairs[0], dict) else None
        if source is not None and not entries and _have_traced_keys(source):
            return traced(table_functions.dict_of, source, _first, _second, _always)
        if source is not None:  # an iterator gives its pairs once
            pairs = (source,)
        return dict(*pairs, **entries)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, dict) or (isinstance(value, Table) and not value.is_set)

    def __getattr__(cls, name: str) -> Any:
        return getattr(dict, name)

    def __getitem__(cls, key: Any) -> Any:
        return types.GenericAlias(dict, key)


class _CounterType(type):
    """``collections.Counter``, of what only the run knows."""

    def __call__(cls, *iterable: Any, **counts: Any) -> Any:
        source = _listed(iterable[0]) if iterable else None
        if source is None or counts or isinstance(source, dict) or not is_traced(source):
            return collections.Counter(source, **counts)
        made = traced(table_functions.counts_of, source)
        if isinstance(made, Table):
            made.default, made.is_counter = 0, True
        return made

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, collections.Counter) or (
            isinstance(value, Table) and value.is_counter
        )


def _listed(source: Any) -> Any:
    """What an iterable gives, once: a list, or what the graph has by position."""
    if isinstance(source, Selected):
        return selected(source)
    if isinstance(source, RunText):
        return source.copy()
    if isinstance(source, Array | TracedSequence | dict | str):
        return source
    counted = as_counted(source)
    if counted is not None:
        return list_of(counted)
    return list(source)


def _have_traced_keys(source: Any) -> bool:
    if isinstance(source, TracedSequence):
        return True
    return isinstance(source, list) and any(is_traced(_first(pair)) for pair in source)


def _first(pair: Any) -> Any:
    return pair[0]


def _second(pair: Any) -> Any:
    return pair[1]


def _always(pair: Any) -> bool:
    return True


class _StrType(_Named):
    """``str``: called with an int that only the run knows it makes a text of the run."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return to_text(*args) if len(args) == 1 and not options else str(*args, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return is_text_or_written(value)

    def __getattr__(cls, name: str) -> Any:
        return getattr(str, name)


_TYPES = {"set": _SetType, "frozenset": _SetType, "dict": _DictType, "str": _StrType}
for _name, _kind in _TYPES.items():
    add_builtin(_name, type.__new__(_kind, _name, (), {}))
add_builtin("ord", to_code)
add_builtin("chr", to_char)
add_stand_in(collections.Counter, type.__new__(_CounterType, "Counter", (), {}))
