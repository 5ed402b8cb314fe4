"""Concrete functions called under gradient tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.calls import DifferentiableCall
from treadle.core.spec import array_spec
from treadle.core.tensor import Tensor, from_owned
from treadle.ops.state import Variable


def run_taped(concrete: Any, inputs: Sequence[Any]) -> list[Tensor]:
    """The flat results of a concrete function, recorded on the active tapes."""
    if concrete._gradient is None:
        with concrete._lock:
            if concrete._gradient is None:
                concrete._gradient = DifferentiableCall(
                    concrete.graph, lambda graph: _callable(concrete.compile(graph))
                )
    result: list[Tensor] = concrete._gradient(inputs)
    return result


def _callable(executable: Any) -> Callable[[Sequence[Any]], list[Tensor]]:
    """A program as a function of tensors and variables."""

    def run(inputs: Sequence[Any]) -> list[Tensor]:
        arrays = [x if isinstance(x, Variable) else x._array for x in inputs]
        return [from_owned(array, array_spec(array)) for array in executable.run(arrays)]

    return run
