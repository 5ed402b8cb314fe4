"""Graphs of TensorFlow 1: names, scopes, collections, placeholders."""

import json
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf
from tests.compat.calls import CALLS, FILE, told


@pytest.mark.parametrize(
    ("call", "here", "there"),
    [
        (call, here, there)
        for (call, there), here in zip(json.loads(FILE.read_text()).items(), told(tf), strict=True)
    ],
)
def test_operations_are_named_as_in_tensorflow(call: str, here: Any, there: Any) -> None:
    assert here == there


def test_every_call_was_recorded_in_tensorflow() -> None:
    assert list(json.loads(FILE.read_text())) == CALLS


def test_name_scopes_are_unique() -> None:
    with tf.name_scope("s") as first:
        a = tf.constant(1, name="a")
        v = tf.Variable(1, name="v")
        c = tf.get_variable("c", [])
    with tf.name_scope("s") as second:
        again = tf.constant(1, name="a")
    with tf.name_scope(first) as third:
        inside = tf.constant(1, name="a")
    assert [a.name, v.name, c.name] == ["s/a:0", "s/v:0", "c:0"]
    assert (first, second, third) == ("s/", "s_1/", "s/")
    assert (again.name, inside.name) == ("s_1/a:0", "s/a_1:0")
    with tf.name_scope(None, "other", [a]) as scope:
        assert scope == "other/"
    with tf.name_scope("s") as outer, tf.name_scope(None):
        assert outer == "s_2/" and tf.constant(1, name="top").name == "top:0"
    with pytest.raises(ValueError, match="not a valid scope name"), tf.name_scope("no good"):
        pass


def test_elements_are_found_by_name(graph: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.add(x, 1.0, name="y")
    assert graph.get_tensor_by_name("y:0") is y
    assert graph.get_operation_by_name("y") is y.op and y.op.inputs == [x]
    assert graph.as_graph_element("y:0") is y and graph.as_graph_element(y) is y
    assert [op.name for op in graph.get_operations()] == ["x", "y"]
    assert x.consumers() == [y.op] and y.op.type == "AddV2" and y.graph is graph
    for call, error, text in (
        (lambda: graph.get_tensor_by_name("x"), ValueError, "refers to an Operation, not a Tensor"),
        (lambda: graph.get_tensor_by_name("x:3"), KeyError, "exists but only has 1 outputs"),
        (lambda: graph.get_tensor_by_name("q:0"), KeyError, "does not exist in the graph"),
        (lambda: graph.get_operation_by_name("x:0"), ValueError, "refer to a Tensor, not a Oper"),
        (lambda: graph.get_operation_by_name("q"), KeyError, "an Operation not in the graph"),
        (lambda: graph.get_tensor_by_name(3), TypeError, "Tensor names are strings"),
        (lambda: graph.as_graph_element(3), TypeError, "Can not convert a int into a Tensor or Op"),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("name", ["two words", "_hidden", "a:b", "é"])
def test_names_have_few_characters(graph: Any, name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid node name"):
        tf.constant(1, name=name)
    with pytest.raises(ValueError, match="is not a valid node name"):
        tf.placeholder(tf.float32, name=name)
    with tf.name_scope("scope"):
        assert tf.constant(1, name="_inside").name == "scope/_inside:0"


def test_custom_getters_are_called_by_keywords(graph: Any) -> None:
    def getter(getter: Any, name: str, **more: Any) -> Any:
        return getter(name=name, **more) * 2.0

    with tf.variable_scope("a", custom_getter=getter):
        doubled = tf.get_variable("v", initializer=3.0)
    assert doubled.name == "mul:0"
    assert [v.name for v in tf.global_variables()] == ["a/v:0"]
    with pytest.raises(ValueError, match="do not specify shape"):
        tf.get_variable("w", [2], initializer=np.ones(2))


def test_tensors_of_other_graphs_are_refused() -> None:
    a = tf.constant(1.0)
    with tf.Graph().as_default() as other:
        b = tf.constant(1.0)
        assert b.graph is other
        assert tf.add(2.0, a).graph is a.graph
        with pytest.raises(ValueError, match="must be from the same graph as"):
            a + b
        with pytest.raises(ValueError, match="must be from the same graph as"):
            tf.concat([[a], [b]], 0)


def test_collections(graph: Any) -> None:
    tf.add_to_collection("mine", 1)
    tf.add_to_collection("mine", 2)
    v = tf.Variable(1.0, name="net/v")
    u = tf.Variable(1.0, name="u", trainable=False)
    assert tf.get_collection("mine") == [1, 2] and tf.get_collection("none") == []
    tf.get_collection_ref("mine").append(3)
    assert graph.get_collection("mine") == [1, 2, 3]
    assert tf.global_variables() == [v, u] and tf.trainable_variables() == [v]
    assert tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, "net") == [v]
    assert set(graph.get_all_collection_keys()) == {"mine", "variables", "trainable_variables"}


def test_a_finalized_graph_takes_nothing(graph: Any) -> None:
    a = tf.constant(1.0)
    graph.finalize()
    for call in (lambda: a + 1.0, lambda: tf.constant(1.0), lambda: tf.placeholder(tf.float32)):
        with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
            call()
    assert tf.Session().run(a) == 1.0


def test_static_shapes_have_dimensions() -> None:
    x = tf.placeholder(tf.float32, [None, 128])
    assert x.shape.as_list() == [None, 128] and x.get_shape()[1].value == 128
    assert x.shape[0].value is None and str(x.shape) == "(?, 128)"
    assert int(x.shape[1]) * 2 == 256 and (x.shape[1] // 2).value == 64
    assert isinstance(x.shape[1], tf.Dimension) and tf.zeros([x.shape[1]]).shape.as_list() == [128]
    x.set_shape([32, 128])
    assert x.shape.as_list() == [32, 128]
    x.set_shape([None, 128])
    assert x.shape.as_list() == [32, 128]
    with pytest.raises(ValueError, match="shape"):
        x.set_shape([31, 128])


def test_dynamic_shapes_fold_dimensions() -> None:
    def sizes(tensor: Any) -> list[Any]:
        dynamic = tf.unstack(tf.shape(tensor))
        static = tensor.shape.as_list()
        return [d if s is None else s for s, d in zip(static, dynamic, strict=True)]

    b = tf.placeholder(tf.float32, [None, 10, 32])
    shape = sizes(b)
    folded = tf.reshape(b, [shape[0], shape[1] * shape[2]])
    assert folded.shape.as_list() == [None, 320]
    value = np.random.default_rng(0).random((3, 10, 32)).astype("float32")
    np.testing.assert_array_equal(tf.Session().run(folded, {b: value}), value.reshape(3, 320))


def test_ranks_that_only_a_run_knows() -> None:
    x = tf.placeholder(tf.float32)
    assert x.shape.rank is None and str(x) == 'Tensor("Placeholder:0", dtype=float32)'
    total, doubled = tf.reduce_sum(x), x * 2.0
    assert total.shape.as_list() == [] and doubled.shape.rank is None
    rows = tf.reshape(x, [-1, 2])
    assert rows.shape.as_list() == [None, 2]
    with tf.Session() as session:
        for value in (3.0, [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], np.ones([2, 1, 3, 1])):
            assert session.run(total, {x: value}) == np.sum(value)
            np.testing.assert_array_equal(session.run(doubled, {x: value}), np.multiply(value, 2))
    x.set_shape([None, 3])
    assert x.shape.as_list() == [None, 3] and tf.matmul(x, tf.ones([3, 2])).shape.as_list() == [
        None, 2,
    ]  # fmt: skip


def test_a_rank_that_no_operation_takes_is_refused() -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises((ValueError, TypeError)):
        tf.matmul(x, tf.ones([3, 2], tf.int32))


def test_no_values_in_python() -> None:
    x = tf.placeholder(tf.float32, [2])
    for call, error in (
        (lambda: bool(x), TypeError), (lambda: list(x), TypeError), (lambda: len(x), TypeError),
        (lambda: float(x), TypeError), (lambda: np.asarray(x), NotImplementedError),
        (lambda: x.eval(), ValueError), (lambda: x.op.run(), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()
    assert x == x and x != tf.identity(x) and len({x, x}) == 1
    assert not hasattr(x, "numpy") and isinstance(x, tf.Tensor)


def test_names_are_treadles_own_inside_of_a_function() -> None:
    @td.function
    def f(x: Any) -> Any:
        return tf.reduce_sum(x, keep_dims=True) + tf.to_float(1)

    assert f(td.constant([1.0, 2.0])).numpy() == [4.0]


def test_eager_execution() -> None:
    program = (
        "import treadle.compat.v1 as tf;tf.enable_eager_execution(); x = tf.matmul([[2.]], [[2.]]);"
        "print(x.numpy()[0, 0], tf.executing_eagerly(), isinstance(x, tf.Tensor),"
        "tf.Variable(1.).assign_add(2.).numpy())"
    )
    import subprocess
    import sys

    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert found.split() == ["4.0", "True", "True", "3.0"]


def test_reset_default_graph_is_refused_inside_of_a_graph() -> None:
    with pytest.raises(AssertionError, match="Do not use tf.reset_default_graph"):
        tf.reset_default_graph()


def test_a_dict_of_conditions_is_taken_in_the_order_of_names() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32), tf.constant(2.0)
        one, two = lambda: tf.constant(1), lambda: tf.constant(2)
        unnamed = tf.case({tf.less(x, y): one, tf.greater(y, x): two})
        named = tf.case({tf.less(x, y, name="a"): one, tf.greater(y, x, name="b"): two})
        only = tf.case(
            {tf.less(x, y): one, tf.greater(x, y): two}, lambda: tf.constant(3), exclusive=True
        )
        assert session.run([unnamed, named, only], {x: 1.0}) == [2, 1, 1]
        assert session.run(only, {x: 2.0}) == 3


def test_tensors_like_others() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        zeros, ones = tf.zeros_like(x, optimize=True), tf.ones_like(x, tf.int32, optimize=False)
        found = session.run([zeros, ones], {x: np.ones((3, 2))})
        assert zeros.shape.as_list() == [None, 2] and ones.dtype == tf.int32
        assert [a.tolist() for a in found] == [[[0.0, 0.0]] * 3, [[1, 1]] * 3]
