"""The names that a jitted function sees: NumPy and math with functions that take traced values.

A converted function runs with `Globals` in place of its module's dict. What it reads there is the
module's own value, except for NumPy's and math's modules, functions and types, which come as
stand-ins, and ndarrays, whose elements are read when the program runs.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.autograph import config
from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.jitted import (
    array_functions,
    iteration,
    joining,
    making,
    math_functions,
    mutation,
    ordered_lists,
)
from treadle.jitted.arrays import (
    Array,
    Scalar,
    Traced,
    TracedSequence,
    as_number,
    is_traced,
    unwrapped,
    wrapped,
)
from treadle.jitted.operations import call_function, call_ufunc, reduce_ufunc, ufunc_at
from treadle.jitted.printing import printed
from treadle.jitted.random_numbers import CONSTRUCTORS, GENERATORS, Drawing, drawing
from treadle.jitted.refused_numbers import check
from treadle.jitted.run_texts import RunText
from treadle.jitted.storage import captured_storage
from treadle.jitted.written import traced
from treadle.numpy_staging import ufuncs
from treadle.numpy_staging.dtypes import as_array
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import SymbolicNumber, apply, kind_of, symbolic_number


class Globals(dict[str, Any]):
    """A module's global names as a jitted function reads them."""

    def __init__(self, real: dict[str, Any]) -> None:
        super().__init__()
        self.real = real

    def __getitem__(self, name: str) -> Any:
        if name in self:  # assigned by the function
            return dict.__getitem__(self, name)
        if name in self.real:
            return stand_in(self.real[name])
        return _BUILTINS[name]  # or KeyError: Python looks among its own


def stand_in(value: Any) -> Any:
    """What a jitted function works with in place of a value that it finds by name."""
    if isinstance(value, types.ModuleType):
        return Namespace(value) if value.__name__ in _MODULES else value
    if id(value) in _stand_ins:
        return _stand_ins[id(value)]
    if isinstance(value, GENERATORS):
        return drawing(value)
    if isinstance(getattr(value, "__self__", None), GENERATORS):
        return getattr(drawing(value.__self__), value.__name__)
    if getattr(value, "__module__", None) == "numpy.random" and not isinstance(value, type):
        return getattr(drawing(np.random.mtrand._rand), value.__name__)
    if isinstance(value, np.ufunc):
        return Ufunc(value)
    if isinstance(value, np.ndarray):
        return value if context.recorder is None else Array(captured_storage(value))
    if isinstance(value, np.vectorize):
        return functools.partial(
            traced, array_functions.vectorized, value.pyfunc, value.otypes or None
        )
    numbas = config.numba_ufunc(value)
    if numbas is not None:
        return functools.partial(traced, array_functions.looped, *numbas)
    if isinstance(value, type) and issubclass(value, np.generic):
        return ScalarType(value)
    if isinstance(value, type) and value.__module__.startswith("numba.typed"):
        return _NUMBAS.get(value.__name__, value)
    if callable(value) and not isinstance(value, type) and _is_numpys(value):
        return function_of(value)
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ in ("math", "cmath"):
        return _math(value)
    return value


_stand_ins: dict[int, Any] = {
    id(itertools.product): iteration.product,
    id(np.ndindex): iteration.ndindex,
    id(np.ndenumerate): iteration.ndenumerate,
    id(np.nditer): iteration.nditer,
}


def add_stand_in(value: Any, made: Any) -> None:
    """Have jitted functions find `made` in place of `value`, which lives as long as the process."""
    _stand_ins[id(value)] = made


_MODULES = {
    "bisect", "cmath", "collections", "functools", "heapq", "itertools", "math", "random",
    "numpy", "numpy.fft", "numpy.lib", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.random",
}  # fmt: skip


def _is_numpys(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == "numpy"


def _math(function: Any) -> Callable[..., Any]:
    """A function of Python's math or cmath, also of symbolic numbers and of arrays of one element.
    Those of cmath compute with complex numbers whatever they are given."""
    written = _lgamma if function is math.lgamma else math_functions.FUNCTIONS.get(function)
    takes_complex = function.__module__ == "cmath" and function.__name__ not in ("isclose", "rect")

    def call(*args: Any, **options: Any) -> Any:
        if written is not None and is_traced([*args, *options.values()]):
            given = list(map(_number_or_list, args))
            check(function, given)
            return traced(written, *given, **options)
        numbers = [as_number(a) for a in args]
        if is_traced(numbers):
            check(function, numbers)
        if takes_complex and is_traced(numbers):
            numbers = [apply(complex, n) for n in numbers]
        return function(*numbers, **options) if options else apply(function, *numbers)

    call.__name__ = function.__name__
    return call


def _lgamma(x: Any) -> Any:
    from treadle.ops.special.gamma import lgamma

    return symbolic_number(lgamma(apply(float, x).tensor()))


def _number_or_list(value: Any) -> Any:
    return value if isinstance(value, Array | TracedSequence | list | tuple) else as_number(value)


class Namespace:
    """A module whose functions take traced values."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        found = stand_in(value)
        if self._module in (np.random, random) and found is value and callable(value):
            found = getattr(Drawing(self._module.__name__, None, None), name)
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return repr(self._module)


class Ufunc:
    """A ufunc of NumPy's."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        if is_traced(inputs) or is_traced(list(options.values())):
            return call_ufunc(self._ufunc, *inputs, **options)
        return making.known(self._ufunc(*inputs, **options))

    def reduce(self, array: Any, *args: Any, **options: Any) -> Any:
        return reduce_ufunc(self._ufunc, "reduce", array, *args, **options)

    def accumulate(self, array: Any, *args: Any, **options: Any) -> Any:
        return reduce_ufunc(self._ufunc, "accumulate", array, *args, **options)

    def outer(self, a: Any, b: Any, **options: Any) -> Any:
        return wrapped(ufuncs.outer(self._ufunc, unwrapped(a), unwrapped(b), **options))

    def at(self, target: Any, indices: Any, values: Any = None) -> None:
        ufunc_at(self._ufunc, target, indices, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __repr__(self) -> str:
        return repr(self._ufunc)


class ScalarType:
    """A scalar type of NumPy's: called it converts, elsewhere it is a dtype."""

    def __init__(self, kind: type[np.generic]) -> None:
        self.type = kind

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.type)

    def __call__(self, *args: Any) -> Any:
        if not is_traced(args):
            return self.type(*args)
        return wrapped(cast(as_array(unwrapped(args[0])), dtypes.as_dtype(self.dtype)))

    def __eq__(self, other: object) -> bool:
        other = other.type if isinstance(other, ScalarType) else other
        return self.type is other or (isinstance(other, np.dtype) and other == self.dtype)

    def __hash__(self) -> int:
        return hash(self.type)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.type, name)

    def __repr__(self) -> str:
        return repr(self.type)


class _ComplexType(type):
    """``complex``: called it makes a number of one or two; complex numbers are instances of it."""

    def __call__(cls, *parts: Any) -> Any:
        if not is_traced(parts):
            return complex(*parts)
        return apply(complex, *(as_number(p) for p in parts))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, complex)


class _TypeType(type):
    """``type``: called with a traced value it gives the type that the value would have."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        (value, *rest) = args
        if not rest and isinstance(value, Array):
            return _ARRAY_TYPE
        if not rest and isinstance(value, Scalar):
            return ScalarType(value.dtype.type)
        if not rest and type(value) is SymbolicNumber:
            return value.kind
        if not rest and isinstance(value, RunText):
            return str
        if not rest and isinstance(value, TracedSequence):
            return list
        return type(*args, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)


def _round(number: Any, ndigits: Any = None) -> Any:
    """``round``; of Python's floats to decimals that are known while tracing."""
    plain = as_number(number) if type(number) is SymbolicNumber else number
    if ndigits is None or type(plain) is not SymbolicNumber or kind_of(plain) is not float:
        return round(number, ndigits)
    return traced(math_functions.rounded, plain, ndigits)


def _pow(base: Any, exponent: Any, modulus: Any = None) -> Any:
    """``pow``, of three ints that only the run knows too."""
    if modulus is None or not is_traced([base, exponent, modulus]):
        return pow(base, exponent, modulus)
    return traced(math_functions.modular_power, *map(as_number, (base, exponent, modulus)))


_BUILTINS: dict[str, Any] = {
    "pow": _pow,
    "round": _round,
    "complex": type.__new__(_ComplexType, "complex", (), {"dtype": np.dtype(complex)}),
    "print": printed,
    "type": type.__new__(_TypeType, "type", (), {}),
}


def add_builtin(name: str, made: Any) -> None:
    """Have jitted functions find `made` by the name of one of Python's own."""
    _BUILTINS[name] = made


class _TypedDict(dict[Any, Any]):
    """Numba's ``typed.Dict``: the program finds out the types itself."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return dict(*args)

    @classmethod
    def empty(cls, *args: Any, **options: Any) -> dict[Any, Any]:
        return {}


class _TypedList(list[Any]):
    """Numba's ``typed.List``."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return list(*args)

    @classmethod
    def empty_list(cls, *args: Any, **options: Any) -> list[Any]:
        return []


_NUMBAS = {"Dict": _TypedDict, "List": _TypedList}


class _ArrayType(type):
    """``np.ndarray``: called it makes an array, and traced arrays are instances of it."""

    def __call__(cls, shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
        if args or options.keys() - {"order"}:
            raise TypeError(f"np.ndarray with a buffer is not supported{at(user_origin())}")
        return making.zeros(shape, dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Array | np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Array, name)


_ARRAY_TYPE: Any = type.__new__(_ArrayType, "ndarray", (), {})
add_stand_in(np.ndarray, _ARRAY_TYPE)


class _Grid:
    """``np.mgrid``, ``np.ogrid``, ``np.r_`` and the like, which make arrays of an index."""

    def __init__(self, maker: Any) -> None:
        self._maker = maker

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if is_traced(items) and self._maker in (np.r_, np.c_):
            return self._joined(items)
        if is_traced(items):
            raise TypeError(
                "np.mgrid, np.ogrid, np.r_ and np.c_ take only values that are known before the "
                f"call: use np.arange, np.meshgrid or np.concatenate{at(user_origin())}"
            )
        return making.known(self._maker[key])

    def _joined(self, items: tuple[Any, ...]) -> Any:
        """``np.r_`` and ``np.c_`` of arrays and numbers."""
        if any(isinstance(i, slice | str) for i in items):
            raise TypeError(
                "np.r_ and np.c_ take arrays and numbers here, no slices and texts: use np.arange "
                f"and np.concatenate{at(user_origin())}"
            )
        if self._maker is np.c_:
            return function_of(np.column_stack)(items)
        return function_of(np.concatenate)([function_of(np.atleast_1d)(i) for i in items])


for _constructor, _made in CONSTRUCTORS.items():
    add_stand_in(_constructor, _made)

for _function, _made in ordered_lists.FUNCTIONS.items():
    add_stand_in(_function, _made)

for _grid in (np.mgrid, np.ogrid, np.r_, np.c_):
    add_stand_in(_grid, _Grid(_grid))

# Functions that give one of Python's bools.
_ANSWERING = (np.allclose, np.array_equal, np.array_equiv)


def function_of(func: Any) -> Callable[..., Any]:
    """What a jitted function calls in place of a function of NumPy's."""
    for functions in (making.FUNCTIONS, mutation.FUNCTIONS, joining.FUNCTIONS):
        if func in functions:
            return functions[func]
    if func in array_functions.FUNCTIONS:
        return functools.partial(traced, array_functions.FUNCTIONS[func])

    def call(*args: Any, **options: Any) -> Any:
        if is_traced(args) or is_traced(list(options.values())):
            result = call_function(func, args, options)
            return as_number(result) if func in _ANSWERING else result
        args = tuple(real(a) for a in args)
        return making.known(func(*args, **{k: real(v) for k, v in options.items()}))

    call.__name__ = call.__qualname__ = getattr(func, "__name__", "function")
    return call


def _array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol: a function that was reached by another way than the proxied module."""
    return function_of(func)(*args, **kwargs)


setattr(Traced, "__array_function__", _array_function)  # noqa: B010


def real(value: Any) -> Any:
    """An argument as NumPy itself takes it."""
    return value.type if isinstance(value, ScalarType) else value


__all__ = [
    "Globals", "Namespace", "ScalarType", "Ufunc", "add_builtin", "add_stand_in", "function_of",
    "stand_in",
]  # fmt: skip
