"""Forms of what reads and changes parts of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.ops.onnx.call import NoForm, OnnxCall, form

# -- reading ---------------------------------------------------------------------------------------


@form("index")
def _index(call: OnnxCall) -> str:
    return call.add("Gather", call.inputs[0], call.positions(1), axis=call.attrs["axis"])


@form("gather")
def _gather(call: OnnxCall) -> str:
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    if not batch:
        return call.add("Gather", call.inputs[0], call.positions(1), axis=axis)
    if axis != batch:
        raise NoForm("it gathers along an axis behind others that are no batch")
    rows = call.unsqueeze(call.positions(1), call.specs[1].rank)
    return call.add("GatherND", call.inputs[0], rows, batch_dims=batch)


@form("gather_nd")
def _gather_nd(call: OnnxCall) -> str:
    if call.specs[1].dims[-1] == 0:
        shape = call.shape(call.outs[0].dims)
        return call.add("Expand", call.inputs[0], shape)
    return call.add("GatherND", call.inputs[0], call.positions(1))


@form("dynamic_slice")
def _dynamic_slice(call: OnnxCall) -> str:
    x, *bounds = call.inputs
    given = iter(range(1, len(call.inputs)))
    start, stop, step = (next(given) if g else None for g in call.attrs["given"])
    if step is not None and (start is None or stop is None):
        raise NoForm("a slice with a step that only a run can tell needs both of its bounds")
    most = call.integers(np.iinfo(np.int64).max)
    parts = [
        call.integers(0) if start is None else _vector(call, start),
        most if stop is None else _vector(call, stop),
        call.integers(call.attrs["axis"]),
    ]
    if step is not None:
        parts.append(_vector(call, step))
    return call.add("Slice", x, *parts)


def _vector(call: OnnxCall, index: int) -> str:
    return call.add("Reshape", call.positions(index), call.integers(1))


# -- parts put in their place ----------------------------------------------------------------------


def _along(call: OnnxCall, vector: str, axis: int, rank: int) -> str:
    """A vector that broadcasts along an axis."""
    return call.unsqueeze(vector, *range(1, rank - axis)) if rank - axis > 1 else vector


def _numbers(call: OnnxCall, size: str) -> str:
    return call.add("Range", call.scalar(0), size, call.scalar(1))


def _spread(
    call: OnnxCall, part: str, begin: Sequence[Dim], strides: Sequence[int], sizes: Sequence[Dim],
    dims: Sequence[Dim],
) -> tuple[str, str | None]:  # fmt: skip
    """An array that has the elements of a part where they belong, and where this is; None: all of
    it is the part."""
    inside = None
    for axis, (start, step, size, dim) in enumerate(zip(begin, strides, sizes, dims, strict=True)):
        if start == 0 and step == 1 and size == dim:
            continue
        numbers = _numbers(call, call.scalar(dim))
        found = map(call.scalar, (start, size, step))
        part, here = _spread_axis(call, part, axis, len(dims), numbers, *found)
        inside = here if inside is None else call.add("And", inside, here)
    return part, inside


def _spread_axis(
    call: OnnxCall, part: str, axis: int, rank: int, numbers: str, start: str, size: str, step: str
) -> tuple[str, str]:
    """The same along one axis. What is not inside reads zeros behind the part, which may have no
    elements."""
    offset = call.add("Sub", numbers, start)
    rest = call.add("Mod", offset, step)
    place = call.add("Div", call.add("Sub", offset, rest), step)
    exact = call.add("Equal", rest, call.scalar(0))
    least = call.add("GreaterOrEqual", place, call.scalar(0))
    inside = call.add("And", call.add("And", exact, least), call.add("Less", place, size))
    behind = [int(k == rank + axis) for k in range(2 * rank)]
    part = call.add("Pad", part, call.integers(*behind))
    place = call.add("Where", inside, place, size)
    return call.add("Gather", part, place, axis=axis), _along(call, inside, axis, rank)


@form("slice_update")
def _slice_update(call: OnnxCall) -> str:
    x, part = call.inputs
    begin, strides = call.attrs["begin"], call.attrs["strides"]
    found, inside = _spread(call, part, begin, strides, call.specs[1].dims, call.specs[0].dims)
    return found if inside is None else call.add("Where", inside, found, x)


@form("strided_slice_grad")
def _slice_grad(call: OnnxCall) -> str:
    (part,), (spec,) = call.inputs, call.specs
    begin, strides, shape = (call.attrs[k] for k in ("begin", "strides", "shape"))
    if all(s == 1 for s in strides):
        parts = zip(shape, begin, spec.dims, strict=True)
        after = [dim - start - size for dim, start, size in parts]
        return call.add("Pad", part, call.shape((*begin, *after)), call.constant(0))
    found, inside = _spread(call, part, begin, strides, spec.dims, shape)
    return found if inside is None else call.add("Where", inside, found, call.constant(0))


def _at_index(call: OnnxCall, part: str, dim: Dim, rank: int) -> tuple[str, str]:
    """Where a position along ``attrs["axis"]`` is, and a part that broadcasts to it."""
    axis, place = call.attrs["axis"], call.positions(1)
    negative = call.add("Less", place, call.scalar(0))
    place = call.add("Where", negative, call.add("Add", place, call.scalar(dim)), place)
    here = call.add("Equal", _numbers(call, call.scalar(dim)), place)
    return _along(call, here, axis, rank), call.unsqueeze(part, axis)


@form("index_update")
def _index_update(call: OnnxCall) -> str:
    x, _, part = call.inputs
    spec = call.specs[0]
    here, part = _at_index(call, part, spec.dims[call.attrs["axis"]], spec.rank)
    return call.add("Where", here, part, x)


@form("index_grad")
def _index_grad(call: OnnxCall) -> str:
    here, part = _at_index(call, call.inputs[0], call.attrs["size"], call.outs[0].rank)
    return call.add("Where", here, part, call.constant(0))


@form("dynamic_slice_update", "dynamic_slice_grad")
def _dynamic_slice_update(call: OnnxCall) -> str:
    """Bounds are as Python's: negative ones count from the end."""
    axis, (has_start, _, has_step) = call.attrs["axis"], call.attrs["given"]
    if has_step:
        raise NoForm("a part is replaced with a step that only a run can tell")
    is_update = call.op.name == "dynamic_slice_update"
    part = call.inputs[-1 if is_update else 0]
    dim = call.outs[0].dims[axis]
    size = call.scalar(dim)
    start = call.scalar(0)
    if has_start:
        place = call.positions(1)
        around = call.add("Add", place, size)
        place = call.add("Where", call.add("Less", place, start), around, place)
        start = call.add("Min", call.add("Max", place, start), size)
    length = call.add("Shape", part, start=axis, end=axis + 1)
    length = call.add("Squeeze", length, call.integers(0))
    found, inside = _spread_axis(
        call, part, axis, call.outs[0].rank, _numbers(call, size), start, length, call.scalar(1)
    )
    x = call.inputs[0] if is_update else call.constant(0)
    return call.add("Where", inside, found, x)


# -- rows at positions -----------------------------------------------------------------------------

_SCATTERED = {
    "tensor_scatter_nd_update": "none", "tensor_scatter_nd_add": "add",
    "tensor_scatter_nd_max": "max", "tensor_scatter_nd_min": "min",
}  # fmt: skip


@form(*_SCATTERED)
def _scatter(call: OnnxCall) -> str:
    x, _, rows = call.inputs
    how = _SCATTERED[call.op.name]
    return call.add("ScatterND", x, call.positions(1), rows, reduction=how)


@form("scatter_nd")
def _scatter_nd(call: OnnxCall) -> str:
    zeros = call.zeros(call.shape(call.attrs["shape"]), call.dtype)
    return call.add("ScatterND", zeros, call.positions(0), call.inputs[1], reduction="add")


@form("unsorted_segment_sum")
def _segment_sum(call: OnnxCall) -> str:
    zeros = call.zeros(call.shape(call.outs[0].dims), call.dtype)
    return _segments(call, zeros, call.inputs[0], 1, "add")


@form("segment_max", "segment_min", "segment_mul")
def _segment(call: OnnxCall) -> str:
    x, data, _ = call.inputs
    return _segments(call, x, data, 2, call.op.name.removeprefix("segment_"))


def _segments(call: OnnxCall, x: str, data: str, ids: int, how: str) -> str:
    """Rows of data combined with those of `x`; negative numbers, which name no row, name one more
    behind the others, which is cut off again."""
    count = call.outs[0].dims[0]
    spare = call.shape([1, *call.outs[0].dims[1:]])
    wide = call.add("Concat", x, call.zeros(spare, call.dtype), axis=0)
    places = call.positions(ids)
    dropped = call.add("Less", places, call.scalar(0))
    places = call.add("Where", dropped, call.scalar(count), places)
    rows = call.unsqueeze(places, call.specs[ids].rank)
    found = call.add("ScatterND", wide, rows, data, reduction=how)
    return call.add("Slice", found, call.integers(0), call.size(count), call.integers(0))


# -- masks -----------------------------------------------------------------------------------------


@form("compress")
def _compress(call: OnnxCall) -> str:
    return call.add("Compress", *call.inputs, axis=0)


@form("expand_masked")
def _expand_masked(call: OnnxCall) -> str:
    """Each true element of the mask takes the next row; the others take a row of zeros behind
    them all."""
    x, mask = call.inputs
    rows = [1, *call.specs[0].dims[1:]]
    wide = call.add("Concat", x, call.zeros(call.shape(rows), call.dtype), axis=0)
    one = call.scalar(1)
    counted = call.add("CumSum", call.cast(mask, dtypes.int64), call.scalar(0))
    place = call.add("Where", mask, call.add("Sub", counted, one), call.constant(-1, dtypes.int64))
    return call.add("Gather", wide, place, axis=0)


@form("nonzero")
def _nonzero(call: OnnxCall) -> str:
    return call.transpose(call.add("NonZero", call.inputs[0]), (1, 0))
