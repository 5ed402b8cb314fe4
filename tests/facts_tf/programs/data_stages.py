"""Stages of td.data: arguments and defaults, sizes of batches, cardinalities, specs and errors."""

from __future__ import annotations

import itertools

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def elements(dataset):
    return list(dataset)


def told(dataset):
    """What a dataset says of itself, and its elements."""
    spec = dataset.element_spec
    described = [
        [s.dtype, s.shape] if hasattr(s, "shape") else type(s).__name__ for s in leaves(spec)
    ]
    return [described, int(dataset.cardinality()), elements(dataset)]


def leaves(spec):
    if isinstance(spec, dict):
        return [leaf for key in sorted(spec) for leaf in leaves(spec[key])]
    if isinstance(spec, tuple | list):
        return [leaf for part in spec for leaf in leaves(part)]
    return [spec]


@program
def batches_and_their_arguments(tf):
    d = tf.data.Dataset.range(7)
    return [
        told(d.batch(3)),
        told(d.batch(3, drop_remainder=True)),
        told(d.batch(7)),
        told(d.batch(8, True)),
        told(d.batch(3, num_parallel_calls=2, deterministic=True)),
        told(d.batch(tf.constant(2, tf.int64))),
        told(d.batch(batch_size=np.int64(4))),
        outcome(lambda: told(d.batch(0))),
        outcome(lambda: told(d.batch(-1))),
        outcome(lambda: told(d.batch(2.5))),
        outcome(lambda: told(d.batch("3"))),
        outcome(lambda: told(d.batch(2).batch(2))),
        told(d.batch(2, True).batch(2, True)),
        told(tf.data.Dataset.range(0).batch(3)),
        told(d.batch(3).unbatch()),
        told(d.batch(3).unbatch().batch(4, drop_remainder=True)),
        told(d.batch(3, name="named")),
        d.repeat().batch(3).cardinality(),
        d.repeat(2).batch(3).cardinality(),
        d.filter(lambda x: x > 1).batch(3).cardinality(),
    ]


@program
def batches_of_texts_and_structures(tf):
    d = tf.data.Dataset.from_tensor_slices(
        {"a": np.arange(5, dtype=np.float32), "b": (["x", "yy", "z", "", "w"], np.ones((5, 2, 1)))}
    )
    return [
        told(d),
        told(d.batch(2)),
        told(d.batch(2, drop_remainder=True)),
        told(d.map(lambda e: (e["b"][0], e["a"])).batch(3)),
        told(d.map(lambda e: e["b"][1])),
    ]


@program
def padded_batches_and_their_arguments(tf):
    d = tf.data.Dataset.range(1, 6).map(lambda x: tf.fill([x], x))
    pairs = d.map(lambda x: (x, tf.cast(x, tf.float32)[:, None]))
    return [
        told(d.padded_batch(2)),
        told(d.padded_batch(2, padded_shapes=[6])),
        told(d.padded_batch(2, padded_shapes=[None], padding_values=tf.constant(-1, tf.int64))),
        told(d.padded_batch(2, drop_remainder=True)),
        outcome(lambda: told(d.padded_batch(2, padded_shapes=[3]))),
        outcome(lambda: told(d.padded_batch(2, padding_values=-1.5))),
        outcome(lambda: told(d.padded_batch(2, padding_values=-1))),
        told(pairs.padded_batch(2)),
        told(pairs.padded_batch(3, padded_shapes=([None], [None, 2]))),
        told(pairs.padded_batch(3, padding_values=(tf.constant(9, tf.int64), 0.5))),
        told(pairs.padded_batch(3, padding_values=(None, 0.5))),
        outcome(lambda: told(pairs.padded_batch(3, padded_shapes=[None]))),
        told(d.map(lambda x: tf.strings.as_string(x)).padded_batch(3, padding_values="-")),
        told(d.map(lambda x: tf.strings.as_string(x)).padded_batch(3)),
        outcome(lambda: told(d.padded_batch(0))),
        outcome(lambda: told(d.padded_batch(2, padded_shapes=[2, 3]))),
        told(
            d.map(lambda x: {"k": x}).padded_batch(2, {"k": [5]}, {"k": tf.constant(7, tf.int64)})
        ),
        told(tf.data.Dataset.range(4).padded_batch(3)),
    ]


@program
def windows_and_their_arguments(tf):
    d = tf.data.Dataset.range(7)

    def parts(w):
        return [int(w.cardinality()), [elements(x) for x in w], [int(x.cardinality()) for x in w]]

    named = tf.data.Dataset.zip({"a": d, "b": d.map(lambda x: -x)}).window(3)
    return [
        parts(d.window(3)),
        parts(d.window(3, shift=1)),
        parts(d.window(3, 1, 2)),
        parts(d.window(3, shift=1, drop_remainder=True)),
        parts(d.window(2, shift=4)),
        parts(d.window(3, shift=2, stride=2, drop_remainder=True)),
        parts(d.window(9)),
        parts(d.window(9, drop_remainder=True)),
        outcome(lambda: parts(d.window(0))),
        outcome(lambda: parts(d.window(2, shift=0))),
        outcome(lambda: parts(d.window(2, stride=0))),
        [{k: elements(v) for k, v in w.items()} for w in named],
        told(d.window(3, 1, 1, True).flat_map(lambda w: w.batch(3))),
        told(d.window(2).flat_map(lambda w: w)),
        str(type(next(iter(d.window(2)))).__name__ != ""),
    ]


@program
def parallel_maps(tf):
    d = tf.data.Dataset.range(8)
    return [
        told(d.map(lambda x: x * 2, num_parallel_calls=3)),
        told(d.map(lambda x: x * 2, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)),
        sorted(int(x) for x in d.map(lambda x: x * 2, 4, False)),
        outcome(lambda: told(d.map(lambda x: x, num_parallel_calls=0))),
        outcome(lambda: told(d.map(lambda x: x, num_parallel_calls=-2))),
        told(d.map(lambda x: (x, {"k": x + 1}))),
        told(d.map(lambda x: [x, x])),
        told(d.map(lambda x: (x, "text"))),
        told(d.map(lambda x: 3)),
        told(d.map(lambda x: 1.5)),
        told(d.map(lambda x: np.float32(2))),
        outcome(lambda: told(d.map(lambda: 1))),
        outcome(lambda: told(d.map(lambda x, y: x))),
        outcome(lambda: told(d.map(lambda x: object()))),
        told(tf.data.Dataset.zip(d, d).map(lambda a, b: a + b)),
        told(tf.data.Dataset.zip(d, (d, d)).map(lambda a, b: a + b[0] * b[1])),
        told(d.map(lambda x: x, name="m")),
        outcome(lambda: told(d.map(3))),
        told(d.map(lambda x: x, deterministic=False)),
        told(d.map(tf.square)),
        told(d.map(lambda x, s=3: x + s)),
    ]


@program
def ragged_and_sparse_elements(tf):
    ragged = tf.ragged.constant([[1, 2], [], [3], [4, 5, 6]])
    d = tf.data.Dataset.from_tensor_slices(ragged)
    sparse = tf.sparse.from_dense([[1, 0], [0, 0], [0, 2]])
    s = tf.data.Dataset.from_tensor_slices(sparse)
    deep = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], []], [[2, 3]], []]))
    return [
        elements(d),
        elements(d.batch(3)),
        elements(d.batch(2, drop_remainder=True)),
        elements(d.map(lambda x: x * 2)),
        elements(d.filter(lambda x: tf.size(x) > 0)),
        elements(d.ragged_batch(3)),
        elements(s),
        elements(s.batch(2)),
        elements(deep),
        elements(deep.batch(2)),
        elements(d.batch(2).unbatch()),
        elements(s.batch(2).unbatch()),
        elements(tf.data.Dataset.from_tensors(ragged)),
        elements(d.repeat(2).take(5)),
        elements(d.batch(2).map(lambda r: r.row_lengths())),
        elements(d.batch(2).map(lambda r: r.to_tensor())),
        elements(d.shuffle(1)),
        elements(d.take(2).concatenate(d.skip(3))),
        elements(d.cache()),
        elements(d.enumerate()),
        type(d.batch(2).element_spec).__name__,
        d.batch(2).element_spec.ragged_rank,
        type(s.element_spec).__name__,
        d.element_spec,
        elements(tf.data.Dataset.zip(d, s)),
        [elements(w) for w in d.window(2)],
        elements(
            tf.data.Dataset.range(1, 4).map(
                lambda n: tf.RaggedTensor.from_row_lengths(tf.range(n), tf.stack([n, 0]))
            )
        ),
        outcome(lambda: elements(d.padded_batch(2))),
        elements(
            d.group_by_window(
                lambda x: tf.cast(tf.size(x), tf.int64) % 2, lambda k, g: g.batch(4), 4
            )
        ),
    ]


@program
def ragged_batches(tf):
    d = tf.data.Dataset.range(5).map(lambda x: tf.range(x))
    matrices = tf.data.Dataset.range(1, 4).map(lambda x: tf.ones([x, 2]))
    both = tf.data.Dataset.range(1, 5).map(
        lambda x: {"a": tf.range(x), "b": x, "c": tf.ones([x, x])}
    )
    return [
        elements(d.ragged_batch(2)),
        elements(d.ragged_batch(2, drop_remainder=True)),
        elements(d.ragged_batch(2, row_splits_dtype=tf.int32)),
        elements(matrices.ragged_batch(2)),
        elements(both.ragged_batch(3)),
        elements(tf.data.Dataset.range(3).ragged_batch(2)),
        outcome(lambda: elements(d.ragged_batch(0))),
        elements(tf.data.Dataset.range(4).ragged_batch(2, name="n")),
    ]


@program
def cardinalities_of_stages(tf):
    d = tf.data.Dataset.range(10)
    e = tf.data.Dataset.range(4)
    odd = d.filter(lambda x: x % 2 == 1)
    endless = d.repeat()

    def many(*datasets):
        return [int(x.cardinality()) for x in datasets]

    generator = tf.data.Dataset.from_generator(
        lambda: iter([1]), output_signature=tf.TensorSpec([])
    )
    return [
        many(d.take(3), d.take(20), d.take(-1), d.take(0), d.skip(3), d.skip(20), d.skip(-1)),
        many(d.shard(3, 0), d.shard(3, 2), d.shard(20, 19), d.repeat(3), d.repeat(0), d.repeat(-1)),
        many(d.concatenate(e), endless.concatenate(e), e.concatenate(endless), odd.concatenate(e)),
        many(
            tf.data.Dataset.zip(d, e), tf.data.Dataset.zip(endless, e), tf.data.Dataset.zip(odd, e)
        ),
        many(
            d.shuffle(3),
            d.prefetch(2),
            d.cache(),
            d.enumerate(),
            d.map(lambda x: x),
            odd,
            generator,
        ),
        many(d.flat_map(lambda x: e), d.interleave(lambda x: e), d.unique(), d.batch(3).unbatch()),
        many(d.scan(np.int64(0), lambda s, x: (s + x, s)), d.take_while(lambda x: x < 3)),
        many(
            odd.take(2),
            odd.repeat(),
            endless.take(3),
            endless.skip(3),
            endless.shard(2, 0),
            odd.repeat(0),
        ),
        many(
            d.apply(tf.data.experimental.assert_cardinality(7)),
            odd.apply(tf.data.experimental.assert_cardinality(5)),
        ),
        many(
            tf.data.Dataset.sample_from_datasets([d, e]),
            tf.data.Dataset.sample_from_datasets([d, e], stop_on_empty_dataset=True),
        ),
        many(
            tf.data.Dataset.choose_from_datasets([d, e], e),
            d.batch(2).rebatch(3),
            d.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5]),
        ),
        many(
            d.window(3),
            d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 2),
            d.ignore_errors(),
        ),
        many(
            tf.data.Dataset.random(),
            tf.data.Dataset.counter(),
            tf.data.Dataset.range(5, 0, -2),
            tf.data.Dataset.range(5, 0),
        ),
        [len(d), len(d.batch(3)), raised(len, endless), raised(len, odd), bool(e)],
        many(
            d.ragged_batch(3),
            d.padded_batch(4),
            d.bucket_by_sequence_length(lambda x: 1, [2], [2, 2]),
        ),
        many(
            d.apply(tf.data.experimental.dense_to_ragged_batch(3)),
            d.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5], [0.9, 0.1]),
        ),
        [
            d.cardinality().dtype,
            (d.repeat().cardinality() == tf.data.INFINITE_CARDINALITY),
            odd.cardinality() == tf.data.UNKNOWN_CARDINALITY,
            tf.data.AUTOTUNE,
        ],
    ]


@program
def generators_and_signatures(tf):
    from_generator = tf.data.Dataset.from_generator
    T = tf.TensorSpec

    def pairs():
        yield 1, [1.0, 2.0]
        yield 2, [3.0]

    def of(*values):
        return lambda: iter(values)

    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    sparse = tf.SparseTensorSpec([2, 2], tf.float32)
    return [
        told(from_generator(pairs, output_signature=(T([], tf.int32), T([None], tf.float32)))),
        outcome(
            lambda: told(
                from_generator(pairs, output_signature=(T([], tf.int32), T([2], tf.float32)))
            )
        ),
        told(
            from_generator(
                of({"a": 1, "b": "x"}),
                output_signature={"a": T([], tf.int64), "b": T([], tf.string)},
            )
        ),
        outcome(
            lambda: told(
                from_generator(
                    of({"a": 1}), output_signature={"a": T([], tf.int64), "b": T([], tf.string)}
                )
            )
        ),
        elements(from_generator(of(tf.ragged.constant([[1], [2, 3]])), output_signature=ragged)),
        elements(from_generator(of(tf.sparse.eye(2)), output_signature=sparse)),
        told(from_generator(lambda n: iter(range(n)), output_signature=T([], tf.int32), args=(3,))),
        told(
            from_generator(
                lambda n, s: iter([s * int(n)]), output_signature=T([], tf.string), args=(2, "ab")
            )
        ),
        told(from_generator(of(1, 2), output_types=tf.float32)),
        told(from_generator(of([1, 2], [3]), tf.int64, [None])),
        told(from_generator(of((1, 2)), (tf.int64, tf.float32), ([], []))),
        outcome(lambda: told(from_generator(of(1.5), output_signature=T([], tf.int32)))),
        outcome(lambda: told(from_generator(of("x"), output_signature=T([], tf.float32)))),
        outcome(lambda: from_generator([1, 2], output_signature=T([]))),
        outcome(lambda: from_generator(of(1))),
        outcome(lambda: from_generator(of(1), output_signature=tf.int32)),
        outcome(lambda: from_generator(of(1), output_types=tf.int32, output_signature=T([]))),
        told(from_generator(of(np.float64(1), np.float64(2)), output_signature=T([], tf.float64))),
        told(from_generator(of(b"a", "ü"), output_signature=T([], tf.string))),
        told(from_generator(of([True], [False, True]), output_signature=T([None], tf.bool))),
        told(from_generator(of(), output_signature=T([], tf.bool))),
        told(from_generator(of([]), output_signature=T([None], tf.float32))),
        told(from_generator(of((1,), (2,)), output_signature=(T([], tf.int32),))),
        told(from_generator(of([1, 2]), output_signature=T([2], tf.int32)).repeat(2)),
        outcome(lambda: told(from_generator(of(None), output_signature=T([], tf.int32)))),
        told(from_generator(lambda: itertools.count(), output_signature=T([], tf.int64)).take(2)),
    ]


@program
def generators_that_begin_again(tf):
    calls = []

    def numbers():
        calls.append(len(calls))
        yield from range(3)

    d = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))
    found = [elements(d), elements(d.repeat(2)), len(calls)]
    iterator = iter(d)
    next(iterator)
    found += [len(calls), [int(x) for x in iterator], len(calls), raised(next, iterator)]
    return found


@program
def ends_and_beginnings_of_iterators(tf):
    d = tf.data.Dataset.range(3)
    one, two = iter(d), iter(d)
    found = [
        next(one),
        next(one),
        next(two),
        one.get_next(),
        raised(one.get_next),
        raised(next, one),
    ]
    found += [
        raised(next, one),
        one.get_next_as_optional().has_value(),
        two.get_next_as_optional().get_value(),
    ]
    found += [one.element_spec.dtype, elements(d), d.as_numpy_iterator().next(), raised(iter, 3)]
    numbers = d.as_numpy_iterator()
    found += [
        list(numbers),
        list(numbers),
        list(d.take(0)),
        [type(x).__name__ for x in d.as_numpy_iterator()],
    ]
    shuffled = tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False)
    found.append(elements(shuffled) == elements(shuffled))
    anew = tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=True)
    found.append(elements(anew) == elements(anew))
    found.append(isinstance(one, tf.data.Iterator))
    found.append(sorted(map(int, shuffled)) == list(range(20)))
    return found


@program
def sources_and_their_types(tf):
    slices, tensors = tf.data.Dataset.from_tensor_slices, tf.data.Dataset.from_tensors
    return [
        told(slices([1, 2])),
        told(slices([1.5])),
        told(slices(np.arange(3, dtype=np.uint8))),
        told(slices(([1, 2], ["a", "b"]))),
        told(slices([[1, 2], [3, 4]])),
        told(slices(([1], [2]))),
        told(slices({"a": [1, 2], "b": {"c": [[1], [2]]}})),
        told(slices([True, False])),
        told(slices(np.zeros((2, 0)))),
        told(slices(np.zeros((0, 2)))),
        told(slices([])),
        told(slices([1 + 2j])),
        told(slices(["a"])),
        told(slices(np.array([b"x", b"yz"]))),
        told(slices(np.array(["x", "yz"]))),
        told(slices(tf.Variable([1.0, 2.0]))),
        outcome(lambda: slices(3)),
        outcome(lambda: slices(([1, 2], [1]))),
        outcome(lambda: slices("text")),
        outcome(lambda: slices(None)),
        outcome(lambda: slices([[1], [2, 3]])),
        told(tensors([1, 2])),
        told(tensors(([1, 2], "a"))),
        told(tensors(3)),
        told(tensors({"a": 1.0})),
        told(tensors(np.zeros((2, 0)))),
        told(tensors((1, (2.5, "x")))),
        outcome(lambda: tensors(object())),
        told(slices((np.arange(4).reshape(2, 2), np.arange(2)))),
        told(slices(([1, 2], ([3, 4], {"k": [5, 6]})))),
        told(tf.data.Dataset.range(3, output_type=tf.int32)),
        told(tf.data.Dataset.range(1, 7, 2)),
        told(tf.data.Dataset.range(3, output_type=tf.float32)),
        outcome(lambda: tf.data.Dataset.range(1, 5, 0)),
        told(tf.data.Dataset.range(5, 0, -2)),
        told(tf.data.Dataset.range(-2)),
        outcome(lambda: tf.data.Dataset.range(1, 2, 3, 4)),
        told(tf.data.Dataset.counter(start=5, step=-2).take(3)),
        told(tf.data.Dataset.counter(dtype=tf.int32).take(2)),
        tf.data.Dataset.random(seed=4).take(2).element_spec.dtype,
        told(tf.data.Dataset.from_tensors(tf.zeros([2, 3])).unbatch()),
    ]
