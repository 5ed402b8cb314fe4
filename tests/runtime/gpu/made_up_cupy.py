"""A made-up CuPy: what of CuPy treadle calls, and nothing else, over memory of the processor.

`NAMES` has all of it by CuPy's names; a test looks whether the real CuPy has them. A name that is
not among them is an AttributeError here, so the driver cannot use one unnoticed.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

# (object, names): modules, classes and what instances have.
NAMES = {
    "cupy": ["cuda", "ndarray", "ascontiguousarray", "from_dlpack", "__version__"],
    "cupy.cuda": [
        "Device", "Stream", "MemoryPool", "MemoryPointer", "UnownedMemory", "memory", "compiler",
        "runtime", "driver", "Graph", "Function", "Event", "alloc_pinned_memory", "using_allocator",
        "get_current_stream", "Module", "nvrtc",
    ],
    "cupy.cuda.Device": ["__enter__", "__exit__", "use"],
    "cupy.cuda.Stream": [
        "__enter__", "__exit__", "synchronize", "begin_capture", "end_capture", "ptr", "wait_event",
    ],
    "cupy.cuda.Event": ["record", "synchronize", "done"],
    "cupy.cuda.PinnedMemoryPointer": ["ptr"],
    "cupy.cuda.Graph": ["launch"],
    "cupy.cuda.Function": ["ptr"],
    "cupy.cuda.MemoryPool": [
        "malloc", "set_limit", "used_bytes", "total_bytes", "free_all_blocks",
    ],
    "cupy.cuda.MemoryPointer": ["ptr"],
    "cupy.cuda.memory": ["OutOfMemoryError"],
    "cupy.cuda.compiler": ["CompileException", "compile_using_nvrtc"],
    "cupy.cuda.nvrtc": ["getVersion"],
    "cupy.cuda.Module": ["load", "get_function"],
    "cupy.cuda.runtime": [
        "CUDARuntimeError", "runtimeGetVersion", "driverGetVersion", "getDeviceCount",
        "getDeviceProperties", "memcpyAsync", "memsetAsync", "memcpyHostToDevice",
        "memcpyDeviceToHost", "memcpyDeviceToDevice", "streamCaptureModeThreadLocal",
        "memcpyPeerAsync", "deviceGetPCIBusId",
    ],
    "cupy.cuda.nccl": ["available", "get_unique_id", "groupStart", "groupEnd", "NcclCommunicator"],
    "cupy.cuda.nccl.NcclCommunicator": ["initAll", "allReduce", "allGather", "broadcast"],
    "cupy.cuda.driver": [
        "launchKernel", "funcGetAttribute", "funcSetAttribute", "CUDADriverError",
        "CU_FUNC_ATTRIBUTE_NUM_REGS", "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES",
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    ],
}  # fmt: skip
INSTANCES = {"ptr"}  # attributes of objects, which a class in C need not show

PROPERTIES = {
    "name": b"NVIDIA H200", "major": 9, "minor": 0, "totalGlobalMem": 1 << 37, "warpSize": 32,
    "maxThreadsPerBlock": 1024, "multiProcessorCount": 132, "maxThreadsPerMultiProcessor": 2048,
    "maxBlocksPerMultiProcessor": 32, "sharedMemPerMultiprocessor": 233472,
    "sharedMemPerBlockOptin": 232448, "l2CacheSize": 50 << 20, "memoryClockRate": 2619000,
    "memoryBusWidth": 6016,
}  # fmt: skip


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class CompileException(Exception):
    pass


class Strict:
    """A part of CuPy with exactly the given attributes."""

    def __init__(self, name: str, **found: Any) -> None:
        unknown = set(found) - set(NAMES[name])
        assert not unknown, f"{name} is to have {unknown}, which NAMES does not list"
        self.__dict__.update(found)


class Nccl:
    """The made-up ``cupy.cuda.nccl``; `calls` has what was asked of it, and `number` its ids.

    The parameters of its functions have the names that the real ones say they have.
    """

    available = True
    NCCL_UINT8, NCCL_INT32, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_SUM, NCCL_MAX = 1, 2, 7, 8, 0, 2

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        library = self

        class NcclCommunicator:
            def __init__(self, ndev: int, commId: bytes, rank: int, config: Any = None) -> None:
                assert len(commId) == 128
                self.rank = rank
                library.calls.append(("joined", ndev, commId, rank))

            @staticmethod
            def initAll(devices: list[int]) -> list[Any]:
                library.calls.append(("all", devices))
                made = [object.__new__(NcclCommunicator) for _ in devices]
                for rank, each in enumerate(made):
                    each.rank = rank
                return made

            def allReduce(
                self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
            ) -> None:
                given = sendbuf, recvbuf, count, datatype, op, stream
                library.calls.append(("allReduce", self.rank, *given))

            def allGather(
                self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int
            ) -> None:
                given = sendbuf, recvbuf, count, datatype, stream
                library.calls.append(("allGather", self.rank, *given))

            def broadcast(
                self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int,
                stream: int,
            ) -> None:  # fmt: skip
                given = sendbuff, recvbuff, count, datatype, root, stream
                library.calls.append(("broadcast", self.rank, *given))

        self.NcclCommunicator = NcclCommunicator

    def get_unique_id(self) -> bytes:
        return bytes(range(128))

    def groupStart(self) -> None:
        self.calls.append(("start",))

    def groupEnd(self) -> None:
        self.calls.append(("end",))


class Cupy:
    """The made-up module, as `module`, and what was asked of it, as `calls`.

    Args:
        room: bytes that pools have.
        graphs: the library of `graphs.cpp`, which gets what streams record.

    Attributes:
        call: the address of what such a library calls for each launch.
    """

    def __init__(
        self, made_for: int = 12090, driver: int = 12090, room: int = 1 << 20, graphs: Any = None
    ) -> None:
        self.graphs, self.call = graphs, None
        self.calls: list[tuple[Any, ...]] = []
        self.room, self.kept = room, 0
        self.refuses: Exception | None = None  # what the compiler says
        self.recordable = self.done = True  # whether events have happened
        self.deciders: set[int] = set()  # kernels that hand conditional nodes their numbers
        cupy = self

        class Device:
            def __init__(self, number: int) -> None:
                self.number = number

            def __enter__(self) -> Any:
                cupy.calls.append(("device", self.number))
                return self

            def use(self) -> Any:
                cupy.calls.append(("use", self.number))
                return self

            def __exit__(self, *error: object) -> None:
                cupy.calls.append(("device ends", self.number))

        class Graph:
            def __init__(self, made: Any = None) -> None:
                self.made = made

            def launch(self, stream: Any) -> None:
                cupy.calls.append(("graph", stream.ptr))
                if cupy.graphs:
                    assert not cupy.graphs.made_run(self.made, cupy.call)

        class Stream:
            def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
                assert non_blocking and not null
                cupy.streams += 1
                self.ptr = 1000 + cupy.streams

            def __enter__(self) -> Any:
                cupy.calls.append(("stream", self.ptr))
                cupy.current.append(self)
                return self

            def __exit__(self, *error: object) -> None:
                cupy.calls.append(("stream ends", self.ptr))
                assert cupy.current.pop() is self

            def synchronize(self) -> None:
                cupy.calls.append(("synchronize", self.ptr))

            def wait_event(self, event: Any) -> None:
                cupy.calls.append(("wait", self.ptr, event.number))

            def begin_capture(self, mode: int) -> None:
                cupy.calls.append(("capture", self.ptr, mode))
                if cupy.graphs:
                    cupy.graphs.made_begin(ctypes.c_void_p(self.ptr))

            def end_capture(self) -> Graph:
                if cupy.graphs:
                    made = cupy.graphs.made_end(ctypes.c_void_p(self.ptr))
                    cupy.recordable = made is not None
                    if made is not None:
                        return Graph(made)
                if not cupy.recordable:
                    raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
                return Graph()

        class Event:
            def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
                assert disable_timing
                cupy.events += 1
                self.number = cupy.events

            def record(self, stream: Any) -> None:
                cupy.calls.append(("event", self.number, stream.ptr))

            def synchronize(self) -> None:
                cupy.calls.append(("event ends", self.number))

            @property
            def done(self) -> bool:
                return cupy.done

        class MemoryPointer:
            def __init__(self, memory: Any, offset: int) -> None:
                assert offset == 0
                self.memory, self.ptr = memory, memory.ptr

            def __del__(self) -> None:
                if isinstance(self.memory, Owned):
                    cupy.kept += self.memory.size

        class Owned:
            def __init__(self, size: int) -> None:
                self.size, self.array = size, np.zeros(size + 256, np.uint8)
                self.ptr = -(-self.array.ctypes.data // 256) * 256

        class UnownedMemory:
            def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
                self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id

        class MemoryPool:
            limit = room
            used = 0

            def malloc(self, size: int) -> MemoryPointer:
                size = -(-size // 512) * 512
                if cupy.kept >= size:
                    cupy.kept -= size
                elif self.used + size > min(self.limit, cupy.room):
                    raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
                else:
                    self.used += size
                return MemoryPointer(Owned(size), 0)

            def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
                self.limit = size or room

            def used_bytes(self) -> int:
                return self.used - cupy.kept

            def total_bytes(self) -> int:
                return self.used

            def free_all_blocks(self, stream: Any = None) -> None:
                self.used -= cupy.kept
                cupy.kept = 0

        class Function:
            def __init__(self, name: str) -> None:
                self.name, self.ptr = name, 7000 + len(name)

        class Module:
            def load(self, cubin: bytes) -> None:
                cupy.calls.append(("module", cubin))

            def get_function(self, name: str) -> Function:
                cupy.kernels[name] = made = Function(name)
                if name == "td_decide":
                    cupy.deciders.add(made.ptr)
                return made

        def compiled(source: str, options: tuple[str, ...] = ()) -> tuple[bytes, None]:
            cupy.calls.append(("compile", source, options))
            if cupy.refuses:
                raise cupy.refuses
            return source.encode(), None

        def array(shape: Any, dtype: Any, memptr: Any = None, strides: Any = None) -> Any:
            extent = max(1, int(np.prod(shape)) * np.dtype(dtype).itemsize)
            data = (ctypes.c_char * extent).from_address(memptr.ptr)
            made = np.ndarray(shape, dtype, data, 0, strides)
            cupy.owners.append(getattr(memptr.memory, "owner", None))
            return made

        def copied(target: int, source: int, size: int, kind: int, stream: int) -> None:
            cupy.calls.append(("memcpy", kind, size, stream))
            ctypes.memmove(target, source, size)

        def copied_between(
            dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int
        ) -> None:
            cupy.calls.append(("between", dstDevice, srcDevice, size, stream))
            ctypes.memmove(dst, src, size)

        def set_bytes(target: int, value: int, size: int, stream: int) -> None:
            cupy.calls.append(("memset", size, stream))
            ctypes.memset(target, value, size)

        class Default:
            ptr = 0

        def current() -> Any:
            return self.current[-1] if self.current else Default

        self.current: list[Any] = []  # the streams that are entered
        self.streams = self.events = 0
        self.kernels: dict[str, Any] = {}
        self.owners: list[Any] = []
        runtime = Strict(
            "cupy.cuda.runtime", CUDARuntimeError=CUDARuntimeError,
            runtimeGetVersion=lambda: made_for, driverGetVersion=lambda: driver,
            getDeviceCount=lambda: 1, getDeviceProperties=lambda number: PROPERTIES,
            memcpyAsync=copied, memsetAsync=set_bytes, memcpyHostToDevice=1, memcpyDeviceToHost=2,
            memcpyDeviceToDevice=3, streamCaptureModeThreadLocal=1,
            memcpyPeerAsync=copied_between, deviceGetPCIBusId=lambda device: f"0000:{device}:00.0",
        )  # fmt: skip
        def launched(*given: Any) -> None:
            self.calls.append(("launch", *given))
            stream = ctypes.c_void_p(given[8])
            if not graphs or not graphs.made_records(stream):
                return
            if given[0] in self.deciders:
                each = (ctypes.POINTER(ctypes.c_uint64) * 3).from_address(given[9])
                graphs.made_decide(stream, *(ctypes.c_uint64(p[0]) for p in each))
            else:
                graphs.made_call(stream, ctypes.c_int64(given[0]))

        @contextmanager
        def using(allocator: Any) -> Iterator[None]:
            before, self.allocator = self.allocator, allocator
            yield
            self.allocator = before

        self.allocator: Any = None  # what functions take memory of
        told = {4: 40, 3: 16}
        made = Strict(
            "cupy.cuda.driver", launchKernel=launched, CU_FUNC_ATTRIBUTE_NUM_REGS=4,
            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES=3, funcGetAttribute=lambda what, f: told[what],
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8, CUDADriverError=CUDADriverError,
            funcSetAttribute=lambda f, what, value: cupy.calls.append(("ask", f, what, value)),
        )  # fmt: skip
        cuda = Strict(
            "cupy.cuda", Device=Device, Stream=Stream, MemoryPool=MemoryPool,
            MemoryPointer=MemoryPointer, UnownedMemory=UnownedMemory, runtime=runtime, driver=made,
            memory=Strict("cupy.cuda.memory", OutOfMemoryError=OutOfMemoryError),
            compiler=Strict(
                "cupy.cuda.compiler", CompileException=CompileException,
                compile_using_nvrtc=compiled,
            ),
            nvrtc=Strict("cupy.cuda.nvrtc", getVersion=lambda: (12, 9)), Module=Module, Event=Event,
            alloc_pinned_memory=Owned, using_allocator=using, get_current_stream=current,
        )  # fmt: skip
        self.module: Any = ModuleType("cupy")
        self.module.__spec__ = ModuleSpec("cupy", None)
        found = {
            "cuda": cuda, "ndarray": array, "ascontiguousarray": lambda x: x,
            "from_dlpack": lambda x: x, "__version__": "14.2.0",
        }  # fmt: skip
        assert set(found) <= set(NAMES["cupy"])
        self.module.__dict__.update(found)
