"""Images with their labels drawn on them, as summaries that TensorBoard's reader reads back.

The drawing is a function of Python in the graph; summaries are rarely written, so it may be slow.
"""

import io
import tempfile

import numpy as np
from PIL import Image, ImageDraw
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import treadle.compat.v1 as tf
from treadle.datasets import digits

SIZE = 48


def draw(image, label):
    """The image, enlarged, with the label in its upper left corner."""
    picture = Image.fromarray(np.uint8(image / 16 * 255)).resize((SIZE, SIZE)).convert("RGB")
    ImageDraw.Draw(picture).text((2, 2), str(label), fill=(255, 64, 64))
    return np.asarray(picture)


def labelled_images(images, labels, max_outputs=3, name="image"):
    """A summary of the first images with their labels."""
    def drawn(images, labels):
        found = [draw(*pair) for pair in zip(images[:max_outputs], labels[:max_outputs])]
        return np.array(found, dtype=np.uint8)

    pictures = tf.py_func(drawn, [images, labels], tf.uint8)
    pictures.set_shape([None, SIZE, SIZE, 3])
    return tf.summary.image(name, pictures, max_outputs)


def main():
    (images, labels), _ = digits.load_data()
    image, label = tf.placeholder(tf.float32, [None, 8, 8]), tf.placeholder(tf.int32, [None])
    tf.summary.image("plain", tf.expand_dims(image, -1), max_outputs=1)
    labelled_images(image, label, name="labelled")
    tf.summary.scalar("brightness", tf.reduce_mean(image))
    merged = tf.summary.merge_all()
    with tempfile.TemporaryDirectory() as folder:
        with tf.Session() as session, tf.summary.FileWriter(folder, session.graph) as writer:
            for step in range(2):
                part = slice(4 * step, 4 * step + 4)
                given = {image: images[part], label: labels[part]}
                writer.add_summary(session.run(merged, given), step)
        found = EventAccumulator(folder).Reload()
        tags = found.Tags()["images"]
        shown = found.Images("labelled/image/2")[-1]
        means = [event.value for event in found.Scalars("brightness")]
    print(tags, means)
    assert sorted(tags) == [*(f"labelled/image/{i}" for i in range(3)), "plain/image"]
    np.testing.assert_allclose(means, [images[:4].mean(), images[4:8].mean()], rtol=1e-5)
    pixels = np.asarray(Image.open(io.BytesIO(shown.encoded_image_string)))
    np.testing.assert_array_equal(pixels, draw(images[6].astype(np.float32), labels[6]))


if __name__ == "__main__":
    main()
