"""NumPy's and Python's generators of random numbers in jitted functions.

The state of a generator is memory of the process: `np.random`, a `np.random.RandomState`, a
`np.random.Generator` and Python's `random` have one each. A jitted function changes that memory as
it changes an array among its arguments (`storage.state_storage`), so what it draws is what NumPy
and Python would draw, and they go on where it has stopped. `twister` and `pcg` have the functions,
which are traced with the user's; distributions that they have not are NumPy's (`draws_by_numpy`).

A generator that the function makes has its state in arrays of the program, which begin as its seed
says.
"""

from __future__ import annotations

import ctypes
import inspect
import random
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.jitted import draws_by_numpy, pcg, twister
from treadle.jitted.arrays import Array, as_number, is_traced
from treadle.jitted.draws_by_numpy import Memory
from treadle.jitted.storage import Storage, state_storage
from treadle.jitted.written import traced
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.python_functions import numpy_function

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


class _Kind:
    """A kind of generator whose numbers can be drawn.

    Args:
        name: what errors call it.
        functions: the functions that draw; each takes the state first.
        new: makes a generator of a seed.
        arrays: arrays over the memory of a generator; None where it is of another kind.
        state: the state, of these arrays, as the functions take it.
        by_numpy: whether NumPy draws what `functions` has not.
    """

    def __init__(
        self, name: str, functions: dict[str, Callable[..., Any]], new: Callable[..., Any],
        arrays: Callable[[Any], list[NDArray] | None], state: Callable[[list[Any]], Any],
        by_numpy: bool,
    ) -> None:  # fmt: skip
        self.name, self.functions, self.new = name, functions, new
        self.arrays, self.state, self.by_numpy = arrays, state, by_numpy

    def memory(self) -> Memory:
        """A generator of this kind, for draws by NumPy."""
        generator = self.new(0)
        return Memory(self.arrays(generator) or [], generator)


def _arrays_of_numpy(generator: Any) -> list[NDArray] | None:
    """The memory of a `RandomState`: the words, whether a normal number is held, and it."""
    bits = generator._bit_generator
    if not isinstance(bits, np.random.MT19937):
        return None
    words, place = _array(bits, bits.ctypes.state_address, _WORDS, "<u4"), _kept_normal()
    if place is None:
        return None
    kept = id(generator) + place
    return [words, _array(generator, kept, 1, "<i4"), _array(generator, kept + 8, 1, "<f8")]


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


def _arrays_of_python(generator: Any) -> list[NDArray] | None:
    """The memory of one of Python's generators: the words come behind their place."""
    found = _array(generator, id(generator) + object.__basicsize__, _WORDS, "<u4")
    *words, place = generator.getstate()[1]
    return [found] if found.tolist() == [place, *words] else None


def _arrays_of_pcg(generator: Any) -> list[NDArray] | None:
    """The memory of a `Generator` over PCG64: two words of 128 bits behind a pointer, and what is
    left of a word. None where a trial finds them elsewhere."""
    bits = generator.bit_generator
    if type(bits) is not np.random.PCG64:
        return None
    start = bits.ctypes.state_address
    pointer = int(_array(bits, start, 1, "<u8")[0])
    words, half = _array(bits, pointer, 4, "<u8"), _array(bits, start + 8, 2, "<u4")
    known = bits.state
    numbers = known["state"]["state"], known["state"]["inc"]
    parts = [n >> shift & 0xFFFFFFFFFFFFFFFF for n in numbers for shift in (0, 64)]
    left = [known["has_uint32"], known["uinteger"]]
    return [words, half] if words.tolist() == parts and half.tolist() == left else None


_NUMPYS = _Kind(
    "RandomState", twister.OF_NUMPY, np.random.RandomState, _arrays_of_numpy,
    lambda a: twister.State(a[0], 0, _WORDS - 1, *a[1:]), True,
)  # fmt: skip
_PYTHONS = _Kind(
    "random", twister.OF_PYTHON, random.Random, _arrays_of_python,
    lambda a: twister.State(a[0], 1, 0), False,
)  # fmt: skip
_PCG = _Kind(
    "Generator", pcg.FUNCTIONS, np.random.default_rng, _arrays_of_pcg,
    lambda a: pcg.State(*a), True,
)  # fmt: skip
_KINDS: dict[type, _Kind] = {
    np.random.RandomState: _NUMPYS, random.Random: _PYTHONS, np.random.Generator: _PCG,
}  # fmt: skip


class Drawing:
    """What a jitted function finds in place of a generator or a module of random numbers.

    Args:
        name: what errors call it.
        kind: of the generator; None for one whose numbers cannot be drawn.
        state: gives the first few arrays of its state.
        generator: one of Python's that is outside of the function.
    """

    def __init__(
        self, name: str, kind: _Kind | None, state: Callable[[int], list[Array]] | None,
        generator: Any = None,
    ) -> None:  # fmt: skip
        self._name, self._kind, self._state, self._generator = name, kind, state, generator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        kind, state = self._kind, self._state
        if kind is None or state is None:
            return self._refused(name)
        if name == "gauss" and kind is _PYTHONS and self._generator is not None:
            own = kind.memory, self._generator
            return lambda *args, **options: draws_by_numpy.gauss(*own, *state(1), *args, **options)
        function = kind.functions.get(name)
        by_numpy = kind.by_numpy and name in draws_by_numpy.NAMES
        if function is None and not by_numpy:
            return self._refused(name)

        def draw(*args: Any, **options: Any) -> Any:
            if name == "seed" and self._generator is not None:
                draws_by_numpy.forget_gauss(self._generator)
            if function is not None and (not by_numpy or _fits(function, args, options)):
                alone = kind is _NUMPYS and function not in twister.WITH_NORMALS
                return traced(function, kind.state(state(1 if alone else 3)), *args, **options)
            return draws_by_numpy.drawn(kind.memory, state(3), name, args, options)

        draw.__name__ = draw.__qualname__ = name
        return draw

    def _refused(self, name: str) -> Callable[..., NoReturn]:
        def refuse(*args: Any, **options: Any) -> NoReturn:
            known = ", ".join(sorted(self._kind.functions)) if self._kind is not None else ""
            instead = f" ({self._name} has {known} in jitted functions)" if known else ""
            raise TypeError(
                f"{self._name}.{name} draws its numbers when Python runs, which td.jit does once "
                "for many calls: draw them before the call and pass the array, or use td.random"
                f"{instead}{at(user_origin())}"
            )

        return refuse


def _fits(function: Any, args: Any, options: Any) -> bool:
    """Whether a function here makes a draw: it has the parameters, and they are no arrays that it
    cannot take."""
    try:
        bound = inspect.signature(function).bind(None, *args, **options).arguments
    except TypeError:
        return False
    if function in (twister.choice, pcg.choice) and bound.get("p") is not None:
        return bool(bound.get("replace", True))
    if function in (twister.randint, pcg.integers):
        return not any(np.ndim(bound.get(p, 0) or 0) for p in ("low", "high"))
    return True


def drawing(generator: Any) -> Drawing:
    """The stand-in for a generator."""
    kind = _KINDS.get(type(generator))
    name = "np.random" if generator is _GLOBAL else type(generator).__name__
    memory = None if kind is None else kind.arrays(generator)
    if kind is _PYTHONS:
        name = "random"
    if memory is None:
        return Drawing(name, None, None)
    own = generator if kind is _PYTHONS else None
    return Drawing(name, kind, lambda count: [Array(state_storage(m)) for m in memory[:count]], own)


def made(kind: _Kind) -> Callable[..., Any]:
    """What a jitted function calls in place of the constructor of a generator."""

    def make(seed: Any = None) -> Any:
        if isinstance(seed, Drawing):
            return seed
        if isinstance(seed, GENERATORS):
            return drawing(seed)
        memory = kind.arrays(kind.new(0)) or []
        if seed is None or is_traced(seed):
            parts = [] if seed is None else [convert_to_tensor(as_number(seed).tensor())]

            def begun(*seeds: Any) -> list[Any]:
                return [a.copy() for a in kind.arrays(kind.new(*map(int, seeds))) or []]

            types = [TensorSpec(a.shape, a.dtype) for a in memory]
            tensors = numpy_function(begun, parts, types, stateful=seed is None)
        else:
            tensors = [convert_to_tensor(a.copy()) for a in kind.arrays(kind.new(seed)) or []]
        state = [Array(Storage(t)) for t in tensors]
        return Drawing(kind.name, kind, lambda count: state[:count])

    return make


CONSTRUCTORS: dict[Any, Callable[..., Any]] = {
    np.random.default_rng: made(_PCG), np.random.RandomState: made(_NUMPYS),
    random.Random: made(_PYTHONS),
}  # fmt: skip
_GLOBAL = np.random.mtrand._rand
