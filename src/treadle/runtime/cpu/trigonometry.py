"""sin, cos and tan for every argument, as LLVM text.

Ordinary arguments are reduced with a three-part pi/2; huge ones, rare, leave the vector path
for a scalar function that multiplies by enough bits of 2/pi.
"""

from __future__ import annotations

import functools
import math

from treadle.runtime.cpu import coefficients as C
from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import F64, I1, I8, I64, Type, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.lanes import Lanes, Number
from treadle.runtime.cpu.vector_math import INF, MAGIC, horner

_HALF_PI = {
    32: (1.57079637050628662109375, -4.37113900018624283e-8, -1.71512451e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_HUGE = {32: 48000.0, 64: 1e5}  # the three parts are exact enough up to here

_I192 = Type("i192", 24, "i")
_I256 = Type("i256", 1, "i")  # at any byte


@functools.cache
def _huge_unit() -> Unit:
    """``trig_huge(x, r, q)``: the remainder r of a huge x, and the number q of quarter turns."""
    unit, digits = Unit(), C.TWO_OVER_PI_1216.to_bytes(192, "little")
    text = "".join(f"\\{byte:02X}" for byte in digits)
    unit.variable("two_over_pi", f'private unnamed_addr constant [192 x i8] c"{text}"')

    @unit.function(attributes="noinline", x=F64, rp=pointer(F64), qp=pointer(I64))
    def trig_huge(f: Function, x: Value, rp: Value, qp: Value) -> None:
        # x = mantissa * 2^exponent.
        bits = x.bitcast(I64)
        exponent = (bits.lshr(52) & 2047) - 1075
        mantissa = bits & ((1 << 52) - 1) | 1 << 52
        # mantissa * T * 2^(exponent - 1216) mod 4, for T = floor(2/pi * 2^1216), needs only the 192
        # bits of T that end near bit 1218 - exponent.
        lowest = 1218 - exponent - 192
        place = f.global_("two_over_pi", I8).skip(lowest.lshr(3), _I256)
        near = place.load().lshr((lowest & 7).zext(_I256)).trunc(_I192)
        quarters = mantissa.zext(_I192) * near  # in units of 2^-190
        turns = (quarters + (1 << 189)).lshr(190)
        rest = quarters - (turns << 190)
        below = rest.slt(0)
        size = below.select(-rest, rest)
        # The 63 leading bits of the rest, times pi/2: they are worth 2^(129 - zeros - 190) each.
        zeros = f.intrinsic("llvm.ctlz.i192", _I192, size, (0, I1))
        leading = (size << zeros).lshr(129).trunc(I64).to_float(F64)
        scale = ((1023 + 129 - 190 - zeros.trunc(I64)) << 52).bitcast(F64)
        angle = leading * (math.pi / 2) * scale
        negative = (bits & -(1 << 63)).ne(0)
        rp.store((below ^ negative).select(-angle, angle))
        number = turns.trunc(I64)
        qp.store(negative.select(-number, number))
        f.ret()

    return unit


def _is_huge(v: Lanes, x: Number) -> str:
    a = v.abs(x)
    return v.both(v.compare("ogt", a, _HUGE[v.bits]), v.compare("olt", a, INF))


def reduce_quadrant(v: Lanes, x: Number) -> tuple[str, str]:
    """r in [-pi/4, pi/4] and the integer q with x = q*pi/2 + r."""
    shifted = v.fma(x, 2 / math.pi, MAGIC[v.bits])
    n = v.sub(shifted, MAGIC[v.bits])
    r: Number = x
    for part in _HALF_PI[v.bits]:
        r = v.fma(n, -part, r)
    q = v.bits_of(shifted)
    _huge_unit().add_to(v.function.module)
    found = v.f(r), q

    def patched() -> tuple[str, str]:
        return _patch_lanes(v, x, *found) if v.count else _reduce_one(v, v.f(x))

    some = v.any(_is_huge(v, x))
    r, q = v.function.choose(some, [v.floats, v.ints], found, patched, likely=False)
    return r, q


def _reduce_one(v: Lanes, x: str) -> tuple[str, str]:
    """The reduction of one huge scalar."""
    fn = v.function
    rp, qp = fn.alloca("double"), fn.alloca("i64")
    wide = x if v.bits == 64 else fn.value(f"fpext float {x} to double")
    fn.emit(f"call void @trig_huge(double {wide}, ptr {rp}, ptr {qp})")
    r, q = fn.value(f"load double, ptr {rp}"), fn.value(f"load i64, ptr {qp}")
    if v.bits == 32:
        r = fn.value(f"fptrunc double {r} to float")
        q = fn.value(f"trunc i64 {q} to i32")
    return r, q


def _patch_lanes(v: Lanes, x: Number, r: str, q: str) -> tuple[str, str]:
    """Spill the vectors, replace the huge lanes, reload."""
    fn, one = v.function, v.like(0)
    px = fn.alloca(f"[{v.count} x {v.element}], align 64")
    pr = fn.alloca(f"[{v.count} x {v.element}], align 64")
    pq = fn.alloca(f"[{v.count} x {v.word}], align 64")
    fn.emit(f"store {v.floats} {v.f(x)}, ptr {px}, align 64")
    fn.emit(f"store {v.floats} {r}, ptr {pr}, align 64")
    fn.emit(f"store {v.ints} {q}, ptr {pq}, align 64")
    with fn.loop(0, v.count) as lane:
        x1 = fn.value(f"load {v.element}, ptr {fn.offset(px, lane, v.element)}")
        with fn.when(_is_huge(one, x1)):
            r1, q1 = _reduce_one(one, x1)
            fn.emit(f"store {v.element} {r1}, ptr {fn.offset(pr, lane, v.element)}")
            fn.emit(f"store {v.word} {q1}, ptr {fn.offset(pq, lane, v.word)}")
    return (
        fn.value(f"load {v.floats}, ptr {pr}, align 64"),
        fn.value(f"load {v.ints}, ptr {pq}, align 64"),
    )


def _sin_cos_reduced(v: Lanes, r: str) -> tuple[str, str]:
    """sin(r) and cos(r) for abs(r) <= pi/4."""
    z = v.mul(r, r)
    single = v.bits == 32
    s = v.fma(v.mul(horner(v, z, C.SIN_F if single else C.SIN_D), z), r, r)
    z2 = v.mul(z, z)
    h = v.fma(z, -0.5, 1.0)
    tail = horner(v, z, C.COS_F if single else C.COS_D)
    if single:
        return s, v.fma(tail, z2, h)
    # The rounding error of 1 - z/2 counts in float64.
    return s, v.add(h, v.fma(tail, z2, v.fma(z, -0.5, v.sub(1.0, h))))


def _sine(v: Lanes, x: Number, quarter: int) -> str:
    r, q = reduce_quadrant(v, x)
    if quarter:
        q = v.int_binary("add", q, quarter)
    s, c = _sin_cos_reduced(v, r)
    odd = v.int_compare("ne", v.int_binary("and", q, 1), 0)
    sign = v.int_binary("shl", v.int_binary("and", q, 2), v.bits - 2)
    return v.from_bits(v.int_binary("xor", v.bits_of(v.select(odd, c, s)), sign))


def sin(v: Lanes, x: Number) -> str:
    return v.select(v.compare("oeq", x, 0.0), x, _sine(v, x, 0))  # sin(-0) = -0


def cos(v: Lanes, x: Number) -> str:
    return _sine(v, x, 1)


def tan(v: Lanes, x: Number) -> str:
    r, q = reduce_quadrant(v, x)
    s, c = _sin_cos_reduced(v, r)
    odd = v.int_compare("ne", v.int_binary("and", q, 1), 0)
    t = v.div(v.select(odd, v.neg(c), s), v.select(odd, s, c))
    return v.select(v.compare("oeq", x, 0.0), x, t)
