"""A Keras model in a graph of TensorFlow 1: called with placeholders, trained by a session.

The model's variables are shared: what the session trains is what `model.predict` uses.
"""

import numpy as np

import treadle as tf
from treadle.datasets import digits

v1 = tf.compat.v1
EPOCHS, BATCH = 6, 50


def main():
    v1.disable_eager_execution()  # or: import treadle.compat.v1 as tf
    tf.keras.utils.set_random_seed(1)
    (images, labels), (test_images, test_labels) = digits.load_data()
    images, test_images = (np.float32(x)[..., None] / 16 for x in (images, test_images))
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])

    x = v1.placeholder(name="x", shape=[None, 8, 8, 1], dtype=tf.float32)
    y = v1.placeholder(name="y", shape=[None], dtype=tf.int32)
    predicted = model(x)
    loss = tf.keras.losses.sparse_categorical_crossentropy(y_true=y, y_pred=predicted)
    loss = tf.reduce_mean(loss)
    hits = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(predicted, 1, tf.int32), y), tf.float32))
    train = v1.train.AdamOptimizer(learning_rate=0.01).minimize(loss)
    assert len(v1.trainable_variables()) == len(model.trainable_variables) == 6

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        random, losses = np.random.default_rng(0), []
        for _ in range(EPOCHS * len(images) // BATCH):
            chosen = random.integers(0, len(images), BATCH)
            given = {x: images[chosen], y: labels[chosen]}
            losses.append(session.run([train, loss], feed_dict=given)[1])
        accuracy = session.run(hits, {x: test_images, y: test_labels})
    print(f"losses {losses[0]:.3f} ... {losses[-1]:.3f}, accuracy {accuracy:.3f}")
    assert accuracy > 0.9
    metric = tf.keras.metrics.SparseCategoricalAccuracy()
    metric.update_state(test_labels, model.predict(test_images, verbose=0))
    np.testing.assert_allclose(metric.result(), accuracy, atol=1e-6)


if __name__ == "__main__":
    main()
