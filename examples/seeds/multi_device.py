"""`make_parallel`: a batch is split over devices; the gradients are computed where its parts are.

Here the devices are names: where a machine has no GPU, its processor does their work.
"""

import numpy as np

import treadle.compat.v1 as tf

DEVICES = 2


def make_parallel(fn, count, **batches):
    """What `fn` gives for the parts of the batches, joined; all parts use the same variables."""
    parts = {name: tf.split(batch, count) for name, batch in batches.items()}
    results = []
    for i in range(count):
        device = tf.DeviceSpec(device_type="GPU", device_index=i)
        scope = tf.variable_scope(tf.get_variable_scope(), reuse=i > 0)
        with tf.device(device), scope:
            results.append(fn(**{name: part[i] for name, part in parts.items()}))
    return tf.concat(results, axis=0)


def loss_of(x, y):
    weights = tf.get_variable("w", shape=[3, 1], initializer=tf.zeros_initializer())
    powers = tf.stack([tf.square(x), x, tf.ones_like(x)], axis=1)
    return tf.square(tf.squeeze(tf.matmul(powers, weights), axis=1) - y)


def fitted(count):
    """The losses and weights of a training whose batches are split into `count` parts."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [100]), tf.placeholder(tf.float32, [100])
        loss = tf.reduce_mean(make_parallel(loss_of, count, x=x, y=y))
        train = tf.train.AdamOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
        session.run(tf.global_variables_initializer())
        random, losses = np.random.RandomState(0), []
        for _ in range(300):
            points = random.uniform(-3.0, 3.0, size=100)
            given = {x: points, y: 5 * np.square(points) + 3}
            losses.append(session.run([train, loss], given)[1])
        (weights,) = session.run(tf.contrib.framework.get_variables_by_name("w"))
    return losses, weights[:, 0]


def main():
    with tf.Session() as session:
        a, b = tf.random_uniform([1000, 100]), tf.random_uniform([1000, 100])
        joined = make_parallel(lambda a, b: a + b, DEVICES, a=a, b=b)
        devices = {op.device for op in joined.graph.get_operations() if op.type == "AddV2"}
        assert devices == {f"/device:GPU:{i}" for i in range(DEVICES)}
        np.testing.assert_allclose(*session.run([joined, a + b]))
    alone, weights = fitted(1)
    together, same = fitted(DEVICES)
    print(f"losses {together[0]:.1f} ... {together[-1]:.3f}, weights {same.round(2).tolist()}")
    np.testing.assert_allclose(together, alone, rtol=1e-3)
    np.testing.assert_allclose(same, weights, rtol=1e-3, atol=1e-4)
    assert together[-1] < together[0] / 20


if __name__ == "__main__":
    main()
