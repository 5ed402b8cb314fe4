"""A device whose programs run their kernels for a GPU on the processor, through the shim.

The rest of the device is made up (`tests/runtime/apart.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.runtime.apart import Apart, ApartExecutable, Array
from tests.runtime.gpu.on_processor import GPU, Form, Kernels
from treadle.kernel.ir import Buffer
from treadle.runtime.gpu.facts import GpuFacts
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Block,
    Launch,
    LibraryCall,
    Note,
    OpLoops,
    SegmentedLaunch,
    Update,
)


class Shimmed(Apart):
    """The device as a backend: programs are planned as for a GPU."""

    def facts(self) -> GpuFacts:
        return GpuFacts(GPU)

    def build(self, planned: Planned) -> ShimmedExecutable:
        return ShimmedExecutable(planned)


class ShimmedExecutable(ApartExecutable):
    """Attributes:
    kernels: of the program and maybe others, as code.
    """

    def __init__(self, planned: Planned, kernels: Kernels | None = None) -> None:
        super().__init__(planned)
        self.kernels = kernels or Kernels(forms(self.block))

    def evaluate(
        self, step: Launch, arrays: Mapping[Buffer, Array], symbols: Mapping[str, int]
    ) -> dict[Buffer, Array]:
        return self.kernels.run(step.kernel, arrays, symbols, form(step)[1])

    def evaluate_segments(
        self, step: SegmentedLaunch, given: Sequence[tuple[dict[Buffer, Array], dict[str, int]]]
    ) -> list[dict[Buffer, Array]]:
        kernel, values = form(step)
        buffers = kernel.buffers  # each segment's kernel may have others, in the same order
        segments = [dict(zip(buffers, arrays.values(), strict=True)) for arrays, _ in given]
        sizes = [
            dict(zip(kernel.symbols, [symbols[s] for s in own.kernel.symbols], strict=True))
            for own, (_, symbols) in zip(step.segments, given, strict=True)
        ]
        made = self.kernels.run_segments(kernel, segments, sizes, values)
        return [
            {b: results[c] for b, c in zip(arrays, buffers, strict=True) if c in results}
            for (arrays, _), results in zip(given, made, strict=True)
        ]


def form(step: Launch | SegmentedLaunch) -> Form:
    """The kernel of a launch, with the buffers that are numbers in registers of the host."""
    segments = step.segments if isinstance(step, SegmentedLaunch) else [step]
    places = zip(*([o.place for o in segment.operands] for segment in segments), strict=True)
    pairs = zip(step.kernel.buffers, places, strict=True)
    return step.kernel, frozenset(b for b, found in pairs if found == (None,) * len(segments))


def forms(block: Block) -> Iterator[Form]:
    """Those of all launches, in order."""
    for step in all_steps(block):
        if isinstance(step, Launch | SegmentedLaunch):
            yield form(step)
        elif isinstance(step, Note):
            yield from map(form, step.launches)
        elif isinstance(step, Update | OpLoops) and step.launch is not None:
            yield form(step.launch)
        elif isinstance(step, LibraryCall) and step.epilogue is not None:
            yield form(step.epilogue)
