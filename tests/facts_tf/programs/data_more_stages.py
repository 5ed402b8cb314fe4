"""More of td.data: shuffles, choices, groups, options, files of elements, functions on datasets."""

from __future__ import annotations

import collections
import tempfile
from pathlib import Path

import numpy as np

from tests.facts_tf.programs.data_stages import elements, told
from tests.facts_tf.registry import outcome, program, raised


@program
def interleaves_and_flat_maps(tf):
    d = tf.data.Dataset.range(1, 5)

    def repeated(x):
        return tf.data.Dataset.from_tensors(x).repeat(x)

    return [
        told(d.interleave(repeated)),
        told(d.interleave(repeated, cycle_length=2, block_length=2)),
        told(d.interleave(repeated, 1)),
        told(d.interleave(repeated, 2, 1, 2, True)),
        told(d.interleave(repeated, cycle_length=3, num_parallel_calls=tf.data.AUTOTUNE)),
        outcome(lambda: told(d.interleave(repeated, 0))),
        outcome(lambda: told(d.interleave(repeated, 2, 0))),
        told(d.flat_map(repeated)),
        outcome(lambda: told(d.flat_map(lambda x: x))),
        outcome(lambda: told(d.interleave(lambda x: x, 2))),
        told(
            d.flat_map(lambda x: tf.data.Dataset.from_tensor_slices({"a": [x, x], "b": ["p", "q"]}))
        ),
        told(d.flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: (x, y)))),
        told(d.flat_map(tf.data.Dataset.range)),
        told(d.map(repeated).flat_map(lambda s: s)),
        sorted(
            int(x) for x in d.interleave(repeated, 2, num_parallel_calls=2, deterministic=False)
        ),
    ]


@program
def reductions_and_scans(tf):
    d = tf.data.Dataset.range(5)
    pairs = tf.data.Dataset.from_tensor_slices(([1, 2, 3], [1.0, 2.0, 3.0]))
    return [
        d.reduce(np.int64(0), lambda s, x: s + x),
        d.reduce((0, 0.0), lambda s, x: (s[0] + 1, s[1] + 2.0)),
        pairs.reduce((0, 0.0), lambda s, x: (s[0] + x[0], s[1] + x[1])),
        pairs.reduce(0.0, lambda s, a: s + a[1]),
        outcome(lambda: d.reduce(0, lambda s, x: s + x)),
        outcome(lambda: d.reduce(0, lambda s: s)),
        outcome(lambda: d.reduce(0, lambda s, x: (s, s))),
        d.reduce({"n": np.int64(1)}, lambda s, x: {"n": s["n"] * (x + 1)}),
        d.take(0).reduce(7, lambda s, x: s),
        d.reduce("", lambda s, x: s + tf.strings.as_string(x)),
        told(d.scan(np.int64(1), lambda s, x: (s * 2, s + x))),
        told(
            d.scan(
                (np.int64(0), 1.0),
                lambda s, x: ((s[0] + x, s[1] / 2.0), {"sum": s[0], "half": s[1]}),
            )
        ),
        told(
            d.scan(
                tf.constant([0, 1], tf.int64), lambda s, x: (tf.stack([s[1], s[0] + s[1]]), s[0])
            )
        ),
        outcome(lambda: told(d.scan(0, lambda s, x: (s + 0.5, x)))),
        outcome(lambda: told(d.scan(0, lambda s, x: s))),
        told(d.take_while(lambda x: x < 3)),
        outcome(lambda: told(d.take_while(lambda x: x))),
    ]


@program
def choices_among_datasets(tf):
    Dataset = tf.data.Dataset
    a, b, c = Dataset.range(0, 3), Dataset.range(10, 15), Dataset.range(20, 22)
    pick = Dataset.range(3).repeat(4)
    counts = collections.Counter(
        int(x)
        for x in Dataset.sample_from_datasets(
            [Dataset.from_tensors(0).repeat(), Dataset.from_tensors(1).repeat()], [0.8, 0.2], seed=1
        ).take(2000)
    )
    return [
        told(Dataset.choose_from_datasets([a, b, c], pick)),
        told(Dataset.choose_from_datasets([a, b, c], pick, stop_on_empty_dataset=False)),
        outcome(lambda: told(Dataset.choose_from_datasets([a, b], pick))),
        outcome(
            lambda: told(Dataset.choose_from_datasets([a, b], Dataset.range(2).map(lambda x: [x])))
        ),
        outcome(lambda: told(Dataset.choose_from_datasets([], pick))),
        outcome(lambda: told(Dataset.choose_from_datasets([a, Dataset.from_tensors("x")], pick))),
        outcome(lambda: Dataset.sample_from_datasets([a, b], [0.5])),
        outcome(lambda: Dataset.sample_from_datasets([])),
        outcome(lambda: Dataset.sample_from_datasets([a, b], [[0.5, 0.5]])),
        sorted(int(x) for x in Dataset.sample_from_datasets([a, b], seed=2)),
        elements(Dataset.sample_from_datasets([a, b], [0.0, 1.0])),
        elements(Dataset.sample_from_datasets([a, b], [1.0, 0.0], stop_on_empty_dataset=True)),
        1500 < counts[0] < 1700,
        elements(
            Dataset.sample_from_datasets(
                [a, b], Dataset.from_tensors([1.0, 0.0]).repeat(), stop_on_empty_dataset=True
            )
        ),
        Dataset.sample_from_datasets([a, b], [0.5, 0.5]).element_spec.dtype,
        told(tf.data.experimental.choose_from_datasets([a, b], Dataset.range(2).repeat(2))),
        sorted(int(x) for x in tf.data.experimental.sample_from_datasets([a, c])),
    ]


@program
def groups_and_buckets(tf):
    d = tf.data.Dataset.range(10)
    texts = tf.data.Dataset.from_tensor_slices(["a", "bbb", "cc", "dddd", "e", "ff"]).map(
        lambda s: tf.strings.bytes_split(s)
    )
    lengths = tf.data.Dataset.from_generator(
        lambda: ([0] * n for n in (1, 5, 2, 4, 3, 6, 2)),
        output_signature=tf.TensorSpec([None], tf.int32),
    )

    def buckets(*args, **kwargs):
        return elements(
            lengths.bucket_by_sequence_length(lambda x: tf.shape(x)[0], *args, **kwargs)
        )

    return [
        told(d.group_by_window(lambda x: x % 3, lambda k, w: w.batch(2), window_size=2)),
        told(
            d.group_by_window(
                lambda x: x % 2,
                lambda k, w: w.map(lambda x: (k, x)),
                window_size_func=lambda k: k + 2,
            )
        ),
        outcome(lambda: told(d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2)))),
        outcome(
            lambda: told(
                d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 2, lambda k: 2)
            )
        ),
        outcome(
            lambda: told(
                d.group_by_window(lambda x: tf.cast(x, tf.float32), lambda k, w: w.batch(2), 2)
            )
        ),
        outcome(lambda: told(d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 0))),
        buckets([3, 5], [2, 2, 2]),
        buckets([3, 5], [2, 2, 2], drop_remainder=True),
        buckets([3, 5], [2, 2, 2], pad_to_bucket_boundary=False),
        outcome(lambda: buckets([3, 5], [2, 2, 2], pad_to_bucket_boundary=True)),
        buckets([3, 5, 7], [2, 2, 2, 2], pad_to_bucket_boundary=True),
        buckets([3, 5], [3, 2, 1], padded_shapes=[None], padding_values=-1),
        buckets([3, 5], [2, 2, 2], no_padding=False),
        outcome(lambda: buckets([3, 5], [2, 2])),
        elements(
            texts.bucket_by_sequence_length(lambda s: tf.size(s), [2], [2, 3], padding_values="_")
        ),
        outcome(lambda: buckets([3, 5], [2, 2, 2], no_padding=True)),
        elements(
            d.apply(
                tf.data.experimental.group_by_reducer(
                    lambda x: x % 2,
                    tf.data.experimental.Reducer(
                        lambda k: np.int64(0), lambda s, x: s + x, lambda s: s
                    ),
                )
            )
        ),
        elements(
            d.apply(
                tf.data.experimental.group_by_window(lambda x: x % 2, lambda k, w: w.batch(5), 5)
            )
        ),
    ]


@program
def parts_of_datasets(tf):
    d = tf.data.Dataset.range(6)
    return [
        told(d.take(2)),
        told(d.take(-1)),
        told(d.skip(4)),
        told(d.skip(-1)),
        told(d.take(tf.constant(2, tf.int64))),
        outcome(lambda: told(d.take(2.5))),
        outcome(lambda: told(d.take("2"))),
        told(d.shard(4, 1)),
        told(d.shard(tf.constant(2, tf.int64), 1)),
        outcome(lambda: told(d.shard(2, 2))),
        outcome(lambda: told(d.shard(0, 0))),
        outcome(lambda: told(d.shard(2, -1))),
        told(d.repeat(2)),
        told(d.repeat(0)),
        outcome(lambda: told(d.repeat(-2).take(2))),
        told(d.concatenate(d.take(1))),
        outcome(lambda: told(d.concatenate(tf.data.Dataset.from_tensors(1.0)))),
        told(tf.data.Dataset.from_tensors([1]).concatenate(tf.data.Dataset.from_tensors([1, 2]))),
        told(d.enumerate()),
        told(d.enumerate(start=5)),
        told(tf.data.Dataset.zip({"k": d, "l": (d, d)})),
        told(tf.data.Dataset.zip((d, d.take(2)))),
        outcome(lambda: tf.data.Dataset.zip(3)),
        outcome(lambda: tf.data.Dataset.zip([d, d])),
        told(tf.data.Dataset.zip(d)),
        told(d.unique()),
        told(tf.data.Dataset.from_tensor_slices(["a", "b", "a"]).unique()),
        outcome(lambda: told(tf.data.Dataset.zip(d, d).unique())),
        outcome(lambda: told(tf.data.Dataset.from_tensors(1.5).unique())),
        told(d.filter(lambda x: x > 3)),
        outcome(lambda: told(d.filter(lambda x: x))),
        outcome(lambda: told(d.filter(lambda x: [x > 3]))),
        told(d.filter(lambda x: True)),
        told(tf.data.Dataset.zip(d, d).filter(lambda a, b: a + b > 8)),
        d.take(1).get_single_element(),
        raised(d.get_single_element),
        raised(d.take(0).get_single_element),
        told(d.apply(lambda x: x.take(1))),
        outcome(lambda: d.apply(lambda x: 3)),
        told(d.prefetch(3)),
        told(d.prefetch(tf.data.AUTOTUNE)),
        told(d.prefetch(0)),
        outcome(lambda: told(d.prefetch(-5))),
        outcome(lambda: told(d.shuffle(0))),
        outcome(lambda: told(d.shuffle(-1))),
        told(d.shuffle(1)),
        told(d.batch(4).rebatch(3)),
        told(d.batch(4).rebatch(3, drop_remainder=True)),
        told(d.batch(4).rebatch([2, 1])),
        told(d.batch(4).unbatch()),
        outcome(lambda: told(d.unbatch())),
    ]


@program
def caches_and_files_of_elements(tf):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        calls = tf.Variable(0)

        def counted(x):
            calls.assign_add(1)
            return x

        d = tf.data.Dataset.range(4).map(counted)
        memory = d.cache()
        found = [elements(memory), elements(memory), int(calls)]
        disk = d.cache(str(root / "c"))
        found += [elements(disk), elements(disk), int(calls), len(list(root.iterdir())) > 0]
        half = d.cache(str(root / "h"))
        found += [elements(half.take(2)), elements(half.take(2)), int(calls) > 8]
        d.save(str(root / "s"))
        found.append(told(tf.data.Dataset.load(str(root / "s"))))
        found.append(
            told(tf.data.Dataset.load(str(root / "s"), element_spec=tf.TensorSpec([], tf.int64)))
        )
        deep = tf.data.Dataset.from_tensor_slices({"a": ["x", "y"], "b": ([1.5, 2.5], [[1], [2]])})
        deep.save(str(root / "d"), compression="GZIP")
        found.append(told(tf.data.Dataset.load(str(root / "d"), compression="GZIP")))
        ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
        ragged.batch(2).save(str(root / "r"))
        found.append(elements(tf.data.Dataset.load(str(root / "r"))))
        shards = tf.data.Dataset.range(6)
        shards.save(str(root / "n"), shard_func=lambda x: x % 2)
        found.append(
            elements(
                tf.data.Dataset.load(str(root / "n"), reader_func=lambda s: s.flat_map(lambda x: x))
            )
        )
        found.append(outcome(lambda: shards.save(str(root / "n2"), shard_func=lambda x: 0.5)))
        found.append(outcome(lambda: shards.save(str(root / "n3"), compression="LZ")))
        found.append(outcome(lambda: elements(tf.data.Dataset.load(str(root / "none")))))
        kept = d.snapshot(str(root / "snap"))
        before = int(calls)
        found += [elements(kept), elements(kept), int(calls) - before]
        found.append(elements(d.snapshot(str(root / "snap2"), compression="GZIP")))
        found.append(outcome(lambda: elements(d.snapshot(str(root / "snap3"), compression="LZ"))))
        found.append(
            elements(
                shards.snapshot(
                    str(root / "snap4"),
                    shard_func=lambda x: x % 2,
                    reader_func=lambda s: s.interleave(lambda x: x, 2),
                )
            )
        )
        found += [
            elements(tf.data.Dataset.range(0).cache()),
            elements(tf.data.Dataset.range(0).cache(str(root / "e"))),
        ]
        return found


@program
def files_in_folders(tf):
    Dataset = tf.data.Dataset
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("b.txt", "a.txt", "c.csv"):
            (root / name).write_text(f"{name}\nline 2\n")

        def names(d):
            return [Path(x.numpy().decode()).name for x in d]

        pattern = str(root / "*.txt")
        return [
            names(Dataset.list_files(pattern, shuffle=False)),
            sorted(names(Dataset.list_files(pattern))),
            names(Dataset.list_files([pattern, str(root / "c*")], shuffle=False)),
            raised(Dataset.list_files, str(root / "no*"), shuffle=False),
            int(Dataset.list_files(pattern).cardinality()),
            told(tf.data.TextLineDataset([str(root / "a.txt"), str(root / "b.txt")])),
            told(tf.data.TextLineDataset(Dataset.list_files(pattern, shuffle=False))),
            told(tf.data.TextLineDataset(str(root / "a.txt"), num_parallel_reads=2)),
            outcome(lambda: told(tf.data.TextLineDataset(str(root / "none")))),
            outcome(lambda: tf.data.TextLineDataset(3)),
            told(tf.data.TextLineDataset(str(root / "a.txt"), buffer_size=4)),
            names(Dataset.list_files(tf.constant(pattern), shuffle=False)),
            names(Dataset.list_files(pattern, shuffle=True, seed=3))
            == names(Dataset.list_files(pattern, shuffle=True, seed=3)),
            told(
                tf.data.FixedLengthRecordDataset(
                    str(root / "a.txt"), 3, header_bytes=1, footer_bytes=0
                )
            ),
            outcome(
                lambda: told(
                    tf.data.FixedLengthRecordDataset(str(root / "a.txt"), 5, header_bytes=1)
                )
            ),
            outcome(lambda: tf.data.TextLineDataset(str(root / "a.txt"), "LZ")),
            told(tf.data.FixedLengthRecordDataset([str(root / "a.txt")], 13, num_parallel_reads=1)),
        ]


@program
def options_of_datasets(tf):
    d = tf.data.Dataset.range(4)
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    options.autotune.enabled = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    w = d.with_options(options)
    other = tf.data.Options()
    other.deterministic = True
    merged = w.map(lambda x: x).with_options(other)
    return [
        w.options().deterministic,
        w.options().threading.private_threadpool_size,
        d.options().deterministic,
        merged.options().deterministic,
        merged.options().threading.private_threadpool_size,
        elements(merged),
        tf.data.Dataset.zip(w, d).options().deterministic,
        w.options() == options,
        raised(setattr, options, "determinism", True),
        raised(setattr, options, "deterministic", 3),
        raised(d.with_options, None),
        options.merge(other).deterministic,
        w.options().experimental_distribute.auto_shard_policy.name,
        [p.name for p in tf.data.experimental.AutoShardPolicy],
        options.autotune.enabled,
        options.experimental_slack,
        options.experimental_optimization.map_fusion,
    ]


@program
def experimental_functions(tf):
    e, Dataset = tf.data.experimental, tf.data.Dataset
    d = Dataset.range(6)
    structure = e.get_structure(d.batch(2))
    return [
        structure,
        e.cardinality(d),
        e.INFINITE_CARDINALITY,
        e.UNKNOWN_CARDINALITY,
        told(d.apply(e.assert_cardinality(6))),
        outcome(lambda: elements(d.apply(e.assert_cardinality(5)))),
        outcome(lambda: elements(d.apply(e.assert_cardinality(7)))),
        told(d.apply(e.dense_to_ragged_batch(4))),
        told(d.apply(e.enumerate_dataset(3))),
        e.get_single_element(d.take(1)),
        told(d.apply(e.map_and_batch(lambda x: x * 2, 4, drop_remainder=True))),
        told(d.apply(e.parallel_interleave(lambda x: Dataset.from_tensors(x), 2))),
        told(d.apply(e.prefetch_to_device("/cpu:0"))),
        told(d.apply(e.copy_to_device("/cpu:0"))),
        told(d.apply(e.take_while(lambda x: x < 2))),
        told(d.batch(2).apply(e.unbatch())),
        told(d.apply(e.unique())),
        told(d.apply(e.scan(np.int64(0), lambda s, x: (s + x, s)))),
        sorted(int(x) for x in d.apply(e.shuffle_and_repeat(3, 2))),
        told(d.apply(e.ignore_errors())),
        told(e.Counter(2, 3).take(2)),
        told(e.from_list([1, 2])),
        told(e.from_list([(1, "a"), (2, "b")])),
        outcome(lambda: e.from_list([])),
        e.AUTOTUNE,
        e.index_table_from_dataset(Dataset.from_tensor_slices(["a", "b"])).lookup(
            tf.constant(["b", "z"])
        ),
        e.table_from_dataset(
            Dataset.from_tensor_slices(([1, 2], ["x", "y"])).map(
                lambda a, b: (tf.cast(a, tf.int64), b)
            ),
            default_value="-",
        ).lookup(tf.constant([2, 9], tf.int64)),
        e.make_batched_features_dataset is not None,
        e.RandomDataset(3).take(1).element_spec.dtype,
        e.Optional.from_value(3).get_value(),
        raised(e.Optional.empty(tf.TensorSpec([], tf.int32)).get_value),
        e.Optional.from_value((1, "x")).element_spec,
        told(d.apply(e.bucket_by_sequence_length(lambda x: 1, [2], [2, 2]))),
        told(e.pad_to_cardinality(8)(Dataset.from_tensor_slices({"a": [1, 2]}))),
    ]


@program
def functions_that_use_datasets(tf):
    d = tf.data.Dataset.from_tensor_slices((np.arange(6.0, dtype=np.float32), np.arange(6)))

    @tf.function
    def total(dataset):
        s = 0.0
        for x, _ in dataset:
            s += x
        return s

    @tf.function
    def first(iterator):
        return next(iterator)

    @tf.function
    def optional(iterator):
        found = iterator.get_next_as_optional()
        return found.has_value()

    @tf.function
    def longest(dataset):
        best = tf.constant(0)
        for batch in dataset:
            best = tf.maximum(best, tf.shape(batch[0])[0])
            if best > 3:
                break
        return best

    iterator = iter(d)
    return [
        total(d),
        total(d.batch(2).map(lambda x, y: (tf.reduce_sum(x), y))),
        first(iterator),
        first(iterator),
        optional(iterator),
        longest(d.batch(4)),
        total(d.take(0)),
        [first(iter(d.batch(3)))],
        d.map(lambda x, y: tf.cond(x > 2, lambda: x, lambda: -x)).reduce(0.0, lambda s, x: s + x),
        elements(d.map(lambda x, y: tf.py_function(lambda v: v + 1, [x], tf.float32))),
        elements(d.map(lambda x, y: tf.numpy_function(lambda v: v * 2, [x], tf.float32)).take(2)),
    ]


@program
def elements_that_are_left_out(tf):
    d = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0, 0.0])
    checked = d.map(lambda x: tf.debugging.check_numerics(1.0 / x, "infinite"))
    return [
        raised(lambda: elements(checked)),
        elements(checked.ignore_errors()),
        elements(checked.ignore_errors(log_warning=True)),
        elements(checked.apply(tf.data.experimental.ignore_errors()).batch(2)),
        elements(checked.take(1)),
        elements(checked.ignore_errors().repeat(2)),
    ]


@program
def shares_of_classes(tf):
    tf.random.set_seed(1)
    labels = [0] * 900 + [1] * 100
    d = tf.data.Dataset.from_tensor_slices((np.arange(1000), labels)).shuffle(1000, seed=2)
    even = d.rejection_resample(lambda x, y: y, [0.5, 0.5], [0.9, 0.1], seed=3)
    kept = [int(c) for c, _ in even]
    return [
        0.4 < np.mean(kept) < 0.6,
        even.element_spec[0].dtype,
        len(even.element_spec),
        raised(lambda: d.rejection_resample(lambda x, y: 0.5, [0.5, 0.5])),
    ]
