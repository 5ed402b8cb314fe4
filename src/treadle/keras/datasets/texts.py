"""What datasets of texts share: texts are lists of the numbers of words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from treadle.keras.datasets.files import found


def numbered(texts: Any, start_char: int | None, index_from: int) -> list[list[int]]:
    """Texts with the number of their start, and the numbers of words moved up."""
    begin = [] if start_char is None else [start_char]
    return [begin + [int(word) + index_from for word in text] for text in texts]


def shorter(maxlen: int, texts: list[Any], labels: Any) -> tuple[list[Any], list[Any]]:
    """The texts of fewer words, and their labels."""
    kept = [(text, label) for text, label in zip(texts, labels, strict=True) if len(text) < maxlen]
    return [text for text, _ in kept], [label for _, label in kept]


def limited(
    texts: list[list[int]], num_words: int | None, skip_top: int, oov_char: int | None
) -> list[list[int]]:
    """Texts with `oov_char` for rare and for frequent words, or without these."""
    end = num_words or max(max(text) for text in texts)
    if oov_char is None:
        return [[w for w in text if skip_top <= w < end] for text in texts]
    return [[w if skip_top <= w < end else oov_char for w in text] for text in texts]


def column(texts: list[list[int]]) -> Any:
    """Lists as the elements of an array."""
    return np.array(texts, dtype=object)


def word_index(path: Any, origin: str) -> dict[str, int]:
    """The numbers of words, from a JSON file."""
    with found(path, origin).open() as file:
        index: dict[str, int] = json.load(file)
    return index
