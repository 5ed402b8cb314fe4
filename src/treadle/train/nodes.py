"""The graph of objects that a checkpoint has, as both formats of files describe it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

VALUE = "VARIABLE_VALUE"  # the attribute of an object that is a variable
STATE = "STATE"  # and that of one that describes itself by `_state_dict`
PYTHON_STATE = "py_state"  # and that of one whose state is a string, as TensorFlow calls it


class Slot(NamedTuple):
    """A variable that an optimizer keeps for another one; both are numbers of nodes."""

    variable: int
    name: str
    value: int


@dataclass
class Node:
    """An object in a checkpoint.

    Attributes:
        children: the numbers of the nodes that it refers to, by name.
        values: the names of its values in the file, by attribute: `VALUE` of a variable.
        name: the variable's own.
        slots: what it keeps for variables, if it is an optimizer.
    """

    children: dict[str, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    name: str = ""
    slots: list[Slot] = field(default_factory=list)


def escaped(name: str) -> str:
    """A name as a part of a path: without slashes, as TensorFlow writes it."""
    return name.replace(".", "..").replace("/", ".S")


def key(path: str, attribute: str) -> str:
    """The name of a value in a file."""
    return f"{path}/.ATTRIBUTES/{attribute}" if path else f".ATTRIBUTES/{attribute}"


def paths(nodes: Sequence[Node]) -> dict[int, str]:
    """The shortest path to each node from the first one."""
    found = {0: ""}
    waiting = [0]
    for number in waiting:
        for name, child in nodes[number].children.items():
            if child not in found:
                found[child] = f"{found[number]}/{escaped(name)}".lstrip("/")
                waiting.append(child)
        for slot in nodes[number].slots:
            if slot.value not in found:
                of = found.get(slot.variable, str(slot.variable))
                found[slot.value] = f"{of}/.OPTIMIZER_SLOT/{found[number]}/{slot.name}"
    return found


def slots_of(nodes: Sequence[Node], number: int) -> Iterator[Slot]:
    """The slots of an optimizer.

    Keras 3 writes no slots, but the variables of the model in ``_trainable_variables`` and lists
    of as many slots, whose variables' names end with the slot's.
    """
    node = nodes[number]
    yield from node.slots
    trained = node.children.get("_trainable_variables")
    if trained is None:
        return
    variables = list(nodes[trained].children.values())
    for name, child in node.children.items():
        values = list(nodes[child].children.values())
        if name in ("_variables", "_trainable_variables") or len(values) != len(variables):
            continue
        for variable, value in zip(variables, values, strict=True):
            of = re.sub("/", "_", nodes[variable].name)
            suffix = nodes[value].name.rpartition("/")[2].removeprefix(of).lstrip("_")
            yield Slot(variable, suffix, value)


def all_in_range(nodes: Sequence[Node]) -> bool:
    """Whether the numbers of nodes in a graph are of nodes that it has."""
    numbers = [number for node in nodes for number in node.children.values()]
    numbers += [n for node in nodes for slot in node.slots for n in (slot.variable, slot.value)]
    return len(nodes) > 0 and all(0 <= number < len(nodes) for number in numbers)
