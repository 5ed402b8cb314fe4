"""A character-level language model: an LSTM learns a poem by heart and recites it.

The poem is "Jabberwocky" by Lewis Carroll (1871).
"""

import numpy as np

import treadle as tf

TEXT = """\
'Twas brillig, and the slithy toves
Did gyre and gimble in the wabe:
All mimsy were the borogoves,
And the mome raths outgrabe.

"Beware the Jabberwock, my son!
The jaws that bite, the claws that catch!
Beware the Jubjub bird, and shun
The frumious Bandersnatch!"

He took his vorpal sword in hand;
Long time the manxome foe he sought-
So rested he by the Tumtum tree,
And stood awhile in thought.

And, as in uffish thought he stood,
The Jabberwock, with eyes of flame,
Came whiffling through the tulgey wood,
And burbled as it came!
"""
LENGTH, BATCH, EPOCHS = 40, 32, 30

CHARACTERS = sorted(set(TEXT))
NUMBER_OF = {character: number for number, character in enumerate(CHARACTERS)}


class Poet(tf.keras.Model):
    def __init__(self, units=128):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(len(CHARACTERS), 32)
        self.lstm = tf.keras.layers.LSTM(units, return_sequences=True, return_state=True)
        self.scores = tf.keras.layers.Dense(len(CHARACTERS))

    def call(self, numbers, states=None, return_state=False, training=False):
        x = self.embedding(numbers)
        x, *states = self.lstm(x, initial_state=states, training=training)
        x = self.scores(x)
        return (x, states) if return_state else x


def make_dataset():
    """Batches of (characters, the characters that follow them), from all places in the text."""
    numbers = tf.constant([NUMBER_OF[character] for character in TEXT])
    windows = tf.data.Dataset.from_tensor_slices(numbers).window(
        LENGTH + 1, shift=1, drop_remainder=True
    )
    sequences = windows.flat_map(lambda window: window.batch(LENGTH + 1, drop_remainder=True))
    pairs = sequences.map(lambda sequence: (sequence[:-1], sequence[1:]))
    return pairs.cache().shuffle(len(TEXT), seed=1).batch(BATCH, drop_remainder=True).prefetch(1)


def recite(model, start, count):
    """The text with `count` more characters, each the likeliest one."""

    @tf.function
    def next_character(numbers, states):
        scores, states = model(numbers, states=states, return_state=True)
        return tf.argmax(scores[:, -1], axis=-1, output_type=tf.int32), states

    found = list(start)
    number, states = next_character(tf.constant([[NUMBER_OF[c] for c in start]]), None)
    for _ in range(count):
        found.append(CHARACTERS[int(number[0])])
        number, states = next_character(number[:, tf.newaxis], states)
    return "".join(found)


def main():
    tf.keras.utils.set_random_seed(1)
    model = Poet()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(5e-3, clipnorm=1.0),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    losses = model.fit(make_dataset(), epochs=EPOCHS, verbose=0).history["loss"]
    print(f"loss {losses[0]:.3f}, after {EPOCHS} epochs {losses[-1]:.3f}; by chance "
          f"{np.log(len(CHARACTERS)):.3f}")
    assert losses[-1] < 0.25

    start = TEXT[:LENGTH]
    poem = recite(model, start, len(TEXT) - LENGTH - 1)
    print(poem)
    right = np.mean([a == b for a, b in zip(poem, TEXT)])
    print(f"{100 * right:.1f} % of the characters are right")
    assert right >= 0.9


if __name__ == "__main__":
    main()
