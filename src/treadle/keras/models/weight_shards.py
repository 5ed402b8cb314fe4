"""Weights in several files of Keras 3: an index ``NAME.weights.json`` beside files
``NAME_00000.weights.h5`` and so on, none of which has more than a given number of bytes of weights.

The index says in which files the weights of each layer are. A file has the groups and the numbers
of a whole one (`weight_files`), of its own weights only.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import treadle as td
from treadle.keras.models.weight_files import created, h5py, refuse_elsewhere
from treadle.train import atomic

SUFFIX = ".weights.json"
_GIB = 1024**3


class _Shards:
    """Numbered files in a folder, which are filled one after the other."""

    def __init__(self, folder: Path, base: str, most: float) -> None:
        self._folder, self._base, self._most = folder, base, most
        self._file: Any = None
        self._names: list[str] = []
        self._filled = 0
        self.total = 0

    def put(self, group: Any, name: str) -> str:
        """Copy an array of a group of another file, and give the name of the file that has it."""
        array = group[name]
        if array.nbytes > self._most:
            raise ValueError(
                f"save_weights: {array.name} has {array.nbytes} bytes, more than the "
                f"{int(self._most)} of max_shard_size: let that be greater"
            )
        self.total += array.nbytes
        self._filled += array.nbytes
        if self._file is None or self._filled > self._most:
            self._start()
            self._filled = array.nbytes
        made = self._file.require_group(group.name)
        made.attrs.update(group.attrs)
        group.copy(array, made, name)
        return self._names[-1]

    def _start(self) -> None:
        self.close()
        self._names.append(f"{self._base}_{len(self._names):05}.weights.h5")
        self._file = created(self._folder / self._names[-1])

    def close(self) -> None:
        """End the file that is filled now."""
        if self._file is not None:
            self._file.close()


def write(whole: Any, index: Path, most: float) -> None:
    """Write what an open HDF5 file of weights has into several files.

    Args:
        index: the path of the index, which counts once all other files are on the disk.
        most: how many GiB of weights a file may have.

    Raises:
        ValueError: one weight alone has more.
    """

    def into(folder: Path) -> None:
        shards = _Shards(folder, index.name.removesuffix(SUFFIX), most * _GIB)
        places: dict[str, list[str]] = {}
        try:
            for group in _groups(whole):
                for name in sorted(group, key=lambda n: (len(n), n)):
                    file, known = shards.put(group, name), places.setdefault(group.name, [])
                    if file not in known:
                        known.append(file)
        finally:
            shards.close()
        found = {
            "metadata": {"total_size": shards.total},
            "weight_map": {k: v[0] if len(v) == 1 else v for k, v in places.items()},
        }
        (folder / index.name).write_text(json.dumps(found, indent=4))

    atomic.write_folder(index.parent, into, index.name, "weights")


def _groups(file: Any) -> Iterator[Any]:
    """The groups of a file that have arrays, in the order in which they were made."""
    found: list[Any] = []
    file.visititems(lambda _, item: found.append(item) if _has_arrays(item) else None)
    return iter(found)


def _has_arrays(item: Any) -> bool:
    return hasattr(item, "keys") and any(hasattr(item[name], "dtype") for name in item)


@contextlib.contextmanager
def opened(index: Path) -> Iterator[Any]:
    """What the files of an index have, as one open HDF5 file in memory.

    Raises:
        NotFoundError: the index or a file that it names is not there.
        DataLossError: one of them is damaged.
    """
    try:
        places = json.loads(index.read_text())["weight_map"]
        listed = {k: v if isinstance(v, list) else [v] for k, v in places.items()}
        with h5py().File("weights", "w", driver="core", backing_store=False) as whole:
            for name in dict.fromkeys(name for names in listed.values() for name in names):
                if Path(name).name != name:
                    raise td.errors.DataLossError(
                        None, None, f"{index} names {name!r}, which is not in its folder"
                    )
                groups = [group for group, names in listed.items() if name in names]
                _copy(index.with_name(name), groups, whole)
            yield whole
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise td.errors.DataLossError(None, None, f"{index} is damaged: {error}") from None
    except OSError as error:
        raise atomic.file_error(error, f"Could not read weights {index}") from error


def _copy(path: Path, groups: list[str], whole: Any) -> None:
    """Copy the arrays of some groups of a file."""
    if not path.exists():
        raise td.errors.NotFoundError(None, None, f"There is no {path}, which its index names")
    try:
        with h5py().File(path, "r") as file:
            refuse_elsewhere(file, str(path))
            for group in groups:
                made = whole.require_group(group)
                made.attrs.update(file[group].attrs)
                for name in file[group]:
                    file.copy(file[group][name], made, name)
    except (OSError, KeyError, RuntimeError) as error:
        raise td.errors.DataLossError(None, None, f"{path} is damaged: {error}") from None
