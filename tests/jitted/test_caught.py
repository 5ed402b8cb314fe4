"""`raise` under a condition of the run, in a `try` of the function that catches it."""

import math

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


def told(x):
    said = "fine"
    for v in x:
        try:
            if v < 0:
                raise ValueError("negative", 3)
            if v > 20:
                raise KeyError("large")
        except (ValueError, KeyError) as error:
            said = str(error)
    return said


def counted_by_arguments(x):
    total = 0
    for v in x:
        try:
            if v < 0:
                raise ValueError(3)
            if v > 20:
                raise ValueError(5)
        except ValueError as error:
            total += error.args[0]
    return total


def said_of_numbers(x):
    said = ""
    for v in x:
        divisor = v * 1
        try:
            7 // divisor
            math.sqrt(float(v))
        except ZeroDivisionError as error:
            said = str(error)
        except ValueError as error:
            said = str(error)
    return said


@pytest.mark.parametrize("function", [told, counted_by_arguments, said_of_numbers])
def test_handlers_that_look_at_the_exception(function):
    jitted = td.jit(function)
    for values in ([1, 2], [1, -2, 3], [30], [-1, 30, 3], [0, 1], [2, 0]):
        given = [int(v) for v in values]
        assert jitted(list(given)) == function(given)
        if function is not said_of_numbers:  # of arrays it is NumPy that divides
            assert jitted(np.array(values)) == function(np.array(values))


def test_an_exception_that_is_raised_again_and_one_from_it():
    def again(x):
        try:
            if x[0] < 0:
                raise ValueError("negative")
        except ValueError:
            raise
        return 1

    def other(x):
        try:
            if x[0] < 0:
                raise ValueError("negative")
        except ValueError as error:
            raise RuntimeError("no number") from error
        return 1

    for function, kind in ((again, ValueError), (other, RuntimeError)):
        jitted = td.jit(function)
        assert jitted(np.ones(2)) == 1
        with pytest.raises(kind):
            jitted(-np.ones(2))


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


# -- what Python raises, for values that only the run knows ---------------------------------------


def root(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return -1.0


def quotient(a, b):
    try:
        y = a / b
    except ZeroDivisionError:
        y = -1.0
    return y


def item(x, i):
    try:
        v = x[i]
    except IndexError:
        v = x[0] - 7.0
    return v


def known_keys(x):
    known, n = {1: 10, 3: 30}, 0
    for v in x:
        try:
            n += known[v]
        except KeyError as error:  # noqa: F841
            n += 1
    return n


def quotients(x):
    n = 0
    for i in range(len(x)):
        try:
            n += 10 // int(x[i])
        except ArithmeticError:
            n += 100
    return n


def counted(x):
    counts = {}
    for v in x:
        try:
            counts[v] += 1
        except KeyError:
            counts[v] = 1
    return counts


def logarithms(x):
    total = 0.0
    try:
        for v in x.tolist():
            total += math.log(v)
    except ValueError:
        total = -99.0
    return total


def test_handlers_of_what_python_raises():
    x = np.array([1, 3, 0, 7, 3])
    cases = [
        (root, [(4.0,), (-4.0,)]),
        (quotient, [(4.0, 2.0), (4.0, 0.0), (3, 2), (3, 0), (4, 0)]),
        (item, [(x * 1.0, 2), (x * 1.0, 5), (x * 1.0, -5), (x * 1.0, -6)]),
        (known_keys, [(x,)]), (quotients, [(x,)]), (counted, [(x,)]),
        (logarithms, [(x + 1.0,), (x * 1.0,)]),
    ]  # fmt: skip
    for function, calls in cases:
        jitted = td.jit(function)
        for arguments in calls:
            assert jitted(*arguments) == function(*arguments), (function.__name__, arguments)


def test_errors_that_no_handler_of_the_trace_can_catch_are_raised():
    def within(x, y):
        try:
            return [math.sqrt(x) / v for v in (y, 1.0)][0]
        except (ValueError, ZeroDivisionError):
            return -1.0

    jitted = td.jit(within)
    assert jitted(4.0, 2.0) == 1.0
    with pytest.raises(ValueError, match="passed the except clause"):
        jitted(-4.0, 2.0)
    with pytest.raises(ZeroDivisionError, match="passed the except clause"):
        jitted(4.0, 0.0)
    plain = td.jit(lambda x: math.sqrt(x) + math.log(x))
    assert plain(1.0) == 1.0
    with pytest.raises(ValueError, match="math domain error"):
        plain(-1.0)
