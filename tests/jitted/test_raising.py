"""``raise`` and ``assert`` under conditions that only the running program knows."""

import importlib.util

import numpy as np
import pytest

import treadle as td


class NotPositive(ValueError):
    """An exception of the user's own."""


def root_sum(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise NotPositive(f"x[{i}] = {x[i]:.2f} of {x.shape[0]}", i)
        total += np.sqrt(x[i])
    return total


def pivots(a):
    n = a.shape[0]
    for i in range(n):
        p = np.argmax(np.abs(a[i:, i])) + i
        if a[p, i] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        if p != i:
            row = a[i].copy()
            a[i] = a[p]
            a[p] = row
        for k in range(i + 1, n):
            a[k, i:] -= a[i, i:] * (a[k, i] / a[i, i])
    return a


def last_branch(x):
    if x[0] > 0:
        y = x + 1
    elif x[0] < 0:
        y = x - 1
    else:
        raise ZeroDivisionError
    return y


def both_branches(x):
    if x[0] > 3:
        if x[1] > 0:
            raise KeyError("first")
        else:
            raise IndexError("second")
    return 2.0 * x


def steps(x):
    count = 0
    while abs(x) > 1e-3:
        x = x * 0.5
        count += 1
        if count > 5:
            raise RuntimeError("no convergence", x)
    return x


# Pytest rewrites the assertions of its own files.
ASSERTING = """
def asserting(x):
    assert x.sum() > 0, f"the sum is {x.sum():.1f}"
    assert x.shape[0] < 9
    return x.mean()
"""


def helper(x):
    if x.max() > 5:
        raise OverflowError(f"{x.max()}")
    return x


def in_a_function(x):
    return helper(x) * 2


CASES = [
    (root_sum, np.array([1.0, 4.0])), (root_sum, np.array([1.0, 4.0, -2.5, -1.0])),
    (pivots, np.array([[0.0, 2.0], [1.0, 3.0]])), (pivots, np.array([[1.0, 2.0], [2.0, 4.0]])),
    (last_branch, np.array([2.0])), (last_branch, np.array([-2.0])), (last_branch, np.zeros(2)),
    (both_branches, np.zeros(2)), (both_branches, np.array([4.0, 1.0])),
    (both_branches, np.array([4.0, -1.0])), (steps, np.float64(0.01)), (steps, np.float64(100.0)),
    (in_a_function, np.ones(3)), (in_a_function, np.full(3, 7.5)),
]  # fmt: skip


def outcome(f, x):
    try:
        return f(x.copy())
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize(("f", "x"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_the_same_exceptions_as_numpy(f, x) -> None:
    wanted, jitted = outcome(f, x), td.jit(f)
    for _ in range(3):
        found = outcome(jitted, x)
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            np.testing.assert_allclose(found, wanted)


def test_assertions(tmp_path) -> None:
    (tmp_path / "asserting.py").write_text(ASSERTING)
    spec = importlib.util.spec_from_file_location("asserting", tmp_path / "asserting.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    jitted = td.jit(module.asserting)
    assert jitted(np.ones(3)) == 1.0
    assert outcome(jitted, -np.ones(3)) == (AssertionError, ("the sum is -3.0",))
    assert outcome(jitted, np.ones(9)) == (AssertionError, ())


def test_one_program_for_good_and_bad_values() -> None:
    jitted = td.jit(root_sum)
    assert jitted(np.array([4.0, 9.0])) == 5.0
    with pytest.raises(NotPositive, match=r"x\[1\] = -9.00 of 2"):
        jitted(np.array([4.0, -9.0]))
    assert jitted(np.array([16.0, 9.0])) == 7.0


def test_where_the_user_catches_it_nothing_is_put_off() -> None:
    """The handler belongs to the calls in which it happens only, whatever a first one has."""

    def caught(x):
        try:
            if x[0] < 0:
                raise ValueError("negative")
        except ValueError:
            return x * 0
        return x

    for first in (-1.0, 1.0):
        jitted = td.jit(caught)
        for number in (first, -first):
            x = np.full(2, number)
            np.testing.assert_array_equal(jitted(x), caught(x))


def test_gradients_go_past_it() -> None:
    def f(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return (x * x).sum()

    np.testing.assert_allclose(td.grad(f)(np.array([1.0, 2.0])), [2.0, 4.0])
    with pytest.raises(ValueError, match="negative"):
        td.grad(f)(np.array([-1.0, -2.0]))
