"""How a program is called: the order of its arguments and results, and the source of its sizes."""

from __future__ import annotations

from dataclasses import field

from treadle.core.records import record
from treadle.runtime.symbols import SymbolSource


@record
class Signature:
    """How a program is called.

    Attributes:
        arguments: numbers of the array parameters, in frame order.
        cells: numbers of the variables that are passed at the call.
        outputs: numbers of the results that the caller makes room for; the others are delivered.
        symbols: where the symbolic dims come from.
    """

    arguments: list[int]
    cells: list[int]
    outputs: list[int]
    symbols: list[SymbolSource] = field(default_factory=list)

    @property
    def words(self) -> int:
        """Words of a frame: addresses of arguments, cells and outputs, then the symbols."""
        return len(self.arguments) + len(self.cells) + len(self.outputs) + len(self.symbols)
