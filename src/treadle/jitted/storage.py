"""The elements of arrays while a function is traced.

An array changes in place; a value of the graph does not. A `Storage` stands between the two: it
holds the tensor that its elements are at this point of the trace, and writing replaces that tensor.
Branches and loop bodies are traced inside a `Scope`, which notes the storages that are written, so
that the branch or loop can give them back merged or carried.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from treadle.core.tensor import Tensor


class Storage:
    """The elements that an array and its views share.

    Attributes:
        tensor: the elements at this point of the trace.
        home: the scope in which the storage was made; None outside of all.
        argument: the name of the argument whose elements these are; None for others.
    """

    __slots__ = ("__weakref__", "_tensor", "argument", "home")

    def __init__(self, tensor: Tensor, argument: str | None = None) -> None:
        self._tensor = tensor
        self.home = scopes.innermost
        self.argument = argument

    @property
    def tensor(self) -> Tensor:
        return self._tensor

    def write(self, tensor: Tensor) -> None:
        """Replace all elements."""
        for scope in reversed(scopes.open):
            if scope is self.home:
                break
            scope.before.setdefault(self, self._tensor)
        self._tensor = tensor

    def put_back(self, tensor: Tensor) -> None:
        """Set the elements without noting that they changed."""
        self._tensor = tensor


class Scope:
    """A branch or loop body that is being traced.

    Attributes:
        before: the storages from outside that were written, with their earlier elements.
        after: what they hold at the end.
    """

    def __init__(self) -> None:
        self.before: dict[Storage, Tensor] = {}
        self.after: dict[Storage, Tensor] = {}

    def close(self) -> None:
        """Keep what was written in `after`, and put the earlier elements back."""
        for storage, tensor in self.before.items():
            self.after[storage] = storage.tensor
            storage.put_back(tensor)


class _Scopes(threading.local):
    """The scopes that are being traced in this thread, the outermost first."""

    def __init__(self) -> None:
        self.open: list[Scope] = []

    @property
    def innermost(self) -> Scope | None:
        return self.open[-1] if self.open else None


scopes = _Scopes()


@contextmanager
def scope() -> Iterator[Scope]:
    """Trace a branch or body: storages are as before at the end."""
    made = Scope()
    scopes.open.append(made)
    try:
        yield made
    finally:
        scopes.open.pop()
        made.close()


@contextmanager
def no_scopes() -> Iterator[None]:
    """A trace of its own."""
    kept, scopes.open = scopes.open, []
    try:
        yield
    finally:
        scopes.open = kept


def is_inside(storage: Storage, found: Any) -> bool:
    """Whether a storage was made in a scope or in one inside of it."""
    return storage.home is found
