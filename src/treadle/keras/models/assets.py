"""What layers keep in archives beside weights: vocabularies, in files of their own.

A layer with ``save_assets`` writes files into a folder, which is ``assets`` and the layer's path in
an archive; ``load_assets`` reads them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from treadle.keras.layers.base import Layer
from treadle.keras.models import weight_files

_PLACE = "assets"


def is_name(name: str) -> bool:
    """Whether a name in an archive is that of an asset, and of nothing outside its folder."""
    parts = PurePosixPath(name).parts
    return parts[:1] == (_PLACE,) and ".." not in parts and not name.endswith("/")


def names_in(folder: Path) -> list[str]:
    """The assets of an archive that is a folder."""
    found = (path for path in sorted((folder / _PLACE).rglob("*")) if path.is_file())
    return [path.relative_to(folder).as_posix() for path in found]


def of(model: Any) -> dict[str, bytes]:
    """The assets of a model's layers, by their names in an archive."""
    found = {}
    for place, layer in _layers(model, "save_assets"):
        with tempfile.TemporaryDirectory() as own:
            layer.save_assets(own)
            for path in sorted(Path(own).rglob("*")):
                if path.is_file():
                    name = PurePosixPath(place, path.relative_to(own).as_posix())
                    found[str(name)] = path.read_bytes()
    return found


def give(model: Any, parts: Mapping[str, bytes]) -> None:
    """Let a model's layers read their assets.

    Args:
        parts: what an archive holds, by names.
    """
    for place, layer in _layers(model, "load_assets"):
        own = {
            PurePosixPath(name).relative_to(place): content
            for name, content in parts.items()
            if is_name(name) and PurePosixPath(name).is_relative_to(place)
        }
        if not own:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for path, content in own.items():
                Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, path).write_bytes(content)
            layer.load_assets(folder)


def _layers(model: Any, method: str) -> Iterator[tuple[str, Any]]:
    """The layers that have a method, and the folders of their assets."""
    for path, value in weight_files.walk(model, "", set()):
        if isinstance(value, Layer) and hasattr(value, method):
            yield str(PurePosixPath(_PLACE, path)), value
