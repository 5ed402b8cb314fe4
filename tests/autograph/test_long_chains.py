"""Functions with more branches in a row than Python's parser nests."""

import linecache

import numpy as np
import pytest

import treadle as td

COUNT = 110


def made(name, lines):
    text = "\n".join(["def f(x):", "    s = x[0] * 1.0", *lines, ""])
    filename = f"<long chain {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope = {"__name__": "long_chains"}
    exec(compile(text, filename, "exec"), scope)
    return scope["f"]


def elifs():
    branches = [f"    elif s > {COUNT - i}:\n        y = s * {i}.5" for i in range(COUNT)]
    return [
        "    if s > 1e6:\n        y = s",
        *branches,
        "    else:\n        y = -s",
        "    return y",
    ]


def elifs_that_return():
    branches = [f"    elif s > {COUNT - i}:\n        return s * {i}.5" for i in range(COUNT)]
    end = ["    else:\n        s = s + 1.0", "    return s * 3"]
    return ["    if s > 1e6:\n        return s", *branches, *end]


def returns():
    tests = [f"    if s > {COUNT - i}.5:\n        return s * {i}.5" for i in range(COUNT)]
    return [*tests, "    return s"]


def jumps_of_a_loop():
    tests = [
        f"        if s > {COUNT - i + 40}.5:\n            {'break' if i % 2 else 'continue'}\n"
        f"        s = s + 0.01"
        for i in range(COUNT)
    ]
    end = ["        if s > 1e5:\n            return s * 2", "    return s"]
    return ["    for i in range(20):", *tests, *end]


def conditions():
    return ["    return " + " and ".join(f"s > -{i}.5" for i in range(2 * COUNT))]


@pytest.mark.parametrize(
    "lines", [elifs, elifs_that_return, returns, jumps_of_a_loop, conditions],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_long_chains(lines):
    function = made(lines.__name__, lines())
    jitted, staged = td.jit(function), td.function(function)
    for start in (1.0, 31.2, 70.6, 1e7, -5.0):
        x = np.array([start, 1.0])
        expected = function(x)
        np.testing.assert_allclose(jitted(x), expected)
        np.testing.assert_allclose(staged(td.constant(x)), expected)
