"""Array variables of a loop that changes no array: each is a part of an array from before the loop.

``row = table[i]`` and ``x = x[::-1]`` give a variable another part in each iteration. The loop
carries the elements, and besides them the number of the array that the variable is a part of and
the positions of its elements there. So a change of the variable after the loop changes that array.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage
from treadle.jitted.storage import Scope, Storage
from treadle.jitted.views import Bits, ComplexPart, Positions
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where as select
from treadle.ops.shaping.creation import zeros_like
from treadle.ops.shaping.ranges import range as arange
from treadle.ops.shaping.reshaping import reshape_to

Place = tuple[Tensor, Tensor]  # the number of the array, and the positions


class Placed:
    """The places of such variables, which a loop carries besides their elements.

    Attributes:
        roots: the arrays from before the loop, whole, by number.
        inside: the storages of the variables in an iteration, with their places.
    """

    def __init__(self) -> None:
        self.roots: list[Storage] = []
        self.inside: dict[Storage, Place] = {}

    def add_roots(self, array: Array, found: Scope | None) -> None:
        """Note the arrays from before the loop that an array may be a part of."""
        for storage in array.storage.roots():
            if storage.home is not found and storage not in self.roots:
                self.roots.append(storage)

    def enter(self, storages: Sequence[Storage], carried: Sequence[Tensor]) -> None:
        """Begin an iteration in which the variables have these storages."""
        self.inside = dict(zip(storages, places(carried), strict=True))

    def carried(self, arrays: Sequence[Array]) -> list[Tensor]:
        """The tensors that a loop carries for these values of the variables."""
        return [tensor for array in arrays for tensor in self.place(array)]

    def place(self, array: Array) -> Place:
        """The number of the array that an array is a part of, and the positions in it."""
        storage = array.storage
        if storage in self.inside:
            number, positions = self.inside[storage]
        elif isinstance(storage, ChosenStorage):
            options = [(test, self.place(option)) for test, option in storage.options]
            number, positions = options[0][1]
            for test, (other, others) in options[1:]:
                number = select(test, other, number)
                positions = select(test, others, positions)
        else:
            number = numbered(self.roots.index(storage))
            positions = all_positions(storage)
        for view in array.views:
            positions = view.read(positions)
        return number, positions

    def end(self, content: Tensor, place: Place) -> Array:
        """The array after the loop, by its elements and place."""
        number, positions = place
        options = []
        for i, root in enumerate(self.roots):
            if root.held.dtype is content.dtype:
                chosen = is_numbered(number, i)
                # Positions in another array may lie outside of this one.
                own = select(chosen, positions, zeros_like(positions))
                options.append((chosen, Array(root, (Positions(own),))))
        return Array(ChosenStorage(content, options, complete=True))


def numbered(number: int) -> Tensor:
    """The number of an array as loops carry it."""
    return convert_to_tensor(np.int64(number))


def is_numbered(which: Tensor, number: int) -> Tensor:
    """Whether an array that the run knows has a number."""
    return equal(which, numbered(number))


def places(carried: Sequence[Tensor]) -> list[Place]:
    """The places among the tensors of `Placed.carried`."""
    return list(zip(carried[::2], carried[1::2], strict=True))


def all_positions(storage: Storage) -> Tensor:
    """The positions of all elements, in the storage's shape."""
    dims = storage.held.dims
    return reshape_to(arange(dims_tensor(product(dims), dtypes.int64)), dims)


def is_placed(array: Array, own: set[Storage], found: Scope) -> bool:
    """Whether an array is a part of one from before the loop, in any case.

    Args:
        own: the storages of the loop's variables in an iteration.
        found: the scope of the loop's body.
    """
    storage = array.storage
    if any(isinstance(view, ComplexPart | Bits) for view in array.views):
        return False
    if storage in own:
        return True
    if isinstance(storage, ChosenStorage):
        dims = {option.dims for _, option in storage.options}
        return storage.complete and len(dims) == 1 and all(
            is_placed(option, own, found) for _, option in storage.options
        )  # fmt: skip
    return storage.home is not found and not isinstance(storage, CopiedStorage)
