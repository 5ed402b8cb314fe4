"""map_fn over ragged and sparse tensors and extension types, and with such results."""

from tests.facts_tf.registry import outcome, program


def both(tf, function, *args):
    """What a function gives eagerly and in a function of its own."""
    eager = outcome(function, *args)
    staged = outcome(tf.function(lambda *given: function(*given), autograph=False), *args)
    return eager, staged


def rows(tf):
    return tf.ragged.constant([[1.0, 2.0, 3.0], [], [4.0, 5.0]])


def blocks(tf):
    return tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])


def ragged(tf, shape, dtype="int32", **options):
    return tf.RaggedTensorSpec(shape, getattr(tf, dtype), **options)


@program
def rows_of_ragged_tensors(tf):
    return (
        both(tf, lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.float32), rows(tf)),
        both(tf, lambda x: tf.map_fn(lambda row: row * 2.0, x), rows(tf)),
        both(tf, lambda x: tf.map_fn(lambda row: row * 2, x), blocks(tf)),
        both(tf, lambda x: tf.map_fn(lambda row: row, x), rows(tf)[:0]),
    )


@program
def ragged_results(tf):
    counts = tf.constant([3, 1, 2])

    def pieces(n):
        return tf.RaggedTensor.from_row_lengths(tf.range(n), [1, n - 1])

    def mapped(fn, spec):
        return both(tf, lambda x: tf.map_fn(fn, x, fn_output_signature=spec), counts)

    return (
        mapped(tf.range, ragged(tf, [None])),
        mapped(tf.range, ragged(tf, None, ragged_rank=0)),
        mapped(tf.range, ragged(tf, [None], row_splits_dtype=tf.int32)),
        mapped(lambda n: tf.ones([n - 1, 2]), ragged(tf, [None, 2], "float32", ragged_rank=0)),
        mapped(pieces, ragged(tf, [None, None])),
        mapped(lambda n: blocks(tf)[: n - 1], ragged(tf, [None, None, None])),
        both(
            tf, lambda x: tf.map_fn(tf.range, x, fn_output_signature=ragged(tf, [None])), counts[:0]
        ),
    )


@program
def structures(tf):
    def one(given):
        row, factor = given
        return {"sum": tf.reduce_sum(row), "rows": row * factor}

    spec = {"sum": tf.float32, "rows": ragged(tf, [None], "float32")}
    factors = tf.constant([1.0, 2.0, 3.0])
    return both(
        tf, lambda x, y: tf.map_fn(one, (x, y), fn_output_signature=spec), rows(tf), factors
    )


@program
def sparse_tensors(tf):
    x = tf.sparse.SparseTensor([[0, 1], [1, 0], [2, 3]], [1, 2, 3], [3, 4])
    spec = tf.SparseTensorSpec([None], tf.int32)

    def found(result):
        return result.indices, result.values, result.dense_shape

    return (
        both(
            tf, lambda s: tf.map_fn(tf.sparse.reduce_sum, s, fn_output_signature=tf.int32), x
        ),
        both(tf, lambda s: found(tf.map_fn(lambda row: row, s)), x),
        both(
            tf,
            lambda n: found(
                tf.map_fn(lambda k: tf.sparse.from_dense(tf.range(k)), n, fn_output_signature=spec)
            ),
            tf.constant([3, 1, 2]),
        ),
    )  # fmt: skip


@program
def gradients(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    spec = ragged(tf, [None], "float32")

    def of_results(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.map_fn(lambda v: tf.stack([v * v, v]), x, fn_output_signature=spec)
            total = tf.reduce_sum(y.flat_values * tf.range(6.0))
        return tape.gradient(total, x)

    def of_rows(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            given = tf.RaggedTensor.from_row_lengths(values, [2, 0, 1])
            sums = tf.map_fn(lambda r: tf.reduce_sum(r * r), given, fn_output_signature=tf.float32)
            total = tf.reduce_sum(sums * x)
        return tape.gradient(total, values)

    return both(tf, of_results, x), both(tf, of_rows, x)


@program
def extension_types(tf):
    class Masked(tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    class Network(tf.experimental.BatchableExtensionType):
        shape: tf.TensorShape
        work: tf.Tensor
        name: str = "a"

        def __init__(self, work, name="a"):
            self.work = tf.convert_to_tensor(work)
            self.shape = self.work.shape[:-1]
            self.name = name

    masked = Masked([[1, 2], [3, 4]], [[True, False], [True, True]])
    spec = Masked.Spec(tf.TensorSpec([2], tf.int32), tf.TensorSpec([2], tf.bool))
    networks = Network([[1.0, 2.0], [3.0, 5.0]])

    def parts(m):
        return m.values, m.mask

    def doubled(network):
        assert network.shape.rank == 0
        return Network(network.work * 2.0)

    def mapped(x):
        found = tf.map_fn(doubled, x)
        return found.work

    return (
        both(tf, lambda m: tf.map_fn(lambda e: e.values, m, fn_output_signature=tf.int32), masked),
        both(tf, lambda m: parts(tf.map_fn(lambda e: Masked(e.values * 2, ~e.mask), m)), masked),
        both(
            tf,
            lambda x: parts(
                tf.map_fn(lambda v: Masked([v, v], [True, False]), x, fn_output_signature=spec)
            ),
            tf.constant([1, 2]),
        ),
        both(tf, mapped, networks),
        tf.map_fn(doubled, networks).shape.as_list(),
        [e.shape.as_list() for e in tf.data.Dataset.from_tensor_slices(networks)],
        [e.shape.as_list() for e in tf.data.Dataset.from_tensor_slices(networks).batch(1)],
    )


@program
def encoders_of_users(tf):
    class Halves(tf.experimental.ExtensionTypeBatchEncoder):
        def encode(self, spec, value, minimum_rank=0):
            return (value.pair[0] + value.pair[1], value.pair[1])

        def encoding_specs(self, spec):
            return spec.pair

        def decode(self, spec, encoded_value):
            total, second = encoded_value
            return Pair((total - second, second))

    class Pair(tf.experimental.BatchableExtensionType):
        pair: tuple[tf.Tensor, tf.Tensor]
        __batch_encoder__ = Halves()

    def swapped(p):
        return Pair((p.pair[1], p.pair[0]))

    pairs = Pair((tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])))
    return both(tf, lambda p: tf.map_fn(swapped, p).pair, pairs)


@program
def refused(tf):
    class Plain(tf.experimental.ExtensionType):
        values: tf.Tensor

    counts, plain = tf.constant([3, 1]), Plain([[1, 2], [3, 4]])
    spec = ragged(tf, [None])

    def mapped(fn, elems, signature):
        return both(tf, lambda x: tf.map_fn(fn, x, fn_output_signature=signature), elems)

    return (
        mapped(lambda n: tf.ones([n]), counts, spec),
        mapped(lambda n: n, counts, spec),
        mapped(tf.range, counts, ragged(tf, [None, None])),
        mapped(lambda p: p.values, plain, tf.int32),
        mapped(lambda n: Plain([n]), counts, Plain.Spec(tf.TensorSpec([1], tf.int32))),
        outcome(
            lambda: tf.map_fn(lambda v: v[1], (rows(tf), counts), fn_output_signature=tf.int32)
        ),
    )
