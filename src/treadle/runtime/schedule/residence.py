"""Where the rank-0 values of a program reside: in registers of the host or on the device.

The host reads numbers to decide how a program goes on: conditions, sizes, positions in lists,
operands of Python callbacks. On a device with registers and memory of its own such a read waits for
the device, so the residence of all numbers is decided before the graph is scheduled.

A number that the host reads is computed on the host where that needs no more waiting than fetching
the number itself: where all it is computed from is on the host, is an argument (which nothing
computes), or is fetched once, before the loop that the number is in. So are the numbers that it is
computed from. Every other number resides on the device, as arrays do; where the host reads one
nevertheless (a loss that ends a loop), that one is fetched.

Loops and branches that a device runs by itself have no number of the host inside, unless it comes
from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from treadle.core.records import record
from treadle.core.shapes import ANY
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import mentioned_symbols
from treadle.ops.control.checks import CHECK, NOTE, PLACE
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.lowering import ListAction
from treadle.runtime.roles import Role, bounds_in_data, is_number, role_of
from treadle.runtime.schedule.lists import list_form, puts_element


@record(frozen=True)
class Residence:
    """Attributes:
    host: the numbers that are computed in registers of the host.
    read: the numbers of the device that the host reads as well.
    noted: the checks whose failure the device notes; the host makes all others.
    alone: the loops and branches that the device runs by itself, those inside of them included.
    """

    host: frozenset[Value]
    read: frozenset[Value]
    noted: frozenset[Node]
    alone: frozenset[Node] = frozenset()


def find_residence(
    graph: Graph, native_lists: bool, sizes: AbstractSet[str] | None = None,
    runs: Callable[[Node, bool], bool] = lambda node, known: False,
) -> Residence:  # fmt: skip
    """Where the numbers of a graph reside.

    Args:
        native_lists: whether the program has code for lists, which are Python objects otherwise.
        sizes: the symbols that have values when the program begins; None where the host computes
            in the memory of the device, and makes all checks itself.
        runs: see `treadle.runtime.schedule.facts.Facts`.
    """
    search = _Search(graph, native_lists, sizes, frozenset())
    if sizes is None:
        return search.run()
    alone = frozenset(_run_alone(graph, search.without_fetches(), runs))
    return (_Search(graph, native_lists, sizes, alone) if alone else search).run()


def _run_alone(
    region: Region, known: Collection[Value], runs: Callable[[Node, bool], bool]
) -> Iterator[Node]:
    """The loops and branches that a device runs by itself.

    known: the numbers that the host computes without reading anything of the device.
    """
    for node in region.nodes:
        if node.op in (COND, WHILE) and runs(node, _way(node) in known):
            inner = (n for r in node.regions for n in r.walk())
            yield from (n for n in (node, *inner) if n.op in (COND, WHILE))
            continue
        for inside in node.regions:
            yield from _run_alone(inside, known, runs)


def _way(node: Node) -> Value:
    """The bool that a branch or a loop depends on."""
    return node.inputs[0] if node.op is COND else node.regions[0].results[0]


class _Search:
    """Attributes:
    sources: number -> those that it is computed from, for numbers that the host can compute.
    needs: number -> the sources that must be on the host already, or arguments.
    wanted: the numbers that the host reads, and those that only the host can make.
    notes: checks that the host makes where it has the verdict without any fetch, else the device.
    """

    def __init__(
        self, graph: Graph, native_lists: bool, sizes: AbstractSet[str] | None,
        alone: frozenset[Node],
    ) -> None:  # fmt: skip
        self.native_lists, self.sizes, self.alone = native_lists, sizes, alone
        self.arguments = set(graph.arguments)
        self.sources: dict[Value, Sequence[Value]] = {}
        self.needs: dict[Value, Sequence[Value]] = {}
        self.wanted: list[Value] = []
        self.notes: list[Node] = []
        for param in graph.params[len(graph.arguments) :]:
            self._add(param, ())  # a captured number is known when the program is made
        self._look_into(graph)

    def without_fetches(self) -> dict[Value, Sequence[Value]]:
        """The numbers that the host computes without reading anything of the device, with those
        that each is computed from."""
        found = dict(self.sources)
        _drop_unavailable(found, found, ())
        return found

    def run(self) -> Residence:
        _drop_unavailable(self.sources, self.needs, self.arguments)
        known = self.without_fetches()
        noted = frozenset(n for n in self.notes if n.inputs[0] not in known)
        for node in self.notes:
            self.wanted += () if node in noted else [v for v in node.inputs if v in known]
        host: set[Value] = set()
        read: set[Value] = set()
        stack = [v for v in self.wanted if is_number(v)]
        while stack:
            value = stack.pop()
            if value in host or value in read:
                continue
            if value not in self.sources:
                read.add(value)
                continue
            host.add(value)
            stack += self.sources[value]
            if value.node is not None and role_of(value.node) is Role.SCALAR:
                stack += value.node.outputs  # one step computes them
        return Residence(frozenset(host), frozenset(read), noted, self.alone)

    def _look_into(self, region: Region) -> None:
        for node in region.nodes:
            if node in self.alone:
                inner = (n for r in node.regions for n in r.walk())
                self.notes += [n for n in inner if self._can_be_noted(n)]
                continue
            self._look_at(node)
            for inside in node.regions:
                self._look_into(inside)

    def _can_be_noted(self, node: Node) -> bool:
        return self.sizes is not None and _can_be_noted(node, self.sizes)

    def _add(
        self, value: Value, sources: Sequence[Value], needs: Sequence[Value] | None = None
    ) -> None:
        if is_number(value) and not value.spec.dtype.is_complex:
            self.sources[value] = sources
            self.needs[value] = sources if needs is None else needs

    def _look_at(self, node: Node) -> None:
        if self._can_be_noted(node):
            self.notes.append(node)
            return
        self.wanted += host_reads(node, self.native_lists)
        role = role_of(node)
        if role is Role.CONSTANT:
            self._add(node.outputs[0], ())
        elif role is Role.SCALAR and all(map(is_number, node.inputs)):
            for value in node.outputs:
                self._add(value, node.inputs)
        elif role is Role.ALIAS and is_number(node.inputs[0]):
            self._add(node.outputs[0], node.inputs)
        elif role is Role.CALL or (role is Role.LIST and self._is_born_on_host(node)):
            for value in node.outputs:
                self._add(value, ())
            if role is Role.LIST or node.op is PLACE:
                self.wanted += node.outputs
        elif node.op is COND:
            self._branches(node)
        elif node.op is WHILE:
            self._loop(node)

    def _is_born_on_host(self, node: Node) -> bool:
        form = list_form(node)
        return not self.native_lists or (form is not None and form.action is ListAction.LENGTH)

    def _branches(self, node: Node) -> None:
        for region in node.regions:
            for param, value in zip(region.params, node.region_inputs, strict=True):
                self._add(param, [value])
        for out, *results in zip(node.outputs, *(r.results for r in node.regions), strict=True):
            self._add(out, results)

    def _loop(self, node: Node) -> None:
        """A loop variable begins with a number that is fetched once, before the loop; the number
        that an iteration leaves in it must be on the host."""
        condition, body = node.regions
        for param, start in zip(body.params, node.inputs, strict=True):
            changed = body.results[param.index : param.index + 1]
            self._add(param, [start, *changed], changed)
        for seen, param in zip(condition.params, body.params, strict=True):
            self._add(seen, [param])
        for out, param in zip(node.outputs, body.params, strict=False):
            self._add(out, [param])


def _drop_unavailable(
    sources: dict[Value, Sequence[Value]], needs: Mapping[Value, Sequence[Value]],
    given: Collection[Value],
) -> None:  # fmt: skip
    """Leave to the device the numbers that need one of the device, which is neither `given`."""
    readers: dict[Value, list[Value]] = {}
    for value in sources:
        for source in needs[value]:
            readers.setdefault(source, []).append(value)
    stack = [v for v in readers if v not in sources and v not in given]
    while stack:
        for value in readers.get(stack.pop(), ()):
            if sources.pop(value, None) is not None:
                stack.append(value)


def host_reads(node: Node, native_lists: bool) -> Iterator[Value]:
    """The operands of a node that the host reads, lists and arrays of Python callbacks included. Of
    a check it reads the verdict only: other operands are read where the check fails."""
    role = role_of(node)
    if role in (Role.COND, Role.SIZE) or may_refuse(node):
        yield node.inputs[0]
    elif role is Role.WHILE:
        yield node.regions[0].results[0]
    elif role is Role.CALL or (role is Role.LIST and not native_lists):
        yield from node.inputs
    elif role is Role.LIST:
        yield from node.inputs[:-1] if puts_element(node) else node.inputs
    else:
        yield from bounds_in_data(node)


def may_refuse(node: Node) -> bool:
    """Whether a node does nothing but raise an error, as its first operand tells."""
    return node.op in (CHECK, PLACE) or "asserts" in node.op.tags


def _can_be_noted(node: Node, sizes: AbstractSet[str]) -> bool:
    """Whether a device can note the failure of a check: a kernel can keep the operands that its
    error shows, whose sizes are known when the program begins."""
    if node.op is NOTE:
        return True
    if node.op is PLACE or not may_refuse(node):
        return False
    specs = [v.spec for v in node.inputs]
    kept = all(isinstance(s, TensorSpec) and not s.dtype.is_complex for s in specs)
    symbols = mentioned_symbols(node) | mentioned_symbols(node.attrs.get("of", node))
    return kept and ANY not in (d for s in specs for d in s.dims) and symbols <= sizes
