"""Rows of files of tables (CSV)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import InvalidArgumentError
from treadle.io.streams import opened
from treadle.ops.strings.encodings import column_type, field
from treadle.ops.strings.fields import split_fields

__all__ = ["Row", "column_type", "field", "records", "rows", "values"]

Row = list[str]


class _Lines:
    """The lines of a file without their line breaks."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file, self._end = iter(file), ""

    def __iter__(self) -> Iterator[str]:
        return map(self._without_end, self._file)

    def further(self) -> str:
        """The next line behind the break of the last one; "" at the end of the file."""
        before, text = self._end, next(self._file, "")
        return before + self._without_end(text) if text else ""

    def _without_end(self, text: str) -> str:
        line = text.rstrip("\r\n")
        self._end = text[len(line) :]
        return line


def records(
    name: str, kind: str = "", delimiter: str = ",", quoted: bool = True, encoding: str = "utf-8"
) -> Iterator[Row | ValueError]:
    """The fields of each row of a file; fields in quotes may have several lines.

    Args:
        kind: how the file is compressed: "", "GZIP" or "ZLIB".
        delimiter: what is between fields.
        quoted: whether fields may stand in double quotes.

    Returns:
        An error in place of a row that cannot be split: the rows that follow are there, too.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is not compressed in this way.
    """
    with opened(name, kind) as file:
        lines = _Lines(io.TextIOWrapper(file, encoding, "surrogateescape", newline=""))
        for line in lines:
            try:
                yield split_fields(line, delimiter, quoted, lines.further)
            except ValueError as error:
                yield error


def rows(name: str, **format: Any) -> Iterator[Row]:
    """The `records` of a file, of which the first one that cannot be split is raised."""
    for number, record in enumerate(records(name, **format)):
        if isinstance(record, ValueError):
            raise InvalidArgumentError(None, None, f"{name}, row {number}: {record}")
        yield record


def values(
    row: Row, columns: Sequence[tuple[DType, Any]], missing: str, chosen: Sequence[int] | None,
    where: str,
) -> list[Any]:  # fmt: skip
    """The values of a row.

    Args:
        columns: the dtype of each, and the value of an empty field; None where it must be there.
        missing: what stands for an empty field, too.
        chosen: the numbers of the columns that are wanted; None for all.
        where: the file and row, for errors.

    Raises:
        InvalidArgumentError: another number of fields, a field that is no such number or missing.
    """
    if chosen is not None and max(chosen, default=-1) < len(row):
        row = [row[k] for k in chosen]
    if len(row) != len(columns):
        raise InvalidArgumentError(
            None, None, f"{where}: Expect {len(columns)} fields but have {len(row)} in record"
        )
    pairs = enumerate(zip(row, columns, strict=True))
    return [field(text, *column, missing, f"{where}: Field {k}") for k, (text, column) in pairs]
