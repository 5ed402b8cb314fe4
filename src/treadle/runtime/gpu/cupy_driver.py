"""A GPU as CuPy reaches it: the driver of real devices."""

from __future__ import annotations

import ctypes
import importlib
import logging
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from treadle.core import dtypes, errors, locks
from treadle.core.digests import Digest
from treadle.core.object_cache import default_cache
from treadle.runtime.gpu import discovery
from treadle.runtime.gpu.conditionals import KERNEL, NAME, Conditionals, has_conditionals
from treadle.runtime.gpu.cublas import Cublas, CublasError, cublas_library
from treadle.runtime.gpu.cublas_lt import CublasLt
from treadle.runtime.gpu.cudnn import Convolution, Cudnn, Plan, cudnn_of, has_cudnn
from treadle.runtime.gpu.driver import Array, CannotRecord, Needs, Recording, Work
from treadle.runtime.gpu.finish import Ends
from treadle.runtime.gpu.kernels import OPTIONS, PRELUDE, KernelCode, Stage
from treadle.runtime.gpu.launches import pointers_to
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.product import Product
from treadle.runtime.schedule.facts import Unsupported

_LOG = logging.getLogger("treadle")
_DLPACK_CUDA = 2  # the protocol's number of CUDA devices
SHARED_AT_FIRST = 48 << 10  # bytes that a block has without asking, on all devices of CUDA
CUBLAS_WORKSPACE = 32 << 20  # bytes: what cuBLAS's documentation advises for the newest devices


class CupyMemory:
    """Memory of CuPy's pool.

    Args:
        count: what is told of it, and of its end.
    """

    __slots__ = ("address", "count", "pointer", "size")

    def __init__(self, pointer: Any, size: int, count: Count) -> None:
        self.pointer, self.address, self.size, self.count = pointer, pointer.ptr, size, count
        count.add(size)

    def __del__(self) -> None:
        self.count.add(-self.size)


class PinnedMemory:
    """Memory of the host that the device reads by itself, of CuPy's pool."""

    __slots__ = ("address", "pointer")

    def __init__(self, pointer: Any) -> None:
        self.pointer, self.address = pointer, pointer.ptr


class CupyMark:
    """An event."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event

    def wait(self) -> None:
        self.event.synchronize()


class Guests:
    """Arrays of other libraries that tensors were over: each is let go once the device has done the
    work that may read it. The libraries would use the memory again at once, in their own streams.

    Attributes:
        ended: arrays that no tensor has any more. They may come at any time.
        leaving: the same, with a mark behind the work that was asked for by then.
    """

    def __init__(self) -> None:
        self.ended: deque[Any] = deque()
        self.leaving: deque[tuple[CupyMark, list[Any]]] = deque()

    def let_go(self, mark: Callable[[], CupyMark]) -> None:
        """Let go what the device has done with, and mark what has ended since."""
        while self.leaving and self.leaving[0][0].event.done:
            self.leaving.popleft()
        arrays = self._taken(len(self.ended))
        if arrays:
            self.leaving.append((mark(), arrays))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within, the host waits until the device has done everything: what had ended by then is
        let go."""
        count, marked = len(self.ended), len(self.leaving)
        yield
        self._taken(count)
        for _ in range(marked):
            self.leaving.popleft()

    def _taken(self, count: int) -> list[Any]:
        return [self.ended.popleft() for _ in range(count)]


class Guest:
    """An array of another library, as long as a tensor is over it."""

    __slots__ = ("array", "ended")

    def __init__(self, array: Any, ended: deque[Any]) -> None:
        self.array, self.ended = array, ended

    def __del__(self) -> None:
        self.ended.append(self.array)


class Count:
    """Bytes in use, now and at most. CuPy would go through all blocks to count them."""

    def __init__(self) -> None:
        self.current = self.peak = 0
        self._lock = locks.reentrant_lock()  # memory may end at any time

    def add(self, size: int) -> None:
        with self._lock:
            self.current += size
            self.peak = max(self.peak, self.current)

    def reset_peak(self) -> None:
        with self._lock:
            self.peak = self.current


class CupyDriver:
    """See `treadle.runtime.gpu.driver.Driver`.

    Args:
        number: the CUDA runtime's of the device.
        limit: bytes that it may use; None: all.

    Attributes:
        ahead: the stream of `copy_ahead`.
        reads_host: whether the device reads any memory of the host by itself, and may do so late.
        stream: in which everything else is done. Work of other streams is neither waited for nor
            kept waiting, except where arrays pass to another library.
    """

    def __init__(self, number: int, limit: int | None = None) -> None:
        cupy: Any = importlib.import_module("cupy")
        self.library, self.number = cupy, number
        self.runtime, self.driver = cupy.cuda.runtime, cupy.cuda.driver
        self.device = cupy.cuda.Device(number)
        self.pool, self.count, self.guests = cupy.cuda.MemoryPool(), Count(), Guests()
        with self.device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.ahead = cupy.cuda.Stream(non_blocking=True)
            if limit is not None:
                self.pool.set_limit(size=limit)
            properties = self.runtime.getDeviceProperties(number)
            record = gpu_record(properties)
            library, version = discovery.driver_library(), self.runtime.driverGetVersion()
            decides, convolves = has_conditionals(library, version), has_cudnn()
            self.gpu = replace(record, decides=decides, convolves=convolves)
            self.reads_host = bool(properties.get("pageableMemoryAccess"))

    @contextmanager
    def active(self) -> Iterator[None]:
        with self.device, self.stream:
            # Entering a device calls CUDA only where another one is current, and so leaves a new
            # thread without a context, which calls of the driver's library need.
            self.device.use()
            yield

    @contextmanager
    def computing(self) -> Iterator[None]:
        raising = importlib.import_module("cupyx").errstate(linalg="raise")
        with self.library.cuda.using_allocator(self.pool.malloc), raising:
            yield

    # -- memory ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> CupyMemory:
        try:
            return CupyMemory(self.pool.malloc(size), size, self.count)
        except self.library.cuda.memory.OutOfMemoryError:
            self.give_back()
            try:
                return CupyMemory(self.pool.malloc(size), size, self.count)
            except self.library.cuda.memory.OutOfMemoryError as error:
                raise MemoryError(str(error)) from None

    def memory_use(self) -> dict[str, int]:
        kept = self.pool.total_bytes() - self.pool.used_bytes()
        return {"current": self.count.current, "peak": self.count.peak, "kept": kept}

    def reset_peak(self) -> None:
        self.count.reset_peak()

    def give_back(self) -> None:
        self.synchronize()  # what was given back may still be in use
        self.pool.free_all_blocks()

    def array(
        self, address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None
    ) -> Any:
        cuda, kind = self.library.cuda, np.dtype(dtype)
        if dtype == dtypes.bfloat16.np_dtype:  # CuPy does not know it: arrays of its bits
            kind = np.dtype(np.uint16)
        room = 1 << 62  # CuPy reads no more than the shape tells
        memory = cuda.MemoryPointer(cuda.UnownedMemory(address, room, None, self.number), 0)
        return self.library.ndarray(tuple(shape), kind, memory, strides)

    def exported(self, owner: object, address: int, dtype: Any, shape: Sequence[int]) -> Any:
        cuda, size = self.library.cuda, np.dtype(dtype).itemsize * math.prod(shape)
        memory = cuda.UnownedMemory(address, max(size, 1), owner, self.number)
        made = self.library.ndarray(tuple(shape), dtype, cuda.MemoryPointer(memory, 0))
        self.stream.synchronize()  # others do not know the stream
        return made

    def imported(self, external: Any) -> tuple[Any, int, Any, tuple[int, ...]] | None:
        kind, number = external.__dlpack_device__()
        if (int(kind), number) != (_DLPACK_CUDA, self.number):
            return None
        with self.device:
            array = self.library.ascontiguousarray(self.library.from_dlpack(external))
            self.follow(self._mark_in(self.library.cuda.get_current_stream()))
            self.guests.let_go(self.mark)
        guest = Guest(array, self.guests.ended)
        return guest, array.data.ptr, np.dtype(array.dtype), tuple(array.shape)

    def upload(self, address: int, array: Array) -> None:
        kind = self.runtime.memcpyHostToDevice
        source = array.ctypes.data
        self.runtime.memcpyAsync(address, source, array.nbytes, kind, self.stream.ptr)
        if self.reads_host:  # others copy such memory to a place of their own before they return
            self.stream.synchronize()

    def download(self, array: Array, address: int) -> None:
        kind = self.runtime.memcpyDeviceToHost
        target = array.ctypes.data
        self.runtime.memcpyAsync(target, address, array.nbytes, kind, self.stream.ptr)
        self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        kind = self.runtime.memcpyDeviceToDevice
        self.runtime.memcpyAsync(target, source, size, kind, self.stream.ptr)

    def copy_from(self, other: CupyDriver, target: int, source: int, size: int) -> None:
        self.runtime.memcpyPeerAsync(
            target, self.number, source, other.number, size, self.stream.ptr
        )

    def clear(self, address: int, size: int) -> None:
        self.runtime.memsetAsync(address, 0, size, self.stream.ptr)

    # -- exchanges with other devices ------------------------------------------------------------

    @property
    def identity(self) -> str:
        return str(self.runtime.deviceGetPCIBusId(self.number))

    def nccl_missing(self) -> str | None:
        try:
            nccl_library()
        except errors.UnavailableError as error:
            return error.message
        return None

    def communicator(self, drivers: Sequence[CupyDriver]) -> Nccl:
        numbers = [driver.number for driver in drivers]
        if len(set(numbers)) < len(numbers):
            raise errors.UnavailableError(
                None, None, "NCCL wants GPUs of their own: these are logical devices of one"
            )
        nccl = nccl_library()
        made = nccl.NcclCommunicator.initAll(numbers)
        return Nccl(nccl, made, [driver.stream.ptr for driver in drivers])

    def joined_communicator(
        self, rank: int, size: int, agree: Callable[[bytes | None], bytes]
    ) -> Nccl:
        nccl = nccl_library()
        number = agree(nccl.get_unique_id() if rank == 0 else None)
        with self.device:
            made = nccl.NcclCommunicator(size, number, rank)
        return Nccl(nccl, [made], [self.stream.ptr])

    # -- copies beside other work ----------------------------------------------------------------

    def allocate_ahead(self, size: int) -> tuple[PinnedMemory, CupyMemory]:
        with self.ahead:  # blocks of the pool that were used in another stream may be in use there
            try:
                memory = CupyMemory(self.pool.malloc(size), size, self.count)
            except self.library.cuda.memory.OutOfMemoryError as error:
                raise MemoryError(str(error)) from None
        return PinnedMemory(self.library.cuda.alloc_pinned_memory(size)), memory

    def copy_ahead(self, target: int, source: int, size: int, after: Any) -> CupyMark:
        if after is not None:
            self.ahead.wait_event(after.event)
        kind = self.runtime.memcpyHostToDevice
        self.runtime.memcpyAsync(target, source, size, kind, self.ahead.ptr)
        return self._mark_in(self.ahead)

    def mark(self) -> CupyMark:
        return self._mark_in(self.stream)

    def _mark_in(self, stream: Any) -> CupyMark:
        event = self.library.cuda.Event(disable_timing=True)
        event.record(stream)
        return CupyMark(event)

    def follow(self, mark: Any) -> None:
        self.stream.wait_event(mark.event)

    # -- work ------------------------------------------------------------------------------------

    @locks.cached_property
    def cublas_memory(self) -> CupyMemory:
        return self.allocate(CUBLAS_WORKSPACE)

    @locks.cached_property
    def cublas(self) -> Cublas:
        place = self.cublas_memory.address
        return Cublas(cublas_library(), self.stream.ptr, place, CUBLAS_WORKSPACE)

    @locks.cached_property
    def cublas_lt(self) -> CublasLt:
        place = self.cublas_memory.address
        return CublasLt(cublas_library("cublasLt"), self.stream.ptr, place, CUBLAS_WORKSPACE)

    def open_products(self) -> None:
        self.cublas, self.cublas_lt  # noqa: B018  both are made when they are first read

    def product(self, product: Product) -> None:
        self.cublas.product(product)

    def finished_product(self, product: Product, ends: Ends) -> bool:
        return self.cublas_lt.finished_product(product, ends)

    @locks.cached_property
    def cudnn(self) -> Cudnn | None:
        return cudnn_of(self.stream.ptr, self.allocate)

    def convolution(self, asked: Convolution) -> Plan | None:
        return None if self.cudnn is None else self.cudnn.plan(asked)

    def triangles(self, matrix: Any) -> tuple[Any, Any, Any]:
        with warnings.catch_warnings():  # of pivots that are 0
            warnings.simplefilter("ignore", RuntimeWarning)
            lu = importlib.import_module("cupyx.scipy.linalg").lu
            found: tuple[Any, Any, Any] = lu(matrix, check_finite=False)
        return found

    def eigenvectors(self, matrices: Any) -> tuple[Any, Any] | None:
        function = getattr(self.library.linalg, "eig", None)  # from CuPy 14 on
        if function is None:
            return None
        if not importlib.import_module("cupyx.cusolver").check_availability("geev"):
            return None  # CUDA is older than 12.6
        values, vectors = function(matrices)
        return values, vectors

    def load(self, codes: Sequence[KernelCode]) -> list[list[Any]]:
        try:
            module = self._module("\n".join([PRELUDE.read_text(), *(code.text for code in codes)]))
        except self.library.cuda.compiler.CompileException as error:
            raise Unsupported(f"NVRTC refuses a kernel: {error}") from None
        except (ImportError, OSError, RuntimeError) as error:  # in CuPy's words
            if "nvrtc" not in str(error).lower():
                raise
            text = f'NVRTC must compile kernels (of pip install "treadle[cuda12]"): {error}'
            raise errors.UnavailableError(None, None, text) from None
        return [[self._function(module, s) for s in code.stages] for code in codes]

    def _module(self, text: str) -> Any:
        """The functions of a text in CUDA C, which another process may have compiled.

        CuPy's `RawModule` lets the compiler take numbers below the normal ones for zeros. The
        function below it does not, and keeps nothing on disk: so this does.
        """
        cuda, cache = self.library.cuda, default_cache()
        versions = self.library.__version__, cuda.nvrtc.getVersion(), self.gpu.architecture, OPTIONS
        key = Digest(f"{versions}\n{text}").text
        code = cache.load("cubin", key)
        if code is None:
            code, _ = cuda.compiler.compile_using_nvrtc(text, OPTIONS)
            cache.store("cubin", key, code)
        module = cuda.Module()
        module.load(code)
        return module

    def _function(self, module: Any, stage: Stage) -> Any:
        function = module.get_function(stage.name)
        if stage.shared > SHARED_AT_FIRST:
            asked = self.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.driver.funcSetAttribute(function.ptr, asked, stage.shared)
        return function

    def needs(self, function: Any) -> Needs:
        asked = self.driver.funcGetAttribute
        return Needs(
            asked(self.driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr),
            asked(self.driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function.ptr),
        )

    def launch(
        self, function: Any, blocks: int, threads: int, shared: int, parameters: int
    ) -> None:
        self.driver.launchKernel(
            function.ptr, blocks, 1, 1, threads, 1, 1, shared, self.stream.ptr, parameters, 0
        )

    def synchronize(self) -> None:
        with self.guests.waiting():
            self.stream.synchronize()

    # -- recordings ------------------------------------------------------------------------------

    @locks.cached_property
    def conditionals(self) -> Conditionals | None:
        """None where the compiler is too old for them."""
        try:
            decide = self._module(KERNEL).get_function(NAME)
        except self.library.cuda.compiler.CompileException:
            return None

        def launch(when_true: int, when_false: int, flag: int) -> None:
            words = (ctypes.c_uint64 * 3)(when_true, when_false, flag)
            address, _pointers = pointers_to(words, range(3))
            self.launch(decide, 1, 1, 0, address)

        return Conditionals(discovery.driver_library(), self.stream.ptr, launch)

    def choose(self, flag: int, then: Work, otherwise: Work | None) -> None:
        self._in_recordings().choose(flag, then, otherwise)

    def repeat(self, flag: int, body: Work) -> None:
        self._in_recordings().repeat(flag, body)

    def _in_recordings(self) -> Conditionals:
        if self.conditionals is None:
            raise CannotRecord("NVRTC does not know conditional nodes")
        return self.conditionals

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        calls = self.runtime.CUDARuntimeError, self.driver.CUDADriverError, CublasError
        return CannotRecord, *calls

    def begin_recording(self) -> None:
        if self.gpu.decides:
            self.conditionals  # noqa: B018  its kernel is loaded outside of recordings
        self.stream.begin_capture(self.runtime.streamCaptureModeThreadLocal)

    def end_recording(self) -> Recording | None:
        try:
            return CupyRecording(self.stream.end_capture(), self.stream)
        except self.runtime.CUDARuntimeError as error:  # something that cannot be recorded ended it
            _LOG.warning("CUDA has no graph of what a stream records: %s", error)
            return None


class Nccl:
    """See `treadle.runtime.gpu.driver.Communicator`: NVIDIA's library, by CuPy.

    Args:
        nccl: the module ``cupy.cuda.nccl``.
        communicators, streams: of the devices of this process, in their order.
    """

    def __init__(self, nccl: Any, communicators: Sequence[Any], streams: Sequence[int]) -> None:
        self.nccl, self.devices = nccl, list(zip(communicators, streams, strict=True))

    def all_reduce(
        self, operands: Sequence[tuple[int, int]], count: int, dtype: Any, how: str
    ) -> None:
        kind = getattr(self.nccl, f"NCCL_{np.dtype(dtype).name.upper()}")
        operation = getattr(self.nccl, f"NCCL_{how.upper()}")
        with self._together():
            for (each, stream), (source, target) in zip(self.devices, operands, strict=True):
                each.allReduce(source, target, count, kind, operation, stream)

    def all_gather(self, operands: Sequence[tuple[int, int]], size: int) -> None:
        with self._together():
            for (each, stream), (source, target) in zip(self.devices, operands, strict=True):
                each.allGather(source, target, size, self.nccl.NCCL_UINT8, stream)

    def broadcast(self, operands: Sequence[tuple[int, int]], size: int, root: int) -> None:
        with self._together():
            for (each, stream), (source, target) in zip(self.devices, operands, strict=True):
                each.broadcast(source, target, size, self.nccl.NCCL_UINT8, root, stream)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """The calls of one thread for several devices must be told to belong together."""
        self.nccl.groupStart()
        try:
            yield
        finally:
            self.nccl.groupEnd()


def nccl_library() -> Any:
    """CuPy's module of NCCL.

    Raises:
        UnavailableError: it is not installed, or CuPy was built without it.
    """
    with warnings.catch_warnings():  # in which CuPy says what is missing
        warnings.simplefilter("ignore")
        try:
            nccl: Any = importlib.import_module("cupy.cuda.nccl")
        except ImportError:
            nccl = None
    if nccl is None or not nccl.available:
        text = "NCCL is not installed: pip install nvidia-nccl-cu12 (or nvidia-nccl-cu13)"
        raise errors.UnavailableError(None, None, text)
    return nccl


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
    fields = {ours: properties[theirs] for ours, theirs in _FIELDS.items() if theirs in properties}
    clock, width = properties.get("memoryClockRate", 0), properties.get("memoryBusWidth", 0)
    if clock and width:  # in kHz and bits; two transfers in a cycle
        fields["bandwidth"] = 2e3 * clock * width / 8
    return Gpu(
        name.decode() if isinstance(name, bytes) else str(name),
        f"sm_{properties['major']}{properties['minor']}",
        **fields,
    )


# Fields of the record by CUDA's names. A block may ask for more shared memory than it has at first.
_FIELDS = {
    "warp": "warpSize", "most_block": "maxThreadsPerBlock",
    "multiprocessors": "multiProcessorCount", "resident": "maxThreadsPerMultiProcessor",
    "most_blocks": "maxBlocksPerMultiProcessor", "all_shared": "sharedMemPerMultiprocessor",
    "shared": "sharedMemPerBlockOptin", "cache": "l2CacheSize",
}  # fmt: skip
