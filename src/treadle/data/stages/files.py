"""What is in files: lines, records, and bytes of one length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves
from treadle.data.stages.failures import carried, released
from treadle.data.stages.nesting import interleaved
from treadle.data.stages.parallel import prefetched
from treadle.data.stages.stage import Stage
from treadle.io.streams import opened

_AHEAD = 16  # elements of each file that threads read ahead


class Files(Stage):
    """The elements of files one after another, or of several in turn.

    Args:
        names: a stage that gives the names of the files.
        read: gives the elements of the file of a name.
        at_once: how many files are read at once, each by a thread.
        spec: the spec of the elements.
    """

    def __init__(
        self, names: Stage, read: Callable[[str], Iterator[Leaves]], at_once: int = 1,
        spec: Any = None,
    ) -> None:  # fmt: skip
        self.names, self.read, self.at_once = names, read, at_once
        self.spec = td.TensorSpec((), td.string) if spec is None else spec

    def open(self) -> Iterator[Leaves]:
        names = chain.from_iterable(map(_names, self.names.open()))
        return released(interleaved(names, self._opened, self.at_once, 1), self)

    def _opened(self, name: str) -> Iterator[Any]:
        if self.at_once == 1:
            return carried(self.read(name))
        return prefetched(lambda: self.read(name), _AHEAD)


def _names(leaves: Leaves) -> list[str]:
    return [os.fsdecode(name) for name in np.asarray(leaves[0]).reshape(-1).tolist()]


def strings(read: Callable[..., Iterator[bytes]], *args: Any) -> Callable[[str], Iterator[Leaves]]:
    """A function that reads strings of a file, as one that gives elements.

    Args:
        read: takes the name of the file and `args`.
    """
    return partial(_strings, read, *args)


def _strings(read: Callable[..., Iterator[bytes]], *args: Any) -> Iterator[Leaves]:
    *rest, name = args
    for item in read(name, *rest):
        yield (np.array(item, object),)


def lines(name: str, kind: str) -> Iterator[bytes]:
    """The lines of a file, without what ends them."""
    with opened(name, kind) as file:
        for line in file:  # TensorFlow leaves out carriage returns within lines, too
            yield line.removesuffix(b"\n").replace(b"\r", b"")


def pieces(name: str, kind: str, size: int, header: int, footer: int) -> Iterator[bytes]:
    """The bytes of a file between its header and footer in pieces of one size.

    Raises:
        InvalidArgumentError: their number is no multiple of the size; DataLossError where that is
            found out at the end of a compressed file.
    """
    def wrong(length: int) -> str:
        return (
            f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file "
            f'"{name}" has body length {length} bytes, which is not an exact multiple of the '
            f"record length ({size} bytes)."
        )

    with opened(name, kind) as file:
        if not kind:
            body = os.fstat(file.fileno()).st_size - header - footer
            if body < 0 or body % size:
                raise td.errors.InvalidArgumentError(None, None, wrong(body))
        file.read(header)
        pending, count = file.read(size + footer), 0
        while len(pending) == size + footer:
            yield pending[:size]
            count += 1
            pending = pending[size:] + file.read(size)
        if len(pending) != footer:
            raise td.errors.DataLossError(
                None, None, wrong(count * size + len(pending) - footer)
            )
