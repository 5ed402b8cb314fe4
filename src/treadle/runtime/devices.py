"""The kinds of devices that programs are made for: one, the processor.

The compiler, programs on disk and what is begun early ask for a `Backend` here, and import nothing
of a device's package themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.runtime.backend import Backend


def backend() -> Backend:
    """The backend that programs are made for."""
    from treadle.runtime.cpu.backend import cpu

    return cpu
