"""Conversions between dtypes in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.runtime.cpu.lanes import Lanes

if TYPE_CHECKING:
    from treadle.runtime.cpu.elements import Elements
    from treadle.runtime.cpu.llvm_text import Word


def cast(e: Elements, x: str, source: DType, target: DType) -> str:
    """`x` as `target`: integers wrap, floats truncate into integers and saturate (NaN: 0)."""
    if source is target:
        return x
    if target.is_bool:
        return _to_bool(e, x, source)
    if source.is_bool:
        return _from_bool(e, x, target)
    if source.is_floating:
        return (
            _between_floats(e, x, source, target)
            if target.is_floating
            else _to_integer(e, x, source, target)
        )
    if target.is_floating:
        return _from_integer(e, x, source, target)
    return _resize(e, x, source, target)


def _to_bool(e: Elements, x: str, source: DType) -> str:
    predicate = "fcmp une" if source.is_floating else "icmp ne"
    return e.value(f"{predicate} {e.type(source)} {x}, {e.constant(0, source)}")


def _from_bool(e: Elements, x: str, target: DType) -> str:
    if target.is_floating:
        return e.select(x, e.constant(1, target), e.constant(0, target), target)
    return e.value(f"zext {e.type(dtypes.bool)} {x} to {e.type(target)}")


def _between_floats(e: Elements, x: str, source: DType, target: DType) -> str:
    if source.size == 8 and target.size == 2:
        # Rounding twice would differ from NumPy, which rounds once: round to odd in between.
        x = _round_to_odd(e, x)
    elif source.size == 8:
        return e.value(f"fptrunc {e.type(source)} {x} to {e.type(target)}")
    if target.size == 8:
        return e.value(f"fpext {e.type(source)} {x} to {e.type(target)}")
    return e.from_memory(e.to_memory(x, target), target) if target.size == 2 else x


def _round_to_odd(e: Elements, x: str) -> str:
    """float64 to float32 such that rounding the result again rounds correctly."""
    v, wide = e.lanes32, e.lanes64
    near = v.narrow(x)
    back = v.widen(near)
    inexact = wide.compare("une", back, x)
    away = wide.compare("ogt", wide.abs(back), wide.abs(x))
    bits = v.bits_of(near)
    towards_zero = v.int_select(away, v.int_binary("sub", bits, 1), bits)
    odd = v.int_binary("or", towards_zero, 1)
    finite = v.compare("olt", v.abs(near), float("inf"))
    return v.from_bits(v.int_select(v.both(inexact, finite), odd, bits))


def _to_integer(e: Elements, x: str, source: DType, target: DType) -> str:
    limits = np.iinfo(target.np_dtype)
    low, high = float(limits.min), float(limits.max)
    kind, whole = e.type(source), e.type(target)
    conversion = "fptosi" if target.kind == "i" else "fptoui"
    if not e.count:  # the processor's own conversion with two bounds; vectors have no such form
        name = f"llvm.{conversion}.sat.{whole}.f{32 if kind == 'float' else 64}"
        return e.function.call(f"{whole} @{name}({kind})", f"{kind} {x}")
    v = e.lanes(source)
    if source.size < 8:
        # A float32 above the limit is at least the next float32, so its value is exact.
        high = float(np.float32(high))
    too_high = v.compare("oge", x, high)
    too_low = v.compare("ole", x, low)
    inside = v.both(v.compare("olt", x, high), v.compare("ogt", x, low))
    safe = v.select(inside, x, 0.0)
    result = e.value(f"{conversion} {kind} {safe} to {whole}")
    result = e.select(too_high, e.constant(limits.max, target), result, target)
    return e.select(too_low, e.constant(limits.min, target), result, target)


def guessed_integer(
    e: Elements, x: str, source: DType, target: DType, size: Word | None
) -> str | None:
    """A scalar float as an integer, with a branch: the processor guesses that it lies in range.

    An instruction of x86 gives the least int64 for what has none, NaN included. Where the result of
    64 bits is the number that the target's bits stand for, it is right; else `cast` says what it
    is. So the usual number waits for neither bounds nor the test for NaN.

    Args:
        size: the size of the axis along which the integer is a position, if it is one: the guess
            is that it lies inside, and the check of the position, which follows, is the same test.

    Returns:
        None where the processor has no such instruction: Arm's saturates by itself.
    """
    if not e.function.module.target.is_x86 or target is dtypes.uint64:
        return None
    fn, whole = e.function, e.type(target)
    part, lanes, name = ("float", 4, "sse.cvttss2si64") if e.type(source) == "float" else (
        "double", 2, "sse2.cvttsd2si64"
    )  # fmt: skip
    vector = f"<{lanes} x {part}>"
    first = fn.value(f"insertelement {vector} poison, {part} {x}, i64 0")
    raw = fn.call(f"i64 @llvm.x86.{name}({vector})", f"{vector} {first}")
    widen, exact = ("sext", "nsw") if target.kind == "i" else ("zext", "nuw")
    if size is not None:
        limit = size if target.size == 8 else fn.min(size, np.iinfo(target.np_dtype).max)
        fits = fn.value(f"icmp ult i64 {raw}, {limit}")
    elif target.size == 8:
        fits = fn.value(f"icmp ne i64 {raw}, {np.iinfo(np.int64).min}")
    else:
        narrow = fn.value(f"trunc i64 {raw} to {whole}")
        fits = fn.value(f"icmp eq i64 {fn.value(f'{widen} {whole} {narrow} to i64')}, {raw}")
    found = fn.block_of("whole", ["i64"])
    beyond = f"beyond{fn.unique()}"
    fn.fork(fits, found(raw), beyond, likely=True)
    fn.label(beyond)
    bound = _to_integer(e, x, source, target)
    fn.enter(found(bound if target.size == 8 else fn.value(f"{widen} {whole} {bound} to i64")))
    (wide,) = found.values  # with 64 bits, as positions are
    return wide if target.size == 8 else fn.value(f"trunc {exact} i64 {wide} to {whole}")


def _from_integer(e: Elements, x: str, source: DType, target: DType) -> str:
    conversion = "sitofp" if source.kind == "i" else "uitofp"
    if target.size == 2:
        wide = e.value(f"{conversion} {e.type(source)} {x} to {e.wrap('double')}")
        return _between_floats(e, wide, dtypes.float64, target)
    return e.value(f"{conversion} {e.type(source)} {x} to {e.type(target)}")


def _resize(e: Elements, x: str, source: DType, target: DType) -> str:
    if source.size == target.size:
        return x
    if source.size > target.size:
        op = "trunc"
    else:
        op = "sext" if source.kind == "i" else "zext"
    return e.value(f"{op} {e.type(source)} {x} to {e.type(target)}")


# ---- 16-bit floats as bit patterns


def bfloat16_to_float(v: Lanes, raw: str) -> str:
    """The upper half of a float32."""
    wide = v.function.value(f"zext {v.wrap('i16')} {raw} to {v.ints}")
    return v.from_bits(v.int_binary("shl", wide, 16))


def float_to_bfloat16(v: Lanes, x: str) -> str:
    """Rounded to nearest even; NaN keeps its sign."""
    bits = v.bits_of(x)
    odd = v.int_binary("and", v.int_binary("lshr", bits, 16), 1)
    rounded = v.int_binary("add", bits, v.int_binary("add", odd, 0x7FFF))
    nan = v.int_binary("or", v.int_binary("and", bits, -(1 << 31)), 0x7FC00000)
    kept = v.int_select(v.compare("uno", x, x), nan, rounded)
    upper = v.int_binary("lshr", kept, 16)
    return v.function.value(f"trunc {v.ints} {upper} to {v.wrap('i16')}")


def half_to_float(v: Lanes, raw: str) -> str:
    """float16 bits to float32 where the target has no instruction for it."""
    wide = v.function.value(f"zext {v.wrap('i16')} {raw} to {v.ints}")
    sign = v.int_binary("shl", v.int_binary("and", wide, 0x8000), 16)
    body = v.int_binary("shl", v.int_binary("and", wide, 0x7FFF), 13)
    # The exponent is rebiased by a multiplication, which also normalises denormals.
    scaled = v.bits_of(v.mul(v.from_bits(body), 2.0**112))
    special = v.int_compare("uge", body, 0x7C00 << 13)
    infinite = v.int_binary("or", body, 0x7F800000)
    magnitude = v.int_select(special, infinite, scaled)
    return v.from_bits(v.int_binary("or", magnitude, sign))


def float_to_half(v: Lanes, x: str) -> str:
    """float32 to float16 bits, to nearest even, where the target has no instruction for it."""
    bits = v.bits_of(x)
    sign = v.int_binary("and", v.int_binary("lshr", bits, 16), 0x8000)
    a = v.int_binary("and", bits, 0x7FFFFFFF)
    odd = v.int_binary("and", v.int_binary("lshr", a, 13), 1)
    rebiased = v.int_binary("sub", a, 112 << 23)
    normal = v.int_binary(
        "lshr", v.int_binary("add", v.int_binary("add", rebiased, 0xFFF), odd), 13
    )
    # Adding 0.5 puts the last bit of a float16 denormal at the last bit of the float32.
    shifted = v.bits_of(v.add(v.from_bits(a), 0.5))
    denormal = v.int_binary("sub", shifted, 0x3F000000)
    small = v.int_compare("ult", a, 113 << 23)
    result = v.int_select(small, denormal, normal)
    result = v.int_select(v.int_compare("uge", a, 0x477FF000), 0x7C00, result)
    quiet = v.int_binary("or", v.int_binary("and", v.int_binary("lshr", a, 13), 0x3FF), 0x7E00)
    result = v.int_select(v.int_compare("ugt", a, 0x7F800000), quiet, result)
    result = v.int_binary("or", result, sign)
    return v.function.value(f"trunc {v.ints} {result} to {v.wrap('i16')}")
