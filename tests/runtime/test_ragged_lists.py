"""Native lists whose elements differ in shape."""

import warnings

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, native, trace_like
from treadle.core.shapes import ANY
from treadle.core.spec import TensorSpec
from treadle.ops.collections.lists import (
    list_add,
    list_concat,
    list_extend,
    list_get,
    list_length,
    list_new,
    list_push,
    list_set,
    list_split,
    list_stack,
    list_truncate,
    list_unstack,
)
from treadle.ops.collections.ragged_lists import list_pack, list_unpack
from treadle.ops.control.control_flow import while_loop

OPEN = TensorSpec([ANY, 3], td.float32)
X = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)


def rows(x, n, items=None):
    """A list of x[:0], x[:1], ..., x[:n - 1], one after the other."""
    items = list_new(OPEN) if items is None else items
    _, items = while_loop(
        lambda i, _: i < n, lambda i, items: (i + 1, list_push(items, x[:i])), (0, items)
    )
    return items


def sums(items, n):
    """What the elements add up to, read from the last to the first."""

    def one(i, total):
        return i - 1, total * 0.5 + td.reduce_sum(list_get(items, i - 1, (ANY, 3)), 0)

    return while_loop(lambda i, _: i > 0, one, (n, td.zeros([3])))[1]


def holes(x):
    items = list_set(list_new(OPEN, 4), 2, x[: td.argmax(x[:, 0])])
    items = list_set(items, 1, x[1:3], grow=False)
    return list_set(items, 6, x[3:5], grow=True)


def compiled(f, *arrays):
    """The program gives what the interpreter does, and calls no Python."""
    executable = both(trace_like(f, *arrays), *arrays)
    assert "callback" not in executable.stages["schedule"]
    return executable


def test_elements_are_read_as_they_were_written():
    compiled(lambda x: sums(rows(x, 8), 8), X)


def test_more_elements_than_there_was_room_for():
    x = np.random.default_rng(1).standard_normal((200, 3)).astype(np.float32)
    compiled(lambda x: sums(rows(x, 200), 200), x)


def test_packed_and_unpacked():
    def f(x):
        values, shapes = list_pack(rows(x, 5))
        again = list_unpack(values, shapes, (ANY, 3))
        return values, shapes, sums(again, 5), list_length(again)

    compiled(f, X)


def test_elements_that_nobody_wrote_are_still_unwritten_after_packing():
    def f(x):
        values, shapes = list_pack(holes(x))
        again = list_unpack(values, shapes, (ANY, 3))
        return values, shapes, *list_pack(list_add(again, list_set(again, 3, x[4:6])))

    compiled(f, X)


def test_the_gradient_of_an_unpacked_list_of_which_only_one_element_is_read():
    @td.function
    def f(x, shapes):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(list_get(list_unpack(x, shapes, (ANY,)), 1, (ANY,)) ** 2)
        return tape.gradient(y, x)

    shapes = td.constant([[2], [3], [1]], td.int64)
    found = f(td.constant([1.0, 2, 3, 4, 5, 6]), shapes)
    assert found.numpy().tolist() == [0, 0, 6, 8, 10, 0]


def test_joined_and_split():
    def f(x):
        joined, lengths = list_concat(rows(x, 5), (ANY, 3))
        return joined, lengths, sums(list_split(joined, lengths), 5)

    compiled(f, X)


def test_elements_of_one_shape_that_only_a_run_knows():
    def f(x):
        n = td.argmax(x[:, 0], output_type=td.int32)
        items = list_unstack(td.reshape(td.tile(x[:n], [4, 1]), [4, n, 3]))
        return list_stack(list_push(items, x[:n] * 2.0), (ANY, 3))

    compiled(f, X)


def test_new_elements_after_the_list_was_cut():
    def f(x):
        items = list_truncate(rows(x, 6), 3)
        items = rows(x * 2.0, 4, items)
        return sums(items, 7), list_length(items)

    compiled(f, X)


def test_elements_set_anew_with_other_sizes():
    def f(x):
        items = list_set(list_set(rows(x, 5), 2, x[5:]), 4, -x[:4])
        return sums(items, 5), *list_pack(items)

    compiled(f, X)


def test_a_list_that_something_else_needs_is_copied():
    def f(x):
        first = rows(x, 4)
        second = list_push(list_set(first, 3, x[4:6]), x[6:])
        return *list_pack(first), *list_pack(second)

    compiled(f, X)


def test_lists_added_with_elements_that_nobody_wrote():
    def f(x):
        a = holes(x)
        b = list_extend(list_set(list_new(OPEN, 4), 1, x[4:6]), 7)
        total = list_add(a, b)
        return *list_pack(total), list_get(total, 1, (2, 3)), list_get(total, 5, (4, 3))

    compiled(f, X)


def test_lists_of_an_iteration_are_freed(monkeypatch):
    """A loop that makes lists in each iteration needs no more memory for more of them."""

    def f(x):
        def one(i, total):
            return i + 1, total + sums(rows(x, 8), 8)

        return while_loop(lambda i, _: i < 50, one, (0, td.zeros([3])))[1]

    compiled(f, X)


def test_a_shape_that_differs_is_an_error():
    def f(x):
        return list_get(rows(x, 5), 2, (3, 3))

    with pytest.raises(td.errors.InvalidArgumentError, match="an element has 2 along an axis"):
        native(trace_like(f, X)).run([X])


def test_stacking_several_shapes_is_an_error():
    with pytest.raises(td.errors.InvalidArgumentError, match="an element has 0 along an axis"):
        native(trace_like(lambda x: list_stack(rows(x, 5), (ANY, 3)), X)).run([X])


def test_reading_what_nobody_wrote_is_an_error():
    def f(x):
        return list_get(holes(x), 0, (ANY, 3))

    with pytest.raises(td.errors.InvalidArgumentError, match="read before it was written"):
        native(trace_like(f, X)).run([X])


def test_a_position_beyond_the_end_is_an_error():
    def f(x):
        return list_get(rows(x, 5), td.argmax(x[:, 0]) + 9, (ANY, 3))

    with pytest.raises(td.errors.OutOfRangeError, match="out of range for a list of 5"):
        native(trace_like(f, X)).run([X])


def cholesky(a):
    n = a.shape[0]
    l = td.zeros([n, n], a.dtype)
    for j in range(n):
        d = td.sqrt(a[j, j] - td.reduce_sum(l[j, :j] * l[j, :j]))
        l[j, j] = d
        for i in range(j + 1, n):
            l[i, j] = (a[i, j] - td.tensordot(l[i, :j], l[j, :j], 1)) / d
    return td.reduce_sum(l * l * l)


def triangular_products(a):
    total = td.constant(0.0, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            total += td.sin(a[i, :i]) @ a[j, :i]
    return total


def beginnings(a):
    total = td.constant(0.0, a.dtype)
    for k in range(a.shape[0]):
        total += td.reduce_sum(td.sin(a[0, :k])) ** 2
    return total


def updated_beginnings(a):
    x = td.identity(a[0])
    for k in range(1, a.shape[0]):
        x[:k] += x[k] * td.cos(x[:k])
    return td.reduce_sum(x * x)


def triangular_solve(a):
    x = td.zeros_like(a[0])
    for i in range(a.shape[0]):
        x[i] = (a[i, 0] - td.tensordot(a[i, :i], x[:i], 1)) / (3.0 + a[i, i])
    return td.reduce_sum(x * x)


def growing(a):
    seen = td.zeros([0, a.shape[1]], a.dtype)
    h = a[0]
    for i in td.range(a.shape[0]):
        seen = td.concat([seen, h[None]], 0)
        weights = td.nn.softmax(td.linalg.matvec(seen, a[i]))
        h = td.tanh(td.linalg.matvec(td.transpose(seen), weights) + a[i])
    return td.reduce_sum(h)


def ragged_array(a):
    n = a.shape[0]
    array = td.TensorArray(a.dtype, size=0, dynamic_size=True, infer_shape=False,
                           element_shape=[None])  # fmt: skip
    for i in td.range(n):
        array = array.write(i, td.sin(a[i, : i + 1]))
    total = td.constant(0.0, a.dtype)
    for i in td.range(1, n):
        total += td.reduce_sum(array.read(i - 1) * a[i, :i])
    return total + td.reduce_sum(array.concat() ** 2)


@pytest.mark.parametrize(
    "f",
    [cholesky, triangular_products, beginnings, updated_beginnings, triangular_solve, growing,
     ragged_array],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_gradients_of_loops_over_parts(f):
    n = 9
    rng = np.random.default_rng(3)
    a = rng.standard_normal((n, n)) * 0.3
    if f is cholesky:
        a = a @ a.T + n * np.eye(n)

    @td.function
    def value_and_gradient(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of calls of Python in loops
        value, gradient = value_and_gradient(td.constant(a))
    direction, step = rng.standard_normal((n, n)), 1e-6
    around = [value_and_gradient(td.constant(a + s * direction))[0] for s in (step, -step)]
    slope = float(around[0] - around[1]) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient.numpy() * direction), slope, 1e-5, 1e-7)


def test_second_order_gradients_of_arrays_that_grow_in_branches_of_nested_loops():
    """The outer loop saves lists of several lengths, which its inner loop has saved."""

    @td.function
    def f(x):
        ta = td.TensorArray(td.float64, size=0, dynamic_size=True, clear_after_read=False)
        for i in td.range(3):
            for j in td.range(i + 1):
                if x[j] > 0:
                    ta = ta.write(ta.size(), x[j] * x[i])
        return td.reduce_sum(ta.stack() ** 3)

    def gradient(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    x = td.constant([0.5, -1.0, 2.0], td.float64)
    with td.GradientTape() as tape:
        tape.watch(x)
        size = td.reduce_sum(gradient(x) ** 2)
    found, step = tape.gradient(size, x), 1e-6
    for k, unit in enumerate(np.eye(3)):
        around = [td.reduce_sum(gradient(x + s * unit) ** 2) for s in (step, -step)]
        np.testing.assert_allclose(found[k], (around[0] - around[1]) / (2 * step), 1e-5)
