"""td.data.experimental: options, tables and sparse batches of datasets, databases, reducers."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def elements(dataset):
    return list(dataset.as_numpy_iterator())


def settings_of(options):
    """The settings of options by name, those of groups in dicts, enums by their names."""
    found = {}
    for name in dir(options):
        value = getattr(options, name)
        if name.startswith("_") or callable(value) or name.startswith("experimental_threading"):
            continue
        if type(value).__module__.endswith("options") and not hasattr(value, "name"):
            value = settings_of(value)
        found[name] = getattr(value, "name", value)
    return found


@program
def defaults_of_options(tf):
    kinds = ("AutotuneOptions", "DistributeOptions", "OptimizationOptions", "ThreadingOptions")
    return [settings_of(getattr(tf.data.experimental, kind)()) for kind in kinds]


@program
def options_are_set_and_merged(tf):
    one, two = tf.data.Options(), tf.data.Options()
    one.threading.private_threadpool_size = 3
    one.autotune.enabled = True
    two.deterministic = True
    two.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    both = one.merge(two)
    two.threading.private_threadpool_size = 4
    kept = tf.data.Dataset.range(2).with_options(one).with_options(two).options()
    return [
        both.threading.private_threadpool_size, both.autotune.enabled, both.deterministic,
        both.experimental_distribute.auto_shard_policy.name, both.experimental_deterministic,
        one.merge(two).threading.private_threadpool_size, one.deterministic,
        kept.threading.private_threadpool_size, kept.deterministic,
        one == two, tf.data.Options() == tf.data.Options(),
    ]  # fmt: skip


@program
def options_that_there_are_not(tf):
    def set_to(path, value):
        *parts, last = path.split(".")
        place = tf.data.Options()
        for part in parts:
            place = getattr(place, part)
        setattr(place, last, value)

    return [
        raised(set_to, "deterministic", "x"), raised(set_to, "foo", 1),
        raised(set_to, "threading.foo", 1),
        raised(set_to, "threading.private_threadpool_size", "a"),
        raised(set_to, "experimental_slack", 3), raised(set_to, "autotune.enabled", True),
        raised(set_to, "experimental_optimization.map_fusion", 0.5),
        raised(set_to, "autotune.autotune_algorithm",
               tf.data.experimental.AutotuneAlgorithm.HILL_CLIMB),
        raised(set_to, "experimental_external_state_policy",
               tf.data.experimental.ExternalStatePolicy.WARN),
    ]  # fmt: skip


@program
def reducers(tf):
    mean = tf.data.experimental.Reducer(
        lambda key: (0.0, 0.0), lambda state, x: (state[0] + tf.cast(x, tf.float32), state[1] + 1),
        lambda total, count: total / count,
    )  # fmt: skip
    last = tf.data.experimental.Reducer(
        lambda key: key * 0, lambda state, x: x, lambda state: {"last": state}
    )
    dataset = tf.data.Dataset.range(10)
    group = tf.data.experimental.group_by_reducer
    return [
        elements(dataset.apply(group(lambda x: x % 3, mean))),
        elements(dataset.apply(group(lambda x: 5 - x // 4, last))),
        elements(dataset.take(0).apply(group(lambda x: x, mean))),
    ]


@program
def padding_to_a_number_of_elements(tf):
    pad = tf.data.experimental.pad_to_cardinality
    dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [[1.0], [2.0]]})
    return [
        elements(dataset.apply(pad(4))), elements(dataset.apply(pad(2, mask_key="real"))),
        int(dataset.apply(pad(4)).cardinality()), raised(dataset.apply, pad(1)),
        raised(dataset.filter(lambda x: True).apply, pad(5)),
    ]  # fmt: skip


@program
def sparse_batches(tf):
    def parts(dataset):
        return [(x.indices, x.values, x.dense_shape) for x in dataset]

    dataset = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 0], [5, 6]])
    growing = tf.data.Dataset.range(1, 4).map(lambda n: tf.range(n))
    return [
        parts(dataset.apply(tf.data.experimental.dense_to_sparse_batch(2, [4]))),
        parts(dataset.sparse_batch(3, [2])), parts(growing.sparse_batch(2, [3])),
    ]  # fmt: skip


@program
def tables_of_datasets(tf):
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2]))
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "c"])
    make, index = (
        tf.data.experimental.table_from_dataset, tf.data.experimental.index_table_from_dataset,
    )  # fmt: skip
    asked = tf.constant(["b", "z"])
    initializer = tf.data.experimental.DatasetInitializer(pairs)
    return [
        make(pairs, default_value=-1, key_dtype=tf.string).lookup(asked),
        index(words).lookup(asked), index(words, default_value=7).lookup(asked),
        index(words, num_oov_buckets=1).lookup(asked), index(words, num_oov_buckets=1).size(),
        index(words, vocab_size=1).lookup(tf.constant(["a", "b"])),
        tf.lookup.StaticHashTable(initializer, 0).lookup(asked),
        raised(make, pairs, num_oov_buckets=-1),
    ]  # fmt: skip


@program
def rows_of_databases(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.db")
        connection = sqlite3.connect(path)
        connection.execute("create table t(a int, b text, c real)")
        connection.executemany("insert into t values(?, ?, ?)", [(1, "x", 2.5), (2, "é", -3.5)])
        connection.commit()
        connection.close()
        make, kinds = tf.data.experimental.SqlDataset, (tf.int32, tf.string, tf.float64)
        return [
            elements(make("sqlite", path, "select * from t order by a", kinds)),
            elements(make("sqlite", path, "select c, a from t", (tf.float64, tf.int64)).batch(2)),
            elements(make("sqlite", path, "select a from t where a > 5", (tf.int32,))),
            raised(lambda: make("mysql", path, "select * from t", kinds)),
            raised(lambda: elements(make("sqlite", path, "select a from t", kinds))),
            raised(lambda: elements(make("sqlite", path, "select * from zz", kinds))),
        ]


@program
def numbers_that_stand_for_others(tf):
    experimental = tf.data.experimental
    return [
        tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY,
        experimental.INFINITE_CARDINALITY, experimental.UNKNOWN_CARDINALITY, experimental.AUTOTUNE,
        experimental.SHARD_HINT, [(p.name, p.value) for p in experimental.AutoShardPolicy],
        [(p.name, p.value) for p in experimental.AutotuneAlgorithm],
        [(p.name, p.value) for p in experimental.ExternalStatePolicy],
    ]  # fmt: skip


@program
def ragged_batches_and_numbers(tf):
    growing = tf.data.Dataset.range(1, 4).map(lambda n: tf.range(n))
    even = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4], [5, 6]])
    numbered = even.apply(tf.data.experimental.enumerate_dataset(3))
    return [
        [x.to_list() for x in growing.ragged_batch(2)],
        [x.to_list() for x in growing.apply(tf.data.experimental.dense_to_ragged_batch(2, True))],
        elements(numbered), elements(even.apply(tf.data.experimental.prefetch_to_device("/cpu:0"))),
        elements(even.apply(tf.data.experimental.copy_to_device("/cpu:0"))),
    ]  # fmt: skip


@program
def iterators_of_arrays(tf):
    iterator = tf.data.Dataset.range(3).as_numpy_iterator()
    first = next(iterator)
    return [
        first, iterator.next(), list(iterator), raised(iterator.next),
        isinstance(iterator, tf.data.NumpyIterator), type(first).__name__,
        outcome(lambda: np.asarray(first).dtype.name),
    ]  # fmt: skip
