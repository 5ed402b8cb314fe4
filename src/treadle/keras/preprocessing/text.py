"""``td.keras.preprocessing.text``: words as numbers, as Keras 2 programs have it."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from treadle.names import missing_in

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    input_text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text.

    Args:
        filters: characters that end words.
        lower: in lower case.
        split: what is between words.
    """
    text = input_text.lower() if lower else input_text
    ends: dict[str, str | int | None] = dict.fromkeys(filters, split)
    text = text.translate(str.maketrans(ends))
    return [word for word in text.split(split) if word]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


def hashing_trick(
    text: str, n: int, hash_function: Any = None, filters: str = _FILTERS, lower: bool = True,
    split: str = " ", analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:  # fmt: skip
    """For each word a number in 1 ... n - 1, which others may have, too.

    Args:
        hash_function: from a word to an integer; ``"md5"`` gives the same in every process,
            Python's ``hash``, when None, does not.
        filters, lower, split: of `text_to_word_sequence`.
        analyzer: gives the words instead.
    """
    found = _md5 if hash_function == "md5" else hash_function or hash
    words = analyzer(text) if analyzer else text_to_word_sequence(text, filters, lower, split)
    return [found(word) % (n - 1) + 1 for word in words]


def one_hot(
    input_text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ",
    analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:  # fmt: skip
    """`hashing_trick` with Python's ``hash``."""
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


class Tokenizer:
    """Numbers the words of texts, the most frequent first, from 1.

    Args:
        num_words: only numbers below it are used.
        filters, lower, split: of `text_to_word_sequence`.
        char_level: every character is a word.
        oov_token: stands for words that are not known, and is number 1.
        analyzer: gives the words of a text instead.
        document_count: of the texts that were counted before.
    """

    def __init__(
        self, num_words: int | None = None, filters: str = _FILTERS, lower: bool = True,
        split: str = " ", char_level: bool = False, oov_token: str | None = None,
        analyzer: Callable[[str], Iterable[str]] | None = None, document_count: int = 0,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if "nb_words" in kwargs:
            warnings.warn(
                "The `nb_words` argument in `Tokenizer` has been renamed `num_words`.",
                stacklevel=2,
            )
            num_words = kwargs.pop("nb_words")
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.analyzer = char_level, oov_token, analyzer
        self.document_count = document_count
        self.word_counts: dict[str, int] = OrderedDict()
        self.word_docs: dict[str, int] = defaultdict(int)
        self.index_docs: dict[int, int] = defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Any:
        """The words of a text, or of a list of them."""
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return text
            return [word.lower() for word in text] if isinstance(text, list) else text.lower()
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, or of lists of words."""
        for text in texts:
            self.document_count += 1
            words = list(self._words(text))
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        known = ordered if self.oov_token is None else [self.oov_token, *ordered]
        self.word_index = {word: number for number, word in enumerate(known, 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Any) -> None:
        """Count in how many lists numbers are, for ``sequences_to_matrix(mode="tfidf")``."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def _kept(self, items: Iterable[Any], known: dict[Any, Any], by_number: bool) -> Iterator[Any]:
        """What is known of the items, or what stands for the others."""
        other = self.word_index.get(self.oov_token)  # type: ignore[arg-type]
        unknown = self.oov_token if by_number else other
        for item in items:
            found = known.get(item)
            number: Any = item if by_number else found
            if found is None:
                if self.oov_token is not None:
                    yield unknown
            elif not self.num_words or number < self.num_words:
                yield found
            elif other is not None:
                yield unknown

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the words of each text; unknown ones are left out, or `oov_token`."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """`texts_to_sequences`, one by one."""
        for text in texts:
            yield list(self._kept(self._words(text), self.word_index, by_number=False))

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """The words of each list of numbers, with blanks between them."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable[Iterable[int]]) -> Iterator[str]:
        """`sequences_to_texts`, one by one."""
        for sequence in sequences:
            yield " ".join(self._kept(sequence, self.index_word, by_number=True))

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> Any:
        """A row of `sequences_to_matrix` for each text."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Any, mode: str = "binary") -> Any:
        """A row for each list of numbers, with a column for each number.

        Args:
            mode: what is in it: ``"binary"`` 1 where the number is there, ``"count"`` how often,
                ``"freq"`` as a part of the list, ``"tfidf"`` weighted by how many texts have it.

        Raises:
            ValueError: no texts were counted, or there is no such mode.
        """
        size = self.num_words or (len(self.word_index) + 1 if self.word_index else 0)
        if not size:
            raise ValueError(
                "Specify a dimension (`num_words` argument), or fit on some text data first."
            )
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"Unknown vectorization mode: {mode}")
        matrix = np.zeros((len(sequences), size))
        for row, sequence in zip(matrix, sequences, strict=True):
            for number, count in Counter(n for n in sequence if n < size).items():
                row[number] = self._weight(mode, number, count, len(sequence))
        return matrix

    def _weight(self, mode: str, number: int, count: int, length: int) -> Any:
        if mode == "tfidf":
            # The second scheme of https://en.wikipedia.org/wiki/Tf%E2%80%93idf.
            rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
            return (1 + np.log(count)) * rarity
        return {"binary": 1, "count": count, "freq": count / length}[mode]

    def get_config(self) -> dict[str, Any]:
        """The settings and what was counted, the latter as JSON."""
        settings = (
            "num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count",
        )  # fmt: skip
        found = {name: getattr(self, name) for name in settings}
        return found | {name: json.dumps(getattr(self, name)) for name in _COUNTED}

    def to_json(self, **kwargs: Any) -> str:
        """What `tokenizer_from_json` takes; `kwargs` are those of ``json.dumps``."""
        return json.dumps({"class_name": "Tokenizer", "config": self.get_config()}, **kwargs)


_COUNTED = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The `Tokenizer` that `Tokenizer.to_json` described."""
    config = json.loads(json_string)["config"]
    counted = {name: json.loads(config.pop(name)) for name in _COUNTED}
    tokenizer = Tokenizer(**config)
    for name, values in counted.items():
        numbered = name.startswith("index")
        setattr(tokenizer, name, {int(k): v for k, v in values.items()} if numbered else values)
    return tokenizer


__all__ = [
    "Tokenizer", "hashing_trick", "one_hot", "text_to_word_sequence", "tokenizer_from_json",
]  # fmt: skip

__getattr__ = missing_in(__name__)
