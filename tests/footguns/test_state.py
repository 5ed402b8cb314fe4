"""Traps of state: updates, aliases, results and random numbers."""

import numpy as np
import pytest

import treadle as td


def masked(x, mask):
    x[mask] = 0.0
    return x


def columns(x, mask):
    x[:, 1] = x[:, 0] * 2.0
    x[0] += 10.0
    return x


@pytest.mark.parametrize("update", [masked, columns])
def test_16_item_assignment_equals_numpy(update):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = array > 2
    expected = update(array.copy(), mask)
    given = td.constant(array)
    np.testing.assert_array_equal(td.function(update)(given, td.constant(mask)).numpy(), expected)
    np.testing.assert_array_equal(given.numpy(), array)  # the caller's tensor is as it was


def test_28_results_keep_their_values():
    @td.function
    def f(x):
        return x * 2.0, td.reshape(x, [-1]), x

    a = f(td.constant([[1.0, 2.0]]))
    kept = [r.numpy().copy() for r in a]
    for n in range(5):
        f(td.constant([[5.0 + n, 6.0]]))
    for result, value in zip(a, kept, strict=True):
        np.testing.assert_array_equal(result.numpy(), value)

    v = td.Variable([1.0, 2.0])
    read = td.function(lambda: v.read_value())
    before = read()
    v.assign([7.0, 8.0])
    td.function(lambda: v.assign_add([1.0, 1.0]))()
    assert before.numpy().tolist() == [1, 2]


def test_29_in_place_operators_on_names():
    """Tensors are values: `b += 1` makes a new one, and no alias changes, in any mode."""

    def f(x):
        a = x * 1.0
        b = a
        b += 1.0
        return a, b

    for run in (f, td.function(f)):
        a, b = run(td.constant([1.0, 2.0]))
        assert a.numpy().tolist() == [1, 2] and b.numpy().tolist() == [2, 3]


def test_29_item_assignment_to_what_another_name_shares_is_refused():
    @td.function
    def f(x):
        a = x * 1.0
        b = a
        b[0] = 9.0
        return a, b

    with pytest.raises(TypeError, match=r"that 'a' shares(.|\n)*b\[0\] = 9\.0"):
        f(td.constant([1.0, 2.0]))


def test_35_the_global_seed_is_read_at_every_call():
    def f():
        return td.random.normal([3])

    compiled = td.function(f)

    def draw(fn):
        td.random.set_seed(7)
        return [fn().numpy().tolist() for _ in range(3)]

    first = draw(compiled)
    assert draw(compiled) == first and first[0] != first[1]
    td.random.set_seed(8)
    assert compiled().numpy().tolist() != first[0]


def test_35_eager_equals_graph():
    def f():
        return td.random.uniform([2]), td.random.normal([2])

    def draw(fn):
        td.random.set_seed(3)
        return [np.stack([t.numpy() for t in fn()]) for _ in range(2)]

    np.testing.assert_allclose(draw(f), draw(td.function(f)), rtol=1e-6)


def test_36_sums_are_the_same_every_time():
    x = td.constant(np.random.default_rng(0).normal(size=(300, 1001)).astype(np.float32))
    f = td.function(
        lambda x: (td.reduce_sum(x), td.reduce_mean(x, 0), td.matmul(x, x, False, True))
    )
    first = [r.numpy() for r in f(x)]
    for _ in range(30):
        for again, value in zip(f(x), first, strict=True):
            np.testing.assert_array_equal(again.numpy(), value)
