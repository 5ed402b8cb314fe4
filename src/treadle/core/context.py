"""The state of this thread: the graph being built, if any, the active gradient tapes, and on which
device operations are to run."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from treadle.core import locks
from treadle.core.devices import HOST, Device
from treadle.core.interrupts import is_mode, settles

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

    def operation_scope(self) -> str:
        """What the names of operations begin with that are recorded now, as ``outer/dense/``."""

    def call_named(self, call: Callable[[], Any], name: str) -> Any:
        """The results of a call whose operation has a name."""

    def trace_region(self, fn: Callable[..., Any], specs: Sequence[Any]) -> Any:
        """A region whose parameters have `specs` and whose results are the symbolic tensors that
        ``fn(*params)`` returns in a list."""


class TapeLike(Protocol):
    """Watches operations so that gradients can be taken later."""

    def record(self, op: Any, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Tensor]) -> None:
        """Note one executed or traced operation."""

    @property
    def is_over(self) -> bool:
        """Whether the block that it watches has ended without telling it."""

    def watches(self, x: Any) -> bool:
        """Whether operations on a tensor or variable would be noted."""

    def extend(self, output: Tensor, more: Sequence[Tensor]) -> None:
        """The traced node behind `output` got more outputs."""

    def mark(self) -> int:
        """How many operations were noted until now."""

    def forget_since(self, mark: int) -> None:
        """Forget the operations that were noted after a mark: they are part of another one."""


class Watcher(Protocol):
    """Is told what ran, in all threads."""

    def ran(self, name: str, device: Device, since: int, of: Any) -> None:
        """An operation or program has run.

        Args:
            since: when it began, in nanoseconds of ``time.perf_counter_ns``; it ends now.
            of: the inputs and outputs of an operation, the graph of a program.
        """


class Place(NamedTuple):
    """What a device scope says.

    Attributes:
        device: where operations run; None: where their operands are.
        spec: the parts of device names that inner scopes complete theirs with, or None.
        stays: whether `home` is the host inside.
    """

    device: Device | None
    spec: Any = None
    stays: bool = False


class _Home:
    """The device of what no scope and no operand places; None: nobody has asked for it yet."""

    device: Device | None = None
    find: Callable[[], Device] = staticmethod(lambda: HOST)


class _Log:
    """Who is told what runs.

    Attributes:
        write: writes a line for what runs in threads that know of it; None: nothing is written.
        watchers: are told what runs in any thread.
    """

    write: Callable[[str], object] | None = None
    watchers: tuple[Watcher, ...] = ()


_log = _Log()


class _Context(threading.local):
    """Attributes:
        places: the device scopes at work, the innermost last.
        counted: what this thread has in `modes`, 1 more where operations in no scope may run
            elsewhere than on the host (`home`), and 1 more where there are watchers; -1: not
            counted, or an interrupt came. Where it is 0 there is no recorder and no tape, no
            operation runs elsewhere because of its place, and nobody is told what runs.
    """

    def __init__(self) -> None:
        if _log.write is not None:
            self.counted = -1

    recorder: Recorder | None = None
    tapes: tuple[TapeLike, ...] = ()
    places: tuple[Place, ...] = ()
    counted: int = 1  # of threads with nothing at work, until `home` is found


class _Naming(threading.local):
    scope = ""  # what names of variables and operations begin with, as ``outer/inner/``
    # What names of operations begin with instead of the scopes up to here, and these: layers name
    # the operations of a call, but not the variables that it makes.
    layers: tuple[str, str] = ("", "")
    creators: tuple[Callable[..., Any], ...] = ()  # what makes variables, the outermost first


context = is_mode(_Context())
naming = is_mode(_Naming())

# How many traces, sets of tapes and scopes of other devices are at work in all threads, whether
# functions run eagerly, and whether there are watchers: compiled calls look at it from native code.
modes = ctypes.c_int64(0)
eager_modes = ctypes.c_int64(1)  # the same, and whether eager operations may run elsewhere
_counts: dict[object, int] = {}  # the terms of `modes`: one for each thread, and one for a setting
_counting = locks.reentrant_lock()


def count_modes(of: object, number: int) -> None:
    """Let `modes` count `number` for a thread or a setting."""
    with _counting:
        if number:
            _counts[of] = number
        else:
            _counts.pop(of, None)
        modes.value = sum(_counts.values())
        eager_modes.value = modes.value + (_Home.device is not HOST)


class GraphMode:
    """Graphs of TensorFlow 1.

    Attributes:
        is_on: whether a block around makes one the default, as `td.compat.v1` says.
        scope: the graph that a user's name scope belongs to, and what the scope is called there;
            None where it belongs to none.
    """

    is_on: Callable[[], bool] = staticmethod(lambda: False)
    scope: Callable[[str], tuple[Any, str] | None] = staticmethod(lambda name: None)


def executing_eagerly() -> bool:
    """Whether operations run at once: no function is being traced in this thread, and no block
    around makes a graph of `td.compat.v1` the default."""
    return context.recorder is None and not GraphMode.is_on()


class recording:
    """Ops go to `recorder` inside the block; None lifts them out of the trace (init_scope)."""

    __slots__ = ("_before", "_recorder")

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        self._before = context.recorder
        _set_recorder(self._recorder)

    def __exit__(self, *error: object) -> None:
        _set_recorder(self._before)


class taping:
    """Exactly `tapes` watch inside the block."""

    __slots__ = ("_before", "_tapes")

    def __init__(self, tapes: tuple[TapeLike, ...]) -> None:
        self._tapes = tapes

    def __enter__(self) -> None:
        self._before = context.tapes
        set_tapes(self._tapes)

    def __exit__(self, *error: object) -> None:
        set_tapes(self._before)


class noted_meanwhile:
    """Tapes forget at the end of the block what they noted in it: operations of a trace, which they
    see as others afterwards. Gradients may be taken inside."""

    __slots__ = ("_marks",)

    def __enter__(self) -> None:
        self._marks = [(tape, tape.mark()) for tape in context.tapes]

    def __exit__(self, *error: object) -> None:
        for tape, mark in self._marks:
            tape.forget_since(mark)


class placing:
    """Eager operations run, and tensors and variables are made, on `device` inside the block, and
    traced operations ask for it. None: they run where their operands are, as outside of scopes.

    Args:
        spec, stays: see `Place`.
    """

    __slots__ = ("_before", "_place")

    def __init__(self, device: Device | None, spec: Any = None, stays: bool = False) -> None:
        self._place = Place(device, spec, stays)
        self._before: list[tuple[Place, ...]] = []  # several: a block may enter it again

    def __enter__(self) -> None:
        self._before.append(context.places)
        _set_places((*context.places, self._place))

    def __exit__(self, *error: object) -> None:
        _set_places(self._before.pop())


def placed() -> Device | None:
    """The device that the innermost scope names."""
    places = context.places
    return places[-1].device if places else None


def placed_elsewhere() -> Device | None:
    """The same where it is not the host."""
    device = placed()
    return None if device is HOST else device


def home() -> Device:
    """The device of work that neither a scope nor an operand places: the first GPU that programs
    see, else the host. It is looked for once, when the first operation runs or the first function
    is traced."""
    places = context.places
    if places and places[-1].stays:
        return HOST
    if _Home.device is None:
        set_home(_Home.find())
    assert _Home.device is not None
    return _Home.device


def find_home_by(find: Callable[[], Device]) -> None:
    """Let ``find()`` say what `home` is."""
    _Home.find = staticmethod(find)


def set_home(device: Device | None) -> None:
    """Say what `home` is; None: it is to be looked for."""
    _Home.device = device
    _count_idle()
    with _counting:
        eager_modes.value = modes.value + (device is not HOST)


def _count_idle() -> None:
    """Count what is counted in threads with nothing at work, and in this one."""
    _Context.counted = (_Home.device is not HOST) + bool(_Log.watchers)
    context.counted = -1
    recount()


# `counted` is -1 from before a mode changes until it is counted: where an interrupt comes meanwhile
# `modes` may be too high for this thread, and the next call of a compiled function counts again.


def _set_recorder(recorder: Recorder | None) -> None:
    context.counted = -1
    context.recorder = recorder
    recount()


def _set_places(places: tuple[Place, ...]) -> None:
    context.counted = -1
    context.places = places
    recount()


def set_tapes(tapes: tuple[TapeLike, ...]) -> None:
    """From now on exactly `tapes` watch."""
    context.counted = -1
    context.tapes = tapes
    recount()


def add_tape(tape: TapeLike) -> None:
    """From now on `tape` watches, too. That is the last thing done: an interrupt comes before it or
    within the block that the tape watches."""
    tapes = (*context.tapes, tape)
    context.counted = -1
    _count(_at_work() + (not context.tapes))
    context.tapes = tapes


def watched() -> bool:
    """Whether tapes watch in this thread. Those whose blocks an interrupt has ended are let go, and
    an interrupted count is made again."""
    if context.counted < 0 or any(tape.is_over for tape in context.tapes):
        set_tapes(tuple([tape for tape in context.tapes if not tape.is_over]))
    return bool(context.tapes)


def recount() -> None:
    """Let `modes` count what is at work in this thread now."""
    wanted = _at_work()
    if wanted + _beside() != context.counted:
        _count(wanted)


def _count(wanted: int) -> None:
    """Let `modes` count so many for this thread."""
    count_modes(threading.get_ident(), wanted)
    if wanted == 0 and not context.places:
        context.__dict__.pop("counted", None)  # as in all threads with nothing at work
    else:
        context.counted = wanted + _beside()


def _beside() -> int:
    """What is counted for this thread but is not in `modes` for it."""
    return _may_leave() + bool(_Log.watchers)


def _may_leave() -> bool:
    """Whether operations may run elsewhere than on the host though no scope says so."""
    places = context.places
    if places and (places[-1].device is not None or places[-1].stays):
        return False
    return _Home.device is not HOST


def _at_work() -> int:
    traces, scopes = context.recorder is not None, placed_elsewhere() is not None
    return traces + bool(context.tapes) + scopes + (_log.write is not None)


def log_placement(write: Callable[[str], object] | None) -> None:
    """Write a line for each operation and program that this thread, and threads that begin later,
    run; None: no more."""
    context.counted = -1
    _log.write = write
    recount()


def ran(name: str, device: Device) -> None:
    """Tell the log what runs where."""
    if _log.write is not None:
        _log.write(f"Executing op {name} in device {device.name}\n")


def add_watcher(watcher: Watcher) -> None:
    """Tell `watcher` from now on what runs. Threads that are in a scope of the host when this is
    called tell it of their operations when they have left it."""
    _set_watchers((*_Log.watchers, watcher))


def remove_watcher(watcher: Watcher) -> None:
    """Tell it nothing any more."""
    _set_watchers(tuple(w for w in _Log.watchers if w is not watcher))


def _set_watchers(watchers: tuple[Watcher, ...]) -> None:
    _Log.watchers = watchers
    count_modes("watchers", int(bool(watchers)))
    _count_idle()


def beginning() -> int:
    """The time at which something begins of which watchers are told, in nanoseconds; 0 where there
    are none."""
    return perf_counter_ns() if _Log.watchers else 0


def tell_watchers(name: str, device: Device, since: int, of: Any) -> None:
    """Tell the watchers of what has run; see `Watcher.ran`."""
    if since:
        for watcher in _Log.watchers:
            watcher.ran(name, device, since, of)


@settles
def _count_again() -> None:
    context.counted = -1
    recount()


def _after_fork() -> None:
    """Other threads do not exist in the child."""
    me = threading.get_ident()
    for thread in [k for k in _counts if isinstance(k, int) and k != me]:
        count_modes(thread, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
