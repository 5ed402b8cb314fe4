"""Products and convolutions whose bias and activation the library of the device does, too."""

import ctypes
import gc
import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import made_up_cudnn, products
from tests.runtime.gpu.made_up_cupy import Cupy
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_cupy_driver import cupy, interpreters  # noqa: F401
from tests.runtime.gpu.test_execution import driver_of, on, program_of
from tests.runtime.gpu.test_routines import fake_cublas
from treadle.core.devices import Device
from treadle.runtime.gpu import cublas_lt, cupy_driver
from treadle.runtime.gpu.cublas import CublasError
from treadle.runtime.gpu.cublas_lt import CublasLt
from treadle.runtime.gpu.finish import Ends, Finish
from treadle.runtime.gpu.product import Factor, Product

RNG = np.random.default_rng(4)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    made_up_cudnn.built.clear()
    made_up_cudnn.refused.clear()
    with recorded_gpu(gpu=replace(GPU, convolves=True)) as device:
        yield device
    made_up_cudnn.refused.clear()


def gelu(x: Any) -> Any:
    return td.nn.gelu(x, approximate=True)


def both(x: Any) -> Any:
    return gelu(x), x


X, W, B = ((4, 8), (8, 16), (16,))
# What a program does, the shapes that it gets, and what the library does of it.
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "bias": (lambda x, w, b: td.matmul(x, w) + b, (X, W, B), "bias"),
    "a bias of a layer": (lambda x, w, b: td.nn.bias_add(td.matmul(x, w), b), (X, W, B), "bias"),
    "bias first": (lambda x, w, b: b + td.matmul(x, w), (X, W, B), "bias"),
    "relu": (lambda x, w: td.nn.relu(td.matmul(x, w)), (X, W), "relu"),
    "gelu": (lambda x, w: gelu(td.matmul(x, w)), (X, W), "gelu"),
    "bias and relu": (lambda x, w, b: td.nn.relu(td.matmul(x, w) + b), (X, W, B), "bias, relu"),
    "bias and gelu": (lambda x, w, b: gelu(td.matmul(x, w) + b), (X, W, B), "bias, gelu"),
    "a row of numbers": (lambda x, w, b: td.matmul(x, w) + b, (X, W, (1, 16)), "bias"),
    "one row": (lambda x, w, b: td.nn.relu(td.matmul(x, w) + b), ((1, 8), W, B), "bias, relu"),
    "a kept operand": (
        lambda x, w, b: both(td.matmul(x, w) + b), (X, W, B), "bias, gelu, which keeps its operand",
    ),
    "turned factors": (
        lambda x, w, b: td.nn.relu(td.matmul(x, w, True, True) + b), ((8, 4), (16, 8), B),
        "bias, relu",
    ),
    "a batch": (
        lambda x, w, b: td.nn.relu(td.matmul(x, w) + b), ((3, 4, 8), (3, 8, 16), B), "bias, relu",
    ),
    "rows of a batch": (
        lambda x, w, b: td.nn.relu(td.matmul(x, w) + b), ((3, 4, 8), W, B), "bias, relu",
    ),
    "views": (
        lambda x, w, b: td.nn.relu(td.matmul(x[:, 2:], w[:6]) + b), (X, W, B), "bias, relu",
    ),
    "single pixels": (
        lambda x, w, b: td.nn.relu(td.nn.conv2d(x, w, 1, "VALID") + b),
        ((2, 5, 4, 3), (1, 1, 3, 16), B), "bias, relu",
    ),
    "a convolution": (
        lambda x, w, b: td.nn.conv2d(x, w, 1, "SAME") + b, ((2, 5, 4, 3), (3, 3, 3, 16), B), "bias",
    ),
    "a convolution and relu": (
        lambda x, w, b: td.nn.relu(td.nn.conv2d(x, w, 2, "SAME") + b),
        ((2, 5, 4, 3), (3, 3, 3, 16), B), "bias, relu",
    ),
    "a convolution and gelu": (
        lambda x, w: gelu(td.nn.conv2d(x, w, 1, "VALID")), ((2, 5, 4, 3), (3, 3, 3, 16)), "gelu",
    ),
}  # fmt: skip
# What kernels of ours do after a product.
OTHERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "exact gelu": (lambda x, w: td.nn.gelu(td.matmul(x, w)), (X, W)),
    "tanh": (lambda x, w: td.tanh(td.matmul(x, w)), (X, W)),
    "leaky": (lambda x, w: td.nn.leaky_relu(td.matmul(x, w)), (X, W)),
    "not from zero": (lambda x, w: td.maximum(td.matmul(x, w), 0.5), (X, W)),
    "columns": (lambda x, w, b: td.matmul(x, w) + b, (X, W, (4, 1))),
    "a matrix": (lambda x, w, b: td.matmul(x, w) + b, (X, W, (4, 16))),
    "a turned vector": (lambda x, w, b: td.matmul(x, w) + td.reverse(b, [0]), (X, W, B)),
    "a part of a vector": (lambda x, w, b: td.matmul(x, w) + b[1:], (X, W, (17,))),
    "two vectors": (lambda x, w, b: td.matmul(x, w) + b + td.reverse(b, [0]), (X, W, B)),
    "both of relu": (lambda x, w, b: (td.nn.relu(y := td.matmul(x, w) + b), y), (X, W, B)),
    "the product": (lambda x, w, b: (td.nn.relu(y := td.matmul(x, w)), y), (X, W, B)),
    "twice": (lambda x, w, b: td.nn.relu((y := td.matmul(x, w)) + b) * y, (X, W, B)),
    "another dtype": (lambda x, w: td.cast(td.nn.relu(td.matmul(x, w)), td.float64), (X, W)),
    "integers": (
        lambda x, w: td.nn.relu(td.matmul(td.cast(x, td.int32), td.cast(w, td.int32))), (X, W),
    ),
    "a convolution with its operand": (
        lambda x, w, b: both(td.nn.conv2d(x, w, 1, "SAME") + b), ((2, 5, 4, 3), (3, 3, 3, 16), B),
    ),
}  # fmt: skip


def given(shapes: Any, dtype: Any = "float32") -> list[Any]:
    arrays = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    return [td.cast(a, dtype).numpy() for a in arrays]


def compared(gpu: Device, program: Any, arrays: list[Any], tolerance: float = 2e-5) -> Any:
    """The function, and its tensors, after a call that gave what the processor gives."""
    function, tensors = td.function(program), [on(gpu, a) for a in arrays]
    wanted = td.nest.flatten(td.function(program)(*map(td.constant, arrays)))
    for a, b in zip(td.nest.flatten(function(*tensors)), wanted, strict=True):
        x, y = (z.numpy().astype(np.float64) for z in (a, b))
        np.testing.assert_allclose(x, y, tolerance, tolerance * (1 + np.abs(y).max()))
    return function, tensors


SOME = ["bias and relu", "a kept operand", "a convolution and gelu"]
_ALL = [(name, "float32") for name in PROGRAMS]


@pytest.mark.parametrize(
    ("name", "dtype"), [*_ALL, *itertools.product(SOME, ["float16", "bfloat16"])]
)
def test_the_library_finishes(gpu: Device, name: str, dtype: str) -> None:
    program, shapes, what = PROGRAMS[name]
    function, tensors = compared(
        gpu, program, given(shapes, dtype), 2e-5 if dtype == "float32" else 2e-2
    )
    (found,) = program_of(function, *tensors).finishes.values()
    assert str(found.finish) == what
    counts = driver_of(gpu).counts
    assert counts["finished products"] + counts["convolutions"] == 1 and not counts["products"]
    assert counts["launches"] == counts["convolutions"]  # filters are turned for them


@pytest.mark.parametrize("name", OTHERS)
def test_kernels_of_ours_finish(gpu: Device, name: str) -> None:
    program, shapes = OTHERS[name]
    arrays = [np.round(a * 3) for a in given(shapes)] if name == "integers" else given(shapes)
    function, tensors = compared(gpu, program, arrays)
    assert not program_of(function, *tensors).finishes
    assert not driver_of(gpu).counts["finished products"] and driver_of(gpu).counts["launches"]


@pytest.mark.parametrize("name", SOME)
def test_where_the_library_does_not_our_kernel_follows(gpu: Device, name: str) -> None:
    driver = driver_of(gpu)
    driver.finishes = False
    made_up_cudnn.refused.update(["relu", "bias", "gelu"])
    program, shapes, _ = PROGRAMS[name]
    compared(gpu, program, given(shapes))
    assert driver.counts["products"] + driver.counts["convolutions"] == 1
    assert driver.counts["launches"] == 1 + driver.counts["convolutions"]


def test_float64(gpu: Device) -> None:
    x, w, b = (np.float64(a) for a in given((X, W, B)))
    compared(gpu, lambda x, w, b: td.nn.relu(td.matmul(x, w) + b), [x, w, b], 1e-14)
    assert driver_of(gpu).counts["finished products"] == 1


def test_sizes_that_are_open_and_products_of_nothing(gpu: Device) -> None:
    w, b = given((W, B))
    signature = [td.TensorSpec([None, 8])]
    tensors = [on(gpu, a) for a in (w, b)]
    function = td.function(
        lambda x: td.nn.relu(td.matmul(x, tensors[0]) + tensors[1]), input_signature=signature
    )
    for rows in (3, 0, 5):
        x = RNG.standard_normal((rows, 8)).astype(np.float32)
        found = function(on(gpu, x)).numpy()
        np.testing.assert_allclose(found, np.maximum(x @ w + b, 0), 1e-5, 1e-5)
    compared(gpu, PROGRAMS["bias and relu"][0], given(((4, 0), (0, 16), B)))


def test_variables_that_results_are_assigned_to(gpu: Device) -> None:
    x, w, b = given(((8, 8), (8, 8), (8,)))
    with td.device(str(gpu)):
        state, bias = td.Variable(x), td.Variable(b)

    @td.function
    def step(w: Any) -> None:
        state.assign(td.nn.relu(td.matmul(state, w) + bias))

    tensor, wanted = on(gpu, w * 0.3), x
    for _ in range(4):
        step(tensor)
        wanted = np.maximum(wanted @ (w * np.float32(0.3)) + b, 0)
        np.testing.assert_allclose(state.numpy(), wanted, 1e-5, 1e-5)
    assert program_of(step, tensor).is_recorded


def test_training_steps_of_dense_layers(gpu: Device) -> None:
    """Each layer's forward pass is one call; gradients of relu need its results only."""
    x, y = given(((6, 8), (6, 4)))
    layers = td.keras.layers
    losses: list[list[float]] = []
    for device in ("CPU:0", str(gpu)):
        with td.device(device):
            td.keras.utils.set_random_seed(3)
            model = td.keras.Sequential(
                [layers.Dense(16, "relu"), layers.Dense(8, "relu"), layers.Dense(4)]
            )
            model.compile("sgd", "mse")
            losses.append([float(model.train_on_batch(x, y)) for _ in range(5)])
    np.testing.assert_allclose(losses[1], losses[0], 1e-5)
    assert driver_of(gpu).counts["finished products"] >= 3


def test_it_is_shown(gpu: Device) -> None:
    function, tensors = compared(gpu, *[PROGRAMS["bias and relu"][0], given((X, W, B))])
    shown = td.inspect.stages(function, *tensors)
    assert "bias, relu at once, or where the library cannot:" in shown["launches"]
    assert "with kernel" in shown["schedule"] or "\n  with " in shown["schedule"]


# -- cuDNN -----------------------------------------------------------------------------------------


def test_one_graph_of_a_convolution_bias_and_relu(gpu: Device) -> None:
    program, shapes, _ = PROGRAMS["a convolution and relu"]
    compared(gpu, program, given(shapes))
    (graph,) = made_up_cudnn.built
    assert [graph.operation, *graph.follows] == ["conv_fprop", "bias", "relu"]


def test_a_graph_that_no_engine_has_is_said(gpu: Device, caplog: Any) -> None:
    made_up_cudnn.refused.add("relu")
    program, shapes, _ = PROGRAMS["a convolution and relu"]
    function, tensors = compared(gpu, program, given(shapes))
    for _ in range(2):
        function(*tensors)
    (record,) = [r for r in caplog.records if "cuDNN" in r.getMessage()]
    assert "a kernel of treadle finishes Convolution" in record.getMessage()
    assert [g.follows for g in made_up_cudnn.built] == [["bias", "relu"], []]


# -- cuBLASLt --------------------------------------------------------------------------------------

FINISHES = [
    Finish(True), Finish(False, "relu"), Finish(True, "relu"), Finish(False, "gelu"),
    Finish(True, "gelu"), Finish(False, "gelu", True), Finish(True, "gelu", True),
]  # fmt: skip


@pytest.fixture
def library() -> Iterator[CublasLt]:
    """cuBLASLt that judges its calls."""
    found = fake_cublas()
    for name in ("lt_asked", "lt_refuses"):
        ctypes.c_int.in_dll(found, name).value = 0
    yield CublasLt(found, 5, 4096, 1 << 20)
    ctypes.c_int.in_dll(found, "lt_refuses").value = 0


def case(dtype: str, finish: Finish, batch: int = 1, turned: tuple[bool, bool] = (False, False)):
    """Arrays, and a product of them with its ends; the first array is the results'."""
    kind, (m, k, n) = td.as_dtype(dtype), (5, 7, 8)
    shapes = [(batch, m, n), (batch, m, n), (batch, m, k), (batch, k, n), (n,)]
    out, kept, a, b, bias = (td.cast(x, kind).numpy() for x in given(shapes))
    stored = [np.ascontiguousarray(x.swapaxes(1, 2)) if t else x
              for x, t in zip((a, b), turned, strict=True)]  # fmt: skip
    factors = [
        Factor(x.ctypes.data, t, x.shape[2], x.shape[1] * x.shape[2])
        for x, t in zip(stored, turned, strict=True)
    ]
    address = out.ctypes.data
    product = Product(kind, batch, m, n, k, *factors, address, m * n)
    ends = Ends(
        finish, address, bias.ctypes.data * finish.bias, kept.ctypes.data * finish.keeps
    )
    return [out, kept, *stored, bias], product, ends


@pytest.mark.parametrize("finish", FINISHES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_calls_of_the_library(library: CublasLt, dtype: str, finish: Finish) -> None:
    for batch in (1, 3):
        for turned in [(False, False), (True, False), (False, True)]:
            arrays, product, ends = case(dtype, finish, batch, turned)
            products.finished_product(product, ends)
            wanted = [np.float64(x) for x in arrays[:2]]
            for x in arrays[: 1 + finish.keeps]:
                x[...] = 0
            assert library.finished_product(product, ends)
            for x, y in zip(arrays[:2], wanted, strict=True):
                tolerance = 1e-2 if x.itemsize == 2 else 1e-6
                np.testing.assert_allclose(np.float64(x), y, tolerance, 1e-9)


def test_plans_are_kept(library: CublasLt, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, alive = (ctypes.c_int.in_dll(library.library, n) for n in ("lt_asked", "lt_alive"))
    gc.collect()
    before = alive.value
    arrays, product, ends = case("float32", FINISHES[2])
    for _ in range(3):
        library.finished_product(product, ends)
    assert asked.value == 1
    library.finished_product(replace(product, tensor_float=True), ends)
    bias = np.zeros(9, np.float32)[1:]  # at a smaller alignment than the other
    library.finished_product(product, replace(ends, bias=bias.ctypes.data))
    assert asked.value in (2, 3)
    monkeypatch.setattr(cublas_lt, "MOST_PLANS", 2)
    for batch in (2, 3, 4, 5):
        held = case("float32", FINISHES[2], batch)
        library.finished_product(*held[1:])
    assert len(library.plans) <= 4
    library.plans.clear()
    gc.collect()
    assert alive.value == before


def test_what_the_library_cannot_do(library: CublasLt) -> None:
    arrays, product, ends = case("float32", FINISHES[2])
    refuses = ctypes.c_int.in_dll(library.library, "lt_refuses")
    for status in (15, -1):  # "not supported", and no way among those that it knows
        library.plans.clear()
        refuses.value, before = status, arrays[0].copy()
        assert not library.finished_product(product, ends)
        np.testing.assert_array_equal(arrays[0], before)
    library.plans.clear()
    refuses.value = 13
    with pytest.raises(CublasError, match="Heuristic gives status 13"):
        library.finished_product(product, ends)
    refuses.value = 0
    kept = case("float32", FINISHES[-1])
    assert not library.finished_product(replace(kept[1], n=7), kept[2])  # rows of what is kept


def test_the_driver_shares_memory_with_cublas(
    cupy: Cupy, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    found: list[str] = []

    def library(name: str = "cublas") -> Any:
        found.append(name)
        return fake_cublas()

    monkeypatch.setattr(cupy_driver, "cublas_library", library)
    monkeypatch.setattr(cupy_driver, "CUBLAS_WORKSPACE", 1 << 16)
    driver = cupy_driver.CupyDriver(0)
    arrays, product, ends = case("float32", FINISHES[2])
    with driver.active():
        assert driver.finished_product(product, ends)
        driver.product(product)
        assert found == ["cublasLt", "cublas"]
        assert driver.cublas_lt.workspace == driver.cublas_memory.address
        assert driver.cublas_lt.stream == driver.stream.ptr
        assert driver.memory_use()["current"] == 1 << 16


FIND = """
import importlib.metadata, sys
files = [f for d in importlib.metadata.distributions() for f in d.files or ()
         if f.name == "cublasLt.h" or f.name.startswith("libcublasLt.so")]
print("\\n".join(sorted({str(f.locate()) for f in files})))
"""


def installed(suffix: str) -> list[str]:
    """Files of cuBLASLt, of interpreters that have it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    lines = [
        subprocess.run([python, "-c", FIND], capture_output=True, text=True, env=environment).stdout
        for python in interpreters()
    ]
    return [f for text in lines for f in text.split() if suffix in f and Path(f).exists()]


@pytest.mark.parametrize("header", installed(".h"))
def test_the_header_has_what_is_called(header: str) -> None:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", Path(header).read_text(), flags=re.DOTALL)
    kinds = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64,
             "int64_t": ctypes.c_int64, "cudaDataType": ctypes.c_int,
             "cudaDataType_t": ctypes.c_int, "cublasComputeType_t": ctypes.c_int}  # fmt: skip
    for name, types in cublas_lt.CALLS.items():
        (listed,) = re.findall(rf"cublasStatus_t CUBLASWINAPI {name}\(([^)]*)\)", text)
        theirs = []
        for parameter in listed.split(","):
            kind = " ".join(parameter.split()[:-1])
            if "*" in parameter or "[" in parameter or kind.endswith(_HANDLES):
                theirs.append(ctypes.c_void_p)
            else:
                theirs.append(kinds.get(kind, ctypes.c_int))  # others are enumerations
        assert theirs == types, name
    said = dict(re.findall(r"(CUBLASLT_\w+) = (\(.*?\)|\w+)", text))
    prefixes = {"MATMUL_DESC": cublas_lt.OPERATION, "MATRIX_LAYOUT": cublas_lt.LAYOUT,
                "MATMUL_PREF": cublas_lt.PREFERENCE}  # fmt: skip
    for prefix, attributes in prefixes.items():
        for name, (number, _) in attributes.items():
            assert int(said[f"CUBLASLT_{prefix}_{name}"]) == number, name
    for name in ("RELU", "BIAS", "GELU"):
        assert int(said[f"CUBLASLT_EPILOGUE_{name}"]) == cublas_lt.EPILOGUES[name]
    assert said["CUBLASLT_EPILOGUE_GELU_AUX"] == "(CUBLASLT_EPILOGUE_GELU | 128)"
    assert int(said["CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE"]) == 2
    assert "uint64_t data[8];\n} cublasLtMatmulAlgo_t" in text


_HANDLES = ("Handle_t", "Desc_t", "Layout_t", "Preference_t", "Stream_t")


@pytest.mark.parametrize("path", installed(".so"))
def test_the_library_takes_the_attributes(path: str) -> None:
    """Descriptions need no GPU; the library compares the sizes of values."""
    library = object.__new__(CublasLt)
    library.library = ctypes.CDLL(path)
    made = [library.made("MatmulDesc", 68, 0), library.made("MatrixLayout", 0, 4, 5, 4),
            library.made("MatmulPreference")]  # fmt: skip
    tables = [cublas_lt.OPERATION, cublas_lt.LAYOUT, cublas_lt.PREFERENCE]
    for description, attributes in zip(made, tables, strict=True):
        for name, attribute in attributes.items():
            description.set(attribute, 4 if name == "EPILOGUE" else 0)
    with pytest.raises(CublasError, match="status 7"):
        made[0].set((7, ctypes.c_int64), 4)
