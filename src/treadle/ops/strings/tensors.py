"""Tensors written as strings, in TensorFlow's form (its message TensorProto)."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from treadle.core import dtypes, wire
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.unknown_rank import of_parts, specs_of_parts
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor

# The numbers of TensorFlow's dtypes.
NUMBERS = {
    dtypes.float32: 1, dtypes.float64: 2, dtypes.int32: 3, dtypes.uint8: 4, dtypes.int16: 5,
    dtypes.int8: 6, dtypes.string: 7, dtypes.complex64: 8, dtypes.int64: 9, dtypes.bool: 10,
    dtypes.bfloat16: 14, dtypes.uint16: 17, dtypes.complex128: 18, dtypes.float16: 19,
    dtypes.uint32: 22, dtypes.uint64: 23,
}  # fmt: skip
_DTYPES = {number: dtype for dtype, number in NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _STRING = 1, 2, 4, 8
# The fields that hold values one by one: the dtypes of the numbers in them.
_FLOATS: dict[int, np.dtype[Any]] = {
    5: np.dtype("<f4"), 6: np.dtype("<f8"), 9: np.dtype("<c8"), 12: np.dtype("<c16"),
}  # fmt: skip
_VARINTS = {7, 10, 11, 13, 16, 17}


def packed(array: NDArray, dtype: DType) -> bytes:
    """An array as the bytes of a TensorProto."""
    dims = b"".join(wire.bytes_field(2, wire.number_field(1, d) if d else b"") for d in array.shape)
    head = wire.number_field(_DTYPE, NUMBERS[dtype]) + wire.bytes_field(_SHAPE, dims)
    if dtype is dtypes.string:
        texts = array.reshape(-1).tolist()
        return head + b"".join([wire.bytes_field(_STRING, text) for text in texts])
    content = np.ascontiguousarray(array).tobytes()
    return head + wire.bytes_field(_CONTENT, content) if content else head


def unpacked(data: bytes | memoryview) -> tuple[NDArray, DType]:
    """The array that the bytes of a TensorProto stand for; it may share their memory.

    Raises:
        WireError: they are no such message.
    """
    number, dims, content = 0, list[int](), None
    values: list[Any] = []
    for field, kind, value in wire.fields(data):
        if (field, kind) == (_DTYPE, wire.VARINT):
            number = value
        elif (field, kind) == (_SHAPE, wire.BYTES):
            dims = _dims(value)
        elif (field, kind) == (_CONTENT, wire.BYTES):
            content = value
        elif (field, kind) == (_STRING, wire.BYTES):
            values.append(bytes(value))
        elif field in _FLOATS and kind != wire.VARINT:
            values += np.frombuffer(value, _FLOATS[field]).tolist()
        elif field in _VARINTS:
            found = [wire.signed(value)] if kind == wire.VARINT else wire.varints(value).tolist()
            values += found
    if number not in _DTYPES:
        raise wire.WireError(f"a tensor of the unknown dtype {number}")
    dtype = _DTYPES[number]
    return _array(dtype, dims, content, values), dtype


def _dims(shape: memoryview) -> list[int]:
    found = []
    for field, kind, dim in wire.fields(shape):
        if (field, kind) == (2, wire.BYTES):
            sizes = [wire.signed(v) for f, k, v in wire.fields(dim) if (f, k) == (1, wire.VARINT)]
            found.append(sizes[-1] if sizes else 0)
    if any(size < 0 for size in found):
        raise wire.WireError(f"a tensor of the shape {found}")
    return found


def _array(dtype: DType, dims: list[int], content: memoryview | None, values: list[Any]) -> NDArray:
    kind, count = dtype.np_dtype, int(np.prod(dims, dtype=np.int64))
    if content is not None and dtype is not dtypes.string:
        if len(content) != count * kind.itemsize:
            raise wire.WireError(f"{len(content)} bytes for a tensor {dims} of {dtype.name}")
        return np.frombuffer(content, kind).reshape(dims)
    if len(values) > count:
        raise wire.WireError(f"{len(values)} values for a tensor {dims}")
    if dtype is dtypes.string:
        values += values[-1:] * (count - len(values)) or [b""] * (count - len(values))
        array = np.empty(count, object)
        array[:] = values
        return array.reshape(dims)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        given = np.array(values, np.int64).astype(np.uint16).view(kind)
    else:
        given = np.array(values).astype(kind)
    array = np.zeros(count, kind)
    array[: len(given)] = given
    if len(given):
        array[len(given) :] = given[-1]  # what follows is equal to the last
    return array.reshape(dims)


def _serialize(x: NDArray, *, dtype: DType) -> NDArray:
    return np.array(packed(x, dtype), object)


SERIALIZE = register(
    Op(
        "serialize_tensor", lambda x, *, dtype: TensorSpec((), dtypes.string), _serialize,
        tags=STRINGS,
    )
)  # fmt: skip


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a scalar string, with its dtype and shape: `parse_tensor` reads it again."""
    x = convert_to_tensor(tensor)
    return run(SERIALIZE, x, dtype=x.dtype)  # type: ignore[no-any-return]


def _infer_parse(serialized: Spec, *, dtype: DType) -> tuple[TensorSpec, ...]:
    if serialized.dims:
        raise invalid(f"Expected `serialized` to be a scalar, got shape: {serialized.shape}")
    return tuple(spec.with_fresh_symbols("parsed") for spec in specs_of_parts(dtype))


def _parse(serialized: NDArray, *, dtype: DType) -> tuple[NDArray, NDArray]:
    if serialized.ndim:
        raise invalid(f"Expected `serialized` to be a scalar, got shape: {list(serialized.shape)}")
    data = serialized.item()
    try:
        array, found = unpacked(data)
    except (wire.WireError, ValueError) as error:
        shown = base64.b64encode(data[:60]).decode()
        raise invalid(
            f"Could not parse `serialized` as TensorProto, base64: {shown}: {error}"
        ) from None
    if found is not dtype:
        raise invalid(
            f"Type mismatch between parsed tensor ({found.name}) and dtype ({dtype.name})"
        )
    return array.reshape(-1).copy(), np.array(array.shape, np.int64)


PARSE_TENSOR = register(Op("parse_tensor", _infer_parse, _parse, tags=STRINGS))


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor that a string of `serialize_tensor` stands for.

    Args:
        serialized: a scalar string.
        out_type: the tensor's dtype.

    Returns:
        a tensor of any shape. In a function its rank is unknown, which `td.ensure_shape` settles.

    Raises:
        InvalidArgumentError: no such string, or one of another dtype.
    """
    kind = dtypes.as_dtype(out_type)
    if kind not in NUMBERS:
        raise invalid(f"parse_tensor: no string holds {kind.name}{at(user_origin())}")
    found = run(PARSE_TENSOR, string_tensor(serialized), dtype=kind)
    return of_parts(*found)  # type: ignore[no-any-return]
