"""Normal distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

import treadle as td
from treadle.compat.v1.distributions.base import (
    FULLY_REPARAMETERIZED,
    Distribution,
    divergence,
    joint_shape,
    joint_shape_tensor,
    parameters,
)


class MultivariateNormalDiag(Distribution):
    """Normal distributions of vectors whose numbers are independent.

    Args:
        loc: the means, zeros where omitted. scale_diag: the standard deviations, ones where
            omitted. scale_identity_multiplier: multiplies or, where there is none, is all of these.

    Raises:
        ValueError: nothing is given that has the vectors' axis.
    """

    _tensors = ("_loc", "_diagonal")

    def __init__(self, loc: Any = None, scale_diag: Any = None,
                 scale_identity_multiplier: Any = None, validate_args: bool = False,
                 allow_nan_stats: bool = True, name: str = "MultivariateNormalDiag") -> None:
        given = dict(locals())
        if loc is None and scale_diag is None:
            raise ValueError("loc or scale_diag must be given: they tell the size of the vectors")
        loc, diagonal = parameters(
            0.0 if loc is None else loc, 1.0 if scale_diag is None else scale_diag
        )
        if scale_identity_multiplier is not None:
            _, factor = parameters(loc, scale_identity_multiplier)
            diagonal = diagonal * factor[..., None]
        self._loc, self._diagonal = loc, diagonal
        super().__init__(loc.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given,
                         name=name)  # fmt: skip

    loc = property(lambda self: self._loc)

    def _batch_shape(self) -> Any:
        return joint_shape(self._loc, self._diagonal)[:-1]

    def _event_shape(self) -> Any:
        return joint_shape(self._loc, self._diagonal)[-1:]

    def _both(self) -> Any:
        return joint_shape_tensor(self._loc, self._diagonal)

    def _batch_shape_tensor(self) -> Any:
        return self._both()[:-1]

    def _event_shape_tensor(self) -> Any:
        return self._both()[-1:]

    def _size(self) -> Any:
        return td.cast(self._both()[-1], self._dtype)

    def _log_scale(self) -> Any:
        """The logarithm of the determinant."""
        full = td.broadcast_to(self._diagonal, self._both())
        return td.reduce_sum(td.math.log(td.abs(full)), -1)

    def _sample_n(self, count: Any, seed: int | None) -> Any:
        shape = td.concat([[count], self._both()], 0)
        drawn = td.random.normal(shape, 0.0, 1.0, self._dtype, seed)
        return drawn * self._diagonal + self._loc

    def _log_prob(self, x: Any) -> Any:
        squares = td.reduce_sum(td.square((x - self._loc) / self._diagonal), -1)
        constants = self._size() * math.log(2 * math.pi)
        return -0.5 * (squares + constants) - self._log_scale()

    def _entropy(self) -> Any:
        return 0.5 * self._size() * (1.0 + math.log(2 * math.pi)) + self._log_scale()

    def _mean(self) -> Any:
        return td.broadcast_to(self._loc, self._both())

    _mode = _mean

    def _stddev(self) -> Any:
        return td.abs(td.broadcast_to(self._diagonal, self._both()))

    def _variance(self) -> Any:
        return td.square(self._stddev())

    def _covariance(self) -> Any:
        return td.linalg.diag(self._variance())


@divergence(MultivariateNormalDiag)
def _of_normal_vectors(a: MultivariateNormalDiag, b: MultivariateNormalDiag) -> Any:
    ratios = td.square(a._stddev() / b._diagonal)
    distances = td.square((a._loc - b._loc) / b._diagonal)
    return 0.5 * td.reduce_sum(ratios + distances - 1.0 - td.math.log(ratios), -1)
