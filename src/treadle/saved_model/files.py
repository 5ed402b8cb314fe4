"""The files of a saved model: where they are, and whether they belong together.

The index names each of the other files with its size and a checksum: that of a file of safetensors
is one of its header, which has checksums of the arrays, so that these need not be read for it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from treadle.core import errors
from treadle.core.file_errors import file_error
from treadle.train.safetensors import SUFFIX

INDEX, GRAPHS, ASSETS = "saved_model.json", "graphs.txt", "assets"
CONSTANTS, VARIABLES = "constants", "variables/variables"  # prefixes of checkpoints
FORMAT, VERSION = "treadle.saved_model", 1
OF_TENSORFLOW, _TEXT_OF_TENSORFLOW = "saved_model.pb", "saved_model.pbtxt"
_MOST_TEXT = 1 << 28  # bytes of the index, of the graphs, and of a header of safetensors
_PIECE = 1 << 20


def contains_saved_model(export_dir: Any) -> bool:
    """Whether there is a model that `load` reads in the folder."""
    folder = os.fsdecode(export_dir)
    return any(os.path.isfile(os.path.join(folder, name)) for name in (INDEX, OF_TENSORFLOW))


def damaged(folder: Path, fault: object) -> errors.DataLossError:
    """The error that says that a model is damaged."""
    return errors.DataLossError(None, None, f"The saved model {folder} is damaged: {fault}")


def checksum(path: Path) -> str:
    """The checksum of a file, or of the header of a file of safetensors.

    Raises:
        NotFoundError and the like: it cannot be read.
    """
    found = 0
    try:
        with open(path, "rb") as file:
            left = os.fstat(file.fileno()).st_size
            if path.suffix == SUFFIX:
                left = min(left, 8 + min(_MOST_TEXT, int.from_bytes(file.read(8), "little")))
                file.seek(0)
            while left > 0 and (piece := file.read(min(left, _PIECE))):
                found = zlib.crc32(piece, found)
                left -= len(piece)
    except OSError as error:
        raise file_error(error, f"Could not read {path}") from error
    return f"{found:08x}"


def write_index(folder: Path, content: dict[str, Any], files: Iterable[str]) -> None:
    """Write the index of a folder.

    Args:
        content: plain data.
        files: the other files, which are there already.
    """
    head = {"format": FORMAT, "version": VERSION}
    sums = {name: checksum(folder / name) for name in files}
    sizes = {name: (folder / name).stat().st_size for name in files}
    whole = head | content | {"files": sums, "sizes": sizes}
    (folder / INDEX).write_text(json.dumps(whole | {"checksum": _own_checksum(whole)}, indent=1))


def _own_checksum(content: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def read_index(folder: Path) -> dict[str, Any]:
    """The index of a folder, compared with its checksum; the other files are those that it names.

    Raises:
        OSError: there is no saved model.
        UnimplementedError: it is of a newer version, or TensorFlow's as text.
        DataLossError: it is damaged.
    """
    path = folder / INDEX
    if not path.is_file():
        if (folder / _TEXT_OF_TENSORFLOW).exists():
            raise errors.UnimplementedError(
                None, None,
                f"{folder} is a SavedModel of TensorFlow as text ({_TEXT_OF_TENSORFLOW}), which is "
                f"not read: save it as {OF_TENSORFLOW}. td.train.Checkpoint reads its variables "
                f"from {folder / VARIABLES}",
            )  # fmt: skip
        raise OSError(f"SavedModel file does not exist at: {path}")
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_TEXT + 1)
    except OSError as error:
        raise file_error(error, f"Could not read {path}") from error
    if len(text) > _MOST_TEXT:
        raise damaged(folder, f"{INDEX} is too large")
    try:
        content = json.loads(text)
        if content.get("format") != FORMAT:
            raise ValueError(f"{INDEX} is no index of a saved model")
        version = content["version"]
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(folder, error) from None
    if not isinstance(version, int) or version > VERSION:
        raise errors.UnimplementedError(
            None, None,
            f"The saved model {folder} has version {version!r}, and this treadle reads versions up "
            f"to {VERSION}: load it with the treadle that wrote it, or a newer one",
        )  # fmt: skip
    stored = content.pop("checksum", None)
    if stored != _own_checksum(content):
        raise damaged(folder, f"{INDEX} does not fit its checksum")
    sizes = content.get("sizes", {})  # models that were saved before have none
    if not isinstance(sizes, dict):
        raise damaged(folder, f"{INDEX} has no sizes of files")
    for name, expected in content["files"].items():
        path = inside(folder, name)
        fits = _has_size(path, sizes.get(name), _MOST_TEXT if name == GRAPHS else None)
        if not fits or checksum(path) != expected:
            raise damaged(folder, f"{name} does not belong to {INDEX}, or was changed")
    return content  # type: ignore[no-any-return]


def _has_size(path: Path, expected: Any, most: int | None) -> bool:
    """Whether a file has the size that the index says; a file that is not there is told of when it
    is read. So a file that grew is not read at all."""
    try:
        size = path.stat().st_size
    except OSError:
        return True
    return (expected is None or size == expected) and (most is None or size <= most)


def inside(folder: Path, name: str) -> Path:
    """The path of a file that the index names.

    Raises:
        DataLossError: it would be outside of the folder.
    """
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and not set(name) & set("\\:\0")
    path = folder.joinpath(*parts) if plain else folder
    if not plain or not path.resolve().is_relative_to(folder.resolve()):
        raise damaged(folder, f"it names the file {name!r}, which is not inside of it")
    return path
