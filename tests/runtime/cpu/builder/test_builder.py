"""Functions made with the builder run; what is put together wrongly is refused."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import (
    F32,
    F64,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    BuildError,
    Struct,
    Type,
    function,
    pointer,
    words,
)
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.jit import process_jit
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.target import process_host

NODE = Struct("Node")
NODE.fields |= {"next": (0, NODE.pointer), "number": (8, I64)}
PAIR = words("Pair", {"first": I64, "second": F64})
_C = {I64: ctypes.c_int64, F64: ctypes.c_double, I1: ctypes.c_bool, I32: ctypes.c_int32}
_keep: list[Any] = []


def made(unit: Unit, name: str, result: Type, *parameters: Type) -> Callable[..., Any]:
    code = process_jit().load(unit.text(process_host()))
    _keep.append(code)
    kinds = [_C.get(p, ctypes.c_void_p) for p in parameters]
    kind = None if result == VOID else _C.get(result, ctypes.c_void_p)
    return ctypes.CFUNCTYPE(kind, *kinds)(code.address(name))


def words_of(*numbers: int) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def test_a_loop_carries_values() -> None:
    unit = Unit()

    @unit.function(I64, internal=False, numbers=pointer(I64), count=I64)
    def total(f: Function, numbers: Value, count: Value) -> None:
        with f.loop(i=0, total=0) as loop:
            loop.run_while(loop["i"].slt(count))
            loop.again(loop["i"] + 1, loop["total"] + numbers[loop["i"]])
        f.ret(loop["total"])

    run = made(unit, "total", I64, PTR, I64)
    assert run(words_of(3, 4, 5), 3) == 12
    assert run(words_of(1), 0) == 0


def test_a_loop_that_tests_at_its_end() -> None:
    unit = Unit()

    @unit.function(I64, internal=False, n=I64)
    def halvings(f: Function, n: Value) -> None:
        with f.loop(n=n, count=0) as loop:
            half, count = loop["n"].lshr(1), loop["count"] + 1
            loop.again_if(half.ne(0), half, count)
        f.ret(count)

    run = made(unit, "halvings", I64, I64)
    assert [run(n) for n in (1, 2, 7, 8)] == [1, 2, 3, 4]


def test_conditions_and_blocks_with_parameters() -> None:
    unit = Unit()

    @unit.function(F64, internal=False, kind=I64, x=F64)
    def chosen(f: Function, kind: Value, x: Value) -> None:
        with f.when(kind.slt(0)):
            f.ret(-1.0)
        same, twice, out = f.block("same"), f.block("twice"), f.block("out", value=F64)
        f.switch(kind, {0: same, 1: twice, 2: out(0.25), 3: out(0.5)}, out(x / 2))
        f.begin(same)
        f.jump(out(x))
        f.begin(twice)
        f.jump(out(x + x))
        f.begin(out)
        f.ret(out["value"])

    run = made(unit, "chosen", F64, I64, F64)
    assert [run(k, 3.0) for k in (-5, 0, 1, 2, 3, 9)] == [-1.0, 3.0, 6.0, 0.25, 0.5, 1.5]


def test_fields_of_structs_and_elements_of_arrays() -> None:
    unit = Unit()

    @unit.function(I64, internal=False, node=NODE.pointer, to=PAIR.pointer)
    def walk(f: Function, node: Value, to: Value) -> None:
        with f.loop(node=node, i=0) as loop:
            loop.run_while(loop["node"].ne(None))
            pair = to.at(loop["i"])
            pair["first"] = loop["node"]["number"]
            pair["second"] = loop["node"]["number"].to_float(F64)
            loop.again(loop["node"]["next"], loop["i"] + 1)
        f.ret(loop["i"])

    last = words_of(0, 8)
    first = words_of(ctypes.addressof(last), 7)
    to = words_of(0, 0, 0, 0)
    assert made(unit, "walk", I64, PTR, PTR)(first, to) == 2
    assert [to[0], to[2]] == [7, 8]
    assert list((ctypes.c_double * 4).from_buffer(to))[1::2] == [7.0, 8.0]


def test_functions_call_each_other_by_name_and_by_address() -> None:
    unit = Unit()

    @unit.function(I64, x=I64)
    def twice(f: Function, x: Value) -> None:
        f.ret(x << 1)

    @unit.function(I64, internal=False, apply=function(I64, I64), x=I64)
    def outer(f: Function, apply: Value, x: Value) -> None:
        by_address = f.alloca(twice.type)
        by_address.store(f.address(twice))
        f.ret(f.call(apply, f.call(twice, x)) + f.call(by_address.load(), 5))

    add = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 1)
    run = made(unit, "outer", I64, PTR, I64)
    assert run(ctypes.cast(add, ctypes.c_void_p), 20) == 51


def test_atomic_changes_conversions_and_intrinsics() -> None:
    unit = Unit()

    @unit.function(I64, internal=False, word=pointer(I64), x=I64)
    def change(f: Function, word: Value, x: Value) -> None:
        f.ret(f.smax(word.fetch_add(x, "monotonic"), f.smin(x, 2)))

    @unit.function(I1, internal=False, word=pointer(I64))
    def claim(f: Function, word: Value) -> None:
        f.ret(word.replace(1, 2, "acq_rel", "acquire"))

    @unit.function(I1, internal=False, x=F64)
    def is_single(f: Function, x: Value) -> None:
        f.ret(x.narrow().widen().eq(x))

    @unit.function(I64, internal=False, x=I64)
    def low(f: Function, x: Value) -> None:
        f.ret(x.trunc(I32).sext(I64))

    @unit.function(I1, internal=False, x=I64, y=I64)
    def overflows(f: Function, x: Value, y: Value) -> None:
        f.ret(f.product(x, y, signed=True)[1])

    @unit.function(F64, internal=False, x=F64, n=I64)
    def opposite(f: Function, x: Value, n: Value) -> None:
        f.ret((x.bitcast(I64) + -n).bitcast(F64) * -x)

    word = words_of(10)
    assert made(unit, "change", I64, PTR, I64)(word, 5) == 10
    assert word[0] == 15
    claims = made(unit, "claim", I1, PTR)
    word[0] = 1
    assert claims(word) and word[0] == 2 and not claims(word)
    single = made(unit, "is_single", I1, F64)
    assert single(0.5) and not single(0.1)
    assert made(unit, "low", I64, I64)((5 << 32) - 1) == -1
    over = made(unit, "overflows", I1, I64, I64)
    assert over(1 << 40, 1 << 40) and not over(3, -4)
    assert made(unit, "opposite", F64, F64, I64)(2.0, 1 << 52) == -2.0


def test_bytes_are_copied_and_cleared() -> None:
    unit = Unit()

    @unit.function(internal=False, to=PTR, source=PTR, count=I64)
    def move(f: Function, to: Value, source: Value, count: Value) -> None:
        f.copy(to, source, count)
        f.clear(to.skip(count), count)
        f.ret()

    to = words_of(1, 1, 1, 1, 1)
    made(unit, "move", VOID, PTR, PTR, I64)(to, words_of(2, 3), 16)
    assert list(to) == [2, 3, 0, 0, 1]


def test_a_variable_of_the_module() -> None:
    unit = Unit()
    unit.variable("seen", "internal global i64 0")

    @unit.function(I64, internal=False)
    def count(f: Function) -> None:
        place = f.global_("seen", I64)
        place.store(place.load() + 1)
        f.ret(place.load())

    run = made(unit, "count", I64)
    assert [run(), run()] == [1, 2]


def written(result: Type, body: Callable[..., None], **parameters: Type) -> None:
    Unit().function(result, **parameters)(body)


def _two_types(f: Function, x: Value, p: Value) -> None:
    f.ret(x + p)


def _float_of_int(f: Function, x: Value, p: Value) -> None:
    f.ret(x + 0.5)


def _no_end(f: Function, x: Value, p: Value) -> None:
    x + 1


def _two_ends(f: Function, x: Value, p: Value) -> None:
    f.ret(x)
    f.ret(x)


def _not_written(f: Function, x: Value, p: Value) -> None:
    f.jump(f.block("later"))


def _not_reached(f: Function, x: Value, p: Value) -> None:
    f.ret(x)
    f.begin(f.block("alone"))
    f.ret(x)


def _written_twice(f: Function, x: Value, p: Value) -> None:
    block = f.block("again")
    f.jump(block)
    f.begin(block)
    f.jump(block)
    f.begin(block)


def _falls_through(f: Function, x: Value, p: Value) -> None:
    f.begin(f.block("next"))


def _missing_argument(f: Function, x: Value, p: Value) -> None:
    f.jump(f.block("needs", value=I64))


def _wrong_argument(f: Function, x: Value, p: Value) -> None:
    f.jump(f.block("needs", value=F32)(x))


def _wrong_result(f: Function, x: Value, p: Value) -> None:
    f.ret(p)


def _no_condition(f: Function, x: Value, p: Value) -> None:
    with f.when(x):
        f.ret(x)


def _python_condition(f: Function, x: Value, p: Value) -> None:
    if x.eq(0):
        f.ret(x)


def _unknown_field(f: Function, x: Value, p: Value) -> None:
    f.ret(p["size"])


def _no_array(f: Function, x: Value, p: Value) -> None:
    f.ret(p.at(x)["number"])


def _leads_nowhere(f: Function, x: Value, p: Value) -> None:
    f.ret(f.alloca(PTR).load()[0])


def _wrong_field(f: Function, x: Value, p: Value) -> None:
    p["next"] = x


def _other_struct(f: Function, x: Value, p: Value) -> None:
    p["next"] = p.as_pointer(PAIR)


def _no_function(f: Function, x: Value, p: Value) -> None:
    f.call(x, 1)


def _too_few(f: Function, x: Value, p: Value) -> None:
    f.call(p.as_pointer(function(I64, I64)).load(), 1, 2)


def _pointers_in_order(f: Function, x: Value, p: Value) -> None:
    f.ret(p.slt(p).select(x, 0))


def _bits_of_a_pointer(f: Function, x: Value, p: Value) -> None:
    f.ret(p.bitcast(I64))


def _no_next_iteration(f: Function, x: Value, p: Value) -> None:
    with f.loop(i=0) as loop:
        loop.run_while(loop["i"].slt(x))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (_two_types, "pointer to Node %p where i64 is needed"),
        (_float_of_int, "0.5 is no i64"),
        (_no_end, "entry has no end"),
        (_two_ends, "no block is open"),
        (_not_written, "nobody writes later"),
        (_not_reached, "nothing leads to alone"),
        (_written_twice, "again is written twice"),
        (_falls_through, "entry has no end before next"),
        (_missing_argument, "needs takes 1 values"),
        (_wrong_argument, "i64 %x where float is needed"),
        (_wrong_result, "pointer to Node %p where i64 is needed"),
        (_no_condition, "i64 %x where i1 is needed"),
        (_python_condition, "known at run time only"),
        (_unknown_field, "Node has no field 'size'; its fields are next, number"),
        (_no_array, "there are no arrays of Node"),
        (_leads_nowhere, "does not lead to anything known"),
        (_wrong_field, "i64 %x where pointer to Node is needed"),
        (_other_struct, "pointer to Pair %p where pointer to Node is needed"),
        (_no_function, "is no function"),
        (_too_few, "takes 1 arguments"),
        (_pointers_in_order, "is not compared by slt"),
        (_bits_of_a_pointer, "are no i64"),
        (_no_next_iteration, "does not say what comes again"),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_what_does_not_fit_is_refused(body: Callable[..., None], message: str) -> None:
    with pytest.raises(BuildError) as caught:
        written(I64, body, x=I64, p=NODE.pointer)
    assert message in str(caught.value)


def test_values_stay_in_their_function() -> None:
    kept: list[Value] = []

    def first(f: Function, x: Value) -> None:
        kept.append(x)
        f.ret(x)

    def second(f: Function, x: Value) -> None:
        f.ret(x + kept[0])

    written(I64, first, x=I64)
    with pytest.raises(BuildError, match="belongs to first, not to second"):
        written(I64, second, x=I64)


def test_names_are_unique() -> None:
    unit = Unit()

    def same(f: Function, x: Value) -> None:
        with f.when(x.eq(1), "case"):
            f.ret(1)
        with f.when(x.eq(2), "case"):
            f.ret(2)
        f.ret(x)

    unit.function(I64, internal=False, x=I64)(same)
    assert [made(unit, "same", I64, I64)(n) for n in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(BuildError, match="two functions same"):
        unit.function(I64, x=I64)(same)


def test_a_module_takes_a_function_once() -> None:
    def of(number: int) -> Unit:
        unit = Unit()

        @unit.function(I64)
        def answer(f: Function) -> None:
            f.ret(number)

        return unit

    module = Module(process_host())
    of(1).add_to(module)
    of(1).add_to(module)
    assert module.text().count("define") == 1
    with pytest.raises(BuildError, match="another function answer"):
        of(2).add_to(module)
