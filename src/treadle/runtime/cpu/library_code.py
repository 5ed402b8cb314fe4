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
from treadle.runtime import collectives
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, PREFIX, SLOTS, TABLE
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import PACKERS, TABLE_WORDS, TILE_WORDS, Tile
from treadle.runtime.cpu.target import Target, host
from treadle.runtime.cpu.threads import pool


def routine_address(symbol: str) -> int:
    """The address of a routine; its module, and what it calls, are compiled on first need."""
    target = host()
    if symbol.startswith(PREFIX):
        return int(jit().load(lambda: _row_text(symbol, target), name=symbol).address("routine"))
    name, element, called = _parts(symbol)
    for part in called:
        _load_called(part, target)
    return int(_code(_family(name), element, target).address(name))


def prepare_module(symbol: str) -> None:
    """Begin to compile the module that a routine is in."""
    target = host()
    if symbol.startswith(PREFIX):
        jit().prepare(lambda: _row_text(symbol, target), symbol)
        return
    name, element, _ = _parts(symbol)
    family = _family(name)
    jit().prepare(lambda: library_text(family, element, target), f"{family} {element}")


def prepare_routine(symbol: str) -> None:
    """Begin to compile what `routine_address` will need."""
    _prepare_routine(symbol, host())


@functools.cache
def _prepare_routine(symbol: str, target: Target) -> None:
    prepare_module(symbol)
    for part in () if symbol.startswith(PREFIX) else _parts(symbol)[2]:
        jit().prepare(_called(part, target)[2], part)


def _parts(symbol: str) -> tuple[str, str, list[str]]:
    """The routine's name, its element type, and the tiles and packers that it calls."""
    name, _, called = symbol.partition("@")
    return name, name.rpartition("_")[2], [part for part in called.split(",") if part]


def _family(routine: str) -> str:
    """The module that a routine is in: but for products each has one of its own."""
    return "matmul" if routine.startswith("matmul") else routine.rpartition("_")[0]


@functools.cache
def _load_called(symbol: str, target: Target) -> None:
    """Compile a tile or packer and enter it into the table through which routines call it."""
    element, place, text = _called(symbol, target)
    _tiles(element, target)[place] = jit().load(text, name=symbol).address(symbol)


def _called(symbol: str, target: Target) -> tuple[str, int, Callable[[], str]]:
    """The element type of a tile or packer, its place in the table, and what writes its module."""
    if symbol.startswith("tile_"):
        tile = Tile.named(symbol)
        return tile.element, tile.place, lambda: tile_text(tile, target)
    name, _, element = symbol.rpartition("_")
    place = TILE_WORDS + PACKERS.index(name)
    return element, place, lambda: _packer_text(name, element, target)


def _row_text(symbol: str, target: Target) -> str:
    from treadle.runtime.cpu.routines.entry import row_text

    return row_text(symbol, target)


def _packer_text(name: str, element: str, target: Target) -> str:
    from treadle.runtime.cpu.matmul.packing import packer_text

    return packer_text(name, element, target)


@locks.made_once
def _tiles(element: str, target: Target) -> Any:
    return (ctypes.c_int64 * TABLE_WORDS)()


@functools.cache
def _code(family: str, element: str, target: Target) -> Any:
    """The loaded module of a family of routines for one element type."""
    return jit().load(lambda: library_text(family, element, target), name=f"{family} {element}")


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
def calls_counted() -> Any:
    """How often this process called products, by their slots."""
    return (ctypes.c_int64 * SLOTS)()


@locks.made_once
def _table(workers: int, pooled: bool, target: Target) -> Any:
    table = (ctypes.c_int64 * len(TABLE))()
    addresses = pool().addresses
    known = {
        "parallel": addresses.parallel if pooled else addresses.parallel_alone,
        "limit": workers,
        "collectives": collectives.table_address(),
        "counts": ctypes.addressof(calls_counted()),
        **{f"{e}_tiles": ctypes.addressof(_tiles(e, target)) for e in ELEMENT_BYTES},
    }
    for name, address in known.items():
        table[TABLE.index(name)] = address
    return table


def table_address(workers: int) -> int:
    """The table that every routine gets as its first argument, which has workspace for so many
    threads."""
    return ctypes.addressof(_table(workers, is_on("threads"), host()))
