"""The ways out of a program before its end: errors, signals, and no memory."""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.cpu.llvm_text import Block, Function
from treadle.runtime.cpu.program_blueprint import Blueprint
from treadle.runtime.cpu.program_entry import EXHAUSTED, INTERRUPTED
from treadle.runtime.cpu.program_poll import MOST_ITERATIONS, STOPPED, poll
from treadle.runtime.cpu.run_memory import RunMemory, StateWords
from treadle.runtime.schedule.steps import Exhausted, Step


class Exits:
    """Writes what leaves one function of a program, all by its block `exit`.

    Attributes:
        step: the step that is being written.
        is_first: in code that several threads run: whether this is the first one.
    """

    def __init__(
        self, program: Blueprint, fn: Function, memory: RunMemory, state: StateWords, is_first: str
    ) -> None:
        self.program, self.fn, self.memory, self.state = program, fn, memory, state
        self.is_first = is_first
        self.step: Step | None = None
        self._refusals: dict[Step, int] = {}  # step -> the callback for when it gets no memory

    def leave(self, status: int | str) -> None:
        """Leave the program with a status."""
        self.fn.emit(f"store i64 {status}, ptr {self.memory.status}")
        self.fn.branch("exit")

    def fail_if(self, condition: str, status: int | str) -> None:
        """Leave the program with a status where an i1 holds."""
        fn = self.fn
        k = fn.unique()
        fn.fork(condition, f"fail{k}", f"go{k}", likely=False)
        fn.label(f"fail{k}")
        self.leave(status)
        fn.label(f"go{k}")

    def all_but_first(self) -> None:
        """Where several threads run this code, let only the first one go on: all of them have come
        here, for the same reason."""
        if self.is_first:
            speak = f"speak{self.fn.unique()}"
            self.fn.fork(self.is_first, speak, "exit")
            self.fn.label(speak)

    # ---- signals
    def polled(self, countdown: str) -> str:
        """Look for signals, and give the countdown to the next time. The program ends where the
        handler of a signal raises.

        countdown: the address of the word that holds the countdown.
        """
        fn = self.fn
        if self.program.releases is False:  # without Python nothing asks a loop to stop
            fn.emit(f"store i64 {MOST_ITERATIONS}, ptr {countdown}")
            return str(MOST_ITERATIONS)
        polled = poll(self.state, self.memory.record, countdown)
        self.fail_if(fn.value(f"icmp slt i64 {polled}, 0"), INTERRUPTED)
        return polled

    def count_down(self, k: int, count: str, ask: Callable[[Block], str]) -> str:
        """Count down, and ask for the next count where that reaches zero. Gives the next count.

        Args:
            k: the number in the names of the blocks.
            ask: writes what gives the next count, given the block in which the loop goes on.
        """
        fn = self.fn
        fn.emit(f"%left{k} = sub i64 {count}, 1")
        fn.emit(f"%zero{k} = icmp eq i64 %left{k}, 0")
        latch = Block(f"latch{k}", [("i64", f"%next{k}")])
        fn.fork(f"%zero{k}", f"ask{k}", latch(f"%left{k}"), likely=False)
        fn.label(f"ask{k}")
        fn.enter(latch(ask(latch)))
        return f"%next{k}"

    def call_of(self, step: Step) -> str:
        """The record of the call if a step may stop before its work is done, else null. It may stop
        where nobody needs the arrays that it writes once the program has ended."""
        program = self.program
        if program.releases is False or self.is_first:
            return "null"
        if any(p.kind == "variable" and p.number in program.whole for p in step.writes):
            return "null"
        return self.memory.record

    def leave_if_stopped(self, call: str) -> None:
        """Leave the program where a step that got the record of the call has been stopped."""
        if call != "null":
            stopped = self.fn.load_word(call, STOPPED)
            self.fail_if(self.fn.value(f"icmp ne i64 {stopped}, 0"), INTERRUPTED)

    # ---- memory
    def obtained(self, call: str) -> str:
        """The memory that a call of a function gives; the program ends where that is null."""
        pointer = self.fn.value(f"call ptr {call}")
        self.leave_unless(self.fn.value(f"icmp ne ptr {pointer}, null"))
        return pointer

    def leave_unless(self, obtained: str) -> None:
        """Leave the program unless an i1 says that the step being written got its memory. Python is
        told how much it was, in a call that needs no memory."""
        if self.is_first:  # code that several threads run got its memory before
            return
        fn, step = self.fn, self.step
        assert step is not None
        if step not in self._refusals:
            self._refusals[step] = self.program.add_callback(Exhausted(step))
        k = fn.unique()
        fn.fork(obtained, f"got{k}", f"lacks{k}", likely=True)
        fn.label(f"lacks{k}")
        callback = self.state.fixed("callback")
        words = f"i64 {self._refusals[step]}, ptr {self.memory.wanted}, ptr %frame"
        fn.value(f"call i64 {callback}({words})")
        self.leave(EXHAUSTED)
        fn.label(f"got{k}")
