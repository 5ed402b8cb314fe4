"""A warning for Python loops that were unrolled into a large graph."""

from __future__ import annotations

import os
import warnings
from collections import Counter

from treadle.autograph.loop_notes import loop_notes
from treadle.core.origin import Origin, is_internal
from treadle.graph.ir import Graph
from treadle.ops.registry import Op

MANY_OPERATIONS = 2000  # in a graph
MANY_REPEATS = 500  # of one kind of operation at one line
# Parts of treadle that loop over layers and variables by themselves.
_LOOPING = ("keras", "compat", "train", "distribute")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple(os.path.join(_PACKAGE, name) + os.sep for name in _LOOPING)


def operations(graph: Graph) -> int:
    """How many operations a graph has, those inside loops and branches included."""
    return sum(1 for _ in graph.walk())


def warn_of_unrolled_loop(graph: Graph, size: int) -> None:
    """Warn where one line of a trace gave very many operations: a Python loop went around it."""
    if size < MANY_OPERATIONS:
        return
    unrolled = [n for n in loop_notes(graph) if not n.rolled]
    counts: Counter[tuple[str, int, Op]] = Counter()
    places: dict[tuple[str, int, Op], Origin] = {}
    for node in graph.walk():
        if node.origin is not None and (unrolled or not _in_library(node.origin)):
            key = (node.origin.file, node.origin.line, node.op)
            counts[key] += 1
            places[key] = node.origin
    if not counts:
        return
    (key, count), *_ = counts.most_common(1)
    if count < MANY_REPEATS:
        return
    place = places[key]
    reason = max(unrolled, key=lambda n: n.times * (n.trips or 0)).reason if unrolled else ""
    why = f" because {reason}" if reason else ""
    name = key[2].name
    warnings.warn_explicit(
        f"the graph of {graph.name!r} has {size} operations, {count} times {name!r} from one "
        f"line: a Python loop around it was unrolled{why}, which makes tracing and compiling slow. "
        f"Loop over td.range(...) or a tensor to keep it a loop\n  at {place.describe()}",
        RuntimeWarning,
        place.file,
        place.line,
    )


def _in_library(origin: Origin) -> bool:
    """Whether the user's line called a part of treadle that called the operation."""
    if origin.stack is None:
        return False
    for code in origin.stack.frames[::2]:
        if not is_internal(code.co_filename):
            return False
        if code.co_filename.startswith(_LIBRARIES):
            return True
    return False
