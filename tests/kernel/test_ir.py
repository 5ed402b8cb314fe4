"""The loop-nest IR: nodes, text, hash, verifier."""

import gc
import threading

import numpy as np
import pytest

from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.functions import FUNCTIONS, result_dtype
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    affine,
    apply,
    as_index,
    cast,
    const,
    load,
    postorder,
    store,
)  # fmt: skip
from treadle.kernel.printer import kernel_hash, kernel_text
from treadle.kernel.verifier import KernelError, verify

F32, I64, BOOL = dtypes.float32, dtypes.int64, dtypes.bool
B = SymbolicDim.symbol("B")


def softmax(rows=B, names="ijxy"):
    i, j = Axis(names[0], rows), Axis(names[1], 5)
    x, y = Buffer(names[2], F32, (rows, 5)), Buffer(names[3], F32, (rows, 5))
    v = load(x, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (j,), v)))
    value = apply("div", e, Reduce("sum", (j,), e))
    return Kernel((i, j), (x, y), (store(y, i, j, value=value),))


def test_equal_nodes_are_one_object():
    assert softmax() is softmax()
    assert softmax() is not softmax(rows=7)
    i = Axis("i", 4)
    x = Buffer("x", F32, (4,))
    assert load(x, i) is load(x, i)
    assert Iota(i) is not Iota(i, dtypes.int32)


@pytest.mark.parametrize(
    ("a", "b"),
    [(0.0, -0.0), (1.0, 2.0), (np.nan, 1.0)],
)
def test_constants_differ_by_bits(a, b):
    assert const(a, F32) is const(a, F32)
    assert const(a, F32) is not const(b, F32)


def test_constants_differ_by_dtype():
    one = [const(1, d) for d in (F32, dtypes.float64, dtypes.int32, I64, BOOL)]
    assert len(set(one)) == len(one)
    assert const(300, dtypes.float16).value == 300
    assert const(0.1, F32).value == float(np.float32(0.1))


def test_nodes_die_with_their_users():
    from treadle.kernel import ir

    gc.collect()
    before = len(ir._nodes)
    kernel = softmax(names="pqrs")
    assert len(ir._nodes) > before
    del kernel
    gc.collect()
    assert len(ir._nodes) <= before


def test_building_from_several_threads_gives_one_node():
    found = []

    def work():
        found.extend(softmax(rows=n) for n in range(2, 40))

    several = [threading.Thread(target=work) for _ in range(4)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert len({id(k) for k in found}) == 38


def test_free_axes_and_dtypes():
    i, j = Axis("i", 3), Axis("j", 4)
    x = Buffer("x", F32, (3, 4))
    v = load(x, i, j)
    assert v.axes == {i, j} and v.dtype is F32
    assert Reduce("sum", (j,), v).axes == {i}
    assert Reduce("argmax", (j,), v).dtype is I64
    assert apply("lt", v, v).dtype is BOOL
    assert cast(v, I64).dtype is I64 and cast(v, F32) is v
    assert Extent(B).axes == frozenset()


def test_affine_indices_are_normal():
    i, j = Axis("i", 3), Axis("j", 4)
    assert affine([(j, 2), (i, 1), (j, -2)], 5) is Affine(((i, 1),), 5)
    assert affine([(i, 1), (i, B)]).coefficient(i) == B + 1
    assert as_index(i) is Affine(((i, 1),))
    assert as_index(B) is Affine((), B)
    with pytest.raises(TypeError, match="not an index"):
        as_index("i")


def test_symbols_in_order_of_appearance():
    c = SymbolicDim.symbol("C")
    i = Axis("i", c * 2)
    x, out = Buffer("x", F32, (B, c)), Buffer("out", F32, (c * 2,))
    value = apply("mul", load(x, 0, i), cast(Extent(SymbolicDim.symbol("A")), F32))
    kernel = Kernel((i,), (x, out), (store(out, i, value=value),))
    assert kernel.symbols == ("C", "B", "A")
    assert kernel.inputs == (x,) and kernel.outputs == (out,)


def test_postorder_of_a_deep_chain():
    value = load(Buffer("x", F32, ()))
    for _ in range(5000):
        value = apply("neg", value)
    order = postorder([value])
    assert len(order) == 5001 and order[-1] is value
    out = Buffer("out", F32, ())
    kernel = Kernel((), (Buffer("x", F32, ()), out), (store(out, value=value),))
    verify(kernel)
    assert len(kernel_text(kernel).splitlines()) < 5000
    assert kernel_hash(kernel) == kernel_hash(kernel)


def test_text():
    assert kernel_text(softmax()) == (
        "kernel(x: f32[B, 5], y: f32[B, 5]) for i<B, j<5 {\n"
        "  v0: f32 = x[i, j]\n"
        "  v1: f32 = max[j](v0)\n"
        "  v2: f32 = exp((v0 - v1))\n"
        "  v3: f32 = sum[j](v2)\n"
        "  y[i, j] = (v2 / v3)\n"
        "}"
    )


def test_hash_ignores_names_only():
    assert kernel_hash(softmax()) == kernel_hash(softmax(names="abcd"))
    assert kernel_hash(softmax()) == kernel_hash(softmax(rows=SymbolicDim.symbol("N")))
    assert kernel_hash(softmax()) != kernel_hash(softmax(rows=6))


def test_result_dtypes():
    assert result_dtype("select", (BOOL, F32, F32)) is F32
    for fn, operands, message in [
        ("add", (F32,), "takes 2 operands"),
        ("add", (F32, I64), "needs equal dtypes"),
        ("exp", (I64,), "not defined on"),
        ("select", (F32, F32, F32), "bool condition"),
        ("and", (F32, F32), "not defined on"),
    ]:
        with pytest.raises(TypeError, match=message):
            result_dtype(fn, operands)


@pytest.mark.parametrize("fn", [f for f in FUNCTIONS if f != "cast"])
def test_references_keep_dtypes(fn):
    function = FUNCTIONS[fn]
    for dtype in (F32, dtypes.float64, dtypes.int32, dtypes.uint8, BOOL):
        if dtype.kind in function.kinds:
            operands = [np.ones(3, dtype.np_dtype)] * function.arity
            types = [dtype] * function.arity
            if fn == "select":
                operands[0], types[0] = np.ones(3, bool), BOOL
            with np.errstate(all="ignore"):
                result = np.asarray(function.reference(*operands))
            assert result.dtype == result_dtype(fn, tuple(types)).np_dtype, dtype


def bad_kernels():
    i, j = Axis("i", 3), Axis("j", 4)
    x, out = Buffer("x", F32, (3,)), Buffer("out", F32, (3,))
    other = Buffer("other", F32, (3,))
    ok = store(out, i, value=load(x, i))
    v = load(x, i)
    flags = load(Buffer("flags", BOOL, (3,)), i)

    def one(value, buffer=out, axes=(i,), buffers=(x, out)):
        return Kernel(axes, buffers, (store(buffer, i, value=value),))

    yield "computes nothing", Kernel((i,), (x, out), ())
    yield "two axis parameters", Kernel((i, Axis("i", 9)), (x, out), (ok,))
    yield "two buffer parameters", Kernel((i,), (x, out, Buffer("x", I64, ())), (ok,))
    yield "no axis of the kernel", Kernel((j,), (x, out), (ok,))
    yield "no parameter", one(load(other, i))
    yield "which is no parameter", Kernel((i,), (x,), (ok,))
    yield "2 indices for rank 1", one(Load(x, (as_index(i), as_index(0))))
    yield "stores int64 into float32", one(Iota(i))
    yield (
        "varies along j",
        Kernel((i, j), (x, out), (store(out, i, value=apply("mul", v, cast(Iota(j), F32))),)),
    )
    yield "unknown reduction", one(Reduce("mean", (i,), v))
    yield "reduce over axes of the kernel", one(Reduce("sum", (j,), v))
    yield "must be bool", one(cast(Reduce("any", (i,), v), F32))
    yield (
        "cast bool to a number",
        one(cast(Reduce("sum", (i,), flags), F32), buffers=(x, out, Buffer("flags", BOOL, (3,)))),
    )
    yield "gives an integer", one(Reduce("argmax", (i,), v, F32))
    yield "only a cast names its dtype", one(Apply("neg", (v,), F32))
    yield "is indexed by float32", one(Load(x, (v,)))
    yield "mask of", one(Load(x, (as_index(i),), v, const(0, F32)))
    yield "a place that is no integer", Kernel((i,), (x, out), (Store(out, (v,), v),))
    yield "one axis", Kernel((i, j), (x, out), (ok,), segmented=True)
    yield (
        "no reductions",
        Kernel((i,), (x, out), (store(out, i, value=Reduce("sum", (i,), v)),), segmented=True),
    )


@pytest.mark.parametrize(("message", "kernel"), list(bad_kernels()), ids=lambda v: str(v)[:20])
def test_verifier_names_the_fault(message, kernel):
    with pytest.raises(KernelError, match=message):
        verify(kernel)


def test_verifier_accepts_good_kernels():
    verify(softmax())


def running(op="add", exclusive=False, reverse=False, dtype=F32):
    i, j = Axis("i", 4), Axis("j", B)
    x, y = Buffer("x", dtype, (4, B)), Buffer("y", dtype, (4, B))
    value = Scan(op, j, load(x, i, j), exclusive, reverse)
    return Kernel((i, j), (x, y), (store(y, i, j, value=value),))


def test_text_and_hash_of_scans():
    assert "scan add[j](x[i, j])" in kernel_text(running())
    assert "scan max exclusive reverse[j](x[i, j])" in kernel_text(running("max", True, True))
    variants = [running(o, e, r) for o in ("add", "mul") for e in (0, 1) for r in (0, 1)]
    assert len({kernel_hash(k) for k in variants}) == len(variants)


def test_a_scan_has_its_axis():
    i, j = Axis("i", 4), Axis("j", 5)
    x = Buffer("x", F32, (4,))
    assert Scan("add", j, load(x, i)).axes == {i, j}


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (running("sub"), "unknown scan 'sub'"),
        (running("max", dtype=BOOL), "cast bool"),
        (running(dtype=dtypes.complex64), "by their parts"),
    ],
)
def test_scans_that_mean_nothing(kernel, message):
    with pytest.raises(KernelError, match=message):
        verify(kernel)
