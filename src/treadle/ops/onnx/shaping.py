"""Forms of what makes, moves, joins, sorts and reduces elements, of products, and of shapes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.core.spec import Spec
from treadle.ops.onnx.call import NoForm, OnnxCall, form

# -- making ----------------------------------------------------------------------------------------


@form("const")
def _const(call: OnnxCall) -> str:
    return call.block.constants.constant(call.attrs["value"], call.name)


@form("fill", "broadcast_to")
def _broadcast(call: OnnxCall) -> str:
    return call.add("Expand", call.inputs[0], call.shape(call.attrs["shape"]))


@form("eye")
def _eye(call: OnnxCall) -> str:
    shape = call.attrs["shape"]
    zeros = call.zeros(call.shape(shape[-2:]), dtypes.float32)
    made = call.add("EyeLike", zeros, dtype=dtypes.float32)
    return call.add("Expand", call.cast(made, call.dtype), call.shape(shape))


@form("range")
def _range(call: OnnxCall) -> str:
    start, delta, size = (call.attrs[k] for k in ("start", "delta", "size"))
    numbers = (start, delta, size)
    if all(isinstance(n, int | float) for n in numbers):
        wide = np.float64 if call.dtype.is_floating else np.int64
        return call.constant(start + np.arange(size, dtype=wide) * delta)
    steps = call.add("Range", call.scalar(0), call.scalar(size), call.scalar(1))
    if call.dtype.is_floating:
        steps = call.cast(steps, call.dtype)
        first, by = call.constant(start), call.constant(delta)
    else:
        first, by = call.scalar(start), call.scalar(delta)
    found = call.add("Add", call.add("Mul", steps, by), first)
    return found if call.dtype.is_floating else call.cast(found, call.dtype)


@form("range_dynamic")
def _range_dynamic(call: OnnxCall) -> str:
    start, _, delta = call.inputs
    steps = call.add("Range", call.scalar(0), call.scalar(call.attrs["size"]), call.scalar(1))
    steps = call.cast(steps, call.dtype)
    return call.add("Add", call.add("Mul", steps, delta), start)


@form("one_hot")
def _one_hot(call: OnnxCall) -> str:
    """By comparison: ONNX's OneHot counts negative positions from the end."""
    depth, axis = call.attrs["depth"], call.attrs["axis"]
    classes = call.add("Range", call.scalar(0), call.scalar(depth), call.scalar(1))
    behind = call.outs[0].rank - 1 - axis
    if behind:
        classes = call.unsqueeze(classes, *range(1, behind + 1))
    here = call.add("Equal", call.unsqueeze(call.positions(0), axis), classes)
    return call.add("Where", here, *call.inputs[1:])


# -- shapes ----------------------------------------------------------------------------------------


@form("shape")
def _shape(call: OnnxCall) -> str:
    return call.cast(call.add("Shape", call.inputs[0]), call.dtype)


@form("dim")
def _dim(call: OnnxCall) -> str:
    return call.cast(call.scalar(call.attrs["dim"]), call.dtype)


@form("open_dim")
def _open_dim(call: OnnxCall) -> str:
    """The result is an array without elements that has the number as its first dim."""
    one = call.add("Reshape", call.positions(0), call.integers(1))
    (symbol,) = call.outs[0].symbols()
    call.block.bind(symbol, one)
    return call.zeros(call.add("Concat", one, call.integers(0), axis=0), dtypes.bool)


@form("reshape")
def _reshape(call: OnnxCall) -> str:
    return reshape(call, call.inputs[0], call.attrs["shape"])


def reshape(call: OnnxCall, x: str, dims: Iterable[Dim]) -> str:
    """One open dim may be left to ONNX, where no dim is 0."""
    dims = tuple(dims)
    known = [d for d in dims if isinstance(d, int)]
    if len(known) == len(dims) - 1 and 0 not in known:
        told = (d if isinstance(d, int) else -1 for d in dims)
        return call.add("Reshape", x, call.integers(*told))
    may_be_empty = len(known) < len(dims) or 0 in known
    return call.add("Reshape", x, call.shape(dims), allowzero=int(may_be_empty))


# -- moving ----------------------------------------------------------------------------------------


@form("transpose")
def _transpose(call: OnnxCall) -> str:
    return call.transpose(call.inputs[0], call.attrs["perm"])


_LEAST = np.iinfo(np.int64).min


@form("reverse")
def _reverse(call: OnnxCall) -> str:
    axes = call.attrs["axis"]
    ends = [[k] * len(axes) for k in (-1, _LEAST)]
    steps = call.integers(*(-1 for _ in axes))
    return call.add(
        "Slice", *call.inputs, *(call.integers(*e) for e in ends), call.integers(*axes), steps
    )


@form("concat")
def _concat(call: OnnxCall) -> str:
    return call.add("Concat", *call.inputs, axis=call.attrs["axis"])


@form("stack")
def _stack(call: OnnxCall) -> str:
    axis = call.attrs["axis"]
    return call.add("Concat", *(call.unsqueeze(x, axis) for x in call.inputs), axis=axis)


@form("pad")
def _pad(call: OnnxCall) -> str:
    mode = call.attrs["mode"]
    if mode == "symmetric":
        raise NoForm("ONNX has no symmetric padding")
    before, after = zip(*call.attrs["paddings"], strict=True) if call.specs[0].rank else ((), ())
    value = call.constant(call.attrs["value"])
    return call.add("Pad", call.inputs[0], call.shape((*before, *after)), value, mode=mode)


@form("strided_slice")
def _strided_slice(call: OnnxCall) -> str:
    spec = call.specs[0]
    parts = zip(*(call.attrs[k] for k in ("begin", "size", "strides")), spec.dims, strict=True)
    starts, ends, axes, steps = [], [], [], []
    for axis, (begin, size, step, dim) in enumerate(parts):
        if begin == 0 and size == dim and step == 1:
            continue
        end = begin + size * step
        if step < 0 and not isinstance(end, int):
            raise NoForm("a slice that goes back has an end that only a run can tell")
        starts.append(begin)
        ends.append(_LEAST if step < 0 and end < 0 else end)
        axes.append(axis)
        steps.append(step)
    if not axes:
        return call.inputs[0]
    return call.add(
        "Slice", call.inputs[0], call.shape(starts), call.shape(ends), call.integers(*axes),
        call.integers(*steps),
    )  # fmt: skip


# -- reductions ------------------------------------------------------------------------------------

_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
}  # fmt: skip


@form(*_REDUCTIONS)
def _reduce(call: OnnxCall) -> str:
    return reduce(call, _REDUCTIONS[call.op.name], call.inputs[0])


def reduce(call: OnnxCall, kind: str, x: str) -> str:
    """A reduction along ``attrs["axis"]``."""
    axes = call.attrs["axis"]
    if not axes:
        return x
    return call.add(kind, x, call.integers(*axes), keepdims=int(call.attrs["keepdims"]))


@form("reduce_any", "reduce_all")
def _reduce_bools(call: OnnxCall) -> str:
    """Whether the number of elements that are true, or that are not, is 0."""
    (x,), is_any = call.inputs, call.op.name == "reduce_any"
    if not call.attrs["axis"]:
        return x
    counted = call.cast(x if is_any else call.add("Not", x), dtypes.int64)
    count = reduce(call, "ReduceSum", counted)
    zero = call.constant(0, dtypes.int64)
    return call.add("Greater" if is_any else "Equal", count, zero)


@form("argmax", "argmin")
def _argmax(call: OnnxCall) -> str:
    kind = "ArgMax" if call.op.name == "argmax" else "ArgMin"
    found = call.add(kind, call.inputs[0], axis=call.attrs["axis"], keepdims=0)
    return found if call.dtype is dtypes.int64 else call.cast(found, call.dtype)


@form("sum_to")
def _sum_to(call: OnnxCall) -> str:
    (x,), dims, shape = call.inputs, call.specs[0].dims, call.attrs["shape"]
    lead = len(dims) - len(shape)
    if lead:
        x = call.add("ReduceSum", x, call.integers(*range(lead)), keepdims=0)
    pairs = list(enumerate(zip(dims[lead:], shape, strict=True)))
    known = [axis for axis, (before, after) in pairs if before != after and after == 1]
    if known:
        x = call.add("ReduceSum", x, call.integers(*known), keepdims=1)
    unknown = [axis for axis, (before, after) in pairs if before != after and after != 1]
    if not unknown:
        return x
    sizes = call.shape([shape[axis] for axis in unknown])
    ones = call.add("Equal", sizes, call.integers(1))
    axes = call.add("Compress", call.integers(*unknown), ones, axis=0)
    return call.add("ReduceSum", x, axes, keepdims=1, noop_with_empty_axes=1)


@form("cumsum")
def _cumsum(call: OnnxCall) -> str:
    flags = {k: int(call.attrs[k]) for k in ("exclusive", "reverse")}
    axis = call.constant(call.attrs["axis"], dtypes.int64)
    return call.add("CumSum", call.inputs[0], axis, **flags)


# -- sorting ---------------------------------------------------------------------------------------


def _top_k(call: OnnxCall, count: Dim, largest: bool) -> list[str]:
    return call.several(2, "TopK", call.inputs[0], call.size(count), largest=int(largest))


@form("top_k")
def _largest(call: OnnxCall) -> list[str]:
    values, places = _top_k(call, call.attrs["k"], True)
    return [values, call.cast(places, call.outs[1].dtype)]


@form("sort")
def _sort(call: OnnxCall) -> str:
    return _top_k(call, call.specs[0].dims[-1], call.attrs["descending"])[0]


@form("argsort")
def _argsort(call: OnnxCall) -> str:
    found = _top_k(call, call.specs[0].dims[-1], call.attrs["descending"])[1]
    return call.cast(found, call.dtype)


@form("unique")
def _unique(call: OnnxCall) -> list[str]:
    dtype, kind = call.attrs["out_idx"], call.dtype
    x = call.cast(call.inputs[0], dtypes.int64) if kind.is_integer else call.inputs[0]
    values, _, places, counts = call.several(4, "Unique", x, sorted=0)
    values = call.cast(values, kind) if kind.is_integer else values
    return [values, call.cast(places, dtype), call.cast(counts, dtype)]


# -- products --------------------------------------------------------------------------------------


@form("matmul", "byte_matmul")
def _matmul(call: OnnxCall) -> str:
    factors = [
        _swapped(call, x, spec) if call.attrs[key] else x
        for x, spec, key in zip(
            call.inputs, call.specs, ("transpose_a", "transpose_b"), strict=True
        )
    ]
    return call.add("MatMul" if call.op.name == "matmul" else "MatMulInteger", *factors)


def _swapped(call: OnnxCall, x: str, spec: Spec) -> str:
    rank = spec.rank
    return call.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


@form("determinant")
def _determinant(call: OnnxCall) -> str:
    return call.add("Det", *call.inputs)
