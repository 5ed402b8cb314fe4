"""Programs of introductions to TensorFlow 2 (eager execution, Checkpoint, tf.data, tf.function,
TensorArray, tf.config), in own words, with `import treadle as tf`.

What each gives is what TensorFlow 2.21 gives: the same file with `import tensorflow as tf` passes,
but for the names of a checkpoint's files and the parts of the compiler that are asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import treadle as tf
from treadle.datasets import digits

# -- eager execution -----------------------------------------------------------------------------


def test_numbers_arrays_and_tensors_mix(capsys):
    print(tf.matmul([[2.0]], [[2.0]]))
    assert capsys.readouterr().out == "tf.Tensor([[4.]], shape=(1, 1), dtype=float32)\n"
    x, y = tf.add(1, 1), tf.add(np.array(1), np.array(1))
    z = np.multiply(x, y)
    assert type(z) is not tf.Tensor and z == 4
    three = tf.constant(np.array(2.0, dtype=np.float32)) + tf.constant(3.0) + 1
    assert three.numpy() == 6.0 and three.dtype == tf.float32


def test_a_dataset_is_iterated():
    dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5, 6])
    dataset = dataset.map(tf.square).shuffle(2).batch(2)
    batches = [batch.numpy() for batch in dataset]
    assert [len(batch) for batch in batches] == [2, 2, 2]
    assert sorted(np.concatenate(batches)) == [1, 4, 9, 16, 25, 36]
    assert [int(value) for value in tf.data.Dataset.range(100)] == list(range(100))


def gradient_function(f):
    """A function of x that gives the slope of f there."""

    def slope(x):
        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return slope


def test_gradient_functions_of_gradient_functions():
    def f(x):
        return tf.multiply(x, x)

    assert f(3.0).numpy() == 9
    first = gradient_function(f)
    second = gradient_function(first)
    assert first(3.0).numpy() == 6 and second(3.0).numpy() == 2
    constant = gradient_function(lambda x: second(x) * x)
    assert constant(3.0).numpy() == 2


def test_a_custom_gradient_stays_finite():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(dy):
            return dy * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    assert gradient_function(log1pexp)(0.0).numpy() == 0.5
    assert gradient_function(log1pexp)(100.0).numpy() == 1.0


class Convolutions:
    """Layers in a plain object: nothing but its methods knows that it is a model."""

    def __init__(self, data_format):
        self.input_shape = [-1, 8, 8, 1] if data_format == "channels_last" else [-1, 1, 8, 8]
        conv = {"padding": "same", "activation": tf.nn.relu, "data_format": data_format}
        self.conv1 = tf.keras.layers.Conv2D(8, 5, **conv)
        self.pool = tf.keras.layers.MaxPooling2D(
            (2, 2), (2, 2), padding="same", data_format=data_format
        )
        self.conv2 = tf.keras.layers.Conv2D(16, 5, **conv)
        self.dense1 = tf.keras.layers.Dense(64, activation=tf.nn.relu)
        self.dropout = tf.keras.layers.Dropout(0.5)
        self.dense2 = tf.keras.layers.Dense(10)

    def variables(self):
        layers = (self.conv1, self.conv2, self.dense1, self.dense2)
        return [variable for layer in layers for variable in layer.trainable_variables]

    def predict(self, inputs, training=False):
        x = tf.reshape(inputs, self.input_shape)
        x = self.pool(self.conv1(x))
        x = self.pool(self.conv2(x))
        x = tf.keras.layers.Flatten()(x)
        x = self.dropout(self.dense1(x), training=training)
        return self.dense2(x)


def loss_of(model, inputs, targets):
    scores = model.predict(inputs, training=True)
    return tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(logits=scores, labels=targets)
    )


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_an_eager_training_with_rows_of_classes(data_format):
    tf.random.set_seed(1)
    (images, labels), _ = digits.load_data()
    inputs = (images / 16).astype(np.float32).reshape(-1, 64)
    targets = np.eye(10, dtype=np.float32)[labels]
    model = Convolutions(data_format)
    optimizer = tf.keras.optimizers.Adam(learning_rate=1e-2)
    losses = []
    with tf.device("cpu:0"):
        for i in range(40):
            batch = slice(50 * i % 1400, 50 * i % 1400 + 50)
            with tf.GradientTape() as tape:
                loss = loss_of(model, inputs[batch], targets[batch])
            grads = tape.gradient(loss, model.variables())
            optimizer.apply_gradients(zip(grads, model.variables()))
            losses.append(loss.numpy())
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) / 2


def test_variables_are_saved_changed_and_restored(tmp_path):
    x, y = tf.Variable(10.0, name="x"), tf.Variable(5.0, name="y")
    saver = tf.train.Checkpoint(x=x, y=y)
    x.assign(2.0)
    path = saver.save(str(tmp_path / "ckpt"))
    x.assign(11.0)
    assert (x + y).numpy() == 16.0
    saver.restore(path)
    assert (x + y).numpy() == 7.0


def test_a_mean_of_what_it_is_given():
    my_mean = tf.keras.metrics.Mean(name="my_mean")
    my_mean(0.0)
    my_mean(10.0)
    assert my_mean.result().numpy() == 5.0


# -- a model and its data ------------------------------------------------------------------------


class Loader:
    """The digits, and batches of some of them by chance."""

    def __init__(self):
        (images, labels), (test_images, test_labels) = digits.load_data()
        self.train_data = np.expand_dims(images.astype(np.float32) / 16.0, axis=-1)
        self.test_data = np.expand_dims(test_images.astype(np.float32) / 16.0, axis=-1)
        self.train_label, self.test_label = labels.astype(np.int32), test_labels.astype(np.int32)
        self.num_train_data, self.num_test_data = len(self.train_data), len(self.test_data)
        self.random = np.random.RandomState(0)

    def get_batch(self, batch_size):
        index = self.random.randint(0, self.num_train_data, batch_size)
        return self.train_data[index, :], self.train_label[index]


class MLP(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.flatten = tf.keras.layers.Flatten()
        self.dense1 = tf.keras.layers.Dense(units=100, activation=tf.nn.relu)
        self.dense2 = tf.keras.layers.Dense(units=10)

    def call(self, inputs):
        x = self.flatten(inputs)
        x = self.dense1(x)
        x = self.dense2(x)
        return tf.nn.softmax(x)


def train_batch(model, optimizer, X, y):
    with tf.GradientTape() as tape:
        y_pred = model(X)
        loss = tf.keras.losses.sparse_categorical_crossentropy(y_true=y, y_pred=y_pred)
        loss = tf.reduce_mean(loss)
    grads = tape.gradient(loss, model.variables)
    optimizer.apply_gradients(grads_and_vars=zip(grads, model.variables))
    return loss


def test_a_model_is_trained_by_hand_and_measured():
    loader, model = Loader(), MLP()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.005)
    losses = [train_batch(model, optimizer, *loader.get_batch(50)).numpy() for _ in range(100)]
    assert losses[-1] < losses[0] / 2
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    for start in range(0, loader.num_test_data // 50 * 50, 50):
        y_pred = model.predict(loader.test_data[start : start + 50], verbose=0)
        accuracy.update_state(y_true=loader.test_label[start : start + 50], y_pred=y_pred)
    assert accuracy.result() > 0.8


class CountingAccuracy(tf.keras.metrics.Metric):
    """A metric of one's own: right answers and all answers in integer variables."""

    def __init__(self):
        super().__init__()
        zeros = tf.zeros_initializer()
        self.total = self.add_weight(name="total", dtype=tf.int32, initializer=zeros)
        self.count = self.add_weight(name="count", dtype=tf.int32, initializer=zeros)

    def update_state(self, y_true, y_pred, sample_weight=None):
        found = tf.argmax(y_pred, axis=-1, output_type=tf.int32)
        values = tf.cast(tf.equal(y_true, found), tf.int32)
        self.total.assign_add(tf.shape(y_true)[0])
        self.count.assign_add(tf.reduce_sum(values))

    def result(self):
        return self.count / self.total


def test_a_metric_of_integers():
    metric = CountingAccuracy()
    metric.update_state(np.array([0, 1, 1], np.int32), np.array([[2.0, 1], [0, 3], [1, 0]]))
    metric.update_state(np.array([0], np.int32), np.array([[2.0, 1]]))
    assert metric.result().numpy() == 0.75


# -- saving --------------------------------------------------------------------------------------


def test_a_checkpoint_is_restored_into_a_model_without_variables(tmp_path):
    loader, model = Loader(), MLP()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
    checkpoint = tf.train.Checkpoint(myAwesomeModel=model)
    prefix = str(tmp_path / "save" / "model.ckpt")
    for batch_index in range(1, 31):
        train_batch(model, optimizer, *loader.get_batch(50))
        if batch_index % 10 == 0:
            path = checkpoint.save(prefix)
    assert path == f"{prefix}-3" == tf.train.latest_checkpoint(str(tmp_path / "save"))

    restored = MLP()
    assert restored.variables == []
    checkpoint = tf.train.Checkpoint(myAwesomeModel=restored)
    checkpoint.restore(path)
    expected = model.predict(loader.test_data, verbose=0)
    np.testing.assert_allclose(restored.predict(loader.test_data, verbose=0), expected, rtol=1e-6)

    checkpoint.restore(f"{prefix}-1")
    assert not np.allclose(restored.predict(loader.test_data, verbose=0), expected)


def test_a_manager_keeps_the_last_three_by_the_number_of_the_batch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loader, model = Loader(), MLP()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
    checkpoint = tf.train.Checkpoint(myAwesomeModel=model, myAwesomeOptimizer=optimizer)
    manager = tf.train.CheckpointManager(
        checkpoint, directory="./save", checkpoint_name="model.ckpt", max_to_keep=3
    )
    for batch_index in range(1, 51):
        train_batch(model, optimizer, *loader.get_batch(50))
        if batch_index % 10 == 0:
            path = manager.save(checkpoint_number=batch_index)
            assert os.path.basename(path) == f"model.ckpt-{batch_index}"
    kept = [os.path.basename(path) for path in manager.checkpoints]
    assert kept == ["model.ckpt-30", "model.ckpt-40", "model.ckpt-50"]
    assert tf.train.latest_checkpoint("./save") == path


# -- tf.data -------------------------------------------------------------------------------------


def test_pairs_of_a_dataset(capsys):
    X, Y = tf.constant([2013, 2014, 2015]), tf.constant([12000, 14000, 15000])
    for x, y in tf.data.Dataset.from_tensor_slices((X, Y)):
        print(x.numpy(), y.numpy())
    assert capsys.readouterr().out == "2013 12000\n2014 14000\n2015 15000\n"
    iterator = iter(tf.data.Dataset.from_tensor_slices((X, Y)))
    first, second = next(iterator), next(iterator)
    assert [int(v) for v in (*first, *second)] == [2013, 12000, 2014, 14000]


def test_images_are_turned_batched_and_shuffled():
    loader = Loader()
    dataset = tf.data.Dataset.from_tensor_slices((loader.train_data, loader.train_label))

    def rot90(image, label):
        image = tf.image.rot90(image)
        return image, label

    turned = dataset.map(rot90)
    for (image, label), (plain, same) in zip(turned.take(3), dataset):
        np.testing.assert_array_equal(image.numpy()[:, :, 0], np.rot90(plain.numpy()[:, :, 0]))
        assert label.numpy() == same.numpy()
    for images, labels in turned.batch(4).take(2):
        assert images.shape == [4, 8, 8, 1] and labels.shape == [4]
    shuffled = dataset.shuffle(buffer_size=10000).batch(4)
    once, again = (np.concatenate([labels for _, labels in shuffled]) for _ in range(2))
    assert not np.array_equal(once, again)
    assert np.array_equal(np.sort(once), np.sort(again))


def test_fit_takes_arrays_and_datasets():
    loader = Loader()
    for as_dataset in (False, True):
        model = MLP()
        model.compile(
            optimizer=tf.keras.optimizers.Adam(learning_rate=0.01),
            loss=tf.keras.losses.sparse_categorical_crossentropy,
            metrics=[tf.keras.metrics.sparse_categorical_accuracy],
        )
        if as_dataset:
            data = tf.data.Dataset.from_tensor_slices((loader.train_data, loader.train_label))
            history = model.fit(data.shuffle(1500).batch(50), epochs=2, verbose=0)
        else:
            history = model.fit(
                x=loader.train_data, y=loader.train_label, epochs=2, batch_size=50, verbose=0
            )
        assert history.history["sparse_categorical_accuracy"][-1] > 0.8
        assert model.evaluate(loader.test_data, loader.test_label, verbose=0)[1] > 0.8


def write_images(folder, bright):
    folder.mkdir(parents=True)
    random = np.random.default_rng(int(bright))
    for i in range(12):
        size = random.integers(30, 60, 2)
        image = random.integers(0, 120, (*size, 3)) + (120 if bright else 0)
        jpeg = tf.io.encode_jpeg(image.astype(np.uint8))
        tf.io.write_file(str(folder / f"{i}.jpg"), jpeg)


def test_two_folders_of_photographs(tmp_path):
    cats, dogs = str(tmp_path / "train/cats") + "/", str(tmp_path / "train/dogs") + "/"
    write_images(Path(cats), bright=False)
    write_images(Path(dogs), bright=True)

    def _decode_and_resize(filename, label):
        image_string = tf.io.read_file(filename)
        image_decoded = tf.image.decode_jpeg(image_string)
        image_resized = tf.image.resize(image_decoded, [32, 32]) / 255.0
        return image_resized, label

    cat_names = tf.constant([cats + filename for filename in os.listdir(cats)])
    dog_names = tf.constant([dogs + filename for filename in os.listdir(dogs)])
    names = tf.concat([cat_names, dog_names], axis=-1)
    labels = tf.concat(
        [tf.zeros(cat_names.shape, dtype=tf.int32), tf.ones(dog_names.shape, dtype=tf.int32)],
        axis=-1,
    )
    dataset = tf.data.Dataset.from_tensor_slices((names, labels))
    dataset = dataset.map(
        map_func=_decode_and_resize, num_parallel_calls=tf.data.experimental.AUTOTUNE
    )
    dataset = dataset.shuffle(buffer_size=23000).batch(8)
    dataset = dataset.prefetch(tf.data.experimental.AUTOTUNE)
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(4, 3, activation="relu", input_shape=(32, 32, 3)),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(4, 5, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(8, activation="relu"),
        tf.keras.layers.Dense(2, activation="softmax"),
    ])
    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate=0.01),
        loss=tf.keras.losses.sparse_categorical_crossentropy,
        metrics=[tf.keras.metrics.sparse_categorical_accuracy],
    )
    model.fit(dataset, epochs=10, verbose=0)
    assert model.evaluate(dataset, verbose=0)[1] >= 0.9
    assert model.metrics_names[0] == "loss"


# -- tf.function ---------------------------------------------------------------------------------


def test_a_step_uses_what_is_named_later(capfd):
    @tf.function
    def train_one_step(X, y):
        with tf.GradientTape() as tape:
            y_pred = model(X)
            loss = tf.keras.losses.sparse_categorical_crossentropy(y_true=y, y_pred=y_pred)
            loss = tf.reduce_mean(loss)
            tf.print("loss", loss)
        grads = tape.gradient(loss, model.variables)
        optimizer.apply_gradients(grads_and_vars=zip(grads, model.variables))

    loader, model = Loader(), MLP()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    for _ in range(20):
        train_one_step(*loader.get_batch(50))
    words = capfd.readouterr().err.split()
    assert words[::2] == ["loss"] * 20 and float(words[-1]) < float(words[1])


def test_a_captured_variable_and_an_array(capsys):
    a = tf.Variable(0.0)

    @tf.function
    def g():
        a.assign(a + 1.0)
        return a

    for _ in range(3):
        print(g())
    shown = [f"tf.Tensor({n}.0, shape=(), dtype=float32)" for n in (1, 2, 3)]
    assert capsys.readouterr().out.splitlines() == shown

    @tf.function
    def array_write_and_read():
        arr = tf.TensorArray(dtype=tf.float32, size=3)
        arr = arr.write(0, tf.constant(0.0))
        arr = arr.write(1, tf.constant(1.0))
        arr = arr.write(2, tf.constant(2.0))
        return arr.read(0), arr.read(1), arr.read(2)

    print(*array_write_and_read())
    assert capsys.readouterr().out.strip() == " ".join(
        f"tf.Tensor({n}.0, shape=(), dtype=float32)" for n in (0, 1, 2)
    )


# -- tf.config -----------------------------------------------------------------------------------


def test_devices_by_the_older_names():
    experimental = tf.config.experimental
    gpus = experimental.list_physical_devices(device_type="GPU")
    cpus = experimental.list_physical_devices(device_type="CPU")
    assert str(cpus) == "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]"
    experimental.set_visible_devices(devices=gpus[0:2], device_type="GPU")
    assert experimental.get_visible_devices("CPU") == cpus
    for gpu in gpus:
        experimental.set_memory_growth(gpu, True)
    limits = [experimental.VirtualDeviceConfiguration(memory_limit=n) for n in (1024, 2048)]
    assert [limit.memory_limit for limit in limits] == [1024, 2048]
    assert experimental.get_virtual_device_configuration(cpus[0]) is None
