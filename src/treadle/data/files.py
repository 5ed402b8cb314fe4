"""Datasets of what is in files: lines, records, and bytes of one length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.stages.files import Files, lines, pieces, strings
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.sources import FromTensors
from treadle.data.stages.stage import Stage, available_processors, integer, invalid
from treadle.io.records import records
from treadle.io.streams import compression
from treadle.iteration import at, user_origin


def names_stage(filenames: Any, what: str) -> Stage:
    """The stage of the names of files: a name, a path, a tensor or list of them, or a dataset of
    names.

    Raises:
        TypeError: the names are no strings.
    """
    if isinstance(filenames, Dataset):
        names = filenames._stage
    else:
        hint = td.string  # of a list without names
        names = FromTensors(td.convert_to_tensor(_texts(filenames), dtype_hint=hint))
    if getattr(names.spec, "dtype", None) is not td.string:
        raise TypeError(f"{what}: filenames must be strings, not {names.spec}{at(user_origin())}")
    return names


def _texts(names: Any) -> Any:
    """The names of files, of which some may be paths, as texts."""
    if isinstance(names, list | tuple):
        return [_texts(name) for name in names]
    return os.fspath(names) if isinstance(names, os.PathLike) else names


def _files(
    what: str, filenames: Any, read: Callable[[str], Iterator[Leaves]], at_once: Any
) -> Files:
    """The stage of strings of files."""
    count = 1 if at_once is None else integer(at_once, f"{what}: num_parallel_reads")
    if count == AUTOTUNE:
        count = available_processors()
    if count < 1:
        raise invalid(f"{what}: num_parallel_reads must be greater than zero, got {count}")
    return Files(names_stage(filenames, what), read, count)


class TextLineDataset(Dataset):
    """The lines of text files, strings without the ends of the lines.

    Args:
        filenames: a name, a tensor or list of them, or a dataset of them, read one after another.
        compression_type: "" or None, "GZIP" or "ZLIB".
        num_parallel_reads: how many files are read at once, in threads, an element of each in turn;
            None reads one after another.
        buffer_size, name: accepted for TensorFlow programs.

    Raises:
        TypeError: the names are no strings.
        InvalidArgumentError: another compression, or number of files.
        NotFoundError: while iterating, there is no such file.
        DataLossError: while iterating, a file is not compressed in this way, or cut off.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = compression(compression_type, "TextLineDataset")
        read = strings(lines, kind)
        super().__init__(_files("TextLineDataset", filenames, read, num_parallel_reads))


class TFRecordDataset(Dataset):
    """The records of TFRecord files, strings.

    Args:
        filenames, compression_type, num_parallel_reads: as for `TextLineDataset`.
        buffer_size, name: accepted for TensorFlow programs.

    Raises:
        TypeError: the names are no strings.
        InvalidArgumentError: another compression, or number of files.
        NotFoundError: while iterating, there is no such file.
        DataLossError: while iterating, a record is damaged or cut off. The text names the file and
            the byte where the record begins; the next element is the next file's.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = compression(compression_type, "TFRecordDataset")
        read = strings(records, kind)
        super().__init__(_files("TFRecordDataset", filenames, read, num_parallel_reads))


class FixedLengthRecordDataset(Dataset):
    """The bytes of files in pieces of one length, strings.

    Args:
        filenames, compression_type, num_parallel_reads: as for `TextLineDataset`.
        record_bytes: the length of a piece.
        header_bytes, footer_bytes: bytes that are left out at the beginning and the end of a file.
        buffer_size, name: accepted for TensorFlow programs.

    Raises:
        TypeError: the names are no strings.
        InvalidArgumentError: a length below 1, a header or footer below 0; while iterating, the
            bytes of a file are no multiple of the length.
        NotFoundError: while iterating, there is no such file.
        DataLossError: while iterating, a compressed file is damaged or does not have such a length.
    """

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
        buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        what = "FixedLengthRecordDataset"
        kind = compression(compression_type, what)
        given = {
            "record_bytes": record_bytes, "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
        }  # fmt: skip
        size, header, footer = (int(integer(n, f"{what}: {key}")) for key, n in given.items())
        if size < 1 or header < 0 or footer < 0:
            raise invalid(
                f"{what}: `record_bytes` must be > 0, header and footer >= 0, got {size}, {header} "
                f"and {footer}"
            )
        read = strings(pieces, kind, size, header, footer)
        super().__init__(_files(what, filenames, read, num_parallel_reads))
