"""What programs of Keras do beside the plain fit: steps of their own, data that end, many parts.
The numbers are those of Keras 3.15 with TensorFlow."""

import json

import numpy as np
import pytest

import treadle as td

keras = td.keras
layers = keras.layers
RNG = np.random.default_rng(7)
X = RNG.normal(size=(24, 6)).astype("float32")
Y = RNG.integers(0, 3, 24)
Y2 = RNG.normal(size=(24, 2)).astype("float32")


def weighted(model):
    rng = np.random.default_rng(0)
    model.set_weights([
        (rng.normal(size=w.shape) * 0.3).astype(w.dtype) if w.ndim > 1 else w
        for w in model.get_weights()
    ])  # fmt: skip
    return model


def simple(**settings):
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(5, activation="tanh"),
         layers.Dense(3, activation="softmax")]
    )  # fmt: skip
    weighted(model).compile("sgd", "sparse_categorical_crossentropy", **settings)
    return model


class OwnStep(keras.Model):
    """The step of Keras's guide, which updates all metrics."""

    def __init__(self):
        super().__init__()
        self.inner = keras.Sequential([layers.Dense(4, activation="relu"), layers.Dense(3)])
        self.mine = keras.metrics.Mean(name="mine")

    def call(self, x, training=False):
        return self.inner(x, training=training)

    def train_step(self, data):
        x, y = data
        with td.GradientTape() as tape:
            pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=pred)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.mine.update_state(loss)
        for metric in self.metrics:
            if metric.name not in ("loss", "mine"):
                metric.update_state(y, pred)
        return {metric.name: metric.result() for metric in self.metrics}


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_of_a_program_updates_metrics_that_wait_for_shapes(eager):
    model = OwnStep()
    model(X[:1])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    weighted(model).compile("adam", loss, metrics=["accuracy"], run_eagerly=eager)
    assert [m.name for m in model.metrics] == ["loss", "compile_metrics", "mine"]
    history = model.fit(X, Y, epochs=2, batch_size=8, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["mine"], [1.0988552, 1.0958790], rtol=1e-5)
    np.testing.assert_allclose(history["accuracy"], [0.5, 0.5], rtol=1e-6)


def test_an_epoch_ends_with_its_data():
    data = td.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    model = simple()
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit(data, epochs=2, steps_per_epoch=5, verbose=0).history
    assert int(model.optimizer.iterations.numpy()) == 6
    np.testing.assert_allclose(history["loss"], [1.0903708, 1.0863886], rtol=1e-5)
    model = simple()
    with pytest.warns(UserWarning, match="ran out of data"):  # the second epoch has one batch
        model.fit(data, epochs=3, steps_per_epoch=2, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == 5


def test_functions_of_one_batch_begin_anew():
    model = simple(metrics=["accuracy"])
    np.testing.assert_allclose(model.train_on_batch(X[:8], Y[:8]), [1.1026757, 0.375], rtol=1e-5)
    first = model.test_on_batch(X, Y)
    assert model.test_on_batch(X, Y) == first


def test_one_loss_of_two_outputs_has_no_name_of_its_own():
    inputs = keras.Input((6,))
    outputs = [layers.Dense(3, activation="softmax", name="p")(inputs),
               layers.Dense(2, name="q")(inputs)]  # fmt: skip
    model = weighted(keras.Model(inputs, outputs))
    model.compile("sgd", {"p": "sparse_categorical_crossentropy", "q": None})
    options = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    history = model.fit(X, {"p": Y, "q": Y2}, **options).history
    assert set(history) == {"loss"}
    np.testing.assert_allclose(history["loss"], [1.0540017, 1.0489625], rtol=1e-5)
    model.compile("sgd", {"p": "sparse_categorical_crossentropy", "q": "mse"})
    with pytest.raises(ValueError, match="class_weight goes with models of one output"):
        model.fit(X, {"p": Y, "q": Y2}, class_weight={0: 2.0}, **options)


def test_faults_are_named():
    with pytest.raises(ValueError, match="needs labels, and there are none"):
        simple().evaluate(X, verbose=0)
    with pytest.raises(ValueError, match="takes one input, got 2"):
        simple().predict([X, X], verbose=0)
    model = keras.Sequential([keras.Input((None,)), layers.Lambda(lambda x: x * 2.0)])
    parts = [np.ones((2, 3), np.float32), np.ones((1, 2), np.float32)]
    found = model.predict(iter(parts), verbose=0)
    assert found.to_list() == [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [2.0, 2.0]]


def penalty(make, *inputs, scale=1.0):
    """The loss of a layer with an activity regularizer beside that of its results."""
    layer = make(activity_regularizer=keras.regularizers.L2(0.1))
    result = np.asarray(layer(*inputs))
    assert "activity_regularizer" in layer.get_config()
    again = type(layer).from_config(layer.get_config())
    assert again.activity_regularizer.get_config() == layer.activity_regularizer.get_config()
    return [float(v) for v in layer.losses], 0.1 * float((result**2).sum()) / len(result)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda **k: layers.Conv2D(2, 2, **k), (2, 4, 4, 3)),
        (lambda **k: layers.Conv1DTranspose(2, 2, **k), (2, 4, 3)),
        (lambda **k: layers.SeparableConv1D(2, 2, **k), (2, 4, 3)),
        (lambda **k: layers.DepthwiseConv2D(2, **k), (2, 4, 4, 3)),
        (lambda **k: layers.LSTM(3, **k), (2, 4, 3)),
        (lambda **k: layers.GRU(3, return_sequences=True, **k), (2, 4, 3)),
        (lambda **k: layers.ConvLSTM1D(2, 2, **k), (2, 3, 4, 3)),
        (lambda **k: layers.EinsumDense("ab,bc->ac", 3, **k), (2, 4)),
    ],
)
def test_activity_regularizers_of_layers(make, shape):
    found, expected = penalty(make, np.sin(np.arange(np.prod(shape))).reshape(shape))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def test_activity_regularizers_of_attention():
    x = np.sin(np.arange(24)).reshape(2, 4, 3).astype("float32")
    ours, _ = penalty(lambda **k: layers.MultiHeadAttention(2, 3, **k), x, x)
    assert len(ours) == 4 and min(ours) > 0  # of the projections
    ours, of_results = penalty(lambda **k: layers.GroupQueryAttention(4, 2, 1, **k), x, x)
    assert len(ours) == 5  # and of the results, too
    assert sum(abs(v - of_results) < 1e-5 for v in ours) == 2


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_layers_of_a_policy_give_its_dtype(policy):
    x = np.ones((2, 4, 3), np.float32)
    images = np.ones((1, 4, 4, 3), np.float32)
    kind = policy.removeprefix("mixed_")
    assert layers.MultiHeadAttention(2, 3, dtype=policy)(x, x).dtype.name == kind
    assert layers.GroupQueryAttention(4, 2, 1, dtype=policy)(x, x).dtype.name == kind
    assert layers.Rescaling(0.5, dtype=policy)(x).dtype.name == kind
    assert layers.CenterCrop(2, 2, dtype=policy)(images).dtype.name == kind
    inner = layers.MultiHeadAttention(2, 3, dtype=policy)
    inner.build((2, 4, 3), (2, 4, 3))
    assert inner.query_dense.dtype_policy.name == policy


def test_losses_and_metrics_keep_their_dtype():
    loss, metric = keras.losses.MeanSquaredError(dtype="float16"), keras.metrics.Mean()
    for thing in (loss, metric):
        with pytest.raises(AttributeError):
            thing.dtype = "bfloat16"
    # Counts are of floatx, whichever dtype the metric has, as in Keras.
    counted = keras.metrics.Precision(dtype="float64")
    counted.update_state([1, 0, 1], [0.9, 0.8, 0.3])
    assert counted.result().dtype == td.float32 and counted.dtype == "float64"
    mean = keras.metrics.Mean(dtype="float64")
    mean.update_state([1.0, 2.0])
    assert mean.result().dtype == td.float64


def test_layers_say_what_build_and_masks_must_be():
    class Wrong(layers.Layer):
        def build(self, foo_shape, bar):
            pass

        def call(self, foo, bar):
            return foo + bar

    with pytest.raises(ValueError, match="argument `bar`, which does not end in `_shape`"):
        Wrong()(X, X)
    attention = layers.AdditiveAttention()
    x = np.ones((1, 2, 2), np.float32)
    with pytest.raises(ValueError, match=r"takes a list \[query, value\]"):
        attention(x)
    with pytest.raises(ValueError, match="the mask of a call is a list"):
        attention([x, x], mask=x)
    with pytest.raises(ValueError, match="length 2 or 3"):
        attention([x, x], mask=[x])


def test_windows_of_time_series_are_shuffled_anew_for_each_pass():
    data = np.arange(12)

    def windows(seed):
        found = keras.utils.timeseries_dataset_from_array(
            data, None, 5, batch_size=1, shuffle=True, seed=seed
        )
        return [[b.numpy().tolist() for b in found] for _ in range(2)]

    first, second = windows(3)
    assert sorted(first) == sorted(second) and first != second
    assert windows(3) == [first, second]


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_negative_numbers_of_rows_count_from_the_end(kind):
    table = keras.layers.Embedding(5, 2)
    rows = np.asarray(table(np.array([-1, -5, 1], kind)))
    np.testing.assert_array_equal(rows, table.get_weights()[0][[4, 0, 1]])
    for outside in (5, -6):
        with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
            table(np.array([outside], kind))


def test_configs_of_metrics_have_what_keras_takes():
    metric = keras.metrics.BinaryCrossentropy(label_smoothing=0.1)
    assert set(metric.get_config()) == {"name", "dtype", "from_logits", "label_smoothing"}
    along = keras.metrics.BinaryCrossentropy(axis=1)
    assert keras.metrics.BinaryCrossentropy.from_config(along.get_config())._settings["axis"] == 1


def test_tables_of_pandas_are_arrays_and_a_series_is_a_column():
    pandas = pytest.importorskip("pandas")
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
    y = x.sum(1)

    def history(x, y, **given):
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
        found = model.fit(x, y, batch_size=2, shuffle=False, verbose=0, **given).history
        return found["loss"], model.predict(x, verbose=0)

    frame, series = pandas.DataFrame(x, columns=list("abc")), pandas.Series(y)
    loss, predicted = history(x, y[:, None], sample_weight=y)
    found, own = history(frame, series, sample_weight=series)
    assert loss == found
    np.testing.assert_array_equal(own, predicted)
    np.testing.assert_array_equal(history({"a": frame}["a"], series, validation_split=0.5)[0],
                                  history(x[:2], y[:2, None])[0])  # fmt: skip


def test_what_is_not_built_or_adapted_says_so():
    with pytest.raises(ValueError, match="isn't built"):
        keras.layers.Dense(1).count_params()
    for layer, value in (
        (keras.layers.StringLookup(), ["a"]), (keras.layers.IntegerLookup(), [3]),
        (keras.layers.TextVectorization(), ["a b"]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="no vocabulary"):
            layer(value)
        model = keras.Sequential([keras.Input((), dtype=td.as_dtype("string") if isinstance(
            value[0], str) else "int64"), layer])  # shapes are known before  # fmt: skip
        with pytest.raises(RuntimeError, match="no vocabulary"):
            model.predict(np.array(value), verbose=0)
        layer.adapt(np.array(value))
        assert np.max(model.predict(np.array(value), verbose=0)) >= 1
    texts = np.array(["a b", "b c|b"])
    for mode in ("multi_hot", "tf_idf"):  # of any width before the vocabulary is there
        layer = keras.layers.TextVectorization(output_mode=mode)
        model = keras.Sequential([keras.Input((), dtype="string"), layer])
        assert model.output_shape == (None, None)
        layer.adapt(texts)
        assert model(texts).shape == (2, 4)
    layer = keras.layers.TextVectorization(
        split=lambda text: td.strings.split(text, sep="|"), standardize=None,
        vocabulary=["a b", "b"],
    )
    assert layer(texts).numpy().tolist() == [[2, 0], [1, 3]]
    assert keras.Sequential([layer, keras.layers.Embedding(4, 2)])(td.constant(texts)).shape[2] == 2
    with pytest.raises(ValueError, match="ngrams"):
        keras.layers.TextVectorization(ngrams="two")
    empty = keras.layers.StringLookup()
    empty.set_vocabulary(["[UNK]"])
    assert empty(["a"]).numpy().tolist() == [0]
    bins = keras.layers.Discretization(num_bins=4, output_mode="one_hot")
    assert bins.compute_output_shape((None, 3)) == (None, 3, 4)
    with pytest.raises(ValueError, match="no boundaries"):
        bins([1.0])
    with pytest.raises(ValueError, match="unsupported arguments: foo"):
        keras.layers.Dense(1, foo=2)


def test_axes_and_settings_are_kept_as_keras_has_them():
    layer = keras.layers.LayerNormalization(axis=[1, -1])
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    layer.build(x.shape)
    assert layer.gamma.shape == (3, 4) and layer.axis == [-1, 1]
    gamma = np.arange(12, dtype=np.float32).reshape(3, 4)
    layer.gamma.assign(gamma)
    normal = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3)
    np.testing.assert_allclose(layer(x), normal * gamma.reshape(4, 3), rtol=1e-5)
    attention = keras.layers.GroupQueryAttention(2, 4, 2)
    with pytest.raises(ValueError, match="must be equal"):
        attention(np.ones((2, 4, 8)), np.ones((2, 2, 7)))
    both = keras.layers.Bidirectional(keras.layers.LSTM(1, use_cudnn=False))
    assert both.forward_layer.use_cudnn is False
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=3)
    assert model.get_compile_config()["steps_per_execution"] == 3
    rows = keras.utils.timeseries_dataset_from_array(
        np.arange(10.0), np.arange(10.0), 2, start_index=3, end_index=7, batch_size=None
    )
    assert [(a.numpy().tolist(), float(b)) for a, b in rows] == [
        ([3.0, 4.0], 3.0), ([4.0, 5.0], 4.0), ([5.0, 6.0], 5.0)
    ]  # fmt: skip
    found = keras.utils.normalize([1, 2, 2], order=1)
    assert found.dtype == "float32" and found.numpy().tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert keras.utils.to_categorical([0, 2]).dtype == np.float64


def test_scales_of_channels_first(monkeypatch):
    monkeypatch.setattr("treadle.keras.config.image_data_format", lambda: "channels_first")
    x = np.ones((2, 3, 4, 4), np.float32)
    found = keras.layers.Rescaling([1.0, 2.0, 3.0], 0.5)(x)
    np.testing.assert_array_equal(found[:, :, 1, 2], [[1.5, 2.5, 3.5]] * 2)
    arrays = keras.layers.Rescaling(np.array([1.0, 2.0]), np.float32(0.5))
    again = keras.layers.Rescaling.from_config(json.loads(json.dumps(arrays.get_config())))
    np.testing.assert_array_equal(again.scale, [1.0, 2.0])


@keras.saving.register_keras_serializable("test_programs")
class WithStart(keras.layers.Layer):
    """Its `build` needs more than a shape, which its own description has."""

    def build(self, input_shape, start):
        self.start, self.w = start, self.add_weight(shape=(input_shape[-1],), initializer=start)

    def call(self, inputs):
        return inputs * self.w

    def get_build_config(self):
        return super().get_build_config() | {"start": self.start}

    def build_from_config(self, config):
        self.build(config["input_shape"], config["start"])


def test_models_build_layers_by_what_these_describe(tmp_path):
    layer = WithStart()
    layer.build((None, 6), "ones")
    start = keras.Input((6,))
    for model in (keras.Sequential([layer]), keras.Model(start, layer(start))):
        model(X)
        model.save(tmp_path / "m.keras")
        again = keras.models.load_model(tmp_path / "m.keras")
        assert again.layers[-1].start == "ones"
        np.testing.assert_array_equal(again(X), X)
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([1], [1.0, 2.0])
    assert rate.get_config()["name"] == rate.name == "PiecewiseConstant"
    found = keras.initializers.serialize(keras.initializers.Ones())
    assert found["module"] == "keras.initializers" and found["registered_name"] is None


@keras.saving.register_keras_serializable("test_programs")
def halved(y, found):
    return td.reduce_mean(td.square(y - found)) / 2


@keras.saving.register_keras_serializable("test_programs")
class WithLoss(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)

    def compile(self, optimizer, loss_fn):
        super().compile(optimizer=optimizer, loss=loss_fn)
        self.given = optimizer, loss_fn

    def get_compile_config(self):
        return dict(zip(("optimizer", "loss_fn"), self.given, strict=True))

    def compile_from_config(self, config):
        made = {k: keras.saving.deserialize_keras_object(v) for k, v in config.items()}
        self.compile(**made)


def test_a_program_describes_how_it_is_compiled(tmp_path):
    model = WithLoss()
    model.compile("sgd", halved)
    model.fit(X, Y2, verbose=0)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert again.given == ("sgd", halved)
    assert again.evaluate(X, Y2, verbose=0) == pytest.approx(model.evaluate(X, Y2, verbose=0))
