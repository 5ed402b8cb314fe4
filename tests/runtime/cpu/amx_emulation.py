"""Matrix registers in software: code for AMX runs on processors with AVX-512 that have none.

The calls of LLVM's intrinsics in the text of a tile become calls of functions that compute what
Intel's manual says, rounding by rounding, on registers in the frame of the tile (nothing is in them
between two tiles). Wrong shapes give NaNs, where the processor would end the program.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.runtime.cpu import library_code, target
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import Tile
from treadle.runtime.cpu.target import AMX_FEATURES, Target, host

EMULATED = "with AMX emulated"
REGISTER, SHAPES = 1024, 8 * 1024  # bytes of a register; where their shapes are, behind all eight
WIDE, WORDS = "<16 x float>", "<16 x i32>"
_NAMES = r"@llvm\.x86\.(ldtilecfg|tile\w+|tdpbf16ps|tdpb[su][su]d)"
CALL = re.compile(rf"call void {_NAMES}\(([^)]*)\)")
DECLARATION = re.compile(rf"declare void {_NAMES}\(.*\n")


def with_amx() -> Target:
    """This machine, with matrix registers. What is compiled for it is kept on disk under a name of
    its own, for it is other code than a real one's."""
    here = host()
    name = f"{here.llvm} {EMULATED} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
    features = here.features | AMX_FEATURES | {"amx-int8"}
    return dataclasses.replace(here, features=features, llvm=name)


def _written(tile: Tile, machine: Target) -> str:
    """`tile_text`, for such a machine without instructions of AMX."""
    text = tile_text(tile, machine)
    return emulated(text, machine) if EMULATED in machine.llvm else text


library_code.tile_text = _written  # for good: the background compiles later than it is told to


def emulated(text: str, machine: Target) -> str:
    """The text of a tile, without instructions of AMX."""

    def replaced(found: re.Match[str]) -> str:
        name, arguments = found.groups()
        given = arguments.replace("i8 ", "i64 ")
        return f"call void @{name}(ptr %registers{', ' if given else ''}{given})"

    if not CALL.search(text):
        return text
    space = f"entry:\n  %registers = alloca [{SHAPES + 64} x i8], align 64\n"
    text = CALL.sub(replaced, DECLARATION.sub("", text)).replace("entry:\n", space, 1)
    module = Module(machine)
    for name, signature, body in INSTRUCTIONS:
        if f"@{name}(" not in text:
            continue
        fn = Function(module)
        body(fn)
        fn.emit("ret void")
        fn.define(name, f"void @{{}}(ptr %registers{signature})", "internal")
    known = set(re.findall(r"^declare .*", text, re.MULTILINE))
    declared = [d for d in module.declarations if d not in known]
    return "\n".join([text, *declared, *module.functions.values()])


@contextmanager
def emulation() -> Iterator[Target]:
    """Programs that are made and called inside are for a machine with matrix registers."""
    machine, before = with_amx(), target.this_machine
    try:
        target.this_machine = lambda: machine  # type: ignore[assignment]
        with target.using(machine):
            yield machine
    finally:
        target.this_machine = before


# -- instructions ----------------------------------------------------------------------------------


def _register(fn: Function, number: str) -> str:
    return fn.offset("%registers", fn.mul(number, REGISTER), "i8")


def _shape(fn: Function, number: str) -> tuple[str, str]:
    """Rows of a register, and bytes of a row."""
    shapes = fn.offset("%registers", SHAPES, "i8")
    rows = fn.offset(fn.offset(shapes, 48, "i8"), number, "i8")
    size = fn.offset(fn.offset(shapes, 16, "i8"), number, "i16")
    rows = fn.value(f"load i8, ptr {rows}, align 1")
    size = fn.value(f"load i16, ptr {size}, align 2")
    return fn.value(f"zext i8 {rows} to i64"), fn.value(f"zext i16 {size} to i64")


def _copy_words(fn: Function, source: str, target: str, size: str | int) -> None:
    with fn.loop(0, size, 4) as i:
        word = fn.value(f"load i32, ptr {fn.offset(source, i, 'i8')}, align 1")
        fn.emit(f"store i32 {word}, ptr {fn.offset(target, i, 'i8')}, align 1")


def _clear(fn: Function, place: str, size: int) -> None:
    with fn.loop(0, size, 64) as i:
        fn.emit(f"store {WORDS} zeroinitializer, ptr {fn.offset(place, i, 'i8')}, align 64")


def _configure(fn: Function) -> None:
    _clear(fn, "%registers", SHAPES)
    _copy_words(fn, "%p", fn.offset("%registers", SHAPES, "i8"), 64)


def _load(fn: Function) -> None:
    register, (rows, size) = _register(fn, "%t"), _shape(fn, "%t")
    _clear(fn, register, REGISTER)
    with fn.loop(0, rows) as row:
        source = fn.offset("%p", fn.mul(row, "%stride"), "i8")
        _copy_words(fn, source, fn.offset(register, fn.mul(row, 64), "i8"), size)


def _store(fn: Function) -> None:
    register, (rows, size) = _register(fn, "%t"), _shape(fn, "%t")
    with fn.loop(0, rows) as row:
        target = fn.offset("%p", fn.mul(row, "%stride"), "i8")
        _copy_words(fn, fn.offset(register, fn.mul(row, 64), "i8"), target, size)


def _halves(fn: Function, pairs: str) -> list[str]:
    """Both numbers of each pair, as float32; subnormal ones are zeros."""
    shift, mask = (f"splat (i32 {n})" for n in (16, 0xFFFF0000 - (1 << 32)))
    low = fn.value(f"shl {WORDS} {pairs}, {shift}")
    high = fn.value(f"and {WORDS} {pairs}, {mask}")
    return [_flushed(fn, fn.value(f"bitcast {WORDS} {h} to {WIDE}")) for h in (low, high)]


def _flushed(fn: Function, x: str) -> str:
    """Zeros of the same sign for subnormal numbers."""
    bits = fn.value(f"bitcast {WIDE} {x} to {WORDS}")
    exponent = fn.value(f"and {WORDS} {bits}, splat (i32 {0x7F800000})")
    sign = fn.value(f"and {WORDS} {bits}, splat (i32 {-0x80000000})")
    tiny = fn.value(f"icmp eq {WORDS} {exponent}, zeroinitializer")
    kept = fn.value(f"select <16 x i1> {tiny}, {WORDS} {sign}, {WORDS} {bits}")
    return fn.value(f"bitcast {WORDS} {kept} to {WIDE}")


def _wrong(fn: Function) -> str:
    """Whether the shapes of the registers do not fit each other."""
    (rows, a_size), (b_rows, b_size) = _shape(fn, "%a"), _shape(fn, "%b")
    c_rows, c_size = _shape(fn, "%c")
    wrong = "false"
    for left, right in ((rows, c_rows), (fn.divide(a_size, 4), b_rows), (b_size, c_size)):
        wrong = fn.value(f"or i1 {wrong}, {fn.compare('ne', left, right)}")
    for size in (rows, a_size, b_size):
        wrong = fn.value(f"or i1 {wrong}, {fn.compare('eq', size, 0)}")
    return wrong


def _multiply_bytes(signs: str, fn: Function) -> None:
    """Products of bytes with a sign ("s") or without ("u") in A and B; sums wrap around. Wrong
    shapes give sums that are one too large."""
    (rows, _), (b_rows, _) = _shape(fn, "%a"), _shape(fn, "%b")
    c, a, b = (_register(fn, name) for name in ("%c", "%a", "%b"))
    one = fn.value(f"select i1 {_wrong(fn)}, {WORDS} splat (i32 1), {WORDS} zeroinitializer")
    with fn.loop(0, rows) as row:
        place = fn.offset(c, fn.mul(row, 64), "i8")
        line = fn.offset(a, fn.mul(row, 64), "i8")

        def added(k: object, sums: list[str], line: str = line) -> list[str]:
            group = fn.value(f"load i32, ptr {fn.offset(line, str(k), 'i32')}, align 4")
            group = fn.value(f"insertelement {WORDS} poison, i32 {group}, i32 0")
            group = fn.value(
                f"shufflevector {WORDS} {group}, {WORDS} poison, {WORDS} zeroinitializer"
            )
            source = fn.offset(b, fn.mul(str(k), 64), "i8")
            groups = fn.value(f"load {WORDS}, ptr {source}, align 64")
            total = sums[0]
            for step in range(4):
                parts = []
                for sign, words in zip(signs, (group, groups), strict=True):
                    x = fn.value(f"shl {WORDS} {words}, splat (i32 {24 - 8 * step})")
                    shift = "ashr" if sign == "s" else "lshr"
                    parts.append(fn.value(f"{shift} {WORDS} {x}, splat (i32 24)"))
                product = fn.value(f"mul {WORDS} {parts[0]}, {parts[1]}")
                total = fn.value(f"add {WORDS} {total}, {product}")
            return [total]

        before = fn.value(f"load {WORDS}, ptr {place}, align 64")
        (total,) = fn.carried(0, b_rows, 1, [WORDS], [before], added)
        total = fn.value(f"add {WORDS} {total}, {one}")
        fn.emit(f"store {WORDS} {total}, ptr {place}, align 64")


def _multiply(fn: Function) -> None:
    (rows, _), (b_rows, _) = _shape(fn, "%a"), _shape(fn, "%b")
    c, a, b = (_register(fn, name) for name in ("%c", "%a", "%b"))
    wrong = _wrong(fn)
    nan = fn.value(f"select i1 {wrong}, float 0x7FF8000000000000, float 0.0")
    nan = fn.value(f"insertelement {WIDE} poison, float {nan}, i32 0")
    zeros = f"{WORDS} zeroinitializer"
    nan = fn.value(f"shufflevector {WIDE} {nan}, {WIDE} poison, {zeros}")
    fma = f"{WIDE} @llvm.fma.v16f32"
    fn.module.declare(f"{fma}({WIDE}, {WIDE}, {WIDE})")
    with fn.loop(0, rows) as row:
        place = fn.offset(c, fn.mul(row, 64), "i8")
        line = fn.offset(a, fn.mul(row, 64), "i8")

        def added(k: object, sums: list[str], line: str = line) -> list[str]:
            pair = fn.value(f"load i32, ptr {fn.offset(line, str(k), 'i32')}, align 4")
            pair = fn.value(f"insertelement {WORDS} poison, i32 {pair}, i32 0")
            pair = fn.value(f"shufflevector {WORDS} {pair}, {WORDS} poison, {zeros}")
            source = fn.offset(b, fn.mul(str(k), 64), "i8")
            pairs = fn.value(f"load {WORDS}, ptr {source}, align 64")
            found = []
            for x, y, total in zip(_halves(fn, pair), _halves(fn, pairs), sums, strict=True):
                arguments = f"{WIDE} {x}, {WIDE} {y}, {WIDE} {total}"
                found.append(_flushed(fn, fn.value(f"call {fma}({arguments})")))
            return found

        even, odd = fn.carried(0, b_rows, 1, [WIDE, WIDE], ["zeroinitializer"] * 2, added)
        total = _flushed(fn, fn.value(f"fadd {WIDE} {even}, {odd}"))
        before = _flushed(fn, fn.value(f"load {WIDE}, ptr {place}, align 64"))
        total = _flushed(fn, fn.value(f"fadd {WIDE} {before}, {total}"))
        total = fn.value(f"fadd {WIDE} {total}, {nan}")
        fn.emit(f"store {WIDE} {total}, ptr {place}, align 64")


INSTRUCTIONS: tuple[tuple[str, str, Callable[[Function], None]], ...] = (
    ("ldtilecfg", ", ptr %p", _configure),
    ("tilerelease", "", lambda fn: _clear(fn, fn.offset("%registers", SHAPES, "i8"), 64)),
    ("tilezero", ", i64 %t", lambda fn: _clear(fn, _register(fn, "%t"), REGISTER)),
    ("tileloadd64", ", i64 %t, ptr %p, i64 %stride", _load),
    ("tilestored64", ", i64 %t, ptr %p, i64 %stride", _store),
    ("tdpbf16ps", ", i64 %c, i64 %a, i64 %b", _multiply),
    *(
        (f"tdpb{x}{y}d", ", i64 %c, i64 %a, i64 %b", functools.partial(_multiply_bytes, x + y))
        for x in "su" for y in "su"
    ),
)
