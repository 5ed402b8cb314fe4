"""Strings as elements of datasets, in pipelines and in loops over them."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import program

WORDS = ["b", "a,c", "", "dé", "x\0", "b"]


def elements(dataset):
    return list(dataset.as_numpy_iterator())


@program
def sources(tf):
    make = tf.data.Dataset.from_tensor_slices
    spec = tf.TensorSpec([], tf.string)
    return [
        elements(make(WORDS)), elements(make(np.array(WORDS[:4]))),
        elements(make((WORDS, range(6)))),
        elements(make({"a": WORDS, "b": range(6)})), elements(tf.data.Dataset.from_tensors(WORDS)),
        elements(tf.data.Dataset.from_generator(lambda: iter(["a", b"b"]), output_signature=spec)),
        make(WORDS).element_spec.dtype.name, repr(next(make(WORDS).as_numpy_iterator())),
    ]  # fmt: skip


@program
def stages(tf):
    words = tf.data.Dataset.from_tensor_slices(WORDS)
    longer = words.map(lambda s: s + "!")
    pieces = words.map(lambda s: tf.strings.regex_replace(s, ",", " "))
    return [
        elements(longer), elements(words.batch(4)), elements(longer.batch(4)),
        elements(longer.batch(4, drop_remainder=True)), elements(longer.batch(4).unbatch()),
        elements(words.filter(lambda s: tf.strings.length(s) > 1)),
        elements(words.map(lambda s: (tf.strings.length(s), tf.strings.upper(s))).batch(3)),
        elements(pieces.enumerate()), elements(words.skip(1).take(2).repeat(2)),
        elements(words.concatenate(longer)), elements(tf.data.Dataset.zip((words, longer))),
        elements(words.cache().prefetch(2)), elements(words.unique()),
        elements(words.scan(tf.constant(""), lambda a, s: (a + s, a + s))),
        elements(words.take_while(lambda s: s != "")),
        words.reduce(tf.constant(""), lambda a, s: a + s + ";"),
        elements(words.map(lambda s: s, num_parallel_calls=2)),
    ]  # fmt: skip


@program
def padded_batches(tf):
    rows = tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(lambda n: tf.fill([n], "w"))
    return [elements(rows.padded_batch(2)), elements(rows.padded_batch(3, padding_values="?"))]


@program
def datasets_of_datasets(tf):
    words = tf.data.Dataset.from_tensor_slices(WORDS)
    twice = words.flat_map(lambda s: tf.data.Dataset.from_tensors(s).repeat(2))
    mixed = words.interleave(lambda s: tf.data.Dataset.from_tensors(s).repeat(2), cycle_length=2)
    windows = words.window(4).flat_map(lambda w: w.batch(4))
    by_size = words.group_by_window(
        lambda s: tf.cast(tf.strings.length(s), tf.int64) % 2, lambda key, w: w.batch(4), 4
    )
    return [elements(d) for d in (twice, mixed, windows, by_size)]


@program
def loops_in_functions(tf):
    words = tf.data.Dataset.from_tensor_slices((WORDS, range(6)))

    @tf.function
    def captured():
        text = tf.constant("")
        for s, i in words.batch(4):
            text += tf.strings.reduce_join(s, separator="|") + tf.as_string(i[0]) + ";"
        return text

    @tf.function
    def passed(dataset):
        text, count = tf.constant(""), 0
        for s in dataset:
            if tf.strings.length(s) > 1:
                text += s
                count += 1
        return text, count

    @tf.function
    def made(strings):
        text = tf.constant("")
        for s in tf.data.Dataset.from_tensor_slices(strings).map(lambda x: x + "~"):
            text = s + text
        return text

    plain = tf.data.Dataset.from_tensor_slices(WORDS)
    iterator = iter(plain)
    return captured(), passed(plain), made(tf.constant(WORDS)), next(iterator), next(iterator)
