"""How calls of one signature run."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.jitted.arguments import Bound
from treadle.jitted.results import Results
from treadle.tracing.concrete import ConcreteFunction


class Plan:
    """How calls of one signature run.

    Attributes:
        concrete: the trace.
        written: the numbers of the leaves that the function changes in place.
        order: the number of the leaf that each of the program's operands is.
        results: how the caller's result is made of the program's.
        constants: the numbers of the leaves that are ints and constants of the program.
        used: whether a call came here since this was asked last.
    """

    def __init__(
        self, concrete: ConcreteFunction, written: Sequence[int], results: Results, bound: Bound
    ) -> None:
        self.concrete = concrete
        self.written = tuple(written)
        self.order = tuple(bound.order())
        self.results = results
        self.constants = frozenset(bound.constant_ints())
        self.used = True
