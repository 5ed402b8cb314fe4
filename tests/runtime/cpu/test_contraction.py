"""Products taken into sums of rank-0 values of loops."""

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.target import host


def looped(step):
    """`step` applied n times by a compiled loop."""

    @td.function
    def loop(a, n):
        return td.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, step(a)), [0, a])[1]

    return loop


def rounded_once(exact: np.longdouble) -> np.float32:
    return np.float32(exact)


@pytest.mark.parametrize(
    ("step", "exact"),
    [
        (lambda a: a * 0.999 + 1.0, lambda a, c: a * c + 1),
        (lambda a: 1.0 + a * 0.999, lambda a, c: a * c + 1),
        (lambda a: a * 0.999 - 1.0, lambda a, c: a * c - 1),
        (lambda a: 1.0 - a * 0.999, lambda a, c: 1 - a * c),
    ],
)
@pytest.mark.skipif(not host().has_fma, reason="two operations on this processor")
def test_sums_of_a_product_are_rounded_once(step, exact) -> None:
    want = np.float32(1.7)
    for _ in range(50):
        want = rounded_once(exact(np.longdouble(want), np.longdouble(np.float32(0.999))))
    assert looped(step)(td.constant(1.7), 50).numpy() == want


def test_differences_of_products_stay_exact() -> None:
    got = looped(lambda a: a + (a * a - a * a))(td.constant(1.1), 5)
    assert got.numpy() == np.float32(1.1)

    @td.function
    def determinant(a, b, n):
        d = td.constant(0.0)
        for _ in td.range(n):
            d = a * b - b * a
        return d

    assert determinant(td.constant(1.1), td.constant(1.3), td.constant(3)).numpy() == 0


def test_a_product_that_others_read_keeps_its_rounding() -> None:
    @td.function
    def loop(a, n):
        p, d = a, td.constant(1.0)
        for _ in td.range(n):
            q = a * td.constant(1.1)
            d = q - p
            p = q
        return d

    assert loop(td.constant(1.3), td.constant(4)).numpy() == 0


def test_what_is_no_loop_is_not_touched() -> None:
    f = td.function(lambda a, b, c: a * b + c)
    a, b, c = (np.float32(v) for v in (1.1, 1.3, -1.43))
    assert f(td.constant(a), td.constant(b), td.constant(c)).numpy() == np.float32(a * b) + c
