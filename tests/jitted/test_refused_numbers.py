"""What Python refuses of numbers, in loops whose numbers only the run knows; and floats at the ends
of their range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import treadle as td

NAN, INF = math.nan, math.inf
SOME = (0.0, -0.0, 1.0, -1.0, 0.3, 2.5, -8.0, 1000.0, 2.675, 1.115, 1e300, -1e300, INF, -INF, NAN)
OTHERS = (0.0, 1.0, 0.1, -3.0, 1e300, INF, NAN)


def of_one(k: Any, x: Any) -> Any:
    found = 0.0
    if k == 0:
        found = math.sqrt(x)
    elif k == 1:
        found = math.log(x)
    elif k == 2:
        found = math.log1p(x) + math.log10(abs(x))
    elif k == 3:
        found = math.acos(x)
    elif k == 4:
        found = math.acosh(x)
    elif k == 5:
        found = math.atanh(x)
    elif k == 6:
        found = math.sin(x)
    elif k == 7:
        found = math.gamma(x)
    elif k == 8:
        found = round(x, 2) + round(x, -1)
    elif abs(x) < 9e18 or abs(x) == math.inf or x != x:
        found = float(int(x))
    return found


def of_two(k: Any, x: Any, y: Any) -> Any:
    found = 0.0
    if k == 0:
        found = x // y
    elif k == 1:
        found = x % y
    elif k == 2:
        found = x / y
    elif k == 3:
        found = math.fmod(x, y)
    elif k == 4:
        found = x**y
    elif k == 5:
        found = math.log(x, y)
    elif k == 6:
        found = math.remainder(x, y)
    else:
        found = math.hypot(x, y, 3.0)
    return found


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except OverflowError as error:
        return (OverflowError, str(error)) if "convert" in str(error) else math.inf
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


def agree(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, complex):
        return isinstance(found, tuple) and "complex" in found[1]
    if isinstance(wanted, tuple) or isinstance(found, tuple):
        return isinstance(found, tuple) and isinstance(wanted, tuple) and found[0] is wanted[0]
    same = math.isclose(found, wanted, rel_tol=1e-13) or (found != found and wanted != wanted)
    return type(found) is type(wanted) and (same or abs(found) == abs(wanted) == INF)


def test_what_python_refuses_is_refused_in_loops() -> None:
    def repeated(n: Any, k: Any, x: Any) -> Any:
        found = 0.0
        for _ in range(n):
            found = of_one(k, x)
        return found

    def repeated_of_two(n: Any, k: Any, x: Any, y: Any) -> Any:
        found = 0.0
        for _ in range(n):
            found = of_two(k, x, y)
        return found

    calls = [(repeated, of_one, (k, x)) for k in range(10) for x in SOME]
    calls += [(repeated_of_two, of_two, (k, x, y)) for k in range(8) for x in SOME for y in OTHERS]
    jitted = {f: td.jit(f) for f in (repeated, repeated_of_two)}
    for function, plain, given in calls:
        found, wanted = outcome(jitted[function], 40, *given), outcome(plain, *given)
        assert agree(found, wanted), (given, found, wanted)


def test_whole_numbers() -> None:
    @td.jit
    def divided(a: Any, b: Any, n: Any) -> Any:
        total = 0
        for i in range(n):
            total += (a + i) // b + (a + i) % b
        return total

    assert divided(7, -3, 5) == divided.python_function(7, -3, 5)
    with pytest.raises(ZeroDivisionError):
        divided(7, 0, 5)
    with pytest.raises(OverflowError, match="int of 64 bits"):
        td.jit(lambda x: int(x * 2.0))(1e300)


def test_powers_of_bases_have_whole_logarithms() -> None:
    @td.jit
    def logs(x: Any) -> Any:
        return np.log10(x), np.log2(x), np.hypot(x, x), np.floor_divide(x, x * 0.1)

    for x in (10.0 ** np.arange(-300, 300), 2.0 ** np.arange(-900, 900)):
        for found, wanted in zip(logs(x), logs.python_function(x), strict=True):
            assert np.allclose(found, wanted, 1e-15, 0.0)
        whole = np.log10(x) % 1 == 0
        assert (logs(x)[0] == np.log10(x))[whole].all()


def test_checks_leave_loops_of_independent_iterations_alone() -> None:
    @td.jit
    def roots(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = math.sqrt(x[i]) + math.sin(x[i])

    x, out = np.arange(50.0), np.zeros(50)
    roots(x, out)
    assert np.allclose(out, np.sqrt(x) + np.sin(x))
    executable = roots.concrete_functions[-1].executable
    assert "while" not in {node.op.name for node in executable.graph.walk()}
    with pytest.raises(ValueError, match="math domain error"):
        roots(x - 3.0, out)
    assert np.allclose(out, np.sqrt(x) + np.sin(x))  # as before the call
