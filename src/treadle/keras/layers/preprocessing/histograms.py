"""Layers that spread the values of pixels, so that they are about equally frequent."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import _Random
from treadle.keras.layers.preprocessing.colors import _pair, _stretched
from treadle.keras.layers.preprocessing.images import OfImages
from treadle.keras.layers.spatial import size_of

_VALUES = 256  # that are told apart where there is no argument


class Equalization(_Random):
    """Spreads the values of each channel of the batch, so that they are about equally frequent.

    Args:
        value_range: the least and the greatest value of a pixel.
        bins: how many values are told apart.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("value_range", "bins")
    _no_settings: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(
        self, value_range: Any = (0, 255), bins: int = 256, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(data_format=data_format, **kwargs)
        self.bins, self.value_range = bins, _pair(value_range, "Equalization")

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        pixels = _stretched(images, self.value_range, (0, 255))
        channels = [self._spread(channel) for channel in td.unstack(pixels, axis=-1)]
        return _stretched(td.stack(channels, -1), (0, 255), self.value_range)

    def _spread(self, channel: td.Tensor) -> td.Tensor:
        last = self.bins - 1
        at = td.clip_by_value(td.cast(channel * float(last) / 255.0, td.int32), 0, last)
        counts = td.math.bincount(at, minlength=self.bins, maxlength=self.bins)
        so_far = td.cumsum(counts)
        least = td.reduce_min(td.where(so_far > 0, so_far, td.shape(td.reshape(at, [-1]))[0]))
        span = td.cast(td.maximum(so_far[-1] - least, 1), channel.dtype)
        table = td.round(td.cast(so_far - least, channel.dtype) * 255.0 / span)
        table = td.clip_by_value(table, 0.0, 255.0)
        place = td.cast(td.clip_by_value(channel / 255.0 * last, 0.0, float(last)), td.int32)
        several = td.math.count_nonzero(counts) > 1
        return td.where(several, td.gather(table, place), channel)


class ContrastLimitedAdaptiveHistogramEqualization(OfImages):
    """Spreads the values of each channel of parts of an image, with a limit of how far.

    The algorithm is CLAHE (Zuiderveld: Contrast limited adaptive histogram equalization, 1994):
    each tile of a grid has its own table of new values, and a pixel has the mean of those of the
    four tiles around it.

    Args:
        value_range: the least and the greatest value of a pixel.
        clip_limit: how often a value counts at most, as a multiple of the mean; 0 is no limit.
        tile_grid_size: how many rows and columns the grid has.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("value_range", "clip_limit", "tile_grid_size")

    def __init__(
        self, value_range: Any = (0, 255), clip_limit: float = 4.0, tile_grid_size: Any = (8, 8),
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(data_format, **kwargs)
        self.value_range = _pair(value_range, "ContrastLimitedAdaptiveHistogramEqualization")
        self.clip_limit, self.tile_grid_size = clip_limit, tuple(tile_grid_size)

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        pixels = _stretched(td.cast(images, td.float32), self.value_range, (0, 255))
        height, width = (size_of(images, axis) for axis in (1, 2))
        down, across = self.tile_grid_size
        tall, wide = (height + down - 1) // down, (width + across - 1) // across
        padding = [[0, 0], [0, tall * down - height], [0, wide * across - width], [0, 0]]
        whole = td.pad(pixels, padding, "SYMMETRIC")
        at = td.cast(td.clip_by_value(whole, 0.0, 255.0), td.int32)
        batch, channels = td.shape(images)[0], size_of(images, 3)
        tiles = td.reshape(at, td.stack([batch, down, tall, across, wide, channels]))
        tiles = td.transpose(tiles, [0, 1, 3, 5, 2, 4])
        tiles = td.reshape(tiles, td.stack([batch, down, across, channels, tall * wide]))
        tables = self._tables(tiles, td.cast(tall * wide, td.float32))
        tables = td.reshape(tables, [-1])
        image = td.range(batch)[:, None, None, None] * down
        channel = td.range(channels)
        found = td.zeros_like(whole)
        for row, much in self._around(tall, down):
            for column, share in self._around(wide, across):
                tile = (image + row[:, None, None]) * across + column[:, None]
                value = td.gather(tables, (tile * channels + channel) * _VALUES + at)
                found += value * much[:, None, None] * share[:, None]
        found = _stretched(found[:, :height, :width], (0, 255), self.value_range)
        return td.cast(found, images.dtype)

    def _tables(self, tiles: td.Tensor, pixels: td.Tensor) -> td.Tensor:
        """The new values of the values of each tile."""
        counts = td.reduce_sum(td.one_hot(tiles, _VALUES), -2)
        if self.clip_limit > 0:
            kept = td.minimum(counts, self.clip_limit * pixels / _VALUES)
            counts = kept + td.reduce_sum(counts - kept, -1, keepdims=True) / _VALUES
        so_far = td.cumsum(counts, -1)
        least = td.reduce_min(so_far, -1, keepdims=True)
        rest = pixels - least
        rest = td.where(rest == 0, td.ones_like(rest), rest)
        return td.clip_by_value((so_far - least) * 255.0 / rest, 0.0, 255.0)

    @staticmethod
    def _around(size: Any, tiles: int) -> list[tuple[td.Tensor, td.Tensor]]:
        """For the pixels along an axis the two tiles around each, and how much those count."""
        size_ = td.cast(size, td.float32)
        places = (td.cast(td.range(size * tiles), td.float32) - size_ / 2.0) / size_
        before = td.floor(places)
        part = places - before
        first = td.cast(before, td.int32)
        return [
            (td.clip_by_value(first, 0, tiles - 1), 1.0 - part),
            (td.clip_by_value(first + 1, 0, tiles - 1), part),
        ]
