"""Functions of strings whose results are rows of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import add_n
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.shaping.creation import fill, zeros_like
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.strings import parts, pieces, unicode
from treadle.ops.strings.texts import string_tensor
from treadle.ragged import partitions, segments, shaping
from treadle.ragged.tensor import RaggedTensor


def _taken_apart(input: Any, function: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Any, ...]:
    """The parts of strings along a new last axis, which is ragged; a vector for a scalar.

    Args:
        function: gives the parts of all strings, several tensors of them, and how many each has.
    """
    if isinstance(input, RaggedTensor):
        return tuple(map(input.with_flat_values, _taken_apart(input.flat_values, function)))
    x = string_tensor(input)
    *found, counts = function(x)
    if not x.ndim:
        return tuple(found)
    splits = partitions.splits_of_lengths(reshape(counts, [-1]))
    rows = [RaggedTensor(values, splits) for values in found]
    for axis in range(x.ndim - 1, 0, -1):
        size = dims_tensor(x.dims[axis], dtypes.int64)
        rows = [RaggedTensor.from_uniform_row_length(r, size, validate=False) for r in rows]
    return tuple(rows)


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The pieces of each string, as rows of a ragged tensor; a vector for a single string.

    Args:
        input: strings of any shape, or ragged ones.
        sep: what stands between pieces; without it any number of blanks.
        maxsplit: how often to split a string; -1 for as often as possible.
    """
    return _taken_apart(input, lambda x: parts.split_pieces(x, sep, maxsplit))[0]


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string, as rows of a ragged tensor; a vector for a single string."""
    return _taken_apart(input, pieces.bytes_pieces)[0]


def unicode_decode(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The numbers of the characters of each string, int32, as rows of a ragged tensor.

    Args:
        input: strings of any shape; a single string gives a vector.
        input_encoding: "UTF-8", "UTF-16-BE", "UTF-32-BE" or another that Python knows.
        errors: what is done about bytes that are no character: "replace", "ignore", or "strict".
        replacement_char: the number that stands for them.
        replace_control_characters: it stands for characters below 32, too.

    Raises:
        InvalidArgumentError: an unknown encoding or way; with "strict" bytes that are no character.
    """
    return unicode_decode_with_offsets(
        input, input_encoding, errors, replacement_char, replace_control_characters
    )[0]


def unicode_decode_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(what `unicode_decode` gives, the number of the byte where each character begins, int64).

    Raises:
        InvalidArgumentError: as of `unicode_decode`.
    """
    how = (input_encoding, errors, replacement_char, replace_control_characters)
    return _taken_apart(input, lambda x: unicode.characters(x, *how))


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The characters of each string, as rows of a ragged tensor; a vector for a single string.

    Args:
        input, errors, replacement_char: as in `unicode_decode`.
        input_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE", which the characters keep.

    Raises:
        InvalidArgumentError: as of `unicode_decode`.
    """
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char)[0]


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(what `unicode_split` gives, the number of the byte where each character begins, int64).

    Raises:
        InvalidArgumentError: as of `unicode_decode`.
    """
    return _taken_apart(
        input,
        lambda x: unicode.characters(x, input_encoding, errors, replacement_char, texts=True),
    )


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A string of each row of numbers of characters.

    Raises:
        InvalidArgumentError: as of `td.strings.unicode_encode`.
    """
    if len(input.shape) > 2:
        inner = unicode_encode(input.values, output_encoding, errors, replacement_char)
        return input.with_values(inner)
    rows, counts = input.flat_values, partitions.lengths_of(input.row_splits)
    return unicode.encode_rows(rows, counts, output_encoding, errors, replacement_char)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The strings along an axis joined, with `separator` between them.

    Along the first axis, and along an axis with ragged rows in it, the strings at the same place of
    all rows are joined: those rows are as long as the longest of them.
    """
    rank = len(inputs.shape)
    if axis is None:
        if rank > 2:
            inputs = inputs.merge_dims(0, rank - 2)
        joined = reduce_join(inputs, -1, separator=separator)
        return parts.reduce_join(joined, 0, keepdims, separator)
    number = int(axis)
    if not -rank <= number < rank:
        raise ValueError(f"reduce_join: axis {axis} of {rank} axes{at(user_origin())}")
    joined = _joined_along(inputs, number % rank, separator)
    return shaping.expand_dims(joined, number % rank) if keepdims else joined


def _joined_along(x: Any, axis: int, separator: Any) -> Any:
    if isinstance(x, Tensor):
        return parts.reduce_join(x, axis, False, separator)
    if axis > 1:
        return x.with_values(_joined_along(x.values, axis - 1, separator))

    def join(data: Any, ids: Any, count: Any) -> Any:
        return pieces.unsorted_segment_join(data, ids, count, separator)

    if axis == 1:
        return segments.of_segments(join, x.values, x.value_rowids(), x.nrows())
    one_row = zeros_like(x.row_splits[1:])
    return segments.of_segments(join, x, one_row, 1).values


def ngrams(
    data: RaggedTensor, ngram_width: Any, separator: Any = " ", pad_values: Any = None,
    padding_width: int | None = None, preserve_short_sequences: bool = False,
    name: str | None = None,
) -> RaggedTensor:  # fmt: skip
    """Every run of neighbours in each row, joined to one string; see `td.strings.ngrams`.

    Raises:
        ValueError, TypeError: as of `td.strings.ngrams`.
    """
    widths, pads = pieces.widths_and_pads(ngram_width, pad_values, padding_width)
    if data.ragged_rank > 1 or not isinstance(data.values, Tensor) or data.values.ndim > 1:
        inner = data.values
        call = ngrams if isinstance(inner, RaggedTensor) else pieces.ngrams
        found = call(
            inner, ngram_width, separator, pad_values, padding_width, preserve_short_sequences
        )
        return data.with_values(found)
    padded, runs = data, []
    for width in widths:
        padded = _padded(data, pads, pieces.padding_of(width, pads, padding_width))
        parts_ = [padded[:, i : i - width + 1 or None] for i in range(width)]
        joined = parts.join([part.values for part in parts_], separator)
        runs.append(parts_[0].with_values(joined))
    if preserve_short_sequences:
        runs.append(_short_rows(data, padded, runs, separator))
    found = shaping.concat(runs, 1)
    return found  # type: ignore[no-any-return]


def _padded(data: RaggedTensor, pads: tuple[bytes, bytes] | None, count: int) -> RaggedTensor:
    """The rows with `count` pads before and behind each."""
    if pads is None or not count:
        return data
    splits = range_(data.nrows() + 1) * count
    before, behind = (RaggedTensor(fill([splits[-1]], pad), splits, count) for pad in pads)
    found = shaping.concat([before, data, behind], 1)
    return found  # type: ignore[no-any-return]


def _short_rows(
    data: RaggedTensor, padded: RaggedTensor, runs: list[RaggedTensor], separator: Any
) -> RaggedTensor:
    """The whole of each row that has elements and no run."""
    count = add_n([partitions.lengths_of(run.row_splits) for run in runs])
    short = (count == 0) & (partitions.lengths_of(data.row_splits) > 0)
    whole = reduce_join(padded, -1, separator=separator)
    lengths = cast(short, data.row_splits.dtype)
    return RaggedTensor(boolean_mask(whole, short), partitions.splits_of_lengths(lengths))
