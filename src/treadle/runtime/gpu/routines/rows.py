"""Routines that do rows one by one: sorting, small matrices, counts, random numbers.

Each thread does a row, or several where rows need memory of their own. Results and verdicts are
those of a processor, whose routines have the same source.
"""

from __future__ import annotations

from treadle.core.shapes import Dim, compound, dim_symbols
from treadle.graph.ir import Node
from treadle.kernel.ir import Buffer
from treadle.ops.lowering import RowCall, Rows
from treadle.runtime.gpu.kernels import Arguments, KernelCode, Stage
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.arrays import array_routine
from treadle.runtime.gpu.routines.kernel import CodeRoutine
from treadle.runtime.gpu.routines.matrices import matrix_routine
from treadle.runtime.gpu.routines.routine import Routine
from treadle.runtime.gpu.routines.row_text import RowText, c_type, kind_of
from treadle.runtime.gpu.scalars import dim_text, element_type, with_ordered_symbols
from treadle.runtime.routines.subset import routine_named

_ALIGNED = 64  # bytes: what the workspace of a row begins at a multiple of, for any routine


def row_routine(node: Node, gpu: Gpu) -> Routine | None:
    """The routine for an op that does rows; None where there is none, or its verdicts have no
    output."""
    lower = node.op.lower
    assert isinstance(lower, Rows)
    inputs, outputs = [v.spec for v in node.inputs], [v.spec for v in node.outputs]
    if lower.fails:
        return None
    call = lower.call(inputs, outputs, node.attrs)
    large = matrix_routine(node, call, gpu)
    if large is not None or call is None:
        return large
    long = array_routine(node, lower.routine, call, gpu)
    return long or RowRoutine(node, lower.routine, call, gpu)


class RowRoutine(CodeRoutine):
    """A routine of `treadle.runtime.routines` on a GPU."""

    def __init__(self, node: Node, routine: str, call: RowCall, gpu: Gpu) -> None:
        super().__init__(routine, gpu)
        self.call = call
        arrays = [
            Buffer(f"a{n}", v.spec.dtype, v.spec.dims)
            for n, v in enumerate((*node.inputs, *node.outputs))
        ]
        symbols: dict[str, None] = {}
        for dim in (*(d for a in arrays for d in a.shape), call.rows, call.space,
                    *call.numbers.values()):  # fmt: skip
            symbols.update(dict.fromkeys(sorted(dim_symbols(dim))))
        outputs = tuple(arrays[len(node.inputs) :])
        self.arguments = Arguments(tuple(arrays), outputs, tuple(symbols))

    @property
    def workers(self) -> Dim:
        """How many threads there are: one for each row, but where rows need memory of their own no
        more than there are at the same time."""
        most = self.gpu.multiprocessors * self.gpu.warp
        return self.call.rows if self.call.space == 0 else compound("min", self.call.rows, most)

    @property
    def workspace(self) -> Dim:  # type: ignore[override]
        return self._space * self.workers

    def write(self, name: str) -> KernelCode:
        threads = self.gpu.block if self.call.space == 0 else self.gpu.warp
        blocks = (self.workers + (threads - 1)) // threads
        stage = Stage(name, blocks, threads, 0, False)
        text = with_ordered_symbols(self._text(name), self.arguments.symbols)
        return KernelCode(name, text, (stage,), self.workspace, frozenset(), self.arguments)

    @property
    def _space(self) -> Dim:
        """Bytes of a thread's workspace."""
        return (self.call.space + (_ALIGNED - 1)) // _ALIGNED * _ALIGNED

    def _text(self, name: str) -> str:
        names = {
            key: value if isinstance(value, int) else kind_of(value)
            for key, value in self.call.names.items()
        }
        text = RowText(name, names)
        inner, parameters, _ = text.add(routine_named(self.name))
        buffers = {b: f"b{n}" for n, b in enumerate(self.arguments.buffers)}
        listed = [
            f"TD_POINTER({'' if b in self.arguments.outputs else 'const '}"
            f"{element_type(b.dtype)}) {pointer}"
            for b, pointer in buffers.items()
        ]
        listed += [f"td_index {s}" for s in self.arguments.symbols]
        if self.workspace != 0:
            listed.append("TD_BYTES scratch")
        pointers = iter(buffers.items())
        given, own = [], {"first": "row", "last": "row + 1", "space": "space"}
        for parameter, kind in parameters:
            if parameter in own:
                given.append(own[parameter])
            elif kind.family == "p":
                buffer, pointer = next(pointers)
                given.append(f"(({c_type(kind)})td_raw({pointer}))")
            else:
                given.append(f"(td_index){dim_text(self.call.numbers[parameter])}")
        whole = "nullptr"
        lines = [
            text.text,
            f"TD_KERNEL {name}({', '.join(listed)}) {{",
            f"  const td_index rows = {dim_text(self.call.rows)};",
            f"  const td_index workers = {dim_text(self.workers)};",
            "  const td_index worker = (td_index)blockIdx.x * blockDim.x + threadIdx.x;",
            "  if (worker >= workers) return;",
        ]
        if self.workspace != 0:
            lines.append(f"  const td_index bytes = {dim_text(self._space)};")
            own_bytes = "td_scratch<unsigned char>(scratch, 0, workers * bytes)"
            whole = f"td_raw({own_bytes}) + worker * bytes"
        lines += [
            f"  unsigned char *const space = {whole};",
            "  for (td_index row = worker; row < rows; row += workers)",
            f"    {inner}({', '.join(given)});",
            "}",
        ]
        return "\n".join(lines)
