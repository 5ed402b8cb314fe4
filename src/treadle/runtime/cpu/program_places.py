"""Where the arrays of a program are while it runs, and how large."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim, SymbolicDim, symbol_name
from treadle.runtime.cpu.llvm_text import Function, Word, float_text
from treadle.runtime.cpu.program_blueprint import Blueprint
from treadle.runtime.cpu.program_exits import Exits
from treadle.runtime.cpu.program_memory import MOST_BYTES, add_extend, add_grown, add_late
from treadle.runtime.cpu.run_memory import RunMemory, StateWords
from treadle.runtime.cpu.scopes import STATE
from treadle.runtime.schedule.steps import Place


class Sizes:
    """The values of dims in one function of a program.

    Attributes:
        symbols: the values of the symbols that are known.
    """

    def __init__(self, fn: Function, symbols: dict[str, str]) -> None:
        self.fn, self.symbols = fn, symbols

    def of(self, dim: Dim) -> Word:
        """The value of a dim."""
        return self.fn.dim(dim, self.symbols.__getitem__)

    def define(self, dims: Sequence[Dim], values: Sequence[str]) -> None:
        """Dims that are symbols without a value yet get one."""
        for dim, value in zip(dims, values, strict=True):
            name = symbol_name(dim)
            if name is not None:
                self.symbols.setdefault(name, value)

    def bytes(self, size: Dim) -> Word:
        """A size, or `MOST_BYTES` where it is more: products of large dims exceed 64 bits."""
        exact = self.of(size)
        if isinstance(exact, int) or not isinstance(size, SymbolicDim):
            return exact
        fn, total = self.fn, "0.0"
        for monomial, coefficient in size.terms:
            term = float_text(float(coefficient), 64)
            for atom in monomial:
                factor = self.of(SymbolicDim({(atom,): 1}))
                real = fn.value(f"sitofp i64 {factor} to double")
                term = fn.value(f"fmul double {term}, {real}")
            total = fn.value(f"fadd double {total}, {term}")
        fits = fn.value(f"fcmp ole double {total}, {float_text(float(MOST_BYTES), 64)}")
        return fn.select(fits, exact, MOST_BYTES)


class Places:
    """The addresses of places in one function of a program.

    Attributes:
        pointers: the addresses of places that are known.
        buffers: the growing buffer of the half of a pair that is written next.
        in_place: those of arrays that grow where they are, by the number of the place.
        grown: all growing buffers.
    """

    def __init__(
        self, program: Blueprint, fn: Function, memory: RunMemory, state: StateWords, sizes: Sizes,
        exits: Exits, pointers: dict[Place, str],
    ) -> None:  # fmt: skip
        self.program, self.fn, self.memory, self.state = program, fn, memory, state
        self.sizes, self.exits, self.pointers = sizes, exits, pointers
        self.buffers: dict[Place, str] = {}
        self.in_place: dict[int, str] = {}
        self.grown: list[str] = []

    def frame_word(self, kind: str, number: int) -> str:
        """The address of an argument, cell or output; large programs load it where it is used."""
        if self.program.is_large:
            return self.fn.load_word("%frame", self.program.frame_positions[kind, number], "ptr")
        return self.memory.frame_words[kind, number]

    def cell(self, number: int) -> str:
        """The address of a variable's cell."""
        if ("cell", number) in self.program.frame_positions:
            return self.frame_word("cell", number)
        return self.state.word("cell", number)

    def pointer(self, place: Place) -> str:
        """The address of a place."""
        known = self.pointers.get(place)
        if known is not None:
            return known
        match place.kind:
            case "argument" | "output":
                return self.frame_word(place.kind, place.number)
            case "constant":
                return self.state.word("constant", place.number)
            case "variable":
                return self._variable(place.number)
            case "late":
                self.pointers[place] = self._allocated(place)
                return self.pointers[place]
            case "grown'":
                size = self.sizes.bytes(place.bytes)
                self.pointers[place] = self.reserved(self.buffers[place], size)
                return self.pointers[place]
        plan, memory = self.program.plan, self.memory
        if place in plan.offsets:
            return self.fn.offset(memory.workspace, plan.offsets[place], "i8")
        return self.fn.offset(memory.workspace, memory.slot_offsets[plan.slots[place]], "i8")

    def _variable(self, number: int) -> str:
        """The address of a variable's elements."""
        if self.memory.held:
            cell = self.fn.offset(self.memory.held, self.memory.held_positions[number], "i64")
        else:
            cell = self.cell(number)
        return self.fn.value(f"load ptr, ptr {cell}{self.program.scopes.of(STATE)}")

    def _allocated(self, place: Place) -> str:
        """Memory for an array whose size has just become known; freed when the call ends, or the
        iteration of the loop around it."""
        add_late(self.program.module)
        size = self.sizes.bytes(place.bytes)
        places = f"ptr %state, ptr {self.memory.late}, ptr {self.memory.wanted}"
        return self.exits.obtained(f"@late_alloc({places}, i64 {size})")

    # ---- buffers that grow
    def new_buffer(self) -> str:
        """A growing buffer, which is freed when the call ends."""
        buffer = self.fn.alloca("[2 x i64], align 16", "[2 x i64] zeroinitializer")
        self.grown.append(buffer)
        return buffer

    def reserved(self, buffer: str, size: Word) -> str:
        """The memory of a growing buffer, made at least `size` bytes large."""
        add_grown(self.program.module)
        places = f"ptr %state, ptr {self.memory.wanted}, ptr {buffer}"
        return self.exits.obtained(f"@grown_reserve({places}, i64 {size})")

    def extended(self, place: Place, used: Word, size: Word) -> str:
        """The memory of a place that grows where it is, made `size` bytes large; the first `used`
        ones are kept."""
        add_extend(self.program.module)
        buffer = self.in_place[place.number]
        places = f"ptr %state, ptr {self.memory.wanted}, ptr {buffer}"
        return self.exits.obtained(f"@grown_extend({places}, i64 {used}, i64 {size})")
