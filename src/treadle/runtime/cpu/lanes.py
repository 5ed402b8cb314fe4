"""Vector and scalar arithmetic as LLVM text.

A `Lanes` emits operations on `count` numbers at a time, or on scalars when count is 0; every
operation means the same for both, so a masked tail or a rank-0 value has the bits of the
vector form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from treadle.runtime.cpu.llvm_text import Function, float_text

Number: TypeAlias = "float | str"  # an SSA value, or a constant for all lanes


class Lanes:
    """Operations on `count` floats of `bits` bits and integers of the same width."""

    def __init__(self, function: Function, count: int, bits: int = 32) -> None:
        self.function, self.count, self.bits = function, count, bits
        self.target = function.module.target
        self.element, self.word = {32: ("float", "i32"), 64: ("double", "i64")}[bits]
        self.floats = self.wrap(self.element)
        self.ints = self.wrap(self.word)
        self.mask = self.wrap("i1")
        self.suffix = (f"v{count}" if count else "") + f"f{bits}"
        # The widths for which AVX-512 forms exist.
        width = count * bits
        self.avx512 = width if self.target.avx512 and width in (128, 256, 512) else 0

    def wrap(self, scalar: str) -> str:
        return f"<{self.count} x {scalar}>" if self.count else scalar

    def like(self, count: int | None = None, bits: int | None = None) -> Lanes:
        return Lanes(self.function, self.count if count is None else count, bits or self.bits)

    # ---- constants
    def f(self, value: Number) -> str:
        if isinstance(value, str):
            return value
        text = float_text(value, self.bits)
        return f"splat ({self.element} {text})" if self.count else text

    def i(self, value: int | str) -> str:
        return self.int_constant(value, self.word) if isinstance(value, int) else value

    def int_constant(self, value: int, word: str) -> str:
        return f"splat ({word} {value})" if self.count else str(value)

    @property
    def true(self) -> str:
        return "splat (i1 true)" if self.count else "true"

    # ---- floats. No fast-math flags: results do not depend on what LLVM chooses to fuse.
    def add(self, a: Number, b: Number) -> str:
        return self.function.value(f"fadd {self.floats} {self.f(a)}, {self.f(b)}")

    def sub(self, a: Number, b: Number) -> str:
        return self.function.value(f"fsub {self.floats} {self.f(a)}, {self.f(b)}")

    def mul(self, a: Number, b: Number) -> str:
        return self.function.value(f"fmul {self.floats} {self.f(a)}, {self.f(b)}")

    def div(self, a: Number, b: Number) -> str:
        return self.function.value(f"fdiv {self.floats} {self.f(a)}, {self.f(b)}")

    def neg(self, a: Number) -> str:
        return self.function.value(f"fneg {self.floats} {self.f(a)}")

    def intrinsic(self, name: str, *args: Number) -> str:
        """An overloaded intrinsic whose operands and result all have the float type."""
        types = ", ".join([self.floats] * len(args))
        values = ", ".join(f"{self.floats} {self.f(a)}" for a in args)
        return self.function.call(f"{self.floats} @llvm.{name}.{self.suffix}({types})", values)

    def fma(self, a: Number, b: Number, c: Number) -> str:
        return self.intrinsic("fma", a, b, c)

    def abs(self, a: Number) -> str:
        return self.intrinsic("fabs", a)

    def sqrt(self, a: Number) -> str:
        return self.intrinsic("sqrt", a)

    def copysign(self, a: Number, sign: Number) -> str:
        return self.intrinsic("copysign", a, sign)

    # One vminps/vmaxps each: where the operands are unordered x comes back, so a NaN in x
    # survives and a constant never replaces it.
    def at_most(self, x: Number, limit: Number) -> str:
        return self.select(self.compare("olt", limit, x), limit, x)

    def at_least(self, x: Number, limit: Number) -> str:
        return self.select(self.compare("ogt", limit, x), limit, x)

    def compare(self, predicate: str, a: Number, b: Number) -> str:
        return self.function.value(f"fcmp {predicate} {self.floats} {self.f(a)}, {self.f(b)}")

    def select(self, mask: str, a: Number, b: Number) -> str:
        return self.function.value(
            f"select {self.mask} {mask}, {self.floats} {self.f(a)}, {self.floats} {self.f(b)}"
        )

    # ---- integers of the same width, and masks
    def int_binary(self, op: str, a: int | str, b: int | str) -> str:
        return self.function.value(f"{op} {self.ints} {self.i(a)}, {self.i(b)}")

    def int_compare(self, predicate: str, a: int | str, b: int | str) -> str:
        return self.function.value(f"icmp {predicate} {self.ints} {self.i(a)}, {self.i(b)}")

    def int_select(self, mask: str, a: int | str, b: int | str) -> str:
        return self.function.value(
            f"select {self.mask} {mask}, {self.ints} {self.i(a)}, {self.ints} {self.i(b)}"
        )

    def both(self, a: str, b: str) -> str:
        return self.function.value(f"and {self.mask} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.function.value(f"or {self.mask} {a}, {b}")

    def differ(self, a: str, b: str) -> str:
        return self.function.value(f"xor {self.mask} {a}, {b}")

    def negate(self, a: str) -> str:
        return self.differ(a, self.true)

    def any(self, mask: str) -> str:
        """Whether a lane of the mask is set, as a scalar i1."""
        if not self.count:
            return mask
        word = self.function.value(f"bitcast {self.mask} {mask} to i{self.count}")
        return self.function.value(f"icmp ne i{self.count} {word}, 0")

    # ---- conversions
    def bits_of(self, a: Number) -> str:
        return self.function.value(f"bitcast {self.floats} {self.f(a)} to {self.ints}")

    def from_bits(self, a: int | str) -> str:
        return self.function.value(f"bitcast {self.ints} {self.i(a)} to {self.floats}")

    def to_float(self, a: str) -> str:
        return self.function.value(f"sitofp {self.ints} {a} to {self.floats}")

    def widen(self, a: Number) -> str:
        """float32 to float64, exactly."""
        wide = self.like(bits=64)
        return self.function.value(f"fpext {self.floats} {self.f(a)} to {wide.floats}")

    def narrow(self, a: str) -> str:
        """float64 (the lanes of ``like(bits=64)``) to float32."""
        wide = self.like(bits=64)
        return self.function.value(f"fptrunc {wide.floats} {a} to {self.floats}")

    def splat(self, scalar: str, kind: str) -> str:
        """A scalar of the given LLVM type in every lane."""
        if not self.count:
            return scalar
        vector = self.wrap(kind)
        one = self.function.value(f"insertelement {vector} poison, {kind} {scalar}, i64 0")
        zeros = f"<{self.count} x i32> zeroinitializer"
        return self.function.value(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    # ---- AVX-512 (callers have the portable form)
    def _masked(self, op: str, args: list[Number], immediate: int | None = None) -> str:
        """``llvm.x86.avx512.mask.<op>.<ps|pd>.<width>`` on all lanes."""
        width = self.avx512
        name = f"@llvm.x86.avx512.mask.{op}.{'ps' if self.bits == 32 else 'pd'}.{width}"
        operands = [(self.floats, self.f(a)) for a in args]
        if immediate is not None:
            operands.append(("i32", str(immediate)))
        operands += [(self.floats, "zeroinitializer"), (f"i{max(8, self.count)}", "-1")]
        if width == 512:
            operands.append(("i32", "4"))  # the current rounding mode
        types = ", ".join(t for t, _ in operands)
        values = ", ".join(f"{t} {v}" for t, v in operands)
        return self.function.call(f"{self.floats} {name}({types})", values)

    def scalef(self, a: Number, n: Number) -> str:
        return self._masked("scalef", [a, n])

    def getexp(self, a: Number) -> str:
        return self._masked("getexp", [a])

    def getmant(self, a: Number, immediate: int) -> str:
        return self._masked("getmant", [a], immediate)


def transposed(fn: Function, rows: Sequence[str], kind: str) -> list[str]:
    """The columns of a square of vectors of a type: log2(lanes) rounds of pairwise interleaving.

    Round r exchanges, between rows i and i + 2^r, the blocks of 2^r lanes off the diagonal.
    """
    lanes, square = range(len(rows)), list(rows)
    step = 1
    while step < len(rows):
        low = [k if not k & step else k - step + len(rows) for k in lanes]
        high = [k + step if not k & step else k + len(rows) for k in lanes]
        for i in lanes:
            if not i & step:
                a, b = square[i], square[i + step]
                square[i] = shuffled(fn, kind, a, b, low)
                square[i + step] = shuffled(fn, kind, a, b, high)
        step *= 2
    return square


def shuffled(fn: Function, kind: str, a: str, b: str, order: Iterable[int]) -> str:
    """Lanes of two vectors of a type in another order; those of `b` count from behind `a`."""
    picks = [f"i32 {k}" for k in order]
    return fn.value(
        f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{', '.join(picks)}>"
    )
