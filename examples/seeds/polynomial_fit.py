"""A parabola is fitted to samples that are fed: placeholders, a loss, Adam, a session."""

import numpy as np

import treadle.compat.v1 as tf

STEPS = 1000


def parabola(x, weights):
    """The values of w0 x^2 + w1 x + w2, for a vector of x."""
    powers = tf.stack([tf.square(x), x, tf.ones_like(x)], axis=1)
    return tf.squeeze(tf.matmul(powers, weights), axis=1)


def samples(random):
    """Points of the curve that is looked for, 5 x^2 + 3."""
    x = random.uniform(-10.0, 10.0, size=100)
    return x, 5 * np.square(x) + 3


def main():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    weights = tf.get_variable("w", shape=[3, 1])
    loss = tf.nn.l2_loss(parabola(x, weights) - y) + 0.1 * tf.nn.l2_loss(weights)
    train = tf.train.AdamOptimizer(0.1).minimize(loss)

    random = np.random.RandomState(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(STEPS):
            given = dict(zip((x, y), samples(random)))
            losses.append(session.run([train, loss], given)[1])
        found = session.run(weights)[:, 0]
    print(f"losses {losses[0]:.0f} ... {losses[-1]:.2f}, weights {found.round(3).tolist()}")
    assert losses[-1] < losses[0] / 1000
    np.testing.assert_allclose(found[:2], [5, 0], atol=0.1)


if __name__ == "__main__":
    main()
