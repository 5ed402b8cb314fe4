"""Tables that change: what they hold after insertions and removals, refusals."""

from __future__ import annotations

from tests.facts_tf.registry import outcome, program, raised


def pairs(table):
    keys, values = (x.numpy() for x in table.export())
    return sorted(zip(keys.tolist(), values.tolist(), strict=True))


@program
def pairs_come_and_go(tf):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(["a", "b", "c", "b"], [1, 2, 3, 4])
    found = [table.size(), table.lookup(["b", "x"]), table[tf.constant([["a"], ["c"]])]]
    table.remove(tf.constant(["a", "x"]))
    return [*found, table.size(), pairs(table)]


@program
def values_with_axes_and_own_defaults(tf):
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0])
    table.insert([3, 4], [[1.0, 2.0], [3.0, 4.0]])
    keys = tf.constant([4, 9], tf.int64)
    return [
        table.lookup(keys),
        table.lookup(keys, tf.constant([[5.0, 6.0], [7.0, 8.0]])),
        table.lookup(keys, tf.constant([5.0, 6.0])),
        table.lookup(tf.constant([[4], [3]], tf.int64)).shape.as_list(),
    ]


@program
def tables_in_functions(tf):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    @tf.function
    def count(words):
        for word in words:
            table.insert(word, table.lookup(word) + 1)
        return table.size(), table.lookup(words)

    words = tf.constant(["x", "y", "x"])
    return count(words), count(words), pairs(table)


@program
def dense_tables(tf):
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1
    )
    table.insert(tf.constant([11, 12, 13], tf.int64), tf.constant([0, 1, 2], tf.int64))
    table.insert_or_assign(tf.constant([12], tf.int64), tf.constant([7], tf.int64))
    table.erase(tf.constant([11, 14], tf.int64))
    return [
        table.size(), table.lookup(tf.constant([11, 12, 13, 15], tf.int64)),
        outcome(table.lookup, tf.constant([0], tf.int64)),
        outcome(table.insert, tf.constant([-1], tf.int64), tf.constant([1], tf.int64)),
    ]  # fmt: skip


@program
def dense_tables_of_vectors(tf):
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.float32, default_value=[-1.0, -2.0], empty_key=[0, 0], deleted_key=[-1, -1],
        initial_num_buckets=4,
    )  # fmt: skip
    keys = tf.constant([[1, 2], [3, 4], [5, 6], [7, 8], [9, 1]], tf.int64)
    table.insert(keys, tf.reshape(tf.range(10.0), [5, 2]))
    return table.size(), table.lookup(tf.constant([[3, 4], [4, 3], [9, 1]], tf.int64))


@program
def refusals(tf):
    make = tf.lookup.experimental.MutableHashTable
    table = make(tf.string, tf.int64, 0)
    dense = tf.lookup.experimental.DenseHashTable
    return [
        raised(table.insert, ["a"], [1, 2]),
        raised(table.insert, ["a"], tf.constant([1.0])),
        raised(table.lookup, tf.constant([1])),
        raised(table.remove, tf.constant([1])),
        raised(dense, tf.int64, tf.int64, 0, 1, 1),
        raised(dense, tf.int64, tf.int64, 0, 1, 2, initial_num_buckets=12),
    ]
