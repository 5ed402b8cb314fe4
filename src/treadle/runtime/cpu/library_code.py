"""The native code of the library: routines by name, and the table that each of them gets.

A program on disk names its routines, too: nothing here knows how they are chosen.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from treadle.core import locks
from treadle.core.records import record
from treadle.core.switches import is_on
from treadle.runtime import collectives
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, PREFIX, TABLE
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import PACKERS, TABLE_WORDS, TILE_WORDS, Tile
from treadle.runtime.cpu.target import Target, host
from treadle.runtime.cpu.threads import pool


@record(frozen=True)
class Part:
    """A module of the library.

    Attributes:
        name: names it among all that are written for the machine.
        text: writes it.
        function: the function that is called from outside.
        element, place: of a tile or packer: the type of its elements, and the word of the table of
            that type through which routines call it.
    """

    name: str
    text: Callable[[], str]
    function: str
    element: str = ""
    place: int = 0


def routine_parts(symbol: str, target: Target) -> tuple[Part, list[Part]]:
    """The module that a routine is in, and those of the tiles and packers that it calls."""
    if symbol.startswith(PREFIX):
        return Part(symbol, lambda: _row_text(symbol, target), "routine"), []
    name, element, called = _parts(symbol)
    family = _family(name)
    own = Part(f"{family} {element}", lambda: library_text(family, element, target), name)
    return own, [_called(part, target) for part in called]


def routine_address(symbol: str) -> int:
    """The address of a routine; its module, and what it calls, are compiled on first need."""
    return _load(symbol, host())


def prepare_module(symbol: str) -> None:
    """Begin to compile the module that a routine is in."""
    own, _ = routine_parts(symbol, host())
    jit().prepare(own.text, own.name)


def prepare_routine(symbol: str) -> None:
    """Begin to compile what `routine_address` will need."""
    _prepare_routine(symbol, host())


@functools.cache
def _prepare_routine(symbol: str, target: Target) -> None:
    own, called = routine_parts(symbol, target)
    for part in (own, *called):
        jit().prepare(part.text, part.name)


def _parts(symbol: str) -> tuple[str, str, list[str]]:
    """The routine's name, its element type, and the tiles and packers that it calls."""
    name, _, called = symbol.partition("@")
    return name, name.rpartition("_")[2], [part for part in called.split(",") if part]


def _family(routine: str) -> str:
    """The module that a routine is in: but for products each has one of its own."""
    return "matmul" if routine.startswith("matmul") else routine.rpartition("_")[0]


@functools.cache
def _load(symbol: str, target: Target) -> int:
    """The address of a routine. What the routine calls is compiled, too, and entered into the table
    through which it is called."""
    own, called = routine_parts(symbol, target)
    for part in called:
        code = jit().load(part.text, name=part.name)
        _tiles(part.element, target)[part.place] = code.address(part.function)
    return int(jit().load(own.text, name=own.name).address(own.function))


def _called(symbol: str, target: Target) -> Part:
    """The module of a tile or packer."""
    if symbol.startswith("tile_"):
        tile = Tile.named(symbol)
        return Part(symbol, lambda: tile_text(tile, target), symbol, tile.element, tile.place)
    name, _, element = symbol.rpartition("_")
    place = TILE_WORDS + PACKERS.index(name)
    return Part(symbol, lambda: _packer_text(name, element, target), symbol, element, place)


def _row_text(symbol: str, target: Target) -> str:
    from treadle.runtime.cpu.routines.entry import row_text

    return row_text(symbol, target)


def _packer_text(name: str, element: str, target: Target) -> str:
    from treadle.runtime.cpu.matmul.packing import packer_text

    return packer_text(name, element, target)


@locks.made_once
def _tiles(element: str, target: Target) -> Any:
    return (ctypes.c_int64 * TABLE_WORDS)()


def library_text(family: str, element: str, target: Target) -> str:
    """The LLVM text of a family of routines: matmul, or a convolution."""
    from treadle.runtime.cpu.llvm_text import Module

    module = Module(target)
    if family == "matmul":
        from treadle.runtime.cpu.matmul.routine import add_matmul

        add_matmul(module, element)
    elif family == "all_reduce":
        from treadle.runtime.cpu.collective_text import add_all_reduce

        add_all_reduce(module, f"{family}_{element}")
    elif family.startswith("depthwise"):
        from treadle.runtime.cpu.depthwise.routines import add_depthwise

        add_depthwise(module, element, family)
    else:
        from treadle.runtime.cpu.convolution.routines import add_convolution

        add_convolution(module, family, element)
    return module.text()


@locks.made_once
def _table(workers: int, pooled: bool, target: Target) -> Any:
    table = (ctypes.c_int64 * len(TABLE))()
    addresses = pool().addresses
    known = {
        "parallel": addresses.parallel if pooled else addresses.parallel_alone,
        "limit": workers,
        "collectives": collectives.table_address(),
        **{f"{e}_tiles": ctypes.addressof(_tiles(e, target)) for e in ELEMENT_BYTES},
    }
    for name, address in known.items():
        table[TABLE.index(name)] = address
    return table


def table_address(workers: int) -> int:
    """The table that every routine gets as its first argument, which has workspace for so many
    threads."""
    return ctypes.addressof(_table(workers, is_on("threads"), host()))
