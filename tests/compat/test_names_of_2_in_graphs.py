"""Programs and test cases that use TensorFlow 2's names in graphs: control dependencies, groups,
name scopes, gradient tapes, static values. TensorFlow runs this program, too: ``IMPORT`` stands for
``import tensorflow as tf``."""

import subprocess
import sys

_PROGRAM = """
IMPORT
import functools
import numpy as np

v1 = tf.compat.v1


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as error:
        return error
    raise AssertionError(f"{kind} not raised")


with tf.Graph().as_default(), v1.Session() as session:
    x, v = tf.constant([2.0, 3.0]), tf.Variable(3.0)
    assert isinstance(x, tf.Tensor) and isinstance(v, tf.Variable) and tf.is_tensor(x)
    assert not isinstance(x, tf.Variable) and not isinstance(v, tf.Tensor)

    # Operations wait for others.
    checked = tf.debugging.assert_less(v1.placeholder_with_default(x, [2]), 3.0)
    with tf.control_dependencies([checked]):
        after = tf.identity(x)
    with tf.control_dependencies([v.assign(-1.0)]):
        changed = [v * 2.0, v.read_value(), tf.convert_to_tensor(v)]
    both = tf.group(v.assign(4.0), [v.assign_add(1.0)], name="both")
    assert both.name == "both" and tf.no_op().type == "NoOp"
    session.run(v1.global_variables_initializer())
    found = raises(tf.errors.InvalidArgumentError, session.run, after)
    while found is not None:  # as TensorFlow's test cases look for the words
        found = found.op if isinstance(found, tf.errors.OpError) else found._original_op
    assert session.run(v) == 3.0 and session.run(changed) == [-2.0, -1.0, -1.0]
    assert session.run(both) is None and session.run(v) in (4.0, 5.0)

    # A scope that is entered again has another name.
    names = []
    for _ in range(2):
        with tf.name_scope("outer") as outer, tf.name_scope("inner"):
            names += [outer, tf.identity(x, name="y").name, tf.Variable(1.0, name="w").name]
    assert names == ["outer/", "outer/inner/y:0", "outer/inner/w:0",
                     "outer_1/", "outer_1/inner/y:0", "outer_1/inner/w:0"], names
    with tf.name_scope("outer/"):
        assert tf.identity(x, name="z").name == "outer/z:0"

    # What is known without a run.
    given = v1.placeholder(tf.float32, [None, 3])
    default = v1.placeholder_with_default(tf.constant(2), [])
    known = [tf.get_static_value(t) for t in (x, tf.shape(x), tf.rank(given), 7)]
    assert [np.asarray(k).tolist() for k in known] == [[2.0, 3.0], [2], 2, 7]
    assert [tf.get_static_value(t) for t in (given, tf.shape(given), v, default)] == [None] * 4
    assert session.run(tf.ones([default + 1]), {default: 3}).shape == (4,)
    assert tf.convert_to_tensor(1, None, tf.float32, name="one").dtype is tf.float32


with tf.Graph().as_default(), v1.Session() as session:
    v, c = tf.Variable([[3.0, 4.0], [1.0, 2.0]]), tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(c)
        with tf.GradientTape() as tape:
            tape.watch([c])
            y = v * c * c
        first = tape.gradient(y, {"v": v, "c": [c]})
    second = outer.gradient(first["c"][0], c)
    jacobian = outer.jacobian(y, [v, c])
    batch = outer.batch_jacobian(y, v)
    assert outer.gradient(y, tf.constant(1.0)) is None
    zero = outer.gradient(y, tf.constant(1.0), unconnected_gradients="zero")
    seeded = outer.gradient(y, c, output_gradients=2.0 * tf.ones_like(y))
    session.run(v1.global_variables_initializer())
    first, second, (by_v, by_c), batch, zero, seeded = session.run(
        [first, second, jacobian, batch, zero, seeded])
    value, row = np.array([[3.0, 4.0], [1.0, 2.0]]), np.array([1.0, 2.0])
    assert np.allclose(first["v"], row * row * np.ones((2, 1)))
    assert np.allclose(first["c"][0], 2 * row * value.sum(0)) and np.allclose(seeded, [16.0, 48.0])
    assert np.allclose(second, 2 * value.sum(0)) and zero == 0.0
    diagonal = row * row * np.ones((2, 1))
    assert np.allclose(by_v, np.einsum("ij,ik,jl->ijkl", diagonal, np.eye(2), np.eye(2)))
    assert np.allclose(by_c, np.einsum("ij,jk->ijk", 2 * value * row, np.eye(2)))
    assert np.allclose(batch, np.einsum("ij,jk->ijk", diagonal, np.eye(2)))


# Modules know the variables of graphs; objects that the user's functions convert are written down.
class Holder(tf.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.still = [tf.Variable(1.0)], tf.Variable(2.0, trainable=False)


class Later:
    def __init__(self, of):
        self.of = of


tf.register_tensor_conversion_function(
    Later, lambda value, dtype=None, name=None, as_ref=False: value.of() * 2.0)
with tf.Graph().as_default(), v1.Session() as session:
    holder = Holder()
    assert len(holder.variables) == 2 and holder.trainable_variables == (holder.kept[0],)
    x = tf.constant([1.0, 2.0])
    assert session.run(tf.convert_to_tensor(Later(lambda: x + 1.0))).tolist() == [4.0, 6.0]
    assert session.run(tf.add(Later(lambda: x), x)).tolist() == [3.0, 6.0]


# Test cases have absl's assertions, and those that libraries call.
class Case(tf.test.TestCase):
    def runTest(self):
        self.assertContainsSubset([1], [1, 2])
        self.assertDictAlmostEqual({"a": 1.0}, {"a": 1.0})
        self.assertEqual(self._GetNdArray([1, 2]).tolist(), [1, 2])
        self.assertDTypeEqual([1.5], np.float64)
        pair = self.evaluate_if_both_tensors(tf.constant(1), tf.constant(2))
        self.assertEqual([int(p) for p in pair], [1, 2])
        with tf.Graph().as_default(), self.cached_session():
            self.assertEqual(self._GetNdArray(tf.constant([3.0])).tolist(), [3.0])


result = Case().run()
assert result.wasSuccessful(), result.errors + result.failures
"""


def test_names_of_tensorflow_2_in_graphs() -> None:
    program = _PROGRAM.replace("IMPORT", "import treadle as tf")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
