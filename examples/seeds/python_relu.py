"""An operation in Python with a gradient of its own: ReLU by `py_func`, checked numerically."""

import uuid

import numpy as np

import treadle.compat.v1 as tf


def relu(x):
    """ReLU in NumPy; its gradient, in NumPy too, is registered under a name of its own."""
    name = f"ReluGradient_{uuid.uuid4()}"

    @tf.RegisterGradient(name)
    def gradient(op, slope):
        passes = tf.py_func(lambda v: np.float32(v > 0), [op.inputs[0]], tf.float32)
        return slope * passes

    with tf.get_default_graph().gradient_override_map({"PyFunc": name}):
        return tf.py_func(lambda v: np.maximum(v, 0.0), [x], tf.float32)


def main():
    x = tf.constant([-2.0, -0.5, 0.5, 3.0])
    y = relu(x)
    (slope,) = tf.gradients(y, x)
    with tf.Session() as session:
        values, slopes = session.run([y, slope])
        assert values.tolist() == [0.0, 0.0, 0.5, 3.0] and slopes.tolist() == [0.0, 0.0, 1.0, 1.0]
        z = tf.random_normal([10])
        error = tf.test.compute_gradient_error(z, [10], relu(z * z), [10])
    print(f"numerical and registered gradient differ by {error:.2g}")
    assert error < 0.01


if __name__ == "__main__":
    main()
