"""The library's routines against the ops' NumPy implementations."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

import treadle
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node
from treadle.ops.loading import load_all_ops
from treadle.ops.registry import OPS, infer_outputs
from treadle.runtime.cpu import library, library_code
from treadle.runtime.cpu.library_text import TABLE
from treadle.runtime.cpu.target import host

PHASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ROUTINE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
GUARD = 64  # bytes before and after what a routine may write
load_all_ops()


def node_of(op_name: str, specs: list[TensorSpec], attrs: dict[str, object]) -> Node:
    op, graph = OPS[op_name], Graph("f")
    inputs = [graph.add_param(s) for s in specs]
    return graph.append(Node(op, inputs, attrs, infer_outputs(op, specs, attrs)))


def pool_of(workers: int) -> Callable[..., None]:
    """A stand-in for the pool that runs the threads' shares one after another, last first."""

    def parallel(phase: int, record: int, most: int, call: int | None) -> None:
        parts = min(workers, most)
        for worker in reversed(range(parts)):
            PHASE(phase)(record, worker, parts)

    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    return ctypes.CFUNCTYPE(None, *kinds)(parallel)


def guarded(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Aligned memory of `size` bytes full of NaNs, and the guards around it."""
    whole = np.full(size + 2 * GUARD + 64, 0xFF, np.uint8)
    start = -whole.ctypes.data % 64 + GUARD
    return whole[start : start + size], np.delete(whole, np.s_[start : start + size])


def call(
    node: Node, inputs: list[np.ndarray], workers: int = 1, env: dict = {}, limit: int = 0
) -> np.ndarray:
    """What the routine gives on `workers` threads, of which `limit` have workspace."""
    limit = limit or workers
    routine = library.routine_for(node)
    assert routine is not None
    known = lambda d: d if isinstance(d, int) else d.evaluate(env)
    spec = node.outputs[0].spec
    shape = tuple(known(d) for d in spec.dims)
    dtype = spec.dtype.np_dtype
    out, out_guards = guarded(int(np.prod(shape)) * dtype.itemsize)
    space, space_guards = guarded(known(routine.workspace(limit)))
    table = (ctypes.c_int64 * len(TABLE)).from_buffer_copy(library_code._table(limit, True, host()))
    parallel = pool_of(workers)
    table[TABLE.index("limit")] = limit
    table[TABLE.index("parallel")] = ctypes.cast(parallel, ctypes.c_void_p).value
    pointers = [*(a.ctypes.data for a in inputs), out.ctypes.data, 0, 0]
    operands = (ctypes.c_void_p * len(pointers))(*pointers)
    numbers = (ctypes.c_int64 * len(routine.numbers))(*map(known, routine.numbers))
    ROUTINE(library_code.routine_address(routine.symbol))(
        ctypes.addressof(table), ctypes.addressof(operands), ctypes.addressof(numbers),
        space.ctypes.data,
    )  # fmt: skip
    assert (out_guards == 0xFF).all(), "wrote outside the result"
    assert (space_guards == 0xFF).all(), "wrote outside the workspace"
    return out.view(dtype).reshape(shape).copy()


def check(
    node: Node, shapes: list[tuple[int, ...]], env: dict = {}, tolerance: float | None = None
) -> None:
    """The routine agrees with NumPy on numbers of twice the precision, and bit by bit with itself
    for any number of threads."""
    rng = np.random.default_rng(0)
    dtype = node.outputs[0].spec.dtype.np_dtype
    inputs = [rng.standard_normal(s).astype(dtype) for s in shapes]
    attrs = dict(node.attrs)
    exact = dtype if dtype.kind in "iu" else np.float64
    expected = node.op.eager(*(x.astype(exact) for x in inputs), **attrs)
    result = call(node, inputs, 1, env)
    scale = np.abs(expected).max(initial=1)
    relative = tolerance or (1e-5 if dtype == np.float32 else 1e-13)
    wide = [x.astype(np.float64) for x in (result, expected)]
    np.testing.assert_allclose(*wide, rtol=0, atol=relative * float(scale))
    for workers in (2, 3, 7):
        assert call(node, inputs, workers, env).tobytes() == result.tobytes()


def matmul_node(a: tuple, b: tuple, ta: bool, tb: bool, dtype: str = "float32") -> Node:
    attrs = {"transpose_a": ta, "transpose_b": tb}
    return node_of("matmul", [TensorSpec(a, dtype), TensorSpec(b, dtype)], attrs)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(50, 100, 784), (784, 100, 50), (1, 1, 1), (3, 5, 0), (0, 4, 3), (4, 0, 3), (1, 700, 900),
     (700, 1, 900), (333, 127, 65), (17, 1000, 200)],
)  # fmt: skip
def test_matmul(m: int, n: int, k: int, ta: bool, tb: bool, dtype: str) -> None:
    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
    check(matmul_node(a, b, ta, tb, dtype), [a, b])


@pytest.mark.parametrize(
    ("a", "b", "ta", "tb"),
    [
        ((3, 4, 20, 30), (3, 4, 30, 10), False, False),
        ((2, 20, 30), (2, 10, 30), False, True),
        ((20, 70, 60), (60, 50), False, False),
        ((20, 70, 60), (1, 60, 50), False, False),
        ((20, 60, 70), (60, 50), True, False),
        ((1, 70, 60), (5, 60, 50), False, False),
        ((300, 9, 7), (300, 7, 11), False, False),
        ((40, 90, 90), (40, 90, 90), True, True),
        ((0, 3, 4), (0, 4, 5), False, False),
    ],
)
def test_matmul_of_batches(a: tuple, b: tuple, ta: bool, tb: bool) -> None:
    check(matmul_node(a, b, ta, tb), [a, b])


def test_matmul_of_symbolic_sizes() -> None:
    n = SymbolicDim.symbol("B")
    node = matmul_node((n, 64), (64, 10), False, False)
    for rows in (0, 1, 7, 300):
        check(node, [(rows, 64), (64, 10)], {"B": rows})


@pytest.mark.parametrize(
    "node",
    [
        matmul_node((2, 2), (2, 2), False, False, "float16"),
        matmul_node((2, 2), (2, 2), False, False, "complex64"),
        matmul_node((2, 1, 3, 4), (1, 5, 4, 3), False, False),
    ],
)
def test_what_no_routine_computes(node: Node) -> None:
    assert library.routine_for(node) is None


CASES = [
    # image (n, h, w, c), filter (kh, kw, o), strides, padding, dilations
    ((3, 8, 8, 1), (3, 3, 8), (1, 1), "SAME", (1, 1)),
    ((2, 28, 28, 1), (5, 5, 32), (1, 1), "SAME", (1, 1)),
    ((3, 14, 14, 32), (5, 5, 64), (1, 1), "SAME", (1, 1)),
    ((2, 9, 7, 3), (3, 2, 4), (2, 1), "SAME", (1, 1)),
    ((2, 9, 7, 3), (3, 2, 4), (1, 3), "VALID", (1, 1)),
    ((2, 11, 12, 3), (3, 3, 5), (1, 1), "SAME", (2, 3)),
    ((2, 11, 12, 3), (3, 3, 5), (1, 1), "VALID", (4, 2)),
    ((2, 6, 5, 4), (4, 4, 3), (2, 2), ((3, 1), (0, 5)), (1, 1)),
    ((2, 6, 5, 7), (1, 1, 9), (1, 1), "SAME", (1, 1)),
    ((2, 6, 5, 7), (1, 1, 9), (2, 2), "VALID", (1, 1)),
    ((1, 3, 3, 2), (3, 3, 2), (1, 1), "VALID", (1, 1)),
    ((0, 5, 5, 2), (3, 3, 2), (1, 1), "SAME", (1, 1)),
    ((1, 120, 130, 16), (3, 3, 8), (1, 1), "SAME", (1, 1)),
    # ... input gradients of few channels
    ((2, 14, 13, 2), (3, 4, 50), (1, 1), "SAME", (1, 1)),
    ((2, 14, 13, 4), (3, 3, 70), (2, 1), "VALID", (1, 2)),
    # ... and groups
    ((2, 11, 9, 6), (3, 3, 80), (1, 2), "SAME", (2, 1), 2),
    ((2, 7, 6, 6), (3, 2, 9), (1, 1), "SAME", (1, 1), 3),
    ((2, 9, 8, 6), (3, 3, 4), (2, 2), "SAME", (1, 1), 2),
    ((2, 9, 8, 40), (3, 3, 80), (1, 1), "VALID", (2, 1), 2),
    ((2, 9, 8, 64), (3, 3, 64), (1, 1), "SAME", (1, 1), 16),
    ((2, 9, 8, 4), (1, 1, 8), (1, 1), "SAME", (1, 1), 2),
    ((3, 9, 8, 5), (3, 2, 15), (1, 2), "SAME", (2, 1), 5),
]


def convolution_nodes(case: tuple, dtype: str) -> list[tuple[Node, list[tuple[int, ...]]]]:
    """The three convolution ops on one geometry."""
    image, (kh, kw, o), strides, padding, dilations, *groups = case
    filters = (kh, kw, image[3] // (groups or [1])[0], o)
    attrs = {"strides": strides, "padding": padding, "dilations": dilations}
    x, f = TensorSpec(image, dtype), TensorSpec(filters, dtype)
    forward = node_of("conv2d", [x, f], attrs)
    y = forward.outputs[0].spec
    to_input = node_of("conv2d_backprop_input", [f, y], {"image": image[1:], **attrs})
    to_filter = node_of("conv2d_backprop_filter", [x, y], {"filters": filters, **attrs})
    return [
        (forward, [image, filters]),
        (to_input, [filters, y.dims]),
        (to_filter, [image, y.dims]),
    ]


@pytest.mark.parametrize("which", range(3), ids=["forward", "input", "filter"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution(case: tuple, which: int) -> None:
    check(*convolution_nodes(case, "float32")[which])


@pytest.mark.parametrize("which", range(3), ids=["forward", "input", "filter"])
@pytest.mark.parametrize("case", [CASES[1], CASES[3]], ids=str)
def test_convolution_in_float64(case: tuple, which: int) -> None:
    check(*convolution_nodes(case, "float64")[which])


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_convolution_of_a_symbolic_batch(batch: int) -> None:
    n = SymbolicDim.symbol("B")
    for node, shapes in convolution_nodes(
        ((n, 8, 8, 3), (3, 3, 4), (1, 1), "SAME", (1, 1)), "float32"
    ):
        known = [tuple(batch if d == n else d for d in s) for s in shapes]
        check(node, known, {"B": batch})


def test_threads_without_workspace_stay_out() -> None:
    for node, shapes in convolution_nodes(CASES[3], "float32"):
        inputs = [np.ones(s, np.float32) for s in shapes]
        expected = call(node, inputs)
        assert call(node, inputs, workers=5, limit=2).tobytes() == expected.tobytes()


def test_the_pool_of_the_process_gives_the_same_bits() -> None:
    x = np.random.default_rng(0).standard_normal((8, 14, 14, 3)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((5, 5, 3, 8)).astype(np.float32)
    run = treadle.function(lambda a, b: treadle.nn.conv2d(a, b, 1, "SAME"), autograph=False)
    node = node_of("conv2d", [TensorSpec(x.shape), TensorSpec(w.shape)], {
        "strides": (1, 1), "padding": "SAME", "dilations": (1, 1)})  # fmt: skip
    expected = call(node, [x, w])
    for _ in range(20):
        assert run(x, w).numpy().tobytes() == expected.tobytes()
