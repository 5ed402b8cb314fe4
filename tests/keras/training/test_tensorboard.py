"""`keras.callbacks.TensorBoard`: the same events as real Keras writes, read by TensorBoard."""

import json

import numpy as np
import pytest
from tensorboard.compat.proto import config_pb2, graph_pb2

import treadle as td
from tests.summary.reading import accumulated, entries

keras = td.keras
layers = keras.layers


@pytest.fixture
def data():
    numbers = np.random.default_rng(0)
    return numbers.random((20, 4)).astype("f4"), numbers.random((20, 2)).astype("f4")


def sequential():
    model = keras.Sequential(
        [
            layers.Input((4,)), layers.Dense(3, activation="relu", name="a"),
            layers.BatchNormalization(name="n"), layers.Dense(2, name="b"),
        ],
        name="net",
    )  # fmt: skip
    model.compile(keras.optimizers.SGD(0.125), "mse", metrics=["mae"])
    return model


def fit(folder, data, model=None, **options):
    model = model or sequential()
    callback = keras.callbacks.TensorBoard(folder, **options)
    history = model.fit(
        *data, batch_size=5, epochs=2, verbose=0, validation_data=data, callbacks=[callback]
    )
    return model, history.history


def tags(folder):
    """The steps of each tag, and the plugin."""
    found = {}
    for entry in entries(folder):
        found.setdefault((entry.tag, entry.kind), []).append(entry.step)
    return found


def numbers(folder, tag):
    return [float(e.value) for e in entries(folder) if e.tag == tag]


def test_curves_of_epochs(tmp_path, data):
    """Tags and steps are those that Keras 3 writes for this model."""
    _, history = fit(tmp_path, data, write_graph=False)
    assert tags(tmp_path / "train") == {
        ("epoch_loss", "scalars"): [0, 1], ("epoch_mae", "scalars"): [0, 1],
        ("epoch_learning_rate", "scalars"): [0, 1],
    }  # fmt: skip
    assert tags(tmp_path / "validation") == {
        ("epoch_loss", "scalars"): [0, 1], ("epoch_mae", "scalars"): [0, 1],
        ("evaluation_loss_vs_iterations", "scalars"): [4, 8],
        ("evaluation_mae_vs_iterations", "scalars"): [4, 8],
    }  # fmt: skip
    for folder, prefix in (("train", ""), ("validation", "val_")):
        for name in ("loss", "mae"):
            found = numbers(tmp_path / folder, f"epoch_{name}")
            np.testing.assert_array_equal(found, np.float32(history[prefix + name]))
    assert numbers(tmp_path / "train", "epoch_learning_rate") == [0.125, 0.125]
    assert accumulated(tmp_path / "train").Tags()["tensors"]


def test_histograms_and_images_of_weights(tmp_path, data):
    model, _ = fit(tmp_path, data, histogram_freq=1, write_images=True, write_graph=False)
    names = ["a/kernel", "a/bias", "b/kernel", "b/bias"]
    names += [f"n/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")]
    found = tags(tmp_path / "train")
    for name in names:
        assert found[f"net/{name}/histogram", "histograms"] == [0, 1]
        assert found[f"net/{name}/image", "images"] == [0, 1]
    last = [e for e in entries(tmp_path / "train") if e.tag == "net/a/kernel/histogram"][-1].value
    kernel = model.get_layer("a").kernel.numpy()
    assert last[:, 2].sum() == kernel.size
    np.testing.assert_allclose([last[0, 0], last[-1, 1]], [kernel.min(), kernel.max()])
    image = next(e for e in entries(tmp_path / "train") if e.tag == "net/a/kernel/image").value
    assert [int(n) for n in image[:2]] == [4, 3]


def test_functional_models_have_the_names_of_their_layers(tmp_path, data):
    given = keras.Input((4,))
    model = keras.Model(given, layers.Dense(2, name="out")(layers.Dense(3, name="hid")(given)))
    model.compile("sgd", "mse")
    fit(tmp_path, data, model, histogram_freq=2, write_graph=False)
    assert tags(tmp_path / "train")["hid/kernel/histogram", "histograms"] == [0]


def test_every_second_batch(tmp_path, data):
    fit(tmp_path, data, update_freq=2, write_steps_per_second=True, write_graph=False)
    found = tags(tmp_path / "train")
    for name in ("loss", "mae", "steps_per_second"):
        assert found[f"batch_{name}", "scalars"] == [2, 4, 6, 8]
    assert found["epoch_steps_per_second", "scalars"] == [0, 1]
    assert not bool(td.summary.should_record_summaries())
    assert td.summary.experimental.get_step() is None


def test_summaries_of_the_model_itself(tmp_path, data):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)
            self.calls = td.Variable(0, dtype=td.int64, trainable=False)

        def call(self, x, training=False):
            if training:
                self.calls.assign_add(1)
                td.summary.scalar("mean", td.reduce_mean(x), step=self.calls)
            return self.dense(x)

    model = Own()
    model.compile("sgd", "mse")
    fit(tmp_path, data, model, update_freq=1, write_graph=False)
    assert tags(tmp_path / "train")["mean", "scalars"] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("update_freq", ["epoch", 3])
def test_the_graph_of_the_step_and_the_layers(tmp_path, data, update_freq):
    fit(tmp_path, data, update_freq=update_freq)
    by_kind = {entry.kind: entry for entry in entries(tmp_path / "train")}
    graph = graph_pb2.GraphDef.FromString(by_kind["graphs"].value.item())
    names = {node.name for node in graph.node}
    assert {"net/a/MatMul", "net/b/MatMul", "net/a/Relu"} <= names
    described = json.loads(by_kind["graph_keras_model"].value.item())
    assert described["class_name"] == "Sequential"
    assert [layer["config"]["name"] for layer in described["config"]["layers"]][1:] == [
        "a", "n", "b",
    ]  # fmt: skip


def test_profiles_of_batches(tmp_path, data):
    fit(tmp_path, data, profile_batch=(2, 3))
    (path,) = (tmp_path / "train").glob("plugins/profile/*/*.trace.json")
    found = json.loads(path.read_text())["traceEvents"]
    steps = [e["args"]["step_num"] for e in found if e["name"] == "Profiled batch"]
    assert steps == ["1", "2"]
    assert any(e.get("cat") == "kernel" for e in found)
    (entry,) = [e for e in entries(tmp_path / "train") if e.kind == "graph_run_metadata_graph"]
    assert (entry.tag, entry.step) == ("batch_3", 3)
    assert config_pb2.RunMetadata.FromString(entry.value.item()).function_graphs


@pytest.mark.parametrize("given", [-1, (3, 2), (1, 2, 3), "3,1"])
def test_wrong_batches_of_profiles(given):
    with pytest.raises(ValueError, match="profile_batch must be"):
        keras.callbacks.TensorBoard(profile_batch=given)


def test_embeddings(tmp_path, data):
    def model():
        made = keras.Sequential([layers.Embedding(9, 4, name="e"), layers.Flatten()])
        made.add(layers.Dense(2))
        made.compile("sgd", "mse")
        return made

    given = np.random.default_rng(0).integers(0, 9, (20, 4)), data[1]
    fit(tmp_path, given, model(), embeddings_freq=1, embeddings_metadata={"e": "meta.tsv"})
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'metadata_path: "meta.tsv"' in text and "tensor_name" in text
    saved = sorted(path.name for path in (tmp_path / "train").glob("*.weights.h5"))
    assert saved == [f"keras_embedding.ckpt-{n}.weights.h5" for n in (0, 1)]
    with pytest.raises(ValueError, match="Unrecognized `Embedding` layer names"):
        fit(tmp_path, given, model(), embeddings_freq=1, embeddings_metadata={"other": "x"})


def test_a_folder_that_is_a_file(tmp_path, data):
    (tmp_path / "file").touch()
    with pytest.raises(td.errors.FailedPreconditionError, match="file"):
        fit(tmp_path / "file", data)
