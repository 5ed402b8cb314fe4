"""Objects of Python that keep themselves in checkpoints."""

from __future__ import annotations

import abc
from typing import Any


class PythonState(abc.ABC):
    """An object whose state a checkpoint keeps as a string: a class that derives from this says
    how. Checkpoints that TensorFlow wrote of such classes are read.
    """

    @abc.abstractmethod
    def serialize(self) -> bytes | str:
        """The state of the object; called when it is saved."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Take over a state that `serialize` gave; called when it is restored."""

    def _trackable_children(self) -> dict[str, Any]:
        return {}
