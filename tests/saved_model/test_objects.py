"""Objects of saved models: attributes, variables, assets, and checkpoints of loaded models."""

import json

import numpy as np
import pytest

import treadle as td


class Inner(td.Module):
    def __init__(self, parent=None):
        super().__init__()
        self.w = td.Variable([1.0, 2.0], name="w")
        self.parent = parent


class Outer(td.Module):
    def __init__(self):
        super().__init__(name="outermost")
        self.v = td.Variable(3.0, name="vee", aggregation=td.VariableAggregation.MEAN)
        self.fixed = td.Variable(1, trainable=False)
        self.open = td.Variable([1.0], shape=[None])
        self.any = td.Variable(1.0, shape=td.TensorShape(None))
        self.words = td.Variable(["a", "b"])
        self.wide = td.Variable(1j)
        self.narrow = td.Variable(1.0, dtype=td.bfloat16)
        self.shared = self.v
        self.inner = Inner(self)
        self.listed = [td.Variable(1.0), 2, [self.inner]]
        self.named = {"a": td.Variable(2.0), "b": "text", "c": object()}
        self.pair = ("first", td.Variable(4.0))
        self.constant = td.constant([5, 6])
        self.generator = td.random.Generator.from_seed(1)
        self.number = 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("objects") / "deep" / "model"
    td.saved_model.save(Outer(), path)
    return path


def test_attributes_are_as_they_were(folder):
    loaded = td.saved_model.load(folder)
    assert loaded.v.name == "vee:0" and loaded.v == 3.0 and loaded.v.trainable
    assert loaded.v.aggregation is td.VariableAggregation.MEAN
    assert not loaded.fixed.trainable and loaded.fixed.dtype is td.int32
    assert loaded.shared is loaded.v
    assert loaded.inner.parent is loaded
    assert loaded.listed[1] == 2 and loaded.listed[2][0] is loaded.inner
    assert set(loaded.named) == {"a", "b", "c"} and loaded.named["b"] == "text"
    assert loaded.pair[0] == "first" and loaded.pair[1] == 4.0
    assert loaded.constant.numpy().tolist() == [5, 6]
    assert loaded.words.numpy().tolist() == [b"a", b"b"]
    assert loaded.wide == 1j and loaded.narrow.dtype is td.bfloat16
    assert loaded.name == "outermost" and isinstance(loaded, td.Module)
    assert not hasattr(loaded, "number") and not callable(loaded)
    loaded.open.assign([1.0, 2.0, 3.0])
    loaded.any.assign([[1.0]])


def test_lists_of_variables(folder):
    loaded, model = td.saved_model.load(folder), Outer()
    for kind in ("variables", "trainable_variables", "non_trainable_variables"):
        names = [v.name for v in getattr(loaded, kind)]
        assert names == [v.name for v in getattr(model, kind)]
    assert [type(m) for m in loaded.submodules] == [type(loaded.inner)]


def test_the_variables_are_a_checkpoint(folder):
    model, loaded = Outer(), td.saved_model.load(folder)
    for one in (model, loaded):
        one.v.assign(9.0)
        one.inner.w.assign([0.0, 0.0])
        td.train.Checkpoint(one).restore(folder / "variables" / "variables").assert_consumed()
        assert one.v == 3.0
        np.testing.assert_array_equal(one.inner.w, [1.0, 2.0])
    names = dict(td.train.list_variables(folder / "variables" / "variables"))
    assert names["inner/w/.ATTRIBUTES/VARIABLE_VALUE"] == [2]


def test_checkpoints_of_loaded_models(folder, tmp_path):
    loaded = td.saved_model.load(folder)
    loaded.v.assign(8.0)
    path = td.train.Checkpoint(model=loaded).save(tmp_path / "ckpt")
    again = td.saved_model.load(folder)
    td.train.Checkpoint(model=again).restore(path).assert_consumed()
    assert again.v == 8.0


def test_a_loaded_model_is_saved_again(tmp_path):
    root = td.Module()
    root.v = td.Variable(2.0)
    root.f = td.function(lambda x: {"y": x * root.v}, input_signature=[td.TensorSpec([None])])
    td.saved_model.save(root, tmp_path / "first", signatures={"times": root.f})
    loaded = td.saved_model.load(tmp_path / "first")
    loaded.v.assign(3.0)
    td.saved_model.save(loaded, tmp_path / "second")
    again = td.saved_model.load(tmp_path / "second")
    assert again.f([1.0])["y"] == [3.0]
    assert again.signatures["times"](td.constant([2.0]))["y"] == [6.0]


def test_assets_move_with_the_model(tmp_path):
    root = td.Module()
    for name, text in (("one", "hello"), ("two", "world")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vocabulary.txt").write_text(text)
    first, second = (tmp_path / n / "vocabulary.txt" for n in ("one", "two"))
    root.assets = [td.saved_model.Asset(str(first)), td.saved_model.Asset(second)]
    root.read = td.function(
        lambda: td.strings.join([td.io.read_file(a.asset_path) for a in root.assets]),
        input_signature=[],
    )
    td.saved_model.save(root, tmp_path / "model")
    first.unlink()
    (tmp_path / "model").rename(tmp_path / "moved")
    loaded = td.saved_model.load(tmp_path / "moved")
    assert loaded.read() == b"helloworld"
    assert loaded.assets[0].asset_path == str(tmp_path / "moved/assets/vocabulary.txt").encode()


def test_a_missing_asset_leaves_the_model_that_is_there(folder, tmp_path):
    root = td.Module()
    root.v = td.Variable(1.0)
    td.saved_model.save(root, tmp_path)
    root.v.assign(2.0)
    root.asset = td.saved_model.Asset(tmp_path / "missing.txt")
    with pytest.raises(td.errors.NotFoundError, match="missing.txt|Could not write saved model"):
        td.saved_model.save(root, tmp_path)
    assert td.saved_model.load(tmp_path).v == 1.0
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".saving")]


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    root = td.Module()
    root.v = td.Variable(1.0)
    td.saved_model.save(root, tmp_path)
    root.v.assign(2.0)
    td.saved_model.save(root, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert td.saved_model.load(tmp_path).v == 2.0


def test_variables_may_be_left_zero(folder):
    options = td.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    assert td.saved_model.load(folder, options=options).v == 0.0


def test_tags(folder):
    td.saved_model.load(folder, tags="serve")
    td.saved_model.load(folder, tags={"serve"})
    with pytest.raises(td.errors.NotFoundError, match="train"):
        td.saved_model.load(folder, tags=["train"])


@pytest.mark.parametrize("value", [3, "text", [td.Module()], {"a": td.Module()}])
def test_what_is_no_model_is_refused(value, tmp_path):
    with pytest.raises(ValueError, match="Expected an object with variables or functions"):
        td.saved_model.save(value, tmp_path)


def test_the_index_is_readable(folder):
    index = json.loads((folder / "saved_model.json").read_text())
    assert index["format"] == "treadle.saved_model" and index["version"] == 1
    assert index["objects"][0]["children"]["v"] == index["objects"][0]["children"]["shared"]


def test_variables_of_which_each_replica_has_its_own(tmp_path):
    class Drawing(td.Module):
        def __init__(self):
            super().__init__()
            self.generator = td.random.Generator.from_seed(0)

        @td.function
        def __call__(self):
            return self.generator.normal([2])

    with td.distribute.MirroredStrategy().scope():
        root = Drawing()
        root()
        td.saved_model.save(root, tmp_path)
        expected = root()
    np.testing.assert_array_equal(td.saved_model.load(tmp_path)(), expected)
