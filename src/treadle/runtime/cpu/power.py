"""pow as LLVM text, with the special cases of C99 Annex F."""

from __future__ import annotations

from treadle.runtime.cpu import coefficients as C
from treadle.runtime.cpu.lanes import Lanes, Number
from treadle.runtime.cpu.vector_math import INF, LOG2E, MAGIC, NAN, horner, ldexp


def pow(v: Lanes, x: Number, y: Number) -> str:
    magnitude = _power32(v, x, y) if v.bits == 32 else _power64(v, x, y)
    return _special_cases(v, x, y, magnitude)


def _split(v: Lanes, x: str) -> tuple[str, str]:
    """float64 x = m * 2**e with m in [0.75, 1.5) for positive normal x, e as an integer."""
    bits = v.bits_of(x)
    d = v.int_binary("and", v.int_binary("sub", bits, v.bits_of(0.75)), -(1 << 52))
    return v.from_bits(v.int_binary("sub", bits, d)), v.int_binary("ashr", d, 52)


def _small_to_float(v: Lanes, e: str) -> str:
    """An int64 that fits in 32 bits, as float64 (AVX2 has no direct conversion)."""
    fn, word = v.function, v.wrap("i32")
    narrow = fn.value(f"trunc {v.ints} {e} to {word}")
    return fn.value(f"sitofp {word} {narrow} to {v.floats}")


def _power32(v: Lanes, x: Number, y: Number) -> str:
    """abs(x)**y for float32, evaluated in float64."""
    d = v.like(bits=64)
    wide = v.widen(v.at_most(v.abs(x), 3.4028234e38))  # float32 denormals are normal now
    m, e = _split(d, wide)
    f = d.sub(m, 1.0)
    log2 = d.fma(f, horner(d, f, C.POW_LOG2), _small_to_float(d, e))
    p = d.at_least(d.at_most(d.mul(log2, v.widen(y)), 140.0), -160.0)
    shifted = d.add(p, MAGIC[64])
    r = d.sub(p, d.sub(shifted, MAGIC[64]))
    scale = d.int_binary("shl", d.bits_of(shifted), 52)
    return v.narrow(d.from_bits(d.int_binary("add", d.bits_of(horner(d, r, C.POW_EXP2)), scale)))


def _two_product(v: Lanes, a: Number, b: Number) -> tuple[str, str]:
    """a*b exactly, as high + low."""
    high = v.mul(a, b)
    return high, v.fma(a, b, v.neg(high))


def _two_sum(v: Lanes, a: Number, b: Number) -> tuple[str, str]:
    """a+b exactly for abs(a) >= abs(b)."""
    high = v.add(a, b)
    return high, v.sub(b, v.sub(high, a))


def _log_double(v: Lanes, m: str) -> tuple[str, str]:
    """log(m) for m in [0.75, 1.5) in two parts, to about 2**-66.

    2*atanh(s) with s = f/(2+f): the terms in s and s**3 are carried in two parts.
    """
    f = v.sub(m, 1.0)
    g, g_low = _two_sum(v, 2.0, f)
    s = v.div(f, g)
    rest = v.fma(v.neg(s), g_low, v.fma(v.neg(s), g, f))
    s_low = v.div(rest, g)
    z, z_low = _two_product(v, s, s)
    z_low = v.fma(v.add(s, s), s_low, z_low)
    cube, cube_low = _two_product(v, z, s)
    cube_low = v.add(cube_low, v.fma(z, s_low, v.mul(z_low, s)))
    third, third_low = _two_product(v, cube, 2 / 3)
    third_low = v.add(third_low, v.fma(cube, C.TWO_THIRDS_LOW, v.mul(cube_low, 2 / 3)))
    tail = v.mul(v.mul(v.mul(z, z), s), horner(v, z, C.POW_LOG_D))
    high, low = _two_sum(v, v.add(s, s), third)
    low = v.add(low, v.add(v.add(s_low, s_low), v.add(third_low, tail)))
    return _two_sum(v, high, low)


def _power64(v: Lanes, x: Number, y: Number) -> str:
    """abs(x)**y for float64, with the logarithm in two parts."""
    a = v.at_most(v.abs(x), 1.7976931348623157e308)
    tiny = v.compare("olt", a, 2.0**-1022)
    m, e = _split(v, v.select(tiny, v.mul(a, 2.0**54), a))
    exponent = _small_to_float(v, e)
    exponent = v.select(tiny, v.sub(exponent, 54.0), exponent)
    high, low = _log_double(v, m)
    # log2(x) = e + log(m)/ln2
    t, t_low = _two_product(v, high, LOG2E)
    t_low = v.add(t_low, v.fma(high, C.LOG2E_LOW, v.mul(low, LOG2E)))
    t, t_low = _two_sum(v, t, t_low)
    log2, log2_low = _two_sum(v, exponent, t)
    small = v.compare("oeq", exponent, 0.0)  # the sum above needs abs(exponent) >= abs(t)
    log2 = v.select(small, t, log2)
    log2_low = v.select(small, t_low, v.add(log2_low, t_low))
    # y is clamped where the result overflows anyway: products stay finite.
    y = v.at_least(v.at_most(y, 1e300), -1e300)
    p, p_low = _two_product(v, log2, y)
    p_low = v.fma(log2_low, y, p_low)
    p_safe = v.at_least(v.at_most(p, 1100.0), -1200.0)
    clamped = v.compare("une", p_safe, p)
    p_low = v.select(clamped, 0.0, p_low)
    shifted = v.add(p_safe, MAGIC[64])
    n = v.sub(shifted, MAGIC[64])
    r, r_low = _two_sum(v, v.sub(p_safe, n), p_low)
    # 2**r = exp(r*ln2)
    w, w_low = _two_product(v, r, 0.6931471805599453)
    w_low = v.add(w_low, v.fma(r, C.LN2_LOW, v.mul(r_low, 0.6931471805599453)))
    w, w_low = _two_sum(v, w, w_low)
    q = v.mul(v.mul(w, w), horner(v, w, C.EXP_D))
    tail = v.add(q, v.fma(w_low, v.add(w, 1.0), w))
    return ldexp(v, v.add(1.0, tail), n, shifted)


def _special_cases(v: Lanes, x: Number, y: Number, r: str) -> str:
    ax, ay = v.abs(x), v.abs(y)
    y_infinite = v.compare("oeq", ay, INF)
    whole = v.compare("oeq", v.intrinsic("rint", y), y)
    half = v.mul(y, 0.5)
    odd = v.both(whole, v.compare("une", v.intrinsic("rint", half), half))
    big = v.differ(v.compare("ogt", ax, 1.0), v.compare("olt", y, 0.0))
    edge = v.either(v.compare("oeq", ax, 0.0), v.compare("oeq", ax, INF))
    r = v.select(v.either(edge, y_infinite), v.select(big, INF, 0.0), r)
    negative = v.int_compare("slt", v.bits_of(x), 0)
    real = v.both(v.compare("olt", ax, INF), v.compare("one", ax, 0.0))
    r = v.select(v.both(v.both(negative, v.negate(whole)), real), NAN, r)
    r = v.select(v.both(negative, odd), v.neg(r), r)
    r = v.select(v.compare("uno", x, y), v.add(x, y), r)
    one = v.either(v.compare("oeq", y, 0.0), v.compare("oeq", x, 1.0))
    one = v.either(one, v.both(v.compare("oeq", ax, 1.0), y_infinite))
    return v.select(one, 1.0, r)
