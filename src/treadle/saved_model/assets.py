"""``td.saved_model.Asset``: a file that is saved with a model."""

from __future__ import annotations

import os
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor


class Asset:
    """A file that functions of a model read. `save` copies it, and functions of the loaded model
    find the copy.

    Args:
        path: the path of the file.
    """

    def __init__(self, path: Any) -> None:
        path = path.numpy().decode() if isinstance(path, Tensor) else path
        self._path = convert_to_tensor(os.fspath(path))

    @property
    def asset_path(self) -> Tensor:
        """The path, a scalar string. A function that uses it must use this very tensor."""
        return self._path

    def __repr__(self) -> str:
        return f"<Asset {self._path.numpy().decode()!r}>"
