"""Loops that all threads run, each on its own rows of the arrays (`rows.py`).

The loop becomes a function of its own, the task ``rows(record, part, parts)``, which the pool calls
once on every thread. The record holds the registers of the program that the task reads. Numbers are
computed by every thread alike. The first thread is the program's own: it answers Ctrl-C, raises
errors, and leaves in the record the values that the loop variables have at the end: their
registers, the lengths of lists, and which array of a pair is the current one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from treadle.core.shapes import product
from treadle.core.spec import ListSpec
from treadle.ops.collections.lists import LIST_GET, LIST_PUSH
from treadle.runtime.cpu.compiled_kernels import kernel_code
from treadle.runtime.cpu.elements import Elements
from treadle.runtime.cpu.library import part_routine
from treadle.runtime.cpu.list_memory import HEADER, LENGTH
from treadle.runtime.cpu.llvm_text import Block as TextBlock
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import Variables, value_type
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_entry import DONE, INTERRUPTED
from treadle.runtime.cpu.program_kernels import operand_addresses, symbol_values
from treadle.runtime.cpu.program_library import routine_numbers, routine_operands
from treadle.runtime.cpu.program_lists import (
    element_bytes,
    list_slot,
    reserve,
)
from treadle.runtime.cpu.program_poll import MOST_ITERATIONS, poll
from treadle.runtime.cpu.rows import units_of_a_row
from treadle.runtime.cpu.run_memory import RunMemory
from treadle.runtime.cpu.thread_count import MOST_THREADS
from treadle.runtime.schedule.steps import (
    Carried,
    Copy,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Rows,
)

STOP = 0  # word of the record: whether the threads shall leave


class _Record:
    """The words that the program and its task pass to each other.

    Attributes:
        stores: what the program stores into the record: the word, its type and the register.
        words: how many words there are.
    """

    def __init__(self, outer: Function, inner: Function) -> None:
        self.outer, self.inner = outer, inner
        self.stores: list[tuple[int, str, str]] = [(STOP, "i64", "0")]
        self.words = 1
        self._captured: dict[str, str] = {}  # registers of the program -> those of the task
        for argument in ("%state", "%frame"):
            self._load(argument, "ptr", argument)

    def capture(self, value: str, kind: str) -> str:
        """A value of the program in the task, which loads registers from the record."""
        if value in self._captured:
            return self._captured[value]
        if value not in self.outer.registers:
            return value
        return self._load(value, kind, f"%c{self.inner.unique()}")

    def _load(self, value: str, kind: str, name: str) -> str:
        place = f"%p{name[1:]}"
        self.stores.append((self.words, kind, value))
        self.inner.entry.append(f"  {place} = getelementptr i64, ptr %record, i64 {self.words}")
        self.inner.entry.append(f"  {name} = load {kind}, ptr {place}, align 8")
        self._captured[value] = name
        self.words += 1
        return name

    def result(self) -> int:
        """The number of a word that the first thread leaves."""
        self.words += 1
        return self.words - 1


_Key = TypeVar("_Key")


class _Captured(dict[_Key, str]):
    """Registers of the program by what they stand for; each is captured when the task reads it."""

    def __init__(self, outer: dict[_Key, str], capture: Callable[[_Key, str], str]) -> None:
        super().__init__()
        self.outer, self.capture = outer, capture

    def __missing__(self, key: _Key) -> str:
        self[key] = self.capture(key, self.outer[key])
        return self[key]

    def get(self, key: _Key, default: Any = None) -> Any:
        if key not in self:
            return default
        return self[key]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self.outer


def emit_row_loop(emitter: Emitter, step: Loop, rows: Rows) -> None:
    """Run a loop on all threads, each on its own rows."""
    fn, variables = emitter.fn, Variables(emitter, step)
    starts = variables.starts()
    _reserve_lists(emitter, step, variables, starts)
    task = _Task(emitter, step, rows)
    name = f"rows{fn.unique()}"
    task.emit(starts, name)
    record = fn.alloca(f"[{task.record.words} x i64], align 64")
    for place, kind, word in task.record.stores:
        fn.emit(f"store {kind} {word}, ptr {fn.offset(record, place, 'i64')}, align 8")
    parallel = emitter.state.fixed("parallel")
    fn.emit(f"call void {parallel}(ptr @{name}, ptr {record}, i64 {MOST_THREADS}, ptr null)")
    _leave_if_failed(emitter)
    for carried, places in zip(step.carried, task.results, strict=True):
        _take_over(emitter, carried, record, places)


def _leave_if_failed(emitter: Emitter) -> None:
    fn, k = emitter.fn, emitter.fn.unique()
    status = fn.value(f"load i64, ptr {emitter.memory.status}")
    good = fn.value(f"icmp eq i64 {status}, {DONE}")
    fn.fork(good, f"good{k}", "exit")
    fn.label(f"good{k}")


def _reserve_lists(emitter: Emitter, step: Loop, variables: Variables, starts: list[str]) -> None:
    """Room for all elements that the loop appends: a list must not move while threads write to
    it."""
    pushed = {
        s.inputs[0].value for s in step.body.steps
        if isinstance(s, ListStep) and s.node.op is LIST_PUSH
    }  # fmt: skip
    if not pushed:
        return
    assert step.trips is not None
    fn = emitter.fn
    for number, carried in enumerate(step.carried):
        if isinstance(carried.param.spec, ListSpec):
            (items,) = variables.of(number, starts)
            count = fn.add(fn.load_word(items, LENGTH), step.trips * len(pushed))
            reserve(emitter, items, count, element_bytes(emitter, carried.start))


def _take_over(emitter: Emitter, carried: Carried, record: str, places: list[int]) -> None:
    """Let a loop variable stand for the words that the first thread has left."""
    fn = emitter.fn
    words = [fn.offset(record, place, "i64") for place in places]
    if carried.place is None:
        if words:
            kind = value_type(emitter, carried.param)
            emitter.registers[carried.param] = fn.value(f"load {kind}, ptr {words[0]}, align 8")
    elif words:
        emitter.places.pointers[carried.place] = fn.value(f"load ptr, ptr {words[0]}, align 8")


class _Task:
    """The function that every thread runs.

    Attributes:
        results: for every loop variable the words of the record that the first thread writes.
        first, last: the blocks of rows of the thread.
        low, high: its rows.
    """

    def __init__(self, outer: Emitter, step: Loop, rows: Rows) -> None:
        self.outer, self.step, self.rows = outer, step, rows
        self.fn = Function(outer.module)
        self.record = _Record(outer.fn, self.fn)
        self.results: list[list[int]] = []
        self._share()
        self.emitter = self._emitter()
        self.variables = Variables(self.emitter, step)

    def _emitter(self) -> Emitter:
        """The emitter of the task, which captures registers and addresses of the program."""
        outer, fn, capture = self.outer, self.fn, self.record.capture
        steps = {
            **outer.steps, Launch: self._launch, LibraryCall: self._product, ListStep: self._list,
            Copy: self._copy,
        }  # fmt: skip
        return Emitter(
            outer.program, fn, self._memory(), steps, Elements(fn, 0), self.is_first,
            outer.contraction.depth,
            _Captured(outer.registers, lambda value, word: capture(word, value_type(outer, value))),
            _Captured(outer.places.pointers, lambda _, word: capture(word, "ptr")),
            _Captured(outer.sizes.symbols, lambda _, word: capture(word, "i64")),
        )  # fmt: skip

    def _memory(self) -> RunMemory:
        """The memory of the run as the task finds it."""
        outer, capture = self.outer.memory, self.record.capture
        workspace = capture(outer.workspace, "ptr")
        offsets = [o if isinstance(o, int) else capture(o, "i64") for o in outer.slot_offsets]
        cells = (outer.status, outer.record, outer.lists, outer.late, outer.wanted)
        status, record, lists, late, wanted = (capture(cell, "ptr") for cell in cells)
        words = _Captured(outer.frame_words, lambda _, word: capture(word, "ptr"))
        held = capture(outer.held, "ptr")
        return RunMemory(
            status, record, lists, late, wanted, words, workspace, offsets, held,
            outer.held_positions,
        )  # fmt: skip

    # -- the function

    def emit(self, starts: list[str], name: str) -> None:
        """Write the function, given the loop variables' values in the program."""
        fn, step = self.fn, self.step
        heads, begins = self._begin(starts)
        countdown = fn.alloca("i64, align 8")
        fn.emit(f"store i64 1, ptr {countdown}")
        k = fn.unique()
        fn.enter(f"pre{k}")
        head = self.variables.block(f"head{k}", f"x{k}", ("i64", f"%count{k}"))
        fn.enter(head(1, *begins))
        words = self.variables.bind(head)
        stop = fn.value("load atomic i64, ptr %record monotonic, align 8")
        fn.fork(fn.value(f"icmp eq i64 {stop}, 0"), f"test{k}", "exit")
        fn.label(f"test{k}")
        with self.emitter.contraction.inside(step):
            self.emitter.emit_block(step.condition)
            (test,) = step.condition.results
            fn.fork(self.emitter.registers[test.value], f"body{k}", f"done{k}")
            fn.label(f"body{k}")
            self.emitter.emit_block(step.body)
        ends = self.variables.ends(step.body.results, words)
        ask = functools.partial(self._asked, countdown)
        fn.branch(head(self.emitter.exits.count_down(k, f"%count{k}", ask), *ends))
        fn.label(f"done{k}")
        self._hand_over(head, words, heads)
        fn.enter("exit")
        fn.emit("ret void")
        fn.define(name, "void @{}(ptr %record, i64 %part, i64 %parts)", "internal")

    def _share(self) -> None:
        """The blocks and rows of this thread; without any it leaves, unless it is the first."""
        fn, rows = self.fn, self.rows
        blocks = rows.blocks
        high = rows.extent // blocks
        higher = rows.extent - blocks * high
        parts = fn.min("%parts", self.outer.program.workers)  # there is scratch for so many
        self.first, self.last = (
            fn.min(fn.divide(fn.mul(blocks, part), parts), blocks)
            for part in ("%part", fn.add("%part", 1))
        )
        self.low, self.high = (
            fn.add(fn.mul(block, high), fn.min(block, higher)) for block in (self.first, self.last)
        )
        self.is_first = fn.value("icmp eq i64 %part, 0")
        some = fn.value(f"icmp slt i64 {self.first}, {self.last}")
        needed = fn.value(f"or i1 {some}, {self.is_first}")
        fn.fork(needed, "needed", "exit")
        fn.label("needed")

    def _begin(self, starts: list[str]) -> tuple[dict[int, str], list[str]]:
        """The loop variables on entry, with headers of lists of the thread's own; and the program's
        headers of these lists, by the number of the variable."""
        heads: dict[int, str] = {}
        begins = []
        for number, carried in enumerate(self.step.carried):
            words = self.variables.of(number, starts)
            if isinstance(carried.param.spec, ListSpec):
                heads[number] = self.record.capture(words[0], "ptr")
                begins.append(self._own_header(words[0]))
            else:
                kind = "ptr" if carried.place else value_type(self.outer, carried.param)
                begins += [self.record.capture(word, kind) for word in words]
        return heads, begins

    def _own_header(self, items: str) -> str:
        """A copy of a list's header on the stack of the thread."""
        outer = self.outer.fn
        own = self.fn.alloca(f"[{HEADER} x i64], align 8")
        for i in range(HEADER):
            word = self.record.capture(outer.load_word(items, i), "i64")
            self.fn.emit(f"store i64 {word}, ptr {self.fn.offset(own, i, 'i64')}, align 8")
        return own

    def _hand_over(self, head: TextBlock, words: list[str], heads: dict[int, str]) -> None:
        """The first thread leaves the last values of the loop variables."""
        fn, k = self.fn, self.fn.unique()
        fn.fork(self.is_first, f"leave{k}", "exit")
        fn.label(f"leave{k}")
        kinds = {name: kind for kind, name in head.parameters}
        for number in range(len(self.step.carried)):
            own = self.variables.of(number, words)[:1]
            if number in heads:
                length = fn.load_word(own[0], LENGTH)
                place = fn.offset(heads[number], LENGTH, "i64")
                fn.emit(f"store i64 {length}, ptr {place}, align 8")
                self.results.append([self._leave("ptr", heads[number])])
            else:
                self.results.append([self._leave(kinds[word], word) for word in own])

    def _leave(self, kind: str, word: str) -> int:
        """Store a result in the record; gives its word."""
        place = self.record.result()
        self.fn.emit(f"store {kind} {word}, ptr {self.fn.offset('%record', place, 'i64')}, align 8")
        return place

    def _asked(self, countdown: str, latch: TextBlock) -> str:
        """The next count of the first thread, which looks for signals; the others count anew."""
        fn, k = self.fn, self.fn.unique()
        if self.outer.program.releases is False:  # without Python nothing asks it to stop
            return str(MOST_ITERATIONS)
        fn.fork(self.is_first, f"poll{k}", latch(MOST_ITERATIONS))
        fn.label(f"poll{k}")
        polled = poll(self.emitter.state, self.emitter.memory.record, countdown)
        fn.fork(fn.value(f"icmp slt i64 {polled}, 0"), f"stop{k}", f"go{k}", likely=False)
        fn.label(f"stop{k}")
        fn.emit("store atomic i64 1, ptr %record monotonic, align 8")
        self.emitter.exits.leave(INTERRUPTED)
        fn.label(f"go{k}")
        return polled

    # -- steps that take the thread's rows only

    def _launch(self, emitter: Emitter, step: Launch) -> None:
        fn = self.fn
        code = kernel_code(step.kernel)
        units = units_of_a_row(step, self.rows)
        assert code is not None and units is not None
        words = fn.alloca(f"[{len(step.operands) + 1} x ptr], align 8")
        for i, pointer in enumerate(operand_addresses(emitter, step)):
            fn.emit(f"store ptr {pointer}, ptr {fn.offset(words, i, 'ptr')}")
        dims = symbol_values(emitter, step)
        scratch = "null"
        if step.scratch is not None:
            size = emitter.dim(product(step.scratch.dims))
            stride = fn.divide(size, emitter.program.workers)
            scratch = fn.offset(emitter.pointer(step.scratch), fn.mul("%part", stride), "i8")
        function = emitter.state.word("kernel", (code, code.emitted.symbol))
        low, high = (fn.mul(row, units) for row in (self.low, self.high))
        fn.emit(
            f"call void {function}(ptr {words}, ptr {dims}, i64 {low}, i64 {high}, ptr {scratch})"
        )

    def _product(self, emitter: Emitter, step: LibraryCall) -> None:
        fn = self.fn
        routine = part_routine(step.node, self.rows.blocks)
        assert routine is not None
        operands = routine_operands(emitter, step)
        address = emitter.state.word("routine", routine.symbol)
        table = emitter.state.fixed("library")
        numbers = routine_numbers(emitter, routine)
        fn.emit(
            f"call void {address}(ptr {table}, ptr {operands}, ptr {numbers}, ptr null, "
            f"i64 {self.first}, i64 {self.last})"
        )

    def _list(self, emitter: Emitter, step: ListStep) -> None:
        if step.node.op is LIST_GET or step.slot is not None:
            self.outer.steps[ListStep](emitter, step)
            return
        target = list_slot(emitter, step)
        operand = step.inputs[-1]
        assert operand.place is not None
        size = product(operand.value.spec.dims) * operand.value.spec.dtype.size
        self._move(target, emitter.pointer(operand.place), emitter.dim(size))

    def _copy(self, emitter: Emitter, step: Copy) -> None:
        assert step.source.place is not None
        size = emitter.dim(step.target.bytes)
        self._move(emitter.pointer(step.target), emitter.pointer(step.source.place), size)

    def _move(self, target: str, source: str, size: Word) -> None:
        """Copy this thread's rows of an array of `size` bytes."""
        fn = self.fn
        row = fn.divide(size, self.rows.extent)
        start = fn.mul(self.low, row)
        count = fn.mul(fn.sub(self.high, self.low), row)
        move(self.emitter, fn.offset(target, start, "i8"), fn.offset(source, start, "i8"), count)
