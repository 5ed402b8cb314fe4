"""The value of every expression, computed where all its axes have positions."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.kernel.ir import Apply, Const, Expr, Extent, Iota, Load, Reduce, Scan
from treadle.runtime.cpu.llvm_text import Word, interleave
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.memory import Address, Gathered
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.row_buffers import RowBuffers
from treadle.runtime.cpu.nest.running import RunningScans
from treadle.runtime.cpu.nest.shape import UnsupportedKernel
from treadle.runtime.cpu.nest.walks import evaluated, unknown

_INT64 = dtypes.int64


class Values:
    """Evaluates expressions at a level, whose reductions have been computed before."""

    def __init__(
        self, code: KernelFunction, places: Places, rows: RowBuffers, scans: RunningScans
    ) -> None:
        self.code, self.fn, self.shape = code, code.fn, code.shape
        self.places, self.rows, self.scans = places, rows, scans

    def evaluate(self, expr: Expr, level: Level) -> Register:
        """The register of an expression at a level."""
        known = level.find(expr)
        if known is not None:
            return known
        for e in unknown([expr], level, lambda e: isinstance(e, Reduce) or _in_row(e, level)):
            level.values[e] = self._compute(e, level)
        found = level.find(expr)
        assert found is not None, expr
        return found

    def below(self, roots: Sequence[Expr], level: Level) -> list[Expr]:
        """The expressions below the roots that a level does not know, operands first, those inside
        of reductions too."""
        return unknown(roots, level, lambda e: _in_row(e, level))

    def hoist(self, level: Level, roots: Sequence[Expr]) -> None:
        """Compute every value below the roots whose axes all have positions here."""
        for e in self.below(roots, level):
            if level.has(e) and not isinstance(e, Const):
                self.evaluate(e, level)
        for e in self.below(roots, level):
            if isinstance(e, Load) and not level.has(e):
                self.places.row_base(e.buffer, e.index, level)

    def splat_ahead(self, level: Level, roots: Sequence[Expr]) -> None:
        """Put scalars that vectors meet into all lanes before the loop along the vector axis."""
        vector = self.shape.vector
        for e in evaluated(roots):
            if vector in e.axes and isinstance(e, Apply):
                for arg in e.args:
                    register = level.find(arg)
                    if register is not None and not register.vector:
                        self.code.splat(arg, register, level)

    # ---- one expression
    def _compute(self, e: Expr, level: Level) -> Register:
        match e:
            case Const():
                return Register([self.code.scalar.scalar_constant(e.value, e.dtype)], False)
            case Extent():
                return Register([self._word(self.code.dim(e.dim), e)], False)
            case Iota():
                return self._iota(e, level)
            case Scan():
                return self.scans.step(e, level)
            case Load():
                return self._load(e, level)
            case Apply():
                return self._apply(e, level)
        raise UnsupportedKernel(f"no code for {e}")

    def _word(self, word: Word, e: Expr) -> str:
        if e.dtype is _INT64 or isinstance(word, int):
            return str(word)
        return self.code.scalar.apply("cast", [word], [_INT64], e.dtype)

    def _iota(self, e: Iota, level: Level) -> Register:
        position = level.axes[e.axis]
        if not self.code.is_wide(e, level):
            return Register([self._word(position, e)], False)
        vector, memory, parts = self.code.vector, self.code.memory, []
        for copy in range(level.copies):
            first = memory.splat_word(self.fn.add(position, copy * self.shape.lanes))
            lanes = self.fn.value(f"add {vector.wrap('i64')} {first}, {memory.lane_numbers()}")
            parts.append(vector.apply("cast", [lanes], [_INT64], e.dtype))
        return Register(parts, True)

    def _apply(self, e: Apply, level: Level) -> Register:
        operands = [a.dtype for a in e.args]
        registers = [level.find(a) for a in e.args]
        if not self.code.is_wide(e, level):
            parts = [r.parts[0] for r in registers if r is not None]
            return Register([self.code.scalar.apply(_function(e), parts, operands, e.dtype)], False)
        row = level.find_kept(e)
        if row is not None and row.filled:
            return self.rows.read(e, row.place, level)
        pairs = zip(e.args, registers, strict=True)
        wide = [self.code.wide_parts(a, r, level) for a, r in pairs]

        def one(copy: int) -> str:
            args = [parts[copy] for parts in wide]
            return self.code.vector.apply(_function(e), args, operands, e.dtype)

        register = Register(interleave(self.fn, one, range(level.copies)), True)
        if row is not None:
            self.rows.fill(e, register, row.place, level)
        return register

    # ---- loads
    def _load(self, e: Load, level: Level) -> Register:
        gathered = self.places.gathered(e.buffer, e.index, level)
        base, stride = self.places.place(e.buffer, e.index, level)
        if self.code.is_wide(e, level):
            copies = range(level.copies)
            parts = [self._load_lanes(e, level, k, base, stride, gathered) for k in copies]
            return Register(parts, True)
        valid = None
        if e.valid is not None:
            found = level.find(e.valid)
            assert found is not None
            valid = found.parts[0]
        scalar = self.code.scalar
        value = self.code.memory.load_scalar(self.code.pointers[e.buffer], base, e.dtype, valid)
        if valid is not None and e.fill is not None:
            fill = scalar.constant(e.fill.value, e.dtype)
            value = scalar.select(valid, value, fill, e.dtype)
        return Register([value], False)

    def _load_lanes(
        self, e: Load, level: Level, copy: int, base: Word, stride: Word, gathered: list[Gathered]
    ) -> str:
        vector, memory, pointer = self.code.vector, self.code.memory, self.code.pointers[e.buffer]
        base = self.fn.add(base, self.fn.mul(stride, copy * self.shape.lanes))
        mask, valid = level.mask, None
        if e.valid is not None:
            valid = self.code.wide_parts(e.valid, level.find(e.valid), level)[copy]
            mask = valid if mask is None else vector.lanes32.both(mask, valid)
        if not gathered and stride == 0 and valid is None:
            value = vector.splat(memory.load_scalar(pointer, base, e.dtype, None), e.dtype)
        else:
            address = Address(pointer, base, stride)
            if gathered:
                address.places = self.places.gathered_places(base, stride, gathered, level, copy)
            value = memory.load(address, e.dtype, mask)
            if e in level.ahead and mask is None:
                self.places.fetch_next_row(e, address, level)
        if valid is None or e.fill is None or not e.fill.value:
            return value  # masked lanes are zero already
        fill = vector.constant(e.fill.value, e.dtype)
        return vector.select(valid, value, fill, e.dtype)


def _in_row(expr: Expr, level: Level) -> bool:
    """Whether an earlier loop left the value in a row buffer."""
    row = level.find_kept(expr) if level.copies else None
    return row is not None and row.filled


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
