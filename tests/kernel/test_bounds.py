"""Proofs that kernels stay inside their buffers: wrong kernels are found, right ones pass."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core import dtypes
from treadle.core.inequalities import is_at_least
from treadle.core.shapes import SymbolicDim, compound
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
from treadle.runtime.bounds import Sizes, clamped, covers, unproved
from treadle.runtime.cpu.nest.picks import without_picks

F32, I64 = dtypes.float32, dtypes.int64
B, C, D = (SymbolicDim.symbol(name) for name in "BCD")


def kernel(*stores, reduced=()):
    exprs = postorder([s.value for s in stores])
    loads = [e.buffer for e in exprs if hasattr(e, "buffer")]
    axes = dict.fromkeys([a for s in stores for i in s.index for a, _ in i.terms])
    axes.update(dict.fromkeys(reduced))
    return Kernel(tuple(axes), tuple(dict.fromkeys([*loads, *(s.buffer for s in stores)])), stores)


def copied(x, y, index, axis, **mask):
    """y[i] = x[index]."""
    return kernel(store(y, axis, value=load(x, index, **mask)))


@pytest.mark.parametrize("n", [7, B])
def test_an_axis_of_the_buffers_extent_is_inside(n):
    i, x, y = Axis("i", n), Buffer("x", F32, (n,)), Buffer("y", F32, (n,))
    assert unproved(copied(x, y, i, i), Sizes()) == ([], [])
    back = affine([(i, -1)], n - 1)
    assert unproved(copied(x, y, back, i), Sizes()) == ([], [])


@pytest.mark.parametrize("offset", [1, -1, 3])
def test_known_extents_that_do_not_fit_are_a_condition_that_never_holds(offset):
    i, x, y = Axis("i", 7), Buffer("x", F32, (7,)), Buffer("y", F32, (7,))
    (condition,), _ = unproved(copied(x, y, affine([(i, 1)], offset), i), Sizes())
    assert condition.excess == abs(offset)


def test_a_store_outside_is_found():
    i, x, y = Axis("i", 7), Buffer("x", F32, (7,)), Buffer("y", F32, (6,))
    (condition,), _ = unproved(copied(x, y, i, i), Sizes())
    assert condition.buffer == "y" and condition.excess == 1


def test_a_step_of_unknown_sign_becomes_a_condition():
    """Exactly where the kernel would leave its buffer, forward or backward, it is not 0."""
    i = Axis("i", B)
    x, y = Buffer("x", F32, (B,)), Buffer("y", F32, (B,))
    (condition,), _ = unproved(copied(x, y, affine([(i, C - D)]), i), Sizes())
    for b in range(4):
        for c in range(4):
            for d in range(4):
                fits = all(0 <= (c - d) * k < b for k in range(b))
                values = {"B": b, "C": c, "D": d}
                assert (condition.excess.evaluate(values) == 0) == fits, values


def test_unknown_extents_become_a_condition():
    """Exactly where the kernel would leave its buffer the condition is not 0."""
    i = Axis("i", B)
    wrong = copied(Buffer("x", F32, (C,)), Buffer("y", F32, (B,)), affine([(i, 2)], 1), i)
    (condition,), masked = unproved(wrong, Sizes())
    assert condition.buffer == "x" and not masked
    for b in range(4):
        for c in range(9):
            fits = not b or 2 * (b - 1) + 1 < c
            assert (condition.excess.evaluate({"B": b, "C": c}) == 0) == fits


def test_what_is_known_of_sizes_counts():
    i = Axis("i", B)
    k = copied(Buffer("x", F32, (C,)), Buffer("y", F32, (B,)), i, i)
    assert unproved(k, Sizes())[0]
    equal = Sizes()
    equal.add([(B, C)])
    assert not unproved(k, equal)[0]
    less = Sizes()
    less.add([(compound("max", B, C), C)])
    assert not unproved(k, less)[0]
    other = Sizes()
    other.add([(B, D)])
    assert unproved(k, other)[0]
    both = other.copy()
    both.add([(D, C)])
    assert not unproved(k, both)[0] and unproved(k, other)[0]


def test_masks_narrow_positions():
    i = Axis("i", B + 2)
    x, y = Buffer("x", F32, (B,)), Buffer("y", F32, (B + 2,))
    place = affine([(i, 1)], -1)
    at = apply("add", Iota(i), const(-1, I64))
    low, high = apply("ge", at, const(0, I64)), apply("lt", at, Extent(B))
    assert unproved(copied(x, y, place, i, valid=apply("and", low, high)), Sizes()) == ([], [])
    half = copied(x, y, place, i, valid=low)
    (found,) = unproved(half, Sizes())[1]
    safe = clamped(half, [found])
    assert unproved(safe, Sizes()) == ([], [])


def test_computed_positions_need_an_element():
    i = Axis("i", C)
    x, y, p = Buffer("x", F32, (B,)), Buffer("y", F32, (C,)), Buffer("p", I64, (C,))
    k = copied(x, y, cast(load(p, i), I64), i)
    (condition,), _ = unproved(k, Sizes())
    assert condition.excess.evaluate({"B": 0, "C": 2}) > 0
    assert condition.excess.evaluate({"B": 0, "C": 0}) == 0
    assert condition.excess.evaluate({"B": 1, "C": 2}) == 0


def test_products_of_symbols():
    i, j = Axis("i", B), Axis("j", C)
    x, y = Buffer("x", F32, (B * C,)), Buffer("y", F32, (B, C))
    flat = affine([(i, C), (j, 1)])
    assert not unproved(kernel(store(y, i, j, value=load(x, flat))), Sizes())[0]
    beyond = affine([(i, C), (j, 1)], 1)
    assert unproved(kernel(store(y, i, j, value=load(x, beyond))), Sizes())[0]


def test_a_sum_that_picks_an_element_reads_nothing_of_nothing():
    i, j = Axis("i", B), Axis("j", C)
    x, y, p = Buffer("x", F32, (B, C)), Buffer("y", F32, (B,)), Buffer("p", I64, (B,))
    chosen = apply("select", apply("eq", Iota(j), load(p, i)), load(x, i, j), const(0, F32))
    picked = without_picks(kernel(store(y, i, value=Reduce("sum", (j,), chosen)), reduced=[j]))
    (found,) = [
        e for e in postorder([s.value for s in picked.stores]) if getattr(e, "buffer", None) is x
    ]
    assert found.valid is not None


def test_covers():
    sizes = Sizes()
    assert covers((B, C), B * C, sizes) and not covers((B, C), B * C + 1, sizes)
    assert not covers((B,), C, sizes)
    sizes.add([(B, C)])
    assert covers((B,), C, sizes)


@pytest.mark.parametrize(
    "dim, facts",
    [
        (B - compound("min", B, C), []),
        (compound("max", B, C) - C, []),
        (B - compound("floordiv", B, 2) * 2, []),
        (compound("floordiv", B - 3, 2) * -2 + B - 3, []),
        (B - 1 - compound("floordiv", B - 1, 3) * 3, []),
        (B - D, [B - C, C - D]),
        (B * C - C * (B - 1) - 1, [C - 1]),
        (C - 1 - compound("mod", B, C), [C - 1]),
    ],
)
def test_inequalities_that_hold(dim, facts):
    assert is_at_least(dim, 0, facts)


@pytest.mark.parametrize(
    "dim, facts",
    [
        (B - C, []),
        (B - 1, []),
        (B - D, [B - C]),
        (compound("floordiv", B - 3, 2), []),
        (C - 1 - compound("mod", B, C), []),
        (compound("min", B, C) - 1, [B - 1]),
    ],
)
def test_what_does_not_hold_is_not_proved(dim, facts):
    """Random sizes that satisfy the facts make the dim negative."""
    assert not is_at_least(dim, 0, facts)
    rng, broken = np.random.default_rng(0), False
    for _ in range(200):
        env = dict(zip("BCD", map(int, rng.integers(0, 6, 3)), strict=True))
        if all(f.evaluate(env) >= 0 for f in facts):
            broken = broken or dim.evaluate(env) < 0
    assert broken


PROGRAMS = {
    "pad": lambda x: td.pad(x, [[1, 2], [0, 3]]),
    "mirror": lambda x: td.pad(x, [[1, 1], [1, 0]], "REFLECT"),
    "slices": lambda x: x[1:4, ::-2],
    "last rows": lambda x: x[-3:, 1:],
    "concat": lambda x: td.concat([x, x[:1], x], 0),
    "roll": lambda x: td.roll(x, 2, 1),
    "pool": lambda x: td.nn.max_pool2d(x[None, :, :, None], 3, 2, "SAME"),
    "pool valid": lambda x: td.nn.avg_pool2d(x[None, :, :, None], 2, 1, "VALID"),
    "softmax": lambda x: td.nn.softmax(x) @ td.transpose(x),
    "diagonal": td.linalg.diag_part,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_programs_need_no_checks_of_their_own(name, monkeypatch):
    """With open dims, the gradient too: everything is proved."""
    from treadle.runtime.schedule.emission import Emission

    found = []
    monkeypatch.setattr(Emission, "check_bounds", lambda self, node, c: found.append(c))
    monkeypatch.setenv("TREADLE_STRICT", "1")

    @td.function(input_signature=[td.TensorSpec([None, None], td.float32)], autograph=False)
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.square(PROGRAMS[name](x)))
        return y, tape.gradient(y, x)

    f(np.ones((5, 5), np.float32))
    assert not [c for c in found if c.excess != 0]
