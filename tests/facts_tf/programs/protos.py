"""td.io.decode_proto and encode_proto: messages of protobuf as tensors."""

from __future__ import annotations

from tests.facts_tf.registry import outcome, program, raised


def described():
    """A type of messages with fields of all kinds: its description, and its class."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    Field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="probe", syntax="proto2")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="SMALL", number=0)
    kind.value.add(name="LARGE", number=5)
    message = file.message_type.add(name="M")
    fields = [
        ("i", "INT32", "7"), ("r", "INT64", ...), ("s", "STRING", None), ("b", "BYTES", ...),
        ("d", "DOUBLE", None), ("f", "FLOAT", ...), ("u64", "UINT64", None), ("bo", "BOOL", "true"),
        ("sub", "MESSAGE", None), ("u32", "UINT32", None), ("half", "FLOAT", "2.5"),
        ("kind", "ENUM", None), ("fixed", "SFIXED64", ...), ("subs", "MESSAGE", ...),
    ]  # fmt: skip
    for number, (name, type_, default) in enumerate(fields, 1):
        label = Field.LABEL_REPEATED if default is ... else Field.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, type=f"TYPE_{type_}", label=label)
        if default not in (None, ...):
            field.default_value = default
        if type_ in ("MESSAGE", "ENUM"):
            field.type_name = ".probe.M" if type_ == "MESSAGE" else ".probe.Kind"
    files = descriptor_pb2.FileDescriptorSet()
    files.file.append(file)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("probe.M"))
    return b"bytes://" + files.SerializeToString(), made


def messages(M):
    full = M(
        i=3, r=[1, 2, 3], s="x", b=[b"q"], d=1.5, f=[0.5, 0.25], u64=2**63 + 1, bo=False,
        u32=2**32 - 1, kind=5, fixed=[-1],
    )  # fmt: skip
    full.sub.i = 9
    full.subs.add(r=[1])
    full.subs.add(s="y")
    return [m.SerializeToString() for m in (full, M(r=[4]), M())]


ALL = {
    "i": "int32", "r": "int64", "s": "string", "b": "string", "d": "float64", "f": "float32",
    "u64": "uint64", "bo": "bool", "sub": "string", "u32": "uint32", "half": "float32",
    "kind": "int32", "fixed": "int64", "subs": "string",
}  # fmt: skip


@program
def messages_decoded(tf):
    source, M = described()
    data = messages(M)

    def read(texts, fields, **given):
        types = [tf.as_dtype(t) for t in fields.values()]
        given = {"descriptor_source": source, **given}
        found = tf.io.decode_proto(texts, "probe.M", list(fields), types, **given)
        return [found.sizes, *found.values]

    @tf.function
    def compiled(texts):
        found = tf.io.decode_proto(
            texts, "probe.M", ["r", "s"], [tf.int64, tf.string], descriptor_source=source
        )
        return found.sizes, found.values[0], tf.shape(found.values[0]), found.values[1]

    concrete = compiled.get_concrete_function(tf.TensorSpec([None], tf.string))
    mapped = tf.data.Dataset.from_tensor_slices(data).map(
        lambda x: tf.io.decode_proto(
            x, "probe.M", ["r"], [tf.int64], descriptor_source=source
        ).values[0]
    )
    other = [
        ("u64", "int64"), ("u32", "uint64"), ("u32", "int64"), ("f", "float64"), ("d", "float32"),
        ("i", "int64"), ("i", "float32"), ("kind", "int64"), ("bo", "int32"), ("s", "int32"),
        ("r", "int32"), ("none", "int32"),
    ]  # fmt: skip
    return [
        read(data, ALL), read(data[0], ALL), read([data[2]], ALL), read([[data[0], data[1]]], ALL),
        [outcome(read, data, {name: kind}) for name, kind in other],
        compiled(tf.constant(data)), [x.shape.as_list() for x in concrete.outputs],
        list(mapped),
        read(["i: 3 r: 1 r: 2"], {"i": "int32", "r": "int64"}, message_format="text"),
        raised(read, data, {"i": "int32"}, message_format="json"),
        raised(read, [b"\x0a\xff"], {"i": "int32"}),
        raised(read, data, {"i": "int32"}, descriptor_source=b"bytes://zzz"),
        raised(read, data, {"i": "int32"}, descriptor_source="/no/such/file"),
        raised(tf.io.decode_proto, data, "probe.N", ["i"], [tf.int32], descriptor_source=source),
        raised(tf.io.decode_proto, data, "probe.M", ["i"], [], descriptor_source=source),
    ]  # fmt: skip


@program
def messages_encoded(tf):
    source, M = described()
    data = messages(M)

    def write(sizes, values, fields):
        return tf.io.encode_proto(sizes, values, fields, "probe.M", descriptor_source=source)

    types = [tf.as_dtype(t) for t in ALL.values()]
    read = tf.io.decode_proto(data, "probe.M", list(ALL), types, descriptor_source=source)
    int64, int32 = tf.constant([[1, 2], [3, 4]], tf.int64), tf.constant([[5], [0]])
    return [
        write(read.sizes, read.values, list(ALL)),
        [x == y for x, y in zip(write(read.sizes, read.values, list(ALL)).numpy(), data)],
        write([[1, 2, 0], [0, 0, 1]], [int32, int64, [["a"], ["b"]]], ["i", "r", "s"]),
        write([[2, 1]], [int64[:1], int32[:1]], ["r", "i"]),
        write([[[2]]], [int64[None, :1]], ["r"]),
        write([[2]], [tf.constant([[1, 2]])], ["i"]),
        tf.function(lambda n: write(n, [int64], ["r"]))(tf.constant([[0], [2]])),
        raised(write, [[3]], [int64[:1]], ["r"]),
        raised(write, [[1]], [[[1.5]]], ["r"]),
        raised(write, [2], [int64[0]], ["r"]),
        raised(write, [[1]], [int64], ["none"]),
    ]
