"""NumPy's and Python's generators of random numbers in jitted functions.

The state of a Mersenne Twister is memory of the process: `np.random`, a `np.random.RandomState` and
Python's `random` have one each. A jitted function changes that memory as it changes an array among
its arguments (`storage.state_storage`), so what it draws is what NumPy and Python would draw, and
they go on where it has stopped. `twister` has the functions, which are traced with the user's.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray
from treadle.jitted import twister
from treadle.jitted.arrays import Array
from treadle.jitted.storage import state_storage
from treadle.jitted.twister import State
from treadle.jitted.written import traced

GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_WORDS = 624 + 1  # those of a Mersenne Twister, and the place of the next one


class _Memory:
    """Memory of an object as NumPy's protocol of arrays tells it; arrays of it keep the object."""

    def __init__(self, owner: Any, address: int, shape: int, kind: str) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": (shape,), "typestr": kind,
        }  # fmt: skip


def _array(owner: Any, address: int, shape: int, kind: str) -> NDArray:
    return np.asarray(_Memory(owner, address, shape, kind))


def _of_numpy(generator: Any) -> State | None:
    """The memory of a `RandomState`: the words come first."""
    bits = generator._bit_generator
    if not isinstance(bits, np.random.MT19937):
        return None
    words, place = _array(bits, bits.ctypes.state_address, _WORDS, "<u4"), _kept_normal()
    if place is None:
        return None
    kept = id(generator) + place
    held = _array(generator, kept, 1, "<i4"), _array(generator, kept + 8, 1, "<f8")
    return State(words, 0, _WORDS - 1, *held)


def _kept_normal() -> int | None:
    """Where in a `RandomState` the kept normal number is: behind the object's only pointer into
    itself that leads to the address of the words. None where a trial finds it elsewhere."""
    if not _place:
        trial = np.random.RandomState(0)
        trial.standard_normal()
        kept = trial.get_state(legacy=False)["gauss"]
        size = type(trial).__basicsize__
        words = np.frombuffer(ctypes.string_at(id(trial), size - size % 8), np.int64)
        start = trial._bit_generator.ctypes.state_address
        functions = [id(trial) + 8 * i for i in np.flatnonzero(words == start)]
        places = [i for i, w in enumerate(words[:-2]) if w in functions]
        fits = [i for i in places if words[i + 2 : i + 3].view(np.float64)[0] == kept]
        _place.append(8 * fits[0] + 8 if len(fits) == 1 else None)
    return _place[0]


_place: list[int | None] = []  # what `_kept_normal` has found


def _of_python(generator: random.Random) -> State | None:
    """The memory of one of Python's generators: the words come behind their place."""
    if type(generator) is not random.Random:
        return None
    found = _array(generator, id(generator) + object.__basicsize__, _WORDS, "<u4")
    *words, place = generator.getstate()[1]
    return State(found, 1, 0) if found.tolist() == [place, *words] else None


def _state_of(generator: Any) -> State | None:
    """The memory of a generator; None where it is none whose numbers can be drawn."""
    if isinstance(generator, np.random.RandomState):
        return _of_numpy(generator)
    return _of_python(generator) if isinstance(generator, random.Random) else None


class Drawing:
    """What a jitted function finds in place of a generator or a module of random numbers.

    Args:
        generator: the generator, or the one whose methods the module has.
        name: what errors call it.
        functions: those of `twister` by their names; each takes the state first.
    """

    def __init__(self, generator: Any, name: str, functions: dict[str, Callable[..., Any]]) -> None:
        self._generator, self._name, self._functions = generator, name, functions

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = self._functions.get(name)
        memory = None if function is None else _state_of(self._generator)
        if function is None or memory is None:
            return self._refused(name)
        of_normals = function in twister.WITH_NORMALS
        taken = memory.words, *((memory.held, memory.kept) if of_normals else (None, None))

        def draw(*args: Any, **options: Any) -> Any:
            words, held, kept = (
                Array(state_storage(m)) if isinstance(m, np.ndarray) else None for m in taken
            )
            state = State(words, memory.first, memory.place, held, kept)
            return traced(function, state, *args, **options)

        draw.__name__ = draw.__qualname__ = name
        return draw

    def _refused(self, name: str) -> Callable[..., NoReturn]:
        def refuse(*args: Any, **options: Any) -> NoReturn:
            known = ", ".join(sorted(self._functions))
            instead = f" ({self._name} has {known} in jitted functions)" if known else ""
            raise TypeError(
                f"{self._name}.{name} draws its numbers when Python runs, which td.jit does once "
                "for many calls: draw them before the call and pass the array, or use td.random"
                f"{instead}{at(user_origin())}"
            )

        return refuse


def drawing(generator: Any) -> Drawing:
    """The stand-in for a generator."""
    if isinstance(generator, np.random.RandomState):
        name = "np.random" if generator is _GLOBAL else "RandomState"
        return Drawing(generator, name, twister.OF_NUMPY)
    if type(generator) is random.Random:
        return Drawing(generator, "random", twister.OF_PYTHON)
    return Drawing(generator, type(generator).__name__, {})


_GLOBAL = np.random.mtrand._rand
