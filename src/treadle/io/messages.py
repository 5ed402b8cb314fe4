"""Examples, TensorFlow's records of named features (``td.train.Example`` and its parts).

The classes have the fields and methods of TensorFlow's, which are protocol buffers: fields of
numbers and strings are lists, fields of messages are made when they are asked for. They write and
read the same bytes. The functions of the package protobuf, such as ``text_format.Parse`` and
``json_format.MessageToDict``, take them by their `DESCRIPTOR`.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from treadle.core import wire

_M = TypeVar("_M", bound="Message")


class DecodeError(ValueError):
    """Bytes that are no message of this class."""


class Field(NamedTuple):
    """What is known of a field of a message."""

    name: str
    number: int


class _Described:
    """The descriptor of a message's class, of the package protobuf: it is made when something asks
    for it.

    Raises:
        ImportError: the package is not installed.
    """

    def __get__(self, message: Any, kind: type[Message]) -> Any:
        module = importlib.import_module("treadle.compat.graph_messages")
        return module.message(kind.__name__).DESCRIPTOR


class Message:
    """What all messages have. A message with a field that is set tells the message it is part of,
    which then has that field, too."""

    _names: ClassVar[tuple[str, ...]] = ()
    _tell: Callable[[], None]
    DESCRIPTOR = _Described()

    def __init__(self, **fields: Any) -> None:
        self.__dict__["_tell"] = _nobody
        for name, value in fields.items():
            if name not in self._names:
                raise ValueError(
                    f'Protocol message {type(self).__name__} has no "{name}" field.'
                )
            if value is not None:
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        """Give a field its first value."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._names:
            raise AttributeError(
                f'Assignment not allowed to message, map, or repeated field "{name}" in protocol '
                "message object."
            )
        if name[:1] != "_":
            raise AttributeError(
                f"Protocol message {type(self).__name__} has no field {name!r}"
            )
        super().__setattr__(name, value)

    def _read(self, data: bytes | memoryview) -> None:
        """Add the fields in the bytes."""
        raise NotImplementedError

    def _bytes(self) -> bytes:
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def Clear(self) -> None:
        """Forget all fields."""
        raise NotImplementedError

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes; names come in the order of the alphabet."""
        return self._bytes()

    def SerializePartialToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes."""
        return self._bytes()

    def ByteSize(self) -> int:
        """How many bytes the message has."""
        return len(self._bytes())

    def MergeFromString(self, serialized: bytes) -> int:
        """Add the fields in the bytes of a message; gives how many bytes they are.

        Raises:
            DecodeError: they are no such message.
        """
        try:
            self._read(memoryview(serialized))
        except wire.WireError as error:
            raise DecodeError(
                f"Error parsing message with type 'tensorflow.{type(self).__name__}': {error}"
            ) from None
        return len(serialized)

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the message that the bytes are; gives how many they are.

        Raises:
            DecodeError: they are no such message.
        """
        self.Clear()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls: type[_M], s: bytes) -> _M:
        """The message that the bytes are.

        Raises:
            DecodeError: they are no such message.
        """
        message = cls()
        message.MergeFromString(s)
        return message

    def SetInParent(self) -> None:
        """Tell the message that this one is part of that it has it, though it may be empty."""
        self._tell()

    def MergeFrom(self, other: Any) -> None:
        """Add the fields of another message of this class, or of TensorFlow's of that name."""
        if type(other) is type(self):
            self._take(other)
        else:
            self._read(memoryview(self._given(other)))

    def _take(self, other: Any) -> None:
        """Add what another message of this class holds, which was checked when it came in there."""
        raise NotImplementedError

    def _given(self, other: Any) -> bytes:
        """The bytes of a message of TensorFlow's.

        Raises:
            TypeError: it is none of that name.
        """
        described = getattr(type(other), "DESCRIPTOR", None)
        if getattr(described, "full_name", None) == f"tensorflow.{type(self).__name__}":
            return bytes(other.SerializeToString())
        raise TypeError(
            f"MergeFrom() takes a message of the class {type(self).__name__}, not "
            f"{type(other).__name__}"
        )

    def CopyFrom(self, other: Any) -> None:
        """Become equal to another message of this class, or of TensorFlow's of that name."""
        if type(other) is type(self):
            if other is not self:
                self.Clear()
                self._take(other)
        else:
            data = self._given(other)
            self.Clear()
            self._read(memoryview(data))

    def _is_set(self, name: str) -> bool:
        return len(getattr(self, name)) > 0

    def HasField(self, field_name: str) -> bool:
        """Whether a field is set, of those that are no lists.

        Raises:
            ValueError: there is no such field.
        """
        raise ValueError(
            f'Protocol message {type(self).__name__} has no singular "{field_name}" field.'
        )

    def ClearField(self, field_name: str) -> None:
        """Forget a field.

        Raises:
            ValueError: there is no such field.
        """
        if field_name not in self._names:
            raise ValueError(
                f'Protocol message {type(self).__name__} has no "{field_name}" field.'
            )
        self.Clear()

    def WhichOneof(self, oneof_group: str) -> str | None:
        """The name of the field that is set, of a group of which one is.

        Raises:
            ValueError: there is no such group.
        """
        raise ValueError(
            f'Protocol message {type(self).__name__} has no oneof "{oneof_group}" field.'
        )

    def ListFields(self) -> list[tuple[Any, Any]]:
        """The fields that are set, each a pair of what is known of it and its value: a descriptor
        of the package protobuf, or name and number where that is not installed."""
        found = [(number, name) for number, name in enumerate(self._names, 1) if self._is_set(name)]
        try:
            described = self.DESCRIPTOR.fields_by_name
        except ImportError:
            described = {name: Field(name, number) for number, name in found}
        return [(described[name], getattr(self, name)) for _, name in found]

    def IsInitialized(self) -> bool:
        """True: no field must be set."""
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._bytes() == self._bytes()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self._lines())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self._bytes(),)

    def __deepcopy__(self: _M, memo: Any) -> _M:
        return type(self).FromString(self._bytes())


def _nobody() -> None:
    """What a message that is part of no other tells."""


def _indented(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{name} {{"
    yield from ("  " + line for line in lines)
    yield "}"


# -- lists of values -------------------------------------------------------------------------------


class _Values(MutableSequence[Any]):
    """The values of a list, each checked when it comes in."""

    def __init__(self, owner: Any) -> None:
        self._owner, self.items = owner, list[Any]()

    def insert(self, index: int, value: Any) -> None:
        self.items.insert(index, self._owner._checked(value))
        self._owner._tell()

    def extend(self, values: Iterable[Any]) -> None:
        self.items += self._owner._all_checked(values)
        self._owner._tell()

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        checked = self._owner._all_checked if isinstance(index, slice) else self._owner._checked
        self.items[index] = checked(value)

    def __delitem__(self, index: Any) -> None:
        del self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Values):
            return self.items == other.items
        return bool(self.items == other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.items)

    def sort(self, **how: Any) -> None:
        self.items.sort(**how)


class _ListMessage(Message):
    """A message with one field, ``value``, a list."""

    _names = ("value",)

    def __init__(self, **fields: Any) -> None:
        self._values = _Values(self)
        super().__init__(**fields)

    @property
    def value(self) -> _Values:
        """The values."""
        return self._values

    def _set(self, name: str, value: Any) -> None:
        self._values.extend(value)

    def _take(self, other: Any) -> None:
        self._values.items += other._values.items

    def _checked(self, value: Any) -> Any:
        raise NotImplementedError

    def _all_checked(self, values: Iterable[Any]) -> list[Any]:
        return [self._checked(value) for value in values]

    def Clear(self) -> None:
        self._values.items.clear()

    def _lines(self) -> Iterator[str]:
        return (f"value: {self._text(value)}" for value in self._values)

    def _text(self, value: Any) -> str:
        return str(value)


class BytesList(_ListMessage):
    """A list of strings of bytes.

    Args:
        value: bytes.

    Raises:
        TypeError: a value of another type.
    """

    def _checked(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"expected bytes, {type(value).__name__} found")
        return bytes(value)

    def _read(self, data: bytes | memoryview) -> None:
        found = [bytes(v) for n, k, v in wire.fields(data) if (n, k) == (1, wire.BYTES)]
        self._values.items += found

    def _bytes(self) -> bytes:
        return b"".join([wire.bytes_field(1, value) for value in self._values.items])

    def _text(self, value: bytes) -> str:
        plain = (chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in value)
        return '"' + "".join(_ESCAPES.get(b, c) for b, c in zip(value, plain, strict=True)) + '"'


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


class FloatList(_ListMessage):
    """A list of float32 numbers.

    Args:
        value: numbers, which are rounded to float32.

    Raises:
        TypeError: a value that is no number.
    """

    def _checked(self, value: Any) -> float:
        if isinstance(value, str | bytes):
            raise TypeError(f"must be real number, not {type(value).__name__}")
        with np.errstate(over="ignore"):
            return float(np.float32(float(value)))

    def _all_checked(self, values: Iterable[Any]) -> list[Any]:
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and values.ndim == 1:
            with np.errstate(over="ignore"):
                found: list[Any] = values.astype(np.float32).tolist()
            return found
        return super()._all_checked(values)

    def _read(self, data: bytes | memoryview) -> None:
        for number, kind, value in wire.fields(data):
            if number == 1 and kind in (wire.BYTES, wire.FIXED32):
                self._values.items += floats(value).tolist()

    def _bytes(self) -> bytes:
        values = self._values.items
        return wire.bytes_field(1, np.array(values, "<f4").tobytes()) if values else b""

    def _text(self, value: float) -> str:
        if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        shown = f"{value:.6g}" if np.float32(f"{value:.6g}") == np.float32(value) else ""
        return shown or str(np.float32(value)).removesuffix(".0")


class Int64List(_ListMessage):
    """A list of int64 numbers.

    Args:
        value: ints.

    Raises:
        TypeError: a value that is no int, or a bool.
        ValueError: a number that int64 does not hold.
    """

    def _checked(self, value: Any) -> int:
        if isinstance(value, bool | np.bool_):
            raise TypeError(
                "Field tensorflow.Int64List.value: Expected an int, got a boolean."
            )
        number = operator.index(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"Value out of range: {number}")
        return number

    def _all_checked(self, values: Iterable[Any]) -> list[Any]:
        if isinstance(values, np.ndarray) and values.dtype.kind == "i" and values.ndim == 1:
            found: list[Any] = values.tolist()
            return found
        return super()._all_checked(values)

    def _read(self, data: bytes | memoryview) -> None:
        for number, kind, value in wire.fields(data):
            if (number, kind) == (1, wire.VARINT):
                self._values.items.append(wire.signed(value))
            elif (number, kind) == (1, wire.BYTES):
                self._values.items += wire.varints(value).tolist()

    def _bytes(self) -> bytes:
        values = self._values.items
        return wire.bytes_field(1, wire.packed_varints(values)) if values else b""


def floats(value: memoryview) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The numbers of a list of float32.

    Raises:
        WireError: the last is cut off.
    """
    if len(value) % 4:
        raise wire.WireError("a list of numbers of 4 bytes is cut off")
    return np.frombuffer(value, "<f4")


# -- features --------------------------------------------------------------------------------------


class Feature(Message):
    """A list of one of three kinds.

    Args:
        bytes_list, float_list, int64_list: the list; of several the last counts.
    """

    _names = ("bytes_list", "float_list", "int64_list")
    _kinds: ClassVar[dict[str, tuple[int, type[_ListMessage]]]] = {
        "bytes_list": (1, BytesList), "float_list": (2, FloatList), "int64_list": (3, Int64List),
    }  # fmt: skip

    def __init__(self, **fields: Any) -> None:
        self._kind: str | None = None
        self._list: _ListMessage | None = None
        super().__init__(**{n: fields[n] for n in self._names if n in fields}, **{
            n: v for n, v in fields.items() if n not in self._names
        })  # fmt: skip

    @property
    def bytes_list(self) -> BytesList:
        """The strings, where it has strings."""
        return self._part("bytes_list")  # type: ignore[return-value]

    @property
    def float_list(self) -> FloatList:
        """The numbers, where it has float32 numbers."""
        return self._part("float_list")  # type: ignore[return-value]

    @property
    def int64_list(self) -> Int64List:
        """The numbers, where it has int64 numbers."""
        return self._part("int64_list")  # type: ignore[return-value]

    def _part(self, name: str) -> _ListMessage:
        if self._kind == name and self._list is not None:
            return self._list
        part = self._kinds[name][1]()

        def chosen() -> None:
            if self._list is not part:
                self._kind, self._list = name, part
                self._tell()

        part._tell = chosen
        return part

    def _set(self, name: str, value: Any) -> None:
        part = self._part(name)
        part.CopyFrom(value if isinstance(value, Message) else type(part)(**value))
        part._tell()

    def _take(self, other: Any) -> None:
        if other._list is not None:
            part = self._part(other._kind)
            part._take(other._list)
            part._tell()

    def _read(self, data: bytes | memoryview) -> None:
        for number, kind, value in wire.fields(data):
            if 1 <= number <= 3 and kind == wire.BYTES:
                part = self._part(self._names[number - 1])
                part._read(value)
                part._tell()

    def _bytes(self) -> bytes:
        if self._kind is None or self._list is None:
            return b""
        return wire.bytes_field(self._kinds[self._kind][0], self._list._bytes())

    def _lines(self) -> Iterator[str]:
        if self._kind is not None and self._list is not None:
            yield from _indented(self._kind, self._list._lines())

    def Clear(self) -> None:
        self._kind = self._list = None

    def _is_set(self, name: str) -> bool:
        return self._kind == name

    def WhichOneof(self, oneof_group: str) -> str | None:
        """The name of the list that it has, or None.

        Raises:
            ValueError: the group is not "kind".
        """
        if oneof_group != "kind":
            raise ValueError(
                f'Protocol message Feature has no oneof "{oneof_group}" field.'
            )
        return self._kind

    def HasField(self, field_name: str) -> bool:
        """Whether it has this list, or with "kind" any.

        Raises:
            ValueError: there is no such field.
        """
        if field_name == "kind":
            return self._kind is not None
        if field_name not in self._names:
            raise ValueError(f'Protocol message Feature has no field "{field_name}".')
        return self._kind == field_name

    def ClearField(self, field_name: str) -> None:
        """Forget this list, or with "kind" any."""
        if self.HasField(field_name):
            self.Clear()


class _Map(MutableMapping[str, Any]):
    """Messages by name; one that is not there is made when it is asked for."""

    def __init__(self, owner: Any, kind: type[Message]) -> None:
        self._owner, self._kind, self.items_by_name = owner, kind, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self.items_by_name:
            name.encode()  # (names are strings)
            self.items_by_name[name] = self._kind()
            self._owner._tell()
        return self.items_by_name[name]

    def get_or_create(self, name: str) -> Any:
        """The message of that name, made where it is not there."""
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.items_by_name.get(name, default)

    def GetEntryClass(self) -> Callable[..., Any]:
        """What makes the messages, of the package protobuf, that a map consists of where text is
        read and written."""
        (field,) = self._owner.DESCRIPTOR.fields
        entry = importlib.import_module("google.protobuf.message_factory").GetMessageClass(
            field.message_type
        )

        def made(key: str = "", value: Message | None = None) -> Any:
            message = entry(key=key)
            if value is not None:
                message.value.ParseFromString(value._bytes())
            return message

        return made

    def __contains__(self, name: object) -> bool:
        return name in self.items_by_name

    def __setitem__(self, name: str, value: Any) -> None:
        raise ValueError("Direct assignment of submessage not allowed: use CopyFrom")

    def __delitem__(self, name: str) -> None:
        del self.items_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __repr__(self) -> str:
        return repr(self.items_by_name)


class _MapMessage(Message):
    """A message with one field, messages by name."""

    _kind: ClassVar[type[Message]]

    def __init__(self, **fields: Any) -> None:
        self._map = _Map(self, self._kind)
        super().__init__(**fields)

    def _set(self, name: str, value: Mapping[str, Any]) -> None:
        for key, part in value.items():
            self._map[key].CopyFrom(part)

    def _take(self, other: Any) -> None:
        for name, value in other._map.items_by_name.items():
            part = self._kind()
            part._take(value)
            self._map.items_by_name[name] = part

    def _read(self, data: bytes | memoryview) -> None:
        for number, kind, entry in wire.fields(data):
            if (number, kind) == (1, wire.BYTES):
                name, value = map_entry(entry)
                part = self._kind()
                part._read(value)
                self._map.items_by_name[name] = part

    def _bytes(self) -> bytes:
        return b"".join(
            wire.bytes_field(
                1, wire.bytes_field(1, name.encode()) + wire.bytes_field(2, part._bytes())
            )
            for name, part in sorted(self._map.items_by_name.items())
        )

    def _lines(self) -> Iterator[str]:
        for name, part in sorted(self._map.items_by_name.items()):
            lines = [f'key: "{name}"', *_indented("value", part._lines())]
            yield from _indented(self._names[0], lines)

    def Clear(self) -> None:
        self._map.items_by_name.clear()


def map_entry(entry: memoryview) -> tuple[str, memoryview]:
    """The name and the message of an entry of a map.

    Raises:
        WireError: the bytes are no entry, or the name is no UTF-8.
    """
    name, value = b"", memoryview(b"")
    for number, kind, part in wire.fields(entry):
        if (number, kind) == (1, wire.BYTES):
            name = bytes(part)
        elif (number, kind) == (2, wire.BYTES):
            value = part
    try:
        return name.decode(), value
    except UnicodeDecodeError:
        raise wire.WireError("a name is not UTF-8") from None


class Features(_MapMessage):
    """Features by name.

    Args:
        feature: a dict from names to Features.
    """

    _names, _kind = ("feature",), Feature

    @property
    def feature(self) -> _Map:
        """The features, which are made when they are asked for."""
        return self._map


class _RepeatedMessages(MutableSequence[Any]):
    """A list of messages, which are copied when they come in."""

    def __init__(self, owner: Any, kind: type[Message]) -> None:
        self._owner, self._kind, self.items = owner, kind, list[Any]()

    def add(self, **fields: Any) -> Any:
        """A new message at the end."""
        part = self._kind(**fields)
        self.items.append(part)
        self._owner._tell()
        return part

    def insert(self, index: int, value: Any) -> None:
        part = self._kind()
        part.CopyFrom(value)
        self.items.insert(index, part)
        self._owner._tell()

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("messages of a list are not assigned: use CopyFrom")

    def __delitem__(self, index: Any) -> None:
        del self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return repr(self.items)


class FeatureList(Message):
    """Features one after another.

    Args:
        feature: a list of Features.
    """

    _names = ("feature",)

    def __init__(self, **fields: Any) -> None:
        self._features = _RepeatedMessages(self, Feature)
        super().__init__(**fields)

    @property
    def feature(self) -> _RepeatedMessages:
        """The features."""
        return self._features

    def _set(self, name: str, value: Any) -> None:
        self._features.extend(value)

    def _take(self, other: Any) -> None:
        for part in list(other._features.items):
            self._features.add()._take(part)

    def _read(self, data: bytes | memoryview) -> None:
        for number, kind, value in wire.fields(data):
            if (number, kind) == (1, wire.BYTES):
                self._features.add()._read(value)

    def _bytes(self) -> bytes:
        return b"".join(wire.bytes_field(1, part._bytes()) for part in self._features.items)

    def _lines(self) -> Iterator[str]:
        for part in self._features:
            yield from _indented("feature", part._lines())

    def Clear(self) -> None:
        self._features.items.clear()


class FeatureLists(_MapMessage):
    """Lists of features by name.

    Args:
        feature_list: a dict from names to FeatureLists.
    """

    _names, _kind = ("feature_list",), FeatureList

    @property
    def feature_list(self) -> _Map:
        """The lists, which are made when they are asked for."""
        return self._map


# -- examples --------------------------------------------------------------------------------------


class _PartsMessage(Message):
    """A message whose fields are messages."""

    _kinds: ClassVar[dict[str, type[Message]]]

    def __init__(self, **fields: Any) -> None:
        self._parts = {name: kind() for name, kind in self._kinds.items()}
        self._present = set[str]()
        for name, part in self._parts.items():
            self._watch(name, part)
        super().__init__(**fields)

    def _watch(self, name: str, part: Message) -> None:
        def told() -> None:
            self._present.add(name)
            self._tell()

        part._tell = told

    def _set(self, name: str, value: Any) -> None:
        self._parts[name].CopyFrom(value)
        self._present.add(name)

    def _take(self, other: Any) -> None:
        for name in other._present:
            self._parts[name]._take(other._parts[name])
        self._present |= other._present

    def _read(self, data: bytes | memoryview) -> None:
        names = list(self._kinds)
        for number, kind, value in wire.fields(data):
            if 1 <= number <= len(names) and kind == wire.BYTES:
                self._parts[names[number - 1]]._read(value)
                self._present.add(names[number - 1])

    def _bytes(self) -> bytes:
        return b"".join(
            wire.bytes_field(number, part._bytes())
            for number, (name, part) in enumerate(self._parts.items(), 1)
            if name in self._present
        )

    def _lines(self) -> Iterator[str]:
        for name, part in self._parts.items():
            if name in self._present:
                yield from _indented(name, part._lines())

    def Clear(self) -> None:
        self._present.clear()
        for part in self._parts.values():
            part.Clear()

    def _is_set(self, name: str) -> bool:
        return name in self._present

    def HasField(self, field_name: str) -> bool:
        """Whether this part is set.

        Raises:
            ValueError: there is no such field.
        """
        if field_name not in self._kinds:
            raise ValueError(
                f'Protocol message {type(self).__name__} has no field "{field_name}".'
            )
        return field_name in self._present

    def ClearField(self, field_name: str) -> None:
        """Forget this part."""
        if self.HasField(field_name):
            self._present.discard(field_name)
            self._parts[field_name].Clear()


class Example(_PartsMessage):
    """Named features.

    Args:
        features: Features.
    """

    _names = ("features",)
    _kinds: ClassVar[dict[str, type[Message]]] = {"features": Features}

    @property
    def features(self) -> Features:
        """The features."""
        return self._parts["features"]  # type: ignore[return-value]


class SequenceExample(_PartsMessage):
    """Named features, and named lists of features.

    Args:
        context: Features of the whole.
        feature_lists: FeatureLists, features for each step of a sequence.
    """

    _names = ("context", "feature_lists")
    _kinds: ClassVar[dict[str, type[Message]]] = {
        "context": Features, "feature_lists": FeatureLists,
    }  # fmt: skip

    @property
    def context(self) -> Features:
        """The features of the whole."""
        return self._parts["context"]  # type: ignore[return-value]

    @property
    def feature_lists(self) -> FeatureLists:
        """The features of the steps."""
        return self._parts["feature_lists"]  # type: ignore[return-value]
