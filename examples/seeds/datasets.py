"""Pipelines of `tf.data`: made of arrays, mapped, batched, shuffled, iterated, and trained with."""

import numpy as np

import treadle as tf
from treadle.datasets import digits


def from_pairs():
    years = tf.constant([2013, 2014, 2015, 2016, 2017])
    prices = np.array([12000, 14000, 15000, 16500, 17500])
    dataset = tf.data.Dataset.from_tensor_slices((years, prices))
    assert [(int(x), int(y)) for x, y in dataset][1:3] == [(2014, 14000), (2015, 15000)]
    iterator = iter(dataset)
    first, second = next(iterator), next(iterator)
    assert int(first[0]) == 2013 and int(second[1]) == 14000


def rotated(images, labels):
    """Images are turned by 90 degrees, then put into batches."""
    dataset = tf.data.Dataset.from_tensor_slices((images[..., None], labels))
    turned = dataset.map(lambda image, label: (tf.image.rot90(image), label))
    batches = list(turned.batch(4).take(2))
    assert batches[0][0].shape == (4, 8, 8, 1) and batches[0][1].shape == (4,)
    np.testing.assert_array_equal(batches[1][0][0, :, :, 0], np.rot90(images[4]))
    total = dataset.reduce(np.int64(0), lambda count, pair: count + 1)
    assert int(total) == len(images)


def shuffled():
    """How far an element may come forward: as many places as the buffer has."""
    numbers = tf.data.Dataset.range(100)
    assert [int(x) for x in numbers.shuffle(1)] == list(range(100))
    few, many = ([int(x) for x in numbers.shuffle(n, seed=1)] for n in (5, 100))
    assert sorted(few) == sorted(many) == list(range(100))
    assert all(x - place < 5 for place, x in enumerate(few))
    assert max(x - place for place, x in enumerate(many)) > 50
    orders = [[int(x) for x in numbers.shuffle(100)] for _ in range(2)]
    assert orders[0] != orders[1]


def trained(images, labels):
    data = (images / 16).astype(np.float32).reshape(-1, 64), labels.astype(np.int64)
    dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(2000).batch(32).prefetch(1)
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(10),
    ])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    model.fit(dataset, epochs=5, verbose=0)
    _, accuracy = model.evaluate(dataset, verbose=0)
    print(f"accuracy {accuracy:.3f}")
    assert accuracy > 0.95


def main():
    tf.keras.utils.set_random_seed(1)
    (images, labels), _ = digits.load_data()
    from_pairs()
    rotated(images, labels)
    shuffled()
    trained(images, labels)


if __name__ == "__main__":
    main()
