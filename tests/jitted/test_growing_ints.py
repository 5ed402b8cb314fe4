"""Python ints that leave the 64 bits that they have in a program: an error, where a loop multiplies
them, and for powers and shifts; and no error where the last result is not used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import treadle as td

FITS = 2**63


def factorial(n: int) -> int:
    found = 1
    for i in range(2, n + 1):
        found *= i
    return found


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def differences(n: int) -> int:
    a, b = 1, -1
    for _ in range(n):
        a, b = b, a - b * 3
    return a


def by_squares(base: int, n: int) -> int:
    found = 1
    while n > 0:
        if n % 2 == 1:
            found = found * base
        base = base * base
        n //= 2
    return found


def doubled(n: int) -> int:
    x = 1
    for _ in range(n):
        x = x << 1
    return x


def hashed(n: int) -> int:
    h = 5381
    for i in range(n):
        h = ((h << 5) + h) + i
    return h


@pytest.mark.parametrize("function", [factorial, fibonacci, differences, doubled, hashed])
def test_a_loop_that_multiplies_an_int(function):
    jitted = td.jit(function)
    for n in (0, 3, 10, 12, 20, 21, 25, 35, 60, 62, 63, 64, 92, 93, 100):
        expected = function(n)
        if -FITS <= expected < FITS:
            assert jitted(n) == expected
        else:
            with pytest.raises(OverflowError, match="64 bits"):
                jitted(n)


def numbers_of_trees(n: int) -> int:
    found = [0 for _ in range(n + 1)]
    found[0] = 1
    for i in range(1, n + 1):
        total = 0
        for j in range(i):
            total += found[j] * found[i - 1 - j]
        found[i] = total
    return found[n]


def ways(n: int) -> int:
    found = [0] * (n + 1)
    found[0] = 1
    for coin in (1, 2, 5):
        for v in range(coin, n + 1):
            found[v] += found[v - coin] * 2
    return found[n]


def binomial(n: int) -> int:
    row = [1]
    for _ in range(n):
        new = [1]
        for j in range(1, len(row)):
            new.append(row[j - 1] + row[j])
        new.append(1)
        row = new
    return row[n // 2]


def remembered(n: int) -> int:
    found = {0: 0, 1: 1}
    for i in range(2, n + 1):
        found[i] = found[i - 1] + found[i - 2]
    return found[n]


def in_an_inner_loop(n: int) -> int:
    x = 1
    for _ in range(n):
        total = 0
        for _ in range(3):
            total += x
        x = total
    return x


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (numbers_of_trees, 35), (binomial, 66), (in_an_inner_loop, 39), (remembered, 92),
        (ways, 61),
    ],
)  # fmt: skip
def test_a_list_or_an_inner_loop_through_which_ints_multiply(function, most):
    jitted = td.jit(function)
    for n in () if function is remembered else (3, most):  # dicts take long to compile
        assert jitted(n) == function(n)
    with pytest.raises(OverflowError, match=f"64 bits[^$]*{function.__name__}"):
        jitted(most + 1)


def test_items_of_lists_that_only_count_or_wrap_are_not_compared():
    def counts(n: int) -> int:
        found = [0] * 20
        for i in range(n):
            found[(i * i) % 20] += 1
        return found[1]

    def draws(n: int) -> int:
        found = [1] * 20
        for i in range(n):
            found[(i + 1) % 20] = (found[i % 20] * 1103515245 + 12345) % 2147483648
        return found[n % 20]

    def wraps(x: Any) -> Any:
        for i in range(1, len(x)):
            x[i] = x[i - 1] * 3
        return x[-1]

    for function in (counts, draws):
        jitted = td.jit(function)
        assert [jitted(n) for n in (40, 41, 900)] == [function(n) for n in (40, 41, 900)]
        assert "raise" not in str(jitted.concrete_functions[-1].graph)
    with np.errstate(over="ignore"):
        assert td.jit(wraps)(np.ones(80, int)) == wraps(np.ones(80, int))


def test_a_number_that_is_not_used_may_be_too_large():
    jitted = td.jit(by_squares)
    for base, n in ((3, 5), (3, 39), (2, 62), (7, 22), (-2, 61)):
        assert jitted(base, n) == base**n
    with pytest.raises(OverflowError, match="by_squares"):
        jitted(3, 40)


def test_remainders_and_masks_are_no_growth():
    def generator(n: int) -> int:
        s = 1
        for _ in range(n):
            s = (s * 1103515245 + 12345) % 2147483648
        return s

    def polynomial(x: Any) -> int:
        h = 0
        for c in x:
            h = (h * 31 + int(c)) & 0xFFFFFFFF
        return h

    for n in (1, 2, 500):
        assert td.jit(generator)(n) == generator(n)
    x = np.arange(200)
    assert td.jit(polynomial)(x) == polynomial(x)


def test_numpys_ints_wrap_around():
    @td.jit
    def wrapped(x):
        found = np.int64(1)
        for v in x:
            found *= v
        return found

    x = np.full(80, 3)
    assert wrapped(x) == np.prod(x)


def test_powers_and_shifts():
    def power(a: int, b: int) -> int:
        return a**b

    def fifth(a: int) -> int:
        return a**5

    def shifted(a: int, b: int) -> int:
        return a << b

    jitted = td.jit(power), td.jit(fifth), td.jit(shifted)
    for a, b in ((2, 3), (3, 39), (2, 62), (10, 18), (-3, 39), (0, 0), (1, 500)):
        assert jitted[0](a, b) == a**b
    for a, b in ((3, 40), (2, 64), (10, 19), (-7, 23)):
        with pytest.raises(OverflowError, match="power"):
            jitted[0](a, b)
    assert [jitted[1](a) for a in (3, 6208, -6208)] == [a**5 for a in (3, 6208, -6208)]
    with pytest.raises(OverflowError, match="power"):
        jitted[1](6209)
    for a, b in ((1, 2), (1, 62), (-1, 63), (0, 100), (5, 60)):
        assert jitted[2](a, b) == a << b
    for a, b in ((1, 63), (1, 64), (5, 62)):
        with pytest.raises(OverflowError, match="shifted"):
            jitted[2](a, b)


def test_ints_of_more_than_64_bits_are_constants():
    @td.jit
    def following(a):
        return a + 1

    assert [following(a) for a in (1, 2, 10**20, 5, 2**63)] == [2, 3, 10**20 + 1, 6, 2**63 + 1]

    @td.jit
    def largest(n):
        found = -(10**30)
        for i in range(n):
            found = max(found, i)
        return found

    assert [largest(n) for n in (3, 5, 9)] == [2, 4, 8]


def test_the_root_of_an_int_that_wrapped_around_is_an_error():
    @td.jit
    def root(x):
        found = 0.0
        for v in x:
            found = math.sqrt(int(v) * int(v))
        return found

    assert root(np.array([5] * 20 + [3])) == 3.0
    with pytest.raises(ValueError, match="math domain"):
        root(np.array([5] * 20 + [3037000500]))


def test_products_outside_of_loops():
    @td.jit
    def root(a, b):
        return math.sqrt(a * a + b * b)

    assert root(3, 4) == 5.0
    assert root(5, 12) == 13.0
    with pytest.raises(OverflowError, match="product"):
        root(3037000500, 3)


def test_the_root_of_narrow_ints_needs_no_check():
    def root(x: Any) -> float:
        d = int(x[0]) - int(x[1])
        return math.sqrt(d * d)

    jitted = td.jit(root)
    for x in (np.array([-(2**15), 2**15 - 1], np.int16), np.array([1, 4], np.int16)):
        assert jitted(x) == root(x)
    graph = str(jitted.get_concrete_function(np.array([1, 4], np.int16)).graph)
    assert "raise" not in graph
    assert "raise" in str(td.jit(root).get_concrete_function(np.array([1, 4])).graph)
