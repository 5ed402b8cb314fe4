"""`raise` under a condition of the run, in a `try` of the function that catches it."""

import numpy as np
import pytest

import treadle as td


def caught(x):
    try:
        if x[0] < 0:
            raise ValueError("negative")
        y = 1
    except ValueError:
        y = 2
    return y


def in_a_loop(x):
    total = 0
    for i in range(len(x)):
        try:
            if x[i] > 1:
                raise ValueError
            total += 1
        except Exception:
            total += 10
    return total


def from_a_loop(x):
    found = 0
    try:
        for i in range(len(x)):
            if x[i] == 2:
                raise KeyError(i)
            if x[i] < -100:
                raise ValueError
            found += 1
        found += 100
    except LookupError:
        found += 1000
    except ValueError:
        found += 2000
    else:
        found += 5000
    return found


def returns(x):
    try:
        if x[0] < 0:
            raise ValueError("negative")
        if x[1] < 0:
            return x + 1
    except (KeyError, ValueError):
        return x * 0
    return x


def ends_a_loop(x):
    while True:
        try:
            x[0] -= 1
            if x[0] < 0:
                raise StopIteration
        except StopIteration:
            break
    return x[0]


@pytest.mark.parametrize("function", [caught, in_a_loop, from_a_loop, returns, ends_a_loop])
def test_the_program_decides(function):
    jitted = td.jit(function)
    for start in ([3, 1, 2, 1], [-3, 1, 2, 1], [4, -1, 1, 1], [4, 1, -200, 1]):
        x = np.array(start)
        own = x.copy()
        np.testing.assert_array_equal(jitted(own), function(x))
        np.testing.assert_array_equal(own, x)


def test_handlers_that_look_at_the_exception_are_refused():
    @td.jit
    def told(x):
        try:
            if x[0] < 0:
                raise ValueError("negative")
        except ValueError as error:
            return str(error)
        return ""

    with pytest.raises(TypeError, match="in a try statement that would catch it"):
        told(np.ones(2))


def test_errors_of_the_compiler_are_not_caught():
    @td.jit
    def read(x):
        try:
            names = ["a", "b"]
            name = names[x[0]]
        except Exception:
            name = "c"
        return name

    with pytest.raises(TypeError):
        read(np.array([1, 2]))


def test_a_handler_may_raise_again():
    @td.jit
    def again(x):
        try:
            raise ValueError("always")
        except ValueError:
            raise

    with pytest.raises(ValueError, match="always"):
        again(np.ones(2))
