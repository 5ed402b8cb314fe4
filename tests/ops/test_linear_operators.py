"""Operators: classes of users, loops that carry them, checks at run time, gradients. What they
compute is compared with TensorFlow in tests/facts_tf."""

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients

A = np.float64([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
B = np.float64([[1.0, 2.0], [-1.0, 0.5], [3.0, 1.0]])


class Shift(td.linalg.LinearOperator):
    """Moves all elements down by one place, in a circle."""

    def __init__(self, size):
        super().__init__(td.float64, is_non_singular=True)
        self.size = size

    def _shape(self):
        return td.TensorShape([self.size, self.size])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = td.linalg.adjoint(x) if adjoint_arg else x
        return td.roll(x, -1 if adjoint else 1, -2)


def test_classes_of_users_need_a_shape_and_a_product():
    shift, dense = Shift(3), np.roll(np.eye(3), 1, 0)
    np.testing.assert_array_equal(shift.to_dense(), dense)
    np.testing.assert_allclose(shift.solve(B), np.roll(B, -1, 0), atol=1e-15)
    np.testing.assert_array_equal(shift.H.to_dense(), dense.T)
    np.testing.assert_allclose(shift.determinant(), 1.0)
    both = shift @ td.linalg.LinearOperatorFullMatrix(A)
    np.testing.assert_allclose(both.matmul(B), dense @ A @ B)
    solved = td.function(lambda x: both.solve(x))(B)
    np.testing.assert_allclose(solved, np.linalg.solve(dense @ A, B))


def test_loops_and_branches_carry_operators():
    @td.function
    def f(operator, n):
        for _ in td.range(n):
            operator = td.linalg.LinearOperatorDiag(operator.diag * 2.0)
        if n > 2:
            operator = operator.inverse()
        return operator

    start = td.linalg.LinearOperatorDiag(td.constant([1.0, 4.0]))
    for n, wanted in ((0, [1.0, 4.0]), (1, [2.0, 8.0]), (3, [1 / 8, 1 / 32])):
        found = f(start, td.constant(n))
        assert isinstance(found, td.linalg.LinearOperatorDiag)
        np.testing.assert_array_equal(found.diag, wanted)


def test_sizes_that_only_a_run_tells_are_compared():
    spec = td.TensorSpec([None], td.float64)

    @td.function(input_signature=[spec, td.TensorSpec([None, 2], td.float64)])
    def f(diagonal, x):
        return td.linalg.LinearOperatorDiag(diagonal).matmul(x)

    np.testing.assert_array_equal(f(B[:, 0], B), B[:, :1] * B)
    with pytest.raises(td.errors.InvalidArgumentError, match="another size"):
        f(B[:, 0], B[:1])


@pytest.mark.parametrize(
    "made",
    [
        td.linalg.LinearOperatorFullMatrix,
        lambda a: td.linalg.LinearOperatorDiag(a[0]),
        td.linalg.LinearOperatorLowerTriangular,
        lambda a: td.linalg.LinearOperatorTridiag(a, "matrix"),
        lambda a: td.linalg.LinearOperatorToeplitz(a[0], a[:, 0]),
        lambda a: td.linalg.LinearOperatorLowRankUpdate(
            td.linalg.LinearOperatorDiag(td.linalg.diag_part(a)), a[:, :1]
        ),
        lambda a: td.linalg.LinearOperatorBlockDiag(
            [td.linalg.LinearOperatorFullMatrix(a[:2, :2]), td.linalg.LinearOperatorDiag(a[2, 2:])]
        ),
        lambda a: td.linalg.LinearOperatorKronecker(
            [td.linalg.LinearOperatorFullMatrix(a), td.linalg.LinearOperatorDiag(a[2, 2:])]
        ),
    ],
)
def test_gradients(made):
    def f(a, b):
        operator = made(a)
        return operator.matmul(b) + operator.solve(b) + operator.log_abs_determinant()

    check_gradients(f, A, B)


def test_an_exact_number_of_steps():
    """Conjugate gradients end in as many steps as there are rows."""
    operator = td.linalg.LinearOperatorFullMatrix(
        A, is_self_adjoint=True, is_positive_definite=True
    )
    state = td.linalg.experimental.conjugate_gradient(operator, B[:, 0], tol=1e-12)
    assert int(state.i) == 3
    np.testing.assert_allclose(state.x, np.linalg.solve(A, B[:, 0]))


def test_the_type_of_an_operator():
    """Specs of operators compare as those of tensors do, in what is known of them as well."""
    make = td.linalg.LinearOperatorFullMatrix
    spec = td.type_spec_from_value(make(A))
    assert spec == td.type_spec_from_value(make(A + 1.0)) and spec.value_type is type(make(A))
    assert hash(spec) == hash(td.type_spec_from_value(make(A + 1.0)))
    assert spec != td.type_spec_from_value(make(A, is_self_adjoint=True))
    small = td.type_spec_from_value(make(A[:2, :2]))
    assert spec != small and not spec.is_compatible_with(small)
    both = spec.most_specific_common_supertype([small])
    assert spec.is_subtype_of(both) and not both.is_subtype_of(spec)
    diagonal = td.type_spec_from_value(td.linalg.LinearOperatorDiag(A[0]))
    assert spec.most_specific_common_supertype([diagonal]) is None


def test_kronecker_products_that_are_not_square():
    first, second = np.float64([[1.0, 2.0, 3.0]]), A[:, :2]
    operator = td.linalg.LinearOperatorKronecker(
        [td.linalg.LinearOperatorFullMatrix(first), td.linalg.LinearOperatorFullMatrix(second)]
    )
    dense, x = np.kron(first, second), np.arange(12.0).reshape(6, 2)
    np.testing.assert_allclose(operator.to_dense(), dense)
    np.testing.assert_allclose(operator.matmul(x), dense @ x)
    np.testing.assert_allclose(operator.matmul(x[:3], adjoint=True), dense.T @ x[:3])

    @td.function(input_signature=[td.TensorSpec([None, None], td.float64)] * 2)
    def solved(a, b):
        made = td.linalg.LinearOperatorKronecker([td.linalg.LinearOperatorFullMatrix(a)] * 2)
        return made.solve(b), made.log_abs_determinant(), made.diag_part()

    square, right = np.kron(A, A), np.ones([9, 1])
    found = solved(A, right)
    np.testing.assert_allclose(found[0], np.linalg.solve(square, right))
    np.testing.assert_allclose(found[1], np.linalg.slogdet(square)[1])
    np.testing.assert_allclose(found[2], np.diagonal(square))


def test_inverses_of_reflections_and_permutations_are_such():
    reflection = td.linalg.LinearOperatorHouseholder(B[:, 0])
    assert isinstance(reflection.inverse(), td.linalg.LinearOperatorHouseholder)
    permutation = td.linalg.LinearOperatorPermutation([2, 0, 1], td.float64)
    for turned in (permutation.inverse(), permutation.H):
        assert isinstance(turned, td.linalg.LinearOperatorPermutation)
        np.testing.assert_array_equal(turned.to_dense(), permutation.to_dense().numpy().T)


KEYS = [1, slice(1, 3), (slice(None, None, 2), -1), (..., 0), None, (slice(None), None, 1), ...]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts_of_batches_are_those_of_the_dense_matrices(key):
    many = np.arange(24.0).reshape(4, 3, 2) + 1.0
    linalg = td.linalg
    diagonal = linalg.LinearOperatorDiag(many, is_non_singular=True)
    small = linalg.LinearOperatorFullMatrix(np.arange(12.0).reshape(1, 3, 2, 2))
    operators = [
        diagonal,
        linalg.LinearOperatorComposition([diagonal, small]),
        linalg.LinearOperatorKronecker([diagonal, linalg.LinearOperatorFullMatrix(np.eye(2))]),
        linalg.LinearOperatorPermutation(np.tile([1, 0], [4, 3, 1])),
        linalg.LinearOperatorIdentity(2, batch_shape=[4, 3]),
        linalg.LinearOperatorZeros(2, batch_shape=[4, 3]),
        linalg.LinearOperatorLowRankUpdate(diagonal, np.ones([3, 2, 1]), v=many[..., None]),
    ]
    dense = (*(key if isinstance(key, tuple) else (key,)),)
    dense = dense if ... in dense else (*dense, ...)
    for operator in operators:
        found = operator[key]
        matrices = operator.to_dense().numpy()
        np.testing.assert_array_equal(
            found.to_dense(), matrices[(*dense, slice(None), slice(None))]
        )
        assert type(found) is type(operator)
        assert found.is_non_singular == operator.is_non_singular


def test_parts_of_batches_in_functions_and_of_other_classes():
    many = np.arange(24.0).reshape(4, 3, 2) + 1.0

    @td.function
    def solved(operator, i):
        return operator[i].solvevec(np.ones(2))

    operator = td.linalg.LinearOperatorDiag(many)
    np.testing.assert_allclose(solved(operator, td.constant(2)), 1.0 / many[2])

    class Own(td.linalg.LinearOperator):
        def _shape(self):
            return td.TensorShape([3, 2, 2])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return x

    with pytest.raises(TypeError, match="parts of batches are not known for this class"):
        Own(td.float32)[0]
    with pytest.raises(td.errors.InvalidArgumentError, match="3 indices for a batch of 2 axes"):
        operator[0, 0, 0]
