"""What a table of ``td.lookup`` is filled with: pairs that are given, or lines of a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor


class KeyValueTensorInitializer:
    """Keys and their values.

    Args:
        keys: a vector of strings or integers.
        values: a vector with a value for each key.
        key_dtype, value_dtype: their dtypes, where the values themselves do not tell.

    Raises:
        InvalidArgumentError: there are more keys than values, or fewer, or they are no vectors.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._keys = _vector("keys", keys, key_dtype)
        self._values = _vector("values", values, value_dtype)
        if self._keys[0].shape != self._values[0].shape:
            raise errors.InvalidArgumentError(
                None, None,
                f"Expected shape {list(self._keys[0].shape)} for value, got "
                f"{list(self._values[0].shape)}{at(user_origin())}",
            )  # fmt: skip

    key_dtype = property(lambda self: self._keys[1], doc="The dtype of the keys.")
    value_dtype = property(lambda self: self._values[1], doc="The dtype of the values.")

    def pairs(self) -> tuple[NDArray, NDArray]:
        """The keys and the values."""
        return self._keys[0], self._values[0]


def _vector(what: str, given: Any, dtype: Any) -> tuple[NDArray, DType]:
    x: Tensor = convert_to_tensor(given, None if dtype is None else dtypes.as_dtype(dtype))
    if x.is_symbolic:
        raise NotImplementedError(
            f"{what} of a table are not computed in a function: make the table outside of it"
            f"{at(user_origin())}"
        )
    return x.numpy().reshape(-1), x.dtype


class TextFileIndex:
    """What of a line is a key or a value, besides the number of a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


def _path_of(given: Any) -> str:
    path = given
    if isinstance(given, Tensor):
        if given.dtype is not dtypes.string or given.ndim:
            raise ValueError(f"The path of a file is a string, not {given!r}{at(user_origin())}")
        path = given.numpy()
    found = os.fsdecode(path)
    if not found:
        raise ValueError(f"TextFileInitializer: the filename is empty{at(user_origin())}")
    return found


class TextFileInitializer:
    """A key and a value of every line of a text file, which is read when a table is made of it.

    Args:
        filename: the path.
        key_dtype, value_dtype: string, or a dtype of numbers for columns that hold them; int64 for
            the number of a line.
        key_index, value_index: the number of the column, or a constant of `TextFileIndex`.
        vocab_size: how many lines are read; all by default.
        delimiter: what stands between columns.
        value_index_offset: is added to numbers of lines that are values.

    Raises:
        ValueError: a whole line that is neither a string nor an integer, a number of a line that is
            not int64, or another column; the path is empty or no string.
    """

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        self._path = _path_of(filename)
        self.key_dtype, self.value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        self._parts = (key_index, self.key_dtype, 0), (
            value_index, self.value_dtype, value_index_offset,
        )  # fmt: skip
        for index, dtype, _ in self._parts:
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"Invalid key or value index {index}{at(user_origin())}")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                raise ValueError(f"numbers of lines are int64, not {dtype.name}{at(user_origin())}")
            whole = dtype is dtypes.string or dtype.is_integer
            if index == TextFileIndex.WHOLE_LINE and not whole:
                raise ValueError(
                    f"whole lines are strings or integers, not {dtype.name}{at(user_origin())}"
                )
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"vocab_size must be positive, not {vocab_size}{at(user_origin())}")
        self._size, self._delimiter = vocab_size, delimiter.encode()

    def pairs(self) -> tuple[NDArray, NDArray]:
        """The keys and the values.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: there are too few lines or columns, or a column holds no number.
        """
        try:
            with open(self._path, "rb") as file:
                lines = file.read().splitlines()[: self._size]
        except FileNotFoundError:
            raise errors.NotFoundError(None, None, f"{self._path}: no such file") from None
        if self._size is not None and len(lines) < self._size:
            self._refuse(f"vocab_size is {self._size}, but there are {len(lines)} lines")
        keys, values = (self._column(lines, *part) for part in self._parts)
        return keys, values

    def _column(self, lines: list[bytes], index: int, dtype: DType, offset: int) -> NDArray:
        if index == TextFileIndex.LINE_NUMBER:
            return np.arange(len(lines), dtype=np.int64) + offset
        found = np.empty(len(lines), dtype.np_dtype)
        for number, line in enumerate(lines):
            parts = [line] if index == TextFileIndex.WHOLE_LINE else line.split(self._delimiter)
            if index >= len(parts):
                self._refuse(f"line {number} has {len(parts)} columns, but column {index} is read")
            text = parts[max(index, 0)]
            try:
                found[number] = text if dtype is dtypes.string else dtype.np_dtype.type(text)
            except ValueError:
                self._refuse(f"{text.decode(errors='replace')!r} in line {number} is no number")
        return found

    def _refuse(self, text: str) -> None:
        raise errors.InvalidArgumentError(None, None, f"{self._path}: {text}{at(user_origin())}")
