"""GraphBuilder: the recorder that turns executed ops into graph nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary, ref

from treadle.core import errors
from treadle.core.context import naming, placed, recording
from treadle.core.devices import HOST, Device
from treadle.core.frames import recorded_origin
from treadle.core.origin import Origin, at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.strategies import where
from treadle.core.tensor import SymbolicTensor, Tensor, UnrankedTensor, lacks_rank
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.names import OperationNames
from treadle.graph.operations import Elements, Operation, consumers
from treadle.ops.registry import Op, infer_outputs, run
from treadle.ops.state import READ


class GraphBuilder:
    """Records one region. Regions of control flow get child builders.

    Attributes:
        graph: the graph under construction, shared by all builders of one trace.
        region: where nodes are appended.
        outer: the builder of the trace during which this trace runs, if any.
        finished: true once the trace has ended; its tensors cannot be used any more.
        calls: those that other functions may take over (`tracing.implementations`), by what the
            functions compute.
        changed: parameters of the graph whose elements the function changes in place, as NumPy
            would: how, where, and whether it went on with the changed values. Shared like `graph`.
        gradient_of: the code of the function whose custom gradient the region is, if it is one.
        asked: the devices that scopes around the operations name (None: there is no scope), each
            with the first such operation. Shared like `graph`.
    """

    def __init__(
        self,
        name: str,
        parent: GraphBuilder | None = None,
        outer: GraphBuilder | None = None,
        device: Device = HOST,
    ) -> None:
        self.name = name
        self.parent = parent
        self.outer = outer
        self.finished = False
        self.calls: dict[str, Any] = {}
        self.gradient_of: Any = None
        self.on_variable: Callable[[], None] | None = None  # set for a first trace
        self.lift_hook: Callable[[SymbolicTensor], Tensor] | None = (
            parent.lift_hook if parent is not None else None
        )
        self.region: Region = Graph(name, device) if parent is None else Region()
        self.graph: Graph = self.region if parent is None else parent.graph  # type: ignore[assignment]
        # Name scopes around the whole function are none of its operations' names.
        self.scope: str = naming.scope if parent is None else parent.scope
        if parent is None:
            self.graph.recorder = ref(self)
        self.changed: dict[Value, tuple[str, str, bool]] = {} if parent is None else parent.changed
        self.asked: dict[Device | None, Origin | None] = {} if parent is None else parent.asked
        # Variables (by id) that were given a value of another rank: (the variable, the rank).
        self.assigned: dict[int, tuple[Any, int]] = {} if parent is None else parent.assigned
        # Outer thing (by id) -> (the thing, kept alive; its parameter here).
        self.captured: dict[int, tuple[Any, SymbolicTensor]] = {}
        self._tensors: WeakValueDictionary[Value, SymbolicTensor] = WeakValueDictionary()
        # Loops that gradients gave more carried values -> how many they had when recorded.
        self.carried_at_first: dict[Node, int] = {}

    def parameter(self, spec: Spec, name: str = "") -> SymbolicTensor:
        """A new parameter of the region."""
        return self._symbolic(self.region.add_param(spec, name), user_origin())

    def record(
        self,
        op: Op,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        regions: Sequence[Region] = (),
    ) -> tuple[SymbolicTensor, ...]:
        """Append a node for `op`. Inputs are tensors of this trace, or things to capture."""
        for x in inputs:
            if type(x) is UnrankedTensor and not x.is_settled:
                raise x.refusal(op.name)
        operands = [self.use(x).value for x in inputs]
        if regions:
            inferred = op.infer(*(v.spec for v in operands), regions=regions, **attrs)
            specs = inferred if isinstance(inferred, tuple) else (inferred,)
        else:
            specs = infer_outputs(op, [v.spec for v in operands], attrs)
        origin, device = recorded_origin(), placed()
        if device not in self.asked:
            self.asked[device] = origin
        node = self.region.append(Node(op, operands, attrs, specs, regions, origin))
        if where.among is not None:
            node.replica, self.graph.devices = where.among
        if naming.scope != self.scope or naming.layers[0]:
            self.names.put(node, self.operation_scope())
        return tuple(self._symbolic(v, origin) for v in node.outputs)

    @property
    def names(self) -> OperationNames:
        if self.graph.names is None:
            self.graph.names = OperationNames()
        return self.graph.names  # type: ignore[no-any-return]

    def name_of(self, of: Value | Node) -> str:
        """The name of an operation of this region, or of the one that gives a value."""
        return self.names.of(self.region, of)

    def operation_scope(self) -> str:
        """What the names of operations begin with that are recorded now."""
        prefix, since = naming.layers
        return prefix + naming.scope.removeprefix(since if prefix else self.scope)

    def call_named(self, call: Callable[[], Any], name: str) -> Any:
        """The results of a call, the first of which gives its operation the name ``name``."""
        before = len(self.region.nodes)
        results = call()
        first = results[0] if isinstance(results, list | tuple) and results else results
        if lacks_rank(first):
            first = first.elements  # the operation that it has its name from
        if isinstance(first, SymbolicTensor) and first.recorder is self and first.value.node:
            node = first.value.node
            if node in self.region.nodes[before:]:
                self.names.ask(node, name)
        return results

    def use(self, x: Any) -> SymbolicTensor:
        """`x` as a tensor of this region."""
        if isinstance(x, SymbolicTensor) and x.recorder is self:
            return x
        return self.capture(x)

    def capture(self, value: Any) -> SymbolicTensor:
        """The region's parameter that stands for an outer tensor or variable."""
        found = self.captured.get(id(value))
        if found is not None:
            return found[1]
        if isinstance(value, SymbolicTensor):
            self._check_reachable(value)
        if self.parent is not None:
            outer = self.parent.use(value)  # shared even when several inner regions capture it
            again = self.captured.get(id(outer))
            inner = again[1] if again else self._captured_parameter(outer, outer.value.spec)
        else:
            inner = self._captured_parameter(value, value.spec.on(HOST))
            self.graph.captures.append(value)
        self.captured[id(value)] = (value, inner)
        return inner

    def _captured_parameter(self, outer: Any, spec: Spec) -> SymbolicTensor:
        inner = self._symbolic(self.region.add_param(spec, _label(outer)), user_origin())
        known_as = getattr(outer, "source", outer)
        inner.source = outer if known_as is None else known_as
        self.captured[id(outer)] = (outer, inner)
        return inner

    def _check_reachable(self, tensor: SymbolicTensor) -> None:
        """Only the tensors of enclosing regions (or of an enclosing trace) may be used."""
        builder: GraphBuilder | None = self
        while builder is not None:
            if builder is tensor.recorder:
                return
            builder = builder.parent or builder.outer
        root = tensor.recorder
        while root.parent is not None:
            root = root.parent
        if root.finished:
            raise tensor.no_value("used in another function")
        raise errors.InaccessibleTensorError(
            f"{tensor!r} belongs to a branch or loop of {tensor.recorder.name!r} and is used "
            "outside it: assign it to a variable there, or return it from the branch or body; "
            "values of a loop that a Python list would collect go into a td.TensorArray"
            f"{at(user_origin())}"
        )

    def captures(self) -> list[SymbolicTensor]:
        """The outer tensors that became parameters, in parameter order (child builders)."""
        by_param = {
            inner.value: outer
            for outer, inner in self.captured.values()
            if isinstance(outer, SymbolicTensor) and outer.recorder is self.parent
        }
        return [by_param[p] for p in self.region.params if p in by_param]

    def trace_region(
        self, fn: Callable[..., Any], specs: Sequence[Spec], name: str = ""
    ) -> GraphBuilder:
        """Trace ``fn(*params)`` into a region of its own; results are the tensors it returns.

        Returns the child builder: its `region`, and `captures()` for the operands to add.
        """
        child = GraphBuilder(name or self.name, parent=self)
        params = [child.parameter(s) for s in specs]
        try:
            with recording(child):
                results = fn(*params)
                child.region.results = [child.use(t).value for t in results]
        finally:
            child.finished = True
        return child

    def align_captures(self, children: Sequence[GraphBuilder]) -> list[SymbolicTensor]:
        """Give sibling regions the same captured operands in the same order, and return them.

        Each region's own parameters stay first.
        """
        operands: list[SymbolicTensor] = []
        seen: set[int] = set()
        for outer in (t for child in children for t in child.captures()):
            if id(outer) not in seen:
                seen.add(id(outer))
                operands.append(outer)
        for child in children:
            child._take_params(operands)
        return operands

    def hoist_reads(self, children: Sequence[GraphBuilder]) -> None:
        """Read variables before a branch or loop that only reads them, once, in this region.

        A loop's gradient then has the value as one operand instead of one for each iteration.
        """
        if any(_runs_python(child.region) for child in children):
            return  # which may assign any variable
        reads = [child._reads() for child in children]
        kept = {id(outer) for child in children for outer in child._used_otherwise()}
        for outer in {id(o): o for found in reads for o in found.values()}.values():
            if id(outer) not in kept:
                value = run(READ, outer)
                for child, found in zip(children, reads, strict=True):
                    child._replace_reads([n for n, o in found.items() if o is outer], value)

    def _reads(self) -> dict[Node, SymbolicTensor]:
        """The nodes that read a variable, with the parent's handle of it."""
        outer = {
            inner.value: o
            for o, inner in self.captured.values()
            if isinstance(o, SymbolicTensor) and o.recorder is self.parent
        }
        return {n: outer[n.inputs[0]] for n in self.region.nodes
                if n.op is READ and n.inputs[0] in outer}  # fmt: skip

    def _used_otherwise(self) -> list[Any]:
        """The captured values that other nodes than reads use: they may be assigned."""
        used = {v for n in self.region.nodes if n.op is not READ for v in n.inputs}
        return [outer for outer, inner in self.captured.values() if inner.value in used]

    def _replace_reads(self, nodes: Sequence[Node], value: SymbolicTensor) -> None:
        """Use the captured `value` in place of the results of nodes that read its variable."""
        if not nodes:
            return
        param = self.use(value).value
        old = {n.outputs[0] for n in nodes}
        self.region.nodes = [n for n in self.region.nodes if n not in set(nodes)]
        for node in self.region.nodes:
            node.inputs = [param if v in old else v for v in node.inputs]
        self.region.results = [param if v in old else v for v in self.region.results]
        handle = nodes[0].inputs[0]
        self.captured = {
            i: pair for i, pair in self.captured.items() if pair[1].value is not handle
        }
        self.region.params.remove(handle)

    def _take_params(self, operands: Sequence[SymbolicTensor]) -> None:
        inner = {id(outer): param.value for outer, param in self.captured.values()}
        captured = {id(inner[id(o)]) for o in operands if id(o) in inner}
        own = [p for p in self.region.params if id(p) not in captured]
        rest = [
            inner.get(id(o)) or Value(o.value.spec, self.region, 0, o.value.name) for o in operands
        ]
        self.region.params = own + rest
        for index, param in enumerate(self.region.params):
            param.index = index

    def variable_created(self) -> None:
        """A Variable is being made during the trace; refused where no first call allows it."""
        if self.parent is not None:
            self.parent.variable_created()
        elif self.on_variable is None:
            raise ValueError(
                f"{self.name!r} creates a Variable on a call that is not its first. Create it "
                "once, outside the function or guarded by `if self.v is None`, so that later "
                f"calls use the same variable{at(user_origin())}"
            )
        else:
            self.on_variable()

    def lift(self, tensor: SymbolicTensor) -> Tensor:
        """The value of a tensor that depends on no parameter, for a variable's initial value."""
        evaluate = self.lift_hook
        if evaluate is None:
            raise errors.InaccessibleTensorError(
                f"The initial value of a variable depends on {tensor!r}{at(user_origin())}"
            )
        return evaluate(tensor)

    def _symbolic(self, value: Value, origin: Origin | None) -> SymbolicTensor:
        if not value.spec.has_rank and type(value.spec) is TensorSpec:
            raise ValueError(
                f"a tensor of unknown rank, {value.spec!r}, cannot be a value of {self.name!r}: "
                f"give its rank, with None for each dim that is not known{at(user_origin())}"
            )
        tensor = SymbolicTensor(value, value.spec, self, origin)
        self._tensors[value] = tensor
        return tensor

    def refine(self, tensor: SymbolicTensor, op: Op, inputs: Sequence[Any], **attrs: Any) -> None:
        """Let `tensor`, which belongs to this region, stand from now on for the result of an op
        that checks its shape."""
        (made,) = self.record(op, inputs, attrs)
        tensor.value, tensor._spec = made.value, made.spec
        self._tensors[made.value] = tensor

    def operation(self, value: Value) -> Operation:
        """What computes a value of this region, as `Tensor.op` shows it."""
        return Operation(self, value)

    def consumers(self, value: Value) -> list[Operation]:
        """The operations of this region that take a value."""
        return consumers(self, value)

    def tensor_of(self, value: Value) -> SymbolicTensor:
        """The tensor that stands for a value of this region; one object as long as it is used."""
        found = self._tensors.get(value)
        return self._symbolic(value, user_origin()) if found is None else found

    def inputs_at_first(self, node: Node) -> list[Value]:
        """The inputs of a node of this region, without the start values of what gradients made a
        loop carry."""
        first = self.carried_at_first.get(node)
        if first is None:
            return node.inputs
        return node.inputs[:first] + node.inputs[len(node.outputs) :]

    def finish(self, results: Sequence[Tensor]) -> Graph:
        """Set the results and end the trace."""
        self.region.results = [self.use(t).value for t in results]
        self.finished = True
        # Captures were appended as they came up; arguments were all made before.
        return self.graph


def _elements(graph: Graph) -> Elements:
    """What the tensors and operations of a graph are looked up with."""
    builder = graph.recorder()
    if builder is None:  # the trace is over, and no tensor of it is left
        builder = GraphBuilder(graph.name, device=graph.device)
        builder.region = builder.graph = graph
        builder.finished = True
        graph.recorder = lambda: builder
    return Elements(builder)


Graph.elements = _elements


def _runs_python(region: Region) -> bool:
    """Whether a node calls back into the user's Python code."""
    return any(n.op.runs_user_code for n in region.walk())


def _label(outer: Any) -> str:
    """The name of the parameter for a captured tensor or variable: the name of that."""
    if isinstance(outer, SymbolicTensor):
        return str(outer.value.name)
    return str(getattr(outer, "name", "")).removesuffix(":0")
