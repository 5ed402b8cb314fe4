"""Operands of the launches of large programs, as data.

Code that stores the address of every operand of thousands of launches takes longer to generate
the more there is of it. A large program holds descriptions of the addresses as a constant, and one
loop turns a stretch of them into addresses before each launch.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.schedule.steps import Launch, Operand

# How a described word is found, and from what: the number itself, a word of the state table, a
# word of the frame, an offset into the workspace, the buffer of a variable, one that is held.
NUMBER, STATE, FRAME, WORKSPACE, VARIABLE, HELD = range(6)


def operand_words(emitter: Emitter, words: Iterable[Word | Operand]) -> str:
    """The address of a table of numbers and operands' addresses; valid until the next one."""
    fn, entries, late = emitter.fn, [], []
    for i, word in enumerate(words):
        found = _described(emitter, word)
        entries.append(found or (NUMBER, 0))
        if found is None:
            pointer = emitter.operand_pointer(word) if isinstance(word, Operand) else word
            late.append((i, "ptr" if isinstance(word, Operand) else "i64", pointer))
    table = emitter.table_words(len(entries))
    body = ", ".join(f"i64 {kind}, i64 {value}" for kind, value in entries)
    constant = emitter.module.constant(
        f"words{fn.unique()}", f"[{2 * len(entries)} x i64] [{body}], align 8"
    )
    emitter.module.define("fill_words", _FILL)
    fn.emit(
        f"call void @fill_words(ptr %state, ptr %frame, ptr {emitter.workspace or 'null'}, "
        f"ptr {emitter.held or 'null'}, ptr {constant}, ptr {table}, i64 {len(entries)})"
    )
    for i, kind, value in late:
        fn.emit(f"store {kind} {value}, ptr {fn.offset(table, i, 'i64')}")
    return table


def is_plain(step: Launch) -> bool:
    """Whether a launch has no rank-0 results, which registers hold."""
    return all(step.operands[i].place is not None for i in step.outputs)


def _described(emitter: Emitter, word: Word | Operand) -> tuple[int, int] | None:
    """The description of a word, or None for one that code must find."""
    if isinstance(word, int):
        return NUMBER, word
    place = word.place if isinstance(word, Operand) else None
    if place is None or place in emitter.pointers:
        return None
    if place.kind in ("argument", "output"):
        return FRAME, emitter.frame_positions[place.kind, place.number]
    if place.kind == "constant":
        return STATE, emitter.table.position("constant", place.number)
    if place.kind == "variable" and emitter.held:
        return HELD, emitter.held_position(place.number)
    if place.kind == "variable" and ("cell", place.number) not in emitter.frame_positions:
        return VARIABLE, emitter.table.position("cell", place.number)
    offset = emitter.plan.offsets.get(place)
    return None if offset is None else (WORKSPACE, offset)


_FILL = f"""
define internal void @fill_words(ptr %state, ptr %frame, ptr %workspace, ptr %held,
                                 ptr %from, ptr %to, i64 %count) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %pair = getelementptr [2 x i64], ptr %from, i64 %i
  %kind = load i64, ptr %pair
  %value.p = getelementptr i64, ptr %pair, i64 1
  %value = load i64, ptr %value.p
  %number = inttoptr i64 %value to ptr
  switch i64 %kind, label %put [
    i64 {STATE}, label %state.word
    i64 {FRAME}, label %frame.word
    i64 {WORKSPACE}, label %place
    i64 {VARIABLE}, label %variable
    i64 {HELD}, label %held.word
  ]
state.word:
  %s.p = getelementptr ptr, ptr %state, i64 %value
  %s = load ptr, ptr %s.p
  br label %put
frame.word:
  %f.p = getelementptr ptr, ptr %frame, i64 %value
  %f = load ptr, ptr %f.p
  br label %put
place:
  %w = getelementptr i8, ptr %workspace, i64 %value
  br label %put
held.word:
  %h.p = getelementptr ptr, ptr %held, i64 %value
  %h = load ptr, ptr %h.p
  br label %put
variable:
  %v.p = getelementptr ptr, ptr %state, i64 %value
  %cell = load ptr, ptr %v.p
  %v = load ptr, ptr %cell
  br label %put
put:
  %word = phi ptr [%number, %body], [%s, %state.word], [%f, %frame.word], [%w, %place],
                  [%v, %variable], [%h, %held.word]
  %to.p = getelementptr ptr, ptr %to, i64 %i
  store ptr %word, ptr %to.p
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""
