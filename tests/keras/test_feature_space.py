"""FeatureSpace: encodings as those of its layers, in functions, datasets, models and files."""

from pathlib import Path

import numpy as np
import pytest

import treadle as td

keras = td.keras
FeatureSpace = keras.utils.FeatureSpace

TABLE = {
    "plain": [0.0, 0.1, 0.2, 0.3], "scaled": [1.0, 2.0, 3.0, 4.0],
    "word": ["a", "b", "c", "a"], "count": [0, 1, 2, 3], "size": [1.0, 2.0, 3.0, 4.0],
}  # fmt: skip
KINDS = {
    "plain": "float", "scaled": "float_normalized", "word": "string_categorical",
    "count": FeatureSpace.integer_hashed(8), "size": "float_discretized",
}  # fmt: skip


def made(**options):
    space = FeatureSpace(dict(KINDS), crosses=[("word", "count")], **options)
    space.adapt(TABLE)
    return space


def one_hot(places, depth):
    return np.eye(depth, dtype="float32")[np.asarray(places).reshape(-1)]


def test_encodings_are_those_of_the_layers():
    found = made(output_mode="dict")(TABLE)
    assert list(found) == ["count", "plain", "scaled", "size", "word", "word_X_count"]
    scaled = np.array(TABLE["scaled"])
    expected = ((scaled - scaled.mean()) / scaled.std())[:, None]
    np.testing.assert_allclose(found["scaled"].numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(found["plain"].numpy()[:, 0], TABLE["plain"], rtol=1e-6)
    words = keras.layers.StringLookup()
    words.adapt(TABLE["word"])
    np.testing.assert_array_equal(found["word"].numpy(), one_hot(words(TABLE["word"]), 4))
    hashed = keras.layers.Hashing(8)(np.array(TABLE["count"]))
    np.testing.assert_array_equal(found["count"].numpy(), one_hot(hashed, 8))
    assert found["size"].shape == (4, 32)


def test_rows_and_batches_in_functions_and_datasets():
    space = made()
    whole = space(TABLE).numpy()
    row = {name: values[0] for name, values in TABLE.items()}
    np.testing.assert_array_equal(space(row).numpy(), whole[0])
    tensors = {name: td.constant(values) for name, values in TABLE.items()}
    np.testing.assert_allclose(td.function(space)(tensors).numpy(), whole, rtol=1e-6)
    data = td.data.Dataset.from_tensor_slices(TABLE)
    of_rows = np.stack([x.numpy() for x in data.map(space)])
    np.testing.assert_allclose(of_rows, whole, rtol=1e-6)
    (of_batches,) = data.batch(4).map(space)
    np.testing.assert_allclose(of_batches.numpy(), whole, rtol=1e-6)


def test_models_train_on_them():
    space = made()
    output = keras.layers.Dense(1)(space.get_encoded_features())
    model = keras.Model(space.get_inputs(), output)
    model.compile("adam", "mse")
    data = td.data.Dataset.from_tensor_slices((TABLE, [0.0, 1.0, 0.0, 1.0])).batch(2)
    losses = model.fit(data, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_files(tmp_path):
    space = made()
    space.save(tmp_path / "space.keras")
    again = keras.models.load_model(tmp_path / "space.keras")
    np.testing.assert_array_equal(again(TABLE).numpy(), space(TABLE).numpy())


def test_a_file_of_keras():
    folder = Path(__file__).parent / "keras_files"
    space = keras.models.load_model(folder / "feature_space.keras")
    expected = np.load(folder / "feature_space.npy")
    renamed = dict(zip(("f", "n", "s", "i", "d"), TABLE.values(), strict=True))
    np.testing.assert_allclose(space(renamed).numpy(), expected, rtol=1e-6)


def test_layers_of_programs():
    text = keras.layers.TextVectorization(output_mode="tf_idf")
    feature = FeatureSpace.feature("string", text, "float")
    space = FeatureSpace({"text": feature})
    space.adapt({"text": ["1st string", "2nd string", "3rd string"]})
    assert space({"text": ["1st string"]}).shape == (1, 5)
    with pytest.raises(ValueError, match="dimensionality of its output space is not known"):
        lambda_layer = keras.layers.Lambda(lambda x: td.cast(x, td.int32))
        own = FeatureSpace({"x": FeatureSpace.feature("float32", lambda_layer, "one_hot")})
        own({"x": [1.0]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": {}}, "cannot be None or empty"),
        ({"features": {"a": "unknown"}}, "Invalid feature type"),
        ({"features": {"a": "float"}, "output_mode": "rows"}, "argument `output_mode`"),
        ({"features": {"a": "float"}, "crosses": [("a", "b")]}, "should be present in"),
        ({"features": {"a": "float"}, "crosses": [("a",)], "crossing_dim": None}, "crossing_dim"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        FeatureSpace(**options)


def test_errors_of_calls():
    space = FeatureSpace({"a": "integer_categorical"})
    with pytest.raises(ValueError, match=r"call `.adapt\(dataset\)`"):
        space({"a": [1]})
    with pytest.raises(ValueError, match="can only be called on"):
        space.adapt([1, 2])
    with pytest.raises(ValueError, match="only be called with a dict"):
        FeatureSpace({"a": "float"})([1.0])
    ints = FeatureSpace({"a": FeatureSpace.integer_hashed(3, output_mode="int")})
    with pytest.raises(ValueError, match="Cannot concatenate features because feature 'a'"):
        ints({"a": [1]})
