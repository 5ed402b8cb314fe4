"""The real CuPy on a made-up CUDA: a plugin of pytest that lets programs for GPUs run through all
of CuPy without a GPU.

    PYTHONPATH=src:. python -m pytest -p tests.runtime.gpu.made_up_cuda tests/runtime/gpu/...

CuPy has the runtime of CUDA inside of its binary, so each function of it is replaced where it
stands in memory by one of `made_up_cuda.cpp`. NVRTC is real: kernels are compiled for sm_90, and
what they are called is looked up in the result. Launches run the same kernel through the shim, and
products are NumPy's. Kernels of CuPy itself cannot run.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
# What the headers of CUDA want of those of its compiler, which are not installed with them.
WORDS = "host device global cudart_builtin device_builtin device_builtin_surface_type".split()
DEFINES = [
    *(f"#define __{word}__" for word in [*WORDS, "device_builtin_texture_type"]),
    "#define __align__(n) __attribute__((aligned(n)))",
    "#define __builtin_align__(n) __align__(n)",
    "#define CUDARTAPI",
    "#define CUDARTAPI_CDECL",
]
PREPARE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_uint] * 3, ctypes.c_void_p)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_int64)
SHARED = "libcuda.so.1"  # the name by which programs load the driver


def headers() -> Path:
    """The folder of CUDA's headers for the version that the wheels are for."""
    import nvidia

    for folder in nvidia.__path__:
        for part in ("cuda_runtime", "cu13"):
            found = Path(folder) / part / "include"
            if (found / "cuda_runtime_api.h").exists():
                return found
    raise FileNotFoundError("pip install nvidia-cuda-runtime-cu12, or nvidia-cuda-runtime for 13")


@functools.cache
def library() -> ctypes.CDLL:
    """CUDA, as the process finds it from now on."""
    folder = Path(tempfile.mkdtemp())
    (folder / "crt").mkdir()
    (folder / "crt" / "host_defines.h").write_text("\n".join(["#pragma once", *DEFINES, ""]))
    target = folder / SHARED
    options = ["-std=c++20", "-O1", "-w", "-shared", "-fPIC", f"-Wl,-soname,{SHARED}"]
    texts = [str(HERE / name) for name in ("made_up_cuda.cpp", "graphs.cpp")]
    command = ["g++", *options, f"-I{folder}", f"-I{headers()}", "-o", str(target), *texts]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not found.returncode, found.stderr[:3000]
    made = ctypes.CDLL(str(target))
    made.made_said.restype = ctypes.c_char_p
    made.made_taken.restype = made.made_work.restype = ctypes.c_size_t
    made.made_owns.argtypes = ctypes.c_void_p, ctypes.c_size_t
    made.made_work.argtypes = ctypes.c_void_p, ctypes.c_int64
    made.made_room.argtypes = (ctypes.c_size_t,)
    made.made_patch.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
    return made


_names: list[bytes] = []  # which the replaced functions point to


def replace_runtime(binary: str) -> None:
    """Replace the functions of CUDA's runtime inside of a loaded extension module."""
    made = library()
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(binary))
    symbols = subprocess.run(["nm", binary], capture_output=True, text=True, check=True).stdout
    missing = ctypes.cast(made.made_missing, ctypes.c_void_p).value
    count = 0
    for line in symbols.splitlines():
        found = re.fullmatch(r"(\w+) t (cuda[A-Z]\w*?)(_pts[dz])?", line)
        if found is None or found[3]:  # the latter are for streams of threads
            continue
        place, name = found[1], found[2]
        target = getattr(made, name, None)
        count += 1
        if target is None:
            _names.append(name.encode())
            failed = made.made_patch(base + int(place, 16), missing, _names[-1])
        else:
            address = ctypes.cast(target, ctypes.c_void_p).value
            failed = made.made_patch(base + int(place, 16), address, None)
        assert not failed, f"{name} cannot be replaced"
    assert count > 100, f"{binary} has no runtime of CUDA"


class Launches:
    """Launches and calls of libraries, by the numbers that the made-up CUDA has of them.

    Attributes:
        known: makes the shim's function for each that CuPy has, by its address.
        todo: what is done for each number.
    """

    is_idle, cached = False, None

    def __init__(self) -> None:
        self.known: dict[int, Callable[[], Any]] = {}
        self.todo: list[Callable[[], None]] = []
        self.errors: list[BaseException] = []
        python = ctypes.pythonapi
        entries = (python.PyGILState_Check, python.PyEval_SaveThread, python.PyEval_RestoreThread)
        self.calls = PREPARE(self.prepare), RUN(self.run)  # kept alive
        library().made_callbacks(*self.calls, *(ctypes.cast(e, ctypes.c_void_p) for e in entries))

    def add(self, work: Callable[[], None]) -> int:
        self.todo.append(work)
        return len(self.todo) - 1

    def loaded(self, codes: Sequence[Any], functions: Sequence[Sequence[Any]]) -> None:
        """CuPy has loaded the stages of some kernels."""
        from tests.runtime.gpu.on_processor import compiled, text_of
        from tests.runtime.gpu.recorder import Function

        made = functools.cache(lambda: compiled(text_of([(c.arguments, c) for c in codes])))
        for code, found in zip(codes, functions, strict=True):
            for stage, function in zip(code.stages, found, strict=True):
                self.known[function.ptr] = lambda c=code, s=stage: Function(c, s, made())

    def prepare(self, found: int, blocks: int, threads: int, shared: int, parameters: int) -> int:
        from tests.runtime.gpu.recorder import _Given

        if found not in self.known:
            return -1
        try:
            made = self.known[found]()
            assert (threads, shared) == (made.stage.threads, made.stage.shared)
            given = _Given(self, made.code, parameters)  # type: ignore[arg-type]
            return self.add(lambda: given.run(made, blocks))
        except BaseException as error:
            self.errors.append(error)
            return -1

    def run(self, number: int) -> None:
        try:
            self.todo[number]()
        except BaseException as error:
            self.errors.append(error)

    def array(self, address: int, dtype: Any, shape: Any) -> Any:
        """See `tests.runtime.gpu.recorder.RecordingDriver.array`."""
        from tests.runtime.gpu.on_processor import Fault

        made = np.dtype(dtype)
        size = math.prod(map(int, shape)) * made.itemsize
        if not size:
            return np.empty(shape, made)
        if not library().made_owns(address, size):
            raise Fault(f"{size} bytes at {address:#x} are no memory of the device")
        return np.ndarray(shape, made, (ctypes.c_char * size).from_address(address))


def install() -> Launches:
    """Let CuPy find two GPUs in this process."""
    library()
    importlib.import_module("cupy_backends.cuda.api.runtime")
    replace_runtime(sys.modules["cupy_backends.cuda.api.runtime"].__file__)  # type: ignore[arg-type]
    from tests.runtime.gpu import products
    from treadle.runtime.gpu.cupy_driver import CupyDriver

    launches, load = Launches(), CupyDriver.load

    def loaded(driver: Any, codes: Sequence[Any]) -> Any:
        functions = load(driver, codes)
        launches.loaded(codes, functions)
        return functions

    def ask(driver: Any, work: Callable[[], None]) -> bool:
        driver.open_products()
        assert not library().made_work(driver.stream.ptr, launches.add(work))
        return True

    def opened(driver: Any) -> None:
        driver.cublas_memory  # as the library takes memory

    CupyDriver.load = loaded  # type: ignore[method-assign]
    CupyDriver.open_products = opened  # type: ignore[method-assign]
    CupyDriver.product = lambda d, p: ask(d, lambda: products.product(p))  # type: ignore
    CupyDriver.finished_product = lambda d, p, e: ask(  # type: ignore
        d, lambda: products.finished_product(p, e)
    )
    return launches


_launches: list[Launches] = []


def pytest_configure(config: pytest.Config) -> None:
    _launches.append(install())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    (launches,) = _launches
    launches.errors.clear()
    library().made_forget()
    try:
        result = yield
    except BaseException as error:
        error.add_note(f"the made-up CUDA says: {library().made_said().decode()!r}")
        for other in launches.errors:
            error.add_note(f"a kernel: {other!r}"[:2000])
        raise
    if launches.errors:
        raise launches.errors[0]
    return result
