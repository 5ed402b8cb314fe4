"""Queues, readers and the pipelines of queues of TensorFlow 1. The values are those that
TensorFlow 2.21 gives for the same programs."""

import threading

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text("h\nl1\nl2\nl3")
    (tmp_path / "b.txt").write_text("h\nm1\n")
    (tmp_path / "f.bin").write_bytes(bytes(range(23)))
    with td.io.TFRecordWriter(str(tmp_path / "r.tfr")) as writer:
        for record in (b"one", b"two2", b"three"):
            writer.write(record)
    return tmp_path


class Running:
    """A session whose queue runners work."""

    def __enter__(self):
        self.session = tf.Session()
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        self.coordinator = tf.train.Coordinator()
        self.threads = tf.train.start_queue_runners(self.session, self.coordinator)
        return self.session

    def __exit__(self, *error):
        self.coordinator.request_stop()
        self.coordinator.join(self.threads, stop_grace_period_secs=30)
        assert not any(t.is_alive() for t in self.threads)
        self.session.close()


def all_of(session, fetches):
    """What runs give until the end."""
    found = []
    with pytest.raises(td.errors.OutOfRangeError, match="closed and has insufficient elements"):
        while True:
            found.append(session.run(fetches))
    return found


def plain(values):
    return [v.tolist() for v in values]


def test_operations_of_a_queue():
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]], name="mine")
    put, one, two = queue.enqueue_many([[1, 2, 3, 4, 5]]), queue.dequeue(), queue.dequeue_many(2)
    rest, size, close = queue.dequeue_up_to(3), queue.size(), queue.close()
    names = [queue.name, put.type, one.name, two.name, size.name, close.name]
    assert names == ["mine", "QueueEnqueueManyV2", "mine_Dequeue:0", "mine_DequeueMany:0",
                     "mine_Size:0", "mine_Close"]  # fmt: skip
    assert two.shape.as_list() == [2] and rest.shape.as_list() == [None]
    with tf.Session() as session:
        assert session.run(put) is None
        assert session.run(one * 2) == 2
        assert session.run(two).tolist() == [2, 3]
        assert session.run([one + 1, one]) == [5, 4]  # one element for the whole run
        assert (session.run(size), session.run(queue.is_closed())) == (1, False)
        session.run(close)
        assert session.run(rest).tolist() == [5] and session.run(queue.is_closed())
        with pytest.raises(td.errors.OutOfRangeError, match="requested 2, current size 0"):
            session.run(two)
        with pytest.raises(td.errors.CancelledError, match="'_[0-9]+_mine' is closed"):
            session.run(put)


def test_sessions_have_queues_of_their_own():
    queue = tf.FIFOQueue(3, tf.float32, [[]])
    put, size = queue.enqueue(1.5), queue.size()
    with tf.Session() as one, tf.Session() as other:
        one.run(put)
        assert (one.run(size), other.run(size)) == (1, 0)


def test_shapes_that_do_not_fit_are_told_at_once():
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(\) are incompatible"):
        queue.enqueue([[1, 2]])
    with pytest.raises(ValueError, match="do not match names"):
        tf.FIFOQueue(3, [tf.int32], names=["a"]).enqueue({"b": 1})


def test_queues_with_names():
    queue = tf.FIFOQueue(3, [tf.int32, tf.string], shapes=[[], []], names=["a", "b"])
    put, taken = queue.enqueue({"b": "x", "a": 4}), queue.dequeue_many(1)
    with tf.Session() as session:
        session.run(put)
        found = session.run(taken)
    assert {k: v.tolist() for k, v in found.items()} == {"a": [4], "b": [b"x"]}


def test_rows_in_batches():
    rows = tf.train.slice_input_producer(
        [tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant(["a", "b", "c"])], 1, shuffle=False
    )
    batches = tf.train.batch(rows, 2, allow_smaller_final_batch=True)
    assert [b.shape.as_list() for b in batches] == [[None, 2], [None]]
    with Running() as session:
        found = all_of(session, batches)
    assert [plain(f) for f in found] == [
        [[[1, 2], [3, 4]], [b"a", b"b"]], [[[5, 6]], [b"c"]],
    ]  # fmt: skip


def test_forms_of_batches():
    index = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    padded = tf.train.batch([tf.range(index + 1)], 4, dynamic_pad=True)
    as_dict = tf.train.batch({"k": tf.constant(1.5), "j": tf.constant([1, 2])}, 3)
    many = tf.train.batch([tf.constant([[1], [2], [3]])], 4, enqueue_many=True)
    joined = tf.train.batch_join([[tf.constant(1), tf.constant(2.0)]] * 2, 3)
    with Running() as session:
        assert session.run(padded).tolist() == [
            [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3],
        ]  # fmt: skip
        found = session.run(as_dict)
        assert found["j"].tolist() == [[1, 2]] * 3 and found["k"].tolist() == [1.5] * 3
        assert session.run(many).tolist() == [[1], [2], [3], [1]]
        assert plain(session.run(joined)) == [[1] * 3, [2.0] * 3]


@pytest.mark.parametrize("threads", [1, 3])
def test_shuffled_batches_have_every_example_in_each_epoch(threads):
    numbers = tf.train.range_input_producer(30, num_epochs=2, seed=3).dequeue()
    batches = tf.train.shuffle_batch(
        [numbers, numbers * 2], 8, capacity=40, min_after_dequeue=10, num_threads=threads, seed=1,
        allow_smaller_final_batch=True,
    )  # fmt: skip
    with Running() as session:
        found = all_of(session, batches)
    examples = np.concatenate([a for a, _ in found])
    assert sorted(examples.tolist()) == sorted([*range(30)] * 2)
    assert examples[:30].tolist() != list(range(30))
    assert all((2 * a == b).all() for a, b in found)


def test_lines_of_files(files):
    names = [str(files / "a.txt"), str(files / "b.txt")]
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    reader = tf.TextLineReader(skip_header_lines=1)
    record, counts = reader.read(queue), [
        reader.num_records_produced(), reader.num_work_units_completed(),
    ]  # fmt: skip
    with Running() as session:
        found = all_of(session, record)
        assert session.run(counts) == [4, 2]
    a, b = (name.encode() for name in names)
    assert [tuple(f) for f in found] == [
        (a + b":2", b"l1"), (a + b":3", b"l2"), (a + b":4", b"l3"), (b + b":2", b"m1"),
    ]  # fmt: skip


def test_other_readers(files):
    def records(reader, name, read="read", *more):
        queue = tf.train.string_input_producer([str(files / name)], num_epochs=1)
        return getattr(reader, read)(queue, *more)

    whole = records(tf.WholeFileReader(), "b.txt")
    fixed = records(tf.FixedLengthRecordReader(5, header_bytes=2, footer_bytes=1), "f.bin")
    hops = records(tf.FixedLengthRecordReader(5, hop_bytes=8), "f.bin", "read_up_to", 10)
    tfrecords = records(tf.TFRecordReader(), "r.tfr")
    name = records(tf.IdentityReader(), "none")
    folder = str(files).encode() + b"/"
    with Running() as session:
        assert [v for _, v in all_of(session, whole)] == [b"h\nm1\n"]
        assert [(k.removeprefix(folder), v) for k, v in all_of(session, fixed)] == [
            (b"f.bin:%d" % i, bytes(range(2 + 5 * i, 7 + 5 * i))) for i in range(4)
        ]
        keys, values = session.run(hops)
        assert [k.removeprefix(folder) for k in keys] == [b"f.bin:0", b"f.bin:1", b"f.bin:2"]
        assert list(values) == [bytes(range(s, s + 5)) for s in (0, 8, 16)]
        assert [(k.removeprefix(folder), v) for k, v in all_of(session, tfrecords)] == [
            (b"r.tfr:0", b"one"), (b"r.tfr:19", b"two2"), (b"r.tfr:39", b"three"),
        ]  # fmt: skip
        assert session.run(name) == (folder + b"none",) * 2


def test_a_file_that_is_not_there_ends_the_threads(files):
    queue = tf.train.string_input_producer([str(files / "none.txt")], num_epochs=1)
    line = tf.train.batch(tf.TextLineReader().read(queue), 1)
    session, coordinator = tf.Session(), tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    with pytest.raises(td.errors.NotFoundError, match=r"none\.txt"):
        coordinator.join(threads, stop_grace_period_secs=30)
    with pytest.raises(td.errors.OpError):
        session.run(line)
    session.close()


def test_training_from_a_pipeline_of_queues(files):
    rows = "\n".join(f"{x},{3 * x - 1}" for x in np.linspace(-1, 1, 64).round(4))
    (files / "line.csv").write_text(rows)
    names = tf.train.match_filenames_once(str(files / "*.csv"))
    queue = tf.train.string_input_producer(names, seed=1)
    _, text = tf.TextLineReader().read(queue)
    x, y = tf.decode_csv(text, [[0.0], [0.0]])
    x, y = tf.train.shuffle_batch([x, y], 16, capacity=200, min_after_dequeue=50)
    a, b = tf.Variable(0.0), tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(a * x + b - y))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with Running() as session:
        for _ in range(60):
            session.run(step)
        np.testing.assert_allclose(session.run([a, b]), [3, -1], atol=0.01)


def test_closing_the_session_ends_who_waits():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    taken, session, errors = queue.dequeue(), tf.Session(), []

    def wait():
        try:
            session.run(taken)
        except td.errors.OutOfRangeError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not session._resources:
        pass
    session.close()
    thread.join(30)
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.train.string_input_producer([]), "requires a non-null input tensor"),
        (lambda: tf.train.batch([tf.placeholder(tf.float32, [None])], 2), "fully defined"),
        (lambda: tf.train.slice_input_producer([]), "at least one tensor"),
        (lambda: tf.train.range_input_producer(3, num_epochs=0), "num_epochs must be > 0 not 0"),
        (lambda: tf.train.input_producer(tf.placeholder(tf.int32)), "element_shape"),
    ],
)
def test_what_cannot_be_made(make, text):
    with pytest.raises(ValueError, match=text):
        make()
