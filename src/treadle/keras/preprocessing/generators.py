"""ImageDataGenerator: batches of images that differ a little each time they are seen."""

# Keras's programs seed NumPy's global generator, which draws here as it does there.
# ruff: noqa: NPY002
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.keras.config import floatx, image_data_format
from treadle.keras.preprocessing.iterators import (
    DataFrameIterator,
    DirectoryIterator,
    NumpyArrayIterator,
)
from treadle.keras.preprocessing.transforms import (
    apply_affine_transform,
    apply_brightness_shift,
    apply_channel_shift,
    drawn_zoom,
)


def _warn(what: str, instead: str) -> None:
    warnings.warn(
        f"This ImageDataGenerator specifies `{what}`, which overrides setting of `{instead}`.",
        stacklevel=4,
    )


class ImageDataGenerator:
    """Changes images at random, normalizes them, and gives batches of them.

    Args:
        featurewise_center, featurewise_std_normalization: subtract the mean and divide by the
            standard deviation of the images that `fit` saw.
        samplewise_center, samplewise_std_normalization: the same with those of each image.
        zca_whitening, zca_epsilon: make the pixels of the images that `fit` saw independent.
        rotation_range, shear_range: in degrees.
        width_shift_range, height_shift_range: parts of the image below 1, else pixels; or a list
            to choose from.
        brightness_range: two factors.
        zoom_range: two parts of the image, or how far from 1.
        channel_shift_range: added to all channels.
        fill_mode, cval, interpolation_order: of `apply_affine_transform`.
        horizontal_flip, vertical_flip: mirror one of two images.
        rescale: a factor, after all these.
        preprocessing_function: takes and gives an image, before `rescale`.
        data_format: where the channels are.
        validation_split: the part that the subset ``"validation"`` is.
        dtype: of the images.

    Raises:
        ValueError: an argument is none of the possible ones.
    """

    def __init__(
        self, featurewise_center: bool = False, samplewise_center: bool = False,
        featurewise_std_normalization: bool = False, samplewise_std_normalization: bool = False,
        zca_whitening: bool = False, zca_epsilon: float = 1e-6, rotation_range: float = 0,
        width_shift_range: Any = 0.0, height_shift_range: Any = 0.0, brightness_range: Any = None,
        shear_range: float = 0.0, zoom_range: Any = 0.0, channel_shift_range: float = 0.0,
        fill_mode: str = "nearest", cval: float = 0.0, horizontal_flip: bool = False,
        vertical_flip: bool = False, rescale: float | None = None,
        preprocessing_function: Callable[[Any], Any] | None = None,
        data_format: str | None = None, validation_split: float = 0.0,
        interpolation_order: int = 1, dtype: Any = None,
    ) -> None:  # fmt: skip
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.channel_shift_range = channel_shift_range
        self.fill_mode, self.cval = fill_mode, cval
        self.interpolation_order = interpolation_order
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.dtype = dtype or floatx()
        self.data_format = data_format or image_data_format()
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                '`data_format` should be `"channels_last"` (channel after row and column) or '
                '`"channels_first"` (channel before row and column). '
                f"Received: {self.data_format}"
            )
        last = self.data_format == "channels_last"
        self.channel_axis, self.row_axis, self.col_axis = (3, 1, 2) if last else (1, 2, 3)
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(
                "`validation_split` must be strictly between 0 and 1.  Received: "
                f"{validation_split}"
            )
        self._validation_split = validation_split
        self.mean: Any = None
        self.std: Any = None
        self.zca_whitening_matrix: Any = None
        self.zoom_range = _two(zoom_range)
        self._center_too()
        if brightness_range is not None and (
            not isinstance(brightness_range, tuple | list) or len(brightness_range) != 2
        ):
            raise ValueError(
                "`brightness_range should be tuple or list of two floats. Received: "
                f"{brightness_range}"
            )
        self.brightness_range = brightness_range

    def _center_too(self) -> None:
        """Settings that others bring with them."""
        if self.zca_whitening:
            if not self.featurewise_center:
                self.featurewise_center = True
                _warn("zca_whitening", "featurewise_center")
            if self.featurewise_std_normalization:
                self.featurewise_std_normalization = False
                _warn("zca_whitening", "featurewise_std_normalization")
        if self.featurewise_std_normalization and not self.featurewise_center:
            self.featurewise_center = True
            _warn("featurewise_std_normalization", "featurewise_center")
        if self.samplewise_std_normalization and not self.samplewise_center:
            self.samplewise_center = True
            _warn("samplewise_std_normalization", "samplewise_center")

    def flow(
        self, x: Any, y: Any = None, batch_size: int = 32, shuffle: bool = True,
        sample_weight: Any = None, seed: int | None = None, save_to_dir: Any = None,
        save_prefix: str = "", save_format: str = "png", ignore_class_split: bool = False,
        subset: str | None = None,
    ) -> NumpyArrayIterator:  # fmt: skip
        """Batches of the images of an array: `NumpyArrayIterator`."""
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, self.data_format, save_to_dir,
            save_prefix, save_format, subset, ignore_class_split, self.dtype,
        )  # fmt: skip

    def flow_from_directory(
        self, directory: Any, target_size: Any = (256, 256), color_mode: str = "rgb",
        classes: Any = None, class_mode: str | None = "categorical", batch_size: int = 32,
        shuffle: bool = True, seed: int | None = None, save_to_dir: Any = None,
        save_prefix: str = "", save_format: str = "png", follow_links: bool = False,
        subset: str | None = None, interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
    ) -> DirectoryIterator:  # fmt: skip
        """Batches of the images below a folder: `DirectoryIterator`."""
        return DirectoryIterator(
            directory, self, target_size, color_mode, classes, class_mode, batch_size, shuffle,
            seed, self.data_format, save_to_dir, save_prefix, save_format, follow_links, subset,
            interpolation, keep_aspect_ratio, self.dtype,
        )  # fmt: skip

    def flow_from_dataframe(
        self, dataframe: Any, directory: Any = None, x_col: str = "filename", y_col: Any = "class",
        weight_col: str | None = None, target_size: Any = (256, 256), color_mode: str = "rgb",
        classes: Any = None, class_mode: str | None = "categorical", batch_size: int = 32,
        shuffle: bool = True, seed: int | None = None, save_to_dir: Any = None,
        save_prefix: str = "", save_format: str = "png", subset: str | None = None,
        interpolation: str = "nearest", validate_filenames: bool = True, **kwargs: Any,
    ) -> DataFrameIterator:  # fmt: skip
        """Batches of the images that a pandas.DataFrame lists: `DataFrameIterator`."""
        old = sorted(kwargs.keys() & {"has_ext", "sort", "drop_duplicates"})
        if kwargs.keys() - {*old}:
            raise TypeError(f"Unrecognized keyword arguments: {sorted(kwargs.keys() - {*old})}")
        if class_mode == "other":
            old, class_mode = [*old, 'class_mode="other"'], "raw"
        for name in old:
            warnings.warn(f"{name} is deprecated.", DeprecationWarning, stacklevel=2)
        return DataFrameIterator(
            dataframe, directory, self, x_col, y_col, weight_col, target_size, color_mode,
            classes, class_mode, batch_size, shuffle, seed, self.data_format, save_to_dir,
            save_prefix, save_format, subset, interpolation, False, self.dtype,
            validate_filenames,
        )  # fmt: skip

    def standardize(self, x: Any) -> Any:
        """An image as the settings have it; x itself is changed."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x *= self.rescale
        if self.samplewise_center:
            x -= np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, keepdims=True) + 1e-6
        if self.featurewise_center and self._was_fit("featurewise_center", self.mean):
            x -= self.mean
        if self.featurewise_std_normalization and self._was_fit(
            "featurewise_std_normalization", self.std
        ):
            x /= self.std + 1e-6
        if self.zca_whitening and self._was_fit("zca_whitening", self.zca_whitening_matrix):
            flat = x.reshape(-1, int(np.prod(x.shape[-3:]))) @ self.zca_whitening_matrix
            x = np.reshape(flat, x.shape)
        return x

    def _was_fit(self, what: str, found: Any) -> bool:
        if found is None:
            warnings.warn(
                f"This ImageDataGenerator specifies `{what}`, but it hasn't been fit on any "
                "training data. Fit it first by calling `.fit(numpy_data)`.", stacklevel=4,
            )  # fmt: skip
        return found is not None

    def get_random_transform(self, img_shape: Any, seed: int | None = None) -> dict[str, Any]:
        """What to change of an image of that shape, drawn by the settings."""
        if seed is not None:
            np.random.seed(seed)
        theta = _up_to(self.rotation_range)
        tx = _shift(self.height_shift_range, img_shape[self.row_axis - 1])
        ty = _shift(self.width_shift_range, img_shape[self.col_axis - 1])
        shear = _up_to(self.shear_range)
        zx, zy = drawn_zoom(self.zoom_range)
        horizontal = (np.random.random() < 0.5) * self.horizontal_flip
        vertical = (np.random.random() < 0.5) * self.vertical_flip
        channels = _up_to(self.channel_shift_range) if self.channel_shift_range else None
        brightness = None
        if self.brightness_range is not None:
            brightness = np.random.uniform(*self.brightness_range)
        return {
            "theta": theta, "tx": tx, "ty": ty, "shear": shear, "zx": zx, "zy": zy,
            "flip_horizontal": horizontal, "flip_vertical": vertical,
            "channel_shift_intensity": channels, "brightness": brightness,
        }  # fmt: skip

    def apply_transform(self, x: Any, transform_parameters: dict[str, Any]) -> Any:
        """An image, changed as `get_random_transform` says."""
        rows, columns = self.row_axis - 1, self.col_axis - 1
        given = transform_parameters
        x = apply_affine_transform(
            x, given.get("theta", 0), given.get("tx", 0), given.get("ty", 0),
            given.get("shear", 0), given.get("zx", 1), given.get("zy", 1), rows, columns,
            self.channel_axis - 1, self.fill_mode, self.cval, self.interpolation_order,
        )  # fmt: skip
        if given.get("channel_shift_intensity") is not None:
            x = apply_channel_shift(x, given["channel_shift_intensity"], self.channel_axis - 1)
        if given.get("flip_horizontal", False):
            x = np.flip(x, columns)
        if given.get("flip_vertical", False):
            x = np.flip(x, rows)
        if given.get("brightness") is not None:
            x = apply_brightness_shift(x, given["brightness"], scale=False)
        return x

    def random_transform(self, x: Any, seed: int | None = None) -> Any:
        """An image, changed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(
        self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None
    ) -> None:
        """Take means, deviations and correlations of images.

        Args:
            x: a batch.
            augment: of changed images.
            rounds: how often each is changed.
            seed: of the changes.

        Raises:
            ValueError: x is no batch.
        """
        x = np.array(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(
                f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}"
            )
        channels = x.shape[self.channel_axis]
        if channels not in (1, 3, 4):
            warnings.warn(
                "Expected input to be images (as Numpy array) following the data format convention "
                f'"{self.data_format}" (channels on axis {self.channel_axis}), i.e. expected '
                f"either 1, 3 or 4 channels. However, it was passed an array of shape {x.shape}.",
                stacklevel=2,
            )
        if seed is not None:
            np.random.seed(seed)
        if self.rescale:
            x *= self.rescale
        if augment:
            changed = [self.random_transform(image) for _ in range(rounds) for image in x]
            x = np.asarray(changed, self.dtype)
        along = [1, 1, 1]
        along[self.channel_axis - 1] = channels
        others = (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.reshape(np.mean(x, axis=others), along)
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.reshape(np.std(x, axis=others), along)
            x /= self.std + 1e-6
        if self.zca_whitening:
            flat = np.reshape(x, (len(x), -1))
            u, s, _ = np.linalg.svd(flat.T, full_matrices=False)
            self.zca_whitening_matrix = (u * (np.sqrt(len(x)) / (s + self.zca_epsilon))) @ u.T


def _two(zoom_range: Any) -> list[float]:
    if isinstance(zoom_range, float | int):
        return [1 - zoom_range, 1 + zoom_range]
    if len(zoom_range) == 2 and all(isinstance(value, float | int) for value in zoom_range):
        return list(zoom_range)
    raise ValueError(
        f"`zoom_range` should be a float or a tuple or list of two floats. Received: {zoom_range}"
    )


def _up_to(most: float) -> float:
    return float(np.random.uniform(-most, most)) if most else 0


def _shift(most: Any, size: int) -> Any:
    """How many pixels to move, for a range or a list of shifts."""
    if not most:
        return 0
    try:
        shift = np.random.choice(most) * np.random.choice([-1, 1])
    except ValueError:  # it is no list and no whole number
        shift = np.random.uniform(-most, most)
    return shift * size if np.max(most) < 1 else shift
