"""Images that TensorFlow 1 resizes: `python resized.py` writes what TensorFlow gives."""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
IMAGE = np.array([[1, 5, 2, 8], [7, 3, 9, 4], [6, 0, 2, 5]], np.float32)[None, :, :, None]
CASES = [
    (method, corners, size)
    for method, corners in (
        (0, False), (0, True), (1, False), (1, True), (3, False), (2, False), (2, True)
    )
    for size in ((2, 3), (5, 7), (6, 8), (1, 1))
]


def results(tf):
    """What `resize_images` gives in each case."""
    found = []
    with tf.Graph().as_default(), tf.Session() as session:
        for method, corners, size in CASES:
            made = tf.image.resize_images(IMAGE, size, method=method, align_corners=corners)
            found.append(session.run(made)[0, :, :, 0].round(5).tolist())
    return found


if __name__ == "__main__":
    import tensorflow.compat.v1

    FILE.write_text(json.dumps(results(tensorflow.compat.v1)) + "\n")
