"""A small transformer learns to sort: it reads eight digits and writes them in order.

The sequence is the digits, a separator and the sorted digits; a position sees those before it
(a causal mask), and losses count where a digit is to be written.
"""

import numpy as np

import treadle as tf
from treadle.keras import layers

COUNT, SEPARATOR, WIDTH, HEADS = 8, 10, 48, 4
LENGTH = 2 * COUNT  # the last sorted digit is written, never read


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(num_heads=HEADS, key_dim=WIDTH // HEADS)
        self.forward = tf.keras.Sequential([
            layers.Dense(4 * WIDTH, activation="gelu"),
            layers.Dense(WIDTH),
        ])
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)

    def call(self, x):
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, use_causal_mask=True)
        return x + self.forward(self.norm2(x))


class Transformer(tf.keras.Model):
    def __init__(self, blocks):
        super().__init__()
        self.tokens = layers.Embedding(SEPARATOR + 1, WIDTH)
        self.positions = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block() for _ in range(blocks)]
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.scores = layers.Dense(10)

    def call(self, tokens):
        x = self.tokens(tokens) + self.positions(tf.range(tf.shape(tokens)[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A rate that grows for a number of steps and then falls with their square root."""

    def __init__(self, largest, steps):
        self.largest, self.steps = largest, steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        return self.largest * tf.minimum(step / self.steps, tf.math.rsqrt(step / self.steps))


def make_example(_):
    """(tokens, the token after each, whether that one is to be written)."""
    digits = tf.random.uniform([COUNT], 0, 10, dtype=tf.int32)
    tokens = tf.concat([digits, [SEPARATOR], tf.sort(digits)], axis=0)
    counts = tf.cast(tf.range(LENGTH) >= COUNT, tf.float32)
    return tokens[:-1], tf.minimum(tokens[1:], 9), counts


@tf.function
def sort(model, digits):
    """What the model writes after the digits and the separator, the likeliest token each time."""
    batch = tf.shape(digits)[0]
    tokens = tf.concat([digits, tf.fill([batch, 1], SEPARATOR)], axis=1)
    for _ in tf.range(COUNT):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(tokens, tf.TensorShape([None, None]))]
        )
        scores = model(tokens)[:, -1]
        token = tf.argmax(scores, axis=-1, output_type=tf.int32)
        tokens = tf.concat([tokens, token[:, tf.newaxis]], axis=1)
    return tokens[:, COUNT + 1 :]


def main():
    tf.keras.utils.set_random_seed(0)
    model = Transformer(blocks=2)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(WarmUp(3e-3, 100), beta_2=0.98),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["accuracy"],
    )
    examples = tf.data.Dataset.range(64 * 400).map(make_example).batch(64).prefetch(2)
    history = model.fit(examples, epochs=1, verbose=2).history
    print(f"loss {history['loss'][-1]:.3f}")

    digits = np.random.default_rng(0).integers(0, 10, size=(200, COUNT)).astype(np.int32)
    written = sort(model, tf.constant(digits)).numpy()
    right = np.mean(np.all(written == np.sort(digits, axis=1), axis=1))
    print(digits[0], "->", written[0])
    print(f"{100 * right:.1f} % of the sequences are sorted")
    assert right >= 0.9


if __name__ == "__main__":
    main()
