"""Ready models of estimators, and models that are exported while they are trained."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf
from treadle.compat.v1.estimator.base import _outputs

RANDOM = np.random.default_rng(3)
AGE = RANDOM.uniform(0, 10, (120, 1)).astype(np.float32)
CITY = RANDOM.integers(0, 4, (120, 1))
WORDS = np.array(["north", "east", "south", "west"])
LABELS = ((AGE > 5) ^ (CITY == 2)).astype(np.int64)


def columns() -> tuple[list[Any], list[Any]]:
    c = tf.feature_column
    age = c.numeric_column("age")
    city = c.categorical_column_with_vocabulary_list("city", list(WORDS))
    buckets = c.bucketized_column(age, [2.5, 5.0, 7.5])
    crossed = c.crossed_column([buckets, city], 64)
    return [city, buckets, crossed], [age, c.indicator_column(city)]


def input_fn(epochs: Any = None) -> Any:
    features = {"age": AGE, "city": WORDS[CITY]}
    data = tf.data.Dataset.from_tensor_slices((features, LABELS))
    return data.repeat(epochs).batch(40)


def combined(folder: Any, **more: Any) -> Any:
    linear, dense = columns()
    config = tf.estimator.RunConfig(str(folder), tf_random_seed=2, save_checkpoints_steps=50)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=linear, dnn_feature_columns=dense, dnn_hidden_units=[8],
        config=config, **more,
    )  # fmt: skip


def receive() -> Any:
    linear, dense = columns()
    spec = tf.feature_column.make_parse_example_spec([*linear, *dense])
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)()


def receive_raw() -> Any:
    fed = {
        "age": tf.placeholder(tf.float32, [None, 1], "age"),
        "city": tf.placeholder(tf.string, [None, 1], "city"),
    }
    return tf.estimator.export.ServingInputReceiver(fed, fed)


def test_layers_and_sums_are_trained_together(tmp_path: Any) -> None:
    model = combined(tmp_path)
    model.train(input_fn, max_steps=150)
    found = model.evaluate(lambda: input_fn(1))
    assert found["accuracy"] > 0.9 and found["auc"] > 0.95
    assert found["loss"] == pytest.approx(40 * found["average_loss"], rel=1e-4)  # summed
    assert found["label/mean"] == pytest.approx(LABELS.mean(), abs=1e-6)
    names = model.get_variable_names()
    assert "linear/linear_model/age_bucketized_X_city/weights" in names
    assert "dnn/hiddenlayer_0/kernel" in names and "dnn/logits/bias" in names
    slots = {n.rpartition("/")[2] for n in names if n.startswith("linear/linear_model/city")}
    assert slots == {"weights", "Ftrl", "Ftrl_1"}
    assert "dnn/hiddenlayer_0/kernel/Adagrad" in names
    first = next(model.predict(lambda: input_fn(1)))
    assert set(first) == {
        "logits", "logistic", "probabilities", "class_ids", "classes", "all_class_ids",
        "all_classes",
    }  # fmt: skip
    assert first["classes"][0] == str(first["class_ids"][0]).encode()


def test_words_as_labels_and_weights_of_examples(tmp_path: Any) -> None:
    names = np.array(["no", "maybe", "yes"])
    truth = (AGE[:, 0] // 3.5).astype(int)

    def inputs(epochs: Any = None) -> Any:
        given = {"age": AGE, "w": np.where(truth == 1, 0.0, 1.0).astype(np.float32)}
        data = tf.data.Dataset.from_tensor_slices((given, names[truth]))
        return data.repeat(epochs).batch(60)

    model = tf.estimator.LinearClassifier(
        [tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [3.5, 7.0])],
        str(tmp_path), n_classes=3, weight_column="w", label_vocabulary=list(names),
    )  # fmt: skip
    model.train(inputs, steps=40)
    found = model.evaluate(lambda: inputs(1))
    assert found["accuracy"] == 1.0  # the examples that it cannot know do not count
    predicted = [p["classes"][0].decode() for p in model.predict(lambda: inputs(1))]
    known = truth != 1
    assert (np.array(predicted) == names[truth])[known].all()


def test_exported_models_give_the_predictions(tmp_path: Any) -> None:
    model = combined(tmp_path / "model")
    model.train(input_fn, max_steps=50)
    extra = tmp_path / "note.txt"
    extra.write_text("hello")
    folder = os.fsdecode(model.export_saved_model(
        str(tmp_path / "out"), receive_raw, {"notes/a.txt": str(extra)}
    ))  # fmt: skip
    assert Path(folder).name.isdigit() and len(Path(folder).name) == 10
    assert (Path(folder) / "assets.extra" / "notes" / "a.txt").read_text() == "hello"
    expected = np.array([p["probabilities"] for p in model.predict(lambda: input_fn(1))])[:7]
    loaded = td.saved_model.load(folder)
    assert list(loaded.signatures) == ["predict"]  # others are fed messages
    given = {"age": td.constant(AGE[:7]), "city": td.constant(WORDS[CITY[:7]])}
    found = loaded.signatures["predict"](**given)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = meta.signature_def["predict"]
        fed = {signature.inputs[k].name: v.numpy() for k, v in given.items()}
        found = session.run(signature.outputs["probabilities"].name, fed)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def example(age: float, city: str) -> bytes:
    f = tf.train.Feature
    found = {
        "age": f(float_list=tf.train.FloatList(value=[age])),
        "city": f(bytes_list=tf.train.BytesList(value=[city.encode()])),
    }
    message = tf.train.Example(features=tf.train.Features(feature=found))
    return bytes(message.SerializeToString())


@pytest.mark.thorough
def test_a_model_that_reads_messages_runs_in_another_process(tmp_path: Any) -> None:
    model = combined(tmp_path / "model")
    model.train(input_fn, max_steps=50)
    folder = os.fsdecode(model.export_saved_model(str(tmp_path / "out"), receive))
    expected = np.array([p["probabilities"] for p in model.predict(lambda: input_fn(1))])[:3]
    rows = [example(float(AGE[i, 0]), str(WORDS[CITY[i, 0]])) for i in range(3)]
    np.save(tmp_path / "rows.npy", np.array(rows, object), allow_pickle=True)
    program = f"""
import numpy as np, treadle as td
loaded = td.saved_model.load({folder!r})
assert sorted(loaded.signatures) == ["classification", "predict", "regression", "serving_default"]
rows = td.constant(list(np.load({str(tmp_path / "rows.npy")!r}, allow_pickle=True)))
found = loaded.signatures["serving_default"](inputs=rows)
np.save({str(tmp_path / "found.npy")!r}, found["scores"].numpy())
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, rtol=1e-5)


def test_exporters(tmp_path: Any) -> None:
    model = combined(tmp_path)
    e = tf.estimator
    seen = []

    def is_better(best_eval_result: Any, current_eval_result: Any) -> bool:
        seen.append((best_eval_result["loss"], current_eval_result["loss"]))
        return bool(best_eval_result["loss"] > current_eval_result["loss"])

    exporters = [
        e.LatestExporter("latest", receive_raw, exports_to_keep=2),
        e.FinalExporter("final", receive_raw),
        e.BestExporter("best", receive_raw, event_file_pattern=None, compare_fn=is_better),
    ]
    found, exports = e.train_and_evaluate(
        model, e.TrainSpec(input_fn, max_steps=200),
        e.EvalSpec(lambda: input_fn(1), exporters=exporters, throttle_secs=0),
    )  # fmt: skip
    assert found["global_step"] == 200 and len(exports) == 3
    folders = {k: sorted(os.listdir(tmp_path / "export" / k)) for k in ("latest", "final", "best")}
    assert len(folders["latest"]) == 2 and len(folders["final"]) == 1
    assert len(seen) == 3  # evaluated at 50, 100, 150 and 200
    assert len(folders["best"]) == 1 + sum(new < best for best, new in seen)
    assert exports[1].decode().endswith(folders["final"][0])
    with pytest.raises(ValueError, match="unique names"):
        e.train_and_evaluate(
            model, e.TrainSpec(input_fn, max_steps=210),
            e.EvalSpec(input_fn, exporters=[exporters[0], e.FinalExporter("latest", receive_raw)]),
        )  # fmt: skip


def test_what_cannot_be_exported_says_so(tmp_path: Any) -> None:
    model = combined(tmp_path)
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        model.export_saved_model(str(tmp_path / "out"), receive_raw)
    with pytest.raises(ValueError, match="exports_to_keep"):
        tf.estimator.LatestExporter("a", receive_raw, exports_to_keep=0)
    outputs = {k: tf.estimator.export.PredictOutput({}) for k in "ab"}
    with pytest.raises(ValueError, match="Multiple `export_outputs`"):
        _outputs(tf.estimator.EstimatorSpec("infer", export_outputs=outputs))


def test_models_begin_with_the_variables_of_others(tmp_path: Any) -> None:
    old = combined(tmp_path / "old")
    old.train(input_fn, max_steps=50)
    settings = tf.estimator.WarmStartSettings(str(tmp_path / "old"), "linear/.*")
    new = combined(tmp_path / "new", warm_start_from=settings, linear_optimizer=(
        lambda: tf.train.GradientDescentOptimizer(0.0)))  # fmt: skip
    new.train(input_fn, max_steps=1)
    name = "linear/linear_model/city/weights"
    np.testing.assert_array_equal(new.get_variable_value(name), old.get_variable_value(name))
    other = "dnn/logits/kernel"
    assert not np.array_equal(new.get_variable_value(other), old.get_variable_value(other))
