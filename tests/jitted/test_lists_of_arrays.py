"""Loops over long lists of like arrays are loops of the graph, unless a body needs the arrays
themselves: to change them, or to keep them."""

import copy

import numpy as np
import pytest

import treadle as td

N = 40


def arrays(n=N, shape=(3,), dtype=np.float64):
    return [np.arange(np.prod(shape)).reshape(shape).astype(dtype) + i for i in range(n)]


def check(fn, *args):
    """Results and what the arguments hold are NumPy's; gives the number of operations."""
    copies = copy.deepcopy(args)
    wanted = fn(*copies)
    jitted = td.jit(fn)
    found = jitted(*args)
    for f, w in zip(*((r if isinstance(r, tuple | list) else (r,)) for r in (found, wanted))):
        np.testing.assert_array_equal(f, w, strict=True)
    for given, kept in zip(args, copies, strict=True):
        for a, b in zip(given, kept, strict=True) if isinstance(given, list) else [(given, kept)]:
            np.testing.assert_array_equal(a, b)
    return int(str(jitted.explain()).split("(")[1].split(" operations")[0])


def total(x, ws):
    for w in ws:
        x = x * 0.5 + w
    return x


def pairs(x, ws):
    for i, (w, v) in enumerate(zip(ws, ws[::-1], strict=True)):
        x = x * 0.5 + w * v[0] - i
    return x


def backwards(x, ws):
    for w in reversed(ws):
        x = x * 0.5 + w[::-1]
    return x


def in_a_branch(x, ws):
    for w in ws:
        if w[0] > 10.0:
            x = x + w
    return x


def found_first(x, ws):
    for w in ws:
        x = x + w
        if x[0] > 50.0:
            break
    return x


def doubled(x, ws):
    return x, np.array([w * 2.0 for w in ws]).sum(axis=0)


@pytest.mark.parametrize("fn", [total, pairs, backwards, in_a_branch, found_first, doubled])
def test_reading_is_rolled(fn):
    assert check(fn, np.zeros(3), arrays()) < N


def decayed(x, ws):
    for w in ws:
        w *= 0.5
    return x


def stepped(x, ws):
    for w, g in zip(ws, ws[1:], strict=False):
        w -= 0.1 * g
    return x


def the_last(x, ws):
    for w in ws:
        x = x + w
    w[0] = 100.0
    return x


def the_largest(x, ws):
    best = ws[0]
    for w in ws:
        if w.sum() % 7.0 > best.sum() % 7.0:
            best = w
    best[0] = 100.0
    return x


def appended(x, ws):
    kept = []
    for w in ws:
        kept.append(w)
    kept[3][0] = 100.0
    return x, kept[3] + ws[3]


def listed(x, ws):
    kept = [w for w in ws]
    kept[3][0] = 100.0
    return x, ws[3] + 0.0


def changed_meanwhile(x, ws):
    for w in ws:
        ws[5][0] = x[0]
        x = x + w
    return x


@pytest.mark.parametrize(
    "fn", [decayed, stepped, the_last, the_largest, appended, listed, changed_meanwhile]
)
def test_arrays_that_are_changed_or_kept_are_themselves(fn):
    check(fn, np.zeros(3), arrays())


def test_a_list_from_outside():
    ws = arrays()

    def fn(x):
        for w in ws:
            x = x * 0.5 + w
        return x

    assert check(fn, np.zeros(3)) < N


def test_unlike_arrays_stay_python_s():
    check(lambda ws: sum(w.sum() for w in ws), [np.arange(1.0, 2.0 + i) for i in range(N)])
    mixed = [np.arange(3).astype(np.int32 if i % 2 else np.float64) for i in range(N)]
    check(total, np.zeros(3), mixed)
    check(total, np.zeros(3), [*arrays(), 2.0])


def test_few_large_arrays_are_not_copied():
    few, many = arrays(20, (300, 300)), arrays(70, (300, 300))
    assert check(lambda ws: total(0.0, ws), few) > 20
    assert check(lambda ws: total(0.0, ws), many) < 70


def test_the_switch():
    with td.passes.disabled("rolled_loops"):
        assert check(total, np.zeros(3), arrays()) > N
