"""Rescaling and Normalization."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import config, serialization
from treadle.keras.layers.base import Layer
from treadle.keras.layers.preprocessing.adapting import batches_of


class Rescaling(Layer):
    """``inputs * scale + offset``.

    Args:
        scale, offset: numbers, or lists of them for the channels.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("scale", "offset")

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        kind = self.compute_dtype
        scale, offset = (self._by_channel(td.constant(x, kind)) for x in (self.scale, self.offset))
        return td.cast(inputs, kind) * scale + offset

    def get_config(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in ("scale", "offset")}
        described: dict[str, Any] = serialization.serialize_keras_object(arrays)
        return super().get_config() | described

    def _by_channel(self, value: td.Tensor) -> td.Tensor:
        rank = len(value.shape)
        if not rank or config.image_data_format() == "channels_last":
            return value
        return td.reshape(value, [*value.shape, *[1] * (3 - rank)])


class Normalization(Layer):
    """``(inputs - mean) / sqrt(variance)``, of statistics that `adapt` finds or that are given.

    Args:
        axis: the axes with statistics of their own; None: one mean for all.
        mean, variance: the statistics; both or none.
        invert: go the other way.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("axis", "invert")

    def __init__(
        self, axis: Any = -1, mean: Any = None, variance: Any = None, invert: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        given = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        if any(a == 0 for a in given):
            raise ValueError("Normalization: the batch axis, 0, cannot be an axis of statistics")
        if (mean is None) != (variance is None):
            raise ValueError(
                "When setting values directly, both `mean` and `variance` must be set. Received: "
                f"mean={mean} and variance={variance}"
            )
        if np.shape(mean) != np.shape(variance) or np.ndim(mean) > len(given):
            raise ValueError(
                "When setting values directly, `mean` and `variance` must have the same shape, of "
                f"at most as many axes as there are statistics for ({len(given)}). Received: mean "
                f"shape {np.shape(mean)} and variance shape {np.shape(variance)}"
            )
        self.axis, self.invert = given, invert
        self._given = None if mean is None else (mean, variance)
        self.mean: Any = None
        self.variance: Any = None

    def _kept(self, rank: int) -> list[int]:
        return sorted(a % rank for a in self.axis)

    def build(self, input_shape: Any) -> None:
        if input_shape is None:
            return
        rank = len(input_shape)
        if any(not -rank <= a < rank for a in self.axis):
            raise ValueError(
                "All `axis` values must be in the range [-ndim, ndim). Received inputs with "
                f"ndim={rank}, while axis={self.axis}"
            )
        kept = self._kept(rank)
        sizes = [input_shape[a] for a in kept]
        if None in sizes:
            raise ValueError(
                "All `axis` values to be kept must have a known shape. Received "
                f"axis={self.axis}, inputs.shape={tuple(input_shape)}"
            )
        self._kept_axes, self._kept_sizes = kept, sizes
        self._spread = [d if a in kept else 1 for a, d in enumerate(input_shape)]
        if self._given is None:
            names = {"mean": "zeros", "variance": "ones"}
            self.adapt_mean, self.adapt_variance = (
                self.add_weight(sizes, initial, name=name, trainable=False)
                for name, initial in names.items()
            )
            self.count = self.add_weight((), "zeros", "int64", trainable=False, name="count")
        self.finalize_state()

    def _wants_data(self) -> bool:
        """Whether the statistics come from `adapt`."""
        return self._given is None

    def adapt(self, data: Any) -> None:
        """Find mean and variance of the data: an array, or a Dataset of batches.

        Raises:
            ValueError: the statistics were given.
        """
        if self._given is not None:
            raise ValueError(f'Layer "{self.name}" (Normalization) was given its statistics')
        count = 0
        total: Any = None
        square: Any = None
        for batch in batches_of(data):
            x = np.asarray(batch, np.float64)
            if not self.built:
                self.build(x.shape)
                self.built = True
            if x.ndim != len(self._spread) or [x.shape[a] for a in self._kept_axes] != list(
                self._kept_sizes
            ):
                raise ValueError(
                    f'Layer "{self.name}" was built for {self._kept_sizes} along the axes '
                    f"{self._kept_axes}, but adapt() is being called with data with an "
                    f"incompatible shape, {x.shape}"
                )
            axes = tuple(a for a in range(x.ndim) if a not in self._kept_axes)
            number = int(np.prod([x.shape[a] for a in axes]))
            # The deviations from the mean so far join those of the batch: small numbers stay exact.
            mean, deviation = x.mean(axes), x.var(axes) * number
            if total is None:
                total, square, count = mean, deviation, number
                continue
            step = mean - total
            square = square + deviation + step**2 * (count * number / (count + number))
            total = total + step * (number / (count + number))
            count += number
        if total is None:
            raise ValueError(
                f'Layer "{self.name}" (Normalization): adapt() received an empty iterable (no '
                "batches)"
            )
        self.adapt_mean.assign(np.asarray(total, self.dtype))
        self.adapt_variance.assign(np.asarray(square / count, self.dtype))
        self.count.assign(count)
        self.finalize_state()

    def reset_state(self) -> None:
        """Forget the statistics."""
        if self._given is None and self.built:
            self.adapt_mean.assign(td.zeros_like(self.adapt_mean))
            self.adapt_variance.assign(td.ones_like(self.adapt_variance))
            self.count.assign(0)

    def finalize_state(self) -> None:
        """Give `mean` and `variance` the shape of the inputs' axes."""
        given = self._given or (self.adapt_mean, self.adapt_variance)
        self.mean, self.variance = (self._in_place(value) for value in given)

    def _in_place(self, value: Any) -> td.Tensor:
        """Statistics with an axis for each of the inputs'; given ones stand for the last of the
        axes that have some."""
        if isinstance(value, td.Variable):
            return td.cast(td.reshape(value.read_value(), self._spread), self.compute_dtype)
        array = np.asarray(value, self.dtype)
        shape = [1] * len(self._spread)
        for axis, size in zip(self._kept_axes[::-1], array.shape[::-1], strict=False):
            shape[axis] = size
        whole = np.broadcast_to(array.reshape(shape), self._spread).copy()
        return td.constant(whole.astype(td.as_dtype(self.compute_dtype).as_numpy_dtype))

    def call(self, inputs: Any) -> td.Tensor:
        x = td.cast(inputs, self.compute_dtype)
        given = self._given or (self.adapt_mean, self.adapt_variance)
        mean, variance = (self._in_place(value) for value in given)
        least = td.constant(config.epsilon(), x.dtype)
        deviation = td.maximum(td.sqrt(variance), least)
        return x * deviation + mean if self.invert else (x - mean) / deviation

    def get_config(self) -> dict[str, Any]:
        mean, variance = self._given or (None, None)
        plain = {"mean": mean, "variance": variance}
        return super().get_config() | {
            name: value if value is None else np.asarray(value).tolist()
            for name, value in plain.items()
        }
