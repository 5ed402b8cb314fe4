"""Rows of files of tables (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import InvalidArgumentError
from treadle.io.streams import opened
from treadle.ops.strings.encodings import column_type, field

__all__ = ["Row", "column_type", "field", "rows", "values"]

Row = list[str]


def rows(
    name: str, kind: str = "", delimiter: str = ",", quoted: bool = True, encoding: str = "utf-8"
) -> Iterator[Row]:
    """The fields of each row of a file; fields in quotes may have several lines.

    Args:
        kind: how the file is compressed: "", "GZIP" or "ZLIB".
        delimiter: what is between fields.
        quoted: whether fields may stand in double quotes.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is not compressed in this way.
    """
    with opened(name, kind) as file:
        text = io.TextIOWrapper(file, encoding, "surrogateescape", newline="")
        if quoted:
            found = csv.reader(text, delimiter=delimiter)
        else:
            found = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        yield from (row for row in found if row)


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
