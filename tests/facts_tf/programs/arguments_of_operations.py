"""Arguments that few programs give: empty lists, NumPy's numbers as truths, sizes of zero, axes of
raw operations, tensors that are given twice."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program


@program
def truths(tf):
    numbers = np.array([1, 0])
    return [
        tf.reduce_all([]), tf.reduce_any([]), tf.reduce_all(numbers), tf.reduce_any(numbers * 0),
        tf.where(numbers, [1, 2], [3, 4]), tf.where(np.array([1.5, 0]), [1, 2], [3, 4]),
        outcome(tf.where, tf.constant([1, 0]), [1, 2], [3, 4]),
        outcome(tf.reduce_all, tf.constant([1, 0])),
    ]  # fmt: skip


@program
def shapes_of_nothing(tf):
    x = tf.zeros([0, 6])
    return [
        tf.reshape(x, shape).shape.as_list()
        for shape in ([0, -1, 3], [-1, 3], [-1, 0], [0, -1], [2, 0, -1])
    ] + [tf.tile(5, []), tf.fingerprint(tf.zeros([0], tf.float32))]


@program
def parts_that_are_unique(tf):
    rows = tf.constant([[1, 2, 1], [3, 4, 3], [1, 2, 1]])
    raw = tf.raw_ops
    return [
        tuple(raw.UniqueV2(x=rows, axis=[0])), tuple(raw.UniqueV2(x=rows, axis=[1])),
        tuple(raw.UniqueWithCountsV2(x=rows, axis=[-1], out_idx=tf.int64)),
        tuple(raw.UniqueV2(x=[3, 1, 3], axis=[])),
        tf.function(lambda x: tuple(raw.UniqueWithCountsV2(x=x, axis=[0])))(rows),
        outcome(raw.UniqueV2, x=rows, axis=[]), outcome(raw.UniqueV2, x=rows, axis=[2]),
    ]  # fmt: skip


@program
def blocks_that_a_run_tells(tf):
    x = tf.reshape(tf.range(48.0), [4, 3, 4, 1])
    crops = tf.constant([[1, 0], [0, 1]])

    @tf.function
    def there_and_back(x, block, crops):
        smaller = tf.batch_to_space(x, block, crops)
        return smaller, tf.space_to_batch(smaller, block, crops)

    return there_and_back(x, tf.constant([2, 2]), crops), tf.batch_to_space(x, [2, 2], crops)


@program
def one_tensor_given_twice(tf):
    x = tf.constant([2.0, 3.0])

    @tf.recompute_grad
    def product(a, b):
        return a * b

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = product(x, x)
    return tape.gradient(y, x)


@program
def sums_of_many(tf):
    ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    return [
        tf.add_n(tf.constant(float(k)) for k in range(3)),
        tf.reduce_logsumexp(ragged), tf.reduce_logsumexp(ragged, axis=1),
        tf.reduce_logsumexp(ragged, axis=1, keepdims=True).shape.as_list(),
    ]  # fmt: skip


@program
def sampled_products(tf):
    values, shape = [0.5, 0.3], [2, 2]
    a, b = tf.reshape(tf.range(6.0), [2, 3]), tf.reshape(tf.range(7.0, 13.0), [3, 2])
    return [
        tf.sparse.sampled_addmm([[0, 0], [1, 1]], values, shape, a, b, beta=0.25, alpha=0.75),
        tf.sparse.sampled_addmm(
            [[[0, 1], [1, 0]]] * 2, [values] * 2, shape, tf.stack([a, a + 1]), tf.stack([b, -b])
        ),
        outcome(tf.sparse.sampled_addmm, [[0, 0]], [1.0], [3, 2], a, b),
    ]


@program
def elements_of_sparse_tensors(tf):
    x = tf.sparse.SparseTensor([[0, 1], [2, 0]], [0.5, -2.0], [3, 3])
    return [tf.math.erf(x).values, tf.math.erf(x).dense_shape]


@program
def offsets_of_concatenation(tf):
    shapes = [[2, 3, 5], [2, 7, 5], [2, 20, 5]]
    return [
        tf.raw_ops.ConcatOffset(concat_dim=axis, shape=[tf.constant(s) for s in shapes])
        for axis in (1, -2)
    ]


@program
def tails_of_gelu(tf):
    x = tf.constant([-13.0, -8.0, -5.0, -3.0, -0.1, 0.0, 2.0])
    wide = tf.cast(x, tf.float64)
    return tf.nn.gelu(x) * 1e6, tf.nn.gelu(wide) * 1e30


@program
def gradients_of_volumes(tf):
    x = tf.reshape(tf.range(27.0), [1, 3, 3, 3, 1])
    w = tf.reshape(tf.range(8.0), [2, 2, 2, 1, 1])
    dy = tf.reshape(tf.range(8.0), [1, 2, 2, 2, 1])
    raw, ones = tf.raw_ops, [1, 1, 1, 1, 1]
    windows = {"ksize": [1, 2, 2, 2, 1], "strides": ones, "padding": "VALID"}
    return [
        raw.Conv3DBackpropInputV2(
            input_sizes=[1, 3, 3, 3, 1], filter=w, out_backprop=dy, strides=ones, padding="VALID"
        ),
        raw.Conv3DBackpropFilterV2(
            input=x, filter_sizes=[2, 2, 2, 1, 1], out_backprop=dy, strides=ones, padding="VALID"
        ),
        raw.MaxPool3DGrad(
            orig_input=x, orig_output=tf.nn.max_pool3d(x, 2, 1, "VALID"), grad=dy, **windows
        ),
        raw.AvgPool3DGrad(orig_input_shape=[1, 3, 3, 3, 1], grad=dy, **windows),
    ]


@program
def attributes_of_raw_operations(tf):
    raw, x = tf.raw_ops, np.array([[2.0, 1.0], [0.0, 4.0]])
    scatters = (
        raw.TensorScatterUpdate, raw.TensorScatterAdd, raw.TensorScatterSub, raw.TensorScatterMax,
        raw.TensorScatterMin,
    )  # fmt: skip
    given = {"tensor": [1.0, 2.0], "indices": [[0], [5]], "updates": [9.0, 8.0]}
    found = [
        raw.MatrixInverse(input=x, adjoint=True), raw.MatrixInverse(input=x),
        raw.Size(input=x, out_type=tf.int64), raw.Size(input=x),
    ]  # fmt: skip
    for policy in ("IGNORE", "ERROR", ""):
        bad = {"bad_indices_policy": policy}
        found += [
            outcome(raw.GatherNd, params=x, indices=[[0], [5]], **bad),
            outcome(raw.ScatterNd, indices=[[0], [5]], updates=[1.0, 2.0], shape=[3], **bad),
            *(outcome(scatter, **given, **bad) for scatter in scatters),
        ]
    return found
