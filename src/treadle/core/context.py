"""What is going on in this thread: the graph being built, if any, and the active gradient tapes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from treadle.core import locks

if TYPE_CHECKING:
    from treadle.core.tensor import SymbolicTensor, Tensor


class Recorder(Protocol):
    """Builds a graph: ops are handed to it instead of being run."""

    def record(
        self, op: Any, inputs: Sequence[Any], attrs: Mapping[str, Any], regions: Sequence[Any] = ()
    ) -> tuple[SymbolicTensor, ...]:
        """Append a node and return its outputs."""

    def capture(self, value: Any) -> SymbolicTensor:
        """The graph's own view of an eager tensor, a variable or an outer graph's tensor."""

    def trace_region(self, fn: Callable[..., Any], specs: Sequence[Any]) -> Any:
        """A region whose parameters have `specs` and whose results are what ``fn(*params)``
        returns (a list of symbolic tensors)."""


class TapeLike(Protocol):
    """Watches operations so that gradients can be taken later."""

    def record(self, op: Any, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Tensor]) -> None:
        """Note one executed or traced operation."""

    def watches(self, x: Any) -> bool:
        """Whether operations on a tensor or variable would be noted."""

    def extend(self, output: Tensor, more: Sequence[Tensor]) -> None:
        """The traced node behind `output` got more outputs."""


class _Context(threading.local):
    recorder: Recorder | None = None
    tapes: tuple[TapeLike, ...] = ()
    counted: int = 0  # in `modes`


context = _Context()

# How many traces and sets of tapes are at work in all threads, and whether functions run eagerly:
# compiled calls look at it from native code.
modes = ctypes.c_int64(0)
_counting = locks.lock()


def count_modes(change: int) -> None:
    """Add to `modes`."""
    with _counting:
        modes.value += change


def executing_eagerly() -> bool:
    """True unless a function is being traced in this thread."""
    return context.recorder is None


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Ops go to `recorder` inside the block; None lifts them out of the trace (init_scope)."""
    before = context.recorder
    try:  # an interrupt may come at any instruction
        context.recorder = recorder
        recount()
        yield
    finally:
        context.recorder = before
        recount()


@contextmanager
def taping(tapes: tuple[TapeLike, ...]) -> Iterator[None]:
    """Exactly `tapes` watch inside the block."""
    before = context.tapes
    try:
        set_tapes(tapes)
        yield
    finally:
        set_tapes(before)


def set_tapes(tapes: tuple[TapeLike, ...]) -> None:
    """From now on exactly `tapes` watch."""
    context.tapes = tapes
    recount()


def recount() -> None:
    """Let `modes` count what is at work in this thread now, whatever it counted before."""
    wanted = (context.recorder is not None) + bool(context.tapes)
    change = wanted - context.counted
    if change:
        context.counted = wanted
        count_modes(change)
