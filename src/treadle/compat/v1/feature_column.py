"""``td.compat.v1.feature_column``: features of models from columns of data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1 import functions, initializers, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.values import element


class _Numeric(NamedTuple):
    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def width(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    def dense(self, features: Any) -> Any:
        """The numbers, a row for each example."""
        value = functions.cast(functions.convert_to_tensor(features[self.key]), td.float32)
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return graph_function(td.reshape)(value, [-1, self.width])


class _Categories(NamedTuple):
    """A column of categories: `ids` gives their numbers, -1 for none."""

    key: str
    size: int
    number: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return self.key

    def ids(self, features: Any) -> Any:
        """A row of numbers for each example."""
        value = self.number(functions.convert_to_tensor(features[self.key]))
        if element(value).shape.rank == 1:  # type: ignore[union-attr]
            value = functions.expand_dims(value, -1)
        return value


class _Bucketized(NamedTuple):
    source: _Numeric
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source.name}_bucketized"

    @property
    def size(self) -> int:
        return len(self.boundaries) + 1

    @property
    def width(self) -> int:
        return self.size * self.source.width

    def ids(self, features: Any) -> Any:
        """The number of the bucket of each number."""
        return _bucket(self.source.dense(features), list(self.boundaries))

    def dense(self, features: Any) -> Any:
        """Ones at the buckets."""
        hot = graph_function(td.one_hot)(self.ids(features), self.size)
        return graph_function(td.reshape)(hot, [-1, self.width])


def _bucketed(x: Any, boundaries: list[float]) -> Any:
    return td.reduce_sum(td.cast(x[..., None] >= td.constant(boundaries), td.int64), -1)


_bucket = recorded(_bucketed, "Bucketize")


class _Indicator(NamedTuple):
    column: Any

    @property
    def name(self) -> str:
        return f"{self.column.name}_indicator"

    @property
    def width(self) -> int:
        return int(self.column.size)

    def dense(self, features: Any) -> Any:
        """How often each category is there."""
        hot = graph_function(td.one_hot)(self.column.ids(features), self.width)
        return functions.reduce_sum(hot, 1)


class _Embedding(NamedTuple):
    column: Any
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool

    @property
    def name(self) -> str:
        return f"{self.column.name}_embedding"

    @property
    def width(self) -> int:
        return self.dimension

    def dense(self, features: Any) -> Any:
        """The vectors of the categories, combined."""
        start = self.initializer or initializers.truncated_normal_initializer(
            0.0, 1 / self.dimension**0.5
        )
        with scopes.variable_scope(None, default_name=self.name):
            table = scopes.get_variable(
                "embedding_weights", [self.column.size, self.dimension], initializer=start,
                trainable=self.trainable,
                collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES],
            )  # fmt: skip
        return _combine(table, self.column.ids(features), self.combiner)


def _combined(table: Any, ids: Any, combiner: str) -> Any:
    known = td.cast(ids >= 0, td.float32)
    rows = td.gather(table, td.maximum(ids, 0)) * known[..., None]
    total, count = td.reduce_sum(rows, 1), td.reduce_sum(known, 1, keepdims=True)
    if combiner == "sum":
        return total
    return td.math.divide_no_nan(total, count if combiner == "mean" else td.sqrt(count))


_combine = recorded(_combined, "embedding_lookup")


def numeric_column(key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = td.float32,
                   normalizer_fn: Any = None) -> Any:  # fmt: skip
    """A column of numbers."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return _Numeric(key, sizes, default_value, dtype, normalizer_fn)


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """Numbers as the buckets between boundaries.

    Raises:
        ValueError: the boundaries are not sorted.
    """
    if list(boundaries) != sorted(boundaries):
        raise ValueError("boundaries must be a sorted list.")
    return _Bucketized(source_column, tuple(boundaries))


def categorical_column_with_identity(key: str, num_buckets: int, default_value: Any = None) -> Any:
    """A column of numbers of categories."""
    return _Categories(key, num_buckets, lambda x: functions.cast(x, td.int64))


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1,
    num_oov_buckets: int = 0,
) -> Any:  # fmt: skip
    """A column of words of a list."""
    words = list(vocabulary_list)

    def number(x: Any) -> Any:
        return _look_up(x, words, default_value, num_oov_buckets)

    return _Categories(key, len(words) + num_oov_buckets, number)


def _found(x: Any, words: list[Any], default: int, oov: int) -> Any:
    same = x[..., None] == td.constant(words, x.dtype)
    index = td.argmax(td.cast(same, td.int32), -1)
    other = td.cast(default, td.int64)
    if oov:
        text = x if x.dtype is td.string else td.strings.as_string(x)
        other = len(words) + td.strings.to_hash_bucket_fast(text, oov)
    return td.where(td.reduce_any(same, -1), index, other)


_look_up = recorded(_found, "hash_table_Lookup")


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = td.string
) -> Any:
    """A column of words, numbered by their hashes."""

    def number(x: Any) -> Any:
        text = x if x.dtype is td.string else graph_function(td.strings.as_string)(x)
        return graph_function(td.strings.to_hash_bucket_fast)(text, hash_bucket_size)

    return _Categories(key, hash_bucket_size, number)


def indicator_column(categorical_column: Any) -> Any:
    """Categories as a vector with ones."""
    return _Indicator(categorical_column)


def embedding_column(categorical_column: Any, dimension: int, combiner: str = "mean",
                     initializer: Any = None, ckpt_to_load_from: Any = None,
                     tensor_name_in_ckpt: Any = None, max_norm: Any = None, trainable: bool = True,
                     use_safe_embedding_lookup: bool = True) -> Any:  # fmt: skip
    """Categories as vectors that are learned."""
    return _Embedding(categorical_column, dimension, combiner, initializer, trainable)


def input_layer(features: Any, feature_columns: Any, weight_collections: Any = None,
                trainable: bool = True, cols_to_vars: Any = None,
                cols_to_output_tensors: Any = None) -> Any:
    """The columns side by side, sorted by their names.

    Raises:
        ValueError: a column of categories is neither an indicator nor an embedding.
    """
    columns = list(feature_columns) if isinstance(feature_columns, list | set) else [
        feature_columns
    ]
    parts = []
    with scopes.variable_scope(None, default_name="input_layer"):
        for column in sorted(columns, key=lambda c: c.name):
            if not hasattr(column, "dense"):
                raise ValueError(
                    f"Items of feature_columns must be a _DenseColumn. Given: {column}. Use "
                    "indicator_column or embedding_column for categories."
                )
            parts.append(column.dense(features))
    return graph_function(td.concat)(parts, 1)


def linear_model(features: Any, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum",
                 weight_collections: Any = None, trainable: bool = True,
                 cols_to_vars: Any = None) -> Any:
    """The weighted sum of the columns and a bias."""
    total: Any = None
    zeros = initializers.zeros_initializer()
    with scopes.variable_scope(None, default_name="linear_model"):
        for column in sorted(feature_columns, key=lambda c: c.name):
            with scopes.variable_scope(column.name):
                given = column if hasattr(column, "dense") else _Indicator(column)
                x = given.dense(features)
                weights = scopes.get_variable("weights", [given.width, units], initializer=zeros)
                part = functions.matmul(x, weights)
            total = part if total is None else total + part
        bias = scopes.get_variable("bias_weights", [units], initializer=zeros)
    return graph_function(td.nn.bias_add)(total, bias)


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """The features for `parse_example`."""
    found = {}
    for column in feature_columns:
        source = getattr(column, "source", getattr(column, "column", column))
        if isinstance(source, _Numeric):
            found[source.key] = td.io.FixedLenFeature(list(source.shape), source.dtype)
        else:
            found[source.key] = td.io.FixedLenFeature([1], td.string)
    return found

in_graphs(
    _bucketed,
    _combined,
    _found,
)
