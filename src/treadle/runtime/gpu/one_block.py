"""Loops and branches that the device runs by itself, in one launch of one block.

A loop that works on numbers and small arrays would cost the host a launch for each of its kernels,
and a wait for each iteration that a number of the device decides about. One block has room for all
of its work: its threads do the steps of the loop one after the other, and meet between them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from treadle.core.records import record
from treadle.core.shapes import product
from treadle.core.spec import ListSpec
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Buffer, Kernel
from treadle.ops.control.checks import NOTE
from treadle.runtime.fusion.kernels import with_extent
from treadle.runtime.gpu.kernels import Arguments, KernelCode, block_functions
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.scalars import element_type
from treadle.runtime.gpu.stages import Stage
from treadle.runtime.gpu.writer import kernel_head
from treadle.runtime.roles import Role, bounds_in_data, kind_of, role_of
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Copy,
    Launch,
    Loop,
    Note,
    Operand,
    Place,
    SegmentedLaunch,
    Step,
    Update,
    memory,
)

# What becomes kernels, or passes numbers and arrays on.
SERVED = {
    Role.CONSTANT, Role.ALIAS, Role.SCALAR, Role.ARRAY, Role.VIEW, Role.READ, Role.ASSIGN,
    Role.UPDATE, Role.COND, Role.WHILE,
}  # fmt: skip
_KNOWN = ("temporary", "argument", "constant", "variable", "output", "status", "pair", "pair'")


def fits_one_block(node: Node, gpu: Gpu) -> bool:
    """Whether a loop or a branch has nothing but work for one block: arithmetic on arrays whose
    elements its threads have time for."""
    inside = [n for region in node.regions for n in region.walk()]
    return all(_fits(n, gpu.block * gpu.elements) for n in inside)


def _fits(node: Node, most: int) -> bool:
    if node.op is NOTE:
        return True
    if role_of(node) not in SERVED or bounds_in_data(node):
        return False
    picks = kind_of(node) in ("view", "gather")  # of a large array only what it gives
    return all(_is_small(v, most) for v in (*node.outputs, *(() if picks else node.inputs)))


def _is_small(value: Value, most: int) -> bool:
    if isinstance(value.spec, ListSpec):
        return False
    size = product(value.spec.dims)
    return isinstance(size, int) and size <= most


@record(frozen=True, eq=False)
class BlockCode:
    """A loop or branch as one kernel, and the operands of its launch."""

    code: KernelCode
    operands: Sequence[Operand]


def block_code(step: Loop | Branch, name: str, gpu: Gpu) -> BlockCode:
    """The kernel of one block that runs a loop or a branch.

    Raises:
        Unsupported: there is none.
    """
    return _BlockWriter(step, name, gpu).written()


class _BlockWriter:
    """Writes such a kernel.

    Attributes:
        threads: of the block.
        found: the parameters by the memory, or the number of the host, that they stand for.
        stored: the buffers that are written.
        texts: the functions of the kernels of the steps.
    """

    def __init__(self, step: Loop | Branch, name: str, gpu: Gpu) -> None:
        self.step, self.name, self.gpu = step, name, gpu
        self.found: dict[Hashable, tuple[Buffer, Operand]] = {}
        self.values: set[Buffer] = set()
        self.stored: set[Buffer] = set()
        self.texts: list[str] = []
        self.lines: list[str] = []
        self.depth, self.count, self.shared = 1, 0, 0
        few = all(_count(place) <= gpu.warp for place in _places(step))
        self.threads = gpu.warp if few else gpu.block

    def written(self) -> BlockCode:
        self.any_step(self.step)
        buffers = tuple(buffer for buffer, _ in self.found.values())
        outputs = tuple(b for b in buffers if b in self.stored)
        head = f"{kernel_head(self.name, self.threads)}({', '.join(map(self._parameter, buffers))})"
        text = "\n".join([*self.texts, f"{head} {{", *self.lines, "}"])
        stage = Stage(self.name, 1, self.threads, self.shared, True)
        arguments = Arguments(buffers, outputs, ())
        if 8 * len(buffers) > self.gpu.parameters:
            raise Unsupported("a loop with more arrays than a launch has parameters")
        values = frozenset(self.values)
        code = KernelCode(self.name, text, (stage,), 0, values, arguments)
        return BlockCode(code, [operand for _, operand in self.found.values()])

    def _parameter(self, buffer: Buffer) -> str:
        kind = element_type(buffer.dtype)
        if buffer in self.values:
            return f"{kind} {buffer.name}"
        constness = "" if buffer in self.stored else "const "
        return f"TD_SAME_POINTER({constness}{kind}) {buffer.name}"

    # -- operands ------------------------------------------------------------------------------

    def buffer(self, operand: Operand, stored: bool = False) -> Buffer:
        """The parameter that stands for an operand."""
        place = operand.place
        key: Hashable = operand.value
        if place is not None:
            if place.kind not in _KNOWN:
                raise Unsupported(f"memory that is found while the program runs: {place}")
            key = memory(place), place.dtype
        if key not in self.found:
            dtype = operand.value.spec.dtype if place is None else place.dtype
            dims = () if place is None else (_count(place),)
            self.found[key] = Buffer(f"b{len(self.found)}", dtype, dims), operand
        buffer = self.found[key][0]
        if place is None:
            self.values.add(buffer)
        if stored:
            self.stored.add(buffer)
        return buffer

    def _at(self, place: Place, value: Value, stored: bool = True) -> Buffer:
        return self.buffer(Operand(value, place), stored)

    # -- statements ----------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{")
        self.depth += 1

    def close(self, then: str = "}") -> None:
        self.depth -= 1
        self.line(then)

    def end_step(self) -> None:
        """All threads see what was done so far."""
        self.line("TD_NEXT_STEP;")

    def block(self, block: Block) -> None:
        for step in block.steps:
            self.any_step(step)

    def any_step(self, step: Step) -> None:
        match step:
            case Launch():
                self.launch(step)
            case SegmentedLaunch():
                for segment in step.segments:
                    self.launch(segment)
            case Note() if step.launches:
                for launch in step.launches:
                    self.launch(launch)
            case Update() if step.launch is not None and step.refuse is None:
                self.launch(step.launch)
            case Copy():
                self.copy(step.source, self._at(step.target, step.source.value))
            case Branch():
                self.branch(step)
            case Loop():
                self.loop(step)
            case _:
                raise Unsupported(f"a block has no code for {type(step).__name__}")

    def launch(self, step: Launch) -> None:
        """The functions of a kernel, one after the other."""
        kernel: Kernel = step.kernel
        if step.extent is not None:
            kernel = with_extent(kernel, step.extent)
        if not step.native or kernel.symbols:
            raise Unsupported("a kernel of a size that is not known")
        given = [self.buffer(o, n in step.outputs) for n, o in enumerate(step.operands)]
        pairs = zip(kernel.buffers, step.operands, strict=True)
        values = frozenset(b for b, o in pairs if o.place is None)
        self.count += 1
        name = f"{self.name}_{self.count}"
        named = {b: g.name for b, g in zip(kernel.buffers, given, strict=True)}
        for function in block_functions(kernel, name, self.gpu, values, self.threads):
            stage = function.stage
            names = ", ".join([*(named[b] for b in function.taken), ""])
            assert stage.threads == self.threads, "all threads meet"
            self.texts.append(function.text)
            self.shared = max(self.shared, stage.shared)
            if stage.blocks == 1:
                self.line(f"{stage.name}({names}0);")
            else:
                self.open(f"for (td_index block = 0; block < {stage.blocks}; block++)")
                self.line(f"{stage.name}({names}block);")
                if stage.shared:
                    self.line("__syncthreads();")  # before the next one uses shared memory
                self.close()
            self.end_step()

    def copy(self, source: Operand, target: Buffer) -> None:
        given = self.buffer(source)
        if given is target:
            return
        if source.place is None:
            self.line(f"if (threadIdx.x == 0) td_put({target.name}, 0, {given.name});")
        else:
            self._elements(given, target)
        self.end_step()

    def _elements(self, source: Buffer, target: Buffer) -> None:
        (size,) = target.shape
        self.open(f"for (td_index i = threadIdx.x; i < {size}; i += {self.threads})")
        self.line(f"td_put({target.name}, i, td_element({source.name}, i));")
        self.close()

    def flag(self, operand: Operand) -> str:
        """A bool that all threads have read before any of them goes on."""
        buffer = self.buffer(operand)
        self.count += 1
        name = f"flag{self.count}"
        read = buffer.name if operand.place is None else f"td_element({buffer.name}, 0)"
        self.line(f"const bool {name} = {read};")
        self.end_step()
        return name

    # -- control flow --------------------------------------------------------------------------

    def branch(self, step: Branch) -> None:
        if any(o.place is None for o in step.results):
            raise Unsupported("a branch that gives the host a number")
        self.open(f"if ({self.flag(step.predicate)})")
        self.block(step.then)
        self.close("} else {")
        self.depth += 1
        self.block(step.otherwise)
        self.close()

    def loop(self, step: Loop) -> None:
        """An array that two buffers have in turn is in the first one when the loop is over, as it
        was when it began."""
        pairs: list[tuple[Buffer, Buffer]] = []
        for c in step.carried:
            if c.place is None:
                raise Unsupported("a loop with a number of the host")
            first = self._at(c.place, c.param)
            self.copy(c.start, first)
            if c.other is not None:
                pairs.append((first, self._at(c.other, c.param)))
        self.count += 1
        turned = f"turned{self.count}"
        if pairs:
            self.line(f"bool {turned} = false;")
        self.open("for (;;)")
        self.block(step.condition)
        self.line(f"if (!{self.flag(step.condition.results[0])}) break;")
        self.block(step.body)
        self._turn(pairs, turned)
        self.close()
        if pairs:
            self.open(f"if ({turned})")
            for first, second in pairs:
                self._elements(first, second)
            self._turn(pairs, turned)
            self.end_step()
            self.close()

    def _turn(self, pairs: Sequence[tuple[Buffer, Buffer]], turned: str) -> None:
        """Let the buffers of each pair change roles."""
        for first, second in pairs:
            a, b = first.name, second.name
            self.line(f"{{ const auto other = {a}; {a} = {b}; {b} = other; }}")
        if pairs:
            self.line(f"{turned} = !{turned};")


def _places(step: Step) -> Iterator[Place]:
    """All memory that a step touches."""
    yield from (*step.reads, *step.writes)
    match step:
        case Branch():
            blocks = [step.then, step.otherwise]
        case Loop():
            blocks = [step.condition, step.body]
        case _:
            return
    for block in blocks:
        for inner in block.steps:
            yield from _places(inner)


def _count(place: Place) -> int:
    """Elements at a place."""
    size = product(place.dims)
    if not isinstance(size, int):
        raise Unsupported(f"an array of unknown size at {place}")
    return size
