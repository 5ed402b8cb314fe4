"""Keras 2's `LocallyConnected1D` and `LocallyConnected2D`: convolutions whose windows have filters
of their own at each place. Keras 3 has them no longer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import activations
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.spatial import Windowed, size_of

Place = tuple[int, ...]


def local_conv(
    inputs: Any, kernel: Any, kernel_size: Any, strides: Any, output_shape: Any,
    data_format: str | None = None,
) -> td.Tensor:  # fmt: skip
    """A convolution with a table of filters for each place of a window.

    Args:
        inputs: batches of positions and channels, in the order of `data_format`.
        kernel: [places, elements of a window, filters].
        kernel_size, strides, output_shape: for each spatial axis.
        data_format: "channels_last", "channels_first", or None for Keras's setting.
    """
    inputs, kernel = td.convert_to_tensor(inputs), td.convert_to_tensor(kernel)
    rank = len(output_shape)
    last = (data_format or td.keras.config.image_data_format()) == "channels_last"
    first = 1 if last else 2
    windows = inputs
    for number in range(rank):  # an axis becomes two: the place, and the position in the window
        starts = np.arange(output_shape[number])[:, None] * strides[number]
        at = starts + np.arange(kernel_size[number])
        windows = td.gather(windows, at, axis=first + 2 * number)
    places = [first + 2 * number for number in range(rank)]
    inside = [place + 1 for place in places]
    channels = [first + 2 * rank] if last else [1]
    order = [*places, 0, *(inside + channels if last else channels + inside)]
    rows = td.reshape(td.transpose(windows, order), [kernel.shape[0], -1, kernel.shape[1]])
    outputs = td.reshape(td.matmul(rows, kernel), [*output_shape, -1, kernel.shape[2]])
    axes = list(range(rank))
    return td.transpose(outputs, [rank, *axes, rank + 1] if last else [rank, rank + 1, *axes])


class _LocallyConnected(Windowed):
    """A layer whose windows have filters of their own.

    Args:
        filters: the number of output channels.
        kernel_size, strides: an int, or one for each spatial axis.
        padding: "valid", or "same" where `implementation` is not 1.
        data_format: "channels_last" or "channels_first".
        implementation: what the weights are. 1: for each place the filters of its window; 2: a
            table of all positions by all places, of which others than those in a window are not
            used; 3: a vector of those that are used.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, kernel_constraint, bias_constraint: as for Dense.
    """

    kernel: Any
    bias: Any
    _config_names: ClassVar[tuple[str, ...]] = (
        "filters", "kernel_size", "activation", "use_bias", "activity_regularizer",
        "implementation",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {"kernel": "glorot_uniform", "bias": "zeros"}

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, activation: Any = None, use_bias: bool = True,
        implementation: int = 1, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, strides, padding, data_format, **kwargs)
        if implementation not in (1, 2, 3):
            raise ValueError(f"Unrecognized implementation mode: {implementation}.")
        if self.padding != "valid" and implementation == 1:
            raise ValueError(
                f"Invalid border mode for {type(self).__name__} "
                f'(only "valid" is supported if implementation is 1): {padding}'
            )
        self.filters, self.use_bias = filters, use_bias
        self.activation, self.implementation = activations.get(activation), implementation

    @property
    def kernel_size(self) -> tuple[int, ...]:
        return self.window

    def build(self, input_shape: Any) -> None:
        space = tuple(input_shape[axis] for axis in self._axes)
        channels = input_shape[self._channel_axis]
        if channels is None or None in space:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) needs to know the sizes of all axes '
                f"but the first, got inputs of shape {tuple(input_shape)}"
            )
        found = self._with_channels(input_shape, self.filters)
        self._places: Place = tuple(found[axis] for axis in self._axes)
        self._inputs = self._ordered(space, channels)
        self._outputs = self._ordered(self._places, self.filters)
        self._build_kernel(space, channels)
        shape = (*self._places, self.filters)
        self.bias = self._own_weight("bias", shape) if self.use_bias else None
        self.input_spec = InputSpec(ndim=self._spatial_rank + 2, axes={self._channel_axis: channels})

    def _build_kernel(self, space: Place, channels: int) -> None:
        if self.implementation == 1:
            count, inside = int(np.prod(self._places)), int(np.prod(self.window))
            self.kernel = self._own_weight("kernel", (count, inside * channels, self.filters))
            return
        used = np.zeros((*space, *self._places), np.float32)
        for place, positions in self._connected(space):
            seen: Any = (*np.ix_(*positions), *place)
            used[seen] = 1.0
        before, after = self._spatial_rank, 2 * self._spatial_rank + 1
        if not self._channels_last:
            before, after = 0, self._spatial_rank + 1
        mask = np.expand_dims(np.expand_dims(used, before), after)
        if self.implementation == 2:
            self._mask = mask
            self.kernel = self._own_weight("kernel", (*self._inputs, *self._outputs))
            return
        all_pairs = np.broadcast_to(mask, (*self._inputs, *self._outputs)).reshape(
            int(np.prod(self._inputs)), int(np.prod(self._outputs))
        )
        self._pairs = np.argwhere(all_pairs.T)  # by outputs, and for each by inputs
        self.kernel = self._own_weight("kernel", (len(self._pairs),))

    def _connected(self, space: Place) -> Iterator[tuple[Place, list[range]]]:
        """Each place, and the positions along each axis that its window sees."""
        for place in itertools.product(*map(range, self._places)):
            positions = []
            for size, window, stride, at in zip(
                space, self.window, self.strides, place, strict=True
            ):
                begin = at * stride - (0 if self.padding == "valid" else window // 2)
                positions.append(range(max(0, begin), min(size, begin + window)))
            yield place, positions

    def _ordered(self, space: Place, channels: int) -> Place:
        return (*space, channels) if self._channels_last else (channels, *space)

    def call(self, inputs: Any) -> td.Tensor:
        if self.implementation == 1:
            outputs = local_conv(
                inputs, self.kernel, self.window, self.strides, self._places, self.data_format
            )
        else:
            rows = td.reshape(inputs, [size_of(inputs, 0), -1])
            outputs = td.matmul(rows, self._table(rows.shape[1]))
            outputs = td.reshape(outputs, [-1, *self._outputs])
        if self.bias is not None:
            # Keras reshapes the bias where channels come first, and does not transpose it: files
            # of weights have it so.
            outputs = outputs + td.reshape(self.bias, self._outputs)
        return self.activation(outputs)

    def _table(self, size: int) -> td.Tensor:
        """The weights between all inputs and all outputs."""
        count = int(np.prod(self._outputs))
        if self.implementation == 2:
            return td.reshape(self.kernel * td.cast(self._mask, self.kernel.dtype), [size, count])
        return td.transpose(td.scatter_nd(self._pairs, self.kernel, [count, size]))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._with_channels(input_shape, self.filters)


class LocallyConnected1D(_LocallyConnected):
    __doc__ = _LocallyConnected.__doc__
    rank = 1


class LocallyConnected2D(_LocallyConnected):
    __doc__ = _LocallyConnected.__doc__
    rank = 2
