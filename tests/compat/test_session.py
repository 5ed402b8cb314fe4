"""Sessions of TensorFlow 1: feeds, fetches, what is pruned, and in which order things happen."""

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf


def test_fetches_of_any_structure() -> None:
    a, b = tf.constant(1.0, name="a"), tf.constant([2.0, 3.0], name="b")
    c = a + b
    pair = namedtuple("pair", "u v")
    with tf.Session() as s:
        assert s.run(a) == 1.0 and isinstance(s.run(a), np.float32)
        assert s.run("a:0") == 1.0 and s.run(a.op) is None and s.run("a") is None
        assert s.run([]) == [] and s.run({}) == {}
        found = s.run([c, {"k": (a, b.op), "l": [[b]]}, pair(a, c)])
        np.testing.assert_array_equal(found[0], [3.0, 4.0])
        assert found[1]["k"] == (1.0, None) and found[2].u == 1.0
        np.testing.assert_array_equal(found[1]["l"][0][0], [2.0, 3.0])
        assert type(s.run(OrderedDict(x=a))) is OrderedDict
        assert s.run((a, a)) == (1.0, 1.0)


def test_what_cannot_be_fetched_or_fed() -> None:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    a = tf.constant(1.0)
    s = tf.Session()
    for call, error, text in (
        (lambda: s.run(None), TypeError, "has invalid type"),
        (lambda: s.run([a, None]), TypeError, "Cannot be None"),
        (lambda: s.run(3), TypeError, 'invalid type "int" must be a string or Tensor'),
        (lambda: s.run("nope:0"), ValueError, "cannot be interpreted as a Tensor"),
        (lambda: s.run(x), td.errors.InvalidArgumentError,
         r"You must feed a value for placeholder tensor 'x' with dtype float and shape \[\?,4\]"),
        (lambda: s.run(x, {x: [1.0]}), ValueError,
         r"Cannot feed value of shape \(1,\) for Tensor x:0, which has shape \(\?, 4\)"),
        (lambda: s.run(x, {x: [["a"] * 4]}), ValueError, "could not convert string to float"),
        (lambda: s.run(x, {x: a}), TypeError, "The value of a feed cannot be a tf.Tensor object"),
        (lambda: s.run(x, {3: 1}), TypeError, "Cannot interpret feed_dict key as Tensor"),
        (lambda: s.run(a, [1]), TypeError, "'dict' must be a dictionary"),
        (lambda: s.partial_run_setup([a], [x]), NotImplementedError, "Partial runs"),
        (lambda: tf.Session(graph=tf.Graph()).run(a), RuntimeError, "The Session graph is empty"),
        (lambda: tf.Session(graph=3), TypeError, "must be a tf.Graph"),
        (lambda: tf.Session(config=3), TypeError, "must be a tf.ConfigProto"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()
    s.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        s.run(a)


def test_any_tensor_can_be_fed() -> None:
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0
    z = y + 1.0
    v = tf.Variable(3.0)
    with tf.Session() as s:
        assert s.run(z, {y: 10.0}) == 11.0
        assert s.run([y, z], {y: 10.0}) == [10.0, 11.0]
        assert s.run(z, {x: 1.0}) == 3.0 and s.run(z, {"mul:0": 5}) == 6.0
        assert s.run(v * 2.0, {v: 4.0}) == 8.0
        with pytest.raises(td.errors.FailedPreconditionError, match="uninitialized value Variable"):
            s.run(v * 2.0)


def test_several_placeholders_of_unknown_ranks() -> None:
    """Of the ranks that they may have together, the likely ones are tried."""
    rows, columns, batch = (tf.placeholder(tf.int32) for _ in range(3))
    matrices = tf.eye(rows, num_columns=columns, batch_shape=batch)
    with tf.Session() as s:
        assert s.run(matrices, {rows: 3, columns: 2, batch: [4]}).shape == (4, 3, 2)
        assert s.run(matrices, {rows: 1, columns: 2, batch: [4, 5]}).shape == (4, 5, 1, 2)


def test_the_length_of_a_shape_of_unknown_rank_is_not_known() -> None:
    """It is another number for each rank, in vectors of the same spec."""
    x = tf.placeholder(tf.float32)
    sizes = tf.shape(x)
    length = tf.shape(sizes)
    assert td.get_static_value(length) is None
    ones = tf.ones(length, tf.int32)
    second = tf.concat([ones, sizes], 0)[tf.size(sizes) + 1]
    grown = tf.broadcast_to(x, tf.maximum(ones, sizes))
    with tf.Session() as s:
        for rank in (2, 3, 4):
            value = np.ones((3, 5, 2, 1)[:rank], np.float32)
            found = s.run([length, ones, second, grown], {x: value})
            assert found[0].tolist() == [rank] and found[1].tolist() == [1] * rank
            assert found[2] == 5 and found[3].shape == value.shape


def test_jacobians_of_complex_numbers_have_a_row_for_each_part() -> None:
    value = np.array([1 + 2j, -0.5 + 0.3j], np.complex64)
    x = tf.constant(value)
    size = tf.abs(x)
    with tf.Session():
        exact, numeric = tf.test.compute_gradient(x, [2], size, [2], x_init_value=value)
        assert exact.shape == numeric.shape == (4, 2) and exact.dtype == np.float32
        np.testing.assert_allclose(exact, numeric, atol=1e-3)
        np.testing.assert_allclose(exact[:2, 0], [1 / 5**0.5, 2 / 5**0.5], atol=1e-6)
        error = tf.test.compute_gradient_error(x, [2], x * x, [2], x_init_value=value)
        assert error < 1e-2


def test_placeholder_with_default() -> None:
    p = tf.placeholder_with_default([1.0, 2.0], [None])
    total = tf.reduce_sum(p)
    with tf.Session() as s:
        assert s.run(total) == 3.0 and s.run(total, {p: [1.0, 1.0, 5.0]}) == 7.0
    assert p.shape.as_list() == [None]


def test_only_what_is_needed_runs() -> None:
    ran = []
    a = tf.py_func(lambda: ran.append("a") or np.float32(1), [], tf.float32)
    b = tf.py_func(lambda: ran.append("b") or np.float32(2), [], tf.float32)
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([b]):
        c = tf.identity(a)
    unused = x + 1.0
    with tf.Session() as s:
        assert s.run(a) == 1.0 and ran == ["a"]
        assert s.run(c) == 1.0 and sorted(ran) == ["a", "a", "b"]
        assert s.run(c, {a: 5.0}) == 5.0 and sorted(ran) == ["a", "a", "b", "b"]
    assert unused.op.control_inputs == [] and c.op.control_inputs == [b.op]


def test_control_dependencies_order_what_happens() -> None:
    a = tf.Variable(1)
    c = a + 2
    with tf.control_dependencies([c]):
        change = tf.assign(a, 5)
    with tf.control_dependencies([change]):
        later = a + 2
    for _ in range(3):
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            assert s.run([change, c]) == [5, 3]
            s.run(a.initializer)
            assert s.run([c, later]) == [3, 7] and s.run(a) == 5
            with tf.control_dependencies(None), tf.control_dependencies([change.op]):
                assert s.run(tf.no_op()) is None


def test_assertions_run_where_something_depends_on_them() -> None:
    x = tf.placeholder(tf.float32, [None])
    check = tf.assert_positive(x)
    with tf.control_dependencies([check]):
        y = x + 1.0
    z = x + 1.0
    with tf.Session() as s:
        assert s.run(z, {x: [-1.0]}) == [0.0]
        assert s.run(y, {x: [1.0]}) == [2.0]
        with pytest.raises(td.errors.InvalidArgumentError):
            s.run(y, {x: [-1.0]})
        with pytest.raises(td.errors.InvalidArgumentError):
            s.run(check, {x: [-1.0]})


def test_random_numbers_are_drawn_once_a_run() -> None:
    a = tf.random_normal([3])
    twice = a * 2.0
    with tf.Session() as s:
        first, double = s.run([a, twice])
        np.testing.assert_allclose(first * 2, double, rtol=1e-6)
        assert not np.array_equal(first, s.run(a))


def test_branches_and_loops() -> None:
    n, start = tf.placeholder(tf.int32, []), tf.Variable(1)
    _, _, last = tf.while_loop(
        lambda i, a, b: i < n, lambda i, a, b: (i + start, b, a + b), (2, 1, 1)
    )
    one = tf.while_loop(lambda i: i < n, lambda i: i + 2, [0])
    p = tf.placeholder(tf.bool, [])
    chosen = tf.cond(p, lambda: last * 2, lambda: tf.cond(n > 3, lambda: start, lambda: last))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(last, {n: 5}) == 5 and s.run(last, {n: 8}) == 21
        assert s.run(one, {n: 5}) == 6
        assert s.run(chosen, {p: True, n: 5}) == 10
        assert s.run(chosen, {p: False, n: 5}) == 1 and s.run(chosen, {p: False, n: 3}) == 2


def test_loops_make_sequences() -> None:
    n = tf.constant(5)
    c = tf.TensorArray(tf.int32, n)
    c = c.write(0, 1)
    c = c.write(1, 1)

    def body(i: Any, a: Any, b: Any, c: Any) -> Any:
        return i + 1, b, a + b, c.write(i, a + b)

    *_, array = tf.while_loop(lambda i, a, b, c: i < n, body, (2, 1, 1, c))
    grown = tf.while_loop(
        lambda i, a, b, c: i < n, lambda i, a, b, c: (i + 1, b, a + b, tf.concat([c, [a + b]], 0)),
        (2, 1, 1, tf.constant([1, 1])),
        shape_invariants=(tf.TensorShape([]),) * 3 + (tf.TensorShape([None]),),
    )  # fmt: skip
    squares = tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))
    sums = tf.scan(lambda a, x: a + x, tf.constant([1.0, 2.0, 3.0]))
    with tf.Session() as s:
        assert s.run(array.stack()).tolist() == [1, 1, 2, 3, 5]
        assert s.run(grown[3]).tolist() == [1, 1, 2, 3, 5]
        assert s.run(squares).tolist() == [1.0, 4.0, 9.0] and s.run(sums).tolist() == [
            1.0, 3.0, 6.0
        ]


def test_default_sessions() -> None:
    a = tf.constant(2.0)
    v = tf.Variable(a + 1.0)
    with tf.Session() as s:
        assert tf.get_default_session() is s and a.eval() == 2.0
        v.initializer.run()
        assert v.eval() == 3.0
        with tf.Session().as_default() as inner:
            assert tf.get_default_session() is inner and inner.graph is s.graph
            with pytest.raises(td.errors.FailedPreconditionError):
                v.eval()
    assert tf.get_default_session() is None
    interactive = tf.InteractiveSession()
    assert (a * 2.0).eval() == 4.0
    interactive.close()
    with pytest.raises(ValueError, match="No default session is registered"):
        a.eval()


def test_errors_name_the_line_that_made_the_operation() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(x, [2, 2])  # this line
    with pytest.raises(td.errors.InvalidArgumentError, match="this line"):
        tf.Session().run(y, {x: [1.0, 2.0, 3.0]})


def test_one_program_for_fetches_and_feeds() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.nn.relu(tf.matmul(x, tf.ones([2, 2])))
    s = tf.Session()
    s.run(y, {x: np.ones([1, 2])})
    (program,) = {p for _, p in (v for v in s._programs.values() if isinstance(v, tuple))}
    for rows in (1, 2, 3, 4):
        assert s.run([y], {x: np.ones([rows, 2])})[0].shape == (rows, 2)
    assert s.run(y, {x: np.ones([5, 2])}).shape == (5, 2)
    assert [op.name for op in program.operations] == ["ones", "MatMul", "Relu"]


def test_print_writes_to_standard_error(capfd: Any) -> None:
    a = tf.constant([1.0, 2.0, 3.0, 4.0])
    shown = tf.Print(a, [a, tf.constant(2)], "a and two: ")
    assert tf.Session().run(shown + 1.0).tolist() == [2.0, 3.0, 4.0, 5.0]
    assert capfd.readouterr().err == "a and two: [1 2 3...][2]\n"


def test_sessions_have_values_of_their_own() -> None:
    v = tf.Variable([1.0, 2.0])
    up = v.assign_add([1.0, 1.0])
    first, second = tf.Session(), tf.Session()
    for s in (first, second):
        s.run(tf.global_variables_initializer())
    assert first.run(up).tolist() == [2.0, 3.0] and first.run(up).tolist() == [3.0, 4.0]
    assert second.run(v).tolist() == [1.0, 2.0]


def test_indexed_slices_are_fetched() -> None:
    table = tf.Variable(np.ones([5, 2], np.float32))
    (found,) = tf.gradients(tf.reduce_sum(tf.gather(table, [1, 3])), [table])
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    value = s.run(found)
    assert isinstance(found, tf.IndexedSlices) and value.indices.tolist() == [1, 3]
    assert value.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]
