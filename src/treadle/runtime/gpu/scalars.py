"""Scalar values in CUDA C: types, constants, and the functions of the kernel IR."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, SymbolicDim
from treadle.kernel.ir import Apply, Reduce

_INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long long"}
_FLOATS = {"f16": "td_f16", "bf16": "td_bf16", "f32": "float", "f64": "double"}
_SINGLE, _POSITION = 4, 8  # bytes of float, which 16-bit floats are held in, and of td_index
_INFIX = {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


def element_type(dtype: DType) -> str:
    """The C type of an element of an array."""
    if dtype.is_bool:
        return "bool"
    if dtype.is_complex:
        return f"td_complex<{element_type(dtype.real_dtype)}>"
    if dtype.is_floating:
        return _FLOATS[dtype.short]
    if dtype.is_unsigned:
        return f"unsigned {_INTEGERS[dtype.size]}"
    return "signed char" if dtype.size == 1 else _INTEGERS[dtype.size]


def value_type(dtype: DType) -> str:
    """The C type that values are computed in: float for 16-bit floats."""
    return "float" if dtype.is_floating and dtype.size == 2 else element_type(dtype)


def found_type(reduce: Reduce) -> str:
    """The C type of what a thread has found of a reduction so far."""
    kind = value_type(reduce.value.dtype)
    return f"td_found<{kind}>" if reduce.op in ("argmax", "argmin") else kind


def value_size(dtype: DType) -> int:
    """The bytes of `value_type`."""
    size: int = dtype.size
    return max(size, _SINGLE) if dtype.is_floating else size


def found_size(reduce: Reduce) -> int:
    """The bytes of `found_type`: of a position and a value beside it, or of a value."""
    size = value_size(reduce.value.dtype)
    return 2 * max(size, _POSITION) if reduce.op in ("argmax", "argmin") else size


def constant(value: float | int | bool, dtype: DType) -> str:
    """A constant of a dtype, exactly."""
    name = value_type(dtype)
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_integer:
        if value == -(2**63):
            return f"({name})(-{2**63 - 1}ll - 1)"
        return f"({name}){int(value)}{'ull' if dtype.is_unsigned else 'll'}"
    if dtype.is_complex:
        part = dtype.real_dtype
        number = complex(value)
        return f"td_join({constant(number.real, part)}, {constant(number.imag, part)})"
    if math.isnan(value):
        return f"({name})NAN"
    if math.isinf(value):
        return f"({name}){'-' if value < 0 else ''}INFINITY"
    return f"({name}){float(value).hex()}"


def dim_text(dim: Dim) -> str:
    """The value of a dim; its symbols are variables."""
    if not isinstance(dim, SymbolicDim):
        return f"{dim}" if abs(dim) < 2**31 else f"{dim}ll"
    terms = []
    for monomial, factor in dim.terms:
        atoms = [
            atom
            if isinstance(atom, str)
            else f"td_{atom[0]}<td_index>({dim_text(atom[1])}, {dim_text(atom[2])})"
            for atom in monomial
        ]
        terms.append(" * ".join([*([] if factor == 1 and atoms else [f"({factor})"]), *atoms]))
    return f"({' + '.join(terms)})"


def with_ordered_symbols(text: str, symbols: Sequence[str]) -> str:
    """A text in which the symbols of a kernel are named by their order: their own names differ from
    process to process, and compilers keep code by its text."""
    if not symbols:
        return text
    names = {name: f"size_{number}" for number, name in enumerate(symbols)}
    words = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    return words.sub(lambda found: names[found[0]], text)


def applied(expr: Apply, operands: list[str]) -> str:
    """A function of values that have names."""
    dtype = expr.dtype
    match expr.fn, operands:
        case "cast", [x]:
            return _cast(x, expr.args[0].dtype, dtype)
        case "select", [condition, x, y]:
            return f"{condition} ? {x} : {y}"
        case "not", [x]:
            return f"!{x}" if dtype.is_bool else f"({value_type(dtype)})~{x}"
        case "neg", [x]:
            return f"-{x}" if dtype.is_floating else f"td_sub(({value_type(dtype)})0, {x})"
        case "div", [x, y]:
            return f"{x} / {y}"
        case "complex", [x, y]:
            return f"td_join({x}, {y})"
        case "real", [x]:
            return f"{x}.re"
        case "imag", [x]:
            return f"{x}.im"
        case ("abs" | "sign"), [x] if dtype.is_unsigned and expr.fn == "abs":
            return x
    if expr.fn in _INFIX:
        return f"({value_type(dtype)})({operands[0]} {_INFIX[expr.fn]} {operands[1]})"
    return f"td_{expr.fn}({', '.join(operands)})"


def _cast(x: str, source: DType, target: DType) -> str:
    name = value_type(target)
    if target.is_bool:
        return f"{x} != ({value_type(source)})0"
    if target.is_integer and source.is_floating:
        return f"td_to_integer<{name}>({x})"
    if target.is_floating and target.size == 2:  # rounded, and held as float
        number = x if source.is_floating else f"(double){x}"
        return f"td_widen(td_narrow<{element_type(target)}>({number}))"
    return f"({name}){x}"
