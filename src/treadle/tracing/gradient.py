"""Concrete functions called under gradient tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.compiled_calls import DifferentiableCall
from treadle.core.context import beginning, ran, tell_watchers
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph
from treadle.tracing.program_runs import run_program


def run_taped(concrete: Any, inputs: Sequence[Any]) -> list[Tensor]:
    """The flat results of a concrete function, recorded on the active tapes."""
    return _differentiable(concrete)(inputs)


def prepare_taped(concrete: Any, needs: Sequence[bool]) -> None:
    """Compile what calls need under one tape that watches these inputs."""
    _differentiable(concrete).prepare(needs)


def _differentiable(concrete: Any) -> DifferentiableCall:
    if concrete._gradient is None:
        with concrete._lock:
            if concrete._gradient is None:
                concrete._gradient = DifferentiableCall(
                    concrete.graph, lambda graph: _callable(concrete.compile(graph), graph)
                )
    result: DifferentiableCall = concrete._gradient
    return result


def _callable(executable: Any, graph: Graph) -> Callable[[Sequence[Any]], list[Tensor]]:
    """A program as a function of tensors and variables."""
    device = graph.device

    def run(inputs: Sequence[Any]) -> list[Tensor]:
        ran(f"__inference_{graph.name}", device)
        since = beginning()
        results = run_program(executable, inputs, device)
        tell_watchers(graph.name, device, since, graph)
        return results

    return run
