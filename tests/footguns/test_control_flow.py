"""Traps of control flow: what converts, what cannot, and what is said about it."""

import pathlib

import numpy as np
import pytest

import treadle as td


def loops(n, stop):
    """Returns how the loops ended."""
    total = n * 0
    for i in range(5):
        if i == stop:
            break
        if i % 2 == 1:
            continue
        total = total + i
    else:
        total = total + 100
    while n > 0:
        n = n - 1
        if n == stop:
            break
    else:
        total = total + 1000
    return total


@pytest.mark.parametrize("n", [0, 2, 4])
@pytest.mark.parametrize("stop", [0, 1, 3, 9])
def test_06_loop_else_break_and_continue(n, stop):
    f = td.function(loops)
    assert f(td.constant(n), td.constant(stop)).numpy() == loops(n, stop)


def test_07_the_table_of_what_converts_is_made_from_the_corpus():
    root = pathlib.Path(__file__).parents[2]
    table = (root / "docs" / "supported_syntax.md").read_text()
    assert "Each function of `tests/corpus/`" in table
    assert "page()" in (root / "tests" / "corpus" / "test_table.py").read_text()  # holds it


def test_08_lambdas_in_every_position():
    @td.function
    def f(x):
        for g in [lambda v: v + 1.0 if v > 0 else v - 1.0, lambda v: v * 2.0]:
            x = g(x)
        while (lambda v: v < 20.0)(x):
            x = (lambda v: v * 2.0 if v > 0.0 else v + 50.0)(x)
        return sorted([x, -x], key=lambda v: 1)[0] if (lambda: True)() else None

    assert f(td.constant(1.0)).numpy() == 32
    assert f(td.constant(-1.0)).numpy() == 46


def test_09_a_growing_loop_variable():
    @td.function
    def f(n):
        x = td.zeros([1])
        for i in td.range(n):
            x = td.concat([x, td.cast([i], td.float32)], 0)
        return x

    assert f(td.constant(4)).numpy().tolist() == [0, 0, 1, 2, 3]


def test_09_a_rank_that_changes_is_an_error_with_variable_and_types():
    @td.function
    def f(n):
        grown = td.zeros([1])
        for _ in td.range(n):
            grown = td.expand_dims(grown, 0)
        return grown

    with pytest.raises(Exception, match=r"'grown'.*\(1,\).*\(1, 1\)(.|\n)*for _ in"):
        f(td.constant(2))


def test_10_what_cannot_be_converted_raises():
    """It never runs unconverted in silence; that is asked for with do_not_convert."""
    namespace = {}
    exec("def f(x):\n    if x > 0:\n        return x\n    return -x\n", namespace)
    with pytest.raises(td.autograph.SourceNotFoundError, match="do_not_convert"):
        td.function(namespace["f"])(td.constant(1.0))

    @td.autograph.experimental.do_not_convert
    def plain(x):
        return x if x > 0 else -x

    with pytest.raises(TypeError, match="switched off"):
        td.function(plain)(td.constant(1.0))


def test_14_a_tensor_as_python_bool():
    @td.function(autograph=False)
    def f(x):
        doubled = x * 2.0
        if doubled > 0:
            return x
        return -x

    with pytest.raises(TypeError) as caught:
        f(td.constant(1.0))
    text = str(caught.value)
    assert "if doubled > 0:" in text and __file__ in text  # where it is used
    assert "autograph=False" in text or "td.cond" in text  # the fix


def test_23_gradients_through_data_dependent_loops():
    @td.function
    def f(x):
        y = x
        while td.reduce_sum(y) < 50.0:
            y = y * x + 1.0
        return td.reduce_sum(y)

    x = td.constant([1.5, 2.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    exact, step = tape.gradient(y, x).numpy(), 1e-3
    for i, moved in enumerate(np.eye(2, dtype=np.float32) * step):
        numeric = (f(x + moved).numpy() - f(x - moved).numpy()) / (2 * step)
        np.testing.assert_allclose(exact[i], numeric, rtol=1e-2)
