"""Models that are saved, made of a given Keras: real in `keras_files/make.py`, ours in tests."""

from collections.abc import Iterator
from typing import Any

LEGACY = ("dense", "recurrent", "calls")  # which files as of Keras 2 are made of, too


def models(keras: Any) -> Iterator[tuple[str, Any]]:
    """Names and compiled models. Their weights are random."""
    layers = keras.layers
    stacks = {
        "dense": [
            keras.Input((4,)),
            layers.Dense(
                3, "gelu", kernel_regularizer=keras.regularizers.L1L2(0.1, 0.2),
                bias_constraint="non_neg",
                kernel_initializer=keras.initializers.RandomNormal(0.0, 0.1, seed=3),
            ),
            layers.Dropout(0.2, seed=1), layers.GaussianNoise(0.1), layers.BatchNormalization(),
        ],
        "activations": [
            keras.Input((4,)), layers.Activation("tanh"), layers.ReLU(6.0, 0.1, 0.2),
            layers.ELU(0.5), layers.LeakyReLU(0.2), layers.PReLU(), layers.Softmax(),
        ],
        "shapes": [
            keras.Input((4, 6)), layers.Permute((2, 1)), layers.Reshape((3, 8)), layers.Flatten(),
            layers.RepeatVector(2),
        ],
        "images": [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
            layers.DepthwiseConv2D(2, depth_multiplier=2), layers.BatchNormalization(momentum=0.9),
            layers.MaxPooling2D(), layers.Conv2DTranspose(2, 2), layers.UpSampling2D(2),
            layers.ZeroPadding2D(1), layers.Cropping2D(1),
            layers.AveragePooling2D(2, padding="same"), layers.GlobalAveragePooling2D(),
        ],
        "sequences": [
            keras.Input((10, 3)), layers.Conv1D(4, 3, padding="causal", dilation_rate=2),
            layers.MaxPooling1D(2), layers.AveragePooling1D(2), layers.LayerNormalization(),
            layers.GlobalMaxPooling1D(),
        ],
        "recurrent": [
            keras.Input((5,), dtype="int32"), layers.Embedding(10, 4),
            layers.LSTM(3, return_sequences=True, kernel_regularizer="l2", dropout=0.1),
            layers.GRU(2, return_sequences=True), layers.TimeDistributed(layers.Dense(3)),
            layers.Bidirectional(layers.SimpleRNN(2, return_sequences=True), merge_mode="sum"),
            layers.RNN(layers.LSTMCell(2)),
        ],
    }  # fmt: skip
    for name, stack in stacks.items():
        model = keras.Sequential(stack, name=name)
        model.compile("adam", "mse", metrics=["mae"])
        yield name, model
    yield "calls", calls(keras)
    yield "masks", masks(keras)


def calls(keras: Any) -> Any:
    """A functional model: a shared layer, a nested model, operators, two outputs, a schedule."""
    layers = keras.layers
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    c, d = shared(a), shared(b)
    inner = keras.Sequential([layers.Dense(4, "relu")], name="inner")
    joined = layers.Concatenate()([
        layers.Add()([a, c]), layers.Subtract()([a, d]), layers.Multiply()([a, b]),
        layers.Average()([b, c]), layers.Maximum()([a, b]), layers.Minimum()([a, b]),
        layers.Dot(1)([b, c]), inner(shared(c)),
    ])  # fmt: skip
    outputs = {"all": joined * 2.0 - 1.0, "part": joined[:, 1:3]}
    model = keras.Model([a, b], outputs, name="calls")
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), "mse")
    return model


def masks(keras: Any) -> Any:
    """A functional model of masks, attention and layers of steps and images.

    Each attention has tensors of its own: where two share one, what Keras computes of its mask
    depends on the other layers of the model.
    """
    layers = keras.layers
    a, b = keras.Input((5,), dtype="int32", name="a"), keras.Input((5,), dtype="int32", name="b")
    table = layers.Embedding(10, 4, mask_zero=True)
    c, d, e, f = table(a), table(b), table(b), table(b)
    x = layers.Add()([layers.MultiHeadAttention(2, 2)(c, d), c])
    x = layers.LSTM(3, return_sequences=True)(layers.Concatenate()([x, c]))
    x = layers.Bidirectional(layers.GRU(2, return_sequences=True))(x)
    x = layers.GlobalAveragePooling1D()(x)
    y = layers.GroupQueryAttention(2, 2, 1)(layers.EinsumDense("abc,cd->abd", (5, 4))(e), f)
    y = layers.SeparableConv1D(4, 2)(layers.Conv1DTranspose(4, 2, strides=2)(y))
    y = layers.GroupNormalization(2)(layers.SpatialDropout1D(0.1)(layers.UpSampling1D(2)(y)))
    y = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)])(layers.Cropping1D((1, 2))(y))
    z = layers.GlobalMaxPooling1D()(layers.Attention()([table(a), table(b)]))
    z = layers.Reshape((2, 2, 1))(z)
    z = layers.Reshape((1, 4, 4, 1))(layers.Resizing(4, 4)(layers.RandomFlip()(z)))
    z = layers.ConvLSTM2D(2, 2)(z)
    z = layers.SpectralNormalization(layers.Dense(2))(layers.GlobalMaxPooling2D()(z))
    model = keras.Model([a, b], [x, y, z], name="masks")
    model.compile("sgd", "mse")
    return model


def subclassed(keras: Any) -> Any:
    """A model of a class of the user, with layers in attributes, lists and dicts."""
    layers = keras.layers

    class Own(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(2)
            self.listed = [layers.Dense(2), layers.Dense(1), layers.BatchNormalization()]
            self.named = {"k": layers.Dense(1)}
            self.inner = keras.Sequential([layers.Dense(2)])

        def build(self, shape: Any) -> None:
            self.factor = self.add_weight(shape=(1,), name="factor", initializer="ones")

        def call(self, x: Any) -> Any:
            second, third, normalized = self.listed
            return normalized(third(second(self.inner(self.first(x)))) * self.factor) + self.named[
                "k"
            ](x)

    return Own()
