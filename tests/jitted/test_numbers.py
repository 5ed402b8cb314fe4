"""Numbers in jitted functions: functions of math and cmath, methods of NumPy's scalars, shifts."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest

import treadle as td

X = np.array([0.75, -2.5, 3.0, 170.25, 1e300, 0.0, -0.0, np.inf, 8.0])


def of_math(x: Any, y: Any) -> Any:
    return (
        math.isinf(x), math.isfinite(x), math.isclose(x, y), math.isclose(x, y, rel_tol=0.5),
        math.cbrt(x), math.frexp(x), math.ldexp(y, 5), math.ldexp(y, -1074), math.modf(x),
        math.remainder(y, 0.75), math.exp2(y), math.dist([x, y], [1.0, 2.0]),
    )  # fmt: skip


def gammas(x: Any) -> Any:
    return math.gamma(x), math.lgamma(x)


def of_ints(x: Any) -> Any:
    found = []
    for i in range(3):
        n = int(x[i])
        found += [
            math.gcd(n, 12), math.lcm(n, 4), math.isqrt(n * 1000), math.factorial(n % 15),
            math.comb(n % 20, 3), math.perm(n % 20, 2), n >> i, n << (i + 1), n >> (n % 64),
            1 << (n % 60), -n >> 70,
        ]  # fmt: skip
    return found


def of_cmath(z: Any) -> Any:
    return (
        cmath.phase(z), cmath.polar(z), cmath.rect(abs(z), 0.5), cmath.isinf(z), cmath.atanh(z),
        cmath.isclose(z, z + 1e-12), cmath.isfinite(z),
    )  # fmt: skip


def methods_of_scalars(x: Any) -> Any:
    total = x.sum()
    return (
        total.astype(np.float32), total.astype(int), total.copy(), x[0].tolist(), x[1].is_integer(),
        x[1].reshape(1, 1), x[2].ravel(), x[0].T, x[1].view(np.int64), x.astype(complex),
        np.zeros(2, complex), x[0].squeeze(),
    )  # fmt: skip


def other_bits(x: Any) -> Any:
    bits = x.view(np.int64)
    bits[0] += 1
    return bits, x * 2.0


def _agree(function: Any, *arguments: Any) -> None:
    wanted, found = function(*arguments), td.jit(function)(*arguments)
    _same(wanted, found)


def _same(a: Any, b: Any) -> None:
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _same(x, y)
        return
    assert type(a) is type(b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0), (a, b)
    np.testing.assert_allclose(b, a, rtol=3e-14)
    assert not isinstance(a, float) or math.copysign(1.0, a) == math.copysign(1.0, b)


def test_functions_of_math() -> None:
    jitted = td.jit(of_math)
    for x in X.tolist():
        _same(of_math(x, 7.3), jitted(x, 7.3))
    jitted = td.jit(gammas)
    for x in (0.5, 4.0, 23.0, -1.5, -2.5, 33.3):
        _same(gammas(x), jitted(x))


def test_functions_of_ints_and_of_cmath() -> None:
    _agree(of_ints, np.array([18, 7, 51]))
    for z in (0.75 + 0.5j, -1.5 - 2j):
        _agree(of_cmath, z)


def test_methods_of_scalars() -> None:
    _agree(methods_of_scalars, np.array([1.5, 2.0, -3.25]))
    ours, plain = np.array([1.5, 2.0]), np.array([1.5, 2.0])
    _same(other_bits(plain), td.jit(other_bits)(ours))
    assert np.array_equal(ours, plain)
    with pytest.raises(TypeError, match="view.. of float64 as int32: .* of the same size only"):
        td.jit(lambda x: x.view(np.int32))(np.ones(2))


def test_python_refuses_negative_shifts() -> None:
    @td.jit
    def shifted(x: Any) -> Any:
        return 5 << int(x[0])

    assert shifted(np.array([3])) == 40
    with pytest.raises(ValueError, match="negative shift count"):
        shifted(np.array([-1]))


def test_or_and_and_of_numbers_give_numbers():
    def chosen(n, m, x, t):
        flags = 0
        if n or x[0] > 5:
            flags = 1
        if n and x[0] > 5:
            flags += 2
        return n or m, n and m, (n > 2) and m, (n > 2) or m, n or t, n or m or t, flags

    x, jitted = np.array([6, -1]), td.jit(chosen)
    for arguments in [(0, 0, x, 0.5), (3, 2, x, 0.0), (0, 7, -x, 1.5), (5, 0, x, 0.0)]:
        assert jitted(*arguments) == chosen(*arguments)
