"""Programs of files: datasets of what is in them, examples, and elements kept in them."""

from __future__ import annotations

import os
import tempfile
from typing import Any

Tf = Any


def folder() -> str:
    return tempfile.mkdtemp()


def written(text: str | bytes, name: str = "a") -> str:
    """The path of a new file."""
    path = os.path.join(folder(), name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def recorded(tf: Tf, *records: bytes, kind: str = "") -> str:
    path = os.path.join(folder(), "a.tfrecord")
    with tf.io.TFRecordWriter(path, kind) as writer:
        for record in records:
            writer.write(record)
    return path


def plain(dataset: Any) -> Any:
    """The elements, with texts in place of strings of bytes."""
    return [as_text(element) for element in dataset.as_numpy_iterator()]


def as_text(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(as_text(v) for v in value)
    if isinstance(value, dict):
        return {k: as_text(v) for k, v in value.items()}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if getattr(value, "dtype", None) is not None and value.dtype.hasobject:
        return [as_text(v) for v in value.tolist()]
    return value


# -- records ---------------------------------------------------------------------------------------


def records(tf: Tf) -> Any:
    return plain(tf.data.TFRecordDataset(recorded(tf, b"one", b"", b"three")))


def records_compressed(tf: Tf) -> Any:
    return [
        plain(tf.data.TFRecordDataset(recorded(tf, b"one", b"x" * 300, kind=kind), kind))
        for kind in ("GZIP", "ZLIB")
    ]


def records_of_files(tf: Tf) -> Any:
    names = [recorded(tf, b"a", b"b"), recorded(tf, b"c")]
    nested = tf.data.TFRecordDataset([names])
    return plain(tf.data.TFRecordDataset(names)), plain(nested), nested.element_spec


def records_in_turn(tf: Tf) -> Any:
    names = [recorded(tf, b"a", b"b", b"c"), recorded(tf, b"d")]
    return plain(tf.data.TFRecordDataset(names, num_parallel_reads=2))


def records_missing_file(tf: Tf) -> Any:
    return plain(tf.data.TFRecordDataset("/no/such/file"))


def records_damaged(tf: Tf) -> Any:
    with open(recorded(tf, b"one", b"two"), "rb") as file:
        data = bytearray(file.read())
    data[-5] ^= 1
    return plain(tf.data.TFRecordDataset(written(bytes(data))))


def records_cut_off(tf: Tf) -> Any:
    with open(recorded(tf, b"one", b"two"), "rb") as file:
        data = file.read()
    return plain(tf.data.TFRecordDataset(written(data[:-1])))


def records_damaged_and_ignored(tf: Tf) -> Any:
    whole = recorded(tf, b"one", b"two")
    with open(whole, "rb") as file:
        data = file.read()
    names = [written(data[:-1]), whole]
    return plain(tf.data.TFRecordDataset(names).ignore_errors())


def records_not_compressed(tf: Tf) -> Any:
    return plain(tf.data.TFRecordDataset(recorded(tf, b"one"), "GZIP"))


def records_of_numbers(tf: Tf) -> Any:
    return plain(tf.data.TFRecordDataset([1, 2]))


def writer_closed(tf: Tf) -> Any:
    writer = tf.io.TFRecordWriter(os.path.join(folder(), "a"))
    writer.close()
    writer.write(b"x")


def writer_unknown_compression(tf: Tf) -> Any:
    return tf.io.TFRecordWriter(os.path.join(folder(), "a"), "FOO")


def writer_without_folder(tf: Tf) -> Any:
    return tf.io.TFRecordWriter("/no/such/folder/a")


def pieces(tf: Tf) -> Any:
    dataset = tf.data.FixedLengthRecordDataset(written("HDabcdefghFT"), 4, 2, 2)
    return plain(dataset), dataset.element_spec, int(dataset.cardinality())


def pieces_that_do_not_fit(tf: Tf) -> Any:
    return plain(tf.data.FixedLengthRecordDataset(written("HDabcdefghFT"), 5, 2, 2))


def pieces_of_nothing(tf: Tf) -> Any:
    return plain(tf.data.FixedLengthRecordDataset(written("abc"), 0))


def lines_in_turn(tf: Tf) -> Any:
    names = [written("a\nb\nc\n"), written("d\r\n\ne")]
    return plain(tf.data.TextLineDataset(names, num_parallel_reads=2))


# -- examples --------------------------------------------------------------------------------------


def example(tf: Tf, **features: Any) -> bytes:
    t = tf.train
    kinds = {
        bytes: lambda v: t.Feature(bytes_list=t.BytesList(value=v)),
        float: lambda v: t.Feature(float_list=t.FloatList(value=v)),
        int: lambda v: t.Feature(int64_list=t.Int64List(value=v)),
    }
    found = {k: kinds[type(v[0])](v) if v else t.Feature() for k, v in features.items()}
    return t.Example(features=t.Features(feature=found)).SerializeToString()


def parsed(tf: Tf) -> Any:
    fixed, given = tf.io.FixedLenFeature, example(tf, a=[b"x"], b=[1, -2], c=[1.5, 2.0])
    found = tf.io.parse_single_example(given, {
        "a": fixed([], tf.string), "b": fixed([2], tf.int64), "c": fixed([2, 1], tf.float32),
        "d": fixed([2], tf.int64, default_value=[3, 4]),
    })  # fmt: skip
    return {k: as_text(v.numpy()) for k, v in found.items()}


def parsed_batch(tf: Tf) -> Any:
    fixed, many = tf.io.FixedLenFeature, tf.io.FixedLenSequenceFeature
    given = [example(tf, b=[1, -2], c=[1.5, 2.0]), example(tf, c=[9.0])]
    found = tf.io.parse_example(given, {
        "b": fixed([2], tf.int64, default_value=[0, 7]),
        "c": many([], tf.float32, allow_missing=True, default_value=-1.0),
    })  # fmt: skip
    return {k: v.numpy() for k, v in found.items()}


def parsed_parts(tf: Tf) -> Any:
    many = tf.io.FixedLenSequenceFeature
    found = tf.io.parse_single_example(example(tf, c=[1.0, 2.0, 3.0, 4.0]), {
        "c": many([2], tf.float32, allow_missing=True), "z": many([], tf.int64, allow_missing=True),
    })  # fmt: skip
    return {k: v.numpy() for k, v in found.items()}


def parsed_in_a_pipeline(tf: Tf) -> Any:
    path = recorded(tf, *(example(tf, x=[float(i)] * 3, y=[i]) for i in range(5)))
    features = {
        "x": tf.io.FixedLenFeature([3], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64),
    }  # fmt: skip

    def pair(record: Any) -> Any:
        found = tf.io.parse_single_example(record, features)
        return found["x"], found["y"]

    dataset = tf.data.TFRecordDataset(path).map(pair).batch(2)
    return list(dataset.as_numpy_iterator()), dataset.element_spec


def parsed_missing(tf: Tf) -> Any:
    return tf.io.parse_single_example(example(tf), {"z": tf.io.FixedLenFeature([], tf.string)})


def parsed_empty(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        example(tf, e=[]), {"e": tf.io.FixedLenFeature([], tf.string)}
    )


def parsed_other_dtype(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        example(tf, a=[1]), {"a": tf.io.FixedLenFeature([], tf.string)}
    )


def parsed_other_count(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        example(tf, a=[1]), {"a": tf.io.FixedLenFeature([2], tf.int64)}
    )


def parsed_unknown_dtype(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        example(tf, a=[1]), {"a": tf.io.FixedLenFeature([], tf.int32)}
    )


def parsed_nothing(tf: Tf) -> Any:
    return tf.io.parse_single_example(example(tf, a=[1]), {})


def parsed_vector(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        [example(tf, a=[1])], {"a": tf.io.FixedLenFeature([], tf.int64)}
    )


def parsed_matrix(tf: Tf) -> Any:
    return tf.io.parse_example(
        [[example(tf, a=[1])]], {"a": tf.io.FixedLenFeature([], tf.int64)}
    )


def parsed_without_allow_missing(tf: Tf) -> Any:
    return tf.io.parse_single_example(
        example(tf, a=[1]), {"a": tf.io.FixedLenSequenceFeature([], tf.int64)}
    )


def sequence(tf: Tf, number: int, steps: int) -> bytes:
    t = tf.train

    def whole(*values: int) -> Any:
        return t.Feature(int64_list=t.Int64List(value=values))

    lists = {"t": t.FeatureList(feature=[whole(i, -i) for i in range(steps)])}
    message = t.SequenceExample(
        context=t.Features(feature={"n": whole(number)}),
        feature_lists=t.FeatureLists(feature_list=lists),
    )
    data: bytes = message.SerializeToString()
    return data


def parsed_sequence(tf: Tf) -> Any:
    context, lists = tf.io.parse_single_sequence_example(
        sequence(tf, 4, 3), {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"t": tf.io.FixedLenSequenceFeature([2], tf.int64)},
    )  # fmt: skip
    return context["n"].numpy(), lists["t"].numpy()


def parsed_sequences(tf: Tf) -> Any:
    many = tf.io.FixedLenSequenceFeature
    found = tf.io.parse_sequence_example(
        [sequence(tf, 4, 3), sequence(tf, 5, 1)], {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"t": many([2], tf.int64), "u": many([], tf.float32, allow_missing=True)},
    )  # fmt: skip
    return [{k: v.numpy() for k, v in group.items()} for group in found]


def parsed_sequence_missing(tf: Tf) -> Any:
    return tf.io.parse_single_sequence_example(
        sequence(tf, 4, 3), None, {"u": tf.io.FixedLenSequenceFeature([2], tf.int64)}
    )


def parsed_sequence_other_count(tf: Tf) -> Any:
    return tf.io.parse_single_sequence_example(
        sequence(tf, 4, 3), None, {"t": tf.io.FixedLenSequenceFeature([3], tf.int64)}
    )


def example_bytes(tf: Tf) -> Any:
    t = tf.train
    one = t.Example(features=t.Features(feature={
        "k": t.Feature(int64_list=t.Int64List(value=[1, -2, 300])),
    }))  # fmt: skip
    two = t.Example(features=t.Features(feature={
        "k": t.Feature(float_list=t.FloatList(value=[0.1, 2])),
    }))  # fmt: skip
    three = t.SequenceExample(context=t.Features())
    return [m.SerializeToString().hex() for m in (one, two, three, t.Example(), t.Feature())]


def example_texts(tf: Tf) -> Any:
    t = tf.train
    message = t.Feature(bytes_list=t.BytesList(value=[b"a\"\n\xff'\\", b""]))
    numbers = t.FloatList(value=[0.1, 2, 1e-7, 1e10, float("inf")])
    return str(message), str(numbers), str(t.Int64List(value=[3])), str(t.Features(feature={}))


def example_fields(tf: Tf) -> Any:
    message = tf.train.Example()
    message.features.feature["a"].int64_list.value.append(3)
    message.features.feature["a"].int64_list.value.extend([4, 5])
    kinds = [message.features.feature["a"].WhichOneof("kind")]
    message.features.feature["a"].float_list.value.append(1.5)
    kinds.append(message.features.feature["a"].WhichOneof("kind"))
    other = tf.train.Example.FromString(message.SerializeToString())
    equal = [other == message, other.features.feature["b"].HasField("int64_list"), other == message]
    return kinds, equal, message.HasField("features"), "a" in message.features.feature


def example_wrong_type(tf: Tf) -> Any:
    return tf.train.Int64List(value=[1.5])


def example_wrong_string(tf: Tf) -> Any:
    return tf.train.BytesList(value=["text"])


def example_too_large(tf: Tf) -> Any:
    return tf.train.Int64List(value=[2**63])


def example_unknown_field(tf: Tf) -> Any:
    return tf.train.Feature(list=[1])


def example_assigned(tf: Tf) -> Any:
    tf.train.Int64List().value = [1]


# -- strings of tensors ----------------------------------------------------------------------------


def serialized(tf: Tf) -> Any:
    values = [
        tf.constant([1.0, 2.0]), tf.constant([[1], [2]], tf.int64), tf.zeros([0, 2]),
        tf.constant(3.0, tf.float64), tf.constant(["ab", "", "x" * 200]), tf.constant("q"),
        tf.constant([True, False]), tf.constant([1.5], tf.bfloat16), tf.constant([1.5], tf.float16),
        tf.constant([1 + 2j], tf.complex64), tf.constant([1, 2], tf.uint8),
    ]  # fmt: skip
    return [tf.io.serialize_tensor(value).numpy().hex() for value in values]


def parsed_tensors(tf: Tf) -> Any:
    values = [tf.constant([[1.0, 2.0]]), tf.constant(7, tf.int64), tf.zeros([0], tf.int32)]
    texts = [tf.io.serialize_tensor(value) for value in values]
    found = [tf.io.parse_tensor(t, v.dtype) for t, v in zip(texts, values, strict=True)]
    return [(list(v.shape), v.numpy()) for v in found]


def parsed_short_forms(tf: Tf) -> Any:
    """Fields of single values, the last of which stands for those that follow."""
    floats = b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x08" + b"\x00\x00\x80?\x00\x00\x00@"
    whole = b"\x08\x03\x12\x04\x12\x02\x08\x02\x38\x05"
    halves = b"\x08\x13\x12\x04\x12\x02\x08\x01\x6a\x02\x80\x78"
    return [
        tf.io.parse_tensor(floats, tf.float32).numpy(), tf.io.parse_tensor(whole, tf.int32).numpy(),
        tf.io.parse_tensor(halves, tf.float16).numpy(),
    ]  # fmt: skip


def parsed_tensor_of_another_dtype(tf: Tf) -> Any:
    return tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant(1.0)), tf.int32)


def parsed_junk(tf: Tf) -> Any:
    return tf.io.parse_tensor(b"junk", tf.int32)


def json_example(tf: Tf) -> Any:
    text = (
        '{"features":{"feature":{"a":{"int64List":{"value":["1",2]}},'
        '"b":{"bytes_list":{"value":["eHg="]}},"c":{"floatList":{"value":[1.5,"Infinity"]}}}}}'
    )
    fixed = tf.io.FixedLenFeature
    found = tf.io.parse_single_example(tf.io.decode_json_example(text), {
        "a": fixed([2], tf.int64), "b": fixed([], tf.string), "c": fixed([2], tf.float32),
    })  # fmt: skip
    return found["a"].numpy(), as_text(found["b"].numpy()), found["c"].numpy().tolist()[0]


def json_empty(tf: Tf) -> Any:
    return as_text(tf.io.decode_json_example(["{}", "{}"]).numpy())


def json_unknown_field(tf: Tf) -> Any:
    return tf.io.decode_json_example('{"x": 1}')


def json_cut_off(tf: Tf) -> Any:
    return tf.io.decode_json_example("{")


# -- tables ----------------------------------------------------------------------------------------

TABLE = 'x,y,z\n1,2.5,"he,l"\n3,4,"a\nb"\n5,6,q\n'


def rows(tf: Tf) -> Any:
    kinds = [tf.int32, tf.float32, tf.string]
    return plain(tf.data.experimental.CsvDataset(written(TABLE), kinds, header=True))


def rows_of_columns(tf: Tf) -> Any:
    csv, kinds = tf.data.experimental.CsvDataset, [tf.int32, tf.string]
    path = written(TABLE)
    return (
        plain(csv(path, kinds, header=True, select_cols=[0, 2])),
        plain(csv(path, kinds, header=True, exclude_cols=[1])),
    )


def rows_with_errors(tf: Tf) -> Any:
    kinds = [tf.int32, tf.int32, tf.string]
    return plain(tf.data.experimental.CsvDataset(written(TABLE), kinds, header=True))


def rows_with_errors_ignored(tf: Tf) -> Any:
    kinds = [tf.int32, tf.int32, tf.string]
    table = tf.data.experimental.CsvDataset(written(TABLE), kinds, header=True)
    return plain(table.ignore_errors())


def rows_missing_fields(tf: Tf) -> Any:
    path = written("1,,x\n2,3,NA\n")
    return plain(tf.data.experimental.CsvDataset(
        path, [tf.int32, tf.constant([7.0]), tf.constant(["none"])], na_value="NA"
    ))  # fmt: skip


def rows_that_are_short(tf: Tf) -> Any:
    return plain(tf.data.experimental.CsvDataset(written("1,2\n3\n"), [tf.int32, tf.int32]))


def rows_of_other_columns(tf: Tf) -> Any:
    return tf.data.experimental.CsvDataset(written(TABLE), [tf.int32], select_cols=[0, 2])


def table(tf: Tf) -> Any:
    dataset = tf.data.experimental.make_csv_dataset(
        written(TABLE), 2, num_epochs=1, shuffle=False, label_name="x"
    )
    return plain(dataset), dataset.element_spec


def table_of_columns(tf: Tf) -> Any:
    dataset = tf.data.experimental.make_csv_dataset(
        written(TABLE), 2, num_epochs=1, shuffle=False, select_columns=["z", "x"]
    )
    return plain(dataset)


def table_without_end(tf: Tf) -> Any:
    dataset = tf.data.experimental.make_csv_dataset(written(TABLE), 2, shuffle=False)
    return dataset.element_spec, plain(dataset.take(3))


def table_of_dtypes(tf: Tf) -> Any:
    path = written("a,b,c,d\n1,5000000000,1.5,\n2,1,x,3\n")
    make = tf.data.experimental.make_csv_dataset
    return plain(make(path, 2, num_epochs=1, shuffle=False)), plain(make(
        path, 2, num_epochs=1, shuffle=False, column_defaults=[tf.int32, tf.int64, tf.string, -1.0]
    ))  # fmt: skip


def table_without_files(tf: Tf) -> Any:
    return tf.data.experimental.make_csv_dataset("/no/such/file", 2)


def table_without_label(tf: Tf) -> Any:
    return tf.data.experimental.make_csv_dataset(written(TABLE), 2, label_name="w")


# -- elements in files -----------------------------------------------------------------------------


def listed_files(tf: Tf) -> Any:
    path = folder()
    for name in "cab":
        tf.io.write_file(os.path.join(path, f"{name}.txt"), name)
    dataset = tf.data.Dataset.list_files(os.path.join(path, "*.txt"), shuffle=False)
    shuffled = tf.data.Dataset.list_files([f"{path}/a*", f"{path}/c*"])
    names = [os.path.basename(name) for name in plain(dataset)]
    return names, sorted(os.path.basename(n) for n in plain(shuffled)), int(dataset.cardinality())


def listed_files_none(tf: Tf) -> Any:
    return tf.data.Dataset.list_files("/no/such/*")


def saved(tf: Tf) -> Any:
    path = folder()
    tensors = {"a": [1, 2, 3], "b": ([1.0, 2, 3], [[1], [2], [3]])}
    tf.data.Dataset.from_tensor_slices(tensors).save(path)
    found = tf.data.Dataset.load(path)
    return list(found.as_numpy_iterator()), found.element_spec, int(found.cardinality())


def saved_again(tf: Tf) -> Any:
    path = folder()
    tf.data.Dataset.range(5).save(path)
    tf.data.Dataset.range(3).save(path, compression="GZIP")
    return plain(tf.data.Dataset.load(path, compression="GZIP"))


def saved_in_shards(tf: Tf) -> Any:
    path = folder()
    tf.data.Dataset.range(6).save(path, shard_func=lambda x: x % 2)
    return plain(tf.data.Dataset.load(
        path, reader_func=lambda datasets: datasets.flat_map(lambda dataset: dataset)
    ))  # fmt: skip


def loaded_nothing(tf: Tf) -> Any:
    return tf.data.Dataset.load("/no/such/folder")


def cached_in_a_file(tf: Tf) -> Any:
    path = os.path.join(folder(), "cache")
    random = tf.data.Dataset.range(6).map(lambda x: x + tf.random.uniform([], 0, 1000, tf.int64))
    dataset = random.cache(path)
    first = plain(dataset)
    return first == plain(dataset), first == plain(tf.data.Dataset.range(2).cache(path))


def cached_other_elements(tf: Tf) -> Any:
    path = os.path.join(folder(), "cache")
    plain(tf.data.Dataset.range(3).cache(path))
    return plain(tf.data.Dataset.from_tensors(1.5).cache(path))


def cached_without_folder(tf: Tf) -> Any:
    return plain(tf.data.Dataset.range(3).cache("/no/such/folder/cache"))


def snapshot_kept(tf: Tf) -> Any:
    path = folder()
    random = tf.data.Dataset.range(6).map(lambda x: x + tf.random.uniform([], 0, 1000, tf.int64))
    dataset = random.snapshot(path)
    first = plain(dataset)
    return first == plain(dataset), int(dataset.cardinality())


# -- errors that are left out ----------------------------------------------------------------------


def below_two(tf: Tf, count: int = 6) -> Any:
    def check(x: Any) -> Any:
        tf.debugging.assert_less(x % 3, tf.constant(2, tf.int64))
        return x

    return tf.data.Dataset.range(count).map(check)


def ignored(tf: Tf) -> Any:
    d = below_two(tf)
    found = [
        d, d.prefetch(2), d.shuffle(1), d.repeat(2), d.take(4), d.enumerate(), d.cache(),
        d.concatenate(tf.data.Dataset.range(2)), tf.data.Dataset.zip((d, tf.data.Dataset.range(6))),
        d.batch(1).unbatch(), d.batch(3), d.skip(3),
    ]  # fmt: skip
    return [plain(dataset.ignore_errors()) for dataset in found]


def ignored_in_functions(tf: Tf) -> Any:
    d = below_two(tf)
    found = [
        d.filter(lambda kept: True), d.flat_map(lambda each: tf.data.Dataset.from_tensors(each)),
        d.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x)),
        d.take_while(lambda going: True),
    ]  # fmt: skip
    return [plain(dataset.ignore_errors()) for dataset in found]


def ignored_cardinality(tf: Tf) -> Any:
    return int(tf.data.Dataset.range(3).ignore_errors().cardinality())


def resampled(tf: Tf) -> Any:
    numbers = tf.data.Dataset.range(2000).map(lambda x: tf.cast(x % 2, tf.int32))
    dataset = numbers.rejection_resample(lambda x: x, [0.9, 0.1], seed=1)
    found = [int(x) for _, x in dataset]
    return dataset.element_spec, 0.06 < sum(found) / len(found) < 0.14


def buckets_to_boundaries(tf: Tf) -> Any:
    lists = tf.data.Dataset.range(1, 6).map(lambda n: tf.ones([n], tf.int64))
    return plain(lists.bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
    ))  # fmt: skip


# -- td.data.experimental --------------------------------------------------------------------------


def list_elements(tf: Tf) -> Any:
    rows = [{"a": 1, "b": [1.0, 2.0]}, {"a": 2, "b": [3.0, 4.0]}]
    wider = tf.data.experimental.from_list([[1], [2, 3]])
    return plain(tf.data.experimental.from_list(rows)), plain(wider), wider.element_spec


def list_without_elements(tf: Tf) -> Any:
    return plain(tf.data.experimental.from_list([]))


def element_at(tf: Tf) -> Any:
    return [tf.data.experimental.at(tf.data.Dataset.range(3), i) for i in (0, 2)]


def element_beyond_the_last(tf: Tf) -> Any:
    return tf.data.experimental.at(tf.data.Dataset.range(3), 3)


def structures(tf: Tf) -> Any:
    d = tf.data.Dataset.range(3)
    return [tf.data.experimental.get_structure(x) for x in (d, iter(d))]


def structure_of_a_number(tf: Tf) -> Any:
    return tf.data.experimental.get_structure(3)


def records_of_a_dataset(tf: Tf) -> Any:
    path = os.path.join(folder(), "a")
    tf.data.experimental.TFRecordWriter(path).write(tf.data.Dataset.from_tensor_slices(["a", "bc"]))
    return plain(tf.data.TFRecordDataset(path))


def records_of_a_dataset_of_numbers(tf: Tf) -> Any:
    writer = tf.data.experimental.TFRecordWriter(os.path.join(folder(), "a"))
    writer.write(tf.data.Dataset.range(2))


def mapped_and_batched(tf: Tf) -> Any:
    of = tf.data.experimental.map_and_batch
    return plain(tf.data.Dataset.range(4).apply(of(lambda x: x * 2, 3, num_parallel_calls=2)))


def mapped_and_batched_by_two_numbers(tf: Tf) -> Any:
    return tf.data.experimental.map_and_batch(lambda x: x, 3, 2, num_parallel_calls=2)


def older_transformations(tf: Tf) -> Any:
    e, d = tf.data.experimental, tf.data.Dataset.range(4)
    twice = e.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2)
    sums = e.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x))
    once = tf.data.Dataset.from_tensor_slices([1, 2, 1]).apply(e.unique())
    shuffled = sorted(plain(d.apply(e.shuffle_and_repeat(3, 2, 1))))
    return plain(d.apply(twice)), plain(d.apply(sums)), plain(once), shuffled


def _examples(tf: Tf) -> Any:
    def example(i: int) -> bytes:
        x = tf.train.Feature(float_list=tf.train.FloatList(value=[i]))
        y = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
        features = tf.train.Features(feature={"x": x, "y": y})
        return tf.train.Example(features=features).SerializeToString()  # type: ignore[no-any-return]

    kinds = {
        "x": tf.io.FixedLenFeature([1], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)
    }  # fmt: skip
    return [example(i) for i in range(5)], kinds


def batches_of_features(tf: Tf) -> Any:
    examples, kinds = _examples(tf)
    path, of = recorded(tf, *examples), tf.data.experimental.make_batched_features_dataset
    found = [
        of(path, 2, kinds, num_epochs=1, shuffle=False, **more)
        for more in ({}, {"label_key": "y"}, {"drop_final_batch": True})
    ]
    endless = of(path, 2, kinds)
    return [[d.element_spec, plain(d)] for d in found], endless.element_spec


def batches_of_features_without_label(tf: Tf) -> Any:
    examples, kinds = _examples(tf)
    path = recorded(tf, *examples)
    return tf.data.experimental.make_batched_features_dataset(path, 2, kinds, label_key="z")


def parsed_batches(tf: Tf) -> Any:
    examples, kinds = _examples(tf)
    batches = tf.data.Dataset.from_tensor_slices(examples).batch(3)
    return plain(batches.apply(tf.data.experimental.parse_example_dataset(kinds)))


def numbers_of_errors(tf: Tf) -> Any:
    return [getattr(tf.errors, n) for n in ("OK", "UNKNOWN", "DATA_LOSS", "UNAUTHENTICATED")]
