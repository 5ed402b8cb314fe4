"""Programs of TensorFlow's guides (functions, AutoGraph, automatic differentiation, variables,
modules, training loops, custom layers) and of tutorials, with `import treadle as tf`.

What each gives is what TensorFlow 2.21 gives, or what plain Python does where that refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as tf


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that cannot be compiled is an error here, not a warning."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def native(*functions: Any) -> bool:
    """Whether all traces of the functions became native programs."""
    return all(c.executable.mode == "native" for f in functions for c in f.concrete_functions)


# -- functions -----------------------------------------------------------------------------------


def test_which_calls_trace(capfd):
    @tf.function
    def f(x):
        print("The function is running in Python")
        tf.print(x)

    for x in (
        tf.constant(1, tf.int32), tf.constant(2, tf.int32), np.array(2, np.int32),
        tf.constant(0.1), tf.constant(0.2), 1, 2, 1, 0.1, 0.2, 0.1,
    ):  # fmt: skip
        f(x)
    printed = capfd.readouterr()
    assert printed.out.count("The function is running in Python") == 6
    assert printed.err.split() == "1 2 2 0.1 0.2 1 2 1 0.1 0.2 0.1".split()
    assert f.experimental_get_tracing_count() == 6 and native(f)


def test_one_trace_for_an_input_signature():
    traces = []

    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x):
        traces.append(x.shape.as_list())
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    assert next_collatz(tf.constant([1, 2])).numpy().tolist() == [4, 1]
    assert next_collatz(tf.constant([1, 2, 3, 4])).numpy().tolist() == [4, 1, 10, 2]
    with pytest.raises(TypeError):
        next_collatz(tf.constant([[1, 2], [3, 4]]))
    assert traces == [[None]] and native(next_collatz)


def test_concrete_functions():
    double = tf.function(lambda a: a + a)
    concrete = double.get_concrete_function(tf.TensorSpec([], tf.int32))
    assert int(concrete(tf.constant(7))) == 14 and int(concrete(a=tf.constant(3))) == 6
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        concrete(tf.constant(1.0))


def test_python_arguments_and_methods():
    class Model(tf.Module):
        def __init__(self):
            self.bias = tf.Variable(0.0)
            self.weight = tf.Variable(2.0)

    @tf.function
    def evaluate(model, x, *, scale=1):
        return (model.weight * x + model.bias) * scale

    model, x = Model(), tf.constant(10.0)
    assert float(evaluate(model, x)) == 20.0
    model.bias.assign_add(5.0)
    assert float(evaluate(model, x)) == 25.0
    assert float(evaluate(Model(), x, scale=2)) == 40.0
    assert evaluate.experimental_get_tracing_count() == 2

    class Counter(tf.Module):
        def __init__(self):
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    first, second = Counter(), Counter()
    assert [int(first()), int(first()), int(second())] == [1, 2, 1]


def test_variables_keep_their_value():
    a = tf.Variable(0.0)

    @tf.function
    def g():
        a.assign(a + 1.0)
        return a

    shown = [str(g()) for _ in range(3)]
    assert shown == [f"tf.Tensor({i}.0, shape=(), dtype=float32)" for i in (1, 2, 3)]


# -- AutoGraph -----------------------------------------------------------------------------------


def test_square_if_positive():
    @tf.function
    def square_if_positive(x):
        if x > 0:
            x = x * x
        else:
            x = 0
        return x

    assert str(square_if_positive(tf.constant(1))) == "tf.Tensor(1, shape=(), dtype=int32)"
    assert int(square_if_positive(tf.constant(-1))) == 0
    assert "if_stmt" in tf.autograph.to_code(square_if_positive.python_function)


def test_fizzbuzz(capfd):
    @tf.function
    def fizzbuzz(n):
        for i in tf.range(1, n + 1):
            print("tracing")
            if i % 15 == 0:
                tf.print("fizzbuzz")
            elif i % 3 == 0:
                tf.print("fizz")
            elif i % 5 == 0:
                tf.print("buzz")
            else:
                tf.print(i)

    fizzbuzz(tf.constant(5))
    fizzbuzz(tf.constant(15))
    printed = capfd.readouterr()
    assert printed.out.split() == ["tracing"]
    assert printed.err.split()[:5] == ["1", "2", "fizz", "4", "buzz"]
    assert printed.err.split()[-1] == "fizzbuzz" and native(fizzbuzz)


def test_rnn_over_time():
    @tf.function
    def dynamic_rnn(step, inputs, state):
        inputs = tf.transpose(inputs, [1, 0, 2])
        length = tf.shape(inputs)[0]
        states = tf.TensorArray(tf.float32, size=length)
        for i in tf.range(length):
            state = step(inputs[i], state)
            states = states.write(i, state)
        return tf.transpose(states.stack(), [1, 0, 2])

    x = tf.reshape(tf.range(24, dtype=tf.float32), [2, 4, 3])
    result = dynamic_rnn(lambda i, s: i + s, x, tf.zeros([2, 3]))
    np.testing.assert_allclose(result, np.cumsum(x, axis=1))
    assert native(dynamic_rnn)


def test_arrays_of_tensors():
    @tf.function
    def fibonacci(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)
        ta = ta.write(0, 0)
        ta = ta.write(1, 1)
        for i in tf.range(2, n):
            ta = ta.write(i, ta.read(i - 1) + ta.read(i - 2))
        return ta.stack()

    assert fibonacci(tf.constant(10)).numpy().tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert native(fibonacci)


def test_power_iteration():
    @tf.function
    def power(a):
        v = tf.ones([tf.shape(a)[0], 1])
        last, current = tf.constant(0.0), tf.constant(1.0)
        while tf.abs(current - last) > 1e-6:
            last = current
            v = a @ v
            current = tf.norm(v)
            v = v / current
        return current

    assert f"{power(tf.constant([[2.0, 1.0], [1.0, 3.0]])):.4f}" == "3.6180"
    assert native(power)


# -- automatic differentiation -------------------------------------------------------------------


def test_gradients_of_a_model():
    w = tf.Variable(tf.ones((3, 2)), name="w")
    b = tf.Variable(tf.zeros(2, dtype=tf.float32), name="b")
    x = [[1.0, 2.0, 3.0]]
    with tf.GradientTape(persistent=True) as tape:
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    grad = tape.gradient(loss, {"w": w, "b": b})
    assert grad["b"].numpy().tolist() == [6.0, 6.0]
    assert grad["w"].numpy().tolist() == [[6.0, 6.0], [12.0, 12.0], [18.0, 18.0]]


def test_what_is_watched():
    x0 = tf.Variable(3.0, name="x0")
    x1 = tf.Variable(3.0, name="x1", trainable=False)
    x2 = tf.Variable(2.0, name="x2") + 1.0
    x3 = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x0**2 + x1**2 + x2**2
    gradients = tape.gradient(y, [x0, x1, x2, x3])
    assert [None if g is None else float(g) for g in gradients] == [6.0, None, None, None]
    assert [v.name for v in tape.watched_variables()] == ["x0:0"]


def test_control_flow_chooses_a_variable():
    x, v0, v1 = tf.constant(1.0), tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = v0 if x > 0.0 else v1**2
    assert float(tape.gradient(result, v0)) == 1.0
    assert tape.gradient(result, v1) is None and tape.gradient(result, x) is None


def test_stopping_and_custom_gradients():
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y_sq = y * y
        z = x * x + y_sq + tf.stop_gradient(x * y)
    grad = tape.gradient(z, {"x": x, "y": y})
    assert float(grad["x"]) == 4.0 and grad["y"] is None

    @tf.custom_gradient
    def clip_gradients(y):
        return y, lambda dy: tf.clip_by_norm(dy, 0.5)

    @tf.function
    def slope(v):
        with tf.GradientTape() as tape:
            output = clip_gradients(v * v)
        return tape.gradient(output, v)

    assert float(slope(tf.Variable(2.0))) == 2.0 and native(slope)


def test_jacobians_and_hessians():
    x = tf.linspace(-10.0, 10.0, 201)
    delta = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)
    assert abs(float(tf.reduce_sum(tape.jacobian(y, delta))) - 10.0) < 0.01
    layer = tf.keras.layers.Dense(3, activation=tf.nn.elu)
    x = tf.ones([7, 5])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(layer(x) ** 2)
        gradient = inner.gradient(loss, layer.kernel)
    assert outer.jacobian(gradient, layer.kernel).shape == (5, 3, 5, 3)


def test_newtons_method():
    x = tf.Variable(3.0)

    @tf.function
    def newton():
        with tf.GradientTape() as t2:
            with tf.GradientTape() as t1:
                f = x**4 - 3 * x**2 + 2 * x
            g = t1.gradient(f, x)
        x.assign_sub(g / t2.gradient(g, x))
        return f

    for _ in range(10):
        newton()
    assert abs(float(x) - 1.0) < 1e-4 and native(newton)


# -- variables, modules, training ----------------------------------------------------------------


def test_variables():
    a = tf.Variable([2.0, 3.0])
    b = tf.Variable(a)
    a.assign([5, 6])
    assert a.numpy().tolist() == [5, 6] and b.numpy().tolist() == [2, 3]
    assert a.assign_add([2, 3]).numpy().tolist() == [7, 9]
    assert a.assign_sub([7, 9]).numpy().tolist() == [0, 0]
    with pytest.raises(ValueError):
        a.assign([1.0, 2.0, 3.0])
    assert int(tf.argmax(b)) == 1 and tf.reshape(b, [2, 1]).shape == (2, 1)


class Flexible(tf.Module):
    """Creates its variables when it is first called."""

    def __init__(self, out_features, name=None):
        super().__init__(name=name)
        self.is_built, self.out_features = False, out_features

    def __call__(self, x):
        if not self.is_built:
            self.w = tf.Variable(tf.random.normal([x.shape[-1], self.out_features]), name="w")
            self.b = tf.Variable(tf.zeros([self.out_features]), name="b")
            self.is_built = True
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


def test_modules():
    class Model(tf.Module):
        def __init__(self):
            super().__init__(name="model")
            self.first, self.second = Flexible(3, "first"), Flexible(2, "second")

        @tf.function
        def __call__(self, x):
            return self.second(self.first(x))

    model = Model()
    assert model(tf.constant([[2.0, 2.0, 2.0]])).shape == (1, 2)
    assert model(tf.ones([2, 5, 3])[0]).shape == (5, 2)
    assert [m.name for m in model.submodules] == ["first", "second"]
    assert len(model.trainable_variables) == 4


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_linear_model_from_scratch(decorate):
    x = tf.cast(tf.linspace(-2, 2, 201), tf.float32)
    y = x * 3.0 + 2.0
    w, b = tf.Variable(5.0), tf.Variable(0.0)

    @decorate
    def train(learning_rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - (w * x + b)))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(learning_rate * dw)
        b.assign_sub(learning_rate * db)
        return loss

    for _ in range(10):
        train(learning_rate=0.1)
    assert f"{float(w):.3f} {float(b):.3f}" == "3.087 1.785"


def test_custom_layers():
    class Linear(tf.keras.layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = units

        def build(self, input_shape):
            shape = (input_shape[-1], self.units)
            self.w = self.add_weight(shape=shape, initializer="ones", trainable=True)
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    class Block(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.layers = [Linear(3), Linear(3), Linear(1)]

        def call(self, x, training=None):
            for layer in self.layers:
                x = tf.nn.relu(layer(x))
            if training:
                self.add_loss(1e-2 * tf.reduce_sum(x))
            return x

    block = Block()
    assert block(tf.ones((3, 4))).numpy().tolist() == [[36.0], [36.0], [36.0]]
    assert len(block.trainable_weights) == 6 and block.losses == []
    block(tf.ones((1, 4)), training=True)
    assert [round(float(loss), 4) for loss in block.losses] == [0.36]


def test_training_a_classifier():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(64, 8, 8, 1)).astype(np.float32)
    labels = rng.integers(0, 3, 64).astype(np.int32)

    class Classifier(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.conv1 = tf.keras.layers.Conv2D(4, 3, activation="relu")
            self.flatten = tf.keras.layers.Flatten()
            self.d1 = tf.keras.layers.Dense(3)

        def call(self, x):
            return self.d1(self.flatten(self.conv1(x)))

    tf.random.set_seed(0)
    model = Classifier()
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(0.01)
    train_loss = tf.keras.metrics.Mean(name="train_loss")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_object(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_loss(loss)
        accuracy(labels, predictions)

    history = []
    for _ in range(6):
        train_loss.reset_state()
        accuracy.reset_state()
        for k in range(0, 64, 16):
            train_step(images[k : k + 16], labels[k : k + 16])
        history.append(float(train_loss.result()))
    assert history[-1] < 0.8 * history[0] and float(accuracy.result()) > 0.6
    assert len(model.trainable_variables) == 4 and native(train_step)
