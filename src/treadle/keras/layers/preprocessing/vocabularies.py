"""Tokens as numbers by a vocabulary: IntegerLookup, StringLookup and TextVectorization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import config
from treadle.keras.layers.arguments import calls
from treadle.keras.layers.base import Layer
from treadle.keras.layers.preprocessing.adapting import batches_of
from treadle.keras.layers.preprocessing.categories import (
    MODES,
    check_sparse,
    encoded,
    hashed,
    mode_name,
    of_elements,
    salt_of,
)

_LOOKUP_MODES = (*MODES, "tf_idf")
_NO_PLACE = np.iinfo(np.int64).max  # the index of a masked token in rows of counts
_UNKNOWN = -1


def _place(number: int) -> td.Tensor:
    return td.constant(number, td.int64)


class _Lookup(Layer):
    """Tokens as their places in a vocabulary.

    The vocabulary begins with the mask token (for output mode "int"), then come the places of
    tokens that it does not have.

    Args:
        max_tokens: the greatest size of the vocabulary.
        num_oov_indices: the number of places for unknown tokens; with 0 they are an error.
        mask_token: a token that stands for no token: 0, or left out of counts.
        oov_token: what unknown tokens become with `invert`.
        vocabulary: the tokens, or the path of a file with one on each line; else `adapt` finds
            them.
        idf_weights: what the tokens weigh, for "tf_idf".
        invert: from numbers to tokens.
        output_mode: "int", "one_hot", "multi_hot", "count" or "tf_idf".
        pad_to_max_tokens: rows have `max_tokens` columns, whatever the vocabulary's size is.
        salt: an int or a pair of them: hash unknown tokens by SipHash with this key.
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _kind: ClassVar[td.DType]
    _config_names: ClassVar[tuple[str, ...]] = (
        "invert", "max_tokens", "num_oov_indices", "oov_token", "mask_token", "output_mode",
        "sparse", "pad_to_max_tokens", "oov_method", "salt",
    )  # fmt: skip

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
        oov_token: Any = None, vocabulary: Any = None, idf_weights: Any = None,
        invert: bool = False, output_mode: str = "int", sparse: bool = False,
        pad_to_max_tokens: bool = False, oov_method: str = "floormod", salt: Any = None,
        vocabulary_size: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.pop("has_input_vocabulary", None)
        self._stated_size = vocabulary_size  # in configurations
        super().__init__(**kwargs)
        kind = type(self).__name__
        check_sparse(kind, sparse, output_mode)
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(f"{kind}: max_tokens must be greater than 1, got {max_tokens}")
        if pad_to_max_tokens and max_tokens is None:
            raise ValueError(f"{kind}: pad_to_max_tokens needs max_tokens")
        if num_oov_indices < 0:
            raise ValueError(f"{kind}: num_oov_indices must not be negative")
        if oov_method not in ("floormod", "farmhash"):
            raise ValueError(f'{kind}: oov_method is "floormod" or "farmhash", not {oov_method!r}')
        self.output_mode = mode_name(kind, output_mode, *_LOOKUP_MODES)
        if invert and self.output_mode != "int":
            raise ValueError(f'{kind}: invert goes with output_mode="int"')
        if (idf_weights is not None) and self.output_mode != "tf_idf":
            raise ValueError(f'{kind}: idf_weights go with output_mode="tf_idf"')
        self.max_tokens, self.num_oov_indices = max_tokens, num_oov_indices
        self.mask_token, self.oov_token = mask_token, oov_token
        self.invert, self.sparse, self.pad_to_max_tokens = invert, sparse, pad_to_max_tokens
        self.oov_method, self.salt = oov_method, salt_of(kind, salt)
        self._given = vocabulary if not isinstance(vocabulary, str | Path) else None
        self._given_weights = idf_weights
        self._fixed = vocabulary is not None
        self._tokens: list[Any] = []
        self._is_known = False  # whether there is a vocabulary, which may be empty
        self._places: dict[Any, int] = {}
        self.idf_weights: Any = None
        self.reset_state()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)
        self._build_at_init()

    # -- the vocabulary --------------------------------------------------------------------------

    @property
    def _oov_start(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    @property
    def _start(self) -> int:
        """The place of the first token."""
        return self._oov_start + self.num_oov_indices

    def vocabulary_size(self) -> int:
        """The number of places, those of unknown and masked tokens included."""
        if not self._tokens and self._stated_size is not None:
            return self._stated_size  # of a vocabulary that a file is going to give
        return self._start + len(self._tokens)

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The tokens by their places."""
        special = [self.mask_token] * self._oov_start + [self.oov_token] * self.num_oov_indices
        tokens = [self._shown(token) for token in self._tokens]
        return [*special, *tokens] if include_special_tokens else tokens

    def _token(self, value: Any) -> Any:
        """A value of an array as a token."""
        return int(value)

    def _shown(self, token: Any) -> Any:
        """A token as programs see it."""
        return token

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Take the tokens, with the special ones at the start or without them.

        Raises:
            ValueError: a token is there twice, or is a special one, or there are too many; or the
                weights are missing or as many as the tokens.
        """
        where = f'Layer "{self.name}" ({type(self).__name__})'
        if (self.output_mode == "tf_idf") != (idf_weights is not None):
            raise ValueError(f'{where}: output_mode="tf_idf" and idf_weights go together')
        if isinstance(vocabulary, str | Path):
            vocabulary = Path(vocabulary).read_text(encoding="utf-8").splitlines()
        if isinstance(vocabulary, td.Tensor):
            vocabulary = vocabulary.numpy()
        tokens = [self._token(v) for v in np.asarray(vocabulary).reshape(-1).tolist()]
        if not tokens:
            raise ValueError(f"{where}: the vocabulary is empty")
        special = [self.mask_token] * self._oov_start + [self.oov_token] * self.num_oov_indices
        found = [None if t is None else self._token(t) for t in special] == tokens[: self._start]
        own = tokens[self._start :] if found else tokens
        twice = [self._shown(t) for t, n in Counter(own).items() if n > 1]
        if twice:
            raise ValueError(f"{where}: the vocabulary has these tokens more than once: {twice}")
        reserved = [self.mask_token, *([self.oov_token] if self.invert else [])]
        for token in reserved:
            if token is not None and self._token(token) in own:
                raise ValueError(f"{where}: {token!r} is a special token; leave it out")
        if self.max_tokens is not None and self._start + len(own) > self.max_tokens:
            raise ValueError(
                f"{where}: a vocabulary of {self._start + len(own)} tokens is larger than "
                f"max_tokens={self.max_tokens}"
            )
        self._take(own)
        if idf_weights is not None:
            weights = np.asarray(idf_weights, np.float64).reshape(-1)
            if len(weights) != len(tokens):
                raise ValueError(
                    f"{where}: {len(weights)} idf_weights for {len(tokens)} tokens"
                )
            self._weigh(weights if found else np.r_[[weights.mean()] * self._start, weights])

    def _take(self, tokens: list[Any]) -> None:
        self._tokens, self._is_known = tokens, True
        self._places = {token: self._start + n for n, token in enumerate(tokens)}

    def _weigh(self, weights: Any) -> None:
        more = (self._depth - len(weights)) if self.pad_to_max_tokens else 0
        self.idf_weights = td.Variable(
            np.r_[weights, [0.0] * more].astype(config.floatx()), trainable=False
        )

    @property
    def _weights_dtype(self) -> Any:
        known = self.idf_weights
        return config.floatx() if known is None else known.dtype

    @property
    def _depth(self) -> int:
        """The number of columns of rows."""
        if self.pad_to_max_tokens and self.max_tokens is not None:
            return self.max_tokens
        return self.vocabulary_size()

    def _wants_data(self) -> bool:
        """Whether the vocabulary comes from `adapt`."""
        return not self._fixed

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Make a vocabulary of data, the most frequent token first: an array or list, or a Dataset
        of batches.

        Args:
            steps: how many batches to read; all when omitted.

        Raises:
            ValueError: the layer was given its vocabulary.
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            self.update_state(batch if batch.ndim != 1 or not _is_whole(data) else batch[:, None])
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch."""
        rows = np.asarray(data)
        rows = rows.reshape(1, -1) if rows.ndim < 2 else rows.reshape(len(rows), -1)
        self.count_rows([self._token(value) for value in row.tolist()] for row in rows)

    def count_rows(self, rows: Iterable[list[Any]]) -> None:
        """Count the tokens of examples."""
        if self._fixed:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) was given its vocabulary, so adapt() '
                "has nothing to find"
            )
        for row in rows:
            self._counts.update(row)
            self._documents.update(set(row))
            self._examples += 1

    def finalize_state(self) -> None:
        """Make the vocabulary of what the batches had."""
        if self._fixed or not self._counts:
            return
        for token in (self.mask_token, self.oov_token):
            if token is not None:
                self._counts.pop(self._token(token), None)
        ordered = sorted(self._counts, key=lambda t: (self._counts[t], t), reverse=True)
        most = None if not self.max_tokens else self.max_tokens - self._start
        self._take(ordered[:most])
        if self.output_mode == "tf_idf":
            counts = np.array([self._documents[t] for t in self._tokens])
            weights = np.log(1 + self._examples / (1 + counts))
            self._weigh(np.r_[[weights.mean()] * self._start, weights])
        self.reset_state()

    def reset_state(self) -> None:
        """Forget all batches."""
        self._counts: Counter[Any] = Counter()
        self._documents: Counter[Any] = Counter()
        self._examples = 0

    def save_own_variables(self, store: Any) -> None:
        """Put the weights of tokens into a store of a file."""
        if self.idf_weights is not None:
            store["idf_weights"] = self.idf_weights.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Take the weights of tokens from a store of a file."""
        if "idf_weights" in store:
            self.idf_weights = td.Variable(store["idf_weights"], trainable=False)

    def save_assets(self, dir_path: Any) -> None:
        """Write the vocabulary into a folder, as ``vocabulary.txt``, unless it is an argument."""
        if self._given is None:
            text = "\n".join(str(token) for token in self.get_vocabulary())
            Path(dir_path, "vocabulary.txt").write_text(text, encoding="utf-8")

    def load_assets(self, dir_path: Any) -> None:
        """Read what `save_assets` wrote."""
        if self._given is None:
            lines = Path(dir_path, "vocabulary.txt").read_text(encoding="utf-8").splitlines()
            known = self.idf_weights
            weights = None if known is None else known.numpy()[: len(lines)]  # without padding
            self.set_vocabulary(lines, weights)

    # -- looking up ------------------------------------------------------------------------------

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        return tensor

    def call(self, inputs: Any) -> Any:
        if self.invert:
            return self._tokens_of(td.cast(inputs, td.int64))
        return self.encoded(of_elements(self._places_of, inputs))

    def encoded(self, places: Any) -> Any:
        """Places in the output mode."""
        mode, counts = self.output_mode, self.output_mode == "tf_idf"
        padded = mode != "int" and self.pad_to_max_tokens
        if not (self._is_known or padded):
            # A model that is being made may have no vocabulary yet, and only asks for shapes.
            if not calls.only_shapes:
                raise RuntimeError(
                    f'Layer "{self.name}" ({type(self).__name__}) has no vocabulary yet: give one, '
                    "or call adapt() first"
                )
            if mode != "int" and self._stated_size is None:
                return self._of_any_size(places)
        if not counts:
            return encoded(places, mode, self._depth, td.int64, sparse=self.sparse)
        rows = td.cast(encoded(places, "count", self._depth, td.int64), self._weights_dtype)
        found = rows if self.idf_weights is None else rows * self.idf_weights.read_value()
        return td.sparse.from_dense(found) if self.sparse else found

    def _of_any_size(self, places: Any) -> Any:
        """What stands for rows of the output mode, whose size is not known."""
        rows = encoded(places, self.output_mode.replace("tf_idf", "count"), 1, td.int64)
        size = td.shape(td.where(td.reshape(rows, [-1]) > 0))[:1]
        kind = self._weights_dtype if self.output_mode == "tf_idf" else td.int64
        found = td.zeros(td.concat([td.shape(rows)[:-1], size], 0), kind)
        return td.sparse.from_dense(found) if self.sparse else found

    def _tokens_of(self, places: td.Tensor) -> td.Tensor:
        oov = self.mask_token if self.oov_token is None else self.oov_token
        known = td.constant([oov, *self._tokens], self._kind)
        inside = (places >= self._start) & (places < self.vocabulary_size())
        row = td.where(inside, places - self._start + 1, td.zeros_like(places))
        tokens = td.gather(known, row)
        if self.mask_token is None:
            return tokens
        return td.where(places == 0, td.constant(self.mask_token, self._kind), tokens)

    def _places_of(self, tokens: td.Tensor) -> td.Tensor:
        places = self._unmasked_places(tokens)
        if self.num_oov_indices > 1:
            if tokens.dtype.is_integer and self.oov_method != "farmhash":
                oov = td.math.floormod(tokens, self.num_oov_indices)
            else:
                oov = hashed(tokens, self.num_oov_indices, self.salt)
            places = td.where(places == _UNKNOWN, td.cast(oov, td.int64) + self._oov_start, places)
        elif self.num_oov_indices:
            places = td.where(places == _UNKNOWN, _place(self._oov_start), places)
        if self.mask_token is not None:
            masked = td.equal(tokens, td.constant(self.mask_token, self._kind))
            place = 0 if self.output_mode == "int" else _NO_PLACE
            places = td.where(masked, _place(place), places)
        if not self.num_oov_indices:
            td.debugging.assert_none_equal(
                places, _place(_UNKNOWN),
                message=f'Layer "{self.name}" ({type(self).__name__}): with num_oov_indices=0 all '
                "inputs must be in the vocabulary",
            )  # fmt: skip
        return places

    def _unmasked_places(self, tokens: td.Tensor) -> td.Tensor:
        """The places of known tokens, -1 for others."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        given = {"vocabulary": self._given, "idf_weights": self._given_weights}
        return super().get_config() | {
            name: value if value is None else np.asarray(value).tolist()
            for name, value in given.items()
        } | {"vocabulary_size": self.vocabulary_size() if self._tokens else self._stated_size}


def _is_whole(data: Any) -> bool:
    """Whether `adapt` was given all data at once, not batches of them."""
    return isinstance(data, np.ndarray | td.Tensor | td.Variable | list | tuple)


class IntegerLookup(_Lookup):
    __doc__ = _Lookup.__doc__
    _kind = td.int64

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
        oov_token: Any = -1, vocabulary: Any = None, vocabulary_dtype: Any = "int64",
        idf_weights: Any = None, invert: bool = False, output_mode: str = "int",
        sparse: bool = False, pad_to_max_tokens: bool = False, oov_method: str = "floormod",
        salt: Any = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if td.as_dtype(vocabulary_dtype) != td.int64:
            raise ValueError(f"IntegerLookup: vocabulary_dtype is int64, not {vocabulary_dtype!r}")
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert,
            output_mode, sparse, pad_to_max_tokens, oov_method, salt, name=name, **kwargs,
        )  # fmt: skip

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"vocabulary_dtype": "int64"}

    def _places_of(self, tokens: td.Tensor) -> td.Tensor:
        return super()._places_of(td.cast(tokens, td.int64))

    def _unmasked_places(self, tokens: td.Tensor) -> td.Tensor:
        if not self._tokens:
            return td.fill(td.shape(tokens), _place(_UNKNOWN))
        order = np.argsort(np.array(self._tokens, np.int64))
        known = td.constant(np.array(self._tokens, np.int64)[order])
        flat = td.reshape(tokens, [-1])
        at = td.minimum(td.searchsorted(known, flat), len(order) - 1)
        places = td.gather(td.constant(order.astype(np.int64) + self._start), at)
        chosen = td.where(td.gather(known, at) == flat, places, _place(_UNKNOWN))
        return td.reshape(chosen, td.shape(tokens))


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class StringLookup(_Lookup):
    __doc__ = _Lookup.__doc__
    _kind = td.string
    _config_names: ClassVar[tuple[str, ...]] = ("encoding",)

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
        oov_token: Any = "[UNK]", vocabulary: Any = None, idf_weights: Any = None,
        invert: bool = False, output_mode: str = "int", pad_to_max_tokens: bool = False,
        sparse: bool = False, encoding: str = "utf-8", name: str | None = None, salt: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        self.encoding = encoding
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert,
            output_mode, sparse, pad_to_max_tokens, salt=salt, name=name, **kwargs,
        )  # fmt: skip

    def _token(self, value: Any) -> bytes:
        return _as_bytes(value)

    def _shown(self, token: bytes) -> str:
        return token.decode(self.encoding)

    def places_of_bytes(self, tokens: Any) -> Any:
        """An array of the places of an array of tokens, -1 for unknown ones."""
        found = [self._places.get(_as_bytes(token), _UNKNOWN) for token in tokens.reshape(-1)]
        return np.array(found, np.int64).reshape(tokens.shape)

    def _unmasked_places(self, tokens: td.Tensor) -> td.Tensor:
        places = td.numpy_function(self.places_of_bytes, [tokens], td.int64)
        return td.ensure_shape(places, tokens.shape)


_PUNCTUATION = r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']'
_STANDARDIZED = ("lower_and_strip_punctuation", "lower", "strip_punctuation", None)


class TextVectorization(Layer):
    """Texts as the places of their words in a vocabulary.

    Args:
        max_tokens: the greatest size of the vocabulary.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation", None, or a
            function of a tensor of texts.
        split: "whitespace", "character", None (a text is one token), or a function that gives
            [batch, words], where rows are filled up with empty strings.
        ngrams: an int, for tokens of up to so many words, or a tuple of the numbers of words.
        output_mode: "int", "multi_hot", "count" or "tf_idf".
        output_sequence_length: for "int": cut or fill up each row to so many tokens; when omitted
            to the longest of the batch.
        pad_to_max_tokens: rows have `max_tokens` columns, whatever the vocabulary's size is.
        vocabulary: the tokens, or the path of a file with one on each line; else `adapt` finds
            them.
        idf_weights: what the tokens weigh, for "tf_idf".
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _config_names: ClassVar[tuple[str, ...]] = (
        "standardize", "split", "ngrams", "output_mode", "output_sequence_length", "ragged",
    )  # fmt: skip

    def __init__(
        self, max_tokens: int | None = None, standardize: Any = "lower_and_strip_punctuation",
        split: Any = "whitespace", ngrams: Any = None, output_mode: str = "int",
        output_sequence_length: int | None = None, pad_to_max_tokens: bool = False,
        vocabulary: Any = None, idf_weights: Any = None, sparse: bool = False,
        ragged: bool = False, encoding: str = "utf-8", name: str | None = None, *,
        vocabulary_size: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.pop("has_input_vocabulary", None)
        super().__init__(name=name, **kwargs)
        if not callable(standardize) and standardize not in _STANDARDIZED:
            raise ValueError(
                f"TextVectorization: standardize is one of {_STANDARDIZED} or a function, got "
                f"{standardize!r}"
            )
        if not callable(split) and split not in ("whitespace", "character", None):
            raise ValueError(
                'TextVectorization: split is "whitespace", "character", None or a function, got '
                f"{split!r}"
            )
        mode = mode_name("TextVectorization", output_mode, *_LOOKUP_MODES)
        if ragged and mode != "int":
            raise ValueError(
                "`ragged` must not be true if `output_mode` is not `'int'`. Received: "
                f"ragged={ragged} and output_mode={output_mode}"
            )
        if mode != "int" and output_sequence_length is not None:
            raise ValueError('TextVectorization: output_sequence_length goes with "int"')
        if not (ngrams is None or isinstance(ngrams, int | tuple | list)):
            raise ValueError(
                "`ngrams` must be None, an integer, or a tuple of integers. Received: "
                f"ngrams={ngrams}"
            )
        self.standardize, self.split, self.output_mode = standardize, split, mode
        self.ngrams = tuple(ngrams) if isinstance(ngrams, list) else ngrams
        self._widths: Any = tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else self.ngrams
        self.output_sequence_length, self.ragged = output_sequence_length, ragged
        self._lookup_layer = StringLookup(
            max_tokens, mask_token="", vocabulary=vocabulary, idf_weights=idf_weights,
            pad_to_max_tokens=pad_to_max_tokens, output_mode=mode, sparse=sparse,
            encoding=encoding, vocabulary_size=vocabulary_size,
        )  # fmt: skip
        self._build_at_init()

    # -- the vocabulary --------------------------------------------------------------------------

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """The tokens by their places."""
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def vocabulary_size(self) -> int:
        """The number of places."""
        return self._lookup_layer.vocabulary_size()

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """See `StringLookup.set_vocabulary`."""
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    def _wants_data(self) -> bool:
        """Whether the vocabulary comes from `adapt`."""
        return self._lookup_layer._wants_data()

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Make a vocabulary of texts, the most frequent token first: an array or list, or a Dataset
        of batches.

        Args:
            batch_size: accepted for Keras programs.
            steps: how many batches to read; all when omitted.
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch of texts."""
        texts = self._standardized(td.convert_to_tensor(np.atleast_1d(np.asarray(data))))
        self._lookup_layer.count_rows(self._rows(texts.numpy()))

    def finalize_state(self) -> None:
        """Make the vocabulary of what the batches had."""
        self._lookup_layer.finalize_state()

    def reset_state(self) -> None:
        """Forget all batches."""
        self._lookup_layer.reset_state()

    def save_own_variables(self, store: Any) -> None:
        """See `StringLookup.save_own_variables`."""
        self._lookup_layer.save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """See `StringLookup.load_own_variables`."""
        self._lookup_layer.load_own_variables(store)

    def save_assets(self, dir_path: Any) -> None:
        """See `StringLookup.save_assets`."""
        self._lookup_layer.save_assets(dir_path)

    def load_assets(self, dir_path: Any) -> None:
        """See `StringLookup.load_assets`."""
        self._lookup_layer.load_assets(dir_path)

    # -- texts -----------------------------------------------------------------------------------

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        return tensor

    def _standardized(self, texts: td.Tensor) -> td.Tensor:
        """The texts as [batch], or [batch, tokens] where they are split already."""
        how = self.standardize
        if callable(how):
            texts = how(texts)
        if how in ("lower", "lower_and_strip_punctuation"):
            texts = td.strings.lower(texts)
        if how in ("strip_punctuation", "lower_and_strip_punctuation"):
            texts = td.strings.regex_replace(texts, _PUNCTUATION, "")
        if self.split is not None and len(texts.shape) > 1:
            if texts.shape[-1] != 1:
                raise ValueError(
                    f'Layer "{self.name}" (TextVectorization) splits texts, so it takes [batch] or '
                    f"[batch, 1] of them, got shape {texts.shape}"
                )
            texts = td.squeeze(texts, -1)
        if not callable(self.split):
            return texts
        found: Any = self.split(texts)
        return found.to_tensor() if hasattr(found, "row_splits") else found  # type: ignore[no-any-return]

    def _rows(self, texts: Any) -> list[list[bytes]]:
        """The tokens of each text."""
        rows = [self._tokens(text) for text in texts]
        return rows if self._widths is None else [self._grams(row) for row in rows]

    def _tokens(self, text: Any) -> list[bytes]:
        if isinstance(text, np.ndarray):  # tokens, filled up with empty ones by `split`
            tokens = [_as_bytes(token) for token in text.reshape(-1)]
            while callable(self.split) and tokens and not tokens[-1]:
                tokens.pop()
            return tokens
        if self.split == "whitespace":
            return _as_bytes(text).split()
        if self.split == "character":
            return [c.encode() for c in _as_bytes(text).decode(errors="replace")]
        return [_as_bytes(text)]

    def _grams(self, row: list[bytes]) -> list[bytes]:
        assert self._widths is not None
        return [
            b" ".join(row[i : i + width])
            for width in self._widths
            for i in range(len(row) - width + 1)
        ]

    def _token_rows(self, texts: Any) -> Any:
        """[batch, tokens]: rows of tokens, filled up with empty ones."""
        rows = self._rows(texts)
        length = self.output_sequence_length
        if length is None:
            length = max((len(row) for row in rows), default=0)
        filled = np.full((len(rows), length), b"", object)
        for row, tokens in zip(filled, rows, strict=True):
            row[: len(tokens)] = tokens[:length]
        return filled

    def call(self, inputs: Any) -> Any:
        texts = self._standardized(inputs if len(inputs.shape) else inputs[None])
        tokens = td.numpy_function(self._token_rows, [texts], td.string)
        tokens = td.ensure_shape(tokens, [texts.shape[0], self.output_sequence_length])
        if self.ragged:
            tokens = td.RaggedTensor.from_tensor(tokens, padding=b"")
        outputs: Any = self._lookup_layer(tokens)
        return outputs if len(inputs.shape) else outputs[0]

    def get_config(self) -> dict[str, Any]:
        shared = self._lookup_layer.get_config()
        names = (
            "max_tokens", "pad_to_max_tokens", "sparse", "vocabulary", "idf_weights", "encoding",
            "vocabulary_size",
        )  # fmt: skip
        return super().get_config() | {name: shared[name] for name in names}
