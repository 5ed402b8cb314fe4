"""What TensorBoard shows of a training: numbers, images, distributions and texts, and a graph.

The program writes the events, by hand and by the callback of `fit`, and reads them back with
TensorBoard's own reader. To look at them: `tensorboard --logdir FOLDER`, with the program called as
`python tensorboard_logging.py FOLDER`.
"""

import os
import sys
import tempfile

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

import treadle as tf
from treadle.datasets import digits

EPOCHS, BATCH = 5, 64


def load():
    """The digits that treadle ships, 8 x 8 numbers in [0, 1], for training and for the test."""
    parts = digits.load_data()
    return [((images / 16)[..., np.newaxis].astype(np.float32), labels) for images, labels in parts]


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, activation="relu", input_shape=(8, 8, 1)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ])


def train_by_hand(folder, train, test):
    """Write summaries in a training loop of one's own. Returns the losses of the epochs."""
    model, optimizer = make_model(), tf.keras.optimizers.Adam(3e-3)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = tf.data.Dataset.from_tensor_slices(train).shuffle(2000, seed=1).batch(BATCH)
    writer = tf.summary.create_file_writer(os.path.join(folder, "by_hand"))
    losses = []
    with writer.as_default():
        tf.summary.text("about", f"Adam, batches of {BATCH}", step=0)
        for epoch in range(EPOCHS):
            losses.append(np.mean([train_step(*batch) for batch in batches]))
            right = tf.argmax(model(test[0]), axis=-1) == test[1].astype(np.int64)
            tf.summary.scalar("loss", losses[-1], step=epoch)
            tf.summary.scalar("accuracy", tf.reduce_mean(tf.cast(right, tf.float32)), step=epoch)
            wrong = test[0][~right.numpy()][:4]
            tf.summary.image("wrong", wrong, max_outputs=4, step=epoch)
            for variable in model.trainable_variables:
                tf.summary.histogram(variable.name, variable, step=epoch)

        tf.summary.trace_on(graph=True)
        train_step(train[0][:BATCH], train[1][:BATCH])
        tf.summary.trace_export("train_step", step=0)
    writer.flush()
    return losses


def train_by_fit(folder, train, test):
    """Let the callback write the losses and metrics of each epoch. Returns them."""
    model = make_model()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(3e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    log = tf.keras.callbacks.TensorBoard(log_dir=os.path.join(folder, "fit"), histogram_freq=1)
    return model.fit(
        *train, epochs=EPOCHS, batch_size=BATCH, validation_data=test, callbacks=[log], verbose=0
    ).history


def read(folder, tag):
    """The values of a tag in a folder of events, by their steps."""
    events = EventAccumulator(folder, size_guidance={"tensors": 0}).Reload()
    return {event.step: make_ndarray(event.tensor_proto) for event in events.Tensors(tag)}


def main(folder):
    tf.keras.utils.set_random_seed(1)
    train, test = load()
    losses = train_by_hand(folder, train, test)
    by_hand = os.path.join(folder, "by_hand")
    np.testing.assert_allclose(list(read(by_hand, "loss").values()), losses, rtol=1e-6)
    assert read(by_hand, "accuracy")[EPOCHS - 1] >= 0.9
    width, height, *images = read(by_hand, "wrong")[0]
    assert (width, height) == (b"8", b"8") and all(image[1:4] == b"PNG" for image in images)
    assert "train_step" in EventAccumulator(by_hand).Reload().Tags()["tensors"]

    history = train_by_fit(folder, train, test)
    found = read(os.path.join(folder, "fit", "validation"), "epoch_accuracy")
    np.testing.assert_allclose(list(found.values()), history["val_accuracy"], rtol=1e-6)
    print(f"losses by hand: {np.round(losses, 4)}")
    print(f"test accuracy by fit: {np.round(history['val_accuracy'], 4)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(folder)
