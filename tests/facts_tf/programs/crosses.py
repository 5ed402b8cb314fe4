"""Crosses of features: strings and hashes, of sparse and dense columns, refusals."""

from __future__ import annotations

from tests.facts_tf.registry import program, raised


def columns(tf):
    words = tf.sparse.from_dense(tf.constant([["a", "b", ""], ["c", "", ""], ["", "", ""]]))
    numbers = tf.sparse.SparseTensor([[0, 0], [1, 0], [1, 1], [2, 0]], [1, -2, 3, 4], [3, 2])
    dense = tf.constant([["x", "y"], ["z", "w"], ["u", "v"]])
    return words, numbers, dense


def parts(x):
    return x.indices, x.values, x.dense_shape


@program
def strings(tf):
    words, numbers, dense = columns(tf)
    return [
        parts(tf.sparse.cross([words, numbers])), parts(tf.sparse.cross([dense, words])),
        parts(tf.sparse.cross([words, dense, numbers], separator="-")),
    ]  # fmt: skip


@program
def hashes(tf):
    words, numbers, dense = columns(tf)
    whole = tf.constant([[1, 2], [3, 4], [-5, 6]])
    return [
        parts(tf.sparse.cross_hashed([words, numbers, dense])),
        parts(tf.sparse.cross_hashed([dense, whole], num_buckets=100)),
        parts(tf.sparse.cross_hashed([words, whole], num_buckets=1000, hash_key=7)),
    ]


@program
def in_functions(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string)] * 2)
    def crossed(a, b):
        return parts(tf.sparse.cross_hashed([a, b], num_buckets=50))

    return crossed([["a", "b"]], [["c"]])


@program
def refusals(tf):
    words, _, dense = columns(tf)
    return [
        raised(tf.sparse.cross, words), raised(tf.sparse.cross, [dense[0], dense]),
        raised(tf.sparse.cross, [words, dense[:2]]),
    ]  # fmt: skip
