"""Random calls of the public ops: arguments that fit, arguments that nearly do, nonsense."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import treadle as td
from tests.runtime.guarded.registry import (
    ANY,
    FLOATS,
    INTS,
    REALS,
    Call,
    Input,
    axis,
    call,
    dim,
    dims,
    number,
)

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "imag",
    "is_finite",
    "is_inf",
    "is_nan",
    "log",
    "log1p",
    "log_sigmoid",
    "logical_not",
    "negative",
    "real",
    "reciprocal",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "zero_fraction",
    "l2_normalize",
]
NN = ["elu", "gelu", "leaky_relu", "relu", "relu6", "selu", "silu", "softsign", "l2_loss"]
BINARY = [
    "add",
    "atan2",
    "divide",
    "divide_no_nan",
    "equal",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "pow",
    "squared_difference",
    "subtract",
    "truediv",
    "truncatediv",
    "truncatemod",
]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
REDUCTIONS = [
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "count_nonzero",
]


@call
def unary(r: Random) -> Call:
    name = r.choice(UNARY + NN)
    fn = getattr(td.nn if name in NN else td.math, name)
    dtype = "bool" if name == "logical_not" else r.choice((*FLOATS, *ANY))
    return Call(name, fn, [Input(dtype, dims(r))])


def _broadcastable(r: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    cut = shape[r.randint(0, len(shape)) :] if r.random() < 0.4 else shape
    return tuple(1 if r.random() < 0.25 else d for d in cut)


@call
def binary(r: Random) -> Call:
    name = r.choice(BINARY)
    shape = dims(r)
    dtype = "bool" if name.startswith("logical") else r.choice(REALS)
    inputs = [Input(dtype, s) for s in (shape, _broadcastable(r, shape))]
    return Call(name, getattr(td.math, name), inputs[:: r.choice([1, -1])])


@call
def bits(r: Random) -> Call:
    name, shape = r.choice(BITS), dims(r)
    dtype = r.choice(INTS)
    limit = 7 if "shift" in name else None
    inputs = [Input(dtype, shape), Input(dtype, _broadcastable(r, shape), limit)]
    return Call(name, getattr(td.bitwise, name), inputs)


@call
def where(r: Random) -> Call:
    shape = dims(r)
    dtype = r.choice(ANY)
    if r.random() < 0.3:
        return Call("where", td.where, [Input(r.choice(("bool", "int32", "float32")), shape)])
    shapes = [_broadcastable(r, shape) for _ in range(3)]
    inputs = [Input(t, s) for t, s in zip(("bool", dtype, dtype), shapes, strict=True)]
    return Call("where", td.where, inputs)


@call
def cast(r: Random) -> Call:
    to = r.choice(ANY)
    fn = r.choice([td.cast, td.saturate_cast]) if not to.startswith("c") else td.cast
    return Call(f"cast {to}", lambda x: fn(x, to), [Input(r.choice(REALS), dims(r))])


@call
def clip(r: Random) -> Call:
    shape = dims(r)
    inputs = [Input(r.choice(REALS), s) for s in (shape, _broadcastable(r, shape))]
    inputs[1].dtype = inputs[0].dtype
    return Call("clip_by_value", lambda x, low: td.clip_by_value(x, low, 3), inputs)


@call
def reduction(r: Random) -> Call:
    name, shape = r.choice(REDUCTIONS), dims(r, 0, 4)
    dtype = "bool" if name in ("reduce_all", "reduce_any") else r.choice(REALS)
    over = r.choice([None, axis(r, len(shape)), [axis(r, len(shape)) for _ in range(2)], []])
    keep = r.random() < 0.5
    fn = getattr(td.math, name)
    return Call(f"{name} {over} {keep}", lambda x: fn(x, over, keep), [Input(dtype, shape)])


@call
def position(r: Random) -> Call:
    name, shape = r.choice(["argmax", "argmin"]), dims(r, 0, 3)
    over = r.choice([None, axis(r, len(shape))])
    return Call(
        f"{name} {over}", lambda x: getattr(td, name)(x, over), [Input(r.choice(ANY), shape)]
    )


@call
def norm(r: Random) -> Call:
    shape, kind = dims(r, 0, 3), r.choice(["euclidean", 1, np.inf, 3])
    over = r.choice([None, axis(r, len(shape))])
    return Call(
        f"norm {kind} {over}", lambda x: td.norm(x, kind, over), [Input(r.choice(FLOATS), shape)]
    )


@call
def scan(r: Random) -> Call:
    fn, shape = r.choice([td.cumsum, td.math.cumprod]), dims(r, 1, 3)
    at, exclusive, reverse = axis(r, len(shape)), r.random() < 0.5, r.random() < 0.5
    return Call(
        f"scan {at} {exclusive} {reverse}",
        lambda x: fn(x, at, exclusive, reverse),
        [Input(r.choice(REALS), shape)],
    )


# -- moving elements -------------------------------------------------------------------------------


@call
def reshape(r: Random) -> Call:
    shape = dims(r)
    total = int(np.prod(shape))
    target: list[int] = [total] if r.random() < 0.3 else list(shape)
    r.shuffle(target)
    if target and r.random() < 0.6:
        target[r.randrange(len(target))] = -1
    if r.random() < 0.2:
        target.append(number(r, 1, 3))
    return Call(f"reshape {target}", lambda x: td.reshape(x, target), [Input(r.choice(ANY), shape)])


@call
def reshape_like(r: Random) -> Call:
    shape = dims(r, 1, 3)
    k = r.randrange(len(shape))
    return Call(
        f"reshape by shape {k}",
        lambda x: td.reshape(x, [td.shape(x)[k], -1]),
        [Input(r.choice(REALS), shape)],
    )


@call
def moved(r: Random) -> Call:
    shape = dims(r)
    rank = len(shape)
    order = list(range(rank))
    r.shuffle(order)
    if r.random() < 0.15:
        order = [number(r, -rank, rank) for _ in range(rank)]
    several = [axis(r, rank) for _ in range(r.randint(1, 2))]
    one = axis(r, rank)
    sizes = [number(r, 0, 3) for _ in range(rank)]
    text, fn = r.choice(
        [
            (f"transpose {order}", lambda x: td.transpose(x, order)),
            ("transpose", td.transpose),
            (f"expand_dims {one}", lambda x: td.expand_dims(x, one)),
            (f"squeeze {one}", lambda x: td.squeeze(x, one)),
            (f"reverse {several}", lambda x: td.reverse(x, several)),
            (f"tile {sizes}", lambda x: td.tile(x, sizes)),
            (f"roll {sizes[:1]} {one}", lambda x: td.roll(x, number(Random(one), -3, 9), one)),
            (f"repeat {sizes[:1]} {one}", lambda x: td.repeat(x, (sizes or [2])[0], axis=one)),
            (f"repeat {sizes} {one}", lambda x: td.repeat(x, sizes, axis=one)),
            (f"ensure_shape {shape}", lambda x: td.ensure_shape(x, [None, *shape[1:]])),
            (f"unstack {one}", lambda x: td.unstack(x, num=min((sizes or [2])[0], 50), axis=one)),
        ]
    )
    return Call(text, fn, [Input(r.choice(ANY), shape)])


@call
def broadcast_to(r: Random) -> Call:
    shape = dims(r, 0, 3)
    target = [*dims(r, 0, 1), *(number(r, 0, 5) if d == 1 else d for d in shape)]
    if r.random() < 0.2 and target:
        target[r.randrange(len(target))] = number(r, 0, 9)
    return Call(
        f"broadcast_to {target}",
        lambda x: td.broadcast_to(x, target),
        [Input(r.choice(REALS), shape)],
    )


@call
def pad(r: Random) -> Call:
    shape, mode = dims(r, 1, 3), r.choice(["CONSTANT", "REFLECT", "SYMMETRIC"])
    pairs = [
        [number(r, 0, min(d, 4)), number(r, 0, min(d, 4))] if r.random() < 0.7 else [0, 0]
        for d in shape
    ]
    pairs = [[min(max(v, -3), 50) for v in p] for p in pairs]
    return Call(
        f"pad {pairs} {mode}", lambda x: td.pad(x, pairs, mode, 1), [Input(r.choice(REALS), shape)]
    )


@call
def slice_(r: Random) -> Call:
    shape = dims(r, 1, 3)
    begin = [number(r, 0, d) for d in shape]
    size = [r.choice([-1, number(r, 0, max(d - max(b, 0), 0))]) for d, b in zip(shape, begin)]
    return Call(
        f"slice {begin} {size}", lambda x: td.slice(x, begin, size), [Input(r.choice(REALS), shape)]
    )


@call
def slice_of_sizes(r: Random) -> Call:
    shape = dims(r, 1, 2)
    begin = [number(r, 0, 2) for _ in shape]
    other = tuple(dim(r) for _ in shape)
    return Call(
        f"slice {begin} of the size of another",
        lambda x, y: td.slice(x, begin, [td.shape(y)[k] for k in range(len(begin))]),
        [Input("float32", shape), Input("float32", other)],
    )


def _key(r: Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = []
    for d in shape[: r.randint(1, len(shape))]:
        chance = r.random()
        if chance < 0.3:
            key.append(number(r, -d, d - 1))
        elif chance < 0.9:
            bounds = [r.choice([None, number(r, -d - 2, d + 2)]) for _ in range(2)]
            key.append(slice(*bounds, r.choice([None, 1, 2, 3, -1, -2, number(r, -3, 3)])))
        else:
            key.append(None)
    if r.random() < 0.15:
        key.insert(r.randint(0, len(key)), Ellipsis)
    return tuple(key)


@call
def getitem(r: Random) -> Call:
    shape = dims(r, 1, 3)
    key = _key(r, shape)
    return Call(f"x[{key}]", lambda x: x[key], [Input(r.choice(ANY), shape)])


@call
def getitem_by_tensor(r: Random) -> Call:
    shape = dims(r, 1, 3)
    k = r.randrange(len(shape))
    before = (slice(None),) * k
    which = r.random()
    index = Input(r.choice(("int32", "int64", "uint8")), (), max(shape[k], 1))
    if which < 0.5:
        return Call(f"x[i] at {k}", lambda x, i: x[(*before, i)], [Input("float32", shape), index])
    return Call(
        f"x[i:] at {k}", lambda x, i: x[(*before, slice(i, None))], [Input("float32", shape), index]
    )


@call
def mask(r: Random) -> Call:
    shape = dims(r, 1, 3)
    first = r.randrange(len(shape))
    count = r.randint(1, len(shape) - first)
    chosen = Input("bool", shape[first : first + count])
    if first == 0 and r.random() < 0.5:
        return Call("x[mask]", lambda x, m: x[m], [Input(r.choice(REALS), shape), chosen])
    return Call(
        f"boolean_mask {first}",
        lambda x, m: td.boolean_mask(x, m, axis=first),
        [Input(r.choice(REALS), shape), chosen],
    )


@call
def assignment(r: Random) -> Call:
    shape = dims(r, 1, 3)
    key = _key(r, shape)

    def plain(x: Any, v: Any) -> Any:
        from treadle.ops.indexing.updates import set_item

        return set_item(x, key, v)

    return Call(f"x[{key}] = v", plain, [Input("float32", shape), Input("float32", ())])


@call
def split(r: Random) -> Call:
    shape = dims(r, 1, 3)
    at = axis(r, len(shape))
    size = shape[at] if -len(shape) <= at < len(shape) else 1
    parts: Any = r.choice([number(r, 1, 3), size or 1])
    if r.random() < 0.5:
        first = r.randint(0, size)
        parts = [first, size - first]
        if r.random() < 0.5:
            parts[r.randrange(2)] = r.choice([-1, -1, number(r, 0, 4)])
    if isinstance(parts, int):
        parts = min(max(parts, -5), 40)
    return Call(
        f"split {parts} {at}", lambda x: td.split(x, parts, at), [Input(r.choice(REALS), shape)]
    )


@call
def joined(r: Random) -> Call:
    shape, count = dims(r, 1, 3), r.randint(1, 3)
    at, dtype = axis(r, len(shape)), r.choice(REALS)
    if r.random() < 0.4:
        return Call(
            f"stack {at}",
            lambda *xs: td.stack(list(xs), at),
            [Input(dtype, shape) for _ in range(count)],
        )
    place = at % len(shape)
    inputs = [Input(dtype, (*shape[:place], dim(r), *shape[place + 1 :])) for _ in range(count)]
    return Call(f"concat {at}", lambda *xs: td.concat(list(xs), at), inputs)


@call
def meshgrid(r: Random) -> Call:
    indexing = r.choice(["xy", "ij"])
    return Call(
        f"meshgrid {indexing}",
        lambda *xs: td.meshgrid(*xs, indexing=indexing),
        [Input("float32", (dim(r),)) for _ in range(r.randint(1, 3))],
    )


# -- positions that are data -----------------------------------------------------------------------


@call
def gather(r: Random) -> Call:
    shape = dims(r, 1, 3)
    batch = r.randint(0, len(shape) - 1) if r.random() < 0.5 else 0
    at = r.randint(batch, len(shape) - 1) if r.random() < 0.9 else axis(r, len(shape))
    size = shape[at] if -len(shape) <= at < len(shape) else 1
    positions = Input(
        r.choice(("int32", "int64", "uint8", "bool")) if r.random() < 0.3 else "int32",
        (*shape[:batch], *dims(r, 0, 2)),
        size,
    )
    return Call(
        f"gather {at} {batch}",
        lambda x, i: td.gather(x, i, axis=at, batch_dims=batch),
        [Input(r.choice(REALS), shape), positions],
    )


@call
def gather_nd(r: Random) -> Call:
    shape = dims(r, 1, 3)
    depth = r.randint(0, len(shape))
    limit = min(shape[:depth], default=1)
    positions = Input("int32", (*dims(r, 0, 2), depth), limit, known=1)
    return Call("gather_nd", td.gather_nd, [Input(r.choice(REALS), shape), positions])


@call
def scatter(r: Random) -> Call:
    shape = tuple(max(d, 1) for d in dims(r, 1, 3))
    depth = r.randint(1, len(shape))
    lead = dims(r, 0, 2)
    positions = Input(r.choice(("int32", "int64")), (*lead, depth), min(shape[:depth]), known=1)
    dtype = r.choice(("float32", "float64", "int32"))
    updates = Input(dtype, (*lead, *shape[depth:]))
    name = r.choice([
        "scatter_nd", "tensor_scatter_nd_add", "tensor_scatter_nd_update", "tensor_scatter_nd_max",
    ])  # fmt: skip
    if name == "scatter_nd":
        return Call(
            f"scatter_nd {shape}", lambda i, u: td.scatter_nd(i, u, shape), [positions, updates]
        )
    return Call(name, getattr(td, name), [Input(dtype, shape), positions, updates])


@call
def segments(r: Random) -> Call:
    shape, count = dims(r, 1, 3), number(r, 0, 5)
    count = min(max(count, -2), 50)
    rank = r.randint(1, len(shape))
    name = "unsorted_segment_" + r.choice(["sum", "prod", "max", "mean"])
    return Call(
        f"{name} {count}",
        lambda x, i: getattr(td.math, name)(x, i, count),
        [
            Input(r.choice(("float32", "float64", "int32")), shape),
            Input("int32", shape[:rank], max(count, 1)),
        ],
    )


@call
def one_hot(r: Random) -> Call:
    depth = min(max(number(r, 0, 6), -3), 60)
    shape = dims(r, 0, 2)
    at = axis(r, len(shape) + 1)
    return Call(
        f"one_hot {depth} {at}",
        lambda i: td.one_hot(i, depth, axis=at),
        [Input(r.choice(("int32", "int64", "uint8")), shape, 6)],
    )


@call
def embedding(r: Random) -> Call:
    rows = dim(r)
    return Call(
        "embedding_lookup",
        td.nn.embedding_lookup,
        [Input("float32", (rows, dim(r))), Input("int32", dims(r, 0, 2), rows)],
    )


@call
def in_top_k(r: Random) -> Call:
    rows, classes, k = dim(r), dim(r), number(r, 0, 4)
    return Call(
        f"in_top_k {k}",
        lambda t, p: td.math.in_top_k(t, p, min(max(k, -2), 50)),
        [Input("int32", (rows,), classes), Input("float32", (rows, classes))],
        differentiable=False,
    )


# -- sorting ---------------------------------------------------------------------------------------


@call
def sorted_(r: Random) -> Call:
    shape = dims(r, 0, 3)
    name, at = r.choice(["sort", "argsort"]), axis(r, len(shape))
    direction = r.choice(["ASCENDING", "DESCENDING"])
    return Call(
        f"{name} {at} {direction}",
        lambda x: getattr(td, name)(x, at, direction),
        [Input(r.choice(REALS), shape)],
    )


@call
def top_k(r: Random) -> Call:
    shape = dims(r, 0, 3)
    k = number(r, 0, shape[-1] if shape else 1)
    return Call(f"top_k {k}", lambda x: td.math.top_k(x, k), [Input(r.choice(REALS), shape)])


@call
def searchsorted(r: Random) -> Call:
    lead = dims(r, 0, 2)
    dtype, side = r.choice(("float32", "int32")), r.choice(["left", "right"])
    return Call(
        f"searchsorted {side}",
        lambda x, v: td.searchsorted(td.sort(x), v, side),
        [Input(dtype, (*lead, dim(r))), Input(dtype, (*lead, dim(r)))],
        differentiable=False,
    )


# -- products --------------------------------------------------------------------------------------


@call
def matmul(r: Random) -> Call:
    m, k, n = dim(r), dim(r), dim(r)
    ta, tb = r.random() < 0.4, r.random() < 0.4
    lead = dims(r, 0, 2) if r.random() < 0.5 else ()
    dtype = r.choice((*FLOATS, "int32"))
    a = (*lead, *((k, m) if ta else (m, k)))
    b = (*_broadcastable(r, lead), *((n, k) if tb else (k, n)))
    return Call(
        f"matmul {ta} {tb}",
        lambda x, y: td.matmul(x, y, ta, tb),
        [Input(dtype, a), Input(dtype, b)],
    )


@call
def matvec(r: Random) -> Call:
    m, k = dim(r), dim(r)
    return Call("matvec", td.linalg.matvec, [Input("float32", (m, k)), Input("float32", (k,))])


@call
def tensordot(r: Random) -> Call:
    shared, count = dims(r, 0, 2), 0
    count = len(shared)
    a, b = (*dims(r, 0, 2), *shared), (*shared, *dims(r, 0, 2))
    if r.random() < 0.2:
        count += 1
    return Call(
        f"tensordot {count}",
        lambda x, y: td.tensordot(x, y, count),
        [Input("float32", a), Input("float32", b)],
    )


EQUATIONS = [
    "ij,jk->ik",
    "ii->i",
    "ij->ji",
    "ii",
    "i,i",
    "ij,ij->",
    "bij,bjk->bik",
    "bij,kj->bik",
    "i,j->ij",
    "...i,...i->...",
    "ij,j",
    "iij->j",
    "abc,cd->abd",
    "ij->",
    "ijk,ikl->il",
]


@call
def einsum(r: Random) -> Call:
    equation = r.choice(EQUATIONS)
    sizes = {c: dim(r) for c in equation if c.isalpha()}
    shapes = [
        (*dims(r, 0, 1), *(sizes[c] for c in part if c.isalpha()))
        if "..." in part
        else tuple(sizes[c] for c in part)
        for part in equation.split("->")[0].split(",")
    ]
    return Call(
        f"einsum {equation}",
        lambda *xs: td.einsum(equation, *xs),
        [Input("float32", s) for s in shapes],
    )


@call
def diagonals(r: Random) -> Call:
    name = r.choice(["diag", "diag_part", "trace", "matrix_transpose"])
    shape = dims(r, 1, 3)
    return Call(name, getattr(td.linalg, name), [Input(r.choice(REALS), shape)])


# -- networks --------------------------------------------------------------------------------------


def _padding(r: Random) -> Any:
    if r.random() < 0.75:
        return r.choice(["SAME", "VALID"])
    return [[0, 0], [r.randint(-1, 2), r.randint(0, 2)], [r.randint(0, 3), 0], [0, 0]]


def _image(r: Random, channels: int) -> tuple[int, ...]:
    return (r.choice([0, 1, 2, 3]), r.choice([0, 1, 3, 5, 8]), r.choice([0, 1, 2, 4, 9]), channels)


@call
def conv2d(r: Random) -> Call:
    inner, groups = r.choice([0, 1, 2, 3, 16]), r.choice([1, 1, 1, 2])
    outer = r.choice([0, 1, 2, 4, 16]) * groups
    window = (r.randint(1, 4), r.randint(1, 4))
    strides, dilation = r.choice([1, 1, 2, [1, 2, 1, 1]]), r.choice([1, 1, 1, 2])
    padding = _padding(r)
    x = Input("float32", _image(r, inner * groups), finite=True)
    f = Input("float32", (*window, inner, outer), finite=True)
    return Call(
        f"conv2d {strides} {padding} {dilation}",
        lambda x, f: td.nn.conv2d(x, f, strides, padding, dilations=dilation),
        [x, f],
    )


@call
def depthwise(r: Random) -> Call:
    channels, multiplier = r.choice([0, 1, 2, 3, 8, 17]), r.choice([0, 1, 1, 2, 3])
    stride, padding = r.choice([1, 1, 2]), _padding(r)
    f = Input("float32", (r.randint(1, 4), r.randint(1, 4), channels, multiplier), finite=True)
    return Call(
        f"depthwise {stride} {padding}",
        lambda x, f: td.nn.depthwise_conv2d(x, f, [1, stride, stride, 1], padding),
        [Input("float32", _image(r, channels), finite=True), f],
    )


@call
def conv2d_transpose(r: Random) -> Call:
    inner, outer, stride = r.choice([1, 2, 4]), r.choice([1, 2, 5]), r.choice([1, 2])
    n, h, w, _ = _image(r, 0)
    shape = [n, max(h * stride + r.choice([0, 0, 0, -1, 1]), 0), w * stride, outer]
    x = Input("float32", (n, h, w, inner), finite=True)
    f = Input("float32", (2, 3, outer, inner), finite=True)
    return Call(
        f"conv2d_transpose {shape} {stride}",
        lambda x, f: td.nn.conv2d_transpose(x, f, shape, stride),
        [x, f],
    )


@call
def pool(r: Random) -> Call:
    name, padding = r.choice(["max_pool2d", "avg_pool2d"]), _padding(r)
    size = r.choice([1, 2, 3, [1, 2], 6, 30, 5000])
    stride = r.choice([None, 1, 2, 3, 7])
    return Call(
        f"{name} {size} {stride} {padding}",
        lambda x: getattr(td.nn, name)(x, size, stride, padding),
        [
            Input(
                r.choice(("float32", "float32", "float64", "int32")),
                _image(r, r.choice([0, 1, 2, 5, 16])),
            )
        ],
    )


@call
def softmax(r: Random) -> Call:
    shape, name = dims(r, 0, 3), r.choice(["softmax", "log_softmax"])
    at = r.choice([None, -1, axis(r, len(shape))])
    return Call(
        f"{name} {at}", lambda x: getattr(td.nn, name)(x, at), [Input(r.choice(FLOATS), shape)]
    )


@call
def cross_entropy(r: Random) -> Call:
    shape = dims(r, 1, 3)
    x = Input(r.choice(("float32", "float64")), shape)
    which = r.randrange(3)
    if which == 0:
        y = Input("int32", shape[:-1], shape[-1])
        return Call(
            "sparse cross entropy",
            lambda x, y: td.nn.sparse_softmax_cross_entropy_with_logits(y, x),
            [x, y],
        )
    name = ["softmax", "sigmoid"][which - 1] + "_cross_entropy_with_logits"
    return Call(name, lambda x, y: getattr(td.nn, name)(y, x), [x, Input(x.dtype, shape)])


@call
def normalization(r: Random) -> Call:
    shape = dims(r, 1, 3)
    over = [axis(r, len(shape))]
    if r.random() < 0.4:
        return Call(f"moments {over}", lambda x: td.nn.moments(x, over), [Input("float32", shape)])
    if r.random() < 0.5:
        return Call(
            "bias_add", td.nn.bias_add, [Input("float32", shape), Input("float32", shape[-1:])]
        )
    side = Input("float32", shape[-1:])
    return Call(
        "batch_normalization",
        lambda x, m, v: td.nn.batch_normalization(x, m, td.square(v), m, v, 1e-3),
        [Input("float32", shape), side, side],
    )


# -- made from numbers -----------------------------------------------------------------------------


@call
def made(r: Random) -> Call:
    shape = [min(max(number(r, 0, 4), -2), 60) for _ in range(r.randint(0, 3))]
    n = min(max(number(r, 0, 9), -3), 60)
    start, stop, step = (min(max(number(r, -4, 9), -60), 60) for _ in range(3))
    text, fn = r.choice(
        [
            (f"zeros {shape}", lambda x: td.zeros(shape) + x),
            (f"fill {shape}", lambda x: td.fill(shape, x)),
            (f"eye {n}", lambda x: td.eye(n) * x),
            (f"eye {n} {shape}", lambda x: td.eye(n, 3, batch_shape=shape) * x),
            (f"range {start} {stop} {step}", lambda x: td.range(start, stop, step)),
            (f"linspace {n}", lambda x: td.linspace(x, 2.0, n)),
            (f"uniform {shape}", lambda x: td.random.stateless_uniform(shape, [1, 2]) + x),
            (f"normal {shape}", lambda x: td.random.stateless_normal(shape, [1, 2]) + x),
            (
                f"bits {shape}",
                lambda x: td.random.stateless_uniform(shape, [1, 2], start, stop, td.int32),
            ),
        ]
    )
    return Call(text, fn, [Input("float32", ())])


@call
def sizes_from_data(r: Random) -> Call:
    """Arguments that are tensors, whose values a run must check."""
    shape = dims(r, 1, 3)
    text, fn = r.choice(
        [
            ("tile by tensor", lambda x, k: td.tile(x, td.stack([k] * len(shape)))),
            ("one_hot by tensor", lambda x, k: td.one_hot(td.cast(x, td.int32), k)),
            ("top_k by tensor", lambda x, k: td.math.top_k(x, k)),
            ("range by tensor", lambda x, k: td.range(k) + td.cast(td.reduce_sum(x) * 0, td.int32)),
            ("slice by tensor", lambda x, k: td.slice(x, [k] * len(shape), [1] * len(shape))),
            ("slice size by tensor", lambda x, k: td.slice(x, [0] * len(shape), [k] * len(shape))),
            ("pad by tensor", lambda x, k: td.pad(x, [[k, 1]] * len(shape))),
            ("mirror by tensor", lambda x, k: td.pad(x, [[k, 0]] * len(shape), "REFLECT")),
            ("roll by tensor", lambda x, k: td.roll(x, k, 0)),
            ("repeat by tensor", lambda x, k: td.repeat(x, k, axis=0)),
            (
                "broadcast by tensor",
                lambda x, k: td.broadcast_to(x[:1], td.concat([[k], td.shape(x)[1:]], 0)),
            ),
            ("reshape by tensor", lambda x, k: td.reshape(x, td.stack([k, -1]))),
            ("fill by tensor", lambda x, k: td.fill(td.stack([k, 2]), td.reduce_sum(x))),
            (
                "scatter by tensor",
                lambda x, k: td.scatter_nd(
                    td.ones([1, 1], td.int32), x[:1], td.stack([k, *shape[1:]])
                ),
            ),
        ]
    )
    return Call(text, fn, [Input("float32", shape), Input("int32", (), 5)], differentiable=False)
