"""Programs of TensorFlow 1 record graphs, programs of TensorFlow 2 get values: told apart by how
they reach the names, each in a process of its own, as the choice is the process's."""

import subprocess
import sys

import pytest

_OF_TENSORFLOW_2 = """
import numpy as np
import treadle as tf

with tf.Graph().as_default():  # before the program names TensorFlow 1
    x = tf.constant([1.0, 2.0])
    assert not tf.executing_eagerly() and tf.gradients(x * x, x)[0].shape == [2]
assert tf.executing_eagerly() and tf.constant(2.0).numpy() == 2.0
v1 = tf.compat.v1
assert v1.executing_eagerly()
assert v1.div(tf.constant(7), tf.constant(2)).numpy() == 3
assert v1.to_float(tf.constant(3)).numpy() == 3.0
assert v1.reduce_sum([1.0, 2.0], keep_dims=True).numpy().tolist() == [3.0]
assert v1.random_uniform([2]).numpy().shape == (2,)
assert v1.where(tf.constant([True, False])).numpy().tolist() == [[0]]
assert v1.losses.mean_squared_error(tf.ones([2]), tf.zeros([2])).numpy() == 1.0
logits = tf.constant([[1.0, 2.0]], tf.float64)
assert v1.losses.sigmoid_cross_entropy([[1, 0]], logits).dtype == tf.float64
assert v1.losses.softmax_cross_entropy([[1, 0]], logits).dtype == tf.float64
assert v1.Print(tf.constant(1), [tf.constant(2)]).numpy() == 1
assert [x.numpy() for x in v1.data.make_one_shot_iterator(tf.data.Dataset.range(2))] == [0, 1]

step = v1.train.get_or_create_global_step()
rate = v1.train.exponential_decay(0.5, step, 1, 0.5)
w = tf.Variable([1.0])
optimizer = v1.train.GradientDescentOptimizer(rate)
optimizer.minimize(lambda: tf.reduce_sum(2.0 * w), global_step=step)
assert w.numpy() == [0.0] and rate().numpy() == 0.25

@tf.function
def of_graph(x):
    return v1.to_float(x) + v1.train.exponential_decay(1.0, x, 1, 0.5)

assert of_graph(tf.constant(1)).numpy() == 1.5

for refused, word in [
    (lambda: v1.placeholder(tf.float32), "disable_eager_execution"),
    (lambda: v1.metrics.mean(tf.ones([2])), "tf.metrics.mean is not supported"),
]:
    try:
        refused()
    except RuntimeError as error:
        assert word in str(error), error
    else:
        raise AssertionError(word)

with tf.Graph().as_default(), v1.Session() as session:
    x, c, v = v1.placeholder(tf.float32, [2]), tf.constant(2.0), tf.Variable(3.0)
    session.run(v1.global_variables_initializer())
    assert session.run({"all": tf.reduce_sum(x * c) + v, "c": c}, {x: [1.0, 2.0]}) == {
        "all": 9.0, "c": 2.0}


class Scale(tf.Module):
    @tf.function
    def __call__(self, a):
        return 3.0 * a

with tf.Graph().as_default() as graph, v1.Session() as session:
    total = tf.reduce_sum(tf.Variable([1.0, 2.0, 3.0]) * tf.ones([3]))
    assert total.graph is graph and total.name == "Sum:0"
    step = v1.train.GradientDescentOptimizer(0.5).minimize(total)
    session.run(v1.global_variables_initializer())
    assert session.run([total, step])[0] == 6.0 and session.run(total) == 4.5
    double = tf.function(lambda a: 2.0 * a)(total)
    assert session.run([double, Scale()(total)]) == [9.0, 13.5]
    assert v1.gradients(double, [total])[0].eval() == 2.0
assert tf.ones([2]).numpy().tolist() == [1.0, 1.0] and isinstance(tf.Variable(1.0), tf.Variable)

class Sessions(tf.test.TestCase):
    def runTest(self):
        with self.cached_session() as session:
            assert session.run({"a": tf.constant(2.0)}, feed_dict={}) == {"a": 2.0}
            with self.assertRaisesRegex(RuntimeError, "feed_dict is not supported"):
                session.run(tf.constant(2.0), feed_dict={"a": 1.0})
        with tf.Graph().as_default(), self.cached_session() as session:
            assert session.run(tf.constant(2.0) + 1.0) == tf.constant(3.0).eval()

result = Sessions().run()
assert result.wasSuccessful(), result.errors

v1.disable_eager_execution()
y = v1.placeholder(tf.float32, [None]) * 2.0
assert not v1.executing_eagerly() and y.name == "mul:0"
assert tf.constant(1.0).graph is tf.Variable(1.0).graph is v1.get_default_graph()

class Again(tf.test.TestCase):
    def runTest(self):  # each test begins with an empty default graph
        assert v1.get_variable("same", [1]).name == "same:0"

for _ in range(2):
    result = Again().run()
    assert result.wasSuccessful(), result.errors
"""
_OF_TENSORFLOW_1 = """
IMPORT

assert not tf.executing_eagerly()
a = tf.constant([1.0, 2.0])
b = tf.random_uniform([2]) * 0.0 + a
assert not hasattr(b, "numpy")
assert tf.Session().run(b).tolist() == [1.0, 2.0]

import treadle  # a program of TensorFlow 2 that uses the module above

assert tf.div(treadle.constant(7), 2).numpy() == 3  # given a value it gives one
assert not treadle.compat.v1.executing_eagerly()  # the import was there first
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_attributes_of_treadle_give_values() -> None:
    run(_OF_TENSORFLOW_2)


@pytest.mark.parametrize(
    "statement", ["import treadle.compat.v1 as tf", "from treadle.compat import v1 as tf"]
)
def test_an_imported_module_records_graphs(statement: str) -> None:
    run(_OF_TENSORFLOW_1.replace("IMPORT", statement))
