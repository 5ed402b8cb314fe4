"""What passes and the schedule ask of the machine; the error for graphs without a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Kernel
from treadle.ops import lowering
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.strided import View
from treadle.runtime.reach import Reach
from treadle.runtime.schedule.steps import Loop, Rows
from treadle.runtime.tuning import Tuning


class Unsupported(Exception):
    """The region cannot be compiled; the message says why."""


class Needs(NamedTuple):
    """Bytes of workspace that a kernel needs: for its threads together, and shared by them."""

    scratch: Dim
    shared: Dim


class Facts:
    """The answers of a machine to passes for a target and to the schedule. This class answers for
    one thread without a library, whose kernels need no workspace.

    Attributes:
        unified: whether the host computes in the registers and the memory of the device, as on a
            processor. Otherwise the host waits for the device when it reads a number of it: rank-0
            values reside where `treadle.runtime.schedule.residence` decides.
        even_columns: whether going down columns costs no more than going along rows.
        in_blocks: whether routines run epilogues on blocks of their results; else on results as a
            whole, where they do not do themselves what an epilogue is for.
        tuning: the record of the machine that code is fitted to, with the number of threads.
    """

    in_blocks: bool = True
    unified: bool = True
    even_columns: bool = False

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def routine_bytes(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Dim | None:
        """Workspace of the library routine for a node; None where there is none.

        apart: of the one that keeps its result in the workspace, for the epilogue only.
        views: how the operands lie in other arrays; none where each has memory of its own.
        """
        return None

    def reaches(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Sequence[Reach | None]:
        """Which elements of its operands and results the routine for a node touches, as far as
        its numbers tell; None for others, which it touches as a whole."""
        return ()

    def verdicts(self, node: Node) -> Dim | None:
        """How many verdicts on its input the routine for a node gives; None where it refuses
        nothing."""
        lower = node.op.lower
        if not isinstance(lower, lowering.Rows) or not lower.fails:
            return None
        specs = [v.spec for v in node.outputs]
        call = lower.call([v.spec for v in node.inputs], specs, node.attrs)
        return None if call is None else call.rows

    def takes_views(self, node: Node, views: Sequence[View]) -> bool:
        """Whether the routine for a node reads such views."""
        return False

    def panel_width(self, node: Node, times: int | None) -> int | None:
        """Columns of the panels in which the routine for a product reads its right factor, where it
        pays to lay the factor out in panels before; else None.

        Args:
            times: how often the product is computed with this factor; None: nobody knows.
        """
        return None

    def takes_epilogue(
        self, node: Node, views: Sequence[View], group: Group, stored: Sequence[Value]
    ) -> bool:
        """Whether the routine for a node does the work of a group that follows, too.

        Args:
            views: how the operands lie in other arrays; none where each has memory of its own.
            stored: the values of the group that are needed, and the node's result if it is.
        """
        return False

    def kernel_needs(self, kernel: Kernel) -> Needs | None:
        """Workspace of a kernel; None where it has no code, and the NumPy form of kernels runs."""
        return Needs(0, 0)

    def share_of_launch(self, kernel: Kernel, extent: int | None) -> float | None:
        """Which part of a launch a kernel takes, of 1, where it is so small that independent
        kernels are better one launch; None where it is launched alone.

        Args:
            extent: the value of a flat kernel's symbol.
        """
        return None

    def runs(self, node: Node, known: bool) -> bool:
        """Whether the device runs a loop or a branch by itself, with all that is in it: the host
        reads no number of it.

        Args:
            known: the host knows the way without reading anything of the device.
        """
        return False

    def parts_of_rows(self, rows: int, columns: int, dtype: DType) -> int | None:
        """Into how many equal parts the rows of an array are taken where columns are gone through
        twice, so that memory is read once; None where it makes no difference."""
        return None

    def is_few(self, kernel: Kernel, points: int) -> bool:
        """Whether one thread does all work of a kernel that has at most so many points."""
        return self.tuning.threads == 1

    def is_vector(self, kernel: Kernel, points: int) -> bool:
        """Whether a kernel computes so many points as one vector."""
        return False

    def rows(self, loop: Loop) -> Rows | None:
        """How threads share the rows of a loop's arrays; None where iterations mix them."""
        return None
