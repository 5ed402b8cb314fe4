"""Short news."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.keras.datasets import texts
from treadle.keras.datasets.files import arrays, found, parted, shuffled

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_LABELS = (
    "cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves "
    "ship cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin "
    "strategic-metal livestock retail ipi iron-steel rubber heat jobs lei bop zinc orange pet-chem "
    "dlr gas silver wpi hog lead"
)


def load_data(
    path: Any = "reuters.npz", num_words: int | None = None, skip_top: int = 0,
    maxlen: int | None = None, test_split: float = 0.2, seed: int = 113,
    start_char: int | None = 1, oov_char: int | None = 2, index_from: int = 3,
) -> Any:  # fmt: skip
    """11,228 news with the numbers of their subjects; the arguments are those of `imdb`.

    Args:
        path: of the archive, or its name in ``~/.keras/datasets``.
        test_split: which part is for tests.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``: arrays of lists of the numbers of words.

    Raises:
        FileNotFoundError: the file is not there.
    """
    data = arrays(found(path, _ORIGIN + "reuters.npz"))
    x, y = shuffled(seed, data["x"], data["y"])
    news, labels = texts.numbered(x, start_char, index_from), y
    if maxlen:
        news, labels = texts.shorter(maxlen, news, labels)
    news = texts.limited(news, num_words, skip_top, oov_char)
    return parted(texts.column(news), np.asarray(labels), test_split)


def get_word_index(path: Any = "reuters_word_index.json") -> dict[str, int]:
    """The numbers of words, by how frequent they are.

    Args:
        path: of the file, or its name in ``~/.keras/datasets``.

    Raises:
        FileNotFoundError: the file is not there.
    """
    return texts.word_index(path, _ORIGIN + "reuters_word_index.json")


def get_label_names() -> tuple[str, ...]:
    """The subjects, by their numbers."""
    return tuple(_LABELS.split())
