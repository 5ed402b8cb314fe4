"""The native code of the library: routines by name, and the table that each of them gets.

A program on disk names its routines, too: nothing here knows how they are chosen.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from treadle.core import locks
from treadle.core.switches import is_on
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, TABLE
from treadle.runtime.cpu.matmul.tiles import PACKERS, TABLE_WORDS, TILE_WORDS, Tile, tile_text
from treadle.runtime.cpu.routines.entry import PREFIX, row_text
from treadle.runtime.cpu.target import Target, host
from treadle.runtime.cpu.threads import pool


def routine_address(symbol: str) -> int:
    """The address of a routine; its module, and what it calls, are compiled on first need."""
    if symbol.startswith(PREFIX):
        return int(jit().load(lambda: row_text(symbol, host()), name=symbol).address("routine"))
    name, element, called = _parts(symbol)
    for part in called:
        _load_called(part)
    return int(_code(_family(name), element).address(name))


def prepare_module(symbol: str) -> None:
    """Begin to compile the module that a routine is in."""
    if symbol.startswith(PREFIX):
        jit().prepare(lambda: row_text(symbol, host()), symbol)
        return
    name, element, _ = _parts(symbol)
    family = _family(name)
    jit().prepare(lambda: library_text(family, element, host()), f"{family} {element}")


@functools.cache
def prepare_routine(symbol: str) -> None:
    """Begin to compile what `routine_address` will need."""
    prepare_module(symbol)
    for part in () if symbol.startswith(PREFIX) else _parts(symbol)[2]:
        jit().prepare(_called(part)[2], part)


def _parts(symbol: str) -> tuple[str, str, list[str]]:
    """The routine's name, its element type, and the tiles and packers that it calls."""
    name, _, called = symbol.partition("@")
    return name, name.rpartition("_")[2], [part for part in called.split(",") if part]


def _family(routine: str) -> str:
    """The module that a routine is in: but for products each has one of its own."""
    return "matmul" if routine.startswith("matmul") else routine.rpartition("_")[0]


@functools.cache
def _load_called(symbol: str) -> None:
    """Compile a tile or packer and enter it into the table through which routines call it."""
    element, place, text = _called(symbol)
    _tiles(element)[place] = jit().load(text, name=symbol).address(symbol)


def _called(symbol: str) -> tuple[str, int, Callable[[], str]]:
    """The element type of a tile or packer, its place in the table, and what writes its module."""
    if symbol.startswith("tile_"):
        tile = Tile.named(symbol)
        return tile.element, tile.place, lambda: tile_text(tile, host())
    name, _, element = symbol.rpartition("_")
    return element, TILE_WORDS + PACKERS.index(name), lambda: _packer_text(name, element)


def _packer_text(name: str, element: str) -> str:
    from treadle.runtime.cpu.matmul.packing import packer_text

    return packer_text(name, element, host())


@locks.made_once
def _tiles(element: str) -> Any:
    return (ctypes.c_int64 * TABLE_WORDS)()


@functools.cache
def _code(family: str, element: str) -> Any:
    """The loaded module of a family of routines for one element type."""
    return jit().load(lambda: library_text(family, element, host()), name=f"{family} {element}")


def library_text(family: str, element: str, target: Target) -> str:
    """The LLVM text of a family of routines: matmul, or a convolution."""
    from treadle.runtime.cpu.llvm_text import Module

    module = Module(target)
    if family == "matmul":
        from treadle.runtime.cpu.matmul.routine import add_matmul

        add_matmul(module, element)
    elif family.startswith("depthwise"):
        from treadle.runtime.cpu.depthwise.routines import add_depthwise

        add_depthwise(module, element, family)
    else:
        from treadle.runtime.cpu.convolution.routines import add_convolution

        add_convolution(module, family, element)
    return module.text()


@locks.made_once
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
