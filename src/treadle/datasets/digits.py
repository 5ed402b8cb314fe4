"""The UCI/scikit-learn handwritten digits: 1,797 images of 8x8 pixels (see LICENSE-digits.txt)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FILE = Path(__file__).with_name("digits.npz")
_TEST_IMAGES = 360

Part = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def load_data() -> tuple[Part, Part]:
    """Return `(x_train, y_train), (x_test, y_test)`.

    Images are uint8 arrays of shape (n, 8, 8) with values 0..16, labels uint8 arrays of shape
    (n,) with values 0..9; 1,437 images are for training and 360 for testing. The images were
    shuffled once when the file was made, so the split is the same everywhere.
    """
    with np.load(_FILE) as data:
        # The file has pixel after pixel of all images, which compresses best.
        images, labels = np.ascontiguousarray(data["images"]), data["labels"]
    cut = len(images) - _TEST_IMAGES
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])
