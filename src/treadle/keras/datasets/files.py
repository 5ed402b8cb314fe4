"""Files of datasets: where they are, and arrays in them that are read without running code."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from treadle.keras.config import keras_home

# All that pickled arrays name. Anything else would be code of the file's author.
_ALLOWED = {
    ("_codecs", "encode"), ("numpy", "dtype"), ("numpy", "ndarray"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core")
      for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
}  # fmt: skip


class ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, numbers, texts, lists and dicts of pickles, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """What builds arrays.

        Raises:
            pickle.UnpicklingError: the file names anything else.
        """
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"The file names {module}.{name}, which belongs to no array: it is not read, as "
                "it could run code"
            )
        return super().find_class(module, name)


def found(path: Any, origin: str, *, folder: str = "", cache: str = "datasets") -> Path:
    """A file, by its path or by its name among Keras's.

    Args:
        path: a path, or the name of a file in ``~/.keras/datasets``.
        origin: where it may be fetched from.
        folder: the folder there that has it.
        cache: the folder of ``~/.keras`` instead of ``datasets``.

    Raises:
        FileNotFoundError: it is in neither place.
    """
    place = Path(keras_home()) / cache / folder / Path(path).name
    for candidate in (Path(path).expanduser(), place):
        if candidate.exists() and (candidate.is_absolute() or os.sep in str(path)):
            return candidate
    raise FileNotFoundError(
        f"Nothing is fetched from the network: put {origin} at {place}, or give the file's path"
    )


def arrays(path: Path) -> Mapping[str, Any]:
    """The arrays of an .npz archive by their names, lists among them."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            data = io.BytesIO(archive.read(entry))
            version = np.lib.format.read_magic(data)
            read = (np.lib.format.read_array_header_1_0 if version == (1, 0)
                    else np.lib.format.read_array_header_2_0)  # fmt: skip
            _, _, dtype = read(data)
            if dtype.hasobject:
                array = ArrayUnpickler(data, encoding="latin1").load()
            else:
                data.seek(0)
                array = np.lib.format.read_array(data, allow_pickle=False)
            result[entry.removesuffix(".npy")] = array
    return result


def shuffled(seed: int, *columns: Any) -> list[Any]:
    """Arrays of one length in the order that NumPy's old generator gives for a seed."""
    order = np.arange(len(columns[0]))
    np.random.RandomState(seed).shuffle(order)
    return [column[order] for column in columns]


def parted(x: Any, y: Any, test_split: float) -> Any:
    """The first examples for training and the last ones for tests."""
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])


def table(path: Any, origin: str, test_split: float, seed: int, count: int | None = None) -> Any:
    """``((x_train, y_train), (x_test, y_test))`` of an archive with x and y.

    Args:
        count: take the first so many rows only.

    Raises:
        ValueError: `test_split` is no part.
    """
    if not 0 <= test_split < 1:
        raise ValueError(
            f"Invalid `test_split` argument: {test_split}. It must be between 0 and 1 (exclusive "
            "of 1)."
        )
    data = arrays(found(path, origin))
    x, y = shuffled(seed, data["x"][:count], data["y"][:count])
    return parted(x, y, test_split)
