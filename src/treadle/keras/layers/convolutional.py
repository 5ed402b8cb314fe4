"""Convolution and pooling layers."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.keras import activations, config, initializers
from treadle.keras.layers.base import InputSpec, Layer


def _pair(value: Any, what: str) -> tuple[int, int]:
    numbers = (value, value) if isinstance(value, int) else tuple(value)
    if len(numbers) != 2 or any(not isinstance(n, int) or n < 1 for n in numbers):
        raise ValueError(f"{what} must be a positive int or a pair of them, got {value!r}")
    return numbers


def _padding(value: str) -> str:
    if not isinstance(value, str) or value.lower() not in ("valid", "same"):
        raise ValueError(f'padding must be "valid" or "same", got {value!r}')
    return value.lower()


def _format(value: str | None) -> str:
    value = value or config.image_data_format()
    if value not in ("channels_last", "channels_first"):
        raise ValueError(f'data_format must be "channels_last" or "channels_first", got {value!r}')
    return value


def _length(size: int | None, window: int, stride: int, dilation: int, padding: str) -> int | None:
    if size is None:
        return None
    reach = 1 if padding == "same" else (window - 1) * dilation + 1
    return (size - reach) // stride + 1


class _Spatial(Layer):
    """What convolution and pooling share: windows over two axes and a channel axis."""

    window: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    data_format: str
    dilation: tuple[int, int] = (1, 1)

    def _set_windows(self, window: Any, strides: Any, padding: str, data_format: Any) -> None:
        self.window = _pair(window, "the window")
        self.strides = self.window if strides is None else _pair(strides, "strides")
        self.padding, self.data_format = _padding(padding), _format(data_format)
        self.input_spec = InputSpec(ndim=4)

    @property
    def _format_code(self) -> str:
        return "NHWC" if self.data_format == "channels_last" else "NCHW"

    @property
    def _channel_axis(self) -> int:
        return 3 if self.data_format == "channels_last" else 1

    def _with_channels(self, input_shape: Any, channels: int | None) -> Any:
        first = 1 if self.data_format == "channels_last" else 2
        size = [
            _length(input_shape[first + i], self.window[i], self.strides[i], self.dilation[i],
                    self.padding)
            for i in range(2)
        ]  # fmt: skip
        if any(s is not None and s < 1 for s in size):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}): a window of {self.window} does not '
                f"fit into inputs of shape {tuple(input_shape)}"
            )
        if self.data_format == "channels_last":
            return (input_shape[0], *size, channels)
        return (input_shape[0], channels, *size)


class Conv2D(_Spatial):
    """Two-dimensional convolution with bias and activation.

    Args:
        filters: the number of output channels.
        kernel_size, strides, dilation_rate: an int or a pair.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        groups: the channels are split into so many groups with filters of their own.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer: as for Dense.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(filters, int | np.integer) or filters < 1 or filters % groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a positive multiple of groups={groups}, "
                f"got {filters!r}"
            )
        self._set_windows(kernel_size, strides, padding, data_format)
        self.filters, self.groups = int(filters), groups
        self.dilation = _pair(dilation_rate, "dilation_rate")
        self.activation, self.use_bias = activations.get(activation), use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self._regularizers = (kernel_regularizer, bias_regularizer)

    @property
    def kernel_size(self) -> tuple[int, int]:
        return self.window

    def build(self, input_shape: Any) -> None:
        channels = self._checked_channels(input_shape)
        self.kernel = self.add_weight(
            (*self.window, channels // self.groups, self.filters), self.kernel_initializer,
            name="kernel", regularizer=self._regularizers[0],
        )  # fmt: skip
        self._build_bias(self.filters)
        self.input_spec = InputSpec(ndim=4, axes={self._channel_axis: channels})
        self.built = True

    def _checked_channels(self, input_shape: Any) -> int:
        channels = input_shape[self._channel_axis]
        if channels is None or channels % self.groups:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) needs a known number of channels, a '
                f"multiple of groups={self.groups}; got inputs of shape {tuple(input_shape)}"
            )
        return int(channels)

    def _build_bias(self, channels: int) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                (channels,), self.bias_initializer, name="bias", regularizer=self._regularizers[1]
            )

    def call(self, inputs: Any) -> td.Tensor:
        outputs = td.nn.conv2d(
            inputs, self.kernel, list(self.strides), self.padding.upper(), self._format_code,
            list(self.dilation),
        )  # fmt: skip
        return self._finished(outputs)

    def _finished(self, outputs: td.Tensor) -> td.Tensor:
        if self.bias is not None:
            outputs = td.nn.bias_add(outputs, self.bias, self._format_code)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_channels(input_shape, self.filters)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "filters": self.filters,
            "kernel_size": self.window,
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilation_rate": self.dilation,
            "groups": self.groups,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
        }


class DepthwiseConv2D(Conv2D):
    """Convolution of each channel with `depth_multiplier` filters of its own."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        depth_multiplier: int = 1,
        depthwise_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            depth_multiplier, kernel_size, strides, padding,
            kernel_initializer=depthwise_initializer, **kwargs,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Any) -> None:
        channels = self._checked_channels(input_shape)
        self.kernel = self.add_weight(
            (*self.window, channels, self.depth_multiplier), self.kernel_initializer, name="kernel"
        )
        self._build_bias(channels * self.depth_multiplier)
        self.input_spec = InputSpec(ndim=4, axes={self._channel_axis: channels})
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        outputs = td.nn.depthwise_conv2d(
            inputs, self.kernel, [1, *self.strides, 1] if self._channel_axis == 3
            else [1, 1, *self.strides], self.padding.upper(), self._format_code,
            list(self.dilation),
        )  # fmt: skip
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        channels = input_shape[self._channel_axis]
        multiplied = None if channels is None else channels * self.depth_multiplier
        return self._with_channels(input_shape, multiplied)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for key in ("filters", "groups"):
            del config[key]
        initializer = config.pop("kernel_initializer")
        return config | {
            "depth_multiplier": self.depth_multiplier, "depthwise_initializer": initializer,
        }  # fmt: skip


class _Pooling2D(_Spatial):
    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._set_windows(pool_size, strides, padding, data_format)
        self.built = True

    @property
    def pool_size(self) -> tuple[int, int]:
        return self.window

    def call(self, inputs: Any) -> td.Tensor:
        return self._pool(
            inputs, list(self.window), list(self.strides), self.padding.upper(), self._format_code
        )

    def _pool(self, *args: Any) -> td.Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_channels(input_shape, input_shape[self._channel_axis])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "pool_size": self.window,
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
        }


class MaxPooling2D(_Pooling2D):
    """The maximum of each window."""

    def _pool(self, *args: Any) -> td.Tensor:
        return td.nn.max_pool2d(*args)


class AveragePooling2D(_Pooling2D):
    """The mean of each window, padding not counted."""

    def _pool(self, *args: Any) -> td.Tensor:
        return td.nn.avg_pool2d(*args)


MaxPool2D, AvgPool2D = MaxPooling2D, AveragePooling2D


class _GlobalPooling2D(Layer):
    def __init__(
        self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.data_format, self.keepdims = _format(data_format), keepdims
        self.input_spec = InputSpec(ndim=4)
        self.built = True

    @property
    def _axes(self) -> list[int]:
        return [1, 2] if self.data_format == "channels_last" else [2, 3]

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self.keepdims:
            return tuple(1 if i in self._axes else d for i, d in enumerate(input_shape))
        return tuple(d for i, d in enumerate(input_shape) if i not in self._axes)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "data_format": self.data_format, "keepdims": self.keepdims,
        }  # fmt: skip


class GlobalAveragePooling2D(_GlobalPooling2D):
    """The mean over height and width."""

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_mean(inputs, self._axes, keepdims=self.keepdims)


class GlobalMaxPooling2D(_GlobalPooling2D):
    """The maximum over height and width."""

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_max(inputs, self._axes, keepdims=self.keepdims)


GlobalAvgPool2D, GlobalMaxPool2D = GlobalAveragePooling2D, GlobalMaxPooling2D
