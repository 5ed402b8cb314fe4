"""Arguments of size n for the programs of `part_programs`: functions of n and a dtype."""

import numpy as np


def spd(n, dtype):
    rng = np.random.default_rng(n)
    m = rng.standard_normal((n, n))
    return ((m @ m.T + n * np.eye(n)).astype(dtype),)


def lower_system(n, dtype):
    rng = np.random.default_rng(n)
    a = np.tril(rng.standard_normal((n, n))) + n * np.eye(n)
    return a.astype(dtype), rng.standard_normal(n).astype(dtype)


def upper_system(n, dtype):
    a, b = lower_system(n, dtype)
    return np.ascontiguousarray(a.T), b


def square(n, dtype):
    return (np.random.default_rng(n).standard_normal((n, n)).astype(dtype),)


def tall(n, dtype):
    return (np.random.default_rng(n).standard_normal((n + 3, n)).astype(dtype),)


def decaying(n, dtype):
    return ((0.4 ** np.arange(1, n + 1)).astype(dtype),)


def toeplitz_system(n, dtype):
    b = np.random.default_rng(n).standard_normal(n)
    return (0.5 ** np.arange(n)).astype(dtype), b.astype(dtype)


def two_vectors(n, dtype):
    rng = np.random.default_rng(n)
    return tuple(rng.standard_normal((2, n)).astype(dtype))


def vector(n, dtype):
    return (np.random.default_rng(n).standard_normal(n).astype(dtype),)


def matrix_and_vector(n, dtype):
    rng = np.random.default_rng(n)
    return (rng.standard_normal((n, n)) / n).astype(dtype), rng.standard_normal(n).astype(dtype)


def distances(n, dtype):
    return (np.random.default_rng(n).uniform(1, 9, (n, n)).astype(dtype),)


def sparse(n, dtype):
    rng = np.random.default_rng(n)
    counts = rng.integers(0, min(n, 5) + 1, n)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = rng.integers(0, n, starts[-1]).astype(np.int32)
    values = rng.standard_normal(starts[-1]).astype(dtype)
    return values, columns, starts, rng.standard_normal(n).astype(dtype)


def batch(n, dtype):
    return (np.random.default_rng(n).standard_normal((3, n, 4)).astype(dtype),)


def grid(n, dtype):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n + 2)).astype(dtype), rng.standard_normal(n).astype(dtype)


def heads(n, dtype):
    rng = np.random.default_rng(n)
    return tuple(rng.standard_normal((3, n, 4)).astype(dtype))


ARGUMENTS = {
    "cholesky": spd,
    "cholesky_by_elements": spd,
    "gauss": spd,
    "lu_with_pivots": square,
    "forward_solve": lower_system,
    "backward_solve": upper_system,
    "solve_by_columns": lower_system,
    "levinson": toeplitz_system,
    "durbin": decaying,
    "gram_schmidt": tall,
    "modified_gram_schmidt": tall,
    "householder": tall,
    "floyd_warshall": distances,
    "csr_product": sparse,
    "toeplitz_product": two_vectors,
    "growing_blocks": matrix_and_vector,
    "batches": batch,
    "windows": vector,
    "columns_of_a_grid": grid,
    "smith_waterman": square,
    "attention": heads,
    "running_softmax": vector,
}
