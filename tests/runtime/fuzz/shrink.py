"""Makes a program that fails smaller, as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import treadle as td
from tests.runtime.fuzz.execution import Run
from tests.runtime.fuzz.program import Block, Program, Step

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, attempts: int = 400) -> Program:
    """The smallest program found that still fails."""
    improved = True
    while improved and attempts > 0:
        improved = False
        for smaller in _smaller(program):
            attempts -= 1
            if attempts < 0:
                break
            smaller = clean(smaller)
            if _size(smaller) < _size(program) and fails(smaller):
                program, improved = smaller, True
                break
    return program


def _size(program: Program) -> tuple[int, int, int]:
    def weight(block: Block) -> int:
        return sum(3 + len(s.outs) + sum(map(weight, s.bodies)) for s in block.steps) + len(
            block.results
        )

    return weight(program.block), len(program.batch), len(program.block.params)


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with something left out, the boldest first."""
    block = program.block
    if len(block.results) > 1:
        for r in block.results:
            yield _with(program, replace(block, results=(r,)))
        for n in range(len(block.results)):
            rest = block.results[:n] + block.results[n + 1 :]
            yield _with(program, replace(block, results=rest))
    values = _values(program)
    count = len(block.steps)
    for size in (count // 2, count // 4, 2, 1):
        if size:
            for start in range(0, count - size + 1, size):
                yield _cut(program, range(start, start + size), values)
    yield from (_with(program, b) for b in _simpler_bodies(block))


def _with(program: Program, block: Block) -> Program:
    return replace(program, block=block)


def _values(program: Program) -> dict[int, Any]:
    """What every value of the outermost block is."""
    env = {v: td.constant(program.arrays[v]) for v in program.block.params}
    variables = {n: td.Variable(a) for n, a in program.variables.items()}
    with np.errstate(all="ignore"):
        Run(variables).block(program.block, env)
    return {v: t.numpy() for v, t in env.items()}


def _cut(program: Program, which: Sequence[int], values: dict[int, Any]) -> Program:
    """Steps left out; what they gave becomes parameters."""
    block = program.block
    cut = [block.steps[n] for n in which]
    outs = tuple(v for s in cut for v in s.outs)
    steps = tuple(s for n, s in enumerate(block.steps) if n not in set(which))
    arrays = {**program.arrays, **{v: values[v] for v in outs}}
    return replace(
        program, block=Block((*block.params, *outs), steps, block.results), arrays=arrays
    )


def _simpler_bodies(block: Block) -> Iterator[Block]:
    """Blocks with one step of a body left out, replaced by an operand, or fewer results."""
    for n, step in enumerate(block.steps):
        for other in _simpler(step):
            yield replace(block, steps=(*block.steps[:n], *other, *block.steps[n + 1 :]))


def _simpler(step: Step) -> Iterator[tuple[Step, ...]]:
    if step.op == "cond":
        for body in step.bodies:
            copies = zip(step.outs, body.results, strict=True)
            renamed = tuple(Step("identity_of", (r,), {}, (o,)) for o, r in copies)
            yield (*body.steps, *renamed)
    for k, body in enumerate(step.bodies):
        for b in (*_without(body), *_simpler_bodies(body)):
            yield (replace(step, bodies=(*step.bodies[:k], b, *step.bodies[k + 1 :])),)
    if step.op == "while":
        yield from _simpler_loops(step)
    if step.op == "gradient" and len(step.bodies[0].results) > 1:
        body = step.bodies[0]
        for k in range(len(body.results)):
            rest = replace(body, results=body.results[:k] + body.results[k + 1 :])
            outs = step.outs[:k] + step.outs[k + 1 :]
            yield (replace(step, outs=outs, bodies=(rest,)),)


def _simpler_loops(step: Step) -> Iterator[tuple[Step, ...]]:
    attrs, body = step.attrs, step.bodies[0]
    if attrs["stacked"]:
        count = len(body.results) - len(attrs["stacked"])
        for k in range(len(attrs["stacked"])):
            stacked = attrs["stacked"][:k] + attrs["stacked"][k + 1 :]
            n = count + k
            rest = replace(body, results=body.results[:n] + body.results[n + 1 :])
            outs = step.outs[:n] + step.outs[n + 1 :]
            yield (replace(step, attrs={**attrs, "stacked": stacked}, outs=outs, bodies=(rest,)),)


def _without(block: Block) -> Iterator[Block]:
    for n, step in enumerate(block.steps):
        rest = (*block.steps[:n], *block.steps[n + 1 :])
        yield replace(block, steps=rest)
        for source in step.args:
            for out in step.outs[:1]:
                copy = Step("identity_of", (source,), {}, (out,))
                if step.op != "identity_of":
                    yield replace(block, steps=(*block.steps[:n], copy, *block.steps[n + 1 :]))


def clean(program: Program) -> Program:
    """Without steps and parameters that nothing needs; assignments stay."""
    block, needed = _live(program.block, set(program.block.results))
    params = tuple(p for p in block.params if p in needed)
    return replace(
        program,
        block=replace(block, params=params),
        arrays={p: program.arrays[p] for p in params},
        batch={p: a for p, a in program.batch.items() if p in params},
    )


def _live(block: Block, needed: set[int]) -> tuple[Block, set[int]]:
    steps: list[Step] = []
    needed = needed | set(block.results)
    for step in reversed(block.steps):
        if step.outs and not needed & set(step.outs) and not _assigns(step):
            continue
        bodies = []
        for body in step.bodies:
            live, inner = _live(body, set())
            bodies.append(live)
            needed |= inner - set(body.params)
        needed |= set(step.args)
        steps.append(replace(step, bodies=tuple(bodies)))
    return replace(block, steps=tuple(reversed(steps))), needed


def _assigns(step: Step) -> bool:
    return not step.outs or any(_assigns(s) for b in step.bodies for s in b.steps)
