"""A GPU as CuPy reaches it: the driver of real devices."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from treadle.runtime.gpu.cublas import Cublas, cublas_library
from treadle.runtime.gpu.driver import Array, Recording
from treadle.runtime.gpu.kernels import PRELUDE, KernelCode, Stage
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.product import Product
from treadle.runtime.schedule.facts import Unsupported

OPTIONS = ("--std=c++17",)
CUBLAS_WORKSPACE = 32 << 20  # bytes: what cuBLAS's documentation advises for the newest devices


class CupyMemory:
    """Memory of CuPy's pool."""

    __slots__ = ("address", "pointer")

    def __init__(self, pointer: Any) -> None:
        self.pointer, self.address = pointer, pointer.ptr


class CupyDriver:
    """See `treadle.runtime.gpu.driver.Driver`.

    Args:
        number: the CUDA runtime's of the device.
        limit: bytes that it may use; None: all.

    Attributes:
        stream: in which everything is done. Work of other streams is neither waited for nor kept
            waiting, except where arrays pass to another library.
    """

    def __init__(self, number: int, limit: int | None = None) -> None:
        cupy: Any = importlib.import_module("cupy")
        self.library, self.number = cupy, number
        self.runtime, self.driver = cupy.cuda.runtime, cupy.cuda.driver
        self.device = cupy.cuda.Device(number)
        self.pool = cupy.cuda.MemoryPool()
        with self.device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            if limit is not None:
                self.pool.set_limit(size=limit)
            self.gpu = gpu_record(self.runtime.getDeviceProperties(number))

    @contextmanager
    def active(self) -> Iterator[None]:
        with self.device, self.stream:
            yield

    # -- memory ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> CupyMemory:
        try:
            return CupyMemory(self.pool.malloc(size))
        except self.library.cuda.memory.OutOfMemoryError as error:
            self.synchronize()  # what was given back may still be in use
            self.pool.free_all_blocks()
            try:
                return CupyMemory(self.pool.malloc(size))
            except self.library.cuda.memory.OutOfMemoryError:
                raise MemoryError(str(error)) from None

    def memory_use(self) -> dict[str, int]:
        used, total = self.pool.used_bytes(), self.pool.total_bytes()
        return {"current": used, "kept": total - used}

    def array(
        self, address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None
    ) -> Any:
        cuda, kind = self.library.cuda, np.dtype(dtype)
        if kind.kind == "V":  # bfloat16, which CuPy does not know: arrays of its bits
            kind = np.dtype(np.uint16)
        room = 1 << 62  # CuPy reads no more than the shape tells
        memory = cuda.MemoryPointer(cuda.UnownedMemory(address, room, None, self.number), 0)
        return self.library.ndarray(tuple(shape), kind, memory, strides)

    def upload(self, address: int, array: Array) -> None:
        kind = self.runtime.memcpyHostToDevice
        source = array.ctypes.data
        self.runtime.memcpyAsync(address, source, array.nbytes, kind, self.stream.ptr)

    def download(self, array: Array, address: int) -> None:
        kind = self.runtime.memcpyDeviceToHost
        target = array.ctypes.data
        self.runtime.memcpyAsync(target, address, array.nbytes, kind, self.stream.ptr)
        self.stream.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        kind = self.runtime.memcpyDeviceToDevice
        self.runtime.memcpyAsync(target, source, size, kind, self.stream.ptr)

    def clear(self, address: int, size: int) -> None:
        self.runtime.memsetAsync(address, 0, size, self.stream.ptr)

    # -- work ------------------------------------------------------------------------------------

    @functools.cached_property
    def cublas(self) -> Cublas:
        self._cublas_memory = self.allocate(CUBLAS_WORKSPACE)
        place = self._cublas_memory.address
        return Cublas(cublas_library(), self.stream.ptr, place, CUBLAS_WORKSPACE)

    def product(self, product: Product) -> None:
        self.cublas.product(product)

    def load(self, codes: Sequence[KernelCode]) -> list[list[Any]]:
        text = "\n".join([PRELUDE.read_text(), *(code.text for code in codes)])
        module = self.library.RawModule(code=text, options=OPTIONS, backend="nvrtc")
        try:
            return [[self._function(module, s) for s in code.stages] for code in codes]
        except self.library.cuda.compiler.CompileException as error:
            raise Unsupported(f"NVRTC refuses a kernel: {error}") from None

    def _function(self, module: Any, stage: Stage) -> Any:
        kernel = module.get_function(stage.name)
        if stage.shared > self.gpu.shared:
            kernel.max_dynamic_shared_size_bytes = stage.shared
        return kernel.kernel

    def launch(
        self, function: Any, blocks: int, threads: int, shared: int, parameters: int
    ) -> None:
        self.driver.launchKernel(
            function.ptr, blocks, 1, 1, threads, 1, 1, shared, self.stream.ptr, parameters, 0
        )

    def synchronize(self) -> None:
        self.stream.synchronize()

    # -- recordings ------------------------------------------------------------------------------

    def begin_recording(self) -> None:
        self.stream.begin_capture(self.runtime.streamCaptureModeThreadLocal)

    def end_recording(self) -> Recording | None:
        try:
            return CupyRecording(self.stream.end_capture(), self.stream)
        except self.runtime.CUDARuntimeError:  # something that cannot be recorded ended it
            return None


class CupyRecording:
    """A CUDA graph."""

    __slots__ = ("graph", "stream")

    def __init__(self, graph: Any, stream: Any) -> None:
        self.graph, self.stream = graph, stream

    def submit(self) -> None:
        self.graph.launch(self.stream)


def gpu_record(properties: dict[str, Any]) -> Gpu:
    """The record of a device, from what CUDA tells of it."""
    name = properties["name"]
    return Gpu(
        name.decode() if isinstance(name, bytes) else str(name),
        f"sm_{properties['major']}{properties['minor']}",
        warp=properties["warpSize"], most_block=properties["maxThreadsPerBlock"],
        multiprocessors=properties["multiProcessorCount"],
        resident=properties["maxThreadsPerMultiProcessor"],
        shared=properties["sharedMemPerBlock"],
    )  # fmt: skip
