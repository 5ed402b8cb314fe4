"""Convolution and pooling along the steps of (batch, steps, features)."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.layers.base import InputSpec, Layer
from treadle.keras.layers.convolutional import Conv2D, _length


def _one(value: Any) -> int:
    return int(value if isinstance(value, int) else tuple(value)[0])


class Conv1D(Conv2D):
    """One-dimensional convolution with bias and activation: the steps are an image's columns.

    Arguments as for Conv2D, each size an int; padding may be "causal": no step sees a later one.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, **kwargs: Any,
    ) -> None:  # fmt: skip
        if data_format not in (None, "channels_last"):
            raise ValueError("Conv1D: the features come last")
        self.causal = padding == "causal"
        super().__init__(
            filters, (1, _one(kernel_size)), (1, _one(strides)),
            "valid" if self.causal else padding, "channels_last", (1, _one(dilation_rate)),
            **kwargs,
        )  # fmt: skip
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        channels = self._checked_channels((input_shape[0], 1, *input_shape[1:]))
        self.kernel = self.add_weight(
            (self.window[1], channels // self.groups, self.filters), self.kernel_initializer,
            name="kernel", regularizer=self._regularizers[0],
        )  # fmt: skip
        self._build_bias(self.filters)
        self.input_spec = InputSpec(ndim=3, axes={2: channels})
        self.built = True

    @property
    def _before(self) -> int:
        """The steps of zeros that causal padding puts first."""
        return (self.window[1] - 1) * self.dilation[1] if self.causal else 0

    def call(self, inputs: Any) -> td.Tensor:
        if self.causal:
            inputs = td.pad(inputs, [[0, 0], [self._before, 0], [0, 0]])
        outputs = td.nn.conv2d(
            inputs[:, None], self.kernel.value()[None], list(self.strides), self.padding.upper(),
            "NHWC", list(self.dilation),
        )  # fmt: skip
        return self._finished(outputs)[:, 0]

    def compute_output_shape(self, input_shape: Any) -> Any:
        size = input_shape[1]
        size = None if size is None else size + self._before
        length = _length(size, self.window[1], self.strides[1], self.dilation[1], self.padding)
        return (input_shape[0], length, self.filters)

    def get_config(self) -> dict[str, Any]:
        one = {name: getattr(self, name)[1] for name in ("strides", "kernel_size")}
        padding = "causal" if self.causal else self.padding
        return super().get_config() | one | {
            "dilation_rate": self.dilation[1], "padding": padding,
        }  # fmt: skip


class _Pooling1D(Layer):
    def __init__(
        self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.pool_size = _one(pool_size)
        self.strides = self.pool_size if strides is None else _one(strides)
        self.padding = padding
        self.input_spec = InputSpec(ndim=3)
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        pooled = self._pool(
            inputs[:, None], [1, self.pool_size], [1, self.strides], self.padding.upper()
        )
        return pooled[:, 0]

    def _pool(self, *args: Any) -> td.Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Any) -> Any:
        length = _length(input_shape[1], self.pool_size, self.strides, 1, self.padding)
        return (input_shape[0], length, input_shape[2])


class MaxPooling1D(_Pooling1D):
    """The maximum of each window of steps."""

    def _pool(self, *args: Any) -> td.Tensor:
        return td.nn.max_pool2d(*args)


class AveragePooling1D(_Pooling1D):
    """The mean of each window of steps."""

    def _pool(self, *args: Any) -> td.Tensor:
        return td.nn.avg_pool2d(*args)


MaxPool1D, AvgPool1D = MaxPooling1D, AveragePooling1D


class _GlobalPooling1D(Layer):
    def __init__(self, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.keepdims = keepdims
        self.input_spec = InputSpec(ndim=3)
        self.built = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], *((1,) if self.keepdims else ()), input_shape[2])


class GlobalAveragePooling1D(_GlobalPooling1D):
    """The mean over the steps."""

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_mean(inputs, 1, keepdims=self.keepdims)


class GlobalMaxPooling1D(_GlobalPooling1D):
    """The maximum over the steps."""

    def call(self, inputs: Any) -> td.Tensor:
        return td.reduce_max(inputs, 1, keepdims=self.keepdims)


GlobalAvgPool1D, GlobalMaxPool1D = GlobalAveragePooling1D, GlobalMaxPooling1D
