"""``x[key] = value`` in converted functions: plain NumPy = eager = traced and compiled."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.runtime import interpreter


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")


def vector():
    return np.arange(5, dtype=np.float32) + 1


def matrix():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def check(fn, *arrays, python=()):
    """`fn` gives with tensors, eagerly and compiled, what it gives with NumPy's arrays."""
    expected = fn(*(a.copy() for a in arrays), *python)
    for run in (td.autograph.to_graph(fn), td.function(fn)):
        found = run(*map(td.constant, arrays), *python)
        td.nest.assert_same_structure(expected, found)
        for a, b in zip(td.nest.flatten(expected), td.nest.flatten(found), strict=True):
            np.testing.assert_allclose(np.asarray(b), a, rtol=1e-6)


def first(x):
    x[0] = 7.0
    return x


def last_and_slice(x):
    x[-1] = x[0]
    x[1:3] = 9.0
    x[::2] = x[::2] * 2
    return x


def mask(x):
    x[x > 3] = 0.0
    x[x == 0] += 5.0
    x[x < 2] = x[x < 2] * 10
    return x


def positions(x):
    x[np.array([0, 3])] = 8.0
    x[[1, 2]] += 1.0
    x[np.array([-1, 0])] = x[:2]
    return x


def augmented(x):
    x[0] += 2.0
    x[1] -= 1.0
    x[2] *= 3.0
    x[3] /= 2.0
    x[4] **= 2.0
    x[1:4] %= 2.0
    return x


def swapped(x):
    x[0], x[1] = x[1], x[0]
    (x[2], y), x[3] = (x[4], 3.0), 1.0
    return x * y


def starred(x):
    x[0], *rest, x[4] = x[4], 2.0, 3.0, x[0]
    return x, rest


def chained(x):
    x[0] = y = x[2] = 5.0
    return x + y


def in_tuple_with_key(x):
    i = 0
    x[i], i = 9.0, 3
    i, x[i] = 1, 4.0
    return x, i


def annotated(x):
    x[0]: float = 3.0
    return x


def local_array(x):
    a = np.zeros(5, np.float32)
    for k in range(5):
        a[k] = x[k] * k
    a[0] += 3.0
    return a


def for_target(x):
    for x[0] in range(4):
        x[1] += x[0]
    return x


@pytest.mark.parametrize(
    "fn",
    [first, last_and_slice, mask, positions, augmented, swapped, starred, chained,
     in_tuple_with_key, annotated, local_array, for_target],
)  # fmt: skip
def test_vectors(fn):
    check(fn, vector())


def rows(x):
    x[0] = x[2]
    x[..., 0] = 5.0
    x[:, -1] += 1.0
    x[1][2] = 9.0
    x[1:, 1:][0, 0] = -1.0
    x[2, np.array([0, 1])] = 3.0
    x[:, np.array([0, 2])] += 1.0
    x[np.array([0, -1]), np.array([1, 2])] *= 2.0
    return x


def columns(x):
    for j in range(4):
        x[:, j] = x[:, j] / (j + 1)
    x[None, 0] = 2.0
    x[x.sum(1) > 20] = 0.0
    return x


@pytest.mark.parametrize("fn", [rows, columns])
def test_matrices(fn):
    check(fn, matrix())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_key(data):
    part = st.one_of(
        st.integers(-3, 2), st.just(Ellipsis),
        st.builds(slice, *[st.one_of(st.none(), st.integers(-4, 4))] * 2,
                  st.sampled_from([None, 1, 2, -1, -2])),
    )  # fmt: skip
    key = tuple(data.draw(st.lists(part, min_size=1, max_size=2)))
    if key.count(Ellipsis) > 1:
        key = key[:1]

    def fn(x):
        x[key] = 0.5
        x[key] *= 3.0
        x[key] += x[key]
        return x

    x = np.arange(9, dtype=np.float64).reshape(3, 3)
    expected = fn(x.copy())
    np.testing.assert_allclose(td.autograph.to_graph(fn)(td.constant(x)), expected)
    graph = td.function(fn).get_concrete_function(td.TensorSpec([3, 3], td.float64)).graph
    np.testing.assert_allclose(interpreter.run(graph, [x])[0], expected)


# -- loops and branches --------------------------------------------------------------------------


def test_state_of_loops_and_branches():
    @td.function
    def f(x, n):
        for i in td.range(n):
            x[i] *= 2.0
            if x[i] > 4:
                x[i] = -x[i]
        while x[0] < 10:
            x[0] += 3.0
        return x

    x = td.constant([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(f(x, td.constant(3)), [11, 4, -6, 4])
    np.testing.assert_array_equal(x, [1, 2, 3, 4])


def test_unknown_sizes_and_symbolic_keys():
    @td.function(input_signature=[td.TensorSpec([None, None]), td.TensorSpec([], td.int32)])
    def f(x, i):
        x[i, :2] = 0.0
        x[i:, 1] += 1.0
        x[x > 7] = -1.0
        x[:] = x * 2
        return x

    x = matrix()
    for i in (0, 2):
        y = x.copy()
        y[i, :2] = 0
        y[i:, 1] += 1
        y[y > 7] = -1
        np.testing.assert_array_equal(f(x, i), y * 2)


def test_python_objects_keep_their_identity():
    def f(x, n):
        numbers, table, counter = [0.0, 1.0], {}, collections.Counter()
        same = numbers
        for _ in td.range(n):
            numbers[0] = numbers[0] + x
            numbers[1] *= 2.0
        if n > 2:
            numbers[0] = numbers[0] * 10.0
            table[1] = numbers[0]
            counter["k"] += 1
        else:
            table[1] = x
        assert same is numbers
        return same, table[1], counter

    expected = {3: ([60.0, 8.0], 60.0), 1: ([2.0, 2.0], 2.0)}
    for n, (numbers, entry) in expected.items():
        found = td.function(f)(td.constant(2.0), td.constant(n))
        assert [float(v) for v in found[0]] == numbers and found[1].numpy() == entry


def test_places_and_items_of_other_objects():
    class Row:
        def __init__(self, values):
            self.values = values

        def __getitem__(self, key):
            return self.values[key]

        def __setitem__(self, key, value):
            self.values = {**self.values, key: value}

    @td.function
    def f(x):
        row = Row({0: x, 1: x})
        if x > 0:
            row[0] = x + 1
        for _ in td.range(3):
            row[1] = row[1] * 2
        return row[0], row[1]

    assert [float(v) for v in f(td.constant(2.0))] == [3.0, 16.0]
    assert [float(v) for v in f(td.constant(-1.0))] == [-1.0, -8.0]


def test_setitem_of_the_users_classes_is_converted():
    class Grid:
        def __init__(self, values):
            self.values = values

        def __setitem__(self, key, value):
            if value > 5:
                value = value * 2
            self.values[key] = value

    @td.function
    def f(x):
        grid = Grid(x * 1.0)
        grid[0] = x[1]
        grid[1] = 4.0
        return grid.values

    np.testing.assert_array_equal(f(td.constant([1.0, 7.0])), [14, 4])
    np.testing.assert_array_equal(f(td.constant([1.0, 3.0])), [3, 4])


def test_order_of_evaluation():
    log = []

    def note(name, value):
        log.append(name)
        return value

    def f(d):
        d[note("key", 0)] = note("value", 1)
        d[note("key2", 0)] += note("value2", 5)
        d[note("a", 1)], d[note("b", 2)] = note("right", (3, 4))
        return d

    expected = f({})
    order, log[:] = list(log), []
    given = {}
    assert td.autograph.to_graph(f)(given) is given and given == expected
    assert log == order == ["value", "key", "key2", "value2", "right", "a", "b"]


def test_inner_containers_and_attributes():
    class Layer:
        def __init__(self, x):
            self.buffer = x * 1.0
            self.state = {"h": x * 1.0}
            self.rows = [x * 1.0, x * 1.0]

        def step(self, n):
            self.buffer[0] = 5.0
            self.state["h"][1] += 1.0
            self.rows[0][2] = 7.0
            for i in td.range(n):
                self.buffer[i] += 10.0
            if n > 1:
                self.buffer[2] = 0.0
                self.rows[1] = self.rows[1] * 2
            return self.buffer, self.state["h"], self.rows

    @td.function
    def f(x, n):
        return Layer(x).step(n)

    x = td.constant([1.0, 2.0, 3.0])
    found = td.nest.flatten(f(x, td.constant(2)))
    expected = [[15, 12, 0], [1, 3, 3], [1, 2, 7], [2, 4, 6]]
    np.testing.assert_array_equal(np.stack(found), expected)
    found = td.nest.flatten(f(x, td.constant(0)))
    np.testing.assert_array_equal(np.stack(found), [[5, 2, 3], [1, 3, 3], [1, 2, 7], [1, 2, 3]])


def test_lists_of_lists_are_extended_in_place():
    def f(x):
        rows, table = [[1], [2]], {"a": np.zeros(2)}
        inner, array = rows[0], table["a"]
        rows[0] += [3]
        table["a"][0] += 2
        table["a"] += 1
        assert rows[0] is inner and table["a"] is array
        return rows, array.tolist(), x

    assert td.autograph.to_graph(f)(1) == f(1)


def test_no_source_needed_for_functions_without_branches():
    namespace = {}
    exec("def f(x):\n    x[0] = 1.0\n    return x", namespace)
    with pytest.raises(td.autograph.ConversionError, match="source code"):
        td.function(namespace["f"])(td.constant([2.0]))


def test_nonlocal_and_global_variables():
    @td.function
    def f(x):
        global shared
        y, shared = td.zeros([3]), x + td.zeros([2])

        def put(i, value):
            nonlocal y
            y[i] = value
            if value > 1:
                y[i] += 1.0

        put(0, x)
        put(2, x * 3)
        if x > 1:
            shared[1] = 8.0
        return y, shared

    y, found = f(td.constant(2.0))
    np.testing.assert_array_equal(y, [3, 0, 7])
    np.testing.assert_array_equal(found, [2, 8])
    y, found = f(td.constant(0.0))
    np.testing.assert_array_equal(y, [0, 0, 0])
    np.testing.assert_array_equal(found, [0, 0])


def test_arrays_become_tensors_where_they_must():
    @td.function
    def f(x, n):
        a, b = np.zeros(3), np.ones(3)
        for i in td.range(n):
            a[i] = x[i] * 2
        b[td.argmax(x)] = 5.0
        b += x
        return a, b

    a, b = f(td.constant([1.0, 4.0, 3.0], td.float64), td.constant(2))
    np.testing.assert_array_equal(a, [2, 8, 0])
    np.testing.assert_array_equal(b, [2, 9, 4])


def test_tensors_in_containers_of_the_function():
    @td.function
    def f(x):
        d = {"h": x * 1.0, "k": [x * 2.0, 1.0]}
        d["h"][1] = 5.0
        if x[0] > 0:
            d["k"][0][2] += 1.0
        return d["h"], d["k"][0]

    h, k = f(td.constant([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(h, [1, 5, 3])
    np.testing.assert_array_equal(k, [2, 4, 7])


def test_dataclass_changed_in_a_loop():
    @dataclasses.dataclass
    class State:
        x: Any
        n: Any

        def update(self, by):
            self.x = self.x + by

    @td.function
    def f(x):
        state = State(x, 1)
        same = state
        for _ in range(3):
            state.update(x)
            state.n += 1
        if x > 0:
            state.x *= 2.0
        assert same is state
        return state.x, state.n

    assert [float(v) for v in f(td.constant(2.0))] == [16.0, 4.0]


# -- gradients -----------------------------------------------------------------------------------


def product_of_parts(x):
    y = x * 2.0
    y[0] = y[1] * y[2]
    y[1:3] *= x[0]
    y[y > 5.0] = 1.5
    return td.reduce_sum(y**2)


def loop_of_updates(x):
    y = x * 1.0
    for i in td.range(1, 4):
        y[i] = y[i - 1] * y[i] + td.sin(y[i])
        if y[i] > 1:
            y[0] += y[i]
    return td.reduce_sum(y)


@pytest.mark.parametrize("fn", [product_of_parts, loop_of_updates])
def test_gradients(fn):
    x = td.constant([0.5, 1.2, -0.7, 0.9], td.float64)
    td.test.check_gradients(td.function(fn), x)
    td.test.check_gradients(td.autograph.to_graph(fn), x)


# -- what tensors cannot do ----------------------------------------------------------------------


def alias(x):
    y = x
    x[0] = 1.0
    return x + y


def view(x):
    row = x[0]
    row[1] = 5.0
    return x, row


def viewed(x):
    row = x[1:]
    total = row.sum()
    x[1, 1] = total
    return row


def reshaped(x):
    flat = x.reshape(-1)
    flat[0] = 1.0
    return x + flat[0]


def in_list(x):
    history = []
    history.append(x)
    x[0] = 1.0
    history.append(x)
    return history


def captured(x):
    y = x
    g = lambda: y + 1
    x[0] = 2.0
    return g() + x


def twice_in_container(x):
    d = {"a": x * 1, "b": [0.0]}
    d["b"][0] = d["a"]
    d["a"][0] = 2.0
    return d


class Box:
    pass


def attribute_of_the_same_object(x):
    box = Box()
    box.a = x * 2.0
    box.b = box.a[1:]
    box.a[2] = 2.0
    return box.b


def read_from_an_attribute(x):
    box = Box()
    box.a = x * 2.0
    y = box.a
    y[0] = 1.0
    return box.a


def over_rows(x):
    for row in x:
        row[0] = 0.0
    return x


def through_call(x):
    def change(a):
        a[0] = 5.0

    change(x)
    return x


def in_branch(x):
    y = x
    if x[0, 0] >= 0:
        x[0] = 1.0
    return y + x


def across_iterations(x):
    y = x
    for i in td.range(2):
        x[i] = 0.0
    return x + y


def in_the_next_iteration(x):
    u, v = x * 2, x * 3
    for i in td.range(3):
        v[i] = 5.0
        x = x + u
        u = v
    return x


def where_a_branch_was_taken(x):
    u, v = x * 2, x * 3
    for i in td.range(3):
        v[i] = 5.0
        if x[i, 0] > 0:
            u = v
        else:
            v = u
    return u + v


def two_iterations_later(x):
    u, v, w = x * 2, x * 3, x * 4
    for i in td.range(3):
        v[i] = 5.0
        w = u
        u = v[1:]
    return w[0] + v


def what_the_loop_found_outside(x):
    u, outer = x * 2, x * 3
    while td.reduce_sum(u) < 100.0:
        u[0] = 5.0
        u = outer
    return u + outer


def buffers_that_take_turns(x):
    u, v = x * 2, x * 3
    for i in td.range(2):
        w = v.copy()
        w[i] = 5.0
        u = v
        v = w
    return u, v


def the_best_so_far(x):
    best, v = x * 2, x * 3
    for i in td.range(2):
        v = v + 1.0
        v[i] = 0.0
        if td.reduce_sum(v) > 10.0:
            best = v
    return best, v


def read_no_more(x):
    u, v = x * 2, x * 3
    for i in td.range(2):
        v[i] = u[0, 0]
        u = v
        v = x * 4
    return v


def given_anew(x):
    u, v = x * 2, x * 3
    for i in td.range(2):
        v[i] = 5.0
        u = v  # before anything reads it
    return u + v


def after_branch(x):
    y = x if x[0, 0] >= 0 else x * 2
    y[0] = 1.0
    return x + y


@pytest.mark.parametrize(
    ("fn", "name", "line"),
    [(alias, "y", 2), (view, "x", 2), (viewed, "row", 3), (reshaped, "x", 2),
     (in_list, "history", 3), (captured, "g", 3), (over_rows, "x", 2), (through_call, "x", 2),
     (twice_in_container, "its container", 3), (attribute_of_the_same_object, ".b", 4),
     (read_from_an_attribute, "box.a", 4), (in_branch, "y", 3), (across_iterations, "y", 3),
     (in_the_next_iteration, "u", 3), (where_a_branch_was_taken, "u", 3),
     (two_iterations_later, "u", 3), (what_the_loop_found_outside, "outer", 3),
     (after_branch, "x", 2)],
)  # fmt: skip
def test_shared_elements_are_an_error(fn, name, line):
    place = f"test_items.py:{fn.__code__.co_firstlineno + line}"
    with pytest.raises(
        TypeError, match=f"that '?{name}'? shares and that is read later.*identity"
    ) as e:
        td.function(fn)(td.constant(matrix()))
    assert place in str(e.value)


def copies(x):
    y = td.identity(x)
    z = x.copy()
    x[0] = 1.0
    return x + y * z


def unread(x):
    y = x
    total = y.sum()
    x[0] = 1.0
    y = total
    return x, y


def apart(x):
    a, b = x[0], x[1]
    a[0] = 5.0
    even, odd = b[::2], b[1::2]
    even[0] = 3.0
    return a, odd


def taken_again(x):
    row = x[0]
    total = row.sum()
    x[0] = total
    row = x[0]
    return row, x


def stored_again(x):
    box = Box()
    box.a = x * 2.0
    y = box.a
    y[0] = 1.0
    box.a = y
    return box.a


def scalars(x):
    a = x[0, 0]
    x[0, 0] = 9.0
    return a, x


def rebinding(x):
    y = x
    y += 1.0
    return x, y


def helper_that_returns(x):
    def change(a):
        a[0] = 5.0
        return a

    x = change(x)
    return x


def whole(x):
    y = x * 2
    z = y.copy()
    z[:] = y
    z[0] = 0.0
    return y, z


def closure_sees_the_update(x):
    total = lambda: x.sum()
    before = total()
    x[0] = 5.0
    return before, total()


@pytest.mark.parametrize(
    "fn",
    [
        closure_sees_the_update,
        copies,
        unread,
        apart,
        taken_again,
        stored_again,
        scalars,
        helper_that_returns,
        whole,
        buffers_that_take_turns,
        the_best_so_far,
        read_no_more,
        given_anew,
    ],
)
def test_unshared_elements(fn):
    check(fn, matrix())


def test_names_are_rebound_by_augmented_assignment():
    x, y = td.function(rebinding)(td.constant([1.0, 2.0]))
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_array_equal(y, [2, 3])


def test_arguments_and_captured_values_stay():
    outside = td.constant([1.0, 2.0])

    @td.function
    def f(x):
        y = outside
        y[0] = 5.0
        x[0] = 6.0
        return x, y

    argument = td.constant([3.0, 4.0])
    x, y = f(argument)
    np.testing.assert_array_equal(x, [6, 4])
    np.testing.assert_array_equal(y, [5, 2])
    np.testing.assert_array_equal(argument, [3, 4])
    np.testing.assert_array_equal(outside, [1, 2])
    array = np.array([3.0, 4.0], np.float32)
    with pytest.raises(TypeError, match=r"argument 'x', a NumPy array"):
        f(array)
    np.testing.assert_array_equal(array, [3, 4])


def test_refused():
    v = td.Variable([1.0, 2.0])
    x = td.constant([1.0, 2.0])

    def variable():
        v[0] = 1.0

    def local_variable():
        w = v
        w[0] = 1.0

    def delete(x):
        del x[0]
        return x

    def outer():
        x[0] = 1.0

    def copy_of_part(x):
        x[np.array([0, 1])][0] = 3.0
        return x

    with pytest.raises(TypeError, match=r"v.assign"):
        td.function(variable)()
    with pytest.raises(TypeError, match=r"v.assign"):
        td.function(local_variable)()
    with pytest.raises(TypeError, match="item deletion"):
        td.function(delete)(x)
    with pytest.raises(TypeError, match="never changes"):
        td.function(outer)()
    with pytest.raises(TypeError, match="selects a copy"):
        td.function(copy_of_part)(x)


def test_eager_run_says_what_to_do():
    td.config.run_functions_eagerly(True)
    try:
        with pytest.raises(TypeError, match="run_functions_eagerly"):
            td.function(first)(td.constant([1.0]))
    finally:
        td.config.run_functions_eagerly(False)


# -- generated code ------------------------------------------------------------------------------


def test_generated_code():
    def f(x, n):
        x[0] = 5.0  # first
        x[1:3] += 1.0
        if n > 2:
            x[n] = 0.0
        d = {}
        d[0] = n
        d["k"] = x
        return x, d

    assert td.autograph.to_code(f).splitlines()[1:] == [
        "    x = ag__.set_item(x, 0, 5.0)  # first",
        '    x = ag__.update_item(x, slice(1, 3), "+=", 1.0)',
        "    x = ag__.if_stmt(n > 2, lambda x: ag__.set_item(x, n, 0.0), lambda x: x, x)",
        "    d = {}",
        "    d[0] = n",
        '    d["k"] = x',
        "    return x, d",
    ]


# -- arrays of NumPy that are read at positions of the graph ---------------------------------------

TABLE = np.array([1.0, 2.0, 3.0])
MATRIX = np.arange(6.0).reshape(2, 3)


def read_globals(i):
    return TABLE[i], MATRIX[1, i], MATRIX[:, i - 1], TABLE[:i], TABLE[1]


def read_local(x):
    weights = np.array([1.0, 2.0])
    total = 0.0
    for i in td.range(2):
        total += weights[i] * x[i]
    return total


def read_outer():
    codes = np.array([5, 6, 7])

    def pick(i):
        if i > 0:
            return codes[i]
        return codes[0]

    return pick


def test_constant_arrays_are_read_at_traced_positions():
    for i in (1, 2):
        found = td.function(read_globals)(td.constant(i))
        for a, b in zip(found, read_globals(i), strict=True):
            np.testing.assert_array_equal(a, b)
        assert td.function(read_outer())(td.constant(i)).numpy() == read_outer()(i)
    assert td.function(read_local)(np.array([3.0, 4.0])).numpy() == 11.0
    for a, b in zip(td.function(read_globals)(2), read_globals(2), strict=True):
        np.testing.assert_array_equal(a, b)  # a Python number as the position
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        td.function(read_globals)(td.constant(7))


def test_only_what_may_be_an_array_is_rewritten():
    def f(x, i):
        values = [x, x + 1]
        return TABLE[i] + values[0][i] + x[i]

    text = td.autograph.to_code(f)
    assert "ag__.get_item(TABLE, i) + values[0][i] + x[i]" in text
