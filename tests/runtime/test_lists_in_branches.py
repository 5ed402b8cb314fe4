"""Lists that a branch changes: in place where nobody else needs them, else in a copy."""

import numpy as np

import treadle as td
from tests.runtime.harness import both, trace_like
from treadle.ops.collections.lists import list_get, list_length, list_new, list_push, list_set
from treadle.ops.control.control_flow import cond, while_loop

SPEC = td.TensorSpec((), td.int64)


def test_a_list_that_a_branch_changes_in_a_loop_is_not_copied():
    def f(x):
        def body(i, items):
            value = x[i]

            def outer():
                return cond(value > 8, lambda: list_push(items, value), lambda: items)

            return i + 1, cond(value > 4, outer, lambda: list_set(items, 0, value))

        items = list_push(list_new(SPEC), td.constant(0, td.int64))
        _, items = while_loop(lambda i, _: i < 40, body, (0, items))
        return list_length(items), list_get(items, 0)

    executable = both(trace_like(f, np.arange(40) % 11), np.arange(40) % 11)
    schedule = executable.stages["schedule"]
    assert "list_push(%" in schedule and "list_set(%" in schedule and "copy of" not in schedule


def test_a_list_that_others_need_is_copied():
    def f(p, x):
        items = list_push(list_new(SPEC), x[0])
        longer = cond(p, lambda: list_push(items, x[1]), lambda: items)  # items is read below
        longer = list_set(longer, 0, x[2])
        first, second = cond(p, lambda: (longer, longer), lambda: (items, longer))
        first = list_set(first, 0, x[3])
        lists = items, longer, first, second
        return [v for one in lists for v in (list_length(one), list_get(one, 0))]

    for p in (True, False):
        x = np.arange(10, 14)
        executable = both(trace_like(f, np.array(p), x), np.array(p), x)
    assert "gives copy of" in executable.stages["schedule"]


def test_lists_that_branches_exchange_stay_apart():
    def f(x):
        def body(i, a, b):
            a, b = cond(x[i] > 2, lambda: (b, a), lambda: (a, a))
            return i + 1, list_push(a, x[i]), list_set(b, 0, x[i] + 100)

        start = list_push(list_new(SPEC), x[0])
        _, a, b = while_loop(lambda i, *_: i < 8, body, (0, start, list_push(start, x[1])))
        return list_length(a), list_length(b), list_get(a, 0), list_get(b, 0)

    x = np.array([1, 4, 0, 5, 7, 2, 3, 9])
    both(trace_like(f, x), x)
