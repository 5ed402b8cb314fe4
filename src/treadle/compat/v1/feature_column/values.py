"""What columns compute with: numbers of categories, and where there are none."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.context import recording, taping


def _rows(value: Any, missing: Any) -> list[Any]:
    if isinstance(value, td.SparseTensor):
        there = td.sparse.to_dense(value.with_values(td.ones_like(value.values, td.bool)))
        value = td.sparse.to_dense(value)
    else:
        value = td.convert_to_tensor(value)
        if missing is None:
            missing = "" if value.dtype is td.string else -1
        there = value != td.cast(missing, value.dtype) if value.dtype is not td.string else (
            value != missing
        )
    if len(value.shape) != 2:
        count = td.shape(value)[0]
        value, there = (td.reshape(x, [count, -1]) for x in (value, there))
    return [value, there]


# The values of a feature, a row for each example, and which of them there are. Of a dense tensor
# those are missing that are an empty word or -1.
rows = recorded(_rows, "to_sparse_input", "Where")


def _bucketed(x: Any, boundaries: list[float]) -> Any:
    """The number of the bucket of each number."""
    return td.reduce_sum(td.cast(x[..., None] >= td.constant(boundaries), td.int64), -1)


bucket = recorded(_bucketed, "Bucketize")


def _replaced(ids: Any, size: int, default: Any) -> Any:
    ids = td.cast(ids, td.int64)
    if default is None:
        return ids
    return td.where((ids < 0) | (ids >= size), td.cast(default, td.int64), ids)


# Numbers of categories; others than there are become the default.
replaced = recorded(_replaced, "default_values", "Select")


@functools.lru_cache(32)
def _table_of(words: tuple[Any, ...], default: int, kinds: tuple[type, ...]) -> Any:
    """The numbers of words."""
    with recording(None), taping(()):
        keys = td.constant(list(words))
        numbers = td.range(len(words), dtype=td.int64)
        return td.lookup.StaticHashTable(
            td.lookup.KeyValueTensorInitializer(keys, numbers), default
        )


def _table(words: Sequence[Any], default: int) -> Any:
    """See `_table_of`: ``(1, 2)`` and ``(1.0, 2.0)`` are different words, though they are equal."""
    return _table_of(tuple(words), default, tuple(map(type, words)))


def _numbered(x: Any, words: tuple[Any, ...], default: int, oov: int) -> Any:
    of_text = isinstance(words[0], str | bytes)
    keys = x if of_text else td.cast(x, _table(words, default).key_dtype)
    found = _table(words, default if not oov else -1).lookup(keys)
    if not oov:
        return found
    text = x if x.dtype is td.string else td.strings.as_string(x)
    return td.where(
        found < 0, len(words) + td.strings.to_hash_bucket_fast(text, oov), found
    )


# The numbers of words of a list; others have the default, or a number behind all by their hash.
numbered = recorded(_numbered, "hash_table_Lookup", "LookupTableFindV2")


def _hashed(x: Any, buckets: int) -> Any:
    text = x if x.dtype is td.string else td.strings.as_string(x)
    return td.strings.to_hash_bucket_fast(text, buckets)


hashed = recorded(_hashed, "lookup", "StringToHashBucketFast")


def _counted(ids: Any, there: Any, weights: Any, size: int) -> Any:
    each = td.cast(there, td.float32) if weights is None else weights * td.cast(there, td.float32)
    return td.reduce_sum(td.one_hot(ids, size) * each[..., None], 1)


# How often each category is there, or the sum of its weights.
counted = recorded(_counted, "Sum", "Sum")


def _combined(
    table: Any, ids: Any, there: Any, weights: Any, combiner: str, max_norm: Any
) -> Any:
    known = there & (ids >= 0)
    if weights is not None and combiner != "sum":
        known = known & (weights > 0.0)
    each = td.cast(known, td.float32)
    if weights is not None:
        each = each * weights
    rows = td.gather(table, td.where(known, ids, td.zeros_like(ids)))
    if max_norm is not None:
        rows = td.clip_by_norm(rows, max_norm, axes=[-1])
    total = td.reduce_sum(rows * each[..., None], 1)
    if combiner == "sum":
        return total
    if combiner == "mean":
        return td.math.divide_no_nan(total, td.reduce_sum(each, 1, keepdims=True))
    squares = td.reduce_sum(each * each, 1, keepdims=True)
    return td.math.divide_no_nan(total, td.sqrt(squares))


# The rows of a table for the categories of each example, combined.
combined = recorded(_combined, "embedding_lookup_sparse", "SegmentSum")

_KEY = 0xDECAFCAFFE  # of the hashes of TensorFlow's crosses, where no other is given


def _mixed(a: Any, b: Any) -> Any:
    """Two hashes as one, as TensorFlow concatenates fingerprints."""
    factor, bits = td.constant(0xC6A4A7935BD1E995, td.uint64), td.constant(47, td.uint64)

    def stirred(x: Any) -> Any:
        return td.bitwise.bitwise_xor(x, td.bitwise.right_shift(x, bits))

    first = td.bitwise.bitwise_xor(a, factor)
    both = td.bitwise.bitwise_xor(first, stirred(b * factor) * factor) * factor
    return stirred(stirred(both) * factor)


def _crossed(parts: list[Any], buckets: int, key: int | None) -> list[Any]:
    """The hashes of all combinations of the values of columns, and which there are.

    Args:
        parts: for each column its values and which of them there are.
    """
    found: Any = td.constant(_KEY if key is None else key, td.uint64)[None, None]
    there: Any = td.constant(True)[None, None]
    for values, known in parts:
        if values.dtype is td.string:
            flat = td.fingerprint(td.reshape(values, [-1]))
            hashes = td.reshape(td.bitcast(flat, td.uint64), td.shape(values))
        else:
            hashes = td.bitcast(td.cast(values, td.int64), td.uint64)
        count = td.shape(values)[0]
        found = td.reshape(_mixed(found[:, :, None], hashes[:, None, :]), [count, -1])
        there = td.reshape(there[:, :, None] & known[:, None, :], [count, -1])
    return [td.cast(found % td.constant(buckets, td.uint64), td.int64), there]


crossed = recorded(_crossed, "SparseCross", "SparseCross")

in_graphs(
    _bucketed,
    _combined,
    _counted,
    _crossed,
    _hashed,
    _numbered,
    _replaced,
    _rows,
)
