"""Elements of datasets in files: a file of records, the first of which says what the others are.

An element is a record of the tensors of its leaves, one after another, as `td.io.serialize_tensor`
writes them. A file is written aside and gets its name when it is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.core import wire
from treadle.core.dtypes import DType, as_dtype
from treadle.core.errors import DataLossError, OpError
from treadle.core.file_errors import file_error
from treadle.core.tensor import NDArray
from treadle.io.records import TFRecordOptions, TFRecordWriter, records
from treadle.ops.strings.tensors import packed, unpacked

_FORMAT = "treadle elements 1"


class ElementWriter:
    """Writes a file of elements.

    Args:
        path: the file; until `finish` there is one of another name beside it.
        header: what `read_header` gives, in the types of JSON.
        dtypes: the dtypes of the leaves.
        kind: how it is compressed: "", "GZIP" or "ZLIB".

    Raises:
        NotFoundError, PermissionDeniedError: the file cannot be made.
    """

    def __init__(
        self, path: str, header: dict[str, Any], dtypes: Sequence[DType], kind: str = ""
    ) -> None:
        self._path, self._dtypes = path, dtypes
        self._aside = f"{path}.{uuid.uuid4().hex[:8]}.part"
        self._writer = TFRecordWriter(self._aside, TFRecordOptions(kind))
        self._writer.write(json.dumps({"format": _FORMAT, **header}))

    def write(self, leaves: Sequence[NDArray]) -> None:
        """Append an element; ResourceExhaustedError where the disk is full."""
        pairs = zip(leaves, self._dtypes, strict=True)
        self._writer.write(b"".join([wire.bytes_field(1, packed(x, d)) for x, d in pairs]))

    def finish(self) -> None:
        """Give the file its name; ResourceExhaustedError where the disk is full."""
        self._writer.close()
        move(self._aside, self._path)

    def abandon(self) -> None:
        """Delete what was written, also where a full disk takes no more of it. Does nothing after
        `finish`."""
        with contextlib.suppress(OpError):
            self._writer.close()
        if os.path.exists(self._aside):
            os.remove(self._aside)


def move(source: str, path: str) -> None:
    """Give a file that is written its name, so that after a failure of the machine it is whole."""
    try:
        with open(source, "rb") as file:
            os.fsync(file.fileno())
        os.replace(source, path)
    except OSError as error:
        raise file_error(error, path) from None


def read_header(path: str, kind: str = "") -> dict[str, Any]:
    """What a file of elements says of them.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is damaged, or no such file.
    """
    return _header(path, next(records(path, kind), b""))


def _header(path: str, record: bytes) -> dict[str, Any]:
    try:
        header = json.loads(record)
        if header.pop("format") == _FORMAT:
            return header  # type: ignore[no-any-return]
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise DataLossError(None, None, f"{path}: not a file of elements of a dataset")


def elements(path: str, kind: str = "") -> Iterator[tuple[NDArray, ...]]:
    """The elements of a file, as arrays that are not written.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is damaged; the text has the file and where the record begins.
    """
    found = records(path, kind)
    _header(path, next(found, b""))
    for record in found:
        try:
            yield tuple([unpacked(part)[0] for _, _, part in wire.fields(record)])
        except ValueError as error:
            raise DataLossError(None, None, f"{path}: a damaged element: {error}") from None


# -- specs -----------------------------------------------------------------------------------------


def spec_text(leaves: Sequence[tuple[Any, DType]]) -> list[Any]:
    """(shape, dtype) of the leaves in the types of JSON."""
    return [[None if s is None else [_dim(d) for d in s], t.name] for s, t in leaves]


def _dim(dim: Any) -> int | None:
    return None if dim is None else int(dim)


def leaf_specs(text: list[Any]) -> list[tuple[Any, DType]]:
    """What `spec_text` was given."""
    return [(shape, as_dtype(name)) for shape, name in text]


