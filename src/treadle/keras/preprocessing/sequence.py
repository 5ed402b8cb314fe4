"""``td.keras.preprocessing.sequence``: sequences of one length, windows and pairs of words."""

# Keras's programs seed the global generators of NumPy and Python, which draw here as they do there.
# ruff: noqa: NPY002
from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from treadle.keras.utils import PyDataset, pad_sequences
from treadle.names import missing_in


class TimeseriesGenerator(PyDataset):
    """Batches of windows of data that came one after the other, and what follows each.

    Args:
        data: indexed by time.
        targets: as many as data.
        length: of the windows.
        sampling_rate: every so many are in a window.
        stride: between the windows.
        start_index, end_index: of the data that are used.
        shuffle: draw the windows.
        reverse: the latest first.
        batch_size: windows in a batch.

    Raises:
        ValueError: targets are not as many, or nothing is left for a window.
    """

    def __init__(
        self, data: Any, targets: Any, length: int, sampling_rate: int = 1, stride: int = 1,
        start_index: int = 0, end_index: int | None = None, shuffle: bool = False,
        reverse: bool = False, batch_size: int = 128, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if len(data) != len(targets):
            raise ValueError(
                f"Data and targets have to be of same length. Data length is {len(data)} while "
                f"target length is {len(targets)}"
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride = sampling_rate, stride
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is "
                "disallowed, as no part of the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        span = self.batch_size * self.stride
        return (self.end_index - self.start_index + span) // span

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        span, end = self.batch_size * self.stride, self.end_index + 1
        if self.shuffle:
            rows = np.random.randint(self.start_index, end, size=self.batch_size)
        else:
            first = self.start_index + span * index
            rows = np.arange(first, min(first + span, end), self.stride)
        windows = [self.data[row - self.length : row : self.sampling_rate] for row in rows]
        samples, targets = np.array(windows), np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1] if self.reverse else samples), targets

    def get_config(self) -> dict[str, Any]:
        """The settings; data and targets as JSON.

        Raises:
            TypeError: JSON has no such data.
        """
        settings = (
            "length", "sampling_rate", "stride", "start_index", "end_index", "shuffle", "reverse",
            "batch_size",
        )  # fmt: skip
        arrays = {"data": _json(self.data, "Data"), "targets": _json(self.targets, "Targets")}
        return arrays | {name: getattr(self, name) for name in settings}

    def to_json(self, **kwargs: Any) -> str:
        """The settings as JSON; `kwargs` are those of ``json.dumps``."""
        described = {"class_name": type(self).__name__, "config": self.get_config()}
        return json.dumps(described, **kwargs)


def _json(values: Any, what: str) -> str:
    try:
        return json.dumps(values.tolist() if isinstance(values, np.ndarray) else values)
    except TypeError as error:
        raise TypeError(f"{what} not JSON Serializable: {values}") from error


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> Any:
    """For the ranks of words by frequency, how likely `skipgrams` takes them (word2vec's formula,
    with frequencies by Zipf's law).

    Args:
        size: the number of words.
        sampling_factor: of the formula.
    """
    rank = np.arange(size)
    rank[0] = 1
    euler = 0.577
    inverse = rank * (np.log(rank) + euler) + 0.5 - 1.0 / (12.0 * rank)
    scaled = sampling_factor * inverse
    return np.minimum(1.0, scaled / np.sqrt(scaled))


def skipgrams(
    sequence: Any, vocabulary_size: int, window_size: int = 4, negative_samples: float = 1.0,
    shuffle: bool = True, categorical: bool = False, sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Pairs of words that are near one another, and drawn pairs.

    Args:
        sequence: numbers of words; 0 is none.
        vocabulary_size: the largest number and 1.
        window_size: how far words may be from one another.
        negative_samples: drawn pairs for each true one.
        shuffle: the pairs come in any order.
        categorical: labels are [0, 1] and [1, 0] instead of 1 and 0.
        sampling_table: how likely words are taken (`make_sampling_table`).
        seed: of the order.

    Returns:
        The pairs and their labels.
    """
    couples: list[Any] = []
    for at, word in enumerate(sequence):
        if not word or sampling_table is not None and sampling_table[word] < random.random():
            continue
        near = range(max(0, at - window_size), min(len(sequence), at + window_size + 1))
        couples += [[word, sequence[j]] for j in near if j != at and sequence[j]]
    true, false = ([0, 1], [1, 0]) if categorical else (1, 0)
    labels: list[Any] = [true] * len(couples)
    if negative_samples > 0:
        words = [couple[0] for couple in couples]
        random.shuffle(words)
        count = int(len(labels) * negative_samples)
        couples += [
            [words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)
        ]
        labels += [false] * count
    if shuffle:
        seed = random.randint(0, 10**7) if seed is None else seed
        for column in (couples, labels):
            random.seed(seed)
            random.shuffle(column)
    return couples, labels


__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]

__getattr__ = missing_in(__name__)
