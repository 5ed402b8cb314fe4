"""``td.compat.v1.gfile``: files, with TensorFlow 1's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import treadle as td
from treadle.names import missing_in

GFile = FastGFile = Open = td.io.gfile.GFile
_of = td.io.gfile


def Exists(filename: Any) -> bool:
    """Whether there is such a file or folder."""
    return bool(_of.exists(filename))


def Remove(filename: Any) -> None:
    """Delete a file."""
    _of.remove(filename)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    _of.copy(oldpath, newpath, overwrite)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Rename a file or folder."""
    _of.rename(oldname, newname, overwrite)


def Glob(filename: Any) -> list[str]:
    """The files that a pattern fits."""
    return list(_of.glob(filename))


def IsDirectory(dirname: Any) -> bool:
    """Whether it is a folder."""
    return bool(_of.isdir(dirname))


def ListDirectory(dirname: Any) -> list[str]:
    """What is in a folder."""
    return list(_of.listdir(dirname))


def MakeDirs(dirname: Any) -> None:
    """Make a folder and those above it."""
    _of.makedirs(dirname)


def MkDir(dirname: Any) -> None:
    """Make a folder."""
    _of.mkdir(dirname)


def DeleteRecursively(dirname: Any) -> None:
    """Delete a folder and what is in it."""
    _of.rmtree(dirname)


def Stat(filename: Any) -> Any:
    """Size and times of a file."""
    return _of.stat(filename)


def Walk(top: Any, in_order: bool = True) -> Iterator[Any]:
    """Folders with what is in them."""
    return iter(_of.walk(top, in_order))

__getattr__ = missing_in(__name__)
