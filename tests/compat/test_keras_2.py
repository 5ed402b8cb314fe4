"""What Keras 2 has that Keras 3 has not, after `td.compat.as_tensorflow` with
``TF_USE_LEGACY_KERAS=1``: names, and arguments by position. Values are those of tf_keras 2.21."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.compat.replacement import convolution_sizes as sizes
from treadle.compat.replacement.locally_connected import LocallyConnected1D, LocallyConnected2D

BEGIN = """
import numpy as np
import treadle
treadle.compat.as_tensorflow()
import tensorflow as tf
k = tf.keras

def close(a, b):
    np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-4, atol=1e-5)
"""
ARGUMENTS = """
class Loss(k.losses.Loss):
    def __init__(self, reduction=k.losses.Reduction.AUTO, name="mine"):
        super().__init__(reduction, name)

    def call(self, a, b):
        return tf.reduce_mean((a - b) ** 2, -1)

a, b = np.ones((3, 2), "f"), np.zeros((3, 2), "f")
assert Loss().name == "mine" and float(Loss()(a, b)) == 1.0
assert Loss("none")(a, b).shape == [3] and float(Loss("sum")(a, b)) == 3.0
assert k.losses.MeanSquaredError("sum")(a, b) == 3.0

image = np.random.RandomState(0).randn(2, 3, 4, 3).astype("f")
norm = k.layers.BatchNormalization(-1, 0.5, 0.01, True, True, "ones", "ones", "zeros", "ones")
norm(image, training=True)
close(norm.moving_variance, 0.5 + 0.5 * image.var((0, 1, 2), ddof=1))
close(norm.beta, np.ones(3))
table = k.layers.Embedding(5, 2, "ones", None, None, None, True, 4)
assert table.mask_zero and table(tf.constant([[1]])).numpy().tolist() == [[[1.0, 1.0]]]
close(k.losses.sparse_categorical_crossentropy([1], [[1.0, 2.0]], True, -1), [0.313262])
named = k.Input((3,), 5, "named")
assert named.shape == [5, 3] and named.name == "named"
assert k.Model(named, k.layers.Dense(1)(named)).name == "model"
cell = k.layers.LSTMCell(2, "tanh", "sigmoid", True, "ones", "zeros", "ones", False)
assert not cell.unit_forget_bias and cell.use_bias
assert k.layers.GRU(2, "tanh", "sigmoid", True, "ones", "zeros", "ones", None, None, None, None,
                    None, None, None, 0.0, 0.0, True)(np.ones((1, 3, 2), "f")).shape == [1, 3, 2]
attention = k.layers.MultiHeadAttention(1, 2, kernel_initializer="ones")
x = np.random.RandomState(1).randn(1, 3, 2).astype("f")
mask = np.tril(np.ones((1, 3, 3), bool))
close(attention(x, x, x, mask), attention(x, x, x, attention_mask=mask))

model = k.Sequential([k.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
model.compile("sgd", "mse", ["mae"], [2.0])
y = np.zeros((3, 1), "f")
history = model.fit(a, y, 3, 1, 0, None, 0.0, None, False, None, np.array([1.0, 2.0, 0.0]),
                    workers=2, use_multiprocessing=False, max_queue_size=3).history
close(history["loss"], 2.0 * 4.0)
assert len(model.evaluate(a, y, 3, 0, None, None, None, 10, 1, False)) == 2
assert model.predict(a, workers=1, verbose=0).shape == (3, 1)
assert len(model.train_on_batch(a, y, None, None, True)) == 2
for wrong, words in (
    (lambda: model.train_on_batch(a, y, reset_metrics=False), "reset_metrics=False"),
    (lambda: model.compile("sgd", "mse", optimizer="adam"), "multiple values for optimizer"),
    (lambda: model.predict(a, 1, 0, None, None, 1, 1, False, 1), "takes 8 arguments"),
):
    try:
        wrong()
    except (NotImplementedError, TypeError) as error:
        assert words in str(error) and "program.py" in str(error), error
    else:
        raise AssertionError(words)

def batches():
    while True:
        yield a, y

model.compile("sgd", "mse")
assert len(model.fit_generator(batches(), 2, 2, 0, workers=1).history["loss"]) == 2
assert isinstance(model.evaluate_generator(batches(), 1, workers=3), float)
assert model.predict_generator(batches(), 2).shape == (6, 1)
for fused, freedom in ((None, 1), (True, 1), (False, 0)):
    norm = k.layers.BatchNormalization(momentum=0.5, fused=fused)
    norm(image, training=True)
    close(norm.moving_variance, 0.5 + 0.5 * image.var((0, 1, 2), ddof=freedom))

# Losses that are functions, and tensors of a model: those see what the same call has drawn.
class Penalized(k.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight("scale", shape=(2,), initializer="ones")
        self.add_loss(lambda: tf.reduce_sum(self.scale))

    def call(self, x):
        return x * self.scale

start = k.Input((2,))
model = k.Sequential([start, Penalized()])
assert [float(loss) for loss in model.losses] == [2.0]
drawn = k.layers.Lambda(lambda t: t + tf.random.normal(tf.shape(t)))(start)
model = k.Model(start, 2.0 * drawn)
model.add_loss(tf.reduce_mean((2.0 * drawn - model.output) ** 2) + tf.reduce_mean(start) * 3.0)
assert model(a).shape == (3, 2)
close(model.losses, [3.0])
assert start.ref() == start.ref() and len({start.ref(), drawn.ref()}) == 2
assert k.backend.cast_to_floatx(k.Input((2,), dtype="int32")).dtype == tf.float32

# Operators are TensorFlow's: NumPy's numbers take the dtype of the tensor.
given, number, row = k.Input((3,)), np.sqrt(2.0), np.ones(3)
values = np.array([[1.0, 2.0, 3.0]], "f")
tensor = tf.constant([1.0, 2.0, 3.0])
for result, wanted in (
    (number * given, number * values), (given * number, number * values),
    (row - given, 1.0 - values), (tensor + given, 2.0 * values), (tensor**given, values**values),
    (tf.ones([2, 1]) @ given, np.ones((2, 1)) @ values),
):
    assert result.dtype == tf.float32
    close(k.Model(given, result)(values), wanted)
assert k.Model(given, tensor > given)(values).numpy().tolist() == [[False] * 3]
"""
NAMES = """
from tensorflow.keras.layers.experimental import preprocessing
from tensorflow.keras import backend as K
from tensorflow.python.keras.utils import conv_utils
from tensorflow.python.layers import utils

assert preprocessing.Rescaling(0.5)(tf.ones([2])).numpy().tolist() == [0.5, 0.5]
assert k.callbacks.experimental.BackupAndRestore is k.callbacks.BackupAndRestore
assert conv_utils.deconv_output_length(5, 3, "valid", None, 2) == 11
assert utils.conv_output_length(7, 3, "same", 2) == 4
close(k.experimental.CosineDecay(1.0, 10)(5), 0.5)

random = np.random.RandomState(0)
a, b, y = (random.randn(8, n).astype("f") for n in (2, 3, 1))
linear = k.experimental.LinearModel(activation="tanh", kernel_initializer="ones")
close(linear([a, b]), np.tanh(a.sum(1) + b.sum(1)))
linear = k.experimental.LinearModel(2)
assert linear({"q": a, "p": b}).shape == [8, 2]
assert [w.shape for w in linear.dense_layers[0].weights] == [[3, 2]]
try:
    linear({"q": a})
except ValueError as error:
    assert "it lacks p" in str(error)
again = k.experimental.LinearModel.from_config(linear.get_config())
assert again.units == 2
linear = k.experimental.LinearModel(kernel_initializer="ones")
deep = k.Sequential([k.layers.Dense(1, kernel_initializer="ones")])
model = k.experimental.WideDeepModel(linear, deep, activation="tanh")
model.compile([k.optimizers.SGD(0.1), k.optimizers.Adam(0.01)], "mse", metrics=["mae"])
history = model.fit([a, b], y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
close(history["loss"], [3.6328, 3.4531])
close(deep.get_weights()[0], [0.9702, 1.0308, 0.9629])
model.compile("sgd", "mse")
model.train_on_batch([a, b], y)

x = tf.constant(a)
assert K.in_train_phase(x, -x, training=1) is x
close(K.in_train_phase(x, lambda: -x), -x)
close(K.in_test_phase(x, -x, training=1), -x)
close(tf.function(lambda t: K.in_train_phase(x, lambda: -x, training=t))(tf.constant(False)), -x)
with K.learning_phase_scope(1):
    assert K.in_train_phase(1, 2) == 1
assert K.in_train_phase(1, 2) == 2
out, mean, variance = K.normalize_batch_in_training(x, tf.constant([1.0, 2.0]), None, [0])
close(mean, a.mean(0)), close(variance, a.var(0))
close(out, (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-3) * [1.0, 2.0])
close(K.local_conv1d(tf.ones([1, 4, 2]), tf.ones([3, 4, 2]), (2,), (1,)), [4.0] * 6)
assert K.random_binomial([200], 0.9).numpy().mean() > 0.7
close(K.print_tensor(x, "x = "), a)

class Cell(k.layers.AbstractRNNCell):
    state_size = 2

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 2), initializer="ones")

    def call(self, x, states):
        h = tf.matmul(x, self.kernel) + states[0]
        return h, h

close(k.layers.RNN(Cell())(tf.ones([1, 3, 2])), [6.0, 6.0])
norm = k.layers.experimental.SyncBatchNormalization(momentum=0.5)
close(norm(x, training=True)[:1], ((a - a.mean(0)) / np.sqrt(a.var(0) + 1e-3))[:1])
"""
TENSORFLOW_1 = """
import tensorflow.compat.v1 as v1
from tensorflow.python.ops import check_ops, init_ops, init_ops_v2, nn_ops
from tensorflow.python.ops.control_flow_ops import with_dependencies
from tensorflow.python.training import training, training_util
from tensorflow.python.util import tf_contextlib

# Where operations compute at once, each call makes a variable.
a, b = v1.get_variable("x", initializer=1.0), v1.get_variable("x", initializer=np.float64(2.0))
assert a is not b and (float(a), float(b)) == (1.0, 2.0) and b.dtype == tf.float64
assert a.name == b.name == "x:0" and not v1.global_variables()
with v1.variable_scope("s", reuse=v1.AUTO_REUSE):
    assert v1.get_variable("c", [2]).shape == [2] and v1.get_variable("c", [3]).shape == [3]
with v1.variable_scope("new", reuse=True):
    assert v1.get_variable("c", [2]).name == "new/c:0"
shared = v1.make_template("shared", lambda: v1.get_variable("w", [2]))
assert shared() is shared() and shared.variables == [shared()]

x = tf.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
assert nn_ops.in_top_k(x, [2, 2], 1).numpy().tolist() == [True, False]
assert nn_ops.dropout(tf.ones([1000]), 0.9).numpy().astype(bool).mean() > 0.8
check_ops.assert_equal(1, 1, [x], 3, "equal")
assert init_ops_v2.Ones()([2], tf.int32).numpy().tolist() == [1, 1]
assert init_ops.Constant(3)([1]).numpy().tolist() == [3.0]
assert with_dependencies([x], x).shape == [2, 3]
assert training.AdamOptimizer is v1.train.AdamOptimizer
assert training_util.get_or_create_global_step().name == "global_step:0"
assert tf.math.nextafter(1, 0).numpy() == np.nextafter(np.float32(1), np.float32(0))
with tf_contextlib.contextmanager(lambda: iter([1]))() as one:
    assert one == 1
"""

# Models where graphs are meant.
GRAPHS = """
tf.compat.v1.disable_eager_execution()
backend = k.backend
x, y = np.ones((8, 3), "f"), np.zeros((8, 1), "f")


class Scaled(k.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(int(shape[-1]), 1), initializer="ones")
        self.two = tf.constant(2.0)

    def call(self, x):
        return tf.matmul(x, self.w) * self.two


inputs = k.Input((3,))
whole = Scaled()(inputs) + tf.reduce_sum(inputs, 1, keepdims=True)
model = k.Model(inputs, whole)
close(model.predict(x), np.full(8, 9.0))
(gradient,) = backend.gradients(tf.reduce_sum(whole), [inputs])
close(backend.function([inputs], [gradient])([x[:2]])[0], np.full((2, 3), 3.0))
inner = backend.function([model.input], [model.layers[1].output])
close(inner([x[:2]])[0], np.full(2, 6.0))
weights = backend.gradients(tf.reduce_mean(whole), model.trainable_weights)
close(backend.function([model.input], weights)([x])[0], np.full(3, 2.0))

session = tf.compat.v1.keras.backend.get_session()
close(session.run(model.output, {model.input: x[:1]}), 9.0)
fed = tf.compat.v1.placeholder(tf.float32, [None, 3])
close(session.run(model(fed) * 2.0, {fed: x[:1]}), 18.0)
(slope,) = tf.gradients(model.output * 2.0, model.input)
close(session.run(slope, {model.input: x[:1]}), [6.0] * 3)


def loss(a, b):
    return tf.reduce_mean(tf.square(a - b)) * tf.constant(0.5)


model.compile(k.optimizers.legacy.SGD(0.01), loss, metrics=["mae"])
history = model.fit(x, y, 8, 2, verbose=0).history
close(history["loss"], [40.5, 0.5 * 7.92**2])
close(history["mae"], [9.0, 7.92])
close(model.evaluate(x, y, 8, 0), [0.5 * 6.9696**2, 6.9696])
close(model.train_on_batch(x, y)[0], 0.5 * 6.9696**2)
made = k.Sequential([k.layers.Dense(4, input_shape=(3,)), k.layers.Lambda(lambda t: tf.exp(t))])
made.compile("adam", "mse")
made.fit(x, np.ones((8, 4), "f"), verbose=0)
assert made.predict(x, verbose=0).shape == (8, 4)
"""
# Functions of Lambda layers in configurations and files.
LAMBDAS = """
offset = 3.0


def made(scale, by):
    def scaled(x, more=1.0):
        return (x * scale + more + offset) * by[0]

    return scaled


class Counted(k.layers.Layer):
    def __init__(self, layers=2, **kwargs):
        super().__init__(**kwargs)
        self.layers = layers

    def get_config(self):
        return super().get_config() | {"layers": self.layers}


x = np.ones((1, 2), "f")
model = k.Sequential([
    k.layers.Lambda(made(2.0, [1.0]), input_shape=(2,)), Counted(),
    k.layers.Lambda(lambda x: tf.square(x), output_shape=(2,)), k.layers.Lambda(tf.nn.relu),
])
close(model.predict(x, verbose=0), [36.0, 36.0])
config = model.layers[0].get_config()
code, defaults, closure = config["function"]
assert config["function_type"] == "lambda" and config["module"] == "__main__", config
assert list(defaults) == [1.0] and list(closure) == [[1.0], 2.0], (defaults, closure)
assert config["output_shape"] is None and config["output_shape_type"] == "raw"
close(k.layers.Lambda.from_config(config)(x), [6.0, 6.0])
model.save("model.h5")
known = {"Counted": Counted, "relu": tf.nn.relu}
offset = 4.0
close(k.models.load_model("model.h5", known).predict(x, verbose=0), [49.0, 49.0])
close(k.models.clone_model(model).predict(x, verbose=0), [49.0, 49.0])
simple = k.Sequential([k.layers.Lambda(made(2.0, [1.0]), input_shape=(2,)), k.layers.Dense(1)])
simple.compile("adam", "mse")
simple.fit(x, np.ones((1, 1), "f"), verbose=0)
expected = simple.predict(x, verbose=0)
simple.save("folder")
again = k.models.load_model("folder")
close(again.predict(x, verbose=0), expected)
assert again.optimizer is not None
close(tf.saved_model.load("folder")(tf.constant(x)), expected)
tf.saved_model.save(simple, "another")
close(k.models.load_model("another").predict(x, verbose=0), expected)
simple.save("named", save_format="h5")
close(k.models.load_model("named").predict(x, verbose=0), expected)
simple.save("other.h5", save_format="tf")
close(k.models.load_model("other.h5", compile=False).predict(x, verbose=0), expected)
"""
# What libraries ask models and tapes for.
PRIVATE = """
model = k.Sequential([k.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
model.compile("sgd", "mse", loss_weights=[2.0])
x, y = np.ones((4, 2), "f"), np.zeros((4, 1), "f")
def v_ref(value):
    return value.experimental_ref() == value.ref()


seen = []


class Chosen(k.losses.Loss):
    def call(self, y_true, y_pred):
        seen.append((y_true.dtype.name, tuple(y_true.shape)))
        return -tf.reduce_sum(tf.one_hot(y_true[:, 0], 2) * tf.math.log(y_pred), -1)


class Scaled(k.layers.Layer):
    def call(self, x, **kwargs):
        return x * (3.0 if kwargs["training"] else 2.0)


def difference(y_true, y_pred):
    seen.append((y_true.dtype.name, tuple(y_true.shape)))
    return tf.abs(y_true - y_pred)


ones, labels = np.ones((4, 2), "f"), np.array([0, 1, 1, 0])
known = k.Sequential([k.layers.Dense(2, "softmax", kernel_initializer="zeros", input_shape=(2,))])
known.compile("sgd", Chosen())
close(known.train_on_batch(ones, labels), np.log(2.0))
known.compile("sgd", difference)
wide = tf.data.Dataset.from_tensors((ones, np.full(4, 2.0)))
close(known.fit(wide, verbose=0).history["loss"], 1.5)
assert {"int64", "float32"} == {dtype for dtype, _ in seen}, seen
assert all(len(shape) == 2 for _, shape in seen), seen
assert Chosen()(tf.constant([[1]]), tf.constant([[0.5, 0.5]])).dtype == tf.float32


class Wide(k.losses.Loss):
    def call(self, y_true, y_pred):
        return y_true - y_pred


assert Wide()(tf.constant([1.0], tf.float64), tf.constant([0.5], tf.float64)).dtype == tf.float64
close(Scaled()(tf.ones([2])), [2.0, 2.0])
close(Scaled()(tf.ones([2]), training=True), [3.0, 3.0])

rnn = k.layers.SimpleRNN(1, stateful=True, kernel_initializer="ones", batch_input_shape=(1, 1, 1))
steps = k.Sequential([rnn])
steps.predict(np.ones((1, 1, 1)), verbose=0)
assert float(rnn.states[0][0, 0]) > 0.5
steps.reset_states()
close(rnn.states[0], 0.0)
assert v_ref(tf.Variable(1.0)) and v_ref(tf.constant(1.0))

assert model.output_names == [model.layers[0].name] and len(model.input_names) == 1
compiled = model.compiled_loss
own = type(compiled)(
    compiled._user_losses, loss_weights=compiled._user_loss_weights,
    output_names=model.output_names, total_loss_mean=k.metrics.Mean(name="own"),
)
close(own(tf.constant(y), model(x)), 8.0)
assert own.metrics[0].name == "own"
close(own.metrics[0].result(), 8.0)
assert not any(float(metric.result()) for metric in model.metrics)
two = type(compiled)({"a": k.losses.MeanSquaredError("sum"), "b": "mae"})
outputs = {"a": tf.ones([2, 1]), "b": tf.zeros([2, 1])}
zeros = {"a": tf.zeros([2, 1]), "b": tf.zeros([2, 1])}
named = type(compiled)(
    {"a": "mse", "b": "mae"}, output_names=["dense_1", "dense_2"],
    total_loss_mean=k.metrics.Mean(),
)
close(named(zeros, outputs), 1.0)
(sums, means) = two.get_config()["losses"]
assert sums["config"]["reduction"] == "sum", sums

v = tf.Variable(3.0)
with tf.GradientTape() as once:
    z = v * v
assert once._tape is not None
close(once.gradient(z, v), 6.0)
assert once._tape is None
with tf.GradientTape(persistent=True) as tape:
    z = v * v
with tape._ensure_recording():
    later = z * 2.0
close(tape.gradient(later, v), 12.0)
assert tape._tape is not None
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "program", [ARGUMENTS, NAMES, TENSORFLOW_1, GRAPHS, LAMBDAS, PRIVATE], ids=list("an1glp")
)
def test_programs_for_keras_2(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BEGIN + program)
    source = str(Path(td.__file__).parents[1])
    environment = os.environ | {"TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": source}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("implementation", [1, 2, 3])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_windows_with_filters_of_their_own(
    implementation: int, padding: str, data_format: str
) -> None:
    random, first = np.random.default_rng(0), data_format == "channels_first"
    x = random.normal(size=(2, 2, 4, 5) if first else (2, 4, 5, 2)).astype(np.float32)
    options = {"padding": padding, "data_format": data_format, "implementation": implementation}
    if implementation == 1 and padding == "same":
        with pytest.raises(ValueError, match='only "valid" is supported'):
            LocallyConnected2D(3, (2, 3), **options)
        return
    layer = LocallyConnected2D(3, (2, 3), (1, 2), **options)
    layer.build(x.shape)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    y = np.moveaxis(np.asarray(layer(x)), 1, -1) if first else np.asarray(layer(x))
    rows, columns = y.shape[1:3]
    assert layer.compute_output_shape(x.shape) == layer(x).shape
    # One of the elements of a window after the other has the only one that is not 0: what comes
    # out is a weight, and the bias.
    kernel = np.asarray(layer.kernel)
    used = 0
    zeros = np.asarray(layer(np.zeros_like(x)))
    for place in itertools.product(*map(range, x.shape[1:])):
        one = np.zeros_like(x[:1])
        one[(0, *place)] = 1.0
        used += int((np.asarray(layer(one)) != zeros[:1]).sum())
    if implementation == 1:
        assert used == kernel.size == rows * columns * 2 * 3 * 2 * 3
    elif implementation == 3:
        assert used == kernel.size
    else:
        assert used == int(np.broadcast_to(layer._mask, kernel.shape).sum())


def test_values_of_locally_connected_layers() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(1, 4, 3)
    layer = LocallyConnected1D(1, 2, 2, kernel_initializer="ones", bias_initializer="ones")
    assert np.asarray(layer(x)).ravel().tolist() == [16.0, 52.0]
    first = LocallyConnected1D(2, 4, data_format="channels_first", kernel_initializer="ones")
    first.build((1, 3, 4))
    first.bias.assign([[5.0, 6.0]])
    assert np.asarray(first(x.reshape(1, 3, 4))).ravel().tolist() == [71.0, 72.0]
    with pytest.raises(ValueError, match="Unrecognized implementation mode: 4"):
        LocallyConnected1D(1, 2, implementation=4)
    with pytest.raises(ValueError, match="needs to know the sizes"):
        layer = LocallyConnected1D(1, 2)
        layer.build((None, None, 3))


def test_sizes_of_convolutions() -> None:
    assert [sizes.deconv_output_length(5, 3, p, o, 2, 2) for p in ("valid", "same", "full")
            for o in (None, 0, 1)] == [13, 13, 14, 10, 9, 10, 5, 5, 6]  # fmt: skip
    assert [sizes.conv_output_length(7, 3, p, 2) for p in ("valid", "same", "full", "causal")] == [
        3, 4, 5, 4,
    ]  # fmt: skip
    assert [sizes.conv_input_length(7, 3, p, 2) for p in ("valid", "same", "full")] == [15, 13, 11]
    assert sizes.conv_output_length(None, 3, "same", 1) is None
    assert sizes.normalize_tuple(2, 3, "strides") == (2, 2, 2)
    assert sizes.normalize_padding("SAME") == "same"
    assert [sizes.convert_data_format(f, n) for f, n in (
        ("channels_first", 5), ("channels_last", 4), ("channels_last", 3))] == [
        "NCDHW", "NHWC", "NWC",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="must be a tuple of 2 integers"):
        sizes.normalize_tuple((1, 0), 2, "strides")


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_biases_of_places_and_of_channels(rank: int) -> None:
    add = td.keras.backend.bias_add
    x, channels = np.zeros([2] + [3] * (rank - 1), np.float32), np.arange(3.0, dtype=np.float32)
    first = np.asarray(add(x, channels, data_format="channels_first"))
    assert first[0].reshape(3, -1)[:, 0].tolist() == [0.0, 1.0, 2.0]
    last = np.asarray(add(x, channels, data_format="channels_last"))
    assert last[0].reshape(-1, 3)[0].tolist() == [0.0, 1.0, 2.0]
    places = np.arange(3.0 ** (rank - 1), dtype=np.float32).reshape([3] * (rank - 1))
    assert np.array_equal(np.asarray(add(x, places))[1], places)
    with pytest.raises(ValueError, match="Unexpected bias dimensions 6"):
        add(x, np.zeros([1] * 6, np.float32))
