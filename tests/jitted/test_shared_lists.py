"""Names of one list or dict, of which only the run knows that they are: all see what changes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.autograph.errors import UndefinedVariableError
from treadle.jitted.errors import NotStaged


def changed_by_the_new_name(x: Any) -> Any:
    a, b, c, d = [1, 2], [3, 4], [0, 0], [0, 0]
    if x[0] > 0:
        a, c = b, d
    a[0], c[1] = 5, 6
    return a, b, c, d


def changed_by_the_old_name(x: Any) -> Any:
    a, b = [1, 2], [3, 4]
    if x[0] > 0:
        a = b
    b[0] = 7
    return a[0], b[1], sum(a), len(a), max(a), [v for v in a], a + b, a[1:]


def swapped(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    c = a
    if x[0] > 0:
        a, b = b, a
    a[0] = x[0]
    return a, b, c


def made_in_a_branch(x: Any) -> Any:
    if x[0] > 0:
        p = [1, 2]
        q = p
    else:
        p, q = [3, 4], [5, 6]
    q[0] = 9
    return p, q


def entries(x: Any) -> Any:
    d, e = {1: 2}, {1: 3}
    if x[0] > 0:
        d = e
    d[1] = 8
    return e[1], d[1], d.get(1), list(d.items())


def rows(x: Any) -> Any:
    table = [[1, 2], [3, 4]]
    row = table[0]
    if x[0] > 0:
        row = table[1]
    row[0] = 9
    return table, row


def in_branches_and_loops(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    if x[0] > 0:
        a = b
    if x[1] > 0:
        a[1] = 6.0
    for i in range(len(x)):
        a[0] += x[i]
    return a, b


def one_of(test: Any, a: Any, b: Any) -> Any:
    if test:
        return a
    return b


def of_functions_and_expressions(x: Any) -> Any:
    a, b, n = [1, 2], [3, 4], None
    one_of(x[0] > 0, a, b)[0] = 7
    c = a if x[1] > 0 else b
    c[1] = 5
    if x[0] > 0:
        n = b
    if n is not None:
        n[0] = 6
    return a, b, c


def of_the_caller(x: Any, a: Any, b: Any) -> Any:
    if x[0] > 0:
        a = b
    a[0] = 5
    return a[0]


PROGRAMS = [
    changed_by_the_new_name, changed_by_the_old_name, swapped, made_in_a_branch, entries, rows,
    in_branches_and_loops, of_functions_and_expressions, of_the_caller,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_names_see_the_change(program: Any) -> None:
    jitted = td.jit(program)
    for start in (1.0, -1.0):
        x = np.array([start, -2.0, 3.0] * 12)
        given = ([1, 2], [3, 4]) if program is of_the_caller else ()
        own = copy.deepcopy(given)
        assert jitted(x, *own) == program(x, *given)
        assert own == given


def copied_in_a_loop(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    for i in range(len(x)):
        if x[i] > 2:
            a = b
    b[0] = 7.0
    return a, b


def changed_after_a_loop(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    for i in range(len(x)):
        if x[i] > 2:
            a = b
    a[0] = 7.0
    return a, b


def swapped_in_a_loop(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    c = a
    for i in range(len(x)):
        a[0] += x[i]
        a, b = b, a
    return a[0] + c[0]


def longer(x: Any) -> Any:
    a, b = [1.0, 2.0], [3.0, 4.0]
    if x[0] > 0:
        a = b
    a.append(5.0)
    return len(a) + len(b)


def grown(x: Any) -> Any:
    a, b = [0.0], [0.0]
    for v in x:
        a.append(v)
        b.append(-v)
    if x[0] > 0:
        b = a
    b.append(99.0)
    return len(a) + len(b)


@pytest.mark.parametrize(
    "program", [copied_in_a_loop, changed_after_a_loop, swapped_in_a_loop, longer, grown]
)
def test_what_the_program_cannot_follow_is_refused(program: Any) -> None:
    x = np.array([1.0, 4.0, 3.0] * 40)
    with pytest.raises((NotStaged, UndefinedVariableError), match=f"in {program.__name__}"):
        td.jit(program)(x)


def test_lists_that_a_loop_swaps_or_reads_stay_fast() -> None:
    def last(x: Any) -> Any:
        before, row, best = [0.0] * 4, [0.0] * 4, [0.0]
        for i in range(len(x)):
            for j in range(1, 4):
                row[j] = before[j - 1] + x[i]
            before, row = row, before
            if x[i] > 2:
                best = [x[i]]
        row[0] = 5.0
        return before[3], row, best

    x = np.array([1.0, 4.0, 3.0] * 40)
    assert td.jit(last)(x) == last(x)


# -- one list at two places of another one ---------------------------------------------------------


def at_a_position_of_the_run(x: Any) -> Any:
    row = [0] * 3
    table = [row, row]
    table[x[0]][1] += 5
    return row, table


def appended_at_a_position(x: Any) -> Any:
    table: list[list[int]] = [[]] * 3
    for i in range(3):
        table[i].append(int(x[i]))
    return table


def only_read(x: Any) -> Any:
    table = [[1] * 20] * 20
    total = 0
    for k in x:
        total += table[k][k]
    return total


@pytest.mark.parametrize("function", [at_a_position_of_the_run, appended_at_a_position, only_read])
def test_a_list_at_two_places_is_one(function):
    x = np.array([1, 0, 1])
    assert td.jit(function)(x) == function(x)


def test_changes_of_a_list_at_two_places_in_a_loop_are_refused():
    @td.jit
    def changed(x):
        table = [[0] * 3] * 2
        for k in x:
            table[k][1] += 1
        return table

    with pytest.raises(TypeError, match="at two places"):
        changed(np.arange(40) % 2)


def grown_under_another_name(x: Any) -> Any:
    a: list[int] = []
    b, other = a, [1]
    for v in x:
        if v > 1:
            b.append(int(v))
    is_empty = not a
    return b is a, a is not b, a is other, a[0], a[-1], a[1:], len(a), is_empty, 1 if a else 0


def counted_under_another_name(x: Any) -> Any:
    a = [0] * 30
    b, other = a, a[:]
    for v in x:
        b[v] += 1
    return a[1], b is a, a is other, a[:6], a[-1]


@pytest.mark.parametrize("function", [grown_under_another_name, counted_under_another_name])
def test_other_names_know_what_became_of_a_list(function):
    x = np.array([1, 5, 2, 3, 0, 5])
    assert td.jit(function)(x) == function(x)


def test_another_name_of_a_list_that_stayed_empty_is_false():
    def found(x: Any) -> Any:
        a: list[int] = []
        b = a
        for v in x:
            if v > 9:
                b.append(int(v))
        return 1 if a else 0

    assert [td.jit(found)(x) for x in (np.arange(5), np.arange(20))] == [0, 1]


def test_which_list_a_branch_chose_is_refused():
    @td.jit
    def chosen(x):
        a, b = [1, 2], [3, 4]
        c = a if x[0] > 0 else b
        return c is a

    with pytest.raises(NotStaged, match="which one it is"):
        chosen(np.ones(1))


def test_a_list_that_is_two_arguments_changes_as_one():
    def moved(a: Any, b: Any, d: Any) -> Any:
        a.append(a[0])
        b[0] = len(a)
        d["of"][0] += 1
        return b, len(a)

    found = []
    for function in (moved, td.jit(moved)):
        for shares in (True, False, True):
            x, y = [5, 6], [7, 8]
            arguments = (x, x, {"of": x}) if shares else (x, y, {"of": [1]})
            found.append((function(*arguments), arguments))
    assert found[:3] == found[3:]

    @td.function
    def inside(v):
        x = [v, v]
        return td.jit(moved)(x, x, {"of": [1]})

    with pytest.raises(TypeError, match="at two places"):
        inside(td.constant(3))


def test_a_scalar_is_no_text():
    @td.jit
    def joined(x):
        return ",".join(str(v) for v in x)

    assert joined(np.array([1, 2, 3])) == "1,2,3"
    with pytest.raises(TypeError, match="written as text"):
        joined(np.array([1.0, 2.0, 3.0]))


# -- lists of several lengths ----------------------------------------------------------------------


def positions_of_a_sum(x: Any, total: int) -> Any:
    seen: dict[Any, int] = {}
    for i, v in enumerate(x):
        if total - v in seen:
            return [seen[total - v], i]
        seen[v] = i
    return []


def one_or_three(x: Any, limit: int) -> Any:
    if x[0] > limit:
        found = [1, 2, 3]
    else:
        found = [int(x[1])]
    return found, len(found), sum(found)


@pytest.mark.parametrize("function", [positions_of_a_sum, one_or_three])
def test_lists_of_several_lengths_after_a_branch(function):
    jitted = td.jit(function)
    for x, n in (([2, 7, 11, 15], 9), ([2, 7, 11, 15], 99), ([2, 7], 1)):
        assert jitted(np.array(x), n) == function(np.array(x), n)


def changed_by_the_name_of_both(x: Any) -> Any:
    if x[0] > 2:
        p = [1, 2]
        r = p
    else:
        p = [3]
        r = p
    r.append(7)
    return p, r


def changed_before(x: Any) -> Any:
    p, q = [1, 2, 3], [4]
    r = p if x[0] > 2 else q
    if x[0] > 2:
        r = p
    else:
        r = q
    p.append(5)
    return len(r)


def changed_by_one_name(x: Any) -> Any:
    if x[0] > 2:
        p = [1, 2]
        r = p
    else:
        p, r = [3, 4], [5]
    p.append(7)
    return p, r


@pytest.mark.parametrize(
    "function", [changed_by_the_name_of_both, changed_before, changed_by_one_name]
)
def test_changes_of_such_lists_are_refused(function):
    with pytest.raises(TypeError, match="several"):
        td.jit(function)(np.array([2, 7]))
