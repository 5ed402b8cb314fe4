"""The text of kernels parses back to the same kernel."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

import treadle as td
from tests.runtime.cpu.nest.test_scans import scans
from tests.runtime.cpu.test_nest import kernels
from tests.runtime.harness import native, trace_like
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim, compound
from treadle.kernel.ir import (
    COMBINES,
    SCANS,
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    Scan,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)  # fmt: skip
from treadle.kernel.parser import KernelSyntaxError, parse_kernel
from treadle.kernel.printer import kernel_text
from treadle.kernel.verifier import verify

F32, F16, I32, I64, BOOL, C64 = (
    dtypes.float32, dtypes.float16, dtypes.int32, dtypes.int64, dtypes.bool, dtypes.complex64,
)  # fmt: skip
B, N = SymbolicDim.symbol("B"), SymbolicDim.symbol("N")


def round_trip(kernel):
    assert parse_kernel(kernel_text(kernel)) is kernel, kernel_text(kernel)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(kernels(), scans())
def test_random_kernels(case, scanned):
    round_trip(case[0])
    round_trip(scanned[0])


def test_every_kind_of_expression():
    i, j = Axis("i", B), Axis("v0", 5)
    x, ids = Buffer("x.1", F32, (B, 5)), Buffer("sum", I32, (B,))
    out, flag, rank0 = Buffer("out'", F32, (B, 5)), Buffer("flag", BOOL, (B,)), Buffer("n", F32, ())
    v = load(x, i, affine([(j, -1)], 4))
    inside = apply("lt", Iota(i, I32), Extent(compound("min", B - 1, 7), I32))
    gathered = load(x, load(ids, i), const(2, I64), valid=inside, fill=-0.5)
    value = apply("add", apply("pow", v, gathered), apply("neg", load(rank0)))
    best = Reduce("argmax", (j,), load(x, i, j))
    value = apply("sub", value, cast(apply("min", best, Extent(B)), F32))
    special = [np.nan, np.inf, -np.inf, -0.0, 1e-7, 3.4e38]
    for number in special:
        value = apply("max", value, const(number, F32))
    logical = apply("and", const(True, BOOL), apply("not", inside))
    stores = (store(out, i, j, value=value), store(flag, i, value=logical))
    round_trip(Kernel((i, j), (x, ids, out, flag, rank0), stores))
    round_trip(Kernel((i, j), (x, ids, out, flag, rank0), stores, streaming=True, few=True))


def test_stores_at_computed_places():
    i, j = Axis("i", B), Axis("j", 5)
    ids, x, out = Buffer("ids", I32, (B,)), Buffer("x", F32, (B, 5)), Buffer("out", F32, (9, 5))
    for combine in COMBINES:
        for unique in (False, True):
            value = load(x, i, j)
            stores = (store(out, load(ids, i), j, value=value, combine=combine, unique=unique),)
            round_trip(Kernel((i, j), (ids, x, out), stores))


def test_scans_of_every_kind():
    i, j = Axis("i", B), Axis("j", 5)
    x, out = Buffer("x", F32, (B, 5)), Buffer("out", F32, (B, 5))
    for op in SCANS:
        for exclusive in (False, True):
            for reverse in (False, True):
                scan = Scan(op, j, load(x, i, j), exclusive, reverse)
                round_trip(Kernel((i, j), (x, out), (store(out, i, j, value=scan),)))


def test_symbolic_indices_and_sizes():
    i, j = Axis("i", compound("floordiv", B * N + 1, 2)), Axis("j", 3)
    x, out = Buffer("x", F32, (B * N * 4 + 3, N)), Buffer("out", F32, (compound("max", B, N), 3))
    at = affine([(i, B + 1), (j, 2)], 3 - N)
    stores = (store(out, i, j, value=load(x, at, compound("min", N, 2))),)
    round_trip(Kernel((i, j), (x, out), stores))


def test_one_point_and_numbers_of_every_dtype():
    for dtype in dtypes.ALL:
        if not dtype.is_numeric and not dtype.is_bool:
            continue
        out = Buffer("out", dtype, ())
        for number in (0, 1):
            round_trip(Kernel((), (out,), (store(out, value=const(number, dtype)),)))


def test_kernels_of_programs():
    """Whatever fusion makes of a function has a text that parses back."""

    def fn(x, ids):
        y = td.nn.softmax(td.matmul(x, x) + td.cast(td.gather(ids, ids), "float32")[:, None])
        z = td.pad(td.transpose(y), [[1, 2], [0, 0]])
        return td.reduce_max(z, 0), td.argmax(y, 1), td.cumsum(td.where(y > 0.1, y, np.nan), 1)

    x, ids = np.ones((8, 8), np.float32), np.arange(8)
    printed = native(trace_like(fn, x, ids)).stages["kernels"]
    texts = re.findall(r"^(?:\w+ )*kernel\(.*?^}$", printed, re.MULTILINE | re.DOTALL)
    assert len(texts) > 2, printed
    for text in texts:
        kernel = parse_kernel(text)
        assert kernel_text(kernel) == text
        verify(kernel)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel(x: f32[4]) for i<4 { x[i] = y[i] }", "line 1: expected a buffer, found 'y'"),
        ("kernel(x: f32[4]) for i<4 {\n x[i] = (x[i] + 1:i32) }", "line 2: add needs equal dtypes"),
        ("kernel(x: f32[4]) for i<4 { x[k] = what(x[i]) }", "expected a function, found 'what'"),
        ("kernel(x: f31[4]) for i<4 { }", "expected a dtype, found 'f31'"),
        ("kernel(x: f32[4]) for i<4 { x[i] = x[i] ", "found 'the end of the text'"),
        ("kernel(x: f32[4]) for i<4 { x[i] = x[i] } ?", "unexpected '\\?'"),
        ("kernel(x: f32[4]) for i<4 { x[i] sub= x[i] }", "expected '='"),
    ],
)
def test_text_that_is_no_kernel(text, message):
    with pytest.raises(KernelSyntaxError, match=message):
        parse_kernel(text)
