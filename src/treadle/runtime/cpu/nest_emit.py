"""Loop nests as LLVM text: the loops of a plan around vectorised expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Apply, Buffer, Const, Expr, Extent, Iota, Load, Reduce, Store
from treadle.runtime.cpu.llvm_text import Function, Word, interleave
from treadle.runtime.cpu.nest_plan import Access, Loop, Plan, UnsupportedKernel
from treadle.runtime.cpu.operations import Operations, register_type, storage_type
from treadle.runtime.cpu.reductions import Accumulators

UNROLL = 4
_ROW_BUFFER_BYTES = 32768  # of the stack, for values used in several passes


def compute_bits(found: list[DType]) -> int:
    """The width of the widest dtype that is computed with."""
    floats = [max(d.size, 4) * 8 for d in found if d.is_floating]
    others = [d.size * 8 for d in found]
    return max(floats) if floats else max([8, *others])


@dataclass
class Column:
    """A vector's worth of positions along the vector loop."""

    start: Word
    mask: str | None  # None: every lane
    values: dict[Expr, str] = field(default_factory=dict)
    places: dict[Expr, str] = field(default_factory=dict)  # of argmax and argmin candidates


class NestEmitter:
    """Emits one plan into `function`.

    pointers: the buffers' base addresses; symbols: the run-time dims.
    """

    def __init__(
        self, function: Function, plan: Plan, pointers: dict[Buffer, str],
        symbols: Callable[[str], Word],
    ) -> None:  # fmt: skip
        self.fn, self.plan, self.pointers, self.symbols = function, plan, pointers, symbols
        bits = compute_bits([e.dtype for e in plan.order])
        self.lanes = max(function.module.target.vector_bits // bits, 2)
        self.vector_ops = Operations(function, self.lanes)
        self.scalar_ops = Operations(function, 0)
        self.position: dict[Loop, Word] = {}
        self.scalars: dict[Expr, str] = {}  # values that do not vary along the vector
        self.splats: dict[Expr, str] = {}
        self.bases: dict[Load | Store, str] = {}
        self.kept: dict[Expr, str] = {}
        self.passes = sorted({plan.depth[s.value] for s in plan.kernel.stores} | {
            plan.depth[e.value] for e in plan.order if isinstance(e, Reduce)
        })  # fmt: skip
        self.loops: dict[Expr, set[Loop]] = {}
        for expr in plan.order:
            self.loops[expr] = self._loops_of(expr)
        self.dims: dict[Dim, Word] = {}
        self.number = 0
        self.first_pass: dict[Expr, int] = {}

    def _loops_of(self, expr: Expr) -> set[Loop]:
        """The loops that a value varies with; a strip's reductions are vectors."""
        loops = self.plan.loops(expr.axes).union(*(self.loops[c] for c in expr.children))
        if isinstance(expr, Reduce):
            loops -= set(self.plan.inner)
            if self.plan.vector and not self.plan.rows:
                loops |= {self.plan.vector}
        return loops

    def dim(self, dim: Dim) -> Word:
        if isinstance(dim, int):
            return dim
        if dim not in self.dims:
            self.dims[dim] = self.fn.dim(dim, self.symbols)
        return self.dims[dim]

    def _prepare_dims(self) -> None:
        """Compute every dim before the loops."""
        for loop in (*self.plan.outer, *self.plan.inner):
            self.dim(loop.extent)
        for access in self.plan.accesses.values():
            self.dim(access.offset)
            for stride in access.strides.values():
                self.dim(stride)
            for _, stride, extent in access.gathers:
                self.dim(stride)
                self.dim(extent)
        for expr in self.plan.order:
            if isinstance(expr, Extent):
                self.dim(expr.dim)

    def _hoist(self) -> None:
        """Compute what the loops entered so far determine, before entering another."""
        bound = set(self.position)
        vector_users = {c for e in self.plan.order if self._varies_in_vector(e) for c in e.children}
        vector_users |= {s.value for s in self.plan.kernel.stores}
        vector_users |= {e.value for e in self.plan.order if isinstance(e, Reduce)}
        ready: set[Expr] = set(self.scalars)
        for expr in self.plan.order:
            if isinstance(expr, Const) or (
                not isinstance(expr, Reduce)
                and self.loops[expr] <= bound
                and not self._varies_in_vector(expr)
                and all(c in ready for c in expr.children)
            ):
                ready.add(expr)
            if expr in ready and not isinstance(expr, Const):
                self.scalar(expr)
                if self.plan.vector and expr in vector_users:
                    self._splat(expr)
        for node, access in self.plan.accesses.items():
            used = {x for x, stride in access.strides.items() if stride != 0}
            if used - {self.plan.vector} <= bound:
                self._base(node)

    # ---- the loops outside
    def emit(self, low: Word, high: Word) -> None:
        """All points whose first outer loop is in [low, high)."""
        self._prepare_dims()
        with self.scope():
            self._outer([x for x in self.plan.outer if x is not self.plan.vector], low, high)

    def _outer(self, loops: list[Loop], low: Word, high: Word) -> None:
        plan = self.plan
        self._hoist()
        if not loops:
            if plan.vector is None or plan.rows:
                self._row()
            else:
                first = plan.outer[0] is plan.vector
                start = low if first else 0
                stop = high if first else self.dim(plan.vector.extent)
                self.vectors(start, stop, lambda columns: self._strip(columns))
            return
        loop, rest = loops[0], loops[1:]
        first = loop is plan.outer[0]
        start, stop = (low, high) if first else (0, self.dim(loop.extent))
        with self.fn.loop(start, stop) as i, self.scope():
            self.position[loop] = i
            self._outer(rest, low, high)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside a loop body is forgotten after it."""
        saved = (
            dict(self.scalars), dict(self.splats), dict(self.bases), dict(self.position),
        )  # fmt: skip
        yield
        self.scalars, self.splats, self.bases, self.position = saved

    def vectors(self, start: Word, stop: Word, body: Callable[[list[Column]], None]) -> None:
        """Run `body` over groups of columns: UNROLL vectors at a time, then masked ones."""
        step = self.lanes * UNROLL
        if isinstance(start, int) and isinstance(stop, int):
            middle: Word = start + (stop - start) // step * step
        else:
            span = self.fn.sub(stop, start)
            middle = self.fn.add(
                start, self.fn.sub(span, self.fn.value(f"srem i64 {span}, {step}"))
            )
        if not (isinstance(middle, int) and middle == start):
            with self.fn.loop(start, middle, step) as i, self.scope():
                body([Column(self.fn.add(i, n * self.lanes), None) for n in range(UNROLL)])
        if isinstance(middle, int) and isinstance(stop, int):
            rest = stop - middle
            columns = [
                Column(middle + n, self.mask(min(rest - n, self.lanes)))
                for n in range(0, rest, self.lanes)
            ]
            if columns:
                with self.scope():
                    body(columns)
        else:
            with self.fn.loop(middle, stop, self.lanes) as i, self.scope():
                body([Column(i, self.mask(self.fn.sub(stop, i)))])

    def mask(self, count: Word) -> str | None:
        """The first `count` lanes; None for all of them."""
        if isinstance(count, int):
            if count >= self.lanes:
                return None
            bits = ", ".join(f"i1 {int(n < count)}" for n in range(self.lanes))
            return f"<{bits}>"
        fn, kind = self.fn, f"<{self.lanes} x i32>"
        limit = fn.call("i64 @llvm.smin.i64(i64, i64)", f"i64 {count}, i64 {self.lanes}")
        narrow = fn.value(f"trunc i64 {limit} to i32")
        lanes = ", ".join(f"i32 {n}" for n in range(self.lanes))
        return fn.value(f"icmp ult {kind} <{lanes}>, {self.vector_ops.splat(narrow, dtypes.int32)}")

    # ---- strips: the vector loop is kept
    def _strip(self, columns: list[Column]) -> None:
        if not self.plan.inner:
            interleave(
                self.fn, [lambda c=c: self._store_columns(c, self.stores()) for c in columns]
            )
            return
        for number in self.passes:
            reduces = self._reduces(number)
            if reduces or self._stores_of(number):
                self._strip_pass(columns, number, reduces)
        rows = [s for s in self.plan.kernel.stores if not self._varies_inside(s)]
        for column in columns:
            self._store_columns(column, rows)

    def _strip_pass(self, columns: list[Column], number: int, reduces: list[Reduce]) -> None:
        """One walk over the reduced loops; stores of this depth happen in the same walk."""
        sets = [Accumulators(self.vector_ops, reduces) for _ in columns]
        initial = [pair for s in sets for pair in s.initial()]
        stores = self._stores_of(number)

        interleave(self.fn, [lambda c=c: self._prepare_column(c) for c in columns])

        def body(carried: list[str]) -> list[str]:
            self._hoist()
            width = len(carried) // len(columns)
            results: list[list[str]] = [[] for _ in columns]
            saved = [dict(c.values) for c in columns]

            def one(n: int) -> None:
                mine = carried[n * width : (n + 1) * width]
                columns[n].values = dict(saved[n])
                values = [self.vector(r.value, columns[n]) for r in reduces]
                places = [self._place(r) for r in reduces]
                results[n] = sets[n].step(mine, values, places, None)
                self._store_columns(columns[n], stores)

            interleave(self.fn, [lambda n=n: one(n) for n in range(len(columns))])
            for column, values in zip(columns, saved, strict=True):
                column.values = values
            return [v for r in results for v in r]

        final = self._inner_loops(self.plan.inner, initial, body)
        width = len(final) // len(columns)
        for n, column in enumerate(columns):
            results = sets[n].results(final[n * width : (n + 1) * width])
            column.values.update(zip(reduces, results, strict=True))

    def _prepare_column(self, column: Column) -> None:
        """Compute the values of a strip that do not vary with the reduced loops."""
        inner, ready = set(self.plan.inner), set(column.values)
        for expr in self.plan.order:
            if not self._varies_in_vector(expr):
                ready.add(expr)
            elif not isinstance(expr, Reduce) and not self.loops[expr] & inner:
                if all(c in ready for c in expr.children):
                    self.vector(expr, column)
                    ready.add(expr)

    def _place(self, reduce: Reduce) -> str | None:
        """The position along the reduced axis in every lane, for argmax and argmin."""
        if not reduce.op.startswith("arg"):
            return None
        loop = self.plan.loop_of[reduce.over[0]]
        if loop is self.plan.vector:
            return None
        return self.vector_ops.splat(str(self.position[loop]), dtypes.int64)

    def _inner_loops(
        self, loops: list[Loop], initial: list[tuple[str, str]],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:  # fmt: skip
        """Nested loops that carry values; `body` maps the carried values to the next ones."""
        if not loops:
            with self.scope():
                return body([value for _, value in initial])
        loop, rest = loops[0], loops[1:]

        def step(i: Word, carried: list[str]) -> list[str]:
            self.position[loop] = i
            kinds = [kind for kind, _ in initial]
            return self._inner_loops(rest, list(zip(kinds, carried, strict=True)), body)

        return self.carry(0, self.dim(loop.extent), 1, initial, step)

    def carry(
        self, start: Word, stop: Word, step: Word, initial: list[tuple[str, str]],
        body: Callable[[Word, list[str]], list[str]],
    ) -> list[str]:  # fmt: skip
        """A loop that carries values through phis; returns the final ones."""
        fn, k = self.fn, self.fn.unique()
        fn.branch(f"pre{k}")
        fn.label(f"pre{k}")
        fn.branch(f"head{k}")
        fn.label(f"head{k}")
        names = [f"%c{k}_{n}" for n in range(len(initial))]
        hole = len(fn.lines)
        fn.emit(f"%more{k} = icmp slt i64 %i{k}, {stop}")
        fn.emit(f"br i1 %more{k}, label %body{k}, label %exit{k}")
        fn.label(f"body{k}")
        with self.scope():
            updated = body(f"%i{k}", names)
        fn.branch(f"latch{k}")
        fn.label(f"latch{k}")
        fn.emit(f"%next{k} = add nsw i64 %i{k}, {step}")
        fn.branch(f"head{k}")
        fn.label(f"exit{k}")
        phis = [f"  %i{k} = phi i64 [{start}, %pre{k}], [%next{k}, %latch{k}]"]
        phis += [
            f"  {name} = phi {kind} [{value}, %pre{k}], [{new}, %latch{k}]"
            for name, (kind, value), new in zip(names, initial, updated, strict=True)
        ]
        fn.lines[hole:hole] = phis
        return names

    # ---- rows: the vector loop is reduced
    def _row(self) -> None:
        plan = self.plan
        if plan.vector is None:
            self._store_scalars(list(plan.kernel.stores))
            return
        self._choose_kept()
        for number in self.passes:
            reduces, stores = self._reduces(number), self._stores_of(number)
            if reduces or stores:
                self._row_pass(number, reduces, stores)
        self._store_scalars([s for s in plan.kernel.stores if not self._varies_inside(s)])
        self.kept = {}

    def _row_pass(self, number: int, reduces: list[Reduce], stores: list[Store]) -> None:
        plan, fn = self.plan, self.fn
        assert plan.vector is not None
        sets = [Accumulators(self.vector_ops, reduces) for _ in range(UNROLL)]
        initial = [pair for s in sets for pair in s.initial()]
        width = len(initial) // UNROLL
        stop = self.dim(plan.vector.extent)
        self.number = number
        self._hoist()

        def group(columns: list[Column], carried: list[str]) -> list[str]:
            updated = list(carried)

            def one(n: int) -> None:
                column = columns[n]
                self._place_column(column, reduces)
                values = [self.vector(r.value, column) for r in reduces]
                places = [column.places.get(r) or self._place(r) for r in reduces]
                mine = carried[n * width : (n + 1) * width]
                new = sets[n].step(mine, values, places, column.mask)
                updated[n * width : (n + 1) * width] = new
                for expr in [k for k in self.kept if self._keeps_in(k, number)]:
                    self._store_kept(expr, column)
                self._store_columns(column, stores)

            interleave(fn, [lambda n=n: one(n) for n in range(len(columns))])
            return updated

        def inside(carried: list[str]) -> list[str]:
            self._hoist()
            kinds = [kind for kind, _ in initial]
            step = self.lanes * UNROLL
            if isinstance(stop, int):
                middle: Word = stop // step * step
            else:
                middle = fn.mul(self.fn.value(f"udiv i64 {stop}, {step}"), step)
            if middle != 0:
                carried = self.carry(
                    0, middle, step, list(zip(kinds, carried, strict=True)),
                    lambda i, c: group(
                        [Column(fn.add(i, n * self.lanes), None) for n in range(UNROLL)], c
                    ),
                )  # fmt: skip
            if isinstance(stop, int) and isinstance(middle, int):
                columns = [
                    Column(n, self.mask(min(stop - n, self.lanes)))
                    for n in range(middle, stop, self.lanes)
                ]
                if columns:
                    with self.scope():
                        carried = group(columns, carried)
                return carried
            return self.carry(
                middle, stop, self.lanes, list(zip(kinds, carried, strict=True)),
                lambda i, c: group([Column(i, self.mask(fn.sub(stop, i)))], c),
            )  # fmt: skip

        final = self._inner_loops(plan.inner[:-1], initial, inside)
        for n, reduce in enumerate(reduces):
            parts = [sets[u].slot(final[u * width : (u + 1) * width], n) for u in range(UNROLL)]
            self.scalars[reduce] = sets[0].fold(n, parts)

    def _place_column(self, column: Column, reduces: list[Reduce]) -> None:
        for reduce in reduces:
            if reduce.op.startswith("arg"):
                loop = self.plan.loop_of[reduce.over[0]]
                if loop is self.plan.vector:
                    column.places[reduce] = self._iota(column)

    def _iota(self, column: Column) -> str:
        """The positions of a column's lanes as int64."""
        lanes = "<" + ", ".join(f"i64 {n}" for n in range(self.lanes)) + ">"
        if column.start == 0:
            return lanes
        start = self.vector_ops.splat(str(column.start), dtypes.int64)
        return self.vector_ops.binary("add", start, lanes, dtypes.int64)

    # ---- row buffers
    def _choose_kept(self) -> None:
        """Costly values that several passes need are kept on the stack, if the row is short."""
        plan = self.plan
        extent = plan.vector.extent if plan.vector and len(plan.inner) == 1 else None
        self.kept = {}
        if not isinstance(extent, int) or len(self.passes) < 2:
            return
        needed: dict[Expr, set[int]] = {e: set() for e in plan.order}
        for expr in plan.order:
            if isinstance(expr, Reduce):
                needed[expr.value].add(plan.depth[expr.value])
        for store in plan.kernel.stores:
            if self._varies_inside(store):
                needed[store.value].add(plan.depth[store.value])
        room = _ROW_BUFFER_BYTES
        for expr in reversed(plan.order):
            if not self._varies_in_vector(expr) or isinstance(expr, Reduce):
                continue
            size = (extent + self.lanes - 1) // self.lanes * self.lanes * max(expr.dtype.size, 4)
            costly = isinstance(expr, Apply) and FUNCTIONS[expr.fn].costly
            if costly and len(needed[expr]) > 1 and size <= room and not expr.dtype.is_bool:
                room -= size
                kind = register_type(expr.dtype)
                count = (extent + self.lanes - 1) // self.lanes * self.lanes
                self.kept[expr] = self.fn.alloca(f"[{count} x {kind}], align 64")
                self.first_pass[expr] = min(needed[expr])
                needed[expr] = {min(needed[expr])}
            for child in expr.children:
                if self._varies_in_vector(child) and not isinstance(child, Reduce):
                    needed[child] |= needed[expr]

    def _keeps_in(self, expr: Expr, number: int) -> bool:
        return self.first_pass[expr] == number

    def _kept_place(self, expr: Expr, column: Column) -> str:
        return self.fn.offset(self.kept[expr], column.start, register_type(expr.dtype))

    def _store_kept(self, expr: Expr, column: Column) -> None:
        value = self.vector(expr, column)
        kind = self.vector_ops.type(expr.dtype)
        self.fn.emit(f"store {kind} {value}, ptr {self._kept_place(expr, column)}, align 64")

    # ---- which values and stores belong where
    def stores(self) -> list[Store]:
        return list(self.plan.kernel.stores)

    def _varies_inside(self, store: Store) -> bool:
        return bool(self.plan.loops(store.axes) & set(self.plan.inner))

    def _varies_in_vector(self, expr: Expr) -> bool:
        return self.plan.vector in self.loops[expr]

    def _reduces(self, number: int) -> list[Reduce]:
        return [
            e for e in self.plan.order
            if isinstance(e, Reduce) and self.plan.depth[e.value] == number
        ]  # fmt: skip

    def _stores_of(self, number: int) -> list[Store]:
        """Element stores of a pass. In place, a row is overwritten only in the last pass."""
        loaded = {e.buffer for e in self.plan.order if isinstance(e, Load)}
        last = self.passes[-1]
        return [
            s for s in self.plan.kernel.stores
            if self._varies_inside(s)
            and (last if s.buffer in loaded else self.plan.depth[s.value]) == number
        ]  # fmt: skip

    # ---- values
    def scalar(self, expr: Expr) -> str:
        """The value of an expression that does not vary along the vector loop."""
        if expr not in self.scalars:
            self.scalars[expr] = self._scalar(expr)
        return self.scalars[expr]

    def _scalar(self, expr: Expr) -> str:
        ops = self.scalar_ops
        match expr:
            case Const():
                return ops.const(expr.value, expr.dtype)
            case Extent():
                return ops.cast(str(self.dim(expr.dim)), dtypes.int64, expr.dtype)
            case Iota():
                loop = self.plan.loop_of.get(expr.axis)
                value = "0" if loop is None else str(self.position[loop])
                return ops.cast(value, dtypes.int64, expr.dtype)
            case Apply():
                args = [self.scalar(a) for a in expr.args]
                return ops.apply(expr.fn, args, [a.dtype for a in expr.args], expr.dtype)
            case Load():
                return self._load_scalar(expr)
        raise UnsupportedKernel(f"a value is used before it is reduced: {expr}")

    def vector(self, expr: Expr, column: Column) -> str:
        """The value of an expression in every lane of a column."""
        if expr in column.values:
            return column.values[expr]
        if not self._varies_in_vector(expr):
            return self._splat(expr)
        if expr in self.kept and self.number > self.first_pass[expr]:
            kind = self.vector_ops.type(expr.dtype)
            place = self._kept_place(expr, column)
            value = self.fn.value(f"load {kind}, ptr {place}, align 64")
        else:
            value = self._vector(expr, column)
        column.values[expr] = value
        return value

    def _vector(self, expr: Expr, column: Column) -> str:
        ops = self.vector_ops
        match expr:
            case Iota():
                return ops.cast(self._iota(column), dtypes.int64, expr.dtype)
            case Apply():
                args = [self.vector(a, column) for a in expr.args]
                return ops.apply(expr.fn, args, [a.dtype for a in expr.args], expr.dtype)
            case Load():
                return self._load_vector(expr, column)
        raise UnsupportedKernel(f"no vector form of {expr}")

    def _splat(self, expr: Expr) -> str:
        if isinstance(expr, Const):
            return self.vector_ops.const(expr.value, expr.dtype)
        if expr not in self.splats:
            self.splats[expr] = self.vector_ops.splat(self.scalar(expr), expr.dtype)
        return self.splats[expr]

    # ---- memory
    def _base(self, node: Load | Store) -> str:
        """The address of a node's element at position 0 of the vector loop, gathers left out."""
        if node not in self.bases:
            access = self.plan.accesses[node]
            place: Word = self.dim(access.offset)
            for loop, stride in access.strides.items():
                if loop is not self.plan.vector and stride != 0:
                    place = self.fn.add(place, self.fn.mul(self.position[loop], self.dim(stride)))
            kind = storage_type(node.buffer.dtype)
            self.bases[node] = self.fn.offset(self.pointers[node.buffer], place, kind)
        return self.bases[node]

    def _clamped(self, ops: Operations, index: str, extent: Dim) -> str:
        """A gather index kept inside its dimension."""
        last = self.fn.sub(self.dim(extent), 1)
        limit = ops.splat(str(last), dtypes.int64)
        if ops.count and isinstance(last, int):
            limit = ops.const(last, dtypes.int64)
        low = ops.intrinsic("smin", [index, limit], dtypes.int64)
        return ops.intrinsic("smax", [low, ops.const(0, dtypes.int64)], dtypes.int64)

    def _load_scalar(self, load: Load) -> str:
        fn, ops = self.fn, self.scalar_ops
        access = self.plan.accesses[load]
        pointer = self._base(load)
        kind = storage_type(load.dtype)
        for index, stride, extent in access.gathers:
            place = ops.cast(self.scalar(index), index.dtype, dtypes.int64)
            place = self._clamped(ops, place, extent)
            pointer = fn.offset(pointer, fn.mul(place, self.dim(stride)), kind)
        if load.valid is None or load.fill is None:
            raw = fn.value(f"load {kind}, ptr {pointer}, align {load.dtype.size}")
            return ops.from_storage(raw, load.dtype)
        # An address that is always readable stands in where the mask is off.
        dummy = fn.alloca(f"{kind}, align 8")
        fill = ops.to_storage(ops.const(load.fill.value, load.dtype), load.dtype)
        fn.emit(f"store {kind} {fill}, ptr {dummy}, align {load.dtype.size}")
        chosen = fn.value(f"select i1 {self.scalar(load.valid)}, ptr {pointer}, ptr {dummy}")
        raw = fn.value(f"load {kind}, ptr {chosen}, align {load.dtype.size}")
        return ops.from_storage(raw, load.dtype)

    def _load_vector(self, load: Load, column: Column) -> str:
        fn, ops = self.fn, self.vector_ops
        access = self.plan.accesses[load]
        kind = storage_type(load.dtype)
        vector = f"<{self.lanes} x {kind}>"
        mask = column.mask
        fill = f"{vector} zeroinitializer"
        if load.valid is not None and load.fill is not None:
            valid = self.vector(load.valid, column)
            mask = valid if mask is None else ops.binary("and", mask, valid, dtypes.bool)
            fill = f"{vector} {ops.to_storage(ops.const(load.fill.value, load.dtype), load.dtype)}"
        pointer, offsets = self._vector_place(load, access, column)
        if offsets is None:
            raw = self._contiguous(pointer, kind, mask, fill, load.dtype.size)
        else:
            raw = self._gather(pointer, offsets, kind, mask, fill, load.dtype.size)
        return ops.from_storage(raw, load.dtype)

    def _vector_place(
        self, node: Load | Store, access: Access, column: Column
    ) -> tuple[str, str | None]:
        """The address of a column, and the lanes' element offsets where not contiguous."""
        fn, ops = self.fn, self.vector_ops
        kind = storage_type(node.buffer.dtype)
        pointer = self._base(node)
        stride = access.strides[self.plan.vector] if self.plan.vector else 0
        offsets: str | None = None
        if stride == 1 and not access.gathers:
            return fn.offset(pointer, column.start, kind), None
        if stride != 0:
            step = self.dim(stride)
            if step == 1:
                offsets = self._iota(column)
            else:
                splat = ops.splat(str(step), dtypes.int64)
                offsets = ops.binary("mul", self._iota(column), splat, dtypes.int64)
        for index, step_dim, extent in access.gathers:
            place = ops.cast(self.vector(index, column), index.dtype, dtypes.int64)
            place = self._clamped(ops, place, extent)
            step = self.dim(step_dim)
            if step != 1:
                splat = ops.splat(str(step), dtypes.int64)
                place = ops.binary("mul", place, splat, dtypes.int64)
            offsets = place if offsets is None else ops.binary("add", offsets, place, dtypes.int64)
        if offsets is None:
            offsets = ops.const(0, dtypes.int64)  # one element in every lane
        return pointer, offsets

    def _contiguous(self, pointer: str, kind: str, mask: str | None, fill: str, align: int) -> str:
        fn, vector = self.fn, f"<{self.lanes} x {kind}>"
        if mask is None:
            return fn.value(f"load {vector}, ptr {pointer}, align {align}")
        masks = f"<{self.lanes} x i1>"
        name = f"@llvm.masked.load.v{self.lanes}{_suffix(kind)}.p0"
        return fn.call(
            f"{vector} {name}(ptr, i32, {masks}, {vector})",
            f"ptr {pointer}, i32 {align}, {masks} {mask}, {fill}",
        )

    def _gather(
        self, pointer: str, offsets: str, kind: str, mask: str | None, fill: str, align: int
    ) -> str:
        fn, n = self.fn, self.lanes
        vector, masks, pointers = f"<{n} x {kind}>", f"<{n} x i1>", f"<{n} x ptr>"
        places = fn.value(f"getelementptr {kind}, ptr {pointer}, <{n} x i64> {offsets}")
        name = f"@llvm.masked.gather.v{n}{_suffix(kind)}.v{n}p0"
        return fn.call(
            f"{vector} {name}({pointers}, i32, {masks}, {vector})",
            f"{pointers} {places}, i32 {align}, {masks} {mask or 'splat (i1 true)'}, {fill}",
        )

    def _store_columns(self, column: Column, stores: list[Store]) -> None:
        values = [self.vector(s.value, column) for s in stores]
        for store, value in zip(stores, values, strict=True):
            self._store_vector(store, value, column)

    def _store_vector(self, store: Store, value: str, column: Column) -> None:
        fn, n = self.fn, self.lanes
        dtype = store.buffer.dtype
        kind = storage_type(dtype)
        raw = self.vector_ops.to_storage(value, dtype)
        pointer, offsets = self._vector_place(store, self.plan.accesses[store], column)
        vector, masks = f"<{n} x {kind}>", f"<{n} x i1>"
        mask = column.mask
        if offsets is not None:
            places = fn.value(f"getelementptr {kind}, ptr {pointer}, <{n} x i64> {offsets}")
            declaration = (
                f"void @llvm.masked.scatter.v{n}{_suffix(kind)}.v{n}p0"
                f"({vector}, <{n} x ptr>, i32, {masks})"
            )
            where = f"<{n} x ptr> {places}, i32 {dtype.size}, {masks} {mask or 'splat (i1 true)'}"
        elif mask is None:
            fn.emit(f"store {vector} {raw}, ptr {pointer}, align {dtype.size}")
            return
        else:
            declaration = (
                f"void @llvm.masked.store.v{n}{_suffix(kind)}.p0({vector}, ptr, i32, {masks})"
            )
            where = f"ptr {pointer}, i32 {dtype.size}, {masks} {mask}"
        fn.module.declare(declaration)
        fn.emit(f"call {declaration.split('(')[0]}({vector} {raw}, {where})")

    def _store_scalars(self, stores: list[Store]) -> None:
        values = [self.scalar(s.value) for s in stores]
        for store, value in zip(stores, values, strict=True):
            dtype = store.buffer.dtype
            raw = self.scalar_ops.to_storage(value, dtype)
            kind = storage_type(dtype)
            self.fn.emit(f"store {kind} {raw}, ptr {self._base(store)}, align {dtype.size}")


def _suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64"}.get(kind, kind)


def buffer_pointers(function: Function, buffers: list[Buffer], table: str) -> dict[Buffer, str]:
    """Load every buffer's address from the pointer table."""
    return {b: function.load_word(table, n, "ptr") for n, b in enumerate(buffers)}
