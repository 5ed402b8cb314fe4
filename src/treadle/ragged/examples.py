"""Examples of TensorFlow read into tensors, sparse and ragged ones among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.reductions.reduction import reduce_max
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.strings.examples import (
    Listed,
    RaggedFeature,
    features_of,
    parsed,
    scalar_string,
)
from treadle.ragged import partitions
from treadle.ragged.tensor import RaggedTensor
from treadle.sparse.tensor import SparseTensor


def _parsed(
    serialized: Any, names: Any, features: Mapping[Any, Any], steps: Mapping[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """The features, the lists of features and the lengths of these."""
    found, lists, lengths = parsed(serialized, names, features, steps)
    for key, value in found.items():
        if isinstance(value, Listed):
            is_ragged = isinstance(features[key], RaggedFeature)
            found[key] = _ragged(value, features[key]) if is_ragged else _sparse(value)
    return found, lists, lengths


def _ragged(listed: Listed, feature: RaggedFeature) -> Any:
    """The rows of a batch; of a single example its values."""
    values, counts = listed
    if not counts.ndim:
        return values
    splits = partitions.splits_of_lengths(cast(counts, feature.row_splits_dtype))
    return RaggedTensor(values, splits)


def _sparse(listed: Listed) -> SparseTensor:
    values, counts = listed
    count: Tensor = dims_tensor(values.dims[0], dtypes.int64)
    if not counts.ndim:
        return SparseTensor(range_(count)[:, None], values, stack([count]))
    splits = partitions.splits_of_lengths(counts)
    places = [partitions.row_ids(splits, count), partitions.positions(splits, count)]
    widest = reduce_max(concat([counts, [0]], 0))
    rows = dims_tensor(counts.dims[0], dtypes.int64)
    return SparseTensor(stack(places, 1), values, stack([rows, widest]))


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[Any, Any]:
    """The features of a batch of examples.

    Args:
        serialized: a vector of examples, as ``Example.SerializeToString`` gives them; or a scalar.
        features: a dict from names to FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or
            RaggedFeature.
        example_names: names of the examples, for errors.

    Returns:
        a tensor [batch, *shape] for each name, [batch, parts, *shape] for a
        FixedLenSequenceFeature, whose shorter rows are filled up; a sparse tensor for a
        VarLenFeature, a ragged one for a RaggedFeature.

    Raises:
        ValueError: no features, or of another kind.
        InvalidArgumentError: an example that is damaged, lacks a feature without a default, or has
            it with another dtype or number of values.
    """
    return _parsed(serialized, example_names, features_of(features, "features"), {})[0]


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[Any, Any]:
    """The features of one example, a scalar string; see `parse_example`.

    Returns:
        a tensor of its shape for each name.

    Raises:
        ValueError: no scalar; no features, or of another kind.
        InvalidArgumentError: an example that does not fit.
    """
    return _parsed(
        scalar_string(serialized, "parse_single_example"), example_names,
        features_of(features, "features"), {},
    )[0]  # fmt: skip


def parse_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None,
    example_names: Any = None, name: str | None = None,
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:  # fmt: skip
    """The features of a batch of sequence examples.

    Args:
        serialized: a vector of sequence examples, or a scalar.
        context_features: a dict of features of the whole examples, as for `parse_example`.
        sequence_features: a dict of FixedLenSequenceFeatures, one part for each step.
        example_names: names of the examples, for errors.

    Returns:
        the context's tensors [batch, *shape]; the sequences' tensors [batch, steps, *shape],
        filled up; and the lengths of these, int64 [batch].

    Raises:
        ValueError, InvalidArgumentError: as for `parse_example`.
    """
    return _parsed(serialized, example_names, context_features or {}, sequence_features or {})


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None,
    example_name: Any = None, name: str | None = None,
) -> tuple[dict[Any, Any], dict[Any, Any]]:  # fmt: skip
    """The features of one sequence example, a scalar string; see `parse_sequence_example`.

    Returns:
        the context's tensors and the sequences' tensors [steps, *shape].

    Raises:
        ValueError, InvalidArgumentError: as for `parse_example`.
    """
    context, lists, _ = _parsed(
        scalar_string(serialized, "parse_single_sequence_example"),
        None if example_name is None else [example_name], context_features or {},
        sequence_features or {},
    )  # fmt: skip
    return context, lists
