"""The memory of a run, and the words of the state table, in one function of a program."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from treadle.core.records import record
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.program_state import StateTable, fixed
from treadle.runtime.cpu.scopes import STATE, Scopes


class StateWords:
    """Loads words of the state table in one function of a program."""

    def __init__(self, fn: Function, table: StateTable, scopes: Scopes) -> None:
        self.fn, self.table, self.scopes = fn, table, scopes

    def word(self, kind: str, key: Hashable) -> str:
        """The address of something; the table gets a word for it."""
        return self._load(self.table.position(kind, key))

    def fixed(self, name: str) -> str:
        """The word with a name."""
        return self._load(fixed(name))

    def _load(self, position: int) -> str:
        place = self.fn.offset("%state", position, "ptr")
        return self.fn.value(f"load ptr, ptr {place}{self.scopes.of(STATE)}")


@record
class RunMemory:
    """The memory of a run, as one function of the program finds it.

    Attributes:
        status: what the program ends with.
        record: the record of the call (`program_poll`).
        lists, late: the first of the native lists, and of the arrays of sizes that were found out.
        wanted: how many bytes there was no memory for.
        frame_words: the addresses that the frame holds, as far as they are loaded.
        workspace: where temporary arrays lie; slot_offsets: those of a size that the call tells.
        held: the table of the variables' buffers, if the program holds them.
        held_positions: which words of it are the addresses of their elements, by number.
    """

    status: str
    record: str
    lists: str
    late: str
    wanted: str
    frame_words: dict[tuple[str, int], str] = field(default_factory=dict)
    workspace: str = ""
    slot_offsets: list[Word] = field(default_factory=list)
    held: str = ""
    held_positions: dict[int, int] = field(default_factory=dict)
