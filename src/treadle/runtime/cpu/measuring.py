"""What a processor does in a cycle, measured: its record has these numbers beside the stated ones.

Each probe is a loop of machine code that waits for one thing: for sums, for loads, for numbers of
one level of the caches. A loop of integer additions, each of which needs the one before, tells how
long a cycle is. Probes take turns with it, the clock counts the time that the thread has a
processor, and the fastest of a few rounds counts, so other programs on the machine matter little.
Pointers that are followed in a random order show the time until a number arrives (Saavedra and
Smith, Measuring Cache and TLB Performance, 1995).

All takes a few tenths of a second. The work is divided into short steps, between which others run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from time import thread_time

import numpy as np

from treadle.core.tensor import NDArray
from treadle.runtime.cpu.jit import jit_of
from treadle.runtime.cpu.library_text import suffix
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.target import Target
from treadle.runtime.tuning import Measured

# No machine changes these: they are lengths of loops, long beside the call of a probe.
ROUNDS = 5
STEPS = 20_000
ADDITIONS = 16  # a step of the loop that shows the cycle
SUMS = 12  # independent ones: more than latency times units of most machines, in 16 registers
FOLLOWED = 8  # pointers a step
LINE = 64  # bytes from whose multiples on memory is measured: a vector, and most machines' line
PAGE = 4160  # bytes between pointers in memory: pages and lines apart
MOST_FOLLOWED = 8 << 20  # of the block in the last cache
MOST_MEMORY = 64 << 20  # of the block that no cache holds

Probe = Callable[[int, int, int], None]


def probes_text(target: Target) -> str:
    """A module with the probes: ``i64 probe(ptr memory, i64 steps, i64 bytes)``."""
    module = Module(target)
    for name, write in _PROBES.items():
        fn = Function(module)
        fn.emit(f"ret i64 {write(fn)}")
        fn.define(name, f"i64 @{name}(ptr %memory, i64 %steps, i64 %bytes)")
    return module.text()


def _additions(fn: Function) -> str:
    """Additions that nobody can leave out: what is added is known at run time only."""

    def step(_: object, state: list[str]) -> list[str]:
        x = state[0]
        for _ in range(ADDITIONS // 2):
            x = fn.value(f"add i64 {x}, %bytes")
            x = fn.value(f"xor i64 {x}, %bytes")
        return [x]

    return fn.carried(0, "%steps", 1, ["i64"], ["%bytes"], step)[0]


def _vector(fn: Function) -> tuple[int, str]:
    lanes = fn.module.target.vector_bits // 32
    return lanes, f"<{lanes} x float>"


def _fma(fn: Function, count: int) -> str:
    """`count` sums of products, or sums and products where that is not one instruction."""
    lanes, kind = _vector(fn)
    start = fn.value(f"load {kind}, ptr %memory, align 4")

    def step(_: object, sums: list[str]) -> list[str]:
        if not fn.module.target.has_fma:
            products = [fn.value(f"fmul {kind} {s}, {start}") for s in sums]
            return [fn.value(f"fadd {kind} {p}, {start}") for p in products]
        name = f"{kind} @llvm.fma.v{lanes}{suffix('float')}({kind}, {kind}, {kind})"
        return [fn.call(name, f"{kind} {s}, {kind} {start}, {kind} {start}") for s in sums]

    sums = fn.carried(0, "%steps", 1, [kind] * count, [start] * count, step)
    total = sums[0]
    for s in sums[1:]:
        total = fn.value(f"fadd {kind} {total}, {s}")
    fn.emit(f"store {kind} {total}, ptr %memory, align 4")
    return "0"


def _loads(fn: Function) -> str:
    """Loads of vectors that nothing waits for."""
    _, kind = _vector(fn)

    def step(_: object, state: list[str]) -> list[str]:
        for i in range(SUMS):
            fn.value(f"load volatile {kind}, ptr {fn.offset('%memory', 64 * i, 'i8')}, align 4")
        return state

    fn.carried(0, "%steps", 1, [], [], step)
    return "0"


def _forward(fn: Function) -> str:
    """A number that is stored and loaded again and again, where nobody knows the address before:
    `bytes` is 0. A load by the same register might not go to memory at all."""
    nothing = fn.value("and i64 %steps, %bytes")

    def step(_: object, state: list[str]) -> list[str]:
        x = state[0]
        at = fn.value(f"and i64 {x}, %bytes")
        fn.emit(f"store volatile i64 {x}, ptr {fn.offset('%memory', at, 'i8')}, align 8")
        place = fn.offset("%memory", fn.value(f"xor i64 {at}, {nothing}"), "i8")
        return [fn.value(f"load volatile i64, ptr {place}, align 8")]

    return fn.carried(0, "%steps", 1, ["i64"], ["%steps"], step)[0]


def _follow(fn: Function) -> str:
    """Pointers, each found where the one before leads to."""

    def step(_: object, state: list[str]) -> list[str]:
        place = state[0]
        for _ in range(FOLLOWED):
            place = fn.value(f"load ptr, ptr {place}, align 8")
        return [place]

    last = fn.carried(0, "%steps", 1, ["ptr"], ["%memory"], step)[0]
    return fn.value(f"ptrtoint ptr {last} to i64")


def _copy(fn: Function) -> str:
    """The first `bytes` of the memory into the following ones, `steps` times."""
    _, kind = _vector(fn)
    size = fn.module.target.tuning.vector_bytes
    with fn.loop(0, "%steps"), fn.loop(0, "%bytes", 4 * size) as at:
        source = fn.offset("%memory", at, "i8")
        target = fn.offset(source, "%bytes", "i8")
        for i in range(4):
            x = fn.value(f"load volatile {kind}, ptr {fn.offset(source, i * size, 'i8')}, align 4")
            place = fn.offset(target, i * size, "i8")
            fn.emit(f"store volatile {kind} {x}, ptr {place}, align 4")
    return "0"


def _pause(fn: Function) -> str:
    with fn.loop(0, "%steps"):
        fn.emit(fn.module.target.pause.replace("call void", "tail call void"))
    return "0"


_PROBES: dict[str, Callable[[Function], str]] = {
    "additions": _additions, "sums": lambda fn: _fma(fn, SUMS), "sum": lambda fn: _fma(fn, 1),
    "loads": _loads, "forward": _forward, "follow": _follow, "copy": _copy, "pause": _pause,
}  # fmt: skip


class Measurement:
    """A measurement in steps: ``for _ in measurement.steps(): ...``, then `found` has the result.

    Attributes:
        found: what was measured, when the last step is done.
    """

    found: Measured

    def __init__(self, target: Target) -> None:
        """`target`: a machine whose code runs here."""
        self.target, self.tuning = target, target.tuning
        self._best: dict[str, float] = {}

    def steps(self) -> Iterator[None]:
        """Steps of about a millisecond each; the first one may compile the probes.

        Raises:
            MemoryError: there is no memory for a block that no cache holds.
        """
        code = jit_of(self.target).load(lambda: probes_text(self.target), forever=False)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._probes: dict[str, Probe] = {name: kind(code.address(name)) for name in _PROBES}
        yield
        yield from self._arithmetic()
        yield from self._caches()
        yield from self._memory()
        self.found = self._told()
        del self._probes, code

    def _time(self, title: str, memory: NDArray, probe: str, steps: int, size: int = 0) -> None:
        """Run a probe, and keep its time if it is the shortest of the title's."""
        run, place = self._probes[probe], memory.ctypes.data
        start = thread_time()
        run(place, steps, size)
        taken = thread_time() - start
        self._best[title] = min(taken, self._best.get(title, taken))

    def _arithmetic(self) -> Iterator[None]:
        memory = _memory_of(1024).view(np.float32)
        memory[:] = 0.5
        for _ in range(ROUNDS):
            self._time("cycle", memory, "additions", STEPS, 3)
            self._time("fma", memory, "sums", STEPS)
            memory[:] = 0.5
            self._time("latency", memory, "sum", STEPS)
            memory[:] = 0.5
            yield
            self._time("loads", memory, "loads", STEPS)
            self._time("forward", memory, "forward", STEPS)
            self._time("pause", memory, "pause", STEPS // 10)
            yield

    def _caches(self) -> Iterator[None]:
        t = self.tuning
        half = t.l2.size // 4 // (4 * t.vector_bytes) * (4 * t.vector_bytes)
        memory = _memory_of(2 * half)
        memory[:] = 0
        for _ in range(ROUNDS):
            self._time("copy", memory, "copy", 8, half)
            yield
        self._copied = 8 * half
        levels = {"l1": t.l1.size // 2, "l2": t.l2.size // 2}
        if t.l3.size > 2 * t.l2.size:  # otherwise there is none behind the second level
            levels["l3"] = min(t.l3.size // 2, max(4 * t.l2.size, MOST_FOLLOWED))
        for title, size in levels.items():
            chain = _chain(size, t.line)
            yield
            for _ in range(ROUNDS):
                self._time(title, chain, "follow", STEPS)
                yield

    def _memory(self) -> Iterator[None]:
        """Lines of memory: copied one after another, which puts the first ones out of the caches,
        and then found one by one."""
        half = min(self.tuning.l3.size, MOST_MEMORY // 2) // PAGE * PAGE
        memory = _memory_of(2 * half)
        found = range(half // 2 // PAGE)
        places = memory.ctypes.data + PAGE * np.random.default_rng(1).permutation(len(found))
        starts = (places - memory.ctypes.data) // 8
        first = int(starts[0])
        memory[starts] = np.roll(places, -1)
        yield
        self._moved = half // (4 * self.tuning.vector_bytes) * (4 * self.tuning.vector_bytes)
        for _ in range(ROUNDS):
            self._time("moving", memory, "copy", 1, self._moved)
            yield
            self._time("memory", memory[first:], "follow", len(found) // FOLLOWED)
            yield
            self._time("cycle", memory[:8].copy(), "additions", STEPS, 3)
        self._followed = len(found) // FOLLOWED * FOLLOWED

    def _told(self) -> Measured:
        cycle = self._best["cycle"] / (STEPS * ADDITIONS)
        took = {title: taken / cycle for title, taken in self._best.items()}
        memory, followed = took["memory"] / self._followed, STEPS * FOLLOWED
        values = {
            "fma": SUMS * STEPS / took["fma"],
            "loads": SUMS * STEPS / took["loads"],
            "latency": took["latency"] / STEPS,
            "forward": took["forward"] / STEPS - 1,  # the address takes a cycle
            "copy": 2 * self._copied / took["copy"],
            "moving": took["moving"] / (self._moved / self.tuning.line),
            "l1": took["l1"] / followed,
            "l2": took["l2"] / followed,
            "l3": took["l3"] / followed if "l3" in took else memory,
            "memory": memory,
            "pause": took["pause"] / (STEPS // 10),
            "nanoseconds": cycle * 1e9,
        }
        return Measured(**{name: round(value, 3) for name, value in values.items()})


def _memory_of(size: int) -> NDArray:
    """So many bytes from the beginning of a cache line on, as numbers of 64 bits: programs' memory
    begins at one, too, and vectors across two lines take twice as long."""
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(np.int64)


def _chain(size: int, line: int) -> NDArray:
    """Pointers in a block of so many bytes, one a line, each to another one in a random order that
    goes through all of them."""
    memory = np.zeros(size // 8, np.int64)
    order = np.random.default_rng(0).permutation(size // line) * (line // 8)
    order = np.concatenate([[0], order[order != 0]])
    memory[order] = memory.ctypes.data + 8 * np.roll(order, -1)
    return memory
