"""Optimizers: state, tracing, rates, clipping arguments (values are in test_facts)."""

import json

import numpy as np
import pytest

import treadle as td
from tests.keras.facts.cases import OPTIMIZERS, wave
from tests.keras.training import cases as training
from treadle import keras
from treadle.keras.optimizers import Adam


def make(name):
    kind, settings = OPTIMIZERS[name]
    return getattr(keras.optimizers, kind)(**settings)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_traced_equals_eager(name):
    def trained(wrap):
        opt, weights = make(name), [td.Variable(wave(3)), td.Variable(wave(2, 2))]
        step = wrap(lambda a, b: opt.apply_gradients(zip([a, b], weights, strict=True)))
        for i in range(3):
            step(td.constant(wave(3, phase=i)), td.constant(wave(2, 2, phase=2.0 * i)))
        assert int(opt.iterations) == 3
        return [w.numpy() for w in weights] + [s.numpy() for s in opt.variables]

    eager = trained(lambda f: f)
    traced = trained(lambda f: td.function(f, autograph=False))
    for a, b in zip(eager, traced, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-7)


def test_an_optimizer_made_inside_a_function_on_the_first_call():
    class Trainer:
        opt = None

    w = td.Variable([1.0, 2.0])

    def step(g):
        if Trainer.opt is None:
            Trainer.opt = keras.optimizers.Adam(0.1)
        Trainer.opt.apply_gradients([(g, w)])

    f = td.function(step, autograph=False)
    for _ in range(3):
        f(td.constant([1.0, -1.0]))
    assert int(Trainer.opt.iterations) == 3 and len(Trainer.opt.variables) == 4
    np.testing.assert_allclose(w, [0.7, 2.3], rtol=1e-5)


def test_the_rate_may_change_without_a_new_trace():
    opt, w = keras.optimizers.SGD(1.0), td.Variable(0.0)
    f = td.function(lambda g: opt.apply_gradients([(g, w)]), autograph=False)
    f(td.constant(1.0))
    opt.learning_rate = 0.5
    f(td.constant(1.0))
    opt.learning_rate.assign(0.25)
    f(td.constant(1.0))
    assert float(w) == -1.75 and f.experimental_get_tracing_count() == 1


def test_schedules_follow_the_iterations():
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([1, 2], [1.0, 10.0, 100.0])
    opt, w = keras.optimizers.SGD(rate), td.Variable(0.0)
    f = td.function(lambda g: opt.apply_gradients([(g, w)]), autograph=False)
    seen = []
    for _ in range(4):
        f(td.constant(1.0))
        seen.append(-float(w))
    assert seen == [1.0, 2.0, 12.0, 112.0]
    with pytest.raises(TypeError, match="not settable"):
        opt.learning_rate = 0.5
    opt.learning_rate = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 1.0)
    assert float(opt.learning_rate) == 0.5


def test_minimize():
    opt, w = keras.optimizers.SGD(0.1), td.Variable([3.0, -2.0])
    for _ in range(60):
        opt.minimize(lambda: td.reduce_sum(td.square(w)), [w])
    np.testing.assert_allclose(w, [0, 0], atol=1e-4)
    with td.GradientTape() as tape:
        loss = td.reduce_sum(td.square(w - 1.0))
    opt.minimize(loss, [w], tape=tape)
    with pytest.raises(ValueError, match="tape"):
        opt.minimize(loss, [w])


def test_missing_and_wrong_gradients():
    opt = keras.optimizers.Adam()
    v, w = td.Variable([1.0], name="v"), td.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match="No gradients provided for any variable: v:0, w:0"):
        opt.apply_gradients([(None, v), (None, w)])
    opt.apply_gradients([(None, v), (td.constant([1.0, 1.0]), w)])
    assert float(v[0]) == 1.0 and float(w[0]) != 1.0
    with pytest.raises(ValueError, match=r"'w:0' has shape \(3,\).*\(2,\)"):
        opt.apply_gradients([(td.ones([3]), w)])


def test_half_precision_weights_keep_their_dtype():
    opt, w = keras.optimizers.Adam(0.5), td.Variable(np.ones(2, np.float16))
    opt.apply_gradients([(td.constant([1.0, 1.0]), w)])
    assert w.dtype == "float16" and {s.dtype.name for s in opt.variables[2:]} == {"float16"}
    np.testing.assert_allclose(w, [0.5, 0.5], rtol=2e-2)


def test_arguments():
    with pytest.raises(ValueError, match="only one"):
        keras.optimizers.SGD(clipnorm=1.0, clipvalue=1.0)
    with pytest.raises(TypeError, match="unsupported arguments: momemtum"):
        keras.optimizers.SGD(momemtum=0.9)
    with pytest.raises(ValueError, match="momentum"):
        keras.optimizers.SGD(momentum=2.0)
    assert isinstance(keras.optimizers.get("Adam"), keras.optimizers.Adam)
    known = "adadelta, adafactor, adagrad, adam, adamax, adamw, ftrl, lamb, lion, muon, nadam"
    with pytest.raises(ValueError, match=known):
        keras.optimizers.get("lyon")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_config_round_trip(name):
    opt = make(name)
    twin = type(opt).from_config(opt.get_config())
    assert twin.get_config() == opt.get_config()


def test_build_makes_slots_at_once():
    opt, w = keras.optimizers.Adam(), td.Variable([1.0, 2.0])
    opt.build([w])
    assert [v.shape.as_list() for v in opt.variables] == [[], [], [2], [2]]


@pytest.mark.parametrize("name", training.OPTIMIZERS)
def test_optimizers_as_data(name):
    kind, settings = training.OPTIMIZERS[name]
    opt = getattr(keras.optimizers, kind)(**settings)
    data = json.loads(json.dumps(keras.optimizers.serialize(opt)))
    assert data["module"] == "keras.optimizers" and data["class_name"] == kind
    twin = keras.optimizers.deserialize(data)
    assert type(twin) is type(opt) and twin.get_config() == opt.get_config()
    found = twin.get_config()
    assert all(found[key] == pytest.approx(value) for key, value in settings.items())


def test_schedules_and_scaled_optimizers_as_data():
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5, staircase=True)
    opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(rate), initial_scale=8.0)
    twin = keras.optimizers.get(json.loads(json.dumps(keras.optimizers.serialize(opt))))
    assert twin.get_config() == opt.get_config() and twin.initial_scale == 8.0
    assert float(twin.inner_optimizer._schedule(10)) == pytest.approx(0.05)
    assert isinstance(keras.optimizers.get({"class_name": "adam", "config": {}}), Adam)


def test_optimizers_of_keras_2():
    assert keras.optimizers.legacy.Adam is Adam
    assert isinstance(keras.optimizers.get(Adam), Adam)
    opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=4.0)
    w = td.Variable([1.0, 2.0])
    with td.GradientTape() as tape:
        loss = opt.get_scaled_loss(td.reduce_sum(w * w))
    assert float(loss) == 20.0
    grads = opt.get_unscaled_gradients(tape.gradient(loss, [w]))
    np.testing.assert_allclose(grads[0], [2.0, 4.0])
    opt.apply_gradients([(grads[0], w)])
    np.testing.assert_allclose(w, [0.0, 0.0])


def test_a_rate_that_is_a_function():
    w, rates = td.Variable(0.0), iter([1.0, 0.5])
    opt = keras.optimizers.SGD(lambda: next(rates))
    opt.apply_gradients([(td.constant(1.0), w)])
    opt.apply_gradients([(td.constant(1.0), w)])
    assert float(w) == -1.5


class Signs(keras.optimizers.Optimizer):
    """As programs of Keras 3 write their own."""

    def build(self, variables):
        super().build(variables)
        self.momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient, variable, learning_rate):
        m = self.momentums[self._get_variable_index(variable)]
        self.assign(m, m * 0.5 + gradient)
        self.assign_sub(variable, learning_rate * td.sign(m))


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_an_optimizer_of_ones_own(wrap):
    opt, a, b = Signs(0.25), td.Variable([1.0, 2.0]), td.Variable(3.0)
    step = wrap(lambda g, h: opt.apply([g, h], [a, b]))
    for _ in range(2):
        step(td.constant([1.0, -3.0]), td.constant(2.0))
    np.testing.assert_allclose(a, [0.5, 2.5])
    assert float(b) == 2.5 and float(opt.momentums[1]) == 3.0
    assert int(opt.iterations) == 2 and len(opt.variables) == 4
    with pytest.raises(ValueError, match="1 gradients for 2 weights"):
        opt.apply([td.constant(1.0)])
    opt.apply([td.constant([1.0, 1.0]), td.constant(1.0)])
    assert int(opt.iterations) == 3


def test_weights_that_do_not_decay():
    a, b = td.Variable([1.0]), td.Variable([1.0])
    opt = keras.optimizers.SGD(0.1, weight_decay=0.5)
    opt.exclude_from_weight_decay(var_list=[b])
    opt.apply_gradients([(td.constant([0.0]), a), (td.constant([0.0]), b)])
    assert float(a[0]) == pytest.approx(0.95) and float(b[0]) == 1.0


@pytest.mark.parametrize(
    "kind", ["Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "Adadelta", "Adamax", "Lion", "Nadam",
             "Ftrl", "Adafactor"],
)  # fmt: skip
def test_means_of_accumulated_gradients_make_the_updates(kind):
    make, random = getattr(keras.optimizers, kind), np.random.default_rng(2)
    whole, parts = make(weight_decay=0.05), make(weight_decay=0.05, gradient_accumulation_steps=3)
    one, other = (td.Variable([[0.9], [0.5]]) for _ in range(2))
    for _ in range(5):
        grads = random.random((3, 2, 1)).astype("f")
        whole.apply_gradients([(td.constant(grads.mean(0)), one)])
        for grad in grads:
            parts.apply_gradients([(td.constant(grad), other)])
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)


def test_rows_of_a_table_accumulate():
    table = td.Variable(np.zeros((4, 2), "f"))
    opt = keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    for rows in ([0, 2], [2, 3]):
        with td.GradientTape() as tape:
            loss = td.reduce_sum(td.gather(table, rows))
        opt.apply_gradients([(tape.gradient(loss, table), table)])
    np.testing.assert_allclose(table.numpy()[:, 0], [-0.5, 0.0, -1.0, -0.5])


@pytest.mark.parametrize("settings, text", [
    ({"gradient_accumulation_steps": 1}, "from 2 on"),
    ({"use_ema": True, "ema_momentum": 1.5}, "ema_momentum"),
    ({"use_ema": True, "ema_overwrite_frequency": 0}, "ema_overwrite_frequency"),
])  # fmt: skip
def test_settings_out_of_range(settings, text):
    with pytest.raises(ValueError, match=text):
        keras.optimizers.SGD(**settings)
    with pytest.raises(ValueError, match="l1_regularization_strength"):
        keras.optimizers.Ftrl(l1_regularization_strength=-1.0)
    with pytest.raises(ValueError, match="dynamic=False"):
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), dynamic=False)


def fitted(optimizer, epochs=5):
    """The losses of epochs of four steps of a small network."""
    keras, generator = td.keras, np.random.default_rng(0)
    x, y = (generator.normal(size=(64, n)).astype(np.float32) for n in (6, 2))
    layers = [keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    generator = np.random.default_rng(1)
    model.set_weights([
        generator.normal(size=w.shape).astype(np.float32) * 0.5 for w in model.get_weights()
    ])  # fmt: skip
    model.compile(optimizer, "mse")
    return model.fit(x, y, 16, epochs=epochs, shuffle=False, verbose=0).history["loss"]


def test_muon_gives_keras_s_losses():
    losses = fitted(td.keras.optimizers.Muon(0.01))
    expected = [1.3254794, 1.2805537, 1.2441368, 1.2142789, 1.1891309]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_schedule_free_adamw_gives_keras_s_losses():
    # Those of Keras with JAX over 52 steps: with TensorFlow it reads a variable after its update.
    optimizer = td.keras.optimizers.ScheduleFreeAdamW(0.01, warmup_steps=5, weight_decay=0.01)
    expected = [
        1.3316542, 1.2840452, 1.2268018, 1.1783484, 1.1384368, 1.105481, 1.0779721, 1.0547007,
        1.034761, 1.0174936, 1.0024186, 0.98917943, 0.97749937,
    ]  # fmt: skip
    np.testing.assert_allclose(fitted(optimizer, 13), expected, rtol=5e-5)
    expected = [
        1.2586341, 1.0539844, 0.98432183, 0.9453184, 0.91870904, 0.89655209, 0.87623978,
        0.85707861, 0.83867013, 0.8208164, 0.80374813, 0.78802919, 0.77423429,
    ]  # fmt: skip
    found = fitted(td.keras.optimizers.ScheduleFreeAdamW(0.05), 13)
    np.testing.assert_allclose(found, expected, rtol=5e-5)


def test_circle_loss_and_orthogonal_regularizer_give_keras_s_values():
    rows = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    circle = td.keras.losses.Circle(gamma=10.0)(np.arange(64) % 4, unit)
    penalty = td.keras.regularizers.OrthogonalRegularizer(0.5)(rows[:4])
    np.testing.assert_allclose([circle, penalty], [32.660862, 0.10729510], rtol=1e-5)
