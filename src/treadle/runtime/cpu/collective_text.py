"""The routine of the library that adds up the arrays of all workers."""

from __future__ import annotations

from treadle.runtime.collectives import ENTRY, HEAD
from treadle.runtime.cpu.library_text import table_word
from treadle.runtime.cpu.llvm_text import Function, Module


def add_all_reduce(module: Module, name: str) -> None:
    """Add ``void @name(ptr table, ptr operands, ptr numbers, ptr workspace)``: one call of the
    function in the table of `treadle.runtime.collectives`, from the first operand into the second.

    The numbers are how many elements there are, and the number of the way to combine them.
    """
    fn = Function(module)
    words = table_word(fn, "%table", "collectives")
    source, target = (fn.load_word("%operands", i, "ptr") for i in range(2))
    count, way = (fn.load_word("%numbers", i) for i in range(2))
    place = fn.add(fn.mul(way, len(ENTRY)), len(HEAD))
    datatype = fn.load_word(words, place)
    operation = fn.load_word(words, fn.add(place, 1))
    function = fn.load_word(words, HEAD.index("function"), "ptr")
    communicator = fn.load_word(words, HEAD.index("communicator"))
    _count(fn, words, "begun")
    operands = (
        f"ptr {source}, ptr {target}, i64 {count}, i64 {datatype}, i64 {operation}, "
        f"i64 {communicator}"
    )
    code = fn.value(f"call i32 {function}({operands})")
    _count(fn, words, "ended")
    with fn.when(fn.value(f"icmp ne i32 {code}, 0")) as failed:
        if failed:
            callee = fn.load_word(words, HEAD.index("failed"), "ptr")
            fn.emit(f"call void {callee}(i32 {code})")
    fn.emit("ret void")
    fn.define(name, "void @{}(ptr %table, ptr %operands, ptr %numbers, ptr %workspace)")


def _count(fn: Function, words: str, name: str) -> None:
    place = fn.offset(words, HEAD.index(name), "i64")
    fn.emit(f"store i64 {fn.add(fn.load_word(words, HEAD.index(name)), 1)}, ptr {place}")
