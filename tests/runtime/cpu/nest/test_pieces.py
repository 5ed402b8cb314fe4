"""Loops in pieces where comparisons of the position are decided."""

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS, check, run
from tests.runtime.cpu.test_nest import BOOL, F32, I32, I64, B, numbers
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Iota,
    Kernel,
    Load,
    Reduce,
    affine,
    apply,
    cast,
    const,
    load,
    postorder,
    store,
)  # fmt: skip
from treadle.runtime.cpu.nest.pieces import LEAST_EXTENT, MOST_PIECES, pieces

i = Axis("i", 5)


def joined(*widths):
    """The kernel that puts arrays side by side, and its arrays."""
    total = sum(widths)
    j, start, value = Axis("j", total), 0, None
    parts = []
    for number, width in enumerate(widths):
        x = Buffer(f"x{number}", F32, (5, width))
        below = apply("lt", Iota(j), const(start + width, I64))
        valid = apply("and", below, apply("ge", Iota(j), const(start, I64)))
        parts.append((x, below, load(x, i, affine([(j, 1)], -start), valid=valid)))
        start += width
    for _, below, part in reversed(parts):
        value = part if value is None else apply("select", below, part, value)
    out = Buffer("out", F32, (5, total))
    buffers = (*(x for x, _, _ in parts), out)
    kernel = Kernel((i, j), buffers, (store(out, i, j, value=value),))
    return kernel, {x: numbers(x.shape, seed=n) for n, (x, _, _) in enumerate(parts)}


@pytest.mark.parametrize("widths", [(64, 64), (3, 100), (100, 1, 30), (17, 50), (1, 1, 1, 99)])
def test_each_piece_reads_one_array(widths):
    kernel, arrays = joined(*widths)
    found = pieces(kernel.stores, kernel.axes[1])
    assert [last - first for first, last, _ in found] == list(widths)
    for number, (_, _, stores) in enumerate(found):
        loads = [e for e in postorder([s.value for s in stores]) if isinstance(e, Load)]
        assert [(e.buffer.name, e.valid) for e in loads] == [(f"x{number}", None)]
    check(kernel, arrays, targets=JITS)
    wanted = np.concatenate(list(arrays.values()), 1)
    for past in (0, 16):
        streaming = replace(kernel, streaming=True)
        (out,) = run(streaming, arrays, threads=2, grain=1, past=past).values()
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("shift", [None, ("add", -7), ("sub", 4)])
@pytest.mark.parametrize("limit", [-100, 0, 1, 50, 99, 100, 300])
def test_every_comparison(op, shift, limit):
    j = Axis("j", 100)
    place = Iota(j) if shift is None else apply(shift[0], Iota(j), const(shift[1], I64))
    hit = apply(op, place, const(limit, I64))
    x, out = Buffer("x", F32, (100,)), Buffer("out", F32, (100,))
    other = apply("or", apply("not", hit), apply("lt", load(x, j), const(0, F32)))
    value = apply("add", apply("select", hit, load(x, j), const(2, F32)), cast(other, F32))
    kernel = Kernel((j,), (x, out), (store(out, j, value=value),))
    assert len(pieces(kernel.stores, j)) <= 2
    check(kernel, {x: numbers(100)})


def test_padding_with_a_condition_of_the_row():
    j = Axis("j", 130)
    x, out = Buffer("x", F32, (3, 100)), Buffer("out", F32, (5, 130))
    within = apply("and", apply("ge", Iota(i), const(1, I64)), apply("lt", Iota(i), const(4, I64)))
    low = apply("ge", apply("add", Iota(j), const(-20, I64)), const(0, I64))
    high = apply("lt", apply("add", Iota(j), const(-20, I64)), const(100, I64))
    valid = apply("and", within, apply("and", low, high))
    value = load(x, affine([(i, 1)], -1), affine([(j, 1)], -20), valid=valid, fill=-1.5)
    kernel = Kernel((i, j), (x, out), (store(out, i, j, value=value),))
    assert [p[:2] for p in pieces(kernel.stores, j)] == [(0, 20), (20, 120), (120, 130)]
    check(kernel, {x: numbers((3, 100))}, targets=JITS)


def test_loops_that_stay_whole():
    def whole(kernel, axis):
        return pieces(kernel.stores, axis) == [(0, axis.extent, list(kernel.stores))]

    narrow, _ = joined(*[1] * (LEAST_EXTENT - 1))
    assert whole(narrow, narrow.axes[1])
    many, arrays = joined(*[20] * (MOST_PIECES + 1))
    assert whole(many, many.axes[1])
    check(many, arrays)
    j = Axis("j", 100)
    x, out = Buffer("x", F32, (100,)), Buffer("out", F32, (100,))
    data = apply("lt", load(x, j), const(3, F32))
    wraps = apply("lt", apply("add", Iota(j, I32), const(2**31 - 10, I32)), const(0, I32))
    total = Reduce("sum", (j,), apply("select", apply("lt", Iota(j), const(9, I64)), load(x, j),
                                      const(0, F32)))  # fmt: skip
    for value in (cast(data, F32), cast(wraps, F32), apply("div", load(x, j), total)):
        kernel = Kernel((j,), (x, out), (store(out, j, value=value),))
        assert whole(kernel, j)
        check(kernel, {x: numbers(100)})
    k = Axis("k", B)
    y, flags = Buffer("y", F32, (B,)), Buffer("flags", BOOL, (B,))
    hit = apply("lt", Iota(k), const(9, I64))
    kernel = Kernel((k,), (y, flags), (store(flags, k, value=hit),))
    assert whole(kernel, k)
    check(kernel, {}, {"B": 40})
