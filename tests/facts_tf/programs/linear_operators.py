"""tf.linalg.LinearOperator...: products, equations, numbers, other operators, what is known."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

A = np.float64([[[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]],
                [[2.0, -0.5, 0.0], [-0.5, 1.5, 0.25], [0.0, 0.25, 1.0]]])  # fmt: skip
BAND = np.float64([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
B = np.float64([[1.0, 2.0], [-1.0, 0.5], [3.0, 1.0]])


def made(tf):
    """Operators of 3 x 3 matrices, by name."""
    op = tf.linalg
    full = op.LinearOperatorFullMatrix(A)
    diagonal = op.LinearOperatorDiag(A[0, :, 1])
    triangle = op.LinearOperatorLowerTriangular(A[0])
    return {
        "full": full,
        "definite": op.LinearOperatorFullMatrix(A, is_self_adjoint=True, is_positive_definite=True),
        "diagonal": diagonal,
        "batch of diagonals": op.LinearOperatorDiag(A[:, 0, :] + 3.0, is_positive_definite=True),
        "identity": op.LinearOperatorIdentity(3, dtype=tf.float64),
        "identities": op.LinearOperatorIdentity(3, batch_shape=[2], dtype=tf.float64),
        "scaled": op.LinearOperatorScaledIdentity(3, np.float64([2.0, -3.0])),
        "triangle": triangle,
        "tridiagonal": op.LinearOperatorTridiag(A[0]),
        "sequence": op.LinearOperatorTridiag(
            [A[0, 0], A[0, 1] + 4.0, A[0, 2]], diagonals_format="sequence"
        ),
        "matrix": op.LinearOperatorTridiag(A[0] * BAND, diagonals_format="matrix"),
        "toeplitz": op.LinearOperatorToeplitz(A[0, 0] + [6.0, 0, 0], A[1, 0] + [6.0, 0, 0]),
        "toeplitz of a batch": op.LinearOperatorToeplitz(A[:, 0] + [6.0, 0, 0], A[:, 1]),
        "product": op.LinearOperatorComposition([full, diagonal, triangle]),
        "adjoint": op.LinearOperatorAdjoint(triangle),
        "inversion": op.LinearOperatorInversion(full),
        "blocks": op.LinearOperatorBlockDiag(
            [op.LinearOperatorFullMatrix(A[:, :2, :2]), op.LinearOperatorDiag(A[0, :1, 0])]
        ),
        "kronecker": op.LinearOperatorKronecker(
            [op.LinearOperatorFullMatrix(A[:, :2, :2]), op.LinearOperatorDiag(A[0, :2, 0] + 5.0)]
        ),
        "update": op.LinearOperatorLowRankUpdate(diagonal, B),
        "weighted update": op.LinearOperatorLowRankUpdate(
            full, B, np.float64([2.0, -1.0]), v=B[::-1].copy()
        ),
    }


def of_all(tf, function):
    """What a function of an operator gives for each of them, eagerly and in a function."""
    return {
        name: (outcome(function, operator), outcome(tf.function(lambda: function(operator))))
        for name, operator in made(tf).items()
    }


@program
def dense_matrices(tf):
    return of_all(tf, lambda o: (o.to_dense(), o.diag_part(), o.trace()))


@program
def products(tf):
    return of_all(
        tf,
        lambda o: (
            o.matmul(B),
            o.matmul(B, adjoint=True),
            o.matmul(B.T.copy(), adjoint_arg=True),
            o.matvec(B[:, 0]),
            o.matvec(B[:, 1], adjoint=True),
        ),
    )


@program
def equations(tf):
    return of_all(
        tf,
        lambda o: (
            o.solve(B),
            o.solve(B, adjoint=True),
            o.solve(B.T.copy(), adjoint_arg=True),
            o.solvevec(B[:, 0]),
            o.solvevec(B[:, 1], adjoint=True),
        ),
    )


@program
def determinants(tf):
    return of_all(tf, lambda o: (o.determinant(), o.log_abs_determinant()))


@program
def sums_with_tensors(tf):
    return of_all(tf, lambda o: o.add_to_tensor(A))


@program
def shapes(tf):
    return of_all(
        tf,
        lambda o: (
            o.shape.as_list(), o.batch_shape.as_list(), o.tensor_rank, o.shape_tensor(),
            o.batch_shape_tensor(), o.range_dimension_tensor(), o.domain_dimension_tensor(),
            o.tensor_rank_tensor(), int(o.range_dimension), int(o.domain_dimension), o.dtype.name,
        ),
    )  # fmt: skip


@program
def what_is_known(tf):
    return {
        name: (o.is_square, o.is_self_adjoint, o.is_positive_definite, o.is_non_singular)
        for name, o in made(tf).items()
    }


@program
def other_operators(tf):
    def others(o):
        inverse, adjoint = o.inverse(), o.H
        return inverse.to_dense(), adjoint.to_dense(), inverse.solve(B), o.adjoint().matmul(B)

    return of_all(tf, others)


@program
def roots(tf):
    return of_all(tf, lambda o: o.cholesky().to_dense())


@program
def eigenvalues_and_conditions(tf):
    return of_all(tf, lambda o: (outcome(lambda: tf.sort(o.eigvals())), o.cond()))


@program
def products_of_operators(tf):
    all_of_them = made(tf) | {"scaled": tf.linalg.LinearOperatorScaledIdentity(3, np.float64(2.0))}
    names = ["full", "diagonal", "identity", "scaled", "triangle", "product"]
    return {
        f"{a} {b}": (
            (all_of_them[a] @ all_of_them[b]).to_dense(),
            all_of_them[a].solve(all_of_them[b]).to_dense(),
            (all_of_them[a].H @ all_of_them[b].H).to_dense(),
        )
        for a in names
        for b in names
    }


@program
def kinds_of_products(tf):
    all_of_them = made(tf) | {"scaled": tf.linalg.LinearOperatorScaledIdentity(3, np.float64(2.0))}
    pairs = [
        ("diagonal", "diagonal"), ("diagonal", "full"), ("identity", "full"), ("full", "full"),
        ("scaled", "scaled"), ("diagonal", "scaled"), ("scaled", "diagonal"),
        ("triangle", "diagonal"), ("identity", "identity"),
    ]  # fmt: skip
    return [type(all_of_them[a] @ all_of_them[b]).__name__ for a, b in pairs], [
        type(o.adjoint()).__name__ for name, o in all_of_them.items() if name != "product"
    ]


@program
def assertions(tf):
    op = tf.linalg
    singular = op.LinearOperatorDiag([0.0, 2.0])
    negative = op.LinearOperatorDiag([-1.0, 2.0])
    return (
        raised(singular.assert_non_singular), raised(negative.assert_non_singular),
        raised(negative.assert_positive_definite),
        raised(op.LinearOperatorDiag([1.0, 2.0]).assert_positive_definite),
        raised(op.LinearOperatorFullMatrix([[1.0, 2.0], [2.0, 1.0]]).assert_self_adjoint),
        raised(op.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 1.0]]).assert_self_adjoint),
        raised(op.LinearOperatorFullMatrix([[1.0, 2.0], [2.0, 4.0]]).assert_non_singular),
    )  # fmt: skip


@program
def refused(tf):
    op = tf.linalg
    wide = op.LinearOperatorFullMatrix(np.ones((2, 3)))
    diagonal = op.LinearOperatorDiag([1.0, 2.0])
    return (
        raised(wide.solve, np.ones((2, 1))), raised(wide.determinant), raised(wide.inverse),
        raised(diagonal.matmul, np.ones((3, 1), np.float32)),
        raised(diagonal.matmul, np.ones((2, 1))),
        raised(diagonal.matmul, np.ones((1, 2), np.float32)),
        raised(diagonal.cholesky), raised(op.LinearOperatorFullMatrix(A).eigvals),
        raised(op.LinearOperatorDiag, [1.0], is_square=False),
        raised(op.LinearOperatorFullMatrix, A, is_positive_definite=True, is_non_singular=False),
        raised(op.LinearOperatorFullMatrix, A, is_non_singular=True, is_square=False),
        raised(op.LinearOperatorFullMatrix, [1.0]),
        raised(op.LinearOperatorIdentity, 2, is_square=False),
        raised(op.LinearOperatorZeros, 2, 3), raised(op.LinearOperatorComposition, []),
        raised(op.LinearOperatorComposition, [diagonal, wide]),
        raised(op.LinearOperatorFullMatrix(A, is_non_singular=False).solve, B),
        raised(op.LinearOperatorTridiag, A, "diagonal"),
        raised(op.LinearOperatorInversion, op.LinearOperatorZeros(2)),
    )  # fmt: skip


@program
def zeros(tf):
    zero = tf.linalg.LinearOperatorZeros(2, 3, is_square=False, is_self_adjoint=False)
    return (
        zero.to_dense(), zero.matmul(tf.ones([3, 2])), zero.matmul(tf.ones([2, 2]), adjoint=True),
        zero.shape.as_list(), tf.linalg.LinearOperatorZeros(2, batch_shape=[3]).to_dense(),
        zero.add_to_tensor(tf.ones([2, 3])),
    )  # fmt: skip


@program
def complex_numbers(tf):
    values = (A[0] + 1j * A[0][::-1]).astype(np.complex128)
    right = tf.constant(B + 0.5j * B[::-1])
    op = tf.linalg
    return [
        (o.matmul(right), o.matmul(right, adjoint=True), o.solve(right), o.H.to_dense(),
         o.determinant(), o.is_self_adjoint)
        for o in (
            op.LinearOperatorFullMatrix(values), op.LinearOperatorDiag(values[0]),
            op.LinearOperatorLowerTriangular(values),
        )
    ]  # fmt: skip


@program
def operators_as_arguments(tf):
    traces = []

    @tf.function
    def f(operator, x):
        traces.append(operator)
        return operator.matmul(x) + operator.trace()

    op, x = tf.linalg, tf.ones([2, 1])
    found = [f(op.LinearOperatorDiag(tf.constant([v, 2.0])), x) for v in (1.0, 5.0)]
    return found, len(traces), f(op.LinearOperatorFullMatrix(tf.ones([2, 2])), x), len(traces)


@program
def operators_of_variables(tf):
    v = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(v)

    @tf.function
    def loss(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(operator.solve(x) ** 2) + operator.log_abs_determinant()
        return y, tape.gradient(y, v)

    before = loss(tf.ones([2, 1]))
    v.assign([4.0, 5.0])
    return before, loss(tf.ones([2, 1])), len(operator.trainable_variables), operator.to_dense()


@program
def operators_of_open_sizes(tf):
    spec = tf.TensorSpec([None, None], tf.float64)

    @tf.function(input_signature=[spec, spec])
    def f(a, b):
        full = tf.linalg.LinearOperatorFullMatrix(a)
        triangle = tf.linalg.LinearOperatorLowerTriangular(a)
        blocks = tf.linalg.LinearOperatorBlockDiag([full, triangle])
        n = tf.shape(a)[0]
        eye = tf.linalg.LinearOperatorIdentity(n, dtype=tf.float64)
        return (
            full.solve(b), triangle.matmul(b), eye.matmul(b), blocks.matmul(tf.concat([b, b], 0)),
            blocks.to_dense(), full.shape_tensor(),
            tf.linalg.LinearOperatorDiag(a[0]).solve(b),
        )  # fmt: skip

    return f(A[0], B), f(A[0, :2, :2], B[:2])


@program
def conjugate_gradients(tf):
    op = tf.linalg.LinearOperatorFullMatrix(A, is_self_adjoint=True, is_positive_definite=True)
    scaled = tf.linalg.LinearOperatorDiag(1.0 / np.diagonal(A, axis1=1, axis2=2))
    solve = tf.linalg.experimental.conjugate_gradient
    plain = solve(op, tf.constant(A[:, 0]), tol=1e-12)
    helped = solve(op, tf.constant(A[:, 0]), preconditioner=scaled, tol=1e-12)
    begun = solve(op, tf.constant(A[:, 0]), x=tf.constant(A[:, 1]), tol=1e-12)
    inside = tf.function(lambda b: solve(op, b, max_iter=1).x)(tf.constant(A[:, 0]))
    unknown = tf.linalg.LinearOperatorFullMatrix(A)
    return plain.x, helped.x, begun.x, inside, raised(solve, unknown, tf.constant(A[:, 0]))


def described(tf, operator, x):
    """What an operator gives."""
    linalg = tf.linalg
    rows = operator.to_dense()
    return [
        operator.shape.as_list(), rows, operator.matmul(x), operator.matmul(x, adjoint=True),
        operator.matmul(linalg.adjoint(x), adjoint_arg=True), operator.solve(x),
        operator.solve(x, adjoint=True), operator.matvec(x[..., 0]), operator.diag_part(),
        operator.trace(), operator.determinant(), operator.log_abs_determinant(),
        operator.is_non_singular, operator.is_self_adjoint, operator.is_positive_definite,
        operator.is_square,
    ]  # fmt: skip


X = [[1.0, -2.0], [0.5, 3.0], [2.0, 1.0], [-1.0, 0.0]]


@program
def reflections(tf):
    x = tf.constant(X, tf.float64)
    operator = tf.linalg.LinearOperatorHouseholder(tf.constant([1.0, 2.0, -1.0, 0.5], tf.float64))
    batch = tf.linalg.LinearOperatorHouseholder(tf.constant([[1.0, 0, 0, 0], [1, 1, 1, 1]]))
    return described(tf, operator, x), batch.to_dense(), operator.cond(), batch.eigvals()


@program
def permutations(tf):
    x = tf.constant(X, tf.float64)
    operator = tf.linalg.LinearOperatorPermutation([2, 0, 3, 1], tf.float64)
    batch = tf.linalg.LinearOperatorPermutation([[2, 0, 1], [0, 1, 2]])
    return described(tf, operator, x), batch.to_dense(), batch.matvec([1.0, 2.0, 3.0])


@program
def circulants(tf):
    x = tf.constant(X, tf.float64)
    real = tf.linalg.LinearOperatorCirculant(
        tf.signal.fft(tf.constant([4.0, 1.0, 0.5, -1.0], tf.complex128)), tf.float64
    )
    complex_x = tf.complex(x, x[::-1])
    spectrum = tf.constant([1.0 + 2j, 3.0, 1j, 2.0 - 1j], tf.complex128)
    whole = tf.linalg.LinearOperatorCirculant(spectrum, tf.complex128)
    return [
        described(tf, real, x), described(tf, whole, complex_x), real.convolution_kernel(),
        real.block_depth, real.block_shape_tensor(), whole.inverse().to_dense(),
        real.cond(),
    ]  # fmt: skip


@program
def circulants_of_images_and_volumes(tf):
    plane = tf.complex([[3.0, 1.0], [0.5, 2.0]], [[0.0, 1.0], [-1.0, 0.5]])
    image = tf.linalg.LinearOperatorCirculant2D(plane)
    x = tf.complex(tf.constant(X), tf.constant(X)[::-1])
    volume = tf.linalg.LinearOperatorCirculant3D(tf.reshape(tf.range(1.0, 9.0), [2, 2, 2]))
    return described(tf, image, x), volume.to_dense(), volume.is_self_adjoint


@program
def lower_triangles_of_blocks(tf):
    full, diagonal = tf.linalg.LinearOperatorFullMatrix, tf.linalg.LinearOperatorDiag
    operator = tf.linalg.LinearOperatorBlockLowerTriangular([
        [full(tf.constant([[2.0, 1.0], [0.5, 3.0]], tf.float64), is_non_singular=True)],
        [full(tf.constant([[1.0, -1.0], [2.0, 0.0]], tf.float64)),
         diagonal(tf.constant([4.0, 5.0], tf.float64), is_non_singular=True)],
    ])  # fmt: skip
    return described(tf, operator, tf.constant(X, tf.float64)), operator.inverse().to_dense()


@program
def refusals_of_new_operators(tf):
    linalg = tf.linalg
    diagonal = linalg.LinearOperatorDiag([1.0, 2.0])
    return [
        raised(linalg.LinearOperatorHouseholder, [1.0], is_self_adjoint=False),
        raised(linalg.LinearOperatorHouseholder, [1.0], is_positive_definite=True),
        raised(linalg.LinearOperatorPermutation, [1.0, 0.0]),
        raised(linalg.LinearOperatorPermutation, [1, 0], is_non_singular=False),
        raised(linalg.LinearOperatorCirculant, [1.0, 2.0], is_self_adjoint=False),
        raised(linalg.LinearOperatorBlockLowerTriangular, [[diagonal, diagonal]]),
        raised(linalg.LinearOperatorBlockLowerTriangular, []),
    ]


@program
def parts_of_batches(tf):
    many = np.arange(24.0).reshape(4, 3, 2) + 1.0
    linalg = tf.linalg
    diagonal, dense = linalg.LinearOperatorDiag(many), linalg.LinearOperatorFullMatrix(np.eye(2))
    operators = [
        diagonal,
        linalg.LinearOperatorFullMatrix(many[..., None] + many[..., None, :]),
        linalg.LinearOperatorScaledIdentity(2, many[..., 0]),
        linalg.LinearOperatorIdentity(2, batch_shape=[4, 3]),
        linalg.LinearOperatorZeros(2, 2, batch_shape=[4, 3]),
        linalg.LinearOperatorTridiag([many, many + 1, many + 2], "sequence"),
        linalg.LinearOperatorTridiag(many[..., None, :] * np.ones([3, 1])),
        linalg.LinearOperatorCirculant(many.astype(np.complex64)),
        linalg.LinearOperatorHouseholder(many),
        linalg.LinearOperatorToeplitz(many, np.array([1.0, 2.0])),
        linalg.LinearOperatorComposition(
            [diagonal, linalg.LinearOperatorFullMatrix(np.ones([4, 1, 2, 2]))]
        ),
        linalg.LinearOperatorKronecker([diagonal, dense]),
        linalg.LinearOperatorBlockDiag([dense, diagonal]),
        linalg.LinearOperatorInversion(linalg.LinearOperatorDiag(many, is_non_singular=True)),
        linalg.LinearOperatorLowRankUpdate(diagonal, np.ones([4, 3, 2, 1]), v=np.ones([2, 1])),
    ]

    def part(operator, key):
        found = operator[key]
        return type(found).__name__, found.batch_shape, tf.reduce_sum(found.to_dense(), [-1, -2])

    everything = slice(None)
    keys = [
        1,
        slice(1, 3),
        (slice(None, None, 2), -1),
        (..., 0),
        None,
        (everything, None),
        (0, 0, 0),
        9,
    ]
    return [[outcome(part, operator, key) for key in keys] for operator in operators]
