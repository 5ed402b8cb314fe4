"""TensorFlow's names for order and scope: operations with effects keep the program's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from treadle.core import nest
from treadle.core.context import GraphMode, context, naming, recount
from treadle.core.interrupts import during
from treadle.core.origin import at, user_origin
from treadle.ops.conversion import has_dtype


class init_scope:
    """Lift what is inside out of the functions being traced and out of gradient tapes.

    Operations run at once, eagerly, and may not use the trace's symbolic tensors.
    """

    def __enter__(self) -> None:
        self._before = context.recorder, context.tapes
        context.counted = -1
        context.recorder, context.tapes = None, ()
        recount()

    def __exit__(self, *error: object) -> None:
        context.counted = -1
        context.recorder, context.tapes = self._before
        recount()


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Accepted for TensorFlow programs: effects happen in the order of the program.

    Raises:
        TypeError: an input is not a tensor, a variable, an operation or None (what `group` and
            `no_op` give).
    """
    for x in nest.flatten(control_inputs or ()):
        _check(x, "control_dependencies")
    yield


class name_scope:
    """Names of variables and operations that the block makes begin with ``name/``, inside the scope
    around it, where it is entered. Two blocks of one name in one scope are one scope.

    The ``with`` statement binds the whole scope, such as ``outer/name/``.

    Args:
        name: the name; the whole scope where it ends with ``/``, no scope at all where it is empty.

    Attributes:
        name: the name as it was given.

    Raises:
        ValueError: the name is not a string.
    """

    __slots__ = ("_blocks", "name")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name_scope: the name must be a string, not {name!r}")
        self.name = name
        self._blocks: tuple[during, ...] = ()  # those that have begun: it may be entered again

    def __enter__(self) -> str:
        in_graph, name = GraphMode.scope(self.name), self.name
        if in_graph is None:
            whole = name if not name or name.endswith("/") else f"{naming.scope}{name}/"
            block = during(naming, "scope", whole, gives=whole)
        else:
            graph, whole = in_graph
            block = during(graph, "_scope", whole, gives=whole)
        self._blocks = (*self._blocks, block)
        scope: str = block.__enter__()
        return scope

    def __exit__(self, *error: object) -> None:
        *around, block = self._blocks
        self._blocks = tuple(around)
        block.__exit__(*error)


def group(*inputs: Any, name: str | None = None) -> None:
    """Accepted for TensorFlow programs: the inputs' effects happen where they are written."""
    for x in nest.flatten(inputs):
        _check(x, "group")


def get_current_name_scope() -> str:
    """The name scope of this place, such as ``outer/inner``; empty outside of all."""
    return naming.scope.rstrip("/")


def inside_function() -> bool:
    """Whether a function is being traced here."""
    return context.recorder is not None


def tuple_(tensors: Any, control_inputs: Any = None, name: str | None = None) -> Any:
    """The tensors as they are, in functions in a list: effects happen where they are written.

    Args:
        tensors: a list of tensors, `IndexedSlices` and None.
        control_inputs: accepted for TensorFlow programs.

    Raises:
        TypeError: `tensors` is no list.
        ValueError: in a function, there is none.
    """
    if not isinstance(tensors, Iterable):
        kind = type(tensors).__name__
        raise TypeError(f"tuple takes a list of tensors, not {kind} {tensors!r}{at(user_origin())}")
    if context.recorder is None:
        return tensors
    found = list(tensors)
    if all(x is None for x in found):
        raise ValueError(f"tuple: there is no tensor in {found}{at(user_origin())}")
    return found


def no_op(name: str | None = None) -> None:
    """Nothing."""


def _check(x: Any, what: str) -> None:
    if x is not None and not has_dtype(x) and not _is_operation(x):
        raise TypeError(
            f"{what} takes tensors and variables, not {type(x).__name__} {x!r}{at(user_origin())}"
        )


def _is_operation(x: Any) -> bool:
    """Whether an object is an operation of a trace, `Tensor.op`."""
    return isinstance(getattr(x, "outputs", None), list) and hasattr(x, "type")
