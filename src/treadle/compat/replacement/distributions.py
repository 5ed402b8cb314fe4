"""What `importlib.metadata` says of the packages that treadle stands for: libraries ask for
TensorFlow's version there before they import it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from typing import Any

import treadle


class _Replaced(Distribution):
    """A package by its name and version. It has no files of its own."""

    def __init__(self, name: str, version: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "top_level.txt": f"{name}\n",
        }

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: str | PathLike[str]) -> Any:
        return Path(treadle.__file__).parent / path


def found(versions: dict[str, str], context: DistributionFinder.Context) -> Iterator[Distribution]:
    """Those of some packages, by their versions, that somebody asks for: one by its name, or all.
    """
    for name, version in versions.items():
        asked = context.name
        if asked is None or asked.lower().replace("-", "_") == name:
            yield _Replaced(name, version)
