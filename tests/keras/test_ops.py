"""`keras.ops` give what Keras gives: eagerly, in functions, and as steps of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.keras.ops_facts.cases import CALLS, INPUTS, made, parts
from treadle import keras
from treadle.keras import ops

FACTS = np.load(Path(__file__).parent / "ops_facts" / "facts.npz")
DESCRIBED = json.loads(str(FACTS["described"]))["calls"]
# Dtypes are the same everywhere; the others give numbers of Python.
PLAIN = [c for c in CALLS if not c.startswith(("shape(", "ndim(")) and "cast(J" not in c]
# Steps of a model of three inputs, and what a batch of them gives.
STEPS = [
    "add(F,G)", "subtract(F,1)", "multiply(B,2)", "matmul(F,M)", "mean(F)", "clip(F,-0.5,0.5)",
    "concatenate([F,G],axis=1)", "stack([F,G],axis=1)", "einsum(\"ij,kj->ik\",F,G)", "where(B,F,0)",
    "sum(F,axis=1,keepdims=True)", "expand_dims(F,(0,-1))", "transpose(F,(1,0))", "softmax(F)",
    "gelu(F,approximate=False)", "take(F,[0,2],axis=1)", "get_item(F,(slice(None),slice(1,3)))",
    "reshape(F,(3,-1))", "one_hot(argmax(F,axis=1),3)", "top_k(F,2)", "split(F,3,axis=1)",
    "pad(F,((1,1),(2,2)))", "cast(F,\"int32\")", "maximum(F,G)", "average(F,axis=1)",
    "layer_normalization(F,epsilon=0.1)", "isclose(F,G,rtol=0.5)", "moments(F,axes=1)",
    "cumsum(F,axis=1)", "norm(F,axis=1)", "repeat(F,2,axis=1)", "logsumexp(F,axis=1)",
]  # fmt: skip


def check(call: str, value: Any) -> None:
    found, facts = parts(value), DESCRIBED[call]
    assert [[dtype, list(shape)] for dtype, shape, _ in found] == facts, call
    for number, (dtype, _, values) in enumerate(found):
        small = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 2e-5)
        expected = FACTS[f"{call}/{number}"]
        np.testing.assert_allclose(values, expected, rtol=small, atol=small, err_msg=call)


def test_every_call_is_recorded() -> None:
    assert set(CALLS) == set(DESCRIBED)


@pytest.mark.parametrize("call", CALLS)
def test_fact(call: str) -> None:
    check(call, made(keras, call, INPUTS))


@pytest.mark.parametrize("first", range(0, len(PLAIN), 25))
def test_in_functions(first: int) -> None:
    calls = PLAIN[first : first + 25]

    @td.function
    def compute(inputs: Any) -> Any:
        return [td.nest.flatten(made(keras, call, inputs)) for call in calls]

    for call, value in zip(calls, compute({k: td.constant(v) for k, v in INPUTS.items()})):
        check(call, value)


def test_steps_of_models_and_their_configs() -> None:
    given = {name: keras.Input(batch_shape=(2, 3), dtype=INPUTS[name].dtype) for name in "FGB"}
    inputs = given | {"M": INPUTS["M"]}
    names = vars(ops)
    results = [eval(call, {**names, "slice": slice}, inputs) for call in STEPS]
    model = keras.Model(list(given.values()), results)
    again = keras.models.model_from_json(model.to_json())
    batch = [td.constant(INPUTS[name]) for name in "FGB"]
    for found in (model(batch), again(batch)):
        for call, result in zip(STEPS, found, strict=True):
            expected = eval(call, {**names, "slice": slice}, INPUTS)
            for a, b in zip(td.nest.flatten(result), td.nest.flatten(expected), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, err_msg=call)


def test_activations_and_operators_are_steps() -> None:
    x = keras.Input((3,))
    y = keras.activations.relu(x, negative_slope=0.1) + abs(-x) * 2 - x / 2.0
    z = keras.ops.where((y > 0.5) & (x < 1.0), y[:, :1], keras.activations.mish(x))
    model = keras.Model(x, z)
    again = keras.models.model_from_json(model.to_json())
    kinds = {entry["class_name"] for entry in model.get_config()["layers"]}
    assert {"ReLU", "Absolute", "Negative", "Divide", "GetItem", "LogicalAnd", "Mish"} <= kinds
    batch = td.constant(INPUTS["F"])
    np.testing.assert_array_equal(model(batch), again(batch))


def test_what_is_not_provided_says_so() -> None:
    with pytest.raises(AttributeError, match="Use|not provided"):
        _ = keras.distribution.ModelParallel
    for name in ("JaxLayer", "TorchModuleWrapper", "FlaxLayer"):
        with pytest.raises(AttributeError, match="td.numpy_function"):
            getattr(keras.layers, name)


def test_draws_whose_numbers_are_not_keras_s() -> None:
    drawn = keras.random.truncated_normal((1000,), mean=1.0, stddev=0.5, seed=3).numpy()
    assert np.abs(drawn - 1.0).max() <= 1.0 and abs(drawn.mean() - 1.0) < 0.05
    classes = keras.random.categorical([[0.0, 3.0, -50.0]], 1000, seed=1).numpy()
    assert classes.dtype == np.int32 and 0.9 < classes.mean() < 1.0


def test_seeds() -> None:
    generator = keras.random.SeedGenerator(5)
    draw = td.function(lambda: keras.random.uniform((2,), seed=generator))
    first, second = draw(), draw()
    assert not np.array_equal(first, second) and generator.state.numpy().tolist() == [5, 2]
    keras.utils.set_random_seed(3)
    numbers = keras.random.normal((3,))
    keras.utils.set_random_seed(3)
    np.testing.assert_array_equal(keras.random.normal((3,)), numbers)
    with pytest.raises(ValueError, match="integer or an instance"):
        keras.random.normal((3,), seed="seven")


def test_tree() -> None:
    tree = keras.tree
    nested = {"b": [1, (2, None)], "a": 4}
    assert tree.flatten(nested) == [4, 1, 2, None]
    assert tree.flatten_with_path(nested)[2] == (("b", 1, 0), 2)
    assert tree.pack_sequence_as(nested, list("wxyz")) == {
        "b": ["x", ("y", "z")], "a": "w",
    }  # fmt: skip
    assert tree.map_structure(lambda x: x, nested) == nested
    assert tree.lists_to_tuples([1, {"a": [2]}]) == (1, {"a": (2,)})
    shapes = tree.map_shape_structure(lambda s: (*s, 9), {"a": (None, 2), "b": [(3,)]})
    assert shapes == {"a": (None, 2, 9), "b": [(3, 9)]}
    seen: list[object] = []
    tree.traverse(seen.append, [(1,), 2], top_down=False)
    assert seen == [1, (1,), 2, [(1,), 2]]
    with pytest.raises(ValueError, match="same nested structure"):
        tree.assert_same_structure([1, [2]], [1, 2])
    with pytest.raises(ValueError, match="same paths"):
        tree.assert_same_paths([1, 2], {"a": 1})


def test_margins_may_be_a_tensor():
    x = np.arange(6.0, dtype="f").reshape(1, 2, 3)
    widths = [[0, 0], [1, 0], [1, 1]]
    wanted = np.pad(x, widths, mode="reflect")
    found = keras.ops.pad(x, td.constant(widths), mode="reflect")
    np.testing.assert_array_equal(found, wanted)
    traced = td.function(lambda v: keras.ops.pad(v, td.constant(widths), mode="reflect"))
    np.testing.assert_array_equal(traced(td.constant(x)), wanted)
    by_argument = td.function(lambda v, w: keras.ops.pad(v, w))
    np.testing.assert_array_equal(
        by_argument(td.constant(x), td.constant(widths)), np.pad(x, widths)
    )


def test_a_size_alone_is_the_shape_of_an_input():
    assert keras.Input(5).shape == (None, 5)


def test_elements_along_an_axis_have_the_sizes_that_are_known():
    """Heads of text models are built on them: the last size must not be lost."""
    x, places = keras.Input((None, 16)), keras.Input((1, 1), dtype="int32")
    assert keras.ops.take_along_axis(x, places, axis=1).shape == (None, 1, 16)
    rng = np.random.default_rng(0)
    for sizes, at, axis in (((3, 4, 5), (3, 2, 1), 1), ((3, 4, 1), (3, 2, 6), -2)):
        array, indices = rng.standard_normal(sizes), rng.integers(0, sizes[axis], at)
        specs = [td.TensorSpec([None, *s[1:]], d) for s, d in ((sizes, "float64"), (at, "int64"))]
        taken = td.function(lambda a, b, axis=axis: keras.ops.take_along_axis(a, b, axis), specs)
        np.testing.assert_array_equal(
            taken(array, indices), np.take_along_axis(array, indices, axis)
        )
