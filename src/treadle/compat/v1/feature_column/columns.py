"""Columns of data: numbers, categories, and what makes numbers of categories."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1 import functions, initializers, scopes
from treadle.compat.v1.feature_column import values
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.train.warm_starts import init_from_checkpoint
from treadle.compat.v1.values import Composite
from treadle.core.origin import at, user_origin


class Variables(NamedTuple):
    """How a model makes the variables of its columns.

    Attributes:
        collections: that they are put into.
        trainable: whether they are trained.
    """

    collections: list[Any]
    trainable: bool

    def make(self, name: str, shape: list[int], start: Any, trainable: bool = True) -> Any:
        """A variable."""
        return scopes.get_variable(
            name, shape, td.float32, start, trainable=trainable and self.trainable,
            collections=self.collections,
        )  # fmt: skip


class _Column:
    """What columns have alike."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def scope_name(self) -> str:
        return self.name


class _OfColumn(_Column):
    """A column that is made of another one."""

    column: Any

    @property
    def parse_spec(self) -> dict[str, Any]:
        return self.column.parse_spec  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Numeric(_Column):
    """A column of numbers."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_spec(self) -> dict[str, Any]:
        return {
            self.key: td.io.FixedLenFeature(list(self.shape), self.dtype, self.default_value)
        }

    @property
    def width(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    def dense(self, features: Any, variables: Variables) -> Any:
        """The numbers, a row for each example.

        Raises:
            ValueError: the feature is sparse.
        """
        given = features[self.key]
        if isinstance(given, Composite | td.SparseTensor):
            raise ValueError(
                f"The corresponding Tensor of numerical column must be a Tensor. SparseTensor is "
                f"not supported. key: {self.key}{at(user_origin())}"
            )
        value = functions.convert_to_tensor(given)
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return graph_function(td.reshape)(functions.cast(value, td.float32), [-1, self.width])


@dataclass(frozen=True)
class Categories(_Column):
    """A column of categories.

    Attributes:
        kind: what its values are in files: a dtype.
        number: gives the numbers of values.
    """

    key: str
    size: int
    kind: Any
    number: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_spec(self) -> dict[str, Any]:
        return {self.key: td.io.VarLenFeature(self.kind)}

    def ids(self, features: Any) -> tuple[Any, Any, Any]:
        """The numbers of the categories of each example, which of them there are, and weights."""
        value, there = values.rows(features[self.key], None)
        return self.number(value), there, None

    def is_sparse(self, features: Any) -> bool:
        """Whether TensorFlow's numbers of them are sparse, which decides the order of crosses."""
        return True


@dataclass(frozen=True)
class Bucketized(_Column):
    """Numbers as the buckets between boundaries."""

    source: Numeric
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source.name}_bucketized"

    @property
    def parse_spec(self) -> dict[str, Any]:
        return self.source.parse_spec

    @property
    def size(self) -> int:
        return (len(self.boundaries) + 1) * self.source.width

    @property
    def width(self) -> int:
        return self.size

    def _buckets(self, features: Any) -> Any:
        numbers = self.source.dense(features, Variables([], False))
        return values.bucket(numbers, list(self.boundaries))

    def ids(self, features: Any) -> tuple[Any, Any, Any]:
        """The numbers of the buckets; those of the numbers of one example are told apart."""
        count = len(self.boundaries) + 1
        first = np.arange(self.source.width, dtype=np.int64) * count
        found = self._buckets(features) + first
        return found, graph_function(td.ones_like)(found, td.bool), None

    def is_sparse(self, features: Any) -> bool:
        return True

    def dense(self, features: Any, variables: Variables) -> Any:
        """Ones at the buckets."""
        hot = graph_function(td.one_hot)(self._buckets(features), len(self.boundaries) + 1)
        return graph_function(td.reshape)(hot, [-1, self.width])


@dataclass(frozen=True)
class Weighted(_Column):
    """Categories with a number for each."""

    column: Any
    key: str
    dtype: Any

    @property
    def name(self) -> str:
        return f"{self.column.name}_weighted_by_{self.key}"

    @property
    def parse_spec(self) -> dict[str, Any]:
        return {**self.column.parse_spec, self.key: td.io.VarLenFeature(self.dtype)}

    @property
    def size(self) -> int:
        return int(self.column.size)

    def ids(self, features: Any) -> tuple[Any, Any, Any]:
        ids, there, _ = self.column.ids(features)
        weights, _ = values.rows(features[self.key], 0.0)
        return ids, there, functions.cast(weights, td.float32)


@dataclass(frozen=True)
class Crossed(_Column):
    """All combinations of the values of some columns, numbered by their hashes."""

    keys: tuple[Any, ...]
    size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(k if isinstance(k, str) else k.name for k in self._leaves()))

    @property
    def parse_spec(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key in self.keys:
            one = {key: td.io.VarLenFeature(td.string)} if isinstance(key, str) else key.parse_spec
            found |= one
        return found

    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for key in self.keys:
            found += key._leaves() if isinstance(key, Crossed) else [key]
        return found

    def ids(self, features: Any) -> tuple[Any, Any, Any]:
        leaves = self._leaves()
        parts = [self._part(k, features) for k in leaves]
        sparse = [not isinstance(k, str) or _is_sparse(features[k]) for k in leaves]
        # TensorFlow crosses the sparse ones first.
        order = sorted(range(len(leaves)), key=lambda i: not sparse[i])
        found, there = values.crossed([parts[i] for i in order], self.size, self.hash_key)
        return found, there, None

    @staticmethod
    def _part(key: Any, features: Any) -> list[Any]:
        if not isinstance(key, str):
            ids, there, _ = key.ids(features)
            return [ids, there]
        value, there = values.rows(features[key], None)
        if not _is_sparse(features[key]):  # here an empty word is a word
            there = graph_function(td.ones_like)(there)
        return [value, there]


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Composite | td.SparseTensor)


@dataclass(frozen=True)
class Indicator(_OfColumn):
    """Categories as a vector with ones."""

    column: Any

    @property
    def name(self) -> str:
        return f"{self.column.name}_indicator"

    @property
    def width(self) -> int:
        return int(self.column.size)

    def dense(self, features: Any, variables: Variables) -> Any:
        """How often each category is there."""
        return values.counted(*self.column.ids(features), self.width)


@dataclass(frozen=True)
class Embedding(_OfColumn):
    """Categories as vectors that are learned.

    Attributes:
        shared: the collection of the variable that other columns use, too; or None.
        checkpoint: where the variable begins: a checkpoint and a name in it; or None.
    """

    column: Any
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool
    max_norm: Any
    checkpoint: tuple[Any, str] | None
    shared: str | None = None

    @property
    def name(self) -> str:
        return f"{self.column.name}_{'shared_' if self.shared else ''}embedding"

    @property
    def scope_name(self) -> str:
        return self.shared or self.name

    @property
    def width(self) -> int:
        return self.dimension

    def _table(self, variables: Variables) -> Any:
        graph = get_default_graph()
        known = graph.get_collection(self.shared) if self.shared else []
        if known:
            return known[0]
        start = self.initializer or initializers.truncated_normal_initializer(
            0.0, 1 / self.dimension**0.5
        )
        sizes = [self.column.size, self.dimension]
        table = variables.make("embedding_weights", sizes, start, self.trainable)
        if self.shared:
            graph.add_to_collection(self.shared, table)
        if self.checkpoint is not None:
            path, name = self.checkpoint
            init_from_checkpoint(path, {name: table})
        return table

    def dense(self, features: Any, variables: Variables) -> Any:
        """The vectors of the categories, combined."""
        ids = self.column.ids(features)
        return values.combined(self._table(variables), *ids, self.combiner, self.max_norm)


# -- making columns ------------------------------------------------------------------------------


def numeric_column(key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = td.float32,
                   normalizer_fn: Any = None) -> Any:  # fmt: skip
    """A column of numbers."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return Numeric(key, sizes, default_value, td.as_dtype(dtype), normalizer_fn)


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """Numbers as the buckets between boundaries.

    Raises:
        ValueError: the boundaries are not sorted, or it is no column of numbers.
    """
    if not isinstance(source_column, Numeric):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). Given: "
            f"{source_column}{at(user_origin())}"
        )
    if not boundaries or list(boundaries) != sorted(boundaries):
        raise ValueError(f"boundaries must be a sorted list.{at(user_origin())}")
    return Bucketized(source_column, tuple(boundaries))


def categorical_column_with_identity(key: str, num_buckets: int, default_value: Any = None) -> Any:
    """A column of numbers of categories.

    Args:
        default_value: what other numbers become.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}{at(user_origin())}")
    return Categories(
        key, num_buckets, td.int64, lambda x: values.replaced(x, num_buckets, default_value)
    )


def _of_words(
    key: str, words: tuple[Any, ...], dtype: Any, default: int | None, oov: int
) -> Categories:
    if not words:
        raise ValueError(f"The vocabulary of {key} is empty{at(user_origin())}")
    if oov and default not in (None, -1):
        raise ValueError(
            f"Can't specify both num_oov_buckets and default_value in {key}.{at(user_origin())}"
        )
    default = -1 if default is None else default
    return Categories(
        key, len(words) + oov, dtype, lambda x: values.numbered(x, words, default, oov)
    )


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1,
    num_oov_buckets: int = 0,
) -> Any:  # fmt: skip
    """A column of words of a list.

    Args:
        num_oov_buckets: how many categories there are for other words.

    Raises:
        ValueError: a word is twice in it, or both a default and categories for others are given.
    """
    words = tuple(vocabulary_list)
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list: {key}{at(user_origin())}")
    kind = td.as_dtype(dtype) if dtype is not None else (
        td.string if words and isinstance(words[0], str | bytes) else td.int64
    )  # fmt: skip
    return _of_words(key, words, kind, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(
    key: str, vocabulary_file: Any, vocabulary_size: int | None = None, num_oov_buckets: int = 0,
    default_value: int | None = None, dtype: Any = td.string,
) -> Any:  # fmt: skip
    """A column of the words that are the lines of a file.

    Args:
        vocabulary_size: how many of them count; all where omitted.
        num_oov_buckets: how many categories there are for other words.

    Raises:
        ValueError: the file has fewer lines, or both a default and categories for others are given.
    """
    with open(os.fspath(vocabulary_file), encoding="utf-8") as file:
        lines = [line.rstrip("\r\n") for line in file]
    size = len(lines) if vocabulary_size is None else vocabulary_size
    if not 0 < size <= len(lines):
        raise ValueError(
            f"Invalid vocabulary_size: {vocabulary_file} has {len(lines)} lines{at(user_origin())}"
        )
    kind = td.as_dtype(dtype)
    words = tuple(lines[:size]) if kind is td.string else tuple(map(int, lines[:size]))
    return _of_words(key, words, kind, default_value, num_oov_buckets)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = td.string
) -> Any:
    """A column of words, numbered by their hashes."""
    return Categories(
        key, hash_bucket_size, td.as_dtype(dtype), lambda x: values.hashed(x, hash_bucket_size)
    )


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> Any:
    """All combinations of the values of columns, numbered by their hashes.

    Args:
        keys: names of features, and columns of categories.

    Raises:
        ValueError: there are fewer than two, or one is a column of another kind.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. {hash_bucket_size}{at(user_origin())}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}{at(user_origin())}")
    for key in keys:
        if not isinstance(key, str | Categories | Bucketized | Crossed):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column. "
                f"Given: {key}{at(user_origin())}"
            )
    return Crossed(tuple(keys), hash_bucket_size, hash_key)


def weighted_categorical_column(
    categorical_column: Any, weight_feature_key: str, dtype: Any = td.float32
) -> Any:
    """Categories with a number for each, which is another feature."""
    return Weighted(categorical_column, weight_feature_key, td.as_dtype(dtype))


def indicator_column(categorical_column: Any) -> Any:
    """Categories as a vector with ones."""
    return Indicator(categorical_column)


def embedding_column(categorical_column: Any, dimension: int, combiner: str = "mean",
                     initializer: Any = None, ckpt_to_load_from: Any = None,
                     tensor_name_in_ckpt: Any = None, max_norm: Any = None, trainable: bool = True,
                     use_safe_embedding_lookup: bool = True) -> Any:  # fmt: skip
    """Categories as vectors that are learned.

    Args:
        combiner: what the vectors of one example become: ``mean``, ``sum`` or ``sqrtn``.
        ckpt_to_load_from, tensor_name_in_ckpt: where they begin.

    Raises:
        ValueError: there is no such combiner, or only one of the last two is given.
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.{at(user_origin())}")
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum'{at(user_origin())}")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
            f"{at(user_origin())}"
        )
    checkpoint = None if ckpt_to_load_from is None else (ckpt_to_load_from, tensor_name_in_ckpt)
    return Embedding(
        categorical_column, dimension, combiner, initializer, trainable, max_norm, checkpoint
    )


def shared_embedding_columns(
    categorical_columns: Sequence[Any], dimension: int, combiner: str = "mean",
    initializer: Any = None, shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None, max_norm: Any = None,
    trainable: bool = True, use_safe_embedding_lookup: bool = True,
) -> list[Any]:  # fmt: skip
    """Several columns of the same categories, whose vectors are the same, too.

    Raises:
        ValueError: they have different numbers of categories.
    """
    if len({c.size for c in categorical_columns}) > 1:
        raise ValueError(
            "To use shared_embedding_column, all categorical_columns must have the same number of "
            f"buckets.{at(user_origin())}"
        )
    names = sorted(c.name for c in categorical_columns)
    shared = shared_embedding_collection_name or "_".join([*names, "shared_embedding"])
    start = initializer or initializers.truncated_normal_initializer(0.0, 1 / dimension**0.5)
    return [
        replace(
            embedding_column(
                c, dimension, combiner, start, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
                trainable,
            ),
            shared=shared,
        )
        for c in categorical_columns
    ]  # fmt: skip


