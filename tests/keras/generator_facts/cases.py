"""Calls of `keras.preprocessing` whose results are recorded from Keras and then expected.

A case takes ``keras.preprocessing`` of the module under test and a folder with pictures, and gives
arrays, numbers and texts. What is drawn comes from NumPy's and Python's global generators, which
are seeded before.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def wave(*shape: int) -> Any:
    """Pixels in 0 ... 255 without ties."""
    return 127.5 * (np.sin(1.7 * np.arange(np.prod(shape))) + 1).reshape(shape)


IMAGES = wave(7, 6, 5, 3).astype("float32")
LABELS = np.array([0, 1, 0, 1, 1, 0, 1])
TEXTS = ["The cat, the dog!", "A cat - it sat.", "Dogs & the cat's dogs", "x\tY\nz"]


def pictures(folder: Path) -> None:
    """Write pictures of three classes, without losses."""
    from PIL import Image

    for number in range(9):
        place = folder / "abc"[number % 3] / ("deep" if number == 5 else "")
        place.mkdir(parents=True, exist_ok=True)
        pixels = (wave(4 + number % 3, 5, 3) + 20 * number).astype("uint8")
        Image.fromarray(pixels).save(place / f"{number}.png")
    (folder / "a" / "notes.txt").write_text("no picture")


def frame(folder: Path) -> Any:
    """A table of the pictures."""
    import pandas

    names = sorted(str(path.relative_to(folder)) for path in folder.glob("**/*.png"))
    table = pandas.DataFrame({"filename": names, "class": [name[0] for name in names]})
    table["number"] = np.arange(len(names)) * 0.5
    table["several"] = [["a", "b"] if i % 2 else ["c"] for i in range(len(names))]
    table.loc[len(names)] = ["gone.png", "a", 9.0, ["a"]]
    return table


def _batches(count: int, flow: Any) -> list[Any]:
    found = []
    for _ in range(count):
        batch = next(flow)
        found += list(batch) if isinstance(batch, tuple) else [batch]
    return found


def generated(count: int = 3, fit: bool = False, flow: Any = None, **settings: Any) -> Any:
    """Batches of the array of images."""

    def case(module: Any, folder: Path) -> list[Any]:
        generator = module.image.ImageDataGenerator(**settings)
        if fit:
            generator.fit(IMAGES)
        x = IMAGES.transpose(0, 3, 1, 2) if "data_format" in settings else IMAGES
        given = {"batch_size": 3, "seed": 5, **(flow or {})}
        return _batches(count, generator.flow(x, LABELS, **given))

    return case


def from_folder(count: int = 4, **given: Any) -> Any:
    """Batches of pictures of a folder, and what the iterator knows of it."""

    def case(module: Any, folder: Path) -> list[Any]:
        generator = module.image.ImageDataGenerator(
            rescale=1 / 255, horizontal_flip=True, validation_split=0.4
        )
        settings = {"target_size": (4, 3), "batch_size": 2, "seed": 1, **given}
        flow = generator.flow_from_directory(str(folder), **settings)
        known = [len(flow), flow.n, *flow.filenames, json.dumps(flow.class_indices)]
        return [*known, flow.classes, *_batches(count, flow), flow.samples]

    return case


def from_frame(count: int = 3, **given: Any) -> Any:
    """Batches of pictures of a table."""

    def case(module: Any, folder: Path) -> list[Any]:
        generator = module.image.ImageDataGenerator(validation_split=0.3)
        settings = {"target_size": (3, 4), "batch_size": 4, "seed": 3, **given}
        flow = generator.flow_from_dataframe(frame(folder), str(folder), **settings)
        found: list[Any] = [len(flow), *flow.filenames]
        for part in _batches(count, flow):
            found += part if isinstance(part, list) else [part]
        return found

    return case


def _tokenized(**settings: Any) -> Any:
    def case(module: Any, folder: Path) -> list[Any]:
        tokenizer = module.text.Tokenizer(**settings)
        tokenizer.fit_on_texts(TEXTS)
        rows = tokenizer.texts_to_sequences([*TEXTS, "the unknown cat"])
        again = module.text.tokenizer_from_json(tokenizer.to_json())
        found = [
            json.dumps(rows), *tokenizer.sequences_to_texts([*rows, [1, 99, 2]]),
            json.dumps(tokenizer.word_index), json.dumps(dict(tokenizer.word_counts)),
            json.dumps(dict(sorted(tokenizer.word_docs.items()))), tokenizer.document_count,
            json.dumps(again.texts_to_sequences(TEXTS)),
        ]  # fmt: skip
        modes = ("binary", "count", "freq", "tfidf")
        found += [tokenizer.texts_to_matrix(TEXTS, mode) for mode in modes]
        tokenizer.fit_on_sequences([[1, 2], [2, 3]])
        return [*found, tokenizer.sequences_to_matrix([[1, 2, 2], []], "tfidf")]

    return case


def _series(module: Any, folder: Path) -> list[Any]:
    data, targets = np.arange(40).reshape(20, 2), np.arange(20) * 10
    found: list[Any] = []
    for settings in (
        {"batch_size": 4}, {"batch_size": 3, "sampling_rate": 2, "stride": 2, "reverse": True},
        {"batch_size": 4, "shuffle": True, "start_index": 2, "end_index": 17},
    ):  # fmt: skip
        made = module.sequence.TimeseriesGenerator(data, targets, 5, **settings)
        found += [len(made), *made[0], *made[len(made) - 1]]
    return found


def _pairs(module: Any, folder: Path) -> list[Any]:
    table = module.sequence.make_sampling_table(20, 1e-2)
    words = [1, 2, 0, 3, 4, 15, 2, 7]
    found: list[Any] = [table]
    for settings in (
        {"seed": 3}, {"window_size": 1, "negative_samples": 0.0, "shuffle": False},
        {"categorical": True, "sampling_table": table}, {"negative_samples": 2.0},
    ):  # fmt: skip
        found += [np.asarray(v) for v in module.sequence.skipgrams(words, 20, **settings)]
    return found


def _words(module: Any, folder: Path) -> list[Any]:
    split, hashed = module.text.text_to_word_sequence, module.text.hashing_trick
    found = [json.dumps(split(text)) for text in TEXTS]
    found += [json.dumps(split("A-b.C", filters=".", lower=False, split="-"))]
    found += [json.dumps(hashed(text, 50, "md5")) for text in TEXTS]
    numbers = hashed("ab abc", 9, hash_function=len, analyzer=str.split)
    return [*found, json.dumps(numbers), len(module.text.one_hot("a b c", 10))]


def _transforms(module: Any, folder: Path) -> list[Any]:
    image, x = module.image, wave(3, 8, 6).astype("float32")
    last = {"row_axis": 0, "col_axis": 1, "channel_axis": 2}
    y = np.moveaxis(x, 0, 2)
    return [
        image.apply_affine_transform(x, theta=30, tx=1, ty=-2, shear=10, zx=0.8, zy=1.1),
        image.apply_affine_transform(y, theta=-20, fill_mode="reflect", order=2, **last),
        image.apply_affine_transform(y, zx=1.5, zy=0.5, fill_mode="constant", cval=7.0, **last),
        image.apply_channel_shift(y, 40.0, 2), image.apply_brightness_shift(y, 0.6),
        image.apply_brightness_shift(y - 50, 1.4, scale=False), image.random_rotation(x, 40),
        image.random_shift(x, 0.3, 0.2), image.random_shear(x, 20, fill_mode="wrap"),
        image.random_zoom(x, (0.5, 1.2)), image.random_zoom(x, (1, 1)),
        image.random_channel_shift(y, 30, 2), image.random_brightness(y, (0.3, 1.5)),
    ]  # fmt: skip


CASES: dict[str, Callable[[Any, Path], list[Any]]] = {
    "plain": generated(),
    "in order": generated(flow={"shuffle": False}),
    "turned": generated(rotation_range=40, width_shift_range=0.2, height_shift_range=[-1, 2, 3]),
    "zoomed": generated(shear_range=15, zoom_range=0.3, horizontal_flip=True, fill_mode="wrap"),
    "pixels": generated(width_shift_range=3, zoom_range=(0.7, 1.1), interpolation_order=0),
    "colors": generated(
        brightness_range=(0.4, 1.3), channel_shift_range=30, vertical_flip=True, rescale=0.5
    ),
    "own function": generated(
        preprocessing_function=np.sqrt, samplewise_center=True, samplewise_std_normalization=True
    ),
    "fitted": generated(fit=True, featurewise_center=True, featurewise_std_normalization=True),
    "whitened": generated(fit=True, zca_whitening=True, zca_epsilon=0.1),
    "channels first": generated(data_format="channels_first", rotation_range=20),
    "validation": generated(validation_split=0.3, flow={"subset": "validation"}),
    "training": generated(validation_split=0.3, flow={"subset": "training"}),
    "weights": generated(flow={"sample_weight": np.arange(7.0)}),
    "folder": from_folder(),
    "folder sparse": from_folder(class_mode="sparse", color_mode="grayscale", shuffle=False),
    "folder input": from_folder(class_mode="input", classes=["c", "a"], interpolation="bilinear"),
    "folder validation": from_folder(class_mode=None, subset="validation", color_mode="rgba"),
    "folder training": from_folder(subset="training", keep_aspect_ratio=True),
    "frame": from_frame(),
    "frame several": from_frame(y_col="several", weight_col="number"),
    "frame raw": from_frame(y_col=["number"], class_mode="raw", shuffle=False),
    "frame outputs": from_frame(y_col=["number", "class"], class_mode="multi_output"),
    "frame sparse": from_frame(class_mode="sparse", classes=["b", "c"], subset="training"),
    "tokenizer": _tokenized(),
    "tokenizer unknown": _tokenized(num_words=5, oov_token="<other>"),
    "tokenizer characters": _tokenized(char_level=True, num_words=9, lower=False),
    "series": _series,
    "pairs": _pairs,
    "words": _words,
    "transforms": _transforms,
}  # fmt: skip


def results(key: str, module: Any, folder: Path) -> list[Any]:
    """What a case gives, with the generators seeded."""
    np.random.seed(4)  # noqa: NPY002
    random.seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [v if isinstance(v, str) else np.asarray(v) for v in CASES[key](module, folder)]
