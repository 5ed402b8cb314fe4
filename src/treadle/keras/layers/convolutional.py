"""Convolutions of one, two and three spatial axes: whole, channel by channel, and transposed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import activations
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.lora import Adaptable, Table
from treadle.keras.layers.spatial import Windowed, size_of, sizes


class _Convolution(Windowed):
    """What convolutions share: a window with strides and dilation, a bias and an activation."""

    kernel: Any
    bias: Any
    _config_names: ClassVar[tuple[str, ...]] = (
        "kernel_size", "dilation_rate", "activation", "use_bias", "activity_regularizer",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {"kernel": "glorot_uniform", "bias": "zeros"}

    def __init__(
        self, kernel_size: Any, strides: Any, padding: str, data_format: str | None,
        dilation_rate: Any, activation: Any, use_bias: bool, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, **kwargs)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{type(self).__name__}: strides {self.strides} or dilation_rate "
                f"{self.dilation_rate} must be 1"
            )
        self.activation, self.use_bias = activations.get(activation), use_bias

    @property
    def kernel_size(self) -> tuple[int, ...]:
        return self.window

    def build(self, input_shape: Any) -> None:
        channels = self._checked_channels(input_shape)
        self._build_kernels(channels)
        outputs = self._outputs_of(channels)
        self.bias = self._own_weight("bias", (outputs,)) if self.use_bias else None
        axes = {self._channel_axis: channels}
        self.input_spec = InputSpec(ndim=self._spatial_rank + 2, axes=axes)

    def _build_kernels(self, channels: int) -> None:
        raise NotImplementedError

    def _checked_channels(self, input_shape: Any, groups: int = 1) -> int:
        channels = input_shape[self._channel_axis]
        if channels is None or channels % groups:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) needs a known number of channels, a '
                f"multiple of groups={groups}; got inputs of shape {tuple(input_shape)}"
            )
        return int(channels)

    def _outputs_of(self, channels: int) -> int:
        """The number of output channels."""
        raise NotImplementedError

    def call(self, inputs: Any) -> td.Tensor:
        outputs = self._convolved(inputs)
        if self.bias is not None:
            outputs = td.nn.bias_add(
                outputs, self.bias, "N...C" if self._channels_last else "NC..."
            )
        return self.activation(outputs)

    def _convolved(self, inputs: td.Tensor) -> td.Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Any) -> Any:
        channels = input_shape[self._channel_axis]
        return self._with_channels(
            input_shape, None if channels is None else self._outputs_of(channels)
        )


class _Conv(_Convolution, Adaptable):
    """A convolution with bias and activation.

    Args:
        filters: the number of output channels.
        kernel_size, strides, dilation_rate: an int, or one for each spatial axis.
        padding: "valid" or "same"; for one axis also "causal": no step sees a later one.
        data_format: "channels_last" or "channels_first".
        groups: the channels are split into so many groups with filters of their own.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, kernel_constraint, bias_constraint: as for Dense.
    """

    kernel = Table()
    _config_names: ClassVar[tuple[str, ...]] = ("filters", "groups")

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        if not isinstance(filters, int | np.integer) or filters < 1 or filters % groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a positive multiple of groups={groups}, "
                f"got {filters!r}"
            )
        self.filters, self.groups = int(filters), groups

    def _checked_channels(self, input_shape: Any, groups: int = 1) -> int:
        return super()._checked_channels(input_shape, self.groups)

    def _build_kernels(self, channels: int) -> None:
        shape = (*self.window, channels // self.groups, self.filters)
        self.kernel = self._own_weight("kernel", shape)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self._enable_if_asked()

    def _outputs_of(self, channels: int) -> int:
        return self.filters

    def _convolved(self, inputs: td.Tensor) -> td.Tensor:
        return self.convolution_op(inputs, self._adapted())

    def convolution_op(self, inputs: Any, kernel: Any) -> td.Tensor:
        """The convolution alone, by any kernel of the layer's shape: a subclass may change it."""
        padding = self.padding.upper()
        if padding == "CAUSAL":  # zeros before the first step
            around = [(0, 0)] * 3
            around[self._axes[0]] = ((self.window[0] - 1) * self.dilation_rate[0], 0)
            inputs, padding = td.pad(inputs, around), "VALID"
        return td.nn.convolution(
            inputs, kernel, list(self.strides), padding, self._format_code,
            list(self.dilation_rate),
        )  # fmt: skip


class Conv1D(_Conv):
    __doc__ = _Conv.__doc__
    rank = 1
    _further_paddings = ("causal",)


class Conv2D(_Conv):
    __doc__ = _Conv.__doc__
    rank = 2


class Conv3D(_Conv):
    __doc__ = _Conv.__doc__
    rank = 3


class _OfChannels(_Convolution):
    """What convolutions of single channels share.

    The windows of one axis are those of an image of one row.
    """

    depth_multiplier: int
    _config_names: ClassVar[tuple[str, ...]] = ("depth_multiplier",)

    def _set_multiplier(self, depth_multiplier: int) -> None:
        if not isinstance(depth_multiplier, int | np.integer) or depth_multiplier < 1:
            raise ValueError(
                f"{type(self).__name__}: depth_multiplier must be a positive int, got "
                f"{depth_multiplier!r}"
            )
        self.depth_multiplier = int(depth_multiplier)

    def _by_channel(self, inputs: td.Tensor, kernel: Any) -> td.Tensor:
        code, strides, dilation = self._format_code, self.strides, self.dilation_rate
        row = self._axes[0]
        if self._spatial_rank == 1:
            inputs, kernel = td.expand_dims(inputs, row), kernel.read_value()[None]
            code, strides, dilation = code.replace("W", "HW"), strides * 2, (1, *dilation)
        steps = [1, *strides, 1] if self._channels_last else [1, 1, *strides]
        outputs = td.nn.depthwise_conv2d(
            inputs, kernel, steps, self.padding.upper(), code, list(dilation)
        )
        return td.squeeze(outputs, row) if self._spatial_rank == 1 else outputs


class _DepthwiseConv(_OfChannels):
    """Convolution of each channel with `depth_multiplier` filters of its own.

    Args:
        kernel_size, strides, dilation_rate: an int, or one for each spatial axis.
        depth_multiplier: the number of filters of a channel.
        padding, data_format, activation, use_bias: as for Conv2D.
        depthwise_initializer, depthwise_regularizer, depthwise_constraint: of the filters.
    """

    _weight_kinds: ClassVar[dict[str, str]] = {"depthwise": "glorot_uniform", "bias": "zeros"}

    def __init__(
        self, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        depth_multiplier: int = 1, data_format: str | None = None, dilation_rate: Any = 1,
        activation: Any = None, use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, depthwise_constraint: Any = None,
        bias_constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            depthwise_initializer=depthwise_initializer, bias_initializer=bias_initializer,
            depthwise_regularizer=depthwise_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, depthwise_constraint=depthwise_constraint,
            bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        self._set_multiplier(depth_multiplier)

    def _build_kernels(self, channels: int) -> None:
        shape = (*self.window, channels, self.depth_multiplier)
        self.kernel = self._own_weight("depthwise", shape, name="kernel")

    def _outputs_of(self, channels: int) -> int:
        return channels * self.depth_multiplier

    def _convolved(self, inputs: td.Tensor) -> td.Tensor:
        return self._by_channel(inputs, self.kernel)


class DepthwiseConv1D(_DepthwiseConv):
    __doc__ = _DepthwiseConv.__doc__
    rank = 1


class DepthwiseConv2D(_DepthwiseConv):
    __doc__ = _DepthwiseConv.__doc__
    rank = 2


class _SeparableConv(_OfChannels):
    """A convolution of each channel, whose results are mixed by a convolution of single elements.

    Args:
        filters: the number of output channels.
        kernel_size, strides, dilation_rate: an int, or one for each spatial axis.
        depth_multiplier: the number of filters of a channel.
        padding, data_format, activation, use_bias: as for Conv2D.
        depthwise_initializer, pointwise_initializer, and the same for regularizer and constraint:
            of the filters of channels, and of those that mix them.
    """

    depthwise_kernel: Any
    pointwise_kernel: Any
    _config_names: ClassVar[tuple[str, ...]] = ("filters",)
    _weight_kinds: ClassVar[dict[str, str]] = {
        "depthwise": "glorot_uniform", "pointwise": "glorot_uniform", "bias": "zeros",
    }  # fmt: skip

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None,
        depthwise_constraint: Any = None, pointwise_constraint: Any = None,
        bias_constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            depthwise_initializer=depthwise_initializer,
            pointwise_initializer=pointwise_initializer, bias_initializer=bias_initializer,
            depthwise_regularizer=depthwise_regularizer,
            pointwise_regularizer=pointwise_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, depthwise_constraint=depthwise_constraint,
            pointwise_constraint=pointwise_constraint, bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        if not isinstance(filters, int | np.integer) or filters < 1:
            raise ValueError(
                f"{type(self).__name__}: filters must be a positive int, got {filters!r}"
            )
        self.filters = int(filters)
        self._set_multiplier(depth_multiplier)

    def _build_kernels(self, channels: int) -> None:
        multiplier = self.depth_multiplier
        self.depthwise_kernel = self._own_weight(
            "depthwise", (*self.window, channels, multiplier), name="depthwise_kernel"
        )
        self.pointwise_kernel = self._own_weight(
            "pointwise", (*(1,) * self._spatial_rank, channels * multiplier, self.filters),
            name="pointwise_kernel",
        )  # fmt: skip

    def _outputs_of(self, channels: int) -> int:
        return self.filters

    def _convolved(self, inputs: td.Tensor) -> td.Tensor:
        of_channels = self._by_channel(inputs, self.depthwise_kernel)
        return td.nn.convolution(
            of_channels, self.pointwise_kernel, 1, "VALID", self._format_code
        )


class SeparableConv1D(_SeparableConv):
    __doc__ = _SeparableConv.__doc__
    rank = 1


class SeparableConv2D(_SeparableConv):
    __doc__ = _SeparableConv.__doc__
    rank = 2


class _ConvTranspose(_Convolution):
    """The transpose of a convolution, by which the spatial axes grow.

    Args:
        output_padding: how much longer than the shortest possible an axis is to be, less than its
            stride: an int, or one for each spatial axis.
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
        kernel_initializer, bias_initializer: as for Conv2D.
    """

    output_padding: tuple[int, ...] | None
    _config_names: ClassVar[tuple[str, ...]] = ("filters", "output_padding")

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        output_padding: Any = None, data_format: str | None = None, dilation_rate: Any = 1,
        activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        if not isinstance(filters, int | np.integer) or filters < 1:
            raise ValueError(
                f"{type(self).__name__}: filters must be a positive int, got {filters!r}"
            )
        self.filters, self.output_padding = int(filters), None
        if output_padding is not None:
            rank = self._spatial_rank
            self.output_padding = sizes(output_padding, rank, "output_padding", least=0)
            pairs = zip(self.output_padding, self.strides, strict=True)
            if any(more >= step for more, step in pairs):
                raise ValueError(
                    f"{type(self).__name__}: output_padding {self.output_padding} must be below "
                    f"the strides {self.strides}"
                )

    def _build_kernels(self, channels: int) -> None:
        self.kernel = self._own_weight("kernel", (*self.window, self.filters, channels))

    def _outputs_of(self, channels: int) -> int:
        return self.filters

    def _windows_along(self, size: Any, number: int) -> Any:
        step = self.strides[number]
        reach = (self.window[number] - 1) * self.dilation_rate[number] + 1
        if self.output_padding is None:
            return size * step + (max(reach - step, 0) if self.padding == "valid" else 0)
        least = reach if self.padding == "valid" else reach % 2
        return (size - 1) * step + least + self.output_padding[number]

    def _convolved(self, inputs: td.Tensor) -> td.Tensor:
        shape = [size_of(inputs, axis) for axis in range(self._spatial_rank + 2)]
        return td.nn.conv_transpose(
            inputs, self.kernel, list(self._with_sizes(shape, self._windows_along, self.filters)),
            list(self.strides), self.padding, self._format_code,
            list(self.dilation_rate),
        )  # fmt: skip


class Conv1DTranspose(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 1


class Conv2DTranspose(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 2


class Conv3DTranspose(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 3

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, output_padding: Any = None, *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        # Keras has these two in another order than for fewer axes.
        super().__init__(
            filters, kernel_size, strides, padding, output_padding, data_format, *args, **kwargs
        )


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution1DTranspose, Convolution2DTranspose = Conv1DTranspose, Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
