"""Checkpoints on disk, of treadle and of TensorFlow, looked into by the names of their values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from treadle.core import errors
from treadle.core.dtypes import DType
from treadle.train.bundle import BundleReader
from treadle.train.nodes import Node, all_in_range
from treadle.train.own_files import OwnReader
from treadle.train.safetensors import SUFFIX, Array
from treadle.train.state_file import latest_checkpoint


class File(Protocol):
    """A checkpoint of one of the formats."""

    name: str
    nodes: list[Node] | None
    texts: dict[str, str]

    def entries(self) -> dict[str, tuple[tuple[int, ...], DType]]: ...
    def read(self, name: str) -> Array: ...


def open_file(prefix: str) -> File:
    """The checkpoint of a prefix, treadle's own where there are two; or a file of safetensors.

    Raises:
        NotFoundError: there is none.
        DataLossError: it is damaged.
        PermissionDeniedError and the like: it cannot be read.
    """
    found: File
    if os.path.exists(prefix + SUFFIX):
        found = OwnReader(Path(prefix + SUFFIX))
    elif os.path.exists(prefix + ".index"):
        found = BundleReader(prefix)
    elif prefix.endswith(SUFFIX) and os.path.isfile(prefix):
        found = OwnReader(Path(prefix))
    else:
        raise errors.NotFoundError(
            None, None,
            f"There is no checkpoint {prefix}: neither {prefix}{SUFFIX} nor TensorFlow's "
            f"{prefix}.index is there",
        )  # fmt: skip
    if found.nodes is not None and not all_in_range(found.nodes):
        raise errors.DataLossError(
            None, None, f"{found.name} is damaged: its graph of objects does not fit together"
        )
    return found


class CheckpointReader:
    """The values of a checkpoint by their names. `load_checkpoint` makes one."""

    def __init__(self, prefix: str) -> None:
        self._file = open_file(prefix)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all values, as lists."""
        return {name: list(shape) for name, (shape, _) in self._file.entries().items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtypes of all values."""
        return {name: dtype for name, (_, dtype) in self._file.entries().items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a value of that name."""
        return tensor_str in self._file.entries()

    def get_tensor(self, tensor_str: str) -> Any:
        """A value as an array; of one string, bytes.

        Raises:
            NotFoundError: there is none of that name.
            DataLossError: it is damaged.
        """
        if not self.has_tensor(tensor_str):
            raise errors.NotFoundError(
                None, None, f"Key {tensor_str} not found in checkpoint {self._file.name}"
            )
        value = self._file.read(tensor_str)
        return value if value.ndim else value[()]

    def debug_string(self) -> bytes:
        """A line for each value: its name, dtype and shape."""
        lines = (
            f"{name} ({dtype.name}) {list(shape)}\n"
            for name, (shape, dtype) in sorted(self._file.entries().items())
        )
        return "".join(lines).encode()


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader of the checkpoint of a prefix, or of the latest one in a directory.

    Raises:
        ValueError: there is no checkpoint in the directory.
        NotFoundError: there is none of that prefix.
        DataLossError: it is damaged.
    """
    prefix = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(prefix):
        found = latest_checkpoint(prefix)
        if found is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in given directory {prefix}"
            )
        prefix = found
    return CheckpointReader(prefix)


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """A value of a checkpoint as an array; `load_checkpoint` says which errors there are.

    Args:
        name: as `list_variables` gives it, with or without ``:0`` behind.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """The names and shapes of all values of a checkpoint, sorted by name; `load_checkpoint` says
    which errors there are."""
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return sorted(shapes.items())
