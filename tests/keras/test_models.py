"""Sequential and subclassed models: building, layers, summary, training methods."""

import re

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import layers

RNG = np.random.default_rng(7)


def digits_like(count=120):
    """Four classes that a small network tells apart."""
    labels = np.arange(count) % 4
    x = RNG.normal(0, 0.3, (count, 8)).astype("f")
    x[np.arange(count), labels * 2] += 2.0
    return x, labels


def classifier(**settings):
    td.random.set_seed(0)
    model = keras.Sequential([keras.Input((8,)), layers.Dense(16, "relu"), layers.Dense(4)])
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **settings,
    )
    return model


class Net(keras.Model):
    def __init__(self, units=4):
        super().__init__()
        self.hidden = layers.Dense(16, "relu")
        self.drop = layers.Dropout(0.1)
        self.head = layers.Dense(units)

    def call(self, x, training=None):
        return self.head(self.drop(self.hidden(x), training=training))


def test_sequential_is_built_by_an_input_or_on_the_first_call():
    model = keras.Sequential([layers.Dense(3), layers.Dense(2)])
    assert not model.built and model.weights == []
    model(np.ones((5, 4), "f"))
    assert model.built and [tuple(w.shape) for w in model.weights] == [(4, 3), (3,), (3, 2), (2,)]
    for first in ([keras.Input((4,)), layers.Dense(3)], [layers.Dense(3, input_shape=(4,))]):
        ready = keras.Sequential([*first, layers.Dense(2)])
        assert ready.built and ready.count_params() == 4 * 3 + 3 + 3 * 2 + 2
        assert len(ready.layers) == 2
    model = keras.Sequential([layers.Dense(3)])
    model.build((None, 7))
    assert tuple(model.weights[0].shape) == (7, 3)


def test_sequential_grows_and_shrinks():
    model = keras.Sequential(name="net")
    model.add(keras.Input((4,)))
    model.add(layers.Dense(3))
    model.add(layers.Dense(2))
    assert model.compute_output_shape((None, 4)) == (None, 2)
    last = model.pop()
    assert model(np.ones((1, 4), "f")).shape == (1, 3) and last not in model.layers
    with pytest.raises(ValueError, match="should have unique names"):
        model.add(layers.Dense(3, name=model.layers[0].name))
    with pytest.raises(ValueError, match="Only instances of `keras.Layer`"):
        model.add(td.nn.relu)
    with pytest.raises(ValueError, match="instance instead of a class"):
        model.add(layers.Flatten)


def test_users_layers_in_a_sequential():
    class Double(layers.Layer):
        def call(self, x):
            return x * 2.0

    model = keras.Sequential([keras.Input((4,)), layers.Dense(3), Double(), layers.Dense(2)])
    assert len(model.weights) == 4, "the user's layer is traced for its output shape"
    assert model(np.ones((1, 4), "f")).shape == (1, 2)


def test_wrong_shapes_name_the_layer():
    with pytest.raises(ValueError, match=r'layer "conv" \(Conv2D\).*ndim=4, found ndim=2'):
        keras.Sequential([keras.Input((4,)), layers.Conv2D(2, 3, name="conv")])
    with pytest.raises(ValueError, match=r'"conv" \(Conv2D\): a window of \(9, 9\)'):
        keras.Sequential([keras.Input((4, 4, 1)), layers.Conv2D(2, 9, name="conv")])
    model = classifier()
    with pytest.raises(ValueError, match=r"axis -1 .*value 8.*\(2, 9\)"):
        model(np.ones((2, 9), "f"))


def test_a_subclass_can_be_built_before_its_first_call():
    net = Net()
    net.build((None, 8))
    assert [tuple(w.shape) for w in net.weights] == [(8, 16), (16,), (16, 4), (4,)]
    before = net.get_weights()
    np.testing.assert_array_equal(net(x=np.ones((2, 8), "f")), net(np.ones((2, 8), "f")))
    for a, b in zip(before, net.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_subclass_layers_and_lookup():
    net = Net()
    net(np.ones((1, 8), "f"))
    assert [x.name for x in net.layers] == [net.hidden.name, net.drop.name, net.head.name]
    assert net.get_layer(net.head.name) is net.head and net.get_layer(index=0) is net.hidden
    with pytest.raises(ValueError, match="no layer 'nothing'"):
        net.get_layer("nothing")
    with pytest.raises(ValueError, match="no index 9"):
        net.get_layer(index=9)
    assert len(net.trainable_variables) == 4


def test_summary(capsys):
    keras.utils.clear_session()
    model = keras.Sequential(
        [keras.Input((8, 8, 1)), layers.Conv2D(8, 3), layers.BatchNormalization(), layers.Flatten()]
    )
    model.summary()
    text = capsys.readouterr().out
    assert 'Model: "sequential"' in text
    assert "conv2d (Conv2D)" in text and "(None, 6, 6, 8)" in text and "(None, 288)" in text
    assert "Total params: 112" in text and "Non-trainable params: 16" in text
    texts = []
    Net().summary(print_fn=texts.append)
    (text,) = texts
    assert "0 (unbuilt)" in text


@pytest.mark.parametrize("eagerly", [False, True])
def test_fit_learns(eagerly):
    x, y = digits_like()
    model = classifier(run_eagerly=eagerly)
    history = model.fit(x, y, batch_size=32, epochs=6, verbose=0, validation_split=0.2)
    assert list(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert all(len(v) == 6 for v in history.history.values()) and history.epoch == list(range(6))
    assert history.history["loss"][-1] < 0.3 * history.history["loss"][0]
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert accuracy > 0.95 and loss < 0.4
    named = model.evaluate(x, y, verbose=0, return_dict=True)
    assert named == {"loss": loss, "accuracy": accuracy}
    outputs = model.predict(x, batch_size=50)
    assert outputs.shape == (120, 4)
    np.testing.assert_allclose(outputs, model(x), rtol=1e-5, atol=1e-5)


def test_graph_and_eager_training_agree():
    x, y = digits_like()
    losses = []
    for eagerly in (False, True):
        td.random.set_seed(3)
        model = classifier(run_eagerly=eagerly)
        losses.append(model.fit(x, y, epochs=3, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_a_subclass_trains_with_a_custom_step():
    class Stepped(Net):
        def train_step(self, data):
            x, y = data
            with td.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
            return {"mine": loss}

    x, y = digits_like()
    net = Stepped()
    net.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = net.fit(x, y, epochs=2, verbose=0)
    assert list(history.history) == ["mine"]


class Branching(keras.Model):
    """Control flow on tensors in `call`, in a layer below and in a method of its own."""

    def __init__(self):
        super().__init__()
        self.inner = Halving()
        self.head = layers.Dense(4)

    def call(self, x, training=None):
        x = self.inner(x)
        if td.reduce_mean(x) > 0:
            x = x * 2.0
        else:
            x = -x
        return self.head(self.shrunk(x))

    def shrunk(self, x):
        for i in td.range(3):
            x = x - 0.1 * td.cast(i, td.float32)
        return x


class Halving(layers.Layer):
    def call(self, x):
        while td.reduce_max(td.abs(x)) > 1.0:
            x = x / 2.0
        return x


def test_call_may_branch_on_tensors():
    x, y = digits_like(32)
    for seed in (0, 1):
        sign = 1.0 if seed else -1.0
        model = Branching()
        eager = model(sign * x)
        traced = td.function(model)
        np.testing.assert_allclose(traced(sign * x), eager, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(traced(-sign * x), model(-sign * x), rtol=1e-5, atol=1e-6)
    model = Branching()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss)
    history = model.fit(x, y, epochs=20, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]


def test_a_traced_training_step_with_autograph():
    x, y = digits_like(64)
    model, opt = Net(), keras.optimizers.Adam(0.05)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
            if td.math.is_nan(loss):
                loss = td.zeros_like(loss)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    losses = [float(step(x, y)) for _ in range(30)]
    assert losses[-1] < 0.2 * losses[0] and step.experimental_get_tracing_count() <= 2


def test_the_loss_is_weighted_by_batch_size():
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    x = np.arange(5, dtype="f")[:, None]
    value = model.evaluate(x, np.zeros_like(x), batch_size=4, verbose=0)
    np.testing.assert_allclose(value, (x**2).mean(), rtol=1e-6)


def test_sample_weights():
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    x = np.array([[1.0], [2.0]], "f")
    value = model.evaluate(x, x * 0, sample_weight=np.array([1.0, 0.0]), verbose=0)
    np.testing.assert_allclose(value, 0.5)


def test_iterables_of_batches():
    x, y = digits_like(40)
    model = classifier()
    data = [(x[:20], y[:20]), (x[20:], y[20:])]
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    assert len(history.history["val_loss"]) == 2
    assert model.fit(data, epochs=1, verbose=0, steps_per_epoch=1).history["loss"]
    with pytest.raises(ValueError, match="no batches"):
        model.fit([], verbose=0)
    with pytest.raises(ValueError, match="y is taken from x"):
        model.fit(iter(data), y, verbose=0)


def test_batch_methods():
    x, y = digits_like(16)
    model = classifier()
    first = model.train_on_batch(x, y)
    assert len(first) == 2
    assert set(model.test_on_batch(x, y, return_dict=True)) == {"loss", "accuracy"}
    np.testing.assert_allclose(model.predict_on_batch(x), model(x), rtol=1e-5, atol=1e-6)


def test_callbacks():
    x, y = digits_like(32)
    calls = []
    hook = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs=None: calls.append(("epoch", epoch)),
        on_train_batch_end=lambda batch, logs=None: calls.append(("batch", batch)),
    )
    classifier().fit(x, y, epochs=2, batch_size=16, verbose=0, callbacks=[hook])
    assert calls == [
        ("epoch", 0),
        ("batch", 0),
        ("batch", 1),
        ("epoch", 1),
        ("batch", 0),
        ("batch", 1),
    ]
    stop = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=2)
    history = classifier().fit(x, y, epochs=9, verbose=0, callbacks=[stop])
    assert len(history.epoch) == 3


def test_verbose_prints_a_line_an_epoch(capsys):
    x, y = digits_like(16)
    classifier().fit(x, y, epochs=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[::2] == ["Epoch 1/2", "Epoch 2/2"]
    assert re.fullmatch(r"1/1 - \d+s - \d+[mu]?s/step - accuracy: [\d.]+ - loss: [\d.]+", lines[3])


def test_training_needs_compile_and_matching_data():
    x, y = digits_like(16)
    with pytest.raises(ValueError, match="must be compiled first"):
        Net().fit(x, y)
    with pytest.raises(ValueError, match="as many examples"):
        classifier().fit(x, y[:3])
    net = Net()
    net.compile("adam")
    with pytest.raises(ValueError, match="compile it with a loss"):
        net.fit(x, y, verbose=0)
    net.compile("adam", "sparse")  # the loss is looked up where a batch needs it, as in Keras
    with pytest.raises(ValueError, match="Could not interpret loss identifier: sparse"):
        net.fit(x, y, verbose=0)


def test_accuracy_fits_the_labels():
    x, y = digits_like(40)
    for labels, head, loss in [
        (keras.utils.to_categorical(y), "softmax", "categorical_crossentropy"),
        (y, "softmax", "sparse_categorical_crossentropy"),
    ]:
        model = keras.Sequential([layers.Dense(4, head)])
        model.compile("adam", loss, metrics=["accuracy"])
        assert 0 <= model.evaluate(x, labels, verbose=0)[1] <= 1
    model = keras.Sequential([layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    assert isinstance(model.evaluate(x, (y > 1).astype("f"), verbose=0)[1], float)
    assert type(model.metrics[1]).__name__ == "BinaryAccuracy"


def test_weights_round_trip():
    a, b = classifier(), classifier()
    a.set_weights([w + 1 for w in a.get_weights()])
    b.set_weights(a.get_weights())
    x, _ = digits_like(8)
    np.testing.assert_array_equal(a(x), b(x))


def test_penalties_are_part_of_the_loss():
    x = np.ones((4, 2), "f")
    model = keras.Sequential([layers.Dense(1, kernel_regularizer=keras.regularizers.L2(1.0))])
    model.compile("sgd", "mse")
    value = model.evaluate(x, np.asarray(model(x)), verbose=0)
    np.testing.assert_allclose(value, (model.weights[0].numpy() ** 2).sum(), rtol=1e-5)


def test_validation_steps_end_a_validation_over_endless_data():
    model = td.keras.Sequential([td.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    x, y = np.arange(8.0, dtype="f4").reshape(8, 1), np.ones((8, 1), "f4")
    data = td.data.Dataset.from_tensor_slices((x, y)).batch(2).repeat()
    found = model.fit(
        data, epochs=2, steps_per_epoch=1, validation_data=data, validation_steps=3, verbose=0
    )
    wanted = model.evaluate(x[:6], y[:6], batch_size=2, verbose=0)
    np.testing.assert_allclose(found.history["val_loss"][-1], wanted[0], rtol=1e-6)
    assert len(found.history["val_mae"]) == 2


def test_optimizer_and_loss_are_attributes_that_programs_assign():
    class Own(td.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = td.keras.layers.Dense(1)
            self.loss = td.keras.losses.MeanSquaredError()
            self.optimizer = td.keras.optimizers.SGD(0.1)

        def call(self, x):
            return self.dense(x)

        @td.function
        def step(self, x, y):
            with td.GradientTape() as tape:
                loss = self.loss(y, self(x))
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)
    y = x.sum(1, keepdims=True)
    model = Own()
    losses = [float(model.step(x, y)) for _ in range(10)]
    assert losses[-1] < losses[0] and len(model.variables) == 2

    model.compile("adam", "mse")
    model.fit(x, y, epochs=1, verbose=0)
    assert type(model.optimizer).__name__ == "Adam"
    before = model.get_weights()
    model.optimizer = td.keras.optimizers.SGD(0.0)  # what is traced with the other is not used
    model.fit(x, y, epochs=1, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))


def test_a_subclass_may_keep_what_it_calls_inputs_optimizer_and_metrics():
    class Own(td.keras.Model):
        def __init__(self, **given):
            super().__init__()
            self.__dict__.update(given)
            self.inputs = td.keras.Input((3,))
            self.output = "what it gives"
            self.dense = td.keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

    rate = td.keras.optimizers.SGD(0.5)
    model = Own(optimizer=rate)
    assert model.inputs.shape == (None, 3) and model.output == "what it gives"
    assert model.optimizer is rate and model.metrics == []
    assert model(np.ones((2, 3), np.float32)).shape == (2, 1) and len(model.variables) == 2
    with pytest.raises(AttributeError, match="defines its own call"):
        _ = model.outputs


def test_names_of_models_are_those_of_keras():
    keras.utils.clear_session()
    x = keras.Input((2,))
    y = keras.layers.Dense(1)(x)

    class Own(keras.Model):
        pass

    made = [keras.Model(x, y), keras.Model(x, y), Own(x, y), keras.Sequential(), keras.Model(x, y)]
    names = ["functional", "functional_1", "own", "sequential", "functional_2"]
    assert [m.name for m in made] == names
    assert keras.Model(x, y, name="mine").name == "mine"
