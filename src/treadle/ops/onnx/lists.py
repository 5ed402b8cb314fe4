"""Forms of ops on lists: sequences of ONNX. Unwritten elements are zeros, or empty where their
shape is not known."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.shapes import ANY
from treadle.core.spec import ListSpec, Spec, TensorSpec, has_element_shape
from treadle.ops.onnx.call import OnnxCall, form


@form("list_new")
def _new(call: OnnxCall) -> str:
    spec = call.outs[0]
    empty = call.add("SequenceEmpty", dtype=spec.dtype)
    if not call.inputs:
        return empty
    return _grown(call, empty, call.positions(0), _unwritten(call, spec))


def _unwritten(call: OnnxCall, spec: Spec) -> str:
    known = _is_known(call, spec)
    return call.zeros(call.shape(spec.dims if known else (0,)), spec.dtype)


def _is_known(call: OnnxCall, spec: Spec) -> bool:
    """Whether the shape of a list's elements is known."""
    return has_element_shape(spec) and ANY not in spec.dims and call.is_told(spec.dims)


def _grown(call: OnnxCall, items: str, length: str, element: str) -> str:
    """A list with an element appended until it has a length (a scalar int64)."""
    missing = call.add("Sub", length, call.add("SequenceLength", items))
    missing = call.add("Max", missing, call.scalar(0))
    return call.times(
        missing, items, call.outs[0], lambda inner, i, xs: inner.add("SequenceInsert", xs, element)
    )


@form("list_extend")
def _extend(call: OnnxCall) -> str:
    return _grown(call, call.inputs[0], call.positions(1), _unwritten(call, call.outs[0]))


@form("list_push")
def _push(call: OnnxCall) -> str:
    return call.add("SequenceInsert", *call.inputs)


@form("list_set")
def _set(call: OnnxCall) -> str:
    items, _, value = call.inputs
    place = call.positions(1)
    if call.attrs.get("grow"):
        room = call.add("Add", place, call.scalar(1))
        like = call.zeros(call.add("Shape", value), call.dtype)
        items = _grown(call, items, room, like)
    return _replaced(call, items, place, value)


def _replaced(call: OnnxCall, items: str, place: str, value: str) -> str:
    return call.add("SequenceInsert", call.add("SequenceErase", items, place), value, place)


@form("list_scatter")
def _scatter(call: OnnxCall) -> str:
    items, _, values = call.inputs
    places = call.positions(1)
    if call.attrs.get("grow"):
        none = call.integers(-1)
        most = call.add("ReduceMax", call.add("Concat", places, none, axis=0), keepdims=0)
        like = call.zeros(call.shape(call.specs[2].dims[1:]), call.dtype)
        items = _grown(call, items, call.add("Add", most, call.scalar(1)), like)

    def put(inner: OnnxCall, i: str, items: str) -> str:
        value = inner.add("Gather", values, i, axis=0)
        return _replaced(inner, items, inner.add("Gather", places, i, axis=0), value)

    return call.times(call.scalar(call.specs[1].dims[0]), items, call.outs[0], put)


@form("list_get")
def _get(call: OnnxCall) -> str:
    item = call.add("SequenceAt", call.inputs[0], call.positions(1))
    spec = call.outs[0]
    if _is_known(call, call.specs[0]) or not call.is_told(spec.dims):
        return item
    empty = call.add("Equal", call.add("Size", item), call.scalar(0))
    zeros = lambda inner: [inner.zeros(inner.shape(spec.dims), spec.dtype)]
    return call.choose(empty, [zeros, lambda inner: [item]], [spec])[0]


@form("list_length")
def _length(call: OnnxCall) -> str:
    return call.cast(call.add("SequenceLength", call.inputs[0]), dtypes.int32)


@form("list_stack")
def _stack(call: OnnxCall) -> str:
    return call.add("ConcatFromSequence", call.inputs[0], axis=0, new_axis=1)


@form("list_unstack")
def _unstack(call: OnnxCall) -> str:
    return call.add("SplitToSequence", call.inputs[0], axis=0, keepdims=0)


@form("list_split")
def _split(call: OnnxCall) -> str:
    return call.add("SplitToSequence", call.inputs[0], call.positions(1), axis=0)


@form("list_concat")
def _concat(call: OnnxCall) -> list[str]:
    (items,) = call.inputs

    def length(inner: OnnxCall, i: str, _: list[str]) -> tuple[str, list[str]]:
        rows = inner.add("Shape", inner.add("SequenceAt", items, i), start=0, end=1)
        rows = inner.add("Squeeze", rows, inner.integers(0))
        return "", [inner.cast(rows, dtypes.int32)]

    scans = [TensorSpec((), dtypes.int32)]
    count = call.add("SequenceLength", items)
    (lengths,) = call.loop(count, "", [], [], length, scans)
    return [call.add("ConcatFromSequence", items, axis=0), lengths]


@form("list_truncate")
def _truncate(call: OnnxCall) -> str:
    (items, _) = call.inputs
    more = call.add("Sub", call.add("SequenceLength", items), call.positions(1))
    more = call.add("Max", more, call.scalar(0))
    return call.times(
        more, items, call.outs[0], lambda inner, i, xs: inner.add("SequenceErase", xs)
    )


@form("list_add")
def _add(call: OnnxCall) -> str:
    a, b = call.inputs

    def put(inner: OnnxCall, i: str, items: str) -> str:
        parts = (inner.add("SequenceAt", x, i) for x in (a, b))
        return inner.add("SequenceInsert", items, inner.add("Add", *parts))

    empty = call.add("SequenceEmpty", dtype=call.dtype)
    spec: ListSpec = call.outs[0]  # type: ignore[assignment]
    return call.times(call.add("SequenceLength", a), empty, spec, put)
