"""Products of small arrays of vectors with fixed matrices, from both sides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from treadle.runtime.cpu.convolution.points import Matrix
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.llvm_text import Function, Module, Word, float_text
from treadle.runtime.cpu.matmul.tiles import lanes, multiply_add

_SIGNATURE = (
    "void @{}(ptr %source, i64 %row, i64 %column, ptr %target, i64 %trow, i64 %tcolumn, i64 %count)"
)


def define_transform(
    module: Module, name: str, element: str, left: Matrix, right: Matrix
) -> None:
    """``void @name(source, row, column, target, trow, tcolumn, count)``: target = left source
    right^T for each of `count` channels, which fill vectors.

    Cells of the source are `row` and `column` bytes apart, those of the target `trow` and
    `tcolumn`; the channels of a cell follow one another.
    """
    fn = Function(module)
    width = lanes(module.target, element)
    size = ELEMENT_BYTES[element]
    with fn.loop(0, "%count", width) as channel:
        source, target = (fn.offset(p, channel, element) for p in ("%source", "%target"))
        columns = [
            _combined(fn, element, width, left, [
                _load(fn, element, width, _place(fn, source, i, "%row", j, "%column"))
                for i in range(len(left[0]))
            ])
            for j in range(len(right[0]))
        ]  # fmt: skip
        for i in range(len(left)):
            row = _combined(fn, element, width, right, [column[i] for column in columns])
            for j, value in enumerate(row):
                place = _place(fn, target, i, "%trow", j, "%tcolumn")
                fn.emit(f"store <{width} x {element}> {value}, ptr {place}, align {size}")
    fn.emit("ret void")
    fn.define(name, _SIGNATURE, "internal")


def call_transform(
    fn: Function, name: str, source: tuple[Word, Word, Word], target: tuple[Word, Word, Word],
    count: Word,
) -> None:  # fmt: skip
    """source, target: where they are, bytes from row to row, and from column to column."""
    places = ", ".join(f"ptr {p}, i64 {row}, i64 {column}" for p, row, column in (source, target))
    fn.emit(f"call void @{name}({places}, i64 {count})")


def _place(fn: Function, base: str, i: int, row: str, j: int, column: str) -> str:
    line = fn.offset(base, fn.mul(row, i), "i8")
    return fn.offset(line, fn.mul(column, j), "i8")


def _load(fn: Function, element: str, width: int, place: str) -> str:
    return fn.value(f"load <{width} x {element}>, ptr {place}, align {ELEMENT_BYTES[element]}")


def _combined(
    fn: Function, element: str, width: int, matrix: Matrix, values: Sequence[str]
) -> list[str]:
    """The products of a matrix and a column of vectors."""
    return [_sum(fn, element, width, row, values) for row in matrix]


def _sum(
    fn: Function, element: str, width: int, coefficients: Sequence[Fraction],
    values: Sequence[str],
) -> str:  # fmt: skip
    """The sum of the vectors times the coefficients; it begins with one that is taken once."""
    kind, bits = f"<{width} x {element}>", 8 * ELEMENT_BYTES[element]
    terms = [(c, v) for c, v in zip(coefficients, values, strict=True) if c]
    terms.sort(key=lambda term: term[0] != 1)  # stable
    first, total = terms[0]
    if first != 1:
        total = fn.value(f"fmul {kind} {total}, {_splat(element, bits, first)}")
    for c, value in terms[1:]:
        if abs(c) == 1:
            operation = "fadd" if c > 0 else "fsub"
            total = fn.value(f"{operation} {kind} {total}, {value}")
        else:
            constant = _splat(element, bits, c)
            total = fn.value(multiply_add(fn, element, width, value, constant, total))
    return total


def _splat(element: str, bits: int, value: Fraction) -> str:
    return f"splat ({element} {float_text(float(value), bits)})"
