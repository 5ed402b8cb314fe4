"""Tables from keys to values: ``td.lookup``.

A table is two vectors, the keys in order and their values, so that a lookup is a search for the
place and a read. Functions capture the vectors as they do other tensors, saved models hold them,
and numbers are looked up on every device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.composite_spec import CompositeTensor
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, Tensor, from_array
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import shape as shape_of
from treadle.ops.elementwise.arithmetic import minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.shaping.creation import fill
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.statistics.sorting import searchsorted
from treadle.ops.strings.reading import to_hash_bucket_fast
from treadle.ops.strings.search import search
from treadle.ops.strings.texts import as_string


class StaticHashTable:
    """A table that does not change.

    Args:
        initializer: a `KeyValueTensorInitializer` or a `TextFileInitializer`.
        default_value: the value of keys that the table does not have, a scalar.

    Raises:
        FailedPreconditionError: a key is there twice with different values.
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        self.name = name or "hash_table"
        self.key_dtype: DType = initializer.key_dtype
        self.value_dtype: DType = initializer.value_dtype
        self.default_value: Tensor = convert_to_tensor(default_value, self.value_dtype)
        if self.default_value.shape != ():
            raise TypeError(f"default_value must be a scalar{at(user_origin())}")
        keys, values = _in_order(*initializer.pairs())
        self._keys, self._values = from_array(keys), from_array(values)
        self._count = len(keys)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key, in the shape of `keys`: ragged or sparse where these are.

        Raises:
            TypeError: the keys have another dtype.
        """
        if isinstance(keys, CompositeTensor):
            return keys._with_elements(self.lookup(keys._elements()))
        wanted = _keys_for(self, keys)
        if not self._count:
            return fill(shape_of(wanted), self.default_value)
        flat = reshape(wanted, [-1])
        find = search if self.key_dtype is dtypes.string else _search_numbers
        place = minimum(find(self._keys, flat), self._count - 1)
        has = equal(gather(self._keys, place), flat)
        found = where(has, gather(self._values, place), self.default_value)
        return reshape(found, shape_of(wanted))

    __getitem__ = lookup

    def size(self, name: str | None = None) -> Tensor:
        """The number of keys, int64."""
        return convert_to_tensor(self._count, dtypes.int64)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys in order, and their values."""
        return self._keys, self._values

    def __repr__(self) -> str:
        kinds = f"{self.key_dtype.name} -> {self.value_dtype.name}"
        return f"<{type(self).__name__} {self.name!r}: {self._count} keys, {kinds}>"


class StaticVocabularyTable:
    """The numbers of tokens, where unknown tokens have numbers, too: by their hash one of
    `num_oov_buckets` behind those of the table.

    Args:
        initializer: as for `StaticHashTable`, with int64 values; None for no known tokens.
        num_oov_buckets: how many numbers unknown tokens have.
        lookup_key_dtype: the dtype of tokens that are looked up: int32 where those of the
            initializer are int64; needed without an initializer unless they are strings.

    Raises:
        TypeError: the values are not int64, or tokens are neither strings nor integers.
        ValueError: there are no buckets.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None,
        name: str | None = None, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise ValueError(f"oov_buckets must be > 0, not {num_oov_buckets}{at(user_origin())}")
        known = dtypes.string if initializer is None else initializer.key_dtype
        self.key_dtype = known if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        self.value_dtype = dtypes.int64
        self.name = name or "vocabulary_table"
        if not (self.key_dtype.is_integer or self.key_dtype is dtypes.string):
            raise TypeError(f"tokens are strings or integers, not {self.key_dtype.name}")
        if initializer is not None and self.key_dtype.is_integer != known.is_integer:
            raise TypeError(f"tokens of {known.name} are not looked up by {self.key_dtype.name}")
        if initializer is not None and initializer.value_dtype is not dtypes.int64:
            raise TypeError(
                f"the values of a StaticVocabularyTable are int64, not "
                f"{initializer.value_dtype.name}{at(user_origin())}"
            )
        self._table = None if initializer is None else StaticHashTable(initializer, -1)
        self._buckets = num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The number of each token, int64, in the shape of `keys`: ragged or sparse where these
        are.

        Raises:
            TypeError: the tokens have another dtype.
        """
        if isinstance(keys, CompositeTensor):
            return keys._with_elements(self.lookup(keys._elements()))
        wanted = _keys_for(self, keys)
        text = wanted if wanted.dtype is dtypes.string else as_string(wanted)
        unknown = to_hash_bucket_fast(text, self._buckets)
        if self._table is None:
            return unknown
        found = self._table.lookup(cast(wanted, self._table.key_dtype))
        return where(equal(found, -1), unknown + self._table._count, found)

    __getitem__ = lookup

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are, int64."""
        known = 0 if self._table is None else self._table._count
        return convert_to_tensor(known + self._buckets, dtypes.int64)


def _keys_for(table: Any, keys: Any) -> Tensor:
    wanted: Tensor = convert_to_tensor(keys, None if hasattr(keys, "dtype") else table.key_dtype)
    if wanted.dtype is not table.key_dtype:
        raise TypeError(
            f"Dtype of argument `keys` must be {table.key_dtype!r}, received: {wanted.dtype!r}"
            f"{at(user_origin())}"
        )
    return wanted


def _search_numbers(rows: Tensor, values: Tensor) -> Tensor:
    return searchsorted(rows, values, out_type=dtypes.int64)


def _in_order(keys: NDArray, values: NDArray) -> tuple[NDArray, NDArray]:
    """The pairs in the order of the keys, each once."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    for place in again:
        if values[place] != values[place + 1]:
            key, (value, other) = keys[place : place + 1].tolist()[0], values[place:].tolist()[:2]
            raise errors.FailedPreconditionError(
                None, None,
                f"HashTable has different value for same key. Key {key!r} has {value!r} and trying "
                f"to add value {other!r}{at(user_origin())}",
            )  # fmt: skip
    kept = np.delete(np.arange(len(keys)), again + 1)
    return keys[kept], values[kept]
