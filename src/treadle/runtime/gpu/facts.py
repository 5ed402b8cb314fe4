"""What passes and the schedule must know of a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, substitute
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Kernel
from treadle.ops.control.control_flow import WHILE
from treadle.ops.lowering import Rows
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.space import index_at
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.finish import finishing
from treadle.runtime.gpu.kernels import is_small, kernel_code
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.one_block import fits_one_block
from treadle.runtime.gpu.recorded_control import fits_recording
from treadle.runtime.gpu.routines import matrices, routine_for
from treadle.runtime.reach import Reach
from treadle.runtime.schedule.facts import Facts, Needs, Unsupported
from treadle.runtime.tuning import NEVER, Cache, Tuning


class GpuFacts(Facts):
    """A GPU: it has memory of its own, and its kernels share nothing with the host.

    Attributes:
        blocks: of the launches of kernels that were asked about.
    """

    in_blocks = False
    unified = False
    even_columns = True

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(tuning_of(gpu))
        self.gpu = gpu
        self.blocks: dict[Kernel, list[Dim]] = {}

    def routine_bytes(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Dim | None:
        routine = None if apart else routine_for(node, views, self.gpu)
        return None if routine is None else routine.workspace

    def reaches(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Sequence[Reach | None]:
        routine = routine_for(node, views, self.gpu)
        return () if routine is None else routine.reaches

    def takes_epilogue(
        self, node: Node, views: Sequence[View], group: Group, stored: Sequence[Value]
    ) -> bool:
        (result,), buffers = node.outputs, group.build.buffers
        if result in stored or not stored or any(v.spec != result.spec for v in stored):
            return False
        dims = result.spec.dims
        found = finishing(
            [group.values[v] for v in stored], lambda e: buffers[e.buffer] is result,
            index_at(dims, range(len(dims))),
        )  # fmt: skip
        routine = None if found is None else routine_for(node, views, self.gpu)
        return routine is not None and found is not None and routine.takes(found.finish)

    def verdicts(self, node: Node) -> Dim | None:
        lower = node.op.lower
        if not isinstance(lower, Rows) or not lower.fails:
            return None
        count = super().verdicts(node)
        return matrices.verdicts(node) if count is None else count

    def takes_views(self, node: Node, views: Sequence[View]) -> bool:
        return routine_for(node, views, self.gpu) is not None

    def kernel_needs(self, kernel: Kernel) -> Needs | None:
        if kernel not in self.blocks:
            try:
                stages = kernel_code(kernel, "k", self.gpu, segments=1).stages
            except Unsupported:
                return None
            self.blocks[kernel] = [stage.blocks for stage in stages]
        return Needs(0, 0)

    def share_of_launch(self, kernel: Kernel, extent: int | None) -> float | None:
        if self.kernel_needs(kernel) is None:
            return None
        sizes = {} if extent is None else {"n": extent}
        if not all(is_small(substitute(n, sizes), self.gpu) for n in self.blocks[kernel]):
            return None
        size = sum(max(8, int(b.dtype.size)) for b in kernel.buffers)
        return size / (self.gpu.parameters - 8)  # one pointer is to scratch memory

    def runs(self, node: Node, known: bool) -> bool:
        if fits_one_block(node, self.gpu):
            return node.op is WHILE or not known
        return not known and self.gpu.decides and fits_recording(node, self.gpu)

    def parts_of_rows(self, rows: int, columns: int, dtype: DType) -> int | None:
        """So many that the device is full and the threads of a warp keep the elements of a column,
        but each with rows enough."""
        gpu, size = self.gpu, int(dtype.size)
        if not dtype.is_floating or size < 4 or columns * size < gpu.sector:
            return None
        least = max(gpu.multiprocessors * gpu.warp // columns, rows * size // (gpu.kept * gpu.warp))
        most = rows // (4 * gpu.elements)
        return next((n for n in range(max(least, 2), most + 1) if rows % n == 0), None)

    def is_few(self, kernel: Kernel, points: int) -> bool:
        return False


def tuning_of(gpu: Gpu) -> Tuning:
    """The record as passes and fusion read it: rows that fit the memory of a block stay there as
    rows stay in the first cache of a processor. What only a processor's code is fitted to has the
    numbers of none."""
    near = Cache(gpu.shared, 32, gpu.load * gpu.warp)
    return Tuning(
        family=gpu.name, vector_bits=8 * gpu.load, registers=gpu.warp, l1=near, l2=near, l3=near,
        fma=1, loads=1, latency=4, window=gpu.warp, copy=gpu.load, moving=gpu.warp, far=gpu.block,
        meeting=gpu.block, spins=1, pack_rows=1, pack_colliding=1, pack_columns=1, wide_rows=1,
        fill_rows=1, alike_rows=1, far_rows=NEVER, pages=64,
    )  # fmt: skip
