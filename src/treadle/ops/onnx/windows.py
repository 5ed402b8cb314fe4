"""Forms of convolutions and pools: ONNX has the channels before height and width."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import Dim
from treadle.ops.image.axis_windows import fill_of, span_along
from treadle.ops.image.pooling_numpy import pool_spans
from treadle.ops.image.windows import Span, spans
from treadle.ops.onnx.call import NoForm, OnnxCall, form

_TO_FRONT, _TO_BACK = (0, 3, 1, 2), (0, 2, 3, 1)


def _windows(found: tuple[Span, Span]) -> dict[str, Any]:
    """The attributes of windows; the padding of "SAME" is left to ONNX where sizes are open."""
    pads = [*(s.before for s in found), *(s.after for s in found)]
    attrs: dict[str, Any] = {"strides": [s.stride for s in found]}
    if any(s.dilation != 1 for s in found):
        attrs["dilations"] = [s.dilation for s in found]
    if all(isinstance(p, int) for p in pads):
        return attrs | {"pads": pads}
    if "dilations" in attrs:
        raise NoForm("padding SAME of images of open sizes, with dilations")
    return attrs | {"auto_pad": "SAME_UPPER"}


def _groups(channels: Dim, inner: Dim) -> int:
    groups = channels // inner
    if not isinstance(groups, int):
        raise NoForm("the number of channels is open")
    return groups


@form("conv2d")
def _conv2d(call: OnnxCall) -> str:
    x, filters = call.inputs
    images, kernel = call.specs
    attrs = _windows(spans(images.dims[1:3], kernel.dims[:2], **_of(call)))  # type: ignore[arg-type]
    group = _groups(images.dims[3], kernel.dims[2])
    moved = call.transpose(x, _TO_FRONT), call.transpose(filters, (3, 2, 0, 1))
    return call.transpose(call.add("Conv", *moved, group=group, **attrs), _TO_BACK)


def _of(call: OnnxCall) -> dict[str, Any]:
    return {key: call.attrs[key] for key in ("strides", "padding", "dilations")}


@form("conv2d_backprop_input")
def _conv2d_transpose(call: OnnxCall) -> str:
    filters, dy = call.inputs
    kernel, slopes = call.specs
    image = call.attrs["image"]
    found = spans(image[:2], kernel.dims[:2], **_of(call))  # type: ignore[arg-type]
    attrs = _windows(found)
    if "pads" not in attrs:
        raise NoForm("padding SAME of images of open sizes")
    parts = zip(found, slopes.dims[1:3], strict=True)
    extra = [
        s.size + s.before + s.after - (count - 1) * s.stride - (s.window - 1) * s.dilation - 1
        for s, count in parts
    ]
    if not all(isinstance(n, int) for n in extra):
        raise NoForm("the sizes of the images do not follow from those of the windows")
    moved = call.transpose(dy, _TO_FRONT), call.transpose(filters, (3, 2, 0, 1))
    group = _groups(image[2], kernel.dims[2])
    made = call.add("ConvTranspose", *moved, group=group, output_padding=extra, **attrs)
    return call.transpose(made, _TO_BACK)


@form("max_pool", "avg_pool")
def _pool(call: OnnxCall) -> str:
    keys = ("window", "strides", "padding")
    attrs = _windows(pool_spans(call.specs[0].dims[1:3], *(call.attrs[k] for k in keys)))
    kind = "MaxPool" if call.op.name == "max_pool" else "AveragePool"
    front = call.transpose(call.inputs[0], _TO_FRONT)
    return call.transpose(
        call.add(kind, front, kernel_shape=list(call.attrs["window"]), **attrs), _TO_BACK
    )


@form("take_windows")
def _take_windows(call: OnnxCall) -> str:
    """The elements of all windows along the axis, gathered by their positions."""
    (x,), (spec,) = call.inputs, call.specs
    axis, rank = call.attrs["axis"], spec.rank
    found = span_along(spec.dims[axis], call.attrs)
    if found.before != 0 or found.after != 0:
        pads: list[Dim] = [0] * (2 * rank)
        pads[axis], pads[rank + axis] = found.before, found.after
        fill = call.constant(fill_of(spec.dtype, call.attrs))
        x = call.add("Pad", x, call.shape(pads), fill)
    zero, one = call.scalar(0), call.scalar(1)
    first = call.add("Range", zero, call.scalar(found.count), one)
    first = call.add("Mul", first, call.scalar(found.stride))
    inside = call.integers(*(k * found.dilation for k in range(found.window)))
    places = call.add("Add", call.unsqueeze(first, 1), inside)
    taken = call.add("Gather", x, places, axis=axis)
    order = [k for k in range(rank + 1) if k != axis + 1]
    return call.transpose(taken, (*order[:-1], axis + 1, order[-1]))
