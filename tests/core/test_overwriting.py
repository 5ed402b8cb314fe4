"""Files that are written from their beginning: what was there stays until the new one is whole."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import treadle as td
from treadle.core.overwriting import NewFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


class Full:
    """A file on a disk that has room for a few bytes more."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        if self._room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._file.write(bytes(data)[: self._room])
        self._room -= written
        return int(written)


def test_a_file_stays_until_the_new_one_is_closed(file: Path) -> None:
    new = NewFile(str(file))
    new.file.write(b"new contents")
    assert file.read_bytes() == b"old" and new.replaces
    new.close()
    new.close()
    assert file.read_bytes() == b"new contents" and names(file) == ["file"]


def test_publishing_shows_what_was_written_and_goes_on(file: Path) -> None:
    new = NewFile(str(file))
    new.file.write(b"one")
    new.publish()
    assert file.read_bytes() == b"one" and not new.replaces
    new.file.write(b" two")
    new.close()
    assert file.read_bytes() == b"one two" and names(file) == ["file"]


def test_what_is_discarded_leaves_the_old_file(file: Path) -> None:
    new = NewFile(str(file))
    new.file.write(b"new")
    new.discard()
    assert file.read_bytes() == b"old" and names(file) == ["file"] and new.closed


def test_a_new_or_empty_file_is_written_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("none", "empty"):
        new = NewFile(str(tmp_path / name))
        new.file.write(b"x")
        new.publish()
        assert not new.replaces and (tmp_path / name).read_bytes() == b"x"
        new.close()
    assert sorted(os.listdir(tmp_path)) == ["empty", "none"]


def test_links_and_permissions_stay(file: Path) -> None:
    link = file.parent / "link"
    link.symlink_to(file)
    file.chmod(0o640)
    new = NewFile(str(link))
    new.file.write(b"new")
    new.close()
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_forgotten_file_is_published(file: Path) -> None:
    new = NewFile(str(file))
    new.file.write(b"new")
    del new
    assert file.read_bytes() == b"new" and names(file) == ["file"]


def test_a_child_made_by_fork_leaves_the_file_to_its_parent(file: Path) -> None:
    new = NewFile(str(file))
    new.file.write(b"half")
    new.file.flush()
    child = os.fork()
    if child == 0:
        try:
            del new
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert file.read_bytes() == b"old"
    new.file.write(b" and half")
    new.close()
    assert file.read_bytes() == b"half and half"


def test_what_a_killed_process_left_goes(file: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            left = NewFile(str(file))
            left.file.write(b"new")
        finally:
            os._exit(0)  # as if it was killed
    os.waitpid(child, 0)
    assert len(names(file)) == 2 and file.read_bytes() == b"old"
    new = NewFile(str(file))
    assert len(names(file)) == 2  # the other one is gone
    new.discard()
    assert names(file) == ["file"] and file.read_bytes() == b"old"


def test_records_on_a_full_disk(file: Path) -> None:
    writer = td.io.TFRecordWriter(file)
    writer._new.file = Full(writer._new.file, 30)
    with pytest.raises(td.errors.ResourceExhaustedError, match="file"):
        for _ in range(3):
            writer.write(b"a record")
    with pytest.raises(td.errors.FailedPreconditionError):
        writer.write(b"more")
    with pytest.raises(td.errors.ResourceExhaustedError):
        writer.close()
    writer.close()
    assert file.read_bytes() == b"old" and names(file) == ["file"]


def test_an_error_in_the_block_of_a_writer_leaves_the_old_file(file: Path) -> None:
    with pytest.raises(KeyError), td.io.TFRecordWriter(file) as writer:
        writer.write(b"a record")
        raise KeyError
    assert file.read_bytes() == b"old" and names(file) == ["file"]
    with pytest.raises(KeyError), td.io.gfile.GFile(file, "w") as text:
        text.write("new")
        raise KeyError
    assert file.read_bytes() == b"old" and names(file) == ["file"]


def test_records_that_are_flushed_can_be_read(file: Path) -> None:
    writer = td.io.TFRecordWriter(file)
    writer.write(b"a record")
    writer.flush()
    (found,) = td.data.TFRecordDataset(file)
    assert found.numpy() == b"a record"
    writer.close()


def test_a_file_that_is_written_and_read_at_once(file: Path) -> None:
    with td.io.gfile.GFile(file, "w+") as text:
        text.write("a line\n")
        text.seek(0)
        assert text.readline() == "a line\n" and file.read_bytes() == b"old"
        text.flush()
        assert file.read_bytes() == b"a line\n" and text.size() == 7
    assert names(file) == ["file"]
