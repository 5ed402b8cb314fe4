"""Images from files: list, read, decode, resize, augment, batch and prefetch, then train on them.

The program first writes 480 JPEG files of three shapes in noise, a folder for each shape.
"""

import os
import pathlib
import tempfile

import numpy as np

import treadle as tf

CLASSES = np.array(["circle", "cross", "square"])
SIZE, BATCH, AUTOTUNE = 32, 32, tf.data.AUTOTUNE


def draw(shape, rng):
    """A uint8 image of a coloured shape, anywhere, of any size, on a noisy background."""
    height, width = rng.integers(40, 80, size=2)
    rows, columns = np.mgrid[:height, :width]
    radius = rng.uniform(0.2, 0.3) * min(height, width)
    y = np.abs(rows - rng.uniform(0.4, 0.6) * height)
    x = np.abs(columns - rng.uniform(0.4, 0.6) * width)
    inside = {
        "circle": x**2 + y**2 < radius**2,
        "cross": (np.minimum(x, y) < radius / 4) & (np.maximum(x, y) < radius),
        "square": np.maximum(x, y) < 0.85 * radius,
    }[shape]
    image = rng.uniform(0, 90, size=(height, width, 3))
    image[inside] += rng.uniform(90, 160, size=3)
    return image.astype(np.uint8)


def write_files(folder, count):
    rng = np.random.default_rng(0)
    for shape in CLASSES:
        os.makedirs(folder / shape)
        for i in range(count // len(CLASSES)):
            encoded = tf.io.encode_jpeg(draw(shape, rng), quality=90)
            tf.io.write_file(str(folder / shape / f"{i:03}.jpg"), encoded)


def get_label(path):
    """The number of the class; a file lies in the folder of its class."""
    parts = tf.strings.split(path, os.path.sep)
    return tf.argmax(parts[-2] == CLASSES)


def process_path(path):
    image = tf.io.read_file(path)
    image = tf.io.decode_jpeg(image, channels=3)
    return tf.image.resize(image, [SIZE, SIZE]) / 255.0, get_label(path)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
    image = tf.image.random_brightness(image, max_delta=0.1)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.clip_by_value(image, 0.0, 1.0), label


def make_datasets(folder):
    """Datasets of batches for training (augmented anew in every epoch) and for validation."""
    files = tf.data.Dataset.list_files(str(folder / "*/*.jpg"), shuffle=False)
    files = files.shuffle(files.cardinality(), seed=1, reshuffle_each_iteration=False)
    kept = len(files) // 5
    train = files.skip(kept).map(process_path, num_parallel_calls=AUTOTUNE).cache()
    train = train.shuffle(1000).map(augment, num_parallel_calls=AUTOTUNE)
    valid = files.take(kept).map(process_path, num_parallel_calls=AUTOTUNE).cache()
    return train.batch(BATCH).prefetch(AUTOTUNE), valid.batch(BATCH).prefetch(AUTOTUNE)


def main():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, activation="relu", input_shape=(SIZE, SIZE, 3)),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(len(CLASSES)),
    ])
    model.compile(
        optimizer=tf.keras.optimizers.Adam(2e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "shapes"
        write_files(folder, 480)
        train, valid = make_datasets(folder)
        images, labels = next(iter(train))
        assert images.shape == (BATCH, SIZE, SIZE, 3) and labels.shape == (BATCH,)
        history = model.fit(train, validation_data=valid, epochs=12, verbose=2)
    assert history.history["val_accuracy"][-1] >= 0.9


if __name__ == "__main__":
    main()
