"""Small programs with datasets. Each takes the library (TensorFlow or treadle) and gives what is
compared: values, specs, or the exception it raises. `record.py` writes down what TensorFlow does.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

Tf = Any


class Pair(NamedTuple):
    a: Any
    b: Any


def listed(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


# -- sources -------------------------------------------------------------------------------------


def slices_of_lists(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3])
    return dataset.element_spec, listed(dataset)


def slices_of_floats(tf: Tf) -> Any:
    return tf.data.Dataset.from_tensor_slices([1.0, 2.0]).element_spec


def slices_of_arrays(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(6.0).reshape(3, 2), np.arange(3)))
    return dataset.element_spec, listed(dataset)


def slices_of_dicts(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices({"b": [1, 2], "a": [3.0, 4.0]})
    return dataset.element_spec, listed(dataset)


def slices_of_nested_lists(tf: Tf) -> Any:
    return tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).element_spec


def slices_of_different_sizes(tf: Tf) -> Any:
    return tf.data.Dataset.from_tensor_slices(([1, 2], [3]))


def slices_of_a_scalar(tf: Tf) -> Any:
    return tf.data.Dataset.from_tensor_slices(3)


def one_element(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensors(([1, 2], 3))
    return dataset.element_spec, listed(dataset), len(dataset)


def ranges(tf: Tf) -> Any:
    make = tf.data.Dataset.range
    return [listed(make(3)), listed(make(2, 10, 3)), listed(make(10, 2, -3)), listed(make(3, 3))]


def range_types(tf: Tf) -> Any:
    make = tf.data.Dataset.range
    return [make(3).element_spec, make(3, output_type=tf.int32).element_spec, len(make(7))]


def range_of_floats(tf: Tf) -> Any:
    return tf.data.Dataset.range(3.5)


def range_without_arguments(tf: Tf) -> Any:
    return tf.data.Dataset.range()


def generator(tf: Tf) -> Any:
    def numbers() -> Any:
        yield 1
        yield 2

    dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
    return dataset.element_spec, listed(dataset), listed(dataset), dataset.cardinality()


def generator_with_arguments(tf: Tf) -> Any:
    def rows(count: Any) -> Any:
        for i in range(count):
            yield i, [i] * i

    signature = (tf.TensorSpec((), tf.int32), tf.TensorSpec((None,), tf.float32))
    return listed(tf.data.Dataset.from_generator(rows, args=(3,), output_signature=signature))


def generator_types(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([1, 2]), output_types=tf.float32, output_shapes=()
    )
    return dataset.element_spec, listed(dataset)


def generator_converts(tf: Tf) -> Any:
    signature = tf.TensorSpec((), tf.int32)
    return listed(tf.data.Dataset.from_generator(lambda: [1.5], output_signature=signature))


def generator_without_types(tf: Tf) -> Any:
    return tf.data.Dataset.from_generator(lambda: [1])


def generator_of_another_structure(tf: Tf) -> Any:
    signature = (tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.int32))
    return listed(tf.data.Dataset.from_generator(lambda: [1], output_signature=signature))


def generator_of_another_shape(tf: Tf) -> Any:
    signature = tf.TensorSpec((2,), tf.int32)
    return listed(tf.data.Dataset.from_generator(lambda: [1], output_signature=signature))


def generator_raises(tf: Tf) -> Any:
    def broken() -> Any:
        yield 1
        raise ValueError("boom")

    dataset = tf.data.Dataset.from_generator(broken, output_signature=tf.TensorSpec((), tf.int32))
    return listed(dataset)


# -- one element after another -------------------------------------------------------------------


def map_unpacks_tuples(tf: Tf) -> Any:
    numbers = tf.data.Dataset.range(3)
    return listed(tf.data.Dataset.zip((numbers, (numbers, numbers))).map(lambda a, b: a + b[1]))


def map_passes_dicts(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices({"b": [1, 2], "a": [3, 4]})
    return listed(dataset.map(lambda d: d["a"] - d["b"]))


def map_structures(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(3)
    return [
        dataset.map(lambda x: (x, {"a": 1, "b": [x, x]})).element_spec,
        dataset.map(lambda x: [x, x]).element_spec,
        listed(dataset.map(lambda x: {"y": x * 2})),
    ]


def map_of_none(tf: Tf) -> Any:
    return tf.data.Dataset.range(3).map(lambda x: None)


def map_with_too_few_parameters(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(3)
    return tf.data.Dataset.zip((dataset, dataset)).map(lambda a: a)


def map_is_traced_once(tf: Tf) -> Any:
    calls = []

    def double(x: Any) -> Any:
        calls.append(1)
        return x * 2

    dataset = tf.data.Dataset.range(5).map(double)
    return listed(dataset), listed(dataset), len(calls)


def map_with_branches(tf: Tf) -> Any:
    def clipped(x: Any) -> Any:
        if x > 2:
            x = x * 10
        return x

    return listed(tf.data.Dataset.range(5).map(clipped))


def map_in_parallel(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(20)
    return [
        listed(dataset.map(lambda x: x + 1, num_parallel_calls=4)),
        sorted(listed(dataset.map(lambda x: x + 2, num_parallel_calls=3, deterministic=False))),
        listed(dataset.map(lambda x: x + 3, num_parallel_calls=tf.data.AUTOTUNE)),
    ]


def map_fails(tf: Tf) -> Any:
    return listed(tf.data.Dataset.range(3).map(lambda x: 1 // (x - 1)))


def map_with_variables(tf: Tf) -> Any:
    scale = tf.Variable(3, dtype=tf.int64)
    dataset = tf.data.Dataset.range(3).map(lambda x: x * scale)
    before = listed(dataset)
    scale.assign(5)
    return before, listed(dataset)


def filter_keeps(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(6).filter(lambda x: x % 2 == 0)
    return listed(dataset), dataset.cardinality()


def filter_without_bool(tf: Tf) -> Any:
    return tf.data.Dataset.range(6).filter(lambda x: x)


def take_while(tf: Tf) -> Any:
    return listed(tf.data.Dataset.range(9).take_while(lambda x: x < 3))


def flat_map(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(4)
    flat = dataset.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(x))
    return flat.element_spec, listed(flat), flat.cardinality()


def interleave(tf: Tf) -> Any:
    def repeated(x: Any) -> Any:
        return tf.data.Dataset.from_tensors(x).repeat(6)

    return listed(tf.data.Dataset.range(1, 6).interleave(repeated, cycle_length=2, block_length=4))


def interleave_uneven(tf: Tf) -> Any:
    def repeated(x: Any) -> Any:
        return tf.data.Dataset.from_tensors(x).repeat(x)

    return listed(tf.data.Dataset.range(1, 8).interleave(repeated, cycle_length=3, block_length=2))


def scan(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, (s, x)))
    return dataset.element_spec, listed(dataset)


def scan_without_pair(tf: Tf) -> Any:
    return tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: s + x)


def enumerated(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices([5, 6]).enumerate(start=3)
    return dataset.element_spec, listed(dataset)


# -- which elements ------------------------------------------------------------------------------


def cardinalities(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(5)
    return [
        d.cardinality()
        for d in (
            dataset.repeat(), dataset.repeat(3), dataset.repeat(0), dataset.take(-1),
            dataset.skip(-1), dataset.skip(2), dataset.repeat().take(7), dataset.batch(2),
            dataset.batch(2, drop_remainder=True), dataset.shard(3, 1), dataset.shuffle(2),
            dataset.concatenate(dataset), dataset.window(2), dataset.cache().prefetch(1),
            dataset.take(0).repeat(), dataset.batch(5, drop_remainder=True).unbatch(),
            dataset.batch(2).unbatch(), tf.data.Dataset.zip((dataset, dataset.repeat())),
        )
    ]  # fmt: skip


def length_of_infinite(tf: Tf) -> Any:
    return len(tf.data.Dataset.range(5).repeat())


def length_unknown(tf: Tf) -> Any:
    return len(tf.data.Dataset.range(5).filter(lambda x: x > 1))


def parts(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(10)
    return [
        listed(dataset.take(3)), listed(dataset.skip(8)), listed(dataset.shard(3, 1)),
        listed(dataset.take(2).repeat(2)), listed(dataset.skip(-1)), listed(dataset.take(-1)),
    ]  # fmt: skip


def shard_out_of_range(tf: Tf) -> Any:
    return tf.data.Dataset.range(10).shard(3, 3)


def shuffle_size_zero(tf: Tf) -> Any:
    return tf.data.Dataset.range(3).shuffle(0)


def shuffle_has_all(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(30).shuffle(7, seed=1)
    first = listed(dataset)
    return sorted(first), all(value <= place + 6 for place, value in enumerate(first))


def shuffle_again(tf: Tf) -> Any:
    tf.random.set_seed(5)
    dataset = tf.data.Dataset.range(50).shuffle(50, seed=1)
    same = tf.data.Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    return listed(dataset) == listed(dataset), listed(same) == listed(same)


def shuffle_reproducible(tf: Tf) -> Any:
    def twice() -> Any:
        tf.random.set_seed(5)
        dataset = tf.data.Dataset.range(20).shuffle(20)
        return listed(dataset), listed(dataset)

    return twice() == twice()


def concatenated(tf: Tf) -> Any:
    make = tf.data.Dataset.from_tensor_slices
    joined = make(np.zeros((2, 3))).concatenate(make(np.zeros((1, 4))))
    return joined.element_spec, [x.shape for x in listed(joined)]


def concatenate_other_dtype(tf: Tf) -> Any:
    make = tf.data.Dataset.range
    return make(2).concatenate(make(3, output_type=tf.int32))


def zipped(tf: Tf) -> Any:
    make = tf.data.Dataset.range
    return listed(tf.data.Dataset.zip((make(3), make(5)))), listed(
        tf.data.Dataset.zip({"a": make(2), "b": make(1, 3)})
    )


def zip_of_lists(tf: Tf) -> Any:
    return tf.data.Dataset.zip([tf.data.Dataset.range(2), tf.data.Dataset.range(2)])


def chosen(tf: Tf) -> Any:
    parts = [tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)]
    choice = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 1, 0], np.int64))
    choose = tf.data.Dataset.choose_from_datasets
    return listed(choose(parts, choice)), listed(choose(parts, choice, stop_on_empty_dataset=False))


def sampled_from_one(tf: Tf) -> Any:
    parts = [tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)]
    return listed(tf.data.Dataset.sample_from_datasets(parts, weights=[1.0, 0.0], seed=1))


def asserted_cardinality(tf: Tf) -> Any:
    promise = tf.data.experimental.assert_cardinality
    dataset = tf.data.Dataset.range(6).filter(lambda x: x > 2)
    return len(dataset.apply(promise(3))), listed(dataset.apply(promise(3)))


def broken_promise(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(6).apply(tf.data.experimental.assert_cardinality(9))
    return listed(dataset)


def unique(tf: Tf) -> Any:
    return listed(tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique())


def counters(tf: Tf) -> Any:
    return listed(tf.data.Dataset.counter(2, 3).take(3))


# -- together and apart --------------------------------------------------------------------------


def batches(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(5)
    last, full = dataset.batch(2), dataset.batch(2, drop_remainder=True)
    return last.element_spec, listed(last), full.element_spec, listed(full)


def batch_size_zero(tf: Tf) -> Any:
    return tf.data.Dataset.range(5).batch(0)


def batch_of_different_shapes(tf: Tf) -> Any:
    return listed(tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([x], x)).batch(2))


def padded(tf: Tf) -> Any:
    rows = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([x], x))
    fitted = rows.padded_batch(2)
    fixed = rows.padded_batch(2, padded_shapes=5, padding_values=tf.constant(-1, tf.int64))
    return fitted.element_spec, listed(fitted), fixed.element_spec, listed(fixed)


def padded_too_small(tf: Tf) -> Any:
    rows = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([x], x))
    return listed(rows.padded_batch(2, padded_shapes=1))


def padded_with_another_dtype(tf: Tf) -> Any:
    rows = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([x], x))
    return rows.padded_batch(2, padding_values=-1)


def unbatched(tf: Tf) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(([[1, 2], [3, 4]], [[5, 6], [7, 8]])).unbatch()
    return dataset.element_spec, listed(dataset)


def unbatch_scalars(tf: Tf) -> Any:
    return tf.data.Dataset.range(3).unbatch()


def rebatched(tf: Tf) -> Any:
    return listed(tf.data.Dataset.range(7).batch(2).rebatch(3))


def rebatched_evenly(tf: Tf) -> Any:
    whole = tf.data.Dataset.range(12).batch(4, drop_remainder=True)
    sizes = (2, 3, [2, 2], [1, 2], 8)
    return [whole.rebatch(size).element_spec for size in sizes], listed(whole.rebatch(2))


def stages_of_unknown_rank(tf: Tf) -> Any:
    Dataset = tf.data.Dataset
    dataset = Dataset.range(4).map(lambda x: tf.py_function(lambda s: s + 1, [x], tf.int64))
    return (
        listed(dataset.ragged_batch(2)),
        listed(dataset.flat_map(lambda x: Dataset.from_tensors(x).repeat(2))),
        listed(dataset.interleave(lambda x: Dataset.from_tensor_slices(tf.fill([2], x)))),
    )


def windows(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(7)
    strided = dataset.window(3, shift=2, stride=2, drop_remainder=True)
    return [listed(w) for w in dataset.window(3)], [listed(w) for w in strided]


def windows_as_batches(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(7).window(3, shift=1, drop_remainder=True)
    return listed(dataset.flat_map(lambda w: w.batch(3)))


def windows_of_pairs(tf: Tf) -> Any:
    dataset = tf.data.Dataset.zip((tf.data.Dataset.range(4), tf.data.Dataset.range(4, 8)))
    return [(listed(a), listed(b)) for a, b in dataset.window(2)]


def grouped(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(10).group_by_window(
        key_func=lambda x: x % 2, reduce_func=lambda key, rows: rows.batch(3), window_size=3
    )
    return listed(dataset)


def prefetch_negative(tf: Tf) -> Any:
    return tf.data.Dataset.range(3).prefetch(-3)


# -- reading -------------------------------------------------------------------------------------


def reduced(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(5)
    both = dataset.reduce((0, 0.0), lambda s, x: (s[0] + 1, s[1] + tf.cast(x, tf.float32)))
    pairs = tf.data.Dataset.zip((dataset, dataset))
    return both, pairs.reduce(np.int64(0), lambda s, xy: s + xy[0] * xy[1])


def reduced_growing(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(4)
    return dataset.reduce(np.zeros(0, np.int64), lambda s, x: tf.concat([s, [x]], 0))


def reduce_changes_dtype(tf: Tf) -> Any:
    return tf.data.Dataset.range(5).reduce(0, lambda s, x: s + x)


def next_at_the_end(tf: Tf) -> Any:
    iterator = iter(tf.data.Dataset.range(1))
    return iterator.get_next(), iterator.get_next()


def stop_iteration(tf: Tf) -> Any:
    iterator = iter(tf.data.Dataset.range(1))
    return next(iterator), next(iterator)


def optionals(tf: Tf) -> Any:
    iterator = iter(tf.data.Dataset.range(1))
    first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    return first.has_value(), first.get_value(), second.has_value()


def optional_without_value(tf: Tf) -> Any:
    return iter(tf.data.Dataset.range(0)).get_next_as_optional().get_value()


def single_element(tf: Tf) -> Any:
    return tf.data.Dataset.range(3, 4).get_single_element()


def not_a_single_element(tf: Tf) -> Any:
    return tf.data.Dataset.range(2).get_single_element()


def kinds_of_numpy_values(tf: Tf) -> Any:
    scalars, vectors = tf.data.Dataset.range(1), tf.data.Dataset.from_tensors([1])
    return [type(x).__name__ for x in (*listed(scalars), *listed(vectors))]


def types_of_structures(tf: Tf) -> Any:
    named = tf.data.Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3.0)))
    ordered = tf.data.Dataset.from_tensor_slices(OrderedDict(b=[1, 2], a=[3, 4]))
    return [
        [type(e).__name__ for e in named],
        listed(named.map(lambda pair: pair.a * 2)),
        listed(named.map(lambda pair: pair)),
        [type(e).__name__ for e in ordered.map(lambda row: row)],
        [list(e) for e in ordered],
    ]


def named_tuples_are_not_unpacked(tf: Tf) -> Any:
    named = tf.data.Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3.0)))
    return named.map(lambda a, b: a)


def arrays_are_copied(tf: Tf) -> Any:
    numbers = np.arange(3)
    dataset = tf.data.Dataset.from_tensor_slices(numbers)
    numbers[:] = 9
    return listed(dataset)


def nested_iteration(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(2)
    return [(int(a), int(b)) for a in dataset for b in dataset]


def effects_in_maps(tf: Tf) -> Any:
    count = tf.Variable(0)

    def counting(x: Any) -> Any:
        count.assign_add(1)
        return x

    return listed(tf.data.Dataset.range(3).map(counting)), int(count.numpy())


def cardinalities_of_parts(tf: Tf) -> Any:
    unknown = tf.data.Dataset.range(5).filter(lambda x: x > 2)
    kinds = [tf.data.Dataset.range(5), tf.data.Dataset.range(5).repeat(), unknown]
    counts = (-1, 0, 3, 9)
    return [
        (int(kind.skip(n).cardinality()), int(kind.take(n).cardinality()))
        for kind in kinds
        for n in counts
    ]
