"""Damaged and hostile saved models: one clear error, and nothing of them is run."""

import json
import random
import shutil
import time
import zlib

import numpy as np
import pytest

import treadle as td
from treadle.saved_model import files

INDEX, GRAPHS = "saved_model.json", "graphs.txt"
TABLE = np.array([1.0] + [0.0] * 39, np.float32)


class Model(td.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.v = td.Variable([1.0, 2.0])
        self.pair = (td.Variable(1.0), td.Variable(["a"]))
        self.listed = [self.v, {"key": self.v}]
        self.asset = td.saved_model.Asset(vocabulary)

    @td.function(input_signature=[td.TensorSpec([None])])
    def f(self, x):
        total = td.constant(0.0)
        for i in td.range(td.size(x)):
            total += x[i] * self.v[0] if x[i] > 0.0 else td.reduce_sum(TABLE)
        return total

    @td.function(input_signature=[])
    def words(self):
        return td.io.read_file(self.asset.asset_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "vocabulary.txt").write_text("hello")
    td.saved_model.save(Model(folder / "vocabulary.txt"), folder / "model")
    return folder / "model"


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def change(folder, edit):
    """Change the index as somebody would who knows about its checksum."""
    content = json.loads((folder / INDEX).read_text())
    content.pop("checksum")
    edit(content)
    for name in content["files"]:
        if (folder / name).exists() and ".." not in name:
            content["files"][name] = files.checksum(folder / name)
            content["sizes"][name] = (folder / name).stat().st_size
    own = f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
    (folder / INDEX).write_text(json.dumps(content | {"checksum": own}))


def of_kind(content, kind):
    return next(o for o in content["objects"] if o["kind"] == kind)


def test_the_model_itself_is_sound(folder):
    change(folder, lambda content: None)
    loaded = td.saved_model.load(folder)
    assert loaded.words() == b"hello" and loaded.f([2.0, -1.0]) == 3.0


def test_flipped_bits_are_found(folder):
    draw = random.Random(1)
    paths = [p for p in folder.rglob("*") if p.is_file()]
    for path in sorted(paths) * 8:
        data = path.read_bytes()
        place = draw.randrange(len(data))
        changed = bytes([data[place] ^ 1 << draw.randrange(8)])
        path.write_bytes(data[:place] + changed + data[place + 1 :])
        with pytest.raises((td.errors.DataLossError, td.errors.UnimplementedError)):
            td.saved_model.load(folder)
        path.write_bytes(data)


def test_truncated_and_missing_files(folder):
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != INDEX):
        data = path.read_bytes()
        for kept in (0, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:kept])
            with pytest.raises(td.errors.DataLossError, match="damaged"):
                td.saved_model.load(folder)
        path.unlink()
        with pytest.raises(td.errors.NotFoundError, match=path.name):
            td.saved_model.load(folder)
        path.write_bytes(data)
    (folder / INDEX).write_bytes((folder / INDEX).read_bytes()[:100])
    with pytest.raises(td.errors.DataLossError, match="damaged"):
        td.saved_model.load(folder)


def test_files_of_different_models_do_not_mix(folder, tmp_path):
    model = Model(folder / "assets" / "vocabulary.txt")
    model.v.assign([5.0, 6.0])
    td.saved_model.save(model, tmp_path / "other")
    shutil.copy(tmp_path / "other/variables/variables.safetensors", folder / "variables")
    with pytest.raises(td.errors.DataLossError, match="does not belong"):
        td.saved_model.load(folder)


def test_a_newer_version(folder):
    change(folder, lambda content: content.update(version=2))
    with pytest.raises(td.errors.UnimplementedError, match="version 2"):
        td.saved_model.load(folder)


def test_no_model_and_one_of_tensorflow(tmp_path):
    assert not td.saved_model.contains_saved_model(tmp_path)
    with pytest.raises(OSError, match="SavedModel file does not exist"):
        td.saved_model.load(tmp_path)
    (tmp_path / "saved_model.pbtxt").write_text("")
    with pytest.raises(td.errors.UnimplementedError, match="TensorFlow as text"):
        td.saved_model.load(tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "..", "a\\b", "C:x", ""])
def test_names_outside_of_the_folder(folder, name):
    def asset(content):
        of_kind(content, "asset")["file"] = name

    change(folder, asset)
    with pytest.raises(td.errors.DataLossError, match="not inside"):
        td.saved_model.load(folder)


def test_files_of_the_index_outside_of_the_folder(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    change(folder, lambda content: content["files"].update({"../secret": "0"}))
    with pytest.raises(td.errors.DataLossError, match="not inside"):
        td.saved_model.load(folder)


def test_links_that_lead_outside(folder, tmp_path):
    (tmp_path / "secret").write_text("hello")
    (folder / "assets" / "vocabulary.txt").unlink()
    (folder / "assets" / "vocabulary.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(td.errors.DataLossError, match="not inside"):
        td.saved_model.load(folder)


def edits():
    """Changes of the index, each of which is wrong in its own way."""

    def at(*path, value):
        def edit(content):
            place = content
            for part in path[:-1]:
                place = of_kind(content, part) if isinstance(part, str) and (
                    place is content["objects"]) else place[part]  # fmt: skip
            place[path[-1]] = value

        return edit

    def tuple_in_itself(content):
        number = content["objects"].index(of_kind(content, "tuple"))
        of_kind(content, "tuple")["children"]["0"] = number

    def deep(content):
        content["functions"][0]["arguments"] = "(" * 100_000

    def long_number(content):
        content["functions"][0]["arguments"] = "(" + "9" * 100_000 + ",)"

    yield "no objects", at("objects", value=[])
    yield "root is a value", at("objects", 0, value={"kind": "list", "children": {}, "plain": "{}"})
    yield "unknown kind", at("objects", "list", "kind", value="pickle")
    yield "number of no object", at("objects", "list", "children", value={"0": 10**9})
    yield "negative number", at("objects", "list", "children", value={"0": -1})
    yield "no number", at("objects", "list", "children", value={"0": "1"})
    yield "gap in a list", at("objects", "list", "children", value={"7": 1})
    yield "tuple in itself", tuple_in_itself
    yield "other dtype", at("objects", "variable", "type", value="ref i32[2]")
    yield "other shape", at("objects", "variable", "type", value="ref f32[3]")
    yield "no such value", at("objects", "variable", "value", value="nothing")
    yield "no type", at("objects", "variable", "type", value="__import__('os')")
    yield "code for a literal", at("objects", "list", "plain", value="{0: open('/tmp/x', 'w')}")
    yield "no function", at("objects", "function", "concrete", value=[99])
    yield "parameter", at("objects", "function", "parameters", value=[{"name": "a b", "kind": "X"}])
    yield "deep", deep
    yield "long number", long_number
    yield "arguments", at("functions", 0, "arguments", value="((tensor f32[2, 2],), {})")
    yield "more arguments", at("functions", 0, "arguments", value="((), {})")
    yield "results", at("functions", 0, "results", value="'%9'")
    yield "captures", at("functions", 0, "captures", value=[["object", 0]])
    yield "no captures", at("functions", 0, "captures", value=[])
    yield "capture kinds", at("functions", 0, "captures", value=[["python", "os.system"]])
    yield "method", at("objects", "object", "children", value={"_trackable_children": 1})
    yield "not plain", at("objects", value=7)
    yield "huge shape", at("objects", "variable", "type", value="ref f32[99999999999999999999]")


@pytest.mark.parametrize("edit", [pytest.param(edit, id=what) for what, edit in edits()])
def test_wrong_indexes(folder, edit):
    change(folder, edit)
    since = time.perf_counter()
    with pytest.raises(td.errors.DataLossError, match="damaged"):
        td.saved_model.load(folder)
    assert time.perf_counter() - since < 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("strided_slice(", "os_system("),  # no such operation
        ("f32[] = add(", "i32[] = add("),  # another dtype than the operation gives
        ("return %", "return %9999"),  # a value that is not defined
        ("{begin=(0,)", "{begin=object '__import__(os)'"),
        ("{begin=(0,)", "{begin=" + "(" * 5000),
        ("f32[](0.0)", "f32[99999999999](#00ff)"),
        ("f32[](0.0)", "f32[](1.0, 2.0)"),
        ("f32[](0.0)", "f32[](" + "9" * 10_000 + ")"),
        ("while(", "while("[::-1]),
        ("graph ", "grap "),
        ("captures (", "("),
    ],
)
def test_wrong_graphs(folder, old, new):
    text = (folder / GRAPHS).read_text()
    assert old in text
    (folder / GRAPHS).write_text(text.replace(old, new, 1))
    change(folder, lambda content: None)
    with pytest.raises(td.errors.DataLossError, match="damaged"):
        td.saved_model.load(folder)


def test_a_graph_that_goes_in_a_circle(folder):
    text = (folder / GRAPHS).read_text()
    first, second = [line for line in text.splitlines() if " = reshape(" in line][:2]
    names = [line.split(":")[0].strip() for line in (first, second)]
    circle = text.replace(first, first.replace(first.split("reshape(")[1].split(")")[0], names[0]))
    assert circle != text
    (folder / GRAPHS).write_text(circle)
    change(folder, lambda content: None)
    with pytest.raises(td.errors.DataLossError, match="not defined"):
        td.saved_model.load(folder)


def test_huge_declared_sizes_take_no_memory(folder):
    path = folder / "constants.safetensors"
    length = (1 << 62).to_bytes(8, "little")
    path.write_bytes(length + path.read_bytes()[8:])
    change(folder, lambda content: None)
    with pytest.raises(td.errors.DataLossError, match="damaged"):
        td.saved_model.load(folder)


@pytest.mark.parametrize("name", [INDEX, GRAPHS, "variables/variables.safetensors"])
def test_files_that_grew_are_not_read(folder, name):
    """A hole of a tebibyte takes no place on disk, and would take an hour to read."""
    with open(folder / name, "r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(td.errors.DataLossError, match="damaged"):
        td.saved_model.load(folder)


def test_a_large_graph_whose_size_the_index_tells(folder, monkeypatch):
    with open(folder / GRAPHS, "a") as file:
        file.write(" " * 100_000)
    change(folder, lambda content: None)
    monkeypatch.setattr(files, "_MOST_TEXT", 50_000)
    with pytest.raises(td.errors.DataLossError, match="does not belong"):
        td.saved_model.load(folder)


def test_models_without_sizes_are_read(folder):
    content = json.loads((folder / INDEX).read_text())
    del content["sizes"], content["checksum"]
    own = f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
    (folder / INDEX).write_text(json.dumps(content | {"checksum": own}))
    assert td.saved_model.load(folder).f([1.0]).numpy() == 1.0


def test_a_large_index(folder, monkeypatch):
    monkeypatch.setattr(files, "_MOST_TEXT", 100)
    with pytest.raises(td.errors.DataLossError, match="too large"):
        td.saved_model.load(folder)


def test_random_changes_of_texts(folder):
    """Whatever is changed, the error is one of the documented ones."""
    draw, text = random.Random(2), (folder / GRAPHS).read_text()
    index = json.loads((folder / INDEX).read_text())
    for _ in range(60):
        begin = draw.randrange(len(text))
        end = begin + draw.randrange(20)
        other = "".join(draw.choice("0123456789%()[]{}=,:. fiabgraphtensor'#-\n") for _ in range(3))
        (folder / GRAPHS).write_text(text[:begin] + other + text[end:])
        (folder / INDEX).write_text(json.dumps(index))
        change(folder, lambda content: None)
        try:
            td.saved_model.load(folder)
        except td.errors.DataLossError:
            pass
