"""Masks travel with tensors from layer to layer, eagerly, in functions and in models."""

import gc

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import layers, masks

IDS = np.array([[1, 2, 0, 0], [3, 0, 0, 0], [1, 1, 2, 3]])


class Shown(layers.Layer):
    """Gives the mask that it is called with."""

    supports_masking = True

    def call(self, x, mask=None):
        zeros = td.zeros_like(x)
        return zeros if mask is None else td.cast(mask, td.float32)[..., None] + zeros


def test_layers_are_given_the_mask_of_their_input():
    table = layers.Embedding(5, 2, mask_zero=True)
    x = table(IDS)
    np.testing.assert_array_equal(x._keras_mask, IDS != 0)
    np.testing.assert_array_equal(np.asarray(Shown()(x))[..., 0], IDS != 0)
    np.testing.assert_array_equal(table.compute_mask(td.constant(IDS)), IDS != 0)
    given = np.zeros((3, 4), bool)
    np.testing.assert_array_equal(Shown()(x, mask=given), np.zeros((3, 4, 2)))
    plain = layers.Embedding(5, 2)(IDS)
    assert getattr(plain, "_keras_mask") is None
    np.testing.assert_array_equal(Shown()(plain), np.zeros((3, 4, 2)))


def test_masks_go_through_functions_and_functional_models():
    inputs = keras.Input((4,), dtype="int32")
    x = layers.Embedding(5, 2, mask_zero=True)(inputs)
    inner = keras.Sequential([layers.Dense(2), layers.Dropout(0.5)])
    model = keras.Model(inputs, Shown()(inner(x)))
    expected = (IDS != 0).astype("f")
    np.testing.assert_array_equal(np.asarray(model(IDS))[..., 0], expected)
    np.testing.assert_array_equal(model.predict(IDS, verbose=0)[..., 0], expected)
    run = td.function(model, autograph=False)
    np.testing.assert_array_equal(np.asarray(run(IDS))[..., 0], expected)


def test_a_layer_without_masks_ends_them_with_a_warning():
    class Plain(layers.Layer):
        def call(self, x):
            return x + 1.0

    class Passing(Plain):
        supports_masking = True

    class Cut(Plain):
        def compute_mask(self, inputs, mask=None):
            return None if mask is None else mask & (td.range(4) < 1)[None]

    x = layers.Embedding(5, 2, mask_zero=True)(IDS)
    with pytest.warns(UserWarning, match="does not support masking"):
        assert Plain()(x)._keras_mask is None
    np.testing.assert_array_equal(Passing()(x)._keras_mask, IDS != 0)
    np.testing.assert_array_equal(Cut()(x)._keras_mask, (IDS != 0) & (np.arange(4) < 1))


def test_casts_of_inputs_keep_masks():
    x = layers.Masking()(td.constant([[[1.0], [0.0]]], td.float32))
    wide = layers.Dense(2, dtype="float64")(x)
    assert wide.dtype == td.float64
    np.testing.assert_array_equal(wide._keras_mask, [[True, False]])


def test_masks_go_with_their_tensors():
    before = len(masks._masks)
    x = layers.Embedding(5, 2, mask_zero=True)(IDS)
    assert len(masks._masks) == before + 1
    del x
    gc.collect()
    assert len(masks._masks) == before


def test_users_layers_and_models_take_masks():
    class Pool(layers.Layer):
        def compute_mask(self, inputs, mask=None):
            return None

        def call(self, x, mask=None):
            weights = td.cast(mask, td.float32)[..., None]
            return td.reduce_sum(x * weights, 1) / td.reduce_sum(weights, 1)

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.table, self.pool = layers.Embedding(5, 2, mask_zero=True), Pool()

        def call(self, ids):
            return self.pool(self.table(ids))

    net = Net()
    found = np.asarray(td.function(net, autograph=False)(IDS))
    table = net.get_weights()[0]
    expected = [table[row[row > 0]].mean(0) for row in IDS]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_time_distributed_gives_layers_the_mask_of_a_step():
    steps = np.stack([IDS, IDS[::-1]], 1)
    x = layers.Embedding(5, 2, mask_zero=True)(steps)
    found = layers.TimeDistributed(Shown())(x)
    np.testing.assert_array_equal(np.asarray(found)[..., 0], steps != 0)
    np.testing.assert_array_equal(found._keras_mask, steps != 0)


def test_masked_recurrent_layers_have_one_trace_for_all_lengths():
    table, layer = layers.Embedding(5, 3, mask_zero=True), layers.LSTM(2)
    layer(table(IDS))
    run = td.function(
        lambda x: layer(table(x)), input_signature=[td.TensorSpec([None, None], td.int64)],
        autograph=False,
    )  # fmt: skip
    for length in (1, 3, 4):
        part = IDS[:, :length]
        np.testing.assert_allclose(run(part), layer(table(part)), rtol=1e-5, atol=1e-6)
    assert run.experimental_get_tracing_count() == 1


def test_masks_of_what_a_model_will_compute():
    inputs = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(5, 3, mask_zero=True)(inputs)
    assert inputs._keras_mask is None
    mask = keras.layers.Dropout(0.5)(embedded)._keras_mask
    assert mask.dtype == td.bool and tuple(mask.shape) == (None, None)
    assert keras.layers.Flatten()(keras.layers.Dense(2)(keras.Input((2,))))._keras_mask is None
    counted = keras.Model(inputs, keras.ops.sum(keras.ops.cast(mask, "int32"), axis=1))
    np.testing.assert_array_equal(counted(np.array([[1, 0, 2], [0, 0, 4]])), [2, 1])


def test_layers_of_programs_see_masks_when_a_model_is_made():
    seen = []

    class Needs(layers.Layer):
        supports_masking = True

        def call(self, x, mask=None):
            seen.append(mask is not None)
            return x * td.cast(mask, x.dtype)[..., None]

    inputs = keras.Input((None,), dtype="int32")
    embedded = layers.Embedding(5, 3, mask_zero=True, embeddings_initializer="ones")(inputs)
    outputs = Needs()(layers.Dense(3, kernel_initializer="identity")(embedded))
    model = keras.Model(inputs, layers.LSTM(2, return_sequences=True)(outputs))
    assert all(seen) and model.output._keras_mask is not None
    found = keras.Model(inputs, outputs)(np.array([[1, 0, 2]]))
    np.testing.assert_array_equal(found, [[[1] * 3, [0] * 3, [1] * 3]])


def test_masks_are_outputs_of_models(tmp_path):
    inputs = keras.Input((3,), dtype="int32")
    embedding = layers.Embedding(5, 2, mask_zero=True)
    outputs = embedding(inputs)
    lstm = layers.LSTM(2, return_sequences=True)(outputs)
    masks = {"computed": embedding.compute_mask(inputs), "carried": lstm._keras_mask}
    model = keras.Model(inputs, {"y": outputs, **masks})
    x = np.array([[1, 2, 0], [0, 3, 0]], np.int32)
    model.save(tmp_path / "a.keras")
    for one in (model, keras.models.load_model(tmp_path / "a.keras")):
        found = one.predict(x, verbose=0)
        assert found["computed"].tolist() == found["carried"].tolist() == (x != 0).tolist()
    steps = keras.Input((2, 2))
    masking = layers.Masking(-1.0)
    model = keras.Model(steps, masking.compute_mask(steps))
    assert model(np.array([[[-1.0, -1.0], [-1.0, 2.0]]], "f")).numpy().tolist() == [[False, True]]
