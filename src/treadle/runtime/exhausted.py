"""The errors of programs that cannot have the memory they need.

They name the bytes asked for, the operation and the user's line where these are known, and
the memory that the call had planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core.errors import ResourceExhaustedError
from treadle.core.origin import Origin, at, failed_at
from treadle.core.shapes import Dim, product, substitute
from treadle.core.spec import Spec, spec_text
from treadle.graph.ir import Graph, Node
from treadle.runtime.memory.use import PARTS, Array, Maker, MemoryUse, largest, size_text


def no_workspace(
    graph: Graph, use: MemoryUse | None, sizes: Mapping[str, Dim]
) -> ResourceExhaustedError:
    """There is none for the temporaries; nothing has run."""
    use = None if use is None else use.at(sizes)
    found = None if use is None else use.largest
    amount = "its temporaries" if use is None else f"{_bytes(use.workspace)} of temporaries"
    return _not_begun(f"{graph.name}: there is no memory for {amount}", use, found)


def no_results(
    graph: Graph, specs: Mapping[int, Spec], use: MemoryUse | None, sizes: Mapping[str, Dim]
) -> ResourceExhaustedError:
    """There is none for the results, which have these specs; nothing has run."""
    use = None if use is None else use.at(sizes)
    arrays = [_result(graph, number, spec, sizes) for number, spec in specs.items()]
    total: Dim = 0
    for array in arrays:
        total = total + array.bytes
    found = largest(arrays)
    text = f"{graph.name}: there is no memory for {_bytes(total)} of results"
    return _not_begun(text, use, found)


def no_array(
    graph: Graph, made_by: Maker | None, wanted: int | str, use: MemoryUse | None,
    sizes: Mapping[str, Dim],
) -> ResourceExhaustedError:  # fmt: skip
    """There is none for an array or list whose size was found out; steps before it have run.

    Args:
        wanted: the bytes asked for, or a text about them.
    """
    use = None if use is None else use.at(sizes)
    which = "" if made_by is None else f" for {made_by.op}"
    amount = wanted if isinstance(wanted, str) else f"another {_bytes(wanted)}"
    text = f"{graph.name}: there is no memory{which}: {amount}"
    return _error(text, use, "Assignments made before that stay", made_by)


def _not_begun(text: str, use: MemoryUse | None, found: Array | None) -> ResourceExhaustedError:
    """`found`: the largest array that there is no memory for."""
    if found is not None:
        op = "" if found.maker is None else f" of {found.maker.op}"
        text = f"{text}, the largest {_bytes(found.bytes)}, {found.text}{op}"
    made_by = None if found is None else found.maker
    return _error(text, use, "Nothing has been computed or assigned", made_by)


def _result(graph: Graph, number: int, spec: Spec, sizes: Mapping[str, Dim]) -> Array:
    size = substitute(product(spec.dims) * spec.dtype.size, dict(sizes))
    node = graph.results[number].producer
    return Array(size, spec_text(spec), _maker(node) if isinstance(node, Node) else None)


def _maker(node: Node) -> Maker:
    return Maker(node.op.name, node.origin)


def _error(
    text: str, use: MemoryUse | None, state: str, made_by: Maker | None
) -> ResourceExhaustedError:
    origin = None if made_by is None else made_by.origin
    place = origin if isinstance(origin, Origin) else None
    plan = "" if use is None else f"\n  {_planned(use)}"
    error = ResourceExhaustedError(None, None, f"{text}{at(place)}{plan}\n  {state}.")
    return failed_at(place, error)


def _planned(use: MemoryUse) -> str:
    parts = [f"{name} {size_text(getattr(use, name))}" for name in PARTS if getattr(use, name) != 0]
    found = ", and what it finds out to need" if use.grows else ""
    return f"A call needs {_bytes(use.peak)} in all ({', '.join(parts)}){found}."


def _bytes(size: Any) -> str:
    return f"{size_text(size)} bytes"
