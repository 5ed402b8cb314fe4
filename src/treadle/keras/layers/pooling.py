"""Pools of one, two and three spatial axes, by windows and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.spatial import Spatial, Windowed, sizes


class _Pooling(Windowed):
    _kind: ClassVar[str]
    _config_names: ClassVar[tuple[str, ...]] = ("pool_size",)

    def __init__(
        self, pool_size: Any = 2, strides: Any = None, padding: str = "valid",
        data_format: str | None = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, data_format, name=name, **kwargs)
        self._build_at_init()

    @property
    def pool_size(self) -> tuple[int, ...]:
        return self.window

    def call(self, inputs: Any) -> td.Tensor:
        return td.nn.pool(
            inputs, list(self.window), self._kind, list(self.strides), self.padding.upper(),
            self._format_code,
        )  # fmt: skip

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_channels(input_shape, input_shape[self._channel_axis])


class _MaxPooling(_Pooling):
    """The maximum of each window.

    Args:
        pool_size: the window's size, an int or one for each spatial axis.
        strides: from window to window; the window's size when omitted.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
    """

    _kind = "MAX"


class _AveragePooling(_Pooling):
    """The mean of each window, padding not counted. Arguments as for MaxPooling."""

    _kind = "AVG"


class MaxPooling1D(_MaxPooling):
    __doc__ = _MaxPooling.__doc__
    rank = 1


class MaxPooling2D(_MaxPooling):
    __doc__ = _MaxPooling.__doc__
    rank = 2


class MaxPooling3D(_MaxPooling):
    __doc__ = _MaxPooling.__doc__
    rank = 3


class AveragePooling1D(_AveragePooling):
    __doc__ = _AveragePooling.__doc__
    rank = 1


class AveragePooling2D(_AveragePooling):
    __doc__ = _AveragePooling.__doc__
    rank = 2


class AveragePooling3D(_AveragePooling):
    __doc__ = _AveragePooling.__doc__
    rank = 3


class _GlobalPooling(Spatial):
    _config_names: ClassVar[tuple[str, ...]] = ("keepdims",)

    def __init__(
        self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.keepdims = keepdims
        self._build_at_init()

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self.keepdims:
            return tuple(1 if i in self._axes else d for i, d in enumerate(input_shape))
        return tuple(d for i, d in enumerate(input_shape) if i not in self._axes)


class _GlobalAveragePooling(_GlobalPooling):
    """The mean over the spatial axes.

    Args:
        data_format: "channels_last" or "channels_first".
        keepdims: keep the axes, with sizes of 1.
    """

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_mean(inputs, self._axes, keepdims=self.keepdims)


class _GlobalMaxPooling(_GlobalPooling):
    """The maximum over the spatial axes. Arguments as for the global average."""

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_max(inputs, self._axes, keepdims=self.keepdims)


class GlobalAveragePooling1D(_GlobalAveragePooling):
    """The mean over the steps; those that the mask leaves out do not count."""

    rank = 1
    supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> td.Tensor:
        if mask is None:
            return super().call(inputs)
        (axis,) = self._axes
        counts = td.expand_dims(td.cast(mask, td.bool), 2 if self._channels_last else 1)
        kept = td.where(counts, inputs, td.zeros_like(inputs))
        number = td.reduce_sum(td.cast(counts, inputs.dtype), axis, keepdims=self.keepdims)
        return td.reduce_sum(kept, axis, keepdims=self.keepdims) / number

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the results have no steps."""
        return None


class GlobalAveragePooling2D(_GlobalAveragePooling):
    __doc__ = _GlobalAveragePooling.__doc__
    rank = 2


class GlobalAveragePooling3D(_GlobalAveragePooling):
    __doc__ = _GlobalAveragePooling.__doc__
    rank = 3


class GlobalMaxPooling1D(_GlobalMaxPooling):
    __doc__ = _GlobalMaxPooling.__doc__
    rank = 1


class GlobalMaxPooling2D(_GlobalMaxPooling):
    __doc__ = _GlobalMaxPooling.__doc__
    rank = 2


class GlobalMaxPooling3D(_GlobalMaxPooling):
    __doc__ = _GlobalMaxPooling.__doc__
    rank = 3


def divided(x: td.Tensor, counts: Sequence[int], first: int, mean: bool) -> td.Tensor:
    """Pools along axes from `first` on, whose windows divide each into so many parts.

    Raises:
        ValueError: the size of an axis is not known.
    """
    for axis, count in enumerate(counts, first):
        size = x.shape[axis]
        if size is None:
            raise ValueError("Adaptive pools need known sizes of the spatial axes")
        front = (slice(None),) * axis
        reduced = td.reduce_mean if mean else td.reduce_max
        parts = [
            reduced(
                x[(*front, slice(i * size // count, -(-(i + 1) * size // count)))], axis,
                keepdims=True,
            )
            for i in range(count)
        ]  # fmt: skip
        x = td.concat(parts, axis)
    return x


class _AdaptivePooling(Spatial):
    """As many windows as are asked for, which divide the spatial axes.

    Args:
        output_size: how many along each axis; an int for all.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("output_size",)
    _mean: ClassVar[bool]

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.output_size = sizes(output_size, self._spatial_rank, "output_size")
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        return divided(inputs, self.output_size, self._axes[0], self._mean)

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = list(input_shape)
        shape[self._axes[0] : self._axes[-1] + 1] = self.output_size
        return tuple(shape)


class _AdaptiveAverage(_AdaptivePooling):
    _mean = True


class _AdaptiveMax(_AdaptivePooling):
    _mean = False


class AdaptiveAveragePooling1D(_AdaptiveAverage):
    __doc__ = _AdaptivePooling.__doc__
    rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAverage):
    __doc__ = _AdaptivePooling.__doc__
    rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAverage):
    __doc__ = _AdaptivePooling.__doc__
    rank = 3


class AdaptiveMaxPooling1D(_AdaptiveMax):
    __doc__ = _AdaptivePooling.__doc__
    rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMax):
    __doc__ = _AdaptivePooling.__doc__
    rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMax):
    __doc__ = _AdaptivePooling.__doc__
    rank = 3


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = (
    GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
)  # fmt: skip
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (
    GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D
)  # fmt: skip
