"""Keras models as saved models: their calls, signatures and variables, and exports."""

import numpy as np
import pytest

import treadle as td

keras = td.keras


def functional():
    start = keras.Input([3], name="features")
    x = keras.layers.BatchNormalization()(keras.layers.Dense(4, "relu")(start))
    model = keras.Model(start, keras.layers.Dense(2)(keras.layers.Dropout(0.5)(x)))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


class Recurrent(keras.Model):
    def __init__(self):
        super().__init__()
        self.table, self.cell = keras.layers.Embedding(10, 4), keras.layers.LSTM(3)
        self.head = keras.layers.Dense(2)

    def call(self, ids, training=False):
        return {"scores": self.head(self.cell(self.table(ids)))}


X = np.random.RandomState(0).randn(6, 3).astype(np.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    model, folder = functional(), tmp_path_factory.mktemp("keras")
    model.fit(X, np.ones([6, 2]), verbose=0)
    td.saved_model.save(model, folder)
    return model, folder


def test_calls_without_and_with_training(trained):
    model, folder = trained
    loaded = td.saved_model.load(folder)
    np.testing.assert_allclose(loaded(X), model(X), rtol=1e-5)
    np.testing.assert_allclose(loaded(X[:1], training=False), model(X[:1]), rtol=1e-5)
    moving = loaded.non_trainable_variables[0].numpy()
    first, second = loaded(X, training=True), loaded(X, training=True)
    assert not np.array_equal(first, second)  # other elements are dropped
    assert not np.array_equal(loaded.non_trainable_variables[0], moving)


def test_the_default_signature(trained):
    model, folder = trained
    serve = td.saved_model.load(folder).signatures["serving_default"]
    np.testing.assert_allclose(serve(inputs=X)["output_0"], model(X), rtol=1e-5)
    spec = td.TensorSpec([None, 3], name="inputs")
    assert serve.structured_input_signature == ((), {"inputs": spec})


def test_variables_are_listed_as_the_models(trained):
    model, folder = trained
    loaded = td.saved_model.load(folder)
    for kind in ("variables", "trainable_variables", "non_trainable_variables"):
        mine, theirs = getattr(loaded, kind), getattr(model, kind)
        assert [v.name for v in mine] == [v.name for v in theirs]
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_loaded_model_is_trained_further(trained):
    loaded = td.saved_model.load(trained[1])
    optimizer = keras.optimizers.Adam(0.05)

    @td.function
    def step():
        with td.GradientTape() as tape:
            loss = td.reduce_mean((loaded(X, training=False) - 3.0) ** 2)
        gradients = tape.gradient(loss, loaded.trainable_variables)
        optimizer.apply_gradients(zip(gradients, loaded.trainable_variables, strict=True))
        return loss

    losses = [float(step()) for _ in range(80)]
    assert losses[-1] < 0.1 * losses[0]


def test_the_checkpoint_restores_a_model(trained):
    model, folder = trained
    other = functional()
    other.load_weights(folder / "variables" / "variables")
    np.testing.assert_array_equal(other(X), model(X))


def test_models_inside_of_modules(tmp_path):
    root = td.Module()
    root.encoder = keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])
    td.saved_model.save(root, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.encoder(X), root.encoder(X), rtol=1e-6)


def test_a_model_that_defines_call(tmp_path):
    model, ids = Recurrent(), np.array([[1, 2, 3], [4, 5, 6]])
    td.saved_model.save(model, tmp_path / "unknown")  # never called: variables are all it has
    assert len(td.saved_model.load(tmp_path / "unknown").signatures) == 0
    expected = model(ids)["scores"]
    td.saved_model.save(model, tmp_path / "known")
    loaded = td.saved_model.load(tmp_path / "known")
    np.testing.assert_allclose(loaded(ids)["scores"], expected, 1e-5, 1e-6)
    np.testing.assert_allclose(loaded(ids[:1])["scores"], expected[:1], 1e-5, 1e-6)
    assert list(loaded.signatures["serving_default"](inputs=ids)) == ["scores"]


def test_several_arguments(tmp_path):
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(2)

        def call(self, a, b):
            return self.head(a) + b

    model = Two()
    model(X, X[:, :2])
    td.saved_model.save(model, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded(X, X[:, :2]), model(X, X[:, :2]), rtol=1e-5)
    served = loaded.signatures["serving_default"](inputs=X, inputs_1=X[:, :2])
    np.testing.assert_allclose(served["output_0"], model(X, X[:, :2]), rtol=1e-5)


def test_export(tmp_path, capsys):
    model = functional()
    model.export(tmp_path, verbose=True)
    assert "Endpoint 'serve'" in capsys.readouterr().out
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.serve(X), model(X), rtol=1e-5)
    assert set(loaded.signatures) == {"serve", "serving_default"}
    served = loaded.signatures["serving_default"](features=X)["output_0"]
    np.testing.assert_allclose(served, model(X), rtol=1e-5)
    assert len(loaded.variables) == len(model.variables)
    assert not callable(loaded)


def test_models_that_cannot_be_exported(tmp_path):
    with pytest.raises(ValueError, match="not yet been built"):
        Recurrent().export(tmp_path)
    with pytest.raises(ValueError, match="format"):
        functional().export(tmp_path, format="other")
    with pytest.raises(ValueError, match="TFSMLayer"):
        functional().export(tmp_path)
        keras.models.load_model(tmp_path)


def test_a_saved_model_as_a_layer(tmp_path):
    model = functional()
    model.export(tmp_path)
    layer = keras.layers.TFSMLayer(tmp_path)
    np.testing.assert_allclose(layer(X), model(X), rtol=1e-5)
    assert len(layer.trainable_weights) == len(model.trainable_weights)
    again = keras.Sequential([keras.Input([3]), layer, keras.layers.Dense(1)])
    again.compile("sgd", "mse")
    before = layer.trainable_weights[0].numpy()
    again.fit(X, np.ones([6, 1]), verbose=0)
    assert not np.array_equal(layer.trainable_weights[0], before)
    same = keras.layers.TFSMLayer.from_config(layer.get_config())
    np.testing.assert_allclose(same(X), model(X), rtol=1e-5)
    with pytest.raises(ValueError, match="The endpoint 'other' is neither"):
        keras.layers.TFSMLayer(tmp_path, call_endpoint="other")


def test_an_archive_of_endpoints(tmp_path):
    model, archive = functional(), keras.export.ExportArchive()
    archive.track(model)
    spec = td.TensorSpec([None, 3])
    archive.add_endpoint("predict", lambda x: model(x, training=False), [spec])
    archive.add_endpoint("train", lambda x: model(x, training=True), [spec])
    archive.add_variable_collection("heads", model.layers[-1].weights)
    archive.write_out(tmp_path, verbose=False)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.predict(X), model(X), rtol=1e-5)
    assert [v.name for v in loaded.heads] == [v.name for v in model.layers[-1].weights]
    assert set(loaded.signatures) == {"predict", "train", "serving_default"}
    layer = keras.layers.TFSMLayer(tmp_path, "predict", call_training_endpoint="train")
    assert not np.array_equal(layer(X, training=True), layer(X, training=True))
    with pytest.raises(ValueError, match="already taken"):
        archive.add_endpoint("train", lambda x: x, [spec])
    with pytest.raises(ValueError, match="input_signature"):
        archive.add_endpoint("other", lambda x: x)
    with pytest.raises(ValueError, match="No endpoints"):
        keras.export.ExportArchive().write_out(tmp_path)


def test_endpoints_bring_what_they_use_and_the_names_of_their_arguments(tmp_path):
    words = td.lookup.KeyValueTensorInitializer(td.constant(["a", "b"]), td.constant([1.0, 2.0]))
    table = td.lookup.StaticHashTable(words, default_value=-1.0)
    dense, attention = keras.layers.Dense(2), keras.layers.MultiHeadAttention(2, 2)
    three = np.ones((2, 2, 3), np.float32)
    expected = attention(three, 2 * three)
    dense(X)
    archive = keras.export.ExportArchive()
    archive.add_endpoint("dense", dense.call, [td.TensorSpec([None, 3])])
    archive.add_endpoint("attend", attention.call, [td.TensorSpec([None, 2, 3])] * 2)
    archive.track(table)
    scored = archive.track_and_add_endpoint("scored", dense, [td.TensorSpec([None, 3])])
    both = td.function(lambda x: scored(table.lookup(x)))
    texts = td.constant([["b", "a", "c"]])
    score = both(texts)
    archive.add_endpoint("both", both)
    archive.write_out(tmp_path, verbose=False)
    assert len(archive.trainable_variables) == len(dense.weights) + len(attention.weights)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.dense(X), dense(X), rtol=1e-5)
    np.testing.assert_allclose(loaded.attend(query=three, value=2 * three), expected, rtol=1e-5)
    np.testing.assert_allclose(loaded.both(texts), score, rtol=1e-5)
    layer = keras.layers.TFSMLayer(tmp_path, "dense")
    assert all(isinstance(weight, keras.Variable) for weight in layer.weights)
    with pytest.raises(ValueError, match="Invalid resource"):
        archive.track(3)


def test_the_default_signature_numbers_nested_inputs(tmp_path):
    a, b = keras.Input((3,), name="alpha"), keras.Input((3,), name="beta")
    model = keras.Model({"x": a, "y": b}, keras.layers.Subtract()([a, b]))
    td.saved_model.save(model, tmp_path)
    served = td.saved_model.load(tmp_path).signatures["serving_default"]
    np.testing.assert_array_equal(served(inputs=2 * X, inputs_1=X)["output_0"], X)
