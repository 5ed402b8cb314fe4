"""Reviews of films."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.keras.datasets import texts
from treadle.keras.datasets.files import arrays, found

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def load_data(
    path: Any = "imdb.npz", num_words: int | None = None, skip_top: int = 0,
    maxlen: int | None = None, seed: int = 113, start_char: int | None = 1,
    oov_char: int | None = 2, index_from: int = 3,
) -> Any:  # fmt: skip
    """25,000 reviews for training and as many for tests, with 1 for good ones and 0 for bad ones.

    Args:
        path: of the archive, or its name in ``~/.keras/datasets``.
        num_words: the most frequent words that are kept; all when omitted.
        skip_top: so many of the most frequent words are not.
        maxlen: reviews of as many words are left out.
        seed: of the order.
        start_char: the number in front of each review.
        oov_char: the number in place of words that are not kept; None leaves them out.
        index_from: added to the numbers of words.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``: arrays of lists of the numbers of words.

    Raises:
        FileNotFoundError: the file is not there.
        ValueError: no review is shorter than `maxlen`.
    """
    data = arrays(found(path, _ORIGIN + "imdb.npz"))
    generator = np.random.RandomState(seed)
    parts = []
    for of in ("train", "test"):
        order = np.arange(len(data[f"x_{of}"]))
        generator.shuffle(order)
        reviews = texts.numbered(data[f"x_{of}"][order], start_char, index_from)
        labels = data[f"y_{of}"][order]
        if maxlen:
            reviews, labels = texts.shorter(maxlen, reviews, labels)
            if not reviews:
                raise ValueError(
                    f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was "
                    "kept. Increase maxlen."
                )
        parts.append((reviews, np.asarray(labels)))
    count = len(parts[0][0])
    reviews = texts.limited(parts[0][0] + parts[1][0], num_words, skip_top, oov_char)
    train, test = texts.column(reviews[:count]), texts.column(reviews[count:])
    return (train, parts[0][1]), (test, parts[1][1])


def get_word_index(path: Any = "imdb_word_index.json") -> dict[str, int]:
    """The numbers of words, by how frequent they are.

    Args:
        path: of the file, or its name in ``~/.keras/datasets``.

    Raises:
        FileNotFoundError: the file is not there.
    """
    return texts.word_index(path, _ORIGIN + "imdb_word_index.json")
