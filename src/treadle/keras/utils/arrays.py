"""Arrays for training: one-hot rows, norms, sequences of one length."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.keras import config


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Class numbers as one-hot rows: an array of float64, or a tensor of float32 where x is one."""
    if isinstance(x, td.Tensor):
        if num_classes is None:
            num_classes = int(td.reduce_max(x)) + 1
        numbers = td.squeeze(x, -1) if len(x.shape) > 1 and x.shape[-1] == 1 else x
        return td.one_hot(td.cast(numbers, td.int64), num_classes)
    classes = np.asarray(x, dtype=np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    count = int(classes.max()) + 1 if num_classes is None else num_classes
    return np.eye(count)[classes]


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """An array or tensor over its norms along the axis; zeros stay zeros."""
    if not isinstance(x, np.ndarray):
        x = td.convert_to_tensor(x)
        x = x if x.dtype.is_floating else td.cast(x, config.floatx())
        norm = td.norm(x, ord=order, axis=axis, keepdims=True)
        return x / td.where(norm == 0, td.ones_like(norm), norm)
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


def pad_sequences(
    sequences: Any, maxlen: int | None = None, dtype: Any = "int32", padding: str = "pre",
    truncating: str = "pre", value: Any = 0.0,
) -> Any:  # fmt: skip
    """Sequences as the rows of one array.

    Args:
        sequences: lists or arrays, whose elements have one shape.
        maxlen: of the rows; the longest sequence's when omitted.
        dtype: of the array.
        padding: whether shorter sequences are filled up at their beginning ("pre") or end ("post").
        truncating: whether longer ones lose their beginning or end.
        value: what they are filled up with.

    Raises:
        ValueError: an element is no sequence, shapes differ, or another word than "pre" and "post".
    """
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(f'pad_sequences: {name} must be "pre" or "post", not {given!r}')
    rows = []
    for row in sequences:
        if not hasattr(row, "__len__"):
            raise ValueError(f"pad_sequences: sequences holds {row!r}, which is no sequence")
        rows.append(np.asarray(row))
    shapes = {row.shape[1:] for row in rows if len(row)}
    if len(shapes) > 1:
        raise ValueError(f"pad_sequences: the elements have shapes {sorted(shapes)}")
    longest = max(map(len, rows), default=0) if maxlen is None else maxlen
    is_text = np.dtype(dtype).kind in "US"
    if isinstance(value, str) and not is_text and np.dtype(dtype) != object:
        raise ValueError(f"pad_sequences: dtype {dtype} does not hold the value {value!r}")
    found = np.full((len(rows), longest, *(shapes.pop() if shapes else ())), value, dtype)
    for place, row in enumerate(rows):
        if not len(row) or not longest:
            continue
        kept = row[-longest:] if truncating == "pre" else row[:longest]
        if padding == "post":
            found[place, : len(kept)] = kept
        else:
            found[place, -len(kept) :] = kept
    return found


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """What a batch holds, as one value: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``."""
    if y is None:
        return (x,) if isinstance(x, list | tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """``(x, y, sample_weight)`` of a batch; None for what it does not hold."""
    parts = tuple(data) if isinstance(data, list | tuple) else (data,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"A batch is x, (x, y) or (x, y, sample_weight), got {len(parts)} parts")
    return (*parts, *(None,) * (3 - len(parts)))
