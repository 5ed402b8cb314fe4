"""Numbers and strings as categories: CategoryEncoding, Discretization, hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras.layers.arguments import calls
from treadle.keras.layers.base import Layer
from treadle.keras.layers.preprocessing.adapting import batches_of

MODES = ("int", "one_hot", "multi_hot", "count")


def mode_name(layer: str, mode: str, *modes: str) -> str:
    """An output mode by Keras's name; "binary" is "multi_hot".

    Raises:
        ValueError: it is none of the modes.
    """
    mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(mode, mode)
    if mode not in modes:
        raise ValueError(f"{layer}: output_mode is one of {modes}, got {mode!r}")
    return mode


def encoded(
    indices: Any, mode: str, depth: int, dtype: Any, weights: Any = None, sparse: bool = False
) -> Any:
    """Indices below `depth` as Keras encodes them; others have no place in the results.

    Args:
        indices: ints; of several axes the second is that of an example's categories, for
            "multi_hot" and "count". Of a ragged tensor, modes but "int" take each row as it is.
        weights: for "count": what an index counts.
        sparse: whether the result is a `td.SparseTensor`.
    """
    if mode == "int":
        return td.cast(indices, dtype)
    if hasattr(indices, "row_splits"):
        indices = indices.to_tensor(-1)  # which has no place
    found = _dense_encoded(indices, mode, depth, dtype, weights)
    return td.sparse.from_dense(found) if sparse else found


def _dense_encoded(
    indices: td.Tensor, mode: str, depth: int, dtype: Any, weights: Any
) -> td.Tensor:
    if not len(indices.shape):
        indices = td.expand_dims(indices, -1)
    rank = len(indices.shape)
    if mode == "one_hot":
        if rank > 1 and indices.shape[-1] == 1:
            indices = td.squeeze(indices, -1)
        return td.one_hot(indices, depth, dtype=dtype)
    axis = 1 if rank > 1 else 0
    if mode == "multi_hot":
        return td.reduce_max(td.one_hot(indices, depth, dtype=dtype), axis)
    if weights is not None:
        counted = td.cast(weights, dtype)[..., None]
        return td.reduce_sum(td.one_hot(indices, depth, dtype=dtype) * counted, axis)
    return td.reduce_sum(td.one_hot(indices, depth, dtype=dtype), axis)


def of_elements(function: Callable[[td.Tensor], td.Tensor], x: Any) -> Any:
    """A function of each element, of sparse and ragged tensors, too."""
    if hasattr(x, "row_splits"):
        return x.with_flat_values(function(x.flat_values))
    if hasattr(x, "dense_shape"):
        return td.sparse.map_values(function, x)
    return function(x)


class CategoryEncoding(Layer):
    """Class numbers as rows of 0 and 1, or of counts.

    Args:
        num_tokens: the number of classes.
        output_mode: "multi_hot": a row for an example, 1 for each class in it; "one_hot": a row
            for each number; "count": how often a class is in an example.
        sparse: whether results are `td.SparseTensor`.
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _config_names: ClassVar[tuple[str, ...]] = ("num_tokens", "output_mode", "sparse")

    def __init__(
        self, num_tokens: int | None = None, output_mode: str = "multi_hot", sparse: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if num_tokens is None or num_tokens < 1:
            raise ValueError(f"CategoryEncoding: num_tokens must be positive, got {num_tokens}")
        self.num_tokens, self.sparse = num_tokens, sparse
        self.output_mode = mode_name("CategoryEncoding", output_mode, *MODES[1:])
        self._build_at_init()

    def call(self, inputs: Any, count_weights: Any = None) -> Any:
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(
                f'Layer "{self.name}" (CategoryEncoding): count_weights go with output_mode="count"'
            )
        indices = td.cast(inputs, td.int64)
        return encoded(
            indices, self.output_mode, self.num_tokens, self.dtype, count_weights, self.sparse
        )


def check_sparse(layer: str, sparse: bool, mode: str) -> None:
    """Raise where a program asks for sparse results of a mode that has no zeros to leave out."""
    if sparse and mode == "int":
        raise ValueError(
            f"{layer}: sparse=True goes with output_mode='one_hot', 'multi_hot' or 'count'. "
            f"Received: sparse=True and output_mode={mode}"
        )


class Discretization(Layer):
    """Which of several intervals a number is in.

    Args:
        bin_boundaries: where the intervals but the first begin, in rising order.
        num_bins: instead of them the number of intervals, whose boundaries `adapt` finds.
        epsilon: how exactly it does: the error of a boundary, as a part of the data.
        output_mode: "int", "one_hot", "multi_hot" or "count", see CategoryEncoding.
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _config_names: ClassVar[tuple[str, ...]] = (
        "bin_boundaries", "num_bins", "epsilon", "output_mode", "sparse",
    )  # fmt: skip
    _no_settings: ClassVar[tuple[str, ...]] = ("trainable",)

    def __init__(
        self, bin_boundaries: Any = None, num_bins: int | None = None, epsilon: float = 0.01,
        output_mode: str = "int", sparse: bool = False, dtype: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, name=name, **kwargs)
        check_sparse("Discretization", sparse, output_mode)
        if (bin_boundaries is None) == (num_bins is None):
            raise ValueError("Discretization: give bin_boundaries or num_bins")
        if num_bins is not None and num_bins < 0:
            raise ValueError(f"Discretization: num_bins must not be negative, got {num_bins}")
        self.bin_boundaries = None if bin_boundaries is None else [float(b) for b in bin_boundaries]
        self.num_bins, self.epsilon, self.sparse = num_bins, epsilon, sparse
        self.output_mode = mode_name("Discretization", output_mode, *MODES)
        self._summary = _NOTHING
        self._build_at_init()

    def _wants_data(self) -> bool:
        """Whether the boundaries come from `adapt`."""
        return self.bin_boundaries is None

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Find the boundaries from data: an array, or a Dataset of batches.

        Args:
            steps: how many batches to read; all when omitted.

        Raises:
            ValueError: the boundaries were given.
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Let a batch count."""
        if self.num_bins is None:
            raise ValueError(f'Layer "{self.name}" (Discretization) was given its boundaries')
        values = np.sort(np.asarray(data, np.float32).reshape(-1))
        step = max(values.size * self.epsilon, 1)
        boundaries = values[int(step - 1) :: int(step)]
        both = np.stack([boundaries, np.ones_like(boundaries) * step])
        merged = np.concatenate([both, self._summary], axis=1)
        self._summary = _compressed(merged[:, np.argsort(merged[0])], self.epsilon)

    def finalize_state(self) -> None:
        """Make the boundaries from what the batches had."""
        if self.num_bins is not None:
            found = _compressed(self._summary, 1.0 / self.num_bins)[0, :-1]
            self.bin_boundaries = [float(b) for b in found]

    def reset_state(self) -> None:
        """Forget all batches."""
        self._summary = _NOTHING

    def call(self, inputs: Any) -> Any:
        if self.bin_boundaries is None and not calls.only_shapes:
            raise ValueError(
                f'Layer "{self.name}" (Discretization) has no boundaries: give them, or call '
                "adapt() first"
            )
        values = td.cast(inputs, td.float32)
        known = self.bin_boundaries
        limits = td.constant(known or [], td.float32)
        flat = td.searchsorted(limits, td.reshape(values, [-1]), side="right")
        indices = td.reshape(flat, td.shape(values))
        dtype = td.int32 if self.output_mode == "int" else self.compute_dtype
        depth = self.num_bins or 0 if known is None else len(known) + 1
        return encoded(indices, self.output_mode, depth, dtype, sparse=self.sparse)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Layer:
        found = config.get("bin_boundaries")
        if found is None or config.get("num_bins") is None:
            return cls(**config)
        layer = cls(**(config | {"bin_boundaries": None}))
        layer.bin_boundaries = list(found)
        return layer


_NOTHING = np.zeros((2, 0), np.float32)


def _compressed(summary: Any, epsilon: float) -> Any:
    """Values and their weights, as few as the error `epsilon` needs."""
    if summary.shape[1] * epsilon < 1:
        return summary
    percents = epsilon + np.arange(0.0, 1.0, epsilon)
    weights = summary[1].cumsum()
    values = np.interp(percents, weights / weights[-1], summary[0])
    reached = np.interp(percents, weights / weights[-1], weights)
    gained = reached - np.concatenate([[0], reached[:-1]])
    return np.stack([values, gained]).astype(np.float32)


class Hashing(Layer):
    """Numbers and strings as numbers below `num_bins`, by a hash.

    Args:
        num_bins: how many numbers there are.
        mask_value: what becomes 0; nothing else does then.
        salt: an int or a pair of them: hash by SipHash with this key, else by FarmHash.
        output_mode: "int", "one_hot", "multi_hot" or "count", see CategoryEncoding.
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _config_names: ClassVar[tuple[str, ...]] = (
        "num_bins", "salt", "mask_value", "output_mode", "sparse",
    )  # fmt: skip

    def __init__(
        self, num_bins: int, mask_value: Any = None, salt: Any = None, output_mode: str = "int",
        sparse: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self.output_mode = mode_name("Hashing", output_mode, *MODES)
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = "int64" if output_mode == "int" else td.keras.config.floatx()
        super().__init__(**kwargs)
        if output_mode == "int" and self._own_policy.name not in ("int32", "int64"):
            raise ValueError(
                "Hashing: results of output_mode='int' are int32 or int64. Received: "
                f"dtype={kwargs['dtype']}"
            )
        check_sparse("Hashing", sparse, output_mode)
        if not isinstance(num_bins, int) or num_bins < 1:
            raise ValueError(f"Hashing: num_bins must be a positive int, got {num_bins!r}")
        self.num_bins, self.mask_value, self.sparse = num_bins, mask_value, sparse
        self.salt = salt_of("Hashing", salt)
        self._build_at_init()

    def call(self, inputs: Any) -> Any:
        bins = of_elements(self._bins_of, inputs)
        return encoded(bins, self.output_mode, self.num_bins, self.dtype, sparse=self.sparse)

    def _bins_of(self, values: td.Tensor) -> td.Tensor:
        masked = self.mask_value is not None and self.num_bins > 1
        bins = hashed(values, self.num_bins - masked, self.salt)
        if not masked:
            return bins
        return td.where(td.equal(values, self.mask_value), td.zeros_like(bins), bins + 1)

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        return tensor  # the dtype is that of the results


def salt_of(layer: str, salt: Any) -> list[int] | None:
    """The key of a strong hash: a pair of ints, from one or two."""
    if salt is None or (isinstance(salt, list | tuple) and len(salt) == 2):
        return None if salt is None else list(salt)
    if isinstance(salt, int):
        return [salt, salt]
    raise ValueError(f"{layer}: salt is an int or a pair of them, got {salt!r}")


def hashed(values: td.Tensor, bins: int, salt: list[int] | None) -> td.Tensor:
    """int64 numbers below `bins`."""
    if values.dtype.is_floating:
        values = td.cast(values, td.int64)
    if values.dtype != td.string:
        values = td.strings.as_string(values)
    if salt is None:
        return td.strings.to_hash_bucket_fast(values, bins)
    return td.strings.to_hash_bucket_strong(values, bins, salt)


class HashedCrossing(Layer):
    """Several features as one number below `num_bins`: a hash of all of them.

    The features are ints or strings of shape [], [batch] or [batch, 1].

    Args:
        num_bins: how many numbers there are.
        output_mode: "int", or "one_hot" for rows of 0 and 1.

    Raises:
        ValueError: fewer than two features, or of different shapes, or of floats.
    """

    has_shape_rule: ClassVar[bool] = False
    shape_dtype: ClassVar[str | None] = "int64"
    _config_names: ClassVar[tuple[str, ...]] = ("num_bins", "output_mode", "sparse")
    _no_settings: ClassVar[tuple[str, ...]] = ("trainable",)

    def __init__(
        self, num_bins: int, output_mode: str = "int", sparse: bool = False,
        name: str | None = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        self.output_mode = mode_name("HashedCrossing", output_mode, "int", "one_hot")
        if dtype is None and output_mode == "int":
            dtype = "int64"
        super().__init__(name=name, dtype=dtype, **kwargs)
        check_sparse("HashedCrossing", sparse, output_mode)
        self.num_bins, self.sparse = num_bins, sparse
        self._build_at_init()

    def call(self, inputs: Any) -> Any:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise ValueError(
                f'Layer "{self.name}" (HashedCrossing) takes a list of two inputs or more, got '
                f"{inputs}"
            )
        features = [td.convert_to_tensor(x) for x in inputs]
        shape = features[0].shape
        if any(x.dtype != td.string and not x.dtype.is_integer for x in features):
            raise ValueError(
                f'Layer "{self.name}" (HashedCrossing) takes ints and strings, got '
                f"{[x.dtype.name for x in features]}"
            )
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1) or any(
            x.shape.as_list() != shape.as_list() for x in features
        ):
            raise ValueError(
                f'Layer "{self.name}" (HashedCrossing) takes inputs of one shape: (), (batch,) or '
                f"(batch, 1), got {[x.shape for x in features]}"
            )
        bins = td.reshape(crossed(features, self.num_bins), td.shape(features[0]))
        whole = td.ensure_shape(bins, shape)
        return encoded(whole, self.output_mode, self.num_bins, self.dtype, sparse=self.sparse)

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        return tensor  # the dtype is that of the results


_CROSS_MULTIPLIER, _CROSS_KEY = 0xC6A4A7935BD1E995, 0xDECAFCAFFE


def crossed(features: list[td.Tensor], bins: int) -> td.Tensor:
    """int64 numbers [n] below `bins` of n elements of each feature, as `tf.sparse.cross_hashed` has
    them: FarmHash's fingerprints of strings, and ints, joined as FingerprintCat64 does."""
    multiplier, far = td.constant(_CROSS_MULTIPLIER, td.uint64), td.constant(47, td.uint64)

    def mixed(x: td.Tensor) -> td.Tensor:
        return td.bitwise.bitwise_xor(x, td.bitwise.right_shift(x, far))

    found = td.constant(_CROSS_KEY, td.uint64)
    for feature in features:
        flat = td.reshape(feature, [-1])
        words = td.fingerprint(flat) if flat.dtype == td.string else td.cast(flat, td.int64)
        word = mixed(td.bitcast(words, td.uint64) * multiplier) * multiplier
        found = td.bitwise.bitwise_xor(td.bitwise.bitwise_xor(found, multiplier), word)
        found = mixed(mixed(found * multiplier) * multiplier)
    return td.cast(found % td.constant(bins, td.uint64), td.int64)
