"""Parts of arrays whose bounds are data: read, placed among zeros, or stored."""

from __future__ import annotations

from collections import Counter

from treadle.core import dtypes
from treadle.core.locks import cached_property
from treadle.core.shapes import Dim, dim_symbols, fresh_symbol
from treadle.graph.ir import Node, Value, uses
from treadle.kernel.ir import apply, const
from treadle.ops.lowering import dim_expr
from treadle.ops.properties import PartUse
from treadle.runtime.fusion.fuse import Unit
from treadle.runtime.roles import bounds_in_data
from treadle.runtime.schedule import slices
from treadle.runtime.schedule.emission import Emission
from treadle.runtime.schedule.slices import Bounds
from treadle.runtime.schedule.steps import Sizes


class Parts:
    """The parts of the arrays of a region, with the bounds that the program knows already."""

    def __init__(self, steps: Emission) -> None:
        self.steps, self.program, self.region = steps, steps.program, steps.region
        self.known_bounds: dict[object, Bounds] = {}  # by the bounds in data, and the array's dims

    def compute(self, unit: Unit) -> None:
        """A part whose bounds are data is read, or placed among zeros."""
        node = unit.nodes[0]
        self.steps.guard(node)
        source, out = self.program.operand(node.inputs[0]), node.outputs[0]
        assert node.op.part is not None
        if node.op.part.use is PartUse.READ:
            bounds = self.bounds(node, source.value, out)
            if self._uses[out]:  # for some parts only their size is needed
                dims = source.value.spec.dims, out.spec.dims
                kernel = slices.slice_kernel(*dims, out.spec.dtype, bounds, None)
                self.steps.compute(kernel, node, [source, self.steps.computed(out)])
            return
        self.steps.known(node)
        bounds = self.bounds(node, out, source.value)
        made = self.steps.computed(out)
        self.steps.compute(slices.zeros_kernel(out.spec.dims, out.spec.dtype), node, [made])
        dims = out.spec.dims, source.value.spec.dims
        kernel = slices.slice_kernel(*dims, out.spec.dtype, bounds, "set")
        self.steps.compute(kernel, node, [source, made])

    @cached_property
    def _uses(self) -> Counter[Value]:
        """How often each value is used in the region."""
        return Counter(uses(self.region))

    def bounds(self, node: Node, whole: Value, part: Value) -> Bounds:
        """Where the part of an array begins that a node reads or stores, its step and its size. A
        part that is stored must have this size; one that is read gets it here."""
        axis, given = node.attrs["axis"], node.attrs["given"]
        key = (*bounds_in_data(node), given, axis, whole.spec.dims)
        size, known = part.spec.dims[axis], self.program.known
        open_size = part is node.outputs[0] and not dim_symbols(size) <= known
        found = self.known_bounds.get(key)
        if found is None:
            found = self._new_bounds(node, whole, size if part is node.outputs[0] else None)
            self.known_bounds[key] = found
        elif open_size:
            self.steps.discover(node)
            self.steps.emit(Sizes([(str(size), found.count)]))
        if part is not node.outputs[0] and size != found.count:
            self.steps.refuse_unless(node, apply("eq", dim_expr(found.count), dim_expr(size)), {})
        return found

    def _new_bounds(self, node: Node, whole: Value, size: Dim | None) -> Bounds:
        """The same, computed here from the bounds.

        size: of a part that is read, a number where it is known.
        """
        axis, given = node.attrs["axis"], node.attrs["given"]
        read = map(self.steps.on_host, bounds_in_data(node))
        inputs = {name: next(read) for name, g in zip(slices.NAMES, given, strict=True) if g}
        step: Dim | None = None
        if given[2]:
            value = slices.step_of()
            self.steps.refuse_unless(node, apply("ne", value, const(0, dtypes.int64)), inputs)
            step = self.steps.measured(fresh_symbol("step"), value, inputs)
        extent = whole.spec.dims[axis]
        begin, count = slices.begin_and_count(given, extent, step)
        first = self.steps.measured(fresh_symbol("begin"), begin, inputs)
        if step is None:
            self.program.ranges.add(str(first), 0, extent)
        found = fresh_symbol("count") if size is None else size
        if not dim_symbols(found) <= self.program.known:
            self.program.ranges.add(str(found), 0, extent)
            self.steps.measured(found, count, inputs)
        return Bounds(axis, first, found, step)
