"""The schedule of a program: places in memory, and the steps that read and write them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field

from treadle.core.dtypes import DType
from treadle.core.origin import at
from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Buffer, Expr, Kernel, Load, postorder
from treadle.ops.properties import Relation
from treadle.runtime.fusion.strided import View
from treadle.runtime.symbols import may_broadcast

_NOT_BROADCAST = (
    "; sizes that only the running program knows are not broadcast once it has assigned a "
    "variable, drawn random numbers or called Python code: td.tile makes a size of 1 larger"
)


@record(eq=False)
class Place:
    """Memory for one array.

    kind: "argument", "output", "constant" or "variable" (`number` counts them), "temporary"
        (part of the workspace), "pair" (two buffers that a loop writes in turn; which one is
        current is known when the program runs), "element" (of a list that does not change),
        "late" (allocated when its size is known), "joined" (allocated by the branch that is taken),
        "slot" (of a list, for an element that is computed there),
        "grown" (one of two buffers that a loop writes in turn and makes larger as needed),
        "buffer" (one that a loop updates in place and makes larger as needed), or "status" (the
        word of the program's status, or an element that is kept beside it).
    """

    kind: str
    number: int
    dtype: DType
    dims: tuple[Dim, ...]
    parts: tuple[Place, ...] = ()  # of a pair: the temporaries that take turns
    most: Dim | None = None  # bytes that it never exceeds, where `dims` differ from use to use

    @property
    def bytes(self) -> Dim:
        total: Dim = product(self.dims) * self.dtype.size
        return total

    @property
    def room(self) -> Dim:
        """Bytes to plan for."""
        return self.bytes if self.most is None else self.most

    def __repr__(self) -> str:
        return f"{self.kind[0]}{self.number}"


@record(eq=False)
class Step:
    """One step. `reads` and `writes` are the places that it touches."""

    reads: list[Place] = field(default_factory=list, kw_only=True)
    writes: list[Place] = field(default_factory=list, kw_only=True)


@record(eq=False)
class Operand:
    """An operand or result of a step: an array at a place, or a rank-0 value in a register of the
    host.

    Kernels and routines of a device with memory of its own get such a register by value.
    """

    value: Value
    place: Place | None  # None: a register


@record(eq=False)
class Launch(Step):
    """Run a kernel. `outputs` are the positions of the operands that it writes."""

    kernel: Kernel
    operands: list[Operand]
    outputs: list[int]
    extent: Dim | None = None  # the value of a flat kernel's symbol
    scratch: Place | None = None  # memory of the threads
    shared: Place | None = None  # memory that follows the operands
    native: bool = True  # False: evaluated in Python


@record(eq=False)
class SegmentedLaunch(Step):
    """Run one flat kernel over the operands of several launches at once."""

    kernel: Kernel
    segments: list[Launch]


@record(eq=False)
class Evaluate(Step):
    """Compute a rank-0 value in registers; `expr` loads rank-0 values and elements of arrays (of
    arrays only where the host computes in the memory of the device)."""

    value: Value
    expr: Expr
    inputs: dict[str, Operand]  # by the name of the buffer that stands for it


@record(eq=False)
class LibraryCall(Step):
    """Run a routine of the runtime's library; `scratch` is its workspace.

    epilogue: the kernel that the routine runs on its result, on every block of it where the kernel
        is a blocked one.
    apart: only the epilogue reads the result, whose blocks are in the workspace; the output's
        place is the workspace, too.
    views: how the node's operands lie in the memory of `inputs`; none where they are the same.
    """

    node: Node
    inputs: list[Operand]
    outputs: list[Operand]
    scratch: Place | None = None
    epilogue: Launch | None = None
    apart: bool = False
    views: tuple[View, ...] = ()


@record(eq=False)
class Callback(Step):
    """Run a node's NumPy implementation, or a whole control flow node by interpretation.

    sized: for every input whether its dims are passed along, because they were found out late.
    mentioned: such dims in the node's attributes, by symbol; passed after everything else.
    """

    node: Node
    inputs: list[Operand]
    outputs: list[Operand]
    reason: str = ""
    sized: list[bool] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)


@record(eq=False)
class ListStep(Step):
    """An op on native lists.

    owned: it may change its list operand instead of a copy.
    slot: the place of an element that is put into the list when a later step computes it there.
    """

    node: Node
    inputs: list[Operand]
    outputs: list[Operand]
    owned: bool = False
    slot: Place | None = None


@record(eq=False)
class Update(Step):
    """Write a part of the array at `target`, which holds the array that the node updates. Positions
    outside of it, whose check was only noted, are left out.

    refuse: the call that raises the error for a position out of range; None where it was checked.
    launch: the kernel that writes the part once its positions are checked; None where the program
        itself does so.
    """

    node: Node
    inputs: list[Operand]  # the array itself included
    target: Place
    refuse: Callback | None = None
    launch: Launch | None = None


@record(eq=False)
class Append(Step):
    """Put arrays after the rows of the first one: in its buffer, which grows, or in a copy."""

    inputs: list[Operand]
    output: Operand


@record(eq=False)
class OpLoops(Step):
    """Run an op whose loops are part of the program; it may find out the size of its result.

    launch: the kernel that does the work once the operands are checked and the result is zeros, for
        some ops.
    """

    node: Node
    inputs: list[Operand]
    outputs: list[Operand]
    refuse: Callback
    launch: Launch | None = None


@record(eq=False)
class Check(Step):
    """Fail unless a rank-0 bool holds: run the node's NumPy implementation, which raises.

    told: kernels whose results only this call reads; they run where the check fails.
    """

    holds: Operand
    callback: Callback
    told: list[Launch] = field(default_factory=list)


@record(eq=False)
class Finding:
    """A check, which fails unless a rank-0 bool holds, and the operands that its error shows.

    node: the operation whose NumPy implementation raises the error.
    numbers: its inputs that the error depends on.
    elements: for each of these inputs either the input itself, or the position of its first bad
        element in row-major order and that element.
    number: of the check in the program, from 1; 0 where the host judges it.
    kept: places of kind "status" where the device keeps the elements of the check that fails first.
    ends: how many elements at either end of each axis of an input the error shows; -1: all.
    """

    node: Node
    numbers: tuple[int, ...]
    holds: Operand
    elements: list[Operand]
    number: int = 0
    kept: list[Place] = field(default_factory=list)
    ends: int = -1


@record(eq=False)
class Note(Step):
    """Note in the status of the program which of some checks is the first that failed, if none
    failed before (`schedule.status`).

    launches: the kernels of the device; none where the host has the bool of the only check in a
        register: it raises the error at once.
    """

    findings: list[Finding]
    launches: list[Launch]


@record(eq=False)
class Verdict(Step):
    """Read the word of the status, where the program ends; where it is n, raise the error of the
    check of this number. The word and the places of its findings are zero when the program begins.
    """

    word: Place
    findings: list[Finding]


@record(eq=False)
class Position(Step):
    """A rank-0 position along an axis, counted from its beginning: `value` is unsigned.

    wraps: whether it may be negative, which counts from the end.
    callback: the NumPy implementation that raises where it lies outside.
    """

    value: Value
    source: Operand
    size: Dim
    wraps: bool
    callback: Callback


@record(eq=False)
class Guard(Step):
    """Fail unless two sizes that only the running program knows are equal.

    text: the error, with places for the sizes.
    restarts: nothing has been changed so far: where the sizes differ the program ends, and the
        graph runs in the interpreter, which broadcasts or raises.
    """

    node: Node
    sizes: tuple[Dim, Dim]
    text: str
    restarts: bool = False

    def message(self, a: int, b: int) -> str:
        """The error for the sizes of a run."""
        of = self.node.attrs.get("of")
        name = f"{self.node.op.name if of is None else of}: "
        if "speaks_for_caller" in self.node.op.tags:
            name = ""
        # Where nothing was changed before, the interpreter broadcasts instead.
        hint = _NOT_BROADCAST if 1 in (a, b) and may_broadcast(self.node) else ""
        return f"{name}{self.text.format(a, b)}{hint}{at(self.node.origin)}"


@record(eq=False)
class Exhausted(Step):
    """There is no memory for the result of a step."""

    step: Step


@record(eq=False)
class Sizes(Step):
    """Symbols get their values from sizes that are known."""

    pairs: list[tuple[str, Dim]]


@record(eq=False)
class Measure(Step):
    """A symbol gets its value from an integer in a register."""

    name: str
    source: Operand


@record(eq=False)
class Deliver(Step):
    """Hand result number `number`, whose size is known only now, to the caller."""

    number: int
    source: Operand


@record(eq=False)
class Copy(Step):
    """Copy an array, or store a register into an array of one element."""

    source: Operand
    target: Place


@record(eq=False)
class LoadScalar(Step):
    """Read a rank-0 value from memory into its register."""

    value: Value
    source: Place


@record(eq=False)
class Fetch(Step):
    """Bring rank-0 values from the memory of a device into registers of the host, which waits once
    for all of them.

    Only schedules for devices with memory of their own have such steps; nothing else reads this
    memory for the host but Python callbacks, which get their arrays through the backend's storage.
    """

    values: list[Value]
    sources: list[Place]


def is_checked(step: Evaluate, operand: Operand) -> bool:
    """Whether the operand is the array that the step's node indexes: then a step before has checked
    the positions."""
    node = step.value.node
    return (
        node is not None
        and node.op.refuses is not None
        and node.op.refuses.is_of_axes
        and operand.value is node.inputs[0]
    )


def checked_buffers(step: Evaluate) -> list[Buffer]:
    """The buffers of an expression that stand for such arrays."""
    loads = (e for e in postorder([step.expr]) if isinstance(e, Load))
    return [e.buffer for e in loads if is_checked(step, step.inputs[e.buffer.name])]


@record(eq=False)
class Block:
    """Steps in order, and the results of the block.

    copied: the numbers of results that are native lists which others need as they are.
    """

    steps: list[Step] = field(default_factory=list)
    results: list[Operand] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)


@record(eq=False)
class Branch(Step):
    """``results = then if predicate else otherwise``. Arrays are written to the places of
    `results` inside the branches; rank-0 results, and arrays whose size depends on the branch,
    are merged from the blocks' results.

    alone: the device runs it by itself, if it can: the predicate may be in memory.
    of: the node of the graph.
    """

    predicate: Operand
    then: Block
    otherwise: Block
    results: list[Operand]
    alone: bool = False
    of: Node | None = None


@record(eq=False)
class Carried:
    """A loop variable.

    A register is a phi. An array is a place that the body updates (from a register, which is stored
    there before the loop, where the number that it starts with is one): in place, or by writing the
    other half of a pair, after which the halves change roles. Where the size changes too, the
    halves ("grown") or the only one ("buffer") are buffers that grow, and the sizes are phis.
    """

    param: Value
    start: Operand
    place: Place | None  # None: a register
    other: Place | None = None  # the half of a pair that the body writes
    copied: bool = False  # a list that the loop must copy before it changes it


@record(frozen=True)
class Rows:
    """How many rows a loop's arrays have, and into how many even blocks threads divide them."""

    extent: int
    blocks: int


@record(frozen=True)
class Counted:
    """A loop that does nothing but add 1 to `counter`, a loop variable, until this is `limit`."""

    counter: Value
    limit: Value | int


@record(frozen=True)
class Paced:
    """A loop that ends when `counter`, a loop variable that each iteration moves by one number, is
    at a limit, if it does not end before.

    Attributes:
        step: what an iteration adds, or subtracts if `falls`.
        relation: between the counter and the limit while the loop goes on.
        test: the bool of the condition that says so. The loop ends where it is false.
    """

    counter: Value
    step: Value | int
    falls: bool
    relation: Relation
    limit: Value | int
    test: Value


@record(eq=False)
class Loop(Step):
    """Repeat `body` while `condition`, whose only result is a rank-0 bool.

    trips: the number of iterations, where it is known.
    most: a number of iterations that no run exceeds, where one is known.
    counted: the counter and its limit, where they alone end the loop.
    paced: a counter that moves evenly towards a limit, where other things may end the loop, too.
    rows: where no iteration mixes the rows of the arrays: each thread runs the loop on its own.
    flags: bool variables that end the loop as soon as they are true.
    exact: products and sums are rounded one by one, as without the loop.
    alone: the device runs it by itself, if it can: the bool may be in memory.
    of: the node of the graph.
    """

    condition: Block
    body: Block
    carried: list[Carried]
    trips: int | None = None
    most: int | None = None
    counted: Counted | None = None
    paced: Paced | None = None
    rows: Rows | None = None
    flags: Sequence[Carried] = ()
    exact: bool = False
    alone: bool = False
    of: Node | None = None


def node_of(step: Step) -> Node | None:
    """The node that a step computes, or one of them."""
    node = getattr(step, "node", None)
    if isinstance(node, Node):
        return node
    values: list[Value] = []
    match step:
        case Launch():
            values = [step.operands[i].value for i in step.outputs]
        case SegmentedLaunch():
            return node_of(step.segments[0])
        case Append():
            values = [step.output.value]
        case Copy() | Deliver():
            values = [step.source.value]
        case Check() | Position():
            return node_of(step.callback)
        case Note():
            return step.findings[0].node
        case Branch():
            values = [o.value for o in step.results]
        case Loop():
            pairs = zip(step.carried, step.body.results, strict=True)
            values = [o.value for c, o in pairs if c.place is not None]
    return next((v.producer for v in values if isinstance(v.producer, Node)), None)


def memory(place: Place) -> Hashable:
    """Equal for two places in the same memory: every read of a variable has a place of its own, and
    so has each size of a buffer."""
    return place.kind, place.number


def is_same_memory(a: Place | None, b: Place | None) -> bool:
    """Whether two places are the same memory."""
    return a is not None and b is not None and memory(a) == memory(b)


def places_of(operands: Sequence[Operand]) -> list[Place]:
    """The places of the operands that are in memory."""
    return [o.place for o in operands if o.place is not None]
