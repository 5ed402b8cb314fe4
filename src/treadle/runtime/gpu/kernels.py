"""The CUDA C of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.gpu.contractions import (
    blocks_of,
    contraction_of,
    shared_bytes,
    tile_of,
    write_sums,
    write_tiles,
)
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.mapping import Mapping, map_kernel
from treadle.runtime.gpu.scalars import dim_text, value_type, with_ordered_symbols
from treadle.runtime.gpu.scans import ScanWriter
from treadle.runtime.gpu.scatters import ScatterWriter
from treadle.runtime.gpu.splitting import split
from treadle.runtime.gpu.stages import Memory, Scratch, Stage, levels_of
from treadle.runtime.gpu.writer import Function, Writer, kernel_head
from treadle.runtime.schedule.facts import Unsupported

__all__ = ["OPTIONS", "PRELUDE", "Arguments", "KernelCode", "Stage", "kernel_code"]

PRELUDE = Path(__file__).with_name("prelude.cuh")
# What every compiler of kernels is told. A product and a sum are rounded one after the other, as on
# a processor: where the compiler joins some of them, what one kernel computes again differs from
# what another has stored, and an element no longer equals the greatest of its row. Kernels ask for
# joined ones (`td_fma`) where only speed depends on it.
OPTIONS = ("--std=c++17", "--fmad=false")


@record(frozen=True, eq=False)
class Arguments:
    """What a function in CUDA C gets, as `Kernel` tells it of kernels.

    Attributes:
        buffers: its arrays.
        outputs: those that it writes.
        symbols: the sizes that follow.
    """

    buffers: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    symbols: tuple[str, ...]
    segmented: bool = False


@record(frozen=True)
class KernelCode:
    """A kernel in CUDA C.

    Attributes:
        name: that of the kernel; names of functions begin with it.
        text: of the functions, without the prelude.
        stages: the launches, one after the other, all with the same arguments.
        scratch: bytes of memory that the stages use among themselves, 0 for none.
        values: the buffers of rank 0 that are passed as numbers.
        arguments: what tells its buffers and symbols: the kernel, for kernels of the IR.
        segments: how many segments a launch of a segmented kernel has at most.
    """

    name: str
    text: str
    stages: tuple[Stage, ...]
    scratch: Dim
    values: frozenset[Buffer]
    arguments: Kernel | Arguments
    segments: int = 0


def kernel_code(
    kernel: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer] = frozenset(), segments: int = 1
) -> KernelCode:
    """The code of a kernel: of the kernels that `split` makes of it, those that are small and
    independent side by side in one launch.

    The parameters of its functions are a pointer for each buffer, or a number for those in
    `values`, then its symbols, then, where there is scratch memory, a pointer to it, at a multiple
    of 256 bytes. A segmented kernel has one stage and no scratch memory; its parameters are a
    struct with an array of structs with buffers and symbols as fields, in words of 8 bytes, one
    for each of its `segments`, each with the block that it begins with; and how many there are in
    this launch. Its blocks are those of one segment.

    Raises:
        Unsupported: there is no form for a GPU.
    """
    waves, scratch, most = _planned(kernel, name, gpu, values, segments)
    texts, stages = [], []
    for number, wave in enumerate(waves):
        functions = [write() for write in wave]
        texts += [f.text for f in functions]
        if len(wave) > 1:
            together = _together(f"{name}_wave{number}", functions, wave[0].writer)
            texts.append(together.text)
            functions = [together]
        stages.append(functions[0].stage)
    text = with_ordered_symbols("\n".join(texts), kernel.symbols)
    return KernelCode(name, text, tuple(stages), scratch, values, kernel, most)


def is_small(blocks: Dim, gpu: Gpu) -> bool:
    """Whether a function of so many blocks may share a launch: the device has multiprocessors left.

    The threads and memory of a block of the launch are those of the function that needs most of
    them, which would slow down others with more blocks.
    """
    return isinstance(blocks, int) and blocks < gpu.multiprocessors


def block_functions(
    kernel: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer], threads: int
) -> list[Function]:
    """The functions by which the threads of one block compute a kernel, one after the other: they
    are called with the numbers of their blocks, in turn. Other functions may change what the
    buffers hold in between.

    Raises:
        Unsupported: there is no form for a GPU.
    """
    alone = replace(gpu, multiprocessors=1, block=threads, most_block=threads)
    waves, scratch, _ = _planned(kernel, name, alone, values, 1, threads)
    if scratch != 0:
        raise Unsupported("a kernel whose blocks exchange what they find is none of one block")
    functions = [f for wave in waves for f in wave]
    for function in functions:
        function.shares = function.writer.aliased = True
    return [write() for write in functions]


def _planned(
    kernel: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer], segments: int, threads: int = 0
) -> tuple[list[list[_Function]], Dim, int]:
    """The functions of each launch, the bytes of their scratch memory, and the number of segments
    of a launch.

    Args:
        threads: of the only block, see `block_functions`; 0: there are as many as are needed.
    """
    if kernel.blocked:
        raise Unsupported("kernels of blocks of a matrix have no form for a GPU")
    memory, parts = Memory(), split(kernel)
    most = _most_segments(kernel, values, segments, gpu) if kernel.segmented else 0
    planned = []
    for number, part in enumerate(parts):
        own = f"{name}_{number}" if len(parts) > 1 else name
        planned.append(_Part(part, kernel, own, gpu, values, memory, most, threads))
    # All functions have the scratch memory as a parameter that any of them needs.
    waves = _waves(planned, gpu)
    for wave in waves:
        for function in wave:
            function.shares = len(wave) > 1
    return waves, memory.bytes, most


def _waves(parts: Sequence[_Part], gpu: Gpu) -> list[list[_Function]]:
    """The functions of each launch: small ones share a launch, unless one needs what another does.
    """
    waves: list[list[_Function]] = []
    ends: list[int] = []
    for number, part in enumerate(parts):
        before = (e for e, p in zip(ends, parts[:number], strict=True) if part.conflicts(p))
        place = max(before, default=0)
        for function in part.functions:
            small = is_small(function.blocks, gpu)
            while place < len(waves) and not (small and is_small(waves[place][0].blocks, gpu)):
                place += 1
            if place == len(waves):
                waves.append([])
            waves[place].append(function)
            place += 1
        ends.append(place)
    return waves


def _together(name: str, functions: Sequence[Function], writer: Writer) -> Function:
    """The function of a launch whose blocks are shared out to several functions, in their order."""
    stages = [f.stage for f in functions]
    threads, buffers = max(s.threads for s in stages), writer.whole.buffers
    lines = [
        f"{kernel_head(name, threads)}({', '.join(writer.parameters(buffers))}) {{",
        "  td_index block = blockIdx.x;",
    ]
    for function, stage in zip(functions, stages, strict=True):
        given = ", ".join([*(p.split()[-1] for p in writer.parameters(function.taken)), "block"])
        count = dim_text(stage.blocks)
        lines.append(f"  if (block < {count}) {{")
        if stage.threads < threads:
            lines.append(f"    if (threadIdx.x >= {stage.threads}) TD_LEAVE;")
        lines += [f"    {stage.name}({given});", "    return;", "  }", f"  block -= {count};"]
    lines[-1] = "}"
    blocks: Dim = sum((s.blocks for s in stages), 0)
    shared = max(s.shared for s in stages)
    stage = Stage(name, blocks, threads, shared, any(s.meets for s in stages))
    return Function("\n".join(lines), stage, buffers)


def _most_segments(kernel: Kernel, values: frozenset[Buffer], wanted: int, gpu: Gpu) -> int:
    """How many of the wanted segments one launch has room for among its parameters."""
    words = len(kernel.buffers) + len(kernel.symbols) + 1
    words += sum(b in values and b.dtype.size > 8 for b in kernel.buffers)
    room: int = (gpu.parameters - 8) // (8 * words)
    return max(1, min(wanted, room))


class _Part:
    """One of the kernels that a kernel is computed by, with its scratch memory.

    Attributes:
        functions: of its stages.
    """

    def __init__(
        self, kernel: Kernel, whole: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer],
        memory: Memory, segments: int, threads: int,
    ) -> None:  # fmt: skip
        self.kernel, self.gpu = kernel, gpu
        self.mapping = map_kernel(kernel, gpu)
        if threads:
            self.mapping = self.mapping.of_threads(threads, gpu)
        self.scratch = Scratch(self.mapping, memory)
        self.contraction, self.partial = None if threads else contraction_of(kernel), ""
        levels = [] if self.contraction else levels_of(kernel, self.mapping)
        for level in levels:
            for reduce in level:
                self.scratch.add(reduce)
        count = len(levels) + 1
        if self.contraction:
            self.tile = tile_of(self.contraction, gpu)
            self.count = product(a.extent for a in self.contraction.grid)
            if self.tile.parts > 1:
                count = 2
                found = self.contraction.sum
                first, elements = self.scratch.room(found, self.count * self.tile.parts)
                kind = value_type(found.dtype)
                places = f"{dim_text(first)}, {dim_text(elements)}"
                self.partial = f"td_scratch<{kind}>(scratch, {places})"
        form = Writer if self.contraction else _form(self.mapping)
        self.functions = [
            _Function(self, number, form(
                kernel, whole, f"{name}_{number}" if count > 1 else name, gpu, values,
                self.mapping, self.scratch, levels, number, segments,
            ))
            for number in range(count)
        ]  # fmt: skip

    def conflicts(self, other: _Part) -> bool:
        """Whether one stores into what the other one uses."""
        a, b = self.kernel, other.kernel
        stored = set(a.outputs), set(b.outputs)
        return bool(stored[0] & {*b.inputs, *b.outputs} or stored[1] & set(a.inputs))


class _Function:
    """The function of a stage of a part.

    Attributes:
        shares: whether its launch has other functions, too.
    """

    def __init__(self, part: _Part, number: int, writer: Writer) -> None:
        self.part, self.number, self.writer, self.shares = part, number, writer, False

    @property
    def blocks(self) -> Dim:
        """How many blocks it needs."""
        part = self.part
        if part.contraction is None:
            return self.writer.blocks()
        if self.number:
            return (part.count + part.gpu.block - 1) // part.gpu.block
        return blocks_of(part.contraction, part.tile)

    def __call__(self) -> Function:
        """Write it."""
        part, writer = self.part, self.writer
        if part.kernel.segmented:
            return writer.segmented()
        writer.shares = self.shares
        if part.contraction is None:
            return writer.function()
        if self.number:
            write_sums(writer, part.contraction, part.tile, part.partial)
            return writer.finished(self.blocks, part.gpu.block, 0, False)
        write_tiles(writer, part.contraction, part.tile, part.partial)
        shared = shared_bytes(part.contraction, part.tile)
        return writer.finished(self.blocks, part.tile.threads, shared, True)


def _form(mapping: Mapping) -> type[Writer]:
    if mapping.scanned:
        return ScanWriter
    return ScatterWriter if mapping.owners else Writer
