"""Plans: what the trampoline checks and makes for calls of one signature, as records of words."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.arrays import LARGE
from treadle.core.host_storage import VariableCell
from treadle.core.spec import TensorSpec
from treadle.runtime.cpu.dispatch.layout import value_offset
from treadle.runtime.cpu.dispatch.spares import Spares, spares_for
from treadle.runtime.cpu.kept_arrays import handler

MOST_ROOM = 4096  # words of each of the trampoline's arrays on the stack

# What a check looks at. TENSOR takes arrays too, and NumPy scalars for rank 0; ARRAY only arrays.
(
    TENSOR, FLOAT, VALUE, LIST, TUPLE, DICT, HELD, ARRAY, SAME, DISTINCT, WRITTEN, CAPTURED, BOXED,
    INTEGER,
) = range(14)  # fmt: skip
SINGLE, LIST_RESULT, TUPLE_RESULT, DICT_RESULT, NOTHING, PACKED_RESULT = range(6)

# The forms of a program's results: a tensor, an array, or from `SCALAR` on an element that the
# program writes into the frame and that becomes a NumPy scalar or a Python number.
WRAPPED, PLAIN, SCALAR, INT, REAL, COMPLEX, BOOL = range(7)

# The items of what the caller gets.
RESULT, AGAIN, INPUT, VIEW, KNOWN = range(5)

# Fields of the records, a word each.
PLAN = (
    "next", "count", "names", "room", "checks", "check_table", "run", "state", "words", "frame",
    "outputs", "output_table", "items", "item_table", "kind", "hold", "large", "failed", "keys",
    "packer", "active", "hits", "spares",
)  # fmt: skip
CHECK = ("kind", "base", "index", "key", "a", "b", "c", "slot")
OUTPUT = ("dtype", "rank", "dims", "spec", "slot", "flags", "form", "word")
ITEM = ("kind", "number", "object")
SHAPE = ("bytes", "scalar", "scalar_at", "rank", "dims")  # of an argument; `dims` is the first one
NUMBER_WORDS = 2  # of the largest element in a frame
_CELL_WORDS = ctypes.sizeof(VariableCell) // 8


class Output(NamedTuple):
    """A result of the program: its spec (static), its word in the program's frame, its form, and
    for elements the word that they are written to."""

    spec: TensorSpec
    slot: int
    form: int = WRAPPED
    word: int = 0


class Item(NamedTuple):
    """What the caller gets at one place.

    RESULT `number` of the program; AGAIN the item `number`, which comes before; INPUT `number`;
    VIEW, what the function `value` gives for an input; KNOWN, a `value`.
    """

    kind: int
    number: int = 0
    value: Any = None


def _bytes(spec: TensorSpec) -> int:
    """Of a tensor whose dims are known."""
    elements: Any = math.prod(spec.dims)
    return int(elements) * spec.dtype.size


def _flags(spec: TensorSpec) -> int:
    """NumPy's flags of a new array of that dtype and shape.

    They tell whether it is contiguous in row-major and in column-major order, for which an axis of
    many elements is as good as one of two. The array itself may not have room.
    """
    dims: list[int] = []
    for d in spec.dims:
        dims.append(min(int(d), 2 if dims.count(2) < 2 else 1))  # type: ignore[arg-type]
    flags: int = np.empty(dims, spec.dtype.np_dtype).flags.num
    return flags


class TooLarge(Exception):
    """The signature does not fit the trampoline's arrays."""


class CallPlan:
    """The record of one plan, and everything that its addresses point to.

    Args:
        count: positional arguments.
        names: those of keywords, in the order of the call; their values follow the others.
        run, state: addresses of the program and of its state table.
        frame: the program's frame with every word that is the same in all calls.
        hold: whether the program runs other Python code, which could drop the inputs, or lets it
            run.
        failed: gives (without arguments) the exception to raise for a call that ended with one.

    Attributes:
        inputs: how many objects a call notes in order: tensors, arrays and numbers.
    """

    def __init__(
        self, count: int, run: int, state: int, frame: Sequence[int], hold: bool,
        failed: Callable[[], Any], names: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.checks: list[tuple[int, ...]] = []
        self.bases, self.inputs = 1, 0
        self.frame = list(frame)
        self.spares: Spares | None = None
        self.keep: list[Any] = [failed, names]
        self.fields = dict.fromkeys(PLAN, 0) | {
            "count": count, "run": run, "state": state, "hold": int(hold), "failed": id(failed),
            "names": id(names) if names else 0,
        }  # fmt: skip

    def hold(self) -> None:
        """Keep the plan and the inputs during calls, which run other Python code."""
        self.fields["hold"] = 1

    def words(self, count: int) -> int:
        """Room in the frame behind the words of the program; gives the number of the first."""
        self.frame += [0] * (len(self.frame) % NUMBER_WORDS)
        self.frame += [0] * count
        return len(self.frame) - count

    # -- checks ------------------------------------------------------------------------------

    def tensor(self, base: int, place: Any, spec: TensorSpec, slot: int) -> None:
        """A tensor, array or scalar of this dtype and shape; its address goes into a frame word."""
        dtype = spec.dtype.np_dtype
        self.keep += [spec, dtype]
        self._check(TENSOR, base, place, id(spec), id(dtype), self._shape(spec, True), slot)
        self.inputs += 1

    def array(self, base: int, place: Any, spec: TensorSpec, slot: int) -> int:
        """An array of this dtype and shape; gives the number of the input."""
        dtype = spec.dtype.np_dtype
        self.keep.append(dtype)
        self._check(ARRAY, base, place, 0, id(dtype), self._shape(spec, False), slot)
        self.inputs += 1
        return self.inputs - 1

    def same(self, base: int, place: Any, number: int, spec: TensorSpec, slot: int) -> int:
        """The array that is input `number`, once more."""
        self._check(SAME, base, place, number, 0, self._shape(spec, False), slot)
        self.inputs += 1
        return self.inputs - 1

    def distinct(self) -> None:
        """The newest input is another object than all before it."""
        self._check(DISTINCT, 0, 0)

    def written(self, number: int, slot: int) -> None:
        """Input `number` may be written, and shares memory with no other; comes after all inputs.
        The program takes it as a variable."""
        cell = self.words(_CELL_WORDS)
        self._check(WRITTEN, 0, 0, number, cell, 0, slot)

    def captured(self, array: Any) -> None:
        """An array that the function reads by name."""
        start = array.ctypes.data
        self.keep.append(array)
        self._check(CAPTURED, 0, 0, start, start + array.nbytes)
        self.inputs += 1

    def boxed(self, base: int, place: Any, kind: type, offset: int, slot: int) -> None:
        """A number of exactly this type, whose value is at an offset in the object."""
        self.keep.append(kind)
        self._check(BOXED, base, place, id(kind), offset, 0, slot)
        self.inputs += 1

    def integer(self, base: int, place: Any, slot: int) -> None:
        """An int of 64 bits, whose value goes into the frame."""
        self._check(INTEGER, base, place, self.words(1), 0, 0, slot)

    def held(self, owner: Any, offset: int) -> None:
        """The array in a slot of `owner` stays alive during the call (a variable's buffer)."""
        self.keep.append(owner)
        self.checks.append((HELD, 0, 0, 0, id(owner), offset, 0, 0))
        self.inputs += 1

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
        self.hold()  # its items may be others before the program begins
        self.bases += 1
        return self.bases - 1

    def _check(self, kind: int, base: int, place: Any, *words: int) -> None:
        """`place` is an index, or the key of a dict's item."""
        index, key = (place, 0) if isinstance(place, int) else (0, id(place))
        if key:
            self.keep.append(place)
        a, b, c, slot = (*words, 0, 0, 0, 0)[:4]
        self.checks.append((kind, base, index, key, a, b, c, slot))

    def _shape(self, spec: TensorSpec, takes_scalars: bool) -> int:
        """The record of an argument's shape."""
        scalar, offset = 0, 0
        if takes_scalars and spec.rank == 0:
            kind: Any = spec.dtype.np_dtype.type
            offset = value_offset(kind) or 0
            scalar = id(kind) if offset else 0
        dims = [int(d) for d in spec.dims]  # type: ignore[arg-type]
        return self._words([_bytes(spec), scalar, offset, spec.rank, *dims])

    # -- results -----------------------------------------------------------------------------

    def finish(
        self, outputs: Sequence[Output], kind: int, keys: Sequence[Any] = (),
        items: Sequence[Item] | None = None, packer: Any = None,
    ) -> None:  # fmt: skip
        """The results, and what they are returned in.

        Args:
            keys: those of a dict.
            items: what is returned, the program's results where left out.
            packer: for PACKED_RESULT, makes what is returned of a tuple of the items.

        Raises:
            TooLarge: there is no room for such a call.
        """
        if items is None:
            items = [Item(RESULT, i) for i in range(len(outputs))]
        sizes = [_bytes(output.spec) for output in outputs]
        large = handler() is not None and any(size >= LARGE for size in sizes)
        room = max(len(self.frame), self.inputs, self.bases, len(outputs), len(items))
        if room > MOST_ROOM or any(size > sys.maxsize for size in sizes):
            raise TooLarge
        records: list[int] = []
        for spec, slot, form, word in outputs:
            dtype = spec.dtype.np_dtype
            self.keep += [spec, dtype]
            dims = self._words([int(d) for d in spec.dims] or [0])  # type: ignore[arg-type]
            flags = _flags(spec) if form in (WRAPPED, PLAIN) else 0
            records += [id(dtype), spec.rank, dims, id(spec), slot, flags, form, word]
        self.keep += [*keys, packer, *(item.value for item in items)]
        self.spares = spares = spares_for(sizes)
        self.fields |= {
            "room": room, "words": len(self.frame), "frame": self._words(self.frame),
            "checks": len(self.checks),
            "check_table": self._words([w for check in self.checks for w in check]),
            "outputs": len(outputs), "output_table": self._words(records),
            "items": len(items),
            "item_table": self._words([w for i in items for w in (i.kind, i.number, id(i.value))]),
            "kind": kind, "keys": self._words([id(k) for k in keys]), "large": int(large),
            "packer": id(packer), "spares": 0 if spares is None else spares.address,
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
    def room(self) -> int:
        """Words that a call needs of each of the trampoline's arrays."""
        return int(self.fields["room"])

    @property
    def is_active(self) -> bool:
        """Whether a call is inside its program right now (it may have released the GIL)."""
        return bool(self.record[PLAN.index("active")])

    @property
    def hits(self) -> int:
        """Calls that it has taken."""
        return int(self.record[PLAN.index("hits")])
