"""Values that travel with a tensor, such as its mask, for as long as the tensor is there."""

from __future__ import annotations

import weakref
from typing import Any


class Attachment:
    """One kind of value that tensors carry: `of` reads a tensor's, `attach` sets it."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def __len__(self) -> int:
        """How many tensors carry such a value."""
        return len(self._values)

    def of(self, tensor: Any) -> Any:
        """The value attached to a tensor, or None."""
        found = self._values.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def attach(self, tensor: Any, value: Any) -> None:
        """Attach a value to the tensor; None takes the attached value away."""
        key, values = id(tensor), self._values
        if value is None:
            values.pop(key, None)
            return

        def forget(reference: weakref.ref[Any]) -> None:
            # Another tensor may have got the id, and a value, before this is called.
            found = values.get(key)
            if found is not None and found[0] is reference:
                del values[key]

        values[key] = weakref.ref(tensor, forget), value
