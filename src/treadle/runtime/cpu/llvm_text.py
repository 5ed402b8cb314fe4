"""Textual LLVM IR: modules and functions built line by line.

An SSA value is its text (``%v3`` or a constant). 64-bit integer arithmetic takes Python ints
too and folds them, so that shapes known at compile time cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from treadle.core.shapes import Dim, is_non_negative
from treadle.runtime.cpu.target import Target

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


class Function:
    """The body of one function under construction."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count = 0
        self.block = "entry"

    def define(self, name: str, signature: str, linkage: str = "") -> None:
        """Add the function to its module: ``define(name, "void @{}(ptr %x)")``."""
        head = f"define {linkage} {signature.format(name)} #0 {{".replace("  ", " ")
        self.module.define(name, "\n".join([head, "entry:", *self.entry, *self.lines, "}", ""]))

    # ---- statements
    def unique(self) -> int:
        self.count += 1
        return self.count

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        name = f"%v{self.unique()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def alloca(self, text: str) -> str:
        """Stack space, reserved on entry whatever block is being emitted."""
        name = f"%v{self.unique()}"
        self.entry.append(f"  {name} = alloca {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(name + ":")
        self.block = name

    def branch(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def call(self, declaration: str, arguments: str) -> str:
        """Call ``float @llvm.fma.f32(float, float, float)`` and return its value."""
        self.module.declare(declaration)
        return self.value(f"call {declaration.split('(')[0]}({arguments})")

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
        if b == 0:
            return 0
        rest = self.sub(a, self.mul(self.divide(a, b), b))
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
                    combine = getattr(self, _dim_operation(operation, signed))
                    factor = combine(self.dim(left, symbols), self.dim(right, symbols))
                term = self.mul(term, factor)
            total = self.add(total, term)
        return total

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
        self.branch(f"pre{k}")
        self.label(f"pre{k}")
        self.branch(f"head{k}")
        self.label(f"head{k}")
        self.emit(f"%i{k} = phi i64 [{start}, %pre{k}], [%next{k}, %latch{k}]")
        self.emit(f"%more{k} = icmp slt i64 %i{k}, {stop}")
        self.emit(f"br i1 %more{k}, label %body{k}, label %exit{k}")
        self.label(f"body{k}")
        yield f"%i{k}"
        self.branch(f"latch{k}")
        self.label(f"latch{k}")
        self.emit(f"%next{k} = add nsw i64 %i{k}, {step}")
        self.branch(f"head{k}")
        self.label(f"exit{k}")

    def carried(
        self, start: Word, stop: Word, step: int, kinds: Sequence[str], state: list[str],
        body: Callable[[Word, list[str]], list[str]], most: int = 1,
    ) -> list[str]:  # fmt: skip
        """``for i in range(start, stop, step): state = body(i, state)`` with state in registers.

        Loops of up to `most` known trips are written out.
        """
        if isinstance(start, int) and isinstance(stop, int):
            trips = max(0, -(-(stop - start) // step))
            if trips <= most:
                for i in range(trips):
                    state = body(start + i * step, state)
                return state
        k = self.unique()
        self.branch(f"pre{k}")
        self.label(f"pre{k}")
        self.branch(f"head{k}")
        self.label(f"head{k}")
        self.emit(f"%i{k} = phi i64 [{start}, %pre{k}], [%next{k}, %latch{k}]")
        hole = len(self.lines)
        names = [f"%s{k}_{n}" for n in range(len(state))]
        self.emit(f"%more{k} = icmp slt i64 %i{k}, {stop}")
        self.emit(f"br i1 %more{k}, label %body{k}, label %exit{k}")
        self.label(f"body{k}")
        after = body(f"%i{k}", names)
        self.branch(f"latch{k}")
        self.label(f"latch{k}")
        self.emit(f"%next{k} = add nsw i64 %i{k}, {step}")
        self.branch(f"head{k}")
        self.label(f"exit{k}")
        self.lines[hole:hole] = [
            f"  {name} = phi {kind} [{before}, %pre{k}], [{value}, %latch{k}]"
            for name, kind, before, value in zip(names, kinds, state, after, strict=True)
        ]
        return names

    @contextmanager
    def when(self, condition: str | bool) -> Iterator[bool]:
        """Statements run only where `condition` holds; yields whether to emit them at all."""
        if isinstance(condition, bool):
            mark = len(self.lines)
            yield condition
            if not condition:
                del self.lines[mark:]
            return
        k = self.unique()
        self.emit(f"br i1 {condition}, label %then{k}, label %after{k}")
        self.label(f"then{k}")
        yield True
        self.branch(f"after{k}")
        self.label(f"after{k}")


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__,
    "eq": int.__eq__, "ne": int.__ne__,
}  # fmt: skip


def _dim_operation(operation: str, signed: bool) -> str:
    name = {"floordiv": "divide", "mod": "remainder"}.get(operation)
    if name is None:
        return operation
    return f"signed_{name}" if signed else name


def interleave(function: Function, emitters: list[Callable[[], None]]) -> None:
    """Emit independent straight-line copies of the same code line by line in turn.

    Neighbouring instructions are then independent, which keeps the out-of-order window busy;
    copies with control flow inside follow one another.
    """
    parts = []
    for emitter in emitters:
        start = len(function.lines)
        emitter()
        parts.append(function.lines[start:])
        del function.lines[start:]
    straight = len({len(p) for p in parts}) == 1 and all(x.startswith("  ") for x in parts[0])
    if straight:
        function.lines += [line for row in zip(*parts, strict=True) for line in row]
    else:
        for part in parts:
            function.lines += part
