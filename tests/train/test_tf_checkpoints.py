"""Checkpoints that real TensorFlow wrote (tests/train/tf_checkpoints) are read."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import treadle as td

HERE = Path(__file__).parent / "tf_checkpoints"
ALL = ("module-1", "dtypes", "many", "sequential-1", "functional", "named", "operations")


def recorded(name):
    return json.loads((HERE / f"{name}.json").read_text())


def as_array(kind, shape, listed):
    if kind == "string":
        return np.array([text.encode("latin-1") for text in listed], object).reshape(shape)
    if kind.startswith("complex"):
        listed = [complex(*pair) for pair in listed]
    return np.array(listed, ml_dtypes.bfloat16 if kind == "bfloat16" else kind).reshape(shape)


@pytest.fixture
def copied(tmp_path):
    """A function that copies a checkpoint to where it may be damaged."""

    def copy(name):
        for path in HERE.glob(f"{name}.*"):
            shutil.copy(path, tmp_path)
        return tmp_path / name

    return copy


@pytest.mark.parametrize("name", ALL)
def test_every_value_is_read(name):
    reader = td.train.load_checkpoint(HERE / name)
    values = recorded(name)["values"]
    names = set(reader.get_variable_to_shape_map()) - {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert names == set(values)
    for key, (kind, shape, listed) in values.items():
        found, expected = reader.get_tensor(key), as_array(kind, shape, listed)
        assert reader.get_variable_to_dtype_map()[key].name == kind
        assert reader.get_variable_to_shape_map()[key] == shape == list(np.shape(found))
        np.testing.assert_array_equal(found, expected if expected.ndim else expected[()])


def test_names_and_shapes_are_listed():
    listed = td.train.list_variables(HERE / "named")
    assert listed == [("layer/bias", [2]), ("layer/kernel", [2, 2]), ("step", [])]
    assert td.train.load_variable(HERE / "named", "step") == 12
    with pytest.raises(td.errors.NotFoundError, match="Key nothing not found"):
        td.train.load_variable(HERE / "named", "nothing")


class Net(td.Module):
    def __init__(self):
        super().__init__()
        self.w = td.Variable(td.zeros([2, 3]))
        self.parts = [td.Variable(0), (td.Variable(0.0), td.Variable(["", "", ""]))]
        self.by_name = {"x/y.z": td.Variable(b""), "empty": []}
        self.generator = td.random.Generator.from_seed(99)
        self.same = self.w


def test_objects_of_a_module_are_restored():
    net, step = Net(), td.Variable(0)
    checkpoint = td.train.Checkpoint(net, other=net, step=step)
    checkpoint.restore(HERE / "module-1").assert_consumed().assert_nontrivial_match()
    values = recorded("module-1")["values"]
    w = as_array(*values["w/.ATTRIBUTES/VARIABLE_VALUE"])
    np.testing.assert_array_equal(net.w, w)
    assert step.numpy() == 7 and checkpoint.save_counter.numpy() == 1
    assert net.parts[0].numpy() == 3 and net.parts[1][0].numpy() == 2.5
    assert net.parts[1][1].numpy().tolist() == [b"a", "bc\xff".encode(), b""]
    assert net.by_name["x/y.z"].numpy() == b"text"
    expected = as_array(*values["generator/_state_var/.ATTRIBUTES/VARIABLE_VALUE"])
    np.testing.assert_array_equal(net.generator.state, expected)


def sequential(with_input=True):
    keras = td.keras
    start = [keras.Input((3,))] if with_input else []
    return keras.Sequential([
        *start,
        keras.layers.Dense(4, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.0),
        keras.layers.Dense(2),
    ])  # fmt: skip


@pytest.mark.parametrize("with_input", [True, False])
def test_a_sequential_model_and_its_optimizer_go_on_where_keras_stopped(with_input):
    facts = recorded("sequential-1")
    x, y = (np.array(facts[name], np.float32) for name in "xy")
    model = sequential(with_input)
    model.compile("adam", "mse")
    status = td.train.Checkpoint(model=model, optimizer=model.optimizer).restore(
        HERE / "sequential-1"
    )
    np.testing.assert_allclose(model.predict(x), facts["outputs"], rtol=1e-5, atol=1e-6)
    status.assert_consumed()
    assert model.optimizer.iterations.numpy() == 2
    model.fit(x, y, epochs=1, verbose=0, shuffle=False)
    assert len(model.get_weights()) == len(facts["after"])
    for weight, expected in zip(model.weights, facts["after"]):
        np.testing.assert_allclose(weight, expected, rtol=2e-5, atol=2e-6)


def test_slots_are_restored_when_the_first_step_makes_the_weights():
    facts = recorded("sequential-1")
    x, y = (np.array(facts[name], np.float32) for name in "xy")
    model = sequential(with_input=False)
    model.compile("adam", "mse")
    status = td.train.Checkpoint(model=model, optimizer=model.optimizer).restore(
        HERE / "sequential-1"
    )
    model.fit(x, y, epochs=1, verbose=0, shuffle=False)
    status.assert_consumed()
    for weight, expected in zip(model.weights, facts["after"]):
        np.testing.assert_allclose(weight, expected, rtol=2e-5, atol=2e-6)


def test_a_functional_model_is_restored():
    keras, facts = td.keras, recorded("functional")
    start = keras.Input((4,))
    hidden = keras.layers.Dense(6, activation="tanh")(start)
    model = keras.Model(start, keras.layers.LSTM(3)(keras.layers.Reshape((2, 3))(hidden)))
    td.train.Checkpoint(model).read(HERE / "functional").assert_consumed()
    x = np.array(facts["x"], np.float32)
    np.testing.assert_allclose(model.predict(x), facts["outputs"], rtol=1e-5, atol=1e-6)


def test_a_functional_model_with_operations_between_its_layers_is_restored():
    keras, facts = td.keras, recorded("operations")
    first, second = keras.Input((4,)), keras.Input((3,))
    hidden = keras.layers.Dense(3)(first) * 2.0 + second
    model = keras.Model([first, second], keras.layers.Dense(2)(keras.ops.tanh(hidden)))
    td.train.Checkpoint(model).read(HERE / "operations").assert_consumed()
    x = [np.array(part, np.float32) for part in facts["x"]]
    np.testing.assert_allclose(model.predict(x), facts["outputs"], rtol=1e-5, atol=1e-6)


def test_names_of_variables_are_matched_where_there_are_no_objects():
    values = recorded("named")["values"]
    kernel = td.Variable(np.zeros((2, 2)), name="layer/kernel")
    bias = td.Variable([0.0, 0.0], name="layer/bias")
    checkpoint = td.train.Checkpoint(a=kernel, b=[bias])
    status = checkpoint.restore(HERE / "named").assert_existing_objects_matched()
    np.testing.assert_array_equal(kernel, as_array(*values["layer/kernel"]))
    assert bias.numpy().tolist() == [1.5, -2.5]
    with pytest.raises(AssertionError, match="'step'"):
        status.assert_consumed()
    checkpoint.step = td.Variable(0, dtype=td.int64, name="step")
    status.assert_consumed()
    assert checkpoint.step.numpy() == 12


def test_every_flipped_bit_of_the_index_is_found(copied):
    prefix = copied("named")
    path = Path(f"{prefix}.index")
    good = path.read_bytes()
    names = td.train.list_variables(prefix)
    # The index of filters is not read; that of an empty one is the last block but one.
    read = [at for at in range(8 * len(good)) if at // 8 < len(good) - 48]
    silent = []
    for bit in read:
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        try:
            assert td.train.list_variables(prefix) == names
            silent.append(bit // 8)
        except td.errors.DataLossError as error:
            assert "named.index is damaged" in str(error)
    # What lies between the blocks that are read: a block of filters, which is empty.
    assert len(set(silent)) <= 13, sorted(set(silent))


@pytest.mark.parametrize("name", ["module-1", "named"])
def test_flipped_bits_of_the_data_are_found(copied, name):
    prefix = copied(name)
    (path,) = prefix.parent.glob(f"{name}.data-*")
    good, names = path.read_bytes(), list(recorded(name)["values"])
    sound = td.train.load_checkpoint(prefix)
    places = [e for e in sound._file._entries.values() if e.number != 21]
    covered = [range(e.offset, e.offset + e.size) for e in places]
    for bit in range(0, 8 * len(good), 9):
        if not any(bit // 8 in place for place in covered):
            continue  # of an iterator, which is not read
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(td.errors.DataLossError, match="is damaged"):
            reader = td.train.load_checkpoint(prefix)
            for key in names:
                reader.get_tensor(key)


def test_truncated_files_are_found(copied):
    prefix = copied("module-1")
    index = Path(f"{prefix}.index").read_bytes()
    for size in (0, 10, 47, 100, len(index) - 1):
        Path(f"{prefix}.index").write_bytes(index[:size])
        with pytest.raises(td.errors.DataLossError, match=r"module-1\.index is damaged"):
            td.train.load_checkpoint(prefix)
    Path(f"{prefix}.index").write_bytes(index)
    (data,) = prefix.parent.glob("*.data-*")
    data.write_bytes(data.read_bytes()[:-200])
    net = Net()
    with pytest.raises(td.errors.DataLossError, match="data-00000-of-00001 is damaged"):
        td.train.Checkpoint(net).restore(prefix)
    assert not np.any(net.w.numpy()) and net.parts[0].numpy() == 0  # nothing was changed
    data.unlink()
    with pytest.raises(td.errors.NotFoundError, match="data-00000-of-00001"):
        td.train.Checkpoint(net).restore(prefix)
