"""The graph: values, nodes and regions.

A `Region` is a straight list of nodes in program order with parameters and results. Control flow
is structured: ``cond`` and ``while`` nodes own regions and pass every outer value they use as an
explicit operand.

    cond   inputs (pred, *operands); regions (then, else), each taking *operands
    while  inputs (*carried, *invariant); regions (condition, body), each taking all inputs; the
           body gives the new carried values, which are also the node's outputs

A region that is an attribute (`NamedRegion`) is not run with its node: it is there for gradients.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from treadle.core.devices import HOST, Device
from treadle.core.origin import Origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec
from treadle.ops.registry import Op

_ids = itertools.count()


class Value:
    """An SSA value: a region's parameter (`producer` is the Region) or a node's output."""

    __slots__ = ("index", "name", "producer", "spec")

    def __init__(self, spec: Spec, producer: Node | Region, index: int, name: str = "") -> None:
        self.spec = spec
        self.producer = producer
        self.index = index
        self.name = name or f"v{next(_ids)}"

    @property
    def node(self) -> Node | None:
        """The node that computes the value; None for a parameter."""
        return self.producer if isinstance(self.producer, Node) else None

    @property
    def shape(self) -> TensorShape:
        return self.spec.shape

    def __repr__(self) -> str:
        return f"%{self.name}: {self.spec}"


class Node:
    """One operation.

    Attributes:
        replica: which device of `Graph.devices` it is for; None: all of them, or whichever has
            what it takes.
    """

    __slots__ = ("attrs", "inputs", "op", "origin", "outputs", "region", "regions", "replica")

    def __init__(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        output_specs: Sequence[Spec],
        regions: Sequence[Region] = (),
        origin: Origin | None = None,
        replica: int | None = None,
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.attrs = dict(attrs)
        self.regions = list(regions)
        self.outputs = [Value(s, self, i) for i, s in enumerate(output_specs)]
        self.origin, self.replica = origin, replica
        self.region: Region | None = None  # the region whose list holds the node

    @property
    def has_effect(self) -> bool:
        """True when the node or one inside its regions may not be dropped."""
        if self.op.effect not in (None, "read"):
            return True
        return any(node.has_effect for region in self.regions for node in region.nodes)

    @property
    def is_pure(self) -> bool:
        """True when nothing in the node reads or changes state."""
        if self.op.effect is not None:
            return False
        return all(node.is_pure for region in self.regions for node in region.nodes)

    @property
    def region_inputs(self) -> Sequence[Value]:
        """The inputs that the regions' parameters stand for: all but the test of a ``cond``."""
        return self.inputs[len(self.inputs) - len(self.regions[0].params) :] if self.regions else ()

    @property
    def runs_user_code(self) -> bool:
        """True for Python callbacks, which may use any variable, and for nodes around them."""
        if self.op.runs_user_code:
            return True
        return any(node.runs_user_code for region in self.regions for node in region.nodes)

    def __repr__(self) -> str:
        outs = ", ".join(map(repr, self.outputs))
        return f"{outs} = {self.op.name}({', '.join('%' + v.name for v in self.inputs)})"


class Region:
    """Parameters, nodes in program order, results."""

    __slots__ = ("nodes", "params", "results")

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.results: list[Value] = []

    def add_param(self, spec: Spec, name: str = "") -> Value:
        value = Value(spec, self, len(self.params), name)
        self.params.append(value)
        return value

    def append(self, node: Node) -> Node:
        node.region = self
        self.nodes.append(node)
        return node

    def walk(self) -> Iterator[Node]:
        """All nodes, those of inner regions included, in program order."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()


class NamedRegion(str):
    """An attribute: a region that a node keeps and does not run, by its name, such as the gradient
    of a custom gradient's node.

    Attributes:
        region: the region; None where only the name is known.
        present: for each thing that the region may give a result for, whether it does.
    """

    region: Region | None
    present: tuple[bool, ...]

    def __new__(
        cls, name: str, region: Region | None = None, present: Iterable[bool] = ()
    ) -> NamedRegion:
        made = super().__new__(cls, name)
        made.region, made.present = region, tuple(present)
        return made


class Graph(Region):
    """A whole function: its parameters are the arguments and then the captures.

    Attributes:
        device: where it runs. All arguments, captures and results are there, so the specs of its
            values, which are the host's, do not say so.
        devices: those of the replicas that it has nodes for, where they have one each
            (`graph.partition` makes a graph of each of them, before any pass); else none.
        names: the names of its operations (`names.OperationNames`), once somebody asks.
        recorder: gives the builder that recorded it, as long as that is there.
    """

    __slots__ = ("__weakref__", "captures", "device", "devices", "name", "names", "recorder")

    text: ClassVar[Callable[[Graph], str]]  # set by `printer`
    elements: ClassVar[Callable[[Graph], Any]]  # set by `builder`
    message: ClassVar[Callable[[Graph], Any]]  # set by `treadle`, as is the next one
    function_message: ClassVar[Callable[[Graph], Any]]

    def __init__(self, name: str, device: Device = HOST) -> None:
        super().__init__()
        self.name, self.device = name, device
        self.devices: tuple[Device, ...] = ()
        # The eager tensors and variables behind the last len(captures) parameters.
        self.captures: list[Any] = []
        self.names: Any = None
        self.recorder: Callable[[], Any] = lambda: None

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """TensorFlow's message GraphDef, with the names and types of the operations, to look at.

        Args:
            from_version, add_shapes: accepted for TensorFlow programs.
        """
        return Graph.message(self)

    def get_operations(self) -> list[Any]:
        """The operations in program order, those for parameters first; without those inside of
        branches and loops."""
        return Graph.elements(self).operations()  # type: ignore[no-any-return]

    @property
    def inputs(self) -> list[Any]:
        """The symbolic tensors of the arguments and then of the captures."""
        return Graph.elements(self).tensors(self.params)  # type: ignore[no-any-return]

    @property
    def outputs(self) -> list[Any]:
        """The symbolic tensors of the results."""
        return Graph.elements(self).tensors(self.results)  # type: ignore[no-any-return]

    @property
    def variables(self) -> tuple[Any, ...]:
        """The captured variables."""
        return tuple(c for c in self.captures if hasattr(c, "assign"))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def get_operation_by_name(self, name: str) -> Any:
        """The operation of this name.

        Raises:
            KeyError: there is none.
            ValueError: it is the name of a tensor.
            TypeError: it is no string.
        """
        return Graph.elements(self).operation(name)

    def get_tensor_by_name(self, name: str) -> Any:
        """The symbolic tensor of this name, as ``MatMul:0``.

        Raises:
            KeyError: there is none.
            ValueError: it is not the name of a tensor.
            TypeError: it is no string.
        """
        return Graph.elements(self).tensor(name)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The operation or tensor that `obj` is, or has as its name.

        Args:
            allow_tensor, allow_operation: which of both it may be.

        Raises:
            KeyError: there is none of this name.
            ValueError: it is of another graph, or may not be one of this kind.
            TypeError: it is neither an operation, a tensor nor a string.
        """
        return Graph.elements(self).element(obj, allow_tensor, allow_operation)

    @property
    def arguments(self) -> list[Value]:
        return self.params[: len(self.params) - len(self.captures)]

    @property
    def argument_specs(self) -> list[Any]:
        """The specs of its arguments where it runs."""
        return [value.spec.on(self.device) for value in self.arguments]

    @property
    def result_specs(self) -> list[Any]:
        """The specs of its results where it runs."""
        return [value.spec.on(self.device) for value in self.results]

    def __str__(self) -> str:
        return Graph.text(self)


def uses(region: Region) -> dict[Value, int]:
    """How often each value is read in the region, inner regions and results included."""
    counts: dict[Value, int] = {}
    for node in region.walk():
        for value in itertools.chain(node.inputs, *(r.results for r in node.regions)):
            counts[value] = counts.get(value, 0) + 1
    for value in region.results:
        counts[value] = counts.get(value, 0) + 1
    return counts


def clone_region(region: Region, mapping: dict[Value, Value]) -> Region:
    """A deep copy; `mapping` gives replacements for outer values and receives the new values."""
    copy = Region()
    for param in region.params:
        mapping[param] = copy.add_param(param.spec, param.name)
    for node in region.nodes:
        clone_node(node, copy, mapping)
    copy.results = [mapping[v] for v in region.results]
    return copy


def clone_node(node: Node, into: Region, mapping: dict[Value, Value]) -> Node:
    """Append a copy of `node` to `into`, reading mapped values."""
    copy = Node(
        node.op,
        [mapping[v] for v in node.inputs],
        node.attrs,
        [v.spec for v in node.outputs],
        [clone_region(r, mapping) for r in node.regions],
        node.origin,
        node.replica,
    )
    mapping.update(zip(node.outputs, copy.outputs, strict=True))
    return into.append(copy)
