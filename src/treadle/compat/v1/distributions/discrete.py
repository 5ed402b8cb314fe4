"""Distributions of outcomes, and of how often each of several outcomes is drawn."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.salted_seeds import salted_seed
from treadle.compat.v1 import functions
from treadle.compat.v1.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    divergence,
    joint_shape,
    parameter,
    parameters,
)
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import recorded
from treadle.core.origin import at, user_origin

_log, _sigmoid, _softmax = map(graph_function, (td.math.log, td.sigmoid, td.nn.softmax))


def _probabilities(probs: Any) -> Any:
    td.debugging.assert_non_negative(probs)
    return td.debugging.assert_less_equal(probs, td.ones_like(probs))


def _log_odds(probs: Any) -> Any:
    return td.math.log(probs) - td.math.log1p(-probs)


_logit = recorded(_log_odds, "logit", "Sub")


def _both(logits: Any, probs: Any, validate_args: bool, is_binary: bool) -> tuple[Any, Any]:
    """Logits and probabilities, of which one is given.

    Raises:
        ValueError: both are given, or none.
    """
    if (logits is None) == (probs is None):
        raise ValueError(f"Must pass probs or logits, but not both.{at(user_origin())}")
    if logits is not None:
        logits = parameter(logits)
        return logits, (_sigmoid if is_binary else _softmax)(logits)
    probs = parameter(probs, check=_probabilities if validate_args else None)
    return (_logit if is_binary else _log)(probs), probs


class Bernoulli(Distribution):
    """Zero or one, with the probability `probs` of one.

    Args:
        logits: the logarithms of the odds. probs: the probabilities. Either is given.
    """

    _tensors = ("_logits", "_probs")

    def __init__(self, logits: Any = None, probs: Any = None, dtype: Any = td.int32,
                 validate_args: bool = False, allow_nan_stats: bool = True,
                 name: str = "Bernoulli") -> None:  # fmt: skip
        given = dict(locals())
        self._logits, self._probs = _both(logits, probs, validate_args, is_binary=True)
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given,
                         name=name)  # fmt: skip

    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _batch_shape(self) -> Any:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Any:
        return td.shape(self._logits)

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return td.constant([], td.int32)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        shape = td.concat([[count], self._batch_shape_tensor()], 0)
        drawn = td.random.uniform(shape, 0, None, self._probs.dtype, seed)
        return td.cast(drawn < self._probs, self._dtype)

    def _log_prob(self, event: Any) -> Any:
        event = td.cast(event, self._logits.dtype)
        shape = td.broadcast_dynamic_shape(td.shape(event), td.shape(self._logits))
        return -td.nn.sigmoid_cross_entropy_with_logits(
            td.broadcast_to(event, shape), td.broadcast_to(self._logits, shape)
        )

    def _entropy(self) -> Any:
        logits = self._logits
        return -logits * (td.sigmoid(logits) - 1.0) + td.nn.softplus(-logits)

    def _mean(self) -> Any:
        return td.identity(self._probs)

    def _variance(self) -> Any:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Any:
        return td.cast(self._probs > 0.5, self._dtype)


class Categorical(Distribution):
    """One of several outcomes.

    Args:
        logits: logarithms of the probabilities, up to a number; the last axis is that of the
            outcomes. probs: the probabilities. Either is given.
    """

    _tensors = ("_logits", "_probs")

    def __init__(self, logits: Any = None, probs: Any = None, dtype: Any = td.int32,
                 validate_args: bool = False, allow_nan_stats: bool = True,
                 name: str = "Categorical") -> None:  # fmt: skip
        given = dict(locals())
        self._logits, self._probs = _both(logits, probs, validate_args, is_binary=False)
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given,
                         name=name)  # fmt: skip

    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    @property
    def event_size(self) -> Any:
        """How many outcomes there are."""
        return graph_function(td.shape)(self._logits)[-1]

    def _batch_shape(self) -> Any:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return td.shape(self._logits)[:-1]

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return td.constant([], td.int32)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        outcomes = td.shape(self._logits)[-1]
        rows = td.reshape(self._logits, [-1, outcomes])
        drawn = td.transpose(td.random.categorical(rows, count, td.int64, seed))
        shape = td.concat([[count], self._batch_shape_tensor()], 0)
        return td.cast(td.reshape(drawn, shape), self._dtype)

    def _joined(self, outcome: Any) -> tuple[Any, Any]:
        """An outcome and the logits in the shape of both."""
        shape = td.broadcast_dynamic_shape(td.shape(outcome), self._batch_shape_tensor())
        size = td.shape(self._logits)[-1:]
        return td.broadcast_to(outcome, shape), td.broadcast_to(
            self._logits, td.concat([shape, size], 0)
        )

    def _log_prob(self, outcome: Any) -> Any:
        outcome = outcome if outcome.dtype.is_integer else td.cast(outcome, td.int64)
        labels, logits = self._joined(outcome)
        return -td.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    def _cdf(self, outcome: Any) -> Any:
        outcome, logits = self._joined(outcome)
        sums = td.cumsum(td.nn.softmax(logits), axis=-1, exclusive=True)
        size = td.shape(logits)[-1]
        is_it = td.equal(td.cast(outcome, td.int32)[..., td.newaxis], td.range(size))
        return td.reduce_sum(td.where(is_it, sums, td.zeros_like(sums)), -1)

    def _entropy(self) -> Any:
        return -td.reduce_sum(
            td.nn.log_softmax(self._logits) * td.nn.softmax(self._logits), axis=-1
        )

    def _mode(self) -> Any:
        return td.cast(td.argmax(self._logits, axis=-1), self._dtype)


class _OfVectors(Distribution):
    """Distributions of vectors: the last axis of a parameter is that of the vector."""

    def _vector(self) -> Any:
        raise NotImplementedError

    def _batch_shape(self) -> Any:
        others = [getattr(self, n) for n in self._tensors if n == "_total_count"]
        vector = td.TensorShape(self._vector().shape)[:-1]
        return joint_shape(*others).as_list() if not vector.rank and others else vector

    def _batch_shape_tensor(self) -> Any:
        vector = td.shape(self._vector())[:-1]
        if "_total_count" not in self._tensors:
            return vector
        return td.broadcast_dynamic_shape(td.shape(self.__dict__["_total_count"]), vector)

    def _event_shape(self) -> Any:
        return td.TensorShape(self._vector().shape)[-1:]

    def _event_shape_tensor(self) -> Any:
        return td.shape(self._vector())[-1:]


class _Concentrated(_OfVectors):
    """Distributions with a vector of concentrations."""

    _concentration: Any
    concentration = property(lambda self: self._concentration)

    @property
    def total_concentration(self) -> Any:
        """The sums of the concentrations."""
        return functions.reduce_sum(self._concentration, -1)

    def _vector(self) -> Any:
        return self._concentration


class Dirichlet(_Concentrated):
    """Dirichlet's distributions, of vectors of positive numbers whose sum is one."""

    _tensors = ("_concentration",)

    def __init__(self, concentration: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "Dirichlet") -> None:  # fmt: skip
        given = dict(locals())
        self._concentration, = parameters(
            concentration, check=td.debugging.assert_positive if validate_args else None
        )
        super().__init__(self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args,
                         allow_nan_stats, given, name=name)  # fmt: skip

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        drawn = td.random.gamma([count], self._concentration, None, self._dtype, seed)
        return drawn / td.reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Any) -> Any:
        powers = td.reduce_sum(td.math.xlogy(self._concentration - 1.0, x), -1)
        return powers - td.math.lbeta(self._concentration)

    def _entropy(self) -> Any:
        c = self._concentration
        total, size = td.reduce_sum(c, -1), td.cast(td.shape(c)[-1], c.dtype)
        return (
            td.math.lbeta(c) + (total - size) * td.math.digamma(total)
            - td.reduce_sum((c - 1.0) * td.math.digamma(c), -1)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self._concentration / td.reduce_sum(self._concentration, -1, keepdims=True)

    def _scale(self) -> Any:
        total = td.reduce_sum(self._concentration, -1, keepdims=True)
        return td.math.rsqrt(1.0 + total)

    def _variance(self) -> Any:
        mean, scale = self._mean(), self._scale()
        return td.square(scale) * mean * (1.0 - mean)

    def _covariance(self) -> Any:
        x = self._scale() * self._mean()
        outer = -td.matmul(x[..., td.newaxis], x[..., td.newaxis, :])
        return td.linalg.set_diag(outer, self._variance())

    def _mode(self) -> Any:
        c = self._concentration
        size = td.cast(td.shape(c)[-1], c.dtype)
        found = (c - 1.0) / (td.reduce_sum(c, -1, keepdims=True) - size)
        exists = td.reduce_all(c > 1.0, axis=-1, keepdims=True)
        return self._or_error(exists, found, "mode undefined for concentrations <= 1")


class _Counts(_OfVectors):
    """Distributions of how often each outcome is drawn."""

    total_count = property(lambda self: self._total_count)

    def _combinations(self, counts: Any) -> Any:
        """The logarithm of the number of orders of the draws."""
        lgamma = td.math.lgamma
        return lgamma(self._total_count + 1.0) - td.reduce_sum(lgamma(counts + 1.0), -1)

    def _shape_of(self, count: Any) -> Any:
        return td.concat([[count], self._batch_shape_tensor(), self._event_shape_tensor()], 0)


class Multinomial(_Counts):
    """How often each outcome is drawn in `total_count` draws.

    Args:
        logits: logarithms of the probabilities, up to a number. probs: the probabilities. Either
            is given.
    """

    _tensors = ("_total_count", "_logits", "_probs")

    def __init__(self, total_count: Any, logits: Any = None, probs: Any = None,
                 validate_args: bool = False, allow_nan_stats: bool = True,
                 name: str = "Multinomial") -> None:  # fmt: skip
        given = dict(locals())
        self._logits, self._probs = _both(logits, probs, validate_args, is_binary=False)
        self._total_count = parameter(
            total_count, self._logits.dtype,
            td.debugging.assert_non_negative if validate_args else None,
        )  # fmt: skip
        super().__init__(self._logits.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _vector(self) -> Any:
        return self._logits

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        size = td.shape(self._logits)[-1]
        batch = self._batch_shape_tensor()
        draws = td.reshape(td.broadcast_to(td.cast(self._total_count, td.int32), batch), [-1])
        rows = td.reshape(td.broadcast_to(self._logits, td.concat([batch, [size]], 0)), [-1, size])
        # Each example has as many draws as the most: those beyond its own do not count.
        most = td.reduce_max(draws)
        drawn = td.reshape(
            td.random.categorical(rows, count * most, td.int32, seed), [-1, count, most]
        )
        is_drawn = td.range(most) < draws[:, td.newaxis, td.newaxis]
        ones = td.one_hot(drawn, size, dtype=self._dtype)
        counts = td.reduce_sum(ones * td.cast(is_drawn, self._dtype)[..., td.newaxis], -2)
        return td.reshape(td.transpose(counts, [1, 0, 2]), self._shape_of(count))

    def _log_prob(self, counts: Any) -> Any:
        powers = td.reduce_sum(counts * td.nn.log_softmax(self._logits), -1)
        return powers + self._combinations(counts)

    def _mean(self) -> Any:
        return self._probs * self._total_count[..., td.newaxis]

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._probs)

    def _covariance(self) -> Any:
        mean = self._mean()
        outer = -td.matmul(mean[..., td.newaxis], self._probs[..., td.newaxis, :])
        return td.linalg.set_diag(outer, self._variance())


class DirichletMultinomial(_Concentrated, _Counts):
    """How often each outcome is drawn, with probabilities of a Dirichlet distribution."""

    _tensors = ("_total_count", "_concentration")

    def __init__(self, total_count: Any, concentration: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "DirichletMultinomial") -> None:
        given = dict(locals())
        self._concentration, = parameters(
            concentration, check=td.debugging.assert_positive if validate_args else None
        )
        self._total_count = parameter(total_count, self._concentration.dtype)
        super().__init__(self._concentration.dtype, NOT_REPARAMETERIZED, validate_args,
                         allow_nan_stats, given, name=name)  # fmt: skip

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        size = td.shape(self._concentration)[-1]
        batch = self._batch_shape_tensor()
        alpha = td.broadcast_to(self._concentration, td.concat([batch, [size]], 0))
        gamma = td.random.gamma([count], alpha, None, self._dtype, seed)
        draws = td.cast(self._total_count, td.int32)
        drawn = td.random.categorical(
            td.reshape(td.math.log(gamma), [-1, size]), draws, td.int32,
            salted_seed(seed, "dirichlet_multinomial"),
        )  # fmt: skip
        counts = td.reduce_sum(td.one_hot(drawn, size, dtype=self._dtype), -2)
        return td.reshape(counts, self._shape_of(count))

    def _log_prob(self, counts: Any) -> Any:
        powers = td.math.lbeta(self._concentration + counts) - td.math.lbeta(self._concentration)
        return powers + self._combinations(counts)

    def _shares(self) -> Any:
        return self._concentration / td.reduce_sum(self._concentration, -1, keepdims=True)

    def _mean(self) -> Any:
        return self._total_count[..., td.newaxis] * self._shares()

    def _scale(self) -> Any:
        total = td.reduce_sum(self._concentration, -1, keepdims=True)
        return td.sqrt((1.0 + total / self._total_count[..., td.newaxis]) / (1.0 + total))

    def _variance(self) -> Any:
        mean, total = self._mean(), self._total_count[..., td.newaxis]
        return td.square(self._scale()) * mean * (total - mean)

    def _covariance(self) -> Any:
        x = self._scale() * self._mean()
        outer = -td.matmul(x[..., td.newaxis], x[..., td.newaxis, :])
        return td.linalg.set_diag(outer, self._variance())


@divergence(Bernoulli)
def _of_bernoullis(a: Bernoulli, b: Bernoulli) -> Any:
    softplus = td.nn.softplus
    delta = softplus(-b._logits) - softplus(-a._logits)
    opposite = softplus(b._logits) - softplus(a._logits)
    return td.sigmoid(a._logits) * delta + td.sigmoid(-a._logits) * opposite


@divergence(Categorical)
def _of_categoricals(a: Categorical, b: Categorical) -> Any:
    logs = td.nn.log_softmax(a._logits) - td.nn.log_softmax(b._logits)
    return td.reduce_sum(td.nn.softmax(a._logits) * logs, axis=-1)


@divergence(Dirichlet)
def _of_dirichlets(a: Dirichlet, b: Dirichlet) -> Any:
    digamma = td.math.digamma(a._concentration)
    total = td.math.digamma(td.reduce_sum(a._concentration, -1, keepdims=True))
    differences = (a._concentration - b._concentration) * (digamma - total)
    return (
        td.reduce_sum(differences, -1) - td.math.lbeta(a._concentration)
        + td.math.lbeta(b._concentration)
    )  # fmt: skip
