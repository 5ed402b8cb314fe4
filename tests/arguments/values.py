"""Arguments: values that fit a parameter by its name, and values that fit nothing.

Everything is drawn from a `random.Random`: the same seed gives equal values, made anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import treadle as td

DTYPES = (
    "float32",
    "float32",
    "float64",
    "int32",
    "int64",
    "bool",
    "uint8",
    "int8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "string",
)
FLOATS = ("float32", "float32", "float64", "float16", "bfloat16", "complex64")
HUGE = (10**12, 2**31, 2**63 - 1, 2**63, 2**64, -(10**12), -(2**31), -(2**63), 10**30)


class Context:
    """What the arguments of one call have in common, so that right ones fit together."""

    def __init__(self, r: Random, name: str) -> None:
        self.r, self.function = r, name
        rank = r.choice((0, 1, 1, 2, 2, 2, 3, 4))
        self.shape = tuple(r.choice((1, 2, 3, 3, 4)) for _ in range(rank))
        self.dtype = r.choice(FLOATS if r.random() < 0.6 else DTYPES)
        last = name.rpartition(".")[2]
        if name.startswith("strings.") or (name == "as_string" and r.random() < 0.5):
            self.dtype = "string"
        elif name.startswith("bitwise."):
            self.dtype = r.choice(("int32", "int64", "uint8", "int8", "uint16"))
        elif last.startswith("logical") or last in ("reduce_all", "reduce_any"):
            self.dtype = "bool"
        if name.startswith(("linalg.", "signal.")):
            self.dtype = r.choice(("float32", "float64", "complex64"))
        if name.startswith("linalg."):
            n = r.choice((1, 2, 3))
            self.shape = (*self.shape[:1], n, n) if r.random() < 0.3 else (n, n)
        if any(
            part in last for part in ("conv", "pool", "space", "depth", "image", "normalization")
        ):
            self.shape, self.dtype = (2, 4, 4, 4), r.choice(("float32", "float64"))
            if "1d" in last:
                self.shape = (2, 4, 4)
        if name.startswith("image."):
            self.shape = (4, 5, 3) if r.random() < 0.4 else (2, 4, 5, 3)
            self.dtype = r.choice(("float32", "uint8", "float64", "float16"))


def array(r: Random, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of a dtype, now and then with special ones among them."""
    size = int(np.prod(shape))
    if dtype == "string":
        words = ["", "a", "Ab", " b ", "1.5", "naïve", "-3"]
        return np.array([r.choice(words) for _ in range(size)], object).reshape(shape)
    if dtype == "bool":
        return np.array([r.random() < 0.5 for _ in range(size)], bool).reshape(shape)
    kind = td.as_dtype(dtype).np_dtype
    low = 0 if dtype.startswith("u") else -4
    values: list[Any] = [r.randint(low, 5) for _ in range(size)]
    if "int" not in dtype:
        values = [v + r.random() for v in values]
        if r.random() < 0.1:
            special = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, 1e-30)
            values = [r.choice(special) if r.random() < 0.4 else v for v in values]
    with np.errstate(all="ignore"):
        return (
            np.array(values, np.float64 if "int" not in dtype else np.int64)
            .astype(kind)
            .reshape(shape)
        )


def laid_out(r: Random, x: np.ndarray) -> np.ndarray:
    """The same elements in memory of another form."""
    form = r.choice(
        (
            "plain",
            "plain",
            "strided",
            "reversed",
            "fortran",
            "read-only",
            "unaligned",
            "broadcast",
            "swapped",
        )
    )
    if form == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if form == "reversed" and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    if form == "fortran":
        return np.asfortranarray(x)
    if form == "read-only":
        x = x.copy()
        x.flags.writeable = False
    if form == "unaligned" and x.dtype != object:
        memory = np.zeros(x.nbytes + 1, np.uint8)[1:]
        other = memory.view(x.dtype).reshape(x.shape)
        other[...] = x
        return other
    if form == "broadcast" and x.ndim and x.shape[0]:
        return np.broadcast_to(x[:1], x.shape)
    if form == "swapped" and x.dtype.kind in "fiuc" and r.random() < 0.3:
        return x.astype(x.dtype.newbyteorder())
    return x


def tensor(c: Context, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Any:
    """An array that fits the call, as an array, tensor, variable or list."""
    x = array(c.r, c.shape if shape is None else shape, dtype or c.dtype)
    form = c.r.random()
    if form < 0.6:
        return laid_out(c.r, x)
    if form < 0.75:
        return td.constant(x)
    if form < 0.82 and x.dtype != object:
        return td.Variable(x)
    if form < 0.9:
        return x.tolist() if x.dtype.kind in "fibO" and x.size < 99 else x
    return x


def integers(c: Context, low: int, high: int, count: int) -> Any:
    values = [c.r.randint(low, high) for _ in range(count)]
    form = c.r.random()
    if form < 0.6:
        return values
    return tuple(values) if form < 0.8 else np.array(values, c.r.choice(("int32", "int64")))


def _axis(c: Context) -> Any:
    rank = len(c.shape)
    one = c.r.randint(-rank, rank - 1) if rank else 0
    form = c.r.random()
    if form < 0.6:
        return one
    return None if form < 0.8 else [one]


def _broadcast(c: Context) -> Any:
    shape = c.shape[c.r.randint(0, len(c.shape)) :] if c.r.random() < 0.3 else c.shape
    return tensor(c, shape)


def _shape(c: Context) -> Any:
    shape = list(c.shape)
    if shape and c.r.random() < 0.3:
        c.r.shuffle(shape)
    return c.r.choice((tuple, list, np.array))(shape) if shape else []


def _indices(c: Context) -> Any:
    first = c.shape[0] if c.shape else 1
    last = c.function.rpartition(".")[2]
    if "nd" in last:
        values = array(c.r, (3, 1), "int32") % first
    else:
        values = array(c.r, c.r.choice(((), (2,), (2, 3))), "int32") % first
    return values.astype(c.r.choice(("int32", "int64")))


def _segments(c: Context) -> Any:
    first = c.shape[0] if c.shape else 1
    return np.sort(array(c.r, (first,), "int32") % 3)


def _list(c: Context) -> Any:
    return [tensor(c) for _ in range(c.r.choice((1, 2, 2, 3)))]


def _filter(c: Context) -> Any:
    spatial = (2,) if "1d" in c.function else (2, 2)
    return tensor(c, (*spatial, *c.shape[-1:], 2))


def _window(c: Context) -> Any:
    return c.r.choice((1, 2, 2, [1, 2, 2, 1], [2, 2]))


def _key(c: Context) -> Any:
    r = c.r
    part: Callable[[], Any] = lambda: r.choice(
        (
            0,
            -1,
            1,
            slice(None),
            slice(1, None),
            slice(None, None, -1),
            slice(-2, None, 2),
            None,
            ...,
            [0, 0],
            np.array([0]),
            True,
        )
    )
    return part() if r.random() < 0.5 else tuple(part() for _ in range(r.choice((1, 2, 2, 3))))


def _pads(c: Context) -> Any:
    return [[c.r.randint(0, 2), c.r.randint(0, 2)] for _ in c.shape]


def _dtype(c: Context) -> Any:
    name = c.r.choice(DTYPES)
    form = c.r.random()
    return name if form < 0.4 or name == "string" else getattr(td, name)


def _small(c: Context) -> Any:
    return c.r.choice((1, 1, 2, 3, np.int64(2), td.constant(2)))


def _number(c: Context) -> Any:
    return c.r.choice((0.5, 1.0, 0.0, 2, np.float32(0.25), td.constant(0.5), -1.0))


def _words(*words: Any) -> Callable[[Context], Any]:
    return lambda c: c.r.choice(words)


def _same(x: Any, *more: Any) -> Any:
    return x


def _twice(x: Any, *more: Any) -> Any:
    return x + x


_FUNCTIONS = _words(_same, _twice)
BY_NAME: dict[str, Callable[[Context], Any]] = {
    "axis": _axis,
    "axes": _axis,
    "dim": _axis,
    "reduction_dimension": _axis,
    "shape": _shape,
    "dims": _shape,
    "shape_x": _shape,
    "shape_y": _shape,
    "input_shape": _shape,
    "output_shape": _shape,
    "noise_shape": _shape,
    "dtype": _dtype,
    "out_type": _words(td.int32, td.int64),
    "output_type": _words(td.int32, td.int64),
    "index_type": _words(td.int32, td.int64),
    "out_idx": _words(td.int32, td.int64),
    "indices": _indices,
    "ids": _indices,
    "segment_ids": _segments,
    "partitions": _segments,
    "num_segments": _words(3, 3, 4),
    "num_partitions": _words(3, 4),
    "num_classes": _words(6, None),
    "inputs": _list,
    "values": lambda c: _list(c) if c.r.random() < 0.7 else tensor(c),
    "data": tensor,
    "tensors": _list,
    "t_list": _list,
    "elems": tensor,
    "filters": _filter,
    "filter": _filter,
    "depthwise_filter": _filter,
    "pointwise_filter": lambda c: tensor(c, (1, 1, 8, 2)),
    "ksize": _window,
    "strides": _window,
    "stride": _words(1, 2),
    "dilations": _words(1, None, [1, 1]),
    "padding": _words("SAME", "VALID", "VALID", "same"),
    "data_format": _words("NHWC", None, "NCHW"),
    "paddings": _pads,
    "base_paddings": _pads,
    "crops": lambda c: [[0, 0], [0, 0]],
    "block_shape": _words([2, 2], [1, 2], 2),
    "block_size": _words(2, 2, 4),
    "seed": lambda c: integers(c, 0, 99, 2) if "stateless" in c.function else c.r.randint(0, 99),
    "alg": _words("philox", "auto_select"),
    "depth": _small,
    "num": _small,
    "k": _small,
    "n": _small,
    "num_or_size_splits": _words(1, 2, [1, -1], [1, 1, 1]),
    "repeats": _words(1, 2, [1, 2], 0),
    "multiples": lambda c: [c.r.randint(0, 2) for _ in c.shape],
    "shift": _words(1, -2, 0),
    "perm": lambda c: c.r.sample(range(len(c.shape)), len(c.shape)),
    "begin": lambda c: [0 for _ in c.shape],
    "end": lambda c: [c.r.randint(0, 3) for _ in c.shape],
    "size": lambda c: (
        [c.r.choice((3, 6)), 4]
        if c.function.startswith("image")
        else [c.r.choice((1, -1)) for _ in c.shape]
    ),
    "direction": _words("ASCENDING", "DESCENDING"),
    "mode": _words("CONSTANT", "REFLECT", "SYMMETRIC"),
    "side": _words("left", "right"),
    "equation": _words("ij,jk->ik", "ij->ji", "i,i->", "ij,ij->i", "...i->..."),
    "ord": _words("euclidean", 1, 2, np.inf),
    "norm": _words("ortho", None),
    "type": _words(2, 1, 3),
    "rank": lambda c: len(c.shape),
    "ranks": lambda c: [len(c.shape), 1],
    "mask": lambda c: tensor(c, c.shape[: c.r.randint(1, max(1, len(c.shape)))], "bool"),
    "condition": lambda c: tensor(c, None, "bool"),
    "pred": _words(True, False, td.constant(True)),
    "true_fn": lambda c: lambda: 1.0,
    "false_fn": lambda c: lambda: 2.0,
    "fn": _FUNCTIONS,
    "func": _FUNCTIONS,
    "cond": lambda c: lambda i, *more: i < 3,
    "body": lambda c: lambda i, *more: (i + 1, *more),
    "loop_vars": lambda c: (0, tensor(c)),
    "branch_index": _words(0, 1, td.constant(1)),
    "branch_fns": lambda c: [lambda: 1, lambda: 2],
    "pred_fn_pairs": lambda c: [(td.constant(True), lambda: 1)],
    "default": lambda c: lambda: 3,
    "start": _number,
    "stop": _number,
    "limit": _words(3, 5.0, -2),
    "delta": _words(1, 0.5, -1),
    "value_range": lambda c: [0.0, 4.0],
    "nbins": _small,
    "frame_length": _words(2, 3),
    "frame_step": _words(1, 2),
    "fft_length": _words(None, [2], [4], 4),
    "window_length": _words(1, 4, 5),
    "window_fn": _words(None, td.signal.hann_window),
    "lengths": lambda c: integers(c, 0, 4, 3),
    "seq_lengths": lambda c: integers(c, 0, 2, c.shape[0] if c.shape else 1),
    "seq_axis": _words(1, 0),
    "batch_axis": _words(0, 1),
    "batch_dims": _words(0, 0, 1),
    "num_rows": _small,
    "num_columns": _small,
    "batch_shape": _words(None, [2]),
    "pattern": _words("a", "b+", "[", ""),
    "rewrite": _words("x", r"\\0"),
    "separator": _words("", "-"),
    "sep": _words(None, "b"),
    "template": _words("{}", "a {} b {}"),
    "unit": _words("BYTE", "UTF8_CHAR"),
    "encoding": _words("", "utf-8"),
    "pos": _words(0, 1, -1),
    "len": _words(1, 2),
    "num_buckets": _words(10, 3),
    "method": _words("bilinear", "nearest", "bicubic", "area"),
    "sorted_sequence": lambda c: np.sort(array(c.r, c.shape or (2,), "float32")),
    "x": tensor,
    "y": _broadcast,
    "b": _broadcast,
    "labels": _broadcast,
    "logits": tensor,
    "weights": _broadcast,
    "updates": lambda c: tensor(c, (3, *c.shape[1:])),
    "block": _small,
    "other": _broadcast,
    "key": lambda c: [1, 2] if c.function.startswith("str") else _key(c),
    "value": tensor,
    "message": _words(None, "text"),
    "summarize": _words(None, 3),
    "name": _words(None, "n"),
    "shapes": lambda c: [(tensor(c), c.shape)],
    "num_lower": _words(-1, 0, 1),
    "num_upper": _words(-1, 0, 1),
    "indexing": _words("xy", "ij"),
    "maxlen": _words(None, 4),
    "dtype_hint": _dtype,
    "tf_type": _dtype,
    "initializer": tensor,
    "minval": _words(0, 0.0, None),
    "maxval": _words(5, 1.0, None),
}


def right(c: Context, parameter: inspect.Parameter) -> Any:
    """A value for a parameter, by its name or annotation."""
    made = BY_NAME.get(parameter.name)
    if made is not None:
        return made(c)
    told = str(parameter.annotation)
    if told.startswith("bool"):
        return c.r.random() < 0.5
    if told.startswith("int"):
        return _small(c)
    if told.startswith("float"):
        return _number(c)
    if told.startswith("str"):
        return c.r.choice((None, "a"))
    if parameter.default is not parameter.empty and isinstance(parameter.default, int | float):
        return _number(c)
    return tensor(c)


def wrong(c: Context) -> Any:
    """A value that most parameters do not take."""
    r = c.r
    kind = r.randrange(24)
    if kind < 6:  # another rank, dims of 0 or 1
        rank = r.randrange(6)
        shape = tuple(r.choice((0, 1, 2, 3)) for _ in range(rank))
        return tensor(c, shape)
    if kind < 9:  # another dtype
        return tensor(c, None, r.choice(DTYPES))
    if kind < 12:
        return r.choice(HUGE)
    if kind == 12:
        return [r.choice(HUGE) for _ in range(r.randint(1, 3))]
    if kind == 13:
        return np.array([r.choice(HUGE[:3]) % 2**62 for _ in range(r.randint(0, 3))], np.int64)
    if kind == 14:
        return r.choice((None, float("nan"), float("inf"), -float("inf"), 1j, True, -1, -7, 0, 2.5))
    if kind == 15:
        return r.choice(("", "x", b"bytes", "ünï", "SAME", "float32", "\ud800", "a" * 2000))
    if kind == 16:
        return r.choice(
            ([], [[]], [[], []], (), {}, set(), [[1, 2], [3]], [None], [1, "a"], {"a": 1})
        )
    if kind == 17:
        return r.choice((object(), len, int, td, ..., slice(1, 2), range(3), iter([1]), Random, c))
    if kind == 18:
        shape = td.TensorShape(r.choice(([2], None, [None], [2, 3])))
        return r.choice((td.float32, td.string, np.float32, shape, td.TensorSpec([2])))
    if kind == 19:
        return np.array([object(), None])
    if kind == 20:
        return r.choice(
            (
                np.array("2020-01-01", "datetime64[D]"),
                np.zeros(2, "i4,f4"),
                np.array(["a", "b"]),
                np.array([b"a"]),
                np.ma.array([1.0, 2.0], mask=[0, 1]),
                np.zeros(3, np.longdouble),
                np.matrix([[1.0]]),
            )
        )
    if kind == 21:
        return td.IndexedSlices(td.ones([2, 3]), td.constant([0, 1]), td.constant([4, 3]))
    if kind == 22:
        deep: Any = 1.0
        for _ in range(r.choice((3, 40, 1500))):
            deep = [deep]
        return deep
    return integers(c, -9, 9, r.randint(0, 5))
