"""The native code of the library: routines by name, and the table that each of them gets.

A program on disk names its routines, too: nothing here knows how they are chosen.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from treadle.core.switches import is_on
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, TABLE
from treadle.runtime.cpu.matmul.tiles import TABLE_WORDS, Tile, tile_text
from treadle.runtime.cpu.target import Target, host
from treadle.runtime.cpu.threads import pool


def routine_address(symbol: str) -> int:
    """The address of a routine; the library, and the tiles it names, are compiled on first need."""
    name, element, tiles = _parts(symbol)
    for tile in tiles:
        _load_tile(Tile.named(tile))
    return int(_code(_family(name), element).address(name))


def prepare_module(symbol: str) -> None:
    """Begin to compile the module that a routine is in."""
    name, element, _ = _parts(symbol)
    family = _family(name)
    jit().prepare(lambda: library_text(family, element, host()), f"{family} {element}")


@functools.cache
def prepare_routine(symbol: str) -> None:
    """Begin to compile what `routine_address` will need."""
    prepare_module(symbol)
    for tile in _parts(symbol)[2]:
        jit().prepare(functools.partial(tile_text, Tile.named(tile), host()), tile)


def _parts(symbol: str) -> tuple[str, str, list[str]]:
    """The routine's name, its element type, and the tiles that it calls."""
    name, _, tiles = symbol.partition("@")
    return name, name.rpartition("_")[2], [t for t in tiles.split(",") if t]


def _family(routine: str) -> str:
    """The module that a routine is in."""
    first = routine.partition("_")[0]
    if first.startswith("depthwise"):
        return routine.rpartition("_")[0]  # each is a module of its own
    return "convolution" if first == "conv2d" else "matmul"


@functools.cache
def _load_tile(tile: Tile) -> None:
    """Compile a tile and enter it into the table through which the routine calls it."""
    code = jit().load(lambda: tile_text(tile, host()), name=tile.symbol)
    _tiles(tile.element)[tile.place] = code.address(tile.symbol)


@functools.cache
def _tiles(element: str) -> Any:
    return (ctypes.c_int64 * TABLE_WORDS)()


@functools.cache
def _code(family: str, element: str) -> Any:
    """The loaded module of a family of routines for one element type."""
    return jit().load(lambda: library_text(family, element, host()), name=f"{family} {element}")


def library_text(family: str, element: str, target: Target) -> str:
    """The LLVM text of a family of routines: matmul, convolution, or a depthwise convolution."""
    from treadle.runtime.cpu.convolution.routines import add_convolutions
    from treadle.runtime.cpu.depthwise.routines import add_depthwise
    from treadle.runtime.cpu.llvm_text import Module
    from treadle.runtime.cpu.matmul.routine import add_matmul

    module = Module(target)
    if family.startswith("depthwise"):
        add_depthwise(module, element, family)
    else:
        {"matmul": add_matmul, "convolution": add_convolutions}[family](module, element)
    return module.text()


@functools.cache
def _table(workers: int, pooled: bool = True) -> Any:
    table = (ctypes.c_int64 * len(TABLE))()
    addresses = pool().addresses
    known = {
        "parallel": addresses.parallel if pooled else addresses.parallel_alone,
        "limit": workers,
        **{f"{e}_tiles": ctypes.addressof(_tiles(e)) for e in ELEMENT_BYTES},
    }
    for name, address in known.items():
        table[TABLE.index(name)] = address
    return table


def table_address(workers: int) -> int:
    """The table that every routine gets as its first argument, which has workspace for so many
    threads."""
    return ctypes.addressof(_table(workers, is_on("threads")))
