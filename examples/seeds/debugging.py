"""Finding faults in graphs: assertions, printed tensors, and gradients that are not what they seem.

The cross-entropy of a distribution with itself is its entropy, but its gradient takes the labels
for constants. A numerical gradient shows it, and training with the entropy's own formula works.
"""

import contextlib
import io

import numpy as np

import treadle.compat.v1 as tf


def entropy_by_labels(logits):
    probabilities = tf.nn.softmax(logits)
    return tf.nn.softmax_cross_entropy_with_logits(labels=probabilities, logits=logits)


def entropy(logits, axis=-1):
    probabilities = tf.nn.softmax(logits, axis)
    distances = tf.reduce_logsumexp(logits, axis, keepdims=True) - logits
    return tf.reduce_sum(probabilities * distances, axis)


def main():
    a, b = tf.constant([[1.0], [2.0]]), tf.constant([1.0, 2.0])
    assert tf.matmul(tf.zeros([10, 2, 3]), tf.zeros([10, 3, 4])).shape == (10, 2, 4)
    try:
        tf.assert_rank(a, 1)
    except ValueError as error:
        print(str(error).splitlines()[0])
    else:
        raise AssertionError("the rank is 2")
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.assert_positive(x)]):
        root = tf.sqrt(x)
    shown = io.StringIO()
    with tf.Session() as session:
        assert session.run(root, {x: [4.0, 9.0]}).tolist() == [2.0, 3.0]
        try:
            session.run(root, {x: [4.0, -9.0]})
        except tf.errors.InvalidArgumentError as error:
            print(str(error).splitlines()[0])
        else:
            raise AssertionError("one of them is negative")
        with contextlib.redirect_stderr(shown):
            assert session.run(tf.Print(a, [a, b], "seen: ") + b).shape == (2, 2)
    assert shown.getvalue() == "seen: [[1][2]][1 2]\n"

    w = tf.get_variable("w", initializer=np.float32([0.5, 0.2, -0.3, 0.0, -1.0]))
    wrong, right = -entropy_by_labels(w), -entropy(w)
    train = tf.train.AdamOptimizer(0.02).minimize(right)
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run(
            [wrong, right], {w: np.float32([1.0, 2.0, 3.0, 0.0, 0.0])}
        ), rtol=1e-5)
        errors = [tf.test.compute_gradient_error(w, [5], y, []) for y in (wrong, right)]
        session.run(tf.global_variables_initializer())
        for _ in range(300):
            session.run(train)
        found = session.run(tf.nn.softmax(w))
    print(f"errors of the gradients {errors[0]:.3f} and {errors[1]:.5f}, weights {found.round(3)}")
    assert errors[0] > 0.02 and errors[1] < 0.001
    np.testing.assert_allclose(found, [0.2] * 5, atol=0.01)


if __name__ == "__main__":
    main()
