"""Branches and loops of a program: native control flow, with rank-0 values in registers."""

from __future__ import annotations

from treadle.core.spec import ListSpec
from treadle.runtime.cpu.llvm_text import Block as TextBlock
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import Variables, value_type
from treadle.runtime.cpu.program_lists import free_lists_since, makes_lists
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Branch, Loop, Operand


def emit_branch(emitter: Emitter, step: Branch) -> None:
    """A branch. The block after it has a parameter for every rank-0 result, and parameters for the
    address and the sizes of each array whose size depends on the branch. Both branches write other
    arrays to the same place."""
    fn = emitter.fn
    k = fn.unique()
    predicate = emitter.registers[step.predicate.value]
    for out in step.results:
        if out.place is not None and out.place.kind != "joined":
            emitter.pointer(out.place)  # both branches write there
    kinds = [kind for out in step.results for kind in _kinds(emitter, out)]
    join = TextBlock(f"join{k}", [(kind, f"%join{k}.{i}") for i, kind in enumerate(kinds)])
    fn.fork(predicate, f"then{k}", f"else{k}")
    for label, block in ((f"then{k}", step.then), (f"else{k}", step.otherwise)):
        fn.label(label)
        with emitter.forgetting():
            emitter.emit_block(block)
            words = [
                word
                for number, out in enumerate(step.results)
                for word in _given(emitter, block.results[number], out, number in block.copied)
            ]
        fn.branch(join(*words))
    fn.label(join)
    names = (name for _, name in join.parameters)
    for out in step.results:
        _take(emitter, out, [next(names) for _ in _kinds(emitter, out)])


def _kinds(emitter: Emitter, out: Operand) -> list[str]:
    """The types of the words that the branches give for a result."""
    if out.place is None:
        return [value_type(emitter, out.value)]
    return ["ptr", *("i64" for _ in out.place.dims)] if out.place.kind == "joined" else []


def _given(emitter: Emitter, operand: Operand, out: Operand, is_copied: bool) -> list[str]:
    """The words that a branch gives for a result: a register, or address and sizes, or none."""
    if is_copied:
        from treadle.runtime.cpu.ragged_memory import copy_of

        return [copy_of(emitter, operand)]
    if out.place is None:
        return [emitter.registers[operand.value]]
    if out.place.kind != "joined":
        return []
    assert operand.place is not None
    sizes = [str(emitter.dim(d)) for d in operand.place.dims]
    return [emitter.pointer(operand.place), *sizes]


def _take(emitter: Emitter, out: Operand, words: list[str]) -> None:
    """Let a result stand for the words that the branches gave."""
    if out.place is None:
        (emitter.registers[out.value],) = words
        emitter.selections.update(words)
    elif out.place.kind == "joined":
        emitter.places.pointers[out.place], *sizes = words
        emitter.define_symbols(out.place.dims, sizes)


def emit_loop(emitter: Emitter, step: Loop) -> None:
    """A loop: shared out to threads by rows, in strips, or with a poll in every iteration."""
    if step.rows is not None:
        from treadle.runtime.cpu.row_loops import emit_row_loop

        emit_row_loop(emitter, step, step.rows)
        return
    from treadle.runtime.cpu.strips import emit_strips, is_light

    if is_light(step):
        emit_strips(emitter, step)
    else:
        _emit_polling_loop(emitter, step)


def _emit_polling_loop(emitter: Emitter, step: Loop) -> None:
    """A loop with its condition in the head, and a countdown to a poll on the way back. Several
    iterations go together, where they can; those that are left are done one by one."""
    from treadle.runtime.cpu.joint_iterations import emit_jointly, jointly

    fn = emitter.fn
    k = fn.unique()
    countdown = fn.alloca("i64, align 8", "i64 1")
    variables = Variables(emitter, step)
    starts = variables.starts()
    together = jointly(emitter, step)
    if together > 1:  # the counter is the loop's only word
        starts = [emit_jointly(emitter, step, together, *starts)]
    first = fn.value(f"load i64, ptr {countdown}")
    fn.enter(f"pre{k}")
    head = variables.block(f"head{k}", f"x{k}", ("i64", f"%count{k}"))
    fn.enter(head(first, *starts))
    words = variables.bind(head)
    allocates = _allocates(step.body) or _allocates(step.condition)
    before = fn.load_word(emitter.memory.late, 0, "ptr") if allocates else ""
    lists = fn.load_word(emitter.memory.lists, 0, "ptr") if makes_lists(step.body) else ""
    emitter.loops += 1
    with emitter.forgetting():
        with emitter.contraction.inside(step):
            emitter.emit_block(step.condition)
            (test,) = step.condition.results
            fn.fork(emitter.registers[test.value], f"body{k}", f"exit{k}")
            fn.label(f"body{k}")
            emitter.emit_block(step.body)
        _free_late(emitter, before)
        ends = variables.ends(step.body.results, words)
    emitter.loops -= 1
    if lists:
        kept = [
            variables.of(number, ends)[0]
            for number, carried in enumerate(step.carried)
            if isinstance(carried.param.spec, ListSpec)
        ]
        free_lists_since(emitter, lists, kept)
    count = emitter.exits.count_down(k, f"%count{k}", lambda _: emitter.exits.polled(countdown))
    fn.branch(head(count, *ends))
    fn.label(f"exit{k}")
    _free_late(emitter, before)


def _free_late(emitter: Emitter, before: str) -> None:
    """Free the arrays that were allocated since the first of them was `before`."""
    if before and "late_free" in emitter.module.functions:
        emitter.fn.emit(
            f"call void @late_free(ptr %state, ptr {emitter.memory.late}, ptr {before})"
        )


def _allocates(block: Block) -> bool:
    """Whether a block allocates arrays, as their sizes are found out there."""
    return any(p.kind == "late" for s in all_steps(block) for p in (*s.reads, *s.writes))
