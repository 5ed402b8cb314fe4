"""Settings and shapes that Keras's own tests ask for: values, refusals and configurations."""

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import activations, initializers, layers, losses

X = np.sin(np.arange(24.0)).reshape(2, 3, 4).astype("float32")


@pytest.mark.parametrize("axes", [(1, 2), (0, 2), (-1, 1), (2,)])
def test_softmax_along_several_axes(axes):
    whole = np.exp(X) / np.exp(X).sum(axes, keepdims=True)
    np.testing.assert_allclose(activations.softmax(X, axis=axes), whole, rtol=1e-5)
    log = td.function(lambda x: activations.log_softmax(x, axis=axes))(X)
    np.testing.assert_allclose(log, np.log(whole), rtol=1e-4, atol=1e-5)


def test_a_threshold_itself_is_below():
    x = np.array([-10.0, -5.0, 0.0, 5.0, 10.0])
    given = activations.relu(x, negative_slope=0.5, max_value=5.0, threshold=5.0)
    np.testing.assert_array_equal(given, [-7.5, -5.0, -2.5, 0.0, 5.0])


@pytest.mark.parametrize(
    "make",
    [lambda: layers.ReLU(negative_slope=None), lambda: layers.ReLU(threshold=-1.0),
     lambda: layers.LeakyReLU(None), lambda: layers.Dense(2, trainable=1),
     lambda: layers.Embedding(0, 3), lambda: layers.Embedding(3, 2.5),
     lambda: initializers.VarianceScaling(scale=-1.0), lambda: initializers.RandomNormal(seed=1.5),
     lambda: layers.BatchNormalization(renorm=True, renorm_clipping={"most": 2.0}),
     lambda: layers.Normalization(mean=1.0), lambda: layers.Bidirectional("lstm"),
     lambda: layers.Normalization(mean=[1.0], variance=[1.0], axis=None),
     lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), clipnorm=1.0),
     lambda: keras.config.set_dtype_policy(None), lambda: keras.DTypePolicy("mixed_float15"),
     lambda: layers.Dropout(0.5, noise_shape=(2, 0)), lambda: layers.Reshape((-1, -1, 2)),
     lambda: layers.Dropout(0.5, noise_shape="2"), lambda: layers.Cropping1D((1,)),
     lambda: layers.ZeroPadding1D([2]), lambda: layers.Softmax()(X, mask=np.ones((3, 3), bool)),
     lambda: layers.TimeDistributed(layers.Dense(2))(X, mask=np.ones((2, 4), bool)),
     lambda: layers.MultiHeadAttention(2, 3).compute_output_shape((2, 4, 8), (2, 2, 8), (2, 1, 8)),
     lambda: layers.InputLayer(shape=(2,), batch_shape=(None, 2)),
     lambda: layers.Add().compute_mask([X, X], X), lambda: layers.Add().compute_mask(X, [X])],
)  # fmt: skip
def test_wrong_settings_are_value_errors(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize(
    "make", [lambda: layers.RepeatVector("3"), lambda: layers.UnitNormalization("last"),
             lambda: layers.LayerNormalization(axis=1.5), lambda: keras.DTypePolicy(3)],
)  # fmt: skip
def test_settings_of_wrong_types_are_type_errors(make):
    with pytest.raises(TypeError):
        make()


@pytest.mark.parametrize("loss", [losses.BinaryCrossentropy(), losses.CategoricalCrossentropy()])
def test_labels_have_the_shape_of_predictions(loss):
    with pytest.raises(ValueError, match="must have the same shape"):
        loss(np.zeros((3, 1), "f"), np.full((3, 3), 0.3, "f"))


def test_crossentropy_is_chosen_by_shapes():
    labels, scores = np.array([0, 1, 2, 1]), np.full((4, 3), 1 / 3, "f")
    for y in (labels, labels[:, None], np.eye(3, dtype="f")[labels]):
        found = losses.as_loss("crossentropy")(y, scores)
        np.testing.assert_allclose(found, np.log(3), rtol=1e-5)


def test_axes_of_inputs_and_outputs():
    assert initializers.fans((4, 3, 5), [0], [1, 2]) == (4.0, 15.0)
    wide = layers.EinsumDense("abc,cde->abde", (None, 8, 64))
    wide.build((None, 3, 512))
    limit = np.sqrt(6 / (512 + 8 * 64))
    assert 0.97 * limit < np.abs(wide.kernel.numpy()).max() <= limit
    again = initializers.get(initializers.serialize(initializers.HeNormal(3, [0], [1])))
    assert again.get_config() == {"seed": 3, "input_axes": [0], "output_axes": [1]}


def test_values_and_generators_initialize():
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(initializers.get(values)((2, 3)), values)
    config = initializers.Constant(values).get_config()
    np.testing.assert_array_equal(initializers.Constant.from_config(config)((2, 3)), values)
    drawn = initializers.RandomNormal(seed=keras.random.SeedGenerator(1))
    assert np.any(drawn((3,)).numpy() != drawn((3,)).numpy())


@pytest.mark.parametrize(
    ("mean", "axis", "shape"),
    [([1.0, 2.0, 3.0], 1, (2, 3, 4)), (2.0, (1, 2), (2, 3, 4)),
     ([[1.0], [2.0], [3.0]], (1, 2), (2, 3, 4)), ([1.0, 2.0, 3.0, 4.0], (1, -1), (2, 3, 4))],
)  # fmt: skip
def test_given_statistics_stand_for_the_last_axes(mean, axis, shape):
    mean = np.asarray(mean)
    layer = layers.Normalization(axis=axis, mean=mean, variance=mean + 1.0)
    spread = mean[:, None] if axis == 1 else mean
    expected = (X - spread) / np.sqrt(spread + 1.0)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-6)


def test_adapting_to_batches_with_labels_and_to_wrong_ones():
    layer = layers.Normalization()
    layer.adapt([(X[:1], np.ones(1)), (X[1:], np.ones(1))])
    np.testing.assert_allclose(layer.mean[0, 0], X.mean((0, 1)), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="incompatible shape"):
        layer.adapt(X[..., :3])


def test_what_results_will_be():
    spec = layers.MultiHeadAttention(2, 4).compute_output_spec(
        keras.KerasTensor((2, 3, 4)), keras.KerasTensor((2, 5, 4))
    )
    assert spec.shape == (2, 3, 4)
    assert layers.Hashing(5, output_mode="multi_hot").compute_output_shape((None, 4)) == (None, 5)
    assert layers.Concatenate().compute_output_shape([(2, 3), (2, 4)]) == (2, 7)

    class Two(layers.Layer):
        def call(self, x):
            raise AssertionError("shapes are computed without a call")

        def compute_output_shape(self, shape):
            return {"a": shape, "b": [shape, (5,)]}

    pair = Two().compute_output_spec(keras.KerasTensor((2, 3)))
    assert pair["a"].shape == (2, 3) and pair["b"][1].shape == (5,)
    half = layers.UpSampling2D(2, interpolation="bilinear", dtype="mixed_float16")
    assert half(np.ones((1, 2, 2, 1), "f")).dtype == td.float16
    assert keras.KerasTensor((2, 3), sparse=True).sparse


def test_states_of_generators_are_variables_but_no_weights():
    class Noisy(layers.Layer):
        def __init__(self):
            super().__init__()
            self.source = keras.random.SeedGenerator(7)
            self.seen = keras.metrics.Mean(name="seen")

        def build(self, shape):
            self.w = self.add_weight((2,), name="w")

    layer = Noisy()
    layer.build((None, 2))
    assert [v.name for v in layer.variables] == ["w", "seed_generator_state"]
    assert [v.name for v in layer.weights] == ["w"]
    assert layer.non_trainable_variables[0] is layer.source.state
    assert layer.metrics == [layer.seen] and len(layer.metrics_variables) == 2


def test_policies_of_layers_may_change():
    layer = layers.Dense(2, dtype="mixed_float16")
    layer.dtype_policy = "float32"
    assert (layer.dtype, layer.compute_dtype) == ("float32", "float32")
    kept = layers.Dense(2, autocast=False)
    assert kept(np.ones((1, 2), "float64").astype("f")).dtype == td.float32


def test_updates_one_by_one_and_gradients_that_are_missing():
    v, w = keras.Variable([1.0, 2.0]), keras.Variable([3.0])
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build([v, w])
    optimizer.update_step(td.constant([1.0, 1.0]), v, 0.1)
    np.testing.assert_allclose(v, [0.9, 1.9], rtol=1e-5)
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        optimizer.apply_gradients([(td.constant([1.0, 1.0]), v), (None, w)])
    values = [variable.numpy() for variable in optimizer.variables]
    optimizer.set_weights(values)
    with pytest.raises(ValueError, match="not compatible"):
        optimizer.set_weights([*values[:2], np.ones(5), *values[3:]])


def test_places_of_sorted_classes():
    metric = keras.metrics.SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True)
    metric.update_state([2, 1], [[5, 2, 1], [5, 2, 1]])
    assert float(metric.result()) == 0.5
    best = keras.metrics.PrecisionAtRecall(0.5)
    assert best.recall == 0.5
    with pytest.warns(UserWarning, match="type casting"):
        keras.metrics.MeanIoU(2).update_state([0, 1], [0, 1], np.array([0.5, 0.5]))


@pytest.mark.parametrize("make", [lambda: layers.AugMix(), lambda: layers.RandAugment()])
def test_drawn_changes_compute_in_16_bits(make):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        found = make()(np.full((2, 8, 8, 3), 90, "f"))
    finally:
        keras.config.set_dtype_policy("float32")
    assert found.shape == (2, 8, 8, 3) and np.isfinite(np.asarray(found, np.float32)).all()


def test_middles_of_images_of_any_size():
    layer = layers.CenterCrop(4, 5)
    compute = td.function(layer, input_signature=[td.TensorSpec([None, None, None, 1])])
    for size in ((8, 9), (3, 4), (4, 5), (2, 9)):
        images = np.random.default_rng(1).random((2, *size, 1)).astype("f")
        np.testing.assert_allclose(compute(images), layer(images), rtol=1e-5)


def test_pipelines_pass_masks_on():
    class Seen(layers.Layer):
        def call(self, x, training=False, mask=None):
            self.seen = training, mask is not None
            return x

    pipeline = layers.Pipeline([Seen(), Seen()])
    pipeline(np.array([0]), training=True, mask=np.array([0]))
    assert [layer.seen for layer in pipeline.layers] == [(True, True), (True, True)]


def test_lookups_come_back_with_the_size_of_their_vocabulary():
    layer = layers.IntegerLookup(vocabulary=[1, 2, 3])
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()


def test_settings_that_are_tuples_stay_tuples():
    layer = layers.RandomTranslation((-0.2, 0.1), 0.3)
    found = keras.saving.serialize_keras_object(layer)
    assert found["config"]["height_factor"] == (-0.2, 0.1)
    assert keras.saving.deserialize_keras_object(found).get_config() == layer.get_config()


def test_programs_add_what_is_theirs_to_configurations():
    class Own(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def get_config(self):
            return dict(units=self.units, **super().get_config())

    config = Own(3, name="own").get_config()
    assert set(config) == {"units", "name", "trainable", "dtype"}
    assert Own.from_config(config).units == 3


def test_files_that_say_a_class_is_a_program_s_own_are_refused():
    config = {"class_name": "Dense", "module": "keras.layers", "config": {"units": 1}}
    made = keras.saving.deserialize_keras_object(config | {"registered_name": "Dense"})
    assert isinstance(made, layers.Dense)
    with pytest.raises(ValueError, match="resolved to a Keras built-in"):
        keras.saving.deserialize_keras_object(config | {"registered_name": "builtins.eval"})


def test_other_numbers_of_examples_than_an_input_has():
    model = keras.Sequential([keras.Input((2,), batch_size=3), layers.Dense(1)])
    functional = keras.Model(model.inputs, model.outputs)
    for size in (2, 3):
        assert functional(np.ones((size, 2), "f")).shape == (size, 1)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_tables_in_8_bits_are_near_those_of_floats(dtype):
    token = np.array([[0, 2], [1, 1]])
    for make, x in (
        (lambda: layers.Dense(4, dtype=dtype), X),
        (lambda: layers.Embedding(3, 4, dtype=dtype), token),
        (lambda: layers.EinsumDense("abc,cd->abd", (None, 5), dtype=dtype), X),
    ):
        layer = make()
        exact = np.asarray(layer(x), np.float32)
        layer.quantize("int8")
        found = layer(x)
        assert found.dtype.name == layer.compute_dtype
        np.testing.assert_allclose(np.asarray(found, np.float32), exact, atol=0.03)


def test_the_way_back_of_an_embedding_with_other_tables():
    layer = layers.ReversibleEmbedding(3, 4)
    x = layer(np.array([[0, 2]]))
    exact = layer(x, reverse=True).numpy()
    layer.quantize("int8")
    np.testing.assert_allclose(layer(x, reverse=True), exact, atol=1e-3)
    layer.enable_lora(2)
    np.testing.assert_allclose(layer(x, reverse=True), exact, atol=1e-3)
    layer.lora_embeddings_b.assign(np.ones((2, 4)))
    assert np.abs(layer(x, reverse=True) - exact).max() > 1e-2
