"""Classes that are drawn for sampled losses, and how often each class is expected among them.

Different classes are those of draws that are repeated until there are enough, as in TensorFlow.
They are found at once: noise of the Gumbel distribution on the logarithms of the shares puts the
classes into the order in which they come up first (Yellott 1977). Between two new classes lies a
number of draws of known ones, which is geometric in the share of the known ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.file_errors import file_error
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import shape as shape_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import ceil, expm1, log, log1p
from treadle.ops.indexing.gather import gather
from treadle.ops.random.distributions import categorical, uniform
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.requirements import require
from treadle.ops.shaping.creation import fill, ones
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import reshape, with_dims
from treadle.ops.statistics.sorting import top_k


class Candidates(NamedTuple):
    """Classes that were drawn, int64 [num_sampled], and how often true classes, float32 [batch,
    num_true], and these are expected among them, float32 [num_sampled]."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Classes of which the small ones come up more often, as words by their rank do:
    ``P(c) = log((c + 2) / (c + 1)) / log(range_max + 1)``.

    Args:
        true_classes: [batch, num_true] int64.
        num_sampled: how many classes are drawn.
        unique: whether they are different.
        range_max: the number of classes.
        seed: of the draws.

    Raises:
        InvalidArgumentError: more different classes are asked for than there are.
    """
    places = np.arange(range_max, dtype=np.float64)
    shares = np.log((places + 2.0) / (places + 1.0)) / np.log(range_max + 1.0)
    return _drawn(shares, true_classes, num_true, num_sampled, unique, seed)


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Classes that all come up equally often: see `log_uniform_candidate_sampler`."""
    shares = np.full(range_max, 1.0 / range_max)
    return _drawn(shares, true_classes, num_true, num_sampled, unique, seed)


def fixed_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    vocab_file: str = "", distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1,
    shard: int = 0, unigrams: Any = (), seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Classes that come up as often as numbers say: see `log_uniform_candidate_sampler`.

    Args:
        vocab_file: a file with the number of a class behind the last comma of each line, in place
            of `unigrams`.
        distortion: the power of the numbers that is taken: 0 makes all equal.
        num_reserved_ids: how many first classes never come up, and have no numbers.
        num_shards, shard: draw only classes that are `shard` modulo `num_shards`.
        unigrams: how often each class comes up.

    Raises:
        InvalidArgumentError: there are not `range_max` numbers with the reserved ones, or both or
            none of file and numbers are given.
        NotFoundError: there is no such file; other errors of the system have their own types.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise _invalid("Must provide either vocab_file or unigrams")
    if vocab_file:
        unigrams = _numbers_of_classes(vocab_file)
    weights = np.r_[[0.0] * num_reserved_ids, np.asarray(unigrams, np.float64) ** distortion]
    if len(weights) != range_max:
        raise _invalid(f"range_max is {range_max} but there are {len(weights)} classes")
    weights[np.arange(range_max) % num_shards != shard] = 0.0
    return _drawn(
        weights / weights.sum(), true_classes, num_true, num_sampled, unique, seed
    )


def _numbers_of_classes(path: str) -> list[float]:
    """What stands behind the last comma of each line of a file."""
    try:
        with open(path) as file:
            return [float(line.rsplit(",", 1)[-1]) for line in file if line.strip()]
    except OSError as error:
        raise file_error(error, path) from None


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """All classes in order, each once: see `log_uniform_candidate_sampler`."""
    given = convert_to_tensor(true_classes)
    labels = _labels(given, num_true)
    text = f"true_classes must be [batch, {num_true}]"
    expected = fill(shape_of(labels), constant(1.0, dtypes.float32))
    return Candidates(
        number_range(num_sampled, dtype=dtypes.int64),
        require(expected, [(given.dims[-1], num_true)], text), ones([num_sampled]),
    )  # fmt: skip


def _drawn(
    shares: Any, true_classes: Any, true: int, count: int, unique: bool, seed: int | None
) -> Candidates:
    labels = _labels(true_classes, true)
    if unique and count > np.count_nonzero(shares):
        raise _invalid(
            f"Sampler's range is too small: {count} different classes of "
            f"{np.count_nonzero(shares)} are asked for"
        )
    with np.errstate(divide="ignore"):
        scores = constant(np.log(shares), dtypes.float32)
    share = constant(shares, dtypes.float64)
    if unique:
        noise = -log(-log(uniform([len(shares)], 1e-20, 1.0, seed=seed)))
        chosen = cast(top_k(scores + noise, count)[1], dtypes.int64)
        tries = _tries(gather(share, chosen), count, seed)
    else:
        chosen = reshape(categorical(scores[None], count, seed=seed), [count])
        tries = None
    return Candidates(
        chosen, _expected(gather(share, labels), count, tries),
        _expected(gather(share, chosen), count, tries),
    )  # fmt: skip


def _tries(shares: Tensor, count: int, seed: int | None) -> Tensor:
    """How many draws it took to come upon the last of different classes with these shares."""
    known = cumsum(shares)[: count - 1]  # the share of all that are known, after each new one
    u = uniform([count - 1], 0.0, 1.0, dtypes.float64, seed=seed)
    steps = ceil(log1p(-u) / log(known))
    return cast(count if count < 2 else reduce_sum(maximum(steps, 1.0)) + 1.0, dtypes.float64)


def _expected(shares: Tensor, count: int, tries: Tensor | None) -> Tensor:
    found = shares * float(count) if tries is None else -expm1(tries * log1p(-shares))
    return cast(found, dtypes.float32)


def _labels(true_classes: Any, true: int) -> Tensor:
    labels = cast(convert_to_tensor(true_classes), dtypes.int64)
    if not labels.shape.is_compatible_with((None, true)):
        raise _invalid(f"true_classes must be [batch, {true}], not of shape {labels.shape}")
    return with_dims(labels, (labels.dims[0], true))


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


class ComputeAccidentalHits(NamedTuple):
    """Where a class that was drawn is a true one: the example, int32, the place among those that
    were drawn, int64, and the lowest float32 number, each [hits]."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None,
    name: str | None = None,
) -> ComputeAccidentalHits:  # fmt: skip
    """Where classes that were drawn are true ones of an example.

    Args:
        true_classes: [batch, num_true] int64.
        sampled_candidates: [num_sampled] int64.
    """
    labels = _labels(true_classes, num_true)
    drawn = cast(convert_to_tensor(sampled_candidates), dtypes.int64)
    places = where(accidental(labels, drawn))
    lowest = constant(np.finfo(np.float32).min, dtypes.float32)
    return ComputeAccidentalHits(
        cast(places[:, 0], dtypes.int32), places[:, 2], fill(shape_of(places)[:1], lowest)
    )


def accidental(labels: Tensor, candidates: Tensor) -> Tensor:
    """Whether a candidate is a true class: bool [batch, num_true, num_sampled]."""
    return equal(labels[:, :, None], candidates[None, None, :])
