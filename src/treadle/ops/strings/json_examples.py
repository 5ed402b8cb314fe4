"""Examples written in JSON."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from treadle.core import wire
from treadle.core.tensor import Tensor
from treadle.ops.registry import run
from treadle.ops.strings.texts import elementwise, invalid, string_tensor

_LISTS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}


def _snake(name: str) -> str:
    """The name of a field, which JSON may have in two forms."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _only(value: Any, *allowed: str) -> dict[str, Any]:
    """The fields of a message.

    Raises:
        InvalidArgumentError: it has others, or is no object.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"Error while parsing JSON: an object is expected, not {value!r:.60}")
    fields = {_snake(name): part for name, part in value.items()}
    for name in fields:
        if name not in allowed:
            raise invalid(f"Error while parsing JSON: no such field: {name!r}")
    return fields


def _encoded(text: bytes) -> bytes:
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise invalid(f"Error while parsing JSON: {error}") from None
    message = _only(whole, "features")
    if "features" not in message:
        return b""
    named = _only(message["features"], "feature").get("feature") or {}
    if not isinstance(named, dict):
        raise invalid("Error while parsing JSON: feature must be an object")
    entries = [
        wire.bytes_field(1, name.encode()) + wire.bytes_field(2, _feature(feature))
        for name, feature in sorted(named.items())
    ]
    return wire.bytes_field(1, b"".join(wire.bytes_field(1, entry) for entry in entries))


def _feature(feature: Any) -> bytes:
    found = b""
    for name, part in _only(feature, *_LISTS).items():
        values = _only(part, "value").get("value") or []
        if not isinstance(values, list):
            raise invalid(f"Error while parsing JSON: the value of {name} must be a list")
        try:
            found = wire.bytes_field(_LISTS[name], _list(name, values))
        except (TypeError, ValueError, OverflowError, binascii.Error) as error:
            raise invalid(f"Error while parsing JSON: {name}: {error}") from None
    return found


def _list(name: str, values: list[Any]) -> bytes:
    if name == "bytes_list":
        return b"".join(wire.bytes_field(1, _from_base64(value)) for value in values)
    if not values:
        return b""
    if name == "float_list":
        return wire.bytes_field(1, np.array([float(v) for v in values], "<f4").tobytes())
    return wire.bytes_field(1, wire.packed_varints(map(_whole, values)))


def _from_base64(text: str) -> bytes:
    plain = text.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or number != float(value) or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{value!r} is no int64")
    return number


DECODE_JSON = elementwise("decode_json_example", _encoded)


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples in JSON as the strings that `parse_example` reads, of the same shape.

    Strings of bytes are in base64, as protocol buffers have them in JSON.

    Raises:
        InvalidArgumentError: no JSON, or not that of an example.
    """
    return run(DECODE_JSON, string_tensor(json_examples))  # type: ignore[no-any-return]
