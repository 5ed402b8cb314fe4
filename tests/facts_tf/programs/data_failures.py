"""Errors within passes of td.data: which elements come behind them, and when they are raised."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.programs.data_stages import told
from tests.facts_tf.registry import outcome, program, raised


def whole_pass(tf, dataset, most=30):
    """The elements of a pass, and the errors between them."""
    found, iterator = [], iter(dataset)
    for _ in range(most):
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return [*found, "more"]


def checked(tf, *numbers):
    """Numbers, of which those that are NaN fail."""
    values = tf.data.Dataset.from_tensor_slices(np.array(numbers, np.float32))
    return values.map(lambda x: tf.debugging.check_numerics(x, "wrong"))


@program
def functions_that_give_datasets(tf):
    d = tf.data.Dataset.range(5)

    def broken(x):
        tf.debugging.assert_none_equal(x, tf.constant(2, tf.int64))
        return tf.data.Dataset.from_tensors(x).repeat(2)

    def inside(x):
        return tf.data.Dataset.range(3).map(
            lambda y: tf.debugging.check_numerics(
                tf.cast(y, tf.float32) / tf.cast(y + x - 2, tf.float32), "wrong"
            )
        )

    return [
        whole_pass(tf, d.flat_map(broken)),
        told(d.flat_map(broken).ignore_errors()),
        whole_pass(tf, d.interleave(broken, cycle_length=2)),
        whole_pass(tf, d.interleave(broken, cycle_length=2, block_length=2)),
        whole_pass(tf, d.flat_map(inside)),
        whole_pass(tf, d.interleave(inside, cycle_length=2, block_length=2)),
        whole_pass(tf, d.interleave(inside, cycle_length=3)),
        told(d.interleave(inside, cycle_length=3).ignore_errors()),
        whole_pass(tf, d.group_by_window(lambda x: x % 2, lambda k, w: w.flat_map(broken), 2)),
    ]


@program
def several_datasets(tf):
    a, b = checked(tf, 1.0, np.nan, 3.0), checked(tf, 10.0, 20.0, 30.0)
    numbers = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 0, 1, 0, 1, 1], np.int64))
    outside = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 5, 1, 0, 0], np.int64))
    choose = tf.data.Dataset.choose_from_datasets
    return [
        whole_pass(tf, choose([a, b], numbers)),
        whole_pass(tf, choose([a, b], numbers, stop_on_empty_dataset=False)),
        whole_pass(tf, choose([b, b], outside)),
        told(choose([a, b], numbers).ignore_errors()),
        whole_pass(tf, tf.data.Dataset.sample_from_datasets([a, b], [1.0, 0.0])),
        whole_pass(tf, tf.data.Dataset.zip((a, b))),
        whole_pass(tf, a.concatenate(b)),
    ]


@program
def windows_with_failed_elements(tf):
    d = checked(tf, 1.0, np.nan, 2.0, np.nan, 3.0, 4.0)
    return [
        whole_pass(tf, d.window(2, 2, 2, drop_remainder=True).flat_map(lambda w: w.batch(2))),
        whole_pass(tf, d.window(2).flat_map(lambda w: w.batch(2))),
        whole_pass(tf, d.window(1, 3).flat_map(lambda w: w)),
        whole_pass(tf, d.window(2, drop_remainder=True).ignore_errors().flat_map(lambda w: w)),
    ]


@program
def batches_with_failed_elements(tf):
    d = checked(tf, 1.0, 2.0, np.nan, 3.0, 4.0, 5.0)
    return [
        whole_pass(tf, d.batch(2)),
        whole_pass(tf, d.batch(2, drop_remainder=True)),
        whole_pass(tf, d.batch(3)),
        whole_pass(tf, d.padded_batch(2)),
        whole_pass(tf, d.ignore_errors().batch(2)),
        whole_pass(tf, checked(tf, 1.0, np.nan, np.nan, 4.0, 5.0, 6.0, 7.0).batch(3)),
        whole_pass(tf, checked(tf, 1.0, 2.0, 3.0, np.nan).batch(3)),
        whole_pass(tf, checked(tf, 1.0, 2.0, 3.0, 4.0, np.nan).batch(3, drop_remainder=True)),
        whole_pass(tf, d.filter(lambda x: x < 5.0).batch(2)),
    ]


@program
def generators_that_fail(tf):
    def wrong_elements():
        yield np.array([1, 2, 3])
        yield "no number"
        yield np.array([4, 5, 6])
        yield np.array([7, 8, 9, 10])
        yield np.array([11, 12, 13])

    def wrong_structures():
        yield 1, 2
        yield 3
        yield 4, 5, 6
        yield 7, 8

    def raising():
        yield 1
        raise ValueError("wrong")

    class Once:
        def __iter__(self):
            self.count = 0
            return self

        def __next__(self):
            self.count += 1
            if self.count == 2:
                raise RuntimeError("wrong")
            if self.count == 4:
                raise StopIteration
            return self.count

    def made(generator, signature):
        return tf.data.Dataset.from_generator(generator, output_signature=signature)

    number = tf.TensorSpec([], tf.int64)
    return [
        whole_pass(tf, made(wrong_elements, tf.TensorSpec([3], tf.int64))),
        whole_pass(tf, made(wrong_structures, (number, number))),
        whole_pass(tf, made(raising, number)),
        whole_pass(tf, made(Once, number)),
        told(made(wrong_elements, tf.TensorSpec([3], tf.int64)).ignore_errors()),
    ]


@program
def refused_when_made(tf):
    d = tf.data.Dataset.from_tensors([1, 2, 3])
    pairs = tf.data.Dataset.from_tensors(([1, 2], [1, 2, 3]))
    options = tf.data.Dataset.range(2).options()

    def mutate():
        options.deterministic = True

    def mutate_threads():
        options.threading.private_threadpool_size = 2

    return [
        raised(lambda: d.padded_batch(2, padded_shapes=[2])),
        raised(lambda: d.padded_batch(2, padded_shapes=[3])),
        raised(lambda: d.padded_batch(2, padded_shapes=[None])),
        raised(lambda: pairs.unbatch()),
        raised(lambda: d.map(lambda x: (x, None)).padded_batch(2)),
        raised(lambda: d.map(lambda x: object())),
        raised(lambda: tf.data.Dataset.choose_from_datasets([d], None)),
        raised(mutate),
        raised(mutate_threads),
        outcome(lambda: tf.data.Dataset.range(2).options() == tf.data.Options()),
    ]


@program
def caches_that_are_whole(tf):
    def calls(run):
        count = tf.Variable(0)

        def counted(x):
            count.assign_add(1)
            return x

        run(lambda n: tf.data.Dataset.range(n).map(counted).cache())
        return int(count)

    def of_equal_lengths(made):
        both = tf.data.Dataset.zip((made(3), made(3)))
        list(both), list(both)

    def with_a_shorter_one(made):
        both = tf.data.Dataset.zip((tf.data.Dataset.range(2), made(4)))
        list(both), list(both)

    def to_the_last_element(made):
        dataset = made(3)
        iterator = iter(dataset)
        [next(iterator) for _ in range(3)]
        list(dataset)

    return [calls(of_equal_lengths), calls(with_a_shorter_one), calls(to_the_last_element)]


@program
def cardinalities_without_end(tf):
    d = tf.data.Dataset.range(4).repeat()
    of = tf.data.Dataset

    def one(x):
        return of.from_tensors(x)

    made = [
        d.flat_map(one),
        d.interleave(one, 2),
        d.interleave(one, 2, num_parallel_calls=2),
        d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 2),
        of.choose_from_datasets([d, of.range(3)], of.range(2)),
        of.sample_from_datasets([of.range(3), d]),
        of.sample_from_datasets([of.range(3), of.range(3)]),
        d.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5]),
        d.filter(lambda x: x > 0),
        of.range(3).repeat(tf.Variable(2, dtype=tf.int64)),
    ]
    return [x.cardinality() for x in made]


@program
def shapes_and_keys_of_groups(tf):
    d = tf.data.Dataset.range(6).map(lambda x: tf.fill([x % 3 + 1], x))

    def padded(key, window):
        return window.padded_batch(2, padded_shapes=tf.expand_dims(key + 3, 0))

    @tf.function
    def total(size):
        found = tf.constant(0, tf.int64)
        for batch in d.padded_batch(3, padded_shapes=tf.reshape(size, [1])):
            found += tf.shape(batch, tf.int64)[1] + tf.reduce_sum(batch)
        return found

    return [
        told(d.group_by_window(lambda x: tf.shape(x, tf.int64)[0] % 2, padded, 2)),
        told(tf.data.Dataset.range(4).group_by_window(lambda x: 0, lambda k, w: w.batch(4), 4)),
        total(tf.constant(4, tf.int64)),
        total(tf.constant(-1, tf.int64)),
        told(d.padded_batch(3, padded_shapes=tf.constant([-1], tf.int64))),
        told(d.padded_batch(3, padded_shapes=tf.constant([4], tf.int64))),
        told(d.padded_batch(3, padded_shapes=[-1])),
        told(d.map(lambda x: (x, {"a": x})).padded_batch(
            4, ([-1], {"a": (4,)}), (tf.constant(1, tf.int64), None)
        )),
        tf.strings.as_string(["ab", "c"], width=4),
        tf.strings.as_string("ab", width=4, fill="-"),
    ]


@program
def random_functions_begin_anew(tf):
    d = tf.data.Dataset.range(4)

    def values(dataset):
        return [float(x) for x in dataset]

    def told_of(dataset):
        once, again = values(dataset), values(dataset)
        twice = values(dataset.repeat(2))
        return [once == again, twice[:4] == once, twice[4:] == once, len(set(twice))]

    seeded = told_of(d.map(lambda x: tf.random.uniform([], seed=3)))
    sums = d.map(lambda x: tf.random.uniform([], seed=3) + tf.random.normal([], seed=4))
    two = told_of(sums.batch(2).unbatch())
    tf.random.set_seed(7)
    return [seeded, two, told_of(d.map(lambda x: tf.random.uniform([])))]


@program
def functions_that_come_to_an_end(tf):
    def stop(x):
        raise StopIteration

    d = tf.data.Dataset.range(2)
    mapped = d.map(lambda x: tf.py_function(stop, [x], tf.int64))
    parallel = d.map(lambda x: tf.py_function(stop, [x], tf.int64), num_parallel_calls=2)
    scanned = d.scan(0, lambda s, x: (s, tf.py_function(stop, [x], tf.int64)))
    return [whole_pass(tf, x) for x in (mapped, parallel, scanned)]
