"""``td.data.experimental.SqlDataset``: the rows that a query of a database gives."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.stages.stage import Stage


class _Rows(Stage):
    """The rows of a query, a scalar for each column."""

    def __init__(self, path: str, query: str, kinds: tuple[Any, ...]) -> None:
        self.path, self.query, self.kinds = path, query, kinds
        self.spec = tuple(td.TensorSpec((), kind) for kind in kinds)

    def open(self) -> Iterator[Leaves]:
        with contextlib.closing(self._connected()) as connection:
            try:
                rows = connection.execute(self.query)
            except sqlite3.Error as error:
                raise td.errors.UnknownError(None, None, f"{error}: {self.query}") from None
            found = len(rows.description or ())
            if found != len(self.kinds):
                raise td.errors.InvalidArgumentError(
                    None, None, f"The number of columns in query ({found}) must match the number "
                    f"of elements in output_types ({len(self.kinds)})",
                )  # fmt: skip
            for row in rows:
                yield tuple(_leaf(*pair) for pair in zip(row, self.kinds, strict=True))

    def _connected(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        except sqlite3.Error as error:
            raise td.errors.InvalidArgumentError(
                None, None, f"Failed to open {self.path}: {error}"
            ) from None


def _leaf(value: Any, kind: Any) -> Any:
    if kind is td.string:
        text = "" if value is None else value if isinstance(value, str | bytes) else str(value)
        return np.array(text.encode() if isinstance(text, str) else text, object)
    if kind is td.bool:
        return np.array(bool(value))
    return np.array(0 if value is None else value).astype(kind.np_dtype)


class SqlDataset(Dataset):
    """The rows that a query of an SQLite database gives, tuples of scalars.

    Args:
        driver_name: "sqlite".
        data_source_name: the path of the database.
        query: in SQL.
        output_types: the dtype of each column.

    Raises:
        InvalidArgumentError: another driver; while iterating, the query gives another number of
            columns.
        UnknownError: while iterating, the database refuses the query.
    """

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        driver, path, text = (
            os.fsdecode(np.asarray(part).item())
            for part in (driver_name, data_source_name, query)
        )
        if driver != "sqlite":
            raise td.errors.InvalidArgumentError(
                None, None, f"The database type, {driver}, is not supported by SqlDataset. The set "
                "of supported databases is: {'sqlite'}.",
            )  # fmt: skip
        kinds = output_types if isinstance(output_types, list | tuple) else (output_types,)
        super().__init__(_Rows(path, text, tuple(map(td.as_dtype, kinds))))
