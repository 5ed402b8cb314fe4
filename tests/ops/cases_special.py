"""Cases of special functions: references by sums, quadrature and the standard library."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import special

import treadle as td
from tests.ops.cases import TWO, Case

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)
THREE = ((), (), ()), ((7,), (7,), (7,)), ((3, 1), (4,), ()), ((0, 2), (2,), (1,))


def each(function: Callable[..., float]) -> Any:
    return np.vectorize(function, otypes=[float])


def integral(function: Callable[[Any], Any], end: float) -> float:
    """From 0 to `end`. With u ** 6 in place of the variable, powers above -1 are smooth at 0."""
    u = (_NODES + 1) / 2
    return float(np.sum(_WEIGHTS / 2 * function(end * u**6) * end * 6 * u**5))


def digamma(x: float) -> float:
    below = sum(1 / (x + k) for k in range(60))
    y = x + 60
    return math.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - below


def zeta(s: float, q: float) -> float:
    first = sum((q + k) ** -s for k in range(400))
    y = q + 400
    tail = y ** (1 - s) / (s - 1) + y**-s / 2 + s * y ** (-s - 1) / 12
    return first + tail - s * (s + 1) * (s + 2) * y ** (-s - 3) / 720


def polygamma(n: float, x: float) -> float:
    return (-1) ** (int(n) + 1) * math.gamma(n + 1) * zeta(n + 1, x)


def igamma(a: float, x: float) -> float:
    return integral(lambda t: t ** (a - 1) * np.exp(-t), x) / math.gamma(a)


def betainc(a: float, b: float, x: float) -> float:
    beta = math.gamma(a) * math.gamma(b) / math.gamma(a + b)
    return integral(lambda t: t ** (a - 1) * (1 - t) ** (b - 1), x) / beta


def bessel(order: int) -> Any:
    """The trapezoidal rule, which is exact to rounding for periodic functions."""
    t = np.arange(256) * (2 * np.pi / 256)
    return each(lambda x: float(np.mean(np.exp(x * np.cos(t)) * np.cos(order * t))))


def quantile(p: float) -> float:
    return NormalDist().inv_cdf(p)


SPECIAL = [
    Case("lgamma", td.math.lgamma, each(math.lgamma), low=0.2, high=9),
    Case(
        "lgamma_negative", td.math.lgamma, each(math.lgamma), low=-2.9, high=-2.1,
        dtypes=("float64", "float32"),
    ),
    Case("digamma", td.math.digamma, each(digamma), low=0.2, high=14),
    Case("erfinv", td.math.erfinv, each(lambda x: quantile((x + 1) / 2) * math.sqrt(0.5)),
         low=-0.98, high=0.98),
    Case("erfcinv", td.math.erfcinv, each(lambda x: -quantile(x / 2) * math.sqrt(0.5)),
         low=0.05, high=1.95),
    Case("ndtri", td.math.ndtri, each(quantile), low=0.02, high=0.98),
    Case("bessel_i0", td.math.bessel_i0, bessel(0), low=-4, high=4),
    Case("bessel_i1", td.math.bessel_i1, bessel(1), low=-4, high=4),
    Case("bessel_i0e", td.math.bessel_i0e, lambda x: bessel(0)(x) * np.exp(-np.abs(x)),
         low=-15, high=15),
    Case("bessel_i1e", td.math.bessel_i1e, lambda x: bessel(1)(x) * np.exp(-np.abs(x)),
         low=-15, high=15),
    Case("xlogy", td.math.xlogy, lambda x, y: x * np.log(y), TWO, low=0.1),
    Case("xlog1py", td.math.xlog1py, lambda x, y: x * np.log1p(y), TWO, low=0.1),
    Case("xdivy", td.math.xdivy, np.divide, TWO, low=0.3),
    Case("multiply_no_nan", td.math.multiply_no_nan, np.multiply, TWO),
    Case("reciprocal_no_nan", td.math.reciprocal_no_nan, lambda x: 1 / x, low=0.3),
    Case("lbeta", td.math.lbeta,
         lambda x: each(math.lgamma)(x).sum(-1) - each(math.lgamma)(x.sum(-1)),
         (((3,),), ((2, 4),)), low=0.5, dtypes=("float64", "float32")),
    Case("zeta", td.math.zeta, each(zeta), TWO, low=1.3, high=5, differentiable=False,
         kernels=False),
    Case("polygamma", lambda x: td.math.polygamma(td.constant(2, x.dtype), x),
         each(lambda x: polygamma(2, x)), low=0.5, high=5, kernels=False),
    Case("igamma", td.math.igamma, each(igamma), TWO, low=1.2, high=3, kernels=False,
         twice=False),
    Case("igammac", td.math.igammac, lambda a, x: 1 - each(igamma)(a, x), TWO, low=1.2, high=3,
         kernels=False, twice=False),
    Case("igamma_of_a_constant", lambda x: td.math.igamma(td.constant(1.7, x.dtype), x),
         lambda x: each(igamma)(1.7, x), low=1.2, high=3, kernels=False,
         dtypes=("float64", "float32")),
    Case("betainc", lambda a, b, x: td.math.betainc(a, b, x * 0.3),
         lambda a, b, x: each(betainc)(a, b, x * 0.3), THREE, low=1.2, high=3,
         differentiable=False, kernels=False),
    *(
        Case(name, getattr(td.math.special, name), reference, low=low, high=high)
        for name, reference, low, high in (
            ("bessel_j0", special.j0, -9, 12), ("bessel_j1", special.j1, -9, 12),
            ("bessel_y0", special.y0, 1.2, 12), ("bessel_y1", special.y1, 1.2, 12),
            ("bessel_k0", special.k0, 0.5, 4), ("bessel_k0e", special.k0e, 0.5, 4),
            ("bessel_k1", special.k1, 0.5, 4), ("bessel_k1e", special.k1e, 0.5, 4),
            ("dawsn", special.dawsn, -7, 7), ("expint", special.expi, 0.6, 4),
            ("fresnel_sin", lambda x: special.fresnel(x)[0], -2.5, 2.5),
            ("fresnel_cos", lambda x: special.fresnel(x)[1], -2.5, 2.5),
            ("spence", special.spence, 0.1, 4),
        )
    ),
]  # fmt: skip
