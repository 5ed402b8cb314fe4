"""Classes of users: what they define and set on layers and models in their own way."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle import keras

X = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)


def test_ready_layers_make_their_weights_by_add_weight():
    """A class derived from a ready layer sees each weight that this makes, as with Keras."""
    seen = []

    class Halved(keras.layers.Dense):
        def add_weight(self, name=None, shape=None, initializer=None, **given):
            seen.append((name, tuple(shape), sorted(given)))
            variable = super().add_weight(name=name, shape=shape, initializer="one", **given)
            return variable if name == "bias" else variable * 0.5

    layer = Halved(3, kernel_regularizer="l2")
    found = layer(X[:, 0])
    assert [part[:2] for part in seen] == [("kernel", (5, 3)), ("bias", (3,))]
    assert all({"regularizer", "constraint"} <= set(given) for *_, given in seen)
    wanted = np.repeat(X[:, 0].sum(1, keepdims=True) * 0.5 + 1.0, 3, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_layers_with_a_rank_of_their_own():
    """As of an ensemble whose weights have few dimensions: edward2's."""

    class Ranked(keras.layers.Conv1D):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.rank = 7

    own, plain = (
        kind(3, 2, kernel_initializer="ones", padding="same")
        for kind in (Ranked, keras.layers.Conv1D)
    )
    np.testing.assert_array_equal(own(X), plain(X))
    assert own.rank == 7 and own.compute_output_shape((4, 6, 5)) == (4, 6, 3)


def test_initializers_by_their_short_names():
    layer = keras.layers.Dense(2, kernel_initializer="one", bias_initializer="zero")
    np.testing.assert_allclose(layer(X[:, 0]), np.repeat(X[:, 0].sum(1, keepdims=True), 2, 1), 1e-5)
    assert isinstance(keras.initializers.get("zero"), keras.initializers.Zeros)


WORDS = """
    activation add all append apply args arguments attention batch beta bias block blocks build
    cell chain channels chunk compile compiled compute config conv count data decoder default
    depth described dim dims dropout embed embedding encoder epoch eval flow forward fn func
    function functions gain gate graph groups guide head heads held helper hidden hooks index
    init inner inputs iteration kernel keys keywords last layer length level linear list listed
    loaded local log loss make mask masks map memory mode model models module momentum names net
    network node nodes norm num offset options order outer output outputs padding params parts
    penalties penalty policy pool post pre prepare process project proj queries queue random
    range rate ratio read reset residual results root rows run sample scale schedule score seed
    self settings setup shape shared shift size sizes slots source split stack stage start state
    states step steps stride strides sub table takes target temperature tokens told transform
    tree types units update value values variables validate validation vars version vocab weight
    weights width window word words write
""".split()


class Everything:
    """Sets attributes named by common words, after its base class has begun or before."""

    def take_names(self):
        for word in WORDS:
            setattr(self, f"_{word}", word)

    def left(self):
        return [word for word in WORDS if getattr(self, f"_{word}") != word]


def test_layers_may_have_attributes_of_any_name(tmp_path):
    """Private names as users choose them are theirs: nothing here reads or changes them."""

    @keras.saving.register_keras_serializable("own attributes")
    class Own(keras.layers.Dense, Everything):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.take_names()

    own, plain = (
        kind(3, activation="relu", kernel_regularizer="l2", kernel_initializer="ones")
        for kind in (Own, keras.layers.Dense)
    )
    models = []
    for layer in (own, plain):
        x = keras.Input((5,))
        model = keras.Model(x, layer(x))
        model.compile("sgd", "mse", metrics=["mae"])
        model.fit(X[:, 0], X[:, 1, :3], verbose=0)
        models.append(model)
    np.testing.assert_array_equal(own(X), plain(X))
    np.testing.assert_array_equal(own.losses, plain.losses)
    assert own.get_config() | {"name": ""} == plain.get_config() | {"name": ""}
    own.trainable = False
    assert not own.trainable_weights and len(own.non_trainable_weights) == 2
    models[0].save(tmp_path / "own.keras")
    again = keras.models.load_model(tmp_path / "own.keras")
    np.testing.assert_array_equal(again.predict(X[:, 0], verbose=0), plain(X[:, 0]))
    assert not own.left() and not again.layers[-1].left()


def test_models_may_have_attributes_of_any_name(tmp_path):
    class Own(keras.Model, Everything):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3, kernel_initializer="ones")
            self.take_names()

        def call(self, x):
            return self.dense(x)

    class Row(keras.Sequential, Everything):
        pass

    row = Row()
    row.take_names()
    row.add(keras.layers.Dense(3, kernel_initializer="ones"))
    found = []
    for model in (Own(), row, keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones")])):
        model.compile("sgd", "mse", metrics=["mae"])
        data = (X[:, 0], X[:, 1, :3])
        history = model.fit(*data, epochs=2, validation_data=data, verbose=0).history
        model.save_weights(tmp_path / "own.weights.h5")
        model.load_weights(tmp_path / "own.weights.h5")
        logs = model.evaluate(*data, verbose=0, return_dict=True)
        model.summary(print_fn=lambda text: None)
        found.append((history, logs, model.predict(X[:, 2], verbose=0).tolist()))
        assert isinstance(model, Everything) is (len(found) < 3)
        assert len(found) == 3 or not model.left()
    for other in found[:2]:
        for part, wanted in zip(td.nest.flatten(other), td.nest.flatten(found[2]), strict=True):
            np.testing.assert_allclose(part, wanted, rtol=1e-5)


QUERY, VALUE = X[:, :3, :4], X[:, :, :4]


class _Uniform(keras.layers.MultiHeadAttention):
    """All keys that the mask leaves count alike."""

    def _compute_attention(
        self, query, key, value, attention_mask=None, training=None, return_attention_scores=False
    ):
        rows = keras.ops.shape(query)[1]
        if attention_mask is None:
            attention_mask = td.ones([1, rows, keras.ops.shape(value)[1]])
        weights = keras.ops.cast(attention_mask, value.dtype)
        weights = weights / td.reduce_sum(weights, -1, keepdims=True)
        weights = td.repeat(weights, keras.ops.shape(query)[0], 0)
        return td.einsum("bqk,bkhd->bqhd", weights, value), weights


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_derived_attention_computes_in_its_own_way(wrap):
    """Keras's layer calls `_compute_attention` and its like, which programs replace."""
    layer = _Uniform(2, 3)
    found = wrap(lambda q, v: layer(q, v))(QUERY, VALUE)
    causal = wrap(lambda q, v: layer(q, v, use_causal_mask=True))(VALUE, VALUE)
    kernel, bias = layer._value_dense.weights
    heads = np.einsum("bkf,fhd->bkhd", VALUE, kernel) + bias
    into, more = layer._output_dense.weights

    def projected(of_heads):
        return np.einsum("bqhd,hdf->bqf", of_heads, into) + more

    mean = np.repeat(heads.mean(1, keepdims=True), 3, 1)
    np.testing.assert_allclose(found, projected(mean), 1e-5, 1e-6)
    so_far = np.cumsum(heads, 1) / np.arange(1, 7)[:, None, None]
    np.testing.assert_allclose(causal, projected(so_far), 1e-5, 1e-6)


def test_derived_attention_replaces_masks_and_softmax():
    class FirstOnly(keras.layers.MultiHeadAttention):
        def _compute_attention_mask(self, query, value, **masks):
            kept = np.zeros((1, query.shape[1], value.shape[1]), bool)
            kept[..., 0] = True
            return td.constant(kept)

    class Sharp(keras.layers.MultiHeadAttention):
        def _masked_softmax(self, attention_scores, attention_mask=None):
            return td.one_hot(td.argmax(attention_scores, -1), attention_scores.shape[-1])

    layer = FirstOnly(2, 3)
    first = layer(QUERY, VALUE)
    again = keras.layers.MultiHeadAttention(2, 3)
    again.build(QUERY.shape, VALUE[:, :1].shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(first, again(QUERY, VALUE[:, :1]), 1e-5, 1e-6)
    _, weights = Sharp(2, 3)(QUERY, VALUE, return_attention_scores=True)
    assert set(np.unique(weights)) == {0.0, 1.0}


def test_derived_group_attention_computes_in_its_own_way():
    class Negated(keras.layers.GroupQueryAttention):
        def _compute_attention(self, query, key, value, attention_mask=None, training=None):
            outputs, weights = super()._compute_attention(
                query, key, value, attention_mask=attention_mask, training=training
            )
            return -outputs, weights

    layer, plain = (
        kind(3, 4, 2, use_bias=False)
        for kind in (Negated, keras.layers.GroupQueryAttention)
    )
    layer(QUERY, VALUE)
    plain.build(QUERY.shape, VALUE.shape)
    plain.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(QUERY, VALUE), -plain(QUERY, VALUE), 1e-5, 1e-6)


def test_attention_by_the_names_that_derived_classes_read():
    """Cached attention of text models is written with what Keras's layer keeps."""

    class Cached(keras.layers.MultiHeadAttention):
        def call(self, query, value, attention_mask=None):
            outputs, _ = self._compute_attention(
                query=self._query_dense(query), key=self._key_dense(value),
                value=self._value_dense(value), attention_mask=attention_mask,
            )
            return self._output_dense(outputs)

    layer, plain = Cached(2, 3), keras.layers.MultiHeadAttention(2, 3)
    mask = np.tril(np.ones((4, 3, 6), bool))
    found = layer(QUERY, VALUE, attention_mask=mask)
    plain.build(QUERY.shape, VALUE.shape)
    plain.set_weights(layer.get_weights())
    wanted = plain(QUERY, VALUE, attention_mask=mask)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    assert (layer._num_heads, layer._key_dim, layer._value_dim, layer._use_bias) == (2, 3, 3, True)
    plain._use_bias = False
    assert plain.use_bias is False and abs(plain._inverse_sqrt_key_dim - 3**-0.5) < 1e-12


def test_layers_that_take_texts_and_lists_as_they_are():
    seen = []

    class Packed(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self._convert_input_args = False
            self._allow_non_tensor_positional_args = True

        def call(self, inputs, more=None):
            seen.append((inputs, more))
            return inputs

    assert Packed()([["a", "b"], ["c"]], more=[1.0]) == [["a", "b"], ["c"]]
    assert seen == [([["a", "b"], ["c"]], [1.0])]


def test_a_layer_is_renamed():
    layer = keras.layers.Dense(2, name="first")
    layer.name = "second"
    assert layer.name == "second" and layer.get_config()["name"] == "second"
