"""The device that programs are made for: the processor, where nobody says otherwise.

The compiler, programs on disk and what is begun early ask for a `Backend` here, and import nothing
of a device's package themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.runtime.backend import Backend

_in_use: list[Backend] = []  # the innermost `using` last


def backend() -> Backend:
    """The backend that programs are made for."""
    if _in_use:
        return _in_use[-1]
    from treadle.runtime.cpu.backend import cpu

    return cpu


class using:
    """``with using(backend):`` programs are made for another device.

    It holds for the whole process, and for programs that are made within it: a function that has
    its program already keeps it.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __enter__(self) -> Backend:
        _in_use.append(self.backend)
        return self.backend

    def __exit__(self, *exc: object) -> None:
        _in_use.remove(self.backend)
