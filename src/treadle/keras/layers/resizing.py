"""Padding, cropping and repetition along one, two and three spatial axes."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.spatial import Spatial, sizes


def _margins(given: Any, rank: int, what: str) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis: from an int, from an int for each axis, or from pairs. For
    one axis, (before, after) itself."""
    parts = (given,) * rank if isinstance(given, int) else tuple(given)
    if rank == 1 and not isinstance(given, int) and len(parts) != 2:
        raise ValueError(f"{what} must be an int or a pair of them, got {given!r}")
    if rank == 1 and len(parts) == 2:
        parts = (parts,)
    pairs = tuple((m, m) if isinstance(m, int) else tuple(m) for m in parts)
    if len(pairs) != rank or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise ValueError(
            f"{what} must be an int, or for each of the {rank} axes an int or a pair of them, got "
            f"{given!r}"
        )
    return pairs


class _ZeroPadding(Spatial):
    """Zeros around the spatial axes.

    Args:
        padding: an int, an int for each axis, or (before, after) for each axis.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("padding",)

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self._margins = _margins(padding, self.rank, "padding")
        self.padding = self._margins if self.rank > 1 else self._margins[0]
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        around = [(0, 0)] * (self.rank + 2)
        for axis, margin in zip(self._axes, self._margins, strict=True):
            around[axis] = margin
        return td.pad(inputs, around)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_sizes(input_shape, lambda d, i: d + sum(self._margins[i]))


class ZeroPadding1D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 1


class ZeroPadding2D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 2


class ZeroPadding3D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 3


class _Cropping(Spatial):
    """The inputs without the margins of the spatial axes.

    Args:
        cropping: an int, an int for each axis, or (before, after) for each axis.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("cropping",)

    def __init__(
        self, cropping: Any = None, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format, **kwargs)
        if cropping is None:  # Keras's defaults
            cropping = 0 if self.rank == 2 else 1
        self._margins = _margins(cropping, self.rank, "cropping")
        self.cropping = self._margins if self.rank > 1 else self._margins[0]
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        self.compute_output_shape(inputs.shape)
        parts: list[Any] = [slice(None)] * (self.rank + 2)
        for axis, (before, after) in zip(self._axes, self._margins, strict=True):
            parts[axis] = slice(before, -after if after else None)
        return inputs[tuple(parts)]  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = self._with_sizes(input_shape, lambda d, i: d - sum(self._margins[i]))
        if any(shape[axis] is not None and shape[axis] <= 0 for axis in self._axes):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}): cropping {self.cropping} leaves '
                f"nothing of inputs of shape {tuple(input_shape)}"
            )
        return shape


class Cropping1D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 1
    _no_settings: ClassVar[tuple[str, ...]] = ("data_format",)


class Cropping2D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 2


class Cropping3D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 3


class _UpSampling(Spatial):
    """Each element `size` times along the spatial axes.

    Args:
        size: an int, or one for each axis.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, size: Any = 2, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self._times = sizes(size, self.rank, "size")
        self.size = self._times if self.rank > 1 else self._times[0]
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        for axis, times in zip(self._axes, self._times, strict=True):
            inputs = td.repeat(inputs, times, axis=axis)
        return inputs  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_sizes(input_shape, lambda d, i: d * self._times[i])


class UpSampling1D(_UpSampling):
    __doc__ = _UpSampling.__doc__
    rank = 1
    _no_settings: ClassVar[tuple[str, ...]] = ("data_format",)


class UpSampling2D(_UpSampling):
    """Images made larger by `size`.

    Args:
        size: an int, or one for each axis.
        data_format: "channels_last" or "channels_first".
        interpolation: "nearest" repeats the elements; else a method of `td.image.resize`.
    """

    rank = 2
    _config_names: ClassVar[tuple[str, ...]] = ("interpolation",)

    def __init__(
        self, size: Any = 2, data_format: str | None = None, interpolation: str = "nearest",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(size, data_format, **kwargs)
        self.interpolation = interpolation.lower()
        known = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")
        if self.interpolation not in known:
            raise ValueError(
                f"UpSampling2D: interpolation is one of {known}, got {interpolation!r}"
            )

    def call(self, inputs: Any) -> td.Tensor:
        if self.interpolation == "nearest":
            return super().call(inputs)
        images = inputs if self._channels_last else td.transpose(inputs, [0, 2, 3, 1])
        grown = [td.shape(images)[1 + i] * times for i, times in enumerate(self._times)]
        known = self.compute_output_shape(inputs.shape)
        resized = td.image.resize(images, td.stack(grown), self.interpolation)
        resized = td.cast(resized, images.dtype)
        outputs = resized if self._channels_last else td.transpose(resized, [0, 3, 1, 2])
        return td.ensure_shape(outputs, known)


class UpSampling3D(_UpSampling):
    __doc__ = _UpSampling.__doc__
    rank = 3
