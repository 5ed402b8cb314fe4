"""The matmul routine: tasks over a batch and a grid of C, panels of B, tiles of C."""

from __future__ import annotations

from treadle.runtime.cpu.builder import function as builder
from treadle.runtime.cpu.builder.function import Callee
from treadle.runtime.cpu.builder.types import PTR, VOID, function, pointer, vector
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.epilogue import finish_block
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    ceil_divide,
    count_calls,
    define_shared_routine,
    leave_if_stopped,
    looking_loop,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.byte_forms import (
    WHOLE,
    is_whole_bytes,
    multiplies_in_matrices,
    operand_bytes,
    operand_type,
    steps_of_group,
)
from treadle.runtime.cpu.matmul.pairs import HALF, has_matrix_registers
from treadle.runtime.cpu.matmul.tile_calls import EvenTiles, call_tile, packer_code, tile_codes
from treadle.runtime.cpu.matmul.tiles import ALONG, PAST, fills_panels, lanes, stores_past
from treadle.runtime.cpu.matmul.tiling import ALL_TILES, COPY, DOTS, FILL, PANELS, TRANSPOSE

# Numbers of the routine; strides in elements from one matrix of the batch to the next.
NUMBERS = (
    "batch", "m", "n", "k", "ta", "tb", "pairs", "stride_a", "stride_b", "lda", "ldb", "inner",
    "outer_a", "outer_b", "vectors", "tall", "tiles",
    "panels", "depth", "pack", "pack_a", "by_rows", "ahead", "parts", "chunk", "block", "run",
    "space", "tile_space", "apart", "past", "slot",
)  # fmt: skip

_LOOK_EVERY = 64  # matrices of a batch between two looks whether to stop: a matter of time


def add_matmul(module: Module, element: str) -> None:
    """Add ``@matmul_float`` or ``@matmul_double``: operands a, b and c.

    ``@matmul_swapped_float`` takes b before a. ``@matmul_part_float(table, operands, numbers,
    workspace, first, last)`` is called by one of several threads, for the units [first, last).
    """
    _define_block(module, element)
    define_shared_routine(
        module, f"matmul_{element}", ("a", "b", "c"), NUMBERS, _entry,
        lambda fn, w, first, last: _share(fn, w, first, last, element),
        part=f"matmul_part_{element}",
    )  # fmt: skip
    _swapped(element).add_to(module)


def _swapped(element: str) -> Unit:
    """``@matmul_swapped_float``: a call of the routine with its first two operands in turn."""
    unit, pair = Unit(), vector(PTR, 2)
    arguments = {"table": PTR, "given": pointer(PTR), "numbers": PTR, "workspace": PTR}
    routine = Callee(f"matmul_{element}", function(VOID, *arguments.values()))

    def body(f: builder.Function, table: Value, given: Value, numbers: Value, space: Value) -> None:
        b, a = given[0], given[1]
        others = given.at(2).as_pointer(pair).load()  # c, and the record of the epilogue
        call = given[4]
        turned = f.alloca(PTR, 5)
        turned[0], turned[1] = a, b
        turned.at(2).as_pointer(pair).store(others)
        turned[4] = call
        f.call(routine, table, turned, numbers, space)
        f.ret()

    unit.add(f"matmul_swapped_{element}", body, arguments, internal=False)
    return unit


def _entry(fn: Function, w: Words) -> Words:
    """Units of work are the row tiles or the panels of every matrix of the batch."""
    count_calls(fn, w, 1)
    units = fn.select(fn.compare("ne", w["by_rows"], 0), w["tiles"], w["panels"])
    some = fn.compare("sgt", w["m"], 0)  # there is no tile of 0 rows
    return {"units": units, "tasks": fn.select(some, fn.mul(w["batch"], units), 0)}


def _share(fn: Function, w: Words, first: Word, last: Word, element: str) -> None:
    """One thread's share: units [first, last) of all matrices together."""
    by_rows = fn.compare("ne", w["by_rows"], 0)
    space = fn.offset(str(w["workspace"]), fn.mul(w["worker"], w["space"]), "i8")
    numbers = _block_numbers(fn, {**w, "past": _goes_past(fn, w, element)}, element)
    start = fn.divide(first, w["units"])
    stop = ceil_divide(fn, last, w["units"])
    with looking_loop(fn, w["call"], start, stop, _LOOK_EVERY) as number:
        before = fn.mul(number, w["units"])
        low = fn.max(fn.sub(first, before), 0)
        high = fn.min(fn.sub(last, before), w["units"])
        a, b = (_operand(fn, w, name, number, element) for name in ("a", "b"))
        row0 = fn.mul(number, w["m"])
        c = fn.offset(str(w["c"]), fn.mul(fn.mul(row0, w["n"]), _thin(fn, w, element)), "i8")
        bounds = (
            fn.select(by_rows, low, 0), fn.select(by_rows, high, w["tiles"]),
            fn.select(by_rows, 0, low), fn.select(by_rows, w["panels"], high),
        )  # fmt: skip
        shown = ", ".join(f"i64 {x}" for x in (*bounds, row0))
        fn.emit(
            f"call void @matmul_block(ptr {w['table']}, ptr {numbers}, ptr {a}, ptr {b}, ptr {c}, "
            f"ptr {space}, ptr {w['epilogue']}, ptr {w['call']}, {shown})"
        )


def _has_pairs(fn: Function, w: Words, element: str) -> str | bool:
    """Whether elements of A and B are pairs of bfloat16, of two steps of k."""
    return element == "i32" and fn.compare("ne", w["pairs"], 0)


def _thin(fn: Function, w: Words, element: str) -> Word:
    """Bytes of an element of C."""
    return fn.select(_has_pairs(fn, w, element), HALF, ELEMENT_BYTES[element])


def _piece(fn: Function, w: Words, element: str) -> Word:
    """Bytes from an element of a stored row of A and B to the next, in another step of k or not."""
    return fn.select(_has_pairs(fn, w, element), HALF, operand_bytes(element))


def _groups(fn: Function, element: str, k: Word) -> Word:
    """Steps of a tile for so many steps of k."""
    if not is_whole_bytes(element):
        return k
    steps = steps_of_group(element, fn.module.target)
    return ceil_divide(fn, k, steps)


def _whole_groups(fn: Function, element: str, k: Word) -> Word:
    """The same in matrix registers where A is a copy, whose rows have whole registers."""
    return fn.mul(ceil_divide(fn, _groups(fn, element, k), WHOLE), WHOLE)


def _operand(fn: Function, w: Words, name: str, number: Word, element: str) -> str:
    """Where the matrix of an operand is that belongs to a number of the batch."""
    outer = fn.divide(number, w["inner"])
    inside = fn.mul(fn.sub(number, fn.mul(outer, w["inner"])), w[f"stride_{name}"])
    place = fn.add(fn.mul(outer, w[f"outer_{name}"]), inside)
    return fn.offset(str(w[name]), place, operand_type(element))


# The numbers of the product that `@matmul_block` reads.
_BLOCK = (
    "pairs", "m", "n", "k", "ta", "lda", "ldb", "ldc", "vectors", "tall", "tiles", "depth", "pack",
    "pack_a", "ahead", "chunk", "block", "run", "space", "tile_space", "apart", "past",
)  # fmt: skip


def _goes_past(fn: Function, w: Words, element: str) -> Word:
    """1 where tiles store C past the caches: it is large and written once, its rows begin at lines,
    and no epilogue reads it."""
    if not stores_past(fn.module.target, element):
        return 0
    row = fn.mul(w["n"], ELEMENT_BYTES[element])
    size = fn.mul(fn.mul(w["batch"], w["m"]), row)
    place = fn.value(f"ptrtoint ptr {w['c']} to i64")
    begins = fn.value(f"or i64 {place}, {row}")
    conditions = (
        fn.compare("ne", w["past"], 0), fn.compare("sge", size, w["past"]),
        fn.compare("sle", w["k"], w["depth"]), fn.value(f"icmp eq ptr {w['epilogue']}, null"),
        fn.compare("eq", fn.value(f"and i64 {begins}, {fn.module.target.tuning.line - 1}"), 0),
    )  # fmt: skip
    past = str(conditions[0])
    for condition in conditions[1:]:
        past = fn.value(f"and i1 {past}, {condition}")
    return fn.select(past, 1, 0)


def _block_numbers(fn: Function, w: Words, element: str) -> str:
    """The record of `_BLOCK` on the stack; strides in bytes."""
    size = operand_bytes(element)
    known: Words = {
        **w,
        "lda": fn.mul(w["lda"], size),
        "ldb": fn.mul(w["ldb"], size),
        "ldc": fn.mul(w["n"], _thin(fn, w, element)),
    }
    record = fn.alloca(f"[{len(_BLOCK)} x i64], align 8")
    for i, name in enumerate(_BLOCK):
        fn.emit(f"store i64 {known[name]}, ptr {fn.offset(record, i, 'i64')}, align 8")
    return record


def _define_block(module: Module, element: str) -> None:
    """``@matmul_block``: tiles [tile0, tile1) by panels [panel0, panel1) of one product, whose
    first row is `row0` of the result."""
    fn = Function(module)
    w: Words = {name: fn.load_word("%numbers", i) for i, name in enumerate(_BLOCK)}
    size, width = operand_bytes(element), lanes(module.target, element)
    in_matrices = multiplies_in_matrices(element, module.target)
    dots = fn.compare("eq", w["pack"], DOTS)
    w["width"] = fn.select(dots, 1, width)
    w["columns"] = fn.mul(w["vectors"], w["width"])
    w["row_bytes"] = fn.mul(w["columns"], ELEMENT_BYTES[element])
    w["b_step"] = fn.select(dots, size, w["ldb"])  # bytes to B's next k, where B is not copied
    panels = fn.compare("eq", w["pack"], PANELS)
    in_rows = fn.select(panels, fn.mul(w["k"], size), size)
    w["b_column"] = fn.select(dots, w["ldb"], in_rows)  # ... for each column until the next panel
    transposed = fn.compare("ne", w["ta"], 0)
    w["thin"], w["piece"] = _thin(fn, w, element), _piece(fn, w, element)
    w["a_row"] = fn.select(transposed, w["piece"], w["lda"])  # bytes to the next row of op(A)
    w["a_step"] = fn.select(transposed, w["lda"], size)  # ... to the next k
    w["packs_a"] = fn.select(fn.compare("ne", w["pack_a"], 0), 1, 0)
    w["in_columns"] = fn.select(transposed, 1, w["packs_a"])  # how tiles find A
    along = fn.select(dots, ALONG.index("dots"), w["in_columns"])
    if is_whole_bytes(element):  # vectors take copies of A's tiles, matrix registers take rows
        along = fn.select(dots, along, ALONG.index("rows" if in_matrices else "columns"))
    if element == "i32":
        in_columns = 0 if has_matrix_registers(module.target) else w["in_columns"]
        pairs = fn.add(ALONG.index("pairrows"), in_columns)
        along = fn.select(_has_pairs(fn, w, element), pairs, along)
    w["codes"] = tile_codes(fn, "%table", element, along)
    if fills_panels(module.target, element):
        fill = fn.add(ALONG.index("fillrows"), w["in_columns"])
        w["fill_codes"] = tile_codes(fn, "%table", element, fill)
        w["fill"] = fn.compare("eq", w["pack"], FILL)
        w["filled"] = fn.alloca("[2 x i64], align 8")  # where a panel goes, and its rows
    w["epilogue"] = "%epilogue"
    with_epilogue = fn.value("icmp ne ptr %epilogue, null")
    alone = fn.select(dots, 1, ALL_TILES)
    if has_matrix_registers(module.target):  # A's rows are wide: all panels take them in turn
        alone = fn.select(_has_pairs(fn, w, element), w["run"], alone)
    if not in_matrices:
        w["run"] = fn.select(with_epilogue, w["run"], alone)
    even = EvenTiles(fn, w["m"], w["tall"], w["tiles"])
    w["packed"] = fn.offset("%space", fn.mul(w["tile_space"], w["block"]), "i8")
    deep = _groups(fn, element, w["depth"])
    w["panel_bytes"] = fn.mul(w["row_bytes"], fn.add(deep, width))
    # k = 0 still makes zeros: the block of k is entered once.
    blocks = fn.max(ceil_divide(fn, w["k"], w["depth"]), 1)
    with fn.loop(0, blocks) as block:
        _look_again(fn, block, 0)
        w["k0"] = fn.mul(block, w["depth"])
        w["count"] = fn.min(w["depth"], fn.sub(w["k"], w["k0"]))
        w["add"] = fn.select(fn.compare("ne", w["past"], 0), PAST, block)
        w["last"] = fn.select(fn.compare("eq", fn.add(block, 1), blocks), 1, 0)
        with fn.loop("%tile0", "%tile1", w["block"]) as tile:
            _look_again(fn, tile, "%tile0")
            tiles = tile, fn.min(fn.add(tile, w["block"]), "%tile1")
            _pack_tiles(fn, w, even, tiles, element)
            with fn.loop("%panel0", "%panel1", w["chunk"]) as panel:
                _look_again(fn, panel, "%panel0")
                last = fn.min(fn.add(panel, w["chunk"]), "%panel1")
                _pack_panels(fn, w, panel, last, element)
                _panels(fn, w, even, tiles, (panel, last), element)
    if stores_past(module.target, element):
        module.declare("void @llvm.x86.sse.sfence()")
        with fn.when(fn.compare("ne", w["past"], 0)):
            fn.emit("call void @llvm.x86.sse.sfence()")  # other threads see the stores after this
    fn.emit("ret void")
    fn.define(
        "matmul_block",
        "void @{}(ptr %table, ptr %numbers, ptr %a, ptr %b, ptr %c, ptr %space, "
        "ptr %epilogue, ptr %call, i64 %tile0, i64 %tile1, i64 %panel0, i64 %panel1, i64 %row0)",
        "internal",
    )


def _look_again(fn: Function, place: Word, first: Word) -> None:
    """See whether to stop, but for the first iteration: a small product has no others."""
    leave_if_stopped(fn, "%call", fn.compare("ne", place, first))


def _panels(
    fn: Function, w: Words, even: EvenTiles, tiles: tuple[Word, Word],
    panels: tuple[Word, Word], element: str,
) -> None:  # fmt: skip
    """The tiles of panels that are packed together, and the epilogue in runs of tiles."""
    with fn.loop(*tiles, w["run"]) as tile:
        end = fn.min(fn.add(tile, w["run"]), tiles[1])
        w["c"], block = _result(fn, w, even.place(tile)[0])
        with fn.loop(*panels) as panel:
            _panel(fn, w, even, tiles[0], (tile, end), panel, panels[0], element)
        with fn.when(fn.compare("eq", w["last"], 1)):
            rows = [fn.add("%row0", even.place(t)[0]) for t in (tile, end)]
            columns = [fn.min(fn.mul(p, w["columns"]), w["n"]) for p in panels]
            finish_block(fn, w, (rows[0], rows[1]), (columns[0], columns[1]), block)


def _result(fn: Function, w: Words, row: Word) -> tuple[str, str]:
    """Where the product would begin if a block from `row` on were in its place, and where the whole
    result would; null for the latter where blocks are not kept apart, in the workspace."""
    apart = fn.compare("ne", w["apart"], 0)
    area = fn.offset("%space", fn.sub(w["space"], w["apart"]), "i8")
    before = fn.offset(area, fn.sub(0, fn.mul(row, w["ldc"])), "i8")
    whole = fn.offset(before, fn.sub(0, fn.mul("%row0", w["ldc"])), "i8")
    c = fn.value(f"select i1 {apart}, ptr {before}, ptr %c")
    return c, fn.value(f"select i1 {apart}, ptr {whole}, ptr null")


def _panel(
    fn: Function, w: Words, even: EvenTiles, base: Word, tiles: tuple[Word, Word], panel: Word,
    first: Word, element: str,
) -> None:  # fmt: skip
    """Tiles of one panel. `first` is the first panel of those that are packed together, `base`
    the first tile of those that are."""
    size = ELEMENT_BYTES[element]
    column = fn.mul(panel, w["columns"])
    n = fn.min(w["columns"], fn.sub(w["n"], column))
    count = _groups(fn, element, w["count"])
    if is_whole_bytes(element):
        dots = fn.compare("eq", w["pack"], DOTS)
        count = fn.select(dots, w["count"], count)  # rows as they are stored have no groups
    if multiplies_in_matrices(element, fn.module.target):
        whole = _whole_groups(fn, element, w["count"])
        count = fn.select(fn.compare("ne", w["packs_a"], 0), whole, count)
    (where, row_bytes), (straight, stride) = _panel_of_b(fn, w, panel, first, size)
    filling = "fill" in w
    if filling:
        fn.emit(f"store ptr {where}, ptr {w['filled']}, align 8")
        fn.emit(f"store i64 {row_bytes}, ptr {fn.offset(str(w['filled']), 1, 'i64')}, align 8")
    c0 = fn.offset(str(w["c"]), fn.mul(column, w["thin"]), "i8")
    with fn.loop(*tiles) as tile:
        row, height = even.place(tile)
        a = _tile_of_a(fn, w, fn.sub(tile, base), (row, height), element)
        c = fn.offset(c0, fn.mul(row, w["ldc"]), "i8"), w["ldc"]
        b, fill = (where, row_bytes), None
        if filling:
            is_first = fn.value(f"and i1 {w['fill']}, {fn.compare('eq', tile, base)}")
            b = (
                fn.value(f"select i1 {is_first}, ptr {straight}, ptr {where}"),
                fn.select(is_first, stride, row_bytes),
            )
            fill = is_first, str(w["fill_codes"]), w["filled"]
        call_tile(
            fn, element, str(w["codes"]), (height, n, count), (a, b, c), w["add"],
            width=w["width"], ahead=w["ahead"], fill=fill,
        )  # fmt: skip


def _place_in_a(fn: Function, w: Words, row: Word) -> str:
    """Where a row of op(A) is stored, at the first step of the block of k."""
    place = fn.add(fn.mul(w["k0"], w["a_step"]), fn.mul(row, w["a_row"]))
    return fn.offset("%a", place, "i8")


def _pack_tiles(
    fn: Function, w: Words, even: EvenTiles, tiles: tuple[Word, Word], element: str
) -> None:
    """Copy A's rows of a block of tiles, tile after tile."""
    packs = fn.compare("ne", w["packs_a"], 0)
    turned = fn.compare("ne", w["ta"], 0)
    with fn.when(packs), fn.loop(*tiles) as tile:
        row, height = even.place(tile)
        a = _place_in_a(fn, w, row)
        target = fn.offset("%space", fn.mul(fn.sub(tile, tiles[0]), w["tile_space"]), "i8")
        columns = _packer(fn, w, element, "pack_columns", "pair_columns")
        rows = packer_code(fn, "%table", element, "pack_rows")
        packer = fn.value(f"select i1 {turned}, ptr {columns}, ptr {rows}")
        fn.emit(
            f"call void {packer}(ptr {a}, i64 {w['lda']}, ptr {target}, i64 {height}, "
            f"i64 {w['count']})"
        )


def _packer(fn: Function, w: Words, element: str, usual: str, of_pairs: str) -> str:
    found = packer_code(fn, "%table", element, usual)
    if element != "i32":
        return found
    pairs = _has_pairs(fn, w, element)
    other = packer_code(fn, "%table", element, of_pairs)
    return fn.value(f"select i1 {pairs}, ptr {other}, ptr {found}")


def _tile_of_a(
    fn: Function, w: Words, number: Word, rows: tuple[Word, Word], element: str
) -> tuple[Word, Word]:
    """Where the rows of A of the block's tile `number` are, copied or not, and their stride."""
    row, height = rows
    packs = fn.compare("ne", w["packs_a"], 0)
    copied = fn.offset("%space", fn.mul(number, w["tile_space"]), "i8")
    where = fn.value(f"select i1 {packs}, ptr {copied}, ptr {_place_in_a(fn, w, row)}")
    return where, fn.select(packs, _packed_row(fn, w, height, element), w["lda"])


def _packed_row(fn: Function, w: Words, height: Word, element: str) -> Word:
    """Bytes of a row of a copy of A's tile. Rows hold a step of k of all rows of A, but for matrix
    registers, which take rows of pairs."""
    size = ELEMENT_BYTES[element]
    row = fn.mul(height, size)
    if multiplies_in_matrices(element, fn.module.target):
        return fn.mul(_whole_groups(fn, element, w["count"]), size)
    if element != "i32" or not has_matrix_registers(fn.module.target):
        return row
    return fn.select(_has_pairs(fn, w, element), fn.mul(w["count"], size), row)


def _panel_of_b(
    fn: Function, w: Words, panel: Word, first: Word, size: int
) -> tuple[tuple[str, Word], tuple[str, Word]]:
    """Where the panel's first row is that tiles read, a copy or not, and the bytes to the next; and
    the same of B itself."""
    copied = fn.compare("eq", w["pack"], COPY)
    for pack in (TRANSPOSE, FILL):
        copied = fn.value(f"or i1 {copied}, {fn.compare('eq', w['pack'], pack)}")
    column = fn.mul(panel, w["columns"])
    inside = fn.add(fn.mul(w["k0"], w["b_step"]), fn.mul(column, w["b_column"]))
    before = fn.mul(fn.sub(panel, first), w["panel_bytes"])
    straight = fn.offset("%b", inside, "i8")
    packed = fn.offset(str(w["packed"]), before, "i8")
    where = fn.value(f"select i1 {copied}, ptr {packed}, ptr {straight}")
    return (where, fn.select(copied, w["row_bytes"], w["ldb"])), (straight, w["ldb"])


def _pack_panels(fn: Function, w: Words, first: Word, last: Word, element: str) -> None:
    """Copy the panels of a block of k that are used together."""
    size = operand_bytes(element)
    copies = fn.compare("eq", w["pack"], COPY)
    with fn.when(copies):
        column = fn.mul(first, w["columns"])
        end = fn.min(fn.mul(last, w["columns"]), w["n"])
        offset = fn.add(fn.mul(w["k0"], w["ldb"]), fn.mul(column, w["piece"]))
        source = fn.offset("%b", offset, "i8")
        packer = _packer(fn, w, element, "copy_panels", "pair_panels")
        fn.emit(
            f"call void {packer}(ptr {source}, i64 {w['ldb']}, ptr {w['packed']}, "
            f"i64 {w['row_bytes']}, i64 {w['count']}, i64 {fn.sub(end, column)}, "
            f"i64 {w['panel_bytes']})"
        )
    transposes = fn.compare("eq", w["pack"], TRANSPOSE)
    with fn.when(transposes), fn.loop(first, last) as panel:
        column = fn.mul(panel, w["columns"])
        n = fn.min(w["columns"], fn.sub(w["n"], column))
        target = fn.offset(str(w["packed"]), fn.mul(fn.sub(panel, first), w["panel_bytes"]), "i8")
        offset = fn.add(fn.mul(column, w["ldb"]), fn.mul(w["k0"], size))
        source = fn.offset("%b", offset, "i8")
        packer = packer_code(fn, "%table", element, "transpose_panel")
        fn.emit(
            f"call void {packer}(ptr {source}, i64 {w['ldb']}, ptr {target}, "
            f"i64 {w['row_bytes']}, i64 {w['count']}, i64 {n})"
        )
