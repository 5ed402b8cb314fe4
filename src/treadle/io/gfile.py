"""``td.io.gfile``: files and folders of this machine, with TensorFlow's names and errors."""

from __future__ import annotations

import glob as patterns
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from treadle.core.errors import AlreadyExistsError, InvalidArgumentError, PermissionDeniedError
from treadle.core.file_errors import file_error
from treadle.core.origin import at, user_origin
from treadle.core.overwriting import NewFile
from treadle.names import missing_in

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Errors of the system as TensorFlow's."""
    try:
        yield
    except OSError as error:
        raise file_error(error, path) from None


class FileStatistics(NamedTuple):
    """What `stat` tells.

    Attributes:
        length: bytes.
        mtime_nsec: when the file was changed, in nanoseconds.
        is_directory: whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


class GFile:
    """A file, opened when it is first read or written.

    Usable as a context manager, and as an iterable of lines.

    A file with contents that is opened for writing ("w") stays as it is until the new one is closed
    or flushed without an error: a disk that gets full, and an error in the block of `with`, lose
    nothing of it.

    Args:
        name: the path.
        mode: "r", "w", "a", "r+", "w+" or "a+", with "b" for bytes in place of text.

    Raises:
        InvalidArgumentError: another mode.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        bare = mode.replace("b", "")
        if bare not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError(
                None, None, f"mode is not 'r' or 'w' or 'a', but {mode!r}{at(user_origin())}"
            )
        self._name, self._mode = os.fspath(name), mode
        self._binary, self._reads = "b" in mode, bare in ("r", "r+", "w+", "a+")
        self._writes = bare != "r"
        self._file: Any = None
        self._new: NewFile | None = None  # where the file is written from its beginning

    @property
    def name(self) -> Any:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def _opened(self, allowed: bool, what: str) -> Any:
        if not allowed:
            raise PermissionDeniedError(
                None, None, f"{self._name}: the file is not opened for {what}{at(user_origin())}"
            )
        if self._file is None:
            mode = self._mode.replace("b", "") + "b"
            with _errors(self._name):
                if mode[0] == "w":
                    self._new = NewFile(self._name, mode)
                    self._file = self._new.file
                else:
                    self._file = open(self._name, mode)  # noqa: SIM115
        return self._file

    def _given(self, data: bytes) -> Any:
        """Bytes of the file as the mode has them."""
        return data if self._binary else data.decode("utf-8")

    def read(self, n: int = -1) -> Any:
        """`n` bytes from here on, as text unless the mode is a binary one; all without `n`.

        Raises:
            NotFoundError: there is no such file.
            PermissionDeniedError: the file is opened for writing.
            UnicodeDecodeError: the bytes are no text, as where a character is cut in two.
        """
        file = self._opened(self._reads, "reading")
        with _errors(self._name):
            return self._given(file.read(n))

    def readline(self) -> Any:
        """The next line with its end; empty at the end of the file. Errors as for `read`."""
        file = self._opened(self._reads, "reading")
        with _errors(self._name):
            return self._given(file.readline())

    def readlines(self) -> list[Any]:
        """The lines that are left. Errors as for `read`."""
        return list(iter(self.readline, b"" if self._binary else ""))

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def write(self, file_content: Any) -> None:
        """Append text; bytes in a binary mode.

        Raises:
            PermissionDeniedError: the file is opened for reading, or may not be written.
            ResourceExhaustedError: the disk is full.
        """
        file = self._opened(self._writes, "writing")
        if isinstance(file_content, str):
            file_content = file_content.encode()
        with self._writing():
            file.write(file_content)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Errors of the system as TensorFlow's, after which what was written is not whole."""
        with _errors(self._name):
            try:
                yield
            except OSError:
                if self._new is not None:
                    self._new.discard()
                self._file = self._new = None
                raise

    def size(self) -> int:
        """The bytes of the file."""
        return stat(self._name).length

    def next(self) -> Any:
        """The next line.

        Raises:
            StopIteration: there is none.
        """
        return next(iter(self))

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go on at byte `offset` from the beginning (0), from here (1) or from the end (2);
        `position` is its older name."""
        given = offset if position is None else position
        if given is None:
            raise TypeError("seek(): offset argument required")
        file = self._opened(True, "")
        with _errors(self._name):
            start = {0: 0, 1: file.tell() if whence == 1 else 0, 2: 0}.get(whence)
            if start is None:
                raise InvalidArgumentError(
                    None, None, f"whence must be 0, 1 or 2, not {whence}{at(user_origin())}"
                )
            if whence == 2:
                start = file.seek(0, os.SEEK_END)
            if start + given < 0:
                raise InvalidArgumentError(
                    None, None,
                    f"{self._name}: byte {start + given} is before the file{at(user_origin())}",
                )  # fmt: skip
            file.seek(start + given)

    def tell(self) -> int:
        """The place in the file, in bytes."""
        file = self._opened(True, "")
        with _errors(self._name):
            return int(file.tell())

    def seekable(self) -> bool:
        """True."""
        return True

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._file is not None:
            with self._writing():
                if self._new is not None:
                    self._new.publish()
                else:
                    self._file.flush()

    def close(self) -> None:
        """End with this file; it opens again where it is used again."""
        file, new = self._file, self._new
        self._file = self._new = None
        if file is not None:
            with _errors(self._name):
                if new is not None:
                    new.close()
                else:
                    file.close()
        elif self._writes and self._mode[0] == "w" and not os.path.exists(self._name):
            with _errors(self._name), open(self._name, "wb"):
                pass  # a file opened for writing is there, also where nothing was written

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        if kind is not None and self._new is not None and self._new.replaces:
            self._new.discard()
            self._file = self._new = None
        else:
            self.close()


def exists(path: Any) -> bool:
    """Whether there is such a file or folder."""
    return os.path.exists(path)


def isdir(path: Any) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(path)


def join(path: Any, *paths: Any) -> Any:
    """The parts as one path, as ``os.path.join``."""
    return os.path.join(path, *paths)


def get_registered_schemes() -> list[str]:
    """The file systems that paths may name: this machine's."""
    return [""]


def glob(pattern: Any) -> list[str]:
    """The paths that fit a pattern of the shell, or one of a list of them."""
    given = pattern if isinstance(pattern, list | tuple) else [pattern]
    return [path for one in given for path in sorted(patterns.glob(os.fspath(one)))]


def listdir(path: Any) -> list[str]:
    """The names in a folder, in no order.

    Raises:
        NotFoundError: there is no such folder.
    """
    if not os.path.isdir(path):
        raise file_error(FileNotFoundError(2, "Could not find directory"), os.fspath(path))
    with _errors(os.fspath(path)):
        return os.listdir(path)


def mkdir(path: Any) -> None:
    """Make a folder in one that is there; nothing where it is there itself.

    Raises:
        NotFoundError: the folder for it is missing.
        AlreadyExistsError: there is a file of that name.
    """
    if not os.path.isdir(path):
        with _errors(os.fspath(path)):
            os.mkdir(path)


def makedirs(path: Any) -> None:
    """Make a folder and those that it is in; nothing where it is there."""
    with _errors(os.fspath(path)):
        os.makedirs(path, exist_ok=True)


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise AlreadyExistsError(
            None, None, f"{os.fspath(path)}; file already exists{at(user_origin())}"
        )


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy the contents of a file.

    Raises:
        NotFoundError: there is no such file.
        AlreadyExistsError: `dst` is there, and `overwrite` not set.
    """
    _check_free(dst, overwrite)
    with _errors(os.fspath(src)):
        shutil.copyfile(src, dst)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Give a file or folder another path.

    Raises:
        NotFoundError: there is no such file.
        AlreadyExistsError: `dst` is there, and `overwrite` not set.
    """
    _check_free(dst, overwrite)
    with _errors(os.fspath(src)):
        os.replace(src, dst)


def remove(path: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: there is no such file.
        FailedPreconditionError: it is a folder.
    """
    with _errors(os.fspath(path)):
        os.remove(path)


def rmtree(path: Any) -> None:
    """Delete a folder and all in it, or a file.

    Raises:
        NotFoundError: there is no such folder.
    """
    if os.path.isfile(path):
        remove(path)
        return
    with _errors(os.fspath(path)):
        shutil.rmtree(path)


def stat(path: Any) -> FileStatistics:
    """What is known of a file or folder.

    Raises:
        NotFoundError: there is no such file.
    """
    with _errors(os.fspath(path)):
        found = os.stat(path)
        return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[Exception], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, names of folders in it, names of files in it) for a folder and all below it.

    Args:
        topdown: a folder comes before those in it.
        onerror: called with the error of a folder that cannot be read; otherwise it is left out.
    """
    def told(error: OSError) -> None:
        if onerror is not None:
            onerror(file_error(error, os.fspath(error.filename or top)))

    yield from os.walk(top, topdown, told)


__getattr__ = missing_in(__name__)
