"""Small data in place of downloads, and less work in training, for a process that installs this."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WORDS = "the cat sat on a mat and then it went to see what was there and nobody had told".split()
EPOCHS, BATCHES, ROWS = 2, 4, 1280  # how much of a training is run


def install(folder: Path, program: str = "") -> None:
    """Replace data sets, downloads and long training of the library that is imported as tensorflow.

    Args:
        folder: for files in place of downloads.
        program: the text of what will run. Other libraries that it does not name are not imported.
    """
    import tensorflow as tf

    generator = np.random.default_rng(0)
    _datasets(tf, generator)
    if "fetch_california_housing" in program:
        _houses(generator)
    _training(tf)
    tf.keras.utils.get_file = lambda *args, **kwargs: stand_in(folder, *args, **kwargs)
    loader: Any = types.ModuleType("tensorflow_datasets")
    loader.load = lambda name, **options: _loaded(tf, generator, name, **options)
    loader.disable_progress_bar = lambda: None
    loader.Split = types.SimpleNamespace(TRAIN="train", TEST="test", VALIDATION="validation")
    sys.modules["tensorflow_datasets"] = loader


def _datasets(tf: Any, generator: np.random.Generator) -> None:
    def images(
        number: int, shape: tuple[int, ...], classes: int, label: tuple[int, ...] = ()
    ) -> Callable[..., Any]:
        # As many as there are, as programs divide them by their number: the same ones repeatedly.
        def part(n: int) -> Any:
            pictures = generator.integers(0, 256, (640, *shape)).astype("uint8")
            labels = generator.integers(0, classes, (640, *label)).astype("uint8")
            return np.resize(pictures, (n, *shape)), np.resize(labels, (n, *label))

        return lambda *args, **kwargs: (part(number), part(10_000))

    def texts(trained: int, tested: int, classes: int) -> Callable[..., Any]:
        def part(n: int, most: int) -> Any:
            rows = np.empty(n, object)
            some = [generator.integers(1, most, generator.integers(5, 40)) for _ in range(640)]
            for i in range(n):
                rows[i] = some[i % 640].tolist()
            return rows, generator.integers(0, classes, n)

        return lambda *args, num_words=None, **kwargs: (
            part(trained, num_words or 10_000), part(tested, num_words or 10_000)
        )  # fmt: skip

    def numbers(*args: Any, **kwargs: Any) -> Any:
        draw = generator.random
        return (draw((404, 13)), draw(404) * 50), (draw((102, 13)), draw(102) * 50)

    found = tf.keras.datasets
    found.mnist.load_data = found.fashion_mnist.load_data = images(60_000, (28, 28), 10)
    found.cifar10.load_data = images(50_000, (32, 32, 3), 10, (1,))
    found.cifar100.load_data = images(50_000, (32, 32, 3), 100, (1,))
    found.imdb.load_data = texts(25_000, 25_000, 2)
    found.reuters.load_data = texts(8982, 2246, 46)
    found.boston_housing.load_data = numbers
    index = {f"w{i}": i for i in range(1, 10_000)}
    found.imdb.get_word_index = found.reuters.get_word_index = lambda *args, **kwargs: index


def _houses(generator: np.random.Generator) -> None:
    """The table of houses of scikit-learn, which it downloads, where that is installed."""
    try:
        from sklearn import datasets, utils
    except ImportError:
        return
    names = "MedInc HouseAge AveRooms AveBedrms Population AveOccup Latitude Longitude".split()
    found = utils.Bunch(
        data=generator.random((1280, 8)), target=generator.random(1280) * 5, feature_names=names,
        target_names=["MedHouseVal"], DESCR="",
    )  # fmt: skip

    def fetch(*args: Any, return_X_y: bool = False, **kwargs: Any) -> Any:
        return (found.data, found.target) if return_X_y else found

    datasets.fetch_california_housing = fetch


def _training(tf: Any) -> None:
    """``fit`` for a few batches, silently."""
    fit = tf.keras.Model.fit
    names = inspect.signature(fit)

    def rows(values: Any) -> Any:
        return tf.nest.map_structure(lambda a: a[:ROWS] if isinstance(a, np.ndarray) else a, values)

    @functools.wraps(fit)
    def short(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = names.bind(self, *args, **kwargs).arguments
        given |= given.pop("kwargs", {})
        given["epochs"] = min(given.get("epochs", 1), given.get("initial_epoch", 0) + EPOCHS)
        given["verbose"] = 0
        x = given.get("x")
        if isinstance(x, tf.data.Dataset):
            given["x"] = x.take(BATCHES)
            given.pop("steps_per_epoch", None)
        elif isinstance(x, np.ndarray | list | tuple | dict):
            given |= {n: rows(given[n]) for n in ("x", "y", "sample_weight") if n in given}
        if isinstance(given.get("validation_data"), list | tuple):
            given["validation_data"] = rows(given["validation_data"])
        elif isinstance(given.get("validation_data"), tf.data.Dataset):
            given["validation_data"] = given["validation_data"].take(BATCHES)
            given.pop("validation_steps", None)
        if given.get("steps_per_epoch") is not None:
            given["steps_per_epoch"] = min(given["steps_per_epoch"], BATCHES)
        return fit(given.pop("self"), **given)

    tf.keras.Model.fit = short


def stand_in(
    folder: Path, fname: Any = None, origin: Any = None, *args: Any, **kwargs: Any
) -> str:
    """A file in place of a download: a picture, a table of numbers, or words.

    Raises:
        OSError: an archive, or a file of another kind.
    """
    name = os.path.basename(str(fname or origin).split("?")[0])
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    kind = path.suffix.lower()
    generator = np.random.default_rng(1)
    if kind in (".jpg", ".jpeg", ".png"):
        from PIL import Image

        small = generator.integers(0, 256, (15, 20, 3))
        Image.fromarray(np.kron(small, np.ones((8, 8, 1))).astype("uint8")).save(path)
    elif kind in (".csv", ".data"):
        rows = generator.random((200, 8)).round(3)
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    elif kind == ".txt":
        lines = (" ".join(generator.choice(WORDS, generator.integers(4, 14))) for _ in range(400))
        path.write_text(".\n".join(lines) + ".\n")
    else:
        raise OSError(f"get_file: {name} is not downloaded here")
    return str(path)


def _loaded(
    tf: Any, generator: np.random.Generator, name: str, split: Any = None,
    as_supervised: bool = False, with_info: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """What ``tensorflow_datasets.load`` gives, with drawn pictures or words."""

    def part(n: int) -> Any:
        if any(word in name for word in ("imdb", "reviews", "text")):
            lines = [" ".join(generator.choice(WORDS, generator.integers(5, 30))) for _ in range(n)]
            key, x = "text", np.array(lines)
        else:
            shape = (28, 28, 1) if "mnist" in name else (32, 32, 3)
            key, x = "image", generator.integers(0, 256, (n, *shape)).astype("uint8")
        y = generator.integers(0, 2 if key == "text" else 10, n)
        elements = (x, y) if as_supervised else {key: x, "label": y}
        return tf.data.Dataset.from_tensor_slices(elements)

    if split is None:
        found: Any = {"train": part(320), "test": part(96)}
    else:
        found = [part(160) for _ in split] if isinstance(split, list | tuple) else part(320)
    info = types.SimpleNamespace(
        features={"label": types.SimpleNamespace(num_classes=10)},
        splits={kind: types.SimpleNamespace(num_examples=320) for kind in ("train", "test")},
    )
    return (found, info) if with_info else found
