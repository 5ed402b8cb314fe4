"""Convolutions and their gradients as kernels: sums of products along the taps of windows.

Images are NHWC, filters [height, width, in, out]; groups of channels have filters of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, compound, product
from treadle.graph.ir import Node
from treadle.kernel.ir import (
    Affine,
    Axis,
    Buffer,
    Const,
    Expr,
    Index,
    Kernel,
    Reduce,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)
from treadle.ops.image.windows import Span, spans
from treadle.ops.lowering import Library, dim_expr, divide_index, index_expr
from treadle.runtime.gpu.cudnn import KINDS, Convolution
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.finish import Ends, Finish
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.kernel import KernelRoutine
from treadle.runtime.gpu.routines.products import Matrices, MatrixProduct
from treadle.runtime.gpu.routines.routine import Routine, address_of, size_of
from treadle.runtime.precision import precision

# The library's name of an op -> where its images, filters and outputs are: an input, or -1 for the
# result.
_OPERANDS = {
    "conv2d": (0, 1, -1),
    "conv2d_backprop_input": (-1, 0, 1),
    "conv2d_backprop_filter": (0, -1, 1),
}


class Place(NamedTuple):
    """A position along an axis of images or outputs, and whether it is inside (None: always)."""

    at: Index
    inside: Expr | None


class Channels(NamedTuple):
    """The axes of channels: groups, and those of a group on either side; None for one of them."""

    group: Axis | None
    inner: Axis | None
    outer: Axis | None


def convolution_routine(node: Node, gpu: Gpu) -> Routine | None:
    """The routine of a convolution or of one of its gradients; None for sizes without windows."""
    assert isinstance(node.op.lower, Library)
    name = node.op.lower.name
    values = [*node.inputs, node.outputs[0]]
    images, filters, outputs = (values[i].spec.dims for i in _OPERANDS[name])
    if not all(isinstance(d, int) for d in (images[3], *filters)):
        return None
    if 0 in (*images[1:], *filters, *outputs[1:]):
        return None
    attrs: Any = node.attrs
    window: Any = filters[:2]
    found = spans(images[1:3], window, attrs["strides"], attrs["padding"], attrs["dilations"])
    if tuple(s.count for s in found) != tuple(outputs[1:3]):
        return None
    dtype = node.outputs[0].spec.dtype
    groups = images[3] // filters[2]
    if groups == 1 and all(s.window == s.stride == 1 and s.before == s.after == 0 for s in found):
        return _pointwise(name, dtype, product(images[:3]), *filters[2:])
    kernel = _kernel(name, dtype, images, filters, outputs, found)  # type: ignore[arg-type]
    own = KernelRoutine(name, kernel, gpu)
    if not gpu.convolves or dtype not in KINDS or not all(isinstance(s.size, int) for s in found):
        return own
    return LibraryConvolution(own, dtype, (images, filters, outputs), found, gpu)  # type: ignore[arg-type]


class LibraryConvolution(Routine):
    """A convolution by a library of the device, else by a kernel.

    The library's filters have their channels last in memory, [out, height, width, in]; ours are
    turned, in the workspace.

    Attributes:
        own: the kernel.
        turn: makes the library's filters of ours, or ours of the library's.
    """

    name = "cuDNN, or a kernel where it has none"

    def __init__(
        self, own: KernelRoutine, dtype: DType,
        shapes: tuple[Sequence[Dim], Sequence[int], Sequence[Dim]], found: Sequence[Span],
        gpu: Gpu,
    ) -> None:  # fmt: skip
        self.own, self.kind, self.dtype = own, own.name, dtype
        self.images, self.filters, self.outputs = shapes
        self.spans = found
        self.gives_filters = own.name == "conv2d_backprop_filter"
        self.turn = KernelRoutine("turned filters", self._turn(), gpu)
        self.parts = own, self.turn
        self.size = int(dtype.size) * math.prod(self.filters)
        self.workspace = compound("max", own.workspace, self.size)
        self.launches = own.launches

    def _turn(self) -> Kernel:
        h, w, c, o = self.filters
        ours, theirs = Buffer("ours", self.dtype, (h, w, c, o)), Buffer(
            "theirs", self.dtype, (o, h, w, c)
        )
        i, j, k, n = (Axis(f"i{m}", size) for m, size in enumerate((h, w, c, o)))
        if self.gives_filters:
            value = load(theirs, n, i, j, k)
            return Kernel((i, j, k, n), (theirs, ours), (store(ours, i, j, k, n, value=value),))
        value = load(ours, i, j, k, n)
        return Kernel((n, i, j, k), (ours, theirs), (store(theirs, n, i, j, k, value=value),))

    def _asked(self, symbols: Mapping[str, int]) -> Convolution:
        first, second = self.spans
        n, h, w, c = (size_of(d, symbols) for d in self.images)
        _, p, q, o = (size_of(d, symbols) for d in self.outputs)
        kh, kw, of_group, _ = self.filters
        return Convolution(
            self.kind, self.dtype, (n, c, h, w), (o, of_group, kh, kw), (n, o, p, q),
            (size_of(first.before, symbols), size_of(second.before, symbols)),
            (size_of(first.after, symbols), size_of(second.after, symbols)),
            (first.stride, second.stride), (first.dilation, second.dilation),
            precision.tensor_float,
        )  # fmt: skip

    def before_recording(
        self, driver: Driver, symbols: Mapping[str, int], finish: Finish | None
    ) -> None:
        asked = self._asked(symbols)
        if not asked.images[0]:
            return
        if finish is None or driver.convolution(asked._replace(finish=finish)) is None:
            driver.convolution(asked)

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        asked = self._asked(symbols)
        compute = driver.convolution(asked) if asked.images[0] else None
        if compute is None:
            self.own(driver, inputs, outputs, workspace, symbols)
            return
        arrays = [*inputs, outputs[0]]
        images, filters, results = (arrays[n] for n in _OPERANDS[self.kind])
        theirs = driver.array(workspace, self.dtype.np_dtype, (math.prod(self.filters),))
        if not self.gives_filters:
            self.turn(driver, [filters], [theirs], 0, symbols)
        compute(address_of(images), workspace, address_of(results))
        if self.gives_filters:
            self.turn(driver, [theirs], [filters], 0, symbols)

    def takes(self, finish: Finish) -> bool:
        return self.kind == "conv2d" and not finish.keeps

    def finished(
        self, driver: Driver, inputs: Sequence[Any], ends: Ends, workspace: int,
        symbols: Mapping[str, int],
    ) -> bool:  # fmt: skip
        asked = self._asked(symbols)._replace(finish=ends.finish)
        compute = driver.convolution(asked) if asked.images[0] else None
        if compute is None:
            return False
        images, filters = inputs
        theirs = driver.array(workspace, self.dtype.np_dtype, (math.prod(self.filters),))
        self.turn(driver, [filters], [theirs], 0, symbols)
        compute(address_of(images), workspace, ends.out, ends.bias)
        return True


def _pointwise(name: str, dtype: DType, pixels: Dim, c: Dim, o: Dim) -> Routine:
    """A product of pixels and channels."""
    if name == "conv2d":
        return MatrixProduct(dtype, pixels, o, c, Matrices(False, c), Matrices(False, o), [])
    if name == "conv2d_backprop_filter":
        return MatrixProduct(dtype, c, o, pixels, Matrices(True, c), Matrices(False, o), [])
    turned = Matrices(False, o), Matrices(True, o)
    return MatrixProduct(dtype, pixels, c, o, *turned, [], order=(1, 0))


def _kernel(
    name: str, dtype: DType, images: Sequence[Dim], filters: Sequence[int],
    outputs: Sequence[Dim], found: Sequence[Span],
) -> Kernel:  # fmt: skip
    x, f, y = Buffer("x", dtype, tuple(images)), Buffer("f", dtype, tuple(filters)), Buffer(
        "y", dtype, tuple(outputs)
    )
    groups = images[3] // filters[2]
    of_group = filters[3] // groups
    # Where a group has one channel on a side, its number is that of the group.
    group = _axis("g", groups)
    channels = Channels(group, _axis("c", filters[2]), _axis("o", of_group))
    taps = [_axis(f"k{n}", span.window) for n, span in enumerate(found)]
    image = _axis("n", images[0])
    if name == "conv2d_backprop_input":
        pixels = [_axis(f"x{n}", size) for n, size in enumerate(images[1:3])]
        places = [_output_place(s, p, t) for s, p, t in zip(found, pixels, taps, strict=True)]
        grid, over = [image, *pixels, group, channels.inner], [*taps, channels.outer]
        of_images: Sequence[Index] = [_at(p) for p in pixels]
        of_outputs: Sequence[Index] = [p.at for p in places]
    else:
        pixels = [_axis(f"y{n}", span.count) for n, span in enumerate(found)]
        places = [_image_place(s, p, t) for s, p, t in zip(found, pixels, taps, strict=True)]
        of_images, of_outputs = [p.at for p in places], [_at(p) for p in pixels]
        if name == "conv2d":
            grid, over = [image, *pixels, group, channels.outer], [*taps, channels.inner]
        else:
            grid = [*taps, channels.inner, group, channels.outer]
            over = [image, *pixels]
    inside = _both([p.inside for p in places])
    inner, outer = _channel(group, channels.inner, filters[2]), _channel(
        group, channels.outer, of_group
    )
    at_x = (_at(image), *of_images, inner)
    at_f = (*map(_at, taps), _at(channels.inner), outer)
    at_y = (_at(image), *of_outputs, outer)
    accesses = {x: at_x, f: at_f, y: at_y}
    target = {"conv2d": y, "conv2d_backprop_input": x, "conv2d_backprop_filter": f}[name]
    sources = [b for b in (x, f, y) if b is not target]
    guarded = y if name == "conv2d_backprop_input" else x
    factors = [
        _wide(load(b, *accesses[b], valid=inside if b is guarded else None)) for b in sources
    ]
    axes = [a for a in over if a is not None]
    total: Expr = apply("mul", *factors)
    if axes:
        total = Reduce("sum", tuple(axes), total)
    stored = store(target, *accesses[target], value=cast(total, dtype))
    loops = (*(a for a in grid if a is not None), *axes)
    return Kernel(loops, (*sources, target), (stored,))


def _axis(name: str, extent: Dim) -> Axis | None:
    """An axis; None for a single position."""
    return None if extent == 1 else Axis(name, extent)


def _at(axis: Axis | None) -> Affine:
    return affine([] if axis is None else [(axis, 1)])


def _channel(group: Axis | None, own: Axis | None, count: Dim) -> Affine:
    """A channel of all, given its group and its number there."""
    terms = [] if own is None else [(own, 1)]
    return affine([*terms, *([] if group is None else [(group, count)])])


def _image_place(span: Span, pixel: Axis | None, tap: Axis | None) -> Place:
    """Where the tap of the window of an output lies in the image."""
    terms: list[tuple[Axis, Dim]] = []
    if pixel is not None:
        terms.append((pixel, span.stride))
    if tap is not None:
        terms.append((tap, span.dilation))
    index = affine(terms, -span.before)
    padded = not (span.before == 0 and span.after == 0)
    return Place(index, _between(index_expr(index), span.size) if padded else None)


def _output_place(span: Span, pixel: Axis | None, tap: Axis | None) -> Place:
    """The output whose window has a pixel of the image at a tap."""
    terms: list[tuple[Axis, Dim]] = []
    if pixel is not None:
        terms.append((pixel, 1))
    if tap is not None:
        terms.append((tap, -span.dilation))
    ahead = affine(terms, span.before)
    if span.stride == 1:
        return Place(ahead, _between(index_expr(ahead), span.count))
    index, rest = divide_index(ahead, span.stride)
    hits = apply("eq", index_expr(rest), const(0, dtypes.int64))
    return Place(index, apply("and", hits, _between(index_expr(index), span.count)))


def _between(place: Expr, size: Dim) -> Expr:
    low = apply("ge", place, const(0, dtypes.int64))
    return apply("and", low, apply("lt", place, dim_expr(size)))


def _both(conditions: Sequence[Expr | None]) -> Expr | None:
    found: Expr | None = None
    for condition in conditions:
        if condition is not None and not isinstance(condition, Const):
            found = condition if found is None else apply("and", found, condition)
    return found


def _wide(value: Expr) -> Expr:
    """Factors as they are multiplied: those of 16 bits as float32."""
    return cast(value, dtypes.float32) if value.dtype.size == 2 else value
