"""The function ``i64 @run(ptr %state, ptr %frame)`` of a program, and the module around it.

Before the steps it checks what it is given, takes memory and lets other threads run; after them it
gives everything back, whatever the status is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.shapes import Dim
from treadle.kernel.ir import postorder
from treadle.runtime.cpu.abi import Layout
from treadle.runtime.cpu.elements import Elements, is_long
from treadle.runtime.cpu.emission import OPTIMIZE, STRAIGHT
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_blueprint import SHORT_WORK, Blueprint
from treadle.runtime.cpu.program_entry import DONE, NO_MEMORY, NOT_WRITABLE, WRONG_SHAPE, add_entry
from treadle.runtime.cpu.program_memory import add_workspace
from treadle.runtime.cpu.program_poll import (
    IDENT,
    LAST,
    PERIOD,
    PERIOD_NS,
    RECORD_WORDS,
    STOPPED,
    TABLE,
    clock,
)
from treadle.runtime.cpu.program_variables import Holding, unusable
from treadle.runtime.cpu.run_memory import RunMemory
from treadle.runtime.memory.plan import ALIGNMENT
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Evaluate, Loop

# Of a program whose code is improved although it is run once a call. LLVM takes four times as long
# to improve it, and a call of a step of 1,300 lines becomes a tenth of a microsecond shorter.
MOST_LINES = 400
MOST_LINES_OF_LOOPS = 20_000  # of one with loops: LLVM works 40 s on 120,000 lines, or 0.7
MOST_LINES_WITH_PARTS = 4000  # of one whose kernels are worth writing into its loops
STACK_BYTES = 16 << 10  # a workspace up to this size is part of the stack frame


def program_text(
    program: Blueprint, guards: Sequence[tuple[Dim, Dim]], steps: Mapping[type, Any],
    layout: Layout | None,
) -> str:  # fmt: skip
    """The text of a program's module.

    Args:
        guards: sizes, known when the program begins, that must be equal.
        steps: for each kind of step the function, of an emitter and the step, that writes it.
    """
    _Run(program, guards, steps).emit()
    module = program.module
    if layout is not None:
        add_entry(module, program.signature, layout)
    module.metadata += program.scopes.lines()
    text = module.text()
    lines = text.count("\n")
    if program.improved or (program.has_parts and lines <= MOST_LINES_WITH_PARTS):
        return OPTIMIZE + text
    loops = any(isinstance(s, Loop) for s in all_steps(program.block))
    most = MOST_LINES_OF_LOOPS if loops else MOST_LINES
    return STRAIGHT + text if lines > most else text


class _Run:
    """Writes the function `run`."""

    def __init__(
        self, program: Blueprint, guards: Sequence[tuple[Dim, Dim]], steps: Mapping[type, Any]
    ) -> None:
        self.program, self.fn = program, Function(program.module)
        self.guards = guards
        scalars = (s.expr for s in all_steps(program.block) if isinstance(s, Evaluate))
        outlined = is_long(e for s in scalars for e in postorder([s]))
        self.memory = self._memory()
        elements = Elements(self.fn, 0, outlined)
        self.emitter = Emitter(program, self.fn, self.memory, steps, elements)

    def _memory(self) -> RunMemory:
        """Words on the stack."""
        fn = self.fn
        status = fn.alloca("i64, align 8")
        record = fn.alloca(f"[{RECORD_WORDS} x i64], align 8")
        fn.emit(f"store i64 {DONE}, ptr {status}")
        lists = fn.alloca("ptr, align 8")
        fn.emit(f"store ptr null, ptr {lists}")
        late = fn.alloca("ptr, align 8")
        fn.emit(f"store ptr null, ptr {late}")
        return RunMemory(status, record, lists, late, fn.alloca("i64, align 8"))

    def emit(self) -> None:
        """The whole function."""
        fn, program, memory, places = self.fn, self.program, self.memory, self.emitter.places
        self._read_frame()
        self._check_shapes()
        self._check_writable()
        self._take_workspace()
        holding = None
        if program.holds:
            holding = Holding(fn, program.variables, set(program.written))
            memory.held, memory.held_positions = holding.table, holding.words
            holding.take([places.cell(n) for n in program.variables])
        if program.releases is not False:
            self._release_gil()
        self.emitter.emit_block(program.block)
        fn.enter("exit")
        if program.releases is not False:
            self._take_gil()
        if holding is not None:
            holding.give([places.cell(n) for n in program.variables])
        if self.takes_workspace:
            fn.emit(f"call void @give_workspace(ptr %state, ptr {memory.workspace})")
        if "free_lists" in program.module.functions:
            fn.emit(f"call void @free_lists(ptr %state, ptr {memory.lists})")
        if "late_free" in program.module.functions:
            fn.emit(f"call void @late_free(ptr %state, ptr {memory.late}, ptr null)")
        for buffer in places.grown:
            grown = fn.value(f"load ptr, ptr {buffer}")
            fn.emit(f"call void {self.emitter.state.fixed('free')}(ptr {grown})")
        fn.emit(f"ret i64 {fn.value(f'load i64, ptr {memory.status}')}")
        if program.most_table_words:
            words = f"[{program.most_table_words} x i64]"
            fn.entry.append(f"  %table.words = alloca {words}, align 8")
        fn.define("run", "i64 @{}(ptr %state, ptr %frame)")

    def _read_frame(self) -> None:
        """Load the addresses and the values of the symbols."""
        program, fn = self.program, self.fn
        if not program.is_large:
            for name, position in program.frame_positions.items():
                self.memory.frame_words[name] = fn.load_word("%frame", position, "ptr")
        first = len(program.frame_positions)
        for position, source in enumerate(program.signature.symbols, first):
            self.emitter.sizes.symbols[source.name] = fn.load_word("%frame", position)

    def _check_shapes(self) -> None:
        for a, b in self.guards:
            differs = self.fn.compare("ne", self.emitter.dim(a), self.emitter.dim(b))
            if differs is not False:
                self._return_if("true" if differs is True else differs, WRONG_SHAPE)

    def _check_writable(self) -> None:
        cells = {number: self.emitter.places.cell(number) for number in self.program.variables}
        word = unusable(self.fn, list(cells.values()), [cells[n] for n in self.program.written])
        if word is not None:
            self._return_if(self.fn.value(f"icmp ne i64 {word}, 0"), NOT_WRITABLE)

    def _return_if(self, condition: str, status: int) -> None:
        """Return before anything was taken."""
        fn = self.fn
        k = fn.unique()
        fn.fork(condition, f"leave{k}", f"stay{k}", likely=False)
        fn.label(f"leave{k}")
        fn.emit(f"ret i64 {status}")
        fn.label(f"stay{k}")

    def _take_workspace(self) -> None:
        """Memory for the temporary arrays: a part of the stack frame, where it is small."""
        fn, memory, plan = self.fn, self.memory, self.program.plan
        size: Word = plan.static_bytes
        for dim in plan.slot_sizes:
            memory.slot_offsets.append(size)
            padded = fn.add(self.emitter.sizes.bytes(dim), ALIGNMENT - 1)
            aligned = fn.value(f"and i64 {padded}, {-ALIGNMENT}")
            size = fn.add(size, aligned)
        on_stack = isinstance(size, int) and size <= STACK_BYTES
        self.takes_workspace = size != 0 and not on_stack
        if size == 0:
            memory.workspace = "null"
        elif on_stack:
            memory.workspace = fn.alloca(f"[{size} x i8], align {ALIGNMENT}")
        else:
            add_workspace(self.program.module)
            memory.workspace = fn.value(f"call ptr @take_workspace(ptr %state, i64 {size})")
            self._return_if(fn.value(f"icmp eq ptr {memory.workspace}, null"), NO_MEMORY)

    def _release_gil(self) -> None:
        """Let other Python threads run; the record holds this thread's state meanwhile."""
        fn, k, releases = self.fn, self.fn.unique(), self.program.releases
        record, fixed = self.memory.record, self.emitter.state.fixed
        loops = any(isinstance(s, Loop) for s in all_steps(self.program.block))
        if not isinstance(releases, bool):
            fn.emit(f"store ptr null, ptr {record}")
            long = fn.value(f"icmp sgt i64 {self.emitter.dim(releases)}, {SHORT_WORK}")
            fn.fork(long, f"release{k}", f"released{k}")
            fn.label(f"release{k}")
        save = fixed("PyEval_SaveThread")
        fn.emit(f"store ptr {fn.value(f'call ptr {save}()')}, ptr {record}")
        if not isinstance(releases, bool):
            fn.enter(f"released{k}")
        ident = fn.value(f"call i64 {fixed('PyThread_get_thread_ident')}()")
        known = {
            LAST: f"i64 {clock(self.emitter.state) if loops else 0}",
            PERIOD: f"i64 {PERIOD_NS}", STOPPED: "i64 0", TABLE: "ptr %state",
            IDENT: f"i64 {ident}",
        }  # fmt: skip
        for place, word in known.items():
            fn.emit(f"store {word}, ptr {fn.offset(record, place, 'i64')}, align 8")

    def _take_gil(self) -> None:
        fn, k, releases = self.fn, self.fn.unique(), self.program.releases
        thread = fn.value(f"load ptr, ptr {self.memory.record}")
        if not isinstance(releases, bool):
            kept = fn.value(f"icmp eq ptr {thread}, null")
            fn.fork(kept, f"taken{k}", f"take{k}")
            fn.label(f"take{k}")
        restore = self.emitter.state.fixed("PyEval_RestoreThread")
        fn.emit(f"call void {restore}(ptr {thread})")
        if not isinstance(releases, bool):
            fn.enter(f"taken{k}")
