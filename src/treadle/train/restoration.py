"""Values of a checkpoint brought to the objects of a program, also to those that come later."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.context import recording
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable
from treadle.train import nodes, states, trackable
from treadle.train.growing import watched
from treadle.train.nodes import PYTHON_STATE, STATE, VALUE, Node
from treadle.train.python_state import PythonState
from treadle.train.reader import File
from treadle.train.safetensors import Array

_WAITING = "_restorations"  # the attribute of objects whose children may still come
_orders = itertools.count()
_latest: dict[int, tuple[weakref.ref[Any], int]] = {}  # by ids of objects: see `Restoration.order`


class Restoration:
    """A checkpoint whose nodes are found among objects, by the names of their references.

    Objects that refer to less than the checkpoint knows keep the restoration under `_WAITING`:
    when they are given a further attribute, they call `extend`.

    Attributes:
        bound: the objects that were found, by number of node.
        restored: the numbers of those whose values are restored.
        order: how many restorations began before. An object that several ones find has the value of
            the last one that began, whichever found it first.
    """

    def __init__(self, file: File, graph: list[Node]) -> None:
        self.file, self.nodes, self.order = file, graph, next(_orders)
        self.paths = nodes.paths(graph)
        self.bound: dict[int, Any] = {}
        self.restored: set[int] = set()
        self._numbers: dict[int, int] = {}  # of nodes, by ids of objects
        self._told: list[Any] = []  # the objects that keep this under `_WAITING`
        self._slots = {
            number: list(nodes.slots_of(graph, number)) for number in range(len(graph))
        }
        self._missing = sum(bool(node.values) for node in graph)

    def stands_for(self, value: Any, number: int) -> None:
        """Take a second object for a node: the root of a `Checkpoint`, beside it."""
        self._numbers[id(value)] = number
        self._wait(value, number)

    def number_of(self, value: Any) -> int | None:
        """The node of an object that was found."""
        return self._numbers.get(id(value))

    def attribute_set(self, value: Any, name: str, new: Any) -> None:
        """Go on where an object was given an attribute; of a list or dict also when it grows."""
        if id(new) not in self._numbers:  # one that was found already may have grown in place
            new = self._watch(value, name, new)
        if trackable.holds(new):
            self.extend(value)

    def extend(self, value: Any, number: int | None = None) -> None:
        """Find what is reached from an object, and restore it: all of it, or none where something
        does not fit.

        Args:
            number: its node, unless it is known.

        Raises:
            ValueError: a variable has another shape than in the checkpoint.
            InvalidArgumentError: a variable has another dtype.
            DataLossError: the checkpoint is damaged.
        """
        if number is None:
            number = self._numbers.get(id(value))
            if number is None:
                return
        found = list(self._reached(value, number))
        ready = [one for one in found if one[1] not in self.restored]
        for one, place in ready:
            self._check(one, place)
        values = [self._value(one, place) for one, place in ready]
        pairs = list(zip(ready, values, strict=True))
        pairs.sort(key=lambda pair: isinstance(pair[0][0], Variable))  # what may refuse comes first
        for (one, place), new in pairs:
            if self._is_latest(one):
                _put(one, new)
            self.restored.add(place)
        if len(self.restored) >= self._missing:
            self._stop_waiting()

    def _is_latest(self, value: Any) -> bool:
        """Whether no restoration that began later has given a value to the object."""
        key = id(value)
        known = _latest.get(key)
        if known is not None and known[0]() is value and known[1] > self.order:
            return False
        _latest[key] = weakref.ref(value, lambda _: _latest.pop(key, None)), self.order
        return True

    def _reached(self, value: Any, number: int) -> Iterator[tuple[Any, int]]:
        """The objects with values that are reached from one, and their nodes."""
        waiting, seen = [(value, number)], set[int]()
        while waiting:
            value, number = waiting.pop()
            known = self._numbers.get(id(value))
            if id(value) in seen or (known is None and number in self.bound) or (
                known is not None and known != number
            ):
                continue  # two objects for one node, or the other way round: the first one stays
            seen.add(id(value))
            self.bound.setdefault(number, value)
            self._numbers[id(value)] = number
            if trackable.attribute_of(value) in self.nodes[number].values:
                yield value, number
            waiting += self._below(value, number)
            self._wait(value, number)
        for slot, place in list(self._found_slots()):
            self.bound[place] = slot
            self._numbers[id(slot)] = place
            yield slot, place

    def _below(self, value: Any, number: int) -> list[tuple[Any, int]]:
        found = []
        for name, child in reversed(trackable.children(value).items()):
            below = self._numbers.get(id(child))
            if below is None:
                below = self._child(value, number, name)
            if below is not None:
                found.append((child, below))
        return found

    def _child(self, value: Any, number: int, name: str) -> int | None:
        """The node of a child, by its name or by one that others give it."""
        own = self.nodes[number].children.get(name)
        if own is not None:
            return own
        for path in trackable.other_names(value, name):
            at: int | None = number
            for part in path.split("/"):
                at = None if at is None else self.nodes[at].children.get(part)
            if at is not None:
                return at
        return None

    def _found_slots(self) -> Iterator[tuple[Variable, int]]:
        """The slots of optimizers and variables that both are found; optimizers make them."""
        for number, listed in self._slots.items():
            make = getattr(self.bound.get(number), "_trackable_slot", None)
            if make is None:
                continue
            for slot in listed:
                variable = self.bound.get(slot.variable)
                if slot.value not in self.bound and isinstance(variable, Variable):
                    with recording(None):
                        made = make(variable, slot.name)
                    if made is not None:
                        yield made, slot.value

    # -- values ----------------------------------------------------------------------------------

    def _check(self, value: Any, number: int) -> None:
        if not isinstance(value, Variable):
            return
        name = self.nodes[number].values[VALUE]
        entry = self.file.entries().get(name)
        if entry is None:
            raise errors.DataLossError(
                None, None, f"{self.file.name} has no value {name!r} of {self._shown(number)}"
            )
        check_fits(value, *entry, f"{self.file.name}: {self._shown(number)}")

    def _shown(self, number: int) -> str:
        return repr(self.paths.get(number, f"node {number}"))

    def _value(self, value: Any, number: int) -> Any:
        """The value of an object in the checkpoint: an array, or a state."""
        names = self.nodes[number].values
        if isinstance(value, Variable):
            return self.file.read(names[VALUE])
        if isinstance(value, PythonState):
            return self.file.read(names[PYTHON_STATE]).item()
        return states.from_text(self.file.read(names[STATE]).item().decode(), self.file.read)

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self, value: Any, number: int) -> None:
        """Have an object tell of its further attributes, and of what its lists and dicts get."""
        own = getattr(value, "__dict__", None)
        if own is None or not hasattr(type(value), "_trackable_children"):
            return
        others = own.get(_WAITING, ())
        if self not in others:
            own[_WAITING] = (*others, self)  # the latest is the last to assign
            self._told.append(value)
            for name, child in self.nodes[number].children.items():
                held = own.get(name)
                if isinstance(held, list | dict) and len(held) < len(self.nodes[child].children):
                    kept = self._watch(value, name, held)
                    self.bound[child], self._numbers[id(kept)] = kept, child

    def _watch(self, value: Any, name: str, new: Any) -> Any:
        """Have a list or dict that is an attribute of an object tell when it grows."""
        kept = watched(new, functools.partial(self.extend, value))
        if kept is not new:
            object.__setattr__(value, name, kept)
        return kept

    def _stop_waiting(self) -> None:
        for value in self._told:
            own = value.__dict__
            left = tuple(r for r in own.get(_WAITING, ()) if r is not self)
            if left:
                own[_WAITING] = left
            else:
                own.pop(_WAITING, None)
        self._told.clear()


def check_fits(
    variable: Variable, shape: tuple[int, ...], dtype: dtypes.DType, where: str
) -> None:
    """Compare a variable with a value of a checkpoint.

    Args:
        where: the file and the value, for errors.

    Raises:
        ValueError: another shape.
        InvalidArgumentError: another dtype.
    """
    if not variable.shape.is_compatible_with(shape):
        raise ValueError(
            f"Received incompatible tensor with shape {shape} when attempting to restore variable "
            f"with shape {tuple(variable.shape)} and name {variable.name}: {where}"
        )
    if variable.dtype is not dtype:
        raise errors.InvalidArgumentError(
            None, None,
            f"{where} has dtype {dtype.name}; expected dtype {variable.dtype.name} of variable "
            f"{variable.name}",
        )  # fmt: skip


def _put(value: Any, new: Any) -> None:
    if isinstance(value, Variable):
        assign(value, new)
    elif isinstance(value, PythonState):
        value.deserialize(new)
    else:
        value._load_state_dict(new)


def assign(variable: Variable, array: Array) -> None:
    """Assign an array now, also while a function is traced."""
    with recording(None):
        variable.assign(convert_to_tensor(array, variable.dtype))


def by_names(file: File, variables: list[Variable]) -> None:
    """Restore variables from a checkpoint that has no graph of objects, by their names.

    Raises:
        ValueError, InvalidArgumentError: as for `check_fits`.
    """
    entries = file.entries()
    found = [(v, name) for v in variables if (name := v.name.rpartition(":")[0]) in entries]
    for variable, name in found:
        check_fits(variable, *entries[name], f"{file.name}: {name!r}")
    arrays = [file.read(name) for _, name in found]
    for (variable, _), array in zip(found, arrays, strict=True):
        assign(variable, array)

