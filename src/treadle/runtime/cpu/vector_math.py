"""Elementary functions as straight-line LLVM text, for vectors and scalars alike.

There is one algorithm for every lane count. AVX-512 instructions are used where they are exact
replacements (vscalef is two exact multiplications and one rounding; vgetexp and vgetmant are
the integer arithmetic on the fields), so all forms give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from treadle.runtime.cpu import coefficients as C
from treadle.runtime.cpu.lanes import Lanes, Number

INF, NAN = math.inf, math.nan
LN2, LOG2E = math.log(2), 1 / math.log(2)
# Adding MAGIC rounds to an integer and leaves it in the low bits of the representation.
MAGIC = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
MANTISSA = {32: 23, 64: 52}
BIAS = {32: 127, 64: 1023}
# ln 2 in two parts. fma(n, -high, x) is exact with a full-precision high part: the difference
# is a multiple of ulp(high) and smaller than 1.
LN2_PARTS = {
    32: (0.693147182464599609375, -1.904654299957767878541823431924e-9),
    64: (0.69314718055994530942, 2.3190468138462995584e-17),
}


def horner(v: Lanes, x: Number, coefficients: Sequence[float]) -> str:
    """``c[0] + x*(c[1] + ...)``."""
    result = v.f(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = v.fma(result, x, c)
    return result


def ldexp(v: Lanes, p: Number, n: Number, shifted: Number) -> str:
    """``p * 2**n`` for abs(n) up to 300 (float32) or 2000, correctly rounded into the denormals.

    n is integral and shifted = n + MAGIC.
    """
    if v.avx512:
        return v.scalef(p, n)
    m, b = MANTISSA[v.bits], BIAS[v.bits]
    i = v.int_binary("sub", v.bits_of(shifted), v.bits_of(MAGIC[v.bits]))
    half = v.int_binary("ashr", i, 1)
    rest = v.int_binary("sub", i, half)
    low = v.from_bits(v.int_binary("shl", v.int_binary("add", half, b), m))
    high = v.from_bits(v.int_binary("shl", v.int_binary("add", rest, b), m))
    return v.mul(v.mul(p, low), high)


# ---- exponentials
def _exp_parts(v: Lanes, x: Number) -> tuple[str, str, str]:
    """(exp(r), n, n + MAGIC) with x = n*ln2 + r."""
    shifted = v.fma(x, LOG2E, MAGIC[v.bits])
    n = v.sub(shifted, MAGIC[v.bits])
    high, low = LN2_PARTS[v.bits]
    r = v.fma(n, -low, v.fma(n, -high, x))
    tail = C.EXP_F if v.bits == 32 else C.EXP_D
    return horner(v, r, [1.0, 1.0, *tail]), n, shifted


def exp(v: Lanes, x: Number, nonpositive: bool = False) -> str:
    """nonpositive: the caller knows x <= 0 (or NaN), which saves a clamp."""
    low, high = ((-104.0, 89.0), (-746.0, 710.0))[v.bits == 64]
    if not nonpositive:
        x = v.at_most(x, high)
    return ldexp(v, *_exp_parts(v, v.at_least(x, low)))


def exp_nonpositive(v: Lanes, x: Number) -> str:
    """exp of what the caller knows to be <= 0 (or NaN)."""
    return exp(v, x, nonpositive=True)


def exp2(v: Lanes, x: Number) -> str:
    low, high = ((-151.0, 129.0), (-1076.0, 1025.0))[v.bits == 64]
    x = v.at_least(v.at_most(x, high), low)
    shifted = v.add(x, MAGIC[v.bits])
    n = v.sub(shifted, MAGIC[v.bits])
    r = v.sub(x, n)
    if v.bits == 32:
        p = v.fma(r, horner(v, r, C.EXP2_F), 1.0)
    else:
        high, low = LN2_PARTS[64]
        y = v.fma(r, high, v.mul(r, low))
        p = horner(v, y, [1.0, 1.0, *C.EXP_D])
    return ldexp(v, p, n, shifted)


def _expm1_parts(v: Lanes, x: Number) -> tuple[str, str]:
    """(expm1(r), 2**(n-1)) with x = n*ln2 + r, for x in the range of `expm1`."""
    magic = MAGIC[v.bits] + BIAS[v.bits] - 1
    shifted = v.fma(x, LOG2E, magic)
    n = v.sub(shifted, magic)
    high, low = LN2_PARTS[v.bits]
    r = v.fma(n, -low, v.fma(n, -high, x))
    q = horner(v, r, C.EXPM1_F if v.bits == 32 else C.EXP_D)
    p = v.fma(v.mul(r, r), q, r)
    return p, v.from_bits(v.int_binary("shl", v.bits_of(shifted), MANTISSA[v.bits]))


def expm1(v: Lanes, x: Number) -> str:
    low, high = ((-20.0, 89.0), (-40.0, 710.0))[v.bits == 64]
    p, scale = _expm1_parts(v, v.at_least(v.at_most(x, high), low))
    half = v.fma(p, scale, v.sub(scale, 0.5))
    return _keep_tiny(v, x, v.add(half, half))


def _keep_tiny(v: Lanes, x: Number, result: Number) -> str:
    """x itself where f(x) rounds to it: keeps -0.0 and denormals."""
    tiny = v.compare("olt", v.abs(x), 2.0**-25 if v.bits == 32 else 2.0**-54)
    return v.select(tiny, x, result)


# ---- logarithms
def _log_split(v: Lanes, x: Number) -> tuple[str, str]:
    """x = m * 2**e with m in [0.75, 1.5) for positive x, denormals included.

    With AVX-512, the results for 0, inf, NaN and negatives make e*ln2 + log(m) come out right.
    """
    if v.avx512:
        m = v.getmant(x, 0b1111)
        return m, v.sub(v.getexp(x), v.getexp(m))
    k = MANTISSA[v.bits]
    small = v.compare("olt", x, 2.0**-126 if v.bits == 32 else 2.0**-1022)
    y = v.select(small, v.mul(x, 2.0 ** (k + 2)), x)
    i = v.bits_of(y)
    d = v.int_binary("and", v.int_binary("sub", i, v.bits_of(0.75)), -(1 << k))
    m = v.from_bits(v.int_binary("sub", i, d))
    e = v.to_float(v.int_binary("ashr", d, k))
    return m, v.select(small, v.sub(e, k + 2), e)


def _log_special(v: Lanes, x: Number, result: Number) -> str:
    if v.avx512:
        return v.f(result)
    result = v.select(v.compare("olt", x, INF), result, x)  # inf, NaN
    result = v.select(v.compare("olt", x, 0.0), NAN, result)
    return v.select(v.compare("oeq", x, 0.0), -INF, result)


def _log1p_tail(v: Lanes, f: Number) -> str:
    """float32: log(1+f) - f for f in [-0.25, 0.5]."""
    return v.mul(v.mul(f, f), horner(v, f, [-0.5, *C.LOG_F]))


def _log_combine(v: Lanes, f: Number, e: Number) -> str:
    """e*ln2 + log(1+f) for f in [-0.25, 0.5]."""
    if v.bits == 32:
        return v.fma(e, LN2, v.add(f, _log1p_tail(v, f)))
    s = v.div(f, v.add(f, 2.0))
    z = v.mul(s, s)
    r = v.mul(z, horner(v, z, C.LOG_D))
    half = v.mul(v.mul(f, 0.5), f)  # fdlibm: f - (half - (s*(half + r)))
    high, low = LN2_PARTS[64]
    w = v.fma(s, v.add(half, r), v.mul(e, low))
    return v.fma(e, high, v.sub(f, v.sub(half, w)))


def log(v: Lanes, x: Number) -> str:
    m, e = _log_split(v, x)
    return _log_special(v, x, _log_combine(v, v.sub(m, 1.0), e))


def log2(v: Lanes, x: Number) -> str:
    m, e = _log_split(v, x)
    f = v.sub(m, 1.0)
    if v.bits == 32:
        q = horner(v, f, C.LOG2_F)
        t = v.fma(v.mul(f, f), q, v.mul(f, C.LOG2_LO))
        return _log_special(v, x, v.add(e, v.fma(f, C.LOG2_HI, t)))
    log_m = _log_combine(v, f, 0.0)
    return _log_special(v, x, v.fma(log_m, LOG2E, v.fma(log_m, C.LOG2E_LOW, e)))


def log1p(v: Lanes, x: Number) -> str:
    u = v.add(x, 1.0)
    if v.avx512:
        e = v.sub(v.getexp(u), v.getexp(v.getmant(u, 0b1111)))
        down = v.neg(e)
        f = v.add(v.scalef(x, down), v.sub(v.scalef(1.0, down), 1.0))
    else:
        k = MANTISSA[v.bits]
        d = v.int_binary("and", v.int_binary("sub", v.bits_of(u), v.bits_of(0.75)), -(1 << k))
        e = v.to_float(v.int_binary("ashr", d, k))
        down = v.neg(e)
        shifted = v.add(down, MAGIC[v.bits])
        one = ldexp(v, 1.0, down, shifted)
        f = v.add(ldexp(v, x, down, shifted), v.sub(one, 1.0))
    result = _log_combine(v, f, e)
    # The ends of the range: x = -1, x < -1, inf and NaN.
    result = v.select(v.compare("olt", u, INF), result, u)
    pole = v.select(v.compare("oeq", u, 0.0), -INF, NAN)
    finite = v.select(v.compare("ogt", u, 0.0), result, pole)
    result = v.select(v.compare("uno", u, u), u, finite)
    return _keep_tiny(v, x, result)


def softplus(v: Lanes, x: Number) -> str:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    return v.add(v.at_least(x, 0.0), _log1p_of_exp(v, v.neg(v.abs(x))))


def _log1p_of_exp(v: Lanes, x: Number) -> str:
    """log(1 + exp(x)) of x <= 0 (or NaN)."""
    e = exp(v, x, nonpositive=True)
    big = v.compare("ogt", e, 0.5)  # 1 + e = 2 * (1 + (e-1)/2)
    f = v.select(big, v.fma(e, 0.5, -0.5), e)
    return _log_combine(v, f, v.select(big, 1.0, 0.0))


def logaddexp(v: Lanes, x: Number, y: Number) -> str:
    """log(exp(x) + exp(y)); the distance of equal infinities is 0, that from NaN is NaN."""
    distance = v.select(v.compare("oeq", x, y), 0.0, v.abs(v.sub(x, y)))
    larger = v.select(v.compare("ogt", x, y), x, y)
    return v.add(larger, _log1p_of_exp(v, v.neg(distance)))


def _divide_by_sum(v: Lanes, numerator: Number, one: float, small: Number) -> str:
    """numerator / (one + small) for small <= one, with only the final rounding."""
    total = v.add(small, one)
    lost = v.sub(small, v.sub(total, one))  # what the addition rounded away
    inverse = v.div(1.0, total)
    q = v.mul(numerator, inverse)
    residual = v.fma(v.neg(q), total, numerator)
    return v.fma(v.fma(v.neg(q), lost, residual), inverse, q)


def sigmoid(v: Lanes, x: Number) -> str:
    e = exp(v, v.neg(v.abs(x)), nonpositive=True)
    return _divide_by_sum(v, v.select(v.compare("olt", x, 0.0), e, 1.0), 1.0, e)


# ---- tanh and erf
def _lookup(v: Lanes, name: str, table: Sequence[float], index: str) -> str:
    """``table[index & 31]`` of 32 float32."""
    fn = v.function
    text = ", ".join(f"float {v.like(0).f(x)}" for x in table)
    pointer = fn.module.constant(name, f"[32 x float] [{text}], align 64")
    if v.avx512 == 512:
        low = fn.value(f"load {v.floats}, ptr {pointer}, align 64")
        upper = fn.value(f"getelementptr i8, ptr {pointer}, i64 64")
        high = fn.value(f"load {v.floats}, ptr {upper}, align 64")
        return fn.call(
            f"{v.floats} @llvm.x86.avx512.vpermi2var.ps.512({v.floats}, {v.ints}, {v.floats})",
            f"{v.floats} {low}, {v.ints} {index}, {v.floats} {high}",
        )
    place = v.int_binary("and", index, 31)
    if not v.count:
        address = fn.value(f"getelementptr float, ptr {pointer}, i32 {place}")
        return fn.value(f"load float, ptr {address}, align 4")
    pointers = f"<{v.count} x ptr>"
    addresses = fn.value(f"getelementptr float, ptr {pointer}, {v.ints} {place}")
    return fn.call(
        f"{v.floats} @llvm.masked.gather.{v.suffix}.v{v.count}p0"
        f"({pointers}, i32, {v.mask}, {v.floats})",
        f"{pointers} {addresses}, i32 4, {v.mask} {v.true}, {v.floats} poison",
    )


def _piecewise(
    v: Lanes, x: Number, name: str, tables: Sequence[Sequence[float]], h: float, slope: bool
) -> str:
    """An odd saturating function from 32 polynomials centred on multiples of h: the fastest form
    where tables lie in two registers (AVX-512), and slow where lanes are loaded one by one.

    slope: the tables hold f(t) - t, which keeps the rounding of the linear coefficient out of
    the piece around 0.
    """
    a = v.at_most(v.abs(x), 31.4375 * h)  # 31.5 would round to 32
    t = v.fma(a, 1 / h, MAGIC[32])
    index = v.bits_of(t)
    d = v.fma(v.sub(t, MAGIC[32]), -h, a)

    def coefficient(k: int) -> str:
        return _lookup(v, f"{name}{k}", tables[k], index)

    result = coefficient(len(tables) - 1)
    for k in reversed(range(1, len(tables) - 1)):
        result = v.fma(result, d, coefficient(k))
    start = v.add(coefficient(0), d) if slope else coefficient(0)
    return v.copysign(v.fma(result, d, start), x)


def tanh(v: Lanes, x: Number) -> str:
    if v.bits == 32 and v.target.avx512:
        return _piecewise(v, x, "tanh", C.TANH_LUT, C.TANH_H, slope=False)
    # em / (em + 2) with em = expm1(2*abs(x)): exact symmetry, no cancellation, and x itself where
    # it is tiny, because nothing is halved before the division.
    a = v.at_most(v.abs(x), 20.0)
    p, scale = _expm1_parts(v, v.add(a, a))
    scale = v.add(scale, scale)
    em = v.fma(p, scale, v.sub(scale, 1.0))
    # For em > 2 the lost part below is not exact, but then it hardly counts.
    return v.copysign(_divide_by_sum(v, em, 2.0, em), x)


def erf(v: Lanes, x: Number) -> str:
    if v.bits == 32 and v.target.avx512:
        return _piecewise(v, x, "erf", C.ERF_LUT, C.ERF_H, slope=True)
    if v.bits == 32:
        a = v.at_most(v.abs(x), 4.0)  # from there on it rounds to 1
        small = v.fma(horner(v, v.mul(a, a), C.ERF_SMALL_F), a, a)
        large = v.sub(1.0, exp(v, v.neg(horner(v, a, C.ERF_LARGE_F)), nonpositive=True))
        return v.copysign(v.select(v.compare("olt", a, 0.9277), small, large), x)
    a = v.at_most(v.abs(x), 6.0)
    z = v.mul(a, a)
    small = v.fma(horner(v, z, C.ERF_SMALL_D), a, a)
    t = v.div(v.sub(a, 2.0), v.add(a, 2.0))
    q = horner(v, t, C.ERFC_D)
    large = v.fma(v.neg(exp(v, v.neg(z), nonpositive=True)), q, 1.0)
    return v.copysign(v.select(v.compare("olt", a, 1.0), small, large), x)


def sqrt(v: Lanes, x: Number) -> str:
    return v.sqrt(x)


def rsqrt(v: Lanes, x: Number) -> str:
    return v.div(1.0, v.sqrt(x))


# ---- float32 functions that are evaluated in float64
def in_float64(function: Callable[..., str]) -> Callable[..., str]:
    """The function with float32 operands widened: correctly rounded but for rare ties."""

    def apply(v: Lanes, *args: Number) -> str:
        if v.bits == 64:
            return function(v, *args)
        return v.narrow(function(v.like(bits=64), *(v.widen(a) for a in args)))

    return apply
