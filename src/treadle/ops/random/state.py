"""Random streams: seeds, and the state that random ops read and advance.

A stream's state is a hidden Variable, so that a compiled program advances it like eager code does
and ``set_seed`` before a call decides the call's numbers.
"""

from __future__ import annotations

import os
import threading
from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from treadle.core import errors, locks
from treadle.core.context import context, home, placed, recording, taping
from treadle.core.devices import HOST, Device
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.strategies import number_here
from treadle.core.tensor import NDArray, Tensor, from_array
from treadle.ops.random.ops import SCRAMBLE, SKIP
from treadle.ops.registry import run
from treadle.ops.state import Variable
from treadle.ops.variable_creation import making_alone

# The global seed that op seeds are combined with where none is set (TensorFlow's).
_DEFAULT_SEED = 87654321
_OWN_STREAM = -1  # stands for "no op seed"
_WORD = 1 << 64


# The seed of an op, None where it has none; with the number of a replica that has a device of its
# own and is not the first: each draws from streams of its own.
OpSeed: TypeAlias = int | tuple[int | None, int] | None


class Stream(Variable):
    """The state of a stream. Each device has one of its own, so that its programs advance it where
    they run."""

    __slots__ = ("op_seed",)

    op_seed: OpSeed

    @property
    def number(self) -> int | None:
        """The seed of an op, in whichever replica."""
        return self.op_seed[0] if isinstance(self.op_seed, tuple) else self.op_seed

    def on(self, device: Device) -> Stream:
        """The stream of the same op seed on a device; itself where its memory is the device's."""
        if device.storage is self.spec.device.storage:
            return self
        return streams.variable(self.op_seed, device)


class _Streams:
    """The global stream and one stream per op seed, for each device."""

    def __init__(self) -> None:
        self.lock = locks.reentrant_lock()
        self.seed: int | None = None
        self.seedings = 0  # how often a seed was set
        self.need_seeds = False  # whether numbers without a seed are refused
        self.made: dict[tuple[OpSeed, Device], Stream] = {}

    def initial(self, op_seed: OpSeed) -> NDArray:
        """The state at which a stream starts under the current global seed."""
        if isinstance(op_seed, tuple):
            op_seed, number = op_seed
            return seed_state((int(self.initial(op_seed).sum()), number))
        if op_seed is None and self.seed is None:
            return np.frombuffer(os.urandom(24), np.int64).copy()
        seed = _DEFAULT_SEED if self.seed is None else self.seed
        return seed_state((seed, _OWN_STREAM if op_seed is None else op_seed))

    def variable(self, op_seed: OpSeed, device: Device = HOST) -> Stream:
        """The stream of an op seed on a device. One that is made now goes on where the host's is: a
        program that then draws there only gets the numbers that the host would have drawn."""
        with self.lock:
            found = self.made.get((op_seed, device))
            if found is None:
                here = self.made.get((op_seed, HOST))
                state = self.initial(op_seed) if here is None else here._numpy()
                with making_alone(device):  # it outlives the scopes of whoever draws first
                    found = Stream(state, trainable=False, name="random_state")
                found.op_seed = op_seed
                self.made[op_seed, device] = found
            return found

    def reset(self, seed: int | None) -> None:
        with self.lock, recording(None), taping(()):
            self.seed = seed
            self.seedings += 1
            for op_seed in {op_seed for op_seed, _ in self.made}:
                state = from_array(self.initial(op_seed))
                for (number, _), variable in self.made.items():
                    if number == op_seed:
                        variable.assign(state)


def _int64(value: int) -> np.int64:
    return np.uint64(value % _WORD).astype(np.int64)


def seed_state(seed: tuple[int, int]) -> NDArray:
    """The generator state that a pair of ints stands for, as in the stateless ops."""
    assert SCRAMBLE.eager is not None
    state: NDArray = SCRAMBLE.eager(np.array([_int64(s) for s in seed], np.int64))
    return state


streams = _Streams()


def set_seed(seed: Any) -> None:
    """Start all random streams anew from `seed`: eager code and compiled functions alike.

    Ops without a seed of their own draw from one stream; ops with ``seed=n`` from a stream that
    both seeds decide. None makes the streams begin as in a new process.
    """
    streams.reset(None if seed is None else int(seed))


def advance(variable: Variable, shape: tuple[Dim, ...]) -> Tensor:
    """The stream's state, after which it moves on by what `shape` uses."""
    if context.recorder is not None:
        return _advance(variable, shape)
    with streams.lock:
        return _advance(variable, shape)


def _advance(variable: Variable, shape: tuple[Dim, ...]) -> Tensor:
    count = product(shape)
    if isinstance(count, int) and count >> 60:
        text = f"there is no memory for {count} random numbers{at(user_origin())}"
        raise errors.ResourceExhaustedError(None, None, text)
    with taping(()):
        state = variable.read_value()
        variable.assign(run(SKIP, state, shape=shape))
    return state


class _Given(threading.local):
    """What `drawing_from` gives this thread, by op seed."""

    states: Mapping[int | None, Variable] = MappingProxyType({})


_given = is_mode(_Given())


def drawing_from(states: Mapping[int | None, Variable]) -> during:
    """Random ops that this thread traces in the block draw from these states, by op seed, in place
    of the streams that all share. A program has a state to itself while it runs. The mapping may
    get further states meanwhile."""
    return during(_given, "states", ChainMap(states, _given.states))  # type: ignore[arg-type]  # (nothing is put into it)


def check_seed(seed: Any) -> None:
    """Refuse random numbers without a seed where `td.config` asks for one.

    Raises:
        RuntimeError: neither `seed` nor the global seed is given.
    """
    if streams.need_seeds and seed is None and streams.seed is None:
        raise RuntimeError(
            "Random ops require a seed to be set when determinism is enabled. Please set a seed "
            f"before running the op, e.g. by calling td.random.set_seed(1){at(user_origin())}"
        )


def draw(op_seed: Any, shape: tuple[Dim, ...]) -> Tensor:
    """A state for one random op from the global stream, or from that of an op seed."""
    check_seed(op_seed)
    number = None if op_seed is None else int(op_seed)
    given = _given.states.get(number)
    if given is not None:
        return advance(given, shape)
    device = HOST if context.recorder is not None else placed() or home()
    replica = number_here()
    stream = streams.variable((number, replica) if replica else number)
    return advance(stream.on(device), shape)
