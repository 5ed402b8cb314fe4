"""Readers of a graph: they take names of files from a queue and give the records of the files.

Each session reads on its own: it has one file of a reader open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import treadle as td
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.host_operations import host_operation
from treadle.compat.v1.queues import take

_STRING = td.TensorSpec([], td.string)
_COUNT = td.TensorSpec([], td.int64)


class _Reading:
    """What a session has of a reader: the records of the open file, and counts."""

    def __init__(self) -> None:
        self.records: Iterator[tuple[bytes, bytes]] = iter(())
        self.produced = self.files = 0
        self._is_open = False

    def next(self, reader: ReaderBase, session: Any, queue: Any, waits: bool = True) -> Any:
        """The next key and record; from the next file of the queue where this one has no more.

        Args:
            waits: None is given instead where another file would have to be opened.
        """
        while True:
            found = next(self.records, None)
            if found is not None:
                self.produced += 1
                return found
            self.files += self._is_open
            self._is_open = False
            if not waits:
                return None
            name = take(queue, session)
            self.records = reader._records(name if isinstance(name, bytes) else name.item())
            self._is_open = True

    def reset(self) -> None:
        """Begin anew, with the next file of the queue."""
        self.__init__()  # type: ignore[misc]


class ReaderBase:
    """Reads files whose names come from a queue: see its subclasses."""

    _default = "ReaderV2"

    def __init__(self, name: str | None = None) -> None:
        self._name = name or self._default

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and records of a file."""
        raise NotImplementedError

    def _of(self, session: Any) -> _Reading:
        found: _Reading = session.resource(self, _Reading)
        return found

    def read(self, queue: Any, name: str | None = None) -> tuple[Any, Any]:
        """The key and the text of the next record, which each run reads: string tensors.

        A run raises OutOfRangeError where the queue is closed and has no more names.
        """

        def read(session: Any) -> list[Any]:
            key, value = self._of(session).next(self, session, queue)
            return [td.constant(key), td.constant(value)]

        key, value = self._operation("ReaderReadV2", name or "ReaderRead", read, [_STRING] * 2)
        return key, value

    def read_up_to(self, queue: Any, num_records: Any,
                   name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
        """Keys and texts of at most so many records: of one file, where it has some more."""
        count = int(num_records)

        def read(session: Any) -> list[Any]:
            reading = self._of(session)
            found = [reading.next(self, session, queue)]
            while len(found) < count:
                record = reading.next(self, session, queue, waits=False)
                if record is None:
                    break
                found.append(record)
            return [td.constant(list(part), td.string) for part in zip(*found, strict=True)]

        many = td.TensorSpec([None], td.string)
        keys, values = self._operation("ReaderReadUpToV2", name or "ReaderReadUpTo", read,
                                       [many] * 2)  # fmt: skip
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records were read, an int64."""
        return self._operation(
            "ReaderNumRecordsProducedV2", name or "ReaderNumRecordsProduced",
            lambda session: [td.constant(self._of(session).produced, td.int64)], [_COUNT],
        )[0]  # fmt: skip

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """How many files were read to their ends, an int64."""
        return self._operation(
            "ReaderNumWorkUnitsCompletedV2", name or "ReaderNumWorkUnitsCompleted",
            lambda session: [td.constant(self._of(session).files, td.int64)], [_COUNT],
        )[0]  # fmt: skip

    def reset(self, name: str | None = None) -> Any:
        """An operation after which reading begins with the next file of the queue."""

        def reset(session: Any) -> list[Any]:
            self._of(session).reset()
            return []

        graph = get_default_graph()
        return host_operation(graph, name or "ReaderReset", "ReaderResetV2", reset, [], [])

    def _operation(self, type_: str, name: str, function: Any, specs: list[Any]) -> list[Any]:
        graph = get_default_graph()
        with graph.lock:
            return list(host_operation(graph, name, type_, function, [], specs).outputs)


class WholeFileReader(ReaderBase):
    """Gives each file as one record, whose key is the name of the file."""

    _default = "WholeFileReaderV2"

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield work, td.io.read_file(work).numpy()


class IdentityReader(ReaderBase):
    """Gives the names themselves, as keys and as records."""

    _default = "IdentityReaderV2"

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield work, work


class TextLineReader(ReaderBase):
    """Gives the lines of text files. A key is the name of the file and the number of the line.

    Args:
        skip_header_lines: lines at the beginning of each file that are left out.
    """

    _default = "TextLineReaderV2"

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self._skipped = skip_header_lines or 0

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        lines = enumerate(td.data.TextLineDataset(work), 1)
        for number, line in itertools.islice(lines, self._skipped, None):
            yield work + b":%d" % number, line.numpy()


class FixedLengthRecordReader(ReaderBase):
    """Gives the records of files in which all have one length. A key is the name of the file and
    the number of the record.

    Args:
        record_bytes: the length.
        header_bytes, footer_bytes: at the beginning and the end of each file that are left out.
        hop_bytes: from the beginning of a record to that of the next one; 0: the length.
        encoding: "GZIP" or "ZLIB" where files are compressed.
    """

    _default = "FixedLengthRecordReaderV2"

    def __init__(
        self, record_bytes: int, header_bytes: int | None = None, footer_bytes: int | None = None,
        hop_bytes: int | None = None, name: str | None = None, encoding: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._length, self._hop = int(record_bytes), int(hop_bytes or record_bytes)
        self._ends = int(header_bytes or 0), int(footer_bytes or 0)
        self._encoding = encoding or ""

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        whole = td.io.read_file(work)
        if self._encoding:
            whole = td.io.decode_compressed(whole, self._encoding)
        data, (header, footer) = whole.numpy(), self._ends
        starts = range(header, len(data) - footer - self._length + 1, self._hop)
        for number, start in enumerate(starts):
            yield work + b":%d" % number, data[start : start + self._length]


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files. A key is the name of the file and where the record
    begins in it.

    Args:
        options: `td.io.TFRecordOptions`, or the name of a way to compress.
    """

    _default = "TFRecordReaderV2"

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(name)
        self._options = options

    def _records(self, work: bytes) -> Iterator[tuple[bytes, bytes]]:
        kind = getattr(self._options, "compression_type", self._options) or ""
        kind = kind if isinstance(kind, str) else ""
        offset = 0
        for record in td.data.TFRecordDataset(work, kind):
            value = record.numpy()
            yield work + b":%d" % offset, value
            offset += len(value) + _FRAME


_FRAME = 16  # bytes of a record's length and of its two checksums
