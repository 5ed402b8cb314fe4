"""The value of every expression, computed where all its axes have positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.kernel.ir import (
    Apply,
    Buffer,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Load,
    Reduce,
    Scan,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import Word, interleave
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import Loops
from treadle.runtime.cpu.nest.memory import Address, Gathered, split_index
from treadle.runtime.cpu.nest.shape import UnsupportedKernel, strides

_INT64 = dtypes.int64


class Values(Loops, ABC):
    """Evaluates expressions at a level; reductions are the subclass's."""

    ahead: AbstractSet[Load] = frozenset()  # loads that also ask for the next row

    @abstractmethod
    def _settle_one(self, reduce: Reduce, level: Level) -> None:
        """Compute a reduction at a level and note its value there."""

    @abstractmethod
    def _scan_step(self, scan: Scan, level: Level) -> Register:
        """The value of a scan at the next position along its axis."""

    def evaluate(self, expr: Expr, level: Level) -> Register:
        """The register of an expression at a level."""
        for e in self._needed(expr, level):
            level.values[e] = self._compute(e, level)
        found = level.find(expr)
        assert found is not None, expr
        return found

    def _needed(self, expr: Expr, level: Level) -> list[Expr]:
        """What is still to be computed for `expr`, operands first."""
        done: dict[Expr, None] = {}
        stack = [(expr, False)]
        while stack:
            e, expanded = stack.pop()
            if e in done or level.find(e) is not None:
                continue
            if expanded or isinstance(e, Reduce) or self._in_row(e, level):
                done[e] = None
                continue
            stack.append((e, True))
            stack += [(c, False) for c in reversed(e.children)]
        return list(done)

    def _compute(self, e: Expr, level: Level) -> Register:
        match e:
            case Const():
                return Register([self.scalar.scalar_constant(e.value, e.dtype)], False)
            case Extent():
                return Register([self._word(self.dim(e.dim), e)], False)
            case Iota():
                return self._iota(e, level)
            case Reduce():
                self._settle_one(e, level)
                found = level.find(e)
                assert found is not None
                return found
            case Scan():
                return self._scan_step(e, level)
            case Load():
                return self._load(e, level)
            case Apply():
                return self._apply(e, level)
        raise UnsupportedKernel(f"no code for {e}")

    def _word(self, word: Word, e: Expr) -> str:
        if e.dtype is _INT64 or isinstance(word, int):
            return str(word)
        return self.scalar.apply("cast", [word], [_INT64], e.dtype)

    def _is_wide(self, e: Expr, level: Level) -> bool:
        return level.copies > 0 and self.shape.vector in e.axes

    def _iota(self, e: Iota, level: Level) -> Register:
        position = level.axes[e.axis]
        if not self._is_wide(e, level):
            return Register([self._word(position, e)], False)
        parts = []
        for copy in range(level.copies):
            first = self.memory.splat_word(self.fn.add(position, copy * self.shape.lanes))
            kind = self.vector.wrap("i64")
            lanes = self.fn.value(f"add {kind} {first}, {self.memory.lane_numbers()}")
            parts.append(self.vector.apply("cast", [lanes], [_INT64], e.dtype))
        return Register(parts, True)

    def _apply(self, e: Apply, level: Level) -> Register:
        operands = [a.dtype for a in e.args]
        registers = [level.find(a) for a in e.args]
        if not self._is_wide(e, level):
            parts = [r.parts[0] for r in registers if r is not None]
            return Register([self.scalar.apply(_function(e), parts, operands, e.dtype)], False)
        kept = level.find_kept(e)
        if kept is not None and kept[2]:
            return self._from_row(e, kept[1], level)
        rows = [self._wide_parts(a, r, level) for a, r in zip(e.args, registers, strict=True)]
        parts = [""] * level.copies

        def copy(k: int) -> None:
            parts[k] = self.vector.apply(_function(e), [row[k] for row in rows], operands, e.dtype)

        interleave(self.fn, [lambda k=k: copy(k) for k in range(level.copies)])  # type: ignore[misc]
        register = Register(parts, True)
        if kept is not None:
            self._into_row(e, register, kept[1], level)
        return register

    def _wide_parts(self, e: Expr, register: Register | None, level: Level) -> list[str]:
        assert register is not None
        if register.vector:
            return register.parts
        return [self._splat(e, register, level)] * level.copies

    def _splat(self, e: Expr, register: Register, level: Level) -> str:
        """A scalar in every lane."""
        if isinstance(e, Const):
            return self.vector.constant(e.value, e.dtype)
        known = level.find_splat(e)
        if known is None:
            known = level.splats[e] = self.vector.splat(register.parts[0], e.dtype)
        return known

    def _row_address(self, e: Expr, place: str, level: Level, copy: int) -> tuple[str, str]:
        assert self.shape.vector is not None
        kind = self.vector.type(e.dtype) if not e.dtype.is_bool else self.vector.wrap("i8")
        size = 8 if e.dtype.size == 8 else 4
        at = self.fn.add(level.axes[self.shape.vector], copy * self.shape.lanes)
        return kind, self.fn.offset(place, self.fn.mul(at, size), "i8")

    def _into_row(self, e: Expr, register: Register, place: str, level: Level) -> None:
        for copy, part in enumerate(register.parts):
            kind, address = self._row_address(e, place, level, copy)
            if e.dtype.is_bool:
                part = self.vector.to_memory(part, e.dtype)
            self.fn.emit(f"store {kind} {part}, ptr {address}, align 4")

    def _from_row(self, e: Expr, place: str, level: Level) -> Register:
        parts = []
        for copy in range(level.copies):
            kind, address = self._row_address(e, place, level, copy)
            raw = self.fn.value(f"load {kind}, ptr {address}, align 4")
            parts.append(self.vector.from_memory(raw, e.dtype) if e.dtype.is_bool else raw)
        return Register(parts, True)

    def _place(
        self, buffer: Buffer, index: tuple[Index, ...], level: Level, clamp: bool = True
    ) -> tuple[Word, Word]:
        """The flat element of lane 0 of copy 0, and the stride along the vector axis."""
        vector = self.shape.vector
        base = self._row_base(buffer, index, level, clamp)
        coefficients, _, _ = split_index(buffer, index, strides(buffer))
        stride: Word = 0
        if level.copies and vector in coefficients:
            stride = self.dim(coefficients[vector])
            base = self.fn.add(base, self.fn.mul(level.axes[vector], stride))
        return base, stride

    def _row_base(
        self, buffer: Buffer, index: tuple[Index, ...], level: Level, clamp: bool = True
    ) -> Word:
        """The part of a flat index that does not depend on the vector axis inside its loop.

        clamp: keep computed indices inside the buffer.
        """
        coefficients, offset, gathered = split_index(buffer, index, strides(buffer))
        inner = {self.shape.vector} if level.copies else set()
        here = tuple((a, c) for a, c in coefficients.items() if a in level.axes and a not in inner)
        uniform = [g for g in gathered if self._is_uniform(g, level)]
        key = (offset, tuple(sorted(((a.name, repr(c)) for a, c in here))), tuple(uniform), clamp)
        known = level.find_word(key)
        if known is not None:
            return known
        total: Word = self.dim(offset)
        for axis, coefficient in here:
            total = self.fn.add(total, self.fn.mul(level.axes[axis], self.dim(coefficient)))
        for place, step, size in uniform:
            total = self.fn.add(total, self._scaled(place, step, size if clamp else None, level))
        level.words[key] = total
        return total

    def _is_uniform(self, gathered: Gathered, level: Level) -> bool:
        """Whether a computed index is a known number that all lanes share."""
        register = level.find(gathered[0])
        return register is not None and not register.vector

    def _load(self, e: Load, level: Level) -> Register:
        _, _, gathered = split_index(e.buffer, e.index, strides(e.buffer))
        gathered = [g for g in gathered if not self._is_uniform(g, level)]
        base, stride = self._place(e.buffer, e.index, level)
        if not self._is_wide(e, level):
            valid = None
            if e.valid is not None:
                found = level.find(e.valid)
                assert found is not None
                valid = found.parts[0]
            value = self.memory.load_scalar(self.pointers[e.buffer], base, e.dtype, valid)
            if valid is not None and e.fill is not None:
                fill = self.scalar.constant(e.fill.value, e.dtype)
                value = self.scalar.select(valid, value, fill, e.dtype)
            return Register([value], False)
        return Register(
            [self._load_lanes(e, level, k, base, stride, gathered) for k in range(level.copies)],
            True,
        )

    def _load_lanes(
        self, e: Load, level: Level, copy: int, base: Word, stride: Word, gathered: list[Gathered]
    ) -> str:
        fn, pointer = self.fn, self.pointers[e.buffer]
        base = fn.add(base, fn.mul(stride, copy * self.shape.lanes))
        mask, valid = level.mask, None
        if e.valid is not None:
            found = level.find(e.valid)
            assert found is not None
            valid = self._wide_parts(e.valid, found, level)[copy]
            mask = valid if mask is None else self.vector.lanes32.both(mask, valid)
        if not gathered and stride == 0 and valid is None:
            one = self.memory.load_scalar(pointer, base, e.dtype, None)
            value = self.vector.splat(one, e.dtype)
        else:
            address = Address(pointer, base, stride)
            if gathered:
                address.places = self._gather_places(base, stride, gathered, level, copy)
            value = self.memory.load(address, e.dtype, mask)
            if e in self.ahead and mask is None:
                self._fetch_next_row(e, address, level)
        if valid is None or e.fill is None or not e.fill.value:
            return value  # masked lanes are zero already
        fill = self.vector.constant(e.fill.value, e.dtype)
        return self.vector.select(valid, value, fill, e.dtype)

    def _fetch_next_row(self, e: Load, address: Address, level: Level) -> None:
        """Ask for the same place of the next row; what is beyond the last one is not touched."""
        outer = [a for a in level.axes if a is not self.shape.vector]
        coefficients, _, gathered = split_index(e.buffer, e.index, strides(e.buffer))
        if address.stride != 1 or gathered or not outer or not coefficients.get(outer[-1]):
            return
        step = self.dim(coefficients[outer[-1]] * self.side_by_side)
        self.memory.prefetch(address.pointer, self.fn.add(address.base, step), e.dtype)

    def _scaled(self, index: Expr, stride: Dim, size: Dim | None, level: Level) -> Word:
        """The contribution of a computed index that all lanes share to a flat one; it is kept
        inside the buffer where the size is given."""
        register = level.find(index)
        assert register is not None
        place = self.scalar.apply("cast", [register.parts[0]], [index.dtype], _INT64)
        bounded: Word = place
        if size is not None:
            bounded = self.fn.max(self.fn.min(place, self.fn.sub(self.dim(size), 1)), 0)
        return self.fn.mul(bounded, self.dim(stride))

    def _gather_places(
        self, base: Word, stride: Word, gathered: list[Gathered], level: Level, copy: int
    ) -> str:
        fn, v, kind = self.fn, self.vector, self.vector.wrap("i64")
        total = self.memory.splat_word(base)
        if stride != 0:
            steps = fn.value(
                f"mul {kind} {self.memory.lane_numbers()}, {self.memory.splat_word(stride)}"
            )
            total = fn.value(f"add {kind} {total}, {steps}")
        for index, step, size in gathered:
            register = level.find(index)
            assert register is not None
            place = self._wide_parts(index, register, level)[copy]
            place = v.apply("cast", [place], [index.dtype], _INT64)
            last = self.memory.splat_word(fn.sub(self.dim(size), 1))
            place = v.apply("min", [place, last], [_INT64] * 2, _INT64)
            place = v.apply("max", [place, v.constant(0, _INT64)], [_INT64] * 2, _INT64)
            scaled = fn.value(f"mul {kind} {place}, {self.memory.splat_word(self.dim(step))}")
            total = fn.value(f"add {kind} {total}, {scaled}")
        return total

    def _in_row(self, expr: Expr, level: Level) -> bool:
        """Whether an earlier pass left the value in a row buffer."""
        kept = level.find_kept(expr)
        return kept is not None and kept[2] and level.copies > 0


def _function(e: Apply) -> str:
    """The function, or a cheaper form of it where the operand is known to be in range."""
    if e.fn != "exp":
        return e.fn
    (x,) = e.args
    if isinstance(x, Apply) and x.fn == "sub" and isinstance(x.args[1], Reduce):
        highest = x.args[1]
        if highest.op == "max" and highest.value is x.args[0]:
            return "exp_nonpositive"
    return e.fn
