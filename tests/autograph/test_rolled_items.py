"""Loops over lists, arrays, `zip`, `enumerate` and `reversed` of them, and `while` loops that
count: rolled and unrolled they give the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from tests.autograph.test_rolled_loops import both_ways, loops_of
from treadle.autograph.operators import python_loops
from treadle.core.switches import disabled

WEIGHTS = [0.1 * k * k - 0.7 for k in range(12)]
COUNTS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
ROWS = np.random.default_rng(0).normal(size=(12, 3))
SINGLE = ROWS.astype("f4")
PAIRS = [(k % 5, 0.3 * k) for k in range(9)]
NAMED = {k: math.sqrt(k) for k in range(8)}
NESTED = [{"a": 1.5 * k, "b": (k, [k * k])} for k in range(8)]
WHOLE = td.constant(SINGLE)
TENSORS = [td.constant(row) for row in SINGLE]


@pytest.fixture(autouse=True)
def roll_everything(monkeypatch):
    """Also what is too short to be worth it."""
    monkeypatch.setattr(python_loops, "FEWEST_OPERATIONS", 0)


def vector(kind="f4"):
    return td.constant(np.random.default_rng(1).normal(size=3).astype(kind))


# -- what is rolled ------------------------------------------------------------------------------


def over_floats(x):
    for w in WEIGHTS:
        x = x * 0.5 + w
    return x, w


def over_a_local_list(x):
    for w in [0.5, 0.25, 4.0, 1e-3, 7.0, 1 / 3, -2.0]:
        x = td.sin(x) + w
    return x, w


def over_ints(x):
    total = 0
    for k in COUNTS:
        x = x * 0.25 + k
        total += k
    return x, total, k


def over_a_linear_list(x):
    for k in [1, 4, 7, 10, 13, 16]:
        x = x * 0.25 + k
    return x, k


def over_equal_items(x):
    for k in [2.0] * 9:
        x = x * 0.5 + k
    return x, k


def enumerated(x):
    for i, w in enumerate(WEIGHTS, 2):
        x = x * 0.5 + w * i
    return x, i, w


def zipped(x):
    for w, k, row in zip(WEIGHTS, COUNTS, ROWS, strict=True):
        x = x * 0.5 + w * k
        x = x + row
    return x


def zipped_unevenly(x):
    for w, k in zip(WEIGHTS, range(3, 30, 3), strict=False):
        x = x * 0.5 + w * k
    return x, k


def backwards(x):
    for i, w in reversed(list(enumerate(WEIGHTS))):
        x = x * 0.5 + w * i
    for w in reversed(WEIGHTS):
        x = x * 0.5 - w
    return x, i


def nested_structures(x):
    for i, (item, (k, w)) in enumerate(zip(NESTED, PAIRS, strict=False)):
        x = x * 0.5 + item["a"] * i + item["b"][1][0] - w * k
    return x


def over_pairs(x):
    for k, w in PAIRS:
        if k > 2:
            x = x * 0.5 + w
        else:
            x = x - w
    return x, k


def over_a_dict(x):
    for k, w in NAMED.items():
        x = x * 0.5 + w * k
    for w in NAMED.values():
        x = x * 0.5 + w
    for k in NAMED:
        x = x * 0.5 + k
    return x


def over_numpy_numbers(x):
    for t in np.linspace(0.0, 1.0, 9):
        x = x * 0.5 + t * t
    for t in np.arange(7, dtype=np.int32):
        x = x * 0.5 + t
    return x, t


def over_single_precision(x):
    for t in np.linspace(0.0, 1.0, 9).astype("f4"):
        x = x * 0.5 + t * 3.0 * x
    return x


def over_rows(x):
    for row in ROWS:
        x = x * 0.5 + row[1] * row + np.sin(row) * 2 - row @ row
    return x, row[0]


def over_a_list_of_arrays(x):
    for a, row in zip([r[:2] for r in ROWS], SINGLE, strict=True):
        u, v = a
        x = x * 0.5 + row * u + v
    return x


def over_tensors(x):
    for t in TENSORS:
        x = x * 0.5 + t * x
    return x, t


def over_tensors_made_here(x):
    made = [x * float(k) for k in range(10)]
    for i, (t, w) in enumerate(zip(made, WEIGHTS, strict=False)):
        x = td.tanh(x) + t * w + float(i)
    return x


def over_rows_of_a_tensor(x):
    for row in WHOLE:
        x = x * 0.5 + row
    return x


def ends_early(x):
    for i, w in enumerate(WEIGHTS):
        if w > 3.0:
            break
        if i % 3 == 1:
            continue
        x = x * 0.5 + w
    else:
        x = x + 100.0
    return x, i, w


def returns_early(x):
    for w in WEIGHTS:
        x = x * 0.5 + w
        if w > 2.0:
            return x * 2.0
    return x


def does_not_end_early(x):
    for w in WEIGHTS:
        if w > 300.0:
            break
        x = x * 0.5 + w
    else:
        x = x + 100.0
    return x


def ends_by_a_tensor(x):
    for w in WEIGHTS:
        x = x * 0.9 + w
        if x[0] > 2.0:
            break
    return x


def dependent_bounds(x):
    for i, w in enumerate(WEIGHTS):
        for j in range(i):
            x = x * 0.5 + w * j
    for row in ROWS:
        for e in row:
            x = x * 0.5 + e
    return x


def shadowed(x):
    w = 5
    for w in WEIGHTS:
        w = w * 2
        x = x * 0.5 + w
    return x, w


def went_on_with(x):
    left = iter(WEIGHTS)
    for w in left:
        x = x * 0.5 + w
        if w > 2.0:
            break
    for w in left:
        x = x * 0.25 - w
    return x, len(list(left))


def begun(x):
    left = iter(enumerate(WEIGHTS))
    x = x + next(left)[1]
    for i, w in left:
        x = x * 0.5 + w * i
    return x


def indexed(x):
    local = [0.1 * k for k in range(12)]
    for i in range(1, 12):
        x = x * WEIGHTS[i - 1] * 0.3 + local[-i] * ROWS[i] + ROWS[i, 1] - SINGLE[i][:1]
    return x


def indexed_by_numbers_that_it_carries(x):
    k = 0
    for _ in range(9):
        x = x * 0.5 + COUNTS[k]
        k = COUNTS[k]
    return x, k


def indexed_in_nested_loops(x):
    for i in range(8):
        for j in range(3):
            x = x * 0.5 + ROWS[i, j]
    return x


def counts_up(x):
    k, s = 0, 0.0
    while k < 20:
        s = s + x[k % 3] * k
        k += 2
    return x + s, k


def counts_down(x):
    rate = 1.0
    while rate > 1e-2:
        x = x - rate * td.sin(x)
        rate *= 0.7
    return x, rate


def bisects(x):
    low, high = 0, 1000
    while low < high:
        middle = (low + high) // 2
        if middle * middle > 5000:
            high = middle
        else:
            low = middle + 1
        x = x * 0.5 + middle
    return x, low, high


def while_with_jumps(x):
    k = 0
    while True:
        k += 1
        if k % 3 == 0:
            continue
        if k > 25:
            break
        x = x * 0.5 + k
    return x, k


def while_over_parts(v):
    k = 0
    while k + 1 < 12 and k != 40:
        v = v * 0.5 + SINGLE[k]
        k += 1
    return v, k


def while_in_for(x):
    for w in WEIGHTS:
        k = 0
        while k < 6:
            x = x * 0.5 + w * k
            k += 1
    return x


ROLLED = [
    over_floats, over_a_local_list, over_ints, over_a_linear_list, over_equal_items, enumerated,
    zipped, zipped_unevenly, backwards, nested_structures, over_pairs, over_a_dict,
    over_numpy_numbers, over_single_precision, over_rows, over_a_list_of_arrays, over_tensors,
    over_tensors_made_here, over_rows_of_a_tensor, ends_early, returns_early, does_not_end_early,
    ends_by_a_tensor, dependent_bounds, shadowed, went_on_with, begun, indexed,
    indexed_by_numbers_that_it_carries, indexed_in_nested_loops, counts_up, counts_down, bisects,
    while_with_jumps, while_over_parts, while_in_for,
]  # fmt: skip


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_rolled_loops_give_the_same_bits(function):
    x = vector()
    rolled = both_ways(function, x)
    notes = loops_of(rolled, x)
    assert notes and all(n.rolled for n in notes), rolled.explain()


@pytest.mark.parametrize(
    "function", [enumerated, over_rows, over_tensors_made_here, indexed, counts_up]
)
def test_gradients(function):
    def loss(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            total = td.reduce_sum(td.nest.flatten(function(x))[0] ** 2)
        return tape.gradient(total, x)

    x = vector("f8")
    found = td.function(loss)(x)
    with disabled("rolled_loops"):
        wanted = td.function(loss)(x)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10)


def test_gradients_reach_stacked_tensors():
    """Tensors that the caller's tape watches, and the items of a list of arguments."""
    ws = [td.Variable(np.float32(0.5 + 0.1 * k)) for k in range(8)]
    parts = [td.constant(row) for row in SINGLE[:8]]

    @td.function
    def f(x, parts):
        scaled = [w * 1.0 for w in ws]
        for w, part in zip(scaled, parts, strict=True):
            x = td.tanh(x) * w + part
        return td.reduce_sum(x)

    x = vector()
    gradients = []
    for off in ((), ("rolled_loops",)):
        f.clear_traces()
        with disabled(*off), td.GradientTape() as tape:
            tape.watch(parts)
            loss = f(x, parts)
        assert bool(loops_of(f, x, parts)) is not bool(off)
        gradients.append(tape.gradient(loss, [*ws, *parts]))
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


# -- what is not ---------------------------------------------------------------------------------


VARIABLES = [td.Variable(np.float32(k)) for k in range(8)]
LOG: list[float] = []


def over_types(x):
    for w in [1, 2.0, 3, 4, 5, 6, 7]:
        x = x * w
    return x


def over_shapes(x):
    for row in [ROWS[0], ROWS[1, :2], *ROWS[2:]]:
        x = x + row[0]
    return x


def over_objects(x):
    for f in [td.sin, td.cos, td.tanh, td.sin, td.sin, td.exp]:
        x = f(x)
    return x


def over_texts(x):
    for name in ["a", "b", "c", "d", "e", "ff"]:
        x = x + len(name)
    return x


def over_variables(x):
    for v in VARIABLES:
        x = x + v
    return x


def over_both_of_one_iterator(x):
    left = iter(WEIGHTS)
    for a, b in zip(left, left, strict=True):
        x = x * a + b
    return x


def logs(x):
    for w in WEIGHTS:
        LOG.append(w)
        x = x + w
    return x


def grows_its_list(x):
    items = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    for w in items:
        if len(items) < 9:
            items.append(w * 2)
        x = x * 0.5 + w
    return x


def reads_numpys_result(x):
    for row in ROWS:
        x = x + float(np.sort(row)[1])
    return x


def while_over_a_list(x):
    left = list(WEIGHTS)
    while left:
        x = x * 0.5 + left.pop()
    return x


def while_by_tensors(x):
    k = 0
    while k < 9:
        x = x * 0.9
        k += 1
        if x[0] > 100.0:
            break
    return x


UNROLLED = [
    over_types, over_shapes, over_objects, over_texts, over_variables, over_both_of_one_iterator,
    logs, grows_its_list, reads_numpys_result, while_over_a_list, while_by_tensors,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", UNROLLED, ids=lambda f: f.__name__)
def test_what_must_not_be_rolled_is_unrolled(function):
    x, results = vector(), []
    for off in ((), ("rolled_loops",)):
        LOG.clear()
        f = td.function(function)
        with disabled(*off):
            results.append((f(x).numpy(), [*LOG]))
        assert not any(n.rolled for n in loops_of(f, x))
    (a, logged), (b, others) = results
    np.testing.assert_array_equal(a, b)
    assert logged == others


def test_zip_is_strict():
    @td.function
    def f(x):
        for a, b in zip(WEIGHTS, PAIRS, strict=True):
            x = x * a + b[0]
        return x

    with pytest.raises(ValueError, match="zip"):
        f(vector())


def test_few_tensors_are_not_copied_together(monkeypatch):
    monkeypatch.undo()

    @td.function
    def f(x):
        for t in TENSORS:
            x = td.sin(x) * t + 0.5
        return x

    f(vector())
    graph = f.get_concrete_function(vector()).graph
    assert not loops_of(f, vector())
    assert not any(n.op.name in ("while", "stack") for n in graph.walk())


def test_arrays_that_change_places_fall_back():
    """Unrolled it is known that they are not one array in the end."""

    @td.function
    def f(u, v):
        for i in range(8):
            if i % 3 == 1:
                u, v = v, u
            else:
                u = u * 0.5
        v[0] = 7.0
        return u, v

    x = vector()
    u, v = x.numpy(), x.numpy() + 1
    got = f(x, x + 1.0)
    for i in range(8):
        u, v = (v, u) if i % 3 == 1 else (u * 0.5, v)
    v[0] = 7.0
    np.testing.assert_array_equal(got[0].numpy(), u)
    np.testing.assert_array_equal(got[1].numpy(), v)


def test_reports_say_what_was_rolled():
    @td.function
    def f(x):
        k = 0
        while k < 30:
            x = x * 0.5 + k
            k += 1
        for w in WEIGHTS:
            x = x + w
        return x

    f(vector())
    text = str(f.explain())
    assert "is rolled (30 iterations)" in text and "is rolled (12 iterations)" in text


def test_the_graph_does_not_grow_with_the_number_of_items():
    sizes = set()
    for n in (50, 500):
        items = [(k % 7, math.sin(k)) for k in range(n)]

        @td.function
        def f(x):
            k = 0
            for i, (a, b) in enumerate(items):
                x = x * b + a * i
            while k < n:
                x = x * 0.5 + items[0][1] * k
                k += 1
            return x

        f(vector())
        sizes.add(len(list(f.get_concrete_function(vector()).graph.walk())))
    assert len(sizes) == 1
