"""A GPU for tests without one: its memory is the processor's, its kernels run through the shim.

It counts what programs ask of it. Reading memory that was given back, or that belongs to nobody, is
a fault.
"""

import bisect
import ctypes
import functools
import math
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from tests.runtime.gpu import made_up_cudnn, products
from tests.runtime.gpu.clique import Clique, Joined
from tests.runtime.gpu.on_processor import GPU, Fault, Held, compiled, launch, size, text_of, words
from treadle.core import dtypes, errors
from treadle.core.devices import Device, add_device, remove_device
from treadle.runtime.gpu.cudnn import Convolution, Cudnn
from treadle.runtime.gpu.driver import CannotRecord
from treadle.runtime.gpu.finish import Ends
from treadle.runtime.gpu.kernels import KernelCode, Stage
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.memory import DeviceStorage
from treadle.runtime.gpu.product import Product

ALIGNMENT = 256
_PROCESSOR = threading.Lock()


class Block:
    """Memory of the device. What nobody has written is NaN, or far outside. As in CuPy's pool,
    memory that is given back is what the next one of its size gets."""

    def __init__(self, driver: "RecordingDriver", size: int) -> None:
        room = -(-size // ALIGNMENT) * ALIGNMENT
        free = driver.free.setdefault(room, [])
        self.room = free.pop() if free else np.empty(room + ALIGNMENT, np.uint8)
        self.room[:] = 0xFF
        self.address = -(-self.room.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.size, self.driver = size, driver
        driver.add(self)

    def __del__(self) -> None:
        self.driver.remove(self)
        self.driver.free.setdefault(len(self.room) - ALIGNMENT, []).append(self.room)


class Function:
    """A stage of a kernel."""

    def __init__(self, code: KernelCode, stage: Stage, library: ctypes.CDLL) -> None:
        self.code, self.stage, self.library = code, stage, library


class Recording:
    """Calls of the driver, made again."""

    def __init__(self, driver: "RecordingDriver", calls: list[Any]) -> None:
        self.driver, self.calls = driver, calls

    def submit(self) -> None:
        self.driver.counts["submissions"] += 1
        for call in self.calls:
            call()


class Pinned:
    """Memory of the host."""

    def __init__(self, size: int) -> None:
        self.array = np.zeros(size, np.uint8)
        self.address = self.array.ctypes.data


class Mark:
    """A point among the work: what is to be done by then, if it was not done."""

    todo: Any = None

    def wait(self) -> None:
        todo, self.todo = self.todo, None
        if todo is not None:
            todo()


class Exported(np.ndarray):
    """What another library has of the memory of the device."""

    owner: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return 2, 0


class RecordingDriver:
    """See `treadle.runtime.gpu.driver.Driver`.

    Attributes:
        counts: of "launches", "uploads", "downloads", "copies", "clears", "allocations", "modules",
            "submissions" (of recordings), "waits", "ahead" (copies beside other work), "pinned";
            "choices" and "iterations" that the device decided about.
        limit: bytes that all memory together may take.
        has_eigenvectors: whether the library finds those of matrices that are not symmetric.
        finishes: whether a library finishes products, which "finished products" counts.
        opened: whether the library that multiplies has the memory that it needs.
        is_idle: launches are counted and not done.
        physical: the number of the GPU that the device is a part of.
        has_nccl: whether NCCL is installed; "collectives" counts its calls, "peer copies" those
            between devices without it.
        cached: see `on_processor.Kernels`; `moved` has the bytes so far, of copies, too.
    """

    library = np
    has_eigenvectors = True
    has_nccl = True
    finishes = True

    def __init__(self, gpu: Gpu = GPU, limit: int = 1 << 32, physical: int = 0) -> None:
        self.gpu, self.limit, self.physical = gpu, limit, physical
        self.counts: Counter[str] = Counter()
        self.blocks: dict[int, int] = {}
        self.starts: list[int] = []
        self.changing = threading.RLock()  # the collector frees blocks inside of these methods
        self.free: dict[int, list[Any]] = {}
        self.used = self.most = 0
        self.calls: list[Any] | None = None
        self.is_active = 0
        self.opened = False
        self.is_idle = False
        self.cached: int | None = None
        self.moved = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        self.is_active += 1
        yield
        self.is_active -= 1

    def computing(self) -> Any:
        return nullcontext()  # NumPy's functions always raise

    # -- memory ----------------------------------------------------------------------------------

    def memory_use(self) -> dict[str, int]:
        kept = sum(room * len(free) for room, free in self.free.items())
        return {"current": self.used, "peak": self.most, "kept": kept}

    def reset_peak(self) -> None:
        self.most = self.used

    def give_back(self) -> None:
        self.counts["given back"] += 1
        self.free.clear()

    def allocate(self, size: int) -> Block:
        assert size > 0 and self.is_active
        if self.used + size > self.limit:
            raise MemoryError(f"{size} bytes, where {self.limit - self.used} are left")
        assert self.calls is None, "memory is allocated while work is recorded"
        self.counts["allocations"] += 1
        return Block(self, size)

    def add(self, block: Block) -> None:
        with self.changing:
            self.blocks[block.address] = block.size
            bisect.insort(self.starts, block.address)
            self.used += block.size
            self.most = max(self.most, self.used)

    def remove(self, block: Block) -> None:
        with self.changing:
            del self.blocks[block.address]
            self.starts.remove(block.address)
            self.used -= block.size

    def owned(self, address: int, size: int) -> None:
        """Some bytes must be inside of one block."""
        with self.changing:  # threads that copy ahead ask while others allocate
            at = bisect.bisect_right(self.starts, address) - 1
            start = self.starts[at] if at >= 0 else 0
            inside = at >= 0 and address + size <= start + self.blocks[start]
        if size and not inside:
            raise Fault(f"{size} bytes at {address:#x} are no memory of the device")

    def array(self, address: int, dtype: Any, shape: Any, strides: Any = None) -> Any:
        dtype = np.dtype(dtype)
        if dtype == dtypes.bfloat16.np_dtype:  # as functions of the library get them
            dtype = np.dtype(np.uint16)
        if not math.prod(shape):
            return np.empty(shape, dtype)
        made = strides or np.empty(shape, dtype).strides
        extent = sum((n - 1) * s for n, s in zip(shape, made, strict=True)) + dtype.itemsize
        self.owned(address, extent)
        data = (ctypes.c_char * extent).from_address(address)
        return np.ndarray(shape, dtype, data, 0, strides)

    def exported(self, owner: Any, address: int, dtype: Any, shape: Any) -> Any:
        made = self.array(address, dtype, shape).view(dtype).view(Exported)
        made.owner = owner
        return made

    def imported(self, external: Any) -> Any:
        if external.__dlpack_device__() != (2, 0):
            return None
        if external.flags.c_contiguous:
            return external, external.ctypes.data, external.dtype, external.shape
        block = Block(self, external.nbytes)
        self.array(block.address, external.dtype, external.shape)[...] = external
        return block, block.address, external.dtype, external.shape

    # -- work ------------------------------------------------------------------------------------

    def _do(self, name: str, call: Any) -> None:
        assert self.is_active
        self.counts[name] += 1
        if self.calls is not None:
            self.calls.append(call)
        else:
            call()

    def upload(self, address: int, array: np.ndarray) -> None:
        assert self.calls is None, "a recording copies nothing from the host"
        assert array.flags.c_contiguous and self.is_active
        self.owned(address, array.nbytes)
        self.counts["uploads"] += 1
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: np.ndarray, address: int) -> None:
        assert self.calls is None, "a recording copies nothing to the host"
        assert array.flags.c_contiguous and self.is_active
        self.owned(address, array.nbytes)
        self.counts["downloads"] += 1
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        def call() -> None:
            self.owned(target, size)
            self.owned(source, size)
            ctypes.memmove(target, source, size)
            self.moved += 2 * size

        self._do("copies", call)

    def copy_from(self, other: "RecordingDriver", target: int, source: int, size: int) -> None:
        assert self.calls is None, "a recording has nothing of another device's work"

        def call() -> None:
            self.owned(target, size)
            other.owned(source, size)
            ctypes.memmove(target, source, size)

        self._do("peer copies", call)

    @property
    def identity(self) -> str:
        return str(self.physical)

    def nccl_missing(self) -> str | None:
        return None if self.has_nccl else "NCCL is not installed"

    def joined_communicator(self, rank: int, size: int, agree: Any) -> Joined:
        agree(b"number" if rank == 0 else None)
        return Joined(self)

    def communicator(self, drivers: Sequence["RecordingDriver"]) -> Clique:
        numbers = [d.physical for d in drivers]
        if not self.has_nccl or len(set(numbers)) < len(numbers):
            raise errors.UnavailableError(None, None, "no NCCL for these devices")
        return Clique(drivers)

    def allocate_ahead(self, size: int) -> tuple[Pinned, Block]:
        assert self.is_active
        self.counts["pinned"] += 1
        if self.used + size > self.limit:
            raise MemoryError(f"{size} bytes, where {self.limit - self.used} are left")
        return Pinned(size), Block(self, size)

    def copy_ahead(self, target: int, source: int, size: int, after: Mark | None) -> Mark:
        """The copy is made as late as possible: when somebody waits for it."""
        assert self.is_active and (after is None or after.todo is None)
        self.owned(target, size)
        self.counts["ahead"] += 1
        mark = Mark()
        mark.todo = lambda: ctypes.memmove(target, source, size)
        return mark

    def mark(self) -> Mark:
        assert self.is_active and self.calls is None
        return Mark()

    def follow(self, mark: Mark) -> None:
        assert self.is_active and self.calls is None
        mark.wait()

    def clear(self, address: int, size: int) -> None:
        def call() -> None:
            self.owned(address, size)
            ctypes.memset(address, 0, size)
            self.moved += size

        self._do("clears", call)

    def synchronize(self) -> None:
        assert self.calls is None
        self.counts["waits"] += 1

    refusals = (CannotRecord,)

    def begin_recording(self) -> None:
        assert self.calls is None
        self.calls = []

    def _part(self, work: Any) -> list[Any]:
        """The calls that some work makes, as part of a recording."""
        outside, self.calls = self.calls, []
        assert outside is not None, "only recordings have parts"
        if work is not None:
            work()
        inside, self.calls = self.calls, outside
        return inside

    def _flag(self, address: int) -> bool:
        return bool(self.array(address, np.bool_, ()))

    def choose(self, flag: int, then: Any, otherwise: Any) -> None:
        assert self.is_active and self.gpu.decides
        ways = [self._part(otherwise), self._part(then)]

        def call() -> None:
            self.counts["choices"] += 1
            for each in ways[self._flag(flag)]:
                each()

        self.calls.append(call)  # type: ignore[union-attr]

    def repeat(self, flag: int, body: Any) -> None:
        assert self.is_active and self.gpu.decides
        calls = self._part(body)

        def call() -> None:
            while self._flag(flag):
                self.counts["iterations"] += 1
                for each in calls:
                    each()

        self.calls.append(call)  # type: ignore[union-attr]

    def end_recording(self) -> Recording:
        calls, self.calls = self.calls, None
        assert calls is not None
        return Recording(self, calls)

    @functools.cached_property
    def cudnn(self) -> Cudnn:
        """Convolutions by NumPy, where `gpu.convolves`."""
        return Cudnn(made_up_cudnn, 7, self.allocate)

    def convolution(self, asked: Convolution) -> Any:
        assert self.gpu.convolves
        plan = self.cudnn.plan(asked)
        if plan is None:
            return None
        return lambda *addresses: self._do("convolutions", lambda: plan(*addresses))

    def open_products(self) -> None:
        assert self.is_active
        assert self.opened or self.calls is None, "a library takes memory while work is recorded"
        self.opened = True

    def product(self, product: Product) -> None:
        self.open_products()
        self._do("products", lambda: products.product(product))

    def finished_product(self, product: Product, ends: Ends) -> bool:
        if self.finishes:
            self.open_products()
            self._do("finished products", lambda: products.finished_product(product, ends))
        return self.finishes

    def triangles(self, matrix: Any) -> Any:
        self.counts["triangles"] += 1
        return products.triangles(matrix)

    def eigenvectors(self, matrices: Any) -> Any:
        if not self.has_eigenvectors:
            return None
        self.counts["eigenvectors"] += 1
        return np.linalg.eig(matrices.astype(np.result_type(matrices, np.complex64)))

    # -- kernels ---------------------------------------------------------------------------------

    def load(self, codes: Sequence[KernelCode]) -> list[list[Function]]:
        self.counts["modules"] += 1
        library = compiled(text_of([(code.arguments, code) for code in codes]))
        return [[Function(c, s, library) for s in c.stages] for c in codes]

    def needs(self, function: Function) -> None:
        """The shim has no registers."""

    def launch(
        self, function: Function, blocks: int, threads: int, shared: int, parameters: int
    ) -> None:
        stage = function.stage
        assert threads == stage.threads and shared == stage.shared and blocks > 0
        given = _Given(self, function.code, parameters)
        self._do("launches", lambda: given.run(function, blocks))


class _Given:
    """The parameters of a launch, as they were when it was asked for."""

    def __init__(self, driver: RecordingDriver, code: KernelCode, parameters: int) -> None:
        self.driver, self.code = driver, code
        self.sizes: list[int] = []
        self.firsts: list[int] = []
        self.memory: list[tuple[int, Any, int]] = []  # address, dtype and elements of operands
        self.numbers: dict[int, np.ndarray] = {}  # operands that are passed as numbers
        self.scratch = 0, 0
        kernel = code.arguments
        pointers = (ctypes.c_void_p * 2).from_address(parameters)
        if kernel.segmented:
            (count,) = (ctypes.c_int32 * 1).from_address(pointers[1])
            assert 0 < count <= code.segments
            place = pointers[0]
            for _ in range(count):
                place = self.segment(place)
            return
        number = len(kernel.buffers) + len(kernel.symbols) + (code.scratch != 0)
        each = (ctypes.c_void_p * max(number, 1)).from_address(parameters)
        places = [each[n] for n in range(number)]
        self.one(places[: len(kernel.buffers)], places[len(kernel.buffers) :])

    def one(self, buffers: Sequence[int], others: Sequence[int]) -> None:
        """Read the parameters of the kernel, or of a segment, at these places."""
        kernel = self.code.arguments
        values = [ctypes.c_int64.from_address(p).value for p in others]
        symbols = dict(zip(kernel.symbols, values, strict=False))
        self.sizes += values[: len(kernel.symbols)]
        for buffer, place in zip(kernel.buffers, buffers, strict=True):
            if buffer in self.code.values:
                dtype = buffer.dtype.np_dtype
                number = np.frombuffer(ctypes.string_at(place, dtype.itemsize), dtype)
                self.numbers[len(self.memory)] = number.copy()
                self.memory.append((0, dtype, 1))
                continue
            address = ctypes.c_int64.from_address(place).value
            count = math.prod(size(d, symbols) for d in buffer.shape)
            self.memory.append((address, buffer.dtype.np_dtype, count))
        if self.code.scratch != 0:
            self.scratch = values[-1], size(self.code.scratch, symbols)
        self.firsts.append(0)

    def segment(self, place: int) -> int:
        """Read the struct of a segment, and give where it ends."""
        kernel, buffers, word = self.code.arguments, [], place
        for buffer in kernel.buffers:
            buffers.append(word)
            wide = buffer in self.code.values and buffer.dtype.size > 8
            word += 16 if wide else 8
        self.one(buffers, [word + 8 * n for n in range(len(kernel.symbols))])
        word += 8 * len(kernel.symbols)
        self.firsts[-1] = ctypes.c_int64.from_address(word).value
        return word + 8

    def run(self, function: Function, blocks: int) -> None:
        if self.driver.is_idle:
            return
        with _PROCESSOR:  # the shim has one at a time, also where several devices work
            self._run(function, blocks)

    def _run(self, function: Function, blocks: int) -> None:
        arrays = [
            self.numbers[n] if n in self.numbers else self.driver.array(a, dtype, (count,))
            for n, (a, dtype, count) in enumerate(self.memory)
        ]
        address, count = self.scratch
        scratch = self.driver.array(address, np.uint8, (count,))
        kernel = self.code.arguments
        counts = len(kernel.buffers), len(kernel.symbols), len(self.firsts)
        given = words(self.sizes), words(self.firsts), *counts
        stored = [b in kernel.outputs for b in kernel.buffers] * len(self.firsts)
        cached = self.driver.cached
        held = [
            Held(a, cached is not None and n not in self.numbers, s)
            for n, (a, s) in enumerate(zip(arrays, stored, strict=True))
        ]
        launch(function.library, self.code, function.stage, blocks, held, given, scratch)
        if cached is not None:
            self.driver.moved += sum(h.moved(cached) for h in held)


@contextmanager
def recorded_gpu(number: int = 0, **settings: Any) -> Iterator[Device]:
    """The device GPU:`number`, as long as the block lasts; ``device.storage.driver`` counts."""
    storage = DeviceStorage(RecordingDriver(**settings))
    device = Device("GPU", number, storage)
    add_device(device)
    try:
        yield device
    finally:
        remove_device(device)


@contextmanager
def recorded_gpus(count: int, **settings: Any) -> Iterator[list[Device]]:
    """Several devices, each a GPU of its own."""
    with ExitStack() as stack:
        yield [stack.enter_context(recorded_gpu(i, physical=i, **settings)) for i in range(count)]
