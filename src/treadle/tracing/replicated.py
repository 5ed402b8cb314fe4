"""Programs of several replicas, which have a device each: a program for each device, which run at
the same time and meet where they exchange values (`treadle.graph.partition`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from treadle.core import locks
from treadle.core.context import taping
from treadle.core.devices import Device
from treadle.core.meeting import run_parts
from treadle.core.tensor import Tensor, buffer_of, from_buffer, moved
from treadle.core.texts import Texts
from treadle.graph.ir import Graph, Node
from treadle.graph.partition import Part, partition
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import clone_graph
from treadle.ops.random.state import Stream
from treadle.ops.registry import Op, infer_outputs
from treadle.ops.state import Variable
from treadle.runtime import compile
from treadle.runtime.executable import Executable
from treadle.tracing.mirrors import Mirror, MirroredProgram, reachable

_Compile = Callable[[Graph], Executable]


class ReplicatedProgram(Executable):
    """Runs a graph of several devices.

    Args:
        graph: as it was traced.
        everywhere: each device gives the results that are for all, see `partition`.
    """

    def __init__(
        self, graph: Graph, compile: _Compile = compile, everywhere: bool = False
    ) -> None:
        super().__init__(graph)
        self.compile, self.everywhere = compile, everywhere
        self.whole = clone_graph(graph)
        eliminate_dead_code(self.whole)
        self.names = [str(device) for device in graph.devices]
        self._made: dict[tuple[Device | None, ...], list[_PartProgram]] = {}
        self._lock = locks.reentrant_lock()

    def programs(self, inputs: Sequence[Any]) -> list[_PartProgram]:
        """The programs of the devices for calls with variables where those among the inputs are."""
        places = tuple([x.spec.device if isinstance(x, Variable) else None for x in inputs])
        found = self._made.get(places)
        if found is None:
            with self._lock:
                found = self._made.get(places) or self._compiled(places)
        return found

    def _compiled(self, places: tuple[Device | None, ...]) -> list[_PartProgram]:
        parts = partition(self.whole, places, self.everywhere)
        made = self._made[places] = [_PartProgram(self.graph, p, self.compile) for p in parts]
        programs = [p.program for p in made]
        self.mode = "native" if all(p.mode == "native" for p in programs) else "interpreted"
        self.reason = next((p.reason for p in programs if p.reason), "")
        self.calls = next((p.calls for p in programs if p.calls), "")
        return made

    def run_everywhere(self, inputs: Sequence[Any]) -> list[list[Tensor]]:
        """The results that each device gives, from a tensor, an array or a variable for each
        parameter, on any device."""
        return run_parts([partial(p.run, inputs) for p in self.programs(inputs)], self.names)

    def run_tensors(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The results, each on its device, in the same way."""
        found: dict[int, Tensor] = {}
        programs = self.programs(inputs)
        for made, results in zip(programs, self.run_everywhere(inputs), strict=True):
            found.update(zip(made.part.results, results, strict=True))
        return [found[i] for i in range(len(self.graph.results))]

    @property
    def stages(self) -> Texts:
        """The texts of each device's program, one after the other."""
        first = len(self.graph.params) - len(self.graph.captures)
        made = next(iter(self._made.values()), None)
        made = made or self.programs([None] * first + self.graph.captures)
        every = [p.program.stages for p in made]
        names = dict.fromkeys(name for stages in every for name in stages)
        return Texts({name: partial(self._stage, name, every) for name in names})

    def _stage(self, name: str, every: Sequence[Texts]) -> str:
        pairs = zip(self.names, every, strict=True)
        return "\n\n".join(f"-- {at}\n{stages[name]}" for at, stages in pairs if name in stages)


class _PartProgram:
    """The program of one device."""

    def __init__(self, whole: Graph, part: Part, compile: _Compile) -> None:
        self.part, self.device = part, part.graph.device
        graph = part.graph
        graph.captures = [_at(capture, self.device) for capture in graph.captures]
        self.first = len(whole.params) - len(whole.captures)
        numbers = [i for i in part.parameters if i >= self.first]
        pairs = zip(numbers, graph.captures, strict=True)
        self.kept = {i: c for i, c in pairs if isinstance(c, Stream) or not isinstance(c, Variable)}
        self.program = compile(graph)
        if any(isinstance(capture, Mirror) for capture in graph.captures):
            self.program = MirroredProgram(graph, self.program)

    def run(self, inputs: Sequence[Any]) -> list[Tensor]:
        device, kept = self.device, self.kept
        given = [kept.get(i, inputs[i]) for i in self.part.parameters]
        with taping(()):
            found = self.program.run([buffer_of(x, device) for x in given])
            return [from_buffer(x, device) for x in found]


def _at(capture: Any, device: Device) -> Any:
    """A capture as the program of a device takes it."""
    if isinstance(capture, Stream):
        return capture.on(device)
    if isinstance(capture, Variable):
        return reachable(capture, device)
    return moved(capture, device)


_MOST_EXCHANGES = 256  # programs that are kept: those used last
_exchanges: OrderedDict[Hashable, ReplicatedProgram] = OrderedDict()
_lock = locks.reentrant_lock()


def exchanged(
    op: Op, values: Sequence[Tensor], devices: Sequence[Device], attrs: Mapping[str, Any]
) -> list[Tensor]:
    """What each device gets of an exchange (`treadle.ops.control.replicas`) outside of functions.

    Args:
        values: one of each replica.
    """
    with taping(()):
        given = [moved(x, d) for x, d in zip(values, devices, strict=True)]
    specs = [x.spec.on(devices[0]) for x in given]
    key = op, tuple(devices), tuple((s.dtype, s.dims) for s in specs), tuple(attrs.items())
    with _lock:
        program = _exchanges.get(key)
        if program is None:
            program = _exchanges[key] = _exchange(op, given, devices, attrs)
            if len(_exchanges) > _MOST_EXCHANGES:
                _exchanges.popitem(last=False)
    return [results[0] for results in program.run_everywhere(given)]


def _exchange(
    op: Op, values: Sequence[Tensor], devices: Sequence[Device], attrs: Mapping[str, Any]
) -> ReplicatedProgram:
    graph = Graph(op.name, devices[0])
    graph.devices = tuple(devices)
    params = [graph.add_param(type(x.spec)(x.spec.dims, x.spec.dtype)) for x in values]
    specs = infer_outputs(op, [p.spec for p in params], attrs)
    node = graph.append(Node(op, params, attrs, specs))
    graph.results = list(node.outputs)
    return ReplicatedProgram(graph, everywhere=True)

