"""Distributions of numbers of an interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.salted_seeds import salted_seed
from treadle.compat.v1.distributions.base import (
    FULLY_REPARAMETERIZED,
    Distribution,
    divergence,
    joint_shape,
    joint_shape_tensor,
    parameters,
)

_positive = td.debugging.assert_positive


class Scalar(Distribution):
    """Distributions of single numbers, whose parameters broadcast."""

    def _batch_shape(self) -> Any:
        return joint_shape(*(getattr(self, name) for name in self._tensors))

    def _batch_shape_tensor(self) -> Any:
        return joint_shape_tensor(*(getattr(self, name) for name in self._tensors))

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return td.constant([], td.int32)

    def _full(self, value: Any) -> Any:
        """A value in the shape of the batch."""
        return td.broadcast_to(value, self._batch_shape_tensor())

    def _shape_of(self, count: Any) -> Any:
        return td.concat([[count], self._batch_shape_tensor()], 0)


def _located(loc: Any, scale: Any, validate_args: bool) -> list[Any]:
    loc, scale = parameters(loc, scale)
    return [loc, *parameters(scale, check=_positive)] if validate_args else [loc, scale]


class _OfLocations(Scalar):
    """Distributions that are moved by `loc` and stretched by `scale`."""

    _loc: Any
    _scale: Any
    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)

    def _z(self, x: Any) -> Any:
        return (x - self._loc) / self._scale


class Normal(_OfLocations):
    """Normal distributions.

    Args:
        loc: the means. scale: the standard deviations.
    """

    _tensors = ("_loc", "_scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "Normal") -> None:  # fmt: skip
        given = dict(locals())
        self._loc, self._scale = _located(loc, scale, validate_args)
        super().__init__(self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    @staticmethod
    def param_shapes(sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Any]:
        return {"loc": sample_shape, "scale": sample_shape}

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        drawn = td.random.normal(self._shape_of(count), 0.0, 1.0, self._dtype, seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, x: Any) -> Any:
        half = -0.5 * td.square(self._z(x))
        return half - (0.5 * math.log(2 * math.pi) + td.math.log(self._scale))

    def _cdf(self, x: Any) -> Any:
        return _ndtr(self._z(x))

    def _log_cdf(self, x: Any) -> Any:
        return _log_ndtr(self._z(x))

    def _survival_function(self, x: Any) -> Any:
        return _ndtr(-self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return _log_ndtr(-self._z(x))

    def _entropy(self) -> Any:
        return self._full(0.5 + 0.5 * math.log(2 * math.pi) + td.math.log(self._scale))

    def _mean(self) -> Any:
        return self._full(self._loc)

    _mode = _mean

    def _stddev(self) -> Any:
        return self._full(self._scale)

    def _quantile(self, p: Any) -> Any:
        return td.math.ndtri(p) * self._scale + self._loc


def _ndtr(x: Any) -> Any:
    return 0.5 * td.math.erfc(-x / math.sqrt(2.0))


def _log_ndtr(x: Any) -> Any:
    """The logarithm of the normal distribution function: far down by a series, where the function
    itself is zero."""
    far = -10.0
    below = td.minimum(x, far)
    squares = td.math.reciprocal(td.square(below))
    series = 1.0 - squares * (1.0 - 3.0 * squares * (1.0 - 5.0 * squares * (1.0 - 7.0 * squares)))
    tail = -0.5 * td.square(below) - td.math.log(-below) - 0.5 * math.log(2 * math.pi)
    above = td.maximum(x, far)
    near = td.where(
        above > 5.0, td.math.log1p(-_ndtr(-above)),
        td.math.log(td.maximum(0.5 * td.math.erfc(-above / math.sqrt(2.0)),
                               np.finfo(x.dtype.np_dtype).tiny)),
    )  # fmt: skip
    return td.where(x < far, tail + td.math.log(series), near)


class Laplace(_OfLocations):
    """Laplace's distributions: of exponential tails on both sides of `loc`."""

    _tensors = ("_loc", "_scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "Laplace") -> None:  # fmt: skip
        given = dict(locals())
        self._loc, self._scale = _located(loc, scale, validate_args)
        super().__init__(self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        kind = self._dtype.np_dtype.type
        low = float(np.nextafter(kind(-1), kind(0)))
        drawn = td.random.uniform(self._shape_of(count), low, 1.0, self._dtype, seed)
        return self._loc - self._scale * td.sign(drawn) * td.math.log1p(-td.abs(drawn))

    def _log_prob(self, x: Any) -> Any:
        return -td.abs(self._z(x)) - math.log(2.0) - td.math.log(self._scale)

    def _cdf(self, x: Any) -> Any:
        z = self._z(x)
        return 0.5 + 0.5 * td.sign(z) * (1.0 - td.exp(-td.abs(z)))

    def _log_cdf(self, x: Any) -> Any:
        z = self._z(x)
        return td.where(z < 0, z - math.log(2.0), td.math.log1p(-0.5 * td.exp(-td.abs(z))))

    def _log_survival_function(self, x: Any) -> Any:
        z = -self._z(x)
        return td.where(z < 0, z - math.log(2.0), td.math.log1p(-0.5 * td.exp(-td.abs(z))))

    def _entropy(self) -> Any:
        return self._full(math.log(2.0) + 1 + td.math.log(self._scale))

    def _mean(self) -> Any:
        return self._full(self._loc)

    _mode = _mean

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self._full(self._scale)


class Uniform(Scalar):
    """Uniform distributions from `low` up to, but not with, `high`."""

    _tensors = ("_low", "_high")

    def __init__(self, low: Any = 0.0, high: Any = 1.0, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "Uniform") -> None:  # fmt: skip
        given = dict(locals())
        self._low, self._high = parameters(low, high)
        super().__init__(self._low.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    low = property(lambda self: self._low)
    high = property(lambda self: self._high)

    def range(self, name: str = "range") -> Any:
        """How wide the intervals are."""
        return self._call("_range", name=name)

    def _range(self) -> Any:
        if self._validate_args:
            td.debugging.assert_less(
                self._low, self._high, message="uniform not defined when low >= high."
            )
        return self._high - self._low

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        drawn = td.random.uniform(self._shape_of(count), 0.0, 1.0, self._dtype, seed)
        return self._low + self._range() * drawn

    def _prob(self, x: Any) -> Any:
        x = x + td.zeros_like(self._low)
        is_outside = td.logical_or(x < self._low, x >= self._high)
        inside = td.ones_like(x) / self._range()
        return td.where(td.math.is_nan(x), x, td.where(is_outside, td.zeros_like(inside), inside))

    def _log_prob(self, x: Any) -> Any:
        return td.math.log(self._prob(x))

    def _cdf(self, x: Any) -> Any:
        part = (x - self._low) / self._range()
        return td.clip_by_value(part, 0.0, 1.0)

    def _entropy(self) -> Any:
        return td.math.log(self._range())

    def _mean(self) -> Any:
        return (self._low + self._high) / 2.0

    def _variance(self) -> Any:
        return td.square(self._range()) / 12.0

    def _stddev(self) -> Any:
        return self._range() / math.sqrt(12.0)


class Gamma(Scalar):
    """Gamma distributions.

    Args:
        concentration: the shape parameters. rate: the inverse scales.
    """

    _tensors = ("_concentration", "_rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "Gamma") -> None:  # fmt: skip
        given = dict(locals())
        self._concentration, self._rate = parameters(
            concentration, rate, check=_positive if validate_args else None
        )
        super().__init__(self._rate.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    concentration = property(lambda self: self._concentration)
    rate = property(lambda self: self._rate)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        return td.random.gamma(
            [count], self._concentration, self._rate, self._dtype, seed
        )  # fmt: skip

    def _log_prob(self, x: Any) -> Any:
        c, rate = self._concentration, self._rate
        normalized = td.math.lgamma(c) - c * td.math.log(rate)
        return td.math.xlogy(c - 1.0, x) - rate * x - normalized

    def _cdf(self, x: Any) -> Any:
        return td.math.igamma(self._full(self._concentration), self._rate * x)

    def _entropy(self) -> Any:
        c = self._concentration
        return c - td.math.log(self._rate) + td.math.lgamma(c) + (1.0 - c) * td.math.digamma(c)

    def _mean(self) -> Any:
        return self._concentration / self._rate

    def _variance(self) -> Any:
        return self._concentration / td.square(self._rate)

    def _stddev(self) -> Any:
        return td.sqrt(self._concentration) / self._rate

    def _mode(self) -> Any:
        found = (self._concentration - 1.0) / self._rate
        return self._or_error(
            self._full(self._concentration) > 1.0, found, "mode not defined when concentration <= 1"
        )


class Exponential(Gamma):
    """Exponential distributions of a rate."""

    _tensors = ("_rate", "_concentration")

    def __init__(self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
                 name: str = "Exponential") -> None:  # fmt: skip
        given = dict(locals())
        rate, = parameters(rate)
        one = np.ones([], rate.dtype.np_dtype)
        super().__init__(one, rate, validate_args, allow_nan_stats, name)
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        tiny = float(np.finfo(self._dtype.np_dtype).tiny)
        drawn = td.random.uniform(self._shape_of(count), tiny, 1.0, self._dtype, seed)
        return -td.math.log(drawn) / self._rate


class Beta(Scalar):
    """Beta distributions, of numbers between zero and one."""

    _tensors = ("_one", "_zero")

    def __init__(self, concentration1: Any = None, concentration0: Any = None,
                 validate_args: bool = False, allow_nan_stats: bool = True,
                 name: str = "Beta") -> None:  # fmt: skip
        given = dict(locals())
        self._one, self._zero = parameters(
            concentration1, concentration0, check=_positive if validate_args else None
        )
        super().__init__(self._one.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    concentration1 = property(lambda self: self._one)
    concentration0 = property(lambda self: self._zero)
    total_concentration = property(lambda self: self._one + self._zero)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        first = td.random.gamma([count], self._full(self._one), None, self._dtype, seed)
        second = td.random.gamma(
            [count], self._full(self._zero), None, self._dtype, salted_seed(seed, "beta")
        )
        return first / (first + second)

    def _normalized(self) -> Any:
        one, zero = self._one, self._zero
        return td.math.lgamma(one) + td.math.lgamma(zero) - td.math.lgamma(one + zero)

    def _log_prob(self, x: Any) -> Any:
        powers = td.math.xlogy(self._one - 1.0, x) + (self._zero - 1.0) * td.math.log1p(-x)
        return powers - self._normalized()

    def _cdf(self, x: Any) -> Any:
        return td.math.betainc(self._full(self._one), self._full(self._zero), self._full(x)
                               if x.shape.rank == 0 else x)  # fmt: skip

    def _entropy(self) -> Any:
        one, zero, total = self._one, self._zero, self._one + self._zero
        digamma = td.math.digamma
        return (
            self._normalized() - (one - 1.0) * digamma(one) - (zero - 1.0) * digamma(zero)
            + (total - 2.0) * digamma(total)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self._one / (self._one + self._zero)

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self._one + self._zero)

    def _mode(self) -> Any:
        found = (self._one - 1.0) / (self._one + self._zero - 2.0)
        exists = td.logical_and(self._full(self._one) > 1.0, self._full(self._zero) > 1.0)
        return self._or_error(exists, found, "mode undefined for concentrations <= 1")


class StudentT(Scalar):
    """Student's t distributions.

    Args:
        df: the degrees of freedom. loc: the centres. scale: the widths.
    """

    _tensors = ("_df", "_loc", "_scale")

    def __init__(self, df: Any, loc: Any, scale: Any, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "StudentT") -> None:  # fmt: skip
        given = dict(locals())
        self._df, self._loc, self._scale = parameters(df, loc, scale)
        if validate_args:
            self._df, = parameters(self._df, check=_positive)
        super().__init__(self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         given, name=name)  # fmt: skip

    df = property(lambda self: self._df)
    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        normal = td.random.normal(self._shape_of(count), 0.0, 1.0, self._dtype, seed)
        df = self._full(self._df)
        gamma = td.random.gamma([count], 0.5 * df, 0.5, self._dtype, salted_seed(seed, "student_t"))
        return normal * td.math.rsqrt(gamma / df) * self._scale + self._loc

    def _log_prob(self, x: Any) -> Any:
        df, y = self._df, (x - self._loc) / self._scale
        above = -0.5 * (df + 1.0) * td.math.log1p(td.square(y) / df)
        normalized = (
            td.math.log(td.abs(self._scale)) + 0.5 * td.math.log(df) + 0.5 * math.log(math.pi)
            + td.math.lgamma(0.5 * df) - td.math.lgamma(0.5 * (df + 1.0))
        )  # fmt: skip
        return above - normalized

    def _cdf(self, x: Any) -> Any:
        y = (x - self._loc) / td.abs(self._scale)
        df = self._df + td.zeros_like(y)
        below = 0.5 * td.math.betainc(0.5 * df, td.fill(td.shape(df), td.cast(0.5, df.dtype)),
                                      df / (td.square(y) + df))  # fmt: skip
        return td.where(y < 0.0, below, 1.0 - below)

    def _entropy(self) -> Any:
        half, more = 0.5 * self._full(self._df), 0.5 * (self._full(self._df) + 1.0)
        beta = td.math.lgamma(half) + math.lgamma(0.5) - td.math.lgamma(more)
        slopes = td.math.digamma(more) - td.math.digamma(half)
        return (
            td.math.log(td.abs(self._scale)) + 0.5 * td.math.log(self._full(self._df)) + beta
            + more * slopes
        )  # fmt: skip

    def _mean(self) -> Any:
        return self._or_error(
            self._full(self._df) > 1.0, self._full(self._loc), "mean not defined for df <= 1"
        )

    def _variance(self) -> Any:
        df = self._full(self._df)
        safe = td.where(df > 2.0, df - 2.0, td.ones_like(df))
        finite = td.square(self._full(self._scale)) * df / safe
        value = td.where(df > 2.0, finite, td.constant(math.inf, df.dtype))
        return self._or_error(df > 1.0, value, "variance not defined for df <= 1")

    def _mode(self) -> Any:
        return self._full(self._loc)


@divergence(Normal)
def _of_normals(a: Normal, b: Normal) -> Any:
    ratio = td.square(a._scale / b._scale)
    return td.square(a._loc - b._loc) / (2.0 * td.square(b._scale)) + 0.5 * (
        ratio - 1.0 - td.math.log(ratio)
    )


@divergence(Gamma)
def _of_gammas(a: Gamma, b: Gamma) -> Any:
    lgamma = td.math.lgamma
    return (
        (a._concentration - b._concentration) * td.math.digamma(a._concentration)
        + lgamma(b._concentration) - lgamma(a._concentration)
        + b._concentration * (td.math.log(a._rate) - td.math.log(b._rate))
        + a._concentration * (b._rate / a._rate - 1.0)
    )  # fmt: skip


@divergence(Beta)
def _of_betas(a: Beta, b: Beta) -> Any:
    digamma, total = td.math.digamma, a._one + a._zero
    return (
        b._normalized() - a._normalized() - digamma(a._one) * (b._one - a._one)
        - digamma(a._zero) * (b._zero - a._zero)
        + digamma(total) * (b._one + b._zero - total)
    )  # fmt: skip
