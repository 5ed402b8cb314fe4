"""Layers and a training step of one's own: `build`, `add_weight`, `add_loss`, `train_step`.

A network of gated residual blocks learns to tell two spirals apart. Its model clips gradients by
their common norm and follows that norm with a metric, in `fit` as in any other training.
"""

import numpy as np

import treadle as tf


class Gated(tf.keras.layers.Layer):
    """`x + tanh(x a) * sigmoid(x b)`, with a penalty on what the gates let through."""

    def __init__(self, penalty=1e-3, **kwargs):
        super().__init__(**kwargs)
        self.penalty = penalty

    def build(self, input_shape):
        size = int(input_shape[-1])
        self.values = self.add_weight(
            name="values", shape=(size, size), initializer="glorot_uniform", trainable=True
        )
        self.gates = self.add_weight(
            name="gates", shape=(size, size), initializer="glorot_uniform", trainable=True
        )
        self.bias = self.add_weight(name="bias", shape=(size,), initializer="zeros")

    def call(self, x):
        gate = tf.sigmoid(tf.matmul(x, self.gates) + self.bias)
        self.add_loss(self.penalty * tf.reduce_mean(gate))
        return x + tf.tanh(x @ self.values) * gate

    def get_config(self):
        return {**super().get_config(), "penalty": self.penalty}


class Clipped(tf.keras.Model):
    """A classifier whose `train_step` scales gradients down to a common norm."""

    def __init__(self, blocks, width, largest_norm=1.0):
        super().__init__()
        self.widen = tf.keras.layers.Dense(width)
        self.blocks = [Gated(name=f"block{i}") for i in range(blocks)]
        self.scores = tf.keras.layers.Dense(1, activation="sigmoid")
        self.largest_norm = largest_norm
        self.norm = tf.keras.metrics.Mean(name="norm")

    def call(self, x):
        x = self.widen(x)
        for block in self.blocks:
            x = block(x)
        return self.scores(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=predicted)
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients, norm = tf.clip_by_global_norm(gradients, self.largest_norm)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.norm.update_state(norm)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            elif metric.name != "norm":
                metric.update_state(y, predicted)
        return {metric.name: metric.result() for metric in self.metrics}


def spirals(count, seed):
    """Points on two interleaved spirals, and which of the two they are on."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size=(count, 1)).astype(np.float32)
    turn = rng.uniform(0.5, 3.0, size=(count, 1)) * np.pi
    angle = turn + np.pi * labels
    points = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) * turn / 3
    return (points + rng.normal(scale=0.05, size=(count, 2))).astype(np.float32), labels


def main():
    tf.keras.utils.set_random_seed(2)
    model = Clipped(blocks=4, width=24)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(5e-3),
        loss=tf.keras.losses.BinaryCrossentropy(),
        metrics=[tf.keras.metrics.BinaryAccuracy(name="accuracy")],
    )
    x, y = spirals(2000, seed=0)
    history = model.fit(x, y, epochs=40, batch_size=50, verbose=0).history
    print(f"norm of the gradients: {history['norm'][0]:.3f}, then {history['norm'][-1]:.3f}")

    x_test, y_test = spirals(500, seed=1)
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)[:2]
    print(f"test loss {loss:.4f}, accuracy {accuracy:.4f}")
    assert accuracy >= 0.97

    gates = [block for block in model.blocks if isinstance(block, Gated)]
    assert len(gates) == 4 and len(model.losses) == 4  # one penalty from each block's last call
    assert all(len(block.trainable_weights) == 3 for block in gates)

    copy = Gated.from_config(gates[0].get_config())
    copy.build((None, 24))
    copy.set_weights(gates[0].get_weights())
    sample = tf.random.normal([8, 24])
    np.testing.assert_array_equal(copy(sample), gates[0](sample))


if __name__ == "__main__":
    main()
