"""Variables of other devices in compiled functions: a program works on mirrors of them.

A mirror is a variable of the program's device. It gets the value before a call, and gives its own
back after calls of programs that write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from treadle.core import dtypes
from treadle.core.context import taping
from treadle.core.devices import Device
from treadle.graph.ir import Graph
from treadle.ops.state import Variable
from treadle.runtime.executable import AroundProgram, Executable


class Mirror(Variable):
    """A variable that stands for another one on a device that cannot use its memory.

    Attributes:
        original: the other one, which lives as long as its mirrors.
    """

    __slots__ = ("original",)

    original: Variable


_mirrors: WeakValueDictionary[tuple[int, Device], Mirror] = WeakValueDictionary()


def reachable(variable: Variable, device: Device) -> Variable:
    """The variable, or its mirror where programs of the device cannot use its memory. Strings are
    on the host for all programs."""
    original = variable.original if isinstance(variable, Mirror) else variable
    if original.spec.device.storage is device.storage or original.dtype is dtypes.string:
        return original
    found = _mirrors.get((id(original), device))
    if found is None:
        made: Mirror = original.copied_to(device, Mirror)
        made.original = original
        found = _mirrors.setdefault((id(original), device), made)
    return found


class MirroredProgram(AroundProgram):
    """A program some of whose variables are on other devices."""

    def __init__(self, graph: Graph, program: Executable) -> None:
        super().__init__(graph, program)
        self._writes = any(node.op.effect in ("write", "io") for node in graph.walk())

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        device = self.graph.device
        given = [reachable(x, device) if isinstance(x, Variable) else x for x in arrays]
        mirrors = [x for x in given if isinstance(x, Mirror)]
        with taping(()):
            for mirror in mirrors:
                mirror.assign(mirror.original.read_value())
            try:
                return self.program.run(given)
            finally:
                if self._writes:
                    for mirror in mirrors:
                        mirror.original.assign(mirror.read_value())
