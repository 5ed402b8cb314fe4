"""The functions of the kernel table on every dtype, for vectors and scalars alike.

An `Elements` holds `count` numbers a value (0: scalars). In registers, float16 and bfloat16 are
float32 and bool is i1; `load` and `store` convert from and to memory.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernel.ir import Apply, Expr
from treadle.runtime.cpu import casts, integers
from treadle.runtime.cpu.lanes import Lanes
from treadle.runtime.cpu.llvm_text import Function, float_text

_STORED = {"float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double"}
_COMPARE = {
    "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge"),
}  # fmt: skip


def compute_type(dtype: DType) -> str:
    """The LLVM type of a number in a register; a complex one is the integer of its bits."""
    if dtype.is_bool:
        return "i1"
    if dtype.is_floating:
        return "double" if dtype.size == 8 else "float"
    return f"i{dtype.size * 8}"


def stored_type(dtype: DType) -> str:
    """The LLVM type of a number in memory."""
    return _STORED.get(dtype.name) or f"i{dtype.size * 8}"


def alignment(dtype: DType) -> int:
    """Where numbers may lie in memory: at multiples of this; of the part's size if complex."""
    return int(dtype.real_dtype.size)


class Elements:
    """Emits operations on `count` numbers at a time, or on scalars when count is 0."""

    def __init__(self, function: Function, count: int, outlined: bool = False) -> None:
        """`outlined`: functions of many instructions are called, not written out each time."""
        self.function, self.count, self.outlined = function, count, outlined
        self.lanes32, self.lanes64 = Lanes(function, count, 32), Lanes(function, count, 64)
        self.portable = not function.module.target.has_half

    def type(self, dtype: DType) -> str:
        return self.wrap(compute_type(dtype))

    def wrap(self, scalar: str) -> str:
        return self.lanes32.wrap(scalar)

    def lanes(self, dtype: DType) -> Lanes:
        """The float operations for a dtype; those of integers go by width 32 or 64."""
        return self.lanes64 if dtype.size == 8 else self.lanes32

    def value(self, text: str) -> str:
        return self.function.value(text)

    def scalar_constant(self, value: Any, dtype: DType) -> str:
        if dtype.is_bool:
            return "true" if value else "false"
        if dtype.is_floating:
            rounded = float(np.asarray(value).astype(dtype.np_dtype).astype(np.float64))
            return float_text(rounded, 64 if dtype.size == 8 else 32)
        if dtype.is_complex:
            return str(int.from_bytes(np.asarray(value, dtype.np_dtype).tobytes(), "little"))
        return str(int(value))

    def constant(self, value: Any, dtype: DType) -> str:
        one = self.scalar_constant(value, dtype)
        return f"splat ({compute_type(dtype)} {one})" if self.count else one

    def splat(self, scalar: str, dtype: DType) -> str:
        """A scalar register in every lane."""
        return self.lanes32.splat(scalar, compute_type(dtype))

    def select(self, mask: str, a: str, b: str, dtype: DType) -> str:
        kind = self.type(dtype)
        return self.value(f"select {self.wrap('i1')} {mask}, {kind} {a}, {kind} {b}")

    def opaque(self, register: str, dtype: DType) -> str:
        """The same value, of which LLVM does not see how it was computed.

        A selection between an element and a new value that goes to the element's place would
        become a store under a mask. Processors without mask registers take ten times as long for
        it as for a store; AMD's have no fast form of it at all.
        """
        return self.value(f"freeze {self.type(dtype)} {register}")

    # ---- memory
    def from_memory(self, raw: str, dtype: DType) -> str:
        """A loaded value as a register."""
        stored, kind = self.wrap(stored_type(dtype)), self.type(dtype)
        if dtype.is_bool:
            zero = "zeroinitializer" if self.count else "0"
            return self.value(f"icmp ne {stored} {raw}, {zero}")
        if dtype is dtypes.bfloat16:
            return casts.bfloat16_to_float(self.lanes32, raw)
        if dtype is dtypes.float16:
            if self.portable:
                bits = self.value(f"bitcast {stored} {raw} to {self.wrap('i16')}")
                return casts.half_to_float(self.lanes32, bits)
            return self.value(f"fpext {stored} {raw} to {kind}")
        return raw

    def to_memory(self, register: str, dtype: DType) -> str:
        """A register as it is stored; 16-bit floats round to nearest even."""
        stored, kind = self.wrap(stored_type(dtype)), self.type(dtype)
        if dtype.is_bool:
            return self.value(f"zext {kind} {register} to {stored}")
        if dtype is dtypes.bfloat16:
            return casts.float_to_bfloat16(self.lanes32, register)
        if dtype is dtypes.float16:
            if self.portable:
                bits = casts.float_to_half(self.lanes32, register)
                return self.value(f"bitcast {self.wrap('i16')} {bits} to {stored}")
            if not self.count:  # LLVM would round a sign that comes from float64 by a library call
                register = self.lanes32.intrinsic("arithmetic.fence", register)
            return self.value(f"fptrunc {kind} {register} to {stored}")
        return register

    # ---- functions
    def apply(self, fn: str, args: Sequence[str], operands: Sequence[DType], out: DType) -> str:
        """``fn(*args)``; `operands` are the arguments' dtypes and `out` the result's."""
        if fn == "cast":
            return casts.cast(self, args[0], operands[0], out)
        if fn == "select":
            return self.select(args[0], args[1], args[2], out)
        dtype = operands[0]
        if fn == "complex":
            return self._join(args[0], args[1], dtype)
        if dtype.is_complex:
            return self._part(args[0], dtype, int(fn == "imag"))
        if fn in _COMPARE:
            return self._compare(fn, args, dtype)
        if dtype.is_bool:
            return self._logic(fn, args)
        if dtype.is_floating:
            return self._float(fn, args, dtype)
        return integers.apply(self, fn, args, dtype)

    # ---- complex numbers: parts that alternate
    def _join(self, real: str, imag: str, dtype: DType) -> str:
        part, whole = compute_type(dtype), self.type(dtype.complex_dtype)
        if self.count:
            order = [k // 2 + (k % 2) * self.count for k in range(2 * self.count)]
            pairs = self._shuffle(self.wrap(part), real, imag, order)
        else:
            first = self.value(f"insertelement <2 x {part}> poison, {part} {real}, i64 0")
            pairs = self.value(f"insertelement <2 x {part}> {first}, {part} {imag}, i64 1")
        return self.value(f"bitcast <{2 * (self.count or 1)} x {part}> {pairs} to {whole}")

    def _part(self, x: str, dtype: DType, which: int) -> str:
        kind = f"<{2 * (self.count or 1)} x {compute_type(dtype.real_dtype)}>"
        pairs = self.value(f"bitcast {self.type(dtype)} {x} to {kind}")
        if not self.count:
            return self.value(f"extractelement {kind} {pairs}, i64 {which}")
        return self._shuffle(kind, pairs, "poison", range(which, 2 * self.count, 2))

    def _shuffle(self, kind: str, a: str, b: str, order: Iterable[int]) -> str:
        lanes = [f"i32 {k}" for k in order]
        mask = f"<{len(lanes)} x i32> <{', '.join(lanes)}>"
        return self.value(f"shufflevector {kind} {a}, {kind} {b}, {mask}")

    def _compare(self, fn: str, args: Sequence[str], dtype: DType) -> str:
        ordered, signed, unsigned = _COMPARE[fn]
        kind = self.type(dtype)
        if dtype.is_floating:
            return self.value(f"fcmp {ordered} {kind} {args[0]}, {args[1]}")
        predicate = signed if dtype.kind == "i" else unsigned
        return self.value(f"icmp {predicate} {kind} {args[0]}, {args[1]}")

    def _logic(self, fn: str, args: Sequence[str]) -> str:
        kind = self.wrap("i1")
        if fn == "not":
            return self.lanes32.negate(args[0])
        op = {"and": "and", "or": "or", "xor": "xor", "min": "and", "max": "or"}[fn]
        return self.value(f"{op} {kind} {args[0]}, {args[1]}")

    def _float(self, fn: str, args: Sequence[str], dtype: DType) -> str:
        if self.outlined and fn in LONG_FUNCTIONS:
            return self._call(fn, args, dtype)
        return _FLOAT[fn](self.lanes(dtype), *args)

    def _call(self, fn: str, args: Sequence[str], dtype: DType) -> str:
        """Call a function of the module that computes ``fn``."""
        lanes = self.lanes(dtype)
        name, kind = f"{fn}.{lanes.suffix}", lanes.floats
        if name not in self.function.module.functions:
            body = Function(self.function.module)
            inner = Lanes(body, lanes.count, lanes.bits)
            result = _FLOAT[fn](inner, *(f"%x{i}" for i in range(len(args))))
            body.emit(f"ret {kind} {result}")
            parameters = ", ".join(f"{kind} %x{i}" for i in range(len(args)))
            body.define(name, f"{kind} @{{}}({parameters})", "internal")
        return self.value(f"call {kind} @{name}({', '.join(f'{kind} {a}' for a in args)})")


def is_selection(expr: Expr) -> bool:
    """Whether the code of an expression ends with a selection between two values.

    The smaller of two short integers does not: it is one instruction, which LLVM knows as such.
    """
    if not isinstance(expr, Apply):
        return False
    short = not expr.dtype.is_floating and expr.dtype.size < 8
    return expr.fn == "select" or (expr.fn in ("min", "max") and not short)


def _minimum(v: Lanes, x: str, y: str) -> str:
    return _keep_nan(v, x, v.select(v.compare("olt", x, y), x, y))


def _maximum(v: Lanes, x: str, y: str) -> str:
    return _keep_nan(v, x, v.select(v.compare("ogt", x, y), x, y))


def _keep_nan(v: Lanes, x: str, result: str) -> str:
    """The comparison already gives y where y is NaN."""
    return v.select(v.compare("uno", x, x), x, result)


def _sign(v: Lanes, x: str) -> str:
    one = v.select(v.compare("ogt", x, 0.0), 1.0, v.select(v.compare("olt", x, 0.0), -1.0, 0.0))
    return v.select(v.compare("uno", x, x), x, one)


def _remainder(v: Lanes, x: str, y: str) -> str:
    """``fmod(x, y)``, exact; LLVM calls the C library lane by lane."""
    return v.function.value(f"frem {v.floats} {x}, {y}")


def _mod(v: Lanes, x: str, y: str) -> str:
    """The remainder with the sign of y."""
    r = _remainder(v, x, y)
    wrong = v.differ(v.compare("olt", r, 0.0), v.compare("olt", y, 0.0))
    adjust = v.both(v.compare("one", r, 0.0), wrong)
    return v.select(adjust, v.add(r, y), r)


def _rounded_quotient(name: str) -> Callable[..., str]:
    return lambda v, x, y: v.intrinsic(name, v.div(x, y))


_FLOAT: dict[str, Callable[..., str]] = {
    "add": Lanes.add, "sub": Lanes.sub, "mul": Lanes.mul, "div": Lanes.div, "neg": Lanes.neg,
    "abs": Lanes.abs, "sign": _sign, "min": _minimum, "max": _maximum,
    "copysign": Lanes.copysign,
    "floordiv": _rounded_quotient("floor"), "truncdiv": _rounded_quotient("trunc"),
    "mod": _mod, "truncmod": _remainder,
    "floor": lambda v, x: v.intrinsic("floor", x),
    "ceil": lambda v, x: v.intrinsic("ceil", x),
    "round": lambda v, x: v.intrinsic("rint", x),
    "trunc": lambda v, x: v.intrinsic("trunc", x),
    "isnan": lambda v, x: v.compare("uno", x, x),
    "isinf": lambda v, x: v.compare("oeq", v.abs(x), math.inf),
    "isfinite": lambda v, x: v.compare("olt", v.abs(x), math.inf),
}  # fmt: skip
_SHORT = frozenset(_FLOAT)
# Functions of other modules, which are imported when code first holds one of theirs.
_ELSEWHERE = {
    "vector_math":
        "sqrt rsqrt sigmoid softplus erf exp exp2 expm1 exp_nonpositive log log1p log2 tanh "
        "logaddexp",
    "trigonometry": "sin cos tan",
    "inverse_functions": "sinh cosh asin acos atan atan2 asinh acosh atanh erfc",
    "power": "pow",
}  # fmt: skip
_IN_FLOAT64 = {"tan", *_ELSEWHERE["inverse_functions"].split()}


@functools.cache
def _imported(module: str, name: str) -> Callable[..., str]:
    found: Callable[..., str]
    found = getattr(importlib.import_module(f"treadle.runtime.cpu.{module}"), name)
    if name not in _IN_FLOAT64:
        return found
    from treadle.runtime.cpu.vector_math import in_float64

    return in_float64(found)


def _elsewhere(module: str, name: str) -> Callable[..., str]:
    return lambda v, *args: _imported(module, name)(v, *args)


for _module, _names in _ELSEWHERE.items():
    _FLOAT |= {name: _elsewhere(_module, name) for name in _names.split()}
# Those of tens to hundreds of instructions, and how many of them code may hold written out.
LONG_FUNCTIONS = frozenset(_FLOAT) - _SHORT - {"sqrt", "rsqrt"}
MOST_INLINE = 8  # long functions in a kernel: the time of compiling, on any machine


def float_function(name: str) -> Callable[..., str]:
    """What writes a function of the kernel table on floats: ``write(lanes, *numbers)``."""
    return _FLOAT[name]


def is_long(exprs: Iterable[Expr]) -> bool:
    """Whether expressions hold so many long functions that they are better called: the time to
    generate code grows with the text, and what the calls cost disappears in the rest."""
    found = sum(isinstance(e, Apply) and e.fn in LONG_FUNCTIONS for e in exprs)
    return found > MOST_INLINE
