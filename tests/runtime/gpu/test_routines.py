"""Routines of the library for GPUs, with NumPy for CuPy, against the ops' own results."""

import ctypes
import functools
import itertools
import math
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import products
from tests.runtime.gpu.on_processor import GPU, NONE, Kernels, size
from treadle.core import dtypes
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node, Value
from treadle.graph.passes.products import prepare_products
from treadle.kernel.ir import Kernel
from treadle.ops.image.convolution import CONV2D, CONV2D_FILTER, CONV2D_INPUT
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.registry import Op
from treadle.runtime.cpu.target import host
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.cublas import Cublas
from treadle.runtime.gpu.kernels import KernelCode
from treadle.runtime.gpu.product import Product
from treadle.runtime.gpu.routines import prepare_together, routine_for
from treadle.runtime.gpu.routines.kernel import KernelRoutine
from treadle.runtime.gpu.routines.routine import address_of, size_of
from treadle.runtime.passes.narrow_products import narrow_products
from treadle.runtime.schedule.facts import Facts

RNG = np.random.default_rng(0)
FLOATS = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


class Processor:
    """A driver whose device is the processor, as far as routines need one.

    Attributes:
        launches: what it was asked to compute.
    """

    gpu = GPU
    library = np

    def __init__(
        self, multiply: Callable[[Product], None] = products.product, kernels: Kernels | None = None
    ) -> None:
        self.multiply, self.kernels = multiply, kernels
        self.launches = 0

    def computing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def load(self, codes: Sequence[KernelCode]) -> list[list[Any]]:
        assert self.kernels is not None
        return [[(kernel_of(self.kernels, c), n) for n in range(len(c.stages))] for c in codes]

    def launch(
        self, function: Any, blocks: int, threads: int, shared: int, parameters: int
    ) -> None:
        """All stages run with the first one."""
        assert self.kernels is not None
        kernel, number = function
        code = self.kernels.codes[kernel, NONE]
        stage = code.stages[number]
        count = len(kernel.buffers) + len(kernel.symbols) + (code.scratch != 0)
        each = (ctypes.c_void_p * count).from_address(parameters)
        given = [ctypes.c_int64.from_address(each[n]).value for n in range(count)]  # type: ignore[arg-type]
        symbols = dict(zip(kernel.symbols, given[len(kernel.buffers) :], strict=False))
        assert (threads, shared) == (stage.threads, stage.shared)
        assert blocks == size(stage.blocks, symbols)
        self.launches += 1
        if number:
            return
        arrays = {}
        for buffer, address in zip(kernel.buffers, given, strict=False):
            shape = tuple(size(d, symbols) for d in buffer.shape)
            steps = np.empty(shape, np.uint8).strides
            arrays[buffer] = products.strided(address, buffer.dtype.np_dtype, shape, steps)
        for buffer, found in self.kernels.run(kernel, arrays, symbols).items():
            arrays[buffer][...] = found

    def product(self, product: Product) -> None:
        self.launches += 1
        self.multiply(product)

    def clear(self, address: int, size: int) -> None:
        ctypes.memset(address, 0, size)


def kernel_of(kernels: Kernels, code: KernelCode) -> Kernel:
    """The kernel of a text, which has another name there."""
    for kernel, other in kernels.distinct.values():
        if code.text.replace(code.name, "k") == other.text.replace(other.name, "k"):
            return kernel
    raise AssertionError("the kernel is none of those that were compiled")


def node_of(op: Op, specs: Sequence[TensorSpec], attrs: Mapping[str, Any]) -> Node:
    inputs = [Value(spec, None, n) for n, spec in enumerate(specs)]
    out = op.infer(*specs, **attrs)
    outs = out if isinstance(out, tuple) else (out,)
    return Node(op, inputs, dict(attrs), list(outs), (), None)


def numbers(shape: Sequence[int], dtype: str) -> Any:
    kind = dtypes.as_dtype(dtype)
    found = RNG.standard_normal(shape)
    if kind.is_complex:
        found = found + 1j * RNG.standard_normal(shape)
    elif kind.is_integer:
        found = RNG.integers(0 if kind.is_unsigned else -100, 100, shape)
    return np.asarray(found).astype(kind.np_dtype)


def device(array: Any) -> Any:
    """An array as routines get it: bfloat16 is uint16 there."""
    return array.view(np.uint16) if array.dtype == dtypes.bfloat16.np_dtype else array


def opened_node(
    op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any], opened: Sequence[Sequence[int]] = ()
) -> tuple[Node, dict[str, int]]:
    """A node, and the values of its symbols.

    Args:
        opened: (operand, axis) of dims that are symbols, those of one size the same one.
    """
    sizes: dict[str, int] = {}
    specs = []
    for number, array in enumerate(arrays):
        dims: list[Any] = list(array.shape)
        for axis in [axis for operand, axis in opened if operand == number]:
            name = f"d{dims[axis]}"
            sizes[name] = dims[axis]
            dims[axis] = SymbolicDim.symbol(name)
        specs.append(TensorSpec(tuple(dims), dtypes.as_dtype(array.dtype)))
    return node_of(op, specs, attrs), sizes


def computed(
    op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any], opened: Sequence[Sequence[int]] = (),
    driver: Processor | None = None, views: Sequence[View] = (), bases: Sequence[Any] = (),
) -> list[Any]:  # fmt: skip
    """What the routine of an op gives.

    Args:
        views: how the operands lie in `bases`.
    """
    node, sizes = opened_node(op, arrays, attrs, opened)
    routine = routine_for(node, views, GPU)
    assert routine is not None
    outs = []
    for value in node.outputs:
        shape = [sizes[str(d)] if isinstance(d, SymbolicDim) else d for d in value.spec.dims]
        outs.append(np.full(shape, 77).astype(value.spec.dtype.np_dtype))
    given = [device(a) for a in bases or arrays]
    driver = driver or Processor()
    routine.prepare(driver)  # type: ignore[arg-type]
    space = np.empty(size_of(routine.workspace, sizes), np.uint8)
    routine(driver, given, [device(o) for o in outs], address_of(space), sizes)  # type: ignore[arg-type]
    return outs


def close(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    tolerance = TOLERANCE.get(dtypes.as_dtype(found.dtype).name, 1e-12)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), tolerance, 10 * tolerance)


# -- products of matrices --------------------------------------------------------------------------

HERE = Path(__file__).parent
SHAPES = [
    ((5, 7), (7, 3)),
    ((1, 7), (7, 1)),
    ((5, 1), (1, 3)),
    ((4, 5, 7), (4, 7, 3)),
    ((4, 5, 7), (7, 3)),
    ((2, 4, 5, 7), (7, 3)),
    ((5, 7), (4, 7, 3)),
    ((2, 4, 5, 7), (2, 4, 7, 3)),
    ((2, 1, 5, 7), (1, 6, 7, 3)),
    ((2, 1, 3, 5, 7), (2, 4, 3, 7, 3)),
]
EMPTY = [((5, 0), (0, 3)), ((2, 5, 0), (2, 0, 3)), ((0, 7), (7, 3)), ((0, 5, 7), (7, 3))]


@functools.cache
def fake_cublas() -> ctypes.CDLL:
    """A library that judges the calls of cuBLAS and computes them."""
    path = Path(tempfile.mkdtemp()) / "cublas.so"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", str(path)]
    subprocess.run([*command, str(HERE / "cublas.cpp")], check=True)
    return ctypes.CDLL(str(path))


def multiply(by: str) -> Callable[[Product], None]:
    if by == "numpy":
        return products.product
    return Cublas(fake_cublas(), stream=5, workspace=4096, size=1 << 20).product


def turned(shape: tuple[int, ...], turn: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turn else shape


def wanted_of(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    assert op.eager is not None
    return op.eager(*arrays, **attrs)


@pytest.mark.parametrize("by", ["numpy", "cublas"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_products(dtype: str, by: str) -> None:
    shapes = SHAPES + EMPTY if dtype == "float32" else [*SHAPES[::3], EMPTY[0]]
    driver = Processor(multiply(by))
    for (left, right), ta, tb in itertools.product(shapes, (False, True), (False, True)):
        arrays = [numbers(turned(left, ta), dtype), numbers(turned(right, tb), dtype)]
        attrs = {"transpose_a": ta, "transpose_b": tb}
        (found,) = computed(MATMUL, arrays, attrs, driver=driver)
        close(found, wanted_of(MATMUL, arrays, attrs))


def test_rows_of_a_batch_are_one_product() -> None:
    x, w = numbers((2, 4, 5, 7), "float32"), numbers((7, 3), "float32")
    driver = Processor()
    computed(MATMUL, [x, w], {"transpose_a": False, "transpose_b": False}, driver=driver)
    assert driver.launches == 1


def test_a_broadcast_of_two_kinds_is_as_many_products_as_the_shorter_axis_is_long() -> None:
    x, w = numbers((2, 1, 5, 7), "float32"), numbers((1, 6, 7, 3), "float32")
    driver = Processor()
    attrs = {"transpose_a": False, "transpose_b": False}
    computed(MATMUL, [x, w], attrs, driver=driver)
    specs = [TensorSpec(a.shape, dtypes.float32) for a in (x, w)]
    routine = routine_for(node_of(MATMUL, specs, attrs))
    assert routine is not None and routine.launches == driver.launches == 2


@pytest.mark.parametrize("opened", [[(0, 0)], [(0, 0), (0, 1)], [(0, 2), (1, 1)]])
def test_products_of_open_sizes(opened: Sequence[Sequence[int]]) -> None:
    for left, right in [((4, 5, 7), (3, 7)), ((4, 5, 7), (4, 3, 7))]:
        own = [(o, a) for o, a in opened if a < (len(left), len(right))[o]]
        if len(right) == 3:
            own += [(1, 0)] if (0, 0) in own else []
        arrays = [numbers(left, "float32"), numbers(right, "float32")]
        attrs = {"transpose_a": False, "transpose_b": True}
        (found,) = computed(MATMUL, arrays, attrs, own)
        close(found, wanted_of(MATMUL, arrays, attrs))


@pytest.mark.parametrize("by", ["numpy", "cublas"])
def test_products_of_views(by: str) -> None:
    """Heads of attention: parts of rows, with axes exchanged, and slices of rows and columns."""
    base, other = numbers((2, 6, 4, 8), "float32"), numbers((2, 6, 4, 8), "float32")
    cases: list[tuple[Any, Any]] = [
        (base.transpose(0, 2, 1, 3), other.transpose(0, 2, 3, 1)),
        (base[:, :, 1], other[:, :, 2].swapaxes(1, 2)),
        (base[:, 1:5, 0, 2:7], other[:, 1:6, 0, 1:4]),
        (base[1, 2:3, 0], other[1, 0, :, 1:2].repeat(2, 0)),
    ]
    attrs = {"transpose_a": False, "transpose_b": False}
    for left, right in cases:
        views = [_view(left), _view(right)]
        arrays = [np.array(left), np.array(right)]
        driver = Processor(multiply(by))
        found = computed(MATMUL, arrays, attrs, driver=driver, views=views, bases=[left, right])
        close(found[0], wanted_of(MATMUL, arrays, attrs))


def _view(array: Any) -> View:
    strides = tuple(s // array.itemsize for s in array.strides)
    return View(Value(TensorSpec(array.shape, dtypes.float32), None, 0), 0, strides)


def test_views_whose_rows_overlap_or_lie_apart_are_not_taken() -> None:
    specs = [TensorSpec((5, 7), dtypes.float32), TensorSpec((7, 3), dtypes.float32)]
    node = node_of(MATMUL, specs, {"transpose_a": False, "transpose_b": False})
    plain = View(node.inputs[1], 0, (3, 1))
    for strides in [(1, 1), (0, 1), (14, 2)]:
        assert routine_for(node, [View(node.inputs[0], 0, strides), plain]) is None
    assert routine_for(node, [View(node.inputs[0], 0, (9, 1)), plain]) is not None


def test_factors_are_rounded_where_the_user_allows_it() -> None:
    given: list[Product] = []
    cublas = multiply("cublas")

    def noted(product: Product) -> None:
        given.append(product)
        cublas(product)

    x, driver = numbers((3, 3), "float32"), Processor(noted)
    attrs = {"transpose_a": False, "transpose_b": False}
    assert not td.config.experimental.tensor_float_32_execution_enabled()
    computed(MATMUL, [x, x], attrs, driver=driver)
    td.config.experimental.enable_tensor_float_32_execution(True)
    try:
        assert td.config.experimental.tensor_float_32_execution_enabled()
        computed(MATMUL, [x, x], attrs, driver=driver)
    finally:
        td.config.experimental.enable_tensor_float_32_execution(False)
    assert [p.tensor_float for p in given] == [False, True]


# -- kernels that add up products: convolutions, and matrices of integers --------------------------

Case = tuple[Op, list[Any], dict[str, Any], list[tuple[int, int]]]
# Images, filters, strides, padding, dilations.
CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "same": ((2, 9, 8, 5), (3, 3, 5, 9), (1, 1), "SAME", (1, 1)),
    "strides": ((2, 11, 10, 4), (3, 2, 4, 16), (2, 3), "VALID", (1, 1)),
    "dilations": ((1, 12, 11, 3), (3, 2, 3, 10), (1, 1), ((1, 2), (0, 3)), (2, 3)),
    "strides and padding": ((1, 12, 11, 8), (4, 3, 8, 8), (2, 2), "SAME", (1, 1)),
    "groups": ((2, 8, 7, 6), (3, 3, 3, 20), (1, 1), "SAME", (1, 1)),
    "depthwise": ((2, 9, 8, 12), (3, 3, 1, 12), (1, 1), "SAME", (1, 1)),
    "multiplied": ((2, 9, 8, 5), (3, 3, 1, 10), (2, 2), "SAME", (1, 1)),
    "pointwise strides": ((2, 7, 6, 16), (1, 1, 16, 24), (2, 2), "VALID", (1, 1)),
    "many pixels": ((4, 20, 20, 8), (3, 3, 8, 16), (1, 1), "SAME", (1, 1)),
}
POINTWISE = ((2, 5, 4, 16), (1, 1, 16, 24), (1, 1), "VALID", (1, 1))


def convolutions(setting: Sequence[Any], dtype: str) -> list[Case]:
    """A convolution and its gradients, with as many images as a symbol says."""
    images, filters, *others = setting
    attrs = dict(zip(("strides", "padding", "dilations"), others, strict=True))
    x, f = numbers(images, dtype), numbers(filters, dtype)
    y = numbers(wanted_of(CONV2D, [x, f], attrs).shape, dtype)
    return [
        (CONV2D, [x, f], attrs, [(0, 0)]),
        (CONV2D_INPUT, [f, y], {**attrs, "image": tuple(images[1:])}, [(1, 0)]),
        (CONV2D_FILTER, [x, y], {**attrs, "filters": tuple(filters)}, [(0, 0), (1, 0)]),
    ]


@functools.cache
def kernel_cases() -> dict[str, list[Case]]:
    found = {name: convolutions(c, "float32") for name, c in CONVOLUTIONS.items()}
    for name in ("same", "many pixels"):
        closed = [(*case[:3], []) for case in convolutions(CONVOLUTIONS[name], "float32")]
        found[f"{name}, closed"] = closed
    for dtype in ("float16", "bfloat16", "float64"):
        found[f"same, {dtype}"] = convolutions(CONVOLUTIONS["same"], dtype)
    for dtype in ("int8", "uint16", "int32", "int64"):
        found[f"product of {dtype}"] = [
            (
                MATMUL, [numbers(turned(left, ta), dtype), numbers(turned(right, tb), dtype)],
                {"transpose_a": ta, "transpose_b": tb}, [],
            )
            for (left, right), ta, tb in [
                (((40, 50), (50, 24)), False, True), (((3, 1, 9, 20), (2, 20, 10)), True, False),
                (((5, 7), (7, 3)), False, False), (((5, 0), (0, 3)), False, False),
            ]
        ]  # fmt: skip
    return found


@functools.cache
def compiled_cases() -> Kernels:
    """The kernels of all cases, in one library."""
    found = []
    for op, arrays, attrs, opened in (c for cases in kernel_cases().values() for c in cases):
        routine = routine_for(opened_node(op, arrays, attrs, opened)[0], (), GPU)
        assert isinstance(routine, KernelRoutine)
        found.append(routine.kernel)
    return Kernels(found)


@pytest.mark.parametrize("name", list(kernel_cases()))
def test_kernels_that_add_up_products(name: str) -> None:
    for op, arrays, attrs, opened in kernel_cases()[name]:
        driver = Processor(kernels=compiled_cases())
        (found,) = computed(op, arrays, attrs, opened, driver)
        close(found, wanted_of(op, arrays, attrs))


def test_convolutions_of_single_pixels_are_products_of_matrices() -> None:
    for op, arrays, attrs, opened in convolutions(POINTWISE, "float32"):
        driver = Processor()
        (found,) = computed(op, arrays, attrs, opened, driver)
        close(found, wanted_of(op, arrays, attrs))
        assert driver.launches == 1


def test_few_tiles_are_shared_by_blocks() -> None:
    """A gradient of filters: few results of many products."""
    _, _, (op, arrays, attrs, _) = convolutions(CONVOLUTIONS["many pixels"], "float32")
    routine = routine_for(opened_node(op, arrays, attrs)[0], (), GPU)
    assert isinstance(routine, KernelRoutine)
    first, last = routine.code.stages
    assert routine.launches == 2 and first.blocks > 4 and first.meets and not last.meets
    assert routine.workspace == 4 * math.prod(attrs["filters"]) * first.blocks // 2


def test_routines_are_compiled_together_and_once() -> None:
    loads: list[int] = []

    class Counting(Processor):
        def load(self, codes: Sequence[KernelCode]) -> list[list[Any]]:
            loads.append(len(codes))
            return super().load(codes)

    cases = kernel_cases()["same"]
    made = [routine_for(opened_node(*case)[0], (), GPU) for case in (*cases, cases[0])]
    routines = [r for r in made if r is not None]
    driver = Counting(kernels=compiled_cases())
    prepare_together(driver, routines)  # type: ignore[arg-type]
    routines[0].prepare(driver)  # type: ignore[arg-type]
    assert loads == [3]
    prepare_together(Counting(kernels=compiled_cases()), routines)  # type: ignore[arg-type]
    assert loads == [3, 3]  # another device


class Fits(Facts):
    """Facts of a device with these routines."""

    def routine_bytes(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Dim | None:
        routine = None if apart else routine_for(node, views)
        return None if routine is None else routine.workspace


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_factors_of_16_bits_are_not_converted_before(dtype: str) -> None:
    def both(a: Any, b: Any, x: Any, f: Any) -> Any:
        return td.matmul(a, b), td.nn.conv2d(x, f, 1, "SAME")

    shapes = ((4, 9), (9, 5), (1, 6, 6, 8), (3, 3, 8, 16))
    specs = [td.TensorSpec(shape, dtype) for shape in shapes]
    graph = td.function(both).get_concrete_function(*specs).graph
    prepare_products(graph)
    assert [n.op.name for n in graph.nodes].count("cast") == 6
    narrow_products(graph, Fits(host().tuning))
    assert [n.op.name for n in graph.nodes] == ["matmul", "conv2d"]
