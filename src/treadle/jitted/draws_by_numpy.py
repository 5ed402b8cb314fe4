"""Draws that NumPy makes when the program runs: of distributions that no function here is written
for.

The state of the generator is an operand and a result of the call, so that the draw stands in the
program between the others, and NumPy goes on with the state where they have left it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.jitted.arrays import (
    Array,
    Scalar,
    Traced,
    direct,
    is_traced,
    unwrapped,
    unwrapped_bound,
)
from treadle.jitted.storage import Storage
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import SymbolicNumber, symbolic_number
from treadle.ops.python_functions import numpy_function

_INTS = frozenset({
    "binomial", "geometric", "hypergeometric", "logseries", "multinomial",
    "multivariate_hypergeometric", "negative_binomial", "poisson", "zipf",
})  # fmt: skip
_FLOATS = frozenset({
    "beta", "chisquare", "dirichlet", "exponential", "f", "gamma", "gumbel", "laplace", "logistic",
    "lognormal", "multivariate_normal", "noncentral_chisquare", "noncentral_f", "normal", "pareto",
    "power", "random", "rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull",
})  # fmt: skip
_VECTORS = {"dirichlet": "alpha", "multinomial": "pvals", "multivariate_normal": "mean"}
_OF_AN_ARRAY = {"choice": "a", "permuted": "x", "permutation": "x"}
NAMES = _INTS | _FLOATS | _OF_AN_ARRAY.keys() | {"integers", "randint"}
_NO_PARAMETERS = frozenset({
    "size", "dtype", "out", "endpoint", "method", "check_valid", "tol", "replace", "p", "axis",
    "shuffle",
})  # fmt: skip


class Memory(NamedTuple):
    """Where the state of a generator is.

    Attributes:
        arrays: arrays over its memory.
        generator: the generator.
    """

    arrays: Sequence[Any]
    generator: Any


def drawn(
    memory_of: Callable[[], Memory], state: Sequence[Array], name: str, args: Any, options: Any
) -> Any:
    """``generator.name(*args, **options)``, for a generator whose state is in some arrays.

    Args:
        memory_of: makes a generator of this kind, and gives where its state is.

    Raises:
        TypeError: an argument that changes where the result is.
    """
    names = _parameters(memory_of, name)
    given = {**dict(zip(names, map(direct, args), strict=False)), **options}
    if given.get("out") is not None:
        raise TypeError(f"{name}(out=): assign the result{at(user_origin())}")
    traced = {k: unwrapped(v) for k, v in given.items() if is_traced(v)}
    known = {k: v for k, v in given.items() if k not in traced}
    numbers = {k for k in traced if not np.ndim(_operand(traced[k]))}
    values = {k: _operand(v) for k, v in traced.items()}
    dtype, dims = _spec(name, given)
    count, kept = len(state), _Generators(memory_of)

    def draw(*operands: Any) -> list[Any]:
        memory = kept.memory
        for array, words in zip(memory.arrays, operands[:count], strict=True):
            array[...] = words
        found = dict(zip(values, operands[count:], strict=True))
        found = {k: v[()] if k in numbers else v for k, v in found.items()}
        if "size" in found:
            found["size"] = tuple(np.atleast_1d(found["size"]).tolist())
        made = getattr(memory.generator, name)(**known, **found)
        return [np.asarray(made, dtype.np_dtype), *(a.copy() for a in memory.arrays)]

    before = [s.tensor for s in state]
    types = [TensorSpec(dims or (), dtype), *(TensorSpec(t.dims, t.dtype) for t in before)]
    made, *words = numpy_function(draw, [*before, *values.values()], types, stateful=False)
    for array, tensor in zip(state, words, strict=True):
        array.write(tensor)
    if dims is not None:
        return Array(Storage(made))
    return Scalar(made) if name in ("integers", "choice") else symbolic_number(made)


def gauss(
    memory_of: Callable[[], Memory], generator: Any, state: Array, mu: Any = 0.0, sigma: Any = 1.0
) -> Any:
    """``random.gauss``, which Python draws: the number that it keeps for the next time is an
    attribute of the generator."""
    kept = _Generators(memory_of)

    def draw(words: Any, mu: Any, sigma: Any) -> list[Any]:
        (array,), other = kept.memory
        array[...], other.gauss_next = words, generator.gauss_next
        made = other.gauss(float(mu), float(sigma))
        generator.gauss_next = other.gauss_next
        return [np.float64(made), array.copy()]

    before = state.tensor
    numbers = [convert_to_tensor(unwrapped_bound(n), dtypes.float64) for n in (mu, sigma)]
    types = [TensorSpec((), dtypes.float64), TensorSpec(before.dims, before.dtype)]
    made, words = numpy_function(draw, [before, *numbers], types, stateful=True)
    state.write(words)
    return symbolic_number(made)


def forget_gauss(generator: Any) -> None:
    """A seed makes Python forget the number that it keeps."""

    def forget() -> Any:
        generator.gauss_next = None
        return np.float64(0.0)

    numpy_function(forget, [], TensorSpec((), dtypes.float64), stateful=True)


class _Generators(threading.local):
    """A generator for each thread that runs the program."""

    def __init__(self, memory_of: Callable[[], Memory]) -> None:
        self.memory = memory_of()


def _operand(value: Any) -> Any:
    return convert_to_tensor(value.tensor() if type(value) is SymbolicNumber else value)


@cache
def _parameters(memory_of: Callable[[], Memory], name: str) -> list[str]:
    """The names of the parameters of a method, as the first line of its documentation has them."""
    line = getattr(memory_of().generator, name).__doc__.strip().split("\n\n")[0]
    inside = re.search(r"\((.*)\)", line, re.DOTALL)
    words = inside[1].split(",") if inside else []
    return [w.split("=")[0].strip() for w in words if w.strip() not in ("*", "/")]


def _spec(name: str, given: dict[str, Any]) -> tuple[DType, list[Any] | None]:
    """The dtype and the dims of a result; no dims for a number."""
    size = given.get("size")
    dims = None if size is None else _dims_of(size)
    if name in _OF_AN_ARRAY:
        return _spec_of_elements(name, given[_OF_AN_ARRAY[name]], dims)
    of_ints = name in _INTS or name in ("integers", "randint")
    dtype = dtypes.as_dtype(np.dtype(given.get("dtype", np.int64 if of_ints else np.float64)))
    if name in _VECTORS:
        return dtype, [*(dims or ()), _shape(given[_VECTORS[name]])[-1]]
    if dims is None:
        shapes = [_shape(v) for k, v in given.items() if k not in _NO_PARAMETERS and v is not None]
        if any(None in shape for shape in shapes):
            dims = [None] * max(map(len, shapes))
        elif any(shapes):
            dims = list(np.broadcast_shapes(*shapes))
    return dtype, dims


def _spec_of_elements(
    name: str, source: Any, dims: list[Any] | None
) -> tuple[DType, list[Any] | None]:
    """The dtype and the dims of what is drawn from an array, or from so many ints."""
    own = _shape(source)
    if not own:
        alone = [int(source) if isinstance(source, int) and not is_traced(source) else None]
        return dtypes.int64, dims if name == "choice" else alone
    given = source.dtype if isinstance(source, Traced) else np.asarray(source).dtype
    if name != "choice":
        return dtypes.as_dtype(given), list(own)
    rest = list(own[1:])
    return dtypes.as_dtype(given), ([*dims, *rest] if dims is not None else rest or None)


def _dims_of(size: Any) -> list[Any]:
    parts = size if isinstance(size, tuple | list) else (size,)
    return [int(p) if isinstance(p, int | np.integer) and not is_traced(p) else None for p in parts]


def _shape(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Traced):
        return tuple(d if isinstance(d, int) else None for d in value.dims)
    return () if is_traced(value) and not isinstance(value, list | tuple) else np.shape(value)
