"""Strings taken apart into bytes, runs of neighbours, and strings joined by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, compound, fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import as_bytes
from treadle.ops.strings.listed import listed_pieces, with_pieces
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor


def filled_rows(rows: Sequence[Sequence[Any]], shape: tuple[int, ...], fill: Any) -> NDArray:
    """Lists of different lengths along a new last axis, filled up at their ends."""
    width = max(map(len, rows), default=0)
    dtype = object if isinstance(fill, bytes) else np.asarray(fill).dtype
    found = np.full((len(rows), width), fill, dtype)
    for row, items in zip(found, rows, strict=True):
        row[: len(items)] = items
    return found.reshape((*shape, width))


def _bytes_split(x: NDArray) -> tuple[NDArray, NDArray]:
    rows = [[s[i : i + 1] for i in range(len(s))] for s in x.reshape(-1).tolist()]
    return listed_pieces(rows, x.shape, b"")


BYTES_SPLIT = register(
    Op("bytes_split", with_pieces, _bytes_split, tags=STRINGS | {"dynamic"})
)  # fmt: skip


def bytes_pieces(input: Tensor) -> tuple[Tensor, Tensor]:
    """The bytes of all strings one after another, and how many each string has."""
    return run(BYTES_SPLIT, input)  # type: ignore[no-any-return]


# -- neighbours ----------------------------------------------------------------------------------


def _counts(size: Dim, widths: tuple[int, ...], padding: int | None, short: bool) -> list[Dim]:
    """How many runs there are of each width; the last ones are those of short rows."""
    found: list[Dim] = []
    for width in widths:
        around = 2 * min(width - 1 if padding is None else padding, width - 1)
        found.append(compound("max", size + (around - width + 1), 0))
    if short and isinstance(size, int) and size and not any(found):
        around = max(2 * min(w - 1 if padding is None else padding, w - 1) for w in widths)
        found[-1] = 1
    return found


def _infer_ngrams(
    x: Spec, *, widths: tuple[int, ...], separator: bytes, pads: tuple[bytes, bytes] | None,
    padding: int | None, short: bool,
) -> TensorSpec:  # fmt: skip
    counts = _counts(x.dims[-1], widths, padding if pads else 0, short)
    if short and not isinstance(x.dims[-1], int):
        return TensorSpec((*x.dims[:-1], fresh_symbol("ngrams")), dtypes.string)
    total: Dim = 0
    for count in counts:
        total = total + count
    return TensorSpec((*x.dims[:-1], total), dtypes.string)


def _ngrams(
    x: NDArray, *, widths: tuple[int, ...], separator: bytes, pads: tuple[bytes, bytes] | None,
    padding: int | None, short: bool,
) -> NDArray:  # fmt: skip
    rows = []
    for row in x.reshape(-1, x.shape[-1]).tolist() if x.size else [[]] * int(np.prod(x.shape[:-1])):
        found: list[bytes] = []
        longest = row
        for width in widths:
            count = padding_of(width, pads, padding)
            left, right = pads or (b"", b"")
            longest = [left] * count + row + [right] * count
            runs = [longest[i : i + width] for i in range(len(longest) - width + 1)]
            found += [separator.join(run) for run in runs]
        if short and row and not found:
            found = [separator.join(longest)]
        rows.append(found)
    return filled_rows(rows, x.shape[:-1], b"")


NGRAMS = register(Op("ngrams", _infer_ngrams, _ngrams, tags=STRINGS | {"dynamic"}))


def ngrams(
    data: Any, ngram_width: Any, separator: Any = " ", pad_values: Any = None,
    padding_width: int | None = None, preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Every run of neighbours along the last axis, joined to one string.

    Args:
        data: strings [..., n].
        ngram_width: how many strings a run has, an int or several, whose runs follow one another.
        separator: what stands between them.
        pad_values: a string, or two, that stand before and behind each row.
        padding_width: how often, at most one time less than a run is wide; so often without it.
        preserve_short_sequences: rows that are too short for a run are one.

    Returns:
        Strings [..., number of runs].

    Raises:
        ValueError: a width or `padding_width` that is not positive, or a scalar.
        TypeError: `pad_values` is neither None, nor a string, nor two of them.
    """
    x = string_tensor(data)
    if not x.ndim:
        raise ValueError(f"ngrams: a scalar has no neighbours{at(user_origin())}")
    widths, pads = widths_and_pads(ngram_width, pad_values, padding_width)
    return run(  # type: ignore[no-any-return]
        NGRAMS, x, widths=widths, separator=as_bytes("ngrams: separator", separator),
        pads=pads, padding=padding_width, short=bool(preserve_short_sequences),
    )  # fmt: skip


def widths_and_pads(
    ngram_width: Any, pad_values: Any, padding_width: int | None
) -> tuple[tuple[int, ...], tuple[bytes, bytes] | None]:
    """The widths of runs, and what stands before and behind each row; errors as of `ngrams`."""
    widths = tuple(int(w) for w in np.atleast_1d(np.asarray(ngram_width)).tolist())
    if min(widths, default=1) < 1:
        raise ValueError(f"ngrams: widths must be greater than 0, got {widths}{at(user_origin())}")
    if padding_width is not None and padding_width < 1:
        text = f"ngrams: padding_width must be greater than 0, got {padding_width}"
        raise ValueError(f"{text}{at(user_origin())}")
    if padding_width is not None and pad_values is None:
        raise ValueError(f"ngrams: padding_width needs pad_values{at(user_origin())}")
    return widths, _pads(pad_values)


def padding_of(width: int, pads: Any, padding: int | None) -> int:
    """How many pads stand before, and behind, a row for runs of a width."""
    return 0 if pads is None else min(width - 1 if padding is None else padding, width - 1)


def _pads(values: Any) -> tuple[bytes, bytes] | None:
    if values is None:
        return None
    if isinstance(values, str | bytes):
        values = (values, values)
    pair = tuple(values) if isinstance(values, list | tuple) else ()
    if len(pair) != 2 or not all(isinstance(v, str | bytes) for v in pair):
        raise TypeError(f"ngrams: pad_values {values!r} are not two strings{at(user_origin())}")
    first, last = (as_bytes("ngrams: pad_values", v) for v in pair)
    return first, last


# -- joined by number ----------------------------------------------------------------------------


def _infer_segment_join(x: Spec, ids: Spec, *, count: Dim, separator: bytes) -> TensorSpec:
    if not ids.dtype.is_integer:
        raise TypeError(f"segment_ids are {ids.dtype.name}, not integers")
    if not x.shape[: ids.rank].is_compatible_with(ids.shape):
        raise invalid(f"segment_ids of shape {ids.shape} for strings of shape {x.shape}")
    return TensorSpec((count, *x.dims[ids.rank :]), dtypes.string)


def _segment_join(x: NDArray, ids: NDArray, *, count: int, separator: bytes) -> NDArray:
    if ids.dtype.kind not in "iu":
        raise TypeError("segment_ids are not integers")
    if x.shape[: ids.ndim] != ids.shape:
        raise invalid(f"segment_ids of shape {ids.shape} for strings of shape {x.shape}")
    if ids.size and not (ids.min() >= 0 and ids.max() < count):
        raise invalid(f"segment_ids must be from 0 to {count - 1}")
    rest = x.shape[ids.ndim :]
    rows = x.reshape(ids.size, int(np.prod(rest)))
    found = np.full((count, rows.shape[1]), b"", object)
    for number in range(count):
        own = rows[ids.reshape(-1) == number]
        if len(own):
            found[number] = [separator.join(column) for column in own.T.tolist()]
    return found.reshape((count, *rest))


SEGMENT_JOIN = register(
    Op("unsorted_segment_join", _infer_segment_join, _segment_join, tags=STRINGS)
)  # fmt: skip


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: str | None = None
) -> Tensor:
    """The strings of each segment joined in their order.

    Args:
        inputs: strings [*ids.shape, ...].
        segment_ids: the number of the segment of each string, or row of them.
        num_segments: how many segments there are.
        separator: what stands between strings.

    Returns:
        Strings [num_segments, ...], empty for segments of none.

    Raises:
        InvalidArgumentError: a number that is none of a segment, or shapes that do not fit.
    """
    x, ids = string_tensor(inputs), convert_to_tensor(segment_ids)
    count = size_of(num_segments, "unsorted_segment_join: num_segments")
    between = as_bytes("unsorted_segment_join: separator", separator)
    return run(SEGMENT_JOIN, x, ids, count=count, separator=between)  # type: ignore[no-any-return]
