"""An op without a native form in a loop: one warning, which names it and the user's line."""

import warnings

import numpy as np
import pytest

import treadle as td
from treadle.inspect import stages
from treadle.ops.registry import Op, run

# Not in the registry: what it does has no native form, now and later.
OPAQUE = Op("opaque", lambda x: x, lambda x: x + 1)


def opaque(x):
    return run(OPAQUE, x)


def looping(x):
    for _ in td.range(3):
        x = opaque(x)
        x = opaque(x) * 2.0
    return x


def test_calls_of_python_in_loops_warn_once() -> None:
    function = td.function(looping)
    x = td.constant(np.zeros(3))
    with pytest.warns(RuntimeWarning) as caught:
        first = function(x)
    messages = [str(w.message) for w in caught]
    assert len(messages) == 1
    assert "'looping' is slow: opaque has no native form and calls Python in a loop" in messages[0]
    assert "test_loop_calls.py:17" in messages[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = function(x)
    np.testing.assert_array_equal(first, again)
    assert "opaque has no native form" in str(function.explain())


def test_inspect_shows_them() -> None:
    with pytest.warns(RuntimeWarning, match="opaque"):
        found = stages(looping, np.zeros(3))
    assert "calls Python in a loop" in found["calls of Python"]


@pytest.mark.parametrize("strict", ["", "1"])
def test_outside_loops_and_for_the_users_python_nothing_warns(strict, monkeypatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", strict)

    @td.function
    def fine(x):
        for i in td.range(2):
            td.print("iteration", i)
            x = td.numpy_function(lambda a: a + 1, [x], td.TensorSpec([], td.float64))
        return opaque(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fine(td.constant(1.0, td.float64)).numpy() == 4
