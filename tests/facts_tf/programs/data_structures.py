"""Elements of td.data that hold None, datasets, sparse values, or objects of the user's classes."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.facts_tf.programs.data_stages import told
from tests.facts_tf.registry import program, raised


@dataclasses.dataclass
class Masked:
    mask: bool
    value: Any

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    def __tf_unflatten__(self, metadata, components):  # a method of objects, not of the class
        return Masked(metadata[0], components[0])


@program
def none_in_elements(tf):
    d = tf.data.Dataset.range(4)
    with_none = d.map(lambda x: (x, None))

    @tf.function
    def total(dataset):
        found = tf.constant(0, tf.int64)
        for x, nothing in dataset:
            found += x + (1 if nothing is None else 0)
        return found

    return [
        [list(x) for x in with_none],
        [list(x) for x in with_none.batch(3)],
        [list(x) for x in with_none.batch(3).unbatch()],
        [list(x) for x in with_none.filter(lambda x, y: x > 1)],
        told(with_none.map(lambda x, y: x * 2 if y is None else x)),
        [list(x) for x in tf.data.Dataset.from_tensors((1, None))],
        [list(x) for x in tf.data.Dataset.from_tensor_slices(([1, 2], None))],
        [x for x in tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": None})],
        [list(x) for x in tf.data.Dataset.zip((d, with_none)).take(1).map(lambda a, b: (a, b[1]))],
        raised(lambda: d.map(lambda x: None)),
        raised(lambda: d.map(lambda x: (None, ()))),
        raised(lambda: tf.data.Dataset.from_tensors(None)),
        [list(x) for x in with_none.shuffle(4, seed=1).cache().take(0)],
        total(with_none),
        [list(x) for x in with_none.as_numpy_iterator()],
        with_none.reduce(tf.constant(0, tf.int64), lambda s, e: s + e[0]),
        raised(lambda: with_none.concatenate(tf.data.Dataset.zip((d, d)))),
    ]


@program
def datasets_in_lists(tf):
    a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)
    both = tf.data.Dataset.from_tensor_slices([a, b])
    return [
        told(both.flat_map(lambda x: x)),
        told(both.interleave(lambda x: x, cycle_length=2)),
        told(both.interleave(lambda x: x.map(lambda y: y * 2), cycle_length=2, block_length=2)),
        len(both),
        type(both.element_spec).__name__,
        [told(x) for x in both],
        told(both.map(lambda x: x.batch(2)).flat_map(lambda x: x.take(1))),
    ]


@program
def sparse_values_in_elements(tf):
    value = tf.compat.v1.SparseTensorValue([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    d = tf.data.Dataset.from_tensors(value)
    rows = tf.data.Dataset.from_tensor_slices(value)
    mapped = tf.data.Dataset.range(2).map(
        lambda i: tf.compat.v1.SparseTensorValue([[0]], [i], [1])
    )
    return [
        [tf.sparse.to_dense(x) for x in d],
        [tf.sparse.to_dense(x) for x in rows],
        [tf.sparse.to_dense(x) for x in mapped.batch(2)],
        type(d.element_spec).__name__,
    ]


@program
def objects_of_users(tf):
    d = tf.data.Dataset.range(3)
    masked = d.map(lambda x: Masked(True, x))
    made = tf.data.Dataset.from_tensors(Masked(False, 5))
    return [
        told(masked.map(lambda m: m.value * 3)),
        [[m.mask, m.value] for m in masked.batch(2)],
        [[m.mask, m.value] for m in made],
        [[p["a"].mask, p["a"].value] for p in masked.map(lambda m: {"a": m}).take(1)],
        told(masked.map(lambda m: (m, m)).map(lambda a, b: a.value + b.value)),
    ]


@program
def numpy_values_of_ragged_and_sparse_elements(tf):
    rows = tf.data.Dataset.range(3).map(lambda x: tf.fill([x], x))
    words = tf.data.Dataset.from_tensors((2, None, tf.ragged.constant([["a"], []])))
    sparse = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2]]))
    (ragged,) = rows.ragged_batch(3).as_numpy_iterator()
    ((number, nothing, texts),) = words.as_numpy_iterator()
    return [
        [type(ragged).__name__, [row.tolist() for row in ragged]],
        [int(number), nothing, [row.tolist() for row in texts]],
        [[type(x).__name__, x.tolist()] for x in sparse.as_numpy_iterator()],
        [[type(x).__name__, x.tolist()] for x in sparse.batch(2).as_numpy_iterator()],
    ]
