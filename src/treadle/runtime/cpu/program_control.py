"""Branches and loops of a program: native control flow, rank-0 values as phis."""

from __future__ import annotations

from treadle.core.spec import ListSpec
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import bind, end_of, start_of, value_type
from treadle.runtime.cpu.program_entry import INTERRUPTED
from treadle.runtime.cpu.program_lists import free_lists_since, makes_lists
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Branch, Loop, Operand


def emit_branch(emitter: Emitter, step: Branch) -> None:
    """``if`` with a phi for every rank-0 result, and for address and sizes of arrays whose size
    depends on the branch; other arrays were written by the branches."""
    fn = emitter.fn
    k = fn.unique()
    predicate = emitter.registers[step.predicate.value]
    for out in step.results:
        if out.place is not None and out.place.kind != "joined":
            emitter.pointer(out.place)  # both branches write there
    fn.emit(f"br i1 {predicate}, label %then{k}, label %else{k}")
    ends: list[tuple[list[list[str]], str]] = []
    for label, block in ((f"then{k}", step.then), (f"else{k}", step.otherwise)):
        fn.label(label)
        symbols, positions = dict(emitter.symbols), dict(emitter.positions)
        emitter.emit_block(block)
        emitter.positions = positions
        values = [
            _merged(emitter, operand, out)
            for operand, out in zip(block.results, step.results, strict=True)
        ]
        emitter.symbols = symbols
        ends.append((values, fn.block))
        fn.branch(f"join{k}")
    fn.label(f"join{k}")
    for i, out in enumerate(step.results):
        _join(emitter, out, [(values[i], block) for values, block in ends])


def _merged(emitter: Emitter, operand: Operand, out: Operand) -> list[str]:
    """What a branch gives for a result: a register, or address and sizes, or nothing."""
    if out.place is None:
        return [emitter.registers[operand.value]]
    if out.place.kind != "joined":
        return []
    assert operand.place is not None
    sizes = [str(emitter.dim(d)) for d in operand.place.dims]
    return [emitter.pointer(operand.place), *sizes]


def _join(emitter: Emitter, out: Operand, ends: list[tuple[list[str], str]]) -> None:
    """The phis of one result."""
    fn = emitter.fn

    def phi(kind: str, number: int) -> str:
        pairs = ", ".join(f"[{values[number]}, %{block}]" for values, block in ends)
        return fn.value(f"phi {kind} {pairs}")

    if out.place is None:
        emitter.registers[out.value] = phi(value_type(emitter, out.value), 0)
    elif out.place.kind == "joined":
        emitter.pointers[out.place] = phi("ptr", 0)
        dims = out.place.dims
        emitter.define_symbols(dims, [phi("i64", 1 + axis) for axis in range(len(dims))])


def emit_loop(emitter: Emitter, step: Loop) -> None:
    """A loop: the condition in its header, a poll for signals on the way back."""
    if step.rows is not None:
        from treadle.runtime.cpu.row_loops import emit_row_loop

        emit_row_loop(emitter, step, step.rows)
        return
    from treadle.runtime.cpu.strips import emit_strips, is_light

    if is_light(step):
        emit_strips(emitter, step)
        return
    fn = emitter.fn
    k = fn.unique()
    counter = fn.alloca("i64, align 8")
    fn.entry.append(f"  store i64 1, ptr {counter}")
    starts = [start_of(emitter, c) for c in step.carried]
    first = fn.value(f"load i64, ptr {counter}")
    fn.branch(f"pre{k}")
    fn.label(f"pre{k}")
    fn.branch(f"head{k}")
    fn.label(f"head{k}")
    mark = len(fn.lines)
    names = bind(emitter, step, f"x{k}")
    symbols, positions = dict(emitter.symbols), dict(emitter.positions)
    allocates = _allocates(step.body) or _allocates(step.condition)
    before = fn.load_word(emitter.late, 0, "ptr") if allocates else ""
    lists = fn.load_word(emitter.chain, 0, "ptr") if makes_lists(step.body) else ""
    emitter.contraction.depth += not step.exact
    emitter.emit_block(step.condition)
    (test,) = step.condition.results
    fn.emit(f"br i1 {_register(emitter, test)}, label %body{k}, label %exit{k}")
    fn.label(f"body{k}")
    emitter.emit_block(step.body)
    emitter.contraction.depth -= not step.exact
    _free_late(emitter, before)
    ends = [
        end_of(emitter, c, o, n)
        for c, o, n in zip(step.carried, step.body.results, names, strict=True)
    ]
    emitter.symbols, emitter.positions = symbols, positions
    if lists:
        handles = [c.param for c in step.carried if isinstance(c.param.spec, ListSpec)]
        kept = [e[0] for c, e in zip(step.carried, ends, strict=True) if c.param in handles]
        free_lists_since(emitter, lists, kept)
    _poll(emitter, counter, k)
    fn.emit(f"br label %head{k}")
    phis = [f"  %count{k} = phi i64 [{first}, %pre{k}], [%next{k}, %latch{k}]"]
    for begin, end, group in zip(starts, ends, names, strict=True):
        for (kind, name), a, b in zip(group, begin, end, strict=True):
            phis.append(f"  {name} = phi {kind} [{a}, %pre{k}], [{b}, %latch{k}]")
    fn.lines[mark:mark] = phis
    fn.label(f"exit{k}")
    _free_late(emitter, before)


def _free_late(emitter: Emitter, before: str) -> None:
    """Free what an iteration allocated."""
    if before and "late_free" in emitter.module.functions:
        emitter.fn.emit(f"call void @late_free(ptr %state, ptr {emitter.late}, ptr {before})")


def _allocates(block: Block) -> bool:
    """Whether a block makes arrays of sizes that it finds out."""
    return any(p.kind == "late" for s in all_steps(block) for p in (*s.reads, *s.writes))


def _register(emitter: Emitter, operand: Operand) -> str:
    return emitter.registers[operand.value]


def _poll(emitter: Emitter, counter: str, k: int) -> None:
    """Count down; at zero ask whether a signal came."""
    fn = emitter.fn
    fn.emit(f"%left{k} = sub i64 %count{k}, 1")
    fn.emit(f"%zero{k} = icmp eq i64 %left{k}, 0")
    before = fn.block
    fn.emit(f"br i1 %zero{k}, label %poll{k}, label %latch{k}, !prof !1")
    fn.label(f"poll{k}")
    polled = fn.value(f"call i64 @poll(ptr %state, ptr {emitter.record}, ptr {counter})")
    bad = fn.value(f"icmp slt i64 {polled}, 0")
    emitter.fail_if(bad, INTERRUPTED)
    after = fn.block
    fn.branch(f"latch{k}")
    fn.label(f"latch{k}")
    fn.emit(f"%next{k} = phi i64 [%left{k}, %{before}], [{polled}, %{after}]")
