"""Complex tensors as pairs of real ones: the real parts and the imaginary parts.

    %z = multiply(%x, %y)  ->  %a, %b = complex_multiply(%x.real, %x.imag, %y.real, %y.imag)

Programs compute with parts, which lie apart in memory or in two registers. Complex numbers whose
parts alternate remain where somebody else sees them: arguments, results, variables, lists and the
operands of callbacks. There `real`, `imag` and `complex` take them apart and put them together,
within the kernels that need them. Each op's record says how it works on parts (`Op.parts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from treadle.core import errors
from treadle.core.context import recording, taping
from treadle.core.origin import Origin, at
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import SymbolicTensor
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.complex_pairs import Pair, PartsCall
from treadle.ops.control.control_flow import WHILE
from treadle.ops.conversion import CONST
from treadle.ops.elementwise.complex_numbers import COMPLEX, IMAG, REAL
from treadle.ops.registry import Op, infer_outputs, run


def split_complex_numbers(graph: Graph) -> bool:
    """Replace ops on complex tensors by ops on their parts."""
    nodes = list(graph.walk())
    if not any(is_complex(v.spec) for n in nodes for v in (*n.inputs, *n.outputs)):
        return False
    splitter = _Splitter()
    with taping(()):
        splitter.graph(graph)
    return splitter.changed


def is_complex(spec: Spec) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype.is_complex


class _Splitter:
    """Rewrites the regions of a graph. Values stay in their region, so one table serves all.

    Attributes:
        pairs: the parts of complex values.
        wholes: complex values as one tensor, where that was asked for.
    """

    def __init__(self) -> None:
        self.pairs: dict[Value, tuple[Value, Value]] = {}
        self.wholes: dict[Value, Value] = {}
        self.renamed: dict[Value, Value] = {}  # real values that nodes gave before
        self.out = _Recorder()
        self.changed = False

    def graph(self, graph: Graph) -> None:
        self.out.kept.update(p for p in graph.params if is_complex(p.spec))
        with recording(self.out):
            self.region(graph)
        graph.results = [self.whole(v) for v in graph.results]
        graph.nodes = self.out.close(graph)

    def region(self, region: Region) -> None:
        """Rewrite the nodes of the region that the recorder has open."""
        self.out.open(region)
        for node in region.nodes:
            self.out.origin = node.origin
            self.visit(node)

    # -- the two forms of a value --------------------------------------------------------------

    def real(self, value: Value) -> Value:
        """The value that stands for a real value now."""
        return self.renamed.get(value, value)

    def pair(self, value: Value) -> tuple[Value, Value]:
        """The parts of a complex value."""
        found = self.pairs.get(value)
        if found is None and value.node is not None and value.node.op is CONST:
            found = self.constants(value.node)
        elif found is None:
            found = self.out.emit(REAL, [value]), self.out.emit(IMAG, [value])
        return self.pairs.setdefault(value, found)

    def constants(self, node: Node) -> tuple[Value, Value]:
        """A literal's parts."""
        assert node.op.parts is not None
        real, imag = node.op.parts(PartsCall(CONST, (), node.attrs, ()))
        return real.value, imag.value

    def whole(self, value: Value) -> Value:
        """A complex value as one tensor; other values as they are."""
        if not is_complex(value.spec):
            return self.real(value)
        if value not in self.pairs or self.is_kept(value):
            return value
        if value not in self.wholes:
            self.wholes[value] = self.out.emit(COMPLEX, self.pairs[value])
        return self.wholes[value]

    def is_kept(self, value: Value) -> bool:
        return value in self.out.kept

    # -- nodes -----------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        operands = [v for v in node.inputs if is_complex(v.spec)]
        if node.regions:
            self.structured(node)
        elif node.op is COMPLEX and all(
            v.spec.dims == node.outputs[0].spec.dims for v in node.inputs
        ):
            real, imag = node.inputs = [self.real(v) for v in node.inputs]
            (value,) = node.outputs
            self.pairs[value], self.wholes[value] = (real, imag), value
            self.out.append(node)
        elif self.stays(node, operands) or not self.by_parts(node):
            node.inputs = [self.whole(v) for v in node.inputs]
            self.out.keep(node)

    def stays(self, node: Node, operands: Sequence[Value]) -> bool:
        """Whether a node is left as it is: it has to do with no complex tensors or has no rule
        for their parts; or its operand is there as a whole, and it takes that apart or moves it."""
        if node.op.parts is None or node.op is CONST:
            return True
        if not operands and not any(is_complex(v.spec) for v in node.outputs):
            return True
        moves = "complex_parts" in node.op.tags
        return bool(operands) and moves and all(map(self.is_kept, operands))

    def by_parts(self, node: Node) -> bool:
        """Let the op's rule compute the outputs; False where it has none for this node."""
        assert node.op.parts is not None
        specs = [v.spec for v in node.outputs]
        self.out.current = node
        operands = [self.operand(v) for v in node.inputs]
        try:
            found = node.op.parts(PartsCall(node.op, operands, node.attrs, specs))
        except MemoryError as error:  # of a table of constants
            text = f"{node.op.name}: {error}{at(node.origin)}"
            raise errors.ResourceExhaustedError(None, node.op, text) from error
        self.out.current = None
        if found is None:
            return False
        self.changed = True
        results = found if len(specs) > 1 else (found,)
        for value, result in zip(node.outputs, results, strict=True):
            if isinstance(result, Pair):
                self.pairs[value] = result.real.value, result.imag.value  # type: ignore[attr-defined]
            else:
                self.renamed[value] = result.value
        return True

    def operand(self, value: Value) -> Any:
        if not is_complex(value.spec):
            return self.out.tensor(self.real(value))
        return Pair(*map(self.out.tensor, self.pair(value)))

    # -- branches and loops ------------------------------------------------------------------------

    def structured(self, node: Node) -> None:
        """Carried and merged values go as pairs, and operands that are not in memory anyway."""
        loop = node.op is WHILE
        count = len(node.outputs) if loop else 0
        split = [
            is_complex(v.spec) and (i < count or not v.spec.rank or not self.is_kept(v))
            for i, v in enumerate(node.inputs)
        ]
        self.changed |= any(split) or any(is_complex(v.spec) for v in node.outputs)
        inputs: list[Value] = []
        for value, divided in zip(node.inputs, split, strict=True):
            inputs += self.pair(value) if divided else [self.whole(value)]
        node.inputs = inputs
        for number, region in enumerate(node.regions):
            self._divide_params(region, split if loop else split[1:])
            self.region(region)
            merged = number == 1 or not loop
            results: list[Value] = []
            for value in region.results:
                complex_result = merged and is_complex(value.spec)
                results += self.pair(value) if complex_result else [self.real(value)]
            region.results = results
            region.nodes = self.out.close(region)
        self._divide_outputs(node)
        self.out.keep(node)

    def _divide_params(self, region: Region, split: Sequence[bool]) -> None:
        params: list[Value] = []
        for value, divided in zip(region.params, split, strict=True):
            if divided:
                parts = self._parts(value, region)
                self.pairs[value] = parts
                params += parts
            else:
                params.append(value)
                self.out.kept.add(value)
        region.params = _renumbered(params)

    def _divide_outputs(self, node: Node) -> None:
        outputs: list[Value] = []
        for value in node.outputs:
            if is_complex(value.spec):
                parts = self._parts(value, node)
                self.pairs[value] = parts
                outputs += parts
            else:
                outputs.append(value)
        node.outputs = _renumbered(outputs)

    def _parts(self, value: Value, producer: Node | Region) -> tuple[Value, Value]:
        spec = TensorSpec(value.spec.shape, value.spec.dtype.real_dtype)
        spec = spec.with_dims(value.spec.dims)
        return Value(spec, producer, 0), Value(spec, producer, 0)


def _renumbered(values: list[Value]) -> list[Value]:
    for index, value in enumerate(values):
        value.index = index
    return values


class _Recorder:
    """Takes the ops that rules run, and the nodes that stay, into the region being rewritten.

    Attributes:
        kept: complex values that nodes which stay, or parameters, give as a whole.
        current: the node that a rule is replacing.
    """

    parent = None
    finished = False
    name = "complex_parts"

    def __init__(self) -> None:
        self.regions: list[tuple[Region, list[Node]]] = []
        self.kept: set[Value] = set()
        self.origin: Origin | None = None
        self.current: Node | None = None

    def open(self, region: Region) -> None:
        self.regions.append((region, []))

    def close(self, region: Region) -> list[Node]:
        opened, nodes = self.regions.pop()
        assert opened is region
        return nodes

    def append(self, node: Node) -> None:
        region, nodes = self.regions[-1]
        node.region = region
        nodes.append(node)

    def keep(self, node: Node) -> None:
        """Take a node that stays; its complex outputs are there as a whole."""
        self.append(node)
        self.kept.update(v for v in node.outputs if is_complex(v.spec))

    def emit(self, op: Op, inputs: Sequence[Value]) -> Value:
        (tensor,) = self.record(op, [self.tensor(v) for v in inputs], {})
        return tensor.value  # type: ignore[no-any-return]

    def name_of(self, value: Value) -> str:
        return value.name

    def operation_scope(self) -> str:
        return ""

    def call_named(self, call: Any, name: str) -> NoReturn:
        raise AssertionError("rules call no public functions")

    def tensor(self, value: Value) -> SymbolicTensor:
        return SymbolicTensor(value, value.spec, self, self.origin)

    def record(
        self, op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], regions: Sequence[Any] = ()
    ) -> tuple[SymbolicTensor, ...]:
        operands = [self._use(x).value for x in inputs]
        specs = list(infer_outputs(op, [v.spec for v in operands], attrs))
        if self.current is not None and op is self.current.op:
            # Both parts have the dims of the whole, also where these are born here.
            specs = [
                new.with_dims(old.spec.dims)
                for new, old in zip(specs, self.current.outputs, strict=True)
            ]
        node = Node(op, operands, attrs, specs, (), self.origin)
        self.append(node)
        return tuple(map(self.tensor, node.outputs))

    def _use(self, x: Any) -> SymbolicTensor:
        if isinstance(x, SymbolicTensor):
            return x
        return run(CONST, value=x._numpy())  # type: ignore[no-any-return]

    def capture(self, value: Any) -> NoReturn:
        raise AssertionError("a rule for parts uses a tensor from elsewhere")

    def trace_region(self, *args: Any) -> NoReturn:
        raise AssertionError("a rule for parts has no control flow")
