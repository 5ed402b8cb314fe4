"""Sums that pick one element of a row."""

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS, check, run
from tests.runtime.cpu.test_nest import F32, I32, I64, B, numbers
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    affine,
    apply,
    cast,
    const,
    load,
    postorder,
    store,
)  # fmt: skip
from treadle.kernel.reference import evaluate
from treadle.runtime.cpu.nest.picks import without_picks

i, j = Axis("i", 9), Axis("j", 40)
x, labels, out = Buffer("x", F32, (9, 40)), Buffer("k", I64, (9,)), Buffer("out", F32, (9,))


def picking(value, hit=None, other=None, op="sum"):
    hit = hit or apply("eq", Iota(j, I32), cast(load(labels, i), I32))
    chosen = apply("select", hit, value, other or const(0, value.dtype))
    result = Reduce(op, (j,), chosen)
    buffers = (x, labels, out)
    return Kernel((i, j), buffers, (store(out, i, value=result),))


def reductions(kernel):
    return sum(isinstance(e, Reduce) for e in postorder([s.value for s in kernel.stores]))


VALUES = {
    "load": lambda: load(x, i, j),
    "function": lambda: apply("exp", apply("mul", load(x, i, j), const(0.5, F32))),
    "less the maximum": lambda: apply(
        "sub", load(x, i, j), Reduce("max", (j,), load(x, i, j))
    ),
    "position": lambda: cast(Iota(j), F32),
    "constant": lambda: const(-0.0, F32),
    "guarded": lambda: load(x, i, j, valid=apply("lt", Iota(j), const(20, I64)), fill=3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_the_element_is_read_directly(name):
    kernel = picking(VALUES[name]())
    found = without_picks(kernel)
    assert reductions(found) == reductions(kernel) - 1
    chosen = np.array([0, 39, 40, -1, 7, 20, 19, 2**32 + 5, 3])  # some are outside
    arrays = {x: numbers((9, 40)), labels: chosen}
    check(kernel, arrays, targets=JITS)
    array = run(kernel, arrays)[out]
    np.testing.assert_allclose(array, evaluate(kernel, arrays)[out], rtol=1e-6)
    assert not np.signbit(array[array == 0]).any()  # as a sum that starts from 0


def test_axes_that_only_the_sum_had_are_gone():
    assert without_picks(picking(load(x, i, j))).axes == (i,)
    reduced = picking(VALUES["less the maximum"]())
    assert without_picks(reduced).axes == (i, j)
    symbolic = Axis("j", B)
    y = Buffer("y", F32, (9, B))
    hit = apply("eq", Iota(symbolic), load(labels, i))
    value = apply("select", hit, load(y, i, symbolic), const(0, F32))
    result = Reduce("sum", (symbolic,), value)
    kernel = Kernel((i, symbolic), (y, labels, out), (store(out, i, value=result),))
    assert without_picks(kernel).symbols == kernel.symbols
    arrays = {y: numbers((9, 21)), labels: np.arange(9)}
    check(kernel, arrays, {"B": 21})


def test_other_sums_stay():
    v = load(x, i, j)
    label = load(labels, i)
    kept = [
        picking(v, apply("lt", Iota(j), label)),
        picking(v, apply("eq", Iota(j), cast(load(x, i, j), I64))),  # depends on the position
        picking(v, other=const(1, F32)),
        picking(v, other=const(-0.0, F32)),
        picking(v, op="max"),
        picking(v, apply("eq", label, label)),
        picking(load(Buffer("z", F32, (9, 80)), i, affine([(j, 2)]))),
    ]  # fmt: skip
    for kernel in kept:
        assert without_picks(kernel) is kernel or reductions(without_picks(kernel)) == reductions(
            kernel
        )


def test_a_pick_inside_a_row_that_is_overwritten():
    """The element is read before the stores of its row."""
    v, label = load(x, i, j), load(labels, i)
    hit = apply("eq", Iota(j), label)
    picked = Reduce("sum", (j,), apply("select", hit, v, const(0, F32)))
    value = apply("div", apply("sub", v, picked), cast(Extent(40), F32))
    kernel = Kernel((i, j), (x, labels), (store(x, i, j, value=value),))
    check(kernel, {x: numbers((9, 40)), labels: np.arange(9) * 4})
