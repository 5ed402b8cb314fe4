"""The variables of loops: their values on entry, in an iteration, and for the next one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from treadle.core.shapes import product, symbol_name
from treadle.core.spec import ListSpec
from treadle.graph.ir import Value
from treadle.runtime.cpu.elements import compute_type
from treadle.runtime.cpu.llvm_text import Block
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_steps import copy_array
from treadle.runtime.schedule.steps import Carried, Loop, Operand, Place


def value_type(emitter: Emitter, value: Value) -> str:
    """The LLVM type of the register of a rank-0 value or a list."""
    if isinstance(value.spec, ListSpec):
        return "ptr" if emitter.program.native_lists else "i64"
    return compute_type(value.spec.dtype)


class Variables:
    """The variables of a loop, in the function that an emitter writes.

    A loop carries some words for each of them: the register of a rank-0 value; the addresses of
    the two arrays that take turns, and the sizes of an array that grows. An array that is updated
    in place, in memory of a known size, needs none. All words stand in one list.
    """

    def __init__(self, emitter: Emitter, step: Loop) -> None:
        self.emitter, self.carried = emitter, step.carried
        counts = [len(_parameters(emitter, c, "", 0)) for c in step.carried]
        ends = list(itertools.accumulate(counts, initial=0))
        self.count = ends[-1]
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]

    def of(self, number: int, words: Sequence[str]) -> list[str]:
        """The words of one variable."""
        return list(words[self._slices[number]])

    def position(self, param: Value) -> int | None:
        """Where the words of a variable are, if the loop carries it."""
        numbers = [n for n, c in enumerate(self.carried) if c.param is param]
        return self._slices[numbers[0]].start if numbers else None

    def starts(self) -> list[str]:
        """Emit the values on entry."""
        return [word for carried in self.carried for word in _start(self.emitter, carried)]

    def block(self, name: str, prefix: str, *counters: tuple[str, str]) -> Block:
        """A block whose parameters are the variables' words, after those of counters.

        prefix: a part of the parameters' names, which tells them from those of other blocks.
        """
        words = [
            parameter
            for number, carried in enumerate(self.carried)
            for parameter in _parameters(self.emitter, carried, prefix, number)
        ]
        return Block(name, [*counters, *words])

    def bind(self, block: Block) -> list[str]:
        """Let the variables stand for the parameters of the block that is being written, and give
        these."""
        words = [name for _, name in block.parameters[len(block.parameters) - self.count :]]
        for number, carried in enumerate(self.carried):
            _bind(self.emitter, carried, self.of(number, words))
        return words

    def ends(self, results: Sequence[Operand], words: Sequence[str]) -> list[str]:
        """The values for the next iteration, given the results of the body and the values of this
        iteration."""
        pairs = enumerate(zip(self.carried, results, strict=True))
        return [
            end
            for number, (carried, result) in pairs
            for end in _end(self.emitter, carried, result, self.of(number, words))
        ]


def _parameters(
    emitter: Emitter, carried: Carried, prefix: str, number: int
) -> list[tuple[str, str]]:
    """The type of each word of a variable, and its name."""
    place = carried.place
    if place is None:
        return [(value_type(emitter, carried.param), f"%{prefix}.{number}")]
    sizes = [("i64", f"%size{prefix}.{number}.{axis}") for axis in range(len(place.dims))]
    if place.kind == "buffer":
        return sizes
    if carried.other is None:
        return []
    if place.kind == "grown":
        return [("ptr", f"%now{prefix}.{number}"), ("ptr", f"%new{prefix}.{number}"), *sizes]
    return [("ptr", f"%{prefix}.now{number}"), ("ptr", f"%{prefix}.new{number}")]


def _start(emitter: Emitter, carried: Carried) -> list[str]:
    """Emit the words of a variable on entry."""
    if carried.place is None:
        register = emitter.registers[carried.start.value]
        if carried.copied:
            from treadle.runtime.cpu.ragged_memory import copy_of

            register = copy_of(emitter, carried.start)
        return [register]
    if carried.place.kind == "buffer":
        now, *sizes = _start_buffer(emitter, carried)
        emitter.places.in_place[carried.place.number] = now
        return sizes
    if carried.other is None:
        if carried.start.place is carried.place:  # the loop takes over the memory
            emitter.pointer(carried.place)
            return []
        copy_array(emitter, carried.start, emitter.pointer(carried.place), carried.place)
        return []
    if carried.place.kind == "grown":
        now, *sizes = _start_buffer(emitter, carried)
        return [now, emitter.places.new_buffer(), *sizes]
    a, b = (emitter.pointer(p) for p in carried.place.parts)
    copy_array(emitter, carried.start, a, carried.place)
    return [a, b]


def _start_buffer(emitter: Emitter, carried: Carried) -> list[str]:
    """A growing buffer with the elements of the value on entry, and the sizes of that."""
    start = carried.start
    assert start.place is not None
    dims = start.value.spec.dims
    size = emitter.dim(product(dims) * start.value.spec.dtype.size)
    buffer = emitter.places.new_buffer()
    move(emitter, emitter.places.reserved(buffer, size), emitter.pointer(start.place), size)
    return [buffer, *(str(emitter.dim(d)) for d in dims)]


def _bind(emitter: Emitter, carried: Carried, words: list[str]) -> None:
    """Let a variable stand for its words."""
    if carried.place is None:
        emitter.registers[carried.param] = words[0]
    elif carried.place.kind == "buffer":
        buffer = emitter.places.in_place[carried.place.number]
        emitter.places.pointers[carried.place] = emitter.fn.load_word(buffer, 0, "ptr")
        _bind_sizes(emitter, carried.place, words)
    elif carried.other is not None and carried.place.kind == "grown":
        now, new, *sizes = words
        emitter.places.pointers[carried.place] = emitter.fn.load_word(now, 0, "ptr")
        emitter.places.pointers.pop(carried.other, None)
        emitter.places.buffers[carried.other] = new
        _bind_sizes(emitter, carried.place, sizes)
    elif carried.other is not None:
        emitter.places.pointers[carried.place], emitter.places.pointers[carried.other] = words


def _bind_sizes(emitter: Emitter, place: Place, sizes: Sequence[str]) -> None:
    """The sizes of an array give its symbols their values."""
    for dim, size in zip(place.dims, sizes, strict=True):
        symbol = symbol_name(dim)
        if symbol is not None and symbol not in emitter.sizes.symbols:
            emitter.sizes.symbols[symbol] = size


def _end(emitter: Emitter, carried: Carried, result: Operand, words: list[str]) -> list[str]:
    """The words of a variable for the next iteration; the arrays of a pair change roles."""
    if carried.place is None:
        return [emitter.registers[result.value]]
    if carried.place.kind == "buffer":
        return [str(emitter.dim(d)) for d in result.value.spec.dims]
    if carried.other is None:
        return []
    sizes = carried.other.dims if carried.other.kind == "grown'" else ()
    return [words[1], words[0], *(str(emitter.dim(d)) for d in sizes)]
