"""The innermost loops of rank-0 values, without polls and without versions."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.runtime.cpu.llvm_text import Block, Edge
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import Variables
from treadle.runtime.schedule.steps import Loop


class InnerLoop:
    """Writes a loop that computes nothing but rank-0 values and elements of arrays, or parts of it.

    What is around the loop (`strips`, `loop_versions`) may write it several times.
    """

    def __init__(self, emitter: Emitter, step: Loop) -> None:
        self.emitter, self.fn, self.step = emitter, emitter.fn, step
        self.variables = Variables(emitter, step)

    def emit(self, k: int, starts: Sequence[str], end: str | None) -> list[str]:
        """Write the loop, and begin the block `after{k}`. Gives the values of its variables there.

        Args:
            k: the number in the names of its blocks.
            starts: the values of its variables on entry.
            end: where the counter stops, in place of the loop's own test.
        """
        fn, variables = self.fn, self.variables
        head = variables.block(f"head{k}", f"x{k}")
        fn.enter(head(*starts))
        words = variables.bind(head)
        after = self.after(k, "after")
        fn.fork(self.test(end), f"body{k}", self.way_out(after, words))
        fn.label(f"body{k}")
        ends = self.iteration(words)
        again = self.leave(k, ends)
        fn.enter(f"latch{k}")
        group = self.emitter.group
        fn.branch(head(*again), "" if group is None else group.loop)
        return self.finish(k, after, words, ends)

    def after(self, k: int, name: str) -> Block:
        """A block for after the loop. Where a flag can end it there are two ways to the block, with
        the variables as they are at the test and as they are after an iteration."""
        block = f"{name}{k}"
        return self.variables.block(block, f"w{k}") if self.step.flags else Block(block)

    def way_out(self, after: Block, words: Sequence[str]) -> Block | Edge:
        """The way to the block after the loop, with these values of the variables."""
        return after(*words) if self.step.flags else after

    def leave(self, k: int, ends: list[str]) -> list[str]:
        """End an iteration: go to block `leave{k}` where a flag ends the loop. Gives the values for
        the next iteration."""
        fn, again = self.fn, list(ends)
        for flag in self.step.flags:
            position = self.variables.position(flag.param)
            assert position is not None
            stay = f"stay{fn.unique()}"
            fn.fork(ends[position], f"leave{k}", stay)
            fn.label(stay)
            again[position] = "false"
        return again

    def finish(self, k: int, after: Block, words: list[str], ends: Sequence[str]) -> list[str]:
        """Begin the block after the loop; gives the values of the variables there.

        Args:
            words: their values at the test.
            ends: their values after an iteration.
        """
        if not self.step.flags:
            self.fn.label(after)
            return words
        self.fn.label(f"leave{k}")
        self.fn.enter(after(*ends))
        return self.variables.bind(after)

    def test(self, end: str | None) -> str:
        """Write the test; gives whether there is another iteration."""
        if end is not None:
            return self.below(end)
        condition = self.step.condition
        with self.emitter.contraction.inside(self.step):
            self.emitter.emit_block(condition)
        return self.emitter.registers[condition.results[0].value]

    def iteration(self, words: Sequence[str]) -> list[str]:
        """Write one iteration; gives the values of the variables for the next one."""
        emitter, body = self.emitter, self.step.body
        with emitter.forgetting():
            with emitter.contraction.inside(self.step):
                emitter.emit_block(body)
            return self.variables.ends(body.results, words)

    def below(self, end: str) -> str:
        """Whether the counter is below a number."""
        assert self.step.counted is not None
        counter = self.step.counted.counter
        args, dtype = [self.emitter.registers[counter], end], counter.spec.dtype
        return self.emitter.elements.apply("lt", args, [dtype] * 2, dtypes.bool)
