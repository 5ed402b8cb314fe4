"""What the functions of one program share while they are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from treadle.core.shapes import Dim
from treadle.core.switches import is_on
from treadle.graph.ir import Value
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.moving_arrays import kernels_of_one_thread
from treadle.runtime.cpu.program_state import StateTable
from treadle.runtime.cpu.scopes import Scopes
from treadle.runtime.cpu.target import Target
from treadle.runtime.memory.plan import MemoryPlan
from treadle.runtime.schedule.lists import ElementDims
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Launch, Loop, SegmentedLaunch, Step
from treadle.runtime.signature import Signature

if TYPE_CHECKING:
    from treadle.runtime.cpu.program_times import Timer

SHORT_WORK = 50_000  # element operations, some ten microseconds, for which a program keeps the GIL
MOST_OPERANDS = 1000  # of the launches of a program whose code stores each one


class Blueprint:
    """What the functions of a program share.

    Attributes:
        block, plan, signature: what is written down: the steps, where arrays lie, and how the
            program is called.
        workers: the threads that it is made for.
        variables: the numbers of all its variables; written: of those that it assigns.
        alone: the launches of kernels that one thread runs (`moving_arrays`).
        releases: whether the GIL is released; a dim: where that is more than `SHORT_WORK`.
        holds: whether other threads may use the variables meanwhile.
        whole: the numbers of variables whose values are never left half written.
        native_lists: whether lists are memory of the program, not handles of Python's lists.
        element_dims: the shapes of the elements of native lists.
        frame_positions: which words of the frame are the addresses of arguments, cells of variables
            and outputs, by kind and number.
        is_large: whether the operands of launches are data instead of code.
        module: the text of the functions.
        table: the words that the code reads of the state table.
        callbacks: the steps for which the code calls Python, by number.
        improved: whether LLVM's passes are worth their time.
        has_parts: whether kernels are functions of the module.
        most_table_words: the words of the largest table of operands (`program_tables`).
        timer: writes the steps of a program that writes down when they ran; None for others.
    """

    def __init__(
        self, target: Target, workers: int, block: Block, plan: MemoryPlan, signature: Signature,
        releases: bool | Dim, written: Sequence[int] = (), variables: Sequence[int] = (),
        holds: bool = False, whole: Collection[int] = (), native_lists: bool = False,
        element_dims: Mapping[Value, ElementDims] | None = None, timer: Timer | None = None,
    ) -> None:  # fmt: skip
        self.block, self.plan, self.signature = block, plan, signature
        self.workers, self.releases = workers, releases
        self.written, self.variables, self.holds, self.whole = written, variables, holds, whole
        self.native_lists, self.element_dims = native_lists, element_dims or {}
        kinds = {
            "argument": signature.arguments, "cell": signature.cells, "output": signature.outputs,
        }  # fmt: skip
        named = [(kind, number) for kind, numbers in kinds.items() for number in numbers]
        self.frame_positions = {name: position for position, name in enumerate(named)}
        self.alone = kernels_of_one_thread(block, workers)
        self.is_large = _is_large(block)
        self.has_fma = target.has_fma and is_on("contraction")
        self.scopes = Scopes(plan)
        self.module = Module(target)
        self.table = StateTable()
        self.callbacks: list[Step] = []
        self.improved = self.has_parts = False
        self.most_table_words = 0
        self.timer = timer

    def add_callback(self, step: Step) -> int:
        """The number under which code calls Python for a step."""
        self.callbacks.append(step)
        return len(self.callbacks) - 1


def _is_large(block: Block) -> bool:
    """Whether a program has so many operands that they are better data than code. A program with
    loops is not: what they do is repeated, and data is slower."""
    steps = list(all_steps(block))
    if any(isinstance(s, Loop) for s in steps):
        return False
    count = sum(len(launch.operands) for s in steps for launch in _launches(s))
    return count > MOST_OPERANDS


def _launches(step: Step) -> list[Launch]:
    if isinstance(step, SegmentedLaunch):
        return step.segments
    return [step] if isinstance(step, Launch) else []
