"""Functions that run eagerly until their programs are there, compiled in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.context import context
from treadle.core.devices import HOST
from treadle.core.switches import is_on, may_be_off
from treadle.core.tensor import Tensor, buffer_of
from treadle.ops.state import Variable
from treadle.runtime.devices import backend
from treadle.tracing import settings
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function


class BackgroundFunction:
    """A function of host tensors that may change variables, and gives nothing.

    Its program does the same as calling it: the function has no other effects, asks for no
    elements, and gives the same trace for the same specs. From the second call with some specs on
    a thread traces and compiles it.

    Attributes:
        failure: why there is no program for some specs; the function remains eager for them.
    """

    def __init__(self, function: Callable[..., None], name: str) -> None:
        self._function = Function(function, autograph=False, name=name)
        self._name = name
        # By the specs of arguments: how often they were met, then the trace; None: there is none.
        self._met: dict[Any, int | ConcreteFunction | None] = {}
        self.failure: Exception | None = None

    def run(self, *args: Any) -> bool:
        """Run the program on the arguments; False where the caller is to call the function, as
        there is no program yet, tapes or traces are at work, or the arguments are small."""
        if context.counted or (may_be_off() and not is_on("eager_programs")):
            return False
        for x in args:
            if type(x) is not Tensor:
                return False
        key = tuple([x.spec for x in args])
        found = self._met.get(key, 0)
        if isinstance(found, int):
            found = self._asked(key, found, args)
        if found is None:
            return False
        found.executable.run([*map(buffer_of, args), *found.graph.captures])
        return True

    def _asked(self, key: Any, met: int, args: Sequence[Tensor]) -> ConcreteFunction | None:
        """The trace for arguments that were met so many times before, if it is compiled."""
        least = backend().eager_elements
        elements = sum(buffer_of(x).size for x in args)
        if least is None or elements < least or not is_on("eager_programs"):
            return None
        met += 1
        self._met[key] = met
        if settings.wait_for_eager_programs:
            self._compile(key)
        elif met > 1 and not met & met - 1:  # a fork drops what waits: ask again
            label = f"{self._name} {id(self)} {hash(key)}"
            backend().compile_later(label, lambda: self._compile(key))
        found = self._met[key]
        return None if isinstance(found, int) else found

    def _compile(self, key: Any) -> None:
        """Trace and compile, unless somebody has. It does not raise."""
        if not isinstance(self._met.get(key), int):
            return
        try:
            trace: Any = self._function.get_concrete_function(*key)
            captures = trace.graph.captures
            native = (
                trace.graph.device is HOST
                and trace.executable.mode == "native"
                and all(type(c) is Variable for c in captures)  # or it holds what may change
            )
            self._met[key] = trace if native else None
        except Exception as error:  # it asks for elements, or is refused: it remains eager
            self._met[key], self.failure = None, error
