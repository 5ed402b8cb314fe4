"""Integer arithmetic that never traps: x/0 is 0, and the smallest number / -1 wraps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.core.dtypes import DType

if TYPE_CHECKING:
    from treadle.runtime.cpu.elements import Elements

_PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}


def apply(e: Elements, fn: str, args: Sequence[str], dtype: DType) -> str:
    """A function of the kernel table on integers."""
    return _Integers(e, dtype).apply(fn, *args)


class _Integers:
    def __init__(self, e: Elements, dtype: DType) -> None:
        self.e, self.dtype = e, dtype
        self.kind, self.signed = e.type(dtype), dtype.kind == "i"

    def c(self, value: int) -> str:
        return self.e.constant(value, self.dtype)

    def op(self, name: str, a: str, b: str) -> str:
        return self.e.value(f"{name} {self.kind} {a}, {b}")

    def test(self, predicate: str, a: str, b: str) -> str:
        return self.e.value(f"icmp {predicate} {self.kind} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        return self.e.select(mask, a, b, self.dtype)

    def mask_and(self, a: str, b: str) -> str:
        return self.e.lanes32.both(a, b)

    def apply(self, fn: str, x: str, y: str = "") -> str:
        if fn in _PLAIN:
            return self.op(_PLAIN[fn], x, y)
        return str(getattr(self, fn if fn != "not" else "invert")(x, y))

    def invert(self, x: str, _: str) -> str:
        return self.op("xor", x, self.c(-1))

    def neg(self, x: str, _: str) -> str:
        return self.op("sub", self.c(0), x)

    def abs(self, x: str, _: str) -> str:
        if not self.signed:
            return x
        return self.select(self.test("slt", x, self.c(0)), self.neg(x, ""), x)

    def sign(self, x: str, _: str) -> str:
        negative = self.c(-1) if self.signed else self.c(0)
        below = self.test("slt", x, self.c(0)) if self.signed else self.test("ult", x, self.c(0))
        nonzero = self.select(below, negative, self.c(1))
        return self.select(self.test("eq", x, self.c(0)), self.c(0), nonzero)

    def min(self, x: str, y: str) -> str:
        return self.select(self.test("slt" if self.signed else "ult", x, y), x, y)

    def max(self, x: str, y: str) -> str:
        return self.select(self.test("sgt" if self.signed else "ugt", x, y), x, y)

    def truncdiv(self, x: str, y: str) -> str:
        zero = self.test("eq", y, self.c(0))
        if not self.signed:
            quotient = self.op("udiv", x, self.select(zero, self.c(1), y))
            return self.select(zero, self.c(0), quotient)
        minus = self.test("eq", y, self.c(-1))
        unsafe = self.e.lanes32.either(zero, minus)
        quotient = self.op("sdiv", x, self.select(unsafe, self.c(1), y))
        quotient = self.select(minus, self.neg(x, ""), quotient)
        return self.select(zero, self.c(0), quotient)

    def truncmod(self, x: str, y: str) -> str:
        rest = self.op("sub", x, self.op("mul", self.truncdiv(x, y), y))
        return self.select(self.test("eq", y, self.c(0)), self.c(0), rest)

    def _round_down(self, rest: str, y: str) -> str:
        """Where the quotient rounded towards zero is one too large."""
        signs = self.op("xor", rest, y)
        nonzero = self.test("ne", rest, self.c(0))
        return self.mask_and(nonzero, self.test("slt", signs, self.c(0)))

    def floordiv(self, x: str, y: str) -> str:
        bits = _power_of_two(y)
        if bits is not None:
            return self.op("ashr" if self.signed else "lshr", x, self.c(bits))
        quotient = self.truncdiv(x, y)
        if not self.signed:
            return quotient
        rest = self.op("sub", x, self.op("mul", quotient, y))
        down = self.mask_and(self._round_down(rest, y), self.test("ne", y, self.c(0)))
        return self.select(down, self.op("sub", quotient, self.c(1)), quotient)

    def mod(self, x: str, y: str) -> str:
        bits = _power_of_two(y)
        if bits is not None:
            return self.op("and", x, self.c((1 << bits) - 1))
        rest = self.truncmod(x, y)
        if not self.signed:
            return rest
        return self.select(self._round_down(rest, y), self.op("add", rest, y), rest)

    def _amount(self, y: str) -> str:
        """A shift amount clamped to the width."""
        top = self.c(self.dtype.size * 8 - 1)
        y = self.select(self.test("slt" if self.signed else "ult", y, self.c(0)), self.c(0), y)
        return self.select(self.test("sgt" if self.signed else "ugt", y, top), top, y)

    def shl(self, x: str, y: str) -> str:
        return self.op("shl", x, self._amount(y))

    def shr(self, x: str, y: str) -> str:
        return self.op("ashr" if self.signed else "lshr", x, self._amount(y))

    def pow(self, x: str, y: str) -> str:
        """By squaring, with wrap-around; a negative power is 0 unless x is 1 or -1."""
        fn = self.e.function
        result, base, left = (fn.alloca(self.kind) for _ in range(3))
        for place, start in ((result, self.c(1)), (base, x), (left, y)):
            fn.emit(f"store {self.kind} {start}, ptr {place}")
        with fn.loop(0, self.dtype.size * 8):
            r, b, n = (fn.value(f"load {self.kind}, ptr {p}") for p in (result, base, left))
            odd = self.test("ne", self.op("and", n, self.c(1)), self.c(0))
            fn.emit(f"store {self.kind} {self.select(odd, self.op('mul', r, b), r)}, ptr {result}")
            fn.emit(f"store {self.kind} {self.op('mul', b, b)}, ptr {base}")
            fn.emit(f"store {self.kind} {self.op('lshr', n, self.c(1))}, ptr {left}")
        power = fn.value(f"load {self.kind}, ptr {result}")
        if not self.signed:
            return power
        unit = self.test("eq", self.abs(x, ""), self.c(1))
        even = self.test("eq", self.op("and", y, self.c(1)), self.c(0))
        inverse = self.select(unit, self.select(even, self.c(1), x), self.c(0))
        return self.select(self.test("slt", y, self.c(0)), inverse, power)


def _power_of_two(constant: str) -> int | None:
    """The exponent, where a register is a constant that is a power of two."""
    digits = constant.removeprefix("splat (").rstrip(")").split(" ")[-1]
    if not digits.isdecimal() or int(digits).bit_count() != 1:
        return None
    return int(digits).bit_length() - 1
