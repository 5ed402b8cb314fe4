"""Long chains of operations, which go through a block of elements in stages."""

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.cpu.machines import ZEN5
from tests.runtime.cpu.native_kernels import JITS, check, run
from tests.runtime.cpu.test_nest import F32, F64, numbers
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Iota,
    Kernel,
    Reduce,
    apply,
    cast,
    const,
    load,
    postorder,
    store,
)  # fmt: skip
from treadle.runtime.cpu.nest import emit_kernel
from treadle.runtime.cpu.nest.stages import block_vectors, longest_chain, stages
from treadle.runtime.cpu.nest.staging import StagedLoops
from treadle.runtime.cpu.target import host

N = SymbolicDim.symbol("n")
i, j = Axis("i", N), Axis("j", 700)


def long_chain(x, y):
    """log, division, error function and what several of them share."""
    ratio = apply("div", apply("log", apply("abs", x)), apply("sqrt", apply("abs", y)))
    decay = apply("exp", apply("neg", y))
    first = apply("erf", ratio)
    second = apply("tanh", apply("sub", ratio, decay))
    return apply("sub", apply("mul", x, first), apply("mul", decay, second)), decay


def flat(dtype, streaming=False):
    x, y = Buffer("x", dtype, (N,)), Buffer("y", dtype, (N,))
    outs = Buffer("out", dtype, (N,)), Buffer("more", dtype, (N,))
    value, decay = long_chain(load(x, i), load(y, i))
    values = value, apply("add", value, decay)
    stores = tuple(store(b, i, value=v) for b, v in zip(outs, values, strict=True))
    return Kernel((i,), (x, y, *outs), stores, streaming=streaming), x, y


def cut(*values, axis=i):
    """The stages for a machine with a long window of instructions."""
    return stages(postorder(values), axis, longest_chain(ZEN5.tuning))


def in_one_piece(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(StagedLoops, "parts", lambda *_: [])
        return run(*arguments, **options)


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 511, 512, 513, 528, 1025, 2000])
def test_bits_do_not_depend_on_stages(size, dtype, target, monkeypatch):
    kernel, x, y = flat(dtype)
    assert cut(*(s.value for s in kernel.stores))
    arrays = {x: numbers(size, dtype), y: numbers(size, dtype, seed=1)}
    wanted = in_one_piece(monkeypatch, kernel, arrays, {"n": size}, target=target)
    for threads in (1, 2, 3):
        found = run(kernel, arrays, {"n": size}, threads, target, grain=1)
        for buffer, array in wanted.items():
            assert found[buffer].tobytes() == array.tobytes()


@pytest.mark.parametrize("past", [0, 4, 32])
@pytest.mark.parametrize("size", [1, 100, 515, 1600])
def test_stores_past_the_caches(size, past, monkeypatch):
    kernel, x, y = flat(F32, streaming=True)
    assert "nontemporal !0" in emit_kernel(kernel, JITS["host"].target).text
    arrays = {x: numbers(size), y: numbers(size, seed=1)}
    plain = replace(kernel, streaming=False)
    wanted = in_one_piece(monkeypatch, plain, arrays, {"n": size})
    for threads in (1, 2, 3):
        found = run(kernel, arrays, {"n": size}, threads, grain=1, past=past)
        for buffer, array in wanted.items():
            assert found[buffer].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [F32, F64])
def test_agrees_with_the_reference(dtype):
    kernel, x, y = flat(dtype)
    arrays = {x: numbers(1003, dtype), y: np.abs(numbers(1003, dtype, seed=1)) + 0.1}
    check(kernel, arrays, {"n": 1003}, targets=tuple(JITS))


def test_rows_beside_scalars_and_comparisons():
    """Operands that are the same along the row, and masks that wait for a later stage."""
    r = Axis("r", 5)
    x, y = Buffer("x", F32, (5, 700)), Buffer("y", F32, (5,))
    value, decay = long_chain(load(x, r, j), load(y, r))
    large = apply("lt", apply("log", apply("abs", load(x, r, j))), const(0.5, F32))
    position = cast(Iota(j, F32), F32)
    whole = apply("select", large, apply("add", value, position), decay)
    out = Buffer("out", F32, (5, 700))
    kernel = Kernel((r, j), (x, y, out), (store(out, r, j, value=whole),))
    arrays = {x: numbers((5, 700)), y: np.abs(numbers(5, seed=1)) + 0.1}
    assert "alloca" in emit_kernel(kernel, JITS["host"].target).text
    check(kernel, arrays, targets=tuple(JITS))


def test_in_place():
    x, y = Buffer("x", F32, (N,)), Buffer("y", F32, (N,))
    value, decay = long_chain(load(x, i), load(y, i))
    stores = (store(x, i, value=value), store(y, i, value=decay))
    arrays = {x: numbers(1300), y: np.abs(numbers(1300, seed=1)) + 0.1}
    check(Kernel((i,), (x, y), stores), arrays, {"n": 1300})


def test_what_is_left_in_one_piece():
    x, y = Buffer("x", F32, (N,)), Buffer("y", F32, (N,))
    one = apply("tanh", load(x, i))
    assert not cut(one)
    assert not cut(apply("sqrt", apply("mul", one, load(y, i))))
    value, _ = long_chain(load(x, i), load(y, i))
    assert cut(value)


def test_short_rows_have_no_blocks():
    size = block_vectors(host().tuning) // 2
    short = Axis("j", size)
    x, out = Buffer("x", F32, (size,)), Buffer("out", F32, (size,))
    value, _ = long_chain(load(x, short), load(x, short))
    assert cut(value, axis=short)
    kernel = Kernel((short,), (x, out), (store(out, short, value=value),))
    assert "alloca" not in emit_kernel(kernel, JITS["host"].target).text


def rows(columns, reductions):
    """A row of costly values, sums over it, and what they lead to."""
    r, c = Axis("r", 7), Axis("c", columns)
    x, y = Buffer("x", F32, (7, columns)), Buffer("y", F32, (7,))
    value, decay = long_chain(load(x, r, c), load(y, r))
    outs = [Buffer(f"total{k}", F32, (7,)) for k in range(len(reductions))]
    sums = [Reduce(op, (c,), value if k else apply("mul", value, value))
            for k, op in enumerate(reductions)]  # fmt: skip
    stores = [store(b, r, value=s) for b, s in zip(outs, sums, strict=True)]
    spread = Buffer("spread", F32, (7, columns))
    scaled = apply("div", value, apply("add", sums[0], const(1.0, F32)))
    stores.append(store(spread, r, c, value=apply("add", scaled, decay)))
    return Kernel((r, c), (x, y, *outs, spread), tuple(stores)), x, y


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("columns", [300, 700, 1030, 2000])
@pytest.mark.parametrize("reductions", [("sum",), ("sum", "min")])
def test_reductions_of_long_chains(reductions, columns, target, monkeypatch):
    kernel, x, y = rows(columns, reductions)
    assert "alloca" in emit_kernel(kernel, JITS[target].target).text
    arrays = {x: numbers((7, columns)), y: np.abs(numbers(7, seed=1)) + 0.1}
    wanted = in_one_piece(monkeypatch, kernel, arrays, target=target)
    for threads in (1, 3):
        found = run(kernel, arrays, None, threads, target, grain=1)
        for buffer, array in wanted.items():
            assert found[buffer].tobytes() == array.tobytes()
    check(kernel, arrays, targets=(target,), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 17, 1000, 40_000, 100_001])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_totals_of_long_chains(dtype, size, monkeypatch):
    x, y = Buffer("x", dtype, (size,)), Buffer("y", dtype, (size,))
    along, total = Axis("k", size), Buffer("total", dtype, ())
    value, _ = long_chain(load(x, along), load(y, along))
    kernel = Kernel((along,), (x, y, total), (store(total, value=Reduce("sum", (along,), value)),))
    arrays = {x: numbers(size, dtype), y: np.abs(numbers(size, dtype, seed=1)) + 0.1}
    wanted = in_one_piece(monkeypatch, kernel, arrays)
    for threads in (1, 2, 3):
        found = run(kernel, arrays, None, threads, grain=1)
        assert found[total].tobytes() == wanted[total].tobytes()
