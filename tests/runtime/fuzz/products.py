"""Products, convolutions and pooling of random programs."""

from __future__ import annotations

from typing import Any

import treadle as td
from tests.runtime.fuzz.chooser import FLOATS, INTS, WIDE, Chooser, NoChoice
from tests.runtime.fuzz.registry import Choice, add


def _matmul(g: Chooser) -> Choice:
    """Often two values that are there, otherwise one with a new matrix."""
    x = g.value((*FLOATS, *INTS), 2)
    shape = g.shape(x)
    a, b = g.chance(0.35), g.chance(0.35)
    inner = shape[-2] if a else shape[-1]
    right = 1 if b else 0

    def fits(y: Any) -> bool:
        last = y.shape[-2:]
        batches = y.ndim == 2 or len(shape) == 2 or y.shape[:-2] == shape[:-2]
        return bool(last[1 if right else 0] == inner and batches)

    try:
        y = g.value((g.dtype(x),), 2, test=fits) if g.chance(0.6) else None
    except NoChoice:
        y = None
    if y is None:
        columns = g.pick(g.dims)
        matrix = (columns, inner) if b else (inner, columns)
        batch = shape[:-2] if g.chance(0.4) else ()
        y = g.new((*batch, *matrix), g.dtype(x))
    return [x, y], {"transpose_a": a, "transpose_b": b}


add("matmul", td.matmul, _matmul, 3.0)


def _self_product(g: Chooser) -> Choice:
    return [g.value(WIDE, 2)], {"transpose_a": g.chance(0.5)}


def _product(x: Any, transpose_a: bool) -> Any:
    return td.matmul(x, x, transpose_a=transpose_a, transpose_b=not transpose_a)


add("self_product", _product, _self_product, 0.7)


def _einsum(g: Chooser) -> Choice:
    x = g.value(WIDE, 2, 3)
    rank, shape, n = len(g.shape(x)), g.shape(x), g.pick(g.dims)
    forms: list[tuple[str, tuple[int, ...]]] = [
        ("ij,jk->ki", (shape[1], n)),
        ("ij,ij->j", shape),
        ("ij,kj->ik", (n, shape[1])),
        ("ij,j->i", (shape[1],)),
    ]
    if rank == 3:
        forms = [
            ("bij,bkj->bik", (shape[0], n, shape[2])),
            ("bij,bjk->ikb", (shape[0], shape[2], n)),
            ("bij,jk->bki", (shape[2], n)),
            ("bij,bij->bi", shape),
            ("bij,bik->jk", (shape[0], shape[1], n)),
        ]
    equation, other = g.pick(forms)
    try:
        y = g.value((g.dtype(x),), test=lambda a: a.shape == other)
    except NoChoice:
        y = g.new(other, g.dtype(x))
    return [x, y], {"equation": equation}


add("einsum", lambda x, y, equation: td.einsum(equation, x, y), _einsum, 1.0)


def _image(g: Chooser) -> int:
    return g.value(WIDE, 4, 4, lambda a: min(a.shape[1:3]) >= 2 and a.shape[3] <= 64)


def _window(g: Chooser, x: int) -> dict[str, Any]:
    _, height, width, _ = g.shape(x)
    return {"strides": g.pick([1, 1, 2]), "padding": g.pick(["SAME", "VALID"])}


def _size(g: Chooser, x: int) -> list[int]:
    return [g.integer(1, min(3, d)) for d in g.shape(x)[1:3]]


def _conv(g: Chooser) -> Choice:
    x = _image(g)
    channels = g.shape(x)[3]
    filters = g.new((*_size(g, x), channels, g.pick([1, 2, 3, 5, 8, 16])), g.dtype(x))
    attrs = _window(g, x)
    if attrs["strides"] == 1 and attrs["padding"] == "SAME" and g.chance(0.2):
        attrs["dilations"] = 2
    return [x, filters], attrs


def _depthwise(g: Chooser) -> Choice:
    x = _image(g)
    filters = g.new((*_size(g, x), g.shape(x)[3], g.integer(1, 3)), g.dtype(x))
    attrs = _window(g, x)
    return [x, filters], {**attrs, "strides": [1, attrs["strides"], attrs["strides"], 1]}


def _pool(g: Chooser) -> Choice:
    x = _image(g)
    return [x], {"ksize": _size(g, x), **_window(g, x)}


def _images(g: Chooser) -> Choice:
    """An image made of a value of any form."""
    x = g.value(WIDE, 2, 3, lambda a: 4 <= a.size <= 4096)
    return [x], {}


add("conv2d", td.nn.conv2d, _conv, 6.0)
add("depthwise", td.nn.depthwise_conv2d, _depthwise, 3.0)
add("max_pool", td.nn.max_pool2d, _pool, 4.0)
add("avg_pool", td.nn.avg_pool2d, _pool, 3.0, exact=False)
add("as_image", lambda x: x[..., None] if len(x.shape) == 3 else x[None, ..., None], _images, 0.7)
