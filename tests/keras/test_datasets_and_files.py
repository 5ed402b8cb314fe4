"""Datasets of files on this machine, pictures, folders and files that are fetched."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = tmp_path / "datasets"
    folder.mkdir()
    return folder


def lists(*rows: list[int]) -> Any:
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


def test_a_missing_file_is_named(home: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"put https://.*mnist\.npz at .*datasets/mnist"):
        keras.datasets.mnist.load_data()
    with pytest.raises(FileNotFoundError, match="cifar-10-python.tar.gz"):
        keras.datasets.cifar10.load_data()


def test_mnist_and_tables(home: Path) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(6, 2, 2)
    np.savez(home / "mnist.npz", x_train=x, y_train=x[:, 0, 0], x_test=x[:2], y_test=x[:2, 0, 0])
    (train, labels), (test, _) = keras.datasets.mnist.load_data()
    assert train.tolist() == x.tolist() and labels.dtype == np.uint8 and len(test) == 2
    rows = np.arange(20.0).reshape(10, 2)
    np.savez(home / "other.npz", x=rows, y=rows[:, 0])
    for module in (keras.datasets.boston_housing, keras.datasets.california_housing):
        (a, b), (c, d) = module.load_data(path=str(home / "other.npz"), test_split=0.3)
        assert a.shape == (7, 2) and d.shape == (3,)
        np.testing.assert_array_equal(np.sort(np.concatenate([b, d])), rows[:, 0])


def test_fashion_mnist(home: Path) -> None:
    folder = home / "fashion-mnist"
    folder.mkdir()
    images = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28)
    for of in ("train", "t10k"):
        for name, array in (("images-idx3", images), ("labels-idx1", images[:, 0, 1])):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            path = folder / f"{of}-{name}-ubyte.gz"
            path.write_bytes(gzip.compress(head + array.tobytes()))
    (x, y), _ = keras.datasets.fashion_mnist.load_data()
    np.testing.assert_array_equal(x, images)
    assert y.tolist() == images[:, 0, 1].tolist()
    for left in (head, head[:6], head[:3], b""):
        path.write_bytes(gzip.compress(left))
        with pytest.raises(ValueError, match="damaged"):
            keras.datasets.fashion_mnist.load_data()


def test_cifar_reads_arrays_and_nothing_else(home: Path) -> None:
    def archive(entry: Any) -> None:
        with tarfile.open(home / "cifar-100-python.tar.gz", "w:gz") as tar:
            for name in ("train", "test"):
                data = pickle.dumps(entry, protocol=2)
                info = tarfile.TarInfo(f"cifar-100-python/{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    pixels = np.arange(2 * 3072, dtype=np.uint64).astype(np.uint8).reshape(2, 3072)
    archive({b"data": pixels, b"fine_labels": [3, 4], b"coarse_labels": [1, 0]})
    (x, y), _ = keras.datasets.cifar100.load_data(label_mode="coarse")
    assert x.shape == (2, 32, 32, 3) and y.tolist() == [[1], [0]]
    np.testing.assert_array_equal(x[0, 0, 0], pixels.reshape(2, 3, 32, 32)[0, :, 0, 0])
    archive({b"data": Path("/")})  # what a pickle may be made to call
    with pytest.raises(pickle.UnpicklingError, match="could run code"):
        keras.datasets.cifar100.load_data()


def test_texts(home: Path) -> None:
    reviews = lists([1, 5, 2], [9, 9], [3], [4, 7, 7, 7])
    with np.errstate(all="ignore"):
        np.savez(home / "imdb.npz", x_train=reviews, y_train=np.array([0, 1, 0, 1]),
                 x_test=reviews[:2], y_test=np.array([1, 0]))  # fmt: skip
    (x, y), (test, _) = keras.datasets.imdb.load_data(num_words=10)
    assert x.dtype == object and sorted(map(len, x)) == [2, 3, 4, 5]
    assert all(text[0] == 1 and max(text) < 10 for text in [*x, *test])
    (home / "imdb_word_index.json").write_text(json.dumps({"the": 1}))
    assert keras.datasets.imdb.get_word_index() == {"the": 1}
    np.savez(home / "reuters.npz", x=reviews, y=np.arange(4))
    (x, _), (test, labels) = keras.datasets.reuters.load_data(test_split=0.5, maxlen=5)
    assert len(x) + len(test) == 3 and len(keras.datasets.reuters.get_label_names()) == 46


def test_pictures(tmp_path: Path) -> None:
    picture = np.arange(4 * 5 * 3, dtype=np.float32).reshape(4, 5, 3) * 4
    keras.utils.save_img(tmp_path / "a.png", picture, scale=False)
    again = keras.utils.load_img(tmp_path / "a.png")
    np.testing.assert_array_equal(keras.utils.img_to_array(again), picture)
    grey = keras.utils.load_img(tmp_path / "a.png", color_mode="grayscale", target_size=(2, 3))
    assert keras.utils.img_to_array(grey, "channels_first").shape == (1, 2, 3)
    scaled = keras.utils.img_to_array(keras.utils.array_to_img(picture))
    assert scaled.min() == 0 and scaled.max() == 255
    with pytest.raises(ValueError, match="channel number"):
        keras.utils.array_to_img(np.zeros((2, 2, 5)))
    resized = keras.preprocessing.image.smart_resize(picture, (2, 2))
    assert isinstance(resized, np.ndarray) and resized.shape == (2, 2, 3)


def home_of_none(folder: Path) -> Path:
    (folder / "none").mkdir()
    return folder / "none"


def test_datasets_of_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shade in (("cats", 10), ("dogs", 200)):
        for number in range(4):
            (tmp_path / name).mkdir(exist_ok=True)
            picture = np.full((6, 8, 3), shade + number)
            keras.utils.save_img(tmp_path / name / f"{number}.png", picture, scale=False)
            (tmp_path / name / f"{number}.txt").write_text(f"{name} {number}")
    train, rest = keras.utils.image_dataset_from_directory(
        tmp_path, image_size=(3, 4), batch_size=3, seed=5, validation_split=0.25, subset="both"
    )
    assert train.class_names == ["cats", "dogs"] and "Found 8 files" in capsys.readouterr().out
    seen = 0
    for images, labels in [*train, *rest]:
        assert images.shape[1:] == (3, 4, 3) and images.dtype == td.float32
        np.testing.assert_array_equal(images[:, 0, 0, 0] > 100, labels == 1)
        seen += len(labels)
    assert seen == 8
    texts = keras.utils.text_dataset_from_directory(
        tmp_path, label_mode="binary", batch_size=None, shuffle=False, max_length=4
    )
    assert [(t.numpy(), float(y[0])) for t, y in texts][3:5] == [(b"cats", 0.0), (b"dogs", 1.0)]
    with pytest.raises(ValueError, match="No files found"):
        keras.utils.text_dataset_from_directory(home_of_none(tmp_path), labels=None)


def test_files_are_fetched_once(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "numbers.txt"
    source.write_text("1 2 3")
    origin = source.as_uri()
    path = keras.utils.get_file(origin=origin)
    source.unlink()
    assert keras.utils.get_file(origin=origin) == path and Path(path).read_text() == "1 2 3"
    source.write_text("4")
    with pytest.raises(ValueError, match="hash"):
        keras.utils.get_file("other", origin, file_hash="0" * 64)
    with pytest.raises(OSError, match="Put the file at"):
        keras.utils.get_file(origin=(tmp_path / "nowhere.txt").as_uri())
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(source, "inner.txt")
    folder = keras.utils.get_file("packed.tar.gz", packed.as_uri(), extract=True)
    assert (Path(folder) / "inner.txt").read_text() == "4"


def test_settings_by_name() -> None:
    config = keras.utils.Config(units=4, name="a")
    config.rate = 0.5
    assert config["units"] == 4 and "rate" in config and json.loads(config.to_json())["rate"] == 0.5
    config.freeze()
    with pytest.raises(ValueError, match="frozen"):
        config.units = 5


def test_limits_of_training() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    keras.config.set_max_epochs(2)
    keras.config.set_max_steps_per_epoch(3)
    try:
        history = model.fit(np.ones((40, 2)), np.ones((40, 1)), batch_size=4, epochs=9, verbose=0)
        assert len(history.history["loss"]) == 2 and int(model.optimizer.iterations) == 6
        assert model.predict(np.ones((40, 2)), batch_size=4, verbose=0).shape == (12, 1)
    finally:
        keras.config.set_max_epochs(None)
        keras.config.set_max_steps_per_epoch(None)


def test_reversible_embedding_and_functions() -> None:
    layer = keras.layers.ReversibleEmbedding(5, 3, logit_soft_cap=2.0)
    vectors = layer(np.array([[1, 4]]))
    logits = layer(vectors, reverse=True)
    table = layer.embeddings.numpy()
    np.testing.assert_allclose(logits, np.tanh(table[[[1, 4]]] @ table.T / 2) * 2, rtol=1e-5)
    x = keras.Input((3,))
    function = keras.Function([x], [keras.ops.sum(x, axis=1), x * 2])
    total, double = function([np.ones((2, 3), np.float32)])
    assert total.numpy().tolist() == [3.0, 3.0] and double.shape == (2, 3)
    assert function.compute_output_shape([(4, 3)]) == [(4,), (4, 3)]
    assert keras.utils.get_source_inputs(keras.ops.relu(x + 1)) == [x]
    variable = keras.Variable("ones", shape=(2,), dtype="float16")
    assert variable.dtype == td.float16 and keras.Variable(np.arange(3)).dtype == td.int64
    with pytest.raises(ImportError, match="pydot"):
        keras.utils.plot_model(keras.Model(x, x * 2))
