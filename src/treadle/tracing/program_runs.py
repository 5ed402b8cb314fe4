"""Running the program of a trace on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.devices import Device
from treadle.core.tensor import Tensor, buffer_of, from_buffer


def run_program(program: Any, inputs: Sequence[Any], device: Device) -> list[Tensor]:
    """The results of a program of a device, or of several (`ReplicatedProgram`), for tensors,
    arrays and variables."""
    run_tensors = getattr(program, "run_tensors", None)
    if run_tensors is not None:
        found: list[Tensor] = run_tensors(inputs)
        return found
    results = program.run([buffer_of(x, device) for x in inputs])
    return [from_buffer(result, device) for result in results]
