"""Kernels as LLVM text: explicit vectors along one axis, plain loops along the others.

Every value is computed at the outermost place where all its axes have positions. Reductions that
belong to one place run together in passes, by what they depend on; costly values that several
passes along the vector axis need are kept in a row buffer. The vector axis is the innermost
loop: four vectors at a time, then one, then a masked rest. The order in which a reduction adds
depends on extents only, never on the range that a call is given, so results do not depend on how
work is divided among threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.core import dtypes
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import (
    Apply, Axis, Buffer, Const, Expr, Extent, Iota, Kernel, Load, Reduce, Store, postorder,
)  # fmt: skip
from treadle.runtime.cpu.elements import Elements
from treadle.runtime.cpu.llvm_text import Function, Module, Word, interleave
from treadle.runtime.cpu.nest_level import Level, Register
from treadle.runtime.cpu.nest_memory import Address, Memory, split_index
from treadle.runtime.cpu.nest_reduce import Accumulator
from treadle.runtime.cpu.nest_shape import (
    CHUNK, Shape, UnsupportedKernel, choose_shape, extent_estimate, is_costly, strides,
)  # fmt: skip
from treadle.runtime.cpu.target import Target

UNROLL = 4
_INT64 = dtypes.int64
_MOST_UNROLLED = 32  # trips of small reduction loops that are written out


@dataclass(frozen=True)
class EmittedKernel:
    """A kernel's code and how to call it: ``symbol(buffers, dims, lo, hi, scratch)``.

    Attributes:
        symbol: the function; it handles the units [lo, hi) of `units`.
        text: its module.
        symbols: the names whose values `dims` holds, in order.
        units: how many units of work there are.
        grain: the fewest units worth a thread.
        scratch: bytes that every thread needs.
        shared: bytes of memory whose address follows the buffers' (partial results), 0 for none.
        finish: a function ``(buffers, dims)`` to call when all units are done, or None.
        segmented: `buffers` is a table: the number of segments, then for each its length and
            the addresses of its buffers; units are elements over all segments.
    """

    symbol: str
    text: str
    symbols: tuple[str, ...]
    units: Dim
    grain: int
    scratch: Dim
    shared: Dim
    finish: str | None
    segmented: bool


def emit_kernel(kernel: Kernel, target: Target) -> EmittedKernel:
    """The code of a kernel.

    Raises:
        UnsupportedKernel: there is no code for it.
    """
    symbol = "k_" + hashlib.sha256(repr(kernel).encode()).hexdigest()[:16]
    return _Emitter(kernel, target, symbol).emit()


class _Emitter:
    def __init__(self, kernel: Kernel, target: Target, symbol: str) -> None:
        self.kernel, self.symbol = kernel, symbol
        self.shape: Shape = choose_shape(kernel, target)
        self.module = Module(target)
        self.scratch: Dim = 0
        self._open()

    def _open(self) -> None:
        """Start a function: registers, memory and the values of symbols belong to it."""
        self.fn = Function(self.module)
        self.vector = Elements(self.fn, self.shape.lanes)
        self.scalar = Elements(self.fn, 0)
        self.memory = Memory(self.fn, self.vector, self.scalar)
        self.pointers: dict[Buffer, str] = {}
        self.dims: dict[str, str] = {}

    # ---- the function as a whole
    def emit(self) -> EmittedKernel:
        kernel, shape = self.kernel, self.shape
        finish, shared, units = None, 0, self._units()
        if kernel.segmented:
            self._emit_segments()
        elif shape.total:
            finish, shared = self.symbol + "_finish", self._emit_partials()
        else:
            self._read_arguments()
            self._stores(list(kernel.stores), Level(None, {}))
        if not shape.total:
            self.fn.emit("ret void")
            self._define(
                self.symbol, "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)"
            )
        return EmittedKernel(
            self.symbol, self.module.text(), kernel.symbols, units, shape.grain,
            self.scratch, shared, finish, kernel.segmented,
        )  # fmt: skip

    def _define(self, name: str, signature: str) -> None:
        self.fn.define(name, signature)

    def _units(self) -> Dim:
        axis = self.shape.parallel
        if axis is None:
            return 1
        if not self.shape.total:
            return axis.extent
        rows = self._chunk_rows()
        return (axis.extent + (rows - 1)) // rows

    def _read_arguments(self) -> None:
        for i, buffer in enumerate(self.kernel.buffers):
            self.pointers[buffer] = self.fn.load_word("%buffers", i, "ptr")
        self._read_dims()

    def _read_dims(self) -> None:
        for i, name in enumerate(self.kernel.symbols):
            self.dims[name] = self.fn.load_word("%dims", i)

    def dim(self, dim: Dim) -> Word:
        return self.fn.dim(dim, self.dims.__getitem__)

    def _emit_segments(self) -> None:
        """Loop over the segments that the range of elements touches."""
        fn, (axis,) = self.fn, self.kernel.axes
        words = 1 + len(self.kernel.buffers)
        count = fn.load_word("%buffers", 0)

        def segment(i: Word, start: list[str]) -> list[str]:
            place = fn.add(fn.mul(i, words), 1)
            length = fn.load_word("%buffers", place)
            for k, buffer in enumerate(self.kernel.buffers):
                self.pointers[buffer] = fn.load_word("%buffers", fn.add(place, k + 1), "ptr")
            low = fn.max(fn.sub("%lo", start[0]), 0)
            high = fn.min(fn.sub("%hi", start[0]), length)
            for name in self.kernel.symbols:
                self.dims[name] = length
            level = Level(None, {})
            self._hoist(level, [s.value for s in self.kernel.stores])
            self._vector_loop(level, axis, low, high, [], self._storing(list(self.kernel.stores)))
            return [str(fn.add(start[0], length))]

        self._carried(0, count, 1, ["i64"], ["0"], segment)

    # ---- loops
    def _carried(
        self, start: Word, stop: Word, step: int, kinds: Sequence[str], state: list[str],
        body: Callable[[Word, list[str]], list[str]], most: int = 1,
    ) -> list[str]:  # fmt: skip
        """``for i in range(start, stop, step): state = body(i, state)`` with state in registers.

        Loops of up to `most` known trips are written out.
        """
        fn = self.fn
        if isinstance(start, int) and isinstance(stop, int):
            trips = max(0, -(-(stop - start) // step))
            if trips <= most:
                for i in range(trips):
                    state = body(start + i * step, state)
                return state
        k = fn.unique()
        fn.branch(f"pre{k}")
        fn.label(f"pre{k}")
        fn.branch(f"head{k}")
        fn.label(f"head{k}")
        fn.emit(f"%i{k} = phi i64 [{start}, %pre{k}], [%next{k}, %latch{k}]")
        hole = len(fn.lines)
        names = [f"%s{k}_{n}" for n in range(len(state))]
        fn.emit(f"%more{k} = icmp slt i64 %i{k}, {stop}")
        fn.emit(f"br i1 %more{k}, label %body{k}, label %exit{k}")
        fn.label(f"body{k}")
        after = body(f"%i{k}", names)
        fn.branch(f"latch{k}")
        fn.label(f"latch{k}")
        fn.emit(f"%next{k} = add nsw i64 %i{k}, {step}")
        fn.branch(f"head{k}")
        fn.label(f"exit{k}")
        fn.lines[hole:hole] = [
            f"  {name} = phi {kind} [{before}, %pre{k}], [{value}, %latch{k}]"
            for name, kind, before, value in zip(names, kinds, state, after, strict=True)
        ]
        return names

    def _range(self, axis: Axis, reducing: bool) -> tuple[Word, Word]:
        if axis is self.shape.parallel and not reducing and not self.shape.total:
            return "%lo", "%hi"
        return 0, self.dim(axis.extent)

    def _vector_loop(
        self, level: Level, axis: Axis, start: Word, stop: Word, sets: list[list[Accumulator]],
        body: Callable[[Level, list[list[list[str]]]], list[list[list[str]]]],
        states: list[list[list[str]]] | None = None,
    ) -> list[list[list[str]]]:  # fmt: skip
        """The loop along the vector axis: `copies` vectors at a time, single ones, a masked rest.

        sets: for every copy, its accumulators; states: their registers, changed by `body`.
        """
        fn, lanes = self.fn, self.shape.lanes
        states = states or []
        copies = len(sets) or self._copies(start, stop)
        kinds = [t for accumulators in sets for a in accumulators for t in a.types]

        def run(count: int, mask: bool) -> Callable[[Word, list[str]], list[str]]:
            def one(i: Word, flat: list[str]) -> list[str]:
                current = _unflatten(flat, sets)
                lane_mask = self.memory.lane_mask(fn.sub(stop, i)) if mask else None
                inner = level.inside(axis, i, count, lane_mask)
                updated = body(inner, current[:count]) if sets else body(inner, [])
                return _flatten([*updated, *current[count:]]) if sets else []

            return one

        flat = _flatten(states)
        wide, single = copies * lanes, lanes
        after_wide = self._end(start, stop, wide) if copies > 1 else start
        if copies > 1:
            flat = self._carried(start, after_wide, wide, kinds, flat, run(copies, False))
        after_single = self._end(after_wide, stop, single)
        flat = self._carried(after_wide, after_single, single, kinds, flat, run(1, False))
        if not (isinstance(stop, int) and after_single == stop):
            flat = self._carried(after_single, stop, single, kinds, flat, run(1, True))
        return _unflatten(flat, sets)

    def _end(self, start: Word, stop: Word, step: int) -> Word:
        """start + the largest multiple of `step` (a power of 2) within the range."""
        if isinstance(start, int) and isinstance(stop, int):
            return start + max(0, stop - start) // step * step
        length = self.fn.max(self.fn.sub(stop, start), 0)
        whole = self.fn.value(f"and i64 {length}, {-step}")
        return self.fn.add(start, whole)

    def _copies(self, start: Word, stop: Word) -> int:
        if isinstance(start, int) and isinstance(stop, int):
            vectors = (stop - start) // self.shape.lanes
            return 4 if vectors >= 4 else 2 if vectors >= 2 else 1
        return UNROLL

    # ---- stores
    def _stores(self, stores: list[Store], level: Level) -> None:
        """Everything that `stores` need here and inside: passes, then stores, then inner loops."""
        groups: dict[Axis, list[Store]] = {}
        here = [s for s in stores if s.axes <= level.axes.keys()]
        for s in stores:
            if s not in here:
                free = self.shape.order(s.axes - level.axes.keys(), self.kernel)
                groups.setdefault(free[0], []).append(s)
        rows = [
            [s.value for s in group] for axis, group in groups.items() if axis is self.shape.vector
        ]
        self._settle(level, [s.value for s in stores], rows)
        if here:
            self._storing(here)(level, [])
        for axis, group in groups.items():
            self._store_loop(level, axis, group)

    def _store_loop(self, level: Level, axis: Axis, stores: list[Store]) -> None:
        start, stop = self._range(axis, reducing=False)
        if axis is self.shape.vector:
            self._splat_ahead(level, [s.value for s in stores])
            self._vector_loop(level, axis, start, stop, [], self._storing(stores))
            return

        def row(i: Word, state: list[str]) -> list[str]:
            self._stores(stores, level.inside(axis, i))
            return state

        self._carried(start, stop, 1, [], [], row)

    def _storing(
        self, stores: list[Store]
    ) -> Callable[[Level, list[list[list[str]]]], list[list[list[str]]]]:
        def store_all(level: Level, state: list[list[list[str]]]) -> list[list[list[str]]]:
            self._settle(level, [s.value for s in stores], [])
            registers = [self.evaluate(s.value, level) for s in stores]
            for s, register in zip(stores, registers, strict=True):
                self._store(s, register, level)
            return state

        return store_all

    def _store(self, store: Store, register: Register, level: Level) -> None:
        buffer, dtype = store.buffer, store.value.dtype
        if not (level.copies and self.shape.vector in store.axes):
            at = self._place(buffer, store.index, level)[0]
            self.memory.store_scalar(register.parts[0], self.pointers[buffer], at, dtype)
            return
        base, stride = self._place(buffer, store.index, level)
        for copy in range(level.copies):
            part = (
                register.parts[copy]
                if register.vector
                else self._splat(store.value, register, level)
            )
            at = self.fn.add(base, self.fn.mul(stride, copy * self.shape.lanes))
            self.memory.store(part, Address(self.pointers[buffer], at, stride), dtype, level.mask)

    # ---- what belongs to a level
    def _settle(self, level: Level, roots: list[Expr], rows: list[list[Expr]]) -> None:
        """Compute what can be computed here: scalars, and reductions in passes.

        rows: the roots of loops along the vector axis that follow at this level.
        """
        passes = self._passes(level, roots)
        if self.shape.vector is not None and self.shape.vector not in level.axes:
            along = [
                [r.value for r in group]
                for group in passes
                if group[0].over == (self.shape.vector,)
            ]
            self._plan_kept(level, [*along, *rows])
        for group in passes:
            self._hoist(level, [r.value for r in group])
            self._reduce(group, level)
        self._hoist(level, roots)

    def _passes(self, level: Level, roots: list[Expr]) -> list[list[Reduce]]:
        """The reductions to run here, grouped: each group needs only earlier ones."""
        pending = [e for e in self._below(roots, level) if isinstance(e, Reduce) and level.has(e)]
        below = {e: {x for x in postorder([e.value]) if isinstance(x, Reduce)} for e in pending}
        groups: list[list[Reduce]] = []
        while pending:
            waiting = set(pending)
            ready = [e for e in pending if not (below[e] & waiting)]
            group = [
                e
                for e in ready
                if e.over == ready[0].over
                and self._is_vector(e, level) == self._is_vector(ready[0], level)
            ]
            groups.append(group)
            pending = [e for e in pending if e not in group]
        return groups

    def _is_vector(self, reduce: Reduce, level: Level) -> bool:
        return bool(level.copies) and self.shape.vector in reduce.axes

    def _below(self, roots: list[Expr], level: Level) -> list[Expr]:
        """Expressions below the roots, children first, not looking below known values."""
        done: dict[Expr, None] = {}
        stack = [(r, False) for r in reversed(roots)]
        while stack:
            expr, expanded = stack.pop()
            if expr in done or level.find(expr) is not None:
                continue
            if expanded or self._in_row(expr, level):
                done[expr] = None
                continue
            stack.append((expr, True))
            stack += [(c, False) for c in reversed(expr.children)]
        return list(done)

    def _in_row(self, expr: Expr, level: Level) -> bool:
        """Whether an earlier pass left the value in a row buffer."""
        kept = level.find_kept(expr)
        return kept is not None and kept[2] and level.copies > 0

    def _plan_kept(self, level: Level, loops: list[list[Expr]]) -> None:
        """Give row buffers to costly values that several of the loops compute."""
        axis = self.shape.vector
        assert axis is not None
        inside = {*level.axes, axis}
        seen: dict[Expr, int] = {}
        for roots in loops:
            for e in self._evaluated(roots):
                if axis in e.axes and e.axes <= inside:
                    seen[e] = seen.get(e, 0) + 1
        for e, times in seen.items():
            if times > 1 and is_costly(e) and level.find_kept(e) is None:
                level.kept[e] = (self._row_buffer(e, axis), False)

    def _evaluated(self, roots: list[Expr]) -> list[Expr]:
        """What a loop computes: expressions below the roots but not below reductions."""
        done: dict[Expr, None] = {}
        stack = list(roots)
        while stack:
            e = stack.pop()
            if e in done or isinstance(e, Reduce):
                continue
            done[e] = None
            stack += e.children
        return list(done)

    def _row_buffer(self, expr: Expr, axis: Axis) -> str:
        size = 8 if expr.dtype.size == 8 else 4
        if expr.dtype.is_bool or (expr.dtype.is_integer and expr.dtype.size < 4):
            size = 4
        lanes = self.shape.lanes
        whole = (axis.extent + (lanes - 1)) // lanes * (lanes * size)
        place = self.fn.offset("%scratch", self.dim(self.scratch), "i8")
        self.scratch = self.scratch + (whole + 63) // 64 * 64
        return place

    def _hoist(self, level: Level, roots: list[Expr]) -> None:
        """Compute every value whose axes all have positions here."""
        for e in self._below(roots, level):
            if level.has(e) and not isinstance(e, Const):
                self.evaluate(e, level)
        for e in self._below(roots, level):
            if isinstance(e, Load) and not level.has(e):
                self._row_base(e.buffer, e.index, level)

    def _splat_ahead(self, level: Level, roots: list[Expr]) -> None:
        """Put scalars that vectors meet into all lanes before the loop."""
        vector = self.shape.vector
        for e in self._evaluated(roots):
            if vector in e.axes and isinstance(e, Apply):
                for arg in e.args:
                    register = level.find(arg)
                    if register is not None and not register.vector:
                        self._splat(arg, register, level)

    # ---- values
    def evaluate(self, expr: Expr, level: Level) -> Register:
        """The register of an expression at a level."""
        for e in self._needed(expr, level):
            level.values[e] = self._compute(e, level)
        found = level.find(expr)
        assert found is not None, expr
        return found

    def _needed(self, expr: Expr, level: Level) -> list[Expr]:
        """What is still to be computed for `expr`, operands first."""
        done: dict[Expr, None] = {}
        stack = [(expr, False)]
        while stack:
            e, expanded = stack.pop()
            if e in done or level.find(e) is not None:
                continue
            if expanded or isinstance(e, Reduce) or self._in_row(e, level):
                done[e] = None
                continue
            stack.append((e, True))
            stack += [(c, False) for c in reversed(e.children)]
        return list(done)

    def _compute(self, e: Expr, level: Level) -> Register:
        match e:
            case Const():
                return Register([self.scalar.scalar_constant(e.value, e.dtype)], False)
            case Extent():
                return Register([self._word(self.dim(e.dim), e)], False)
            case Iota():
                return self._iota(e, level)
            case Reduce():
                self._settle_one(e, level)
                found = level.find(e)
                assert found is not None
                return found
            case Load():
                return self._load(e, level)
            case Apply():
                return self._apply(e, level)
        raise UnsupportedKernel(f"no code for {e}")

    def _settle_one(self, reduce: Reduce, level: Level) -> None:
        self._hoist(level, [reduce.value])
        self._reduce([reduce], level)

    def _word(self, word: Word, e: Expr) -> str:
        if e.dtype is _INT64 or isinstance(word, int):
            return str(word)
        return self.scalar.apply("cast", [word], [_INT64], e.dtype)

    def _is_wide(self, e: Expr, level: Level) -> bool:
        return level.copies > 0 and self.shape.vector in e.axes

    def _iota(self, e: Iota, level: Level) -> Register:
        position = level.axes[e.axis]
        if not self._is_wide(e, level):
            return Register([self._word(position, e)], False)
        parts = []
        for copy in range(level.copies):
            first = self.memory.splat_word(self.fn.add(position, copy * self.shape.lanes))
            kind = self.vector.wrap("i64")
            lanes = self.fn.value(f"add {kind} {first}, {self.memory.lane_numbers()}")
            parts.append(self.vector.apply("cast", [lanes], [_INT64], e.dtype))
        return Register(parts, True)

    def _apply(self, e: Apply, level: Level) -> Register:
        operands = [a.dtype for a in e.args]
        registers = [level.find(a) for a in e.args]
        if not self._is_wide(e, level):
            parts = [r.parts[0] for r in registers if r is not None]
            return Register([self.scalar.apply(e.fn, parts, operands, e.dtype)], False)
        kept = level.find_kept(e)
        if kept is not None and kept[2]:
            return self._from_row(e, kept[1], level)
        rows = [self._wide_parts(a, r, level) for a, r in zip(e.args, registers, strict=True)]
        parts = [""] * level.copies

        def copy(k: int) -> None:
            parts[k] = self.vector.apply(e.fn, [row[k] for row in rows], operands, e.dtype)

        interleave(self.fn, [lambda k=k: copy(k) for k in range(level.copies)])  # type: ignore[misc]
        register = Register(parts, True)
        if kept is not None:
            self._into_row(e, register, kept[1], level)
        return register

    def _wide_parts(self, e: Expr, register: Register | None, level: Level) -> list[str]:
        assert register is not None
        if register.vector:
            return register.parts
        return [self._splat(e, register, level)] * level.copies

    def _splat(self, e: Expr, register: Register, level: Level) -> str:
        """A scalar in every lane."""
        if isinstance(e, Const):
            return self.vector.constant(e.value, e.dtype)
        known = level.find_splat(e)
        if known is None:
            known = level.splats[e] = self.vector.splat(register.parts[0], e.dtype)
        return known

    # ---- row buffers
    def _row_address(self, e: Expr, place: str, level: Level, copy: int) -> tuple[str, str]:
        assert self.shape.vector is not None
        kind = self.vector.type(e.dtype) if not e.dtype.is_bool else self.vector.wrap("i8")
        size = 8 if e.dtype.size == 8 else 4
        at = self.fn.add(level.axes[self.shape.vector], copy * self.shape.lanes)
        return kind, self.fn.offset(place, self.fn.mul(at, size), "i8")

    def _into_row(self, e: Expr, register: Register, place: str, level: Level) -> None:
        for copy, part in enumerate(register.parts):
            kind, address = self._row_address(e, place, level, copy)
            if e.dtype.is_bool:
                part = self.vector.to_memory(part, e.dtype)
            self.fn.emit(f"store {kind} {part}, ptr {address}, align 4")

    def _from_row(self, e: Expr, place: str, level: Level) -> Register:
        parts = []
        for copy in range(level.copies):
            kind, address = self._row_address(e, place, level, copy)
            raw = self.fn.value(f"load {kind}, ptr {address}, align 4")
            parts.append(self.vector.from_memory(raw, e.dtype) if e.dtype.is_bool else raw)
        return Register(parts, True)

    # ---- loads
    def _place(self, buffer: Buffer, index: tuple[object, ...], level: Level) -> tuple[Word, Word]:
        """The flat element of lane 0 of copy 0, and the stride along the vector axis."""
        vector = self.shape.vector
        base = self._row_base(buffer, index, level)
        coefficients, _, _ = split_index(buffer, index, strides(buffer))  # type: ignore[arg-type]
        stride: Word = 0
        if level.copies and vector in coefficients:
            stride = self.dim(coefficients[vector])
            base = self.fn.add(base, self.fn.mul(level.axes[vector], stride))
        return base, stride

    def _row_base(self, buffer: Buffer, index: tuple[object, ...], level: Level) -> Word:
        """The part of a flat index that does not depend on the vector axis inside its loop."""
        coefficients, offset, _ = split_index(buffer, index, strides(buffer))  # type: ignore[arg-type]
        inner = {self.shape.vector} if level.copies else set()
        here = tuple((a, c) for a, c in coefficients.items() if a in level.axes and a not in inner)
        key = (offset, tuple(sorted(((a.name, repr(c)) for a, c in here))))
        known = level.find_word(key)
        if known is not None:
            return known
        total: Word = self.dim(offset)
        for axis, coefficient in here:
            total = self.fn.add(total, self.fn.mul(level.axes[axis], self.dim(coefficient)))
        level.words[key] = total
        return total

    def _load(self, e: Load, level: Level) -> Register:
        _, _, gathered = split_index(e.buffer, e.index, strides(e.buffer))
        base, stride = self._place(e.buffer, e.index, level)
        if not self._is_wide(e, level):
            for index, step, size in gathered:
                base = self.fn.add(base, self._clamped(index, step, size, level))
            valid = None
            if e.valid is not None:
                found = level.find(e.valid)
                assert found is not None
                valid = found.parts[0]
            value = self.memory.load_scalar(self.pointers[e.buffer], base, e.dtype, valid)
            if valid is not None and e.fill is not None:
                fill = self.scalar.constant(e.fill.value, e.dtype)
                value = self.scalar.select(valid, value, fill, e.dtype)
            return Register([value], False)
        return Register(
            [self._load_lanes(e, level, k, base, stride, gathered) for k in range(level.copies)],
            True,
        )

    def _load_lanes(
        self, e: Load, level: Level, copy: int, base: Word, stride: Word, gathered: list[object]
    ) -> str:
        fn, pointer = self.fn, self.pointers[e.buffer]
        base = fn.add(base, fn.mul(stride, copy * self.shape.lanes))
        mask, valid = level.mask, None
        if e.valid is not None:
            found = level.find(e.valid)
            assert found is not None
            valid = self._wide_parts(e.valid, found, level)[copy]
            mask = valid if mask is None else self.vector.lanes32.both(mask, valid)
        if not gathered and stride == 0 and valid is None:
            one = self.memory.load_scalar(pointer, base, e.dtype, None)
            value = self.vector.splat(one, e.dtype)
        else:
            address = Address(pointer, base, stride)
            if gathered:
                address.places = self._gather_places(base, stride, gathered, level, copy)
            value = self.memory.load(address, e.dtype, mask)
        if valid is None or e.fill is None or not e.fill.value:
            return value  # masked lanes are zero already
        fill = self.vector.constant(e.fill.value, e.dtype)
        return self.vector.select(valid, value, fill, e.dtype)

    def _clamped(self, index: Expr, stride: Dim, size: Dim, level: Level) -> Word:
        """The contribution of a gathered index to a flat one, for a scalar."""
        register = level.find(index)
        assert register is not None
        place = self.scalar.apply("cast", [register.parts[0]], [index.dtype], _INT64)
        bounded = self.fn.max(self.fn.min(place, self.fn.sub(self.dim(size), 1)), 0)
        return self.fn.mul(bounded, self.dim(stride))

    def _gather_places(
        self, base: Word, stride: Word, gathered: list[object], level: Level, copy: int
    ) -> str:
        fn, v, kind = self.fn, self.vector, self.vector.wrap("i64")
        total = self.memory.splat_word(base)
        if stride != 0:
            steps = fn.value(
                f"mul {kind} {self.memory.lane_numbers()}, {self.memory.splat_word(stride)}"
            )
            total = fn.value(f"add {kind} {total}, {steps}")
        for index, step, size in gathered:  # type: ignore[misc]
            register = level.find(index)
            assert register is not None
            place = self._wide_parts(index, register, level)[copy]
            place = v.apply("cast", [place], [index.dtype], _INT64)
            last = self.memory.splat_word(fn.sub(self.dim(size), 1))
            place = v.apply("min", [place, last], [_INT64] * 2, _INT64)
            place = v.apply("max", [place, v.constant(0, _INT64)], [_INT64] * 2, _INT64)
            scaled = fn.value(f"mul {kind} {place}, {self.memory.splat_word(self.dim(step))}")
            total = fn.value(f"add {kind} {total}, {scaled}")
        return total

    # ---- reductions
    def _reduce(self, group: list[Reduce], level: Level) -> None:
        """Run reductions over the same axes together and note their results at the level."""
        states, sets = self._reduce_states(group, level)
        for i, reduce in enumerate(group):
            level.values[reduce] = self._reduced(i, reduce, sets, states, level)
        vector = self.shape.vector
        if group[0].over == (vector,):
            for e, (place, _) in list(level.kept.items()):
                if any(e in self._evaluated([r.value]) for r in group):
                    level.kept[e] = (place, True)

    def _reduce_states(
        self, group: list[Reduce], level: Level, part: tuple[Axis, Word, Word] | None = None
    ) -> tuple[list[list[list[str]]], list[list[Accumulator]]]:
        """The accumulators after the loops; `part` limits the range of one axis."""
        along = self.shape.vector in group[0].over
        if along:
            vector = self.shape.vector
            assert vector is not None
            known = vector.extent if part is None or part[0] is not vector else CHUNK
            copies = self._copies(0, known if isinstance(known, int) else "%unknown")
            wide = True
        else:
            wide = self._is_vector(group[0], level)
            copies = level.copies if wide else 1
        elements = self.vector if wide else self.scalar
        sets = [[Accumulator(r, elements) for r in group] for _ in range(copies)]
        states = [[a.start() for a in accumulators] for accumulators in sets]
        axes = self.shape.order(group[0].over, self.kernel)
        return self._reduce_loops(axes, group, level, sets, states, part), sets

    def _reduce_loops(
        self, axes: list[Axis], group: list[Reduce], level: Level, sets: list[list[Accumulator]],
        states: list[list[list[str]]], part: tuple[Axis, Word, Word] | None,
    ) -> list[list[list[str]]]:  # fmt: skip
        roots: list[Expr] = [r.value for r in group]
        if not axes:
            return self._accumulate(group, level, sets, states)
        axis, rest = axes[0], axes[1:]
        start, stop = self._range(axis, reducing=True)
        if part is not None and axis is part[0]:
            start, stop = part[1:]
        if axis is self.shape.vector:
            self._splat_ahead(level, roots)

            def vectors(inner: Level, now: list[list[list[str]]]) -> list[list[list[str]]]:
                self._settle(inner, roots, [])
                return self._accumulate(group, inner, sets[: len(now)], now)

            return self._vector_loop(level, axis, start, stop, sets, vectors, states)
        kinds = [t for accumulators in sets for a in accumulators for t in a.types]

        def trip(i: Word, flat: list[str]) -> list[str]:
            inner = level.inside(axis, i)
            self._settle(inner, roots, [roots] if rest == [self.shape.vector] else [])
            now = _unflatten(flat, sets)
            return _flatten(self._reduce_loops(rest, group, inner, sets, now, part))

        trips = product(a.extent for a in axes)
        small = isinstance(trips, int) and trips <= _MOST_UNROLLED
        most = extent_estimate(axis.extent) if small else 1
        return _unflatten(self._carried(start, stop, 1, kinds, _flatten(states), trip, most), sets)

    def _accumulate(
        self, group: list[Reduce], level: Level, sets: list[list[Accumulator]],
        states: list[list[list[str]]],
    ) -> list[list[list[str]]]:  # fmt: skip
        result: list[list[list[str]]] = [[] for _ in states]
        for i, reduce in enumerate(group):
            register = self.evaluate(reduce.value, level)
            position = None
            if sets[0][i].positions:
                position = self.evaluate(Iota(reduce.over[0]), level)
            wide = bool(sets[0][i].e.count)
            for copy in range(len(states)):
                mask = level.mask if wide else None
                value = self._lane_part(reduce.value, register, level, copy, wide)
                place = None
                if position is not None:
                    place = self._lane_part(Iota(reduce.over[0]), position, level, copy, wide)
                result[copy].append(sets[copy][i].step(states[copy][i], value, place, mask))
        return result

    def _lane_part(self, e: Expr, register: Register, level: Level, copy: int, wide: bool) -> str:
        if register.vector:
            return register.parts[copy]
        return self._splat(e, register, level) if wide else register.parts[0]

    def _reduced(
        self, i: int, reduce: Reduce, sets: list[list[Accumulator]],
        states: list[list[list[str]]], level: Level,
    ) -> Register:  # fmt: skip
        """The result of the group's reduction number i."""
        if self.shape.vector not in reduce.over:
            parts = [sets[c][i].result(states[c][i]) for c in range(len(sets))]
            return Register(parts, bool(sets[0][i].e.count))
        return Register(
            [Accumulator(reduce, self.scalar).result(self._one(i, sets, states))], False
        )

    def _one(
        self, i: int, sets: list[list[Accumulator]], states: list[list[list[str]]]
    ) -> list[str]:
        """Copies and lanes merged into a scalar state."""
        merged = sets[0][i].merge_all([s[i] for s in states])
        return sets[0][i].across(merged, self.scalar) if sets[0][i].e.count else merged

    # ---- reductions of everything
    def _chunk_rows(self) -> int:
        """Positions of the parallel axis in a chunk."""
        axis = self.shape.parallel
        others = [a.extent for a in self.shape.total[0].over if a is not axis]
        per_row = 1
        for extent in others:
            per_row *= extent_estimate(extent)
        return max(1, CHUNK // max(1, per_row))

    def _emit_partials(self) -> Dim:
        """The chunks' function, and the one that merges their results; bytes for the partials."""
        group, axis, rows = list(self.shape.total), self.shape.parallel, self._chunk_rows()
        assert axis is not None
        self._read_arguments()
        fn = self.fn
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        words = sum(len(Accumulator(r, self.scalar).types) for r in group)
        level = Level(None, {})
        self._hoist(level, [r.value for r in group])
        extent = self.dim(axis.extent)

        def chunk(c: Word, state: list[str]) -> list[str]:
            first = fn.mul(c, rows)
            last = fn.min(fn.add(first, rows), extent)
            inner = Level(level, {})
            states, sets = self._reduce_states(group, inner, (axis, first, last))
            slot = fn.mul(c, words)
            for i in range(len(group)):
                kinds = Accumulator(group[i], self.scalar).types
                for kind, part in zip(kinds, self._one(i, sets, states), strict=True):
                    fn.emit(f"store {kind} {part}, ptr {fn.offset(partials, slot, 'i64')}")
                    slot = fn.add(slot, 1)
            return state

        self._carried("%lo", "%hi", 1, [], [], chunk)
        fn.emit("ret void")
        self._define(
            self.symbol, "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)"
        )
        self._emit_finish(group, words)
        return self._units() * (8 * words)

    def _emit_finish(self, group: list[Reduce], words: int) -> None:
        """Merge the chunks' results in order and store what they lead to."""
        self._open()
        self._read_arguments()
        fn = self.fn
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        accumulators = [Accumulator(r, self.scalar) for r in group]
        kinds = [t for a in accumulators for t in a.types]

        def one(c: Word, flat: list[str]) -> list[str]:
            parts = [
                fn.value(
                    f"load {kind}, ptr {fn.offset(partials, fn.add(fn.mul(c, words), n), 'i64')}"
                )
                for n, kind in enumerate(kinds)
            ]
            now, more = _unflatten(flat, [accumulators])[0], _unflatten(parts, [accumulators])[0]
            merged = [a.merge(s, m) for a, s, m in zip(accumulators, now, more, strict=True)]
            return _flatten([merged])

        start = _flatten([[a.start() for a in accumulators]])
        states = _unflatten(
            self._carried(0, self.dim(self._units()), 1, kinds, start, one), [accumulators]
        )
        level = Level(None, {})
        for a, state in zip(accumulators, states[0], strict=True):
            level.values[a.reduce] = Register([a.result(state)], False)
        self._storing(list(self.kernel.stores))(level, [])
        fn.emit("ret void")
        self._define(self.symbol + "_finish", "void @{}(ptr %buffers, ptr %dims)")


def _flatten(states: list[list[list[str]]]) -> list[str]:
    return [part for accumulators in states for state in accumulators for part in state]


def _unflatten(flat: list[str], sets: list[list[Accumulator]]) -> list[list[list[str]]]:
    parts = iter(flat)
    return [[[next(parts) for _ in a.types] for a in accumulators] for accumulators in sets]
