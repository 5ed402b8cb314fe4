"""td.data: lines of text files, buckets by length, and functions of td.data.experimental."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def elements(dataset):
    return list(dataset.as_numpy_iterator())


@program
def lines_of_files(tf):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        texts = [b"one\ntwo\r\n\nlast", b"a\r\r\nb\rc\n", b"", "é\n".encode()]
        names = [str(root / f"{k}.txt") for k in range(4)]
        for name, text in zip(names, texts, strict=True):
            Path(name).write_bytes(text)
        zipped, packed = str(root / "z"), str(root / "g")
        Path(zipped).write_bytes(zlib.compress(texts[0]))
        Path(packed).write_bytes(gzip.compress(texts[0]))
        make = tf.data.TextLineDataset
        found = [
            *(elements(make(name)) for name in names), elements(make(names)),
            elements(make(tf.constant(names[:2]))), elements(make(packed, "GZIP")),
            elements(make(zipped, compression_type="ZLIB")),
            elements(make(tf.data.Dataset.from_tensor_slices(names[:2]))),
            elements(make(names[0]).map(tf.strings.length).batch(3)),
            elements(tf.data.Dataset.from_tensor_slices(names).interleave(make, cycle_length=2)),
            elements(tf.data.Dataset.from_tensor_slices(names).flat_map(make).skip(1).take(2)),
            make(names).element_spec.dtype.name, make(names).element_spec.shape,
            raised(lambda: elements(make(str(root / "none")))),
            raised(make, 3),
        ]  # fmt: skip

        @tf.function
        def total(dataset):
            count = tf.constant(0)
            for line in dataset:
                count += tf.strings.length(line)
            return count

        return [*found, total(make(names))]


@program
def buckets(tf):
    lengths = [1, 4, 2, 7, 3, 9, 5, 2]
    rows = tf.data.Dataset.from_generator(
        lambda: (np.full(n, n, np.int32) for n in lengths),
        output_signature=tf.TensorSpec([None], tf.int32),
    )

    def of(*args, **kwargs):
        return elements(rows.bucket_by_sequence_length(*args, **kwargs))

    def length(x):
        return tf.shape(x)[0]

    old = tf.data.experimental.bucket_by_sequence_length
    return [
        of(length, [3, 5], [2, 2, 2]), of(length, [3, 5], [2, 3, 1], padding_values=-1),
        of(length, [3, 5], [2, 2, 2], drop_remainder=True), of(length, [4], [3, 8]),
        of(length, [3], [2, 2], padded_shapes=[9]), elements(rows.apply(old(length, [3], [2, 4]))),
        raised(rows.bucket_by_sequence_length, length, [3, 5], [2, 2]),
        outcome(lambda: of(length, [10], [1, 1], no_padding=True)),
        elements(tf.data.Dataset.from_tensor_slices(np.ones((5, 2), np.int32))
                 .bucket_by_sequence_length(length, [10], [2, 2], no_padding=True)),
    ]  # fmt: skip


@program
def functions_of_experimental(tf):
    e, make = tf.data.experimental, tf.data.Dataset
    a, b = make.range(3), make.range(10, 13)
    choice = make.from_tensor_slices(np.int64([1, 0, 1, 1, 1, 0]))
    return [
        elements(e.Counter().take(3)), elements(e.Counter(5, -2, tf.int32).take(3)),
        elements(e.choose_from_datasets([a, b], choice)),
        elements(e.choose_from_datasets([a, b], choice, stop_on_empty_dataset=True)),
        elements(e.sample_from_datasets([a], seed=1)),
        elements(e.sample_from_datasets([a, b], [1.0, 0.0], stop_on_empty_dataset=True)),
        e.get_single_element(make.range(4, 5)),
        elements(a.apply(e.take_while(lambda x: x < 2))),
        sorted(elements(e.sample_from_datasets([a, b], seed=3))),
    ]  # fmt: skip


TABLES_WITH_FAULTS = [
    '1,2"3,4\n', '"a"b","c","d"\n', '1,"2"3",4\n1,"2"3",4",5,5\na,b,"c"d"\ne,f,g\n',
    '"a" ,b,c\n', ' "a",b,c\n', 'a,"b\nc",d\ne,f,g\n', "a,b\n", 'a,b,"c', '\n\na,b,c\n\n',
    'a,"b""c",d\n', 'a,b,c"\ne,f,g\n', "a\rb,c,d\n", ",,\n", '"a","b","c"\r\nd,e,f\r\n',
]  # fmt: skip


@program
def rows_of_tables_with_faults(tf):
    defaults, found = [["D"]] * 3, []

    def read(text, quoted, ignored):
        with tempfile.TemporaryDirectory() as folder:
            name = str(Path(folder, "table.csv"))
            Path(name).write_bytes(text.encode())
            rows = tf.data.experimental.CsvDataset([name], defaults, use_quote_delim=quoted)
            rows = rows.ignore_errors() if ignored else rows
            return [[x.numpy() for x in row] for row in rows]

    for text in TABLES_WITH_FAULTS:
        found += [outcome(lambda t=text, q=q: read(t, q, False)) for q in (True, False)]
        found.append(read(text, True, True))
    return found


@program
def records_with_faults(tf):
    records = [
        '1,2"3', '"a"b",c', '"a" ,b', ' "a",b', 'a,"b', 'a,b"', "", 'a,"b\nc"', "1,2\n", "1\n,2",
        "1\r,2", '1,"2"\n', '"1\n2",3', "\n1,2", "1,\n2", '"a""b",""',
    ]  # fmt: skip

    def decoded(text, quoted):
        return tf.io.decode_csv(text, [["D"]] * 2, use_quote_delim=quoted)

    return [outcome(lambda t=t, q=q: decoded(t, q)) for t in records for q in (True, False)]


@program
def lists_without_files(tf):
    made = (tf.data.TextLineDataset, tf.data.TFRecordDataset)
    found = [[list(make(none)) for make in made] for none in ([], ())]
    return found, list(tf.data.FixedLengthRecordDataset([], 4))
