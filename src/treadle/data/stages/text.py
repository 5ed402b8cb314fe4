"""The lines of text files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves
from treadle.data.stages.stage import Stage


class Lines(Stage):
    """The lines of files one after another, without what ends them.

    Args:
        names: a stage that gives the names of the files.
        compression: "", "GZIP" or "ZLIB".
    """

    def __init__(self, names: Stage, compression: str) -> None:
        self.names, self.compression = names, compression
        self.spec = td.TensorSpec((), td.string)

    def open(self) -> Iterator[Leaves]:
        for (names,) in self.names.open():
            for name in np.asarray(names).reshape(-1).tolist():
                for line in _lines(name.decode(), self.compression):
                    yield (np.array(line, object),)


def _lines(name: str, compression: str) -> Iterator[bytes]:
    try:
        if compression == "ZLIB":
            with open(name, "rb") as file:
                yield from map(_cut, zlib.decompress(file.read()).splitlines(keepends=True))
            return
        opened: Any = gzip.open(name) if compression == "GZIP" else open(name, "rb")  # noqa: SIM115
        with opened as file:
            yield from map(_cut, file)
    except FileNotFoundError:
        raise td.errors.NotFoundError(None, None, f"{name}; No such file or directory") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise td.errors.DataLossError(None, None, f"{name}: {error}") from None


def _cut(line: bytes) -> bytes:
    line = line.removesuffix(b"\n")
    return line.replace(b"\r", b"")
