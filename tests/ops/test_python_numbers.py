"""Symbolic Python numbers: what they compute is what Python computes."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import treadle as td
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import (
    Domain,
    Source,
    ValueNeededError,
    apply,
    is_symbolic_number,
    number_from,
    select,
    symbolic_number,
)

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, abs, math.floor, math.ceil, math.trunc, round, int, float,
         bool]  # fmt: skip
INTS, FLOATS = (-7, -1, 2, 5), (-2.75, 0.5, 3.0)


def run(function, *values):
    """`function` of symbolic numbers, by the compiled program: their kind and the value."""
    kinds = {bool: td.bool, int: td.int64, float: td.float64, complex: td.complex128}
    found = []

    @td.function(autograph=False)
    def compiled(*tensors):
        made = function(*map(symbolic_number, tensors))
        found.append(made.kind if is_symbolic_number(made) else type(made))
        return made.tensor() if is_symbolic_number(made) else made

    result = compiled(*(td.constant(v, kinds[type(v)]) for v in values))
    return found[-1], result.numpy()


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("a", "b"), [(-7, 5), (5, -7), (7, 2.5), (-2.75, 2), (0.5, -3.0)])
def test_binary_operations_are_pythons(function, a, b):
    kind, value = run(function, a, b)
    wanted = function(a, b)
    assert kind is type(wanted)
    assert value == wanted


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("a", [*INTS, *FLOATS])
def test_unary_operations_are_pythons(function, a):
    kind, value = run(lambda x: apply(function, x), a)
    wanted = function(a)
    assert kind is type(wanted)
    assert value == wanted


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "cos", "tanh", "log", "log10", "degrees"])
def test_functions_of_math(name):
    kind, value = run(lambda x: apply(getattr(math, name), x), 2.5)
    assert kind is float
    np.testing.assert_allclose(value, getattr(math, name)(2.5), rtol=1e-15)


def test_powers_and_bits():
    assert run(lambda n: (n >> 1) + (n << 2) + (n & 6), 13)[1] == (13 >> 1) + (13 << 2) + (13 & 6)
    assert run(lambda x: x**3.0, 1.5)[1] == 1.5**3.0
    assert run(lambda a, b: divmod(a, b)[0] * 100 + divmod(a, b)[1], -7, 3)[1] == -298
    assert run(lambda a, b: select(a < b, a, b), 3, 2)[1] == 2
    assert run(lambda z: z * z + 1, 1 + 2j) == (complex, (1 + 2j) ** 2 + 1)
    with pytest.raises(ValueNeededError, match="sign"):
        run(lambda n: 2 ** (select(n > 0, 1, -1)), 3)


def test_they_take_the_dtype_of_tensors_after_computing_in_double():
    x = td.constant([1.0, 3.0])

    @td.function(autograph=False)
    def f(x, n):
        n = symbolic_number(n)
        return x * (n / 3), n - x, x / n, td.maximum(x, n), [n, x[0]], x > n

    n = 7
    wanted = x * (n / 3), n - x, x / n, td.maximum(x, n), [n, x[0]], x > n
    for got, value in zip(f(x, td.constant(n, td.int64)), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(value))


def test_dtypes_of_conversions_are_those_of_python_numbers():
    @td.function(autograph=False)
    def f(n, y, b):
        n, y, b = map(symbolic_number, (n, y, b))
        assert isinstance(n, int) and isinstance(y, float) and isinstance(b, bool)
        with pytest.raises(TypeError):
            convert_to_tensor(y, td.int32)
        with pytest.raises(TypeError):
            convert_to_tensor(n, td.bool)
        return convert_to_tensor(y), convert_to_tensor(b), convert_to_tensor(n, td.float32)

    y, b, n = f(td.constant(3, td.int64), td.constant(0.1, td.float64), td.constant(True))
    assert (y.dtype, b.dtype, n.dtype) == (td.float32, td.bool, td.float32)
    assert y.numpy() == np.float32(0.1) and b.numpy() and n.numpy() == 3


class Positions(Domain):
    def __init__(self, size, tensor: Tensor) -> None:
        super().__init__(size)
        self._tensor = tensor

    def position(self) -> Tensor:
        return self._tensor


class Counter(Source):
    """A number that goes through known values."""

    exact = True

    def __init__(self, position: Tensor, values) -> None:
        super().__init__(position)
        self.values, self.domain = values, Positions(len(values), position)


def test_values_that_are_known_give_pythons_bits():
    """Functions that a compiled program computes in another way come from a table."""
    values = range(3, 40)

    @td.function(autograph=False)
    def f(k):
        i = number_from(Counter(k, values), int, (3, 39))
        return (apply(math.sin, i) * 3).tensor(), (i % 7 * 0.1).tensor(td.float32)

    for k, i in enumerate(values):
        got, narrow = f(td.constant(k, td.int64))
        assert got.numpy() == math.sin(i) * 3
        assert narrow.numpy() == np.float32(i % 7 * 0.1)


def test_intervals_decide_comparisons_and_differences():
    @td.function(autograph=False)
    def f(k):
        i = symbolic_number(k, (0, 9))
        assert (i >= 0) is True and (i == 10) is False and (i + 3) - i == 3
        assert type(2 * i + 1 - i - i) is int
        assert (i // 2).interval == (0, 4) and (3 * i - 1).interval == (-1, 26)
        assert is_symbolic_number(i > 3)
        assert convert_to_tensor(i).dtype is td.int32
        return (i + 1).tensor()

    assert f(td.constant(4, td.int64)).numpy() == 5


@pytest.mark.parametrize(
    "use",
    [
        bool, str, int, float, hash, lambda n: [1, 2][n], lambda n: {n: 1}, lambda n: f"{n}",
        lambda n: range(n), np.asarray, lambda n: [0] * n, lambda n: np.ones(3)[n],
        lambda n: n in [1, 2], format, lambda n: math.gcd(n, 2),
        lambda n: td.zeros([2]) if n > 0 else 0,
    ],
)  # fmt: skip
def test_uses_that_need_the_value_are_refused(use):
    @td.function(autograph=False)
    def f(k):
        use(symbolic_number(k))

    with pytest.raises(ValueNeededError, match="only known when the program runs"):
        f(td.constant(1, td.int64))


def test_python_refuses_what_it_refuses():
    @td.function(autograph=False)
    def f(k, y):
        n, y = symbolic_number(k), symbolic_number(y)
        with pytest.raises(TypeError):
            y << 1
        with pytest.raises(TypeError):
            n + "a"
        with pytest.raises(TypeError):
            n < "a"
        return k

    f(td.constant(1, td.int64), td.constant(1.5, td.float64))


def test_only_python_numbers_types_have_symbolic_ones():
    @td.function(autograph=False)
    def f(k):
        symbolic_number(k)

    with pytest.raises(TypeError, match="int64"):
        f(td.constant(1.0))
    with pytest.raises(TypeError, match="scalar"):
        f(td.constant([1.0], td.float64))
