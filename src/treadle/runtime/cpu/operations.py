# NOTE to K: see AAA_NOTE_FOR_HELPER_K.txt in this folder: elements.py / nest.py / jit.py / threads.py already exist and are in use.
"""The function table of the kernel IR as LLVM text, for every dtype.

In registers a float16 or bfloat16 is a float32 and a bool is an i1 (a mask); integers and the
other floats are themselves. `Operations.apply` works for vectors and, with zero lanes, scalars.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.runtime.cpu import inverse_functions, power, trigonometry, vector_math
from treadle.runtime.cpu.lanes import Lanes
from treadle.runtime.cpu.llvm_text import Function, float_text

_UNARY: dict[str, Callable[..., str]] = {
    "exp": vector_math.exp, "exp2": vector_math.exp2, "expm1": vector_math.expm1,
    "log": vector_math.log, "log1p": vector_math.log1p, "log2": vector_math.log2,
    "sqrt": vector_math.sqrt, "rsqrt": vector_math.rsqrt, "tanh": vector_math.tanh,
    "sigmoid": vector_math.sigmoid, "softplus": vector_math.softplus, "erf": vector_math.erf,
    "sin": trigonometry.sin, "cos": trigonometry.cos,
}  # fmt: skip
_WIDE: dict[str, Callable[..., str]] = {
    "tan": trigonometry.tan, "sinh": inverse_functions.sinh, "cosh": inverse_functions.cosh,
    "asin": inverse_functions.asin, "acos": inverse_functions.acos,
    "atan": inverse_functions.atan, "atan2": inverse_functions.atan2,
    "asinh": inverse_functions.asinh, "acosh": inverse_functions.acosh,
    "atanh": inverse_functions.atanh, "erfc": inverse_functions.erfc,
}  # fmt: skip
_ROUNDING = {"floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc"}
_ARITHMETIC = {"add", "sub", "mul"}
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
_LOGIC = {"and", "or", "xor"}


def storage_type(dtype: DType) -> str:
    """The LLVM type of one element in memory."""
    if dtype.is_floating:
        return {2: "i16", 4: "float", 8: "double"}[dtype.size]
    return f"i{dtype.size * 8}"


def register_type(dtype: DType) -> str:
    """The LLVM type of one element in a register."""
    if dtype.is_bool:
        return "i1"
    if dtype.is_floating:
        return "double" if dtype.size == 8 else "float"
    return f"i{dtype.size * 8}"


class Operations:
    """Emits operations of the function table on `count` lanes (0: scalars)."""

    def __init__(self, function: Function, count: int) -> None:
        self.function, self.count = function, count
        self.target = function.module.target
        self._lanes = {bits: Lanes(function, count, bits) for bits in (32, 64)}

    def lanes(self, dtype: DType) -> Lanes:
        """Lanes whose float type holds `dtype` in registers."""
        return self._lanes[64 if dtype.size == 8 else 32]

    def type(self, dtype: DType) -> str:
        return self._lanes[32].wrap(register_type(dtype))

    def const(self, value: float | int | bool, dtype: DType) -> str:
        if dtype.is_floating:
            text = float_text(float(value), 64 if dtype.size == 8 else 32)
        elif dtype.is_bool:
            text = "true" if value else "false"
        else:
            text = str(int(value))
        return f"splat ({register_type(dtype)} {text})" if self.count else text

    def splat(self, scalar: str, dtype: DType) -> str:
        return self._lanes[32].splat(scalar, register_type(dtype))

    def select(self, mask: str, a: str, b: str, dtype: DType) -> str:
        kind, mask_type = self.type(dtype), self._lanes[32].mask
        return self.function.value(f"select {mask_type} {mask}, {kind} {a}, {kind} {b}")

    def binary(self, op: str, a: str, b: str, dtype: DType) -> str:
        return self.function.value(f"{op} {self.type(dtype)} {a}, {b}")

    def intrinsic(self, name: str, args: list[str], dtype: DType) -> str:
        kind = self.type(dtype)
        register = register_type(dtype).replace("float", "f32").replace("double", "f64")
        suffix = f"v{self.count}{register}" if self.count else register
        types = ", ".join([kind] * len(args))
        values = ", ".join(f"{kind} {a}" for a in args)
        return self.function.call(f"{kind} @llvm.{name}.{suffix}({types})", values)

    # ---- the table
    def apply(self, fn: str, args: list[str], operands: list[DType], result: DType) -> str:
        """The value of ``fn(*args)`` for operands of the given dtypes (they fit `fn`)."""
        dtype = operands[-1]
        if fn == "cast":
            return self.cast(args[0], operands[0], result)
        if fn == "select":
            return self.select(args[0], args[1], args[2], dtype)
        if fn in _COMPARISONS:
            return self.compare(fn, args[0], args[1], dtype)
        if dtype.is_floating:
            return self.float_function(fn, args, dtype)
        if dtype.is_bool:
            return self.bool_function(fn, args)
        return self.int_function(fn, args, dtype)

    def compare(self, fn: str, a: str, b: str, dtype: DType) -> str:
        kind = self.type(dtype)
        if dtype.is_floating:
            predicate = "une" if fn == "ne" else f"o{fn}"
            return self.function.value(f"fcmp {predicate} {kind} {a}, {b}")
        sign = "" if fn in ("eq", "ne") else "s" if dtype.kind == "i" else "u"
        return self.function.value(f"icmp {sign}{fn} {kind} {a}, {b}")

    def bool_function(self, fn: str, args: list[str]) -> str:
        if fn == "not":
            return self.binary("xor", args[0], self.const(True, dtypes.bool), dtypes.bool)
        op = {"min": "and", "max": "or"}.get(fn, fn)
        return self.binary(op, args[0], args[1], dtypes.bool)

    def float_function(self, fn: str, args: list[str], dtype: DType) -> str:
        v = self.lanes(dtype)
        if fn in _ARITHMETIC or fn == "div":
            return self.binary(f"f{fn}", args[0], args[1], dtype)
        if fn in _UNARY:
            return _UNARY[fn](v, *args)
        if fn in _WIDE:
            return vector_math.in_float64(_WIDE[fn])(v, *args)
        if fn in _ROUNDING:
            return v.intrinsic(_ROUNDING[fn], args[0])
        return getattr(self, f"_float_{fn}")(v, *args)

    def _float_neg(self, v: Lanes, x: str) -> str:
        return v.neg(x)

    def _float_abs(self, v: Lanes, x: str) -> str:
        return v.abs(x)

    def _float_pow(self, v: Lanes, x: str, y: str) -> str:
        return power.power(v, x, y)

    def _float_min(self, v: Lanes, a: str, b: str) -> str:
        """b unless a < b; and a where a is NaN."""
        return v.select(v.compare("uno", a, a), a, v.select(v.compare("olt", a, b), a, b))

    def _float_max(self, v: Lanes, a: str, b: str) -> str:
        return v.select(v.compare("uno", a, a), a, v.select(v.compare("ogt", a, b), a, b))

    def _float_sign(self, v: Lanes, x: str) -> str:
        positive = v.select(v.compare("ogt", x, 0.0), 1.0, x)
        return v.select(v.compare("olt", x, 0.0), -1.0, v.add(positive, 0.0))

    def _float_floordiv(self, v: Lanes, a: str, b: str) -> str:
        return v.intrinsic("floor", v.div(a, b))

    def _float_truncdiv(self, v: Lanes, a: str, b: str) -> str:
        return v.intrinsic("trunc", v.div(a, b))

    def _float_truncmod(self, v: Lanes, a: str, b: str) -> str:
        return self.function.value(f"frem {v.floats} {a}, {b}")

    def _float_mod(self, v: Lanes, a: str, b: str) -> str:
        r = self._float_truncmod(v, a, b)
        crossed = v.differ(v.compare("olt", r, 0.0), v.compare("olt", b, 0.0))
        return v.select(v.both(v.compare("une", r, 0.0), crossed), v.add(r, b), r)

    def _float_isnan(self, v: Lanes, x: str) -> str:
        return v.compare("uno", x, x)

    def _float_isinf(self, v: Lanes, x: str) -> str:
        return v.compare("oeq", v.abs(x), vector_math.INF)

    def _float_isfinite(self, v: Lanes, x: str) -> str:
        return v.compare("one", v.abs(x), vector_math.INF)

    # ---- integers
    def int_function(self, fn: str, args: list[str], dtype: DType) -> str:
        if fn in _ARITHMETIC or fn in _LOGIC:
            return self.binary(fn, args[0], args[1], dtype)
        if fn in ("min", "max"):
            return self.intrinsic(("s" if dtype.kind == "i" else "u") + fn, args, dtype)
        if fn in ("floordiv", "mod", "truncdiv", "truncmod"):
            return self._int_divide(fn, args[0], args[1], dtype)
        return getattr(self, f"_int_{fn}")(*args, dtype)

    def _int_neg(self, x: str, dtype: DType) -> str:
        return self.binary("sub", self.const(0, dtype), x, dtype)

    def _int_abs(self, x: str, dtype: DType) -> str:
        return (
            x if dtype.is_unsigned else self.intrinsic("smax", [x, self._int_neg(x, dtype)], dtype)
        )

    def _int_sign(self, x: str, dtype: DType) -> str:
        least = self.intrinsic(
            "umin" if dtype.is_unsigned else "smin", [x, self.const(1, dtype)], dtype
        )
        return (
            least
            if dtype.is_unsigned
            else self.intrinsic("smax", [least, self.const(-1, dtype)], dtype)
        )

    def _int_not(self, x: str, dtype: DType) -> str:
        return self.binary("xor", x, self.const(-1, dtype), dtype)

    def _int_shl(self, x: str, amount: str, dtype: DType) -> str:
        return self.binary("shl", x, self._shift_amount(amount, dtype), dtype)

    def _int_shr(self, x: str, amount: str, dtype: DType) -> str:
        op = "lshr" if dtype.is_unsigned else "ashr"
        return self.binary(op, x, self._shift_amount(amount, dtype), dtype)

    def _shift_amount(self, amount: str, dtype: DType) -> str:
        if not dtype.is_unsigned:
            amount = self.intrinsic("smax", [amount, self.const(0, dtype)], dtype)
        return self.intrinsic("umin", [amount, self.const(dtype.size * 8 - 1, dtype)], dtype)

    def _int_divide(self, fn: str, a: str, b: str, dtype: DType) -> str:
        """Division that never traps: x/0 is 0, and the smallest integer / -1 wraps."""
        zero = self.const(0, dtype)
        by_zero = self.compare("eq", b, zero, dtype)
        if dtype.is_unsigned:
            divisor = self.select(by_zero, self.const(1, dtype), b, dtype)
            op = "udiv" if fn.endswith("div") else "urem"
            return self.select(by_zero, zero, self.binary(op, a, divisor, dtype), dtype)
        minus = self.compare("eq", b, self.const(-1, dtype), dtype)
        unsafe = self.binary("or", by_zero, minus, dtypes.bool)
        divisor = self.select(unsafe, self.const(1, dtype), b, dtype)
        quotient = self.binary("sdiv", a, divisor, dtype)
        remainder = self.binary("sub", a, self.binary("mul", quotient, divisor, dtype), dtype)
        if fn in ("floordiv", "mod"):
            signs = self.binary("xor", remainder, divisor, dtype)
            differ = self.compare("lt", signs, zero, dtype)
            uneven = self.compare("ne", remainder, zero, dtype)
            down = self.binary("and", differ, uneven, dtypes.bool)
            if fn == "mod":
                shifted = self.binary("add", remainder, divisor, dtype)
                remainder = self.select(down, shifted, remainder, dtype)
            else:
                less = self.binary("sub", quotient, self.const(1, dtype), dtype)
                quotient = self.select(down, less, quotient, dtype)
        if fn.endswith("mod"):
            return self.select(unsafe, zero, remainder, dtype)
        quotient = self.select(minus, self._int_neg(a, dtype), quotient, dtype)
        return self.select(by_zero, zero, quotient, dtype)

    def _int_pow(self, x: str, y: str, dtype: DType) -> str:
        """Exponentiation by squaring, modulo the width; a negative exponent inverts."""
        result, square, zero = self.const(1, dtype), x, self.const(0, dtype)
        one = self.const(1, dtype)
        steps = dtype.size * 8 - (not dtype.is_unsigned)
        for step in range(steps):
            bit = self.binary("lshr", y, self.const(step, dtype), dtype)
            odd = self.compare("ne", self.binary("and", bit, one, dtype), zero, dtype)
            factor = self.select(odd, square, one, dtype)
            result = self.binary("mul", result, factor, dtype)
            square = self.binary("mul", square, square, dtype)
        if dtype.is_unsigned:
            return result
        negative = self.compare("lt", y, zero, dtype)
        unit = self.compare("eq", self._int_abs(x, dtype), one, dtype)
        odd = self.compare("ne", self.binary("and", y, one, dtype), zero, dtype)
        power_of_unit = self.select(odd, x, self.binary("mul", x, x, dtype), dtype)
        inverse = self.select(unit, power_of_unit, zero, dtype)
        return self.select(negative, inverse, result, dtype)

    # ---- conversions
    def cast(self, x: str, source: DType, target: DType) -> str:
        if source is target:
            return x
        if target.is_bool:
            return self.compare("ne", x, self.const(0, source), source)
        if target.is_floating:
            return self._round_to(self._to_float(x, source, target), source, target)
        if source.is_floating:
            return self._saturate(x, source, target)
        return self._resize(x, source, target)

    def _to_float(self, x: str, source: DType, target: DType) -> str:
        """`x` in the register type of `target`, or in its own where that is wider."""
        to, kind = self.type(target), self.type(source)
        if source.is_floating:
            if source.size == 8 and target.size != 8:
                return x if target.size == 2 else self.function.value(f"fptrunc {kind} {x} to {to}")
            if source.size != 8 and target.size == 8:
                return self.function.value(f"fpext {kind} {x} to {to}")
            return x
        op = "uitofp" if source.is_unsigned or source.is_bool else "sitofp"
        return self.function.value(f"{op} {kind} {x} to {to}")

    def _round_to(self, x: str, source: DType, target: DType) -> str:
        """Round a register to a 16-bit float's precision."""
        if target.size != 2:
            return x
        if source.is_floating and source.size == 8:
            x = (
                self._round_odd(x)
                if target is dtypes.float16
                else self.lanes(dtypes.float32).narrow(x)
            )
        return self.from_storage(self.to_storage(x, target), target)

    def _round_odd(self, x: str) -> str:
        """float64 to float32 so that a second rounding to float16 is right."""
        v, d = self._lanes[32], self._lanes[64]
        near = v.narrow(x)
        back = v.widen(near)
        exact = d.compare("ueq", back, x)
        above = d.compare("ogt", d.abs(back), d.abs(x))
        bits = v.bits_of(near)
        down = v.int_select(above, v.int_binary("sub", bits, 1), bits)
        return v.from_bits(v.int_select(exact, bits, v.int_binary("or", down, 1)))

    def _saturate(self, x: str, source: DType, target: DType) -> str:
        sign = "u" if target.is_unsigned else "s"
        to, kind = self.type(target), self.type(source)
        real = "f64" if source.size == 8 else "f32"
        integer = register_type(target)
        if self.count:
            real, integer = f"v{self.count}{real}", f"v{self.count}{integer}"
        name = f"@llvm.fpto{sign}i.sat.{integer}.{real}"
        return self.function.call(f"{to} {name}({kind})", f"{kind} {x}")

    def _resize(self, x: str, source: DType, target: DType) -> str:
        to, kind = self.type(target), self.type(source)
        size = 0 if source.is_bool else source.size
        if size == target.size:
            return x
        op = "trunc" if size > target.size else "zext" if source.kind in "ub" else "sext"
        return self.function.value(f"{op} {kind} {x} to {to}")

    # ---- storage
    def to_storage(self, x: str, dtype: DType) -> str:
        """A register value as it lies in memory."""
        wrap = self._lanes[32].wrap
        if dtype.is_bool:
            return self.function.value(f"zext {wrap('i1')} {x} to {wrap('i8')}")
        if not (dtype.is_floating and dtype.size == 2):
            return x
        if dtype is dtypes.bfloat16:
            return self._to_bfloat(x)
        if self.target.has_half:
            half = self.function.value(f"fptrunc {wrap('float')} {x} to {wrap('half')}")
            return self.function.value(f"bitcast {wrap('half')} {half} to {wrap('i16')}")
        return self._to_half(x)

    def from_storage(self, x: str, dtype: DType) -> str:
        wrap = self._lanes[32].wrap
        if dtype.is_bool:
            zero = "zeroinitializer" if self.count else "0"
            return self.function.value(f"icmp ne {wrap('i8')} {x}, {zero}")
        if not (dtype.is_floating and dtype.size == 2):
            return x
        v = self._lanes[32]
        if dtype is dtypes.bfloat16:
            wide = self.function.value(f"zext {wrap('i16')} {x} to {v.ints}")
            return v.from_bits(v.int_binary("shl", wide, 16))
        if self.target.has_half:
            half = self.function.value(f"bitcast {wrap('i16')} {x} to {wrap('half')}")
            return self.function.value(f"fpext {wrap('half')} {half} to {wrap('float')}")
        return self._from_half(x)

    def _to_bfloat(self, x: str) -> str:
        """Round half to even in integers; a NaN keeps its sign and becomes quiet."""
        v = self._lanes[32]
        bits = v.bits_of(x)
        odd = v.int_binary("and", v.int_binary("lshr", bits, 16), 1)
        rounded = v.int_binary("add", v.int_binary("add", bits, 0x7FFF), odd)
        quiet = v.int_binary("or", bits, 0x400000)
        chosen = v.int_select(v.compare("uno", x, x), quiet, rounded)
        high = v.int_binary("lshr", chosen, 16)
        return self.function.value(f"trunc {v.ints} {high} to {v.wrap('i16')}")

    def _to_half(self, x: str) -> str:
        """float32 to float16 bits without the instruction."""
        v = self._lanes[32]
        bits = v.bits_of(x)
        sign = v.int_binary("and", v.int_binary("lshr", bits, 16), 0x8000)
        a = v.int_binary("and", bits, 0x7FFFFFFF)
        odd = v.int_binary("and", v.int_binary("lshr", a, 13), 1)
        normal = v.int_binary("add", v.int_binary("add", a, 0xFFF - (112 << 23)), odd)
        normal = v.int_binary("lshr", normal, 13)
        # Adding 0.5 puts a denormal's bits at the bottom, rounded by the addition itself.
        denormal = v.bits_of(v.add(v.from_bits(a), 0.5))
        denormal = v.int_binary("sub", denormal, 0x3F000000)
        h = v.int_select(v.int_compare("ult", a, 113 << 23), denormal, normal)
        h = v.int_select(v.int_compare("uge", a, 143 << 23), 0x7C00, h)
        payload = v.int_binary(
            "or", v.int_binary("and", v.int_binary("lshr", a, 13), 0x3FF), 0x7E00
        )
        h = v.int_select(v.int_compare("ugt", a, 0x7F800000), payload, h)
        whole = v.int_binary("or", h, sign)
        return self.function.value(f"trunc {v.ints} {whole} to {v.wrap('i16')}")

    def _from_half(self, x: str) -> str:
        v = self._lanes[32]
        h = self.function.value(f"zext {v.wrap('i16')} {x} to {v.ints}")
        sign = v.int_binary("shl", v.int_binary("and", h, 0x8000), 16)
        a = v.int_binary("shl", v.int_binary("and", h, 0x7FFF), 13)
        scaled = v.bits_of(v.mul(v.from_bits(a), 2.0**112))  # also the denormals
        special = v.int_compare("uge", a, 0x7C00 << 13)
        whole = v.int_select(special, v.int_binary("or", a, 0x7F800000), scaled)
        return v.from_bits(v.int_binary("or", whole, sign))
