"""Weight initializers. With a seed an initializer gives the same values on every call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import config, random, serialization
from treadle.names import missing_in

Shape = Sequence[int]


class Initializer:
    """Base: ``initializer(shape, dtype)`` gives a tensor."""

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        raise NotImplementedError(f"{type(self).__name__} must implement __call__")

    def get_config(self) -> dict[str, Any]:
        return {key.lstrip("_"): value for key, value in vars(self).items() if key[0] != "_"}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(**config)


class Zeros(Initializer):
    """All zeros."""

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        return td.zeros(shape, dtype or config.floatx())


class Ones(Initializer):
    """All ones."""

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        return td.ones(shape, dtype or config.floatx())


class Constant(Initializer):
    """All elements equal `value` (or an array of the right shape)."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        value = td.cast(td.convert_to_tensor(self.value), dtype or config.floatx())
        return td.broadcast_to(value, shape)

    def get_config(self) -> dict[str, Any]:
        return {"value": serialization.serialize_keras_object(self.value)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(serialization.deserialize_keras_object(config["value"]))


class Identity(Initializer):
    """The identity matrix times `gain`."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        if len(shape) != 2:
            raise ValueError(f"Identity initializes matrices only, got shape {tuple(shape)}")
        return td.constant(self.gain * np.eye(shape[0], shape[1]), dtype or config.floatx())


class STFT(Initializer):
    """Waves whose sums of products with parts of a signal are its spectra.

    Args:
        side: "real" for cosines, "imag" for sines.
        window: what parts are multiplied by: a name of `scipy.signal.windows`, values, or None.
        scaling: "density" or "spectrum": the window is divided by the root of its energy, or by
            its sum; None: neither.
        periodic: the window is one period of a longer one.

    Raises:
        ValueError: another side or scaling, or no such window.
    """

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density",
        periodic: bool = False,
    ) -> None:  # fmt: skip
        if side not in ("real", "imag"):
            raise ValueError(f"side should be 'real' or 'imag', not {side}")
        if scaling not in (None, "density", "spectrum"):
            raise ValueError(
                "Scaling is invalid, it must be `None`, 'density' or 'spectrum'. Received "
                f"scaling={scaling}"
            )  # fmt: skip
        if isinstance(window, str):
            _window(window, 1, periodic)
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        length, channels, frequencies = shape
        window = np.ones(length)
        if self.window is not None:
            named = isinstance(self.window, str)
            window = _window(self.window, length, self.periodic) if named else self.window
            window = np.asarray(window, np.float64)
            if window.shape != (length,):
                raise ValueError(
                    "The shape of `window` must be equal to [frame_length]. Received: window "
                    f"shape={window.shape}"
                )  # fmt: skip
        scale = 1.0
        if self.window is not None and self.scaling is not None:
            density = self.scaling == "density"
            scale = np.sqrt(np.sum(window**2)) if density else np.sum(np.abs(window))
        turns = 2 * np.pi * np.outer(np.arange(length), np.arange(frequencies))
        waves = turns / ((frequencies - 1) * 2)
        values = np.cos(waves) if self.side == "real" else -np.sin(waves)
        values = values * window[:, None] / scale
        found = np.broadcast_to(values[:, None], (length, channels, frequencies))
        return td.constant(found, dtype or config.floatx())


def _window(name: str, length: int, periodic: bool) -> Any:
    """The window of that name; scipy is needed for others than "hann" and "hamming"."""
    makers = {"hann": td.signal.hann_window, "hamming": td.signal.hamming_window}
    if name in makers:
        return makers[name](length, periodic=periodic, dtype=td.float64).numpy()
    from scipy.signal import get_window

    return get_window(name, length, periodic)


class _Random(Initializer):
    """Base of those that draw: always the same numbers for an int as the seed, and for None, which
    stands for a random int; others on each call for a `keras.random.SeedGenerator`."""

    def __init__(self, seed: Any) -> None:
        self._given_seed = seed
        if seed is None:
            seed = random.default_seed()
        elif isinstance(seed, dict):
            seed = serialization.deserialize_keras_object(seed)
        if not isinstance(seed, int | np.integer | random.SeedGenerator):
            raise ValueError(
                "`seed` argument should be an instance of `keras.random.SeedGenerator()` or an "
                f"integer. Received: seed={seed}"
            )
        self.seed: Any = int(seed) if isinstance(seed, np.integer) else seed

    def get_config(self) -> dict[str, Any]:
        seed = serialization.serialize_keras_object(self._given_seed)
        return super().get_config() | {"seed": seed}


class RandomNormal(_Random):
    """Normally distributed values."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        return random.normal(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """Normally distributed values within two standard deviations."""

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class RandomUniform(_Random):
    """Values uniform in [minval, maxval)."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None
    ) -> None:
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        return random.uniform(shape, self.minval, self.maxval, dtype, self.seed)


def fans(shape: Shape, inputs: Any = None, outputs: Any = None) -> tuple[float, float]:
    """The numbers of inputs and outputs of a unit: convolution kernels end in (in, out).

    Args:
        inputs, outputs: the axes of inputs and of outputs, where they are known.
    """
    if inputs is not None and outputs is not None:
        fan_in, fan_out = (math.prod(shape[a] for a in axes) for axes in (inputs, outputs))
        return float(fan_in), float(fan_out)
    if len(shape) < 2:
        size = float(shape[0]) if len(shape) else 1.0
        return size, size
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


# The standard deviation of a normal cut at two standard deviations, relative to the uncut one.
_CUT_STDDEV = 0.87962566103423978


class VarianceScaling(_Random):
    """Values whose variance is ``scale / n``, n by `mode`: fan_in, fan_out or fan_avg.

    Args:
        scale: positive.
        mode: the number of inputs of a unit, of outputs, or their mean.
        distribution: "truncated_normal" (or "normal"), "untruncated_normal" or "uniform".
        seed: an int or a `keras.random.SeedGenerator`.
        input_axes, output_axes: the axes of inputs and of outputs; both or none.

    Raises:
        ValueError: an argument is none of these.
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
        seed: Any = None, input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(seed)
        if scale <= 0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale}")
        modes, kinds = ("fan_in", "fan_out", "fan_avg"), ("truncated_normal", "untruncated_normal")
        if mode not in modes:
            raise ValueError(f"Invalid `mode` argument: {mode}. Please use one of {modes}")
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if distribution not in (*kinds, "uniform"):
            raise ValueError(
                f"Invalid `distribution` argument: {distribution}. Please use one of "
                f"{(*kinds, 'uniform')}"
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.input_axes, self.output_axes = input_axes, output_axes

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        fan_in, fan_out = fans(shape, self.input_axes, self.output_axes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.uniform(shape, -limit, limit, dtype, self.seed)
        cut = self.distribution == "truncated_normal"
        stddev = math.sqrt(variance) / (_CUT_STDDEV if cut else 1.0)
        draw = random.truncated_normal if cut else random.normal
        return draw(shape, 0.0, stddev, dtype, self.seed)


class _Named(VarianceScaling):
    """A VarianceScaling with fixed settings."""

    settings: tuple[float, str, str]

    def __init__(
        self, seed: Any = None, input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(*self.settings, seed, input_axes, output_axes)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {name: config[name] for name in ("seed", "input_axes", "output_axes")}


class GlorotUniform(_Named):
    """Uniform within ``sqrt(6 / (fan_in + fan_out))``."""

    settings = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Named):
    """Truncated normal of variance ``2 / (fan_in + fan_out)``."""

    settings = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Named):
    """Uniform within ``sqrt(6 / fan_in)``."""

    settings = (2.0, "fan_in", "uniform")


class HeNormal(_Named):
    """Truncated normal of variance ``2 / fan_in``."""

    settings = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Named):
    """Uniform within ``sqrt(3 / fan_in)``."""

    settings = (1.0, "fan_in", "uniform")


class LecunNormal(_Named):
    """Truncated normal of variance ``1 / fan_in``."""

    settings = (1.0, "fan_in", "truncated_normal")


class Orthogonal(_Random):
    """A matrix with orthonormal rows or columns, times `gain`."""

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Shape, dtype: Any = None) -> td.Tensor:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal needs at least two axes, got shape {tuple(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        flat = (max(rows, columns), min(rows, columns))
        a = np.asarray(random.normal(flat, dtype=dtype, seed=self.seed), np.float64)
        q, r = np.linalg.qr(a)
        q = q * np.sign(np.diag(r))
        q = q.T if rows < columns else q
        return td.constant((self.gain * q).reshape(shape), dtype or config.floatx())


zeros, ones, constant, identity = Zeros, Ones, Constant, Identity
random_normal, random_uniform = RandomNormal, RandomUniform
normal, uniform = RandomNormal, RandomUniform
truncated_normal, variance_scaling = TruncatedNormal, VarianceScaling
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
he_uniform, he_normal = HeUniform, HeNormal
lecun_uniform, lecun_normal, orthogonal = LecunUniform, LecunNormal, Orthogonal
stft = STFTInitializer = STFT
IdentityInitializer, OrthogonalInitializer = Identity, Orthogonal

_BY_NAME: dict[str, type[Initializer]] = {
    name: value
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Initializer) and name[0] != "_"
} | {"one": Ones, "zero": Zeros}


def get(identifier: Any) -> Any:
    """An initializer from its name, class, config or a function of (shape, dtype)."""
    identifier = serialization.custom(identifier)
    if isinstance(identifier, td.Tensor | np.ndarray):  # the values themselves
        return Constant(identifier)
    if identifier is None or (callable(identifier) and not isinstance(identifier, type)):
        return identifier
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if isinstance(identifier, type):
        return identifier()
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    raise ValueError(f"Unknown initializer {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def again(initializer: Any) -> Any:
    """An initializer like another one. Where that has no seed of its own, it draws others."""
    if not isinstance(initializer, Initializer):
        return initializer
    return type(initializer).from_config(initializer.get_config())


def serialize(initializer: Any) -> dict[str, Any]:
    """The config from which `get` makes an equal initializer."""
    found: dict[str, Any] = serialization.serialize_keras_object(initializer)
    return found


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The initializer that `serialize` described."""
    return serialization.deserialize_keras_object(config, custom_objects)


__getattr__ = missing_in(__name__)
