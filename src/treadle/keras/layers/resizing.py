"""Transposed convolution, padding, repetition and cropping of images."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.convolutional import Conv2D, _format, _pair


class Conv2DTranspose(Conv2D):
    """The transpose of a convolution, by which images grow. Arguments as for Conv2D."""

    def build(self, input_shape: Any) -> None:
        channels = self._checked_channels(input_shape)
        if self.groups != 1 or self.dilation != (1, 1):
            raise ValueError(f'Layer "{self.name}" (Conv2DTranspose): no groups or dilation_rate')
        self.kernel = self.add_weight(
            (*self.window, self.filters, channels), self.kernel_initializer, name="kernel",
            regularizer=self._regularizers[0],
        )  # fmt: skip
        self._build_bias(self.filters)
        self.built = True

    def _grown(self, size: Any, axis: int) -> Any:
        step, window = self.strides[axis], self.window[axis]
        return size * step + (max(window - step, 0) if self.padding == "valid" else 0)

    def call(self, inputs: Any) -> td.Tensor:
        first = 1 if self._channel_axis == 3 else 2
        sizes = [
            td.shape(inputs)[first + i] if inputs.shape[first + i] is None
            else inputs.shape[first + i]
            for i in range(2)
        ]  # fmt: skip
        grown = [self._grown(size, i) for i, size in enumerate(sizes)]
        batch = td.shape(inputs)[0]
        shape = [batch, *grown, self.filters] if first == 1 else [batch, self.filters, *grown]
        outputs = td.nn.conv2d_transpose(
            inputs, self.kernel, shape, list(self.strides), self.padding.upper(), self._format_code
        )
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        first = 1 if self._channel_axis == 3 else 2
        grown = [
            None if input_shape[first + i] is None else self._grown(input_shape[first + i], i)
            for i in range(2)
        ]
        if first == 1:
            return (input_shape[0], *grown, self.filters)
        return (input_shape[0], self.filters, *grown)

    def get_config(self) -> dict[str, Any]:
        return {key: value for key, value in super().get_config().items() if key != "groups"}


class _OfImages(Layer):
    def __init__(self, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = _format(data_format)
        self._first = 1 if self.data_format == "channels_last" else 2
        self.built = True

    def _with_sizes(self, shape: Any, change: Any) -> Any:
        """The shape with both sizes of the image changed."""
        inside = range(self._first, self._first + 2)
        return tuple(
            change(d, i - self._first) if i in inside and d is not None else d
            for i, d in enumerate(shape)
        )


def _margins(given: Any, what: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """((top, bottom), (left, right)) from an int, a pair, or that."""
    rows, columns = (given, given) if isinstance(given, int) else given
    pairs = tuple((m, m) if isinstance(m, int) else tuple(m) for m in (rows, columns))
    if any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise ValueError(f"{what} must be an int, a pair or two pairs of them, got {given!r}")
    return pairs  # type: ignore[return-value]


class ZeroPadding2D(_OfImages):
    """Zeros around images: an int, (rows, columns) or ((top, bottom), (left, right))."""

    def __init__(
        self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.padding = _margins(padding, "padding")

    def call(self, inputs: Any) -> td.Tensor:
        around = [(0, 0)] * 4
        around[self._first : self._first + 2] = self.padding
        return td.pad(inputs, around)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_sizes(input_shape, lambda d, i: d + sum(self.padding[i]))


class Cropping2D(_OfImages):
    """Images without their margins, given as for ZeroPadding2D."""

    def __init__(
        self, cropping: Any = (0, 0), data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.cropping = _margins(cropping, "cropping")

    def call(self, inputs: Any) -> td.Tensor:
        parts: list[Any] = [slice(None)] * 4
        for i, (before, after) in enumerate(self.cropping):
            parts[self._first + i] = slice(before, -after if after else None)
        return inputs[tuple(parts)]  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_sizes(input_shape, lambda d, i: d - sum(self.cropping[i]))


class UpSampling2D(_OfImages):
    """Each pixel `size` times along rows and columns."""

    def __init__(
        self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(data_format, **kwargs)
        if interpolation != "nearest":
            raise ValueError(f"UpSampling2D: interpolation {interpolation!r} is not supported")
        self.size = _pair(size, "size")

    def call(self, inputs: Any) -> td.Tensor:
        for i, times in enumerate(self.size):
            inputs = td.repeat(inputs, times, axis=self._first + i)
        return inputs  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_sizes(input_shape, lambda d, i: d * self.size[i])
