"""Datasets of the files in a folder, whose subfolders are classes: pictures, texts and sounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.keras.config import image_data_format
from treadle.keras.utils.images import smart_resize

_PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_METHODS = (
    "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
)  # fmt: skip


class _Files(NamedTuple):
    """Files of a folder: their paths, the numbers of their classes, and the classes' names."""

    paths: list[str]
    labels: list[int] | None
    class_names: list[str] | None

    def part(self, validation_split: float | None, subset: str | None) -> _Files:
        """Those for training, the first ones, or for validation."""
        if not validation_split:
            return self
        kept = int(validation_split * len(self.paths))
        training = subset == "training"
        count = len(self.paths) - kept if training else kept
        print(f"Using {count} files for {subset}.")
        at = slice(None, -kept) if training else slice(-kept, None)
        labels = None if self.labels is None else self.labels[at]
        return _Files(self.paths[at], labels, self.class_names)


def files_below(folder: str, endings: tuple[str, ...], follow_links: bool) -> list[str]:
    """The files in a folder and below it, in the order of their names."""
    walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda entry: entry[0])
    return [
        os.path.join(root, name)
        for root, _, names in walk
        for name in sorted(names)
        if name.lower().endswith(endings)
    ]


def _indexed(
    directory: Any, labels: Any, class_names: Any, endings: tuple[str, ...], shuffle: bool,
    seed: int, follow_links: bool, verbose: bool,
) -> _Files:  # fmt: skip
    folder = os.fspath(directory)
    if labels == "inferred":
        inside = [entry.name for entry in Path(folder).iterdir() if entry.is_dir()]
        found = sorted(name for name in inside if not name.startswith("."))
        if class_names is not None and not {*class_names} <= {*found}:
            raise ValueError(
                "The `class_names` passed did not match the names of the subdirectories of the "
                f"target directory. Expected: {found} (or a subset of it), but received: "
                f"class_names={class_names}"
            )
        names = list(class_names or found)
        groups = [files_below(os.path.join(folder, name), endings, follow_links) for name in names]
        paths = [path for group in groups for path in group]
        numbers = [number for number, group in enumerate(groups) for _ in group]
    else:
        paths, numbers, names = files_below(folder, endings, follow_links), labels, None
        if labels is not None:
            if len(labels) != len(paths):
                raise ValueError(
                    "Expected the lengths of `labels` to match the number of files in the target "
                    f"directory. len(labels) is {len(labels)} while we found {len(paths)} files in "
                    f"directory {directory}."
                )
            numbers, names = list(labels), [str(label) for label in sorted(set(labels))]
    if verbose:
        classes = "" if names is None else f" belonging to {len(names)} classes"
        print(f"Found {len(paths)} files{classes}.")
    if shuffle:
        for column in (paths, numbers):
            if column is not None:
                np.random.RandomState(seed).shuffle(column)
    return _Files(paths, numbers, names)


def _checked(
    labels: Any, label_mode: Any, class_names: Any, validation_split: Any, subset: Any,
    shuffle: bool, seed: Any,
) -> None:  # fmt: skip
    if labels not in ("inferred", None):
        if not isinstance(labels, list | tuple):
            raise ValueError(
                '`labels` is a list of the numbers of classes in the order of the files, "inferred"'
                f" from the subdirectories, or None. Received: labels={labels}"
            )
        if class_names:
            raise ValueError(
                'You can only pass `class_names` if `labels="inferred"`. Received: '
                f"labels={labels}, and class_names={class_names}"
            )
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError(
            '`label_mode` argument must be one of "int", "categorical", "binary", or None. '
            f"Received: label_mode={label_mode}"
        )
    if validation_split and not 0 < validation_split < 1:
        raise ValueError(
            f"`validation_split` must be between 0 and 1, received: {validation_split}"
        )  # fmt: skip
    if bool(validation_split) != bool(subset):
        raise ValueError("If `subset` is set, `validation_split` must be set, and inversely.")
    if subset not in ("training", "validation", "both", None):
        raise ValueError(
            '`subset` must be either "training", "validation" or "both", received: '
            f"{subset}"
        )  # fmt: skip
    if validation_split and shuffle and seed is None:
        raise ValueError(
            "If using `validation_split` and shuffling the data, you must provide a `seed` "
            "argument, to make sure that there is no overlap between the training and validation "
            "subset."
        )


def _from_folder(
    directory: Any, load: Callable[[Any], Any], endings: tuple[str, ...], labels: Any,
    label_mode: Any, class_names: Any, batch_size: int | None, shuffle: bool, seed: int | None,
    validation_split: float | None, subset: str | None, follow_links: bool, verbose: bool,
    batched: Callable[[Any, int], Any] = td.data.Dataset.batch, kind: str = "",
) -> Any:  # fmt: skip
    """A dataset of files.

    Args:
        load: the value of a path.
        endings: of the files.
        batched: puts elements of a dataset into batches of a size.
        kind: what the files are, with a blank behind it, for errors.
    """
    _checked(labels, label_mode, class_names, validation_split, subset, shuffle, seed)
    if labels is None or label_mode is None:
        labels = label_mode = None
    seed = int(np.random.randint(1000000)) if seed is None else seed  # noqa: NPY002
    files = _indexed(
        directory, labels, class_names, endings, shuffle, seed, follow_links, verbose
    )
    if label_mode == "binary" and len(files.class_names or ()) != 2:
        raise ValueError(
            'When passing `label_mode="binary"`, there must be exactly 2 class_names. Received: '
            f"class_names={files.class_names}"
        )

    def dataset(wanted: str | None) -> Any:
        part = files.part(validation_split, wanted)
        if not part.paths:
            raise ValueError(
                f"No {wanted + ' ' if wanted else ''}{kind}files found in directory {directory}. "
                f"Allowed formats: {endings}"
            )
        found = td.data.Dataset.from_tensor_slices(part.paths)
        if label_mode is not None:
            numbers = td.data.Dataset.from_tensor_slices(np.asarray(part.labels, np.int32))
            found = td.data.Dataset.zip((found, numbers))
        if shuffle and wanted != "validation":
            found = found.shuffle(1024 if batch_size is None else batch_size * 8, seed)
        count = len(part.class_names or ())
        if label_mode is None:
            found = found.map(load, td.data.AUTOTUNE)
        else:
            found = found.map(
                lambda path, label: (load(path), _labelled(label, label_mode, count)),
                td.data.AUTOTUNE,
            )
        found = found if batch_size is None else batched(found, batch_size)
        made: Any = found.prefetch(td.data.AUTOTUNE)
        made.class_names, made.file_paths = part.class_names, part.paths
        return made

    return [dataset("training"), dataset("validation")] if subset == "both" else dataset(subset)


def _labelled(label: Any, label_mode: str, count: int) -> Any:
    if label_mode == "binary":
        return td.expand_dims(td.cast(label, td.float32), -1)
    return td.one_hot(label, count) if label_mode == "categorical" else label


def _no_grain(format: str) -> None:
    if format != "tf":
        raise ValueError(f'`format` must be "tf": datasets are td.data.Dataset. Got {format!r}')


def image_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, color_mode: str = "rgb", batch_size: int | None = 32,
    image_size: Any = (256, 256), shuffle: bool = True, seed: int | None = None,
    validation_split: float | None = None, subset: str | None = None,
    interpolation: str = "bilinear", follow_links: bool = False,
    crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
    data_format: str | None = None, format: str = "tf", verbose: bool = True,
) -> Any:  # fmt: skip
    """A dataset of the pictures in a folder.

    Args:
        directory: the folder.
        labels: "inferred": each subfolder is a class; a list of numbers in the order of the files;
            or None.
        label_mode: "int", "categorical" (one-hot rows), "binary" (a column of 0 and 1) or None.
        class_names: the subfolders, in the order of their numbers; by their names when omitted.
        color_mode: "rgb", "rgba" or "grayscale".
        batch_size: None for single images.
        image_size: (height, width) of all images.
        shuffle: another order each time.
        seed: of the order.
        validation_split: the part of the files that is kept for validation.
        subset: "training", "validation" or "both".
        interpolation: how images are resized.
        follow_links: into other folders.
        crop_to_aspect_ratio: cut margins off instead of distorting the images.
        pad_to_aspect_ratio: add margins instead of distorting the images.
        data_format: "channels_last" or "channels_first".
        format: "tf".
        verbose: print how many files there are.

    Returns:
        A dataset of float32 images, with their labels, with the attributes `class_names` and
        `file_paths`; two of them for "both".

    Raises:
        ValueError: an argument is none of these, or there are no files.
    """
    _no_grain(format)
    counts = {"rgb": 3, "rgba": 4, "grayscale": 1}
    if color_mode not in counts:
        raise ValueError(
            '`color_mode` must be one of {"rgb", "rgba", "grayscale"}. Received: '
            f"color_mode={color_mode}"
        )  # fmt: skip
    size = [image_size] * 2 if isinstance(image_size, int) else list(image_size)
    if len(size) != 2:
        raise ValueError(
            "Invalid `image_size` value. Expected a tuple of 2 integers. "
            f"Received: image_size={image_size}"
        )  # fmt: skip
    method = interpolation.lower()
    if method not in _METHODS:
        raise ValueError(
            f"Argument `interpolation` should be one of {_METHODS}. "
            f"Received: interpolation={interpolation}"
        )  # fmt: skip
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`."
        )  # fmt: skip
    channels = counts[color_mode]
    last = (data_format or image_data_format()) == "channels_last"

    def load(path: Any) -> Any:
        image = td.io.decode_image(td.io.read_file(path), channels, expand_animations=False)
        if crop_to_aspect_ratio:
            image = smart_resize(image, size, method)
        elif pad_to_aspect_ratio:
            image = td.image.resize_with_pad(image, size[0], size[1], method)
        else:
            image = td.image.resize(image, size, method)
        image = td.ensure_shape(image, [*size, channels])
        return image if last else td.transpose(image, [2, 0, 1])

    return _from_folder(
        directory, load, _PICTURES, labels, label_mode, class_names, batch_size, shuffle, seed,
        validation_split, subset, follow_links, verbose,
    )  # fmt: skip


def text_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, batch_size: int | None = 32, max_length: int | None = None,
    shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
    subset: str | None = None, follow_links: bool = False, format: str = "tf",
    verbose: bool = True,
) -> Any:  # fmt: skip
    """A dataset of the texts (.txt) in a folder; the other arguments are those of
    `image_dataset_from_directory`.

    Args:
        max_length: so many bytes of each text.

    Raises:
        ValueError: an argument is not supported, or there are no files.
    """
    _no_grain(format)

    def load(path: Any) -> Any:
        text = td.io.read_file(path)
        return text if max_length is None else td.strings.substr(text, 0, max_length)

    return _from_folder(
        directory, load, (".txt",), labels, label_mode, class_names, batch_size, shuffle, seed,
        validation_split, subset, follow_links, verbose,
    )  # fmt: skip


def audio_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, batch_size: int | None = 32, sampling_rate: int | None = None,
    output_sequence_length: int | None = None, ragged: bool = False, shuffle: bool = True,
    seed: int | None = None, validation_split: float | None = None, subset: str | None = None,
    follow_links: bool = False, verbose: bool = True,
) -> Any:  # fmt: skip
    """A dataset of the sounds (.wav) in a folder, float32 [samples, channels] from -1 to 1; the
    other arguments are those of `image_dataset_from_directory`.

    Args:
        sampling_rate: None only: sounds keep the rate of their files.
        output_sequence_length: how many samples all sounds have: longer ones are cut, zeros are put
            behind shorter ones. When omitted, those of a batch are padded to its longest.
        ragged: batches are ragged tensors instead.

    Raises:
        ValueError: an argument is not supported, or there are no files.
        ImportError: another sampling rate is asked for.
    """
    if ragged and output_sequence_length is not None:
        raise ValueError(
            "Cannot set both `ragged` and `output_sequence_length`: ragged sounds keep their "
            "lengths"
        )
    if sampling_rate is not None:
        _check_rate(sampling_rate)
    samples = -1 if output_sequence_length is None else output_sequence_length

    def load(path: Any) -> Any:
        sound = td.audio.decode_wav(td.io.read_file(path), desired_samples=samples).audio
        return td.RaggedTensor.from_tensor(sound) if ragged else sound

    equal = ragged or output_sequence_length is not None
    return _from_folder(
        directory, load, (".wav",), labels, label_mode, class_names, batch_size, shuffle, seed,
        validation_split, subset, follow_links, verbose,
        td.data.Dataset.batch if equal else td.data.Dataset.padded_batch, "audio ",
    )  # fmt: skip


def _check_rate(sampling_rate: Any) -> None:
    if not isinstance(sampling_rate, int):
        raise ValueError(
            "`sampling_rate` should have an integer value. Received: "
            f"sampling_rate={sampling_rate}"
        )
    if sampling_rate <= 0:
        raise ValueError(
            f"`sampling_rate` should be higher than 0. Received: sampling_rate={sampling_rate}"
        )
    raise ImportError(
        "To use the argument `sampling_rate`, Keras needs tensorflow_io; here sounds keep the rate "
        "of their files: resample them with scipy.signal.resample_poly before"
    )
