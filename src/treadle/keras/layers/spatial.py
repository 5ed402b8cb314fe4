"""What layers of one, two or three spatial axes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import treadle as td
from treadle.keras import config
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec


def sizes(value: Any, rank: int, what: str, least: int = 1) -> tuple[int, ...]:
    """A number for each spatial axis, from one for all or from a tuple.

    Raises:
        ValueError: it is neither, or a number is below `least`.
    """
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank or any(not isinstance(n, int) or n < least for n in numbers):
        kind = "a positive int" if least else "an int of 0 or more"
        raise ValueError(f"{what} must be {kind} or a tuple of {rank} of them, got {value!r}")
    return numbers


def padding_name(value: str, *further: str) -> str:
    """ "valid" or "same", or one of `further`, in lower case."""
    known = ("valid", "same", *further)
    if not isinstance(value, str) or value.lower() not in known:
        raise ValueError(f'padding must be "valid" or "same", got {value!r}')
    return value.lower()


def format_name(value: str | None) -> str:
    """The data format, that of `keras.config` for None."""
    value = value or config.image_data_format()
    if value not in ("channels_last", "channels_first"):
        raise ValueError(f'data_format must be "channels_last" or "channels_first", got {value!r}')
    return value


class Spatial(Layer):
    """A layer of `rank` spatial axes between the batch axis and the channels, or after both."""

    rank: ClassVar[int]
    _config_names: ClassVar[tuple[str, ...]] = ("data_format",)

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = format_name(data_format)
        self.input_spec = InputSpec(ndim=self._spatial_rank + 2)

    @property
    def _spatial_rank(self) -> int:
        """`rank` as the class has it: users' classes may give their layers another attribute of
        this name."""
        return type(self).rank

    @property
    def _channels_last(self) -> bool:
        return self.data_format == "channels_last"

    @property
    def _channel_axis(self) -> int:
        return self._spatial_rank + 1 if self._channels_last else 1

    @property
    def _axes(self) -> list[int]:
        """The spatial axes."""
        first = 1 if self._channels_last else 2
        return list(range(first, first + self._spatial_rank))

    @property
    def _format_code(self) -> str:
        """The data format as ops have it, such as NHWC."""
        space = "DHW"[3 - self._spatial_rank :]
        return f"N{space}C" if self._channels_last else f"NC{space}"

    def _with_sizes(self, shape: Any, change: Callable[[int, int], int], *channels: Any) -> Any:
        """The shape with the known sizes of the spatial axes changed: `change` is given a size and
        the number of its axis. The number of channels may be another, too."""
        dims = list(shape)
        for number, axis in enumerate(self._axes):
            if dims[axis] is not None:
                dims[axis] = change(dims[axis], number)
        if channels:
            (dims[self._channel_axis],) = channels
        return tuple(dims)


class Windowed(Spatial):
    """A layer of windows that move over the spatial axes."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    dilation_rate: tuple[int, ...]
    _config_names: ClassVar[tuple[str, ...]] = ("strides", "padding")
    _further_paddings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, window: Any, strides: Any, padding: str, data_format: str | None,
        dilation_rate: Any = 1, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(data_format, **kwargs)
        rank = self._spatial_rank
        self.window = sizes(window, rank, "the window")
        self.strides = self.window if strides is None else sizes(strides, rank, "strides")
        self.dilation_rate = sizes(dilation_rate, rank, "dilation_rate")
        self.padding = padding_name(padding, *self._further_paddings)

    def _windows_along(self, size: int, number: int) -> int:
        """How many windows fit along a spatial axis."""
        reach = (self.window[number] - 1) * self.dilation_rate[number] + 1
        return (size - (reach if self.padding == "valid" else 1)) // self.strides[number] + 1

    def _with_channels(self, input_shape: Any, channels: int | None) -> Any:
        shape = self._with_sizes(input_shape, self._windows_along, channels)
        if any(shape[axis] is not None and shape[axis] < 1 for axis in self._axes):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}): a window of {self.window} does not '
                f"fit into inputs of shape {tuple(input_shape)}"
            )
        return shape


def size_of(x: td.Tensor, axis: int) -> Any:
    """The size of an axis: an int where it is known, else a tensor."""
    return td.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]
