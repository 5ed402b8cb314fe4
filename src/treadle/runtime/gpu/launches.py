"""Launches of kernels as a program prepares them: compiled functions, and their parameters.

A parameter takes two words of an array that belongs to the launch: an address, a number that the
host has, or a size. A run writes those that change from call to call, and hands the device an array
of pointers to them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, substitute
from treadle.graph.ir import Value
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.gpu import small_kernels
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.finish import Finish
from treadle.runtime.gpu.kernels import KernelCode, kernel_code
from treadle.runtime.schedule.steps import Launch, Operand, Place, SegmentedLaunch

WORD = 8


class Code:
    """A kernel of a program: its text, and the functions of its stages once they are loaded."""

    def __init__(self, code: KernelCode) -> None:
        self.code = code
        self.functions: list[Any] = []


class PreparedFinish(NamedTuple):
    """What a library does with the results of a routine, and the operands in memory.

    Attributes:
        out: what the end is stored in.
        bias: the vector that is added; kept: what the activation's operand is stored in.
    """

    finish: Finish
    out: Operand
    bias: Operand | None
    kept: Operand | None


class Codes:
    """The kernels of a program, each once."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.made: dict[tuple[Kernel, frozenset[Buffer], int], Code] = {}
        self.others: list[Code] = []

    def of(self, kernel: Kernel, values: frozenset[Buffer], segments: int = 1) -> Code:
        """The code of a kernel.

        Args:
            values: the buffers that are passed as numbers.
            segments: how many segments a launch has.

        Raises:
            Unsupported: it has no form for a GPU.
        """
        key = kernel, values, segments
        if key not in self.made:
            name, gpu = self.next_name(), self.driver.gpu
            self.made[key] = Code(kernel_code(kernel, name, gpu, values, segments))
        return self.made[key]

    def add(self, code: KernelCode) -> Code:
        """Code that is of no kernel of the schedule."""
        self.others.append(Code(code))
        return self.others[-1]

    def next_name(self) -> str:
        """The name of the next kernel."""
        return f"k{len(self.made) + len(self.others)}"

    @property
    def all(self) -> list[Code]:
        return [*self.made.values(), *self.others]

    def load(self) -> None:
        """Compile all of them."""
        codes = self.all
        functions = self.driver.load([c.code for c in codes]) if codes else []
        for code, found in zip(codes, functions, strict=True):
            code.functions = found


def by_value(kernel: Kernel, operands: Sequence[Operand]) -> frozenset[Buffer]:
    """The buffers of a kernel that stand for numbers in registers of the host."""
    pairs = zip(kernel.buffers, operands, strict=True)
    return frozenset(b for b, operand in pairs if operand.place is None)


class Parameters:
    """Words that a run fills, some for each operand and symbol of a kernel.

    Attributes:
        places: (word, place) of the operands in memory.
        numbers: (word, value) of the operands in registers.
        symbols: (word, symbol), or (word, dim) where a launch gives it.
        end: the word behind the last one.
    """

    def __init__(
        self, operands: Sequence[Operand], symbols: Sequence[str] = (), extent: Dim | None = None,
        packed: bool = False,
    ) -> None:  # fmt: skip
        """
        Args:
            extent: the value of the symbol of a flat kernel.
            packed: each takes as many words as it has, as in the struct of a segment.
        """
        self.places: list[tuple[int, Place]] = []
        self.numbers: list[tuple[int, Value]] = []
        self.symbols: list[tuple[int, Dim | str]] = []
        self.starts: list[int] = []
        word = 0
        for operand in operands:
            self.starts.append(word)
            if operand.place is not None:
                self.places.append((word, operand.place))
            else:
                self.numbers.append((word, operand.value))
            wide = operand.place is None and operand.value.spec.dtype.size > WORD
            word += 2 if wide or not packed else 1
        for name in symbols:
            self.starts.append(word)
            given = extent if name == "n" and extent is not None else name
            self.symbols.append((word, given))
            word += 1 if packed else 2
        self.end = word


class PreparedLaunch:
    """A launch of one kernel.

    Attributes:
        names: the symbols among its parameters.
        words: its parameters; `address` is where pointers to them are.
        scratch_word: the parameter with the address of its scratch memory; None without one.
    """

    def __init__(
        self, code: Code, operands: Sequence[Operand], extent: Dim | None = None
    ) -> None:
        self.code, self.names = code, code.code.arguments.symbols
        self.parameters = Parameters(operands, self.names, extent)
        has_scratch = self.code.code.scratch != 0
        self.scratch_word = self.parameters.end if has_scratch else None
        self.words = (ctypes.c_int64 * (self.parameters.end + 1))()
        starts = [*self.parameters.starts, *([self.parameters.end] if has_scratch else [])]
        self.address, self.pointers = pointers_to(self.words, starts)


def prepared(step: Launch, codes: Codes) -> PreparedLaunch:
    """The launch of a kernel of the schedule."""
    code = codes.of(step.kernel, by_value(step.kernel, step.operands))
    return PreparedLaunch(code, step.operands, step.extent)


class PreparedSegments:
    """A launch of a segmented kernel: as many launches as its segments need whose structs fit the
    parameters of one."""

    def __init__(self, step: SegmentedLaunch, codes: Codes) -> None:
        self.step = step
        values = by_value(step.kernel, step.segments[0].operands)
        self.code = codes.of(step.kernel, values, len(step.segments))
        self.most = self.code.code.segments
        self.parameters: list[Parameters] = []
        end = 0
        for segment in step.segments:
            symbols, extent = segment.kernel.symbols, segment.extent
            self.parameters.append(Parameters(segment.operands, symbols, extent, packed=True))
            end = self.parameters[-1].end
        self.stride = end + 1  # the block that a segment begins with is last
        self.words = (ctypes.c_int64 * (self.stride * self.most + 1))()
        starts = [0, self.stride * self.most]
        self.address, self.pointers = pointers_to(self.words, starts)


class SmallLaunch:
    """A launch of one of `small_kernels`, with parameters that the caller gives."""

    def __init__(self, name: str, dtype: DType, codes: Codes) -> None:
        kernel: Kernel = getattr(small_kernels, name)(dtype)
        values = frozenset(b for b in kernel.buffers if b.name == "number")
        self.code = codes.of(kernel, values)
        count = len(kernel.buffers) + len(kernel.symbols)
        self.words = (ctypes.c_int64 * (2 * count))()
        self.address, self.pointers = pointers_to(self.words, range(0, 2 * count, 2))

    def __call__(self, driver: Driver, parameters: Sequence[list[int]], count: int = 1) -> int:
        """Launch it on parameters of one or two words; gives how many launches it was."""
        for n, given in enumerate([*parameters, [count]][: len(self.words) // 2]):
            for i, word in enumerate(given):
                self.words[2 * n + i] = word
        submitted = 0
        code = self.code.code
        for stage, function in zip(code.stages, self.code.functions, strict=True):
            blocks = int(substitute(stage.blocks, {"n": count}))  # type: ignore[arg-type]
            if blocks:
                submitted += 1
                driver.launch(function, blocks, stage.threads, stage.shared, self.address)
        return submitted


def pointers_to(words: Any, starts: Sequence[int]) -> tuple[int, Any]:
    """An array of pointers to some of the words: its address, and what keeps it alive."""
    first = ctypes.addressof(words)
    pointers = (ctypes.c_void_p * max(len(starts), 1))(*(first + WORD * n for n in starts))
    return ctypes.addressof(pointers), pointers


def word_of(number: Any) -> list[int]:
    """A number's bits as words."""
    data = number.tobytes()
    padded = data.ljust(-len(data) % WORD + len(data), b"\0")
    return [
        int.from_bytes(padded[n : n + WORD], "little", signed=True)
        for n in range(0, len(padded), WORD)
    ]
