"""The compiler's driver: passes, schedule, code; the interpreter where that is not possible."""

from __future__ import annotations

from treadle.graph.ir import Graph
from treadle.runtime.executable import Executable, InterpretedExecutable
from treadle.runtime.options import Options


def compile_graph(graph: Graph, options: Options | None = None) -> Executable:
    """See `treadle.runtime.compile`."""
    options = options or Options()
    return InterpretedExecutable(graph, "no compiler", options.check_numerics)
