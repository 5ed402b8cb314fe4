"""Summaries: which events are written, eagerly and in functions, and what is refused."""

from __future__ import annotations

import glob
import os
import tempfile

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def events(tf, folder):
    """(step, tag, plugin, its settings, value) of each summary in the files of a folder."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*tfevents*"))):
        for text in tf.data.TFRecordDataset(path):
            event = event_pb2.Event.FromString(text.numpy())
            for value in event.summary.value:
                data = value.metadata.plugin_data
                array = tensor_util.make_ndarray(value.tensor)
                kind = (data.plugin_name, data.content.hex(), value.metadata.summary_description)
                found.append((event.step, value.tag, *kind, array.dtype.name, array.tolist()))
    return found


def written(tf, function, **default):
    """What a function gives in a block of a writer, and what is written."""
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default(**default):
            result = outcome(function)
        writer.close()
        return result, events(tf, folder)


@program
def scalars(tf):
    def write():
        return [
            tf.summary.scalar("a", 1.5, step=1),
            tf.summary.scalar("b", np.int32(3), step=np.int64(2)),
            tf.summary.scalar("c", True, step=tf.Variable(4, dtype=tf.int64), description="text"),
            tf.summary.scalar("d", tf.constant(2.5, tf.float64), step=tf.constant([5], tf.int64)),
        ]

    return written(tf, write)


@program
def nothing_without_a_writer(tf):
    s = tf.summary
    return [
        s.scalar("a", 1.0), s.text("t", "x"), s.image("i", [[1.0]]), s.histogram("h", [1.0]),
        s.write("w", lambda: 1 / 0), s.should_record_summaries(), s.experimental.get_step(),
    ]  # fmt: skip


@program
def refused(tf):
    s = tf.summary

    def write():
        return [
            raised(s.scalar, "a", [1.0, 2.0], step=0),
            raised(s.scalar, "a", 1.0, step=1.5),
            raised(s.scalar, "a", 1.0, step="x"),
            raised(s.scalar, "a", 1.0, step=[1, 2]),
            raised(s.scalar, "a", 1.0),
            raised(s.text, "a", 3, step=0),
            raised(s.image, "a", np.ones((2, 2, 1)), step=0),
            raised(s.image, "a", np.ones((1, 2, 2, 5)), step=0),
            raised(s.image, "a", np.ones((1, 2, 2, 1)), step=0, max_outputs=-1),
            raised(s.image, "a", np.ones((1, 2, 2, 1), bool), step=0),
            raised(s.audio, "a", np.ones((2, 2), "f4"), 8000, step=0),
            raised(s.audio, "a", np.ones((1, 2, 1), "f4"), 0, step=0),
            raised(s.audio, "a", np.ones((1, 2, 1), "f4"), 8000, step=0, encoding="mp3"),
            raised(s.histogram, "a", [1.0], step=0, buckets=2.5),
            raised(s.graph, 3),
        ]

    return written(tf, write), raised(s.scalar, "a", [1.0, 2.0]), raised(s.flush, 3)


@program
def histograms(tf):
    h = tf.summary.histogram
    numbers = np.random.RandomState(0).randn(1000).astype("f4")

    def write():
        return [
            h("a", numbers), h("b", [1, 2, 3], buckets=4), h("none", np.zeros(0), buckets=3),
            h("equal", [2.0, 2.0], buckets=3), h("zero", [1.0, 2.0], buckets=0),
            h("negative", [1.0, 2.0], buckets=-2), h("bools", [True, False, True], buckets=2),
            h("nan", [1.0, np.nan, 3.0], buckets=2), h("infinite", [1.0, np.inf], buckets=2),
            h("matrix", np.arange(12.0).reshape(3, 4), buckets=5, description="d"),
            h("large", np.float32([1, 1e8, 3e8]), buckets=3),
        ]  # fmt: skip

    return written(tf, write, step=1)


@program
def histogram_in_a_function(tf):
    @tf.function
    def write(x):
        return tf.summary.histogram("h", x * 2.0, step=3, buckets=4)

    return written(tf, lambda: write(tf.constant([1.0, 2.0, 2.5, 4.0])))


def _pixels(tf, found):
    """The pixels of the files in the events of images."""
    return [
        (tag, [e.decode() for e in value[:2]], [tf.io.decode_png(f) for f in value[2:]])
        for _, tag, *_, value in found
    ]


@program
def images(tf):
    ramp = np.linspace(-0.5, 1.5, 24).reshape(2, 3, 4, 1)
    given = {
        "floats": ramp.astype("f4"), "doubles": ramp, "halves": ramp.astype("f2"),
        "bytes": np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3),
        "words": np.arange(12, dtype=np.int32).reshape(1, 3, 4, 1) * 200_000_000,
        "shorts": np.arange(4, dtype=np.uint16).reshape(1, 2, 2, 1) * 20_000,
        "signed": np.array([-128, -1, 0, 127], np.int8).reshape(1, 2, 2, 1),
        "two": np.full((1, 2, 2, 2), 0.5, "f4"), "four": np.ones((5, 2, 2, 4), "f4"),
        "none": np.ones((0, 2, 2, 1), "f4"),
    }  # fmt: skip

    def write():
        for name, array in given.items():
            tf.summary.image(name, array)
        tf.summary.image("one", given["four"], max_outputs=1)
        return tf.summary.image("all", given["four"], max_outputs=tf.constant(9))

    result, found = written(tf, write, step=0)
    return result, _pixels(tf, found), found[0][2:5]


@program
def images_in_a_function(tf):
    @tf.function
    def write(x):
        return tf.summary.image("i", x / 2.0, step=0, max_outputs=2)

    array = np.linspace(0, 3, 36).reshape(3, 2, 2, 3).astype("f4")
    result, found = written(tf, lambda: write(tf.constant(array)))
    return result, _pixels(tf, found)


@program
def sounds(tf):
    wave = np.linspace(-1.2, 1.2, 16).reshape(2, 4, 2).astype("f4")
    result, found = written(tf, lambda: tf.summary.audio("a", wave, 8000, step=0))
    value = [[text.hex() for text in row] for row in found[0][-1]]
    return result, found[0][:-1], value


@program
def texts(tf):
    def write():
        return [
            tf.summary.text("a", "hello", description="d"), tf.summary.text("b", ["x", "yz"]),
            tf.summary.text("c", tf.constant([["a", "b"]])), tf.summary.text("d", b"bytes"),
        ]  # fmt: skip

    return written(tf, write, step=0)


@program
def text_in_a_function(tf):
    @tf.function
    def write(x):
        return tf.summary.text("t", tf.strings.as_string(x), step=0)

    return written(tf, lambda: write(tf.constant([1, 22])))


@program
def tags(tf):
    def write():
        with tf.name_scope("outer"):
            tf.summary.scalar("in ner%", 1.0)
            tf.summary.scalar("", 2.0)
            with tf.summary.experimental.summary_scope("x y", "def", [1]) as a:
                tf.summary.scalar("inside", 1.0)
            with tf.summary.experimental.summary_scope(None) as b:
                pass
            with tf.summary.experimental.summary_scope("é") as c:
                pass
        return a, b, c

    return written(tf, write, step=0)


@program
def tags_in_a_function(tf):
    @tf.function
    def write(x):
        with tf.name_scope("scope"):
            tf.summary.scalar("a", x)
        return tf.summary.scalar("b", x)

    return written(tf, lambda: write(tf.constant(1.0)), step=0)


@program
def steps(tf):
    s = tf.summary

    def write():
        before = s.experimental.get_step()
        s.experimental.set_step(5)
        s.scalar("five", 1.0)
        with tempfile.TemporaryDirectory() as folder:
            with s.create_file_writer(folder).as_default(step=7):
                s.scalar("seven", 1.0)
                inside = s.experimental.get_step()
            other = events(tf, folder)
        after = s.experimental.get_step()
        s.experimental.set_step(None)
        return before, inside, after, other

    return written(tf, write)


@program
def steps_of_functions(tf):
    """A number is that of the trace, a variable is read when the function runs."""
    variable = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def counted(x):
        variable.assign_add(1)
        return tf.summary.scalar("counted", x)

    @tf.function
    def fixed(x):
        return tf.summary.scalar("fixed", x)

    @tf.function
    def given(x, step):
        return tf.summary.scalar("given", x, step=step)

    def write():
        for number in range(3):
            tf.summary.experimental.set_step(variable)
            counted(tf.constant(float(number)))
            tf.summary.experimental.set_step(10 + number)
            fixed(tf.constant(float(number)))
            given(tf.constant(1.0), tf.constant(20 + number, tf.int64))
        tf.summary.experimental.set_step(None)

    return written(tf, write)


@program
def conditions(tf):
    s, answer = tf.summary, [False]

    def write():
        found = []
        with s.record_if(False):
            found += [s.scalar("a", 1.0), s.write("lazy", lambda: 1 / 0)]
        with s.record_if(True):
            found += [s.scalar("b", 1.0), s.should_record_summaries()]
        with s.record_if(lambda: answer[0]):
            found += [s.scalar("c", 1.0)]
            answer[0] = True
            found += [s.scalar("d", 1.0), s.should_record_summaries()]
        with s.record_if(tf.constant(False)):
            found += [s.scalar("e", 1.0)]
        with s.record_if(None):
            found += [s.scalar("f", 1.0)]
        with s.record_if(1):
            found += [raised(s.scalar, "g", 1.0)]
        return found

    return written(tf, write, step=0)


@program
def conditions_in_functions(tf):
    """A function that gives a tensor is computed when the function runs, a bool is the trace's."""
    step = tf.Variable(0, dtype=tf.int64)
    answer = [False]

    @tf.function
    def sometimes(x):
        step.assign_add(1)
        with tf.summary.record_if(lambda: tf.equal(step % 2, 0)):
            return tf.summary.scalar("sometimes", x)

    @tf.function
    def traced(x):
        return tf.summary.scalar("traced", x)

    def write():
        found = [sometimes(tf.constant(float(i))) for i in range(4)]
        with tf.summary.record_if(lambda: answer[0]):
            found.append(traced(tf.constant(1.0)))
            answer[0] = True
            found.append(traced(tf.constant(2.0)))
        return found

    return written(tf, write, step=step)


@program
def writers_of_functions(tf):
    """Functions write with the writer that was the default one when they were traced."""
    log = []

    @tf.function
    def without(x):
        log.append("without")
        return tf.summary.scalar("without", x, step=0)

    @tf.function
    def write(x):
        log.append("write")
        return tf.summary.scalar("a", x, step=0)

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        a, b = tf.summary.create_file_writer(first), tf.summary.create_file_writer(second)
        found = [without(tf.constant(1.0))]
        with a.as_default():
            found += [without(tf.constant(2.0)), write(tf.constant(1.0))]
        with b.as_default():
            found.append(write(tf.constant(2.0)))
        found.append(write(tf.constant(3.0)))
        a.close()
        b.close()
        return found, log, events(tf, first), events(tf, second), raised(write, tf.constant(4.0))


@program
def closed(tf):
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default(step=3):
            tf.summary.scalar("a", 1.0)
            writer.close()
            found = [raised(tf.summary.scalar, "b", 1.0)]
        found += [raised(writer.as_default), raised(writer.set_as_default), raised(writer.init)]
        return found, writer.flush(), writer.close(), events(tf, folder)


@program
def noop_writer(tf):
    writer = tf.summary.create_noop_writer()
    with writer.as_default(step=3) as given:
        found = given, tf.summary.experimental.get_step(), tf.summary.scalar("a", 1.0)
    return found, writer.init(), writer.flush(), writer.close()


@program
def raw_writes(tf):
    from tensorboard.compat.proto import summary_pb2

    metadata = summary_pb2.SummaryMetadata()
    metadata.plugin_data.plugin_name, metadata.plugin_data.content = "p", b"c"
    message = summary_pb2.Summary()
    message.value.add(tag="raw", metadata=metadata).tensor.dtype = 1

    def write():
        w = tf.summary.write
        text = metadata.SerializeToString()
        return [
            w("a", tf.constant([1, 2]), metadata=metadata), w("b", [1.0, 2.0]),
            w("c", lambda: tf.constant("x"), metadata=text), w("d", np.arange(3.0)), w("e", True),
            w("f", 1j), w("g", tf.constant([1, 2], tf.int8)), w("h", tf.constant(3, tf.uint64)),
            raised(w, "i", 1.0, metadata=3),
            tf.summary.experimental.write_raw_pb(tf.constant(message.SerializeToString())),
        ]  # fmt: skip

    return written(tf, write, step=1)


@program
def in_branches_and_loops(tf):
    @tf.function
    def write(x):
        if x > 0:
            tf.summary.scalar("positive", x, step=0)
        for i in tf.range(3):
            tf.summary.scalar("turn", tf.cast(i, tf.float32) * x, step=tf.cast(i, tf.int64))
        return tf.summary.scalar("end", x, step=3)

    return written(tf, lambda: [write(tf.constant(2.0)), write(tf.constant(-1.0))])


@program
def variable_step_of_int32(tf):
    step = tf.Variable(2)
    return written(tf, lambda: tf.summary.scalar("a", 1.0, step=step))


@program
def folders_that_cannot_be(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "w"):
            pass
        deep = os.path.join(folder, "deep", "er")
        tf.summary.create_file_writer(deep, filename_suffix=".end")
        names = [name.endswith(".end") for name in os.listdir(deep)]
        create = tf.summary.create_file_writer
        return raised(create, None), raised(create, os.path.join(path, "sub")), names


@program
def queue_of_events(tf):
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder, max_queue=2)
        (path,) = glob.glob(os.path.join(folder, "*"))
        with writer.as_default():
            sizes = [os.path.getsize(path)]
            for step in range(7):
                tf.summary.scalar("a", 1.0, step=step)
                sizes.append(os.path.getsize(path))
        return [b > a for a, b in zip(sizes, sizes[1:], strict=False)]


@program
def traces(tf):
    """Whether traces are written, and how often a trace may be exported."""
    s = tf.summary

    @tf.function
    def f(x):
        return x + 1.0

    with tempfile.TemporaryDirectory() as folder:
        writer = s.create_file_writer(folder)
        with writer.as_default():
            before = raised(s.trace_export, "t", step=0)
            s.trace_on()
            f(tf.constant(1.0))
            s.trace_export("t", step=0)
            again = raised(s.trace_export, "t", step=0)
            s.trace_on()
            without_step = raised(s.trace_export, "t")
            s.trace_off()
        s.trace_on()
        without_writer = raised(s.trace_export, "t", step=0)
        off = s.trace_off()
        writer.close()
        found = [(step, tag, *kind) for step, tag, *kind, _, _ in events(tf, folder)]
        return before, again, without_step, without_writer, off, found
