"""Linear operators as arguments of functions of matrices, and what is known of products."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def known(operator):
    names = ("is_square", "is_non_singular", "is_self_adjoint", "is_positive_definite")
    return [getattr(operator, name) for name in names]


def operators(tf):
    a = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 5.0]], is_non_singular=True)
    b = tf.linalg.LinearOperatorFullMatrix(
        [[2.0, 1.0], [1.0, 3.0]], is_self_adjoint=True, is_positive_definite=True
    )
    return a, b


@program
def functions_of_matrices(tf):
    (a, b), x = operators(tf), tf.constant([[1.0, 2.0], [0.0, 1.0]])
    linalg = tf.linalg
    calls = [
        lambda: tf.matmul(a, x), lambda: tf.matmul(x, a), lambda: tf.matmul(x, a, adjoint_a=True),
        lambda: tf.matmul(x, a, adjoint_b=True), lambda: linalg.matmul(a, x, adjoint_b=True),
        lambda: tf.matmul(a, b).to_dense(), lambda: tf.matmul(a, b, adjoint_a=True).to_dense(),
        lambda: linalg.solve(b, x), lambda: linalg.solve(a, x, adjoint=True),
        lambda: linalg.adjoint(a).to_dense(), lambda: linalg.inv(a).to_dense(),
        lambda: linalg.inv(a, adjoint=True).to_dense(), lambda: linalg.cholesky(b).to_dense(),
        lambda: linalg.det(a), lambda: linalg.logdet(b), lambda: linalg.diag_part(a),
        lambda: linalg.trace(a),
    ]  # fmt: skip
    refused = [
        raised(tf.matmul, a, x, transpose_a=True), raised(linalg.solve, x, a),
        raised(linalg.logdet, a), raised(linalg.cholesky, a),
    ]  # fmt: skip
    return [outcome(call) for call in calls], refused, tf.function(lambda o: tf.matmul(o, x))(a)


@program
def what_is_known_of_products(tf):
    a, b = operators(tf)
    composition = tf.linalg.LinearOperatorComposition
    c = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 5.0]])
    made = [
        b.matmul(b), a.matmul(b), a.matmul(a, adjoint_arg=True), composition([a, a.H]),
        composition([a.H, a]), composition([c, c.H]), composition([a, c]), composition([c, c]),
        composition([a, b, b, a.H]), tf.linalg.LinearOperatorKronecker([a, b]),
    ]  # fmt: skip
    return [known(o) for o in made]


@program
def contradictions(tf):
    (a, b), linalg = operators(tf), tf.linalg
    base, ones = linalg.LinearOperatorIdentity(3, dtype=tf.float64), np.ones
    update = linalg.LinearOperatorLowRankUpdate
    positive = linalg.LinearOperatorDiag(tf.constant([1 + 1j, 2.0 - 1j]))
    negative = linalg.LinearOperatorDiag(tf.constant([-1 + 1j, 2.0 - 1j]))
    return [
        raised(linalg.LinearOperatorComposition, [a, a], is_non_singular=False),
        raised(linalg.LinearOperatorComposition, [a, a.H], is_self_adjoint=False),
        raised(linalg.LinearOperatorComposition, [a, a.H], is_positive_definite=False),
        raised(linalg.LinearOperatorKronecker, [a, b], is_non_singular=False),
        raised(linalg.LinearOperatorKronecker, [b, b], is_self_adjoint=False),
        raised(linalg.LinearOperatorBlockDiag, [b, b], is_positive_definite=False),
        raised(update, base, ones((5, 3, 2)), ones((4, 2))).replace(" < OpError", ""),
        raised(update, base, ones((3, 2)), ones((3,))),
        raised(positive.assert_positive_definite),
        raised(negative.assert_positive_definite),
    ]


@program
def copies_and_sums_of_shapes(tf):
    size, shapes = tf.compat.v1.Dimension(3), [tf.TensorShape([1, None]), tf.TensorShape(None)]
    pickled = [pickle.loads(pickle.dumps(s, p)) for s in shapes for p in (0, 1, 2, 5)]
    error = tf.errors.InvalidArgumentError(None, None, "why")
    return [
        pickled, [copy.deepcopy(s) for s in shapes], tf.TensorShape([1]).concatenate(size),
        tf.TensorShape([1]) + size, size + tf.TensorShape([1]), tf.TensorShape(size),
        error.experimental_payloads, raised(tf.Variable, 1.0, constraint=5),
    ]  # fmt: skip
