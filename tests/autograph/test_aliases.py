"""Random programs with names and views of one array: NumPy's result, or a clear error."""

from __future__ import annotations

import itertools
import linecache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.runtime import interpreter

NAMES = ["a", "b", "c"]
NAME = st.sampled_from(NAMES)
NUMBER = st.integers(1, 9).map(float)
KEY = st.sampled_from(["0", "1", "-1", "i", "i + 1", "1:", ":2", "::2", "a > 4", "[0, 1]"])
VIEW = st.sampled_from(["{}[1:]", "{}[::-1]", "{}.reshape(-1)", "{}.T", "{}"])
COPY = st.sampled_from(["{} + 1.0", "{}.copy()", "{} * 2.0"])

ASSIGN = st.one_of(
    st.builds(lambda n, k, v: [f"{n}[{k}] = {v}"], NAME, KEY, NUMBER),
    st.builds(lambda n, k, v: [f"{n}[{k}] += {v}"], NAME, KEY, NUMBER),
    st.builds(lambda n, k, m: [f"{n}[{k}] = {m}[0]"], NAME, KEY, NAME),
    st.builds(lambda n, f, m: [f"{n} = {f.format(m)}"], NAME, VIEW, NAME),
    st.builds(lambda n, f, m: [f"{n} = {f.format(m)}"], NAME, COPY, NAME),
    st.builds(lambda n: [f"seen += {n}.sum()"], NAME),
    st.builds(lambda n: [f"kept = [{n}, 1.0]"], NAME),
)


COUNT = itertools.count()


def indented(blocks):
    return ["    " + line for block in blocks for line in block]


def compound(inner):
    body = st.lists(inner, min_size=1, max_size=3).map(indented)
    loop = body.map(lambda lines: ["for j in range(n):", *lines])
    branch = st.builds(
        lambda name, yes, no: [f"if {name}[0] > 4:", *yes, "else:", *no], NAME, body, body
    )
    return st.one_of(inner, loop, branch)


PROGRAM = st.lists(st.recursive(ASSIGN, compound, max_leaves=4), min_size=2, max_size=6)


def function_of(blocks):
    """The program as a function, with the source where AutoGraph finds it."""
    lines = [
        "def f(a, i, n):",
        "    b, c, seen, kept = a + 1.0, a * 2.0, a[0] * 0.0, [a * 3.0, 1.0]",
    ]
    lines += [*indented(blocks), "    return a.sum(), b.sum(), c.sum(), seen, kept[0].sum()"]
    text, name = "\n".join(lines) + "\n", f"<program {next(COUNT)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"], text


@given(PROGRAM)
@settings(max_examples=60, deadline=None)
def test_numpy_or_an_error(blocks):
    fn, text = function_of(blocks)
    x = np.array([5.0, 3.0, 7.0, 1.0])
    try:
        expected = fn(x.copy(), 1, 2)
    except Exception:  # a shape that does not fit
        return
    try:
        found = td.function(fn).get_concrete_function(
            td.TensorSpec([4], td.float64), td.TensorSpec([], td.int32), td.TensorSpec([], td.int32)
        )
    except TypeError as error:
        assert "shares" in str(error) or "different types" in str(error), text
        return
    result = interpreter.run(found.graph, [x, np.int32(1), np.int32(2)])
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, err_msg=text)


def test_a_list_beside_the_array_that_is_assigned_to():
    @td.autograph.to_graph
    def f(a):
        array = td.TensorArray(td.float32, size=1, clear_after_read=False)
        array = array.write(0, a[1])
        a[0] = a[1] * 2.0
        return a, array.read(0)

    a, first = f(td.constant([[1.0], [2.0]]) + 0.0)
    assert a.numpy().tolist() == [[4.0], [2.0]] and float(first[0]) == 2.0
