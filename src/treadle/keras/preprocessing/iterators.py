"""Iterators over batches of images that an ImageDataGenerator changes."""

# Keras's programs seed NumPy's global generator, which draws here as it does there.
# ruff: noqa: NPY002
from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator as Batches
from typing import Any

import numpy as np

from treadle.keras.config import floatx, image_data_format
from treadle.keras.utils.datasets import PyDataset
from treadle.keras.utils.folders import files_below
from treadle.keras.utils.images import array_to_img, img_to_array, load_img


class Iterator(PyDataset):
    """Base of iterators over batches: `next` goes on for ever, indexing gives a batch of an epoch.

    Args:
        n: the number of images.
        batch_size: images in a batch.
        shuffle: in a new order each epoch.
        seed: of what is drawn.
    """

    white_list_formats = ("png", "jpg", "jpeg", "bmp", "ppm", "tif", "tiff")

    def __init__(
        self, n: int, batch_size: int, shuffle: bool, seed: int | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.batch_index = 0
        self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: Any = None
        self.index_generator = self._flow_index()

    def _set_index_array(self) -> None:
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def _seeded(self) -> None:
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)

    def __getitem__(self, idx: int) -> Any:
        if idx >= len(self):
            raise ValueError(
                f"Asked to retrieve element {idx}, but the Sequence has length {len(self)}"
            )
        self._seeded()
        self.total_batches_seen += 1
        if self.index_array is None:
            self._set_index_array()
        chosen = self.index_array[self.batch_size * idx : self.batch_size * (idx + 1)]
        return self._get_batches_of_transformed_samples(chosen)

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def on_epoch_end(self) -> None:
        """A new order, where it is shuffled."""
        self._set_index_array()

    def reset(self) -> None:
        """Begin with the first batch again."""
        self.batch_index = 0

    def _flow_index(self) -> Batches[Any]:
        """The numbers of the images of each batch, for ever."""
        self.reset()
        while True:
            self._seeded()
            if self.batch_index == 0:
                self._set_index_array()
            first = self.batch_index * self.batch_size % self.n if self.n else 0
            self.batch_index = self.batch_index + 1 if self.n > first + self.batch_size else 0
            self.total_batches_seen += 1
            yield self.index_array[first : first + self.batch_size]

    def __iter__(self) -> Batches[Any]:
        return self

    def __next__(self) -> Any:
        with self.lock:
            chosen = next(self.index_generator)
        return self._get_batches_of_transformed_samples(chosen)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        """The batch of the images with these numbers."""
        raise NotImplementedError(f"{type(self).__name__} must define it")


class _Images(Iterator):
    """What iterators share that change images."""

    image_data_generator: Any
    data_format: str
    dtype: Any

    def _keep_saving(self, save_to_dir: Any, save_prefix: str, save_format: str) -> None:
        self.save_to_dir, self.save_prefix = save_to_dir, save_prefix
        self.save_format = save_format

    def _changed(self, x: Any) -> Any:
        generator = self.image_data_generator
        if not generator:
            return x
        drawn = generator.get_random_transform(x.shape)
        return generator.standardize(generator.apply_transform(x, drawn))

    def _save(self, batch: Any, index_array: Any, most: float) -> None:
        """Write the images of a batch where the program wants to see them."""
        if not self.save_to_dir:
            return
        for image, number in zip(batch, index_array, strict=True):
            name = f"{self.save_prefix}_{number}_{np.random.randint(int(most))}.{self.save_format}"
            array_to_img(image, self.data_format, scale=True).save(
                os.path.join(self.save_to_dir, name)
            )


class NumpyArrayIterator(_Images):
    """Batches of the images of an array.

    Args:
        x: images; or a pair of them and another array, or list of arrays, that goes with them.
        y: labels.
        image_data_generator: changes the images.
        sample_weight: of each image.
        save_to_dir, save_prefix, save_format: where images are written as they are given.
        subset: ``"training"`` or ``"validation"``, by the generator's split.
        ignore_class_split: do not ask whether both subsets have all classes.
        dtype: of the images.

    Raises:
        ValueError: the arrays are not of one length, or not images.
    """

    def __init__(
        self, x: Any, y: Any, image_data_generator: Any, batch_size: int = 32,
        shuffle: bool = False, sample_weight: Any = None, seed: int | None = None,
        data_format: str | None = None, save_to_dir: Any = None, save_prefix: str = "",
        save_format: str = "png", subset: str | None = None, ignore_class_split: bool = False,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        self.dtype = dtype or floatx()
        self.data_format = data_format or image_data_format()
        others: list[Any] = []
        if isinstance(x, tuple | list):
            x, given = x[0], x[1]
            others = [np.asarray(o) for o in (given if isinstance(given, list) else [given])]
        columns = [("y", y), ("sample_weight", sample_weight), *(("x", o) for o in others)]
        for name, column in columns:
            if column is not None and len(x) != len(column):
                raise ValueError(
                    f"`x` (images tensor) and `{name}` should have the same length. Found: x.shape "
                    f"= {np.shape(x)}, {name}.shape = {np.shape(column)}"
                )
        if subset is not None:
            part = _part(image_data_generator, subset, len(x), y, ignore_class_split)
            x, others = x[part], [other[part] for other in others]
            y = None if y is None else y[part]
        self.x = np.asarray(x, dtype=self.dtype)
        self.x_misc = others
        if self.x.ndim != 4:
            raise ValueError(
                "Input data in `NumpyArrayIterator` should have rank 4. You passed an array with "
                f"shape {self.x.shape}"
            )
        axis = 3 if self.data_format == "channels_last" else 1
        if self.x.shape[axis] not in (1, 3, 4):
            warnings.warn(
                "NumpyArrayIterator is set to use the data format convention "
                f'"{self.data_format}" (channels on axis {axis}), i.e. expected either 1, 3, or 4 '
                f"channels on axis {axis}. However, it was passed an array with shape "
                f"{self.x.shape} ({self.x.shape[axis]} channels).", stacklevel=2,
            )  # fmt: skip
        self.y = None if y is None else np.asarray(y)
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        self.image_data_generator = image_data_generator
        self._keep_saving(save_to_dir, save_prefix, save_format)
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        batch = np.zeros((len(index_array), *self.x.shape[1:]), dtype=self.dtype)
        for place, number in enumerate(index_array):
            batch[place] = self._changed(self.x[number].astype(self.dtype))
        self._save(batch, index_array, 1e4)
        found = [batch, *(other[index_array] for other in self.x_misc)] if self.x_misc else batch
        if self.y is None:
            return found
        if self.sample_weight is None:
            return found, self.y[index_array]
        return found, self.y[index_array], self.sample_weight[index_array]


def _share(generator: Any, subset: str) -> tuple[float, float]:
    """Where a subset begins and ends, as parts of the whole."""
    split = generator._validation_split
    if subset not in ("training", "validation"):
        raise ValueError(
            f'Invalid subset name: {subset}; expected "training" or "validation".'
        )
    return (0, split) if subset == "validation" else (split, 1)


def _part(generator: Any, subset: str, count: int, y: Any, ignore_class_split: bool) -> slice:
    first, last = (int(count * end) for end in _share(generator, subset))
    at = last if subset == "validation" else first
    if y is not None and not ignore_class_split and not np.array_equal(
        np.unique(y[:at]), np.unique(y[at:])
    ):
        raise ValueError(
            "Training and validation subsets have different number of classes after the split. If "
            "your numpy arrays are sorted by the label, you might want to shuffle them."
        )
    return slice(first, last)


_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}


class _Files(_Images):
    """Batches of images of files."""

    class_mode: str | None
    class_indices: dict[Any, int]
    classes: Any
    allowed_class_modes: set[str | None]

    def _set(
        self, image_data_generator: Any, target_size: Any, color_mode: str, data_format: str,
        saving: tuple[Any, str, str], subset: str | None, interpolation: str,
        keep_aspect_ratio: bool,
    ) -> None:  # fmt: skip
        self.image_data_generator = image_data_generator
        self.target_size = tuple(target_size)
        self.keep_aspect_ratio, self.interpolation = keep_aspect_ratio, interpolation
        if color_mode not in _CHANNELS:
            raise ValueError(
                f'Invalid color mode: {color_mode}; expected "rgb", "rgba", or "grayscale".'
            )
        self.color_mode, self.data_format = color_mode, data_format
        channels = (_CHANNELS[color_mode],)
        last = data_format == "channels_last"
        self.image_shape = (
            (*self.target_size, *channels) if last else (*channels, *self.target_size)
        )
        self._keep_saving(*saving)
        self.subset = subset
        self.split = None if subset is None else _share(image_data_generator, subset)

    def _check_mode(self, class_mode: str | None) -> None:
        if class_mode not in self.allowed_class_modes:
            raise ValueError(
                f"Invalid class_mode: {class_mode}; expected one of: {self.allowed_class_modes}"
            )

    def _list(self, directory: str, names: list[str]) -> None:
        self.filenames = names
        self.samples = len(names)
        self._filepaths = [os.path.join(directory, name) for name in names]

    @property
    def filepaths(self) -> list[str]:
        """The paths of the images."""
        return self._filepaths

    @property
    def labels(self) -> Any:
        """The classes of the images."""
        return self.classes

    @property
    def sample_weight(self) -> Any:
        """The weights of the images; None where there are none."""
        return None

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        batch = np.zeros((len(index_array), *self.image_shape), dtype=self.dtype)
        for place, number in enumerate(index_array):
            image = load_img(
                self.filepaths[number], self.color_mode, self.target_size, self.interpolation,
                self.keep_aspect_ratio,
            )  # fmt: skip
            batch[place] = self._changed(img_to_array(image, self.data_format))
        self._save(batch, index_array, 1e7)
        if self.class_mode is None:
            return batch
        labels = self._labels_of(index_array, batch)
        if self.sample_weight is None:
            return batch, labels
        return batch, labels, self.sample_weight[index_array]

    def _labels_of(self, index_array: Any, batch: Any) -> Any:
        if self.class_mode == "input":
            return batch.copy()
        if self.class_mode == "raw":
            return self.labels[index_array]
        if self.class_mode == "multi_output":
            return [column[index_array] for column in self.labels]
        chosen = [self.classes[number] for number in index_array]
        if self.class_mode != "categorical":
            return np.asarray(chosen, self.dtype)
        rows = np.zeros((len(chosen), len(self.class_indices)), self.dtype)
        for row, classes in zip(rows, chosen, strict=True):
            row[classes] = 1.0
        return rows


class DirectoryIterator(_Files):
    """Batches of the images below a folder, whose subfolders are classes.

    Args:
        directory: the folder.
        image_data_generator: changes the images.
        target_size: rows and columns.
        color_mode: ``"rgb"``, ``"rgba"`` or ``"grayscale"``.
        classes: the subfolders; all when omitted.
        class_mode: labels as ``"categorical"`` rows, ``"sparse"`` or ``"binary"`` numbers, the
            images themselves (``"input"``), or None.
        save_to_dir, save_prefix, save_format: where images are written as they are given.
        follow_links: into folders that are links.
        subset: ``"training"`` or ``"validation"``, by the generator's split.
        interpolation, keep_aspect_ratio: of `keras.utils.load_img`.
        dtype: of the images.

    Raises:
        ValueError: an argument is none of the possible ones.
    """

    allowed_class_modes = {"categorical", "binary", "sparse", "input", None}

    def __init__(
        self, directory: Any, image_data_generator: Any, target_size: Any = (256, 256),
        color_mode: str = "rgb", classes: Any = None, class_mode: str | None = "categorical",
        batch_size: int = 32, shuffle: bool = True, seed: int | None = None,
        data_format: str | None = None, save_to_dir: Any = None, save_prefix: str = "",
        save_format: str = "png", follow_links: bool = False, subset: str | None = None,
        interpolation: str = "nearest", keep_aspect_ratio: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        self._set(
            image_data_generator, target_size, color_mode, data_format or image_data_format(),
            (save_to_dir, save_prefix, save_format), subset, interpolation, keep_aspect_ratio,
        )  # fmt: skip
        self.directory = os.fspath(directory)
        self._check_mode(class_mode)
        self.class_mode, self.dtype = class_mode, dtype or floatx()
        inside = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        found = list(classes or inside)
        self.num_classes = len(found)
        self.class_indices = {name: number for number, name in enumerate(found)}
        names: list[str] = []
        numbers: list[int] = []
        for number, name in enumerate(found):
            folder = os.path.join(self.directory, name)
            paths = files_below(folder, self.white_list_formats, follow_links)
            if self.split:
                first, last = (int(end * len(paths)) for end in self.split)
                paths = paths[first:last]
            names += [os.path.join(name, os.path.relpath(path, folder)) for path in paths]
            numbers += [number] * len(paths)
        self._list(self.directory, names)
        self.classes = np.asarray(numbers, "int32")
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        super().__init__(self.samples, batch_size, shuffle, seed)


class DataFrameIterator(_Files):
    """Batches of the images that a pandas.DataFrame lists.

    Args:
        dataframe: has the columns.
        directory: in front of the names of files.
        image_data_generator: changes the images.
        x_col: the column with the names of files.
        y_col: the column of classes or numbers, or a list of columns.
        weight_col: the column with weights of images.
        target_size, color_mode: of `DirectoryIterator`.
        classes: their names, in order; all that are in the column when omitted.
        class_mode: as in `DirectoryIterator`; ``"raw"`` gives what is in the column or columns,
            ``"multi_output"`` a list of arrays, one for each column.
        validate_filenames: leave files out that are not there, with a warning.

    Raises:
        ValueError, TypeError: an argument or a column does not fit.
    """

    allowed_class_modes = {
        "binary", "categorical", "input", "multi_output", "raw", "sparse", None,
    }  # fmt: skip

    def __init__(
        self, dataframe: Any, directory: Any = None, image_data_generator: Any = None,
        x_col: str = "filename", y_col: Any = "class", weight_col: str | None = None,
        target_size: Any = (256, 256), color_mode: str = "rgb", classes: Any = None,
        class_mode: str | None = "categorical", batch_size: int = 32, shuffle: bool = True,
        seed: int | None = None, data_format: str = "channels_last", save_to_dir: Any = None,
        save_prefix: str = "", save_format: str = "png", subset: str | None = None,
        interpolation: str = "nearest", keep_aspect_ratio: bool = False, dtype: Any = "float32",
        validate_filenames: bool = True,
    ) -> None:  # fmt: skip
        self._set(
            image_data_generator, target_size, color_mode, data_format,
            (save_to_dir, save_prefix, save_format), subset, interpolation, keep_aspect_ratio,
        )  # fmt: skip
        self.directory = os.fspath(directory or "")
        self.class_mode, self.dtype = class_mode, dtype
        self._check(dataframe, x_col, y_col, weight_col, classes)
        frame = self._existing(dataframe, x_col) if validate_filenames else dataframe
        classified = class_mode in ("binary", "categorical", "sparse")
        if classified:
            frame, classes = self._of_classes(frame, y_col, classes)
            self.class_indices = {name: number for number, name in enumerate(classes)}
        if self.split:
            first, last = (int(end * len(frame)) for end in self.split)
            frame = frame.iloc[first:last, :]
        if classified:
            self.classes = [self._numbers(label) for label in frame[y_col]]
        elif class_mode == "multi_output":
            self._targets: Any = [np.array(frame[column].tolist()) for column in y_col]
        elif class_mode == "raw":
            self._targets = frame[y_col].values
        self._list(self.directory, frame[x_col].tolist())
        self._weights = frame[weight_col].values if weight_col else None
        kind = "validated" if validate_filenames else "non-validated"
        end = f" belonging to {len(classes)} classes." if classified else "."
        print(f"Found {self.samples} {kind} image filenames{end}")
        super().__init__(self.samples, batch_size, shuffle, seed)

    @property
    def labels(self) -> Any:
        """The classes of the images, or what the columns have."""
        return self._targets if self.class_mode in ("multi_output", "raw") else self.classes

    @property
    def sample_weight(self) -> Any:
        """The weights of the images; None where there are none."""
        return self._weights

    def _numbers(self, label: Any) -> Any:
        if isinstance(label, list | tuple):
            return [self.class_indices[name] for name in label]
        return self.class_indices[label]

    def _check(self, frame: Any, x_col: str, y_col: Any, weight_col: Any, classes: Any) -> None:
        mode = self.class_mode
        self._check_mode(mode)
        if mode == "multi_output" and not isinstance(y_col, list):
            raise TypeError(
                f'If class_mode="{mode}", y_col must be a list. Received {type(y_col).__name__}.'
            )
        if not all(isinstance(name, str) for name in frame[x_col]):
            raise TypeError(f"All values in column x_col={x_col} must be strings.")
        kinds: Any = (str, list, tuple) if mode == "categorical" else str
        if mode in ("binary", "sparse", "categorical") and not all(
            isinstance(label, kinds) for label in frame[y_col]
        ):
            more = ", list or tuple" if mode == "categorical" else ""
            raise TypeError(
                f'If class_mode="{mode}", y_col="{y_col}" column values must be strings{more}.'
            )
        if mode == "binary":
            count = len({*classes}) if classes else frame[y_col].nunique()
            if count != 2:
                raise ValueError(
                    f'If class_mode="binary" there must be 2 classes. Found {count} classes.'
                )
        if classes and mode in ("input", "multi_output", "raw", None):
            warnings.warn(
                f'`classes` will be ignored given the class_mode="{mode}"', stacklevel=3
            )
        if weight_col and not issubclass(frame[weight_col].dtype.type, np.number):
            raise TypeError(f"Column weight_col={weight_col} must be numeric.")

    def _existing(self, frame: Any, x_col: str) -> Any:
        """The rows whose files are there."""
        there = np.array([
            name.lower().endswith(self.white_list_formats)
            and os.path.isfile(os.path.join(self.directory, name))
            for name in frame[x_col]
        ], bool)  # fmt: skip
        if not there.all():
            warnings.warn(
                f'Found {(~there).sum()} invalid image filename(s) in x_col="{x_col}". These '
                "filename(s) will be ignored.", stacklevel=3,
            )  # fmt: skip
        return frame[there]

    @staticmethod
    def _of_classes(frame: Any, y_col: str, classes: Any) -> tuple[Any, list[Any]]:
        """The rows whose classes are wanted, and the classes."""
        if not classes:
            every: set[Any] = set()
            for label in frame[y_col]:
                every.update(label if isinstance(label, list | tuple) else [label])
            return frame.dropna(subset=[y_col]), sorted(every)
        wanted = list(dict.fromkeys(classes))

        def kept(label: Any) -> Any:
            if isinstance(label, list | tuple):
                return [name for name in label if name in wanted] or None
            return label if label in wanted else None

        frame = frame.copy()
        frame[y_col] = frame[y_col].apply(kept)
        return frame.dropna(subset=[y_col]), wanted
