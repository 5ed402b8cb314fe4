"""Examples of TensorFlow read into tensors, sparse and ragged ones among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.asserts import assert_equal
from treadle.ops.conversion import constant
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather, unsorted_segment_sum
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.indexing.segments import unsorted_segment_max
from treadle.ops.reductions.reduction import reduce_max
from treadle.ops.shaping.creation import ones_like, zeros
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.strings.examples import (
    Listed,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    ValueRowIds,
    VarLenFeature,
    features_of,
    parsed,
    scalar_string,
)
from treadle.ragged import partitions
from treadle.ragged.tensor import RaggedTensor
from treadle.sparse.places import reorder
from treadle.sparse.tensor import SparseTensor

# The place of the values of a feature among its parts; others are those of its partitions.
_VALUES = -1


def _parts(features: Mapping[Any, Any]) -> dict[Any, tuple[Any, Any]]:
    """What is read for features, by (key, number): the names of features and their kinds."""
    found: dict[Any, tuple[Any, Any]] = {}
    for key in sorted(features):
        kind, name = features[key], key
        keys: list[Any] = []
        if isinstance(kind, RaggedFeature):
            name = key if kind.value_key is None else kind.value_key
            keys = [getattr(partition, "key", None) for partition in kind.partitions]
        elif isinstance(kind, SparseFeature):
            name, keys = kind.value_key, kind.index_keys
            kind = VarLenFeature(kind.dtype)
        found[key, _VALUES] = name, kind
        for number, other in enumerate(keys):
            if other is not None:
                found[key, number] = other, VarLenFeature(dtypes.int64)
    return found


def _parsed(
    serialized: Any, names: Any, features: Mapping[Any, Any], steps: Mapping[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """The features, the lists of features and the lengths of these."""
    for key, kind in steps.items():
        if isinstance(kind, SparseFeature):
            raise ValueError(
                f"sequence_features: {key!r} must be a FixedLenSequenceFeature, VarLenFeature or "
                f"RaggedFeature, not {kind!r}{at(user_origin())}"
            )
    found, lists, lengths = parsed(serialized, names, _parts(features), _parts(steps))
    whole = {key: _joined(key, kind, _of_key(found, key)) for key, kind in sorted(features.items())}
    listed = {
        key: _joined_steps(key, kind, _of_key(lists, key)) for key, kind in sorted(steps.items())
    }
    return whole, listed, {key: length for (key, _), length in lengths.items()}


def _of_key(found: Mapping[Any, Any], key: Any) -> dict[int, Any]:
    """The parts of a feature by their numbers."""
    return {number: value for (own, number), value in found.items() if own == key}


def _joined(key: Any, kind: Any, parts: Mapping[int, Any]) -> Any:
    """A feature of its parts."""
    values = parts[_VALUES]
    if isinstance(kind, VarLenFeature):
        return _sparse(values)
    if isinstance(kind, SparseFeature):
        return _sparse_of_places(kind, parts)
    if not isinstance(kind, RaggedFeature):
        return values
    if values.counts.ndim:
        return _ragged(kind, parts)
    if not kind.partitions:
        return values.values
    one = {n: Listed(part.values, part.counts[None]) for n, part in parts.items()}
    return _ragged(kind, one).values  # of the only row


def _joined_steps(key: Any, kind: Any, parts: Mapping[int, Any]) -> Any:
    """A list of features of its parts: the steps are the rows of a batch."""
    if not isinstance(kind, VarLenFeature | RaggedFeature):
        return parts[_VALUES]
    steps = {n: Listed(part.values, part.sizes) for n, part in parts.items()}
    values, sizes, counts = parts[_VALUES]
    if isinstance(kind, VarLenFeature):
        return _sparse_steps(steps[_VALUES], counts) if counts.ndim else _sparse(steps[_VALUES])
    if kind.validate:
        for part in parts.values():
            assert_equal(
                part.counts, counts,
                f"Feature {key}: values and partitions have different numbers of steps",
            )  # fmt: skip
    rows = _ragged(kind, steps)
    if not counts.ndim:
        return rows
    return RaggedTensor(rows, partitions.splits_of_lengths(cast(counts, kind.row_splits_dtype)))


# -- ragged features -------------------------------------------------------------------------------


def _ragged(kind: RaggedFeature, parts: Mapping[int, Listed]) -> RaggedTensor:
    """The rows of a batch, each of which may be rows, too: the innermost are made first."""
    offsets = kind.row_splits_dtype
    values, counts = parts[_VALUES]
    rows: Any = values
    counts = cast(counts, offsets)
    for number in reversed(range(len(kind.partitions))):
        partition = kind.partitions[number]
        if isinstance(partition, UniformRowLength):
            rows, counts = _of_one_length(rows, partition.length, counts)
            continue
        given, own = (cast(part, offsets) for part in parts[number])
        lengths, count = _LENGTHS[type(partition)](given, own, counts)
        if kind.validate:
            # The lengths of the rows of an example are as many as it has values.
            splits = partitions.splits_of_lengths(lengths)
            ends = gather(splits, partitions.splits_of_lengths(count))
            assert_equal(
                ends[1:] - ends[:-1], counts, "Partitions of a RaggedFeature do not fit the values"
            )
        rows = RaggedTensor.from_row_lengths(rows, lengths, validate=kind.validate)
        counts = count
    return RaggedTensor(rows, partitions.splits_of_lengths(counts))


def _of_one_length(rows: Any, length: int, counts: Tensor) -> tuple[Any, Tensor]:
    """Values as rows of one length, and how many rows each example has."""
    if isinstance(rows, RaggedTensor):
        return RaggedTensor.from_uniform_row_length(rows, length), counts // length
    inner = [dims_tensor(dim, dtypes.int32) for dim in rows.dims[1:]]
    return reshape(rows, stack([-1, length, *inner])), counts // length


def _within(values: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The number of the example of each value, and its place in the example."""
    splits = partitions.splits_of_lengths(counts)
    size = dims_tensor(values.dims[0], counts.dtype)
    return partitions.row_ids(splits, size), partitions.positions(splits, size)


def _by_lengths(given: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The lengths of the rows of all examples, and how many rows each has.

    Args:
        given: the numbers of a partition of all examples.
        own: how many of them each example has.
        counts: how many values each example has.
    """
    return given, own


def _by_limits(given: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    before = concat([zeros([1], given.dtype), given[:-1]], 0)
    _, places = _within(given, own)
    return given - where(places == 0, zeros([], given.dtype), before), own


def _by_starts(given: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    after = concat([given[1:], zeros([1], given.dtype)], 0)
    example, places = _within(given, own)
    is_last = places == gather(own, example) - 1
    return where(is_last, gather(counts, example), after) - given, own


def _by_splits(given: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    _, places = _within(given, own)
    limits = boolean_mask(given, places > 0)
    return _by_limits(limits, maximum(own - 1, 0), counts)


def _by_rows(given: Tensor, own: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    example, _ = _within(given, own)
    size = dims_tensor(own.dims[0], dtypes.int32)
    rows = maximum(unsorted_segment_max(given + 1, example, size), 0)
    first = partitions.splits_of_lengths(rows)
    numbers = given + gather(first[:-1], example)
    return unsorted_segment_sum(ones_like(numbers), numbers, cast(first[-1], dtypes.int32)), rows


_LENGTHS: dict[type, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    RowLengths: _by_lengths, RowLimits: _by_limits, RowStarts: _by_starts, RowSplits: _by_splits,
    ValueRowIds: _by_rows,
}  # fmt: skip


# -- sparse features -------------------------------------------------------------------------------


def _sparse(listed: Listed) -> SparseTensor:
    values, counts = listed
    count: Tensor = dims_tensor(values.dims[0], dtypes.int64)
    if not counts.ndim:
        return SparseTensor(range_(count)[:, None], values, stack([count]))
    rows = dims_tensor(counts.dims[0], dtypes.int64)
    return SparseTensor(stack(_within(values, counts), 1), values, stack([rows, _most(counts)]))


def _most(counts: Tensor) -> Tensor:
    """The largest of some counts; 0 where there are none."""
    return reduce_max(concat([counts, zeros([1], counts.dtype)], 0))


def _sparse_steps(listed: Listed, counts: Tensor) -> SparseTensor:
    """Steps of any length of a batch of examples: [example, step, value]."""
    values, sizes = listed
    step, place = _within(values, sizes)
    example, number = _within(sizes, counts)
    places = [gather(example, step), gather(number, step), place]
    rows = dims_tensor(counts.dims[0], dtypes.int64)
    return SparseTensor(stack(places, 1), values, stack([rows, _most(counts), _most(sizes)]))


def _sparse_of_places(kind: SparseFeature, parts: Mapping[int, Listed]) -> SparseTensor:
    """A sparse tensor whose places are features."""
    if isinstance(kind.index_key, str) is isinstance(kind.size, list | tuple):
        raise TypeError(
            "SparseFeature: index_key and size must both be lists, or neither, not "
            f"{kind.index_key!r} and {kind.size!r}{at(user_origin())}"
        )
    sizes = list(kind.size) if isinstance(kind.size, list | tuple) else [kind.size]
    if len(sizes) != len(kind.index_keys):
        raise ValueError(
            f"SparseFeature: {len(sizes)} sizes for {len(kind.index_keys)} axes, whose places are "
            f"the features {kind.index_keys}{at(user_origin())}"
        )
    values, counts = parts[_VALUES]
    axes = []
    for number, name in enumerate(kind.index_keys):
        places, own = parts[number]
        assert_equal(
            own, counts,
            f"SparseFeature: {name!r} and {kind.value_key!r} have different numbers of values",
        )  # fmt: skip
        axes.append(places)
    shape: Any = constant(sizes, dtypes.int64)
    if counts.ndim:
        axes.insert(0, _within(values, counts)[0])
        shape = concat([dims_tensor(counts.dims[0], dtypes.int64)[None], shape], 0)
    found = SparseTensor(stack(axes, 1), values, shape)
    return found if kind.already_sorted else reorder(found)


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[Any, Any]:
    """The features of a batch of examples.

    Args:
        serialized: a vector of examples, as ``Example.SerializeToString`` gives them; or a scalar.
        features: a dict from names to FixedLenFeature, FixedLenSequenceFeature, VarLenFeature,
            SparseFeature or RaggedFeature.
        example_names: names of the examples, for errors.

    Returns:
        a tensor [batch, *shape] for each name, [batch, parts, *shape] for a
        FixedLenSequenceFeature, whose shorter rows are filled up; a sparse tensor for a
        VarLenFeature or SparseFeature, a ragged one for a RaggedFeature.

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
        sequence_features: a dict of FixedLenSequenceFeatures, one part for each step, or of
            VarLenFeatures and RaggedFeatures, which have any number of values in each step.
        example_names: names of the examples, for errors.

    Returns:
        the context's tensors [batch, *shape]; the sequences' tensors [batch, steps, *shape],
        filled up, sparse or ragged; and the lengths of the filled up ones, int64 [batch].

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
