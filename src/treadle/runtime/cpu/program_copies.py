"""Copies of memory inside a program."""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter


def move(emitter: Emitter, target: str, source: str, size: Word) -> None:
    """memcpy of `size` bytes."""
    emitter.module.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    emitter.fn.emit(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
    )
