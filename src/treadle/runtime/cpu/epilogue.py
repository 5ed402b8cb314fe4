"""How the library's routines run a blocked kernel on blocks of their result.

The operands of a routine end with the address of a record, null where there is no epilogue.
"""

from __future__ import annotations

from treadle.runtime.cpu.library_text import Words
from treadle.runtime.cpu.llvm_text import Function, Word

RECORD = ("code", "buffers", "dims")


def finish_block(
    fn: Function, w: Words, rows: tuple[Word, Word], columns: tuple[Word, Word]
) -> None:
    """Run the epilogue, if there is one, on a block of the result that is complete.

    Args:
        w: words of the routine; `epilogue` is the address of the record.
        rows, columns: the block, each as first and end; rows count through all axes but the last.
    """
    some = fn.value(f"icmp ne ptr {w['epilogue']}, null")
    with fn.when(some):
        record = str(w["epilogue"])
        code, buffers, dims = (fn.load_word(record, i, "ptr") for i in range(len(RECORD)))
        bounds = ", ".join(f"i64 {x}" for x in (*rows, *columns))
        fn.emit(f"call void {code}(ptr {buffers}, ptr {dims}, {bounds}, ptr null)")
