"""A whole schedule as one native function."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.switches import is_on
from treadle.graph.ir import Value
from treadle.kernel.ir import Expr, postorder
from treadle.runtime.cpu.abi import Layout
from treadle.runtime.cpu.contraction import Contraction
from treadle.runtime.cpu.elements import Elements, alignment, is_long, stored_type
from treadle.runtime.cpu.emission import OPTIMIZE, STRAIGHT
from treadle.runtime.cpu.llvm_text import Function, Module, Word, float_text
from treadle.runtime.cpu.program_entry import (
    DONE,
    EXHAUSTED,
    INTERRUPTED,
    NO_MEMORY,
    NOT_WRITABLE,
    WRONG_SHAPE,
    add_entry,
)
from treadle.runtime.cpu.program_memory import (
    MOST_BYTES,
    add_extend,
    add_grown,
    add_late,
    add_workspace,
)
from treadle.runtime.cpu.program_poll import (
    IDENT,
    LAST,
    PERIOD,
    PERIOD_NS,
    RECORD_WORDS,
    STOPPED,
    TABLE,
    add_poll,
)
from treadle.runtime.cpu.program_state import StateTable, fixed
from treadle.runtime.cpu.program_variables import Holding, unusable
from treadle.runtime.cpu.scopes import STATE, Group, Scopes
from treadle.runtime.cpu.target import Target
from treadle.runtime.memory.plan import ALIGNMENT, Plan
from treadle.runtime.schedule.lists import ElementDims
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Block,
    Evaluate,
    Exhausted,
    Launch,
    Loop,
    Operand,
    Place,
    SegmentedLaunch,
    Step,
)
from treadle.runtime.signature import Signature
from treadle.runtime.symbols import plain_symbol

SHORT_WORK = 50_000  # element operations, some ten microseconds, for which a program keeps the GIL
MOST_OPERANDS = 1000  # of the launches of a program whose code stores each one
MOST_LINES = 10_000  # of a program whose code is improved although it is run once a call
STACK_BYTES = 16 << 10  # a workspace up to this size is part of the stack frame


class Emitter:
    """Emits ``i64 @run(ptr %state, ptr %frame)``; `program_*` modules add the kinds of steps."""

    def __init__(
        self, target: Target, workers: int, block: Block, plan: Plan, signature: Signature,
        guards: Sequence[tuple[Dim, Dim]], written: Sequence[int], releases: bool | Dim,
        variables: Sequence[int] = (), holds: bool = False, whole: Collection[int] = (),
    ) -> None:  # fmt: skip
        """
        Args:
            written: numbers of the variables that the program writes.
            releases: whether the GIL is released; a dim: where it exceeds `SHORT_WORK`.
            variables: numbers of all its variables.
            holds: whether other threads may use these meanwhile.
            whole: numbers of those whose values are never left half written.
        """
        self.module = Module(target)
        self.workers = workers
        self.fn = Function(self.module)
        scalars = (s.expr for s in all_steps(block) if isinstance(s, Evaluate))
        self.elements = Elements(self.fn, 0, is_long(e for s in scalars for e in postorder([s])))
        self.contraction = Contraction(target.has_fma and is_on("contraction"))
        self.scopes = Scopes(plan)
        self.table = StateTable()
        self.block, self.plan, self.signature = block, plan, signature
        self.guards = guards
        self.written, self.variables, self.holds = written, variables, holds
        self.whole = whole
        self.asks = any(isinstance(s, Loop) for s in all_steps(block))  # for Ctrl-C
        self.held = ""  # the table of the buffers that are held
        self.releases = releases
        self.improved = False  # whether LLVM's passes are worth their time
        self.native_lists = False
        self.element_dims: dict[Value, ElementDims] = {}  # of native lists
        self.registers: dict[Value, str] = {}
        # (position, size) -> the position from the beginning, where a check is known to be done
        self.positions: dict[tuple[str, str], str] = {}
        self.inside: frozenset[Step] = frozenset()  # positions that were checked before the loop
        self.group: Group | None = None  # of the loop that is emitted, if its iterations are apart
        self.kept: dict[tuple[Step, Expr], str] = {}  # loads that were done before the loop
        self.pointers: dict[Place, str] = {}  # of arguments, outputs and pairs
        self.symbols: dict[str, str] = {}
        self.buffers: dict[Place, str] = {}  # of the growing half that is written next
        self.grown: list[str] = []  # all growing buffers
        self.in_place: dict[int, str] = {}  # those that are updated in place, by place number
        self.slots: dict[Value, str] = {}
        self.workspace = ""
        self.size: Word = 0
        self.frame_words: dict[tuple[str, int], str] = {}
        self.frame_positions: dict[tuple[str, int], int] = {}
        self.is_large = _is_large(block)
        self.most_table_words = 0
        self.callbacks: list[Step] = []
        self.step: Step | None = None  # what is being emitted
        self.refusals: dict[Step, int] = {}  # step -> the callback for when it gets no memory
        self.is_first = ""  # in code that several threads run: whether this is the first one
        self.scratch_words = 0

    # ---- the function as a whole
    def emit(self, emitters: Mapping[type, Any], layout: Layout | None) -> str:
        """The text of the program's module.

        Args:
            emitters: for each kind of step the function, of this and the step, that emits it.
        """
        self.emitters = emitters
        fn = self.fn
        self.status = fn.alloca("i64, align 8")
        self.record = fn.alloca(f"[{RECORD_WORDS} x i64], align 8")
        fn.emit(f"store i64 {DONE}, ptr {self.status}")
        self.chain = fn.alloca("ptr, align 8")
        fn.emit(f"store ptr null, ptr {self.chain}")
        self.late = fn.alloca("ptr, align 8")
        fn.emit(f"store ptr null, ptr {self.late}")
        self.wanted = fn.alloca("i64, align 8")
        self._read_frame()
        self._check_shapes()
        self._check_writable()
        self._take_workspace()
        holding = Holding(fn, self.variables, set(self.written)) if self.holds else None
        if holding is not None:
            self.held, self.held_position = holding.table, holding.word
            holding.take([self.cell(n) for n in self.variables])
        if self.releases is not False:
            self._release_gil()
        self.emit_block(self.block)
        fn.branch("exit")
        fn.label("exit")
        if self.releases is not False:
            self._take_gil()
        if holding is not None:
            holding.give([self.cell(n) for n in self.variables])
        self._give_workspace()
        if "free_lists" in self.module.functions:
            fn.emit(f"call void @free_lists(ptr %state, ptr {self.chain})")
        if "late_free" in self.module.functions:
            fn.emit(f"call void @late_free(ptr %state, ptr {self.late}, ptr null)")
        for buffer in self.grown:
            memory = fn.value(f"load ptr, ptr {buffer}")
            fn.emit(f"call void {self.fixed_word('free')}(ptr {memory})")
        fn.emit(f"ret i64 {fn.value(f'load i64, ptr {self.status}')}")
        if self.most_table_words:
            words = f"[{self.most_table_words} x i64]"
            fn.entry.append(f"  %table.words = alloca {words}, align 8")
        fn.define("run", "i64 @{}(ptr %state, ptr %frame)")
        if self.asks:
            add_poll(self.module)
        if layout is not None:
            add_entry(self.module, self.signature, layout)
        self.module.metadata = self.scopes.lines()
        text = self.module.text()
        if self.improved:
            return OPTIMIZE + text
        is_long = text.count("\n") > MOST_LINES
        straight = is_long and not any(isinstance(s, Loop) for s in all_steps(self.block))
        return STRAIGHT + text if straight else text

    def emit_block(self, block: Block) -> None:
        """All steps of a block."""
        before = self.step
        for step in block.steps:
            self.step = step
            self.emitters[type(step)](self, step)
        self.step = before

    def fail_if(self, condition: str, status: int | str) -> None:
        """Leave the program with a status where an i1 holds."""
        fn = self.fn
        k = fn.unique()
        fn.emit(f"br i1 {condition}, label %fail{k}, label %go{k}, !prof !1")
        fn.label(f"fail{k}")
        fn.emit(f"store i64 {status}, ptr {self.status}")
        fn.branch("exit")
        fn.label(f"go{k}")

    def obtained(self, call: str) -> str:
        """The memory that a function gives; the program ends where that is null."""
        pointer = self.fn.value(f"call ptr {call}")
        self.leave_unless(self.fn.value(f"icmp ne ptr {pointer}, null"))
        return pointer

    def leave_unless(self, obtained: str) -> None:
        """Leave the program where an i1 says that the current step got no memory. Python is told
        how much; it need not have the memory to listen."""
        if self.is_first:  # what several threads run has its memory from before
            return
        fn, step = self.fn, self.step
        assert step is not None
        if step not in self.refusals:
            self.refusals[step] = len(self.callbacks)
            self.callbacks.append(Exhausted(step))
        k = fn.unique()
        fn.emit(f"br i1 {obtained}, label %got{k}, label %lacks{k}, !prof !2")
        fn.label(f"lacks{k}")
        callback = self.fixed_word("callback")
        words = f"i64 {self.refusals[step]}, ptr {self.wanted}, ptr %frame"
        fn.value(f"call i64 {callback}({words})")
        fn.emit(f"store i64 {EXHAUSTED}, ptr {self.status}")
        fn.branch("exit")
        fn.label(f"got{k}")

    def call_of(self, step: Step) -> str:
        """The record of the call where a step may end before its work is done, else null: what it
        writes must not be needed then."""
        if self.releases is False or self.is_first:
            return "null"
        if any(p.kind == "variable" and p.number in self.whole for p in step.writes):
            return "null"
        self.asks = True
        return self.record

    def leave_if_stopped(self, call: str) -> None:
        """Leave the program where a step that got `call_of` has seen that it is to stop."""
        if call != "null":
            stopped = self.fn.load_word(call, STOPPED)
            self.fail_if(self.fn.compare("ne", stopped, 0), INTERRUPTED)  # type: ignore[arg-type]

    # ---- the state table
    def state_word(self, kind: str, key: Hashable) -> str:
        position = self.table.position(kind, key)
        return self._table_load(position)

    def fixed_word(self, name: str) -> str:
        return self._table_load(fixed(name))

    def _table_load(self, position: int) -> str:
        place = self.fn.offset("%state", position, "ptr")
        return self.fn.value(f"load ptr, ptr {place}{self.scopes.of(STATE)}")

    # ---- prologue and epilogue
    def _read_frame(self) -> None:
        signature, fn = self.signature, self.fn
        kinds = {
            "argument": signature.arguments, "cell": signature.cells, "output": signature.outputs,
        }  # fmt: skip
        for kind, numbers in kinds.items():
            for number in numbers:
                position = self.frame_positions[kind, number] = len(self.frame_positions)
                if not self.is_large:
                    self.frame_words[kind, number] = fn.load_word("%frame", position, "ptr")
        for position, source in enumerate(signature.symbols, len(self.frame_positions)):
            self.symbols[source.name] = fn.load_word("%frame", position)

    def frame_word(self, kind: str, number: int) -> str:
        """The address of an argument, cell or output; large programs load it where it is used."""
        if self.is_large:
            return self.fn.load_word("%frame", self.frame_positions[kind, number], "ptr")
        return self.frame_words[kind, number]

    def define_symbols(self, dims: Sequence[Dim], values: Sequence[str]) -> None:
        """Dims that are symbols without a value yet get one."""
        for dim, value in zip(dims, values, strict=True):
            name = plain_symbol(dim)
            if name is not None:
                self.symbols.setdefault(name, value)

    def dim(self, dim: Dim) -> Word:
        return self.fn.dim(dim, self.symbols.__getitem__)

    def _check_shapes(self) -> None:
        for a, b in self.guards:
            differs = self.fn.compare("ne", self.dim(a), self.dim(b))
            if differs is not False:
                self._return_if("true" if differs is True else differs, WRONG_SHAPE)

    def _check_writable(self) -> None:
        cells = {number: self.cell(number) for number in self.variables}
        word = unusable(self.fn, list(cells.values()), [cells[n] for n in self.written])
        if word is not None:
            self._return_if(self.fn.value(f"icmp ne i64 {word}, 0"), NOT_WRITABLE)

    def _return_if(self, condition: str, status: int) -> None:
        """Return before anything was taken."""
        fn = self.fn
        k = fn.unique()
        fn.emit(f"br i1 {condition}, label %leave{k}, label %stay{k}, !prof !1")
        fn.label(f"leave{k}")
        fn.emit(f"ret i64 {status}")
        fn.label(f"stay{k}")

    def _take_workspace(self) -> None:
        fn, plan = self.fn, self.plan
        size: Word = plan.static_bytes
        self.slot_offsets: list[Word] = []
        for dim in plan.slot_sizes:
            self.slot_offsets.append(size)
            padded = fn.add(self.byte_count(dim), ALIGNMENT - 1)
            aligned = fn.value(f"and i64 {padded}, {-ALIGNMENT}")
            size = fn.add(size, aligned)
        self.size = size
        self.on_stack = isinstance(size, int) and size <= STACK_BYTES
        if size == 0:
            self.workspace = "null"
        elif self.on_stack:
            self.workspace = fn.alloca(f"[{size} x i8], align {ALIGNMENT}")
        else:
            self._define_workspace()
            self.workspace = fn.value(f"call ptr @take_workspace(ptr %state, i64 {size})")
            self._return_if(fn.value(f"icmp eq ptr {self.workspace}, null"), NO_MEMORY)

    def _give_workspace(self) -> None:
        if self.size != 0 and not self.on_stack:
            self.fn.emit(f"call void @give_workspace(ptr %state, ptr {self.workspace})")

    def _define_workspace(self) -> None:
        add_workspace(self.module)

    def _release_gil(self) -> None:
        """Let other Python threads run; the record holds this thread's state meanwhile."""
        fn, k = self.fn, self.fn.unique()
        loops = any(isinstance(s, Loop) for s in all_steps(self.block))
        if not isinstance(self.releases, bool):
            fn.emit(f"store ptr null, ptr {self.record}")
            long = fn.compare("sgt", self.dim(self.releases), SHORT_WORK)
            fn.emit(f"br i1 {long}, label %release{k}, label %released{k}")
            fn.label(f"release{k}")
        save = self.fixed_word("PyEval_SaveThread")
        fn.emit(f"store ptr {fn.value(f'call ptr {save}()')}, ptr {self.record}")
        if not isinstance(self.releases, bool):
            fn.branch(f"released{k}")
            fn.label(f"released{k}")
        ident = fn.value(f"call i64 {self.fixed_word('PyThread_get_thread_ident')}()")
        known = {
            LAST: f"i64 {fn.value('call i64 @clock_ns(ptr %state)') if loops else 0}",
            PERIOD: f"i64 {PERIOD_NS}", STOPPED: "i64 0", TABLE: "ptr %state",
            IDENT: f"i64 {ident}",
        }  # fmt: skip
        for place, word in known.items():
            fn.emit(f"store {word}, ptr {fn.offset(self.record, place, 'i64')}, align 8")

    def _take_gil(self) -> None:
        fn, k = self.fn, self.fn.unique()
        thread = fn.value(f"load ptr, ptr {self.record}")
        if not isinstance(self.releases, bool):
            kept = fn.value(f"icmp eq ptr {thread}, null")
            fn.emit(f"br i1 {kept}, label %taken{k}, label %take{k}")
            fn.label(f"take{k}")
        restore = self.fixed_word("PyEval_RestoreThread")
        fn.emit(f"call void {restore}(ptr {thread})")
        if not isinstance(self.releases, bool):
            fn.branch(f"taken{k}")
            fn.label(f"taken{k}")

    # ---- where things are
    def cell(self, number: int) -> str:
        """The address of a variable's cell."""
        if ("cell", number) in self.frame_positions:
            return self.frame_word("cell", number)
        return self.state_word("cell", number)

    def pointer(self, place: Place) -> str:
        """The address of a place."""
        known = self.pointers.get(place)
        if known is not None:
            return known
        if place.kind in ("argument", "output"):
            return self.frame_word(place.kind, place.number)
        if place.kind == "constant":
            return self.state_word("constant", place.number)
        if place.kind == "variable":
            if self.held:
                cell = self.fn.offset(self.held, self.held_position(place.number), "i64")
            else:
                cell = self.cell(place.number)
            return self.fn.value(f"load ptr, ptr {cell}{self.scopes.of(STATE)}")
        if place.kind == "late":
            return self._allocate(place)
        if place.kind == "grown'":
            return self._reserve(place)
        offset: Word = (
            self.plan.offsets[place]
            if place in self.plan.offsets
            else self.slot_offsets[self.plan.slots[place]]
        )
        return self.fn.offset(self.workspace, offset, "i8")

    def _allocate(self, place: Place) -> str:
        """Memory for an array whose size has just become known; freed when the call ends, or the
        iteration of the loop around it."""
        add_late(self.module)
        size = self.byte_count(place.bytes)
        places = f"ptr %state, ptr {self.late}, ptr {self.wanted}"
        pointer = self.obtained(f"@late_alloc({places}, i64 {size})")
        self.pointers[place] = pointer
        return pointer

    def _reserve(self, place: Place) -> str:
        """The half of a growing pair that is written next, made large enough."""
        pointer = self.reserve(self.buffers[place], self.byte_count(place.bytes))
        self.pointers[place] = pointer
        return pointer

    def reserve(self, buffer: str, size: Word) -> str:
        """The memory of a growing buffer, at least `size` bytes."""
        add_grown(self.module)
        places = f"ptr %state, ptr {self.wanted}, ptr {buffer}"
        return self.obtained(f"@grown_reserve({places}, i64 {size})")

    def extend(self, place: Place, used: Word, size: Word) -> str:
        """Make the buffer of a place `size` bytes large; the first `used` ones are kept."""
        add_extend(self.module)
        buffer = self.in_place[place.number]
        places = f"ptr %state, ptr {self.wanted}, ptr {buffer}"
        return self.obtained(f"@grown_extend({places}, i64 {used}, i64 {size})")

    def byte_count(self, size: Dim) -> Word:
        """A size, or `MOST_BYTES` where it is more: products of large dims exceed 64 bits."""
        exact = self.dim(size)
        if isinstance(exact, int) or not isinstance(size, SymbolicDim):
            return exact
        fn, total = self.fn, "0.0"
        for monomial, coefficient in size.terms:
            term = float_text(float(coefficient), 64)
            for atom in monomial:
                factor = self.dim(SymbolicDim({(atom,): 1}))
                real = fn.value(f"sitofp i64 {factor} to double")
                term = fn.value(f"fmul double {term}, {real}")
            total = fn.value(f"fadd double {total}, {term}")
        fits = fn.value(f"fcmp ole double {total}, {float_text(float(MOST_BYTES), 64)}")
        return fn.select(fits, exact, MOST_BYTES)

    def new_buffer(self) -> str:
        """A growing buffer, which is freed when the call ends."""
        buffer = self.fn.alloca("[2 x i64], align 16")
        self.fn.entry.append(f"  store [2 x i64] zeroinitializer, ptr {buffer}")
        self.grown.append(buffer)
        return buffer

    def slot(self, value: Value) -> str:
        """Memory for a rank-0 value."""
        if value not in self.slots:
            words = max(1, value.spec.dtype.size // 8)
            self.slots[value] = self.fn.alloca(f"[{words} x i64], align 8")
        return self.slots[value]

    def operand_pointer(self, operand: Operand) -> str:
        """The address of an operand; a register is stored first."""
        if operand.place is not None:
            return self.pointer(operand.place)
        slot = self.slot(operand.value)
        self.store_scalar(self.registers[operand.value], operand.value.spec.dtype, slot)
        return slot

    def table_words(self, count: int) -> str:
        """Memory for the operands of one launch at a time."""
        self.most_table_words = max(self.most_table_words, count)
        return "%table.words"

    # ---- rank-0 values in memory
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
        scope = "" if place is None else self.scopes.of(place)
        group = "" if self.group is None else self.group.access
        return f"align {alignment(dtype)}{scope}{group}"


def _is_large(block: Block) -> bool:
    """Whether a program has so many operands that they are better data than code. A program with
    loops is not: what they do is repeated, and data is slower."""
    steps = list(all_steps(block))
    if any(isinstance(s, Loop) for s in steps):
        return False
    count = sum(len(launch.operands) for s in steps for launch in _launches(s))
    return count > MOST_OPERANDS


def _launches(step: Step) -> list[Launch]:
    if isinstance(step, SegmentedLaunch):
        return step.segments
    return [step] if isinstance(step, Launch) else []
