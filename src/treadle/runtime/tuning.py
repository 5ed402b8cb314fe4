"""What the speed of code depends on, beside its instructions: one record for one machine.

Whatever stands for a cache, a register file, a bandwidth or the meeting of threads, in fusion, in
kernels and in the library's routines, is computed from a `Tuning`. `docs/architecture.md` lists
these numbers, and the constants that no machine changes.
"""

from __future__ import annotations

import dataclasses

from treadle.core.records import record

_MOST_PLANNED = 1 << 20  # bytes of a second-level cache; larger blocks gained nothing where tried
NEVER = ALWAYS = 1 << 60  # more rows, or bytes, than any operand has
_SPINNING = 2_000_000  # cycles that a thread waits before it sleeps: a few hundred microseconds


@record(frozen=True)
class Cache:
    """A cache for data.

    Attributes:
        size: bytes.
        ways: lines that one set of it holds.
        line: bytes of a line.
    """

    size: int
    ways: int
    line: int = 64

    @property
    def period(self) -> int:
        """Lines so many bytes apart share a set."""
        return self.size // self.ways

    def __str__(self) -> str:
        unit, name = (1 << 20, "MiB") if self.size >= 1 << 20 else (1 << 10, "KiB")
        return f"{self.size / unit:g} {name}, {self.ways} ways, lines of {self.line} bytes"


@record(frozen=True)
class Measured:
    """What was measured on a processor (`treadle.runtime.cpu.measuring`). Cycles are those in which
    a core adds two integers, one after another.

    Attributes:
        fma, loads: vectors that are multiplied and added, and loaded, in a cycle.
        latency: cycles from the operands of a multiply-add to its result.
        forward: cycles from a store to a load of the same number.
        copy: bytes that a core reads and writes in a cycle where it copies what the second-level
            cache holds.
        moving: cycles in which a core that works alone copies a cache line of memory to memory.
        l1, l2, l3, memory: cycles until a number of that level arrives.
        pause: cycles of a pause in a waiting loop.
        nanoseconds: of a cycle. It is told, but nothing depends on it.
    """

    fma: float
    loads: float
    latency: float
    forward: float
    copy: float
    moving: float
    l1: float
    l2: float
    l3: float
    memory: float
    pause: float
    nanoseconds: float

    def best(self, other: Measured) -> Measured:
        """What both measurements together say: other programs take what a core does at a time from
        one, and never add to it, so each number is the better one."""
        more = ("fma", "loads", "copy")
        values = {
            name: (max if name in more else min)(getattr(self, name), getattr(other, name))
            for name in self.__dataclass_fields__
        }
        return Measured(**values)


@record(frozen=True)
class Tuning:
    """A machine as code is fitted to it. Cycles are those of one core.

    Attributes:
        family: the processors whose numbers these are.
        vector_bits: width of the vectors that code should fill.
        registers: how many of them there are.
        l1, l2: the caches of one core.
        l3: what a core finds data of its program in before it goes to memory.
        fma: vectors that are multiplied and added in a cycle.
        loads: vectors that are loaded in a cycle.
        latency: cycles from the operands of a multiply-add to its result.
        window: instructions that are under way at once.
        copy: bytes that a core moves between its caches in a cycle.
        moving: cycles in which a core copies a cache line of memory to memory.
        far: cycles until an operand that is too large for the core's caches arrives: half of the
            time from the last cache, half of that from memory.
        meeting: cycles of work that are worth the meeting of two threads.
        spins: pauses of a waiting thread that take a few hundred microseconds.
        pack_rows: rows of a product from which a copy of the other matrix's panels pays.
        pack_colliding: the same where rows of that matrix share sets of the caches.
        pack_columns: columns from which its rows are too far apart to be fetched ahead.
        wide_rows: rows of a product from which its tiles are wide and low.
        fill_rows: rows of a product below which a copy of the other matrix is made by the first
            tile of each panel while it computes, and not by a loop of its own.
        alike_rows: rows of a tile whose lines may share a set of the first-level cache, however
            few it holds: they come from the second-level cache in time.
        far_rows: bytes of a product's first operand and of its result from which a copy of the
            operand's tiles pays, however they lie: the rows of a tile are fetched ahead badly where
            they come from far away side by side, and well one after another.
        pages: addresses of pages that a core has at hand, in its first-level buffer of them.
        threads: those that may share the work of one program. Kernels do not depend on it, so the
            record that names them has 1; that of a program has as many as are planned for it.
    """

    family: str
    vector_bits: int
    registers: int
    l1: Cache
    l2: Cache
    l3: Cache
    fma: int
    loads: int
    latency: int
    window: int
    copy: int
    moving: int
    far: int
    meeting: int
    spins: int
    pack_rows: int
    pack_colliding: int
    pack_columns: int
    wide_rows: int
    fill_rows: int
    alike_rows: int
    far_rows: int
    pages: int
    threads: int = 1

    def refined(self, found: Measured) -> Tuning:
        """The record with measured numbers in place of stated ones that these are not like.

        `moving` stays: it is that of a core while all others move data too. So does `far` where the
        last cache seemed as far away as memory: others were using it.
        """
        far = (found.l3 + found.memory) / 2 if 4 * found.l3 <= 3 * found.memory else 0
        return dataclasses.replace(
            self,
            fma=_settled(self.fma, found.fma),
            loads=_settled(self.loads, found.loads),
            latency=_settled(self.latency, found.latency),
            copy=_settled(self.copy, found.copy),
            far=_settled(self.far, far),
            spins=_settled(self.spins, _SPINNING / max(found.pause, 1)),
        )

    @property
    def line(self) -> int:
        """Bytes of a cache line."""
        return self.l1.line

    @property
    def vector_bytes(self) -> int:
        return self.vector_bits // 8

    @property
    def lanes(self) -> int:
        """Numbers of 32 bits in a vector."""
        return self.vector_bits // 32

    @property
    def near(self) -> int:
        """Bytes of the second-level cache that blocks are planned for."""
        return min(self.l2.size, _MOST_PLANNED)

    @property
    def chains(self) -> int:
        """Sums, each waiting for its own last addition, that keep the units busy: a power of 2,
        at least 8, which share the instructions of the loop around them."""
        return max(8, 1 << (self.fma * self.latency).bit_length() - 1)

    @property
    def unroll(self) -> int:
        """Vectors that a loop works on at once, each waiting for its own last operation only."""
        return self.chains // 2

    @property
    def task_flops(self) -> int:
        """Arithmetic of a product, in floating operations, that is worth a thread."""
        return self.meeting * 2 * self.fma * self.lanes

    @property
    def task_bytes(self) -> int:
        """Bytes read that are worth a thread, where reading takes the time."""
        return self.meeting * self.copy

    @property
    def task_elements(self) -> int:
        """Elements of simple work that are worth a thread: about eight cycles a vector."""
        return self.meeting // 8 * self.lanes


def _settled(stated: int, found: float) -> int:
    """The stated number where a measured one is within half of it: code for a known processor does
    not depend on how busy the machine was. Otherwise the measured one in two binary digits."""
    if found <= 0 or 2 * stated <= 3 * found <= 4.5 * stated:
        return stated
    step = 1 << max(0, int(found).bit_length() - 2)
    return max(1, round(found / step) * step)
