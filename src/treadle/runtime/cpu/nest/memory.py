"""Loads and stores of a kernel: contiguous, backwards, strided, gathered, masked.

Lanes that lie backwards (``x[::-1]``) are moved as the vector that ends with the first of them, and
turned round in a register: a gather reads them one by one.
"""

from __future__ import annotations

from typing import TypeAlias

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import Dim, row_major
from treadle.kernel.ir import Affine, Axis, Buffer, Expr, Index
from treadle.runtime.cpu.elements import Elements, alignment, stored_type
from treadle.runtime.cpu.llvm_text import Function, Word

_INT64 = dtypes.int64


@record
class Address:
    """Where lanes are: element `base` + lane * `stride`, or the elements of a vector `places`."""

    pointer: str
    base: Word
    stride: Word = 0
    places: str | None = None  # i64 vector of element numbers


class Memory:
    """Moves numbers between buffers and registers.

    Args:
        vector, scalar: the operations on vectors and on scalars of the function being emitted.
    """

    def __init__(self, function: Function, vector: Elements, scalar: Elements) -> None:
        self.fn, self.vector, self.scalar = function, vector, scalar
        self._dummies: dict[str, str] = {}
        self._counts: dict[str, int] = {}  # of lanes, for masks that are constants
        self._limits: dict[str, str] = {}  # all lanes of the number below which a mask's lanes are

    # ---- scalars
    def load_scalar(self, pointer: str, at: Word, dtype: DType, valid: str | None) -> str:
        """One element; where `valid` is false a harmless address is read instead."""
        stored = stored_type(dtype)
        address = self.fn.offset(pointer, at, stored)
        if valid is not None:
            address = self.fn.value(f"select i1 {valid}, ptr {address}, ptr {self._dummy(stored)}")
        raw = self.fn.value(f"load {stored}, ptr {address}, align {alignment(dtype)}")
        return self.scalar.from_memory(raw, dtype)

    def _dummy(self, stored: str) -> str:
        if stored not in self._dummies:
            place = self.fn.alloca(f"{stored}, align 8")
            self.fn.entry.append(f"  store {stored} zeroinitializer, ptr {place}")
            self._dummies[stored] = place
        return self._dummies[stored]

    def store_scalar(self, register: str, pointer: str, at: Word, dtype: DType) -> None:
        stored = stored_type(dtype)
        raw = self.scalar.to_memory(register, dtype)
        place = self.fn.offset(pointer, at, stored)
        self.fn.emit(f"store {stored} {raw}, ptr {place}, align {alignment(dtype)}")

    def prefetch(self, pointer: str, at: Word, dtype: DType, write: bool = False) -> None:
        """Ask for the cache line of an element, which need not exist; `write`: to change it."""
        place = self.fn.offset(pointer, at, stored_type(dtype))
        self.fn.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.fn.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(write)}, i32 3, i32 1)")

    # ---- vectors
    def load(self, address: Address, dtype: DType, mask: str | None) -> str:
        """A vector; lanes outside the mask are not read and hold zero."""
        return self.vector.from_memory(self.load_stored(address, dtype, mask), dtype)

    def load_stored(self, address: Address, dtype: DType, mask: str | None) -> str:
        """A vector as it lies in memory."""
        stored = stored_type(dtype)
        if address.places is None and address.stride == 1:
            return self._load_contiguous(address, stored, dtype, mask)
        if address.places is None and address.stride == -1:
            return self._load_backwards(address, stored, dtype, mask)
        count = self._lanes_apart(address, mask)
        if count is not None:
            return self._load_apart(address, stored, dtype, count)
        return self._gather(self._pointers(address, stored), stored, dtype, mask)

    def store(
        self, register: str, address: Address, dtype: DType, mask: str | None, past: bool = False
    ) -> None:
        """A vector; lanes outside the mask are not written. `past`: the address is a multiple of
        the vector's size, and the vector goes past the caches."""
        self.store_stored(self.vector.to_memory(register, dtype), address, dtype, mask, past)

    def store_stored(
        self, raw: str, address: Address, dtype: DType, mask: str | None, past: bool = False
    ) -> None:
        """A vector that is as it lies in memory."""
        stored, v = stored_type(dtype), self.vector
        kind = v.wrap(stored)
        if address.places is None and address.stride == -1 and not past:
            raw, address, mask = self._forwards(raw, address, stored, mask)
        if address.places is None and address.stride == 1:
            place = self.fn.offset(address.pointer, address.base, stored)
            if mask is None:
                align = f"{dtype.size * v.count}, !nontemporal !0" if past else alignment(dtype)
                self.fn.emit(f"store {kind} {raw}, ptr {place}, align {align}")
                return
            if mask == self.lane_mask(1):
                # LLVM 22 stores too many bytes here where the vector was truncated (trunc to i16).
                first = self.fn.value(f"extractelement {kind} {raw}, i64 0")
                self.fn.emit(f"store {stored} {first}, ptr {place}, align {alignment(dtype)}")
                return
            spans = self._spans(mask, dtype)
            if spans:
                self._store_spans(raw, place, stored, dtype, spans)
                return
            name = f"void @llvm.masked.store.v{v.count}{_suffix(stored)}.p0"
            self._call(
                f"{name}({kind}, ptr, i32, {v.wrap('i1')})",
                f"{kind} {raw}, ptr {place}, i32 {alignment(dtype)}, {v.wrap('i1')} {mask}",
            )
            return
        count = self._lanes_apart(address, mask)
        if count is not None:
            self._store_apart(raw, address, stored, dtype, count)
            return
        pointers = self._pointers(address, stored)
        name = f"void @llvm.masked.scatter.v{v.count}{_suffix(stored)}.v{v.count}p0"
        mask = mask or v.lanes32.true
        self._call(
            f"{name}({kind}, {v.wrap('ptr')}, i32, {v.wrap('i1')})",
            f"{kind} {raw}, {v.wrap('ptr')} {pointers}, i32 {alignment(dtype)}, "
            f"{v.wrap('i1')} {mask}",
        )

    # ---- lanes that lie apart, one by one
    def _lanes_apart(self, address: Address, mask: str | None) -> int | None:
        """How many lanes at a distance from each other are moved one by one: places that are
        computed as scalars are not taken out of vectors. None where vectors move them."""
        if address.places is not None or self.fn.module.target.has_gather:
            return None
        return self.vector.count if mask is None else self._counts.get(mask)

    def _places_apart(self, address: Address, stored: str, count: int) -> list[str]:
        places, at = [], address.base
        for _ in range(count):
            places.append(self.fn.offset(address.pointer, at, stored))
            at = self.fn.add(at, address.stride)
        return places

    def _load_apart(self, address: Address, stored: str, dtype: DType, count: int) -> str:
        fn, kind = self.fn, self.vector.wrap(stored)
        whole = "poison" if count == self.vector.count else "zeroinitializer"
        for lane, place in enumerate(self._places_apart(address, stored, count)):
            one = fn.value(f"load {stored}, ptr {place}, align {alignment(dtype)}")
            whole = fn.value(f"insertelement {kind} {whole}, {stored} {one}, i64 {lane}")
        return whole

    def _store_apart(
        self, raw: str, address: Address, stored: str, dtype: DType, count: int
    ) -> None:
        fn, kind = self.fn, self.vector.wrap(stored)
        for lane, place in enumerate(self._places_apart(address, stored, count)):
            one = fn.value(f"extractelement {kind} {raw}, i64 {lane}")
            fn.emit(f"store {stored} {one}, ptr {place}, align {alignment(dtype)}")

    def _call(self, declaration: str, arguments: str) -> None:
        self.fn.module.declare(declaration)
        self.fn.emit(f"call {declaration.split('(')[0]}({arguments})")

    def _load_contiguous(
        self, address: Address, stored: str, dtype: DType, mask: str | None
    ) -> str:
        v, place = self.vector, self.fn.offset(address.pointer, address.base, stored)
        kind = v.wrap(stored)
        if mask is None:
            return self.fn.value(f"load {kind}, ptr {place}, align {alignment(dtype)}")
        spans = self._spans(mask, dtype)
        if spans:
            return self._load_spans(place, stored, dtype, spans)
        name = f"{kind} @llvm.masked.load.v{v.count}{_suffix(stored)}.p0"
        return self.fn.call(
            f"{name}(ptr, i32, {v.wrap('i1')}, {kind})",
            f"ptr {place}, i32 {alignment(dtype)}, {v.wrap('i1')} {mask}, {kind} zeroinitializer",
        )

    # ---- lanes that lie backwards
    def _load_backwards(
        self, address: Address, stored: str, dtype: DType, mask: str | None
    ) -> str:
        """Lanes at `base`, `base` - 1, ..."""
        count = self._run(mask)
        first = self.fn.sub(address.base, count - 1)
        found = self._load_contiguous(
            Address(address.pointer, first, 1), stored, dtype, self._turned_mask(mask)
        )
        return self._turned(found, stored, count)

    def _forwards(
        self, raw: str, address: Address, stored: str, mask: str | None
    ) -> tuple[str, Address, str | None]:
        """The vector, the place and the mask for a store whose lanes lie backwards."""
        count = self._run(mask)
        first = self.fn.sub(address.base, count - 1)
        turned = self._turned(raw, stored, count)
        return turned, Address(address.pointer, first, 1), self._turned_mask(mask)

    def _run(self, mask: str | None) -> int:
        """How many lanes are turned round: the first ones, where a mask says how many there are."""
        return self.vector.count if mask is None else self._counts.get(mask, self.vector.count)

    def _turned(self, raw: str, stored: str, count: int) -> str:
        """The first `count` lanes in the other order; those behind them stay."""
        v = self.vector
        lanes = [count - 1 - k if k < count else k for k in range(v.count)]
        order = ", ".join(f"i32 {k}" for k in lanes)
        kind = v.wrap(stored)
        return self.fn.value(
            f"shufflevector {kind} {raw}, {kind} poison, <{v.count} x i32> <{order}>"
        )

    def _turned_mask(self, mask: str | None) -> str | None:
        """The mask of lanes that were turned round."""
        if mask is None or mask in self._counts:  # its lanes are the same in either order
            return mask
        if mask in self._limits:
            last = self.vector.count - 1
            numbers = ", ".join(f"i32 {last - k}" for k in range(last + 1))
            kind = self.vector.wrap("i32")
            return self.fn.value(f"icmp slt {kind} <{numbers}>, {self._limits[mask]}")
        return self._turned(mask, "i1", self.vector.count)

    # ---- ends of rows, of known length
    def _spans(self, mask: str, dtype: DType) -> list[int]:
        """The sizes of the whole vectors that make up the lanes of a mask; none where the number
        of lanes is not known.

        A load waits until an earlier store under a mask has reached the cache, even where the two
        touch different elements of neighbouring rows. Whole vectors are passed on at once, so they
        move the rows of small arrays, which loops write and soon read again. Loads and stores are
        divided in the same way, because a load that needs two stores waits, too.
        """
        count = self._counts.get(mask, 0) if dtype.size >= 4 else 0
        return [1 << k for k in reversed(range(count.bit_length())) if count >> k & 1]

    def _store_spans(
        self, raw: str, place: str, stored: str, dtype: DType, spans: list[int]
    ) -> None:
        fn, kind, first = self.fn, self.vector.wrap(stored), 0
        for size in spans:
            lanes = ", ".join(f"i32 {first + k}" for k in range(size))
            part = fn.value(f"shufflevector {kind} {raw}, {kind} poison, <{size} x i32> <{lanes}>")
            at = fn.offset(place, first, stored)
            fn.emit(f"store <{size} x {stored}> {part}, ptr {at}, align {alignment(dtype)}")
            first += size

    def _load_spans(self, place: str, stored: str, dtype: DType, spans: list[int]) -> str:
        fn, count, first = self.fn, self.vector.count, 0
        kind, whole = self.vector.wrap(stored), "zeroinitializer"
        for size in spans:
            small = f"<{size} x {stored}>"
            at = fn.offset(place, first, stored)
            part = fn.value(f"load {small}, ptr {at}, align {alignment(dtype)}")
            spread = ", ".join(f"i32 {k if k < size else size}" for k in range(count))
            wide = fn.value(
                f"shufflevector {small} {part}, {small} zeroinitializer, <{count} x i32> <{spread}>"
            )
            if first:
                chosen = ", ".join(
                    f"i32 {count + k - first if first <= k < first + size else k}"
                    for k in range(count)
                )
                wide = fn.value(
                    f"shufflevector {kind} {whole}, {kind} {wide}, <{count} x i32> <{chosen}>"
                )
            whole, first = wide, first + size
        return whole

    def _gather(self, pointers: str, stored: str, dtype: DType, mask: str | None) -> str:
        v = self.vector
        kind = v.wrap(stored)
        name = f"{kind} @llvm.masked.gather.v{v.count}{_suffix(stored)}.v{v.count}p0"
        return self.fn.call(
            f"{name}({v.wrap('ptr')}, i32, {v.wrap('i1')}, {kind})",
            f"{v.wrap('ptr')} {pointers}, i32 {alignment(dtype)}, "
            f"{v.wrap('i1')} {mask or v.lanes32.true}, {kind} zeroinitializer",
        )

    def _pointers(self, address: Address, stored: str) -> str:
        v = self.vector
        places = address.places
        if places is None:
            steps = self.lane_numbers()
            if address.stride != 1:
                factor = self.splat_word(address.stride)
                steps = self.fn.value(f"mul {v.wrap('i64')} {steps}, {factor}")
            places = self.fn.value(f"add {v.wrap('i64')} {steps}, {self.splat_word(address.base)}")
        return self.fn.value(
            f"getelementptr {stored}, ptr {address.pointer}, {v.wrap('i64')} {places}"
        )

    # ---- index vectors
    def lane_numbers(self) -> str:
        """``<0, 1, 2, ...>`` as i64."""
        return "<" + ", ".join(f"i64 {k}" for k in range(self.vector.count)) + ">"

    def splat_word(self, word: Word) -> str:
        if isinstance(word, int):
            return self.vector.constant(word, _INT64)
        return self.vector.splat(word, _INT64)

    def lane_mask(self, count: Word) -> str:
        """The lanes below `count`."""
        v = self.vector
        if isinstance(count, int):
            lanes = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(v.count))
            self._counts[f"<{lanes}>"] = min(count, v.count)
            return f"<{lanes}>"
        bounded = self.fn.min(count, v.count)
        narrow = self.fn.value(f"trunc i64 {bounded} to i32")
        limit = v.lanes32.splat(narrow, "i32")
        numbers = "<" + ", ".join(f"i32 {k}" for k in range(v.count)) + ">"
        # A signed comparison is one instruction on every processor.
        mask = self.fn.value(f"icmp slt {v.wrap('i32')} {numbers}, {limit}")
        self._limits[mask] = limit
        return mask


def _suffix(stored: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(stored, stored)


Gathered: TypeAlias = tuple[Expr, Dim, Dim]  # a computed index, its stride, the dim's size


def split_index(
    buffer: Buffer, index: tuple[Index, ...]
) -> tuple[dict[Axis, Dim], Dim, list[Gathered]]:
    """A flat index as (coefficient of every axis, offset, [(gathered index, stride, size)])."""
    coefficients: dict[Axis, Dim] = {}
    offset: Dim = 0
    gathered: list[Gathered] = []
    for place, stride, size in zip(index, row_major(buffer.shape), buffer.shape, strict=True):
        if isinstance(place, Affine):
            offset = offset + place.offset * stride
            for axis, coefficient in place.terms:
                coefficients[axis] = coefficients.get(axis, 0) + coefficient * stride
        else:
            gathered.append((place, stride, size))
    return coefficients, offset, gathered
