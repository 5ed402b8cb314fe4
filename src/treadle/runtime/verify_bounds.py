"""Checks a finished schedule: whatever reads or writes memory is proved to stay inside, or checked.

The schedule was made with such proofs (`treadle.runtime.bounds`). This looks at it anew, with
nothing but the comparisons of sizes that the program makes, after kernels were joined and constants
lifted out of them. It runs with TREADLE_VERIFY=1 and in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from treadle.core.inequalities import patience
from treadle.core.shapes import Dim, SymbolicDim, product, substitute
from treadle.graph.integers import Integers
from treadle.graph.ir import Node
from treadle.runtime.bounds import BoundsError, Sizes, Unproved, covers, outside, unproved
from treadle.runtime.reach import is_checked_before, routine_conditions, update_conditions
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.facts import Facts
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Check,
    Evaluate,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Note,
    Operand,
    OpLoops,
    Position,
    SegmentedLaunch,
    Step,
    Update,
    checked_buffers,
)
from treadle.runtime.schedule.steps import Sizes as Defined
from treadle.runtime.symbols import checked_on_entry, guarded_dims, symbol_sources
from treadle.runtime.verify_operands import Positions, expect_elements, verify_list

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
    pairs = (pair for node in builder.graph.walk() for pair in guarded_dims(node))
    sizes.add(pair for pair in pairs if builder.ranges.are_equal(*pair))
    checked = Positions()
    for check in builder.status.findings:  # they end nothing: updates leave out what is outside
        checked.note(check)
    with patience(MOST_STEPS):
        _Verifier(builder, Integers(builder.graph, results=True)).block(block, sizes, checked)


class _Verifier:
    def __init__(self, builder: Builder, integers: Integers) -> None:
        self.builder, self.integers = builder, integers

    def block(self, block: Block, sizes: Sizes, checked: Positions) -> None:
        """Go through steps that know `sizes` and `checked` positions, and find out more."""
        for step in block.steps:
            self.step(step, sizes, checked)

    def step(self, step: Step, sizes: Sizes, checked: Positions) -> None:
        match step:
            case Guard():
                sizes.add([step.sizes])
            case Defined():
                sizes.add((SymbolicDim.symbol(name), dim) for name, dim in step.pairs)
            case Check() | Position():
                for launch in step.told if isinstance(step, Check) else ():
                    _launch(launch, sizes)
                checked.add(step)
            case Note(launches=[]):
                checked.note(step.findings[0])
            case Note():
                for launch in step.launches:
                    _launch(launch, sizes)
            case Launch():
                _launch(step, sizes)
            case SegmentedLaunch():
                for segment in step.segments:
                    _launch(segment, sizes)
            case LibraryCall():
                _library(step, self.builder.facts, sizes)
            case Update():
                _update(step, sizes, checked.noted)
                checked.expect(step, self.integers, sizes)
                if step.launch is not None:
                    _launch(step.launch, sizes)
            case OpLoops(launch=launch) if launch is not None:
                _launch(launch, sizes)
            case ListStep():
                verify_list(step, self.builder.element_dims, sizes)
            case Evaluate():
                _expect(outside(step.expr, sizes, checked_buffers(step)), sizes, step.value)
            case Branch():
                self.block(step.then, sizes.copy(), checked.copy())
                self.block(step.otherwise, sizes.copy(), checked.copy())
            case Loop():
                self.block(step.condition, sizes.copy(), checked.copy())
                self.block(step.body, sizes.copy(), checked.copy())


def _launch(step: Launch, sizes: Sizes) -> None:
    extent = {} if step.extent is None else {"n": step.extent}
    conditions, masked = unproved(step.kernel, sizes)
    found = [Unproved(c.buffer, substitute(c.excess, extent)) for c in conditions]
    _expect(found, sizes, step.kernel.stores[0])
    if masked:
        raise BoundsError(f"nothing keeps {masked[0]} inside its buffer")
    for buffer, operand in zip(step.kernel.buffers, step.operands, strict=False):
        expect_elements(operand, substitute(product(buffer.shape), extent), sizes)


def _expect(conditions: Iterable[Unproved], sizes: Sizes, what: object) -> None:
    """Raise for conditions that are not proved; `what` is printed only then, which takes long for
    expressions that share parts."""
    for condition in conditions:
        if not sizes.is_zero(condition.excess):
            raise BoundsError(
                f"{what}: nothing checks that {condition.excess} is 0, so an element of "
                f"{condition.buffer} may be outside"
            )


def _library(step: LibraryCall, facts: Facts, sizes: Sizes) -> None:
    """A routine's operands have the elements that its numbers lead it to, and its workspace the
    bytes that it asks for."""
    node = step.node
    reaches = facts.reaches(node, step.apart, step.views)
    _expect(routine_conditions(node, reaches, step.views, sizes), sizes, node)
    bases = [v.base for v in step.views] or node.inputs
    for operand, base in zip(step.inputs, bases, strict=True):
        expect_elements(operand, product(base.spec.dims), sizes)
    for output in () if step.apart else step.outputs:
        expect_elements(output, product(output.value.spec.dims), sizes)
    wanted = facts.routine_bytes(node, step.apart, step.views)
    if wanted is None:
        raise BoundsError(f"the library has no routine for {node} as the schedule calls it")
    given: Dim = 0 if step.scratch is None else step.scratch.bytes
    if not covers((given,), wanted, sizes):
        raise BoundsError(f"{node} has {given} bytes of workspace and needs {wanted}")
    if step.epilogue is not None:
        _launch(step.epilogue, sizes)


def _update(step: Update, sizes: Sizes, noted: AbstractSet[Node]) -> None:
    """The part lies in the array, and the operands have the elements of their specs."""
    node = step.node
    _expect(update_conditions(node, sizes), sizes, node)
    array, *others = step.inputs
    for operand in others:
        expect_elements(operand, product(operand.value.spec.dims), sizes)
    expect_elements(Operand(array.value, step.target), product(array.value.spec.dims), sizes)
    if not is_checked_before(node) and step.refuse is None and node not in noted:
        raise BoundsError(f"nothing refuses positions of {node} that are outside")
