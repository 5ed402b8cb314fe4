"""Programs with lists, and with sizes that only the running program knows."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, inputs, native, trace, trace_like
from treadle.core import errors
from treadle.core.spec import TensorSpec
from treadle.ops.collections import lists
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.registry import Op, run
from treadle.runtime import compile


def filled(x, count):
    """A list of x, x + 1, ... made in a loop."""
    start = lists.list_new(x.spec)
    return while_loop(
        lambda i, items: i < count,
        lambda i, items: (i + 1, lists.list_push(items, x + td.cast(i, td.float32))),
        (td.constant(0), start),
    )[1]


def summed(items, like):
    return while_loop(
        lambda i, total: i < lists.list_length(items),
        lambda i, total: (i + 1, total * 0.5 + lists.list_get(items, i)),
        (td.constant(0), td.zeros_like(like)),
    )[1]


def pushed_and_read(x):
    return summed(filled(x, 20), x)


def old_list_still_read(x):
    items = filled(x, 3)
    longer = lists.list_push(items, x * 2.0)
    return (
        lists.list_length(items),
        lists.list_length(longer),
        lists.list_get(items, 2),
        lists.list_get(longer, 3),
    )


def two_from_one(x):
    items = filled(x, 2)
    a = lists.list_set(items, 0, x * 10.0)
    b = lists.list_set(items, 0, x * 20.0)
    return [lists.list_get(i, 0) for i in (items, a, b)]


def given_to_two_loops(x):
    items = lists.list_push(lists.list_new(x.spec), x)

    def grow(items, factor):
        return while_loop(
            lambda i, items: i < 3,
            lambda i, items: (i + 1, lists.list_push(items, lists.list_get(items, i) * factor)),
            (td.constant(0), items),
        )[1]

    return lists.list_get(grow(items, 2.0), 3), lists.list_get(grow(items, 3.0), 3)


def pushed_in_a_branch(x):
    def body(i, items):
        grown = cond(
            i % 2 == 0, lambda: lists.list_push(items, x * td.cast(i, td.float32)), lambda: items
        )
        return i + 1, grown

    items = while_loop(
        lambda i, items: i < 6, body, (td.constant(0), lists.list_push(lists.list_new(x.spec), x))
    )[1]
    return lists.list_length(items), summed(items, x)


def branch_gives_back_its_list(x):
    items = lists.list_push(lists.list_new(x.spec), x)
    same = cond(x[0] > -100.0, lambda: items, lambda: lists.list_push(items, x))
    changed = lists.list_set(same, 0, x * 5.0)
    return lists.list_get(items, 0), lists.list_get(changed, 0)


def scalars_and_sizes(x):
    items = lists.list_new(TensorSpec((), td.float32), 4)
    items = lists.list_set(items, 2, td.reduce_sum(x))
    items = lists.list_set(items, 6, td.reduce_max(x), grow=True)
    shorter = lists.list_truncate(items, 3)
    longer = lists.list_extend(shorter, 5)
    return (
        [lists.list_get(items, i) for i in (0, 2, 5, 6)],
        lists.list_length(longer),
        lists.list_get(longer, 4),
    )


def stacked(x):
    items = filled(x, 4)
    whole = lists.list_stack(items)
    return whole * 2.0, td.reduce_sum(whole, 0), lists.list_get(lists.list_unstack(whole), 1)


def shape_told_by_what_is_stored(x):
    array = td.TensorArray(td.float32, size=0, dynamic_size=True)
    array = while_loop(
        lambda i, a: i < 4,
        lambda i, a: (i + 1, a.write(i, x * td.cast(i, td.float32))),
        (td.constant(0), array),
    )[1]
    return td.reduce_sum(array.stack(), 0), array.read(3)


def flat(fn):
    def run(x):
        result = fn(x)
        out = []
        for r in result if isinstance(result, list | tuple) else [result]:
            out += r if isinstance(r, list) else [r]
        return out

    return run


LISTS = [
    pushed_and_read, old_list_still_read, two_from_one, given_to_two_loops, pushed_in_a_branch,
    branch_gives_back_its_list, scalars_and_sizes, stacked, shape_told_by_what_is_stored,
]  # fmt: skip


@pytest.mark.parametrize("fn", LISTS)
def test_lists(fn):
    x = inputs((3, 2))[0] if fn is not branch_gives_back_its_list else inputs((3,))[0]
    graph = trace_like(flat(fn), x)
    executable = both(graph, x)
    assert "python list" not in executable.stages["schedule"]


def test_a_list_index_out_of_range_names_index_and_length():
    executable = native(
        trace(
            lambda x, i: lists.list_get(filled(x, 4), i), TensorSpec((2,)), TensorSpec((), "int32")
        )
    )
    x = inputs((2,))[0]
    np.testing.assert_allclose(executable.run([x, np.asarray(np.int32(3))])[0], x + 3)
    for wrong in (4, -1):
        with pytest.raises(errors.OutOfRangeError, match=f"index {wrong} .* 4 elements"):
            executable.run([x, np.asarray(np.int32(wrong))])


def test_lists_of_several_shapes_are_native():
    def f(x):
        items = lists.list_new(TensorSpec((None,), td.float32))
        items = lists.list_push(lists.list_push(items, x), td.concat([x, x], 0))
        return lists.list_length(items) * 2

    x = inputs((3,))[0]
    executable = both(trace_like(f, x), x)
    assert "list_push" in executable.stages["schedule"]
    assert "python list" not in executable.stages["schedule"]


def loop_gradient(x, w):
    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = while_loop(
            lambda i, h: i < 5,
            lambda i, h: (i + 1, td.tanh(td.matmul(h, w) + x)),
            (td.constant(0), x),
        )[1]
        loss = td.reduce_sum(y * y)
    return tape.gradient(loss, [x, w])


def test_the_gradient_of_a_loop_is_native():
    x, w = inputs((4, 3), (3, 3))
    executable = both(trace_like(loop_gradient, x, w), x, w)
    assert "python" not in executable.stages["schedule"]


# -- sizes found out while running -------------------------------------------------------------


def masked(x):
    chosen = td.boolean_mask(x, x > 0.0)
    return chosen * 2.0 + 1.0


def masked_sum(x):
    chosen = td.boolean_mask(x, x > 0.0)
    return td.reduce_sum(td.exp(chosen)), td.reduce_max(chosen * chosen)


def masked_twice(x):
    a, b = td.boolean_mask(x, x > 0.0), td.boolean_mask(x * 3.0, x > 0.0)
    return a * b - a


def masked_in_a_loop(x):
    def body(i, total):
        return i + 1, total + td.reduce_sum(td.boolean_mask(x, x > total) * 0.5)

    return while_loop(lambda i, t: i < 4, body, (td.constant(0), td.constant(0.0)))[1]


def masked_in_a_branch(x):
    return cond(
        x[0] > 0.0, lambda: td.reduce_sum(td.boolean_mask(x, x > 0.0)), lambda: td.reduce_sum(x)
    )


def branches_of_two_sizes(x):
    y = cond(x[0] > 0.0, lambda: x[1:] * 2.0, lambda: x[2:] + 1.0)
    return y * 2.0


def growing(x):
    y = while_loop(
        lambda y: td.size(y) < 20,
        lambda y: (td.concat([y, y * 0.5], 0),),
        (x,),
        shape_invariants=[td.TensorShape([None])],
    )[0]
    return td.reduce_sum(y), y


@pytest.mark.parametrize(
    "fn",
    [
        masked,
        masked_sum,
        masked_twice,
        masked_in_a_loop,
        masked_in_a_branch,
        branches_of_two_sizes,
        growing,
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_sizes_found_out_while_running(fn, seed):
    x = inputs((7,), seed=seed)[0]
    graph = trace_like(fn, x)
    executable = compile(graph)
    both(graph, x)
    assert executable.mode == "native"


def test_sizes_that_turn_out_different():
    graph = trace(
        lambda x: td.boolean_mask(x, x > 0.0) + td.boolean_mask(x, x < 0.0), TensorSpec((4,))
    )
    executable = native(graph)
    for given, expected in (([1, -2, 3, -4], [-1, -1]), ([1, 2, 3, -4], [-3, -2, -1])):
        np.testing.assert_allclose(executable.run([np.array(given, np.float32)])[0], expected)
    with pytest.raises(errors.InvalidArgumentError, match="could not be broadcast"):
        executable.run([np.array([1, 2, 3, 0], np.float32)])


def test_the_size_of_an_array_that_nothing_reads():
    @td.function
    def count(n):
        return td.shape(td.range(n))[0]

    @td.function
    def fibonacci(n):
        a, b = 0, 1
        for _ in td.range(n):
            a, b = b, a + b
        return a

    for function, expected in ((count, 10), (fibonacci, 55)):
        concrete = function.get_concrete_function(td.TensorSpec([], td.int32))
        assert int(concrete(td.constant(10))) == expected
        assert concrete.executable.mode == "native", concrete.executable.reason


def test_the_gradient_of_a_loop_over_any_batch_is_native():
    graph = trace(loop_gradient, TensorSpec((None, 3)), TensorSpec((3, 3)))
    for size in (4, 1, 7):
        x, w = inputs((size, 3), (3, 3))
        executable = both(graph, x, w)
        assert "python" not in executable.stages["schedule"]


def test_sizes_divided_below_zero():
    """Sizes that are computed may be negative on the way: division rounds down, as in Python."""

    def program(x):
        n = td.shape(x)[0]
        numbers = [(n - 9) // 4, (n - 9) % 4, (3 - n) // (n - 8), (3 - n) % (n - 8), -n // 2]
        return td.stack([*numbers, *(n // k for k in (1, 3))]), td.roll(x, -1, 0), td.roll(x, 9, 0)

    graph = trace(program, TensorSpec((None, 2)))
    for size in (1, 2, 5, 7, 9, 11, 40):
        both(graph, *inputs((size, 2)))


def test_branches_call_python_for_arrays_whose_size_is_found_late():
    """Both branches give an array of a size that is known before them: each call gives an array of
    its own, which goes to the branch's."""
    shifted = Op("shifted", lambda x, by: x, lambda x, by: x + by)

    def f(x):
        y = td.boolean_mask(x, x > 0.0)
        large = td.reduce_any(y > 2.0)
        return cond(large, lambda: run(shifted, y, x[0]), lambda: run(shifted, y, x[1])) * 2.0

    graph = trace(f, TensorSpec([3]))
    program = native(graph)
    for values in ([1, -1, 3], [1, -1, 2], [-1, -2, -3]):
        x = np.array(values, np.float32)
        y = x[x > 0]
        (found,) = program.run([x])
        assert found.tolist() == ((y + (x[0] if (y > 2).any() else x[1])) * 2).tolist()
