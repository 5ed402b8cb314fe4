"""Methods of lists that a function calls by another name, as in Python."""

import collections

import numpy as np
import pytest

import treadle as td


def appends(n):
    found = []
    put = found.append
    for i in range(n):
        put(i * i)
    return found


def inserts(n):
    found = [0]
    insert = found.insert
    put = found.append
    for i in range(n):
        if i % 2:
            put(i)
        else:
            insert(0, i + 1)
    return found


def pops(values):
    rest = list(values)
    pop = rest.pop
    total = 0
    while len(rest) > 1:
        total += pop() * 2 - pop(0)
    return total


def of_a_parameter(found, n):
    put = found.append
    for i in range(n):
        put(i)
    return len(found)


def in_a_loop(n):
    total = 0
    for i in range(n):
        row = []
        put = row.append
        for j in range(i):
            put(j * i)
        total += sum(row)
    return total


def of_a_set(n):
    seen = set()
    note = seen.add
    for i in range(n):
        note(i * i % 13)
    return sorted(seen)


def of_a_deque(n):
    waiting = collections.deque([0])
    take = waiting.popleft
    put = waiting.append
    total = 0
    while waiting:
        i = take()
        total += i
        if i < n:
            put(i + 1)
    return total


CALLS = [
    (appends, (6,)), (pops, (np.array([3, 1, 2, 5, 4]),)), (in_a_loop, (5,)), (of_a_set, (20,)),
    (inserts, (5,)), (of_a_deque, (5,)),
]  # fmt: skip


@pytest.mark.parametrize("function, args", CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_as_in_python(function, args):
    jitted = td.jit(function)
    assert jitted(*args) == jitted(*args) == function(*args)


def test_a_name_for_methods_of_several_lists():
    """The text does not tell which list the method is of, where the loop does not change it."""

    def both(n):
        found, other = [], []
        put = found.append
        put(1)
        put = other.append
        put(n)
        return found, other

    assert td.jit(both)(3) == both(3)


def test_lists_of_the_caller_change():
    given = [7]
    assert td.jit(of_a_parameter)(given, 3) == 4 and given == [7, 0, 1, 2]
