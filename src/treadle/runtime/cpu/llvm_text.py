"""Textual LLVM IR: modules, and functions that are built block by block and line by line.

An SSA value is its text (``%v3`` or a constant). 64-bit integer arithmetic takes Python ints
too and folds them, so that shapes known at compile time cost nothing.

A block has parameters in place of phis: they are declared when the block is made, and each branch
to the block gives their values. The head of a loop has what the loop carries as parameters.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import numpy as np

from treadle.core.shapes import Dim, is_non_negative
from treadle.runtime.cpu.target import Target

T = TypeVar("T")
R = TypeVar("R")
Word: TypeAlias = "int | str"  # an i64: known now, or an SSA value


def float_text(value: float, bits: int) -> str:
    """A float constant; LLVM spells a float32 as the float64 of the same value."""
    if bits == 32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Module:
    """Declarations, constants and functions; each is added once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.declarations: dict[str, None] = {}
        self.globals: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.metadata: list[str] = []

    def declare(self, text: str) -> None:
        """``void @f(ptr)``: an external function or intrinsic."""
        self.declarations[f"declare {text}"] = None

    def constant(self, name: str, body: str) -> str:
        """A private constant ``@name``; the same name always has the same body."""
        self.globals[name] = f"@{name} = private unnamed_addr constant {body}"
        return f"@{name}"

    def variable(self, name: str, body: str) -> str:
        self.globals[name] = f"@{name} = {body}"
        return f"@{name}"

    def keeps_loops(self) -> str:
        """Metadata for the branches of loops that LLVM is to leave as they are written."""
        return self._loops(8, '"llvm.loop.unroll.disable"')

    def begins_halves(self) -> str:
        """Metadata for the branches of short loops, which are to begin with half a line of the
        cache. A loop of a few instructions takes half as long again where a line ends within it,
        and only in some processes: that depends on its address. What comes before whole lines costs
        loops that are entered often more than they gain."""
        return self._loops(6, f'"llvm.loop.align", i32 {self.target.tuning.line // 2}')

    def _loops(self, number: int, option: str) -> str:
        """The end of a branch to the next iteration, for loops with an option."""
        lines = (
            f"!{number} = distinct !{{!{number}, !{number + 1}}}",
            f"!{number + 1} = !{{!{option}}}",
        )
        self.metadata += [line for line in lines if line not in self.metadata]
        return f", !llvm.loop !{number}"

    def define(self, name: str, text: str) -> None:
        self.functions.setdefault(name, text)

    def text(self) -> str:
        return "\n".join(
            [
                *self.declarations,
                *self.globals.values(),
                *self.functions.values(),
                self.target.attributes,
                '!0 = !{i32 1}\n!1 = !{!"branch_weights", i32 1, i32 1000}\n'
                '!2 = !{!"branch_weights", i32 1000, i32 1}\n',
                *self.metadata,
            ]
        )


class Block:
    """A block of a function, with parameters that each branch to it gives values.

    Attributes:
        parameters: the type and the name of each.
        ways: for every branch to the block the block that it comes from, and the values.
        lines: the instructions; a branch written by `Function.emit` is one of them.
        end: the branch at the end, where `Function.branch` or `Function.fork` wrote it.
        on_data: whether that branch depends on anything but the counter of a loop.
    """

    def __init__(self, name: str, parameters: Sequence[tuple[str, str]] = ()) -> None:
        self.name = name
        self.parameters = list(parameters)
        self.ways: list[tuple[str, list[str]]] = []
        self.lines: list[str] = []
        self.end = ""
        self.on_data = False

    def __call__(self, *values: Word) -> Edge:
        """The way to the block, with these values of its parameters.

        Raises:
            ValueError: the block has more or fewer parameters.
        """
        if len(values) != len(self.parameters):
            raise ValueError(f"{self.name} has {len(self.parameters)} parameters: {values}")
        return Edge(self, [str(v) for v in values])

    @property
    def values(self) -> list[str]:
        """The parameters, as operands."""
        return [name for _, name in self.parameters]

    def body(self) -> list[str]:
        """The text of the block after its label."""
        phis = []
        for i, (kind, name) in enumerate(self.parameters):
            ways = ", ".join(f"[{values[i]}, %{block}]" for block, values in self.ways)
            phis.append(f"  {name} = phi {kind} {ways}")
        return [*phis, *self.lines, *([self.end] if self.end else [])]


class Edge:
    """A way to a block, with the values that its parameters have when it is taken."""

    def __init__(self, block: Block, values: list[str]) -> None:
        self.block, self.values = block, values


Goal: TypeAlias = "str | Block | Edge"  # of a branch; a name: a block without parameters


class Function:
    """The body of one function under construction.

    Attributes:
        blocks: what is written so far; instructions go to the last block.
        block: the name of the block that is being written.
        registers: the names of what instructions and parameters of blocks give; other values are
            constants.
        entry: lines at the beginning of the function, whatever block is being written.
        repeat: metadata of the branches to the next iteration of its counting loops.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.blocks = [Block("entry")]
        self.block = "entry"
        self.registers: set[str] = set()
        self.entry: list[str] = []
        self.repeat = ""
        self.count = 0

    def text(self, head: str) -> str:
        """The function in LLVM's language, given the line before its body."""
        return "\n".join([head, "entry:", *self.entry, *self.lines, "}", ""])

    def define(self, name: str, signature: str, linkage: str = "") -> None:
        """Add the function to its module: ``define(name, "void @{}(ptr %x)")``."""
        head = f"define {linkage} {signature.format(name)} #0 {{".replace("  ", " ")
        self.module.define(name, self.text(head))

    @property
    def lines(self) -> list[str]:
        """The text of the body, without the lines of `entry`."""
        first, *others = self.blocks
        return [*first.body(), *(x for b in others for x in (f"{b.name}:", *b.body()))]

    @contextmanager
    def apart(self) -> Iterator[list[Block]]:
        """Keep what is written inside apart from the function; `append` adds it. The first block is
        the rest of the block that is being written now."""
        before, self.blocks = self.blocks, [Block(self.block)]
        try:
            yield self.blocks
        finally:
            self.blocks = before

    def append(self, blocks: Sequence[Block]) -> None:
        """Add blocks that were written apart."""
        last, (first, *others) = self.blocks[-1], blocks
        last.lines += first.lines
        last.end, last.on_data = first.end, first.on_data
        self.blocks += others

    # ---- statements
    def unique(self) -> int:
        self.count += 1
        return self.count

    def emit(self, text: str) -> None:
        self.blocks[-1].lines.append("  " + text)

    def value(self, text: str) -> str:
        name = self._name()
        self.emit(f"{name} = {text}")
        return name

    def _name(self) -> str:
        name = f"%v{self.unique()}"
        self.registers.add(name)
        return name

    def alloca(self, text: str, start: str = "") -> str:
        """Stack space, reserved on entry whatever block is being written. `start` is stored there,
        on entry too."""
        name = self._name()
        self.entry.append(f"  {name} = alloca {text}")
        if start:
            self.entry.append(f"  store {start}, ptr {name}")
        return name

    def label(self, block: str | Block) -> None:
        """What follows belongs to a block."""
        begun = Block(block) if isinstance(block, str) else block
        self.registers.update(name for _, name in begun.parameters)
        self.blocks.append(begun)
        self.block = begun.name

    def block_of(self, name: str, kinds: Sequence[str]) -> Block:
        """A block to be written later, with parameters of these types; its name gets a number."""
        name = f"{name}{self.unique()}"
        return Block(name, [(kind, f"%{name}.{n}") for n, kind in enumerate(kinds)])

    def branch(self, target: Goal, ending: str = "") -> None:
        """Go to a block; `ending` is metadata of the branch."""
        self.blocks[-1].end = f"  br label %{self._way(target)}{ending}"

    def fork(self, condition: str, then: Goal, other: Goal, likely: bool | None = None) -> None:
        """Go to the one block where an i1 holds, else to the other one.

        likely: whether it nearly always holds, or hardly ever.
        """
        ending = "" if likely is None else f", !prof !{2 if likely else 1}"
        names = self._way(then), self._way(other)
        last = self.blocks[-1]
        last.end = f"  br i1 {condition}, label %{names[0]}, label %{names[1]}{ending}"
        last.on_data = True

    def _way(self, target: Goal) -> str:
        """Note a branch from the block being written, and give the name of where it goes."""
        if isinstance(target, str):
            return target
        edge = target if isinstance(target, Edge) else target()
        edge.block.ways.append((self.block, edge.values))
        return edge.block.name

    def enter(self, target: Goal) -> None:
        """Go to a block, which begins here."""
        self.branch(target)
        self.label(target.block if isinstance(target, Edge) else target)

    def call(self, declaration: str, arguments: str) -> str:
        """Call ``float @llvm.fma.f32(float, float, float)`` and return its value."""
        self.module.declare(declaration)
        return self.value(f"call {declaration.split('(')[0]}({arguments})")

    def both(self, a: str, b: str) -> str:
        """Whether two i1 hold."""
        if "true" in (a, b):
            return b if a == "true" else a
        return self.value(f"and i1 {a}, {b}")

    # ---- i64 arithmetic with constant folding
    def add(self, a: Word, b: Word) -> Word:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.value(f"add nsw i64 {a}, {b}")

    def sub(self, a: Word, b: Word) -> Word:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.value(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Word, b: Word) -> Word:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.value(f"mul nsw i64 {a}, {b}")

    def divide(self, a: Word, b: Word) -> Word:
        """Floor division of non-negative words; a divisor of 0 gives 0."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b else 0
        if b == 1:
            return a
        if isinstance(b, int):
            return self.value(f"udiv i64 {a}, {b}")
        zero = self.value(f"icmp eq i64 {b}, 0")
        divisor = self.value(f"select i1 {zero}, i64 1, i64 {b}")
        return self.select(zero, 0, self.value(f"udiv i64 {a}, {divisor}"))

    def remainder(self, a: Word, b: Word) -> Word:
        """What is left of a non-negative word; a divisor of 0 leaves 0."""
        return self._rest(a, b, self.divide(a, b))

    def _rest(self, a: Word, b: Word, quotient: Word) -> Word:
        if b == 0:
            return 0
        rest = self.sub(a, self.mul(quotient, b))
        return rest if isinstance(b, int) else self.select(self.compare("eq", b, 0), 0, rest)

    def signed_divide(self, a: Word, b: Word) -> Word:
        """Floor division of words of any sign; a divisor of 0 gives 0."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b else 0
        zero = self.compare("eq", b, 0)
        divisor = self.select(zero, 1, b)
        quotient = self.value(f"sdiv i64 {a}, {divisor}")
        rest = self.sub(a, self.mul(quotient, divisor))
        apart = self.value(f"xor i64 {rest}, {divisor}")
        below = self.value(f"ashr i64 {apart}, 63")
        exact = self.value(f"icmp eq i64 {rest}, 0")
        return self.select(zero, 0, self.add(quotient, self.select(exact, 0, below)))

    def signed_remainder(self, a: Word, b: Word) -> Word:
        """What `signed_divide` leaves, with the sign of the divisor."""
        return self._rest(a, b, self.signed_divide(a, b))

    def compare(self, predicate: str, a: Word, b: Word) -> str | bool:
        if isinstance(a, int) and isinstance(b, int):
            return bool(_COMPARE[predicate](a, b))
        return self.value(f"icmp {predicate} i64 {a}, {b}")

    def select(self, condition: str | bool, a: Word, b: Word) -> Word:
        if isinstance(condition, bool):
            return a if condition else b
        return self.value(f"select i1 {condition}, i64 {a}, i64 {b}")

    def min(self, a: Word, b: Word) -> Word:
        return self.select(self.compare("slt", a, b), a, b)

    def max(self, a: Word, b: Word) -> Word:
        return self.select(self.compare("sgt", a, b), a, b)

    def dim(self, dim: Dim, symbols: Callable[[str], Word]) -> Word:
        """The value of a symbolic dim, given where its symbols' values are."""
        if isinstance(dim, int):
            return dim
        total: Word = 0
        for monomial, coefficient in dim.terms:
            term: Word = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    factor = symbols(atom)
                else:
                    operation, left, right = atom
                    signed = not (is_non_negative(left) and is_non_negative(right))
                    operands = (self.dim(left, symbols), self.dim(right, symbols))
                    factor = self._compound(operation, signed, *operands)
                term = self.mul(term, factor)
            total = self.add(total, term)
        return total

    def _compound(self, operation: str, signed: bool, a: Word, b: Word) -> Word:
        """A compound atom of a dim; `signed`: where an operand may be negative."""
        match operation:
            case "floordiv":
                return self.signed_divide(a, b) if signed else self.divide(a, b)
            case "mod":
                return self.signed_remainder(a, b) if signed else self.remainder(a, b)
            case "min":
                return self.min(a, b)
            case "max":
                return self.max(a, b)
        raise AssertionError(f"a dim has no operation {operation}")

    # ---- memory
    def offset(self, pointer: str, index: Word, element: str) -> str:
        if index == 0:
            return pointer
        return self.value(f"getelementptr {element}, ptr {pointer}, i64 {index}")

    def load_word(self, pointer: str, index: Word = 0, kind: str = "i64") -> str:
        return self.value(f"load {kind}, ptr {self.offset(pointer, index, 'i64')}, align 8")

    # ---- control flow
    @contextmanager
    def loop(self, start: Word, stop: Word, step: Word = 1) -> Iterator[Word]:
        """``for i in range(start, stop, step)``; a single known trip has no loop."""
        known = all(isinstance(x, int) for x in (start, stop, step))
        if known and start < stop <= start + step:  # type: ignore[operator]
            yield start
            return
        k = self.unique()
        head = self._begin_counting(k, [], [start], stop)
        yield f"%i{k}"
        self._count(k, head, step, [])

    def carried(
        self, start: Word, stop: Word, step: Word, kinds: Sequence[str], state: list[str],
        body: Callable[[Word, list[str]], list[str]], most: int = 1,
    ) -> list[str]:  # fmt: skip
        """``for i in range(start, stop, step): state = body(i, state)`` with state in registers.

        Loops of up to `most` known trips are written out.
        """
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
            trips = max(0, -(-(stop - start) // step))
            if trips <= most:
                for i in range(trips):
                    state = body(start + i * step, state)
                return state
        k = self.unique()
        names = [f"%s{k}_{n}" for n in range(len(state))]
        head = self._begin_counting(k, list(zip(kinds, names, strict=True)), [start, *state], stop)
        self._count(k, head, step, body(f"%i{k}", names))
        return names

    def _begin_counting(
        self, k: int, carried: Sequence[tuple[str, str]], starts: Sequence[Word], stop: Word
    ) -> Block:
        """Begin a loop that counts up to `stop`, and its body. Gives the head, whose parameters are
        the counter and what the loop carries beside it."""
        head = Block(f"head{k}", [("i64", f"%i{k}"), *carried])
        self.enter(f"pre{k}")
        self.enter(head(*starts))
        self.emit(f"%more{k} = icmp slt i64 %i{k}, {stop}")
        self.fork(f"%more{k}", f"body{k}", f"exit{k}")
        head.on_data = False
        self.label(f"body{k}")
        return head

    def _count(self, k: int, head: Block, step: Word, state: Sequence[str]) -> None:
        """End the body of a counting loop, which gives what the next iteration begins with."""
        self.enter(f"latch{k}")
        self.emit(f"%next{k} = add nsw i64 %i{k}, {step}")
        self.branch(head(f"%next{k}", *state), self.repeat)
        self.label(f"exit{k}")

    def choose(
        self, condition: str | bool, kinds: Sequence[str], otherwise: Sequence[Word],
        then: Callable[[], Sequence[Word]], likely: bool | None = None,
    ) -> list[str]:  # fmt: skip
        """The values that `then` computes where a condition holds, else the others.

        Args:
            kinds: their types.
            likely: whether the condition nearly always holds, or hardly ever.
        """
        if isinstance(condition, bool):
            return [str(v) for v in (then() if condition else otherwise)]
        some, chosen = self.block_of("some", []), self.block_of("chosen", kinds)
        self.fork(condition, some, chosen(*otherwise), likely)
        self.label(some)
        self.enter(chosen(*then()))
        return chosen.values

    @contextmanager
    def when(self, condition: str | bool) -> Iterator[bool]:
        """Statements run only where `condition` holds; yields whether to emit them at all."""
        if condition is True:
            yield True
            return
        if condition is False:
            block = self.block
            with self.apart():
                yield False
            self.block = block
            return
        k = self.unique()
        self.fork(condition, f"then{k}", f"after{k}")
        self.label(f"then{k}")
        yield True
        self.enter(f"after{k}")


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__,
    "eq": int.__eq__, "ne": int.__ne__,
}  # fmt: skip


def interleave(function: Function, emit: Callable[[T], R], copies: Iterable[T]) -> list[R]:
    """Emit straight-line code for each of the copies, line by line in turn; gives their results.

    Neighbouring instructions are then independent, which keeps the out-of-order window busy;
    copies with control flow inside follow one another.
    """
    parts, results = [], []
    for copy in copies:
        with function.apart() as part:
            results.append(emit(copy))
        parts.append(part)
    if all(len(p) == 1 for p in parts) and len({len(p[0].lines) for p in parts}) == 1:
        for row in zip(*(p[0].lines for p in parts), strict=True):
            function.blocks[-1].lines += row
    else:
        for part in parts:
            function.append(part)
    return results
