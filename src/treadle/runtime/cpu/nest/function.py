"""A function of a kernel while its text is written: its arguments, and registers of any width."""

from __future__ import annotations

from treadle.core.shapes import Dim
from treadle.kernel.ir import Buffer, Const, Expr, Kernel, postorder
from treadle.runtime.cpu.elements import Elements, is_long
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.memory import Memory
from treadle.runtime.cpu.nest.shape import Shape


class KernelFunction:
    """The function under construction, which all objects that write a part of it share.

    Attributes:
        fn: the function's text.
        vector, scalar: operations on the elements of a vector, and on single ones.
        memory: loads and stores.
        pointers: the addresses of the kernel's buffers.
        dims: the values of its symbols.
    """

    def __init__(self, kernel: Kernel, shape: Shape, module: Module) -> None:
        self.kernel, self.shape = kernel, shape
        self.tuning = module.target.tuning
        self.fn = Function(module)
        outlined = is_long(postorder([s.value for s in kernel.stores]))
        self.vector = Elements(self.fn, shape.lanes, outlined)
        self.scalar = Elements(self.fn, 0, outlined)
        self.memory = Memory(self.fn, self.vector, self.scalar)
        self.pointers: dict[Buffer, str] = {}
        self.dims: dict[str, str] = {}

    # ---- arguments
    def read_arguments(self) -> None:
        """Load the addresses of the buffers and the values of the symbols."""
        for i, buffer in enumerate(self.kernel.buffers):
            self.pointers[buffer] = self.fn.load_word("%buffers", i, "ptr")
        for i, name in enumerate(self.kernel.symbols):
            self.dims[name] = self.fn.load_word("%dims", i)

    def dim(self, dim: Dim) -> Word:
        """The value of a dim."""
        return self.fn.dim(dim, self.dims.__getitem__)

    # ---- words
    def multiple(self, n: Word, step: int) -> Word:
        """`n` rounded down to a multiple of `step`, a power of 2."""
        return n // step * step if isinstance(n, int) else self.fn.value(f"and i64 {n}, {-step}")

    def end_of_whole(self, start: Word, stop: Word, step: int) -> Word:
        """start + the largest multiple of `step` (a power of 2) within the range."""
        if isinstance(start, int) and isinstance(stop, int):
            return start + max(0, stop - start) // step * step
        length = self.fn.max(self.fn.sub(stop, start), 0)
        whole = self.fn.value(f"and i64 {length}, {-step}")
        return self.fn.add(start, whole)

    @property
    def accumulators(self) -> int:
        """Vectors that may be summed up in registers at once; others hold operands."""
        return self.tuning.registers // 2

    # ---- registers
    def is_wide(self, e: Expr, level: Level) -> bool:
        """Whether an expression is a vector at a level."""
        return level.copies > 0 and self.shape.vector in e.axes

    def wide_parts(self, e: Expr, register: Register | None, level: Level) -> list[str]:
        """A vector for each copy of the vector loop's body, of a scalar too."""
        assert register is not None
        if register.vector:
            return register.parts
        return [self.splat(e, register, level)] * level.copies

    def splat(self, e: Expr, register: Register, level: Level) -> str:
        """A scalar in every lane."""
        if isinstance(e, Const):
            return self.vector.constant(e.value, e.dtype)
        known = level.find_splat(e)
        if known is None:
            known = level.splats[e] = self.vector.splat(register.parts[0], e.dtype)
        return known
