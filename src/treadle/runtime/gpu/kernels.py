"""The CUDA C of a kernel."""

from __future__ import annotations

from pathlib import Path

from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.gpu.contractions import (
    Contraction,
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
from treadle.runtime.gpu.writer import Writer
from treadle.runtime.schedule.facts import Unsupported

__all__ = ["PRELUDE", "Arguments", "KernelCode", "Stage", "kernel_code"]

PRELUDE = Path(__file__).with_name("prelude.cuh")


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
    """The code of a kernel.

    The parameters of its functions are a pointer for each buffer, or a number for those in
    `values`, then its symbols, then, where there is scratch memory, a pointer to it, at a multiple
    of 256 bytes. A segmented kernel has one stage and no scratch memory; its parameters are a
    struct with an array of structs with buffers and symbols as fields, in words of 8 bytes, one
    for each of its `segments`, each with the block that it begins with; and how many there are in
    this launch. Its blocks are those of one segment.

    Raises:
        Unsupported: there is no form for a GPU.
    """
    if kernel.blocked:
        raise Unsupported("kernels of blocks of a matrix have no form for a GPU")
    memory, parts = Memory(), split(kernel)
    most = _most_segments(kernel, values, segments, gpu) if kernel.segmented else 0
    planned = []
    for number, part in enumerate(parts):
        own = f"{name}_{number}" if len(parts) > 1 else name
        planned.append(_Part(part, kernel, own, gpu, values, memory, most))
    # All functions have the scratch memory as a parameter that any of them needs.
    texts, stages = zip(*(f for part in planned for f in part.functions()), strict=True)
    text = with_ordered_symbols("\n".join(texts), kernel.symbols)
    return KernelCode(name, text, stages, memory.bytes, values, kernel, most)


def _most_segments(kernel: Kernel, values: frozenset[Buffer], wanted: int, gpu: Gpu) -> int:
    """How many of the wanted segments one launch has room for among its parameters."""
    words = len(kernel.buffers) + len(kernel.symbols) + 1
    words += sum(b in values and b.dtype.size > 8 for b in kernel.buffers)
    room: int = (gpu.parameters - 8) // (8 * words)
    return max(1, min(wanted, room))


class _Part:
    """One of the kernels that a kernel is computed by, with its scratch memory."""

    def __init__(
        self, kernel: Kernel, whole: Kernel, name: str, gpu: Gpu, values: frozenset[Buffer],
        memory: Memory, segments: int,
    ) -> None:  # fmt: skip
        self.segments = segments
        self.kernel, self.whole, self.name, self.gpu, self.values = kernel, whole, name, gpu, values
        self.mapping = map_kernel(kernel, gpu)
        self.scratch = Scratch(self.mapping, memory)
        self.contraction, self.partial = contraction_of(kernel), ""
        self.levels = [] if self.contraction else levels_of(kernel, self.mapping)
        for level in self.levels:
            for reduce in level:
                self.scratch.add(reduce)
        if self.contraction:
            self.tile = tile_of(self.contraction, gpu)
            self.count = product(a.extent for a in self.contraction.grid)
            if self.tile.parts > 1:
                found = self.contraction.sum
                first, elements = self.scratch.room(found, self.count * self.tile.parts)
                kind = value_type(found.dtype)
                places = f"{dim_text(first)}, {dim_text(elements)}"
                self.partial = f"td_scratch<{kind}>(scratch, {places})"

    def functions(self) -> list[tuple[str, Stage]]:
        if self.contraction:
            return self._sums_of_products(self.contraction)
        count = len(self.levels) + 1
        form = _form(self.mapping)
        return [self._writer(form, n, count).function() for n in range(count)]

    def _writer(self, form: type[Writer], number: int, count: int) -> Writer:
        name = f"{self.name}_{number}" if count > 1 else self.name
        return form(
            self.kernel, self.whole, name, self.gpu, self.values, self.mapping, self.scratch,
            self.levels, number, self.segments,
        )  # fmt: skip

    def _sums_of_products(self, contraction: Contraction) -> list[tuple[str, Stage]]:
        tile, partial, block = self.tile, self.partial, self.gpu.block
        count = 2 if partial else 1
        writer = self._writer(Writer, 0, count)
        write_tiles(writer, contraction, tile, partial)
        blocks, shared = blocks_of(contraction, tile), shared_bytes(contraction, tile)
        stage = Stage(writer.name, blocks, tile.threads, shared, True)
        found = [(writer.whole_function(tile.threads), stage)]
        if partial:
            writer = self._writer(Writer, 1, count)
            write_sums(writer, contraction, tile, partial)
            stage = Stage(writer.name, (self.count + block - 1) // block, block, 0, False)
            found.append((writer.whole_function(block), stage))
        return found


def _form(mapping: Mapping) -> type[Writer]:
    if mapping.scanned:
        return ScanWriter
    return ScatterWriter if mapping.owners else Writer
