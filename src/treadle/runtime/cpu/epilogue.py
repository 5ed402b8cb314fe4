"""How the library's routines run a blocked kernel on blocks of their result.

The operands of a routine end with the address of a record, null where there is no epilogue.
"""

from __future__ import annotations

from treadle.runtime.cpu.library_text import Words
from treadle.runtime.cpu.llvm_text import Function, Word

# `own`: which of the `count` buffers is the result's; a routine may keep its blocks elsewhere.
RECORD = ("code", "buffers", "dims", "count", "own")
MOST_BUFFERS = 64  # of a blocked kernel whose result is kept elsewhere: words on the stack


def finish_block(
    fn: Function, w: Words, rows: tuple[Word, Word], columns: tuple[Word, Word],
    block: str | None = None,
) -> None:  # fmt: skip
    """Run the epilogue, if there is one, on a block of the result that is complete.

    Args:
        w: words of the routine; `epilogue` is the address of the record.
        rows, columns: the block, each as first and end; rows count through all axes but the last.
        block: where the result would begin if the block were a part of it; null where it is.
    """
    some = fn.value(f"icmp ne ptr {w['epilogue']}, null")
    with fn.when(some):
        record = str(w["epilogue"])
        code, buffers, dims = (fn.load_word(record, i, "ptr") for i in range(3))
        if block is not None:
            buffers = _with_block(fn, record, buffers, block)
        bounds = ", ".join(f"i64 {x}" for x in (*rows, *columns))
        fn.emit(f"call void {code}(ptr {buffers}, ptr {dims}, {bounds}, ptr null)")


def _with_block(fn: Function, record: str, buffers: str, block: str) -> str:
    """The addresses of the buffers, with the block's in place of the result's."""
    own_buffers = fn.alloca(f"[{MOST_BUFFERS} x ptr], align 8")
    apart = fn.value(f"icmp ne ptr {block}, null")
    with fn.when(apart):
        with fn.loop(0, fn.load_word(record, RECORD.index("count"))) as i:
            address = fn.load_word(buffers, i, "ptr")
            fn.emit(f"store ptr {address}, ptr {fn.offset(own_buffers, i, 'ptr')}, align 8")
        own = fn.load_word(record, RECORD.index("own"))
        fn.emit(f"store ptr {block}, ptr {fn.offset(own_buffers, own, 'ptr')}, align 8")
    return fn.value(f"select i1 {apart}, ptr {own_buffers}, ptr {buffers}")
