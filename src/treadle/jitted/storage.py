"""The elements of arrays while a function is traced.

An array changes in place; a value of the graph does not. A `Storage` stands between the two: it
holds the tensor that its elements are at this point of the trace, and writing replaces that tensor.
Branches and loop bodies are traced inside a `Scope`, which notes the storages that are written, so
that the branch or loop can give them back merged or carried.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.context import context, recording
from treadle.core.interrupts import is_mode
from treadle.core.origin import LINE_MAPS, at, user_origin
from treadle.core.tensor import Tensor, from_array
from treadle.jitted.errors import CallsItself, NotStaged
from treadle.jitted.variables import variable_over
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import numpy_rules
from treadle.ops.state import Variable


class Storage:
    """The elements that an array and its views share.

    Attributes:
        tensor: the elements at this point of the trace.
        home: the scope in which the storage was made; None outside of all.
        argument: the name of the argument whose elements these are; None for others.
        apart: storages of a branch's or loop's results that are known to be other arrays.
    """

    __slots__ = ("__weakref__", "_tensor", "apart", "argument", "home")

    def __init__(self, tensor: Tensor, argument: str | None = None) -> None:
        self._tensor = tensor
        self.home = scopes.innermost
        self.argument = argument
        self.apart: set[Storage] = set()

    @property
    def tensor(self) -> Tensor:
        for scope in reversed(scopes.open):
            if scope is self.home:
                break
            scope.reads.add(self)
        return self._tensor

    def write(self, tensor: Tensor) -> None:
        """Replace all elements."""
        if self in listed.storages:
            raise NotStaged(
                "An array changes in place that was added to a list which grows in a loop or "
                "branch that depends on array values: add a copy of it, .copy()"
                f"{at(user_origin())}"
            )
        self.note_change(True)
        self._tensor = tensor

    def note_change(self, written: bool = False) -> None:
        """Have every open scope put the elements back when it ends, and list them as `written`."""
        for scope in reversed(scopes.open):
            if scope is self.home:
                break
            scope.before.setdefault(self, self._tensor)
            if written:
                scope.written[self] = None

    @property
    def held(self) -> Tensor:
        """The elements, without noting that they are read."""
        return self._tensor

    def roots(self) -> list[Storage]:
        """The storages that hold the elements."""
        return [self]

    def marks(self) -> list[Tensor]:
        """Tensors that are others once any of the elements has changed."""
        return [root.held for root in self.roots()]

    def put_back(self, tensor: Tensor) -> None:
        """Set the elements without noting that they changed."""
        self._tensor = tensor


class _Listed(threading.local):
    """The storages of arrays in lists of the graph, which keep the elements at that time."""

    def __init__(self) -> None:
        self.storages: set[Storage] = set()


listed = is_mode(_Listed())


class Scope:
    """A branch or loop body that is being traced.

    Attributes:
        written: the storages from outside that were written, in order.
        before: the earlier elements of these, and of others that a loop carries.
        after: the tensors of those that were written at the end.
        reads: the storages from outside that were read.
    """

    def __init__(self) -> None:
        self.written: dict[Storage, None] = {}
        self.before: dict[Storage, Tensor] = {}
        self.after: dict[Storage, Tensor] = {}
        self.reads: set[Storage] = set()

    def close(self) -> None:
        """Keep the written tensors in `after`, and put the earlier elements back."""
        self.after = {storage: storage.held for storage in self.written}
        for storage, tensor in self.before.items():
            storage.put_back(tensor)


_DEEP = 40  # branches and bodies inside of one another, from which on it may be a recursion


def check_recursion() -> None:
    """
    Raises:
        CallsItself: a function calls itself in the branches and bodies that are being traced.
    """
    frame: Any = sys._getframe(2)
    calls: Counter[Any] = Counter()
    while frame is not None:
        code = frame.f_code
        if code.co_filename in LINE_MAPS and code.co_name == code.co_qualname.split(".")[-1]:
            calls[code] += 1
        frame = frame.f_back
    found, number = calls.most_common(1)[0] if calls else (None, 0)
    if found is not None and number > _DEEP // 4:
        raise CallsItself(found.co_name, found, at(user_origin()))


class _Scopes(threading.local):
    """The scopes that are being traced in this thread, the outermost first."""

    open: tuple[Scope, ...] = ()

    @property
    def innermost(self) -> Scope | None:
        return self.open[-1] if self.open else None


scopes = is_mode(_Scopes())


class scope:
    """Trace a branch or body: storages are as before at the end."""

    def __enter__(self) -> Scope:
        self._made, self._before = Scope(), scopes.open
        if len(scopes.open) > _DEEP:
            check_recursion()
        scopes.open = (*self._before, self._made)
        return self._made

    def __exit__(self, *error: object) -> None:
        scopes.open = self._before
        self._made.close()


# -- arrays that are no arguments ----------------------------------------------------------------


class CapturedStorage(Storage):
    """An array that the function finds by name: each call reads the elements that it has then."""

    __slots__ = ()

    def write(self, tensor: Tensor) -> None:
        raise TypeError(
            "A jitted function changes an array in place that is not one of its arguments: pass "
            f"the array as an argument{at(user_origin())}"
        )


class _Captured(threading.local):
    """The arrays that the trace of this thread has captured, by id, and their storages; memory that
    it changes, too, with the elements from before."""

    def __init__(self) -> None:
        self.storages: dict[int, tuple[Any, Storage]] = {}
        self.states: dict[int, tuple[Variable, Storage, Tensor]] = {}


_captured = is_mode(_Captured())


def captured_storage(array: np.ndarray[Any, Any]) -> Storage:
    """The storage for an array that is no argument; one for each object and trace."""
    known = _captured.storages.get(id(array))
    if known is None:
        root: Any = context.recorder
        while root.parent is not None:
            root = root.parent
        made = CapturedStorage(root.capture(from_array(array)))
        known = _captured.storages[id(array)] = array, made
    return known[1]


def state_storage(memory: np.ndarray[Any, Any]) -> Storage:
    """The storage for memory outside of the arguments that the function changes, one for each
    trace. `assign_states` has the program write what it becomes."""
    address = memory.__array_interface__["data"][0]
    known = _captured.states.get(address)
    if known is None:
        root: Any = context.recorder
        while root.parent is not None:
            root = root.parent
        variable = variable_over(memory)
        with recording(root):
            tensor = convert_to_tensor(variable)
        made = Storage(tensor)
        made.home = None
        known = _captured.states[address] = variable, made, tensor
    return known[1]


def states() -> list[Storage]:
    """The storages of memory outside of the arguments that the trace has captured."""
    return [storage for _, storage, _ in _captured.states.values()]


def assign_states() -> None:
    """At the end of a trace: have the program change the memory of the states that it writes."""
    for variable, storage, before in _captured.states.values():
        if storage.tensor is not before:
            variable.assign(storage.tensor)


class own_trace:
    """Trace a function: nothing is captured yet, and no branch or loop is open.

    Args:
        call_ufunc: computes a ufunc of symbolic numbers and NumPy's scalars.
    """

    def __init__(self, call_ufunc: Callable[..., Any]) -> None:
        self._call_ufunc = call_ufunc

    def __enter__(self) -> None:
        captured = _captured.storages, _captured.states
        self._before = scopes.open, captured, listed.storages, numpy_rules.call
        scopes.open, listed.storages = (), set()
        _captured.storages, _captured.states = {}, {}
        numpy_rules.call = self._call_ufunc

    def __exit__(self, *error: object) -> None:
        scopes.open, captured, listed.storages, numpy_rules.call = self._before
        _captured.storages, _captured.states = captured
