"""Lists and attributes that functions, methods and closures of the user's change in branches and
loops, which find them by name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.jitted.errors import NotStaged


class Stack:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self.pushed = 0

    def push(self, v: Any) -> None:
        if v > 2:
            self.items.append(v)
        self.pushed += 1

    def pop(self) -> Any:
        return self.items.pop()


class Counter:
    def __init__(self) -> None:
        self.hits = 0

    def pop(self) -> None:
        self.hits += 1


def of_a_closure(x: Any) -> Any:
    out: list[Any] = []
    log = [1]

    def add(v: Any) -> None:
        out.append(v)

    def note(v: Any) -> None:
        if v > 3:
            add(v)
            log.append(2)

    for v in x:
        if v > 2:
            note(v)
    return out, len(out), out[0], out[-1], sum(log), [o * 2 for o in out]


def without_a_branch(x: Any) -> Any:
    out: list[Any] = []

    def add(v: Any) -> None:
        out.append(v)

    for v in x:
        add(v)
    return out


def of_an_attribute(x: Any) -> Any:
    stack = Stack()
    if x[0] > 0:
        stack.items.append(x[1])
    else:
        stack.items.append(x[2])
        stack.items.append(x[3])
    return stack.items


def of_a_method(x: Any) -> Any:
    stack = Stack()
    for v in x:
        stack.push(v)
        if len(stack.items) > 4:
            stack.pop()
    return stack.items, stack.pushed


@pytest.mark.parametrize(
    ("function", "count"),
    [(of_a_closure, 40), (without_a_branch, 40), (of_an_attribute, 6), (of_a_method, 6)],
)
def test_lists_that_grow(function, count):
    x = np.array([1, 5, 2, 3, 0, 7] * 7)[:count]
    assert td.jit(function)(x) == function(x)


def test_a_list_of_the_callers_grows():
    def filled(x: Any, out: Any) -> Any:
        def add(v: Any) -> None:
            if v > 2:
                out.append(float(v))

        for v in x:
            add(v)
        return len(out)

    jitted = td.jit(filled)
    for out in ([1.0], []):
        own = copy.copy(out)
        assert jitted(np.arange(30) % 5, own) == filled(np.arange(30) % 5, out)
        assert own == out


def test_what_is_made_in_the_body():
    def counts(x):
        found = []
        for v in x:
            own = []

            def add(w):
                if w > 1:
                    own.append(w)

            add(v)
            found.append(len(own))
        return found

    x = np.arange(30)
    assert td.jit(counts)(x) == counts(x)


def counted_by_python(x: Any) -> Any:
    """The text has Python run the loop, after it was traced as one of the graph."""
    total, log = np.zeros(2), []

    def add(v: Any) -> None:
        total[0] += v
        log.append("x")

    for v in x:
        add(v)
    return total, len(log)


def in_a_list(x: Any) -> Any:
    total, count = np.zeros(2), [0]

    def add(v: Any) -> None:
        count[0] += int(v)

    for v in x:
        add(v)
        total[1] += 1
    return total, count[0]


def in_an_attribute(x: Any) -> Any:
    total, counter = np.zeros(2), Counter()
    for v in x:
        if v > 2:
            counter.hits += int(v)
        total[0] += 1
    return total, counter.hits


def in_a_variables_attribute(x: Any) -> Any:
    counter, other = Counter(), Counter()
    for _ in x:
        counter.pop()
    if x[1] > 9:
        other.pop()
    return np.zeros(1), counter.hits


@pytest.mark.parametrize("function", [counted_by_python, in_a_list, in_an_attribute])
def test_loops_change_arrays_once(function):
    x = np.arange(40) % 7
    (total, count), (found, counted) = function(x), td.jit(function)(x)
    np.testing.assert_array_equal(found, total)
    assert counted == count


def test_attributes_of_variables_change_in_each_iteration():
    x = np.arange(12)
    with pytest.raises(NotStaged, match="A branch changes a dict"):
        td.jit(in_a_variables_attribute)(x)

    @td.jit
    def counted(x):
        counter = Counter()
        for _ in x:
            counter.pop()
        return counter.hits

    assert counted(x) == 12
