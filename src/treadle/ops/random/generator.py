"""``td.random.Generator``: a random stream that the program holds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from treadle.core import dtypes, locks
from treadle.core.context import recording
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.random.algorithms import check_algorithm
from treadle.ops.random.distributions import (
    Dims,
    floating,
    normal_from,
    random_dims,
    uniform_dtype,
    uniform_from,
)  # fmt: skip
from treadle.ops.random.families import binomial_counters, binomial_from
from treadle.ops.random.ops import NORMAL, TRUNCATED_NORMAL
from treadle.ops.random.seeds import STATE_SIZE, create_rng_state
from treadle.ops.random.state import advance, streams
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.state import Variable


class Generator:
    """A Philox stream with its own state; its numbers are those of TensorFlow's Generator.

    Make one with `from_seed`, `from_state` or `from_non_deterministic_state`.
    """

    algorithm = 1

    def __init__(self, copy_from: Any = None, state: Any = None, alg: Any = None) -> None:
        """
        Args:
            copy_from: a generator whose state the new one has at first.
            state: int64 [3]; a variable is used as it is.
            alg: "philox", "auto_select", or the `Algorithm`.

        Raises:
            ValueError: neither a generator nor a state is given, or a state of another shape.
        """
        if copy_from is not None:
            state = copy_from.state.read_value()
        elif state is None:
            raise ValueError(f"Generator needs copy_from or a state{at(user_origin())}")
        check_algorithm(alg)
        if isinstance(state, Variable) and state.dtype is dtypes.int64:
            _check_state_shape(state)
            self._state = state
            return
        values = cast(convert_to_tensor(state), dtypes.int64)
        _check_state_shape(values)
        self._state = Variable(values, trainable=False, dtype=dtypes.int64, name="StateVar")

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose stream `seed` decides, as for `create_rng_state`."""
        return cls(state=create_rng_state(seed, alg))

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """A generator that continues from a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """A generator with a key, an int, and a counter of two ints, the low one first.

        Raises:
            ValueError: other shapes.
        """
        return cls(state=_joined(key, counter), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator seeded by the operating system.

        Raises:
            RuntimeError: `td.config.experimental.enable_op_determinism` asks for seeds.
        """
        if streams.need_seeds:
            raise RuntimeError(
                '"from_non_deterministic_state" cannot be called when determinism is enabled: use '
                f"td.random.Generator.from_seed{at(user_origin())}"
            )
        return cls(state=np.frombuffer(os.urandom(24), np.int64).copy(), alg=alg)

    @property
    def state(self) -> Variable:
        return self._state

    @property
    def key(self) -> Tensor:
        return self._state.read_value()[2]

    def reset(self, state: Any) -> None:
        """Continue from `state`."""
        self._state.assign(cast(convert_to_tensor(state), dtypes.int64))

    def reset_from_seed(self, seed: Any) -> None:
        """Start anew from `seed`."""
        self._state.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Continue from a key and a counter of two ints."""
        self._state.assign(_joined(key, counter))

    def skip(self, delta: int) -> Tensor:
        """Move on as if `delta` numbers had been drawn; returns the state before."""
        return advance(self._state, (int(delta),))

    def _draw(self, shape: Any) -> tuple[Tensor, Dims]:
        dims = random_dims(shape)
        return advance(self._state, dims), dims

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers uniform in [minval, maxval); integers need `maxval`."""
        kind = uniform_dtype(dtype)  # refused before the state moves on
        return uniform_from(*self._draw(shape), minval, maxval, kind)

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
        kind = floating(NORMAL, dtype)
        return normal_from(NORMAL, *self._draw(shape), mean, stddev, kind)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers within two standard deviations of the mean."""
        kind = floating(TRUNCATED_NORMAL, dtype)
        return normal_from(TRUNCATED_NORMAL, *self._draw(shape), mean, stddev, kind)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Binomially distributed numbers of successes.

        Args:
            shape: the result's whole shape, which ends with that of counts and probs together.
            counts, probs: how many tries, and how likely a success is; floats of one dtype.
            dtype: a floating dtype, int32 or int64.

        Raises:
            InvalidArgumentError: the shapes do not fit together.
        """
        p = convert_to_tensor(probs, dtype_hint=dtypes.float32)
        n, dims = convert_to_tensor(counts, dtype_hint=p.dtype), random_dims(shape)
        state = advance(self._state, (binomial_counters(dims, n, p),))
        return binomial_from(state, dims, n, p, dtype, "binomial")

    def make_seeds(self, count: int = 1) -> Tensor:
        """`count` seeds for the stateless ops, shape [2, count]."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return convert_to_tensor([keys, keys * 0])

    def split(self, count: int = 1) -> list[Generator]:
        """`count` generators with independent streams."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return [
            Generator(state=convert_to_tensor([keys[i] * 0, keys[i] * 0, keys[i]]))
            for i in range(count)
        ]


def _check_state_shape(state: Any) -> None:
    if state.shape.rank != 1 or not state.shape.is_compatible_with([STATE_SIZE]):
        text = f"The state of a Philox generator has {STATE_SIZE} elements, got {state.shape}"
        raise ValueError(f"{text}{at(user_origin())}")


def _joined(key: Any, counter: Any) -> Tensor:
    """The state for a key and a counter."""
    words, last = (cast(part, dtypes.int64) for part in (counter, key))
    if not words.shape.is_compatible_with([STATE_SIZE - 1]) or last.ndim:
        text = f"a counter of shape {words.shape} and a key of shape {last.shape}"
        raise ValueError(f"{text}; two words and a scalar are expected{at(user_origin())}")
    return concat([words, reshape(last, [1])], 0)


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
