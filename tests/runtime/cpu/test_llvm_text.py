"""Functions in LLVM's text: blocks with parameters, loops, copies side by side."""

import ctypes

import pytest

from tests.runtime.cpu.native_kernels import JITS
from treadle.runtime.cpu.llvm_text import Block, Function, Module, interleave


def function():
    return Function(Module(JITS["host"].target))


def compiled(fn, *arguments):
    """The function ``i64 f(i64 %x, i64 %y)`` run on numbers."""
    fn.define("f", "i64 @{}(i64 %x, i64 %y)")
    loaded = JITS["host"].load(fn.module.text(), forever=False)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(loaded.address("f"))
    return run(*arguments)


def test_each_branch_to_a_block_gives_the_values_of_its_parameters():
    def larger():
        fn = function()
        join = Block("join", [("i64", "%larger"), ("i64", "%side")])
        fn.fork(fn.value("icmp sgt i64 %x, %y"), join("%x", 1), "other")
        fn.label("other")
        fn.branch(join("%y", 2))
        fn.label(join)
        fn.emit(f"ret i64 {fn.add(fn.mul('%larger', 10), '%side')}")
        return fn

    assert compiled(larger(), 7, 3) == 71
    assert compiled(larger(), 3, 8) == 82
    assert "%larger = phi i64 [%x, %entry], [%y, %other]" in "\n".join(larger().lines)


def test_a_loop_declares_what_it_carries_and_is_told_the_next_values_at_its_end():
    def powers():
        fn = function()
        head = Block("head", [("i64", "%count"), ("i64", "%power")])
        fn.enter(head("%y", 1))
        fn.fork(fn.value("icmp sgt i64 %count, 0"), "body", "exit")
        fn.label("body")
        fn.branch(head(fn.sub("%count", 1), fn.mul("%power", "%x")))
        fn.label("exit")
        fn.emit("ret i64 %power")
        return fn

    assert compiled(powers(), 3, 4) == 81
    assert compiled(powers(), 3, 0) == 1


def test_carried_values_of_nested_loops():
    fn = function()

    def row(i, total):
        inner = fn.carried(0, i, 1, ["i64"], total, lambda j, t: [fn.add(t[0], fn.mul(i, j))])
        return [fn.add(inner[0], 1)]

    (total,) = fn.carried(0, "%x", 1, ["i64"], ["%y"], row)
    fn.emit(f"ret i64 {total}")
    assert compiled(fn, 5, 100) == 100 + 5 + sum(i * j for i in range(5) for j in range(i))


def test_a_branch_must_give_a_value_for_each_parameter():
    head = Block("head", [("i64", "%i")])
    with pytest.raises(ValueError, match="head has 1 parameters"):
        head()
    with pytest.raises(ValueError, match="head has 1 parameters"):
        head(1, 2)


def test_nothing_is_left_of_statements_that_a_known_condition_excludes():
    fn = function()
    with fn.when(False) as needed:
        assert not needed
        with fn.loop(0, "%x"):
            fn.emit("work")
    fn.emit("ret i64 %y")
    assert fn.lines == ["  ret i64 %y"]
    assert compiled(fn, 1, 2) == 2


def test_straight_copies_alternate_and_others_follow_one_another():
    fn = function()

    def straight(name):
        fn.emit(f"first {name}")
        fn.emit(f"second {name}")
        return name

    assert interleave(fn, straight, "ab") == ["a", "b"]
    assert fn.lines == ["  first a", "  first b", "  second a", "  second b"]

    def branching(name):
        with fn.when(f"%{name}"):
            fn.emit(f"work {name}")

    fn = function()
    interleave(fn, branching, "ab")
    labels = [line for line in fn.lines if line.endswith(":")]
    assert labels == ["then1:", "after1:", "then2:", "after2:"]


def test_a_function_knows_its_registers():
    fn = function()
    total, room = fn.add("%x", 1), fn.alloca("i64, align 8", "i64 0")
    fn.enter(Block("head", [("i64", "%i")])(0))
    assert {total, room, "%i"} <= fn.registers
    assert not {"%x", "null", "1"} & fn.registers
