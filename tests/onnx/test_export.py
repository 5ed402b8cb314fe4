"""Functions and models exported to ONNX: onnxruntime computes what they compute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import treadle as td
from tests.onnx.running import agree, exported, results, session

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def kinds(model: Any) -> list[str]:
    """The operators of the main graph."""
    return [node.op_type for node in model.graph.node]


def check(fn: Any, *arrays: Any, specs: Any = (), close: float = 1e-5) -> Any:
    """The model of a function, whose results onnxruntime gives, too."""
    model = exported(fn, *(specs or arrays))
    wanted = td.nest.flatten(fn(*map(td.constant, arrays)))
    agree(results(model, arrays), wanted, close)
    return model


def of_keras(model: Any, *shape: int) -> Any:
    """The export of a Keras model of one input, run for several batches."""
    found = exported(model)
    for batch in (1, 5):
        x = numbers(batch, *shape)
        agree(results(found, [x]), [model(x, training=False)])
    return found


# -- models ----------------------------------------------------------------------------------------


def test_an_mlp() -> None:
    layers = td.keras.layers
    model = td.keras.Sequential([
        layers.Input((8,)), layers.Dense(16, "relu"), layers.Dropout(0.5),
        layers.Dense(3, "softmax"),
    ])  # fmt: skip
    found = of_keras(model, 8)
    assert kinds(found) == ["MatMul", "Add", "Relu", "MatMul", "Add", "Softmax", "Identity"]
    names = {tensor.name for tensor in found.graph.initializer}
    assert {v.path for v in model.weights} == names
    (given,) = found.graph.input
    assert given.type.tensor_type.shape.dim[0].dim_param == f"{given.name}_dim_0"


def test_the_format_of_a_model(tmp_path: Path) -> None:
    layers = td.keras.layers
    model = td.keras.Sequential([layers.Input((4,)), layers.Dropout(0.5), layers.Dense(2)])
    model.export(tmp_path / "model.onnx", format="onnx")
    x = numbers(3, 4)
    found = onnx.load(tmp_path / "model.onnx")
    assert [given.name for given in found.graph.input] == ["inputs"]
    agree(results(found, [x]), [model(x, training=False)])
    with pytest.raises(ValueError, match="format='hdf5' is not supported: there are 'tf_saved_mod"):
        model.export(tmp_path / "model.h5", format="hdf5")


def test_a_cnn() -> None:
    layers = td.keras.layers
    model = td.keras.Sequential([
        layers.Input((12, 10, 3)), layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.BatchNormalization(), layers.MaxPooling2D(2),
        layers.DepthwiseConv2D(3, strides=2, padding="same"),
        layers.Conv2D(6, 3, dilation_rate=2, padding="same", groups=2),
        layers.AveragePooling2D(2, padding="same"), layers.Conv2DTranspose(5, 3, strides=2),
        layers.GlobalAveragePooling2D(), layers.Dense(4),
    ])  # fmt: skip
    statistics = [v for v in model.weights if not v.trainable]
    for variable in statistics:
        variable.assign(np.abs(numbers(*variable.shape)) + 0.5)
    found = of_keras(model, 12, 10, 3)
    assert kinds(found).count("Conv") == 3 and kinds(found).count("ConvTranspose") == 1


def test_an_lstm() -> None:
    layers = td.keras.layers
    model = td.keras.Sequential([
        layers.Input((7, 4)), layers.LSTM(6, return_sequences=True), layers.GRU(5), layers.Dense(2),
    ])  # fmt: skip
    assert "Loop" in kinds(of_keras(model, 7, 4))


def test_a_transformer_block() -> None:
    layers = td.keras.layers
    x = td.keras.Input((9, 16))
    attended = layers.MultiHeadAttention(4, 4)(x, x, use_causal_mask=True)
    y = layers.LayerNormalization()(x + attended)
    hidden = layers.Dense(16)(layers.Dense(32, "gelu")(y))
    model = td.keras.Model(x, layers.LayerNormalization()(y + hidden))
    of_keras(model, 9, 16)


def test_a_model_of_several_inputs() -> None:
    a, b = td.keras.Input((3,), name="a"), td.keras.Input((3,), name="b")
    model = td.keras.Model([a, b], td.keras.layers.Dense(2)(a * b))
    found = exported(model)
    assert [x.name for x in found.graph.input] == ["a", "b"]
    given = numbers(2, 3), numbers(2, 3)
    agree(results(found, given), [model(list(given))])


# -- functions -------------------------------------------------------------------------------------


@td.function
def halved(x: Any, limit: Any) -> Any:
    """Halves rows until they are small; signs decide what is then done."""
    steps = 0
    while td.reduce_max(td.abs(x)) > limit:
        x = x / 2.0
        steps += 1
    if td.reduce_sum(x) > 0.0:
        x = td.sqrt(td.abs(x))
    elif steps > 3:
        x = x + td.cast(steps, td.float32)
    return {"halves": x, "steps": steps}


@pytest.mark.parametrize("scale", [0.1, 5.0, -5.0, -100.0])
def test_while_and_if(scale: float) -> None:
    specs = [td.TensorSpec([None, 3]), td.TensorSpec([])]
    x = np.float32(scale) * (1 + np.arange(6, dtype=np.float32).reshape(2, 3))
    found = check(halved, x, np.float32(1.5), specs=specs)
    assert kinds(found)[-4:].count("If") == 1 and "Loop" in kinds(found)
    assert [v.name for v in found.graph.output] == ["halves", "steps"]


def test_loops_in_loops_read_what_is_outside() -> None:
    @td.function
    def f(x: Any) -> Any:
        total = td.zeros_like(x[0])
        for i in td.range(td.shape(x)[0]):
            for j in td.range(i):
                if x[i, 0] > x[j, 0]:
                    total += x[i] * x[j]
        return total

    check(f, numbers(5, 3), specs=[td.TensorSpec([None, 3])])


def test_tensor_arrays_are_sequences() -> None:
    @td.function
    def f(x: Any) -> Any:
        rows = td.TensorArray(td.float32, size=0, dynamic_size=True, element_shape=[3])
        state = x[0]
        for i in td.range(td.shape(x)[0]):
            state = state * 0.5 + x[i]
            rows = rows.write(i, state)
        return rows.stack(), rows.size()

    check(f, numbers(4, 3), specs=[td.TensorSpec([None, 3])])


def test_scans_and_maps() -> None:
    @td.function
    def f(x: Any) -> Any:
        sums = td.scan(lambda a, row: a + row, x)
        return td.map_fn(lambda row: td.reduce_max(row) * row, sums)

    check(f, numbers(4, 3), specs=[td.TensorSpec([None, 3])])


def test_arrays_that_grow_in_a_loop() -> None:
    @td.function
    def f(x: Any) -> Any:
        found = x[:0]
        for row in x:
            found = td.concat([found, row[None] * 2.0, row[None]], 0)
        return found

    check(f, numbers(3, 2), specs=[td.TensorSpec([None, 2])])


def test_gradients_are_exported() -> None:
    w = td.Variable(numbers(3, 2), name="w")

    @td.function
    def f(x: Any) -> Any:
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(td.tanh(x @ w)))
        return loss, tape.gradient(loss, w)

    check(f, numbers(4, 3), specs=[td.TensorSpec([None, 3])])


def test_sizes_are_computed_with() -> None:
    @td.function
    def f(x: Any) -> Any:
        n = td.shape(x)[0]
        flat = td.reshape(x, [-1])
        return td.reshape(flat[: n * 2], [2, n]), td.zeros([n // 2 + 1, 3]), td.range(n, 3 * n)

    for rows in (2, 5):
        check(f, numbers(rows, 4), specs=[td.TensorSpec([None, 4])])


# -- what a model tells ----------------------------------------------------------------------------


def test_values_are_named_and_tell_the_users_line() -> None:
    weight = td.Variable(numbers(3, 2), name="weight")

    @td.function
    def f(first: Any, second: Any) -> Any:
        with td.name_scope("scope"):
            product = td.matmul(first, weight)
        return product + second

    found = exported(f, td.TensorSpec([None, 3]), td.TensorSpec([None, 2]))
    first, second = found.graph.input
    assert (first.name, second.name) == ("first", "second")
    shapes = [[d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim] for x in
              (first, second)]  # fmt: skip
    assert shapes == [["first_dim_0", 3], ["second_dim_0", 2]]
    product = found.graph.node[0]
    assert product.name == product.output[0] == "scope/MatMul"
    assert product.doc_string.startswith(f"{__file__}:")
    assert [t.name for t in found.graph.initializer] == ["weight"]
    assert found.producer_name == "treadle" and found.opset_import[0].version == 20


def test_it_is_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f.onnx"
    made = td.onnx.export(lambda x: x * 2.0, path, td.TensorSpec([3]))
    assert onnx.load(path) == made
    agree(session(made).run(None, {"x": np.ones(3, np.float32)}), [np.full(3, 2, np.float32)])
    with pytest.raises(td.errors.FailedPreconditionError):
        td.onnx.export(lambda x: x, tmp_path, td.TensorSpec([3]))


def test_results_that_are_arguments_or_constants() -> None:
    check(lambda x: (x, x, td.constant(3), x + 1.0), numbers(2))


# -- what is refused -------------------------------------------------------------------------------


def test_what_has_no_form_is_named_with_its_line() -> None:
    counter = td.Variable(0)

    @td.function
    def counts(x: Any) -> Any:
        counter.assign_add(1)
        return x

    @td.function
    def draws(x: Any) -> Any:
        return x + td.random.normal([3])

    @td.function
    def inverts(x: Any) -> Any:
        if td.reduce_sum(x) > 0.0:
            x = td.linalg.inv(x)
        return x

    matrix = td.TensorSpec([3, 3])
    for fn, op in ((counts, "assign_variable"), (draws, "random_"), (inverts, "inverse")):
        with pytest.raises(td.errors.UnimplementedError) as caught:
            td.onnx.export(fn, None, matrix)
        assert op in caught.value.message and "cannot be written in ONNX" in caught.value.message
        assert __file__ in caught.value.message


def test_models_take_and_give_tensors() -> None:
    for fn in (lambda x: None, lambda x: td.TensorArray(td.float32, 1).write(0, x)):
        with pytest.raises(td.errors.InvalidArgumentError, match="return at least one tensor"):
            td.onnx.export(td.function(fn), None, td.TensorSpec([]))


def test_the_package_onnx_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'treadle\[onnx\]'"):
        td.onnx.export(lambda x: x, None, td.TensorSpec([]))
