"""Kernel expressions of graph values, built through the ops' lowering rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from treadle.core.shapes import Dim
from treadle.core.spec import Spec
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Affine, Axis, Buffer, Expr, Index, Load, apply, const
from treadle.ops.lowering import Access, Compute
from treadle.runtime.roles import splat, squeezed


class Names:
    """Unique, readable names for the buffers of one compilation."""

    def __init__(self) -> None:
        self.of: dict[Value, str] = {}
        self.taken: set[str] = set()

    def __call__(self, value: Value) -> str:
        name = self.of.get(value)
        if name is None:
            name = value.name
            while name in self.taken:
                name = f"{value.name}.{len(self.taken)}"
            self.taken.add(name)
            self.of[value] = name
        return name


ZERO = Affine((), 0)


def normal_index(value: Value, index: Sequence[Index]) -> tuple[Index, ...]:
    """`index` with 0 along dims of 1, so that equal places have equal indices."""
    return tuple(ZERO if d == 1 else i for d, i in zip(value.spec.dims, index, strict=True))


class Expressions:
    """Builds expressions for one kernel, each (value, index) once.

    Args:
        inlines: whether a value read at an index is computed here rather than loaded.
        axes_of: the axes that a node's rule gets for its reductions, in the order it asks; a
            rule that asks for more gets new ones.
        names: the names of buffers.
    """

    def __init__(
        self,
        inlines: Callable[[Value, tuple[Index, ...]], bool],
        axes_of: Callable[[Node], Sequence[Axis]],
        names: Names | None = None,
    ) -> None:
        self.inlines = inlines
        self.axes_of = axes_of
        self.memo: dict[Any, Expr] = {}
        self.names = names or Names()
        self.buffers: dict[Buffer, Value] = {}  # the values behind loads
        self.fresh = 0

    def begin_with(self, other: Expressions) -> None:
        """Take what another one has built over."""
        self.memo, self.buffers, self.fresh = {**other.memo}, {**other.buffers}, other.fresh

    def element(
        self, value: Value, index: Sequence[Index], valid: Expr | None = None, fill: Any = 0
    ) -> Expr:
        """The element at `index`. Where `valid` is false nothing is loaded; a load is then
        `fill` and a computed value is unspecified."""
        node = value.node
        if node is not None and (source := squeezed(node)) is not None:
            places = [ZERO if p is None else index[p] for p in source]
            return self.element(node.inputs[0], places, valid, fill)
        number = splat(value)
        if number is not None:
            return const(number, value.spec.dtype)
        place = normal_index(value, index)
        key = (value, place, valid, fill)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._build(value, place, valid, fill)
        return found

    def _build(self, value: Value, index: tuple[Index, ...], valid: Expr | None, fill: Any) -> Expr:
        if self.inlines(value, index):
            node = value.node
            assert node is not None and isinstance(node.op.lower, Compute)
            return node.op.lower.rule(_Call(self, node, value, valid), index)
        filled = None if valid is None else const(fill, value.spec.dtype)
        return Load(self.buffer(value), index, valid, filled)

    def buffer(self, value: Value) -> Buffer:
        """The parameter through which the kernel reaches a value in memory."""
        buffer = Buffer(self.names(value), value.spec.dtype, value.spec.dims)
        self.buffers[buffer] = value
        return buffer

    def new_axis(self, extent: Dim) -> Axis:
        self.fresh += 1
        return Axis(f"r{self.fresh}", extent)


class _Call:
    """The node being lowered, as its lowering rule sees it (`ops.lowering.LowerCall`)."""

    def __init__(self, build: Expressions, node: Node, value: Value, ambient: Expr | None) -> None:
        self.build = build
        self.inputs: Sequence[Access] = [_Access(build, v, ambient) for v in node.inputs]
        self.specs: Sequence[Spec] = [v.spec for v in node.inputs]
        self.out: Spec = value.spec
        self.which = value.index
        self.attrs: Mapping[str, Any] = node.attrs
        self._axes = iter(build.axes_of(node))

    def axis(self, extent: Dim) -> Axis:
        if extent == 1:  # no placement has an axis for it
            return self.build.new_axis(extent)
        return next(self._axes, None) or self.build.new_axis(extent)


class _Access:
    """Reads an input; loads below it happen only where all enclosing guards hold."""

    def __init__(self, build: Expressions, value: Value, ambient: Expr | None) -> None:
        self.build, self.value, self.ambient = build, value, ambient

    def __call__(self, index: Sequence[Index], valid: Expr | None = None, fill: Any = 0) -> Expr:
        guard = self.ambient
        if valid is not None:
            guard = valid if guard is None else apply("and", guard, valid)
        expr = self.build.element(self.value, index, guard, fill if valid is not None else 0)
        if valid is None:
            return expr
        outside = const(fill, expr.dtype)
        if isinstance(expr, Load) and expr.valid is guard:  # views in between know no fill
            return expr if expr.fill is outside else replace(expr, fill=outside)
        return apply("select", valid, expr, outside)
