"""sin, cos and tan for every argument, as LLVM text.

Ordinary arguments are reduced with a three-part pi/2; huge ones, rare, leave the vector path
for a scalar function that multiplies by enough bits of 2/pi.
"""

from __future__ import annotations

import math

from treadle.runtime.cpu import coefficients as C
from treadle.runtime.cpu.lanes import Lanes, Number
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.vector_math import INF, MAGIC, horner

_HALF_PI = {
    32: (1.57079637050628662109375, -4.37113900018624283e-8, -1.71512451e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_HUGE = {32: 48000.0, 64: 1e5}  # the three parts are exact enough up to here

_REDUCE_HUGE = """
define internal void @trig_huge(double %x, ptr %rp, ptr %qp) noinline #0 {
  ; x = m 2^e; bits of 2/pi from a little-endian integer floor(2/pi 2^1216)
  %b = bitcast double %x to i64
  %ex0 = lshr i64 %b, 52
  %ex = and i64 %ex0, 2047
  %m0 = and i64 %b, 4503599627370495
  %m = or i64 %m0, 4503599627370496
  %e = sub i64 %ex, 1075
  ; m*T*2^(e-1216) mod 4: keep 192 bits of T ending near bit 1218-e
  %top = sub i64 1218, %e
  %lowbit = sub i64 %top, 192
  %byte = lshr i64 %lowbit, 3
  %slack = and i64 %lowbit, 7
  %p = getelementptr i8, ptr @two_over_pi, i64 %byte
  %w0 = load i256, ptr %p, align 1
  %sl = zext i64 %slack to i256
  %w1 = lshr i256 %w0, %sl
  %w = trunc i256 %w1 to i192
  %mm = zext i64 %m to i192
  %prod = mul i192 %mm, %w
  %half = shl i192 1, 189
  %r0 = add i192 %prod, %half
  %q0 = lshr i192 %r0, 190
  %q = trunc i192 %q0 to i64
  %qs = shl i192 %q0, 190
  %frac = sub i192 %prod, %qs          ; signed, units of 2^-190 quadrants
  %neg = icmp slt i192 %frac, 0
  %nf = sub i192 0, %frac
  %abs = select i1 %neg, i192 %nf, i192 %frac
  %lz = call i192 @llvm.ctlz.i192(i192 %abs, i1 false)
  %norm = shl i192 %abs, %lz
  %hi0 = lshr i192 %norm, 129          ; 63 bits
  %hi = trunc i192 %hi0 to i64
  %d0 = sitofp i64 %hi to double       ; value = hi * 2^(129 - lz - 190)
  %lz64 = trunc i192 %lz to i64
  %k0 = sub i64 962, %lz64             ; 1023 + 129 - 190
  %k1 = shl i64 %k0, 52
  %sc = bitcast i64 %k1 to double
  %d1 = fmul double %d0, 0x3FF921FB54442D18
  %d2 = fmul double %d1, %sc
  %sgn = and i64 %b, -9223372036854775808
  %negb = icmp ne i64 %sgn, 0
  %flip = xor i1 %neg, %negb
  %dn = fneg double %d2
  %d = select i1 %flip, double %dn, double %d2
  %qn = sub i64 0, %q
  %qq = select i1 %negb, i64 %qn, i64 %q
  store double %d, ptr %rp
  store i64 %qq, ptr %qp
  ret void
}
"""


def _define_huge(module: Module) -> None:
    digits = C.TWO_OVER_PI_1216.to_bytes(192, "little")
    text = "".join(f"\\{byte:02X}" for byte in digits)
    module.constant("two_over_pi", f'[192 x i8] c"{text}"')
    module.declare("i192 @llvm.ctlz.i192(i192, i1)")
    module.define("trig_huge", _REDUCE_HUGE)


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
    _define_huge(v.function.module)
    fn, k = v.function, v.function.unique()
    some = v.any(_is_huge(v, x))
    fn.branch(f"test{k}")
    fn.label(f"test{k}")
    fn.emit(f"br i1 {some}, label %slow{k}, label %join{k}, !prof !1")
    fn.label(f"slow{k}")
    patched_r, patched_q = _patch_lanes(v, x, v.f(r), q) if v.count else _reduce_one(v, v.f(x))
    source = fn.block
    fn.branch(f"join{k}")
    fn.label(f"join{k}")
    r = fn.value(f"phi {v.floats} [{r}, %test{k}], [{patched_r}, %{source}]")
    q = fn.value(f"phi {v.ints} [{q}, %test{k}], [{patched_q}, %{source}]")
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
