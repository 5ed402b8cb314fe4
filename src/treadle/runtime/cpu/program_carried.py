"""The variables of loops: their values on entry, as phis, and after an iteration."""

from __future__ import annotations

from typing import TypeAlias

from treadle.core.shapes import product
from treadle.core.spec import ListSpec
from treadle.graph.ir import Value
from treadle.runtime.cpu.elements import compute_type
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_steps import copy_array
from treadle.runtime.schedule.steps import Carried, Loop, Operand, Place
from treadle.runtime.symbols import plain_symbol


def value_type(emitter: Emitter, value: Value) -> str:
    """The LLVM type of a register: lists are handles."""
    if isinstance(value.spec, ListSpec):
        return "ptr" if emitter.native_lists else "i64"
    return compute_type(value.spec.dtype)


def start_of(emitter: Emitter, carried: Carried) -> list[str]:
    """The values on entry: a register; nothing for an array updated in place; two buffers."""
    if carried.place is None:
        register = emitter.registers[carried.start.value]
        if carried.copied:
            from treadle.runtime.cpu.ragged_memory import copy_of

            register = copy_of(emitter, carried.start)
        return [register]
    if carried.place.kind == "buffer":
        now, *sizes = _start_buffer(emitter, carried)
        emitter.in_place[carried.place.number] = now
        return sizes
    if carried.other is None:
        if carried.start.place is carried.place:  # the loop takes it over
            emitter.pointer(carried.place)
            return []
        copy_array(emitter, carried.start, emitter.pointer(carried.place), carried.place)
        return []
    if carried.place.kind == "grown":
        return _start_growing(emitter, carried)
    a, b = (emitter.pointer(p) for p in carried.place.parts)
    copy_array(emitter, carried.start, a, carried.place)
    return [a, b]


def _start_growing(emitter: Emitter, carried: Carried) -> list[str]:
    """Two growing buffers, the first with the start's elements, and its sizes."""
    now, *sizes = _start_buffer(emitter, carried)
    return [now, emitter.new_buffer(), *sizes]


def _start_buffer(emitter: Emitter, carried: Carried) -> list[str]:
    """A growing buffer with the start's elements, and its sizes."""
    start = carried.start
    assert start.place is not None
    dims = start.value.spec.dims
    size = emitter.dim(product(dims) * start.value.spec.dtype.size)
    buffer = emitter.new_buffer()
    move(emitter, emitter.reserve(buffer, size), emitter.pointer(start.place), size)
    return [buffer, *(str(emitter.dim(d)) for d in dims)]


# The phis of a loop: for each of its variables pairs of (type, name).
Names: TypeAlias = "list[list[tuple[str, str]]]"


def bind(emitter: Emitter, step: Loop, prefix: str) -> Names:
    """Names for the phis, which the loop variables stand for from here on."""
    names: Names = []
    for i, carried in enumerate(step.carried):
        if carried.place is None:
            name = f"%{prefix}.{i}"
            emitter.registers[carried.param] = name
            names.append([(value_type(emitter, carried.param), name)])
        elif carried.place.kind == "buffer":
            buffer = emitter.in_place[carried.place.number]
            emitter.pointers[carried.place] = emitter.fn.load_word(buffer, 0, "ptr")
            names.append(_declare_sizes(emitter, carried.place, f"{prefix}.{i}"))
        elif carried.other is None:
            names.append([])
        elif carried.place.kind == "grown":
            names.append(_declare_growing(emitter, carried, f"{prefix}.{i}"))
        else:
            pair = [("ptr", f"%{prefix}.now{i}"), ("ptr", f"%{prefix}.new{i}")]
            emitter.pointers[carried.place] = pair[0][1]
            emitter.pointers[carried.other] = pair[1][1]
            names.append(pair)
    return names


def _declare_growing(emitter: Emitter, carried: Carried, suffix: str) -> list[tuple[str, str]]:
    """Names for the phis of a growing array: two buffers and the sizes."""
    assert carried.place is not None and carried.other is not None
    names = [("ptr", f"%now{suffix}"), ("ptr", f"%new{suffix}")]
    emitter.pointers[carried.place] = emitter.fn.load_word(names[0][1], 0, "ptr")
    emitter.pointers.pop(carried.other, None)
    emitter.buffers[carried.other] = names[1][1]
    return names + _declare_sizes(emitter, carried.place, suffix)


def _declare_sizes(emitter: Emitter, place: Place, suffix: str) -> list[tuple[str, str]]:
    """Names for the phis of an array's sizes, which give its symbols their values."""
    names = [("i64", f"%size{suffix}.{axis}") for axis in range(len(place.dims))]
    for dim, (_, name) in zip(place.dims, names, strict=True):
        symbol = plain_symbol(dim)
        if symbol is not None and symbol not in emitter.symbols:
            emitter.symbols[symbol] = name
    return names


def end_of(
    emitter: Emitter, carried: Carried, result: Operand, names: list[tuple[str, str]]
) -> list[str]:
    """The values for the next iteration; the halves of a pair change roles."""
    if carried.place is None:
        return [emitter.registers[result.value]]
    if carried.place.kind == "buffer":
        return [str(emitter.dim(d)) for d in result.value.spec.dims]
    if carried.other is not None and carried.other.kind == "grown'":
        sizes = [str(emitter.dim(d)) for d in carried.other.dims]
        return [names[1][1], names[0][1], *sizes]
    return [names[1][1], names[0][1]] if names else []
