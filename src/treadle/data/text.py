"""Datasets of the lines of text files."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.stages.sources import FromTensors
from treadle.data.stages.text import Lines
from treadle.iteration import at, user_origin


class TextLineDataset(Dataset):
    """The lines of text files, strings without the ends of the lines.

    Args:
        filenames: a name, a tensor or list of them, or a dataset of them, read one after another.
        compression_type: "" or None, "GZIP" or "ZLIB".
        buffer_size, num_parallel_reads, name: accepted for TensorFlow programs.

    Raises:
        TypeError: the names are no strings.
        InvalidArgumentError: another compression.
        NotFoundError: while iterating, there is no such file.
        DataLossError: while iterating, a file is not compressed in this way.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        compression = compression_type or ""
        if compression not in ("", "GZIP", "ZLIB"):
            raise td.errors.InvalidArgumentError(
                None, None, f"TextLineDataset: unsupported compression_type {compression!r}"
                f"{at(user_origin())}",
            )  # fmt: skip
        if isinstance(filenames, Dataset):
            names = filenames._stage
        else:
            names = FromTensors(td.convert_to_tensor(filenames))
        if getattr(names.spec, "dtype", None) is not td.string:
            raise TypeError(
                f"TextLineDataset: filenames must be strings, not {names.spec}{at(user_origin())}"
            )
        super().__init__(Lines(names, compression))
