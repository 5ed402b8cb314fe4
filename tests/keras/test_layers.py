"""Layers: weights, tracking, names, training flag, input checks, shapes, tracing."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.keras.positions import positions_of
from treadle import keras
from treadle.keras import layers
from treadle.keras.layers.input_spec import check_inputs

RNG = np.random.default_rng(6)

# A layer and the shape of a batch for it.
EVERY = {
    "dense": (lambda: layers.Dense(3, "relu"), (4, 5)),
    "conv": (lambda: layers.Conv2D(3, 2, padding="same"), (2, 4, 5, 2)),
    "conv first": (lambda: layers.Conv2D(3, 2, data_format="channels_first"), (2, 3, 4, 5)),
    "depthwise": (lambda: layers.DepthwiseConv2D(2, depth_multiplier=2), (2, 4, 5, 2)),
    "max pool": (lambda: layers.MaxPooling2D(2), (2, 4, 5, 2)),
    "average pool": (lambda: layers.AveragePooling2D(3, 2, "same"), (2, 4, 5, 2)),
    "global": (lambda: layers.GlobalAveragePooling2D(), (2, 4, 5, 2)),
    "global max": (lambda: layers.GlobalMaxPooling2D(keepdims=True), (2, 4, 5, 2)),
    "batch norm": (lambda: layers.BatchNormalization(), (4, 5)),
    "layer norm": (lambda: layers.LayerNormalization(), (4, 5)),
    "embedding": (lambda: layers.Embedding(7, 3), (4, 5)),
    "flatten": (lambda: layers.Flatten(), (2, 3, 4)),
    "reshape": (lambda: layers.Reshape((4, -1)), (2, 3, 4)),
    "permute": (lambda: layers.Permute((2, 1)), (2, 3, 4)),
    "dropout": (lambda: layers.Dropout(0.5), (4, 5)),
    "activation": (lambda: layers.Activation("tanh"), (4, 5)),
    "softmax": (lambda: layers.Softmax(), (4, 5)),
    "relu": (lambda: layers.ReLU(6.0), (4, 5)),
    "leaky": (lambda: layers.LeakyReLU(0.1), (4, 5)),
}


def example(name, shape):
    if name == "embedding":
        return RNG.integers(0, 7, shape).astype(np.int32)
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", EVERY)
def test_eager_equals_traced_and_shapes_are_foretold(name):
    make, shape = EVERY[name]
    layer, x = make(), td.constant(example(name, shape))
    eager = layer(x)
    assert layer.compute_output_shape(shape) == tuple(eager.shape) == layer.output_shape
    open_shape = (None, *shape[1:])
    assert layer.compute_output_shape(open_shape) == (None, *tuple(eager.shape)[1:])
    spec = td.TensorSpec(open_shape, x.dtype)
    traced = td.function(layer, input_signature=[spec], autograph=False)
    np.testing.assert_allclose(traced(x), eager, rtol=1e-6, atol=1e-6)
    half = x[: shape[0] // 2]
    np.testing.assert_allclose(traced(half), layer(half), rtol=1e-6, atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", EVERY)
def test_configs_make_equal_layers(name):
    make, shape = EVERY[name]
    layer = make()
    x = example(name, shape)
    y = layer(x)
    twin = type(layer).from_config(layer.get_config())
    twin(x)
    twin.set_weights(layer.get_weights())
    np.testing.assert_array_equal(twin(x), y)
    assert twin.get_config() == layer.get_config() and twin.name == layer.name


class Plain(layers.Layer):
    def __init__(self):
        super().__init__()
        self.scales = [td.Variable(2.0, name="scale")]

    def build(self, input_shape):
        self.shift = self.add_weight((), "ones", name="shift")

    def call(self, x):
        return x * self.scales[0] + self.shift


def test_plain_variables_in_attributes_are_told_of(tmp_path):
    model = keras.Sequential([keras.Input((1,)), Plain()])
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="fit does not change 'scale"):
        model.fit(np.ones((2, 1), "f"), np.zeros((2, 1), "f"), verbose=0)
    layer = model.layers[-1]
    assert float(layer.scales[0]) == 2.0 and float(layer.shift) != 1.0
    with pytest.warns(UserWarning, match="the file has no 'scale"):
        model.save_weights(tmp_path / "a.weights.h5")
    td.train.Checkpoint(model=model).write(tmp_path / "b")
    assert any("scales" in name for name, _ in td.train.list_variables(tmp_path / "b"))


def test_names_are_numbered():
    keras.utils.clear_session()
    made = [layers.Dense(1), layers.Dense(1), layers.Conv2D(1, 1), layers.MaxPooling2D()]
    assert [x.name for x in made] == ["dense", "dense_1", "conv2d", "max_pooling2d"]
    assert layers.Dense(1, name="mine").name == "mine"


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.stack = [layers.Dense(3), layers.Dense(2)]
        self.by_name = {"norm": layers.BatchNormalization()}
        self.scale = keras.Variable(2.0, name="scale")
        self.step = keras.Variable(0, trainable=False, dtype="int32")

    def build(self, input_shape):
        self.shift = self.add_weight((2,), "ones", name="shift")
        self.add_weight((), "zeros", trainable=False, name="hidden")

    def call(self, x, training=None):
        for layer in self.stack:
            x = layer(x)
        return self.by_name["norm"](x) * self.scale + self.shift


def test_weights_are_found_through_attributes_lists_and_dicts():
    block = Block()
    block(np.ones((4, 5), "f"))
    own, inner = 4, 2 + 2 + 4
    assert len(block.weights) == own + inner
    assert len(block.trainable_weights) == 2 + 4 + 2
    assert len(block.non_trainable_weights) == 2 + 2
    assert block.count_params() == 1 + 1 + 2 + 1 + 18 + 8 + 8
    assert block.trainable_variables == block.trainable_weights
    names = [w.name for w in block.trainable_weights]
    assert any("kernel" in n for n in names) and any("gamma" in n for n in names)


def test_a_shared_layer_counts_once():
    shared = layers.Dense(2)
    model = keras.Sequential([shared])
    model.again = [shared, {"x": shared}]
    model(np.ones((1, 2), "f"))
    assert len(model.weights) == 2


def test_freezing():
    block = Block()
    block(np.ones((4, 5), "f"))
    block.stack[0].trainable = False
    assert len(block.trainable_weights) == 6 and len(block.weights) == 12
    block.trainable = False
    assert block.trainable_weights == [] and len(block.non_trainable_weights) == 12
    assert not block.stack[1].trainable


def test_the_training_argument_reaches_inner_layers():
    seen = []

    class Probe(layers.Layer):
        def call(self, x, training=None):
            seen.append(training)
            return x

    class Outer(layers.Layer):
        def __init__(self):
            super().__init__()
            self.probe = Probe()

        def call(self, x):
            return self.probe(x)

    x, outer = np.ones((1, 1), "f"), Outer()
    outer(x)
    outer(x, training=True)
    outer(x, training=False)
    outer.probe(x, training=True)
    outer.probe(x, True)
    assert seen == [False, True, False, True, True]


def test_an_error_in_call_leaves_no_training_flag_behind():
    class Broken(layers.Layer):
        def call(self, x):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        Broken()(np.ones((1, 1), "f"), training=True)
    x = np.ones((2, 3), "f")
    np.testing.assert_array_equal(layers.Dropout(0.5)(x), x)


def test_dropout_only_while_training():
    x = np.ones((100, 10), "f")
    layer = layers.Dropout(0.4)
    np.testing.assert_array_equal(layer(x), x)
    y = layer(x, training=True).numpy()
    assert 0.3 < (y == 0).mean() < 0.5
    np.testing.assert_array_equal(layers.Dropout(1.0)(x, training=True), np.zeros_like(x))


def test_a_tensor_may_decide_about_training():
    layer = layers.Dropout(0.5)
    f = td.function(lambda x, t: layer(x, training=t), autograph=False)
    x = np.ones((100,), "f")
    np.testing.assert_array_equal(f(x, td.constant(False)), x)
    assert (f(x, td.constant(True)).numpy() == 0).any()


def test_batch_normalization_learns_statistics():
    layer = layers.BatchNormalization(momentum=0.5)
    x = RNG.normal(3.0, 2.0, (500, 4)).astype("f")
    for _ in range(12):
        layer(x, training=True)
    np.testing.assert_allclose(layer.moving_mean, x.mean(0), rtol=1e-3)
    np.testing.assert_allclose(layer.moving_variance, x.var(0), rtol=1e-3)
    np.testing.assert_allclose(layer(x).numpy().mean(0), 0, atol=1e-2)
    layer.trainable = False
    before = layer.moving_mean.numpy().copy()
    layer(x + 5, training=True)
    np.testing.assert_array_equal(layer.moving_mean, before)


@pytest.mark.parametrize(
    ("layer", "first", "second", "message"),
    [
        (layers.Dense(2, name="d"), (3, 4), (3, 5),
         r'layer "d" \(Dense\).*axis -1.*value 4. Full shape received: \(3, 5\)'),
        (layers.Dense(2, name="d"), (3,), None, r'"d" \(Dense\).*min_ndim=2, found ndim=1'),
        (layers.Conv2D(2, 3, name="c"), (1, 8, 8, 3), (1, 8, 8, 1), r'"c".*axis 3.*value 3'),
        (layers.Conv2D(2, 3, name="c"), (8, 8, 3), None, r'"c".*ndim=4, found ndim=3'),
        (layers.MaxPooling2D(name="m"), (8, 8), None, r'"m" \(MaxPooling2D\).*ndim=4'),
        (layers.BatchNormalization(name="b"), (4, 3), (4, 2), r'"b".*axis -1.*value 3'),
        (layers.Reshape((5,), name="r"), (2, 3), None, r'"r" \(Reshape\).*\(3,\).*\(5,\)'),
    ],
)  # fmt: skip
def test_wrong_inputs_name_the_layer(layer, first, second, message):
    if second is not None:
        layer(np.ones(first, "f"))
    with pytest.raises(ValueError, match=message):
        layer(np.ones(second or first, "f"))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="units"):
        layers.Dense(0)
    with pytest.raises(ValueError, match="Unknown activation 'rellu'"):
        layers.Dense(1, "rellu")
    with pytest.raises(ValueError, match="Unknown initializer 'xavier'"):
        layers.Dense(1, kernel_initializer="xavier")
    with pytest.raises(TypeError, match="Dense got unsupported arguments: unit"):
        layers.Dense(1, unit=3)
    with pytest.raises(ValueError, match="padding"):
        layers.Conv2D(1, 1, padding="full")
    with pytest.raises(ValueError, match="multiple of groups"):
        layers.Conv2D(3, 1, groups=2)
    with pytest.raises(ValueError, match="rate"):
        layers.Dropout(2)
    with pytest.raises(NotImplementedError, match=r"must define call\(\)"):
        layers.Layer()(np.ones(1, "f"))
    with pytest.raises(ValueError, match="2 weights, got 1"):
        layer = layers.Dense(2)
        layer(np.ones((1, 2), "f"))
        layer.set_weights([np.zeros((2, 2))])


def test_floats_are_cast_to_the_layers_dtype():
    layer = layers.Dense(2)
    assert layer(np.ones((1, 2), np.float64)).dtype == "float32"
    wide = layers.Dense(2, dtype="float64")
    assert wide(np.ones((1, 2), np.float32)).dtype == "float64"
    assert wide.kernel.dtype == "float64"
    assert layer([[1, 2]]).shape == (1, 2)


def test_variables_are_made_on_the_first_traced_call_only():
    layer = layers.Dense(2)
    f = td.function(layer, autograph=False)
    a = f(np.ones((1, 3), "f"))
    kernel = layer.kernel
    np.testing.assert_allclose(f(np.ones((1, 3), "f")), a)
    np.testing.assert_allclose(f(np.ones((4, 3), "f")).numpy()[:1], a)
    assert layer.kernel is kernel and len(layer.weights) == 2

    g = td.function(lambda x: layers.Dense(2)(x), autograph=False)
    with pytest.raises(ValueError, match="not its first|creates a Variable"):
        g(np.ones((1, 3), "f"))


def test_regularizers_and_added_losses():
    class Net(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.5))

        def call(self, x):
            self.add_loss(td.reduce_sum(x))
            return self.dense(x)

    net = Net()
    for _ in range(2):
        net(np.ones((1, 3), "f"))
    penalty, added = sorted(float(x) for x in net.losses)
    kernel = net.dense.kernel.numpy()
    np.testing.assert_allclose(sorted([0.5 * (kernel**2).sum(), 3.0]), [penalty, added], rtol=1e-6)


def test_constraints_apply_after_updates():
    layer = layers.Dense(2, kernel_constraint=lambda w: td.clip_by_value(w, 0.0, 0.1))
    layer(np.ones((1, 3), "f"))
    opt = keras.optimizers.SGD(1.0)
    opt.apply_gradients([(td.ones((3, 2)) * -5, layer.kernel)])
    np.testing.assert_array_equal(layer.kernel, np.full((3, 2), np.float32(0.1)))


def test_a_layer_that_was_built_by_hand_is_not_built_again():
    built = []

    class Scale(td.keras.layers.Layer):
        def build(self, shape):  # without super().build(shape)
            built.append(shape)
            self.factor = self.add_weight(shape=(shape[-1],), initializer="ones", name="factor")

        def call(self, x):
            return x * self.factor

    layer = Scale()
    layer.build((None, 3))
    assert layer.built and built == [(None, 3)]
    assert layer(td.ones([2, 3])).shape == (2, 3)
    assert built == [(None, 3)] and len(layer.weights) == 1


def test_noise_has_the_right_spread():
    x = np.ones((200, 50), "f")
    for layer in (layers.GaussianDropout(0.2), layers.GaussianNoise(0.5)):
        y = np.asarray(layer(x, training=True))
        assert abs(y.mean() - 1) < 0.03 and abs(y.std() - 0.5) < 0.03
        np.testing.assert_array_equal(layer(x), x)


def test_alpha_dropout_keeps_mean_and_variance():
    x = RNG.normal(size=(400, 50)).astype("f")
    y = np.asarray(layers.AlphaDropout(0.3)(x, training=True))
    assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05
    values, counts = np.unique(y, return_counts=True)
    assert abs(counts.max() / x.size - 0.3) < 0.02 and values[counts.argmax()] < -1


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("first", [False, True])
def test_spatial_dropout_drops_whole_channels(rank, first):
    settings = {} if rank == 1 else {"data_format": "channels_first" if first else "channels_last"}
    layer = getattr(layers, f"SpatialDropout{rank}D")(0.5, **settings)
    shape = (8, 16, *(3,) * rank) if settings and first else (8, *(3,) * rank, 16)
    y = np.asarray(layer(np.ones(shape, "f"), training=True))
    channels = np.moveaxis(y, 1, -1) if settings and first else y
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (channels.reshape(8, -1, 16).min(1) == channels.reshape(8, -1, 16).max(1)).all()
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


def test_dropout_fills_open_sizes_of_the_noise_shape():
    y = np.asarray(layers.Dropout(0.5, noise_shape=(None, 1))(np.ones((50, 4), "f"), training=True))
    assert (y.min(1) == y.max(1)).all() and set(np.unique(y)) == {0.0, 2.0}


def test_activity_regularizers_of_any_layer():
    layer = layers.Dense(2, activity_regularizer=keras.regularizers.L2(0.1))
    y = np.asarray(layer(np.ones((4, 3), "f")))
    np.testing.assert_allclose(layer.losses, [0.1 * (y**2).sum() / 4], rtol=1e-5)
    twin = layers.Dense.from_config(layer.get_config())
    assert twin.activity_regularizer.get_config() == {"l2": np.float32(0.1)} or (
        twin.activity_regularizer.l2 == 0.1
    )


def test_configurations_have_regularizers_constraints_and_inner_layers():
    layer = layers.TimeDistributed(
        layers.Dense(2, kernel_regularizer="l1", bias_constraint=keras.constraints.MaxNorm(3))
    )
    layer(np.ones((2, 3, 4), "f"))
    twin = layers.TimeDistributed.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    assert twin.layer.kernel_regularizer.l1 == 0.01
    assert twin.layer.bias_constraint.max_value == 3
    both = layers.Bidirectional(layers.LSTM(2, return_sequences=True), "sum")
    again = layers.Bidirectional.from_config(both.get_config())
    assert again.get_config() == both.get_config()


def test_a_build_of_several_shapes():
    class Scores(layers.Layer):
        def build(self, query_shape, value_shape):
            self.kernel = self.add_weight((query_shape[-1], value_shape[-1]), "ones")

        def call(self, query, value, scale=1.0):
            return td.einsum("bi,ij,bj->b", query, self.kernel, value) * scale

    layer = Scores()
    np.testing.assert_array_equal(
        layer(np.ones((2, 3), "f"), value=np.ones((2, 4), "f"), scale=2.0), [24.0, 24.0]
    )
    q, v = keras.Input((3,)), keras.Input((4,))
    model = keras.Model([q, v], Scores()(q, value=v))
    assert model.output_shape == (None,)


def test_wrong_shapes_of_new_layers():
    one = np.ones((2, 3, 4), "f")
    with pytest.raises(ValueError, match="leaves nothing"):
        layers.Cropping1D(2)(one)
    with pytest.raises(ValueError, match="do not divide"):
        layers.GroupNormalization(3)(one)
    with pytest.raises(ValueError, match=r"\[query, value\]"):
        layers.Attention()(one)
    with pytest.raises(ValueError, match="num_heads"):
        layers.MultiHeadAttention(0, 2)
    with pytest.raises(ValueError, match="must divide"):
        layers.GroupQueryAttention(2, 3, 2)
    with pytest.raises(ValueError, match="an equation is"):
        layers.EinsumDense("ab,bc", 3)
    with pytest.raises(ValueError, match="does not fit"):
        layers.EinsumDense("ab,bc->ac", 3)(one)
    with pytest.raises(ValueError, match="must be below"):
        layers.Conv1DTranspose(2, 2, strides=2, output_padding=2)
    with pytest.raises(ValueError, match="must be 1"):
        layers.Conv3D(2, 2, strides=2, dilation_rate=2)
    with pytest.raises(ValueError, match="at least 3 axes"):
        layers.TimeDistributed(layers.Dense(2))(np.ones((2, 3), "f"))
    with pytest.raises(ValueError, match="a layer is expected"):
        layers.Wrapper(3)


SPECS = [
    ({"shape": (None, 3)}, None),
    ({"ndim": 2, "axes": {-1: 3}}, None),
    ({"max_ndim": 1}, "expected max_ndim=1, found ndim=2"),
    ({"min_ndim": 3}, "expected min_ndim=3, found ndim=2"),
    ({"dtype": "int32"}, "expected dtype=int32, found dtype=float32"),
    ({"axes": {-1: 4}}, "expected axis -1 of input shape to have value 4"),
    ({"shape": (2, 3, 1), "allow_last_axis_squeeze": True}, None),
    ({"shape": (5, 3)}, "expected shape=(5, 3), found shape=(2, 3)"),
]


@pytest.mark.parametrize(("given", "fault"), SPECS)
def test_input_specs_say_what_keras_says(given: dict[str, Any], fault: str | None) -> None:
    spec = td.keras.layers.InputSpec(**given)
    assert td.keras.layers.InputSpec.from_config(spec.get_config()) == spec
    layer = td.keras.layers.Activation("relu")
    layer.input_spec = [spec, None]
    pair = [td.ones([2, 3]), td.ones([1])]
    if fault is None:
        check_inputs(layer, pair)
        return
    with pytest.raises(ValueError, match=re.escape(fault)):
        check_inputs(layer, pair)


def test_input_specs_of_too_few_inputs() -> None:
    layer = td.keras.layers.Activation("relu")
    layer.input_spec = [td.keras.layers.InputSpec(ndim=2)] * 2
    with pytest.raises(ValueError, match=r"expects 2 input\(s\), but it received 1"):
        layer([td.ones([2, 3])])
    with pytest.raises(ValueError, match="Axis 3 is greater"):
        td.keras.layers.InputSpec(ndim=2, axes={3: 1})


def test_arguments_by_position_are_in_keras_order():
    """Keras 3.15's order: some of these were taken for other arguments, without a word."""
    calls = {
        "LayerNormalization": (-1, 1e-3, True, True, "ones", "zeros", "l2"),
        "GroupNormalization": (2, -1, 1e-3, True, True, "ones", "zeros"),
        "BatchNormalization": (-1, 0.9, 1e-3, True, True, "ones", "zeros", "ones", "zeros", "l2"),
        "GRUCell": (2, "tanh", "sigmoid", True, "ones", "zeros", "ones", "l2"),
        "LSTMCell": (2, "tanh", "sigmoid", True, "ones", "zeros", "ones", False, "l2"),
        "LSTM": (2, "tanh", "sigmoid", True, "ones", "zeros", "ones", False, "l2", None, "l2"),
        "SimpleRNN": (2, "tanh", True, "ones"),
        "Dense": (3, "relu", False, "ones", "zeros", "l2", "l1"),
        "Conv2D": (3, 2, 1, "same", None, 1, 1, "relu", True, "ones", "ones", "l2", None, None),
        "Conv2DTranspose": (3, 2, 2, "same", 1, None, 1, "relu", True, "ones"),
        "Conv3DTranspose": (3, 2, 2, "same", "channels_last", 1),
        "SeparableConv2D": (3, 2, 1, "same", None, 1, 2, "relu", True, "ones", "zeros"),
        "DepthwiseConv2D": (2, 1, "same", 2, None, 1, "relu", True, "ones", "ones"),
        "MultiHeadAttention": (2, 4, None, 0.0, True, None, None, None, None, "ones", "zeros"),
        "EinsumDense": ("ab,bc->ac", 3, None, "c", "ones", "ones", None, "l2"),
        "ConvLSTM2D": (2, 3, 1, "same", None, 1, "tanh", "sigmoid", True, "ones"),
    }
    for name, values in calls.items():
        kind = getattr(layers, name)
        names = positions_of(kind)[: len(values)]
        by_name = kind(**dict(zip(names, values, strict=True))).get_config()
        assert kind(*values).get_config() | {"name": ""} == by_name | {"name": ""}, name
    norm = layers.LayerNormalization(-1, 1e-3, True, True, "ones")
    found = norm(td.constant([[1.0, 3.0]])).numpy()[0]
    assert found.tolist() == pytest.approx([0.0, 2.0], abs=1e-2)
    with pytest.raises(TypeError):
        layers.Dense(3, units=3)


POSITIONS = json.loads((Path(__file__).parent / "positions.json").read_text())
WITHOUT = {"callbacks.OrbaxCheckpoint", "optimizers.Lamb"}  # Lamb leaves out one of its base's


def test_constructors_take_arguments_in_keras_order():
    found = {
        name: positions_of(functools.reduce(getattr, name.split("."), keras))[: len(expected)]
        for name, expected in POSITIONS.items()
        if name not in WITHOUT
    }
    assert found == {name: POSITIONS[name] for name in found} and len(found) > 200


def test_arguments_of_optimizers_and_metrics_by_position():
    lamb = keras.optimizers.Lamb(0.1, 0.8, 0.9, 1e-6, 0.5, 1.0).get_config()
    assert (lamb["epsilon"], lamb["weight_decay"], lamb["clipnorm"]) == (1e-6, 0.5, 1.0)
    adam = keras.optimizers.AdamW(0.1, 0.5, 0.8, 0.9, 1e-6, True, None, 2.0).get_config()
    assert (adam["weight_decay"], adam["amsgrad"], adam["clipvalue"]) == (0.5, True, 2.0)
    assert keras.metrics.BinaryAccuracy("a", None, 0.7).get_config()["threshold"] == 0.7
    with pytest.raises(TypeError, match="threshold"):
        keras.metrics.BinaryAccuracy("a", None, 0.7, threshold=0.5)

    class Own(keras.metrics.Metric):
        def __init__(self, *args):
            super().__init__(*args)

    for args in (("float16", "own"), ("own", "float16")):  # the second one as in Keras 2
        assert (Own(*args).name, Own(*args).dtype) == ("own", "float16")
    assert (Own("own").name, Own("own").dtype) == ("own", "float32")
    assert Own("mixed_bfloat16", "own").dtype == "bfloat16"


class Twice(layers.Dense):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def call(self, x):
        return 2 * super().call(x)


def test_classes_of_programs_pass_arguments_on_by_position():
    layer = Twice(1, None, True, "ones", "ones", "l2")
    assert float(layer(td.constant([[1.0, 2.0]]))[0, 0]) == 8.0 and len(layer.losses) == 1


def test_attributes_that_programs_call_convert():
    class Own(td.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self._convert = self._add = lambda x, y: x + y

        def call(self, x):
            return self._convert(x, 1.0)

    assert np.array_equal(Own()(np.ones(2, "f")), [2.0, 2.0])
