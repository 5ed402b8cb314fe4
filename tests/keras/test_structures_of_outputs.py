"""Losses, metrics and labels of any structure of outputs; models that begin within others."""

import collections

import numpy as np
import pytest

import treadle as td

keras = td.keras
X = np.random.default_rng(0).random((8, 3)).astype("float32")
Y1, Y2 = np.full((8, 1), 0.5, "float32"), np.ones((8, 1), "float32")


def model(pack):
    x = keras.Input((3,))
    a = keras.layers.Dense(1, name="a")(x)
    b = keras.layers.Dense(1, name="b", activation="sigmoid")(x)
    return keras.Model(x, pack(a, b))


def names(made, y, **options):
    """The names of what `fit` gives."""
    made.compile("sgd", **options)
    return set(made.fit(X, y, 4, verbose=0).history)


def test_weighted_metrics_have_names_of_their_own():
    made = model(lambda a, b: [a, b])
    found = names(
        made, [Y1, Y2], loss={"a": "mse", "b": "binary_crossentropy"}, metrics={"a": ["mse"]},
        weighted_metrics={"a": ["mse"], "b": ["accuracy"]},
    )  # fmt: skip
    assert found == {"loss", "a_loss", "b_loss", "a_mse", "a_weighted_mse", "b_accuracy"}
    single = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    assert names(single, Y1, loss=["mse"], metrics=["mse"], weighted_metrics=["mse"]) == {
        "loss", "mse", "weighted_mse",
    }  # fmt: skip


@pytest.mark.parametrize("loss", ["mse", ["mse"], {"a": "mse"}, {"a": ["mse"]}])
@pytest.mark.parametrize("pack", [lambda a: a, lambda a: [a], lambda a: {"a": a}])
def test_a_single_output_in_any_structure(loss, pack):
    x = keras.Input((3,))
    made = keras.Model(x, pack(keras.layers.Dense(1, name="a", kernel_initializer="ones")(x)))
    made.compile("sgd", loss, metrics={"a": ["mse", "mae"]})
    found = made.evaluate(X, Y1, verbose=0, return_dict=True)
    errors = X.sum(1, keepdims=True) - Y1
    expected = {"loss": (errors**2).mean(), "mse": (errors**2).mean(), "mae": abs(errors).mean()}
    assert found == pytest.approx(expected, rel=1e-5)


def absolute(y_true, y_pred):
    """Takes a whole structure."""
    pairs = zip(td.nest.flatten(y_true), td.nest.flatten(y_pred), strict=True)
    return td.add_n([td.reduce_mean(td.abs(a - b)) for a, b in pairs])


def test_losses_of_parts_and_of_wholes():
    Pair = collections.namedtuple("Pair", "first second")
    for pack, own in (
        (lambda a, b: {"a": a, "b": b}, {"a": "mse", "b": "mae"}),
        (lambda a, b: Pair(a, b), Pair("mse", "mae")),
        (lambda a, b: (a, b), ("mse", "mae")),
    ):
        made = model(pack)
        made.compile("sgd", loss=[absolute, own], loss_weights=[2.0, *([1.0, 3.0],)])
        a, b = (x.numpy() for x in td.nest.flatten(made(X)))
        parts = [((a - Y1) ** 2).mean(), abs(b - Y2).mean()]
        whole = abs(a - Y1).mean() + abs(b - Y2).mean()
        found = made.evaluate(X, pack(Y1, Y2), verbose=0, return_dict=True)
        assert found["loss"] == pytest.approx(2 * whole + parts[0] + 3 * parts[1], rel=1e-5)
        assert len(found) == 4


def test_deep_structures():
    made = model(lambda a, b: {"x": (a, b), "y": b})
    y = {"x": (Y1, Y2), "y": Y2}
    found = names(made, y, loss={"x": [absolute, (None, "mse")], "y": "mae"})
    assert found == {"loss", "x_loss", "x/b_loss", "y_loss"}
    with pytest.raises(KeyError, match="can't be found in either the model's output"):
        names(made, y, loss={"z": "mse"})


def test_several_losses_of_one_output():
    made = model(lambda a, b: [a, b])
    made.compile("sgd", loss=["mse", ["mse", "mae"]])
    a, b = (x.numpy() for x in made(X))
    expected = ((a - Y1) ** 2).mean() + ((b - Y2) ** 2).mean() + abs(b - Y2).mean()
    assert made.evaluate(X, [Y1, Y2], verbose=0, return_dict=True)["loss"] == pytest.approx(
        expected, rel=1e-5
    )


def test_labels_of_the_outputs_that_have_a_loss():
    made = model(lambda a, b: [a, b])
    made.compile("sgd", loss=["mse", None])
    (a, _) = made(X)
    found = made.evaluate(X, Y1, verbose=0)
    assert found == pytest.approx(((a.numpy() - Y1) ** 2).mean(), rel=1e-5)


def test_models_within_models_have_their_own_layers():
    x = keras.Input((3,))
    first = keras.layers.Dense(4, name="first")(x)
    second = keras.layers.Dense(5, name="second")(first)
    part = keras.Model(first, second)
    assert [type(layer).__name__ for layer in part.layers] == ["InputLayer", "Dense"]
    assert part.count_params() == 25
    again = keras.Model.from_config(part.get_config())
    again.set_weights(part.get_weights())
    data = np.ones((2, 4), "float32")
    np.testing.assert_allclose(again(data).numpy(), part(data).numpy(), rtol=1e-6)


def test_dicts_with_more_than_the_inputs():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    made = keras.Model({"a": a, "b": b}, keras.layers.Add()([a, b]))
    with pytest.warns(UserWarning, match="doesn't match the expected structure"):
        found = made({"a": X, "b": X, "c": X})
    np.testing.assert_allclose(found.numpy(), X * 2)
    with pytest.raises(ValueError, match=r"no input named \['b'\]"):
        made({"a": X, "c": X})


def test_classes_of_programs_keep_their_arguments():
    class Own(keras.Model):
        def __init__(self, *args, param=1, **kwargs):
            super().__init__(*args, **kwargs)
            self.param = param

        def get_config(self):
            return super().get_config() | {"param": self.param}

    x = keras.Input((3,))
    made = Own(x, keras.layers.Dense(2)(x), param=3)
    assert Own.from_config(made.get_config()).param == 3


def test_inputs_that_programs_make_themselves():
    x = keras.KerasTensor((None, 3))
    function = keras.Function(x, x * 2.0)
    np.testing.assert_allclose(function(X).numpy(), X * 2)
    middle = keras.Input((3,)) + 1.0
    after = keras.Function(middle, middle**2)
    assert [type(step).__name__ for step in after.operations][1:] == ["FunctionOperation"]
