"""`tf.summary` and `tf.contrib.summary` of TensorFlow 1: TensorBoard's readers read the files."""

import importlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import treadle.compat.v1 as tf
from tests.compat.summary_programs import CALLS, FILE, told
from tests.compat.test_programs import close
from tests.summary.reading import accumulated, event_files, events

EXPECTED = json.loads(FILE.read_text())


def test_all_calls_were_recorded() -> None:
    assert list(EXPECTED) == list(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_messages_are_those_of_tensorflow(name: str) -> None:
    close(told(tf, CALLS[name]), EXPECTED[name])


def test_training_is_written_and_read(tmp_path: Any) -> None:
    x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    with tf.variable_scope("model"):
        w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(x @ w - y))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("weights", w)
    tf.summary.image("as_image", tf.reshape(x, [1, 2, 2, 1]))
    tf.summary.text("note", tf.constant("**hello**"))
    tf.summary.audio("sound", tf.reshape(x, [1, -1]), 8000)
    merged = tf.summary.merge_all()
    assert [t.op.type for t in tf.get_collection(tf.GraphKeys.SUMMARIES)] == [
        "ScalarSummary", "HistogramSummary", "ImageSummary", "TensorSummaryV2", "AudioSummaryV2"
    ]  # fmt: skip
    losses = []
    with tf.Session() as sess, tf.summary.FileWriter(tmp_path, sess.graph) as writer:
        sess.run(tf.global_variables_initializer())
        given = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
        for number in range(5):
            text, value, _ = sess.run([merged, loss, step], {x: given, y: 2 * given})
            assert type(text) is bytes
            writer.add_summary(text, number)
            losses.append(value)
    found = accumulated(tmp_path)
    tags = found.Tags()
    assert tags["scalars"] == ["loss"] and tags["histograms"] == ["weights"]
    assert tags["images"] == ["as_image/image/0"] and tags["audio"] == ["sound/audio/0"]
    assert tags["graph"]
    assert [(e.step, e.value) for e in found.Scalars("loss")] == list(enumerate(losses))
    assert losses[-1] < losses[0]
    last = found.Histograms("weights")[-1]
    assert (last.step, last.histogram_value.num) == (4, 1)
    assert found.Audio("sound/audio/0")[0].sample_rate == 8000
    nodes = {n.name: n for n in found.Graph().node}
    assert nodes["model/w"].op == "VariableV2" and "model/w" in nodes["matmul"].input
    assert "^" not in "".join(nodes["loss"].input)
    first = next(e for e in events(tmp_path) for v in e.summary.value if v.tag == "note")
    assert first.summary.value[0].tag


def test_a_writer_is_closed_and_opened_again(tmp_path: Any, caplog: Any) -> None:
    writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=".mine")
    made = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.0)])
    writer.add_summary(made, 1)
    writer.close()
    writer.add_summary(made, 2)
    assert "closed FileWriter" in caplog.text
    writer.reopen()
    writer.add_summary(made.SerializeToString(), 3)
    writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT), 3)
    writer.close()
    assert {p.name.rpartition(".")[2] for p in event_files(tmp_path)} == {"mine"}
    assert [e.step for e in accumulated(tmp_path).Scalars("x")] == [1, 3]
    assert writer.get_logdir() == str(tmp_path)
    frozen = tf.Graph()
    with frozen.as_default():
        tf.constant(1.0, name="one")
    with tf.summary.FileWriter(str(tmp_path / "of_def"), graph_def=frozen.as_graph_def()):
        pass
    assert [n.name for n in accumulated(tmp_path / "of_def").Graph().node] == ["one"]
    with pytest.raises(tf.errors.DataLossError, match="no message Summary"):
        writer.add_summary(b"\xff\xff", 1)
    with pytest.raises(TypeError, match="takes a tf.Graph"):
        writer.add_graph("graph")


def test_what_is_refused() -> None:
    assert tf.summary.merge_all() is None
    with pytest.raises(ValueError, match="not the same shape"):
        tf.summary.scalar("x", [1.0, 2.0])
    with pytest.raises(ValueError, match="4-D with last dim 1, 3, or 4"):
        tf.summary.image("x", tf.zeros([2, 2, 2, 2]))
    with pytest.raises(ValueError, match="dtype string, got float32"):
        tf.summary.text("x", tf.zeros([2]))
    x = tf.placeholder(tf.float32, [None])
    same = [tf.summary.scalar("a", 1.0), tf.summary.scalar("a", 1.0)]
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Nan in summary histogram for: h"):
            sess.run(tf.summary.histogram("h", x), {x: [1.0, np.nan]})
        twice = tf.summary.merge([same[0], same[0]])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a"):
            sess.run(twice)


def test_an_exported_graph_writes_summaries() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    tf.summary.scalar("loss", x * 2)
    tf.summary.text("t", tf.constant(["a"]))
    tf.summary.merge_all(name="all")
    data = tf.get_default_graph().as_graph_def().SerializeToString()
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(tf.GraphDef.FromString(data), name="")
        text = sess.run(graph.get_tensor_by_name("all/MergeSummary:0"), {"x:0": 4.0})
    assert [v.tag for v in tf.Summary.FromString(text).value] == ["loss", "t"]
    assert tf.Summary.FromString(text).value[0].simple_value == 8.0


def test_sessions_that_save_write_summaries(tmp_path: Any) -> None:
    step = tf.train.get_or_create_global_step()
    value = tf.get_variable("v", initializer=0.0)
    tf.summary.scalar("value", value)
    train = tf.group(tf.assign_add(value, 2.0), tf.assign_add(step, 1))
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=2,
        hooks=[tf.train.StopAtStepHook(last_step=5)],
    ) as session:  # fmt: skip
        while not session.should_stop():
            session.run(train)
    found = [(e.step, e.value) for e in accumulated(tmp_path).Scalars("value")]
    assert found == [(1, 0.0), (3, 4.0), (5, 8.0)]  # read before it is changed, as written down


def test_a_supervisor_writes_summaries(tmp_path: Any) -> None:
    step = tf.train.get_or_create_global_step()
    tf.summary.scalar("v", tf.cast(step, tf.float32) * 10)
    merged, train = tf.summary.merge_all(), tf.assign_add(step, 1)
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), summary_op=None)
    with supervisor.managed_session() as session:
        for _ in range(3):
            session.run(train)
            supervisor.summary_computed(session, session.run(merged))
    found = [(e.step, e.value) for e in accumulated(tmp_path).Scalars("v")]
    assert found == [(1, 10.0), (2, 20.0), (3, 30.0)]


def test_an_estimator_writes_its_loss(tmp_path: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        w = tf.get_variable("w", initializer=0.0)
        loss = tf.reduce_mean(tf.square(features * w - labels))
        tf.summary.scalar("twice", 2 * w)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=tf.train.get_global_step()
        )
        return tf.estimator.EstimatorSpec(mode, w, loss, train)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors(([1.0, 2.0], [2.0, 4.0])).repeat()

    config = tf.estimator.RunConfig(model_dir=str(tmp_path), save_summary_steps=5)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(input_fn, max_steps=11)
    measured = estimator.evaluate(input_fn, steps=1)
    found = accumulated(tmp_path)
    assert [e.step for e in found.Scalars("loss")] == [1, 6, 11]
    assert found.Scalars("loss")[0].value == pytest.approx(10.0)
    assert {"loss", "twice"} <= set(found.Tags()["scalars"])
    (evaluated,) = accumulated(tmp_path / "eval").Scalars("loss")
    assert (evaluated.step, evaluated.value) == (11, pytest.approx(measured["loss"]))


# -- tf.contrib.summary --------------------------------------------------------------------------


def test_contributed_summaries_of_a_graph(tmp_path: Any) -> None:
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    x = tf.placeholder(tf.float32, [2])
    writer = tf.contrib.summary.create_file_writer(str(tmp_path), flush_millis=10)
    with writer.as_default():
        tf.contrib.summary.scalar("never", 1.0)  # no block says that summaries are written
        with tf.contrib.summary.record_summaries_every_n_global_steps(2):
            tf.contrib.summary.scalar("total", tf.reduce_sum(x))
        with tf.contrib.summary.always_record_summaries():
            tf.contrib.summary.histogram("x", x, family="f", step=step * 10)
        with tf.contrib.summary.never_record_summaries():
            tf.contrib.summary.scalar("no", 1.0)
        operations = tf.contrib.summary.all_summary_ops()
        assert [op.type for op in operations] == ["WriteScalarSummary", "WriteHistogramSummary"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.contrib.summary.initialize(graph=tf.get_default_graph())
            for number in range(4):
                assert session.run([train, operations], {x: [1.0, number]})[1] == [None, None]
            session.run(writer.flush())
            found = accumulated(tmp_path)
            session.run(writer.close())
    assert [(e.step, e.value) for e in found.Scalars("total")] == [(2, 2.0), (4, 4.0)]
    histograms = [e.step for e in events(tmp_path) for v in e.summary.value if v.tag == "f/f/x"]
    assert histograms == [10, 20, 30, 40]
    assert found.Tags()["scalars"] == ["total"] and found.Tags()["graph"]


_EAGER = """
import sys
import numpy as np
import treadle.compat.v1 as tf
import treadle.compat.v1.contrib.eager as tfe

tfe.enable_eager_execution()
step = tf.train.get_or_create_global_step()
writer = tf.contrib.summary.create_summary_file_writer(sys.argv[1])
for number in range(6):
    step.assign_add(1)
    with writer.as_default(), tf.contrib.summary.record_summaries_every_n_global_steps(3):
        tf.contrib.summary.scalar("loss", tf.constant(1.0) * number)
        tf.contrib.summary.image("i", np.zeros([1, 2, 2, 3], np.float32), bad_color=(0, 255, 0, 0))
        mean = tfe.metrics.Mean(name="mean")
        mean(number)
        mean(number + 2)
        assert mean.result().numpy() == number + 1
writer.close()
for refused in (lambda: tf.summary.merge_all(), lambda: tf.summary.FileWriter(sys.argv[1])):
    try:
        refused()
    except RuntimeError as error:
        assert "eager execution" in str(error)
    else:
        raise AssertionError
print("done")
"""


def test_contributed_summaries_at_once(tmp_path: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EAGER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr
    found = accumulated(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(3, 2.0), (6, 5.0)]
    assert [(e.step, e.value) for e in found.Scalars("mean")] == [(3, 3.0), (6, 6.0)]
    assert len(found.Images("i/image/0")) == 2


def test_graphs_of_recurrent_networks_are_written(tmp_path: Any) -> None:
    """Their loops have arrays of tensors, which have no shape."""
    x = tf.placeholder(tf.float32, [None, 3, 2])
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(4) for _ in range(2)])
    state = cells.zero_state(tf.shape(x)[0], tf.float32)
    tf.nn.dynamic_rnn(cells, x, tf.reduce_sum(tf.ones_like(x[..., 0], tf.int32), 1), state)
    array = tf.TensorArray(tf.float32, 3)
    tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, 1.0)), (0, array))
    with tf.Session() as sess, tf.summary.FileWriter(tmp_path, sess.graph):
        pass
    assert accumulated(tmp_path).Tags()["graph"]


def test_the_projector_is_told_what_it_shows(tmp_path: Any) -> None:
    from tensorboard.plugins.projector import projector_config_pb2

    projector = importlib.import_module("treadle.compat.v1.contrib.tensorboard.plugins.projector")
    with tf.Graph().as_default():
        embedding = tf.get_variable("embedding", [4, 2])
        config = projector.ProjectorConfig()
        one = config.embeddings.add()
        one.tensor_name, one.metadata_path = embedding.name, "labels.tsv"
        projector.visualize_embeddings(tf.summary.FileWriter(str(tmp_path)), config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text_format.Parse(text, projector_config_pb2.ProjectorConfig()) == config
    assert one.tensor_name == "embedding:0"
    with pytest.raises(AttributeError, match="has no 'Nothing'"):
        projector.Nothing
