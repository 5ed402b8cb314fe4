"""Splits a traced computation and its gradient into a forward and a backward part.

The nodes that depend on output gradients are the backward part; all others are forward. What the
backward part reads of the forward part is saved, or computed again where that is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any

from treadle.core.records import record
from treadle.core.shapes import symbol_name
from treadle.core.spec import Spec, TensorSpec
from treadle.graph.ir import Node, Region, Value
from treadle.graph.rewrite import all_attr_symbols, attr_symbols, symbol_tellers
from treadle.ops.lowering import Compute, Structure

_MOST_NODES = 12  # a longer chain is not called cheap
_UNKNOWN_DIM = 64  # the size of a symbolic dim where sizes are compared


@record
class Partition:
    """How a joint region is split.

    Attributes:
        forward: the nodes that the results, the saved values and effects need.
        backward: the nodes of the gradient, the ones computed again among them.
        saved: the values that pass from forward to backward.
        free: the parameters that the backward part reads and that need no saving.
    """

    forward: list[Node]
    backward: list[Node]
    saved: list[Value]
    free: list[Value]


@record
class Joint:
    """A region that computes results and, from gradients of them, gradients of parameters.

    Attributes:
        region: the nodes; its results are `forward_results` and then the gradients.
        forward_results: how many of the results belong to the forward part.
        unknown: the parameters that hold output gradients.
        free: the parameters that the backward part can read without saving.
        captured: the parameters that stand for outer tensors, with those.
        forward_effects: the nodes with effects that belong to the forward part.
        mentioned: symbolic dims that the backward part needs to know in any case.
        repeats: the backward part computes everything again; of lists only the lengths are saved.
    """

    region: Region
    forward_results: int
    unknown: Sequence[Value]
    free: Sequence[Value]
    captured: Mapping[Value, Any] = field(default_factory=dict)
    forward_effects: frozenset[Node] = frozenset()
    mentioned: Set[str] = frozenset()
    repeats: bool = False


def partition(joint: Joint, cheap: Callable[[Node], bool]) -> Partition:
    """Split a joint region.

    Args:
        cheap: which forward nodes may be computed again in the backward part.
    """
    return _split(joint, lambda needed: _Saver(set(joint.free), cheap).choose(needed))


def repeated(joint: Joint) -> Partition:
    """Split a joint region so that only parameters are saved, and all else is computed again."""

    tellers = _tellers(joint)

    def choose(needed: Sequence[Value]) -> tuple[list[Value], list[Node]]:
        free, backward = set(joint.free), set(_backward_nodes(joint))
        again = _live(tellers, [n for n in joint.region.nodes if n not in backward], needed)
        read = _unique(v for v in [*(v for n in again for v in n.inputs), *needed])
        return [v for v in read if v.node is None and v not in free], again

    return _split(joint, choose)


def _split(
    joint: Joint, choose: Callable[[Sequence[Value]], tuple[list[Value], list[Node]]]
) -> Partition:
    """`choose` gives the values to save and the nodes to compute again, for the needed values."""
    region, tellers = joint.region, _tellers(joint)
    backward = _backward_nodes(joint)
    gradients = region.results[joint.forward_results :]
    backward = _live(tellers, backward, gradients)
    made = {v for node in backward for v in node.outputs} | set(joint.unknown)
    needed = _unique(
        v for v in [*(v for n in backward for v in n.inputs), *gradients] if v not in made
    )
    saved, again = choose(needed)
    inside = set(backward) | set(again)
    both = [node for node in region.nodes if node in inside]
    forward = [node for node in region.nodes if node not in set(backward)]
    saved += _binders(joint, both, forward, saved)
    forward = _live(tellers, forward, [*region.results[: joint.forward_results], *saved])
    reads = {v for node in both for v in node.inputs} | set(gradients)
    return Partition(forward, both, saved, [v for v in joint.free if v in reads])


def _backward_nodes(joint: Joint) -> list[Node]:
    """The nodes that depend on an output gradient, and effects that the gradient's code has."""
    unknown = set(joint.unknown)
    found = []
    for node in joint.region.nodes:
        late = node.has_effect and node not in joint.forward_effects
        if late or any(v in unknown for v in node.inputs):
            found.append(node)
            unknown.update(node.outputs)
    return found


def _tellers(joint: Joint) -> dict[Node, set[str]]:
    """The nodes of a joint region that tell symbols first."""
    region = joint.region
    known = (s for p in region.params for s in p.spec.symbols())
    return symbol_tellers(region.nodes, known)[1]


def _live(
    tellers: Mapping[Node, set[str]], nodes: Sequence[Node], results: Iterable[Value]
) -> list[Node]:
    """The nodes that the results or effects need, in order, and those of `tellers` whose symbols
    these mention."""
    wanted = set(results)
    mentioned: set[str] = set()
    kept = []
    for node in reversed(nodes):
        tells = node in tellers and not mentioned.isdisjoint(tellers[node])
        if node.has_effect or tells or any(v in wanted for v in node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
            if tellers:
                mentioned |= all_attr_symbols(node)
    return kept[::-1]


def _binders(
    joint: Joint, backward: Sequence[Node], forward: Sequence[Node], saved: Sequence[Value]
) -> list[Value]:
    """Values to save because the backward part mentions a symbolic dim that only they tell."""
    told = _told(saved)
    # A saved value whose size is an expression does not tell the symbols in it.
    wanted = {s for v in saved for s in v.spec.symbols()}
    wanted = (wanted | _unknown_symbols(backward, told) | joint.mentioned) - told
    if not wanted:
        return []
    given = _told(joint.free) | (_told(joint.unknown) - joint.mentioned)
    smallest: dict[str, Value] = {}
    for value in [*joint.region.params, *(v for n in forward for v in n.outputs)]:
        for dim in value.spec.dims if isinstance(value.spec, TensorSpec) else ():
            name = symbol_name(dim)
            if name in wanted - given and (
                name not in smallest or _size(value) < _size(smallest[name])
            ):
                smallest[name] = value
    return [v for v in _unique(smallest.values()) if v not in saved]


def _unknown_symbols(nodes: Sequence[Node], known: set[str]) -> set[str]:
    """The symbols that attributes mention before any value among `nodes` has them as a dim."""
    found: set[str] = set()
    for node in nodes:
        found |= attr_symbols(node.attrs) - known
        for region in node.regions:
            found |= _unknown_symbols(region.nodes, known | _told(region.params))
        known = known | _told(node.outputs)
    return found


def _told(values: Iterable[Value]) -> set[str]:
    """The symbols that are sizes of values by themselves."""
    names = (symbol_name(d) for v in values for d in getattr(v.spec, "dims", ()))
    return {name for name in names if name is not None}


def _unique(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))


class _Saver:
    """Decides for each value that the backward part needs: save it, or compute it again."""

    def __init__(self, free: set[Value], cheap: Callable[[Node], bool]) -> None:
        self.free = free
        self.cheap = cheap
        self.saved: dict[Value, None] = {}

    def choose(self, needed: Sequence[Value]) -> tuple[list[Value], list[Node]]:
        """(the values to save, the nodes to compute again)."""
        chains: dict[Value, tuple[list[Node], list[Value]]] = {}
        for value in needed:
            if value in self.free:
                continue
            chain = self._chain(value)
            if chain is None:
                self.saved[value] = None
            else:
                chains[value] = chain
        again: dict[Node, None] = {}
        for value, (nodes, leaves) in chains.items():
            missing = [v for v in leaves if v not in self.saved]
            if sum(map(_size, missing)) > _size(value) or (missing and value.node is None):
                self.saved[value] = None
                continue
            if len(missing) == 1 and _size(missing[0]) == _size(value):
                self.saved[value] = None  # the same memory, and nothing to compute
                continue
            self.saved.update(dict.fromkeys(missing))
            again.update(dict.fromkeys(nodes))
        kept = [n for n in again if not all(v in self.saved for v in n.outputs)]
        return list(self.saved), kept

    def _chain(self, value: Value) -> tuple[list[Node], list[Value]] | None:
        """The cheap nodes that lead to `value` and the values these start from; None where the
        value itself is no result of a cheap node."""
        nodes: dict[Node, None] = {}
        leaves: dict[Value, None] = {}
        todo = [value]
        while todo:
            at = todo.pop()
            if at in self.free:
                continue
            node = at.node
            if node is None or not (self.cheap(node) or self._reads_free(node)):
                if at is value:
                    return None
                leaves[at] = None
            elif node not in nodes:
                nodes[node] = None
                todo.extend(node.inputs)
                if len(nodes) > _MOST_NODES:
                    return None
        return list(nodes), list(leaves)

    def _reads_free(self, node: Node) -> bool:
        """Whether a node takes a part of an array or list that need not be saved."""
        return "selects" in node.op.tags and node.inputs[0] in self.free


def _size(value: Value) -> int:
    """The bytes of a value, with a guess for symbolic dims."""
    spec: Spec = value.spec
    dims = [d if isinstance(d, int) else _UNKNOWN_DIM for d in spec.dims]
    size: int = math.prod(dims) * spec.dtype.size
    return size


def is_cheap(node: Node) -> bool:
    """Whether computing a node again costs about as much as loading its result."""
    if node.regions or node.op.effect is not None:
        return False
    lower = node.op.lower
    return "cheap" in node.op.tags or (isinstance(lower, Compute) and lower.kind == "view")


def is_recomputable(node: Node) -> bool:
    """Whether a branch may compute the node again: it is pure and no loop, matmul or the like."""
    lower = node.op.lower
    computed = isinstance(lower, Compute) or lower is Structure.CONSTANT
    return node.is_pure and not node.regions and computed
