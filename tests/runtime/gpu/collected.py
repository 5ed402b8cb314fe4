"""Programs as they are planned for a device with memory of its own, with their kernels and a call.

`Collection` is a backend whose programs run on the processor: it keeps the plan of each, and what
its first calls were given and gave. Then the kernels of all of them are compiled together, and the
calls are done again by a device that runs these kernels through the shim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.runtime.fuzz.compare import EPSILON, agree
from tests.runtime.gpu.on_processor import Form, Kernels
from tests.runtime.gpu.shimmed import Shimmed, ShimmedExecutable, forms
from treadle import runtime
from treadle.core.shapes import substitute
from treadle.ops.state import Variable
from treadle.runtime import devices, interpreter
from treadle.runtime.cpu.backend import cpu
from treadle.runtime.cpu.background import settle
from treadle.runtime.executable import Executable
from treadle.runtime.planned import Planned

Spread = Callable[[], list[Any]]  # how far rounding may move each result and variable
CALLS = 2  # of each program that are kept


@dataclass
class Call:
    """A call of a program.

    Attributes:
        source: what made it.
        values: arguments and captures.
        state: the variables among them, with their arrays before and after.
        tolerance: relative to the greatest magnitude of an array; None: a few roundings.
    """

    source: str
    planned: Planned
    values: list[Any]
    results: list[Any]
    state: list[tuple[Variable, Any, Any]]
    tolerance: float | None = None
    spread: Spread | None = None

    def repeated(self, kernels: Kernels) -> ShimmedExecutable:
        """Do it with kernels for a GPU; variables are afterwards what they were.

        Raises:
            Difference: it gives something else.
        """
        program = ShimmedExecutable(self.planned, kernels)
        now = [v.numpy().copy() for v, _, _ in self.state]
        try:
            for variable, before, _ in self.state:
                variable.assign(before)
            found = list(program.run(self.values))
            found += [v.numpy().copy() for v, _, _ in self.state]
        finally:
            for (variable, _, _), array in zip(self.state, now, strict=True):
                variable.assign(array)
        wanted = [*self.results, *(after for _, _, after in self.state)]
        spreads: list[Any] | None = None
        for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape:
                raise Difference(f"result {number}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
            if self._agree(a, b, None):
                continue
            if self.spread is not None:
                spreads = spreads or self.spread()
                if self._agree(a, b, spreads[number]):
                    continue
            raise Difference(f"result {number} is not\n{b}\nbut\n{a}")
        return program

    def _agree(self, found: Any, wanted: Any, spread: Any) -> bool:
        if self.tolerance is None or wanted.dtype.kind not in "fV" or not wanted.size:
            return all(agree(a, b, spread, EPSILON) for a, b in _parts(found, wanted))
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        return bool(np.allclose(a, b, 0, self.tolerance * np.abs(b).max(), equal_nan=True))


class Difference(Exception):
    """Kernels for a GPU give something else than the processor's program."""


def _parts(found: Any, wanted: Any) -> list[tuple[Any, Any]]:
    if wanted.dtype.kind == "c":
        return [(found.real, wanted.real), (found.imag, wanted.imag)]
    return [(found, wanted)]


@dataclass
class Collection(Shimmed):
    """The plans and calls of programs.

    Attributes:
        natively: whether programs are run by the processor's backend; else they are interpreted,
            which takes no compilation.
        source: what makes programs now, with the tolerance of their calls, and how many of these
            are kept.
        forms: the kernels, in the order in which they were met.
        launches: how many launches the programs have altogether.
        planned: the programs, with their kernels.
        programs: how many there are.
        sources: how many were asked for programs.
        unsupported: why a source has no program.
    """

    natively: bool = True
    source: str = ""
    tolerance: float | None = None
    spread: Spread | None = None
    most_calls: int = CALLS
    forms: dict[Form, None] = field(default_factory=dict)
    launches: int = 0
    planned: list[tuple[Planned, list[Form]]] = field(default_factory=list)
    sources: int = 0
    calls: list[Call] = field(default_factory=list)
    unsupported: dict[str, str] = field(default_factory=dict)

    def build(self, planned: Planned) -> Executable:  # type: ignore[override]
        found = list(forms(planned.block))
        self.forms |= dict.fromkeys(found)
        self.launches += len(found)
        self.planned.append((planned, found))
        return _Recorded(planned, self)

    def keep(
        self, planned: Planned, values: list[Any], results: list[Any],
        state: list[tuple[Variable, Any, Any]],
    ) -> None:  # fmt: skip
        """Keep a call."""
        call = Call(self.source, planned, values, results, state, self.tolerance, self.spread)
        self.calls.append(call)

    def collect(
        self, source: str, run: Callable[[], Any], tolerance: float | None = None,
        spread: Spread | None = None, calls: bool = True,
    ) -> None:  # fmt: skip
        """Collect the programs that `run` compiles, and the calls that it does if these are asked
        for, too."""
        self.source, self.tolerance, self.spread = source, tolerance, spread
        self.most_calls = CALLS if calls else 0
        self.sources += 1
        settle()  # no program of another test may be made by this backend
        try:
            with devices.using(self):
                run()
        except Exception as error:
            self.unsupported[source] = f"{type(error).__name__}: {error}"

    @property
    def programs(self) -> int:
        return len(self.planned)

    def not_run(self, kernels: Kernels) -> dict[str, str]:
        """Why no call has run a kernel, by its name."""
        called = {id(call.planned) for call in self.calls}
        reasons: dict[str, str] = {}
        for planned, found in self.planned:
            is_called = id(planned) in called
            reason = "in branches and loops that no call takes" if is_called else "no call is done"
            for form in found:
                name = kernels.codes[form].name
                if name not in kernels.ran and (is_called or name not in reasons):
                    reasons[name] = reason
        return reasons

    def differences(self, kernels: Kernels) -> dict[str, str]:
        """What goes wrong with the calls, by their sources."""
        found: dict[str, str] = {}
        for call in self.calls:
            try:
                call.repeated(kernels)
            except Exception as error:
                found[call.source] = f"{type(error).__name__}: {error}"
        return found


class _Recorded(Executable):
    mode = "apart"

    def __init__(self, planned: Planned, collection: Collection) -> None:
        super().__init__(planned.graph)
        self.planned, self.collection = planned, collection
        self.kept = 0
        if collection.natively:
            with devices.using(cpu):
                self.native = runtime.compile(planned.graph)

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        variables = [v for v in arrays if isinstance(v, Variable)]
        before = [v.numpy().copy() for v in variables]
        if self.collection.natively:
            results = self.native.run(arrays)
        else:
            results = interpreter.run(self.planned.graph, arrays)
        if self.kept < self.collection.most_calls and _fits(self.planned, arrays):
            self.kept += 1
            after = [v.numpy().copy() for v in variables]
            state = list(zip(variables, before, after, strict=True))
            self.collection.keep(self.planned, list(arrays), list(results), state)
        return results


def _fits(planned: Planned, arrays: Sequence[Any]) -> bool:
    """Whether the sizes are equal that the program takes to be equal: it is interpreted otherwise,
    whatever the device."""
    known = {s.name: np.shape(arrays[s.argument])[s.axis] for s in planned.signature.symbols}
    return all(substitute(a, known) == substitute(b, known) for a, b in planned.equal_sizes)
