"""Estimators, pipelines of graphs, and sessions that save by themselves."""

import os
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf

pytestmark = pytest.mark.thorough

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3).astype(np.float32)


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    predictions = tf.layers.dense(features["x"], 1, name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": predictions})
    loss = tf.losses.mean_squared_error(labels, predictions)
    train_op = tf.train.GradientDescentOptimizer(params["rate"]).minimize(
        loss, global_step=tf.train.get_global_step()
    )
    metrics = {"error": tf.metrics.mean_absolute_error(labels, predictions)}
    return tf.estimator.EstimatorSpec(
        mode=mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics
    )


def input_fn(epochs: Any = None) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return dataset.repeat(epochs).batch(20)


def test_estimator_trains_evaluates_and_goes_on(tmp_path: Any) -> None:
    config = tf.estimator.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
    make = lambda: tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
    estimator = make()
    with pytest.raises(ValueError, match="Could not find trained model"):
        estimator.evaluate(lambda: input_fn(1))
    estimator.train(input_fn, steps=30)
    first = estimator.evaluate(lambda: input_fn(1))
    assert first["global_step"] == 30
    again = make()
    again.train(input_fn, max_steps=100)
    found = again.evaluate(lambda: input_fn(1))
    assert found["global_step"] == 100 and found["loss"] < first["loss"] and found["error"] < 0.01
    predicted = list(again.predict(lambda: input_fn(1)))
    np.testing.assert_allclose([p["y"] for p in predicted], Y, atol=0.02)
    assert again.get_variable_value("out/bias") == pytest.approx(0.3, abs=0.01)
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-100")


def test_estimator_takes_pipelines_of_td(tmp_path: Any) -> None:
    """`td.data.Dataset`, which is ``tf.data.Dataset`` after ``as_tensorflow()``."""
    config = tf.estimator.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
    data = lambda: td.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(20)
    estimator.train(lambda: data().repeat(), steps=100)
    found = estimator.evaluate(data)
    assert found["global_step"] == 100 and found["error"] < 0.01


def test_train_and_evaluate(tmp_path: Any) -> None:
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    found, _ = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(input_fn, max_steps=20),
        tf.estimator.EvalSpec(lambda: input_fn(1), steps=3),
    )  # fmt: skip
    assert found["global_step"] == 20


def test_experiment_of_the_seeds(tmp_path: Any) -> None:
    def experiment_fn(run_config: Any, hparams: Any) -> Any:
        estimator = tf.estimator.Estimator(
            model_fn=model_fn, config=run_config, params={"rate": hparams.rate}
        )
        return tf.contrib.learn.Experiment(
            estimator=estimator, train_input_fn=input_fn, eval_input_fn=lambda: input_fn(1),
            train_steps=25,
        )  # fmt: skip

    run_config = tf.contrib.learn.RunConfig(model_dir=str(tmp_path))
    hparams = tf.contrib.training.HParams(rate=0.5, layers=[1, 2], name="a")
    hparams.parse("rate=0.1,layers=[3,4],name=b")
    assert hparams.values() == {"rate": 0.1, "layers": [3, 4], "name": "b"}
    found = tf.contrib.learn.learn_runner.run(
        experiment_fn=experiment_fn, run_config=run_config, schedule="train_and_evaluate",
        hparams=hparams,
    )  # fmt: skip
    assert found["global_step"] == 25


def test_ready_models(tmp_path: Any) -> None:
    words = np.array(["a", "b", "c"])[RANDOM.integers(0, 3, 200)]
    labels = ((X[:, 0] > 0) & (words != "c")).astype(np.int64)
    give = tf.estimator.inputs.numpy_input_fn(
        {"x": X, "word": words}, labels, batch_size=50, num_epochs=None, shuffle=True
    )
    once = tf.estimator.inputs.numpy_input_fn(
        {"x": X, "word": words}, labels, batch_size=50, shuffle=False
    )
    column = tf.feature_column
    word = column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    columns = [column.numeric_column("x", shape=[3]), column.indicator_column(word)]
    classifier = tf.estimator.DNNClassifier(
        [16], [*columns, column.embedding_column(word, 2)], str(tmp_path / "dnn"),
        optimizer=tf.train.AdamOptimizer(0.02),
    )  # fmt: skip
    classifier.train(give, steps=150)
    found = classifier.evaluate(once)
    assert found["accuracy"] > 0.9 and found["auc"] > 0.95
    first = next(iter(classifier.predict(once)))
    assert first["class_ids"].shape == (1,) and first["probabilities"].shape == (2,)
    regressor = tf.estimator.LinearRegressor([columns[0]], str(tmp_path / "linear"))
    numbers = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, 50, None, True)
    regressor.train(numbers, steps=300)
    once = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, shuffle=False)
    assert regressor.evaluate(once)["average_loss"] < 0.05


def test_monitored_session_saves_and_restores(tmp_path: Any) -> None:
    seen: list[Any] = []

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, context: Any) -> Any:
            return tf.train.SessionRunArgs(step)

        def after_run(self, context: Any, values: Any) -> None:
            seen.append(int(values.results))

    for last in (3, 5):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            w = tf.Variable(1.0, name="w")
            up = tf.group(w.assign_add(1.0), step.assign_add(1))
            hooks = [Hook(), tf.train.StopAtStepHook(last_step=last)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=2
            ) as session:
                while not session.should_stop():
                    session.run(up)
                with pytest.raises(RuntimeError, match="finalized"):
                    tf.constant(1)
    assert len(seen) == 5
    assert tf.train.load_variable(str(tmp_path), "w") == 6.0


def test_sessions_of_one_graph_follow_one_another(tmp_path: Any) -> None:
    step = tf.train.get_or_create_global_step()
    grow, folder = tf.assign_add(step, 1), str(tmp_path)
    for last in (2, 4):
        stop = tf.train.StopAtStepHook(num_steps=2)
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=[stop]) as session:
            while not session.should_stop():
                found = session.run(grow)
        assert found == last
    assert "node {" in (tmp_path / "graph.pbtxt").read_text()
    final = tf.train.FinalOpsHook(step + 1)  # the graph may be added to again
    with tf.train.SingularMonitoredSession([final], checkpoint_dir=folder) as session:
        assert session.raw_session().run(step) == 4
    assert final.final_ops_values == 5 and session.raw_session() is None


def test_monitored_sessions_start_queues() -> None:
    producer = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=1, shuffle=False)
    batch = tf.train.batch([producer.dequeue()], 2, allow_smaller_final_batch=True)
    found: list[Any] = []
    with tf.train.MonitoredTrainingSession() as session:
        while not session.should_stop():
            found += session.run(batch).tolist()
    assert found == [1, 2, 3]


def test_baselines(tmp_path: Any) -> None:
    numpy_input_fn = tf.estimator.inputs.numpy_input_fn
    features, labels = {"a": np.arange(8.0)[:, None]}, np.array([0, 1, 1, 1, 0, 1, 1, 1])
    once = numpy_input_fn(features, None, 8, num_epochs=1, shuffle=False)

    def input_fn(labels: Any) -> Any:
        return numpy_input_fn(features, labels, 8, num_epochs=None, shuffle=False)

    classes = tf.estimator.BaselineClassifier(str(tmp_path / "classes"))
    classes.train(input_fn(labels), steps=100)
    np.testing.assert_allclose(
        next(classes.predict(once))["probabilities"], [0.25, 0.75], atol=0.01
    )
    assert "baseline/bias" in classes.get_variable_names()
    numbers = tf.estimator.BaselineRegressor(str(tmp_path / "numbers"))
    numbers.train(input_fn(labels * 2.0), steps=200)
    np.testing.assert_allclose(next(numbers.predict(once))["predictions"], [1.5], atol=0.05)


def test_supervisor(tmp_path: Any) -> None:
    for expected in (3.0, 5.0):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            w = tf.Variable(1.0, name="w")
            up = tf.group(w.assign_add(1.0), step.assign_add(1))
            supervisor = tf.train.Supervisor(logdir=str(tmp_path))
            with supervisor.managed_session() as session:
                for _ in range(2):
                    if supervisor.should_stop():
                        break
                    session.run(up)
                assert session.run(w) == expected


def test_coordinator_hands_errors_on() -> None:
    coordinator = tf.train.Coordinator()

    def fail() -> None:
        raise ZeroDivisionError

    thread = tf.train.LooperThread.loop(coordinator, 0.01, fail)
    with pytest.raises(ZeroDivisionError):
        coordinator.join([thread])
    v = tf.Variable(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.add_queue_runner(tf.train.QueueRunner(None, [v.count_up_to(50)]))
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        for thread in threads:
            thread.join(20)
        coordinator.request_stop()
        coordinator.join(threads)
        assert session.run(v) == 50


def test_iterators_of_placeholders() -> None:
    given = tf.placeholder(tf.float32, [None, 2])
    dataset = tf.data.Dataset.from_tensor_slices(given).map(lambda x: x * 2.0).batch(2)
    iterator = dataset.make_initializable_iterator()
    batch = iterator.get_next()
    total = tf.reduce_sum(batch)
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(total)
        for value in (np.ones([3, 2]), np.full([4, 2], 3.0)):
            session.run(iterator.initializer, {given: value})
            found = []
            while True:
                try:
                    found.append(session.run(total))
                except tf.errors.OutOfRangeError:
                    break
            assert sum(found) == 2 * value.sum()


def test_iterators_of_a_structure() -> None:
    train = tf.data.Dataset.range(3)
    check = tf.data.Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    element = iterator.get_next()
    handle = tf.placeholder(tf.string, [])
    by_handle = tf.data.Iterator.from_string_handle(handle, train.output_types)
    fed = by_handle.get_next()
    one, two = train.make_one_shot_iterator(), check.make_one_shot_iterator()
    opens = [iterator.make_initializer(d) for d in (train, check)]
    with tf.Session() as session:
        found = []
        for opening in opens:
            session.run(opening)
            found.append([int(session.run(element)) for _ in range(2)])
        assert found == [[0, 1], [10, 11]]
        first, second = session.run([one.string_handle(), two.string_handle()])
        assert session.run(fed, {handle: second}) == 10 and session.run(fed, {handle: first}) == 0


def test_gradients_through_what_python_feeds() -> None:
    labels = tf.py_func(lambda: np.float32(3.0), [], tf.float32)
    w = tf.Variable(1.0)
    loss = tf.square(w * 2.0 - labels)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    shown = tf.py_func(lambda x: np.float32(x + 1), [loss], tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([step, loss, shown])[1:] for _ in range(3)]
    assert losses[0] == [1.0, 2.0] and losses[2][0] < losses[1][0] < 1.0


def test_recurrent_networks() -> None:
    steps, batch, size = 5, 3, 4
    x = tf.placeholder(tf.float32, [None, steps, 2])
    lengths = tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.LSTMCell(size)
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    with tf.variable_scope("rnn", reuse=True):
        pass
    multi = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(size), tf.nn.rnn_cell.GRUCell(2)])
    listed, _ = tf.nn.static_rnn(multi, tf.unstack(x, steps, 1), dtype=tf.float32, scope="static")
    both, _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.BasicRNNCell(size), tf.nn.rnn_cell.BasicRNNCell(size), x, lengths,
        dtype=tf.float32,
    )  # fmt: skip
    loss = tf.reduce_mean(tf.square(outputs)) + tf.reduce_mean(tf.square(listed[-1]))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    assert outputs.shape.as_list() == [None, steps, size]
    names = {v.name for v in tf.trainable_variables()}
    assert {"rnn/lstm_cell/kernel:0", "rnn/lstm_cell/bias:0"} <= names
    assert "static/multi_rnn_cell/cell_1/gru_cell/gates/kernel:0" in names
    value = RANDOM.normal(size=(batch, steps, 2)).astype(np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {x: value, lengths: [5, 2, 3]}
        found, last, kernel, bias = session.run(
            [outputs, state, cell.variables[0], cell.variables[1]], feeds
        )
        assert not found[1, 2:].any() and not found[2, 3:].any()
        c, h = np.zeros((batch, size)), np.zeros((batch, size))
        for t in range(2):
            i, j, f, o = np.split(np.concatenate([value[:, t], h], 1) @ kernel + bias, 4, 1)
            gate = lambda v: 1 / (1 + np.exp(-v))
            c = gate(f + 1.0) * c + gate(i) * np.tanh(j)
            h = gate(o) * np.tanh(c)
        np.testing.assert_allclose(found[:, 1], h, atol=1e-5)
        np.testing.assert_allclose(last.h[1], found[1, 1], atol=1e-6)
        assert session.run(both, feeds)[1].shape == (batch, steps, size)
        before = session.run(loss, feeds)
        for _ in range(10):
            session.run(step, feeds)
        assert session.run(loss, feeds) < before


def test_batch_normalization_keeps_means() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    training = tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(x, training=training, momentum=0.5)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    mean = tf.global_variables()[2]
    assert mean.name == "batch_normalization/moving_mean:0" and len(updates) == 2
    value = RANDOM.normal(2.0, 3.0, size=(64, 2)).astype(np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, *_ = session.run([y, *updates], {x: value, training: True})
        np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(session.run(mean), value.mean(0) / 2, rtol=1e-4)
        found = session.run(y, {x: value, training: False})
        assert abs(found.mean()) > 0.1


def test_rerouted_graphs() -> None:
    a, b = tf.constant(1.0), tf.constant(5.0)
    c = a * 2.0
    assert tf.contrib.graph_editor.reroute_ts([b], [a]) == 1
    assert tf.Session().run(c) == 10.0


def test_flags_and_app(tmp_path: Any) -> None:
    import subprocess
    import sys

    program = (
        "import treadle.compat.v1 as tf\n"
        "tf.flags.DEFINE_string('output_dir', '', 'Optional output dir.')\n"
        "tf.flags.DEFINE_integer('steps', 3, 'Steps.')\n"
        "tf.app.flags.DEFINE_boolean('fast', True, 'Fast.')\n"
        "FLAGS = tf.flags.FLAGS\n"
        "def main(argv):\n"
        "    print(argv[1:], FLAGS.output_dir, FLAGS.steps, FLAGS.fast)\n"
        "if __name__ == '__main__':\n"
        "    tf.app.run()\n"
    )
    path = tmp_path / "program.py"
    path.write_text(program)
    call = [sys.executable, str(path), "--output_dir=here", "--steps", "7", "--nofast", "rest"]
    found = subprocess.run(call, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert found.stdout == "['rest'] here 7 False\n"
    wrong = subprocess.run([*call[:2], "--other=1"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "Unknown command line flag 'other'" in wrong.stderr


def test_graphs_with_loops_are_written_and_read() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0 + x), (0, x))
    z = tf.cond(tf.reduce_sum(y) > 10.0, lambda: y[:1], lambda: tf.nn.softmax(y), name="z")
    value = {"x:0": [1.0, 2.0]}
    expected = tf.Session().run(z, value)
    data = tf.get_default_graph().as_graph_def().SerializeToString()
    with tf.Graph().as_default() as other:
        (again,) = tf.import_graph_def(
            tf.GraphDef.FromString(data), return_elements=["z:0"], name="again"
        )
        assert again.name == "again/z:0" and other.get_tensor_by_name("again/x:0").op.type == (
            "Placeholder"
        )
        found = tf.Session().run(again, {"again/x:0": [1.0, 2.0]})
        np.testing.assert_array_equal(found, expected)
        (mapped,) = tf.import_graph_def(
            tf.GraphDef.FromString(data), {"x:0": tf.constant([0.0, 0.0])}, ["z:0"]
        )
        assert tf.Session().run(mapped).tolist() == [0.5, 0.5]


def test_a_checkpoint_is_evaluated_some_times(tmp_path: Any) -> None:
    """As with `tf.contrib.training`: the operations run three times with the saved values."""
    training = tf.contrib.training
    weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(2.0))
    with tf.Session() as session:
        session.run(weight.assign(5.0, read_value=False))
        path = tf.train.Saver([weight]).save(session, str(tmp_path / "model"))
    total = tf.Variable(0.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    added = total.assign_add(weight)
    found = training.evaluate_once(
        path, eval_ops=added, final_ops={"total": total.read_value()},
        hooks=[training.StopAfterNEvalsHook(3)],
    )  # fmt: skip
    assert found == {"total": 15.0}
    step = training.get_or_create_eval_step()
    assert step is training.get_or_create_eval_step() and step.name == "eval_step:0"
    assert training.evaluate_once(path, final_ops=weight.read_value()) == 5.0
