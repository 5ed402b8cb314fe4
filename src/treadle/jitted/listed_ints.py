"""Python ints that a loop multiplies by way of lists, or of loops inside of it: where they leave 64
bits, the program raises.

``ways[i] = ways[i - 1] + ways[i - 2]`` makes ints grow as ``a, b = b, a + b`` does, which
`growing_ints` has: an item of the list is computed of items of the same list in earlier iterations,
of which one is multiplied, or two are added. Such cycles may go through inner loops
(``total += ways[j] * ways[i - j]``, and then ``ways[i] = total``), so they are looked for in the
finished graph: as values that depend on themselves, by operations whose result grows as their
operands do. There the program compares at once, since what a list holds may be used anywhere.

While the function is traced, `note` tells which values are ints of Python's: NumPy's wrap around.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from treadle.core import dtypes
from treadle.core.interrupts import is_mode
from treadle.core.origin import at
from treadle.core.spec import ListSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.jitted.growing_ints import exact_result, multiplies, overflow
from treadle.ops.control.raising import RAISE

# Operations that give (parts of) their first operand: numbers of it, or lists with other sizes.
_PARTS = frozenset({
    "identity", "negative", "abs", "index", "gather", "slice", "reshape", "list_get", "list_stack",
    "list_unstack", "list_truncate", "list_extend", "reduce_sum", "broadcast_to", "transpose",
    "squeeze", "expand_dims", "strided_slice",
})  # fmt: skip
# Operations whose result is the first operand, with the last one at some positions.
_CHANGES = frozenset({"index_update", "list_set", "list_push", "list_scatter"})
# Operations of which all operands are numbers, or lists of numbers, that the result is made of.
_WHOLES = frozenset({
    "add", "subtract", "multiply", "maximum", "minimum", "concat", "stack", "list_add",
})  # fmt: skip


class _Noted(threading.local):
    """The values of the function that is traced which are ints of Python's, or lists of such."""

    def __init__(self) -> None:
        self.values: set[Value] = set()


noted = is_mode(_Noted())


def note(tensor: Tensor) -> None:
    """Note that a tensor holds ints of Python's, which do not wrap around."""
    value = getattr(tensor, "value", None)
    if tensor.dtype is dtypes.int64 and isinstance(value, Value):
        noted.values.add(value)


def check_growth(graph: Graph) -> None:
    """Have a finished graph raise where ints that were noted leave 64 bits, as far as they grow in
    loops by way of lists or of inner loops."""
    if not noted.values or not any(node.op.name == "while" for node in graph.walk()):
        return
    for group in _circles(_Sources(graph).of):
        own = set(group)
        if own.isdisjoint(noted.values) or not _is_long(group):
            continue
        for value in group:
            node = value.node
            if node is None or node.op.name not in ("add", "subtract", "multiply"):
                continue
            if multiplies(node, node.inputs, [v in own for v in node.inputs]):
                _check(node)


def _is_long(group: Sequence[Value]) -> bool:
    """Whether values that depend on themselves do so by a list, or through an inner loop: others
    are numbers that one loop carries, which know by themselves whether they are exact."""
    bodies = {v.producer for v in group if isinstance(v.producer, Region)}
    whiles = [v for v in group if v.node is not None and v.node.op.name == "while"]
    return bool(bodies) and (bool(whiles) or any(_is_list(v) for v in group))


def _is_list(value: Value) -> bool:
    return isinstance(value.spec, ListSpec) or value.spec.rank != 0


def _check(node: Node) -> None:
    """Raise behind an operation whose result is not the true one."""
    region = node.region
    assert region is not None
    size = len(region.nodes)
    exact = exact_result(node)
    raised = overflow(at(node.origin))
    region.append(Node(RAISE, [exact], {"raised": raised}, (), (), node.origin))
    added = region.nodes[size:]
    del region.nodes[size:]
    place = region.nodes.index(node) + 1
    region.nodes[place:place] = added


class _Sources:
    """For each int64 value of a graph, or list of such, those that it is made of.

    Attributes:
        of: the sources by value.
    """

    def __init__(self, graph: Graph) -> None:
        self.of: dict[Value, list[Value]] = {}
        for node in graph.walk():
            if node.op.name == "while":
                self._loop(node)
            elif node.op.name == "cond":
                self._branches(node)
            else:
                self._operation(node)

    def _add(self, value: Value, sources: Iterable[Value]) -> None:
        if value.spec.dtype is dtypes.int64:
            found = self.of.setdefault(value, [])
            found += [v for v in sources if v.spec.dtype is dtypes.int64]

    def _operation(self, node: Node) -> None:
        name, inputs = node.op.name, node.inputs
        if name in _WHOLES:
            sources: Sequence[Value] = inputs
        elif name in _PARTS:
            sources = inputs[:1]
        elif name in _CHANGES:
            sources = [inputs[0], inputs[-1]]
        elif name == "where":
            sources = inputs[1:]
        else:
            return
        for value in node.outputs:
            self._add(value, sources)

    def _loop(self, node: Node) -> None:
        body = node.regions[1]
        for param, operand in zip(body.params, node.inputs, strict=True):
            self._add(param, [operand])
        for output, operand in zip(node.outputs, node.inputs, strict=False):
            ended = body.results[output.index]
            self._add(output, [operand, ended])
            self._add(body.params[output.index], [ended])

    def _branches(self, node: Node) -> None:
        for region in node.regions:
            for param, operand in zip(region.params, node.region_inputs, strict=True):
                self._add(param, [operand])
            for output in node.outputs:
                self._add(output, [region.results[output.index]])


def _circles(sources: dict[Value, list[Value]]) -> Iterator[list[Value]]:
    """Values that are made of one another: the strongly connected parts of more than one value
    (Tarjan's algorithm, with a stack of its own for graphs that are deep)."""
    number: dict[Value, int] = {}
    lowest: dict[Value, int] = {}
    open_values: list[Value] = []
    is_open: set[Value] = set()
    for root in sources:
        if root in number:
            continue
        path: list[tuple[Value, Iterator[Value]]] = []
        following: Value | None = root
        while following is not None or path:
            if following is not None:
                number[following] = lowest[following] = len(number)
                open_values.append(following)
                is_open.add(following)
                path.append((following, iter(sources.get(following, ()))))
            value, rest = path[-1]
            following = None
            for source in rest:
                if source not in number:
                    following = source
                    break
                if source in is_open:
                    lowest[value] = min(lowest[value], number[source])
            if following is not None:
                continue
            path.pop()
            if path:
                outer = path[-1][0]
                lowest[outer] = min(lowest[outer], lowest[value])
            if lowest[value] == number[value]:
                group = [open_values.pop()]
                while group[-1] is not value:
                    group.append(open_values.pop())
                is_open.difference_update(group)
                if len(group) > 1:
                    yield group
