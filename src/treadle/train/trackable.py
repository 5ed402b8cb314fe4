"""What checkpoints find in objects: what they refer to, and the values that they hold.

Objects say what they refer to by ``_trackable_children()``, a dict. Lists, tuples and dicts refer
to their elements; Modules to what their attributes hold. The values are those of variables, the
strings of a `PythonState`, and what objects with ``_state_dict()`` and ``_load_state_dict(state)``
describe themselves by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from treadle.ops.random.generator import Generator
from treadle.ops.state import Variable
from treadle.train.nodes import PYTHON_STATE, STATE, VALUE, escaped
from treadle.train.python_state import PythonState


def is_stateful(value: Any) -> bool:
    """Whether the object describes itself by a dict."""
    return hasattr(value, "_state_dict") and hasattr(value, "_load_state_dict")


def is_trackable(value: Any) -> bool:
    """Whether a checkpoint can hold the object."""
    own = isinstance(value, Variable | Generator | list | tuple | dict)
    return own or hasattr(type(value), "_trackable_children") or is_stateful(value)


def attribute_of(value: Any) -> str | None:
    """What a checkpoint calls the object's value; None where it has none of its own."""
    if isinstance(value, Variable):
        return VALUE
    if isinstance(value, PythonState):
        return PYTHON_STATE
    return STATE if is_stateful(value) else None


def children(value: Any, is_child: Callable[[Any], bool] = is_trackable) -> dict[str, Any]:
    """What an object refers to that is of interest, by name.

    Args:
        is_child: says what is; to checkpoints what they can hold.

    Raises:
        ValueError: a dict whose keys are not strings holds some of it.
    """
    if isinstance(value, Variable | type):
        return {}
    if isinstance(value, Generator):
        return {"_state_var": value.state}
    if isinstance(value, list | tuple):
        return _holding({str(number): element for number, element in enumerate(value)}, is_child)
    if isinstance(value, dict):
        found = _holding(value, is_child)
        other = [name for name in found if not isinstance(name, str)]
        if other:
            raise ValueError(
                f"A checkpoint cannot hold a dict with variables or modules whose keys are not "
                f"strings: {other[0]!r}"
            )
        return found
    own = getattr(value, "_trackable_children", None)
    return {} if own is None else _holding(own(), is_child)


def slots_of(value: Any) -> Iterator[tuple[Variable, str, Variable]]:
    """The slots of an optimizer: of which variable, their names, themselves."""
    own = getattr(value, "_trackable_slots", None)
    yield from () if own is None else own()


def other_names(value: Any, name: str) -> tuple[str, ...]:
    """Paths by which checkpoints of other origin may have a child of the object."""
    own = getattr(value, "_trackable_aliases", None)
    return () if own is None else tuple(own(name))


def _holding(found: Mapping[Any, Any], is_child: Callable[[Any], bool]) -> dict[Any, Any]:
    return {name: child for name, child in found.items() if holds(child, is_child)}


def holds(
    value: Any, is_child: Callable[[Any], bool] = is_trackable, inside: tuple[int, ...] = ()
) -> bool:
    """Whether the object is, or is a container of, something that is of interest."""
    if isinstance(value, list | tuple | dict):
        if id(value) in inside:
            return False
        elements = value.values() if isinstance(value, dict) else value
        return any(holds(element, is_child, (*inside, id(value))) for element in elements)
    return is_child(value) and not isinstance(value, type)


class Walk:
    """The objects that are reached from a root, each once, nearest first.

    Attributes:
        objects: the objects.
        paths: the path to each.
        edges: for each object the numbers of those it refers to, by name.
        slots: for each number of an optimizer the slots, with numbers of variables.
    """

    def __init__(
        self, root: Any, stands_for: Any = None,
        children: Callable[[Any], dict[str, Any]] = children, with_slots: bool = True,
    ) -> None:  # fmt: skip
        """
        Args:
            stands_for: an object that is the same as the root.
            children: gives what an object refers to.
            with_slots: whether the slots of optimizers are among the objects.
        """
        self.objects: list[Any] = [root]
        self.paths = [""]
        self.edges: list[dict[str, int]] = []
        self.numbers = {id(root): 0, id(stands_for): 0}
        for number, value in enumerate(self.objects):  # which grow meanwhile
            own = self.paths[number]
            self.edges.append({
                name: self._number(child, f"{own}/{escaped(name)}".lstrip("/"))
                for name, child in children(value).items()
            })  # fmt: skip
        self.slots: dict[int, list[tuple[int, str, int]]] = {}
        for number, value in enumerate(list(self.objects) if with_slots else ()):
            for variable, name, slot in slots_of(value):
                of = self.numbers.get(id(variable))
                if of is not None:
                    path = f"{self.paths[of]}/.OPTIMIZER_SLOT/{self.paths[number]}/{name}"
                    place = self._number(slot, path)
                    self.slots.setdefault(number, []).append((of, name, place))
        self.edges += [{} for _ in range(len(self.objects) - len(self.edges))]

    def _number(self, value: Any, path: str) -> int:
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
            self.paths.append(path)
        return number

    def valued(self) -> Iterator[tuple[str, Any, str]]:
        """The paths and objects with values of their own, and what these are called."""
        for path, value in zip(self.paths, self.objects, strict=True):
            attribute = attribute_of(value)
            if attribute is not None:
                yield path, value, attribute
