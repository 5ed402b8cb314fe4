"""The first eager release learns handwritten digits: layers in a class, and implicit gradients."""

import numpy as np

import treadle.compat.v1 as tf
import treadle.compat.v1.contrib.eager as tfe
from treadle.datasets import digits

STEPS, BATCH = 100, 50


class Model:
    """Two convolutions and two dense layers."""

    def __init__(self, data_format):
        self.shape = [-1, 1, 8, 8] if data_format == "channels_first" else [-1, 8, 8, 1]
        about = {"padding": "same", "data_format": data_format}
        self.conv1 = tf.layers.Conv2D(8, 3, activation=tf.nn.relu, **about)
        self.conv2 = tf.layers.Conv2D(16, 3, activation=tf.nn.relu, **about)
        self.pool = tf.layers.MaxPooling2D((2, 2), (2, 2), **about)
        self.dense1 = tf.layers.Dense(64, activation=tf.nn.relu)
        self.dropout = tf.layers.Dropout(0.5)
        self.dense2 = tf.layers.Dense(10)

    def predict(self, images, training=False):
        x = tf.reshape(images, self.shape)
        x = self.pool(self.conv1(x))
        x = self.pool(self.conv2(x))
        x = self.dense1(tf.layers.flatten(x))
        return self.dense2(self.dropout(x, training=training))


def loss(model, images, targets, training=False):
    return tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(
            logits=model.predict(images, training), labels=targets
        )
    )


def main():
    tfe.enable_eager_execution()
    tf.set_random_seed(1)
    (images, labels), (test_images, test_labels) = (
        (np.float32(x) / 16, np.int64(y)) for x, y in digits.load_data()
    )
    targets, random = np.eye(10, dtype=np.float32)[labels], np.random.default_rng(0)
    device = "gpu:0" if tfe.num_gpus() else "cpu:0"
    model = Model("channels_first" if tfe.num_gpus() else "channels_last")
    optimizer = tf.train.AdamOptimizer(learning_rate=0.01)
    gradients = tfe.implicit_gradients(loss)
    for step in range(STEPS):
        with tf.device(device):
            batch = random.integers(0, len(images), BATCH)
            optimizer.apply_gradients(gradients(model, images[batch], targets[batch], True))
            if step % 50 == 0:
                print(f"step {step}: loss {loss(model, images, targets).numpy():.4f}")
    scores = model.predict(test_images).numpy()
    accuracy = np.mean(scores.argmax(axis=1) == test_labels)
    print(f"accuracy on images that were not trained with: {accuracy:.3f}")
    assert accuracy > 0.9


if __name__ == "__main__":
    main()
