"""The files of both CIFAR datasets: an archive of pickled dicts, or the folder that it has."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from treadle.keras.config import image_data_format, keras_home
from treadle.keras.datasets.files import ArrayUnpickler

_ORIGIN = "https://www.cs.toronto.edu/~kriz"


def batches(path: Any, archive: str, folder: str, names: list[str]) -> list[dict[str, Any]]:
    """The dicts of the files of an archive.

    Args:
        path: of the archive or of the folder; places in ``~/.keras/datasets`` when omitted.

    Raises:
        FileNotFoundError: neither is there.
    """
    home = Path(keras_home()) / "datasets"
    places = [home / f"{folder}-target" / folder, home / folder, home / archive,
              home / f"{folder}-target_archive"]  # fmt: skip
    if path is not None:
        places = [Path(path).expanduser() / folder, Path(path).expanduser()]
    place = next((p for p in places if p.exists()), None)
    if place is None:
        raise FileNotFoundError(
            f"Nothing is fetched from the network: put {_ORIGIN}/{archive} at "
            f"{path or home / archive}"
        )
    if place.is_dir():
        return [_dict((place / name).open("rb")) for name in names]
    with tarfile.open(place) as tar:
        files = [tar.extractfile(f"{folder}/{name}") for name in names]
        return [_dict(file) for file in files if file is not None]


def _dict(file: Any) -> dict[str, Any]:
    with file:
        data = ArrayUnpickler(file, encoding="bytes").load()
    return {key.decode(): value for key, value in data.items()}


def images(batch: list[dict[str, Any]], labels: str) -> tuple[Any, Any]:
    """Images and labels of several dicts."""
    pixels = np.concatenate([b["data"] for b in batch]).reshape(-1, 3, 32, 32)
    if image_data_format() == "channels_last":
        pixels = pixels.transpose(0, 2, 3, 1)
    numbers = np.concatenate([np.asarray(b[labels], np.uint8) for b in batch])
    return pixels.astype(np.uint8), numbers.reshape(-1, 1)
