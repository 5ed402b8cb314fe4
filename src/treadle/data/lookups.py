"""Lookup tables of what datasets hold (``td.data.experimental``)."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.data.dataset import Dataset


def DatasetInitializer(dataset: Dataset) -> Any:
    """The entries of a table: the elements of a dataset, which are pairs of a key and a value.

    Raises:
        ValueError: the elements are no pairs of scalars.
    """
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) != 2:
        raise ValueError(
            f"DatasetInitializer: the elements must be pairs (key, value), not {spec!r}"
        )
    keys, values = zip(*dataset.as_numpy_iterator(), strict=True)
    return td.lookup.KeyValueTensorInitializer(
        td.constant(list(keys), spec[0].dtype), td.constant(list(values), spec[1].dtype)
    )


def table_from_dataset(
    dataset: Dataset | None = None, num_oov_buckets: int = 0, vocab_size: Any = None,
    default_value: Any = None, hasher_spec: Any = None, key_dtype: Any = td.string,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A table of the pairs (key, value) that the elements are.

    Args:
        dataset: of the pairs.
        num_oov_buckets: into how many numbers unknown keys are hashed, instead of `default_value`;
            the values are numbers from 0 then.
        vocab_size: the number of entries, where that is known.
        default_value: what unknown keys give; -1, or "" for strings, when omitted.
        hasher_spec: accepted for TensorFlow programs.
        key_dtype: of the keys.

    Raises:
        ValueError: no dataset is given, or a `default_value` beside buckets, or other keys.
    """
    if dataset is None:
        raise ValueError("table_from_dataset: give the dataset of (key, value) pairs")
    if num_oov_buckets < 0:
        raise ValueError(
            f"`num_oov_buckets` must be greater than or equal to 0, got {num_oov_buckets}."
        )
    entries = DatasetInitializer(dataset if vocab_size is None else dataset.take(vocab_size))
    if num_oov_buckets and entries.key_dtype != td.as_dtype(key_dtype):
        raise TypeError(
            f"table_from_dataset: the keys are {entries.key_dtype}, not key_dtype={key_dtype}"
        )
    if num_oov_buckets:
        return td.lookup.StaticVocabularyTable(entries, num_oov_buckets)
    if default_value is None:
        default_value = "" if entries.value_dtype is td.string else -1
    return td.lookup.StaticHashTable(entries, default_value)


def index_table_from_dataset(
    dataset: Dataset | None = None, num_oov_buckets: int = 0, vocab_size: Any = None,
    default_value: Any = -1, hasher_spec: Any = None, key_dtype: Any = td.string,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A table from the elements, which are keys, to their numbers; see `table_from_dataset`."""
    if dataset is None:
        raise ValueError("index_table_from_dataset: give the dataset of keys")
    pairs = dataset.enumerate().map(lambda number, key: (key, number))
    return table_from_dataset(
        pairs, num_oov_buckets, vocab_size, np.int64(default_value), hasher_spec, key_dtype
    )
