"""Texts of which only the run knows which one a variable is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td


def returned(x: Any) -> Any:
    if x.sum() % 2 == 0:
        return "even"
    return "odd"


def changed_in_a_loop(x: Any) -> Any:
    state, n = "start", 0
    while n < len(x) and state != "end":
        if state == "start" and x[n] > 0:
            state = "middle"
        elif state == "middle" and x[n] < 0:
            state = "end"
        n += 1
    return state, n


def used(x: Any) -> Any:
    kind, name, found = "a" if x[0] > 0 else "b", "", 0.0
    if x[1] > 0:
        name = "p"
    if name:
        found += 1.0
    if kind == "a":
        found += 2.0
    return {"a": 1.5, "b": 2.5}[kind] + found, kind + name, kind in ("a", "c"), kind.upper()


@pytest.mark.parametrize("function", [returned, changed_in_a_loop, used])
def test_texts(function: Any) -> None:
    jitted = td.jit(function)
    for start in ([1.0, -1.0], [-1.0, 2.0], [2.0, 1.0]):
        x = np.array([*start, 3.0] * 20)
        assert jitted(x) == function(x)


def test_what_needs_the_text_is_refused() -> None:
    assert td.jit(lambda x: f"{'a' if x[0] > 0 else 'b'}!")(np.ones(1)) == "a!"
    with pytest.raises(TypeError, match="one of 'a', 'b', is used as a key"):
        td.jit(lambda x: {("a" if x[0] > 0 else "b"): 1.0})(np.ones(1))
