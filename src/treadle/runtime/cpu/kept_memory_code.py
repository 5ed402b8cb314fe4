"""The machine code of `kept_memory`.

The allocator's words are found through a variable of the module. A block has a header before it,
and is in the list of its size while it waits.
"""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Callee, Function
from treadle.runtime.cpu.builder.types import (
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Struct,
    Type,
    function,
    pointer,
)  # fmt: skip
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.kept_blocks import (
    HEADER,
    HUGE,
    LARGEST,
    MADV_HUGEPAGE,
    PAGE,
    SMALLEST,
    WORDS,
)  # fmt: skip
from treadle.runtime.cpu.target import Target

BLOCK = Struct("Block", bytes=HEADER)  # what lies before the memory of a block
# A power of two (the size's, or 0 for those that do not wait), the next in the list, and the size.
BLOCK.fields |= {"power": (0, I64), "next": (8, BLOCK.pointer), "size": (16, I64)}

_FUNCTIONS: dict[str, Type] = {
    "aligned_alloc": function(BLOCK.pointer, I64, I64),
    "free": function(VOID, BLOCK.pointer),
    "madvise": function(I32, PTR, I64, I32),
    "reclaim": function(VOID),
}
_WORDS = Struct("Words", {name: (8 * i, _FUNCTIONS.get(name, I64)) for i, name in enumerate(WORDS)})
_WORDS.fields["lists"] = (8 * len(WORDS), BLOCK.pointer)  # the first of each power of two


def memory_text(target: Target) -> str:
    """The allocator's module."""
    return memory_unit().text(target)


def _words(f: Function) -> Value:
    return f.global_("words", _WORDS.pointer).load()


def _header(p: Value) -> Value:
    """The header of a block."""
    return p.skip(-HEADER, BLOCK)


def _memory(block: Value) -> Value:
    """The memory of a block."""
    return block.skip(HEADER)


def _enter(f: Function) -> Value:
    """Whether the lists are this caller's now; who does not get them at once goes without."""
    return _words(f).place("lock").exchange(1, "acquire").eq(0)


def _leave(f: Function) -> None:
    _words(f).place("lock").store(0, "release")


def memory_unit() -> Unit:
    """The allocator's functions."""
    unit = Unit()
    unit.variable("words", "internal global ptr null")

    @unit.function(internal=False, p=_WORDS.pointer)
    def set_words(f: Function, p: Value) -> None:
        f.global_("words", _WORDS.pointer).store(p)
        f.ret()

    @unit.function(PTR, size=I64, power=I64)
    def obtain(f: Function, size: Value, power: Value) -> None:
        """A block from the C library."""
        alloc = _words(f)["aligned_alloc"]
        total = (size + (HEADER + 63)) & -64
        advise = _words(f)["madvise"]
        huge = advise.ne(None) & size.uge(HUGE)
        base = f.call(alloc, huge.select(PAGE, 64), total)
        with f.when(base.eq(None), "out"):
            f.ret(None)
        with f.when(huge, "hint"):
            f.call(advise, base, total, MADV_HUGEPAGE)
        base["power"] = power
        base["size"] = size
        f.ret(_memory(base))

    @unit.function(internal=False)
    def trim(f: Function) -> None:
        """Give everything that waits back to the C library."""
        done = f.block("done")
        f.require(_enter(f), done)
        with f.loop("sizes", power=SMALLEST) as sizes:
            power = sizes["power"]
            sizes.run_while(power.ule(LARGEST))
            waiting = _words(f).place("lists").at(power)
            first = waiting.load()
            waiting.store(None)
            with f.loop("blocks", base=first) as blocks:
                base = blocks["base"]
                blocks.run_while(base.ne(None))
                following = base["next"]
                f.call(_words(f)["free"], base)
                blocks.again(following)
            sizes.again(power + 1)
        _words(f)["kept"] = 0
        _leave(f)
        f.jump(done)
        f.begin(done)
        f.ret()

    @unit.function(PTR, size=I64, rounded=I64, power=I64)
    def fresh(f: Function, size: Value, rounded: Value, power: Value) -> None:
        """A new block of `rounded` bytes, or of `size` where there is no memory for these."""
        first = f.call(obtain, rounded, power)
        with f.when(first.ne(None), "good"):
            f.ret(first)
        f.call(trim)
        second = f.call(obtain, size, 0)
        with f.when(second.ne(None), "enough"):
            f.ret(second)
        reclaim = _words(f)["reclaim"]
        with f.when(reclaim.eq(None), "out"):
            f.ret(None)
        f.call(reclaim)
        f.call(trim)
        f.ret(f.call(obtain, size, 0))

    @unit.function(PTR, size=I64)
    def find(f: Function, size: Value) -> None:
        """A block that waits, or a new one."""
        zeros = f.intrinsic("llvm.ctlz.i64", I64, f.umax(size, 2) - 1, (1, I1))
        power = 64 - zeros  # of the least power of two that is large enough
        with f.when(power.ugt(LARGEST) | power.ult(SMALLEST), "plain"):
            f.ret(f.call(fresh, size, size, 0))
        new, leave = f.block("new"), f.block("leave")
        f.require(_enter(f), new)
        waiting = _words(f).place("lists").at(power)
        base = waiting.load()
        f.refuse(base.eq(None), leave)
        waiting.store(base["next"])
        kept = _words(f).place("kept")
        kept.store(kept.load() - (1 << power))
        _leave(f)
        f.ret(_memory(base))
        f.begin(leave)
        _leave(f)
        f.jump(new)
        f.begin(new)
        f.ret(f.call(fresh, size, 1 << power, power))

    @unit.function(p=PTR)
    def give(f: Function, p: Value) -> None:
        """A block waits in its list, or goes back to the C library."""
        with f.when(p.eq(None), "nothing"):
            f.ret()
        base = _header(p)
        power = base["power"]
        free, waits, leave = f.block("free"), f.block("waits"), f.block("leave")
        f.branch(power.eq(0), free, waits)
        f.begin(free)
        f.call(_words(f)["free"], base)
        f.ret()
        f.begin(waits)
        f.require(_enter(f), free)
        kept = _words(f).place("kept")
        more = kept.load() + (1 << power)
        f.refuse(more.ugt(_words(f)["budget"]), leave)
        kept.store(more)
        waiting = _words(f).place("lists").at(power)
        base["next"] = waiting.load()
        waiting.store(base)
        _leave(f)
        f.ret()
        f.begin(leave)
        _leave(f)
        f.jump(free)

    @unit.function(PTR, internal=False, alignment=I64, size=I64)
    def allocate(f: Function, alignment: Value, size: Value) -> None:
        """The block's size is counted, whatever it was rounded to."""
        p = f.call(find, size)
        with f.when(p.eq(None), "out"):
            f.ret(None)
        used, peak = _words(f).place("used"), _words(f).place("peak")
        count = _header(p)["size"]
        now = used.fetch_add(count, "monotonic") + count
        with f.when(now.sgt(peak.load("monotonic")), "raise"):
            peak.fetch_max(now, "monotonic")
        f.ret(p)

    @unit.function(internal=False, p=PTR)
    def release(f: Function, p: Value) -> None:
        with f.when(p.eq(None), "nothing"):
            f.ret()
        _words(f).place("used").fetch_sub(_header(p)["size"], "monotonic")
        f.call(give, p)
        f.ret()

    @unit.function(internal=False, word=pointer(I64))
    def drop(f: Function, word: Value) -> None:
        """Release the block whose address is at a word, unless a program takes it first."""
        f.call(release, word.exchange(0, "acquire").to_pointer())
        f.ret()

    _add_array_functions(unit, allocate, release)
    return unit


def _add_array_functions(unit: Unit, allocate: Callee, release: Callee) -> None:
    """malloc, calloc, realloc and free in the form in which NumPy wants them."""

    @unit.function(PTR, internal=False, context=PTR, size=I64)
    def array_malloc(f: Function, context: Value, size: Value) -> None:
        f.ret(f.call(allocate, 64, size))

    @unit.function(PTR, internal=False, context=PTR, count=I64, size=I64)
    def array_calloc(f: Function, context: Value, count: Value, size: Value) -> None:
        total, over = f.product(count, size, signed=False)
        none = f.block("none")
        f.refuse(over, none)
        p = f.call(allocate, 64, total)
        f.refuse(p.eq(None), none)
        f.clear(p, total)
        f.ret(p)
        f.begin(none)
        f.ret(None)

    @unit.function(PTR, internal=False, context=PTR, old=PTR, size=I64)
    def array_realloc(f: Function, context: Value, old: Value, size: Value) -> None:
        new = f.call(allocate, 64, size)
        with f.when(new.eq(None) | old.eq(None), "nothing"):
            f.ret(new)
        f.copy(new, old, f.umin(_header(old)["size"], size))
        f.call(release, old)
        f.ret(new)

    @unit.function(internal=False, context=PTR, p=PTR, size=I64)
    def array_free(f: Function, context: Value, p: Value, size: Value) -> None:
        f.call(release, p)
        f.ret()
