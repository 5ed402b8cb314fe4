"""Operands of the launches of large programs, as data.

Code that stores the address of every operand of thousands of launches takes longer to generate
the more there is of it. A large program holds descriptions of the addresses as a constant, and one
loop turns a stretch of them into addresses before each launch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, PTR, pointer, words
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.llvm_text import Module, Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_layout import CELL
from treadle.runtime.schedule.steps import Launch, Operand

# The kinds of descriptions: the number itself, a word of the state table, a word of the frame, an
# offset into the workspace, the buffer of a variable, the buffer of a variable that is held.
NUMBER, STATE, FRAME, WORKSPACE, VARIABLE, HELD = range(6)
_PAIR = words("Description", {"kind": I64, "value": I64})


def operand_words(emitter: Emitter, words: Iterable[Word | Operand]) -> str:
    """The address of a table of numbers and addresses of operands, which holds until the next table
    is filled."""
    fn, entries, late = emitter.fn, [], []
    for i, word in enumerate(words):
        found = _described(emitter, word)
        entries.append(found or (NUMBER, 0))
        if found is None:
            pointer = emitter.operand_pointer(word) if isinstance(word, Operand) else word
            late.append((i, "ptr" if isinstance(word, Operand) else "i64", pointer))
    program = emitter.program
    program.most_table_words = max(program.most_table_words, len(entries))
    table = "%table.words"  # `run` reserves it: for the operands of one launch at a time
    body = ", ".join(f"i64 {kind}, i64 {value}" for kind, value in entries)
    constant = emitter.module.constant(
        f"words{fn.unique()}", f"[{2 * len(entries)} x i64] [{body}], align 8"
    )
    add_fill(emitter.module)
    fn.emit(
        f"call void @fill_words(ptr %state, ptr %frame, ptr {emitter.memory.workspace or 'null'}, "
        f"ptr {emitter.memory.held or 'null'}, ptr {constant}, ptr {table}, i64 {len(entries)})"
    )
    for i, kind, value in late:
        fn.emit(f"store {kind} {value}, ptr {fn.offset(table, i, 'i64')}")
    return table


def is_plain(step: Launch) -> bool:
    """Whether all results of a launch are arrays; registers hold rank-0 results."""
    return all(step.operands[i].place is not None for i in step.outputs)


def _described(emitter: Emitter, word: Word | Operand) -> tuple[int, int] | None:
    """The description of a word, or None where code must find it."""
    if isinstance(word, int):
        return NUMBER, word
    place = word.place if isinstance(word, Operand) else None
    if place is None or place in emitter.places.pointers:
        return None
    if place.kind in ("argument", "output"):
        return FRAME, emitter.program.frame_positions[place.kind, place.number]
    if place.kind == "constant":
        return STATE, emitter.program.table.position("constant", place.number)
    if place.kind == "variable" and emitter.memory.held:
        return HELD, emitter.memory.held_positions[place.number]
    if place.kind == "variable" and ("cell", place.number) not in emitter.program.frame_positions:
        return VARIABLE, emitter.program.table.position("cell", place.number)
    offset = emitter.program.plan.offsets.get(place)
    return None if offset is None else (WORKSPACE, offset)


def add_fill(module: Module) -> None:
    """Define ``void @fill_words(state, frame, workspace, held, from, to, count)``: turn `count`
    descriptions into words."""
    _fill_unit().add_to(module)


@functools.cache
def _fill_unit() -> Unit:
    unit = Unit()
    addresses = pointer(PTR)

    @unit.function(
        state=addresses, frame=addresses, workspace=PTR, held=addresses, described=_PAIR.pointer,
        to=addresses, count=I64,
    )  # fmt: skip
    def fill_words(
        f: Function, state: Value, frame: Value, workspace: Value, held: Value, described: Value,
        to: Value, count: Value,
    ) -> None:  # fmt: skip
        with f.loop("each", i=0) as each:
            i, put = each["i"], f.block("put", word=PTR)
            each.run_while(i.slt(count))
            pair = described.at(i)
            kind, value = pair["kind"], pair["value"]
            number = value.to_pointer()
            kinds = (STATE, FRAME, WORKSPACE, VARIABLE, HELD)
            ways = {way: f.block(f"kind{way}") for way in kinds}
            f.switch(kind, ways, put(number))
            for way, table in ((STATE, state), (FRAME, frame)):
                f.begin(ways[way])
                f.jump(put(table[value]))
            f.begin(ways[WORKSPACE])
            f.jump(put(workspace.skip(value)))
            f.begin(ways[HELD])
            f.jump(put(held[value]))
            f.begin(ways[VARIABLE])
            f.jump(put(state[value].as_pointer(CELL)["data"]))
            f.begin(put)
            to[i] = put["word"]
            each.again(i + 1)
        f.ret()

    return unit
