"""td.linalg: diagonals, triangles, eigenvalues, functions of matrices, with gradients."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.helpers import both, gradients, known
from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(11)
A = RNG.normal(size=(3, 3))
B = RNG.normal(size=(2, 3, 3))
Z = RNG.normal(size=(2, 3, 3)) + 1j * RNG.normal(size=(2, 3, 3))
WIDE = RNG.normal(size=(2, 3, 4))
RIGHT = RNG.normal(size=(2, 3, 2))
DEFINITE = A @ A.T + 3 * np.eye(3)
BANDS = [0, 1, -1, (-1, 1), (0, 2), (-2, -1), (-2, 3)]
ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


@program
def cross(tf):
    fn = tf.linalg.cross
    return (
        both(tf, fn, WIDE[..., :3], WIDE[..., 1:]), both(tf, fn, [1, 2, 3], [4, 5, 7]),
        fn(tf.constant([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]), gradients(tf, fn, A[0], A[1]),
        raised(fn, WIDE, WIDE), raised(fn, [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]]),
        raised(fn, [1.0, 2.0, 3.0], [1, 2, 3]),
    )  # fmt: skip


@program
def parts_of_diagonals(tf):
    fn = tf.linalg.diag_part
    return [
        *(both(tf, lambda x, k=k, a=a: fn(x, k=k, align=a), WIDE) for k in BANDS
          for a in ALIGNMENTS[: 1 if isinstance(k, int) else 4]),
        both(tf, lambda x: fn(x, k=(-1, 2), padding_value=9), np.arange(12).reshape(3, 4)),
        both(tf, fn, np.arange(12).reshape(4, 3)), both(tf, lambda x: fn(x, k=[1]), A),
        raised(fn, [[True, False], [False, True]]), fn(np.zeros((2, 0, 0))),
        gradients(tf, lambda x: fn(x, k=(-1, 2)), WIDE), gradients(tf, lambda x: fn(x, k=2), WIDE),
        gradients(tf, fn, A),
    ]  # fmt: skip


@program
def refused_diagonals(tf):
    part, diag, put = tf.linalg.diag_part, tf.linalg.diag, tf.linalg.set_diag
    row = [1.0, 2.0, 3.0]
    return [
        raised(part, A, k=3), raised(part, A, k=-3), raised(part, A, k=(1, 0)),
        raised(part, A, k=(0, 3)), raised(part, row), raised(part, A, k=(0, 1, 2)),
        raised(part, A, k=(0, 1), align="LEFT"), raised(part, A, k=1.5),
        raised(diag, 1.0), raised(diag, [row, row], k=(-1, 1)), raised(diag, row, num_rows=2),
        raised(diag, row, num_rows=5, num_cols=5), raised(diag, row, k=1, num_cols=3),
        raised(put, A, row[:2]), raised(put, A, [row, row], k=(-1, 1)), raised(put, row, row),
        raised(put, A, row, k=1), raised(put, A, [row, row]), raised(put, A, [1, 2, 3]),
    ]  # fmt: skip


@program
def matrices_of_diagonals(tf):
    fn, one = tf.linalg.diag, np.float32([1, 2, 3])
    three = np.arange(1.0, 19).reshape(2, 3, 3)
    return [
        *(both(tf, lambda x, a=a, k=k: fn(x, k=k, align=a), three) for a in ALIGNMENTS
          for k in ((-1, 1), (0, 2), (-3, -1))),
        both(tf, fn, one), both(tf, lambda x: fn(x, k=1), one),
        both(tf, lambda x: fn(x, k=-2), one),
        both(tf, lambda x: fn(x, num_rows=3, num_cols=5), one),
        both(tf, lambda x: fn(x, num_rows=5), one), both(tf, lambda x: fn(x, num_cols=4), one),
        both(tf, lambda x: fn(x, k=2, num_rows=6), one),
        both(tf, lambda x: fn(x, k=(-1, 1), num_rows=3, num_cols=4, padding_value=7), three),
        both(tf, lambda x: fn(x, k=-1, padding_value=-1), np.int32([[1, 2], [3, 4]])),
        raised(fn, [True, True]), fn(np.zeros((2, 0))), fn(Z[0]),
        gradients(tf, lambda x: fn(x, k=(-1, 1)), three), gradients(tf, lambda x: fn(x, k=1), one),
    ]  # fmt: skip


@program
def replaced_diagonals(tf):
    fn = tf.linalg.set_diag
    two = np.arange(1.0, 13).reshape(2, 2, 3)
    return [
        *(known(tf, lambda x, d, a=a, k=k: fn(x, d, k=k, align=a), WIDE, two) for a in ALIGNMENTS
          for k in ((0, 1), (-1, 0))),
        both(tf, fn, B, two[0]), both(tf, fn, WIDE, two[1]),
        both(tf, lambda x, d: fn(x, d, k=2), WIDE, two[0][:, :2]),
        both(tf, lambda x, d: fn(x, d, k=-1), np.zeros((3, 3), np.int32), np.int32([5, 6])),
        gradients(tf, lambda x, d: fn(x, d, k=(0, 1)), WIDE, two),
        gradients(tf, fn, A, A[0]),
    ]  # fmt: skip


@program
def diagonals_of_tensors(tf):
    to, of = tf.linalg.tensor_diag, tf.linalg.tensor_diag_part
    return (
        both(tf, to, np.float32([1, 2, 3])), both(tf, to, np.int32([[1, 2, 3], [4, 5, 6]])),
        both(tf, of, A), both(tf, of, np.arange(36.0).reshape(2, 3, 2, 3)),
        gradients(tf, to, A[0]), gradients(tf, of, np.arange(36.0).reshape(2, 3, 2, 3)),
        raised(to, 1.0), raised(of, [1.0]), raised(of, WIDE), raised(of, WIDE[0]),
    )


@program
def traces(tf):
    return both(tf, tf.linalg.trace, WIDE), both(tf, tf.linalg.trace, np.arange(9).reshape(3, 3))


@program
def norms(tf):
    fn = tf.linalg.normalize
    return [
        both(tf, fn, A), both(tf, lambda x: fn(x, axis=-1), WIDE),
        both(tf, lambda x: fn(x, 1, 0), WIDE), both(tf, lambda x: fn(x, np.inf, axis=1), WIDE),
        fn(np.float32([3, 4])), gradients(tf, lambda x: fn(x, axis=1)[0][:, 0], A),
        both(tf, tf.linalg.l2_normalize, A[0]), both(tf, lambda x: tf.linalg.l2_normalize(x, 1), A),
    ]  # fmt: skip


@program
def norms_of_matrices(tf):
    fn, orders = tf.norm, ("euclidean", "fro", 1, 2, np.inf)
    return [
        *(both(tf, lambda x, o=o: fn(x, o, (-2, -1)), WIDE) for o in orders),
        *(both(tf, lambda x, o=o: fn(x, o, [0, 2], keepdims=True), WIDE) for o in orders),
        *(both(tf, lambda x, o=o: fn(x, o, axis=1), WIDE) for o in ("euclidean", 1, 2, np.inf, 3)),
        *(fn(Z, o) for o in ("euclidean", 1, np.inf, 2.5)), fn(Z, 1, (1, 2)), fn(Z, axis=-1),
        gradients(tf, lambda x: fn(x, 2, (0, 1)), A), gradients(tf, lambda x: fn(x, 1, (0, 1)), A),
        raised(fn, A, "nuc"), raised(fn, A, "fro"), raised(fn, A, -1), raised(fn, A, 3, (0, 1)),
        raised(fn, A, 1, (0, 0)), raised(fn, A, 1, (0, 1, 2)), raised(fn, A, 0),
    ]  # fmt: skip


@program
def pseudo_inverses(tf):
    fn = tf.linalg.pinv
    low = np.outer([1.0, 2, 3], [4.0, 5])
    return [
        both(tf, fn, A), both(tf, fn, WIDE), both(tf, fn, low), both(tf, fn, WIDE.swapaxes(1, 2)),
        both(tf, fn, np.zeros((2, 3))), both(tf, lambda x: fn(x, 0.5), A),
        fn(B, [0.1, 0.9]), fn(np.eye(3, dtype=np.float32)),
        gradients(tf, fn, A), gradients(tf, fn, WIDE),
        raised(fn, [[1, 2], [3, 4]]), raised(fn, [1.0, 2.0]),
    ]  # fmt: skip


@program
def ranks(tf):
    fn = tf.linalg.matrix_rank
    low = np.outer([1.0, 2, 3], [4.0, 5])
    return [
        both(tf, fn, A), both(tf, fn, WIDE), both(tf, fn, low), both(tf, fn, np.zeros((2, 2))),
        both(tf, lambda x: fn(x, 1.0), B), fn(np.float32(low)), fn(Z),
        fn(np.float32([[1, 0], [0, 1e-4]]), tol=1e-3), raised(fn, [1.0]),
    ]  # fmt: skip


@program
def exponentials(tf):
    fn = tf.linalg.expm
    jordan = np.array([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]])
    return [
        both(tf, fn, A), both(tf, fn, B), both(tf, fn, 9 * A), both(tf, fn, jordan),
        both(tf, fn, np.zeros((2, 2))), both(tf, fn, np.float32(A)), both(tf, fn, Z),
        fn(np.zeros((0, 0))), fn(np.zeros((0, 2, 2))), gradients(tf, fn, A / 2),
        gradients(tf, fn, B / 2), raised(fn, WIDE), raised(fn, [[1, 2], [3, 4]]), raised(fn, A[0]),
    ]  # fmt: skip


@program
def square_roots(tf):
    fn = tf.linalg.sqrtm
    turned = np.array([[0.0, -1], [1, 0]])
    return [
        both(tf, fn, DEFINITE), both(tf, fn, np.stack([DEFINITE, np.eye(3)])), both(tf, fn, turned),
        both(tf, fn, Z), both(tf, fn, np.array([[4.0, 1], [0, 4]])), fn(np.float32(DEFINITE)),
        both(tf, fn, np.array([[1j, 1, 0], [0, 1j, 1], [0, 0, 1j]])),
        fn(np.array([[-4.0, 1], [0, -9]], np.complex128)), fn(np.zeros((0, 0))),
        gradients(tf, fn, DEFINITE), gradients(tf, fn, Z[0]), raised(fn, WIDE), raised(fn, A[0]),
        raised(fn, [[1, 2], [3, 4]]), outcome(tf.matrix_square_root, DEFINITE),
    ]  # fmt: skip


@program
def logarithms(tf):
    fn = tf.linalg.logm
    return [
        both(tf, fn, DEFINITE + 0j), both(tf, fn, Z), both(tf, fn, np.eye(2, dtype=complex)),
        fn(np.complex64(DEFINITE)), both(tf, fn, np.array([[1j, 1, 0], [0, 1j, 1], [0, 0, 1j]])),
        both(tf, lambda x: tf.linalg.expm(fn(x)), Z), raised(fn, DEFINITE), raised(fn, WIDE + 0j),
    ]  # fmt: skip


@program
def triangles_of_rows_exchanged(tf):
    def all_of(x):
        packed, order = tf.linalg.lu(x)
        return (
            packed, order, tf.linalg.lu_reconstruct(packed, order),
            tf.linalg.lu_matrix_inverse(packed, order),
        )  # fmt: skip

    def solved(x, b):
        return tf.linalg.lu_solve(*tf.linalg.lu(x), b)

    one = np.eye(3)[[2, 0, 1]]
    return [
        both(tf, all_of, A), both(tf, all_of, B), both(tf, all_of, Z), both(tf, all_of, one),
        tf.linalg.lu(np.float32(A), tf.int64), both(tf, solved, B, RIGHT),
        both(tf, solved, A, RIGHT[0]), both(tf, solved, Z, RIGHT + 1j),
        gradients(tf, lambda b: solved(B, b), RIGHT),
        raised(tf.linalg.lu, np.zeros((2, 2))), raised(tf.linalg.lu, WIDE),
        raised(tf.linalg.lu, A[0]), raised(tf.linalg.lu, A, tf.float32),
        raised(tf.linalg.lu, [[1, 2], [3, 4]]),
    ]  # fmt: skip


def sorted_values(tf, values):
    values = values if isinstance(values, np.ndarray) else values.numpy()
    return tf.constant(np.take_along_axis(values, np.lexsort(
        (values.imag.round(6), values.real.round(6)), axis=-1), -1))  # fmt: skip


@program
def eigenvalues(tf):
    def residue(x):
        values, vectors = tf.linalg.eig(x)
        x = tf.cast(x, values.dtype)
        return tf.abs(x @ vectors - vectors * values[..., None, :])

    def lengths(x):
        return tf.norm(tf.linalg.eig(x)[1], axis=-2)

    def squares(x):
        return tf.reduce_sum(tf.linalg.eigvals(x) ** 2, -1)

    def first_of_vectors(x):
        return tf.reduce_sum(tf.abs(tf.linalg.eig(x)[1][..., 0, :]) ** 4, -1)

    return [
        *(sorted_values(tf, tf.linalg.eigvals(x)) for x in (A, B, Z, np.float32(A), DEFINITE)),
        sorted_values(tf, tf.linalg.eig(A)[0]), sorted_values(tf, tf.eigvals(A)),
        sorted_values(tf, tf.eig(B)[0]),
        *(both(tf, fn, x) for fn in (residue, lengths, squares, first_of_vectors) for x in (A, Z)),
        gradients(tf, squares, A), gradients(tf, squares, Z), gradients(tf, first_of_vectors, A),
        tf.linalg.eigvals(np.float32(A)).dtype, raised(tf.linalg.eig, WIDE),
        raised(tf.linalg.eigvals, A[0]),
    ]  # fmt: skip


@program
def eigenvalues_of_three_diagonals(tf):
    fn = tf.linalg.eigh_tridiagonal
    alpha, beta = A[0], A[1][:2]

    def residue(a, b):
        values, vectors = fn(a, b, eigvals_only=False)
        x = tf.linalg.diag(a) + tf.linalg.diag(b, k=1) + tf.linalg.diag(b, k=-1)
        return tf.abs(x @ vectors - vectors * values)

    return [
        fn(alpha, beta), fn(np.float32(alpha), np.float32(beta)), residue(alpha, beta),
        fn(alpha, beta, select="i", select_range=(1, 2)),
        fn(alpha, beta, select="i", select_range=(0, 0)),
        fn(alpha, beta, select="v", select_range=(-1.0, 1.0)),
        fn(alpha, beta, False, "i", (1, 2))[1].shape, fn(alpha + 0j, beta + 1j),
        raised(fn, alpha, beta, select="x"), raised(fn, alpha, beta, select="i"),
        raised(fn, alpha, beta, select="v"),
    ]  # fmt: skip


@program
def solutions_of_three_diagonals(tf):
    fn = tf.linalg.tridiagonal_solve
    rows = RNG_ROWS
    matrix = np.array([tridiagonal(r) for r in rows])
    sequence = tuple(tf.constant(rows[:, k]) for k in range(3))
    short = (sequence[0][:, :-1], sequence[1], sequence[2][:, 1:])
    vector = np.ascontiguousarray(RIGHT4[..., 0])
    return [
        both(tf, fn, rows, RIGHT4), both(tf, fn, rows, vector), both(tf, fn, rows[0], RIGHT4[0]),
        both(tf, lambda m, b: fn(m, b, "matrix"), matrix, RIGHT4),
        outcome(fn, sequence, tf.constant(RIGHT4), "sequence"),
        outcome(fn, short, tf.constant(RIGHT4), diagonals_format="sequence"),
        both(tf, lambda d, b: fn(d, b, transpose_rhs=True), rows, RIGHT4.swapaxes(1, 2).copy()),
        both(tf, lambda d, b: fn(d, b, conjugate_rhs=True), rows + 1j, RIGHT4 * (1 + 2j)),
        both(tf, lambda d, b: fn(d, b, partial_pivoting=False), rows, RIGHT4),
        fn(tf.constant(rows, tf.float32), tf.constant(RIGHT4, tf.float32)),
        gradients(tf, fn, rows, RIGHT4),
        gradients(tf, fn, rows[0], vector[0]),
        fn(tf.zeros((3, 4)), tf.ones(4)), raised(fn, tf.constant(rows), tf.constant(RIGHT)),
        raised(fn, rows, vector, "x"), raised(fn, sequence[:2], vector, "sequence"),
        raised(fn, tf.constant(rows[:, :2]), tf.constant(RIGHT4)),
    ]  # fmt: skip


RNG_ROWS = RNG.normal(size=(2, 3, 4))
RIGHT4 = RNG.normal(size=(2, 4, 2))


def tridiagonal(rows):
    above, main, below = rows
    return np.diag(above[:-1], 1) + np.diag(main) + np.diag(below[1:], -1)


@program
def products_of_three_diagonals(tf):
    fn, rows = tf.linalg.tridiagonal_matmul, RNG_ROWS
    sequence = tuple(tf.constant(rows[:, k]) for k in range(3))
    matrix = np.array([tridiagonal(r) for r in rows])
    return [
        both(tf, fn, rows, RIGHT4), both(tf, fn, rows[1], RIGHT4[1]),
        fn(sequence, RIGHT4, "sequence"), fn(matrix, RIGHT4, "matrix"),
        fn(np.complex64(rows), np.complex64(RIGHT4)), gradients(tf, fn, rows, RIGHT4),
        raised(fn, rows, RIGHT), raised(fn, rows, RIGHT4, "rows"),
    ]  # fmt: skip


@program
def solutions_of_bands(tf):
    fn = tf.linalg.banded_triangular_solve
    bands, right = np.float64([[2, 3, 4], [10000, 2, 3]]), RIGHT[0]
    both_bands = np.stack([bands, bands + 1])
    return [
        known(tf, lambda x: fn(x, right), bands),
        outcome(fn, bands, right), outcome(fn, bands, right, lower=False),
        outcome(fn, bands, right, adjoint=True), outcome(fn, bands, right, False, True),
        outcome(fn, both_bands, RIGHT), outcome(fn, bands[:1], right),
        outcome(fn, bands * (1 + 1j), right + 1j, True, True), outcome(fn, both_bands, RIGHT[:1]),
        gradients(tf, lambda x, b: fn(x, b), bands, right),
        gradients(tf, lambda x, b: fn(x, b, lower=False), bands, right), raised(fn, bands, A[:2]),
    ]  # fmt: skip
