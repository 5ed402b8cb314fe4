"""Checks a finished schedule: whatever reads or writes memory is proved to stay inside, or checked.

The schedule was made with such proofs (`treadle.runtime.bounds`). This looks at it anew, with
nothing but the comparisons of sizes that the program makes, after kernels were joined and constants
lifted out of them. It runs with TREADLE_VERIFY=1 and in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.core.inequalities import is_at_least, patience
from treadle.core.shapes import Dim, SymbolicDim, product, substitute
from treadle.graph.ir import Value
from treadle.runtime.bounds import BoundsError, Sizes, Unproved, covers, outside, unproved
from treadle.runtime.fusion.strided import View
from treadle.runtime.schedule.build import Builder
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Evaluate,
    Guard,
    Launch,
    LibraryCall,
    Loop,
    Operand,
    SegmentedLaunch,
    Step,
)
from treadle.runtime.schedule.steps import Sizes as Defined
from treadle.runtime.symbols import checked_on_entry, symbol_sources

MOST_STEPS = 5000  # of a proof: here more is known than when the schedule was made


def verify_bounds(builder: Builder, block: Block) -> None:
    """Go through a schedule.

    Raises:
        BoundsError: a step is neither proved to stay inside its arrays nor checked.
    """
    known = {s.name for s in symbol_sources(builder.graph.params)}
    sizes = Sizes()
    sizes.add(checked_on_entry(builder.graph, known))
    sizes.add_ranges(builder.ranges)
    with patience(MOST_STEPS):
        _block(block, sizes)


def _block(block: Block, sizes: Sizes) -> None:
    for step in block.steps:
        _step(step, sizes)


def _step(step: Step, sizes: Sizes) -> None:
    match step:
        case Guard():
            sizes.add([step.sizes])
        case Defined():
            sizes.add((SymbolicDim.symbol(name), dim) for name, dim in step.pairs)
        case Launch():
            _launch(step, sizes)
        case SegmentedLaunch():
            for segment in step.segments:
                _launch(segment, sizes)
        case LibraryCall():
            _library(step, sizes)
        case Evaluate():
            _expect(outside(step.expr, sizes), sizes, str(step.value))
        case Branch():
            _block(step.then, sizes.copy())
            _block(step.otherwise, sizes.copy())
        case Loop():
            _block(step.condition, sizes.copy())
            _block(step.body, sizes.copy())


def _launch(step: Launch, sizes: Sizes) -> None:
    extent = {} if step.extent is None else {"n": step.extent}
    conditions, masked = unproved(step.kernel, sizes)
    found = [Unproved(c.buffer, substitute(c.excess, extent)) for c in conditions]
    _expect(found, sizes, str(step.kernel.stores[0]))
    if masked:
        raise BoundsError(f"nothing keeps {masked[0]} inside its buffer")
    for buffer, operand in zip(step.kernel.buffers, step.operands, strict=False):
        _expect_elements(operand, substitute(product(buffer.shape), extent), sizes)


def _expect(conditions: Iterable[Unproved], sizes: Sizes, what: str) -> None:
    for condition in conditions:
        if not sizes.is_zero(condition.excess):
            raise BoundsError(
                f"{what}: nothing checks that {condition.excess} is 0, so an element of "
                f"{condition.buffer} may be outside"
            )


def _expect_elements(operand: Operand, elements: Dim, sizes: Sizes) -> None:
    """The memory of an operand must have the elements of the buffer that stands for it."""
    place, spec = operand.place, operand.value.spec
    if place is not None and place.dtype is not spec.dtype:
        return  # workspace, which is counted in bytes
    if not covers(() if place is None else place.dims, elements, sizes):
        raise BoundsError(f"{operand.value} has not the {elements} elements that a kernel expects")


def _library(step: LibraryCall, sizes: Sizes) -> None:
    for view, value in zip(step.views, step.node.inputs, strict=False):
        _view(view, value, sizes)
    if not step.views:
        for operand in step.inputs:
            _expect_elements(operand, product(operand.value.spec.dims), sizes)
    if step.epilogue is not None:
        _launch(step.epilogue, sizes)


def _view(view: View, value: Value, sizes: Sizes) -> None:
    """The last element of a view lies in its array, unless the view has none."""
    dims: Sequence[Dim] = value.spec.dims
    last = view.offset
    for dim, stride in zip(dims, view.strides, strict=True):
        last = last + (dim - 1) * stride
    whole = sizes.canonical(product(view.base.spec.dims))
    last = sizes.canonical(last)
    some = [sizes.canonical(d) - 1 for d in dims if not isinstance(d, int)]
    facts = [*some, *sizes.facts([whole, last], dims)]
    if 0 not in dims and not is_at_least(whole - 1, last, facts):
        raise BoundsError(f"the view that is {value} may leave {view.base}")
