"""Plans: what the trampoline checks and makes for calls of one signature, as records of words."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.arrays import LARGE
from treadle.core.spec import TensorSpec
from treadle.runtime.cpu.kept_arrays import handler
from treadle.runtime.dispatch.spares import Spares, spares_for

MOST_FRAME, MOST_BASES, MOST_OUTPUTS = 192, 48, 64  # the trampoline's arrays on the stack

TENSOR, FLOAT, VALUE, LIST, TUPLE, DICT, HELD = range(7)
SINGLE, LIST_RESULT, TUPLE_RESULT, DICT_RESULT, NOTHING = range(5)

# Fields of the records, a word each.
PLAN = (
    "next", "count", "checks", "check_table", "run", "state", "words", "frame", "outputs",
    "output_table", "kind", "hold", "large", "failed", "keys", "active", "hits", "spares",
)  # fmt: skip
CHECK = ("kind", "base", "index", "key", "a", "b", "c", "slot")
OUTPUT = ("dtype", "rank", "dims", "spec", "slot", "flags")


class Output(NamedTuple):
    """A result: its spec (static) and its word in the program's frame."""

    spec: TensorSpec
    slot: int


def _bytes(output: Output) -> int:
    size: int = math.prod(output.spec.dims) * output.spec.dtype.size
    return size


def _flags(spec: TensorSpec) -> int:
    """NumPy's flags of a new array of that dtype and shape."""
    dims = [int(d) for d in spec.dims]  # type: ignore[arg-type]
    flags: int = np.empty(dims, spec.dtype.np_dtype).flags.num
    return flags


class TooLarge(Exception):
    """The signature does not fit the trampoline's arrays."""


class CallPlan:
    """The record of one plan, and everything that its addresses point to.

    Args:
        count: positional arguments.
        run, state: addresses of the program and of its state table.
        frame: the program's frame with every word that is the same in all calls.
        hold: whether other Python code may run during the call, which could drop the inputs.
        failed: called (without arguments) to raise the exception of a call that ended with one.
    """

    def __init__(
        self, count: int, run: int, state: int, frame: Sequence[int], hold: bool,
        failed: Callable[[], Any],
    ) -> None:  # fmt: skip
        if len(frame) > MOST_FRAME:
            raise TooLarge
        self.checks: list[tuple[int, ...]] = []
        self.bases = 1
        self.spares: Spares | None = None
        self.keep: list[Any] = [failed]
        self.fields = dict.fromkeys(PLAN, 0) | {
            "count": count, "run": run, "state": state, "hold": int(hold), "failed": id(failed),
            "words": len(frame), "frame": self._words(frame),
        }  # fmt: skip

    # -- checks ------------------------------------------------------------------------------

    def tensor(self, base: int, place: Any, spec: TensorSpec, slot: int) -> None:
        """A tensor or array of this dtype and shape, whose address goes into a frame word."""
        dtype = spec.dtype.np_dtype
        self.keep += [spec, dtype]
        dims = self._words([spec.rank, *(int(d) for d in spec.dims)])  # type: ignore[arg-type]
        self._check(TENSOR, base, place, id(spec), id(dtype), dims, slot)

    def held(self, owner: Any, offset: int) -> None:
        """The array in a slot of `owner` stays alive during the call (a variable's buffer)."""
        self.keep.append(owner)
        self.checks.append((HELD, 0, 0, 0, id(owner), offset, 0, 0))

    def float(self, base: int, place: Any, value: float) -> None:
        """A float with the same bits: -0.0 is not 0.0, and NaN is itself."""
        self._check(FLOAT, base, place, struct.unpack("<q", struct.pack("<d", value))[0])

    def value(self, base: int, place: Any, value: Any, by_identity: bool) -> None:
        """This very object, or one of the same type that equals it."""
        self.keep.append(value)
        self._check(VALUE, base, place, id(value), 0 if by_identity else id(type(value)))

    def container(self, base: int, place: Any, kind: int, length: int) -> int:
        """A list, tuple or dict of so many items; gives the base for its items."""
        self._check(kind, base, place, length)
        self.bases += 1
        if self.bases > MOST_BASES:
            raise TooLarge
        return self.bases - 1

    def _check(self, kind: int, base: int, place: Any, *words: int) -> None:
        """`place` is an index, or the key of a dict's item."""
        index, key = (place, 0) if isinstance(place, int) else (0, id(place))
        if key:
            self.keep.append(place)
        a, b, c, slot = (*words, 0, 0, 0)[:4]
        self.checks.append((kind, base, index, key, a, b, c, slot))

    # -- results -----------------------------------------------------------------------------

    def finish(self, outputs: Sequence[Output], kind: int, keys: Sequence[Any] = ()) -> None:
        """The results, and what they are returned in (`keys` for a dict)."""
        if len(outputs) > MOST_OUTPUTS:
            raise TooLarge
        records: list[int] = []
        for spec, slot in outputs:
            dtype = spec.dtype.np_dtype
            self.keep += [spec, dtype]
            dims = self._words([int(d) for d in spec.dims] or [0])  # type: ignore[arg-type]
            records += [id(dtype), spec.rank, dims, id(spec), slot, _flags(spec)]
        self.keep += list(keys)
        sizes = [_bytes(output) for output in outputs]
        large = handler() is not None and any(size >= LARGE for size in sizes)
        self.spares = spares = spares_for(sizes)
        self.fields |= {
            "checks": len(self.checks),
            "check_table": self._words([w for check in self.checks for w in check] or [0]),
            "outputs": len(outputs), "output_table": self._words(records or [0]), "kind": kind,
            "keys": self._words([id(k) for k in keys] or [0]), "large": int(large),
            "spares": 0 if spares is None else spares.address,
        }  # fmt: skip
        self.record = (ctypes.c_int64 * len(PLAN))(*self.fields.values())

    def _words(self, values: Sequence[int]) -> int:
        words = (ctypes.c_int64 * max(1, len(values)))(*values)
        self.keep.append(words)
        return ctypes.addressof(words)

    # -- in use ------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        return ctypes.addressof(self.record)

    def follow_with(self, plan: CallPlan | None) -> None:
        """Let `plan` be tried after this one."""
        self.record[PLAN.index("next")] = 0 if plan is None else plan.address

    @property
    def is_active(self) -> bool:
        """Whether a call is inside its program right now (it may have released the GIL)."""
        return bool(self.record[PLAN.index("active")])

    @property
    def hits(self) -> int:
        """Calls that it has taken."""
        return int(self.record[PLAN.index("hits")])
