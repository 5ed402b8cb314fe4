"""The module of a tile: its form depends on the operands and on the processor's instructions."""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.matmul.byte_forms import is_whole_bytes, multiplies_in_matrices
from treadle.runtime.cpu.matmul.filling import Filling
from treadle.runtime.cpu.matmul.pairs import Pairs, has_matrix_registers
from treadle.runtime.cpu.matmul.tiles import FILL, SIGNATURE, Body, Tile, lanes
from treadle.runtime.cpu.target import Target


def tile_text(tile: Tile, target: Target) -> str:
    """A module with the function ``tile.symbol`` of `SIGNATURE`; strides are in bytes."""
    module = Module(target)
    fn = Function(module)
    width = lanes(target, tile.element)
    if tile.along == "dots" and is_whole_bytes(tile.element):
        from treadle.runtime.cpu.matmul.byte_tiles import ByteDots

        ByteDots(fn, tile, width).emit()
    elif tile.along == "dots":
        from treadle.runtime.cpu.matmul.dots import Dots

        Dots(fn, tile, width).emit()
    elif multiplies_in_matrices(tile.element, target):
        from treadle.runtime.cpu.matmul.amx import MatrixTileOfBytes

        MatrixTileOfBytes(fn, tile).emit()
    elif is_whole_bytes(tile.element):
        from treadle.runtime.cpu.matmul.byte_tiles import byte_tile

        byte_tile(fn, tile, width, target)
    elif tile.along.startswith("pair") and has_matrix_registers(target):
        from treadle.runtime.cpu.matmul.amx import MatrixTile

        MatrixTile(fn, tile).emit()
    elif tile.along.startswith("pair"):
        Pairs(fn, tile, width, tile.vectors, masked=True).emit("%b", "%c", "%n")
    elif target.avx512:  # masks are free there
        _body(tile)(fn, tile, width, tile.vectors, masked=True).emit("%b", "%c", "%n")
    else:
        _full_or_part(fn, tile, width, target)
    fn.emit("ret void")
    fn.define(tile.symbol, SIGNATURE)
    return module.text()


def _body(tile: Tile) -> type[Body]:
    return Filling if tile.along.startswith(FILL) else Body


def _full_or_part(fn: Function, tile: Tile, width: int, target: Target) -> None:
    """Whole vectors without masks; the last columns masked, or one by one."""
    whole, part, end = (fn.block_of(name, []) for name in ("whole", "part", "end"))
    fn.fork(str(fn.compare("eq", "%n", tile.vectors * width)), whole, part)
    fn.label(whole)
    body = _body(tile)
    body(fn, tile, width, tile.vectors, masked=False).emit("%b", "%c", "%n")
    fn.branch(end)
    fn.label(part)
    if target.vector_bits >= 256:
        body(fn, tile, width, tile.vectors, masked=True).emit("%b", "%c", "%n")
    else:
        with fn.loop(0, "%n") as column:
            b, c = (fn.offset(p, column, tile.element) for p in ("%b", "%c"))
            Body(fn, tile, 1, 1, masked=False).emit(b, c, 1)
    fn.enter(end)
