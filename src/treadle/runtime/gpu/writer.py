"""The function of a stage of a kernel, in CUDA C.

The statements follow from where values vary. What belongs to a point is computed by all threads of
its team, which so hold the same values; a reduction is a loop that the threads of the team share
out, after which they combine what they have found. Elements that are stored are shared out in the
same way. A reduction inside of a loop that is shared out is a loop of one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import replace

from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Const,
    Expr,
    Extent,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    postorder,
)
from treadle.kernel.reference import neutral, scan_start
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.mapping import Mapping, is_turned, neighbours
from treadle.runtime.gpu.rows import kept_loads
from treadle.runtime.gpu.scalars import (
    applied,
    constant,
    dim_text,
    element_type,
    found_size,
    found_type,
    value_type,
)
from treadle.runtime.gpu.stages import Scratch, Stage
from treadle.runtime.schedule.facts import Unsupported


@record(frozen=True)
class Function:
    """A function in CUDA C, and the launch of its blocks.

    Attributes:
        taken: the buffers among its parameters.
    """

    text: str
    stage: Stage
    taken: tuple[Buffer, ...]


def kernel_head(name: str, threads: int) -> str:
    """The begin of a function that is launched with so many threads a block."""
    return f"TD_KERNEL __launch_bounds__({threads}) {name}"


COMBINING = {
    "sum": "td_sum", "prod": "td_prod", "max": "td_greatest", "min": "td_least",
    "any": "td_any", "all": "td_all", "argmax": "td_argmax", "argmin": "td_argmin",
}  # fmt: skip
Names = dict[Expr, str]


class Writer:
    """Writes the function of one stage of a kernel.

    Attributes:
        whole: the kernel whose parameters the function has; `kernel` has some of its stores.
        segments: how many a launch of a segmented kernel has at most.
        aliased: whether the memory of several buffers may be the same, or change while the function
            is called several times.
        shares: whether the launch has blocks of other functions, too: this one is called with the
            number of its block.
        results: the reductions that the stage finds; none where it stores what the kernel does.
        parts: how many blocks share the elements of a point.
        variables: the position along each axis whose loop is open.
        shared: the memory that the threads of a block share, by the type of its elements.
        states: what each scan has found so far.
        moved: vectors of elements that are moved at once, by their access.
        kept: the loads whose elements threads keep between passes.
        kept_names: the arrays in which they keep them.
        rooms: those of these loads that were kept by a pass before.
        turn: the number of the element, or vector, that a thread is at in a pass.
    """

    def __init__(
        self, kernel: Kernel, whole: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer],
        mapping: Mapping, scratch: Scratch, levels: Sequence[Sequence[Reduce]], number: int,
        segments: int = 0, shares: bool = False,
    ) -> None:  # fmt: skip
        self.aliased = False
        self.segments, self.shares = segments, shares or kernel.segmented
        self.kernel, self.whole, self.name, self.gpu = kernel, whole, name, gpu
        self.values = values
        self.mapping, self.scratch = mapping, scratch
        self.found = [r for level in levels[:number] for r in level]
        self.results = list(levels[number]) if number < len(levels) else []
        inside = any(s.axes & frozenset(mapping.inner) for s in kernel.stores)
        self.parts: Dim = mapping.parts if self.results or inside else 1
        self.lines: list[str] = []
        self.depth, self.count = 1, 0
        self.variables: dict[Axis, str] = {}
        self.pointers = {b: f"b{n}" for n, b in enumerate(kernel.buffers)}
        self.shared: dict[str, str] = {}
        self.bytes = 0
        self.states: dict[Scan, str] = {}
        self.moved: dict[Load | Store, str] = {}
        self.kept = kept_loads(kernel, mapping, gpu)
        self.kept_names: dict[Load, str] = {}
        self.rooms: set[Load] = set()
        self.turn = ""

    # -- the whole function ------------------------------------------------------------------

    def function(self) -> Function:
        mapping = self.mapping
        first = self._block()
        self._points()
        meets = mapping.team > 1 or mapping.turned is not None or mapping.owners is not None
        return self.finished(self.blocks(), mapping.threads, self.bytes, meets, first)

    def finished(
        self, blocks: Dim, threads: int, shared: int, meets: bool, first: Sequence[str] = ()
    ) -> Function:
        """The function of the statements that were written, after the `first` ones."""
        body, self.lines = self.lines, []
        for declared in self.shared.values():
            self.line(declared)
        lines = [*first, *self.lines, *body, "}"]
        name, taken = self.name, self.taken
        if self.shares:
            name = f"{name}_points"
            given = ", ".join([*self.parameters(taken), "const td_index own_block"])
            lines = [f"TD_DEVICE void {name}({given}) {{", *lines]
        else:
            parameters = self.parameters(self.whole.buffers)
            lines = [f"{kernel_head(name, threads)}({', '.join(parameters)}) {{", *lines]
        return Function("\n".join(lines), Stage(name, blocks, threads, shared, meets), taken)

    def segmented(self) -> Function:
        """The function of a segmented kernel, whose blocks find the segment that they are of."""
        points = self.function()
        stage = replace(points.stage, name=self.name)
        whole = f"{kernel_head(self.name, stage.threads)}{self._chosen_segment()}"
        return Function("\n".join([*self._segment(), points.text, whole]), stage, points.taken)

    @property
    def taken(self) -> tuple[Buffer, ...]:
        """The buffers that the function needs."""
        used = {*self.kernel.inputs, *self.kernel.outputs}
        return tuple(b for b in self.whole.buffers if b in used)

    @property
    def own_block(self) -> str:
        """The number of the block among those of the function."""
        return "own_block" if self.shares else "blockIdx.x"

    def parameters(self, buffers: Sequence[Buffer]) -> list[str]:
        """The parameters of a function that takes some buffers."""
        found = [self._parameter(b) for b in buffers]
        found += [f"td_index {s}" for s in self.whole.symbols]
        return [*found, "TD_BYTES scratch"] if self.scratch.memory.bytes != 0 else found

    def _block(self) -> list[str]:
        """Which points a block works for, and at which part of their elements."""
        if self.parts == 1:
            return [f"  const td_index block = {self.own_block};"]
        parts, own = dim_text(self.parts), self.own_block
        return [
            f"  const td_index parts = {parts};",
            f"  const td_index block = {own} / parts, part = {own} % parts;",
        ]

    def _segment(self) -> list[str]:
        """The structs of a segment and of all of them."""
        fields = [
            f"  alignas(8) {element_type(b.dtype)} {self.pointers[b]};"
            if b in self.values
            else f"  TD_FIELD({self._pointed(b)}) {self.pointers[b]};"
            for b in self.kernel.buffers
        ]
        fields += [f"  td_index {s};" for s in self.kernel.symbols]
        all_of_them = f"struct {self.name}_segments {{ {self.name}_segment of[{self.segments}]; }};"
        return [f"struct {self.name}_segment {{", *fields, "  td_index first;", "};", all_of_them]

    def _chosen_segment(self) -> str:
        """The rest of a function whose blocks find the segment that they are of."""
        fields = [*(self.pointers[b] for b in self.taken), *self.kernel.symbols]
        given = ", ".join(f"s.{f}" for f in fields)
        return f"""(const TD_PARAMETER {self.name}_segments segments, int count) {{
  int low = 0, high = count - 1;
  while (low < high) {{
    const int middle = (low + high + 1) / 2;
    if (segments.of[middle].first <= (td_index)blockIdx.x) low = middle;
    else high = middle - 1;
  }}
  const {self.name}_segment &s = segments.of[low];
  {self.name}_points({given}, (td_index)blockIdx.x - s.first);
}}"""

    def blocks(self) -> Dim:
        """Points of one block after the other; a thread has several of them in vectors."""
        mapping, side = self.mapping, self.gpu.warp
        if mapping.turned:
            square = (mapping.grid[-1], mapping.turned)
            apart = product(a.extent for a in mapping.grid if a not in square)
            return apart * product((a.extent + side - 1) // side for a in square)
        each = mapping.points * mapping.vector
        count = mapping.count
        return (count + each - 1) // each * self.parts

    def _parameter(self, buffer: Buffer) -> str:
        """Buffers that are loaded and stored are no `restrict` pointers."""
        kernel, name = self.whole, self.pointers[buffer]
        if buffer in self.values:
            return f"{element_type(buffer.dtype)} {name}"
        both = self.aliased or (buffer in kernel.outputs and buffer in kernel.inputs)
        return f"{'TD_SAME_POINTER' if both else 'TD_POINTER'}({self._pointed(buffer)}) {name}"

    def _pointed(self, buffer: Buffer) -> str:
        """The type that the pointer of a buffer points to."""
        kind = element_type(buffer.dtype)
        return kind if buffer in self.whole.outputs else f"const {kind}"

    def _points(self) -> None:
        """The statements for the points of a block."""
        mapping, team = self.mapping, self.mapping.team
        self.line(f"const td_index count = {dim_text(mapping.count)};")
        if mapping.turned:
            self._squares(mapping.turned)
            return
        if team == 1:
            self._own_points()
            return
        slot, lane = "threadIdx.x / {}", "threadIdx.x % {}"
        if mapping.across:
            self.line(f"const int lane = {slot.format(mapping.points)};")
            slot = lane.format(mapping.points)
        else:
            self.line(f"const int lane = {lane.format(team)};")
            slot = slot.format(team)
        # All threads meet at barriers: those without a point of their own do another point again.
        self.line(f"const td_index own = block * {mapping.points} + {slot};")
        self.line("const bool active = TD_ACTIVE(own < count);")
        self.line("const td_index point = active ? own : 0;")
        self._positions(mapping.grid, "point")
        self._team()

    def _team(self) -> None:
        """What the threads of a team do for a point."""
        known: Names = {}
        self._found_before(known)
        if self.results:
            self.evaluate(self.results, frozenset(self.mapping.grid), known, shared_out=False)
        else:
            self._stores(known)

    def _squares(self, turned: Axis) -> None:
        """Each block has a square of positions along two axes. Turned loads go through shared
        memory: a warp loads neighbours along one axis, and has those along the other one then."""
        grid, side = self.mapping.grid, self.gpu.warp
        last, others = grid[-1], [a for a in grid[:-1] if a is not turned]
        rows, squares = self.mapping.threads // side, "block"
        self.line(f"const int lane = threadIdx.x % {side}, row = threadIdx.x / {side};")
        for name, axis in (("last", last), ("turned", turned)):
            count = dim_text((axis.extent + side - 1) // side)
            self.line(f"const td_index {name} = {squares} % {count} * {side};")
            squares = f"({squares} / {count})"
        self._positions(others, squares)
        loads = [e for e in self.kernel.exprs if isinstance(e, Load)]
        loads = [e for e in loads if is_turned(e, turned, self.kernel)]
        # Neighbours along both axes lie in different banks.
        pitches = {e: side + max(1, self.gpu.bank // int(e.dtype.size)) for e in loads}
        tiles = {load: self._shared_tile(load, side * pitches[load]) for load in loads}

        def turn(across: Axis, along: Axis, body: Callable[[], None]) -> None:
            first = {last: "last", turned: "turned"}
            self.line("#pragma unroll")
            self.open(f"for (int step = 0; step < {side}; step += {rows})")
            self.line(f"const td_index across = {first[across]} + row + step;")
            self.line(f"const td_index along = {first[along]} + lane;")
            sizes = dim_text(across.extent), dim_text(along.extent)
            self.open(f"if (across < {sizes[0]} && along < {sizes[1]})")
            self.variables |= {across: "across", along: "along"}
            body()
            self.close()
            self.close()

        def fill() -> None:
            known: Names = {}
            self.evaluate(loads, frozenset(grid), known, shared_out=False)
            for load, tile in tiles.items():
                value = f"td_narrow<{element_type(load.dtype)}>({known[load]})"
                self.line(f"td_poke({tile}, (row + step) * {pitches[load]} + lane, {value});")

        def use() -> None:
            known: Names = {}
            for load, tile in tiles.items():
                text = f"td_widen(td_peek({tile}, lane * {pitches[load]} + row + step))"
                self._name(load, text, known)
            self._stores(known)

        turn(last, turned, fill)
        self.line("__syncthreads();")
        turn(turned, last, use)

    def _shared_tile(self, load: Load, count: int) -> str:
        name, kind = self.fresh("tile"), element_type(load.dtype)
        self.shared[name] = f"TD_SHARED({kind}, {name}, {count}, {self.bytes});"
        self.bytes += -(-count * int(load.dtype.size) // self.gpu.load) * self.gpu.load
        return name

    def _own_points(self) -> None:
        """Each thread has its points for itself."""
        mapping, vector = self.mapping, self.mapping.vector
        first = f"block * {mapping.threads} + threadIdx.x"
        if vector == 1:
            self.line(f"const td_index point = {first};")
            self.line("if (point >= count) return;")
            self._positions(mapping.grid, "point")
            self._stores({})
            return
        last = mapping.grid[-1]
        self.line(f"const td_index first = ({first}) * {vector};")
        self.open(f"if (first + {vector} <= count)")
        self._positions(mapping.grid, "first", "first_")
        self._whole_vectors(last, vector)
        self.close()
        self.open("else for (td_index point = first; point < count; point++)")
        self._positions(mapping.grid, "point")
        self._stores({})
        self.close()

    def _whole_vectors(self, axis: Axis, vector: int) -> None:
        """Neighbouring points, whose elements are loaded and stored at once."""
        base = {a: f"first_{n}" for n, a in enumerate(self.mapping.grid)}
        self.variables = base
        loads = [e for e in self.kernel.exprs if isinstance(e, Load)]
        known: Names = {}
        self._vectors(
            axis, vector, loads, self.kernel.stores, known, lambda: self._stores(known)
        )

    def _vectors(
        self, axis: Axis, vector: int, loads: Sequence[Load], stores: Sequence[Store],
        known: Names, body: Callable[[], None],
    ) -> None:  # fmt: skip
        """What `body` writes, for neighbouring positions along an axis. Their elements are loaded
        before and stored after it, at once."""
        names: dict[Load | Store, str] = {}
        moved = [e for e in loads if neighbours(e, axis, vector)]
        places = [c for e in moved for c in e.children]
        self.evaluate(places, frozenset(self.variables) - {axis}, known, shared_out=True)
        for load in moved:
            names[load] = self.fresh("w")
            self._load_vector(load, vector, names[load], known)
        for store in stores:
            if neighbours(store, axis, vector):
                names[store] = self.fresh("w")
                self.line(f"{_vector_type(store, vector)} {names[store]};")
        self.line("#pragma unroll")
        self.open(f"for (int u = 0; u < {vector}; u++)")
        first = self.variables[axis]
        self.variables[axis] = f"({first} + u)"
        self.moved = names
        body()
        self.moved = {}
        self.variables[axis] = first
        self.close()
        condition = "if (active) " if self.mapping.team > 1 else ""
        for access, name in names.items():
            if isinstance(access, Store):
                kind = f"{element_type(access.buffer.dtype)}, {vector}"
                pointer, place = self.pointers[access.buffer], self._place(access, {})
                self.line(f"{condition}td_put_all<{kind}>({pointer}, {place}, {name});")

    def _load_vector(self, load: Load, vector: int, name: str, known: Names) -> None:
        kind = f"{element_type(load.dtype)}, {vector}"
        text = f"td_elements<{kind}>({self.pointers[load.buffer]}, {self._place(load, known)})"
        if self.turn and load in self.rooms:
            text = self._from_room(load, text)
        self.line(f"const td_vector<{kind}> {name} = {text};")
        if load in self.kept and load not in self.rooms:
            self._into_room(load, name)

    # -- statements --------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def fresh(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def _positions(self, axes: Sequence[Axis], flat: str, stem: str = "") -> None:
        """Variables with the positions along axes of a number in row-major order."""
        names = [f"{stem}{n}" if stem else self.fresh("i") for n in range(len(axes))]
        below: Dim = 1
        for axis, name in reversed(list(zip(axes, names, strict=True))):
            text = flat if below == 1 else f"{flat} / {dim_text(below)}"
            if axis is not axes[0]:
                text = f"({text}) % {dim_text(axis.extent)}"
            self.line(f"const td_index {name} = {text};")
            self.variables[axis] = name
            below = below * axis.extent

    # -- values ------------------------------------------------------------------------------

    def _stores(self, known: Names) -> None:
        """All values of a point, and their stores."""
        known = dict(known)
        stores = self.kernel.stores
        open_axes = frozenset(self.mapping.grid)
        self.evaluate(self.kernel.roots, open_axes, known, shared_out=False)
        groups: dict[tuple[Axis, ...], list[Store]] = {}
        for store in stores:
            inside = tuple(a for a in self.mapping.inner if a in store.axes)
            groups.setdefault(inside, []).append(store)
        for axes, together in groups.items():
            self._store_group(axes, together, dict(known))

    def _store_group(self, axes: tuple[Axis, ...], stores: list[Store], known: Names) -> None:
        """Stores along the same inner axes: in loops of every thread along those where order
        matters or whose positions have reductions, and shared out along the others."""
        roots = [e for s in stores for e in s.roots]
        alone = self.mapping.team == 1
        serial = {a for a in axes if alone or a in self.mapping.ordered}
        if not alone:
            pending = [e for e in postorder(roots) if isinstance(e, Reduce) and e not in known]
            serial |= {a for e in pending for a in e.axes if a in axes}
        outer = _scans_last([a for a in axes if a in serial], roots)
        inner = [a for a in axes if a not in serial]

        def body(names: Names) -> None:
            self._share(inner, stores, names)

        self._nested(outer, roots, frozenset(self.mapping.grid), known, False, body)

    def _nested(
        self, axes: Sequence[Axis], roots: Sequence[Expr], around: frozenset[Axis], known: Names,
        shared_out: bool, body: Callable[[Names], None],
    ) -> None:  # fmt: skip
        """Loops of one thread along axes, one inside of the other, around what `body` writes.
        Values are computed as far outside as they can be."""
        if not axes:
            body(known)
            return
        axis, *rest = axes
        inside = dict(known)
        self._open_loop(axis, roots)
        around = around | {axis}
        self.evaluate(roots, around, inside, shared_out)
        self._nested(rest, roots, around, inside, shared_out, body)
        self._close_loop(axis)

    def _share(self, axes: Sequence[Axis], stores: list[Store], known: Names) -> None:
        """Share out the elements along axes among the threads of the team, and store them."""
        roots = [e for s in stores for e in s.roots]
        team = self.mapping.team
        if not axes:
            if team > 1:
                if any(s.buffer in self.kernel.inputs for s in stores):
                    self.line("__syncthreads();")  # all have loaded what one thread changes
                first = " && part == 0" if self.parts != 1 else ""
                self.open(f"if (active && lane == 0{first})")
            self._store_all(stores, known)
            if team > 1:
                self.close()
            return

        def body(names: Names) -> None:
            self.open("if (active)")
            self._store_all(stores, names)
            self.close()

        self._shared_out(axes, roots, stores, frozenset(self.variables), known, body)

    def _shared_out(
        self, axes: Sequence[Axis], roots: Sequence[Expr], stores: Sequence[Store],
        around: frozenset[Axis], known: Names, body: Callable[[Names], None],
    ) -> None:  # fmt: skip
        """A loop whose turns the threads of the team share out, with the values of `roots`."""
        whole, around = tuple(axes) == self.mapping.inner, around | frozenset(axes)
        run = self.mapping.run if whole else 1
        below = postorder(roots, known.__contains__)
        loads = [e for e in below if isinstance(e, Load) and whole]
        kept = [e for e in loads if e in self.kept]
        for load in kept:
            self._make_room(load)

        values = dict(known)

        def element() -> None:
            inside = dict(values)
            self.evaluate(roots, around, inside, shared_out=True)
            body(inside)

        guarded = self._open_shared(axes, run, kept)
        if run > 1:
            self._vectors(axes[-1], run, loads, stores, values, element)
        else:
            element()
        for axis in axes:
            del self.variables[axis]
        self.close()
        if guarded:
            self.close()
        self.rooms.update(kept)
        self.turn = ""

    def _open_shared(self, axes: Sequence[Axis], run: int, kept: Sequence[Load]) -> bool:
        """Open a loop of the team; whether it has a condition inside."""
        variable, team = self.fresh("q"), self.mapping.team
        size = dim_text(product(a.extent for a in axes))
        first, step = "lane", f"{team}"
        if self.parts != 1:
            first, step = f"(part * {team} + lane)", f"parts * {team}"
        if run > 1:
            first, step = f"{first} * {run}", f"{step} * {run}"
        unrolled = [self.kept[e].turns for e in kept if self.kept[e].registers]
        if unrolled:
            # Only constants are places in registers.
            turn = self.turn = self.fresh("t")
            self.line("#pragma unroll")
            self.open(f"for (int {turn} = 0; {turn} < {unrolled[0]}; {turn}++)")
            self.line(f"const td_index {variable} = {first} + {turn} * {step};")
            self.open(f"if ({variable} < {size})")
        else:
            begin, turned = f"td_index {variable} = {first}", f"{variable} += {step}"
            if kept:
                turn = self.turn = self.fresh("t")
                begin, turned = f"{begin}, {turn} = 0", f"{turned}, {turn}++"
            self.open(f"for ({begin}; {variable} < {size}; {turned})")
        self._positions(axes, variable)
        return bool(unrolled)

    # -- elements that threads keep between passes --------------------------------------------

    def _make_room(self, load: Load) -> None:
        """Declare the memory that a load is kept in."""
        if load in self.kept_names:
            return
        kept, run = self.kept[load], self.mapping.run
        name = self.kept_names[load] = self.fresh("kept")
        kind = _vector_type(load, run)
        if kept.registers:
            self.line(f"{kind} {name}[{kept.turns}];")
            return
        count = kept.turns * self.mapping.threads
        self.shared[name] = (
            f"typedef {kind} {name}_type; TD_SHARED({name}_type, {name}, {count}, {self.bytes});"
        )
        self.bytes += count * int(load.dtype.size) * run

    def _into_room(self, load: Load, value: str) -> None:
        """Keep the element, or vector, that a thread is at."""
        kept, name = self.kept[load], self.kept_names[load]
        if kept.registers:
            self.line(f"{name}[{self.turn}] = {value};")
            return
        condition = "" if kept.whole else f"if ({self.turn} < {kept.turns}) "
        self.line(f"{condition}td_poke({name}, {self._shared_place()}, {value});")

    def _from_room(self, load: Load, otherwise: str) -> str:
        """The value, or vector, that was kept; or what is loaded again."""
        kept, name = self.kept[load], self.kept_names[load]
        room = f"td_peek({name}, {self._shared_place()})"
        if kept.registers:
            room = f"{name}[{self.turn}]"
        if self.mapping.run == 1:
            room = f"td_widen({room})"
        return room if kept.whole else f"({self.turn} < {kept.turns} ? {room} : {otherwise})"

    def _shared_place(self) -> str:
        return f"{self.turn} * {self.mapping.threads} + threadIdx.x"

    def _store_all(self, stores: Sequence[Store], known: Names) -> None:
        for store in stores:
            self.store(store, known)

    def store(self, store: Store, known: Names) -> None:
        """One element; by one point where the store varies less than the grid does."""
        conditions = [
            f"{self.variables[a]} == 0" for a in self.mapping.grid if a not in store.axes
        ]
        for index, size in zip(store.index, store.buffer.shape, strict=True):
            if isinstance(index, Expr):  # what lies outside is left out
                name = known[index]
                conditions.append(f"{name} >= 0 && {name} < {dim_text(size)}")
        kind, value = element_type(store.buffer.dtype), known[store.value]
        vector = self.moved.get(store)
        place = f"{self.pointers[store.buffer]}, {self._place(store, known)}"
        if store.combine != "set":
            old = f"TD_LOAD({place})"
            whole = store.buffer.dtype.is_floating and store.combine == "div"
            value = f"{old} / {value}" if whole else f"td_{store.combine}({old}, {value})"
        if conditions:
            self.open(f"if ({' && '.join(conditions)})")
        if vector:
            self.line(f"{vector}.at[u] = td_narrow<{kind}>({value});")
        else:
            self.line(f"TD_STORE({kind}, {place}, {value});")
        if conditions:
            self.close()

    # -- expressions -------------------------------------------------------------------------

    def evaluate(
        self, roots: Sequence[Expr], around: frozenset[Axis], known: Names, shared_out: bool
    ) -> None:
        """Name the values that vary along the open axes alone.

        shared_out: whether the threads of the team are at different positions.
        """
        waiting = [
            e for e in postorder(roots, known.__contains__) if e.axes <= around and e not in known
        ]
        while waiting:
            left: list[Expr] = []
            reductions: dict[tuple[Axis, ...], list[Reduce]] = {}
            blocked: set[Expr] = set()
            for expr in waiting:
                if expr in known:
                    continue
                if isinstance(expr, Reduce):
                    needs = self._pending(expr, known, around)
                    if not needs:
                        reductions.setdefault(expr.over, []).append(expr)
                    blocked.add(expr)
                    left.append(expr)
                elif any(c in blocked or c not in known for c in expr.children):
                    blocked.add(expr)
                    left.append(expr)
                elif isinstance(expr, Scan):
                    self._scan(expr, known)
                else:
                    self._name(expr, self._text(expr, known), known)
            for over, together in reductions.items():
                self._reduce(over, together, around, known, shared_out)
            if not reductions:
                return
            waiting = [e for e in left if e not in known]

    def _pending(self, reduce: Reduce, known: Names, around: frozenset[Axis]) -> list[Expr]:
        """Reductions that do not vary along the reduced axes, and must come before."""
        below = postorder([reduce.value], known.__contains__)
        return [
            e for e in below if isinstance(e, Reduce) and e.axes <= around and e not in known
        ]

    def _name(self, expr: Expr, text: str, known: Names) -> None:
        if isinstance(expr, Const):
            known[expr] = text
            return
        name = known[expr] = self.fresh()
        self.line(f"const {value_type(expr.dtype)} {name} = {text};")
        loaded = isinstance(expr, Load) and self.turn and expr not in self.moved
        if isinstance(expr, Load) and loaded and expr in self.kept and expr not in self.rooms:
            self._into_room(expr, f"td_narrow<{element_type(expr.dtype)}>({name})")

    def _text(self, expr: Expr, known: Names) -> str:
        match expr:
            case Const():
                return constant(expr.value, expr.dtype)
            case Extent():
                return f"({value_type(expr.dtype)}){dim_text(expr.dim)}"
            case Iota():
                return f"({value_type(expr.dtype)}){self.variables[expr.axis]}"
            case Load():
                return self._load(expr, known)
            case Apply():
                return applied(expr, [known[a] for a in expr.args])
        raise Unsupported(f"{type(expr).__name__} has no form for a GPU")

    def _load(self, load: Load, known: Names) -> str:
        vector = self.moved.get(load)
        if vector:
            return f"td_widen({vector}.at[u])"
        pointer = self.pointers[load.buffer]
        if load.buffer in self.values:
            return f"td_widen({pointer})"
        text = f"TD_LOAD({pointer}, {self._place(load, known)})"
        if load.valid is not None and load.fill is not None:
            fill = constant(load.fill.value, load.fill.dtype)
            text = f"({known[load.valid]} ? {text} : {fill})"
        return self._from_room(load, text) if self.turn and load in self.rooms else text

    def _place(self, access: Load | Store, known: Names) -> str:
        """The position of an element in its buffer, in row-major order."""
        guarded = isinstance(access, Load) and access.valid is not None
        text = ""
        for index, size in zip(access.index, access.buffer.shape, strict=True):
            if isinstance(index, Affine):
                place = self._affine(index)
            else:
                place = f"(td_index){known[index]}"
            if isinstance(access, Load) and (isinstance(index, Expr) or guarded):
                place = f"td_min<td_index>(td_max<td_index>({place}, 0), {dim_text(size)} - 1)"
            text = f"({text}) * {dim_text(size)} + {place}" if text else place
        return text or "0"

    def _affine(self, index: Affine) -> str:
        terms = [
            self.variables[a] if c == 1 else f"{self.variables[a]} * {dim_text(c)}"
            for a, c in index.terms
        ]
        if index.offset != 0 or not terms:
            terms.append(dim_text(index.offset))
        return " + ".join(terms)

    # -- reductions --------------------------------------------------------------------------

    def _reduce(
        self, over: tuple[Axis, ...], reductions: Sequence[Reduce], around: frozenset[Axis],
        known: Names, shared_out: bool,
    ) -> None:  # fmt: skip
        """Reductions along the same axes, in one loop."""
        axes = [a for a in self.kernel.axes if a in over]
        values = [r.value for r in reductions]
        accumulators = {r: self._accumulator(r) for r in reductions}
        outside = {e: n for e, n in known.items() if not e.axes & frozenset(over)}
        nested = any(
            isinstance(e, Reduce) and e not in outside and e.axes & frozenset(over)
            for e in postorder(values, outside.__contains__)
        )
        own = shared_out or self.mapping.team == 1
        hidden = {a: self.variables.pop(a) for a in axes if a in self.variables}
        around = around - frozenset(over)
        if own or nested:
            self._serial_reduction(axes, accumulators, around, outside, shared_out)
        else:

            def body(names: Names) -> None:
                self._accumulate(accumulators, names)

            self._shared_out(axes, values, (), around, outside, body)
            for reduce, name in accumulators.items():
                self.line(f"{name} = {self._combined(reduce, name)};")
                if reduce in self.results:
                    self._put_partial(reduce, name)
        self.variables |= hidden
        self._know(accumulators, known)

    def _know(self, accumulators: MappingOf[Reduce, str], known: Names) -> None:
        for reduce, name in accumulators.items():
            known[reduce] = name
            if reduce.op in ("argmax", "argmin"):
                known[reduce] = f"({value_type(reduce.dtype)})td_place({name})"

    def _put_partial(self, reduce: Reduce, name: str) -> None:
        """Keep what the block has found in its part of the elements."""
        pointer = self._scratch_pointer(reduce)
        self.line(f"if (active && lane == 0) td_put({pointer}, {self._partial('part')}, {name});")

    def _found_before(self, known: Names) -> None:
        """What earlier stages have found in the parts, combined by every block that needs it, in
        the same order."""
        roots = list(self.results) or self.kernel.roots
        needed = postorder(roots, leaf=self.found.__contains__)
        found = [r for r in self.found if r in needed]
        if found:
            self._know(self._combined_parts(found, dim_text(self.mapping.parts)), known)

    def _combined_parts(self, reductions: Sequence[Reduce], parts: str) -> dict[Reduce, str]:
        """What an earlier stage has found in so many parts."""
        accumulators = {r: self._accumulator(r) for r in reductions}
        variable, team = self.fresh("q"), self.mapping.team
        self.open(f"for (td_index {variable} = lane; {variable} < {parts}; {variable} += {team})")
        for reduce, name in accumulators.items():
            other = f"td_element({self._scratch_pointer(reduce)}, {self._partial(variable)})"
            self.line(f"{name} = {COMBINING[reduce.op]}::of({name}, {other});")
        self.close()
        for reduce, name in accumulators.items():
            self.line(f"{name} = {self._combined(reduce, name)};")
        return accumulators

    def _partial(self, part: str) -> str:
        """The place of what was found in a part: neighbouring threads find neighbouring places."""
        if self.mapping.across:
            return f"{part} * count + point"
        return f"point * {dim_text(self.mapping.parts)} + {part}"

    def _scratch_pointer(self, reduce: Reduce) -> str:
        offset, size = map(dim_text, self.scratch.places[reduce])
        return f"td_scratch<{found_type(reduce)}>(scratch, {offset}, {size})"

    def _serial_reduction(
        self, axes: Sequence[Axis], accumulators: MappingOf[Reduce, str],
        around: frozenset[Axis], known: Names, shared_out: bool,
    ) -> None:  # fmt: skip
        values = [r.value for r in accumulators]

        def body(names: Names) -> None:
            self._accumulate(accumulators, names)

        self._nested(_scans_last(axes, values), values, around, known, shared_out, body)

    def _accumulator(self, reduce: Reduce) -> str:
        """A variable that begins with what changes nothing."""
        name = self.fresh("r")
        kind = found_type(reduce)
        if reduce.op in ("argmax", "argmin"):
            last = "9223372036854775807ll"
            value = constant(neutral(reduce.op[3:], reduce.value.dtype), reduce.value.dtype)
            self.line(f"{kind} {name} = td_find({value}, (td_index){last});")
            return name
        start = constant(neutral(reduce.op, reduce.dtype), reduce.dtype)
        self.line(f"{kind} {name} = {start};")
        return name

    def _accumulate(self, accumulators: MappingOf[Reduce, str], known: Names) -> None:
        for reduce, name in accumulators.items():
            value = known[reduce.value]
            if reduce.op in ("argmax", "argmin"):
                value = f"td_find({value}, (td_index){self.variables[reduce.over[0]]})"
            self.line(f"{name} = {COMBINING[reduce.op]}::of({name}, {value});")

    def _combined(self, reduce: Reduce, name: str) -> str:
        """What all threads of the team have found together."""
        team, points, warp = self.mapping.team, self.mapping.points, self.gpu.warp
        operation = COMBINING[reduce.op]
        if not self.mapping.across and team <= warp:
            return f"td_combine_in_warp<{operation}>({name}, {team})"
        kind = found_type(reduce)
        rooms = self.mapping.rooms(self.gpu)
        row = self._shared_row(kind, found_size(reduce), rooms)
        if self.mapping.across:
            return f"td_combine_across<{operation}>({name}, {team}, {points}, {row})"
        return f"td_combine_in_block<{operation}>({name}, {team}, {warp}, {row})"

    def _shared_row(self, kind: str, size: int, rooms: int) -> str:
        """A row of elements of a type, of `size` bytes each, that the block shares."""
        if kind not in self.shared:
            name = f"row{len(self.shared)}"
            self.shared[kind] = f"TD_SHARED({kind}, {name}, {rooms}, {self.bytes});"
            self.bytes += -(-size * rooms // self.gpu.load) * self.gpu.load
        return f"row{list(self.shared).index(kind)}"

    # -- loops of one thread, and scans along them ---------------------------------------------

    def _open_loop(self, axis: Axis, roots: Iterable[Expr]) -> None:
        """A loop of one thread, in the direction of the scans along it. What a scan has found so
        far is a variable that begins before the loop."""
        scans = [e for e in postorder(list(roots)) if isinstance(e, Scan) and e.axis is axis]
        for scan in scans:
            name = self.states[scan] = self.fresh("s")
            start = constant(scan_start(scan), scan.dtype)
            self.line(f"{value_type(scan.dtype)} {name} = {start};")
        if len({scan.reverse for scan in scans}) > 1:
            raise Unsupported("scans in both directions along one axis have no form for a GPU yet")
        name, size = self.fresh("i"), dim_text(axis.extent)
        if scans and scans[0].reverse:
            self.open(f"for (td_index {name} = {size} - 1; {name} >= 0; {name}--)")
        else:
            self.open(f"for (td_index {name} = 0; {name} < {size}; {name}++)")
        self.variables[axis] = name

    def _close_loop(self, axis: Axis) -> None:
        del self.variables[axis]
        self.close()

    def _scan(self, scan: Scan, known: Names) -> None:
        """The value of a scan at a position, which is reached once after the positions before."""
        if scan not in self.states:
            raise Unsupported(f"a scan inside of a loop along another axis: {scan}")
        state, kind = self.states[scan], value_type(scan.dtype)
        name = known[scan] = self.fresh()
        after = f"td_{scan.op}({state}, {known[scan.value]})"
        if scan.exclusive:
            self.line(f"const {kind} {name} = {state};")
            self.line(f"{state} = {after};")
        else:
            self.line(f"{state} = {after};")
            self.line(f"const {kind} {name} = {state};")


def _vector_type(access: Load | Store, vector: int) -> str:
    kind = element_type(access.buffer.dtype)
    return kind if vector == 1 else f"td_vector<{kind}, {vector}>"


def _scans_last(axes: Sequence[Axis], roots: Sequence[Expr]) -> list[Axis]:
    """Axes in an order in which loops along them run, those of scans inside of the others."""
    scanned = {e.axis for e in postorder(list(roots)) if isinstance(e, Scan)} & set(axes)
    if len(scanned) > 1:
        raise Unsupported("scans along several axes at once have no form for a GPU yet")
    return sorted(axes, key=lambda axis: axis in scanned)
