"""Initial values of variables: functions of a shape, with TensorFlow 1's arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.shapes import plain
from treadle.names import missing_in


class Initializer:
    """``f(shape, dtype=None)``: the initial value of a variable."""

    dtype: Any = td.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = plain(shape)
        return self._value(
            [sizes] if isinstance(sizes, int) else list(sizes), td.as_dtype(dtype or self.dtype)
        )

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Its arguments."""
        return {k.lstrip("_"): v for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(**config)


class zeros_initializer(Initializer):
    """Zeros."""

    def __init__(self, dtype: Any = td.float32) -> None:
        self.dtype = dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        return graph_function(td.zeros)(shape, dtype)


class ones_initializer(Initializer):
    """Ones."""

    def __init__(self, dtype: Any = td.float32) -> None:
        self.dtype = dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        return graph_function(td.ones)(shape, dtype)


class constant_initializer(Initializer):
    """A number, or the elements of a list in row-major order, the last one repeated."""

    def __init__(self, value: Any = 0, dtype: Any = td.float32, verify_shape: bool = False) -> None:
        if not np.isscalar(value) and not isinstance(value, list | tuple | np.ndarray):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}."
            )
        self.value, self.dtype, self._verify = value, dtype, verify_shape

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        given = np.asarray(self.value)
        if self._verify and list(given.shape) != shape:
            raise TypeError(f"Expected Tensor's shape: {tuple(shape)}, got {given.shape}.")
        count = math.prod(shape)
        flat = given.ravel()[:count]
        if flat.size < count:
            flat = np.concatenate([flat, np.repeat(given.ravel()[-1:], count - flat.size)])
        return graph_function(td.constant)(flat.reshape(shape), dtype)


class random_uniform_initializer(Initializer):
    """Uniform numbers in ``[minval, maxval)``."""

    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None,
                 dtype: Any = td.float32) -> None:  # fmt: skip
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        most = 1 if self.maxval is None else self.maxval
        return functions.random_uniform(shape, self.minval, most, dtype, self.seed)


class random_normal_initializer(Initializer):
    """Normal numbers."""

    _draw = staticmethod(functions.random_normal)

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None,
                 dtype: Any = td.float32) -> None:  # fmt: skip
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        return self._draw(shape, self.mean, self.stddev, dtype, self.seed)


class truncated_normal_initializer(random_normal_initializer):
    """Normal numbers that are no more than two standard deviations from the mean."""

    _draw = staticmethod(functions.truncated_normal)


class variance_scaling_initializer(Initializer):
    """Random numbers whose variance follows from the number of inputs and outputs."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in",
                 distribution: str = "truncated_normal", seed: int | None = None,
                 dtype: Any = td.float32) -> None:  # fmt: skip
        if scale <= 0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Argument `mode` should be one of fan_in, fan_out, fan_avg: {mode}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Argument `distribution` is unknown: {distribution}")
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.seed, self.dtype = seed, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        fan_in, fan_out = _fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            most = math.sqrt(3 * variance)
            return functions.random_uniform(shape, -most, most, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return functions.random_normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        deviation = math.sqrt(variance) / 0.87962566103423978
        return functions.truncated_normal(shape, 0.0, deviation, dtype, self.seed)


def _fans(shape: list[int]) -> tuple[float, float]:
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class uniform_unit_scaling_initializer(Initializer):
    """Uniform numbers that keep the scale of what they are multiplied with."""

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = td.float32
    ) -> None:
        self.factor, self.seed, self.dtype = factor, seed, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        size = math.prod(shape[:-1]) or 1
        most = math.sqrt(3 / size) * self.factor
        return functions.random_uniform(shape, -most, most, dtype, self.seed)


class orthogonal_initializer(Initializer):
    """An orthogonal matrix, times `gain`."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = td.float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        if len(shape) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        return recorded(_orthogonal)(list(shape), self.gain, dtype, self.seed)


def _orthogonal(shape: list[int], gain: float, dtype: td.DType, seed: int | None) -> Any:
    rows, columns = math.prod(shape[:-1]), shape[-1]
    flat = td.random.normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=seed)
    q, r = td.linalg.qr(flat)
    q = q * td.sign(td.linalg.diag_part(r))
    return gain * td.reshape(td.transpose(q) if rows < columns else q, shape)


class identity_initializer(Initializer):
    """The identity matrix, times `gain`."""

    def __init__(self, gain: float = 1.0, dtype: Any = td.float32) -> None:
        self.gain, self.dtype = gain, dtype

    def _value(self, shape: list[int], dtype: td.DType) -> Any:
        if len(shape) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        return self.gain * graph_function(td.eye)(shape[0], shape[1], dtype=dtype)


def _scaled(name: str, scale: float, mode: str, distribution: str) -> Any:
    class Scaled(variance_scaling_initializer):
        def __init__(self, seed: int | None = None, dtype: Any = td.float32) -> None:
            super().__init__(scale, mode, distribution, seed, dtype)

        def get_config(self) -> dict[str, Any]:
            return {"seed": self.seed, "dtype": self.dtype}

    Scaled.__name__ = Scaled.__qualname__ = name
    return Scaled


glorot_uniform_initializer = _scaled("glorot_uniform_initializer", 1.0, "fan_avg", "uniform")
glorot_normal_initializer = _scaled("glorot_normal_initializer", 1.0, "fan_avg", "truncated_normal")
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
constant, zeros, ones = constant_initializer, zeros_initializer, ones_initializer
identity, orthogonal = identity_initializer, orthogonal_initializer
random_normal, random_uniform = random_normal_initializer, random_uniform_initializer
truncated_normal = truncated_normal_initializer
uniform_unit_scaling = uniform_unit_scaling_initializer
variance_scaling = variance_scaling_initializer
glorot_normal, glorot_uniform = glorot_normal_initializer, glorot_uniform_initializer


def default(dtype: td.DType) -> Initializer:
    """What `get_variable` takes where it is given no initializer.

    Raises:
        ValueError: there is none for the dtype.
    """
    if dtype.is_floating:
        found: Initializer = glorot_uniform_initializer()
        return found
    if dtype.is_integer or dtype is td.bool or dtype is td.string:
        return zeros_initializer(dtype)
    raise ValueError(f"An initializer for a Variable of {dtype.name} is required")

in_graphs(
    _orthogonal,
)

__getattr__ = missing_in(__name__)
