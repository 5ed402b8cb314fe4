"""From a graph to a block of steps: its parameters, its region, its results."""

from __future__ import annotations

from typing import Any

from treadle.core.spec import ListSpec, ResourceSpec
from treadle.core.switches import is_on
from treadle.core.tensor import buffer_of
from treadle.graph.ir import Value
from treadle.kernel.ir import const
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.failures import postpone_to_failures
from treadle.runtime.schedule.region import RegionBuilder
from treadle.runtime.schedule.steps import Block, Deliver, Evaluate, LoadScalar, Place, Verdict
from treadle.runtime.symbols import checked_on_entry, symbol_sources, unknown_symbols


def build_schedule(program: Builder) -> Block:
    """The schedule of the graph.

    Raises:
        Unsupported: the graph needs the interpreter.
    """
    graph = program.graph
    program.known = {s.name for s in symbol_sources(graph.params)}
    at_entry = set(program.known)
    program.sizes.add(checked_on_entry(graph, at_entry))
    block = Block()
    for number, param in enumerate(graph.params):
        _bind_param(program, number, param, block)
    targets = [_target(program, n, v, at_entry) for n, v in enumerate(graph.results)]
    wanted: dict[Value, Place] = {}
    for value, target in zip(graph.results, targets, strict=True):
        if target is not None:
            wanted.setdefault(value, target)
    inner = RegionBuilder(program, graph, *program.schedule(graph), wanted).run()
    block.steps += inner.steps
    for number, (operand, target) in enumerate(zip(inner.results, targets, strict=True)):
        if target is None:
            reads = [] if operand.place is None else [operand.place]
            block.steps.append(Deliver(number, operand, reads=reads))
        elif operand.place is not target:
            block.steps.append(program.copy(operand, target))
    if program.facts.unified and is_on("told_late"):
        postpone_to_failures(block)
    status = program.status
    if status.findings:
        block.steps.append(Verdict(status.word, status.findings, reads=status.places))
    return block


def _target(program: Builder, number: int, value: Value, at_entry: set[str]) -> Place | None:
    """Where a result goes; None for one whose size is not known on entry."""
    if isinstance(value.spec, ListSpec | ResourceSpec):
        raise Unsupported(f"the result {value} is no tensor")
    if unknown_symbols([value], at_entry):
        program.delivered.append(number)
        return None
    return Place("output", number, value.spec.dtype, value.spec.dims)


def _bind_param(program: Builder, number: int, param: Value, block: Block) -> None:
    spec = param.spec
    if isinstance(spec, ListSpec):
        raise Unsupported("a list is an argument")
    if isinstance(spec, ResourceSpec):
        if not spec.may_vary:  # else Python reads and assigns it
            program.require_known([param], "the parameter")
        program.variables[param] = number
        return
    program.require_known([param], "the parameter")
    graph = program.graph
    captured = number - len(graph.params) + len(graph.captures)
    if captured >= 0 and not graph.captures[captured].is_symbolic:
        _bind_capture(program, param, graph.captures[captured], block)
        return
    place = Place("argument", number, spec.dtype, spec.dims)
    program.arguments.append(place)
    if program.facts.unified and spec.rank == 0:
        block.steps.append(LoadScalar(param, place, reads=[place]))
    else:
        program.places[param] = place


def _bind_capture(program: Builder, param: Value, capture: Any, block: Block) -> None:
    """A captured tensor never changes: it is a constant. Where a trace outside makes it, its value
    is an argument of each run."""
    place = program.constant_place(buffer_of(capture, program.graph.device), param.spec)
    if program.facts.unified and param.spec.rank == 0:
        block.steps.append(LoadScalar(param, place, reads=[place]))
    elif program.is_register(param):
        block.steps.append(Evaluate(param, const(buffer_of(capture), param.spec.dtype), {}))
    else:
        program.places[param] = place
