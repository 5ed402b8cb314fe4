"""Bytes in strings as numbers, and strings in other encodings."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.context import recording
from treadle.core.dtypes import DType
from treadle.core.errors import DataLossError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.static_values import get_static_value
from treadle.ops.strings.fields import split_fields
from treadle.ops.strings.texts import STRINGS, elementwise, invalid, string_tensor


def _to_base64(s: bytes, pad: bool) -> bytes:
    found = base64.urlsafe_b64encode(s)
    return found if pad else found.rstrip(b"=")


def _from_base64(s: bytes) -> bytes:
    bare = s.rstrip(b"=")
    try:
        whole = bare.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(bare) % 4)
        return base64.b64decode(whole, validate=True)
    except binascii.Error as error:
        raise invalid(f"invalid base64: {error}") from None


def _decompressed(s: bytes, kind: str) -> bytes:
    if not kind:
        return s
    # TensorFlow gives what there is where the end is missing.
    reader = zlib.decompressobj(31 if kind == "GZIP" else 15)
    try:
        return reader.decompress(s)
    except zlib.error as error:
        raise DataLossError(None, None, f"decode_compressed: {error}") from None


ENCODE_BASE64 = elementwise("encode_base64", _to_base64)
DECODE_BASE64 = elementwise("decode_base64", _from_base64)
DECOMPRESS = elementwise("decode_compressed", _decompressed)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Every string in base64 for addresses of the web, filled up with ``=`` where `pad` is set."""
    return run(ENCODE_BASE64, string_tensor(input), pad=bool(pad))  # type: ignore[no-any-return]


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Every string from base64 for addresses of the web, with or without ``=`` at the end.

    Raises:
        InvalidArgumentError: another character.
    """
    return run(DECODE_BASE64, string_tensor(input))  # type: ignore[no-any-return]


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Every string decompressed; where the end is missing, the part before it.

    Args:
        compression_type: "ZLIB", "GZIP" or "", for strings as they are.

    Raises:
        InvalidArgumentError: another type.
        DataLossError: what was not compressed this way.
    """
    if compression_type not in ("", "ZLIB", "GZIP"):
        raise invalid(f"compression {compression_type!r} is not ZLIB or GZIP{at(user_origin())}")
    return run(DECOMPRESS, string_tensor(bytes), kind=compression_type)  # type: ignore[no-any-return]


# -- numbers ---------------------------------------------------------------------------------------


def _infer_raw(x: Spec, *, dtype: DType, little: bool, length: int | None) -> TensorSpec:
    count = fresh_symbol("numbers") if length is None else length // dtype.size
    return TensorSpec((*x.dims, count), dtype)


def _decode_raw(x: NDArray, *, dtype: DType, little: bool, length: int | None) -> NDArray:
    texts = x.reshape(-1).tolist()
    size = max(map(len, texts), default=0) if length is None else length
    if length is None and any(len(s) != size for s in texts):
        raise invalid("decode_raw requires input strings to all be the same size")
    if size % dtype.size:
        raise invalid(f"decode_raw: {size} bytes are no multiple of {dtype.size}")
    joined = b"".join(s[:size].ljust(size, b"\0") for s in texts)
    kind = dtype.np_dtype
    numbers = np.frombuffer(joined, kind if little else kind.newbyteorder(">")).astype(kind)
    return numbers.reshape(*x.shape, size // dtype.size)


DECODE_RAW = register(Op("decode_raw", _infer_raw, _decode_raw, tags=STRINGS))


def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The bytes of strings as numbers, along a new last axis.

    Args:
        input_bytes: strings of one length.
        out_type: the dtype of the numbers.
        little_endian: whether their lowest byte comes first.
        fixed_length: strings are cut off or filled up with zeros to have so many bytes.

    Raises:
        InvalidArgumentError: strings of different lengths, or of parts of numbers.
    """
    kind = dtypes.as_dtype(out_type)
    if fixed_length is not None and (fixed_length <= 0 or fixed_length % kind.size):
        text = f"decode_raw: fixed_length {fixed_length} is no multiple of {kind.size}"
        raise invalid(f"{text}{at(user_origin())}")
    return run(  # type: ignore[no-any-return]
        DECODE_RAW, string_tensor(input_bytes), dtype=kind, little=bool(little_endian),
        length=fixed_length,
    )  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------

_FIELDS = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


def _infer_csv(records: Spec, *, columns: tuple[Any, ...], **attrs: Any) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(records.dims, dtype) for dtype, _ in columns)


def _decode_csv(
    records: NDArray, *, columns: tuple[tuple[DType, Any], ...], delim: str, quoted: bool,
    missing: str, chosen: tuple[int, ...] | None,
) -> tuple[NDArray, ...]:  # fmt: skip
    lines = [s.decode("utf-8", "surrogateescape") for s in records.reshape(-1).tolist()]
    found: list[list[Any]] = [[] for _ in columns]
    for number, line in enumerate(lines):
        try:
            row = split_fields(line, delim, quoted)
        except ValueError as error:
            raise invalid(f"record {number}: {error}") from None
        if chosen is not None and max(chosen, default=-1) < len(row):
            row = [row[k] for k in chosen]
        if len(row) != len(columns):
            raise invalid(f"Expect {len(columns)} fields but have {len(row)} in record {number}")
        for k, (text, (dtype, default)) in enumerate(zip(row, columns, strict=True)):
            found[k].append(field(text, dtype, default, missing, f"Field {k} in record {number}"))
    return tuple(
        _column(values, dtype, records.shape)
        for values, (dtype, _) in zip(found, columns, strict=True)
    )


def field(text: str, dtype: DType, default: Any, missing: str, where: str) -> Any:
    """The value of a field of a table.

    Raises:
        InvalidArgumentError: it is missing and has no default, or is no such number.
    """
    if text in ("", missing):
        if default is None:
            raise invalid(f"{where} is required but missing")
        return default
    if dtype is dtypes.string:
        return text.encode("utf-8", "surrogateescape")
    try:
        return dtype.np_dtype.type(text.strip())
    except (ValueError, OverflowError):
        raise invalid(f"{where} is not a valid {dtype.name}: {text}") from None


def _column(values: list[Any], dtype: DType, shape: tuple[int, ...]) -> NDArray:
    column = np.empty(len(values), dtype.np_dtype)
    column[:] = values
    return column.reshape(shape)


DECODE_CSV = register(Op("decode_csv", _infer_csv, _decode_csv, tags=STRINGS))


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "", select_cols: Any = None, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """The columns of lines of a table, each of the lines' shape.

    Args:
        records: strings, a line each.
        record_defaults: for each column a list or tensor with the value of an empty field, whose
            dtype is the column's: float32, float64, int32, int64 or string. An empty tensor for a
            field that must be there.
        field_delim: what is between fields.
        use_quote_delim: whether fields may stand in double quotes.
        na_value: what stands for an empty field, too.
        select_cols: the numbers of the columns that are wanted, in order.

    Raises:
        InvalidArgumentError: no columns, a line with another number of fields, a field that is no
            such number.
        ValueError: `select_cols` has another length than `record_defaults`.
    """
    columns = tuple(map(column_type, record_defaults))
    if not columns:
        raise invalid(f"decode_csv: record_defaults has no columns{at(user_origin())}")
    chosen = None if select_cols is None else tuple(int(k) for k in select_cols)
    if chosen is not None and len(chosen) != len(columns):
        text = f"decode_csv: {len(chosen)} columns are selected, with {len(columns)} defaults"
        raise ValueError(f"{text}{at(user_origin())}")
    found = run(
        DECODE_CSV, string_tensor(records), columns=columns, delim=field_delim,
        quoted=bool(use_quote_delim), missing=na_value, chosen=chosen,
    )  # fmt: skip
    return list(found) if isinstance(found, tuple) else [found]


def column_type(default: Any) -> tuple[DType, Any]:
    """The dtype of a column, and the value of an empty field; None where it must be there."""
    with recording(None):  # a value of its own also while a function is traced
        value = convert_to_tensor(default)
    array = get_static_value(value)
    if array is None:
        text = f"decode_csv: a default is known while tracing, not computed, as {default} is"
        raise invalid(f"{text}{at(user_origin())}")
    elements = np.asarray(array, object).reshape(-1).tolist()
    if len(elements) > 1:
        raise invalid(f"decode_csv: a column has one default, not {default}{at(user_origin())}")
    return _known(value.dtype), elements[0] if elements else None


def _known(dtype: DType) -> DType:
    if dtype not in _FIELDS:
        raise invalid(f"decode_csv: no column is {dtype.name}{at(user_origin())}")
    return dtype
