"""How a kernel's axes become loops: which are reduced, which is vectorised, which are merged.

A plan is either *rows* (the vector axis is reduced: every row is folded to a scalar) or
*strips* (the vector axis is kept: a strip of columns is computed at a time, looping over the
reduced axes, if any, inside).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from treadle.core.shapes import Dim, compound
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Expr,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Store,
    const,
    postorder,
)


class UnsupportedKernel(Exception):
    """A kernel this target cannot emit; the message says what stands in the way."""


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop, over one axis or several merged ones."""

    name: str
    extent: Dim
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Access:
    """Where a load or store goes: ``offset + sum(stride * loop) + sum(stride * gathered)``."""

    buffer: Buffer
    strides: dict[Loop, Dim]
    offset: Dim
    gathers: tuple[tuple[Expr, Dim, Dim], ...]  # index, stride, extent of the dimension


@dataclass
class Plan:
    kernel: Kernel
    outer: list[Loop]
    inner: list[Loop]
    vector: Loop | None
    order: list[Expr]
    loop_of: dict[Axis, Loop]
    depth: dict[Expr, int]
    accesses: dict[Load | Store, Access] = field(default_factory=dict)

    @property
    def rows(self) -> bool:
        return self.vector in self.inner

    def loops(self, axes: Iterable[Axis]) -> set[Loop]:
        return {self.loop_of[a] for a in axes if a in self.loop_of}


def row_strides(shape: Sequence[Dim]) -> list[Dim]:
    """The element strides of a contiguous row-major array."""
    strides: list[Dim] = [1]
    for dim in reversed(shape[1:]):
        strides.append(strides[-1] * dim)
    return strides[::-1][: len(shape)]


def plan_kernel(kernel: Kernel) -> Plan:
    """Choose loops for a kernel without totals (see `split_totals`)."""
    order = postorder([s.value for s in kernel.stores])
    axes = [a for a in kernel.axes if a.extent != 1]
    reduced = _reduced_axes(order)
    linear = {node: _linear(node, axes) for node in _memory(order, kernel.stores)}
    inner = [a for a in axes if a in reduced]
    outer = [a for a in axes if a not in reduced]
    vector = _vector_axis(axes, linear)
    if vector in outer:
        outer = [*(a for a in outer if a is not vector), vector]
    elif vector in inner:
        inner = [*(a for a in inner if a is not vector), vector]
    pinned = {e.axis for e in order if isinstance(e, Iota)}
    for reduce in order:
        if isinstance(reduce, Reduce) and reduce.op in ("argmax", "argmin"):
            pinned |= set(reduce.over)
    merged_outer = _merge(outer, linear, pinned, "o")
    merged_inner = _merge(inner, linear, pinned, "r")
    loop_of = {a: loop for loop in (*merged_outer, *merged_inner) for a in loop.axes}
    plan = Plan(
        kernel, merged_outer, merged_inner, loop_of.get(vector) if vector else None,
        order, loop_of, _depths(order),
    )  # fmt: skip
    for node, (strides, offset, gathers) in linear.items():
        by_loop = {loop: strides[loop.axes[-1]] for loop in (*merged_outer, *merged_inner)}
        plan.accesses[node] = Access(node.buffer, by_loop, offset, gathers)
    _check_stores(plan)
    return plan


def _memory(order: list[Expr], stores: Sequence[Store]) -> list[Load | Store]:
    return [*(e for e in order if isinstance(e, Load)), *stores]


Linear = tuple[dict[Axis, Dim], Dim, tuple[tuple[Expr, Dim, Dim], ...]]


def _linear(node: Load | Store, axes: list[Axis]) -> Linear:
    strides: dict[Axis, Dim] = dict.fromkeys(axes, 0)
    offset: Dim = 0
    gathers = []
    indices: Sequence[Index] = node.index
    steps = row_strides(node.buffer.shape)
    for index, step, extent in zip(indices, steps, node.buffer.shape, strict=True):
        if isinstance(index, Affine):
            offset = offset + index.offset * step
            for axis, coefficient in index.terms:
                if axis in strides:
                    strides[axis] = strides[axis] + coefficient * step
        else:
            gathers.append((index, step, extent))
    return strides, offset, tuple(gathers)


def _reduced_axes(order: list[Expr]) -> frozenset[Axis]:
    sets = {frozenset(e.over) for e in order if isinstance(e, Reduce)}
    sets = {frozenset(a for a in s if a.extent != 1) for s in sets} - {frozenset()}
    if len(sets) > 1:
        names = "; ".join(", ".join(sorted(a.name for a in s)) for s in sets)
        raise UnsupportedKernel(f"reductions over different axes in one kernel: {names}")
    return sets.pop() if sets else frozenset()


def _vector_axis(axes: list[Axis], linear: dict[Load | Store, Linear]) -> Axis | None:
    """The axis along which most memory is contiguous; of equals, the innermost."""
    best, best_score = None, 0.0
    for axis in axes:
        score = 0.0
        for node, (strides, _, _) in linear.items():
            weight = 1.5 if isinstance(node, Store) else 1.0
            if strides[axis] == 1:
                score += weight
            elif strides[axis] != 0:
                score -= weight
        if axis.extent in (2, 3):
            score -= 1  # too short to fill a vector
        if best is None or score >= best_score:
            best, best_score = axis, score
    return best


def _merge(
    axes: list[Axis], linear: dict[Load | Store, Linear], pinned: set[Axis], prefix: str
) -> list[Loop]:
    """Neighbouring axes that every access walks as one become one loop."""
    groups: list[list[Axis]] = []
    for axis in axes:
        if groups and axis not in pinned and groups[-1][-1] not in pinned:
            last = groups[-1][-1]
            if all(s[last] == s[axis] * axis.extent for s, _, _ in linear.values()):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    loops = []
    for n, group in enumerate(groups):
        extent: Dim = 1
        for axis in group:
            extent = extent * axis.extent
        loops.append(Loop(f"{prefix}{n}", extent, tuple(group)))
    return loops


def _depths(order: list[Expr]) -> dict[Expr, int]:
    """How many reductions deep a value is: the pass in which it can be computed."""
    depth: dict[Expr, int] = {}
    for expr in order:
        below = max((depth[c] for c in expr.children), default=0)
        depth[expr] = below + isinstance(expr, Reduce)
    return depth


def _check_stores(plan: Plan) -> None:
    every, outer = set(plan.outer) | set(plan.inner), set(plan.outer)
    for store in plan.kernel.stores:
        loops = plan.loops(store.axes)
        if loops not in (every, outer):
            raise UnsupportedKernel(f"{store} covers neither every element nor every row")


# ---- totals: reductions to one value over the whole kernel
@dataclass(frozen=True)
class Split:
    """`main` stores partial results into `partials`, which `finish` reduces."""

    main: Kernel
    finish: Kernel | None
    partials: tuple[Buffer, ...]


CHUNK = 16384  # elements a partial result covers


def split_totals(kernel: Kernel) -> Split:
    """Separate scalar stores of reductions over every axis, so that threads can share them.

    Their values come from partial reductions in a fixed order, whatever the thread count.
    """
    totals = [s for s in kernel.stores if not s.axes and s.value.axes == frozenset()]
    axes = [a for a in kernel.axes if a.extent != 1]
    if not totals or len(axes) < 2:
        return Split(kernel, None, ())
    elements = [s for s in kernel.stores if s not in totals]
    rows = _row_axes(kernel, elements, axes)
    if rows is None:
        return Split(kernel, None, ())
    splitter = _Splitter(kernel, rows)
    finals = [Store(s.buffer, s.index, splitter.final(s.value)) for s in totals]
    partial_stores = tuple(splitter.stores)
    if not partial_stores:
        return Split(kernel, None, ())
    partials = tuple(s.buffer for s in partial_stores)
    inputs = tuple(b for b in kernel.buffers if not b.shape)
    main = Kernel(kernel.axes, (*kernel.buffers, *partials), (*elements, *partial_stores))
    finish = Kernel((splitter.position,), (*inputs, *partials), tuple(finals))
    return Split(main, finish, partials)


def _row_axes(kernel: Kernel, elements: list[Store], axes: list[Axis]) -> list[Axis] | None:
    """The axes of a row (reduced first), or None when the kernel is one row anyway."""
    order = postorder([s.value for s in kernel.stores])
    whole = frozenset(axes)
    partly = sorted(
        {frozenset(e.over) for e in order if isinstance(e, Reduce) and e.axes}, key=repr
    )
    used = postorder([s.value for s in elements])
    if any(isinstance(e, Reduce) and frozenset(e.over) >= whole for e in used):
        return None
    for expr in order:  # a total below a value that varies: one row
        if expr.axes and any(isinstance(c, Reduce) and not c.axes for c in expr.children):
            return None
    if partly:
        return sorted(partly[0], key=lambda a: a.name)
    size = 1
    for axis in axes:
        size = size * axis.extent if isinstance(axis.extent, int) else CHUNK + 1
    if size <= CHUNK and not elements:
        return None
    return [axes[-1]]


def drop_unit_reductions(kernel: Kernel) -> Kernel:
    """The kernel without reductions over axes of extent 1."""
    memo: dict[Expr, Expr] = {}
    for expr in postorder([s.value for s in kernel.stores]):
        memo[expr] = _without_unit_axes(expr, memo)
    stores = tuple(Store(s.buffer, s.index, memo[s.value]) for s in kernel.stores)
    return replace(kernel, stores=stores)


def _without_unit_axes(expr: Expr, memo: dict[Expr, Expr]) -> Expr:
    match expr:
        case Reduce():
            over = tuple(a for a in expr.over if a.extent != 1)
            if over:
                return replace(expr, over=over, value=memo[expr.value])
            return const(0, expr.dtype) if expr.op.startswith("arg") else memo[expr.value]
        case Apply():
            return replace(expr, args=tuple(memo[a] for a in expr.args))
        case Load():
            index = tuple(memo[i] if isinstance(i, Expr) else i for i in expr.index)
            return replace(expr, index=index, valid=expr.valid and memo[expr.valid])
    return expr


class _Splitter:
    def __init__(self, kernel: Kernel, rows: list[Axis]) -> None:
        self.rows = tuple(rows)
        self.outer = tuple(a for a in kernel.axes if a not in rows)
        self.shape = tuple(a.extent for a in self.outer)
        size: Dim = 1
        for dim in self.shape:
            size = size * dim
        self.size = size
        self.position = Axis("partial", size)
        self.stores: list[Store] = []
        self.memo: dict[Expr, Expr] = {}

    def final(self, value: Expr) -> Expr:
        """`value` in terms of partial results."""
        if value in self.memo:
            return self.memo[value]
        match value:
            case Reduce():
                result: Expr = self.total(value)
            case Load() if value.children:
                raise UnsupportedKernel(f"a gather after a total: {value}")
            case _ if value.children:
                args = tuple(self.final(c) for c in value.children)
                result = replace(value, args=args)  # type: ignore[call-arg]
            case _:
                result = value
        self.memo[value] = result
        return result

    def total(self, reduce: Reduce) -> Expr:
        if reduce.op in ("argmax", "argmin"):
            raise UnsupportedKernel(f"{reduce.op} over more than a row: {reduce}")
        within = frozenset(self.rows)
        over = frozenset(reduce.over)
        value: Expr = reduce.value
        if over & within:
            value = Reduce(reduce.op, self.rows, value)
        buffer = Buffer(f"partial{len(self.stores)}", reduce.dtype, self.shape)
        index = tuple(Affine(((a, 1),)) for a in self.outer)
        if not over >= frozenset(a for a in self.outer if a.extent != 1):
            raise UnsupportedKernel(f"a total that leaves out an axis: {reduce}")
        self.stores.append(Store(buffer, index, value))
        flat = Buffer(buffer.name, buffer.dtype, (self.size,))
        return Reduce(reduce.op, (self.position,), Load(flat, (Affine(((self.position, 1),)),)))


def ceil_div(a: Dim, b: int) -> Dim:
    return -(-a // b) if isinstance(a, int) else compound("floordiv", a + (b - 1), b)
