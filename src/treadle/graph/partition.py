"""From a graph of several replicas, which have a device each, to a graph for each device.

The replicas of a process are traced into one graph (`treadle.distribute`), whose nodes say which
replica they are for. Here each device gets the nodes of its replica, and those that are for all:
these compute the same everywhere. A value that one device has and another one, or all of them,
need is passed on where it is made (`COMMON`). Loops and branches that are for all are in every
graph, with the loop variables that are for all and those of its own device; so all devices make
the same iterations, and meet in the same exchanges in the same order.

A node that says nothing is where its operands are: on the device of the variable that it takes, or
of the only replica whose values it takes; else it is for all, or on the first device where it has
effects, which happen once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core import errors
from treadle.core.devices import Device
from treadle.core.origin import at
from treadle.core.spec import ListSpec, ResourceSpec, TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value, clone_node, uses
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import attr_symbols, keep_params
from treadle.ops.control.control_flow import COND
from treadle.ops.control.replicas import (
    COMMON,
    REDUCE_AMONG,
    REDUCE_REPLICAS,
    STACK_AMONG,
    STACK_REPLICAS,
)
from treadle.ops.random.state import Stream

Place = int | None  # the number of a device; None: all of them
_MEETINGS = {REDUCE_REPLICAS: REDUCE_AMONG, STACK_REPLICAS: STACK_AMONG}


class Part(NamedTuple):
    """What one device computes.

    Attributes:
        parameters: for each parameter of the graph its number in the whole one.
        results: for each result the number in the whole one.
    """

    graph: Graph
    parameters: list[int]
    results: list[int]


def partition(graph: Graph, variables: Sequence[Device | None], everywhere: bool) -> list[Part]:
    """A graph for each of `Graph.devices`.

    Args:
        graph: without dead code.
        variables: for each parameter that is a variable the device of that.
        everywhere: each device gives the results that are for all; else the first one does.

    Raises:
        UnimplementedError: a list passes from one device to others.
        FailedPreconditionError: a branch or a loop of one replica writes a variable of another
            device.
    """
    numbers = {device.storage: i for i, device in reversed(list(enumerate(graph.devices)))}
    placing = _Placing(len(graph.devices))
    for param, device in zip(graph.params, variables, strict=True):
        variable = isinstance(param.spec, ResourceSpec) and device is not None
        placing.places[param] = numbers.get(device.storage, 0) if variable else None  # type: ignore[union-attr]
    first = len(graph.params) - len(graph.captures)
    streams = zip(graph.params[first:], graph.captures, strict=True)
    placing.streams = {param for param, capture in streams if isinstance(capture, Stream)}
    placing.region(graph)
    return [_Projection(graph, placing, number).part(everywhere) for number in numbers_of(graph)]


def numbers_of(graph: Graph) -> range:
    """The numbers of the devices of a graph."""
    return range(len(graph.devices))


class _Placing:
    """Finds out where nodes are computed.

    Attributes:
        places: where values are.
        owners: where nodes are computed.
        shared: values of one device that others need.
        streams: parameters that are states of random numbers, of which each device has its own.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.places: dict[Value, Place] = {}
        self.owners: dict[Node, Place] = {}
        self.shared: set[Value] = set()
        self.streams: set[Value] = set()

    def place(self, value: Value) -> Place:
        return None if value in self.shared else self.places[value]

    def need(self, value: Value, where: Place) -> None:
        """A value is needed on a device, or on all."""
        place = self.place(value)
        if place is None or place == where or value in self.streams:
            return
        if isinstance(value.spec, ListSpec):
            raise errors.UnimplementedError(
                None, None,
                f"the list %{value.name} of a replica is used by others: stack it in the replica",
            )  # fmt: skip
        if not isinstance(value.spec, ResourceSpec):
            self.shared.add(value)

    def region(self, region: Region) -> None:
        for node in region.nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        if node.op in _MEETINGS:
            self.owners[node] = None
            for number, value in enumerate(node.inputs):
                self.need(value, number)
        elif node.regions and node.replica is None:
            self.control(node)
            return
        else:
            self.owners[node] = self.owner(node)
            for value in node.inputs:
                self.need(value, self.owners[node])
            self.check_variables(node)
        for value in node.outputs:
            self.places[value] = self.owners[node]

    def owner(self, node: Node) -> Place:
        variables = [v for v in node.inputs if isinstance(v.spec, ResourceSpec)]
        kept = [v for v in variables if v not in self.streams]
        if kept and not node.regions:
            return self.places[kept[0]]
        if variables and not node.regions:
            return node.replica or 0
        if node.replica is not None:
            return node.replica if node.inputs or not node.is_pure else None
        return self.of_operands(node)

    def of_operands(self, node: Node) -> Place:
        """Where a node is computed that says nothing."""
        found = {self.place(v) for v in node.inputs} - {None}
        if len(found) == 1:
            return found.pop()
        return None if node.is_pure else 0

    def check_variables(self, node: Node) -> None:
        """Branches and loops of a replica read variables of other devices as they were when the
        program began, and may not write them."""
        if not node.regions or not node.has_effect:
            return
        for value in node.inputs:
            if isinstance(value.spec, ResourceSpec) and value not in self.streams:
                place = self.places[value]
                if place is not None and place != self.owners[node]:
                    raise errors.FailedPreconditionError(
                        None, None,
                        f"a branch or loop of a replica uses variable %{value.name}, which is on "
                        "another device: make it in the scope of the strategy"
                        f"{at(node.origin)}",
                    )  # fmt: skip

    # -- branches and loops that are for all -------------------------------------------------------

    def control(self, node: Node) -> None:
        first = 1 if node.op is COND else 0
        if node.op is COND:
            self.need(node.inputs[0], None)
        while True:
            before = len(self.shared)
            places = self._regions(node, first)
            if places is not None and len(self.shared) == before:
                break
        self.owners[node] = None
        for value, place in zip(node.outputs, places, strict=True):
            self.places[value] = place

    def _regions(self, node: Node, first: int) -> list[Place] | None:
        """Place what is in the regions; gives where the results are, or None where that changed
        what was taken for granted."""
        operands = node.inputs[first:]
        for region in node.regions:
            for param, value in zip(region.params, operands, strict=True):
                known = self.places.get(param)
                place = self.place(value)
                self.places[param] = known if node.op is not COND and known is not None else place
                if value in self.streams:
                    self.streams.add(param)
        for region in node.regions:
            self.region(region)
        if node.op is COND:
            pairs = zip(*(r.results for r in node.regions), strict=True)
            return [self._joined(pair) for pair in pairs]
        condition, body = node.regions
        self.need(condition.results[0], None)
        fits = True
        for number, result in enumerate(body.results):
            start, params = operands[number], [r.params[number] for r in node.regions]
            here = self.places[params[0]]
            joined = self._joined([result, start] if here is None else [result, start, params[0]])
            if joined != here:
                for param in params:
                    self.places[param] = joined
                fits = False
                if here is not None:  # the values of several devices: those of all from now on
                    for value in (start, result):
                        self.need(value, None)
        return [self.places[p] for p in body.params[: len(body.results)]] if fits else None

    def _joined(self, values: Sequence[Value]) -> Place:
        """Where a value is that is one of several."""
        found = {self.place(v) for v in values} - {None}
        if len(found) <= 1:
            return found.pop() if found else None
        for value in values:
            self.need(value, None)
        return None


class _Projection:
    """Makes the graph of one device."""

    def __init__(self, whole: Graph, placing: _Placing, number: int) -> None:
        self.whole, self.placing, self.number = whole, placing, number
        self.names = tuple(str(d) for d in whole.devices)

    def part(self, everywhere: bool) -> Part:
        whole, number = self.whole, self.number
        made = Graph(whole.name, whole.devices[number])
        env = {p: made.add_param(p.spec, p.name) for p in whole.params}
        self.emit(whole, made, env)
        kept = []
        for i, value in enumerate(whole.results):
            place = self.placing.places[value]
            if place == number or (place is None and (everywhere or number == 0)):
                kept.append(i)
        made.results = [env[whole.results[i]] for i in kept]
        eliminate_dead_code(made)
        used = uses(made)
        mentioned = _mentioned(made)
        params = [
            i for i, p in enumerate(made.params) if p in used or p.spec.symbols() & mentioned
        ]
        keep_params(made, params)
        first = len(whole.params) - len(whole.captures)
        made.captures = [whole.captures[i - first] for i in params if i >= first]
        return Part(made, params, kept)

    def has(self, value: Value) -> bool:
        """Whether the device has a value."""
        if value in self.placing.streams:
            return True
        return self.placing.place(value) in (None, self.number)

    def emit(self, region: Region, into: Region, env: dict[Value, Value]) -> None:
        for param in region.params:
            self.share(param, into, env)
        for node in region.nodes:
            owner = self.placing.owners[node]
            if node.op in _MEETINGS:
                self._meeting(node, into, env)
            elif node.regions and node.replica is None:
                self._control(node, into, env)
            elif owner in (None, self.number):
                clone_node(node, into, env)
            for value in node.outputs:
                self.share(value, into, env, node)

    def share(
        self, value: Value, into: Region, env: dict[Value, Value], node: Node | None = None
    ) -> None:
        """Pass a value on that others need."""
        if value not in self.placing.shared:
            return
        root, spec = self.placing.places[value], value.spec
        if root is None:
            return
        assert isinstance(spec, TensorSpec)
        attrs = {
            "root": root, "devices": self.names, "by": "auto", "dtype": spec.dtype,
            "dims": spec.dims,
        }  # fmt: skip
        inputs = [env[value]] if root == self.number else []
        origin = None if node is None else node.origin
        made = into.append(Node(COMMON, inputs, attrs, [spec], (), origin))
        if root != self.number:
            env[value] = made.outputs[0]

    def _meeting(self, node: Node, into: Region, env: dict[Value, Value]) -> None:
        attrs: dict[str, Any] = {**node.attrs, "devices": self.names}
        inputs = [env[node.inputs[self.number]]]
        specs = [v.spec for v in node.outputs]
        made = into.append(Node(_MEETINGS[node.op], inputs, attrs, specs, (), node.origin))
        env.update(zip(node.outputs, made.outputs, strict=True))

    def _control(self, node: Node, into: Region, env: dict[Value, Value]) -> None:
        first = 1 if node.op is COND else 0
        sample = node.regions[-1]
        kept = [
            i
            for i, p in enumerate(sample.params)
            if p in self.placing.streams or self.placing.places[p] in (None, self.number)
        ]
        outputs = [v for v in node.outputs if self.placing.places[v] in (None, self.number)]
        regions = [self._region(r, kept, node, number) for number, r in enumerate(node.regions)]
        inputs = [*node.inputs[:first], *(node.inputs[first + i] for i in kept)]
        made = into.append(
            Node(
                node.op, [env[v] for v in inputs], node.attrs, [v.spec for v in outputs], regions,
                node.origin,
            )
        )  # fmt: skip
        env.update(zip(outputs, made.outputs, strict=True))

    def _region(self, region: Region, kept: Sequence[int], node: Node, number: int) -> Region:
        made, env = Region(), dict[Value, Value]()
        for i in kept:
            param = region.params[i]
            env[param] = made.add_param(param.spec, param.name)
        self.emit(region, made, env)
        if node.op is not COND and number == 0:
            results = region.results  # whether the loop goes on
        else:
            pairs = zip(node.outputs, region.results, strict=True)
            results = [r for v, r in pairs if self.placing.places[v] in (None, self.number)]
        made.results = [env[v] for v in results]
        return made


def _mentioned(graph: Graph) -> set[str]:
    """The symbols in a graph beside those that only its parameters have."""
    found: set[str] = set()
    for node in graph.walk():
        found |= attr_symbols(node.attrs)
        for value in node.outputs:
            found |= value.spec.symbols()
    return found
