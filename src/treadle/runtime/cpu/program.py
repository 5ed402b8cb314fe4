"""One function of a program while it is written: where values are in it, and what steps become.

`program_run` writes the function `run`, and the other `program_*` modules the kinds of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.graph.ir import Value
from treadle.kernel.ir import Expr
from treadle.runtime.cpu.contraction import Contraction
from treadle.runtime.cpu.elements import Elements, alignment, stored_type
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.program_blueprint import Blueprint
from treadle.runtime.cpu.program_exits import Exits
from treadle.runtime.cpu.program_places import Places, Sizes
from treadle.runtime.cpu.run_memory import RunMemory, StateWords
from treadle.runtime.cpu.scopes import Group
from treadle.runtime.schedule.steps import Block, Operand, Place, Position, Step


class Emitter:
    """Writes steps into one function of a program, and knows where values are in it.

    Attributes:
        program: what the functions of the program share.
        fn: the function's text.
        memory: the memory of the run, as the function finds it.
        state: loads words of the state table.
        sizes: the values of the symbols in dims.
        places: where arrays are.
        exits: the ways out of the program.
        elements: operations on rank-0 values, which `registers` has.
        contraction: which products and sums are one operation.
        selections: registers of rank-0 values that are one of two values.
        sought: values that a later step of the block being written checks as positions, with the
            sizes of their axes.
        positions: (position, size) -> the position from the beginning, once it is checked.
        inside: steps whose positions were checked before the loop that is being written.
        kept: loads that were done before it, with the registers.
        loops: how many loops with polls of their own are around the step being written.
        decided: bools that are something else in the version of a loop that is being written, with
            the registers.
        group: its accesses, if its iterations are independent.
    """

    def __init__(
        self, program: Blueprint, fn: Function, memory: RunMemory, steps: Mapping[type, Any],
        elements: Elements, is_first: str = "", depth: int = 0,
        registers: dict[Value, str] | None = None, pointers: dict[Place, str] | None = None,
        symbols: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            steps: for each kind of step the function, of this and the step, that writes it.
            is_first: in code that several threads run: whether this is the first one.
            depth: the loops around the function (`Contraction.depth`).
            registers, pointers, symbols: what is known of the values before the function begins.
        """
        self.program, self.module, self.fn, self.memory = program, program.module, fn, memory
        self.steps, self.elements = steps, elements
        self.contraction = Contraction(program.has_fma, depth)
        self.state = StateWords(fn, program.table, program.scopes)
        self.sizes = Sizes(fn, {} if symbols is None else symbols)
        self.exits = Exits(program, fn, memory, self.state, is_first)
        self.places = Places(
            program, fn, memory, self.state, self.sizes, self.exits,
            {} if pointers is None else pointers,
        )  # fmt: skip
        self.registers: dict[Value, str] = {} if registers is None else registers
        self.selections: set[str] = set()
        self.sought: dict[Value, Dim] = {}
        self.positions: dict[tuple[str, str], str] = {}
        self.inside: frozenset[Step] = frozenset()
        self.group: Group | None = None
        self.kept: dict[tuple[Step, Expr], str] = {}
        self.loops = 0
        self.decided: dict[Value, str] = {}
        self._slots: dict[Value, str] = {}

    def emit_block(self, block: Block) -> None:
        """All steps of a block."""
        before, sought = self.exits.step, self.sought
        self.sought = {s.source.value: s.size for s in block.steps if isinstance(s, Position)}
        for step in block.steps:
            self.exits.step = step
            if self.program.timer is None:
                self.emit_step(step)
            else:
                self.program.timer.emit(self, step)
        self.exits.step, self.sought = before, sought

    def emit_step(self, step: Step) -> None:
        """The code of a step alone."""
        self.steps[type(step)](self, step)

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """What is found out inside about sizes and positions does not hold afterwards: the code
        belongs to a branch, or to an iteration."""
        symbols, positions = dict(self.sizes.symbols), dict(self.positions)
        yield
        self.sizes.symbols, self.positions = symbols, positions

    # ---- sizes and places
    def dim(self, dim: Dim) -> Word:
        """The value of a dim."""
        return self.sizes.of(dim)

    def define_symbols(self, dims: Sequence[Dim], values: Sequence[str]) -> None:
        """Dims that are symbols without a value yet get one."""
        self.sizes.define(dims, values)

    def pointer(self, place: Place) -> str:
        """The address of a place."""
        return self.places.pointer(place)

    # ---- rank-0 values in memory
    def slot(self, value: Value) -> str:
        """Memory for a rank-0 value."""
        if value not in self._slots:
            words = max(1, value.spec.dtype.size // 8)
            self._slots[value] = self.fn.alloca(f"[{words} x i64], align 8")
        return self._slots[value]

    def operand_pointer(self, operand: Operand) -> str:
        """The address of an operand; a register is stored first."""
        if operand.place is not None:
            return self.pointer(operand.place)
        slot = self.slot(operand.value)
        self.store_scalar(self.registers[operand.value], operand.value.spec.dtype, slot)
        return slot

    def load_scalar(self, pointer: str, dtype: DType, place: Place | None = None) -> str:
        """Read an element of a place."""
        ending = self._ending(dtype, place)
        loaded = self.fn.value(f"load {stored_type(dtype)}, ptr {pointer}, {ending}")
        return self.elements.from_memory(loaded, dtype)

    def store_scalar(
        self, register: str, dtype: DType, pointer: str, place: Place | None = None
    ) -> None:
        """Write an element of a place."""
        stored = self.elements.to_memory(register, dtype)
        ending = self._ending(dtype, place)
        self.fn.emit(f"store {stored_type(dtype)} {stored}, ptr {pointer}, {ending}")

    def _ending(self, dtype: DType, place: Place | None) -> str:
        scope = "" if place is None else self.program.scopes.of(place)
        group = "" if self.group is None else self.group.access
        return f"align {alignment(dtype)}{scope}{group}"
