"""`print` in jitted functions prints in each call, what plain Python prints."""

import numpy as np
import pytest

import treadle as td


def _told(function, arguments, capsys):
    told = []
    for called in (function, td.jit(function)):
        for _ in range(3):
            called(*[a.copy() if isinstance(a, np.ndarray) else a for a in arguments])
        told.append(capsys.readouterr().out)
    return told


def values(x, n):
    print("sum", x.sum(), x, n)
    return x


def formatted(x, n):
    print(f"x[0] is {x[0]:.3f} of {n:>5d}", x[1], sep="; ", end="!\n")
    return x


def in_a_loop(x, n):
    for i in range(n):
        if x[i] > 1.5:
            print(
                f"at {i}: {x[i]:.2f}",
                "is large",
            )
        x[i] += i
    print("done")
    return x


def structures(x, n):
    print((x[0], [x[1], n]), {"a": x[2]}, [v * 2 for v in x])
    grown = []
    for v in x:
        if v > 1:
            grown.append(v)
    print(grown, len(grown))
    return x


def in_a_helper(x, n):
    helper(x.mean())
    return x


def helper(mean):
    print("the mean is", mean)


@pytest.mark.parametrize("function", [values, formatted, in_a_loop, structures, in_a_helper])
def test_print(function, capsys):
    plain, jitted = _told(function, [np.array([0.5, 1.0, 2.0]), 3], capsys)
    assert jitted == plain


def test_to_another_stream(capsys):
    import sys

    @td.jit
    def warn(x):
        print("low:", x.min(), file=sys.stderr)

    warn(np.array([3.0, 1.0]))
    assert capsys.readouterr().err == "low: 1.0\n"


def test_a_function_of_tensors_prints_while_it_is_traced(capsys):
    @td.function
    def f(x):
        print("traced")
        return x + 1

    f(td.constant(1.0))
    f(td.constant(2.0))
    assert capsys.readouterr().out == "traced\n"
