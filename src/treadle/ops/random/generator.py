"""``td.random.Generator``: a random stream that the program holds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from treadle.core import dtypes, locks
from treadle.core.context import recording
from treadle.core.tensor import Tensor, from_array
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.random.distributions import Dims, normal_from, random_dims, uniform_from
from treadle.ops.random.ops import NORMAL, TRUNCATED_NORMAL
from treadle.ops.random.state import advance
from treadle.ops.state import Variable

_ALGORITHMS = (1, "philox", "auto_select")
_WORD = 1 << 64


class Generator:
    """A Philox stream with its own state; its numbers are those of TensorFlow's Generator.

    Make one with `from_seed`, `from_state` or `from_non_deterministic_state`.
    """

    algorithm = 1

    def __init__(self, state: Any, alg: Any = "philox") -> None:
        if alg not in _ALGORITHMS:
            raise ValueError(f"Generator supports alg='philox', got {alg!r}")
        values = convert_to_tensor(state.value() if isinstance(state, Variable) else state)
        values = cast(values, dtypes.int64)
        if values.dims != (3,):
            raise ValueError(f"The state of a Philox generator has 3 elements, got {values.shape}")
        self._state = Variable(values, trainable=False, dtype=dtypes.int64, name="StateVar")

    @classmethod
    def from_seed(cls, seed: int, alg: Any = "philox") -> Generator:
        """A generator whose stream `seed` decides."""
        return cls(_seed_vector(seed), alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any = "philox") -> Generator:
        """A generator that continues from a state."""
        return cls(state, alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = "philox") -> Generator:
        """A generator seeded by the operating system."""
        return cls(np.frombuffer(os.urandom(24), np.int64).copy(), alg)

    @property
    def state(self) -> Variable:
        return self._state

    @property
    def key(self) -> Tensor:
        return self._state.value()[2]

    def reset(self, state: Any) -> None:
        """Continue from `state`."""
        self._state.assign(cast(convert_to_tensor(state), dtypes.int64))

    def reset_from_seed(self, seed: int) -> None:
        """Start anew from `seed`."""
        self._state.assign(_seed_vector(seed))

    def skip(self, delta: int) -> None:
        """Move on as if `delta` numbers had been drawn."""
        advance(self._state, (int(delta),))

    def _draw(self, shape: Any) -> tuple[Tensor, Dims]:
        dims = random_dims(shape)
        return advance(self._state, dims), dims

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers uniform in [minval, maxval); integers need `maxval`."""
        return uniform_from(*self._draw(shape), minval, maxval, dtype)

    def uniform_full_int(
        self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None
    ) -> Tensor:
        """Integers uniform over the whole range of `dtype`."""
        return uniform_from(*self._draw(shape), None, None, dtype)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers."""
        return normal_from(NORMAL, *self._draw(shape), mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers within two standard deviations of the mean."""
        return normal_from(TRUNCATED_NORMAL, *self._draw(shape), mean, stddev, dtype)

    def make_seeds(self, count: int = 1) -> Tensor:
        """`count` seeds for the stateless ops, shape [2, count]."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return convert_to_tensor([keys, keys * 0])

    def split(self, count: int = 1) -> list[Generator]:
        """`count` generators with independent streams."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return [
            Generator(convert_to_tensor([keys[i] * 0, keys[i] * 0, keys[i]])) for i in range(count)
        ]


def _seed_vector(seed: int) -> Tensor:
    low = np.uint64(int(seed) % _WORD).astype(np.int64)
    return from_array(np.array([low, 0, 0], np.int64))


_lock = locks.lock()
_global: list[Generator] = []


def get_global_generator() -> Generator:
    """The generator of the program, made on first use."""
    with _lock, recording(None):
        if not _global:
            _global.append(Generator.from_non_deterministic_state())
        return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Replace the generator of the program; functions traced before keep the old one."""
    with _lock:
        _global[:] = [generator]
