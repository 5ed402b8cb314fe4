"""Protocol buffers of programs decoded into tensors and encoded, by the package protobuf."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType, as_dtype
from treadle.core.errors import DataLossError, InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.python_functions import numpy_function

# The dtypes that a field's values may have, by the name of its type in descriptor.proto.
_DTYPES = {
    "DOUBLE": "float64",
    "FLOAT": "float32 float64",
    **dict.fromkeys(("INT64", "SINT64", "SFIXED64"), "int64"),
    **dict.fromkeys(("UINT64", "FIXED64"), "uint64"),
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), "int32 int64"),
    **dict.fromkeys(("UINT32", "FIXED32"), "uint32 uint64"),
    "BOOL": "bool",
    "ENUM": "int32",
    **dict.fromkeys(("STRING", "BYTES", "MESSAGE", "GROUP"), "string"),
}


class DecodeProtoV2(NamedTuple):
    """What `decode_proto` gives.

    Attributes:
        sizes: [..., fields], int32: how many values of a field each message has.
        values: for each field [..., most]: its values, and the field's default behind the last one.
    """

    sizes: Tensor
    values: list[Tensor]


def decode_proto(
    bytes: Any, message_type: str, field_names: Sequence[str], output_types: Sequence[Any],
    descriptor_source: Any = "local://", message_format: str = "binary", sanitize: bool = False,
    name: str | None = None,
) -> DecodeProtoV2:  # fmt: skip
    """The values of some fields of serialized messages.

    Args:
        bytes: strings of any shape.
        message_type: the full name of the messages' type.
        field_names, output_types: the fields, and the dtype of each: string for bytes and for
            messages in messages, which are serialized.
        descriptor_source: where the type is described: "local://" for what modules of protobuf that
            are imported describe, ``b"bytes://"`` with a serialized FileDescriptorSet behind, or
            the path of a file that has one.
        message_format: "binary" or "text".
        sanitize: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: no such type or field, or a dtype that a field does not have.
        DataLossError: a message is damaged.
        ImportError: protobuf is not installed.
    """
    names, types = list(field_names), [as_dtype(t) for t in output_types]
    if message_format not in ("binary", "text"):
        raise _invalid("message_format must be one of binary or text")
    if len(names) != len(types):
        raise _invalid("field_names and output_types must have the same length")
    message = _message_class(_source(descriptor_source), message_type)
    fields = [_field(message, field, dtype) for field, dtype in zip(names, types, strict=True)]
    texts = convert_to_tensor(bytes, dtypes.string)
    read = functools.partial(_decoded, message, fields, types, _parser(message_format))
    dims = _dims(texts)
    specs = [
        TensorSpec(None if dims is None else (*dims, last), dtype)
        for last, dtype in [(len(names), dtypes.int32), *((None, t) for t in types)]
    ]
    sizes, *values = numpy_function(read, [texts], specs, stateful=False, name=name)
    return DecodeProtoV2(sizes, values)


def encode_proto(
    sizes: Any, values: Sequence[Any], field_names: Sequence[str], message_type: str,
    descriptor_source: Any = "local://", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Serialized messages with the given values of fields, in the order of the fields' numbers.

    Args:
        sizes: [..., fields], int32: how many values of each field a message has.
        values: for each field [..., most].
        field_names, message_type, descriptor_source: as for `decode_proto`.

    Raises:
        InvalidArgumentError: no such type or field, values of another dtype than the field's, or
            fewer than their number says.
        ImportError: protobuf is not installed.
    """
    message = _message_class(_source(descriptor_source), message_type)
    counts, given = convert_to_tensor(sizes, dtypes.int32), [convert_to_tensor(v) for v in values]
    if len(given) != len(field_names):
        raise _invalid("there must be values for each of field_names")
    fields = [
        _field(message, field, value.dtype) for field, value in zip(field_names, given, strict=True)
    ]
    for field, value in zip(fields, given, strict=True):
        if value.shape.rank is not None and value.shape.rank < 2:
            raise _invalid(
                f"Invalid shape for field {field.name}. Saw shape {value.shape} but "
                "it should be at least a matrix."
            )
    dims = _dims(counts)
    spec = TensorSpec(None if dims is None else dims[:-1], dtypes.string)
    write = functools.partial(_encoded, message, fields)
    (found,) = numpy_function(write, [counts, *given], [spec], stateful=False, name=name)
    return found  # type: ignore[no-any-return]


def _dims(x: Tensor) -> list[int | None] | None:
    return None if x.shape.rank is None else x.shape.as_list()


def _invalid(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


# -- types of messages -----------------------------------------------------------------------------


def _protobuf(module: str) -> Any:
    """A module of protobuf.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return __import__(f"google.protobuf.{module}", fromlist=["*"])
    except ImportError:
        raise ImportError("Protocol buffers are read by protobuf: pip install protobuf") from None


def _source(given: Any) -> bytes:
    return given if isinstance(given, bytes) else str(given).encode("utf-8", "surrogateescape")


@functools.lru_cache(64)
def _message_class(source: bytes, message_type: str) -> Any:
    """The class of messages of a type."""
    pool = _protobuf("descriptor_pool")
    found = pool.Default() if source in (b"", b"local://") else _described(pool, source)
    try:
        described = found.FindMessageTypeByName(message_type)
    except KeyError:
        raise _invalid(f"No descriptor found for message type {message_type}") from None
    return _protobuf("message_factory").GetMessageClass(described)


def _described(pool: Any, source: bytes) -> Any:
    """The types that a serialized FileDescriptorSet describes, or the file that has one."""
    try:
        if source.startswith(b"bytes://"):
            text = source.removeprefix(b"bytes://")
        else:
            with open(source, "rb") as file:
                text = file.read()
        files = _protobuf("descriptor_pb2").FileDescriptorSet.FromString(text)
        found = pool.DescriptorPool()
        for file in files.file:
            found.Add(file)
    except (OSError, TypeError, _protobuf("message").DecodeError) as error:
        raise _invalid(
            "The source of descriptors is neither a file nor bytes of a serialized "
            f"FileDescriptorSet: {error}"
        ) from None
    return found


def _field(message: Any, name: str, dtype: DType) -> Any:
    """A field whose values may have a dtype."""
    described = message.DESCRIPTOR
    field = described.fields_by_name.get(name)
    if field is None:
        raise _invalid(f"Unknown field: {name} in message type {described.full_name}")
    kind = _protobuf("descriptor_pb2").FieldDescriptorProto.Type.Name(field.type)[5:]
    if dtype.name not in _DTYPES[kind].split():
        raise _invalid(
            f"Unexpected type for {field.full_name}: its values are {kind.lower()}, which may be "
            f"{_DTYPES[kind].replace(' ', ' or ')}, not {dtype.name}"
        )
    return field


# -- values ----------------------------------------------------------------------------------------


def _parser(message_format: str) -> Callable[[Any, bytes], Any]:
    """What fills a message from a string."""
    if message_format == "binary":
        return lambda message, text: message.MergeFromString(text)
    merge = _protobuf("text_format").Merge
    return lambda message, text: merge(text.decode(), message)


def _decoded(
    message: Any, fields: Sequence[Any], types: Sequence[DType], parse: Callable[[Any, bytes], Any],
    given: Any,
) -> list[NDArray]:  # fmt: skip
    texts = np.asarray(given, object)
    found: list[list[list[Any]]] = [[] for _ in fields]
    for text in texts.reshape(-1):
        one = message()
        try:
            parse(one, text)
        except Exception as error:
            raise DataLossError(
                None, None, f"a damaged {message.DESCRIPTOR.full_name}: {error}"
            ) from None
        for values, field in zip(found, fields, strict=True):
            values.append(_values(one, field))
    sizes = np.array([[len(v) for v in values] for values in found], np.int32).T
    arrays = [
        _padded(values, _default(field), dtype).reshape(*texts.shape, -1)
        for values, field, dtype in zip(found, fields, types, strict=True)
    ]
    return [sizes.reshape(*texts.shape, len(fields)), *arrays]


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == 3


def _values(message: Any, field: Any) -> list[Any]:
    """The values of a field that a message has."""
    value = getattr(message, field.name)
    if _is_repeated(field):
        listed = list(value)
    elif field.has_presence:
        listed = [value] if message.HasField(field.name) else []
    else:
        listed = [value] if value != field.default_value else []
    return [_plain(v) for v in listed]


def _plain(value: Any) -> Any:
    """A value as an array has it: texts and messages are bytes."""
    if isinstance(value, str):
        return value.encode()
    serialized = getattr(value, "SerializePartialToString", None)
    return value if serialized is None else serialized()


def _default(field: Any) -> Any:
    """What stands where a message has no value: the field's default, of a repeated field nothing
    or 0."""
    kind = field.type
    if field.message_type is not None or (
        _is_repeated(field) and kind in (field.TYPE_STRING, field.TYPE_BYTES)
    ):
        return b""
    return 0 if _is_repeated(field) else _plain(field.default_value)


def _padded(rows: Sequence[Sequence[Any]], default: Any, dtype: DType) -> NDArray:
    """Rows as one array with the default behind the shorter ones, of a column at least."""
    width = max(1, *map(len, rows)) if rows else 1
    kind = object if dtype is dtypes.string else dtype.np_dtype
    found = np.empty((len(rows), width), kind)
    found[...] = default
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found


def _encoded(
    message: Any, fields: Sequence[Any], sizes: NDArray, *values: NDArray
) -> list[NDArray]:
    batch = sizes.shape[:-1]
    if sizes.shape[-1:] != (len(fields),):
        raise InvalidArgumentError(
            None, None, f"sizes must have {len(fields)} columns, one for each field, "
            f"not the shape {list(sizes.shape)}",
        )  # fmt: skip
    for field, value in zip(fields, values, strict=True):
        if value.shape[:-1] != batch:
            raise InvalidArgumentError(
                None, None, f"the values of {field.name} have the shape "
                f"{list(value.shape)}, which does not fit sizes of {list(sizes.shape)}",
            )  # fmt: skip
    rows = [value.reshape(-1, value.shape[-1]) for value in values]
    order = sorted(range(len(fields)), key=lambda n: fields[n].number)
    found = np.empty(int(np.prod(batch, dtype=np.int64)), object)
    for place, counts in enumerate(sizes.reshape(-1, len(fields))):
        parts = [
            _field_text(message, fields[n], rows[n][place], int(counts[n]), place) for n in order
        ]
        found[place] = b"".join(parts)
    return [found.reshape(batch)]


def _field_text(message: Any, field: Any, row: NDArray, count: int, place: int) -> bytes:
    """The first values of a row as the field of a message."""
    if count > len(row):
        raise InvalidArgumentError(
            None, None, f"Size to write must not be larger than value tensor; but "
            f"saw: {count} > {len(row)} at message {place} field {field.name}",
        )  # fmt: skip
    listed = row[:count].tolist()
    if _is_repeated(field):
        return _with(message, field, listed) if listed else b""
    return b"".join(_with(message, field, [value]) for value in listed)


def _with(message: Any, field: Any, values: list[Any]) -> bytes:
    """A message that has values of one field, serialized."""
    one = message()
    if field.message_type is not None:
        for value in values:
            inner = getattr(one, field.name)
            (inner.add() if _is_repeated(field) else inner).MergeFromString(value)
    elif _is_repeated(field):
        getattr(one, field.name).extend(_of_field(field, v) for v in values)
    else:
        setattr(one, field.name, _of_field(field, values[0]))
    found: bytes = one.SerializePartialToString()
    return found


def _of_field(field: Any, value: Any) -> Any:
    """A value as protobuf takes it: texts are str."""
    return value.decode() if field.type == field.TYPE_STRING else value
