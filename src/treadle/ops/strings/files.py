"""Files read into strings and written from them, in the order of the program."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.file_errors import file_error
from treadle.core.overwriting import NewFile
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.state import Variable
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor

_TAGS = STRINGS | {"quiet"}


def _path(filename: NDArray) -> str:
    if filename.ndim:
        raise invalid(f"a file's name is a scalar string, the shape is {list(filename.shape)}")
    return os.fsdecode(filename.item())


def _check_name(name: Spec) -> None:
    if name.dims:
        raise invalid(f"a file's name is a scalar string, the shape is {name.shape}")


def _infer_read(name: Spec) -> TensorSpec:
    _check_name(name)
    return TensorSpec((), dtypes.string)


def _read(filename: NDArray) -> NDArray:
    path = _path(filename)
    try:
        with open(path, "rb") as file:
            return np.array(file.read(), object)
    except OSError as error:
        raise file_error(error, path) from None


READ_FILE = register(Op("read_file", _infer_read, _read, effect="io", tags=_TAGS))


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file, a scalar string.

    Raises:
        NotFoundError: there is no such file; other errors of the system have their own types.
    """
    return run(READ_FILE, string_tensor(filename))  # type: ignore[no-any-return]


def _infer_write(name: Spec, contents: Spec) -> tuple[()]:
    _check_name(name)
    _check_name(contents)
    return ()


def _write(filename: NDArray, contents: NDArray) -> tuple[()]:
    path = _path(filename)
    if contents.ndim:
        raise invalid(f"contents are a scalar string, the shape is {list(contents.shape)}")
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        new = NewFile(path)
        try:
            new.file.write(contents.item())
            new.close()
        finally:
            new.discard()
    except OSError as error:
        raise file_error(error, path) from None
    return ()


WRITE_FILE = register(Op("write_file", _infer_write, _write, effect="io", tags=_TAGS))


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a scalar string into a file, whose folders are made where they are missing. A file that
    is there stays until the new one is whole.

    Raises:
        PermissionDeniedError: where the system does not allow it.
        ResourceExhaustedError: the disk is full.
    """
    run(WRITE_FILE, string_tensor(filename), string_tensor(contents))


def _matching(patterns: NDArray) -> NDArray:
    found = {
        os.fsencode(path)
        for pattern in patterns.reshape(-1).tolist()
        for path in glob.glob(os.fsdecode(pattern))
    }
    names = np.empty(len(found), object)
    names[:] = sorted(found)
    return names


MATCHING_FILES = register(
    Op(
        "matching_files", lambda patterns: TensorSpec((fresh_symbol("files"),), dtypes.string),
        _matching, effect="io", tags=_TAGS,
    )
)  # fmt: skip


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that fit a pattern of the shell, or one of several, sorted."""
    return run(MATCHING_FILES, string_tensor(pattern))  # type: ignore[no-any-return]


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A variable with the names of the files that fit a pattern of the shell, or one of several,
    as they are now."""
    return Variable(matching_files(pattern), trainable=False, name=name or "Variable")
