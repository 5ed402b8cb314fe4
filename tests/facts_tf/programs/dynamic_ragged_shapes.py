"""Shapes of ragged tensors: td.shape of them, DynamicRaggedShape and RowPartition."""

from tests.facts_tf.registry import outcome, program


def rows(tf):
    return tf.ragged.constant([[1], [2, 3, 4], [], [5, 6]])


def shape_of(tf, *args, **kwargs):
    return tf.experimental.DynamicRaggedShape.from_lengths(*args, **kwargs)


def partition(tf, *lengths):
    return tf.experimental.RowPartition.from_row_lengths(list(lengths))


@program
def the_shape_of_a_ragged_tensor(tf):
    shape = tf.shape(rows(tf))
    deep = tf.shape(tf.ragged.constant([[[1], [2, 3]], []]))
    inner = tf.shape(tf.ragged.constant([[[1, 2]], []], inner_shape=(2,), ragged_rank=1))
    return (
        repr(shape), repr(deep), repr(inner), shape.dtype, deep.rank, inner.inner_shape,
        shape[0], outcome(lambda: shape[1]), repr(shape[:1]), outcome(lambda: shape[1:]),
        outcome(lambda: shape[-1]), repr(shape[:]), inner[-1], outcome(lambda: inner[4]),
        repr(tf.shape(rows(tf), out_type=tf.int64)), repr(tf.size(rows(tf))),
    )  # fmt: skip


@program
def tensors_of_a_shape(tf):
    shape = tf.shape(rows(tf))

    def all_of(x):
        own = tf.shape(x)
        return (
            tf.zeros(own), tf.fill(own[:1], 2), own[0],
            tf.broadcast_to(tf.constant([[1], [2], [3], [4]]), own),
        )  # fmt: skip

    return (
        tf.reshape(tf.range(6), shape), tf.reshape(rows(tf) + 1, shape), tf.zeros(shape),
        tf.ones(shape, tf.int64), tf.fill(shape, "x"), all_of(rows(tf)),
        tf.function(all_of, autograph=False)(rows(tf)),
        tf.zeros(shape_of(tf, [2, (2, 1), (1, 2, 0)]), tf.int32),
        tf.ones(shape_of(tf, [2, (2, 1), 2])), tf.reshape(tf.range(6), shape_of(tf, [2, 3])),
        outcome(tf.reshape, tf.range(8), shape_of(tf, [3, (2, 3, 4)])),
    )  # fmt: skip


@program
def by_lengths(tf):
    shape = shape_of(tf, [4, (2, 1, 0, 8), 12])
    return (
        repr(shape), shape.rank, shape.num_row_partitions, shape.inner_rank, shape.dtype,
        shape.inner_shape, repr(shape.row_partitions), [shape.is_uniform(i) for i in range(3)],
        shape[0], shape[2], outcome(lambda: shape[1]), repr(shape[:2]), outcome(lambda: shape[1:]),
        repr(shape.static_lengths()), repr(shape.static_lengths(ragged_lengths=False)),
        repr(shape_of(tf, [2, 3])), repr(shape_of(tf, [2, 3], num_row_partitions=1)),
        repr(shape_of(tf, [2, (2, 1), (1, 2, 3)])), repr(shape_of(tf, [])),
        repr(shape_of(tf, [2, (2, 1), 3, 4], num_row_partitions=2)),
        outcome(shape_of, tf, [2, (1, 2, 3)]), outcome(shape_of, tf, [(1, 2), 3]),
        shape.with_dtype(tf.int32).dtype, shape == shape_of(tf, [4, (2, 1, 0, 8), 12]),
        shape == shape_of(tf, [4, (2, 1, 1, 7), 12]),
    )  # fmt: skip


@program
def broadcasting(tf):
    shape = tf.shape(rows(tf), out_type=tf.int64)
    four = tf.constant([[1], [2], [3], [4]])
    return (
        tf.broadcast_to(four, shape), tf.broadcast_to(5, shape), tf.broadcast_to(rows(tf), shape),
        outcome(tf.broadcast_to, tf.constant([1, 2, 3]), shape),
        outcome(tf.broadcast_to, rows(tf), tf.shape(rows(tf))),
        repr(tf.broadcast_dynamic_shape(shape, tf.constant([4, 1], tf.int64))),
        repr(tf.broadcast_dynamic_shape(shape, shape)),
        outcome(tf.broadcast_dynamic_shape, shape, tf.constant([3, 1], tf.int64)),
    )  # fmt: skip


@program
def partitions(tf):
    rows, kind = partition(tf, 5, 3, 2), tf.experimental.RowPartition
    uniform = kind.from_uniform_row_length(3, nvals=6)
    return (
        repr(rows), rows.nrows(), rows.nvals(), rows.row_splits(), rows.row_lengths(),
        rows.value_rowids(), rows.row_starts(), rows.row_limits(), rows.uniform_row_length(),
        rows.is_uniform(), rows.dtype, rows.static_nrows, rows.static_nvals,
        rows.offsets_in_rows(), repr(uniform), uniform.nrows(), uniform.uniform_row_length(),
        uniform.is_uniform(), uniform.row_splits(),
        repr(kind.from_value_rowids([0, 0, 2], nrows=4)),
        repr(kind.from_row_splits([0, 2, 2, 5])), repr(kind.from_row_starts([0, 2, 2], nvals=5)),
        repr(kind.from_row_limits([2, 2, 5])), outcome(kind.from_row_splits, [1, 2]),
        outcome(kind.from_uniform_row_length, 3), rows.with_dtype(tf.int32).dtype,
        repr(tf.experimental.DynamicRaggedShape([rows], [10, 8])),
        repr(tf.experimental.DynamicRaggedShape.from_row_partitions([rows])),
        repr(tf.experimental.DynamicRaggedShape.from_tensor(tf.zeros([2, 3]))),
    )  # fmt: skip


@program
def shapes_of_functions(tf):
    @tf.function
    def shape(x):
        return tf.shape(x)

    return repr(shape(rows(tf))), repr(shape(tf.ragged.constant([[1.0, 2.0]])))


@program
def static_sizes_of_results(tf):
    """What a trace knows of rows of one length is known of the result of its function."""

    @tf.function
    def made(x):
        return (
            tf.RaggedTensor.from_uniform_row_length(x, 3),
            tf.RaggedTensor.from_tensor(tf.reshape(x, [2, 2, 3]), ragged_rank=2),
            tf.RaggedTensor.from_row_splits(x, [0, 3, 12]),
            tf.RaggedTensor.from_uniform_row_length(
                tf.RaggedTensor.from_row_splits(x, [0, 3, 12]), 2
            ),
        )

    return [r.shape.as_list() for r in made(tf.range(12))]


@program
def static_sizes_of_batches(tf):
    uniform = tf.RaggedTensor.from_uniform_row_length(tf.ragged.range([1, 2, 3, 4]), 2)
    data = tf.data.Dataset
    pipelines = [
        data.from_tensor_slices(uniform),
        data.from_tensor_slices(uniform).batch(2),
        data.from_tensor_slices(tf.RaggedTensor.from_uniform_row_length(tf.range(12), 3)),
        data.range(4).map(lambda i: tf.ones([4, i, 3])).ragged_batch(2),
        data.range(4).map(lambda i: tf.ones([i, 3])).ragged_batch(2),
        data.range(4).map(lambda i: tf.ones([0, i])).ragged_batch(2),
    ]
    return [
        (p.element_spec.shape.as_list(), [x.shape.as_list() for x in p], list(p)) for p in pipelines
    ]
