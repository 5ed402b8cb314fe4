"""What a routine of the library for GPUs is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.shapes import Dim, substitute
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.finish import Ends, Finish
from treadle.runtime.reach import Reach


class Routine:
    """Computes a node.

    Attributes:
        name: what it does.
        replays: whether its work can be recorded: it neither takes memory of its own nor waits.
        workspace: bytes of memory that it needs beside its operands.
        launches: how many kernels the device runs for it.
        parts: routines that it is made of.
        reaches: which elements of its operands and results its numbers lead it to; None for those
            that it touches as a whole.
    """

    name: str
    replays: bool = True
    workspace: Dim = 0
    launches: Dim = 1
    parts: Sequence[Routine] = ()
    reaches: Sequence[Reach | None] = ()

    def prepare(self, driver: Driver) -> None:
        """Compile what it needs for a device, before it is called or recorded there."""

    def before_recording(
        self, driver: Driver, symbols: Mapping[str, int], finish: Finish | None
    ) -> None:
        """Have libraries take the memory and time that their first call needs: what is recorded
        next may be a branch that no call has taken yet.

        Args:
            symbols: values of the symbols in dims.
            finish: what the library is asked for as well, if it is.
        """

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        """Let the device compute the results.

        Args:
            inputs: arrays of `Driver.library` over the operands' elements; those of bfloat16 are
                arrays of uint16.
            outputs: arrays for the results, in row-major order.
            workspace: address of its workspace.
            symbols: values of the symbols in dims.
        """
        raise NotImplementedError

    def takes(self, finish: Finish) -> bool:
        """Whether a library of the device may compute the results and finish them at once."""
        return False

    def finished(
        self, driver: Driver, inputs: Sequence[Any], ends: Ends, workspace: int,
        symbols: Mapping[str, int],
    ) -> bool:  # fmt: skip
        """Let the device compute the results and finish them; False where no library of it does:
        nothing was done."""
        return False


def size_of(dim: Dim, symbols: Mapping[str, int]) -> int:
    """The value of a dim."""
    return dim if isinstance(dim, int) else int(substitute(dim, symbols))  # type: ignore[arg-type]


def address_of(array: Any) -> int:
    """Where the elements of an array of the device begin."""
    found = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(found["data"][0])
