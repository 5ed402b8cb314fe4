"""Special functions: values on their branches and at their poles, slopes, dtypes, refusals."""

from __future__ import annotations

import math

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

POLES = [0.0, -1.0, -2.0, math.inf, math.nan]
ORDINARY = [1e-3, 0.3, 1.0, 1.5, 2.0, 4.7, 9.5, 33.0, 1e4, -0.4, -2.6]


def slope(tf, fn, *args):
    """The value and the gradients with respect to all arguments, in float64."""
    operands = [tf.constant(a, tf.float64) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        value = fn(*operands)
    return value, tape.gradient(value, operands)


@program
def lgamma(tf):
    return slope(tf, tf.math.lgamma, ORDINARY), tf.math.lgamma(POLES)


@program
def digamma(tf):
    return slope(tf, tf.math.digamma, ORDINARY[:9]), tf.math.digamma([-1.0, math.nan])


@program
def polygamma(tf):
    return slope(tf, tf.math.polygamma, [0.0, 1.0, 2.0, 3.0, 4.0], [0.2, 1.0, 2.5, 7.0, 30.0])


@program
def zeta(tf):
    return (
        slope(tf, tf.math.zeta, [1.5, 2.0, 3.0, 4.5, 12.0], [0.2, 1.0, 2.5, 7.0, 30.0]),
        tf.math.zeta([1.0, 0.5, 2.0], [2.0, 2.0, 0.0]),
        tf.math.zeta([2.0, 3.0, 2.5], [-0.5, -1.5, -0.5]),
    )


@program
def igamma(tf):
    a, x = [0.3, 1.0, 2.5, 7.0, 30.0, 5.0], [0.2, 3.0, 2.5, 7.5, 20.0, 40.0]
    return slope(tf, tf.math.igamma, a, x), slope(tf, tf.math.igammac, a, x)


@program
def igamma_ends(tf):
    a = [1.0, 1.0, -1.0, 1.0, math.nan, 0.0]
    x = [0.0, math.inf, 1.0, -1.0, 1.0, 1.0]
    return tf.math.igamma(a, x), tf.math.igammac(a, x)


@program
def betainc(tf):
    a, b = [0.5, 2.0, 3.0, 20.0], [0.5, 3.0, 1.0, 30.0]
    return (
        slope(
            tf, lambda x: tf.math.betainc(tf.constant(a, tf.float64), 2.0, x), [0.1, 0.4, 0.6, 1]
        ),
        tf.math.betainc(a, b, [0.1, 0.4, 0.9, 0.5]),
        tf.math.betainc([1.0, 1.0, 1.0, -1.0], [2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 1.5, 0.5]),
    )


@program
def lbeta(tf):
    return slope(tf, tf.math.lbeta, [[1.0, 2.0], [0.5, 0.5]]), tf.math.lbeta([0.5, 1.0, 3.0])


@program
def inverse_errors(tf):
    return (
        slope(tf, tf.math.erfinv, [-0.999, -0.5, 0.0, 0.1, 0.86, 0.99999]),
        slope(tf, tf.math.ndtri, [1e-30, 0.01, 0.3, 0.5, 0.93, 0.9999]),
        slope(tf, tf.math.erfcinv, [1e-20, 0.3, 1.0, 1.9]),
        tf.math.erfinv([-1.0, 1.0, 1.5, math.nan]),
        tf.math.ndtri([0.0, 1.0, -0.5, math.nan]),
    )


@program
def bessel(tf):
    x = [-20.0, -7.0, -0.5, 0.5, 3.0, 8.0, 11.0, 60.0]
    return [
        slope(tf, fn, x)
        for fn in (tf.math.bessel_i0, tf.math.bessel_i0e, tf.math.bessel_i1, tf.math.bessel_i1e)
    ]


@program
def guarded_products(tf):
    x, y = [0.0, 0.0, 0.0, 2.0, -1.5], [0.0, math.inf, -1.0, 3.0, 0.5]
    return [
        slope(tf, fn, x, y)
        for fn in (tf.math.xlogy, tf.math.xlog1py, tf.math.xdivy, tf.math.multiply_no_nan)
    ]


@program
def guarded_products_broadcast(tf):
    x = [[0.0], [2.0]]
    return tf.math.xlogy(x, [1.0, 2.0, 0.0]), tf.math.multiply_no_nan([math.nan, 2.0], 0.0)


@program
def reciprocal_no_nan(tf):
    return slope(tf, tf.math.reciprocal_no_nan, [0.0, 2.0, -0.5])


@program
def dtypes(tf):
    found = {}
    for name in ("lgamma", "digamma", "erfinv", "ndtri", "bessel_i0e", "reciprocal_no_nan"):
        function = getattr(tf.math, name)
        found[name] = [function(tf.constant([0.5], d)).dtype.name for d in ("float32", "float64")]
        found[name].append(raised(function, tf.constant([1])))
    return found


@program
def shapes(tf):
    return (
        tf.math.igamma(np.ones((2, 1), np.float32), np.ones(3, np.float32)).shape.as_list(),
        tf.math.polygamma(1.0, [[1.0, 2.0]]).shape.as_list(),
        raised(tf.math.zeta, [1.0, 2.0], [1.0, 2.0, 3.0]),
        raised(tf.math.igamma, [1.0, 2.0], tf.constant([1.0, 2.0], tf.float64)),
        outcome(tf.math.lbeta, np.zeros((2, 0), np.float32)),
    )


WAVES = [0.1, 0.9, 2.4, 5.0, 7.9, 8.1, 20.0, 150.0]
ENDS = [0.0, -0.0, -1.0, math.nan]


@program
def bessel_kinds(tf):
    special = tf.math.special
    return slope(tf, special.bessel_y1, WAVES), [
        (slope(tf, fn, WAVES), fn(ENDS))
        for fn in (
            special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_k0,
            special.bessel_k0e, special.bessel_k1, special.bessel_k1e,
        )
    ]  # fmt: skip


@program
def integrals(tf):
    special = tf.math.special
    x = [-30.0, -4.0, -1.7, -0.3, 0.0, 1e-3, 0.9, 1.59, 1.61, 3.0, 4.9, 5.1, 40.0]
    return [
        [(slope(tf, fn, x), fn(ENDS)) for fn in (special.dawsn, special.fresnel_cos,
                                                 special.fresnel_sin)],
        (slope(tf, special.expint, [1e-3, 0.2, 0.5, 2.0, 5.9, 6.1, 15.0, 17.0, 90.0]),
         special.expint(ENDS)),
        (slope(tf, special.spence, [1e-3, 0.2, 0.6, 1.0, 1.4, 1.6, 2.5, 50.0]),
         special.spence(ENDS)),
    ]  # fmt: skip
