"""What a session ran is a function's call: the same model in TensorFlow 1 and 2."""

import numpy as np

import treadle as tf


def model(x, weights):
    return tf.sigmoid(tf.matmul(x, weights))


def by_session(x, y, start):
    """TensorFlow 1: the graph is made, then runs are fed."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        inputs = v1.placeholder(tf.float32, [None, 2])
        targets = v1.placeholder(tf.float32, [None, 1])
        weights = v1.get_variable("w", initializer=start)
        loss = v1.reduce_mean(v1.square(v1.sigmoid(v1.matmul(inputs, weights)) - targets))
        train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
        session.run(v1.global_variables_initializer())
        given = {inputs: x, targets: y}
        losses = [session.run([train, loss], feed_dict=given)[1] for _ in range(20)]
        return losses, session.run(weights)


def by_function(x, y, start):
    """TensorFlow 2: the graph is that of a function, and variables are objects of Python."""
    weights = tf.Variable(start)
    optimizer = tf.keras.optimizers.SGD(1.0)

    @tf.function
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, weights) - targets))
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    return [float(step(x, y)) for _ in range(20)], weights.numpy()


def by_keras(x, y, start):
    """Keras: the loop is the library's, and the data a pipeline."""
    network = tf.keras.Sequential([
        tf.keras.layers.Dense(1, activation="sigmoid", use_bias=False)
    ])
    network.build([None, 2])
    network.set_weights([start])
    network.compile(tf.keras.optimizers.SGD(1.0), "mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(len(x))
    history = network.fit(data, epochs=20, verbose=0)
    return history.history["loss"], network.get_weights()[0]


@tf.custom_gradient
def clipped(x):
    """x, whose gradient is at most 1."""
    return x, lambda slope: tf.clip_by_value(slope, -1.0, 1.0)


def main():
    random = np.random.default_rng(0)
    x = random.normal(size=(50, 2)).astype(np.float32)
    y = (x[:, :1] > x[:, 1:]).astype(np.float32)
    start = np.zeros((2, 1), np.float32)
    ways = [way(x, y, start) for way in (by_session, by_function, by_keras)]
    for losses, weights in ways[1:]:
        np.testing.assert_allclose(losses, ways[0][0], rtol=1e-4)
        np.testing.assert_allclose(weights, ways[0][1], rtol=1e-4, atol=1e-5)
    print(f"losses {ways[0][0][0]:.4f} ... {ways[0][0][-1]:.4f}, three times the same")
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = clipped(v) * 5.0
    assert float(tape.gradient(z, v)) == 1.0


if __name__ == "__main__":
    main()
