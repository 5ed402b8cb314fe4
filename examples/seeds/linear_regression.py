"""Linear regression by gradient descent finds what the closed form finds.

The closed form is scikit-learn's where that is installed, and NumPy's least squares elsewhere.
"""

import numpy as np

import treadle.compat.v1 as tf

WEIGHTS, BIAS = np.array([[1.0], [-2.0], [3.0], [0.5]]), 0.7


def closed_form(x, y):
    """The weights and the bias that fit best."""
    try:
        from sklearn.linear_model import LinearRegression
    except ImportError:
        found, *_ = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)
        return found[:-1], found[-1]
    known = LinearRegression().fit(x, y)
    return known.coef_.T, known.intercept_


def main():
    random = np.random.RandomState(0)
    x = random.rand(200, 4).astype(np.float32)
    y = (x @ WEIGHTS + BIAS + 0.01 * random.randn(200, 1)).astype(np.float32)
    x_train, x_test, y_train, y_test = x[:160], x[160:], y[:160], y[160:]

    data = tf.placeholder(tf.float32, [None, 4])
    label = tf.placeholder(tf.float32, [None, 1])
    weight = tf.Variable(tf.random_normal([4, 1]), dtype=tf.float32)
    bias = tf.Variable(tf.ones([1]), dtype=tf.float32)
    forecast = tf.add(tf.matmul(data, weight), bias)
    loss = tf.reduce_mean(tf.square(label - forecast))
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(1000):
            session.run(train, feed_dict={data: x_train, label: y_train})
        found, offset = session.run([weight, bias])
        error = session.run(loss, feed_dict={data: x_test, label: y_test})
    known, known_offset = closed_form(x_train, y_train)
    print(f"weights {found[:, 0].round(3).tolist()}, bias {offset[0]:.3f}, test error {error:.6f}")
    np.testing.assert_allclose(found, known, atol=0.01)
    np.testing.assert_allclose(offset, known_offset, atol=0.01)
    assert error < 0.001


if __name__ == "__main__":
    main()
